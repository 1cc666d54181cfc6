# SPDX-License-Identifier: MIT
"""The table of workloads: what is run, on what input, at which scale.

A row names its command and a function that gives its arguments for a scale. Scales are chosen so
that the native run takes 1 to 3 seconds in full mode and about 0.3 in quick mode. Commands are the
real binaries, found by absolute path where a shim may stand in front of them.
"""
import os
import subprocess
from dataclasses import dataclass
from typing import Callable

import inputs

MIB = 1 << 20


@dataclass
class Workload:
    name: str
    package: str
    full: int
    quick: int
    command: Callable  # (cache, scale) -> (argv, stdin path or None)
    in_set: bool = True  # of the engine's set, which geomeans are over
    churn: bool = False  # it does little but allocate
    large: bool = False  # its peak memory is judged
    recorded: bool = False  # the size of its heap recording is judged


def source(name):
    return os.path.join(inputs.SOURCE, name)


def compressor(*argv):
    return lambda cache, scale: ([*argv, inputs.text(cache, scale)], None)


def cc1(cache, units):
    found = subprocess.run(
        ["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    flags = ["-quiet", "-O2", "-fpreprocessed", "-fno-ident"]
    return [found, *flags, inputs.c_file(cache, units), "-o", "/dev/stdout"], None


def git(cache, commits):
    repository = inputs.repository(cache, commits)
    return ["/usr/bin/git", "-C", repository, "log", "-p", "--stat", "--patience", "main"], None


def ripgrep(cache, times):
    pattern = r"\b(\w+ing\s+\w{3,}ed|[a-m]\w*[^n]s)\s+\w+(ou|ea)\w*$"
    files = [inputs.text(cache, 32 * MIB)] * times
    return ["/usr/bin/rg", "--no-config", "-j1", "-n", "--no-filename", pattern, *files], None


def sqlite(cache, rows):
    return ["/usr/bin/sqlite3", ":memory:"], inputs.filled(cache, "mix.sql", {"ROWS": rows})


WORKLOADS = [
    Workload("gzip", "gzip", 16 * MIB, 3 * MIB, compressor("/usr/bin/gzip", "-6", "-n", "-c")),
    Workload("bzip2", "bzip2", 16 * MIB, 3 * MIB, compressor("/usr/bin/bzip2", "-9", "-c")),
    Workload("xz", "xz-utils", 3 * MIB, MIB, compressor("/usr/bin/xz", "-6", "-T1", "-c")),
    Workload(
        "zstd",
        "zstd",
        32 * MIB,
        8 * MIB,
        compressor("/usr/bin/zstd", "-q", "-9", "--single-thread", "-c"),
    ),
    Workload("sqlite3", "sqlite3", 300000, 60000, sqlite, large=True, recorded=True),
    Workload(
        "python3",
        "python3",
        700,
        120,
        lambda cache, rounds: (["/usr/bin/python3", "-I", source("mix.py"), str(rounds)], None),
    ),
    Workload(
        "perl",
        "perl",
        8 * MIB,
        2 * MIB,
        lambda cache, size: (
            ["/usr/bin/perl", source("mix.pl"), inputs.text(cache, size), "1"],
            None,
        ),
    ),
    Workload(
        "lua5.4",
        "lua5.4",
        250,
        50,
        lambda cache, rounds: (["/usr/bin/lua5.4", source("mix.lua"), str(rounds)], None),
    ),
    Workload("cc1", "gcc", 50, 9, cc1, large=True),
    Workload(
        "jq",
        "jq",
        60000,
        10000,
        lambda cache, count: (
            ["/usr/bin/jq", "-c", "-f", source("mix.jq"), inputs.records(cache, count)],
            None,
        ),
    ),
    Workload("ripgrep", "ripgrep", 18, 3, ripgrep),
    Workload("git", "git", 900, 200, git),
    Workload(
        "c++ churn",
        "g++",
        1500,
        300,
        lambda cache, rounds: ([inputs.program(cache, "churn.cpp"), str(rounds)], None),
        churn=True,
        recorded=True,
    ),
    Workload(
        "rust churn",
        "rustc",
        2500,
        500,
        lambda cache, rounds: ([inputs.program(cache, "churn.rs"), str(rounds)], None),
        churn=True,
        recorded=True,
    ),
    Workload(
        "c churn",
        "gcc",
        60000000,
        5000000,
        lambda cache, pairs: ([inputs.program(cache, "churn.c"), str(pairs)], None),
        in_set=False,
        churn=True,
        recorded=True,
    ),
]

THREADS_FULL, THREADS_QUICK = 30000, 6000
