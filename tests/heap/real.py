# SPDX-License-Identifier: MIT
"""Recordings of a real program, made by --tool=massif."""
import glob
import json
import os
import shutil
import subprocess
import time

from recount import Recount, live_rows
from suite import COMMANDS, HERE, MUNINN, WORK, answer, check, heap, path, same, skip, sql


def record(program, *options):
    """The recording of a run, or None where the tool is not there."""
    before = set(glob.glob(path("muninn.heap.*")))
    done = subprocess.run([MUNINN, "--tool=massif", *options, program], cwd=WORK, check=False,
                          capture_output=True, text=True, timeout=300, errors="replace")
    made = set(glob.glob(path("muninn.heap.*"))) - before
    if not made:
        print(done.stderr[-500:])
    return made.pop() if made else None


def real():
    program = path("real")
    subprocess.run(["gcc", "-O0", "-g", "-pthread", "-o", program, os.path.join(HERE, "real.c")],
                   check=True)
    file = record(program)
    if not file:
        skip("a real recording", "--tool=massif makes none")
        return
    rows = {r["where"].split(" ")[0]: r for r in
            answer("top", file, "--metric=allocations", "--by=function")["groups"]}
    same("a real run: allocations", {n: (rows[n]["allocations"], rows[n]["allocated_bytes"])
                                     for n in ("keep_one", "churn", "spike")},
         {"keep_one": (200, 200000), "churn": (800, 300 * 64 + 500 * 32),
          "spike": (1, 5 << 20)})
    same("a real run: temporary", rows["churn"]["temporary"], 800)
    largest = answer("top", file)["groups"][0]
    check("a real run: the peak is the spike", largest["where"].startswith("spike (real.c:") and
          largest["value"] == 5 << 20, str(largest)[:300])
    same("a real run: live at the end", rows["keep_one"]["live_bytes"], 200000)
    truth = Recount(file)
    same("a real run: the peak of the events",
         sql(file, "SELECT heap_bytes FROM snapshots WHERE reason = 'peak'"), [(truth.peak()[0],)])
    same("a real run: what is live",
         live_rows(answer("top", file, "--at=end")["groups"]), truth.live(truth.last_ns))
    for command in COMMANDS:
        done = heap(command, file)
        check(f"a real run: {command}", done.returncode == 0 and done.stdout and not done.stderr,
              done.stderr.decode()[:300])
    if shutil.which("go"):
        heap("export", "--format=pprof", "-o", path("real.pprof"), file)
        done = subprocess.run(["go", "tool", "pprof", "-top", path("real.pprof")], check=False,
                              capture_output=True, text=True, env={**os.environ, "HOME": WORK})
        same("a real run: pprof knows the program", done.stdout.split("\n")[0], "File: real")
    else:
        skip("a real run: pprof knows the program", "there is no go")
    live()
    again = record(program)
    found = answer("diff", f"{file}@end", f"{again}@end")
    same("a real run: two runs of a program hold the same", found["changes"], [])
    versions = [path(f"real-{version}") for version in ("1.0", "1.1")]
    for version in versions:
        subprocess.run(["gcc", "-O0", "-pthread", "-o", version, os.path.join(HERE, "real.c")],
                       check=True)
    found = answer("diff", *map(record, versions), "--metric=allocations")
    same("a real run: another name of a program without lines is no other program",
         found["changes"], [])


def live():
    """A recording that is still written, and that of a program that was killed."""
    program = path("slow")
    subprocess.run(["gcc", "-O0", "-g", "-o", program, os.path.join(HERE, "slow.c")], check=True)
    before = set(glob.glob(path("muninn.heap.*")))
    running = subprocess.Popen([MUNINN, "--tool=massif", "-q", program], cwd=WORK)
    made = set()

    def total_from(bytes_):
        """What it holds, as soon as that is so much."""
        nonlocal made
        total, deadline = 0, time.monotonic() + 120
        while time.monotonic() < deadline and total < bytes_:
            time.sleep(0.1)
            made = set(glob.glob(path("muninn.heap.*"))) - before
            done = heap("top", *made, "--at=end", "--json") if made else None
            if done and done.returncode == 0:
                total = json.loads(done.stdout)["total"]
        return total

    first = total_from(100000)
    second = total_from(first + 500000)
    check("a run that goes on is read", first >= 100000 and second >= first + 500000,
          f"{first} bytes, {second} bytes")
    running.kill()
    running.wait()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = answer("leaks", *made)
        if found["growing"] and found["growing"][0]["where"].startswith("main (slow.c:"):
            break
        time.sleep(0.1)
    row = (found["growing"] or [{}])[0]
    check("a run that was killed: what grew is found, with its name",
          row.get("where", "").startswith("main (slow.c:") and row["live_bytes"] >= second, str(row))
