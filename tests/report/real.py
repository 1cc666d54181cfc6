# SPDX-License-Identifier: MIT
"""Reports of real runs: programs that are built here, run under the real launcher."""

import os
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
MUNINN = os.environ.get("MUNINN") or str(BUILD / "muninn")


def compile_c(where, name, text, *flags):
    """The program, or the library if the name ends in .so."""
    source = where / f"{name.replace('.so', '')}.c"
    source.write_text(text)
    shared = ["-shared", "-fPIC"] if name.endswith(".so") else []
    subprocess.run(["gcc", "-g", "-O0", "-w", *shared, "-o", where / name, source, *flags],
                   check=True)
    return where / name


def run(where, *words, muninn=MUNINN):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VALGRIND")}
    return subprocess.run([muninn, *map(str, words)], cwd=where, env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          errors="replace", timeout=600)


# ------------------------------------------------------------------------------ descriptors

DESCRIPTORS = r"""
#include <fcntl.h>
#include <sys/socket.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    int twice = open("/dev/null", O_RDONLY), ends[2];
    char c;
    open("/etc/passwd", O_RDONLY);
    socket(AF_INET, SOCK_STREAM, 0);
    pipe(ends);
    close(twice);
    close(twice);
    read(99, &c, 1);
    char *block = malloc(3);
    block[3] = 0;
    return 0;
}
"""


