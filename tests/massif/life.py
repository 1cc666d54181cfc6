# SPDX-License-Identifier: MIT
"""What can be asked while a program runs, and ends of every kind."""

import fcntl
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

from profiling import ENV, KNOWN, MUNINN, Run, build, check, summary, unequal


def ctl(pid, *words):
    return subprocess.run([MUNINN, "ctl", str(pid), *words], capture_output=True, text=True,
                          timeout=300, check=False, env=ENV)


def wait_until(condition, seconds=60):
    """The first true value of condition(), or its last."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def step(run, number):
    run.process.stdin.write(b"x")
    run.process.stdin.flush()
    return unequal("step", run.line(), f"step {number}\n")


def while_it_runs():
    run = Run(KNOWN, "waits", stdin=subprocess.PIPE, wait=False)
    run.line()

    def snapshot():
        done = ctl(run.pid, "snapshot")
        profile = run.profile("massif.vgdb.out")
        return unequal("status", done.returncode, 0) or \
            unequal("snapshots", [(s.kind, s.heap) for s in profile.snapshots], [("empty", 1000)])
    check("ctl snapshot writes what is live", snapshot)

    def detailed():
        why = step(run, 2)
        done = ctl(run.pid, "detailed_snapshot", "file one")
        profile = run.profile("file one")
        return why or unequal("status", done.returncode, 0) or \
            unequal("top", profile.snapshots[0].top(), {"allocate": 1000 + 99 * 2000})
    check("ctl detailed_snapshot has a tree", detailed)

    def top():
        why = step(run, 3)
        done = ctl(run.pid, "heap_top", "5")
        answer = json.loads(done.stdout)
        first = answer["contexts"][0]
        heap = [c for c in answer["contexts"] if c["space"] == "heap"]
        functions = [f["function"] for f in heap[0]["frames"]]
        return why or unequal("bytes", answer["heap"]["bytes"], 1000 + 49 * 2000) or \
            unequal("peak", answer["heap"]["peak_bytes"], 1000 + 99 * 2000) or \
            unequal("temporary", answer["temporary"], 5001) or \
            unequal("rows", len(answer["contexts"]), 3) or \
            unequal("frames", functions[:3], ["allocate", "waits", "main"]) or \
            ("" if first["bytes"] >= heap[0]["bytes"] else "not sorted") or \
            ("" if answer["rss_bytes"] > 0 else "no RSS")
    check("ctl heap_top gives live numbers", top)

    def order():
        done = ctl(run.pid, "heap_top", "3 temporary")
        bad = ctl(run.pid, "heap_top", "3 nonsense")
        return unequal("status", (done.returncode, bad.returncode), (0, 1)) or \
            unequal("growth", json.loads(done.stdout)["contexts"][0]["growth_bytes"], 0)
    check("heap_top in another order, and growth since it was asked before", order)

    def everything():
        ctl(run.pid, "all_snapshots", "all")
        return unequal("peak", run.profile("all").peak.heap, 1000 + 99 * 2000)
    check("ctl all_snapshots has the peak", everything)

    def wrong_place():
        done = ctl(run.pid, "snapshot", "/proc/no/such")
        return "" if done.returncode == 1 and "No such" in done.stdout else done.stdout
    check("a file that cannot be written is an answer", wrong_place)
    run.end()
    check("the run ends as if nothing had been", lambda: unequal("status", run.status, 0))

    def rss():
        run = Run(KNOWN, "resident", stdin=subprocess.PIPE, wait=False)
        run.line()
        found = []  # it is looked at now and then

        def is_right():
            found.append(json.loads(ctl(run.pid, "heap_top").stdout)["rss_bytes"] >> 20)
            return 96 <= found[-1] < 96 + 8
        is_so = wait_until(is_right)
        run.end()
        return "" if is_so else f"{found[-1]} MiB"
    check("RSS is the program's, without the engine", rss)

    def rss_peak():
        run = Run(KNOWN, "waits", stdin=subprocess.PIPE, wait=False)
        run.line()
        found = []

        def is_right():
            answer = json.loads(ctl(run.pid, "heap_top").stdout)
            found[:] = answer["rss_bytes"], answer["rss_peak_bytes"]
            return 0 < found[0] <= found[1] < found[0] + (2 << 20)
        is_so = wait_until(is_right)
        run.end()
        return "" if is_so else f"{found[0]} bytes, the peak {found[1]}"
    check("so is its peak", rss_peak)

    def request():
        run = Run(build("asks"))
        return unequal("status", run.status, 0) or \
            unequal("live", run.profile("by-request").snapshots[0].heap, 4321)
    check("the program itself asks", request)

    def when():
        run = Run(KNOWN, "never_frees", options=("--snapshot-when=heap>5M", "--max-snapshots=10",
                                                 "--time-unit=B"))
        over = [s for s in run.profile().snapshots if 0 <= s.heap - (5 << 20) < 16 * 1001]
        return unequal("snapshots just over 5M", len(over), 1)
    check("--snapshot-when keeps the moment", when)

    def every():
        for seconds in (2.6, 10, 60):  # a busy machine may be late
            process = Run(KNOWN, "until_killed", wait=False,
                          options=("--snapshot-every=1", "--time-unit=ms", "--max-snapshots=10"))
            while process.line() != "live 4000\n":
                pass
            time.sleep(seconds)
            process.process.send_signal(signal.SIGTERM)
            process.end()
            times = [s.time for s in process.profile().snapshots]
            if sum(time > 900 for time in times) >= 2:
                return ""
        return str(times)
    check("--snapshot-every keeps one every second", every)


def wait_for(path):
    wait_until(lambda: os.path.exists(path))


def settled(run, name=None):
    """The monitor may still be writing when the client has been killed."""
    def is_whole():
        try:
            return run.profile(name)
        except (OSError, ValueError, IndexError):
            return None
    return wait_until(is_whole) or run.profile(name)


def ended(run):
    """The summary of a recording that has been closed."""
    def is_closed():
        try:
            found = summary(run)
            return None if found["end"].startswith("goes on") else found
        except (ValueError, subprocess.CalledProcessError):
            return None
    return wait_until(is_closed) or summary(run)


def ends():
    def killed():
        generator = random.Random(5)
        for _ in range(6):
            run = Run(KNOWN, "until_killed", wait=False)
            text = "".join(run.line() for _ in range(generator.randrange(1, 3000)))
            run.process.kill()
            run.end()
            count = int(re.findall(r"live (\d+)\n", text + run.out)[-1])
            profile = settled(run)
            blocks = profile.snapshots[-1].of("allocate") // 1000
            if not count <= blocks <= count + 1:
                return f"{blocks} blocks in the profile, {count} said"
            recorded = ended(run)
            if recorded["end"] != "without notice, as by SIGKILL":
                return recorded["end"]
            if recorded["live_bytes"] != profile.snapshots[-1].heap:
                return f"{recorded['live_bytes']} bytes in the recording"
        return ""
    check("kill -9 at random moments loses nothing", killed)

    def crashed():
        run = Run(KNOWN, "crashes")
        return unequal("status", run.status, -signal.SIGABRT) or \
            unequal("end", ended(run)["end"], f"killed by signal {signal.SIGABRT:d}") or \
            unequal("peak", settled(run).peak.of("allocate"), 12345)
    check("a program that aborts leaves its profile", crashed)

    def lasted():
        # Names are looked up when the program has ended; that is not its time. A busy machine may
        # part the last snapshot from the end, so the nearest of some runs counts.
        apart = []
        for _ in range(8):
            run = Run(sys.executable, "-c", "pass", options=("--time-unit=ms",))
            last = settled(run).snapshots[-1].time
            apart.append(ended(run)["duration_ns"] / 1e6 - last)
            if 0 <= apart[-1] < 2:
                return ""
        return f"the recording ends so many ms behind massif.out: {apart}"
    check("the recording ends when the program does", lasted)

    def executed():
        run = Run(KNOWN, "executes")
        return unequal("status", run.status, 0) or \
            unequal("end", ended(run)["end"], "another program went on (execve)") or \
            unequal("peak", settled(run).peak.of("allocate"), 12345)
    check("a program that executes another leaves its profile", executed)

    def traced():
        run = Run(KNOWN, "executes", options=("--trace-children=yes",))
        before = settled(run, f"massif.out.{run.pid}.1")
        after = settled(run)
        wait_for(run.path(f"muninn.heap.{run.pid}.1"))
        return unequal("first", before.peak.of("allocate"), 12345) or \
            unequal("second", after.cmd, "true") or \
            unequal("recordings", sorted(n for n in os.listdir(run.folder) if "heap" in n),
                    [f"muninn.heap.{run.pid}", f"muninn.heap.{run.pid}.1"])
    check("with --trace-children=yes both programs leave their files", traced)

    def parent_and_twin(program, *options):
        run = Run(KNOWN, program, options=options)
        wait_until(lambda: len([n for n in os.listdir(run.folder) if "massif.out." in n]) == 2)
        names = [n for n in os.listdir(run.folder) if n.startswith("massif.out.")]
        child = [n for n in names if n != f"massif.out.{run.pid}"]
        if len(child) != 1:
            raise ValueError(f"files: {names}")
        return settled(run), settled(run, child[0])

    def forked():
        parent, twin = parent_and_twin("forks")
        return unequal("parent", parent.snapshots[-1].of("allocate"), 5900) or \
            unequal("child's peak", twin.peak.of("allocate"), 5000) or \
            unequal("child's end", twin.snapshots[-1].of("allocate"), 700)
    check("a fork child goes on with its parent's blocks, in a file of its own", forked)

    def one_name():
        run = Run(KNOWN, "forks", options=("--massif-out-file=one.out", "--recording-file=one.heap"))
        wait_until(lambda: len(os.listdir(run.folder)) == 4)
        child = [n for n in os.listdir(run.folder) if n.startswith("one.out.")][0][len("one.out."):]
        parents, childs = (summary(run, f"one.heap{end}")["pid"] for end in ("", "." + child))
        return unequal("parent's", settled(run, "one.out").snapshots[-1].of("allocate"), 5900) or \
            unequal("child's", settled(run, "one.out." + child).snapshots[-1].of("allocate"), 700) or \
            unequal("recordings are of", [parents, childs], [run.pid, int(child)])
    check("a name without %p is the parent's, and its child's has the process id behind it", one_name)

    def busy():
        run = Run(KNOWN, "deep", options=("--recording-file=busy.heap",))
        held = open(run.path("busy.heap"), "rb")
        fcntl.flock(held, fcntl.LOCK_EX)
        before = held.read()
        done = subprocess.run([MUNINN, "--tool=massif", "--recording-file=busy.heap", KNOWN, "deep"],
                              cwd=run.folder, capture_output=True, text=True, check=True, env=ENV)
        other = [n for n in os.listdir(run.folder) if n.startswith("busy.heap.")]
        with open(run.path("busy.heap"), "rb") as file:
            after = file.read()
        return unequal("other names", len(other), 1) or unequal("the file", after == before, True) or \
            ("" if f"busy.heap{other[0][9:]}: another process is writing" in done.stderr else done.stderr)
    check("a recording that another process is writing stays as it is", busy)

    def overtaken():
        for _ in range(3):
            parent, twin = parent_and_twin("forks_and_goes_on")
            why = unequal("parent", parent.snapshots[-1].top(), {"allocate": 5000, "in_parent": 900}) \
                or unequal("child", twin.snapshots[-1].top(), {"allocate": 5000, "in_child": 700})
            if why:
                return why
        parent, twin = parent_and_twin("forks_and_goes_on", "--pages-as-heap=yes")
        return unequal("pages", parent.peak.heap - twin.peak.heap, 7 << 20)
    check("what a parent allocates after the fork is not its child's", overtaken)

    def undone():
        parent, twin = parent_and_twin("forks_and_frees", "--threshold=0")
        why = unequal("parent", parent.snapshots[-1].of("allocate"), 48 * 5000) or \
            unequal("child's peak", twin.peak.top(), {"allocate": 100 * 5000, "in_child": 700}) or \
            unequal("child", twin.snapshots[-1].top(), {"allocate": 99 * 5000, "in_child": 700})
        if why:
            return why
        parent, twin = parent_and_twin("forks_and_frees", "--pages-as-heap=yes")
        def mapped(snapshot):
            return snapshot.of("forks_and_frees") - snapshot.of("allocate")
        return unequal("pages", mapped(twin.peak), 7 << 20) or \
            unequal("parent's", mapped(parent.snapshots[-1]), 0)
    check("what a parent frees after the fork is its child's still", undone)

    def orphaned():
        parent, twin = parent_and_twin("forks_and_ends")
        return unequal("parent", parent.peak.of("allocate"), 5300) or \
            unequal("child's peak", twin.peak.top(), {"allocate": 5300}) or \
            unequal("child's end", twin.snapshots[-1].top(), {"allocate": 300, "in_child": 700})
    check("a fork child goes on with the blocks of a parent that has ended", orphaned)

    def filled():
        for _ in range(8):
            _, twin = parent_and_twin("fills_and_forks")
            why = unequal("child", twin.snapshots[-1].of("allocate"), 1000000) or \
                unequal("child", twin.snapshots[-1].of("in_child"), 700000)
            if why:
                return why
        return ""
    check("a fork child has what its parent did immediately before", filled)
