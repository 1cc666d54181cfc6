# SPDX-License-Identifier: MIT
"""Hunt: real programs under each tool and stress mode.

The programs are those of tests/programs/table.py that need no server, and a few more. Output and
status must be those of the native run. What memcheck reports must be among the findings that are
explained in real_findings.txt, and the same in every mode: the modes leave out what memcheck does
for speed (`often`, `random-versions`, `entries`: which versions of a block there are; `tiny-blocks`
and `no-link`: what is known from one instruction to the next), so that a finding that only some of
them have is one that hot code loses.
"""
import dataclasses
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
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
LIMIT_S = 1800  # only what hangs takes longer, however busy the machine is
# How memcheck makes its blocks: they say nothing of the other tools.
OWN_MODES = ("often", "random-versions", "often,random-versions", "entries")
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


@dataclasses.dataclass
class Explained:
    """A line of real_findings.txt."""

    program: str
    kind: str
    frame: str
    is_sure: bool  # whether every run finds it; otherwise addresses or time decide

    def fits(self, row, kind, names):
        return (fnmatch.fnmatchcase(row.name, self.program) and kind == self.kind
                and any(fnmatch.fnmatchcase(name, self.frame) for name in names))


def read_explained():
    """The findings that are known, with their reasons."""
    for line in EXPLAINED.read_text().splitlines():
        if line and line[0] not in "# \t":
            program, kind, frame = line.split(None, 2)
            yield Explained(program.replace("_", " "), kind.rstrip("?"), frame.strip(),
                            not kind.endswith("?"))


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


def describe(findings):
    return "; ".join(f"{kind} in {' < '.join(names)}" for kind, names in sorted(findings)[:4])


def judge(row, findings):
    """Raises Found for what nobody has explained; returns what every run must find."""
    known, sure = list(read_explained()), set()
    for kind, names in sorted(findings):
        fitting = [e for e in known if e.fits(row, kind, names)]
        if not fitting:
            raise Found(f"{row.name}: a finding that nobody has explained: "
                        + describe({(kind, names)}))
        if all(e.is_sure for e in fitting):
            sure.add((kind, names))
    return sure


def compare_modes(row, mode, plain, stressed):
    if plain != stressed:
        raise Found(f"{row.name}: --stress={mode} finds {describe(stressed - plain) or 'nothing'} "
                    f"besides, and does not find {describe(plain - stressed) or 'nothing'}")


def options_for(trial, tool):
    where = trial.folder
    options = [f"--tool={tool}", "-q", f"--log-file={where}/log.%p"]
    if tool == "memcheck":
        options += [f"--json-file={where}/json.%p", "--leak-check=no"]
    elif tool == "massif":
        options += ["--massif-out-file=/dev/null", "--recording=no"]
    return tuple(options)


def choose_modes(trial, row, tool):
    modes = [m for m in row.stress if m in stress_modes()]
    own = list(OWN_MODES) if tool == "memcheck" else []
    if not trial.full or row.timeout_s >= SLOW_S:
        return trial.random.sample(modes + own, min(1, len(modes + own)))
    return modes + own + (["all"] if set(harness.STRESS_MODES) <= set(modes) else [])


class Place:
    """Where the runs of one row happen, one after the other."""

    def __init__(self, trial, row, tool):
        self.trial, self.row, self.tool = trial, row, tool
        self.guests = os.path.join(trial.build, "programs/guests")
        self.base = tempfile.mkdtemp(prefix="muninn-hunt-")
        os.chmod(self.base, 0o755)  # servers drop their privileges and must still reach their files
        self.native = None

    def run_natively(self):
        row = self.row
        if reason := row.forbidden and row.forbidden():
            raise Skip(reason)
        self.native = harness.run_once(row, self.trial.muninn, None, self.guests, self.base,
                                       row.timeout_s * harness.PATIENCE)
        if self.native.status != row.status:
            raise Found(f"the hunt itself: {row.name} ends natively with {self.native.status}: "
                        f"{self.native.stderr[-200:]!r}")

    def run_in(self, mode):
        """One run in a mode, "" for none; returns what it must find in every mode."""
        row, trial = self.row, self.trial
        arguments = [*row.options, *options_for(trial, self.tool)]
        arguments += [f"--stress={mode}"] if mode else []
        title = f"{row.name} [{self.tool}{', ' + mode if mode else ''}]"
        trial.commands.append(" ".join([trial.muninn, *arguments, *row.argv]))
        trial.say(title)
        limit_s = max(LIMIT_S, row.timeout_s * harness.PATIENCE * harness.STRESS_SLOWDOWN)
        if why := harness.compare(self.native, row, trial.muninn, arguments, self.guests, self.base,
                                  limit_s, title, str(trial.path("failures"))):
            raise Found(f"{title}: {why}")
        return judge(row, read_findings(trial.folder))


def choose_row(trial):
    every = rows(trial.options)
    place = trial.number if trial.full else trial.random.randrange(len(every) * len(TOOLS))
    row, tool = every[place // len(TOOLS) % len(every)], TOOLS[place % len(TOOLS)]
    if row.name == "libgc" and not trial.options.has_gc:
        raise Skip("libgc is missing: install the Debian package libgc-dev")
    if not shutil.which(row.argv[0].replace("@GUESTS@", "/")) and row.argv[0][0] != "@":
        raise Skip(f"{row.argv[0]} is missing")
    folder = os.path.join(trial.build, "programs")
    for name in row.builds:
        if problem := guests.build(name, os.path.join(folder, "guests"), folder):
            raise Skip(problem)
    return row, tool


def trial(trial):
    row, tool = choose_row(trial)
    # A sandbox leaves nothing to write to, and a program whose report has no place is not begun.
    row = dataclasses.replace(row, environment={**row.environment, "REPORTS": str(trial.folder)})
    place = Place(trial, row, tool)
    try:
        place.run_natively()
        plain = place.run_in("")
        for mode in choose_modes(trial, row, tool):
            compare_modes(row, mode, plain, place.run_in(mode))
    except harness.RunError as error:
        raise Found(f"the hunt itself: {row.name} natively: {error}") from None
    finally:
        harness.sweep(0)
        shutil.rmtree(place.base, ignore_errors=True)
    return f"{row.name}, {tool}, {len(plain)} findings"


HUNT = Hunt("real", "real programs under each tool and stress mode", trial, full=3 * 118, sample=3,
            prepare=prepare, timeout_s=7200)
