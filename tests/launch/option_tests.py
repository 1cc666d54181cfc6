# SPDX-License-Identifier: MIT
"""Options: what is accepted, what is refused and how, where they come from, what is made from the
table. Valgrind's own help is the oracle for the names that people know."""

import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import manual_options
from launcher import *  # noqa: F403

# ---------------------------------------------------------------- options

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
          ["count", "1", "*/ls,a b", "1", "5", "127", "1048576", "1", "2"])


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


# ---------------------------------------------------------------- the parser by itself

PARSER_SOURCES = ("options", "option_table", "option_values", "option_paths", "suggest")


def parser():
    """parse_options.c, built with sanitizers."""
    path = WORK / "parse_options"
    if not path.exists():
        subprocess.run(["gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-O1", "-g",
                        "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-D_GNU_SOURCE",
                        "-DMUNINN_DEBUG=1", f"-I{ROOT}/src", "-o", path,
                        ROOT / "tests/launch/parse_options.c",
                        *(ROOT / f"src/launch/{name}.c" for name in PARSER_SOURCES)], check=True)
    return path


def parse(tool, *words):
    """The status and the lines that parse_options prints."""
    done = subprocess.run([parser(), tool, *words], capture_output=True, text=True, timeout=300,
                          env=PLAIN_ENV | ASAN_ENV)
    assert done.returncode in (0, 1) and done.stderr == "", done.stderr
    return done.returncode, done.stdout.splitlines()


def accepted(tool, *words):
    """The options that reach the engine, but for the tool."""
    status, lines = parse(tool, *words)
    assert status == 0, f"{words}: {lines}"
    return [line for line in lines if not line.startswith("--tool=")]


def says(tool, words, *parts):
    status, lines = parse(tool, *words)
    assert status == 1, f"{words} is accepted"
    for part in parts:
        assert part in lines[0], f"{words}: {part!r} is not in {lines[0]!r}"


@test
def memcheck_options_have_their_meaning():
    for words, wanted in {
        ("--leak-check=yes",): ["--leak-check=full"],
        ("--leak-check=summary",): [],
        ("--show-reachable=yes",): ["--show-leak-kinds=definite,indirect,possible,reachable"],
        ("--show-reachable=yes", "--show-reachable=no"): [],
        ("--show-reachable=no", "--show-possibly-lost=yes"): [],
        ("--show-reachable=no", "--show-possibly-lost=no"): ["--show-leak-kinds=definite"],
        ("--show-possibly-lost=no", "--show-reachable=yes"):
            ["--show-leak-kinds=definite,indirect,possible,reachable"],
        ("--show-reachable=yes", "--show-possibly-lost=no"):
            ["--show-leak-kinds=definite,indirect,possible,reachable"],
        ("--show-leak-kinds=all",): ["--show-leak-kinds=definite,indirect,possible,reachable"],
        ("--show-leak-kinds=none",): ["--show-leak-kinds=none"],
        ("--show-leak-kinds=definite,possible",): [],
        ("--errors-for-leak-kinds=reachable",): ["--errors-for-leak-kinds=reachable"],
        ("--leak-check-heuristics=stdstring,length64",):
            ["--leak-check-heuristics=stdstring,length64"],
        ("--malloc-fill=ab", "--free-fill=0xFf"): ["--malloc-fill=ab", "--free-fill=ff"],
        ("--freelist-vol=10000000",): ["--freelist-vol=10000000"],
        ("--freelist-vol=1g",): ["--freelist-vol=1073741824"],
        ("--ignore-ranges=0x1000-0x2000,0x3000-0x4000",):
            ["--ignore-ranges=0x1000-0x2000,0x3000-0x4000"],
        ("--ignore-range-below-sp=8192-8189",): ["--ignore-range-below-sp=8192-8189"],
        ("--memcheck:leak-check=no", "--massif:depth=x", "--foo:bar=1"): ["--leak-check=no"],
        ("-s",): ["--show-error-list=yes"],
        ("-v", "-v"): ["--show-error-list=yes", "--verbosity=2"],
        ("-v", "-v", "--show-error-list=no"): ["--verbosity=2"],
        ("-q",): ["--verbosity=-1"],
        ("--trace-syscalls=yes", "--trace-signals=yes", "--trace-syscalls=no"): ["--trace=signals"],
        ("--suppressions=a", "--suppressions=b", "--fullpath-after=", "--fullpath-after=/x/"):
            ["--suppressions=a", "--suppressions=b", "--fullpath-after=", "--fullpath-after=/x/"],
        ("--log-file=x", "--log-fd=1"): ["--log-fd=1"],
        ("--log-fd=1", "--log-file=x"): ["--log-file=x"],
        ("--xml=yes", "--xml-file=x", "--xml-socket=127.0.0.1"):
            ["--xml=yes", "--xml-socket=127.0.0.1"],
    }.items():
        equal([words, accepted("memcheck", *words)], [words, wanted])


