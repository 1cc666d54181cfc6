# SPDX-License-Identifier: MIT
"""What suites written in Python share: the verdicts that tests/run reads, and the sum at the end.

A test is a function whose name is a sentence:

    @test
    def a_closed_log_is_told():
        assert ...

    sys.exit(suite.main())

It fails by any exception and is skipped by Skip. A suite whose tests come out of a table gives its
verdicts itself, verdict(name, what_is_wrong) and skip(name, reason), and ends with finish().
Verdicts may come from several threads.
"""

import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

REASON_WIDTH = 700  # of a failure in its line; all of it stands above
counts = {"ok": 0, "not ok": 0, "skip": 0}
tests = []  # in the order in which they are defined
lock = threading.Lock()


class Skip(Exception):
    """A test that cannot run here; the text says what is missing."""


def test(function):
    tests.append(function)
    return function


def say(kind, name, reason=""):
    with lock:
        counts[kind] += 1
        print(f"{kind} - {name}" + (f": {reason}" if reason else ""), flush=True)


def verdict(name, why=""):
    """Nothing wrong: the test has passed."""
    if why:
        say("not ok", name, why)
    else:
        say("ok", name)


def skip(name, why):
    say("skip", name, why)


def reason_of(error):
    """What is wrong in one line, with the line of the test where it came out."""
    text = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, AssertionError):
        text = f"{type(error).__name__}: {text}"
    place = traceback.extract_tb(error.__traceback__)[1:2]
    line = f"line {place[0].lineno}: " if place else ""
    return (line + text)[:REASON_WIDTH]


def attempt(function, name=None):
    """One test."""
    name = name or function.__name__
    try:
        function()
    except Skip as why:
        skip(name, why)
    except Exception as error:  # a test may fail in any way
        with lock:
            traceback.print_exc(limit=-4, file=sys.stdout)
        verdict(name, reason_of(error))
    else:
        verdict(name)


def finish():
    """The sum; returns the exit status."""
    print(f"{counts['ok']} passed, {counts['not ok']} failed, {counts['skip']} skipped", flush=True)
    return 1 if counts["not ok"] else 0


def main(set_up=None, tear_down=None, workers=1):
    """Runs the tests, or those whose name has one of the arguments in it. Returns the exit status."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    chosen = [f for f in tests if not names or any(name in f.__name__ for name in names)]
    try:
        if set_up:
            set_up()
        if workers == 1:  # in the main thread, where signals can be handled
            for function in chosen:
                attempt(function)
        else:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(attempt, chosen))
    finally:
        if tear_down:
            tear_down()
    return finish()
