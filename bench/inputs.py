# SPDX-License-Identifier: MIT
"""Makes the inputs of the bench: texts, records, C source, a git repository and the small programs.

Everything is deterministic (fixed seeds, fixed dates) and cached: an input is built under a
temporary name and renamed, so that an interrupted run never leaves half a file behind. A cached
file is named for what it was made from (kind, size, hash of its source).
"""
import glob
import hashlib
import json
import os
import random
import shutil
import subprocess

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "src")
FORMAT = 1  # bump when a generator below changes what it makes


class InputError(Exception):
    """An input cannot be made; the message says what to install."""


def quiet_environment(cache):
    """The environment of every run: no user configuration, no locale, no random seeds."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": cache,
        "LC_ALL": "C",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PERL_HASH_SEED": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }


def cached(cache, name, make):
    """The path of `name` in the cache, made by `make(temporary_path)` when it is not there yet."""
    path = os.path.join(cache, name)
    if os.path.exists(path):
        return path
    os.makedirs(cache, exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    make(temporary)
    try:
        os.rename(temporary, path)
    except OSError:  # a folder, and somebody else was first
        if not os.path.exists(path):
            raise
        shutil.rmtree(temporary, ignore_errors=True)
    return path


def vocabulary(rng, count):
    """Pronounceable words; a few end in -ing or -ed so that regular expressions have work."""
    onset = "b br c d f g gr h k l m n p s st t tr".split()
    nucleus = "a e i o u ai ea ou".split()
    coda = ["", "n", "r", "s", "t", "l", "m", "ng"]
    words = []
    for _ in range(count):
        syllables = rng.choice([1, 1, 2, 2, 3])
        word = "".join(
            rng.choice(onset) + rng.choice(nucleus) + rng.choice(coda) for _ in range(syllables)
        )
        words.append(word + rng.choice(["", "", "", "", "ing", "ed", "s"]))
    return words


def text(cache, size_bytes):
    """English-like text: words by Zipf's law, lines of about 80 columns."""

    def make(path):
        rng = random.Random(1)
        words = vocabulary(rng, 20000)
        weights, total = [], 0.0
        for rank in range(len(words)):
            total += 1.0 / (rank + 2)
            weights.append(total)
        written = 0
        with open(path, "w", encoding="ascii") as out:
            while written < size_bytes:
                picked = rng.choices(words, cum_weights=weights, k=12000)
                chunk = "\n".join(" ".join(picked[i : i + 12]) for i in range(0, 12000, 12)) + "\n"
                chunk = chunk[: size_bytes - written]
                out.write(chunk)
                written += len(chunk)

    return cached(cache, f"text-{FORMAT}-{size_bytes}.txt", make)


def records(cache, count):
    """A JSON array of `count` records for jq."""

    def make(path):
        rng = random.Random(2)
        words = vocabulary(rng, 3000)
        rows = [
            {
                "id": i,
                "name": rng.choice(words).capitalize() + " " + rng.choice(words).capitalize(),
                "city": rng.choice(words[:200]),
                "score": rng.randrange(100000),
                "active": rng.random() < 0.8,
                "tags": rng.sample(words[200:260], rng.randrange(6)),
                "note": " ".join(rng.choices(words, k=12)),
            }
            for i in range(count)
        ]
        with open(path, "w", encoding="ascii") as out:
            json.dump(rows, out)

    return cached(cache, f"records-{FORMAT}-{count}.json", make)


def filled(cache, source, values):
    """A copy of bench/src/`source` in which every @KEY@ is replaced."""
    with open(os.path.join(SOURCE, source), encoding="ascii") as file:
        content = file.read()
    for key, value in values.items():
        content = content.replace(f"@{key}@", str(value))
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]

    def make(path):
        with open(path, "w", encoding="ascii") as out:
            out.write(content)

    return cached(cache, f"{digest}-{source}", make)


def c_file(cache, units):
    """A large preprocessed C file: bench/src/unit.c.in repeated with different numbers."""
    with open(os.path.join(SOURCE, "unit.c.in"), encoding="ascii") as file:
        unit = file.read()
    digest = hashlib.sha256(unit.encode()).hexdigest()[:12]

    def make(path):
        with open(path, "w", encoding="ascii") as out:
            for number in range(1, units + 1):
                out.write(unit.replace("@N@", str(number)))

    return cached(cache, f"{digest}-{units}.i", make)


