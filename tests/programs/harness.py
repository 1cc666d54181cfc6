# SPDX-License-Identifier: MIT
"""Runs one row natively and under muninn, and says where the two differ.

A row is either a command or a scenario (a function that drives a session or a server and returns a
transcript). All runs of a row happen one after the other in one worker process and in a folder of
the same name, so that paths in the output are equal. The worker is a child subreaper: a process
that outlives its parent becomes the worker's child, is found at the end, and is killed.
"""
import ctypes
import glob
import hashlib
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import Callable, Optional

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
STRESS_MODES = ("tiny-blocks", "tiny-cache", "no-link", "signals")
STRESS_SLOWDOWN = 3  # how much longer than a plain run a stressed one may take
PATIENCE = 8  # how much longer than a row says, on a machine that is busy with other things
STRAGGLER_S = 60  # how long a process may live on after the program it belongs to


class RunError(Exception):
    """A run that gave no result: a time-out, a server that never answered, a step that failed."""


@dataclass
class Row:
    name: str
    argv: list = field(default_factory=list)
    scenario: Optional[Callable] = None  # (Context) -> transcript, instead of argv
    stdin: bytes = b""
    status: int = 0  # what native must end with; a signal is negative
    needs: tuple = ()  # commands that must be installed, besides argv[0]
    builds: tuple = ()  # guests to compile first
    files: dict = field(default_factory=dict)  # name in the work folder -> file or folder to copy
    outputs: tuple = ()  # patterns of files in the work folder that must be equal too
    options: tuple = ()  # for muninn
    stress: tuple = STRESS_MODES
    masks: tuple = ()  # (pattern, replacement): text that differs between two native runs
    environment: dict = field(default_factory=dict)
    forbidden: Optional[Callable] = None  # () -> why this machine cannot run it natively, or None
    timeout_s: float = 20  # what a run may take on an idle machine


@dataclass
class Result:
    stdout: bytes
    stderr: bytes
    status: int
    outputs: dict = field(default_factory=dict)


@dataclass
class Context:
    """What a scenario gets: how to start a program in this mode, and where."""

    row: Row
    muninn: str
    prefix: list
    folder: str
    environment: dict
    deadline: float

    def remaining_s(self):
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise RunError("timeout")
        return left

    def start(self, argv, stdout, prefix=None):
        """Starts `argv` in this mode (natively with prefix=[]), output to the file `stdout`."""
        with open(stdout, "ab") as out:
            return subprocess.Popen(
                [*(self.prefix if prefix is None else prefix), *argv],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=self.environment,
                start_new_session=True,
            )

    def native(self, argv, stdin=b"", check=True):
        """Runs a native client to its end and returns its standard output."""
        try:
            done = subprocess.run(
                argv,
                input=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env=self.environment,
                timeout=self.remaining_s(),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RunError(f"timeout: {os.path.basename(argv[0])} got no answer") from error
        if check and done.returncode != 0:
            text = (done.stdout + done.stderr)[-300:].decode(errors="replace").strip()
            raise RunError(f"{os.path.basename(argv[0])} ended with {done.returncode}: {text}")
        return done.stdout

    def until(self, what, condition):
        """Polls `condition` until it is true, gives its value back."""
        while not (value := condition()):
            try:
                left = self.remaining_s()
            except RunError as error:
                raise RunError(f"timeout: {what}") from error
            time.sleep(min(0.02, left))
        return value

    def finish(self, process):
        """Waits for a program that was asked to end; returns its status."""
        try:
            return process.wait(timeout=self.remaining_s())
        except subprocess.TimeoutExpired as error:
            raise RunError("timeout: it does not end when asked") from error


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def port_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def environment_of(row, folder):
    base = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": folder,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "PYTHONHASHSEED": "0",
        "PERL_HASH_SEED": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    return {**base, **row.environment}


def become_worker():
    """Orphans of this process's children become its own, and it ends when the suite does."""
    prctl = ctypes.CDLL(None).prctl
    if prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")
    if prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_PDEATHSIG) failed")


def descendants():
    """Every living process below this one, as {pid: name}; zombies of ours are reaped."""
    table, names = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                head, _, tail = file.read().rpartition(b")")
        except OSError:
            continue
        state, parent = tail.split()[:2]
        table[int(entry)] = (int(parent), state)
        names[int(entry)] = head.partition(b"(")[2].decode(errors="replace")
    found = [os.getpid()]
    for pid in found:
        found.extend(child for child, (parent, _) in table.items() if parent == pid)
    living = {}
    for pid in found[1:]:
        if table[pid][1] != b"Z":
            living[pid] = names[pid]
        elif table[pid][0] == os.getpid():
            reap(pid)
    return living


def reap(pid):
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def sweep(grace_s):
    """Waits for what is left of a run, then kills it; returns the names of what was killed."""
    deadline = time.monotonic() + grace_s
    while (left := descendants()) and time.monotonic() < deadline:
        time.sleep(0.01)
    killed = sorted(set(left.values()))
    while left:  # what is killed may have started more in the meantime
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)
        left = descendants()
    return killed


def last_line(paths):
    for path in reversed(paths):
        with open(path, "rb") as file:
            lines = file.read().splitlines()
        if lines:
            return shorten(lines[-1])
    return "nothing"


