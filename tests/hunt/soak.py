# SPDX-License-Identifier: MIT
"""Hunt: servers under load for long, and the memory of all processes must stay flat.

A trial is one server under one tool. Its client runs natively, for as long as the trial lasts.
The memory that the server's processes and Muninn's have each for themselves is sampled: what they
share, as PostgreSQL does its buffers, counts as resident in each process that has touched it. What
was needed to warm up does not count, and from then on each kind of process may grow by a few percent
and no more.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

from hunting import ROOT, Found, Hunt, Skip, descendants, read_bytes, wait_for

sys.path[:0] = [str(ROOT / "tests/programs"), str(ROOT / "bench")]
import harness  # noqa: E402
import servers  # noqa: E402

FULL_S, SAMPLE_S = 1200, 6
JUDGED_S = 220   # between samples; in less than that nothing has settled
WARM_UP = 0.4    # of the time
GROWTH = 0.04    # of the mean, over what is judged
SLACK_KIB = 6 * 1024
PAGE_KIB = os.sysconf("SC_PAGESIZE") // 1024
# The monitor's buffers are as large as a slice of the recording, and slices get longer with the
# run until they are full of events. How many fill one follows the limit of the file: with the
# usual limit that takes an hour and a few MiB for each process, with this one minutes. The file
# reaches it, too.
MAX_RECORDING = "4M"
ROLES = {"muninn-monitor": "monitor", "muninn-symbols": "reader"}


class Server:
    """A server in the mode under test; `load` is the command that keeps it busy for a while."""

    def __init__(self, trial, prefix):
        self.trial, self.prefix, self.folder = trial, prefix, str(trial.folder)
        self.port, self.log = harness.free_port(), trial.path("server.log")
        self.process, self.end_signal = None, signal.SIGTERM

    def start(self, argv, before=()):
        with open(self.log, "ab") as out:
            self.process = self.trial.start([*before, *self.prefix, *argv], stdout=out, stderr=out)
        wait_for(self.listens, "the server's port")

    def listens(self):
        if self.process.poll() is not None:
            raise Found(f"the server ended with {self.process.returncode}: "
                        + servers.tail(self.log))
        return harness.port_open(self.port)


class Redis(Server):
    needs = ("redis-server", "redis-benchmark")

    def begin(self):
        self.start(["/usr/bin/redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                    "--save", "", "--dir", self.folder])

    def load(self, seconds):
        return ["timeout", str(seconds), "redis-benchmark", "-p", str(self.port), "-l", "-q",
                "-n", "20000", "-r", "5000", "-c", "16", "-t",
                "set,get,incr,lpush,lpop,sadd,hset,spop,zadd,mset"]


class Nginx(Server):
    needs = ("nginx", "ab")

    def begin(self):
        os.makedirs(os.path.join(self.folder, "html"))
        with open(os.path.join(self.folder, "html/page.txt"), "wb") as out:
            out.write(b"".join(b"line %d of the page\n" % n for n in range(3000)))
        text = servers.guest_file("nginx.conf").decode()
        config = os.path.join(self.folder, "nginx.conf")
        with open(config, "w", encoding="ascii") as out:
            out.write(text.replace("@DIR@", self.folder).replace("@PORT@", str(self.port)))
        os.chmod(self.folder, 0o755)
        self.end_signal = signal.SIGQUIT
        self.start(["/usr/sbin/nginx", "-p", self.folder, "-e", f"{self.folder}/error.log",
                    "-c", config])

    def load(self, seconds):
        return ["ab", "-q", "-k", "-r", "-c", "8", "-t", str(seconds), "-n", "100000000",
                f"http://127.0.0.1:{self.port}/page.txt"]


class Postgres(Server):
    needs = ("initdb", "pgbench")

    def begin(self):
        try:
            self.binaries = servers.postgres_binaries()
        except harness.RunError as error:
            raise Skip(str(error)) from None
        context = harness.Context(harness.Row("postgres"), self.trial.muninn, [], self.folder,
                                  dict(os.environ), time.monotonic() + 3600)
        os.chmod(self.folder, 0o777)
        user, data = servers.unprivileged(context), f"{self.folder}/data"
        self.trial.run([*user, f"{self.binaries}/initdb", "-D", data, "-U", "tester", "-A", "trust",
                        "--no-sync"])
        self.end_signal = signal.SIGINT
        self.start([f"{self.binaries}/postgres", "-D", data, "-p", str(self.port), "-k",
                    self.folder, "-F", "-c", "listen_addresses=127.0.0.1",
                    "-c", "shared_buffers=4MB"], before=user)  # touched soon, as is their shadow
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "tester", "postgres"]
        wait_for(lambda: subprocess.run([f"{self.binaries}/pg_isready", "-q", *where[:6]],
                                        check=False).returncode == 0, "PostgreSQL")
        self.trial.run([f"{self.binaries}/pgbench", "-i", "-q", "-s", "2", *where])
        self.where = where

    def load(self, seconds):
        return [f"{self.binaries}/pgbench", "-n", "-c", "4", "-j", "2", "-T", str(seconds),
                *self.where]


SERVERS = (Redis, Nginx, Postgres)
TOOLS = ("memcheck", "massif")


def sample(server, sums):
    """Adds the resident KiB that each role has for itself now."""
    now = {}
    for pid, (_, _, name) in descendants(os.getpid()).items():
        role = ROLES.get(name)
        if not role and pid != server.process.pid and not is_below(pid, server.process.pid):
            continue
        statm = read_bytes(f"/proc/{pid}/statm").split()
        if len(statm) > 2:
            own = (int(statm[1]) - int(statm[2])) * PAGE_KIB
            now[role or "server"] = now.get(role or "server", 0) + own
    for role, kib in now.items():
        sums.setdefault(role, []).append((time.monotonic(), kib))


def is_below(pid, root):
    return pid in descendants(root)


def growth(points):
    """(KiB that a straight line through the points grows over all of them, their mean)."""
    mean_t = sum(t for t, _ in points) / len(points)
    mean = sum(k for _, k in points) / len(points)
    spread = sum((t - mean_t) ** 2 for t, _ in points)
    slope = sum((t - mean_t) * (k - mean) for t, k in points) / spread if spread else 0
    return slope * (points[-1][0] - points[0][0]), mean


def judge(sums, name):
    """What lives only for a moment, as the reader of symbols may, is not judged."""
    notes = []
    for role, points in sorted(sums.items()):
        points = points[int(len(points) * WARM_UP):]
        if len(points) < 2:
            continue
        seconds = points[-1][0] - points[0][0]
        grown, mean = growth(points)
        notes.append(f"{role} {mean / 1024:.0f} MiB {grown / 1024:+.1f} in {seconds:.0f} s")
        if seconds >= JUDGED_S and grown > max(GROWTH * mean, SLACK_KIB):
            raise Found(f"{name}: {', '.join(notes)}")
    return ", ".join(notes)


def keep_samples(trial, sums):
    """In the trial's folder: a line for each sample."""
    lines = sorted((at, role, kib) for role, points in sums.items() for at, kib in points)
    first = lines[0][0] if lines else 0
    trial.path("memory").write_text("".join(f"{at - first:.0f} s {role} {kib} KiB\n"
                                            for at, role, kib in lines))