@test
def massif_options_have_their_meaning():
    for words, wanted in {
        ("--threshold=1.0", "--depth=30", "--heap=yes"): [],
        ("--threshold=.5", "--peak-inaccuracy=0.00019"):
            ["--threshold=0.5000", "--peak-inaccuracy=0.0001"],
        ("--threshold=100",): ["--threshold=100.0000"],
        ("--time-unit=B", "--alloc-fn=f", "--alloc-fn=g(int, char)"):
            ["--alloc-fn=f", "--alloc-fn=g(int, char)", "--time-unit=B"],
        ("--massif-out-file=m.%p",): ["--massif-out-file=m.%p"],
    }.items():
        equal([words, accepted("massif", *words)], [words, wanted])


@test
def wrong_values_are_refused_as_valgrind_refuses_them():
    for tool, words, part in [
        ("memcheck", ["--leak-check=maybe"], "there are: no, summary, full"),
        ("memcheck", ["--num-callers=0"], "between 1 and 500"),
        ("memcheck", ["--num-callers=10000"], "between 1 and 500"),
        ("memcheck", ["--num-callers=abc"], "must be a whole number"),
        ("memcheck", ["--num-callers= 5"], "must be a whole number"),
        ("memcheck", ["--num-callers="], "must be a whole number"),
        ("memcheck", ["--malloc-fill=0x1ff"], "between 0 and ff"),
        ("memcheck", ["--malloc-fill=zz"], "hexadecimal"),
        ("memcheck", ["--redzone-size=5000"], "between 0 and 4096"),
        ("memcheck", ["--alignment=24"], "no power of two"),
        ("memcheck", ["--alignment=7"], "between 16 and 4096"),
        ("memcheck", ["--show-leak-kinds=foo"], "unknown name 'foo'"),
        ("memcheck", ["--show-leak-kinds=definite,none"], "unknown name 'none'"),
        ("memcheck", ["--alloc-fns=my_alloc"], "NAME=FUNCTION or PREFIX*"),
        ("memcheck", ["--alloc-fns=a=malloc,"], "NAME=FUNCTION or PREFIX*"),
        ("memcheck", ["--alloc-fns=*"], "NAME=FUNCTION or PREFIX*"),
        ("memcheck", ["--track-origins=1"], "yes or no"),
        ("memcheck", ["--track-origins"], "needs a value"),
        ("memcheck", ["--undef-value-errors=no", "--track-origins=yes"], "has no effect"),
        ("memcheck", ["--log-socket=foo"], "127.0.0.1:1500"),
        ("memcheck", ["--xml-socket=1.2.3.256"], "127.0.0.1:1500"),
        ("memcheck", ["--xml-socket=1.2.3.4:"], "127.0.0.1:1500"),
        ("memcheck", ["--xml=yes"], "--xml-file"),
        ("memcheck", ["--xml-protocol=7"], "between 4 and 6"),
        ("memcheck", ["--exit-on-first-error=yes"], "--error-exitcode"),
        ("memcheck", ["--ignore-ranges=zz"], "0xA-0xB"),
        ("memcheck", ["--ignore-ranges=1-2,"], "0xA-0xB"),
        ("memcheck", ["--ignore-ranges=0x20-0x10"], "0xA-0xB"),
        ("memcheck", ["--ignore-range-below-sp=10-20"], "HIGH-LOW"),
        ("memcheck", ["--ignore-range-below-sp=5000-100"], "HIGH-LOW"),
        ("memcheck", ["--xml-socket=1.2.3.4:0"], "127.0.0.1:1500"),
        ("massif", ["--pages-as-heap=yes", "--stacks=yes"], "--stacks=yes cannot"),
        ("memcheck", ["--merge-recursive-frames=501"], "between 0 and 500"),
        ("memcheck", ["--no-leak-check"], "did you mean"),
        ("memcheck", ["--depth=3"], "option of --tool=massif"),
        ("massif", ["--leak-check=full"], "option of --tool=memcheck"),
        ("massif", ["--massif:leak-check=full"], "option of --tool=memcheck"),
        ("massif", ["--massif:foo=full"], "unknown option foo"),
        ("massif", ["--threshold=200"], "between 0 and 100"),
        ("massif", ["--threshold=abc"], "between 0 and 100"),
        ("massif", ["--threshold="], "between 0 and 100"),
        ("massif", ["--threshold=."], "between 0 and 100"),
        ("massif", ["--depth=1000"], "between 1 and 200"),
        ("massif", ["--time-unit=x"], "there are: i, ms, B"),
        ("none", ["--suppressions=x"] * 257, "room for 256"),
    ]:
        says(tool, words, part)
    equal(len(accepted("none", *["--suppressions=x"] * 256)), 256)