def run_command(context, argv):
    row, side = context.row, os.path.dirname(context.folder)
    paths = [os.path.join(side, name) for name in ("stdin", "stdout", "stderr")]
    with open(paths[0], "wb") as out:
        out.write(row.stdin)
    with open(paths[0], "rb") as stdin, open(paths[1], "wb") as stdout, open(
        paths[2], "wb"
    ) as stderr:
        process = subprocess.Popen(
            [*context.prefix, *argv],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=context.folder,
            env=context.environment,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=context.remaining_s())
        except subprocess.TimeoutExpired as error:
            raise RunError(f"timeout, the last output was {last_line(paths[1:])}") from error
    contents = []
    for path in paths[1:]:
        with open(path, "rb") as file:
            contents.append(file.read())
    return Result(contents[0], contents[1], status)


def digests(folder, patterns):
    found = {}
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(folder, pattern))):
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def expand(value, folder, guests):
    return value.replace("@DIR@", folder).replace("@GUESTS@", guests)


def run_once(row, muninn, arguments, guests, base, timeout_s):
    """One run of the row in a fresh work folder; natively when `arguments` is None."""
    prefix = [] if arguments is None else [muninn, *arguments]
    folder = os.path.join(base, "work")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    for name, origin in row.files.items():
        target = os.path.join(folder, name)
        (shutil.copytree if os.path.isdir(origin) else shutil.copy)(origin, target)
    environment = environment_of(row, folder)
    context = Context(row, muninn, prefix, folder, environment, time.monotonic() + timeout_s)
    try:
        if row.scenario:
            result = Result(row.scenario(context), b"", row.status)
        else:
            result = run_command(context, [expand(part, folder, guests) for part in row.argv])
        result.outputs = digests(folder, row.outputs)
    except RunError:
        sweep(0)
        raise
    killed = sweep(STRAGGLER_S)
    if killed:
        raise RunError(f"left processes behind: {', '.join(killed)}")
    # What killed a program, or one that it has started, is told there.
    result.stdout = re.sub(rb"==\d+== [^\n]*\n", b"", result.stdout)
    result.stderr = re.sub(rb"==\d+== [^\n]*\n", b"", result.stderr)
    for pattern, replacement in row.masks:
        result.stdout = re.sub(pattern, replacement, result.stdout, flags=re.MULTILINE)
        result.stderr = re.sub(pattern, replacement, result.stderr, flags=re.MULTILINE)
    return result


def describe_status(status):
    if status >= 0:
        return f"exit {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def first_difference(expected, actual):
    """One line that tells native from muninn, empty when they agree."""
    if expected.status != actual.status:
        tail = actual.stderr.decode(errors="replace").strip().splitlines()[-1:]
        hint = f" ({tail[0][:160]})" if tail else ""
        want, got = describe_status(expected.status), describe_status(actual.status)
        return f"{got}, native {want}{hint}"
    for stream in ("stdout", "stderr"):
        want = getattr(expected, stream).splitlines()
        got = getattr(actual, stream).splitlines()
        for number in range(max(len(want), len(got))):
            left = want[number] if number < len(want) else None
            right = got[number] if number < len(got) else None
            if left != right:
                return f"{stream} line {number + 1}: {shorten(right)}, native {shorten(left)}"
        if getattr(expected, stream) != getattr(actual, stream):
            return f"{stream}: line ends differ"
    for name in sorted(set(expected.outputs) | set(actual.outputs)):
        if expected.outputs.get(name) != actual.outputs.get(name):
            return f"file {name} differs from native's"
    return ""


def shorten(line):
    if line is None:
        return "nothing"
    text = repr(line)[1:]
    return text if len(text) < 120 else text[:117] + "..."


def save(folder, title, expected, actual):
    """Keeps both sides of a difference for the developer."""
    os.makedirs(folder, exist_ok=True)
    stem = os.path.join(folder, re.sub(r"[^\w.+-]+", "-", title))
    for side, result in (("native", expected), ("muninn", actual)):
        for stream in ("stdout", "stderr"):
            with open(f"{stem}.{side}.{stream}", "wb") as out:
                out.write(getattr(result, stream))


def compare(native, row, muninn, arguments, guests, base, limit_s, title, failures):
    """One run under muninn, held against the native one; why they differ, or an empty string."""
    try:
        actual = run_once(row, muninn, arguments, guests, base, limit_s)
    except (RunError, OSError) as error:
        return str(error)
    difference = first_difference(native, actual)
    if difference:
        save(failures, title, native, actual)
    return difference


def run_row(row, muninn, guests, stress, failures):
    """All runs of a row; yields (kind, title, reason) with kind `ok`, `not ok` or `skip`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    become_worker()
    base = tempfile.mkdtemp(prefix="muninn-programs-")
    os.chmod(base, 0o755)  # servers drop their privileges and must still reach their files
    try:
        reason = row.forbidden and row.forbidden()
        if reason:
            yield "skip", row.name, reason
            return
        try:
            native = run_once(row, muninn, None, guests, base, row.timeout_s * PATIENCE)
        except RunError as error:
            yield "not ok", row.name, f"natively: {error}"
            return
        if native.status != row.status:
            want, got = describe_status(row.status), describe_status(native.status)
            text = native.stderr[-200:].decode(errors="replace").strip()
            yield "not ok", row.name, f"natively: {got}, the row says {want} ({text})"
            return
        for mode in [None, *(mode for mode in row.stress if mode in stress)]:
            title = f"{row.name} [{mode}]" if mode else row.name
            arguments = ["--tool=none", *row.options]
            arguments += [f"--stress={mode}"] if mode else []
            limit_s = row.timeout_s * PATIENCE * (STRESS_SLOWDOWN if mode else 1)
            reason = compare(native, row, muninn, arguments, guests, base, limit_s, title, failures)
            yield ("not ok" if reason else "ok"), title, reason
            if reason and not mode:
                return  # a stressed run would only fail, or hang, in the same way again
    finally:
        sweep(0)
        shutil.rmtree(base, ignore_errors=True)
