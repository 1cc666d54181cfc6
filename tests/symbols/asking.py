# SPDX-License-Identifier: MIT
"""What the tests of names and lines share: the driver and the oracles that are asked, and builds."""

import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import suite
from suite import Skip


HERE = Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"
BUILD = Path(os.environ.get("BUILD") or HERE.parent.parent / "build").resolve()
PROGRAMS = HERE / "programs"
SANITIZE = ["-fsanitize=address,undefined"] if BUILD.name == "asan" else []
COMPILERS = {"gcc": "g++", "clang": "clang++"}
WORK = Path(tempfile.mkdtemp(prefix="muninn-symbols-")).resolve()
DRIVER = WORK / "driver"
LOCK = threading.Lock()  # of what several tests build once


def add(name, function):
    """A test that gets a folder of its own."""
    def in_folder():
        folder = WORK / name
        folder.mkdir()
        try:
            function(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    in_folder.__name__ = name
    suite.test(in_folder)


def test(function):
    add(function.__name__, function)
    return function


def need(*commands):
    for command in commands:
        if not shutil.which(command):
            raise Skip(f"{command} is not installed")


def run(*command, text=None, cwd=None, ok=True, **environment):
    done = subprocess.run([str(c) for c in command], input=text, cwd=cwd, capture_output=True,
                          text=True, timeout=120, env={**os.environ, **environment})
    if ok and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stderr[-2000:]}")
    return done


def check(condition, reason):
    if not condition:
        raise AssertionError(reason)


def build_driver():
    run("gcc", "-std=gnu17", "-O1", "-g", "-D_GNU_SOURCE", f"-I{SRC}", *SANITIZE, HERE / "driver.c",
        BUILD / "libmonitor.a", "-ldw", "-lelf", "-liberty", "-lpthread", "-o", DRIVER)


def ask(file, questions, *options, ret_stderr=None):
    """The answers of the driver: for each question a list of frames, each a list of columns."""
    done = run(DRIVER, *options, file, text="".join(f"{q}\n" for q in questions))
    if ret_stderr is not None:
        ret_stderr.append(done.stderr)
    elif done.stderr:
        raise AssertionError(f"the driver warned: {done.stderr}")
    answers = [block.split("\n") for block in ("\n" + done.stdout).split("\n\n")[:-1]]
    answers = [[line.split("\t") for line in block if line] for block in answers]
    check(len(answers) == len(questions), f"{len(answers)} answers to {len(questions)} questions")
    return answers


def symbols_of(file):
    """{name: (address, size)} of the functions."""
    found = {}
    for line in run("nm", "-S", "--defined-only", file).stdout.splitlines():
        part = line.split()
        if len(part) == 4 and part[2] in "tTwWi":
            found[part[3]] = (int(part[0], 16), int(part[1], 16))
    return found


def data_of(file):
    found = {}
    for line in run("nm", "-S", "--defined-only", file).stdout.splitlines():
        part = line.split()
        if len(part) == 4 and part[2] in "bBdD":
            found[part[3]] = int(part[0], 16)
    return found


def addresses(file, step=7):
    spread = set()
    for address, size in symbols_of(file).values():
        spread.update(range(address, address + size, step))
    return [f"{a:x}" for a in sorted(spread)]


def normal(place):
    """file:line with the ways to say "not known" and to write a path made equal."""
    path, _, line = place.rpartition(":")
    if not path or path.startswith("?"):
        return "?"
    return os.path.normpath(path) + ":" + ("0" if line == "?" else line)


def pairs(lines):
    return [(lines[i], normal(re.sub(r" \(discriminator.*", "", lines[i + 1])))
            for i in range(0, len(lines), 2)]


def by_addr2line(file, questions):
    done = run("addr2line", "-aifCe", file, text="\n".join("0x" + q for q in questions) + "\n")
    return [pairs(block.splitlines())
            for block in re.split(r"^0x[0-9a-f]{16}\n", done.stdout, flags=re.M)[1:]]


def by_llvm(file, questions):
    done = run("llvm-symbolizer", "-e", file, text="\n".join("0x" + q for q in questions) + "\n")
    return [pairs([line if i % 2 == 0 else line.rpartition(":")[0]
                   for i, line in enumerate(block.splitlines())])
            for block in done.stdout.split("\n\n")[:-1]]


def build(folder, compiler, *flags, link=(), optimise="-O2"):
    """Builds programs/ in `folder`, as a build system would: from the folder of the sources."""
    folder.mkdir(parents=True, exist_ok=True)
    run(compiler, optimise, *flags, "-c", "part.c", "-o", folder / "part.o", cwd=PROGRAMS)
    run(COMPILERS[compiler], "-std=c++17", optimise, *flags, "-c", "main.cc", "-o",
        folder / "main.o", cwd=PROGRAMS)
    run(COMPILERS[compiler], folder / "part.o", folder / "main.o", "-Wl,--build-id", *link, "-o",
        folder / "prog")
    return folder / "prog"


PLAIN = {}


def plain_build(compiler, *flags):
    """The program as it comes, built once for all tests: not to be changed."""
    with LOCK:
        key = (compiler, *flags)
        if key not in PLAIN:
            PLAIN[key] = build(DRIVER.parent / f"plain{len(PLAIN)}", compiler, *flags)
        return PLAIN[key]


def same_answers(plain, other, *options, names_only=False):
    questions = addresses(plain)
    expected, got = ask(plain, questions), ask(other, questions, *options)
    for question, wanted, found in zip(questions, expected, got):
        if names_only:
            wanted, found = wanted[-1][:1], found[-1][:1]
        if wanted != found:
            raise AssertionError(f"{other.name} at {question}: {found}, the plain file gives {wanted}")
    frames = sum(len(answer) for answer in got)
    check(names_only or frames > len(questions), "no inlined frame was seen")
