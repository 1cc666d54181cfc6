#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The harness must notice: engines that lie in one way each, and what difftest says of them; suites
that fail in one way each, and what tests/run says of them at its end."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

LIB_DIR = os.path.dirname(os.path.abspath(__file__))
GUEST = """// RUN: => %s
// BUILD: -O1
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) { puts("one\\ntwo"); fputs("error\\n", stderr); fflush(stdout); %s; }
"""
# libc refuses to raise the two signals that it uses itself.
RAISE = "syscall(SYS_kill, getpid(), %d)"
RUN = f"import sys; sys.path.insert(0, {LIB_DIR!r}); sys.dont_write_bytecode = True\n" \
      "import difftest; sys.exit(difftest.main({suite!r}))"


def run_suite(engine, expected="exit 3", ending="return 3", timeout="300"):
    """Runs a suite of one guest; a line of shell plays the engine ("$@" is the guest)."""
    with tempfile.TemporaryDirectory() as root:
        suite = os.path.join(root, "suite")
        os.mkdir(suite)
        with open(os.path.join(suite, "guest.c"), "w", encoding="ascii") as source:
            source.write(f"// TIMEOUT: {timeout}\n" + GUEST % (expected, ending))
        muninn = os.path.join(root, "muninn")
        with open(muninn, "w", encoding="ascii") as script:
            script.write("#!/bin/sh\nshift\n" + engine + "\n")
        os.chmod(muninn, os.stat(muninn).st_mode | stat.S_IXUSR)
        env = dict(os.environ, BUILD=root, MUNINN=muninn)
        return subprocess.run([sys.executable, "-c", RUN.format(suite=suite)], env=env,
                              stdout=subprocess.PIPE, text=True, check=False)


class Notices(unittest.TestCase):
    def expect(self, result, status, text):
        self.assertIn(text, result.stdout)
        self.assertEqual(result.returncode, status)

    def test_nothing_when_the_engine_is_true(self):
        self.expect(run_suite('exec "$@"'), 0, "1 passed, 0 failed, 0 skipped")

    def test_a_missing_line(self):
        self.expect(run_suite('"$@" | head -1; exit 3'), 1, "stdout line 2: native 'two'")

    def test_noise_on_stderr(self):
        self.expect(run_suite('echo noise >&2; exec "$@"'), 1, "stderr line 1: native 'error'")

    def test_another_status(self):
        self.expect(run_suite('"$@"; exit 4'), 1, "ended in exit 4, native in exit 3")

    def test_a_lost_core_flag(self):
        self.expect(run_suite('ulimit -c 0; exec "$@"', "SIGABRT core", "abort()"), 1,
                    "ended in SIGABRT, native in SIGABRT core")

    def test_a_signal_turned_into_a_status(self):
        self.expect(run_suite('"$@"; exit $?', "SIGTERM", "raise(SIGTERM)"), 1,
                    "ended in exit 143, native in SIGTERM")

    def test_signals_without_a_name(self):
        # Not 32 and 33: libc blocks them at times, so a child may inherit them blocked.
        for number in (40, 41):
            self.expect(run_suite('"$@"; exit $?', f"signal {number}", RAISE % number), 1,
                        f"ended in exit {128 + number}, native in signal {number}")

    def test_a_hang(self):
        self.expect(run_suite("exec sleep 300", timeout="10"), 1, "time-out (10 s)")

    def test_a_native_run_that_breaks_its_promise(self):
        self.expect(run_suite('exec "$@"', "exit 0"), 1, "native run ended in exit 3, not exit 0")


SUITES = {
    "fails": "echo noise; echo 'ok - one'; echo 'not ok - two: a reason'; "
             "echo '1 passed, 1 failed, 0 skipped'; exit 1",
    "dies": "echo 'ok - one'; kill -9 $$",
    "passes": "echo 'ok - one'; echo '1 passed, 0 failed, 0 skipped'",
}


class Summary(unittest.TestCase):
    def test_failures_are_repeated_at_the_end(self):
        with tempfile.TemporaryDirectory() as root:
            tests = os.path.join(root, "tests")
            os.makedirs(os.path.join(tests, "lib"))
            shutil.copy(os.path.join(LIB_DIR, "default_signals.py"), os.path.join(tests, "lib"))
            shutil.copy(os.path.join(LIB_DIR, os.pardir, "run"), tests)
            for name, script in SUITES.items():
                os.mkdir(os.path.join(tests, name))
                path = os.path.join(tests, name, "run")
                with open(path, "w", encoding="ascii") as file:
                    file.write(f"#!/bin/sh\n{script}\n")
                os.chmod(path, 0o755)
            done = subprocess.run([os.path.join(tests, "run")], stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, BUILD=root), check=False)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-4:-2], [
            "dies: not ok - dies: printed no sum at its end; died of SIGKILL",
            "fails: not ok - two: a reason"])
        self.assertTrue(lines[-2].endswith("; failed: dies fails"))
        self.assertEqual((lines[-1], done.returncode), ("3 passed, 2 failed, 0 skipped", 1))


class VerdictLines(unittest.TestResult):
    """Prints what tests/run reads, one line a test."""

    def addSuccess(self, test):
        print(f"ok - {self.name(test)}", flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        self.report(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.report(test, err)

    def report(self, test, err):
        print(self._exc_info_to_string(err, test), end="")
        print(f"not ok - {self.name(test)}: {err[0].__name__}", flush=True)

    @staticmethod
    def name(test):
        return "notices_" + test._testMethodName.removeprefix("test_")


def main():
    result = VerdictLines()
    for case in (Notices, Summary):
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
