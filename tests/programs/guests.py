# SPDX-License-Identifier: MIT
"""Compiles the guests: one row per executable, rebuilt when its source is newer.

The results lie in $BUILD/programs/guests, which rows reach as @GUESTS@.
"""
import os
import shutil
import subprocess
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "guests")
BENCH_SOURCE = os.path.join(HERE, "..", "..", "bench", "src")


@dataclass
class Guest:
    source: str
    command: tuple  # @IN@ and @OUT@ stand for the source and the result
    folder: str = SOURCE


C_FLAGS = ("-std=gnu17", "-O2", "-g", "-pthread", "@IN@", "-o", "@OUT@", "-lm")

GUESTS = {
    "plain": Guest("plain.c", ("gcc", *C_FLAGS)),
    "plain-static": Guest("plain.c", ("gcc", "-static", *C_FLAGS)),
    "plain-static-pie": Guest("plain.c", ("gcc", "-static-pie", *C_FLAGS)),
    "plain-no-pie": Guest("plain.c", ("gcc", "-no-pie", *C_FLAGS)),
    "plain-musl": Guest("plain.c", ("musl-gcc", *C_FLAGS)),
    "plain-musl-static": Guest("plain.c", ("musl-gcc", "-static", *C_FLAGS)),
    "die": Guest(
        "die.c", ("gcc", "-std=gnu17", "-O1", "-g", "-Wno-infinite-recursion", *C_FLAGS[4:])
    ),
    "work-go": Guest("work.go", ("go", "build", "-o", "@OUT@", "@IN@")),
    "work-rs": Guest("work.rs", ("rustc", "-O", "-g", "-C", "panic=unwind", "@IN@", "-o", "@OUT@")),
    "Work.class": Guest("Work.java", ("javac", "-d", "@OUTDIR@", "@IN@")),
    "sandbox": Guest("sandbox.c", ("gcc", *C_FLAGS, "-lseccomp")),
    "churn-cpp": Guest(
        "churn.cpp", ("g++", "-std=c++17", "-O2", "@IN@", "-o", "@OUT@"), BENCH_SOURCE
    ),
    "churn-rs": Guest("churn.rs", ("rustc", "-O", "@IN@", "-o", "@OUT@"), BENCH_SOURCE),
    "threads": Guest("threads.c", ("gcc", *C_FLAGS), BENCH_SOURCE),
}


def compiler_of(name):
    return GUESTS[name].command[0]


def build(name, folder, cache):
    """Makes one guest; returns None, or why it cannot be made."""
    guest = GUESTS[name]
    origin, target = os.path.join(guest.folder, guest.source), os.path.join(folder, name)
    if os.path.exists(target) and os.path.getmtime(target) >= os.path.getmtime(origin):
        return None
    if not shutil.which(guest.command[0]):
        return f"{guest.command[0]} is missing"
    values = {"@IN@": origin, "@OUT@": target, "@OUTDIR@": folder}
    command = [values.get(part, part) for part in guest.command]
    environment = {**os.environ, "GOCACHE": os.path.join(cache, "go"), "GO111MODULE": "off"}
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode == 0:
        return None
    last = done.stdout.decode(errors="replace").strip().splitlines()[-1:]
    return f"cannot compile {guest.source}: {last[0] if last else done.returncode}"
