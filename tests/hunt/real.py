# SPDX-License-Identifier: MIT
"""Hunt: real programs under each tool and stress mode.

The programs are those of tests/programs/table.py that need no server, and a few more. Output and
status must be those of the native run. What memcheck reports must be among the findings that are
explained in real_findings.txt, whatever the mode; the findings of two modes are not compared.
"""
import dataclasses
import fnmatch
import json
import os
import subprocess
import sys
from pathlib import Path

from hunting import HERE, ROOT, TOOLS, Found, Hunt, Skip, stress_modes

sys.path[:0] = [str(ROOT / "tests/programs"), str(ROOT / "bench")]
import guests  # noqa: E402
import harness  # noqa: E402
import table  # noqa: E402

EXPLAINED = HERE / "real_findings.txt"
# What its own children print is not the engine's; or it is a test of the command line alone.
LEFT_OUT = ("gdb", "strace", "timeout", "readlink exe", "cat cmdline", "loader as a program")
SLOW_S = 60  # rows that take so long natively get one stress mode
NIX = "let f = n: if n < 2 then n else f (n - 1) + f (n - 2); in { a = f 14; b = map f [1 2 3]; }"


def own_rows():
    yield harness.Row("nix-instantiate", ["nix-instantiate", "--eval", "--strict", "--expr", NIX],
                      environment={"NIX_STATE_DIR": "/tmp", "NIX_STORE_DIR": "/nix/store"},
                      stress=("tiny-cache", "signals"), timeout_s=60)
    yield harness.Row("libgc", [str(Path(os.environ.get("BUILD", ROOT / "build")).resolve()
                                    / "hunt/gc_client")])


def rows(options):
    cache = os.path.join(options.build, "programs", "inputs")
    found = [row for row in table.rows(cache)
             if row.argv and not any("--tool" in o for o in row.options)
             and not row.name.endswith("children traced") and not row.name.startswith(LEFT_OUT)]
    return [*own_rows(), *found]


def prepare(options):
    built = subprocess.run(["gcc", "-O1", "-g", "-Wall", "-o",
                            Path(options.build) / "hunt/gc_client", HERE / "gc_client.c", "-lgc"],
                           stderr=subprocess.PIPE, check=False)
    options.has_gc = built.returncode == 0


def explained():
    """[(program, kind, pattern of a frame)] of the findings that are known, with their reasons."""
    for line in EXPLAINED.read_text().splitlines():
        if line and line[0] not in "# \t":
            program, kind, frame = line.split(None, 2)
            yield program.replace("_", " "), kind, frame.strip()


def names_of(finding):
    """Functions and objects of a stack, innermost first."""
    for frame in finding["stack"]:
        yield frame.get("function") or os.path.basename(frame.get("object", "?"))


def read_findings(folder):
    """{(kind, names of the innermost frames)} of all processes of a run."""
    found = set()
    for file in folder.glob("json.*"):
        for finding in json.loads(file.read_text())["findings"]:
            found.add((finding["kind"], tuple(list(names_of(finding))[:6])))
        file.unlink()
    return found


def judge(row, findings):
    known = list(explained())
    for kind, names in sorted(findings):
        if not any(fnmatch.fnmatchcase(row.name, program) and kind == known_kind
                   and any(fnmatch.fnmatchcase(name, frame) for name in names)
                   for program, known_kind, frame in known):
            raise Found(f"{row.name}: a finding that nobody has explained: {kind} in "
                        + " < ".join(names))


def options_for(trial, tool):
    where = trial.folder
    options = [f"--tool={tool}", "-q", f"--log-file={where}/log.%p"]
    if tool == "memcheck":
        options += [f"--json-file={where}/json.%p", "--leak-check=no"]
    elif tool == "massif":
        options += ["--massif-out-file=/dev/null", "--recording=no"]
    return tuple(options)


def choose_modes(trial, row):
    modes = [m for m in row.stress if m in stress_modes()]
    if not trial.full or row.timeout_s >= SLOW_S:
        return trial.random.sample(modes, min(1, len(modes)))
    return modes + (["all"] if set(harness.STRESS_MODES) <= set(modes) else [])


def trial(trial):
    every = rows(trial.options)
    place = trial.number if trial.full else trial.random.randrange(len(every) * len(TOOLS))
    row, tool = every[place // len(TOOLS) % len(every)], TOOLS[place % len(TOOLS)]
    if row.name == "libgc" and not trial.options.has_gc:
        raise Skip("libgc is missing: install the Debian package libgc-dev")
    if not harness.shutil.which(row.argv[0].replace("@GUESTS@", "/")) and row.argv[0][0] != "@":
        raise Skip(f"{row.argv[0]} is missing")
    folder = os.path.join(trial.build, "programs")
    for name in row.builds:
        if problem := guests.build(name, os.path.join(folder, "guests"), folder):
            raise Skip(problem)
    plain = None
    for mode in ["", *choose_modes(trial, row)]:
        one = dataclasses.replace(row, options=(*row.options, *options_for(trial, tool)),
                                  stress=(mode,) if mode else ())
        outcomes = list(harness.run_row(one, trial.muninn, os.path.join(folder, "guests"),
                                        (mode,) if mode else (), str(trial.path("failures"))))
        for kind, title, reason in outcomes:
            if kind == "skip":
                raise Skip(reason)
            if kind == "not ok":
                raise Found(f"{tool}: {title}: {reason}")
        findings = read_findings(trial.folder)
        judge(row, findings)
        plain = findings if plain is None else plain
    return f"{row.name}, {tool}, {len(plain)} findings"


HUNT = Hunt("real", "real programs under each tool and stress mode", trial, full=3 * 110, sample=3,
            prepare=prepare, timeout_s=7200)
