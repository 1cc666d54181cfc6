# SPDX-License-Identifier: MIT
"""Cases of the corpus in a loop: what is found once must be found each time.

Code that runs often is translated anew, with what memcheck has learnt of it (docs/design/
mixed-blocks.md). A case that is run TIMES times in one process must have the findings of a single
run: the same kinds on the same lines; each use of an undefined value TIMES times as often; and its
process must end the same way. Cases that natively end in another way when they are repeated say
nothing, and are counted as skipped.
"""

import random
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import cases

MODES = ["none", "often", "random-versions", "often,random-versions"]
TIMES, SAMPLE_TIMES, SAMPLE = 10000, 600, 40
NATIVE_TIMEOUT_S = 300
# Of what is found through shadow memory alone each use counts. What freed blocks and old frames
# show depends on how much was allocated since.
COUNTED = {"uninit-branch", "uninit-value"}


def is_repeatable(case):
    return case.ends == "EXITS 0" and not case.once


def tally(found, file):
    """How often each finding was made, by kind and line. What a case loses when it is repeated is
    not what it loses once."""
    counts = Counter()
    for finding in found:
        if not finding.kind.startswith("leak-"):
            counts[finding.kind, finding.line_in(file)] += finding.count
    return counts


def ends_natively(case, build, binaries, times):
    program = cases.binary(case.topic, build, binaries)
    try:
        done = subprocess.run([program, case.name, str(times)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=NATIVE_TIMEOUT_S, cwd=binaries, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode


def differences(once, often, times):
    """Texts, one for each finding that differs."""
    for key in sorted(once.keys() | often.keys()):
        kind, line = key
        wanted = once[key] * (times if kind in COUNTED else 1)
        if not often[key] or not once[key] or (kind in COUNTED and often[key] != wanted):
            yield f"line {line}: {kind} {once[key]} times once, {often[key]} times in {times} runs"


def compare(suite, run_case, case, build, work, stress, times):
    """Returns (verdict, reason)."""
    once, complaint = run_case(suite.tool, case, build, work, stress)
    if complaint:
        return "not ok", f"once: {complaint}"
    often, complaint = run_case(suite.tool, case, build, work, stress, times)
    file = case.topic.path.name
    wrong = [complaint] if complaint else []
    wrong += differences(tally(once, file), tally(often, file), times)
    if wrong and ends_natively(case, build, suite.binaries, times) != 0:
        return "skip", "ends in another way natively when it is repeated"
    return ("not ok", "; ".join(wrong)) if wrong else ("ok", "")


def choose(topics, everything, seed, patterns_match):
    runs = [(case, build) for topic in topics for case in topic.cases
            for build in topic.builds_of(case)[-1:] if is_repeatable(case) and patterns_match(case)]
    if everything or len(runs) <= SAMPLE:
        return runs
    return sorted(random.Random(seed).sample(runs, SAMPLE), key=lambda run: str(run[0]))


def run(suite, run_case, topics, work, everything, seed, patterns_match):
    times = TIMES if everything else SAMPLE_TIMES
    runs = choose(topics, everything, seed, patterns_match)
    cases.compile_all(list({(c.topic.name, b): (c.topic, b) for c, b in runs}.values()),
                      suite.binaries)
    for stress in MODES:
        with ThreadPoolExecutor(suite.args.j) as pool:
            results = pool.map(lambda r: compare(suite, run_case, *r, work, stress, times), runs)
            for (case, build), (verdict, reason) in zip(runs, results):
                suite.say(verdict, f"{case} [{build}, {stress}, {times} times]", reason)
