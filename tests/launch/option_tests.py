# SPDX-License-Identifier: MIT
"""Options: what is accepted, where they come from, and the names that the command goes by."""

import os
import random
import re
import shutil
import subprocess
import threading

from launcher import (ASAN_ENV, BIN, BUILD, PLAIN_ENV, ROOT, Skip, Started, WORK, equal, refused,
                      run, sanitized_launcher, script, start, test)


@test
def defaults_reach_the_engine():
    got = start("true", "a", "b c", "")
    equal(got["argv"], ["true", "a", "b c", ""])
    equal(got.one("tool"), "memcheck")
    equal(got.one("log_fd"), "2")
    equal(got.one("verbosity"), "0")
    equal(got.one("muninn_exe"), str(BIN / "muninn"))
    equal(got.one("exe"), os.path.realpath("/usr/bin/true"))
    equal(got.one("execfn"), "/usr/bin/true")
    equal(got.one("script"), None)
    assert got["raw"][0].startswith("--muninn-exe="), got["raw"]


@test
def every_option_survives_the_way_to_the_engine():
    got = start("--tool=count", "--trace-children=yes", "--trace-children-skip=*/ls,a b", "--stats",
                "--trace=blocks,signals", "--stress=all", "--cache-size=1m", "--log-fd=1", "-v",
                "-v", "true")
    equal([got.one(k) for k in ("tool", "trace_children", "trace_children_skip", "stats", "trace",
                                "stress", "cache_size_bytes", "log_fd", "verbosity")],
          ["count", "1", "*/ls,a b", "1", "9", "255", "1048576", "1", "2"])


@test
def options_end_at_the_program_or_at_two_dashes():
    equal(start("-q", "true", "--tool=nope", "-x")["argv"], ["true", "--tool=nope", "-x"])
    equal(start("--", "true", "--", "x")["argv"], ["true", "--", "x"])


@test
def the_command_line_wins_over_MUNINN_OPTS():
    got = start("--trace=none", "true", env={"MUNINN_OPTS": " --tool=count --trace=all\t-v "})
    equal([got.one("tool"), got.one("trace"), got.one("verbosity")], ["count", "0", "1"])
    assert "MUNINN_OPTS= --tool=count --trace=all\t-v " in got["env"], "the client lost its variable"


@test
def MUNINN_OPTS_may_be_quoted():
    got = start("true", env={"MUNINN_OPTS": r"""--trace-children-skip='a b'"c d"\ e --stats"""})
    equal([got.one("trace_children_skip"), got.one("stats")], ["a bc d e", "1"])
    refused(run("true", env={"MUNINN_OPTS": "--stats ls"}), 1, "MUNINN_OPTS", "'ls'")
    refused(run("true", env={"MUNINN_OPTS": "--stast"}), 1, "MUNINN_OPTS", "--stats?")


@test
def wrong_options_are_explained():
    for arguments, parts in {
        ("--trase-children=yes", "true"): ["--trase-children=yes", "did you mean --trace-children?"],
        ("--tol=none", "true"): ["did you mean --tool?"],
        ("-tool=none", "true"): ["did you mean --tool?"],
        ("--zzzzzz", "true"): ["unknown option --zzzzzz", "--help"],
        ("-x", "true"): ["unknown option -x"],
        ("-qv", "true"): ["unknown option -qv"],
        ("-", "true"): ["unknown option -"],
        ("--tool=cuont", "true"): ["did you mean count?"],
        ("--tool", "none", "true"): ["--tool needs a value", "--tool=NAME"],
        ("--trace=calls,,blocks", "true"): ["unknown name ''"],
        ("--trace=", "true"): ["unknown name ''"],
        ("--stress=tiny-block", "true"): ["did you mean tiny-blocks?"],
        ("--trace-children=maybe", "true"): ["yes or no"],
        ("--trace-children", "true"): ["needs a value"],
        ("--stats=2", "true"): ["yes or no"],
        ("--quiet=yes", "true"): ["takes no value"],
        ("--cache-size=10", "true"): ["between 256k and 254m"],
        ("--cache-size=99999999999999999999g", "true"): ["between"],
        ("--cache-size=-1m", "true"): ["such as 64m"],
        ("--cache-size=3x", "true"): ["such as 64m"],
        ("--log-fd=-2", "true"): ["not negative"],
        ("--log-fd=two", "true"): ["must be a whole number"],
        ("--log-fd=99999999999", "true"): ["out of range"],
        ("--log-fd=77", "true"): ["--log-fd=77", "no such descriptor"],
        ("--log-file=", "true"): ["needs a value"],
        ("--log-file=a%x", "true"): ["--log-file=a%x"],
        ("--log-file=a%", "true"): ["--log-file=a%"],
        ("--log-file=%q{NOT_SET}", "true"): ["VAR must be set"],
        ("--log-file=%q{", "true"): ["VAR must be set"],
        ("--log-file=" + "x" * 5000, "true"): ["File name too long"],
        ("--help=nope",): ["no such topic"],
        ("--exe=/bin/true", "true"): ["unknown option --exe"],
        ("--muninn-exe=/bin/true", "true"): ["unknown option --muninn-exe"],
        ("--verbosity=3", "true"): ["unknown option --verbosity"],
        (): ["no program to run"],
        ("-v",): ["no program to run"],
    }.items():
        refused(run(*arguments), 1, *parts)


