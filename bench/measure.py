# SPDX-License-Identifier: MIT
"""Runs one command and measures it: CPU of its process tree, wall time, output, memory.

The bench process is a child subreaper, so that processes which outlive their parent (the monitor
is such a process) are reaped here and their CPU time is counted too.
"""
import ctypes
import hashlib
import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass

PR_SET_CHILD_SUBREAPER = 36
STRAGGLER_S = 10
PEAK_EVERY_S = 0.02


class MeasureError(Exception):
    """A run that cannot be measured: it hung, or left processes behind."""


@dataclass
class Run:
    cpu_s: float
    wall_s: float
    status: int
    digest: str
    stderr: bytes
    peak_kib: int = 0  # when asked for


def become_subreaper():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class Peaks:
    """The most that the processes below this one have had at once, seen now and then.

    The kernel keeps the peak RSS of each, so that a short peak of one is not missed: what is summed
    up is the peaks of those that live at the same time.
    """

    def __init__(self):
        self.most_kib = 0
        self.due = 0.0

    def look(self):
        if time.monotonic() < self.due:
            return
        sum_kib = 0
        for pid in children():
            try:
                sum_kib += field_kib(f"/proc/{pid}/status", "VmHWM")
            except (OSError, MeasureError):
                continue  # it has ended
        self.most_kib = max(self.most_kib, sum_kib)
        self.due = time.monotonic() + PEAK_EVERY_S


def reap_tree(pid, timeout_s, peaks=None):
    """Reaps `pid` and every orphan of its tree; returns (status, cpu_s, wall end of `pid`)."""
    deadline = time.monotonic() + timeout_s
    status, cpu_s, ended = None, 0.0, None
    delay_s = 0.0002
    while True:
        try:
            reaped, code, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return status, cpu_s, ended
        if reaped:
            cpu_s += usage.ru_utime + usage.ru_stime
            if reaped == pid:
                ended = time.monotonic()
                status = os.waitstatus_to_exitcode(code)
                deadline = min(deadline, ended + STRAGGLER_S)
            continue
        if time.monotonic() > deadline:
            kill_tree(pid)
            raise MeasureError("timeout" if status is None else "a process of it never ended")
        if peaks:
            peaks.look()
        time.sleep(delay_s)
        delay_s = min(delay_s * 1.2, 0.002)


def kill_tree(pid):
    """Kills the session of `pid` and whatever else is still our child, and reaps it."""
    for victim in [-pid, *children()]:
        try:
            os.kill(victim, signal.SIGKILL) if victim > 0 else os.killpg(-victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
    try:
        while os.wait4(-1, 0):
            continue
    except ChildProcessError:
        return


def parents():
    """The parent of every process, from /proc."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                table[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    return table


def children(root=None):
    """Every living descendant of `root` (this process when None)."""
    table, found = parents(), [root or os.getpid()]
    for pid in found:
        found.extend(child for child, parent in table.items() if parent == pid)
    return found[1:]


def run(argv, environment, scratch, stdin=None, timeout_s=600, peak=False):
    """Runs `argv` to its end. Output goes through files, so that no pipe slows it down."""
    out_path, err_path = os.path.join(scratch, "stdout"), os.path.join(scratch, "stderr")
    with open(stdin or "/dev/null", "rb") as source, open(out_path, "wb") as out, open(
        err_path, "wb"
    ) as err:
        started = time.monotonic()
        process = subprocess.Popen(
            argv, stdin=source, stdout=out, stderr=err, env=environment, start_new_session=True
        )
        peaks = Peaks() if peak else None
        status, cpu_s, ended = reap_tree(process.pid, timeout_s, peaks)
        process.returncode = status
    digest = hashlib.sha256()
    with open(out_path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    with open(err_path, "rb") as file:
        stderr = file.read()
    peak_kib = peaks.most_kib if peaks else 0
    return Run(cpu_s, ended - started, status, digest.hexdigest(), stderr, peak_kib)


def field_kib(path, field):
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    raise MeasureError(f"{path} has no {field}")


def memory(argv, environment, timeout_s=30):
    """Starts a program that says `ready` and waits; returns its peak RSS and its tree's PSS in KiB.

    Both are read from /proc while it waits: ru_maxrss would include this process's own size, which
    a child inherits until it calls execve.
    """
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        ready, _, _ = select.select([process.stdout], [], [], timeout_s)
        if not ready or not process.stdout.readline().startswith(b"ready"):
            raise MeasureError(f"{argv[0]} did not start the small program")
        peak_kib = field_kib(f"/proc/{process.pid}/status", "VmHWM")
        tree = [pid for pid in children() if os.path.exists(f"/proc/{pid}/smaps_rollup")]
        pss_kib = sum(field_kib(f"/proc/{pid}/smaps_rollup", "Pss") for pid in tree)
        process.stdin.close()
        status, _, _ = reap_tree(process.pid, timeout_s)
        process.returncode = status
        if status != 0:
            raise MeasureError(f"{argv[0]}: the small program ended with {status}")
        return peak_kib, pss_kib
    finally:
        if process.returncode is None:
            kill_tree(process.pid)
            process.returncode = -signal.SIGKILL
        process.stdout.close()