def check_schema(path, protocol):
    """Against docs/schema; a line for what is wrong."""
    done = subprocess.run(["xmllint", "--noout", "--relaxng",
                           ROOT / f"docs/schema/report-xml-{protocol}.rng", path],
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"protocol {protocol}: {done.stderr[:1500]}"


def kinds_of(path):
    return re.findall(r"<kind>(\w+)</kind>", path.read_text())


def descriptors_are_errors(where, tool):
    """Of protocol 5 and 6; protocol 4 has none of them, and the text has them instead."""
    program = compile_c(where, "descriptors", DESCRIPTORS)
    fds = ["FdBadClose", "FdBadUse", *["FdNotClosed"] * 4]
    others = {"memcheck": ["InvalidWrite", "Leak_DefinitelyLost"], "none": []}[tool]
    for protocol in (4, 5, 6):
        path = where / f"{tool}{protocol}.xml"
        done = run(where, f"--tool={tool}", "--track-fds=bad" if protocol == 0 else
                   "--track-fds=all", *(["--leak-check=full"] if others else []), "--xml=yes",
                   f"--xml-protocol={protocol}", f"--xml-file={path}", program)
        check_schema(path, protocol)
        kinds = kinds_of(path)
        wanted = others + (fds if protocol > 4 else [])
        assert sorted(kinds) == sorted(wanted), (tool, protocol, kinds)
        text = path.read_text()
        # All that count are counted, and nothing that is not there.
        uniques = set(re.findall(r"<error>\s*<unique>(\w+)</unique>", text))
        counted = re.search(r"(?s)<errorcounts>.*</errorcounts>", text)[0]
        assert set(re.findall(r"<unique>(\w+)</unique>", counted)) <= uniques, counted
        if protocol == 4:
            assert "File descriptor 3: /dev/null is already closed" in done.stderr, done.stderr
        else:
            assert "<fd>3</fd>\n  <path>/dev/null</path>" in text
            assert "<what>Open file descriptor 4: /etc/passwd</what>" in text
            assert "already closed" not in done.stderr, done.stderr
        if protocol == 6:
            errors = int(re.search(r"<errors>(\d+)</errors>", text)[1])
            assert errors == len(wanted), (errors, wanted)


# ------------------------------------------------------------------- code that is gone again

PLUGIN = r"""
#include <stdlib.h>
void *leak_of_%s(int size) { return malloc(size); }
void *run(int size) { return leak_of_%s(size); }
"""

# Both are called from the same line, so that nothing but the plugin differs.
HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static void use(const char *path, int size)
{
    void *library = dlopen(path, RTLD_NOW);
    void *(*run)(int) = (void *(*)(int))dlsym(library, "run");
    void *volatile block = run(size);
    block = NULL;
    fprintf(stderr, "loaded at %p\n", (void *)run);
    if (KEEPS)
        return;
    dlclose(library);
}
int main(void)
{
    static const char *const paths[] = {"./first.so", "./second.so"};
    for (int i = 0; i < 4; i++)
        use(paths[i % 2], i % 2 ? 200 : 100);
    void *volatile last = malloc(300);
    last = NULL;
    return 0;
}
"""


def stacks_of_leaks(text):
    """{bytes: [functions of the stack]} of each record."""
    records = []
    for size, stack in re.findall(r"== (\d+) bytes in \d+ blocks are definitely lost.*\n"
                                  r"((?:==\d+==    (?:at|by) .*\n)+)", text):
        records.append((int(size), re.findall(r"0x[0-9A-F]+: (\S+)", stack)))
    return records


def names_of_plugins_that_are_gone(where):
    for name in ("first", "second"):
        compile_c(where, f"{name}.so", PLUGIN % (name, name))
    host = compile_c(where, "host", HOST, "-DKEEPS=0", "-ldl")
    done = run(where, "--leak-check=full", "--keep-debuginfo=yes", host)
    places = set(re.findall(r"loaded at (\S+)", done.stderr))
    assert len(places) == 1, f"the addresses are not used again: {places}"
    records = stacks_of_leaks(done.stderr)
    for size, stack in records:
        name = {100: "leak_of_first", 200: "leak_of_second"}.get(size)
        assert (name in stack) == bool(name) and ("run" in stack) == bool(name), (size, stack)
    assert {size for size, _ in records} == {100, 200, 300}, records
    # Without the option nothing is known of them.
    forgotten = stacks_of_leaks(run(where, "--leak-check=full", host).stderr)
    for _, stack in forgotten:
        assert not any(name.startswith("leak_of") for name in stack), forgotten
    # Code that stays has its names in any case.
    kept = compile_c(where, "kept", HOST, "-DKEEPS=1", "-ldl")
    for options in ((), ("--keep-debuginfo=yes",)):
        records = stacks_of_leaks(run(where, "--leak-check=full", *options, kept).stderr)
        assert {(size, stack[1]) for size, stack in records} == {
            (200, "leak_of_first"), (400, "leak_of_second"), (300, "main")}, records


def errors_of_plugins_that_are_gone(where):
    """A use after free: who allocated and who freed it were two plugins at the same place."""
    compile_c(where, "allocates.so", "#include <stdlib.h>\nvoid *block;\n"
              "void *run(void *old) { return malloc(8); }\n")
    compile_c(where, "frees.so", "#include <stdlib.h>\nvoid *block;\n"
              "void *run(void *old) { free(old); return old; }\n")
    host = compile_c(where, "stale", r"""
#include <dlfcn.h>
static char *use(const char *path, void *old)
{
    void *library = dlopen(path, 2);
    void *(*run)(void *) = (void *(*)(void *))dlsym(library, "run");
    void *block = run(old);
    dlclose(library);
    return block;
}
int main(void)
{
    char *block = use("./allocates.so", 0);
    use("./frees.so", block);
    return *block;
}
""", "-ldl")
    text = run(where, "--keep-debuginfo=yes", host).stderr
    assert re.search(r"Invalid read of size 1\n.*main \(stale\.c:15\)\n.*is 0 bytes inside a block "
                     r"of size 8 free'd\n.*free.*\n.*run \(frees\.c:3\)\n(.*\n)*?"
                     r".*Block was alloc'd at\n.*malloc.*\n.*run \(allocates\.c:3\)\n", text), text


# ------------------------------------------------------------------------------ fatal signals

DEATHS = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static int deep(volatile int n)
{
    volatile char room[4096];
    room[0] = n;
    return deep(n + 1) + room[0];
}
static void handler(int number)
{
    abort();
}
static __attribute__((noinline)) void die(const char *how)
{
    volatile int zero = 0;
    if (!strcmp(how, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(how, "accerr")) *(volatile char *)"text" = 1;
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "realtime")) raise(SIGRTMIN + 3);
    if (!strcmp(how, "divide")) zero = getpid() / zero;
    if (!strcmp(how, "trap")) __asm__ volatile("int3");
    if (!strcmp(how, "pipe")) raise(SIGPIPE);
    if (!strcmp(how, "sent")) kill(getpid(), SIGSEGV);
    if (!strcmp(how, "wild")) ((void (*)(void))0x12345)();
    if (!strcmp(how, "null")) ((void (*)(void))zero)();
    if (!strcmp(how, "handler")) { signal(SIGUSR1, handler); raise(SIGUSR1); }
    if (!strcmp(how, "deep")) deep(0);
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
}
int main(int argc, char **argv)
{
    die(argv[1]);
    return 0;
}
"""
HOWS = ("segv", "accerr", "abort", "term", "realtime", "divide", "trap", "pipe", "sent", "wild",
        "null", "handler", "deep")


def death_of(text):
    """From the signal to the end of its stack and advice, without addresses of code."""
    lines = [re.sub(r"^==\d+== ?", "", line) for line in text.splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("Process terminating"))
    told = []
    for line in lines[start:]:
        if not line.strip() or "SUMMARY" in line:
            break
        told.append(re.sub(r"^(   (?:at|by)) 0x[0-9A-F]+:", r"\1", line))
    return told


def none_says_what_memcheck_says(where):
    program = compile_c(where, "deaths", DEATHS, "-O1", "-fomit-frame-pointer")
    for how in HOWS:
        theirs = run(where, "--tool=memcheck", program, how)
        ours = run(where, "--tool=none", program, how)
        native = subprocess.run([program, how], stderr=subprocess.DEVNULL)
        assert ours.returncode == theirs.returncode == native.returncode, (how, ours.returncode)
        assert death_of(ours.stderr) == death_of(theirs.stderr), (how, ours.stderr, theirs.stderr)
        assert len([line for line in death_of(ours.stderr) if line.startswith("   ")]) > 1, how
        assert "SUMMARY" not in ours.stderr and ours.stderr.endswith("== \n"), ours.stderr
        if how == "null":  # the frame that the incumbent's suppressions begin with
            assert "    at 0x0: ???\n" in ours.stderr and "    at 0x0: ???\n" in theirs.stderr
    # What nobody can tell is not told, and what is well neither.
    assert run(where, "--tool=none", program, "kill").stderr == ""
    assert run(where, "--tool=none", program, "nothing").stderr == ""
    # -q leaves the faults, as under memcheck.
    assert run(where, "--tool=none", "-q", program, "term").stderr == ""
    assert death_of(run(where, "--tool=none", "-q", program, "segv").stderr)[0].endswith(
        "signal 11 (SIGSEGV)")
    log = where / "death.log"
    done = run(where, "--tool=none", f"--log-file={log}", program, "abort")
    assert done.stderr == "" and "(SIGABRT)" in log.read_text()


def fatal_text_is_pinned(where, golden):
    """Under our own name, of both tools; and under the name of the incumbent, whose words it has."""
    program = compile_c(where, "deaths", DEATHS)
    link = where / "valgrind"
    link.symlink_to(MUNINN)

    def plain(done):
        text = re.sub(r"(?m)^==\d+==", "==PID==", done.stderr)
        text = re.sub(r"(?m)^(==PID==    (?:at|by)) 0x[0-9A-F]+: (\S+) .*", r"\1 0xPC: \2", text)
        return text.replace(str(where), "").replace("/private", "")

    told = []
    for name, launcher in (("muninn", MUNINN), ("valgrind", str(link))):
        for tool in ("memcheck", "none"):
            told.append(f"$ {name} --tool={tool}\n" +
                        plain(run(where, f"--tool={tool}", program, "segv", muninn=launcher)))
    golden("death.txt", "".join(told))


# What programs in the wild take out of the incumbent's text, as they write it.
FILTERS = (r"^==\d+== Memcheck, a memory error detector$",
           r"^==\d+== Nulgrind, the minimal Valgrind tool$",
           r"^==\d+== Copyright \(C\) .*",
           r"^==\d+== .*and GNU GPL'd, by Julian Seward et al\.$",
           r"^==\d+== Using Valgrind-3\.\d+\.\d+ and LibVEX; rerun with -h for copyright info$",
           r"^==\d+== Command: .*",
           r"^==\d+==  If you believe this happened as a result of a stack$",
           r"^==\d+==  overflow in your program's main thread \(unlikely but$",
           r"^==\d+==  possible\), you can try to increase the size of the$",
           r"^==\d+==  main thread stack using the --main-stacksize= flag\.$",
           r"^==\d+==  The main thread stack size used in this run was \d+\.$",
           r"^==\d+== For lists of detected and suppressed errors, rerun with: -s$")


def filters_of_the_incumbent_find_their_lines(where):
    program = compile_c(where, "deaths", DEATHS)
    link = where / "valgrind"
    link.symlink_to(MUNINN)
    version = run(where, "--version", muninn=str(link)).stdout.strip().replace("valgrind-", "")
    text = run(where, program, "segv", muninn=str(link)).stderr
    text += run(where, "--tool=none", program, "segv", muninn=str(link)).stderr
    for pattern in FILTERS:
        assert re.search(pattern, text, re.M), f"no line for {pattern} in\n{text}"
    assert f"Using Valgrind-{version} and" in text, (version, text)
    # A release that is installed says the same, but for its numbers.
    if os.path.exists("/usr/bin/valgrind"):
        theirs = run(where, program, "segv", muninn="/usr/bin/valgrind").stderr
        for pattern in FILTERS:
            if "Nulgrind" not in pattern:
                assert re.search(pattern, theirs, re.M), f"they have none for {pattern}"
