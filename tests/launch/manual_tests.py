# SPDX-License-Identifier: MIT
"""Help, manual page and completions: texts that are made from the table of options."""

import shutil
import subprocess

import manual_options
from launcher import PLAIN_ENV, ROOT, Skip, WORK, equal, run, test


@test
def help_comes_in_parts():
    plain = run("--help").stdout.decode()
    full = run("--help-debug").stdout.decode()
    assert "--smc-check" not in plain and "--smc-check" in full and "--vgdb-error" in full
    assert full.startswith(plain.split("\nSubcommands")[0]), "--help-debug leaves something out"
    assert b"muninn ctl PID help" in run("--help-dyn-options").stdout
    assert b"no options of its own" in run("--help=count").stdout
    for text in (plain, full):
        assert max(map(len, text.splitlines())) <= 100, "too wide"


@test
def every_option_of_the_manual_is_accounted_for():
    manual_options.check_table(lambda tool: run(f"--tool={tool}", "--help-debug").stdout.decode())


@test
def every_option_of_the_manual_is_accepted_or_refused_with_a_sentence():
    def words(options):
        done = run(*options, "true")
        return done.returncode, done.stderr.decode()
    manual_options.check_values(words)


@test
def what_is_made_from_the_table_is_up_to_date():
    for topic, path in {"man": "docs/man/muninn.1", "markdown": "docs/user/options.md",
                        "bash": "completions/muninn.bash", "zsh": "completions/_muninn",
                        "fish": "completions/muninn.fish"}.items():
        equal([path, run(f"--help={topic}").stdout.decode()], [path, (ROOT / path).read_text()])


@test
def the_manual_page_is_sound_roff():
    if not shutil.which("man"):
        raise Skip("man is not installed")
    done = subprocess.run(["man", "--warnings", "-l", ROOT / "docs/man/muninn.1"], timeout=300,
                          capture_output=True, env=PLAIN_ENV | {"MANWIDTH": "90"})
    equal([done.returncode, done.stderr.decode()], [0, ""])
    assert b"--suppressions=FILE" in done.stdout


def complete_in_bash(*words):
    """What pressing TAB behind these words offers."""
    quoted = " ".join(f"'{word}'" for word in words)
    text = (f". {ROOT}/completions/muninn.bash; COMP_WORDS=({quoted}); "
            f"COMP_CWORD={len(words) - 1}; _muninn; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=300,
                          env=PLAIN_ENV, cwd="/")
    equal(done.stderr, "")
    return done.stdout.split()


@test
def bash_completes_options_values_programs_and_subcommands():
    equal(complete_in_bash("muninn", "--trace-ch"), ["--trace-children=", "--trace-children-skip=",
                                                     "--trace-children-skip-by-arg="])
    assert {"none", "count"} <= set(complete_in_bash("muninn", "--tool", "="))
    equal(complete_in_bash("muninn", "--tool", "=", "co"), ["count"])
    equal(complete_in_bash("muninn", "-v", "--trace", "=", "blocks,sy"), ["blocks,syscalls"])
    equal(complete_in_bash("muninn", "--log-file", "=", "/etc/host.con"), ["/etc/host.conf"])
    assert "ctl" in complete_in_bash("muninn", "ct")
    assert "ctl" not in complete_in_bash("valgrind", "ct")
    assert "true" in complete_in_bash("muninn", "--tool", "=", "none", "tru")
    equal(complete_in_bash("muninn", "--stats", "true", "/etc/host.con"), ["/etc/host.conf"])


@test
def fish_and_zsh_read_their_completions():
    if not shutil.which("fish") and not shutil.which("zsh"):
        raise Skip("neither fish nor zsh is installed")
    if shutil.which("fish"):
        text = (f"source {ROOT}/completions/muninn.fish; complete -C 'muninn --tool='; "
                "complete -C 'muninn ct'; complete -C 'muninn -q true --stat'")
        done = subprocess.run(["fish", "--no-config", "-c", text], capture_output=True, text=True,
                              timeout=300, env=PLAIN_ENV | {"HOME": str(WORK)})
        assert "--tool=count" in done.stdout and done.stderr == "", done
        assert "ctl\t" in done.stdout and "--stats" not in done.stdout, done.stdout
    if shutil.which("zsh"):
        done = subprocess.run(["zsh", "-f", "-n", ROOT / "completions/_muninn"], timeout=300,
                              capture_output=True, env=PLAIN_ENV)
        equal([done.returncode, done.stderr], [0, b""])