@test
def children_are_skipped_by_pattern():
    exe = os.path.realpath("/usr/bin/true")
    for patterns, skipped in {exe: "1", "*": "1", "*/true": "1", "x,*/tr?e": "1", "*/bin/*": "1",
                              "/*s*r*e": "1", "true": "0", "*/true?": "0", "*/tru": "0", ",": "0",
                              exe + "x": "0", "*false": "0"}.items():
        got = start(f"--trace-children-skip={patterns}", exe)
        equal([patterns, got.one("skipped")], [patterns, skipped])


@test
def log_file_names_are_expanded_and_absolute():
    got = start("--log-file=l%%.%p.%n.%q{X}.%q{LD_X}", "true", cwd=WORK,
                env={"X": "x", "LD_X": "y"})
    equal(got.one("log_file"), f"{WORK}/l%%.%p.%n.%q{{X}}.%q{{LD_X}}")
    equal(got.one("log_path"), f"{WORK}/l%.{got.one('pid')}.7.x.y")
    odd = WORK / "100%p"
    odd.mkdir()
    equal(start("--log-file=x", "true", cwd=odd).one("log_path"), f"{odd}/x")


@test
def help_names_every_option_and_version_answers():
    text = run("--help").stdout.decode()
    names = re.findall(r'^OPTION\((?:CORE|DEBUG), "([^"]+)"',
                       (ROOT / "src/launch/options.def").read_text(), re.M)
    assert len(names) > 10, names
    for name in names:
        assert f"--{name}" in text, f"--{name} is missing"
    assert "muninn-exe" not in text and "verbosity" not in text, "internal options are shown"
    assert max(map(len, text.splitlines())) <= 100, "too wide"
    assert not re.search(r" $", text, re.M), "blanks at the end of a line"
    equal(run("-h").stdout.decode(), text)
    assert b"none" in run("--help=none").stdout
    assert re.fullmatch(rb"muninn \d+\.\d+\.\d+\n", run("--version").stdout)


def home(name, **files):
    """A directory with rc files: valgrind="text", muninn="text"."""
    path = WORK / name
    path.mkdir(exist_ok=True)
    for program, text in files.items():
        file = path / f".{program}rc"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.chmod(0o644)
    return path


def compat():
    link = BIN / "valgrind"
    if not link.exists():
        link.symlink_to("muninn")
    return link


@test
def options_are_read_from_home_environment_and_directory_in_this_order():
    user = home("user", muninn="--num-callers=1 --error-exitcode=1\n--suppressions=/etc/passwd")
    here = home("here", muninn="--num-callers=3\t--redzone-size=3")
    env = {"HOME": str(user), "MUNINN_OPTS": "--num-callers=2 --error-exitcode=2 --redzone-size=2 "
           "--suppressions=/etc/group"}
    got = start("--redzone-size=4", "true", env=env, cwd=here)
    equal(got["raw"][1:got["raw"].index("--")][:5],
          ["--error-exitcode=2", "--suppressions=/etc/passwd", "--suppressions=/etc/group",
           "--num-callers=3", "--redzone-size=4"])
    got = start("--command-line-only=yes", "true", env=env, cwd=here)
    assert not any("num-callers" in word for word in got["raw"]), got["raw"]
    # The working directory may be the home directory: one file, read once.
    got = start("true", env={"HOME": str(user)}, cwd=user)
    equal(sum("suppressions" in word for word in got["raw"]), 1)


