# SPDX-License-Identifier: MIT
"""What every hunt is made of: trials, their processes, and how a trial says what it found.

A hunt is a module with one object HUNT. Its trials are numbered; all that is random in a trial
comes from `trial.random`, which is seeded with the seed of the run, the name of the hunt and the
number of the trial. So a seed and a number are enough to do a trial again.

A trial runs in a process of its own, which is a child subreaper: whatever it has started and did
not wait for, monitors included, becomes its child, can be counted, and is killed at the end.
"""
import ctypes
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PATIENCE_S = 600  # for what always comes unless something hangs, on however busy a machine
TOOLS = ("none", "memcheck", "massif")


class Found(Exception):
    """The trial found something; the text says what, and what was expected."""


class Skip(Exception):
    """This machine lacks what the trial needs."""


@dataclass
class Hunt:
    name: str
    title: str  # what it looks for, in one line
    trial: Callable  # (Trial) -> None or a note; raises Found
    full: int  # trials in the full run
    sample: int  # trials in the sample of `make check`
    prepare: Callable = lambda options: None  # once a run, before the first trial
    timeout_s: float = 3600  # a trial that takes longer hangs
    jobs: int = 0  # trials at a time; 0: as many as the command line says


class Trial:
    """One numbered trial: its own random numbers, its own folder, and ways to run programs."""

    def __init__(self, hunt, number, options, folder):
        self.hunt, self.number, self.options, self.folder = hunt, number, options, Path(folder)
        self.random = random.Random(f"{options.seed}/{hunt.name}/{number}")
        self.build, self.muninn = options.build, options.muninn
        self.full = options.full
        self.commands = []  # every command that was run, for whoever reproduces it

    def path(self, name):
        return self.folder / name

    def say(self, text):
        if self.options.verbose:
            print(f"# {self.hunt.name} {self.number}: {text}", flush=True)

    def run(self, argv, timeout_s=PATIENCE_S, may_time_out=False, environment=None, stdin=b""):
        """Runs a program to its end: (status, stdout, stderr). None if it took too long."""
        argv = [str(word) for word in argv]
        self.commands.append(" ".join(argv))
        self.say(self.commands[-1])
        process = subprocess.Popen(argv, cwd=self.folder, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True, env=clean_environment(environment))
        try:
            out, err = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            state = describe_tree(process.pid)
            kill_session(process)
            process.communicate()
            if may_time_out:
                return None
            raise Found(f"no end in {timeout_s} s: {self.commands[-1]}\n{state}") from None
        return process.returncode, out, err

    def start(self, argv, **how):
        """Starts a program in a session of its own."""
        argv = [str(word) for word in argv]
        self.commands.append(" ".join(argv))
        self.say(self.commands[-1])
        how.setdefault("stdin", subprocess.DEVNULL)
        how.setdefault("stdout", subprocess.DEVNULL)
        how.setdefault("stderr", subprocess.DEVNULL)
        return subprocess.Popen(argv, cwd=self.folder, start_new_session=True,
                                env=clean_environment(how.pop("environment", None)), **how)


def clean_environment(extra=None):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MUNINN_", "VALGRIND_"))}
    return kept | (extra or {})


def wait_for(condition, what, seconds=PATIENCE_S):
    """The first true value of condition()."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise Found(f"{what} did not come in {seconds} s\n{describe_tree(os.getpid())}")
        time.sleep(0.01)
    return value


# ---------------------------------------------------------------- processes

def stat_of(pid):
    """(parent, state, name) of a process, or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    state, parent = text[text.rindex(")") + 2 :].split()[:2]
    return int(parent), state, name


def descendants(root):
    """{pid: (parent, state, name)} of all that descend from `root`."""
    everyone = {int(p): stat_of(p) for p in os.listdir("/proc") if p.isdigit()}
    found, more = {}, [root]
    while more:
        parent = more.pop()
        for pid, stat in everyone.items():
            if stat and stat[0] == parent and pid not in found:
                found[pid] = stat
                more.append(pid)
    return found


def describe_tree(root):
    lines = []
    for pid, (parent, state, name) in sorted(descendants(root).items()):
        words = read_bytes(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace")
        where = read_bytes(f"/proc/{pid}/wchan").decode(errors="replace")
        lines.append(f"  {pid} (of {parent}) {state} {name} {where} {words[:150]}")
    return "\n".join(lines)


def read_bytes(path):
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def kill_session(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_children():
    """Ends all that the trial has left. It is a subreaper, so grandchildren come to it."""
    while True:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def reap():
    """Takes the ends of adopted processes; a Popen of ours must have been waited for before."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


# ------------------------------------------------------------------- trials

def stress_modes():
    """The modes that there are, so that a new one is tried without a word here."""
    text = (ROOT / "src/launch/choices.def").read_text()
    return re.findall(r'MEMBER\(STRESS,\s*\w+,\s*"([\w-]+)"', text)


def perform(hunt, number, options, folder, pipe):
    """Runs in the trial's process; the verdict goes into `pipe` as one JSON line."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)

    def stop(*_):
        kill_children()
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    trial = Trial(hunt, number, options, folder)
    try:
        verdict = ["ok", hunt.trial(trial) or ""]
    except Found as found:
        verdict = ["not ok", str(found)]
    except Skip as reason:
        verdict = ["skip", str(reason)]
    except Exception as error:  # a bug of the hunt must not look like a pass
        import traceback
        verdict = ["not ok", f"the hunt itself: {error!r}\n{traceback.format_exc()}"]
    if verdict[0] == "not ok":
        Path(folder, "commands").write_text("\n".join(trial.commands) + "\n")
        Path(folder, "found").write_text(verdict[1] + "\n")
    kill_children()
    os.write(pipe, json.dumps(verdict).encode() + b"\n")
    os._exit(0)


class Running:
    """A trial under way."""

    def __init__(self, hunt, number, options):
        self.hunt, self.number, self.options = hunt, number, options
        self.folder = options.state / hunt.name / f"trial-{options.seed}-{number}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.started, self.told = time.monotonic(), None
        sys.stdout.flush()
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reader)
            perform(hunt, number, options, self.folder, writer)
        os.close(writer)

    def verdict(self):
        """Reads the verdict once the pipe is readable, and cleans up."""
        data = b"".join(iter(lambda: os.read(self.reader, 65536), b""))
        os.close(self.reader)
        os.waitpid(self.pid, 0)
        if self.told:
            kind, text = "not ok", self.told
        elif data:
            kind, text = json.loads(data)
        else:
            kind, text = "not ok", "the hunt itself: the trial's process died"
        if kind != "not ok" and not self.options.keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        return kind, text

    def check_time(self):
        """A trial that hangs is told to stop; its process kills what it has started."""
        if self.told is None and time.monotonic() - self.started > self.hunt.timeout_s:
            self.told = (f"the trial did not end in {self.hunt.timeout_s:.0f} s\n"
                         + describe_tree(self.pid))
            self.stop()

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
