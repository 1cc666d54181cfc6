# SPDX-License-Identifier: MIT
"""The parser of options by itself. Valgrind's own help is the oracle for the names that people know."""

import re
import subprocess
from pathlib import Path

from launcher import ASAN_ENV, PLAIN_ENV, ROOT, Skip, WORK, equal, refused, run, start, test


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
