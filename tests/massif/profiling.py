# SPDX-License-Identifier: MIT
"""What the tests of massif share: programs, runs of them, and what the recording says."""

import csv
import json
import os
import re
import subprocess
import tempfile

import massif_file
from suite import verdict


HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
MUNINN = os.environ.get("MUNINN", os.path.join(BUILD, "muninn"))
PROGRAMS = os.path.join(BUILD, "tests", "massif")
WORK = tempfile.mkdtemp(prefix="muninn-massif-")
RUNTIME = os.path.join(WORK, "runtime")
os.mkdir(RUNTIME, 0o700)
ENV = {**os.environ, "XDG_RUNTIME_DIR": RUNTIME, "LC_ALL": "C"}


def build(name, *flags, source=None, compiler="gcc"):
    program = os.path.join(PROGRAMS, name)
    os.makedirs(PROGRAMS, exist_ok=True)
    subprocess.run([compiler, "-O1", "-g", "-pthread", "-o", program,
                    os.path.join(HERE, source or name + ".c"), f"-I{ROOT}/include", *flags],
                   check=True)
    return program


class Run:
    """One run in a folder of its own, and the files it left."""
    count = 0

    def __init__(self, *argv, options=(), env=None, stdin=subprocess.DEVNULL, timeout=300, wait=True):
        Run.count += 1
        self.folder = os.path.join(WORK, str(Run.count))
        os.mkdir(self.folder)
        self.process = subprocess.Popen([MUNINN, "--tool=massif", *options, *argv], stdin=stdin,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        cwd=self.folder, env=env or ENV, bufsize=0)
        self.pid = self.process.pid
        if wait:
            self.end(timeout)

    def end(self, timeout=300):
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        self.out, self.err = out.decode(errors="replace"), err.decode(errors="replace")
        self.status = self.process.returncode

    def path(self, name=None):
        return os.path.join(self.folder, name or f"massif.out.{self.pid}")

    def profile(self, name=None):
        return massif_file.read(self.path(name))

    def said_peak(self):
        return int(re.search(r"peak (\d+)", self.out)[1])

    def line(self):
        return self.process.stdout.readline().decode()


def check(name, fn):
    """A test: fn returns what is wrong, or nothing."""
    try:
        why = fn() or ""
    except (OSError, ValueError, KeyError, AttributeError, IndexError, TypeError,
            subprocess.SubprocessError) as error:
        why = f"{type(error).__name__}: {error}"
    verdict(name, str(why).replace("\n", " ")[:700])


KNOWN = build("known")
HOLDS = build("holds", "-fno-builtin")


def unequal(what, got, wanted):
    return "" if got == wanted else f"{what} is {got}, not {wanted}"


def summary(run, name=None, command="summary"):
    """What `muninn heap` says of the recording."""
    done = subprocess.run([MUNINN, "heap", command, "--json",
                           run.path(name or f"muninn.heap.{run.pid}")],
                          capture_output=True, text=True, timeout=300, check=True, env=ENV)
    if done.stderr:
        raise ValueError(done.stderr)
    return json.loads(done.stdout)


def queried(run, sql):
    """The rows of an answer, as tuples of text."""
    done = subprocess.run([MUNINN, "heap", "query", "--csv", run.path(f"muninn.heap.{run.pid}"), sql],
                          capture_output=True, text=True, timeout=300, check=True, env=ENV)
    return [tuple(row) for row in csv.reader(done.stdout.splitlines()[1:])]