def options_for(trial, tool):
    options = [f"--tool={tool}", "-q", f"--log-file={trial.path('log')}.%p"]
    if tool == "massif":
        options += [f"--massif-out-file={trial.path('massif.out')}.%p",
                    f"--recording-file={trial.path('recording')}.%p",
                    f"--max-recording={MAX_RECORDING}"]
    return options


def trial(trial):
    kind = SERVERS[trial.number // len(TOOLS) % len(SERVERS)]
    tool = TOOLS[trial.number % len(TOOLS)]
    seconds = int(trial.options.target_seconds or (FULL_S if trial.full else SAMPLE_S))
    for command in kind.needs:
        if command not in ("initdb", "pgbench") and not shutil.which(
                command, path=os.environ["PATH"] + ":/usr/sbin"):
            raise Skip(f"{command} is missing")
    server, sums = kind(trial, [trial.muninn, *options_for(trial, tool)]), {}
    server.begin()
    load = trial.start(server.load(seconds))
    while load.poll() is None:
        sample(server, sums)
        time.sleep(min(5, max(0.5, seconds / 200)))
    keep_samples(trial, sums)
    if server.process.poll() is not None:
        raise Found(f"the server ended under load with {server.process.returncode}: "
                    f"{servers.tail(server.log)}")
    if load.returncode not in (0, 124):
        raise Found(f"the client ended with {load.returncode}: {server.load(seconds)}")
    server.process.send_signal(server.end_signal)
    status = server.process.wait(timeout=900)
    if status != 0:
        raise Found(f"{kind.__name__} under {tool} ended with {status}: {servers.tail(server.log)}")
    return f"{kind.__name__.lower()}, {tool}, {seconds} s: " + judge(sums, kind.__name__)


HUNT = Hunt("soak", "servers under load for long, with flat memory", trial, full=6,
            sample=1, jobs=1, timeout_s=14400)
