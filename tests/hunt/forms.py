# SPDX-License-Identifier: MIT
"""Hunt: hot code, in every form of block that memcheck makes of it.

A trial takes a topic of memcheck's corpus: each case of it runs 10,000 times in one process, under
each stress mode that changes how blocks are made, and must have the findings of a single run. The
last trials are tests/forms with all instructions, a new choice of their operands each. The sample
takes one case; more of them, 600 times each, run in the suites `memcheck` and `forms`.
"""
import sys

from hunting import ROOT, Hunt
from suites import LIMIT_S, run_suite

sys.path.insert(0, str(ROOT / "tests/memcheck"))
import cases  # noqa: E402

TOPICS = sorted(topic.name for topic in cases.read_topics())
INSTRUCTION_TRIALS = 3


def choose_case(trial):
    """A case that can be repeated, for the sample."""
    while True:
        case = trial.random.choice(trial.random.choice(cases.read_topics()).cases)
        if case.ends == "EXITS 0" and not case.once:
            return str(case)


def trial(trial):
    seed = str(trial.random.getrandbits(20))
    if trial.full and trial.number >= len(TOPICS):
        return f"instructions, seed {seed}: " + run_suite(
            trial, [ROOT / "tests/forms/run", "--all", "--seed", seed])
    pattern = f"{TOPICS[trial.number]}/*" if trial.full else choose_case(trial)
    return f"{pattern}: " + run_suite(
        trial, [ROOT / "tests/memcheck/run", "--all-forms", "-j", "1", "--seed", seed, pattern])


HUNT = Hunt("forms", "hot code in every form of block", trial,
            full=len(TOPICS) + INSTRUCTION_TRIALS, sample=1, timeout_s=LIMIT_S)