@test
def a_question_is_answered_whatever_the_files_say():
    user = home("broken", muninn="--nonsense", valgrind="--nonsense")
    for word in ("--version", "--help", "-h", "--help-debug", "--help=none"):
        for launcher in (BIN / "muninn", compat()):
            done = run(word, env={"HOME": str(user)}, launcher=launcher)
            equal([done.returncode, done.stderr], [0, b""])


@test
def files_have_comments_quotes_and_line_numbers():
    user = home("quotes", muninn="# a comment --foo\n\n--xml-user-comment='a # b'\r\n  # more\n"
                "--error-markers=\"x y\",z --stats#\n")
    refused(run("true", env={"HOME": str(user)}), 1, ".muninnrc:5: ", "--stats#")
    home("quotes", muninn="# a comment --foo\n--xml-user-comment='a # b'\n--error-markers=\"x y\",z")
    got = start("true", env={"HOME": str(user)})
    assert "--xml-user-comment=a # b" in got["raw"] and "--error-markers=x y,z" in got["raw"]
    home("quotes", muninn="--stats\n\nls\n")
    refused(run("true", env={"HOME": str(user)}), 1, ".muninnrc:3: 'ls' is not an option")
    home("quotes", muninn="--stats\n--\n")
    refused(run("true", env={"HOME": str(user)}), 1, ".muninnrc:2: '--' is not an option")
    home("quotes", muninn="--stats\n--error-markers='a,b\n--stats\n")
    refused(run("true", env={"HOME": str(user)}), 1, ".muninnrc:2: a quote is never closed")
    refused(run("true", env={"MUNINN_OPTS": '--error-markers="'}), 1, "MUNINN_OPTS: a quote")
    home("quotes", muninn=b"--stats\0--foo")
    refused(run("true", env={"HOME": str(user)}), 1, "zero byte")
    home("quotes", muninn=b"#" * (1 << 20) + b"#")
    refused(run("true", env={"HOME": str(user)}), 1, "larger than 1 MiB")


def warned(done):
    equal(done.returncode, 0)
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1 and lines[0].startswith("muninn: warning: ./.muninnrc was not read"), lines
    assert b"--stats" not in done.stdout


@test
def a_file_that_may_be_someone_elses_is_not_read():
    here = home("distrust", muninn="--stats")
    file = here / ".muninnrc"
    equal(start("true", cwd=here).one("stats"), "1")
    file.chmod(0o664)
    equal(start("true", cwd=here).one("stats"), "1")
    file.chmod(0o646)
    warned(run("true", cwd=here))
    # In the home directory it is the user's own business.
    equal(start("true", env={"HOME": str(here)}).one("stats"), "1")
    file.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        warned(run("true", cwd=here))
    file.unlink()
    os.mkfifo(file, 0o600)
    warned(run("true", cwd=here))
    refusal = run("true", env={"HOME": str(here)}).stderr.decode()
    assert "not a regular file" in refusal, refusal
    file.unlink()
    file.mkdir()
    warned(run("true", cwd=here))


@test
def a_home_that_cannot_be_entered_is_no_reason_for_a_warning():
    for path in ("/no/such/home", "relative", "x" * 5000, ""):
        equal(run("true", env={"HOME": path}).stderr, b"")
    if os.geteuid() != 0:
        raise Skip("needs root to become another user")
    WORK.chmod(0o755)
    closed = home("closed", muninn="--stats")
    closed.chmod(0o700)
    done = run("true", env={"HOME": str(closed)}, user=65534, cwd="/")
    equal([done.returncode, done.stderr], [0, b""])
    closed.chmod(0o755)
    (closed / ".muninnrc").chmod(0o600)
    done = run("true", env={"HOME": str(closed)}, user=65534, cwd="/")
    assert b"was not read: Permission denied" in done.stderr, done.stderr