def repository(cache, commits):
    """A git repository whose history edits, moves and adds files, written by git fast-import."""

    def make(path):
        rng = random.Random(3)
        words = vocabulary(rng, 2000)
        files = {f"dir{i % 7}/file{i}.txt": [] for i in range(40)}
        for lines in files.values():
            lines.extend(" ".join(rng.choices(words, k=10)) for _ in range(300))
        stream = []
        for number in range(commits):
            edits = []
            for name in rng.sample(sorted(files), 3):
                lines = files[name]
                for _ in range(8):
                    lines[rng.randrange(len(lines))] = " ".join(rng.choices(words, k=10))
                lines.insert(rng.randrange(len(lines)), f"commit {number}")
                edits.append((name, "\n".join(lines) + "\n"))
            message = " ".join(rng.choices(words, k=8)) + "\n"
            stream.append(
                f"commit refs/heads/main\ncommitter Bench <bench@example.org> "
                f"{1600000000 + number * 60} +0000\ndata {len(message)}\n{message}\n"
            )
            for name, content in edits:
                stream.append(f"M 100644 inline {name}\ndata {len(content)}\n{content}\n")
        environment = quiet_environment(cache)
        init = ["git", "init", "-q", "--bare", "-b", "main", path]
        subprocess.run(init, env=environment, check=True)
        subprocess.run(
            ["git", "-C", path, "fast-import", "--quiet"],
            input="".join(stream).encode(),
            env=environment,
            check=True,
        )

    return cached(cache, f"repository-{FORMAT}-{commits}.git", make)


COMPILERS = {
    ".c": ["gcc", "-std=gnu17", "-O2", "-g", "-pthread"],
    ".cpp": ["g++", "-std=c++17", "-O2", "-g"],
    ".rs": ["rustc", "-O", "-g"],
}


def program(cache, source):
    """The executable compiled from bench/src/`source`, rebuilt when the source changes."""
    origin = os.path.join(SOURCE, source)
    stem, extension = os.path.splitext(source)
    with open(origin, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    command = COMPILERS[extension]
    if not shutil.which(command[0]):
        raise InputError(f"{command[0]} is missing: run scripts/bootstrap")

    def make(path):
        subprocess.run([*command, origin, "-o", path], check=True)

    return cached(cache, f"{stem}-{extension[1:]}-{digest}", make)


def tool(cache, source):
    """The tool in bench/src/`source`, as muninn --tool=PATH loads it."""
    origin = os.path.join(SOURCE, source)
    include = os.path.join(os.path.dirname(SOURCE), "..", "include")
    digest = hashlib.sha256()
    for path in (origin, os.path.join(include, "muninn", "tool.h")):
        with open(path, "rb") as file:
            digest.update(file.read())

    def make(path):
        command = ["gcc", "-O2", "-shared", "-fPIC", "-I", include, origin, "-o", path]
        subprocess.run(command, check=True)

    return cached(cache, f"{os.path.splitext(source)[0]}-{digest.hexdigest()[:12]}.so", make)


def wire_program(cache):
    """bench/src/records.c with the wire of this tree, rebuilt when either changes."""
    tree = os.path.join(os.path.dirname(SOURCE), "..", "src")
    sources = [os.path.join(SOURCE, "records.c"), os.path.join(tree, "base", "own_file.c")]
    sources += sorted(glob.glob(os.path.join(tree, "wire", "*.c")))
    digest = hashlib.sha256()
    for path in [*sources, *sorted(glob.glob(os.path.join(tree, "wire", "*.[hd]*")))]:
        with open(path, "rb") as file:
            digest.update(file.read())

    def make(path):
        subprocess.run(["gcc", "-std=gnu17", "-O2", "-D_GNU_SOURCE", "-DMUNINN_DEBUG=0",
                        f"-I{tree}", *sources, "-o", path, "-lpthread"], check=True)

    return cached(cache, f"records-{digest.hexdigest()[:12]}", make)
