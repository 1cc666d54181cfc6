# SPDX-License-Identifier: MIT
"""What --quarantine=exact costs beside brief, the default: programs that free a lot, and redis
under load.

All of redis-server's CPU counts and none of redis-benchmark's, which asks it over a socket.
"""
import os
import shutil
import subprocess
import time

import bench as base
import measure
import programs

MODES = ("brief", "exact")
NAMES = ("c++ churn", "rust churn", "sqlite3", "jq", "python3")
REQUESTS_FULL, REQUESTS_QUICK = 20000, 3000
START_S, LOAD_S = 120, 900  # only what hangs takes that long
KEYS, DATA_BYTES, PIPELINED = 10000, 100, 16
COMMANDS = "set,get,incr,lpush,lpop,sadd,hset,mset"


def redis(bench, prefix, requests):
    """One server under load; its CPU and its peak of memory, or an exception."""
    place = os.path.join(bench.scratch, "redis")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    socket = os.path.join(place, "socket")
    server = subprocess.Popen(
        [*prefix, "/usr/bin/redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
         "--appendonly", "no", "--dir", place],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=bench.environment, start_new_session=True)
    try:
        until = time.monotonic() + START_S
        while not os.path.exists(socket):
            if time.monotonic() > until or server.poll() is not None:
                raise measure.MeasureError("redis-server does not start")
            time.sleep(0.05)
        subprocess.run(["redis-benchmark", "-s", socket, "-q", "-n", str(requests), "-c", "20",
                        "-r", str(KEYS), "-d", str(DATA_BYTES), "-P", str(PIPELINED),
                        "-t", COMMANDS], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=True, timeout=LOAD_S)
        peak_kib = measure.field_kib(f"/proc/{server.pid}/status", "VmHWM")
        subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"],
                       stdout=subprocess.DEVNULL, check=False, timeout=START_S)
        status, cpu_s, _ = measure.reap_tree(server.pid, START_S)
        server.returncode = status
        if status != 0:
            raise measure.MeasureError(f"redis-server ended with {status}")
        return cpu_s, peak_kib
    finally:
        if server.returncode is None:
            measure.kill_tree(server.pid)
            server.returncode = -1


def measure_redis(bench, prefixes):
    requests = REQUESTS_QUICK if bench.options.quick else REQUESTS_FULL
    found = {name: [] for name in prefixes}
    for _ in range(3):
        for name, prefix in prefixes.items():
            try:
                found[name].append(redis(bench, prefix, requests))
            except (measure.MeasureError, OSError, subprocess.SubprocessError) as error:
                bench.fail(f"redis, {name}: {error}")
                return None
    return found


def measure_program(bench, workload, prefixes):
    argv_stdin = programs.command(bench, workload, bench.options.quick)
    if argv_stdin is None:
        return None
    argv, stdin = argv_stdin
    found = {name: [] for name in prefixes}
    for _ in range(3):
        for name, prefix in prefixes.items():
            run = bench.run(f"{workload.name}, {name}", [*prefix, *argv], stdin, peak=True)
            if run is None:
                return None
            found[name].append((run.cpu_s, run.peak_kib))
    return found


def show(name, found):
    """The row of one program."""
    least = {mode: min(cpu for cpu, _ in rows) for mode, rows in found.items()}
    row = {mode: {"ratio": least[mode] / least["native"],
                  "peak_kib": min(peak for _, peak in found[mode]),
                  "spread": base.spread([cpu for cpu, _ in found[mode]])} for mode in MODES}
    row["price"] = least["exact"] / least["brief"] - 1
    print(f"{name:<20}" + "".join(f"{row[mode]['ratio']:>9.2f}{row[mode]['spread']:>7.0%}"
                                  for mode in MODES) + f"{row['price']:>9.0%}" +
          "".join(f"{row[mode]['peak_kib'] / 1024:>9.0f}" for mode in MODES), flush=True)
    return row


def bench_quarantine(bench, workloads):
    column = bench.column("memcheck")
    if column is None:
        return None
    prefixes = {"native": [], **{mode: [*column.prefix, f"--quarantine={mode}"] for mode in MODES}}
    print(f"\n{'quarantine':<20}{'brief':>9}{'noise':>7}{'exact':>9}{'noise':>7}{'price':>9}"
          f"{'MiB':>9}{'MiB':>9}")
    rows = {}
    for workload in workloads:
        found = measure_program(bench, workload, prefixes) if workload.name in NAMES else None
        if found:
            rows[workload.name] = show(workload.name, found)
    if shutil.which("redis-server") and shutil.which("redis-benchmark"):
        found = measure_redis(bench, prefixes)
        if found:
            rows["redis"] = show("redis", found)
    else:
        print("redis               skipped: redis-server or redis-benchmark is not installed")
    return rows