@test
def every_slip_finds_its_option():
    for typed, meant in {"--leak-chek=full": "leak-check", "--supressions=x": "suppressions",
                         "--track-origin=yes": "track-origins", "--leakcheck=full": "leak-check",
                         "--show-leak-kind=all": "show-leak-kinds", "-leak-check=full": "leak-check",
                         "--error-exit-code=1": "error-exitcode", "--logfile=x": "log-file",
                         "--gen-supressions=all": "gen-suppressions",
                         "--trace-childern=yes": "trace-children", "--xmlfile=x": "xml-file",
                         "--num-caller=5": "num-callers"}.items():
        says("memcheck", [typed], f"did you mean --{meant}?")


# ---------------------------------------------------------------- Valgrind's own help as the oracle

# Values for the forms that its help shows; by option where the form does not tell.
VALUES = {"number": "5", "file": "f", "filename": "f", "name": "f", "size": "8", "hexnumber": "ab",
          "XXXXXXXX": "00000000", "m.n": "1.0", "N": "20", "prefix": "p", "patt": "p", "0..9": "1",
          "0..2": "1", "0..400": "1", "1..100": "1", "STR": "text", "path": "p", "string": "text",
          "ipaddr:port": "127.0.0.1:1500", "mode": "sp-at-mem-access", "0xPP": "0x10000"}
BY_OPTION = {"error-markers": "a,b", "alignment": "32", "redzone-size": "16",
             "require-text-symbol": ":a:b", "soname-synonyms": "somalloc=NONE",
             "kernel-variant": "bproc", "sim-hints": "lax-ioctls", "show-leak-kinds": "definite",
             "errors-for-leak-kinds": "all", "leak-check-heuristics": "newarray",
             "trace-children-skip": "a,b", "trace-children-skip-by-arg": "a,b",
             "vgdb-stop-at": "exit", "ignore-ranges": "0x10-0x20", "ignore-range-below-sp": "20-10",
             "fullpath-after": "", "tool": "none", "xml": "no", "exit-on-first-error": "no"}
# Options of releases after 3.19, which Debian's does not show.
LATER = {"memcheck": ["--show-realloc-size-zero=yes", "--show-realloc-size-zero=no"],
         "none": ["--vgdb-stop-at=abexit", "--track-fds=bad", "--track-fds=all", "--modify-fds=no",
                  "--modify-fds=yes", "--modify-fds=high", "--enable-debuginfod=yes",
                  "--enable-debuginfod=no", "--show-error-list=all", "--max-guard-pages=10",
                  "--realloc-zero-bytes-frees=no", "--scheduling-quantum=100",
                  "--num-callers=2", "--num-callers=500"]}
