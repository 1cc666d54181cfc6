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
