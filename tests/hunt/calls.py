# SPDX-License-Identifier: MIT
"""Hunt: every system call of the engine's table, with arguments drawn anew in each trial.

A trial is a part of the rows. tests/calls/run has the questions and what must hold; its sample has
the same seed each time, and asks a few rows.
"""
from hunting import ROOT, Hunt
from suites import run_suite

PARTS = 12  # of all rows
ROUNDS = 5


def trial(trial):
    seed = trial.random.getrandbits(20)
    part = trial.number % PARTS if trial.full else trial.random.randrange(PARTS * 10)
    parts = PARTS if trial.full else PARTS * 10
    return f"part {part}/{parts}, seed {seed}: " + run_suite(
        trial, [ROOT / "tests/calls/run", "--part", f"{part}/{parts}", "--seed", seed])


HUNT = Hunt("calls", "system calls with arguments of every kind", trial, full=PARTS * ROUNDS,
            sample=1, jobs=1)