@test
def hostile_files_never_crash_the_launcher():
    import random
    rng = random.Random(11)
    launcher = sanitized_launcher()
    words = [b"--stats", b"--log-file=", b"--suppressions=", b"'", b'"', b"\\", b"#", b"\n", b" ",
             b"--tool=count", b"--memcheck:x", b"\xff", b"--only=", b"-", b"--", b"\r", b"%p", b"a"]
    for _ in range(60):
        user = home("fuzz", muninn=b"".join(rng.choice(words) for _ in range(rng.randrange(30))))
        done = run("true", launcher=launcher, env=ASAN_ENV | {"HOME": str(user)}, cwd=WORK)
        if done.returncode != 0:
            equal(done.returncode, 1)
            text = done.stderr.decode("utf-8", "replace")
            assert text.startswith("muninn: ") and "Sanitizer" not in text, text


@test
def files_that_cannot_be_used_are_named_before_the_program_runs():
    for words, parts in {
        ("--suppressions=/no/such/file",): ["--suppressions=/no/such/file", "No such file"],
        ("--suppressions=/etc/passwd", "--suppressions=nope"): ["--suppressions=nope"],
        ("--baseline=/no/such.json",): ["--baseline=/no/such.json", "No such file"],
        ("--json-file=/no/such/dir/x",): ["--json-file=/no/such/dir/x", "No such file"],
        ("--sarif-file=/",): ["--sarif-file=/", "Is a directory"],
        ("--xml-file=a%x", "--xml=yes"): ["--xml-file=a%x", "%"],
        ("--json-file=%q{NOT_SET}",): ["VAR must be set"],
        ("--xml-fd=77", "--xml=yes"): ["--xml-fd=77", "no such descriptor"],
        ("--input-fd=77", "--gen-suppressions=yes"): ["--input-fd=77"],
        ("--log-file=/etc/passwd/x",): ["Not a directory"],
    }.items():
        # What cannot be written is no wrong use: 126, as for a program that cannot be run.
        output = words[0] in ("--json-file=/no/such/dir/x", "--sarif-file=/",
                              "--log-file=/etc/passwd/x")
        refused(run(*words, "true"), 126 if output else 1, *parts)
    start("--input-fd=77", "true")
    start("--log-file=/dev/null", "true")
    start("--log-fd=77", "--log-file=/dev/null", "true")


@test
def paths_become_absolute_and_repeat():
    (WORK / "s1").write_text("")
    (WORK / "s2").write_text("")
    got = start("--suppressions=s1", "--suppressions=s2", "--xml=yes", "--xml-file=x.%p",
                "--json-file=j", "true", cwd=WORK)
    for word in (f"--suppressions={WORK}/s1", f"--suppressions={WORK}/s2",
                 f"--xml-file={WORK}/x.%p", f"--json-file={WORK}/j"):
        assert word in got["raw"], f"{word} is not in {got['raw']}"


@test
def a_pipe_is_read_where_a_file_is_meant():
    text = "{\n   one\n   Memcheck:Cond\n   fun:main\n}\n"

    def with_pipe(text, *words):
        reader, writer = os.pipe()
        os.write(writer, text.encode())
        os.close(writer)
        try:
            return run(*(word.format(reader) for word in words), pass_fds=[reader])
        finally:
            os.close(reader)

    (WORK / "s1").write_text("")
    done = with_pipe(text, f"--suppressions={WORK}/s1", "--suppressions=/dev/fd/{0}", "true")
    got = Started(done)["raw"]
    assert [word for word in got if "suppressions" in word] == [
        f"--suppressions={WORK}/s1", re.search(r"--suppressions=\n/dev/fd/\d+\n", "".join(got))[0] + text]
    got = Started(run("--suppressions=/dev/stdin", "true", input=text.encode()))["raw"]
    assert "--suppressions=\n/dev/stdin\n" + text in got, got
    fifo = WORK / "suppressions-fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_text(text), daemon=True)
    writer.start()
    assert f"--suppressions=\n{fifo}\n" + text in start(f"--suppressions={fifo}", "true")["raw"]
    start("--suppressions=/dev/null", "true")
    refused(run("--suppressions=/dev/stdin", "true", input=b"#" * 130000), 1, "120 KiB")
    refused(run("--suppressions=/dev/zero", "true"), 1, "120 KiB")
    refused(with_pipe("{}", "--baseline=/dev/fd/{0}", "true"), 1, "a file is needed")


