# SPDX-License-Identifier: MIT
"""What the parts of the suite share: verdicts, the command, recordings with known contents."""
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
MUNINN = os.environ.get("MUNINN", os.path.join(BUILD, "muninn"))
WORK = tempfile.mkdtemp(prefix="muninn-heap-")
COMMANDS = ("summary", "top", "tree", "flame", "leaks", "temporary", "sizes", "lifetimes",
            "threads", "maps")
counts = {"passed": 0, "failed": 0, "skipped": 0}


def verdict(name, why=""):
    print(f"not ok - {name}: {why}" if why else f"ok - {name}", flush=True)
    counts["failed" if why else "passed"] += 1


def skip(name, why):
    print(f"skip - {name}: {why}", flush=True)
    counts["skipped"] += 1


def check(name, is_so, why=""):
    verdict(name, "" if is_so else (why or "it is not so"))


def same(name, found, expected):
    verdict(name, "" if found == expected else f"{str(found)[:400]}, not {str(expected)[:400]}")


def heap(*words, timeout=300, **more):
    return subprocess.run([MUNINN, "heap", *map(str, words)], capture_output=True, check=False,
                          timeout=timeout, **more)


def answer(*words):
    """The JSON answer; every answer must be one object, and the status 0."""
    done = heap(*words, "--json")
    if done.returncode != 0:
        raise AssertionError(f"{words}: status {done.returncode}: {done.stderr.decode()[:300]}")
    return json.loads(done.stdout.decode("utf-8"))


def table(*words):
    """The CSV answer as dictionaries."""
    done = heap(*words, "--csv")
    if done.returncode != 0:
        raise AssertionError(f"{words}: status {done.returncode}: {done.stderr.decode()[:300]}")
    return list(csv.DictReader(io.StringIO(done.stdout.decode("utf-8"), newline="")))


def sql(path, text):
    """The rows of a query, as tuples."""
    return [tuple(row.values()) for row in answer("query", path, text)["rows"]]


def path(name):
    return os.path.join(WORK, name)


def make_recording(name, *options):
    """One of tests/lib/make_recording; returns its path and what it said."""
    program = os.path.join(BUILD, "tests", "make_recording")
    done = subprocess.run([program, *options, path(name)], capture_output=True, text=True,
                          check=True)
    facts = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    return path(name), facts


def build_make_run():
    """make_run.c, linked with the writer."""
    program = os.path.join(WORK, "make_run")
    flags = ["-fsanitize=address,undefined"] if os.path.basename(BUILD) == "asan" else []
    subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                    f"-I{ROOT}/src", *flags, "-o", program, os.path.join(HERE, "make_run.c"),
                    os.path.join(BUILD, "libmonitor.a"), "-ldw", "-lelf", "-liberty", "-lzstd",
                    "-lz", "-lm", "-lpthread"], check=True)
    return program


def make_run(program, name, *options):
    done = subprocess.run([program, *options, path(name)], capture_output=True, text=True,
                          check=True)
    return path(name), {k: int(v) for k, v in (line.split() for line in done.stdout.splitlines())}


def clean():
    shutil.rmtree(WORK, ignore_errors=True)


def main(parts):
    try:
        for part in parts:
            try:
                part()
            except Exception as problem:  # a part that breaks is a failure; the others go on
                verdict(f"{part.__module__}.{part.__name__}", f"{type(problem).__name__}: "
                        f"{str(problem)[:500]}")
    finally:
        clean()
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit("run ./run")
