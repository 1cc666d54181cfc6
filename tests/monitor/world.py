# SPDX-License-Identifier: MIT
"""What the tests of the monitor share: programs, ways to run them, and readers of reports."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from suite import Skip, test  # noqa: F401: for those who import this file

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
MUNINN = os.environ.get("MUNINN") or str(BUILD / "muninn")
VALGRIND = "/usr/bin/valgrind"
WORK = Path(tempfile.mkdtemp(prefix="muninn-mt-"))
ACTOR = WORK / "actor"
LIMIT = 120  # seconds for one run; a run that hangs is a failure

def set_up():
    includes = [f"-I{ROOT}/include", f"-I{ROOT}/src"]
    for name in ("actor", "descriptors", "heap_user", "prints", "reaper"):
        if name == "prints" and not os.path.exists("/usr/include/valgrind/valgrind.h"):
            continue
        subprocess.run(
            [
                "gcc",
                "-g",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                *includes,
                "-o",
                WORK / name,
                HERE / f"{name}.c",
                "-lpthread",
            ],
            check=True,
        )


def tear_down():
    shutil.rmtree(WORK, ignore_errors=True)


def folder():
    """A fresh folder; its name goes with the run."""
    return Path(tempfile.mkdtemp(dir=WORK))


def need(program):
    if not os.access(program, os.X_OK):
        raise Skip(f"{program} is not installed")


def command(*words, options=(), tool="findingtest", program=None):
    return [MUNINN, f"--tool={tool}", *map(str, options), str(program or ACTOR), *map(str, words)]


def clean_environment(extra=None):
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("MUNINN_", "VALGRIND_"))
    }
    environment["HOME"] = str(WORK)
    return environment | (extra or {})


class Done:
    """A run that has ended."""

    def __init__(self, done, log=None):
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        self.log = done.stderr if log is None else log

    def __str__(self):
        return f"status {self.status}\nout: {self.out[-2000:]}\nlog: {self.log[-4000:]}"


def run(*words, options=(), tool="findingtest", program=None, environment=None, **others):
    """Runs the actor with these words; the log is what came on standard error."""
    others.setdefault("stdin", subprocess.DEVNULL if "input" not in others else None)
    if others["stdin"] is None:
        del others["stdin"]
    done = subprocess.run(
        command(*words, options=options, tool=tool, program=program),
        env=clean_environment(environment),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT,
        cwd=WORK,
        **others,
    )
    return Done(done)


def wait_for(condition, seconds=LIMIT, what="what was waited for"):
    """The first true value of condition(); files of the monitor's appear when it is ready."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not come in {seconds} s"
        time.sleep(0.02)


def summary(log):
    """(errors, contexts) of the last ERROR SUMMARY; None if there is none."""
    found = re.findall(r"ERROR SUMMARY: ([\d,]+) errors from ([\d,]+) contexts", log)
    return tuple(int(n.replace(",", "")) for n in found[-1]) if found else None


def reads(log):
    """The numbers of the actor's findings, in the order of the log."""
    return [int(n.replace(",", "")) for n in re.findall(r"Invalid read of size ([\d,]+)", log)]


def wait_for_end(path, seconds=LIMIT):
    """The text of a log that has its summary."""

    def whole():
        text = path.read_text(errors="replace") if path.exists() else ""
        return text if "ERROR SUMMARY" in text else None

    return wait_for(whole, seconds, f"the end of {path.name}")


def wait_for_xml(path, seconds=LIMIT):
    def whole():
        return path.exists() and path.read_bytes().rstrip().endswith(b"</valgrindoutput>")

    wait_for(whole, seconds, f"the end of {path.name}")
    return ElementTree.parse(path).getroot()


def wait_for_json(path, seconds=LIMIT):
    def whole():
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError):
            return None

    return wait_for(whole, seconds, f"the end of {path.name}")


def monitors():
    """{pid: pid of the program} of the living monitors of ours."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if os.readlink(f"/proc/{entry}/exe") != str(BUILD / "muninn-monitor"):
                continue
            if Path(f"/proc/{entry}/comm").read_text() != "muninn-monitor\n":
                continue  # its reader of symbols
            words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            if str(WORK).encode() in b" ".join(words):
                found[int(entry)] = words
        except OSError:
            continue
    return found


def monitors_of(log):
    """The pids of the monitors that write this log."""
    return [pid for pid, words in monitors().items() if f"--log-file={log}".encode() in words]


def monitor_of(log):
    """The one; it may still be on its way to being one."""
    found = wait_for(lambda: monitors_of(log), what="a monitor")
    assert len(found) == 1, found
    return found[0]


def read_within(fd, seconds):
    """What can be read until the end of file or the time is up; (bytes, ended)."""
    data, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            piece = os.read(fd, 1 << 16)
            if not piece:
                return data, True
            data += piece
    return data, False


def start(*words, options=(), tool="findingtest", environment=None, **others):
    others.setdefault("stdin", subprocess.DEVNULL)
    others.setdefault("stdout", subprocess.PIPE)
    others.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen(
        command(*words, options=options, tool=tool),
        cwd=WORK,
        env=clean_environment(environment),
        **others,
    )


def let_go(process):
    """Ends the `await` of a program that was started with stdin=PIPE."""
    process.stdin.close()
    process.stdin = None


def kill_monitor(log):
    """Kills the monitor that writes this log; it is gone on return."""
    pid = monitor_of(log)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: pid not in monitors(), what="the death of the monitor")


def died_of(done, number):
    assert done.status == -number, f"expected {signal.Signals(number).name}\n{done}"