@test
def the_name_valgrind_brings_its_version_files_and_tool():
    link = compat()
    equal(run("--version", launcher=link).stdout, b"valgrind-3.25.1\n")
    assert run("--version", "-v", launcher=link).stdout.startswith(b"valgrind-3.25.1 (muninn ")
    equal(run("-h", launcher=link).stdout, run("--help", launcher=link).stdout)
    equal(start("true", launcher=link).one("tool"), "memcheck")
    user = home("vuser", valgrind="--num-callers=1 --redzone-size=1", muninn="--num-callers=2")
    here = home("vhere", valgrind="--num-callers=5\n--memcheck:leak-check=full",
                muninn="--error-exitcode=6")
    env = {"HOME": str(user), "VALGRIND_OPTS": "--tool=none --num-callers=3", "MUNINN_OPTS": "-v"}
    got = start("true", launcher=link, env=env, cwd=here)
    for word in ("--num-callers=5", "--redzone-size=1", "--error-exitcode=6", "--verbosity=1"):
        assert word in got["raw"], f"{word} is not in {got['raw']}"
    # Under its own name muninn knows nothing of them.
    got = start("true", env=env, cwd=here)
    assert "--num-callers=2" in got["raw"] and "--redzone-size=1" not in got["raw"], got["raw"]
    # The engine finds its way whatever the link is called.
    equal(start("--tool=none", "ps", launcher=link).one("muninn_exe"), str(BIN / "muninn"))
    equal(start("--tool=none", "true", launcher=link)["argv"], ["true"])
    bad = run("--foo", launcher=link)
    equal([bad.returncode, bad.stdout], [1, b""])


@test
def installation_gives_both_names():
    # Other suites run what is built here: a compiler that cannot compile shows that nothing is.
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    subprocess.run(["make", "-s", "-C", ROOT, f"OUT={BUILD}", "PREBUILT=yes", "CC=false",
                    f"DESTDIR={WORK}/root", "PREFIX=/usr", "install-compat"],
                   check=True, env=env, stdout=subprocess.DEVNULL)
    installed = WORK / "root/usr"
    equal(run("--version", launcher=installed / "bin/valgrind").stdout, b"valgrind-3.25.1\n")
    equal(run("--tool=none", "true", launcher=installed / "bin/valgrind").returncode, 0)
    for path in ("share/man/man1/muninn.1", "share/bash-completion/completions/muninn",
                 "share/bash-completion/completions/valgrind", "share/zsh/site-functions/_muninn",
                 "share/fish/vendor_completions.d/muninn.fish", "libexec/muninn/muninn-engine"):
        assert (installed / path).exists(), path


@test
def a_subcommand_goes_to_the_monitor_and_a_program_of_that_name_does_not():
    refused(run("ps"), 1, "incomplete installation", "muninn-inspect")
    script("bin/muninn-inspect", '#!/bin/sh\necho "inspect:$@"\n')
    for words in (("ps",), ("ctl", "12", "status"), ("ctl", "--x", "a b")):
        done = run(*words)
        equal(done.stdout.decode(), f"inspect:--subcommand={' '.join(words)}\n")
    (BIN / "muninn-inspect").unlink()
    path = shutil.which("ps", path=PLAIN_ENV["PATH"]) or "/bin/true"
    for words in (("--", "ps"), ("--tool=none", "ps"), ("-q", "ps"), (path,)):
        equal(start(*words).one("exe"), os.path.realpath(path))
    script("dir/ps", "#!/bin/sh\n")
    equal(start("./ps", cwd=WORK / "dir")["argv"], ["/bin/sh", "./ps"])
    equal(start("--tool=none", "ps", launcher=compat()).one("exe"), os.path.realpath(path))