SPLIT = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)(=\S*)?")


def forms(text):
    """Every (option, value) that a help text shows; the value None for an option without."""
    for line in text.splitlines():
        if re.match(r"^ {2,6}-", line) is None and "same as" not in line:
            continue
        shown = re.split(r" {2,}|(?<=\S) (?=[a-zA-Z(])", line.strip())[0]
        for name, value in SPLIT.findall(shown):
            value = value[1:] if value else None
            if value is None:
                yield name, None
            elif name in BY_OPTION:
                yield name, BY_OPTION[name]
            elif "|" in value:
                yield from ((name, choice) for choice in value.split("|"))
            else:
                value = re.sub(r"[<>\[\],]", "", value)
                yield name, VALUES.get(value, value)


def valgrind_help(tool):
    if not Path("/usr/bin/valgrind").exists():
        raise Skip("valgrind is not installed")
    done = subprocess.run(["/usr/bin/valgrind", f"--tool={tool}", "--help-debug"], env=PLAIN_ENV,
                          capture_output=True, text=True, timeout=300, cwd="/")
    text = done.stdout.split("Extra options read from")[0]
    assert len(text) > 8000, text
    return text


@test
def every_option_that_valgrind_shows_is_accepted_or_refused_with_a_reason():
    for tool in ("memcheck", "massif", "none"):
        text = valgrind_help(tool)
        shown = set(forms(text))
        names = {name for name, _ in shown}
        # --syms is an option of readelf.
        equal(set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", text)) - names, {"syms"})
        assert len(names) > 100, f"only {len(names)} options found in the help of {tool}"
        words = [f"--{name}" + ("" if value is None else f"={value}") for name, value in sorted(
            shown, key=str)]
        refusals = 0
        for word in words + LATER.get(tool, []):
            if word.startswith("--tool="):
                continue
            status, lines = parse(tool, word)
            if status == 0:
                continue
            refusals += 1
            assert "unknown" not in lines[0] and len(lines[0]) > len(word) + 20, f"{word}: {lines[0]}"
            assert " must " not in lines[0], f"{word}: {lines[0]}"
        assert refusals < 30, f"{refusals} of {len(words)} refused"


@test
def each_refusal_says_why():
    for word, part in {"--vgdb=full": "no debugger stub", "--vgdb-error=0": "no debugger stub",
                       "--vgdb-stop-at=startup": "no debugger stub", "--wait-for-gdb=yes": "gdb",
                       "--debuginfo-server=1.2.3.4:5": "--enable-debuginfod=yes",
                       "--trace-flags=10000000": "--trace=blocks",
                       "--debug-dump=syms": "readelf"}.items():
        refused(run(word, "true"), 1, word, part)
    for word in ("--vgdb=no", "--vgdb=yes", "--vgdb-error=999999999", "--vgdb-stop-at=none",
                 "--wait-for-gdb=no", "--trace-redir=no", "--smc-check=all", "--fair-sched=try",
                 "--sim-hints=lax-ioctls,fuse-compatible", "--px-default=allregs-at-each-insn",
                 "--vex-iropt-level=0", "--max-threads=10000", "--kernel-variant=bproc"):
        start(word, "true")


@test
def hostile_options_never_crash_the_parser():
    done = subprocess.run([parser(), "--fuzz", "40000"], capture_output=True, text=True, timeout=300,
                          env=PLAIN_ENV | ASAN_ENV)
    equal([done.returncode, done.stderr], [0, ""])
    good, total = map(int, re.match(r"(\d+) of (\d+) accepted", done.stdout).groups())
    assert total / 50 < good < total * 0.7, done.stdout


# ---------------------------------------------------------------- where options come from

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


# ---------------------------------------------------------------- files that options name

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


# ---------------------------------------------------------------- called as valgrind

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


# ---------------------------------------------------------------- subcommands

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


# ---------------------------------------------------------------- texts made from the table

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
