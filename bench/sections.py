# SPDX-License-Identifier: MIT
"""The parts of the bench beside programs: threads, the start, memory, translation, the monitor."""
import re
import statistics
import subprocess

import inputs
import measure
import targets
import workloads
from bench import spread, summary

# Two native threads that need this much longer than one did not have two cores for themselves.
BUSY_SCALING = 1.3
BUSY_RETRIES = 3

START_RUNS_FULL, START_RUNS_QUICK, START_RUNS_OTHERS = 40, 15, 3


def measure_threads(bench, columns):
    """{thread count: {column: summary of wall times}}, or None if a run failed."""
    rounds = workloads.THREADS_QUICK if bench.options.quick else workloads.THREADS_FULL
    program = inputs.program(bench.cache, "threads.c")
    walls = {}
    for count in (1, 2):
        argv = [program, str(count), str(rounds)]
        runs = bench.interleaved(f"threads {count}", argv, columns=columns)
        if runs is None:
            return None
        walls[count] = {name: summary(taken, "wall_s") for name, taken in runs.items()}
    return walls


def bench_threads(bench, _workloads):
    """Wall time of one and of two threads of independent work.

    Only a machine with two idle cores can tell. When native threads do not run in parallel either,
    what is judged is measured again, and in the end shown but not judged.
    """
    walls, columns = {1: {}, 2: {}}, bench.columns
    for _ in range(BUSY_RETRIES):
        again = measure_threads(bench, columns)
        if again is None:
            return None
        for count, row in again.items():
            walls[count].update(row)
        native_scaling = walls[2]["native"]["min_s"] / walls[1]["native"]["min_s"]
        busy = native_scaling > BUSY_SCALING
        if not busy:
            break
        columns = bench.ours()
    print(f"\n{'threads, wall ratio':<24}{'one':>8}{'two':>8}{'two/one':>9}{'noise':>7}")
    result = {"walls": walls, "native_scaling": native_scaling, "busy": busy}
    for column in bench.columns:
        if column.name == "native":
            continue
        one = walls[1][column.name]["min_s"] / walls[1]["native"]["min_s"]
        two = walls[2][column.name]["min_s"] / walls[2]["native"]["min_s"]
        noise = max(walls[n][c]["spread"] for n in (1, 2) for c in ("native", column.name))
        line = f"{column.name:<24}{one:>8.2f}{two:>8.2f}{two / one:>9.2f}{noise:>7.0%} "
        limit = targets.of(column.tool).parallel
        if limit and busy:
            line += f"BUSY (native too: {native_scaling:.2f} x one thread), not judged"
        else:
            line += bench.mark(f"{column.name}, two threads / one thread", two / one, limit, "x")
        print(line.rstrip(), flush=True)
        result[column.name] = {"one": one, "two": two, "relative": two / one}
    return result


def start_walls(bench, column, count):
    """Wall times of `true`, in ms; None if one failed."""
    walls = []
    for _ in range(count):
        run = bench.run(f"true under {column.name}", [*column.prefix, "/bin/true"])
        if run is None:
            return None
        if run.status != 0 or (run.stderr and column.compared):
            bench.fail(f"true under {column.name}: status {run.status}, {run.stderr[:200]!r}")
            return None
        walls.append(run.wall_s * 1000)
    return walls


def bench_start(bench, _workloads):
    """Wall time of `true`."""
    count = START_RUNS_QUICK if bench.options.quick else START_RUNS_FULL
    print(f"\n{'start of true, ms':<24}{'min':>8}{'median':>8}{'90 %':>8}")
    result = {}
    for column in bench.columns:
        walls = start_walls(bench, column, count if column in bench.ours() else START_RUNS_OTHERS)
        if walls is None:
            return result
        low, median = min(walls), statistics.median(walls)
        slow = statistics.quantiles(walls, n=10)[-1]
        mark = bench.mark(f"{column.name}, start of true", median,
                          targets.of(column.tool).start_ms, "ms")
        print(f"{column.name:<24}{low:>8.1f}{median:>8.1f}{slow:>8.1f} {mark}".rstrip(), flush=True)
        result[column.name] = {"min_ms": low, "median_ms": median, "p90_ms": slow}
    return result


def bench_memory(bench, _workloads):
    """What a column adds to the memory of a small program."""
    program = inputs.program(bench.cache, "idle.c")
    print(f"\n{'memory, MiB added':<24}{'peak RSS':>9}{'tree PSS':>9}")
    result, base = {}, None
    for column in bench.columns:
        if not column.compared:
            continue  # its first line is not the program's
        try:
            samples = [
                measure.memory([*column.prefix, program], bench.environment) for _ in range(3)
            ]
        except (measure.MeasureError, OSError) as error:
            bench.fail(f"memory under {column.name}: {error}")
            return result
        peak, pss = (statistics.median(sample) for sample in zip(*samples))
        if base is None:
            base = (peak, pss)
            print(f"{'native (itself)':<24}{peak / 1024:>9.1f}{pss / 1024:>9.1f}")
            result["native"] = {"peak_kib": peak, "pss_kib": pss}
            continue
        added, added_pss = peak - base[0], pss - base[1]
        mark = bench.mark(f"{column.name}, memory added", max(added, added_pss),
                          targets.of(column.tool).small_kib, "KiB")
        line = f"{column.name:<24}{added / 1024:>9.1f}{added_pss / 1024:>9.1f} {mark}"
        print(line.rstrip(), flush=True)
        result[column.name] = {"added_peak_kib": added, "added_tree_pss_kib": added_pss}
    return result


def bench_translation(bench, _workloads):
    """Nanoseconds per translated instruction, as --stats tells, on the program with most code."""
    row = next(workload for workload in workloads.WORKLOADS if workload.name == "cc1")
    argv, stdin = row.command(bench.cache, row.quick)
    per_instruction, count = [], 0
    for _ in range(3):
        command = [bench.options.muninn, "--tool=none", "--stats", *argv]
        run = bench.run("muninn --stats", command, stdin)
        if run is None:
            return None
        stats = dict(re.findall(rb"^stats: (\S+)\s+(\d+)", run.stderr, re.MULTILINE))
        count = int(stats.get(b"translate.instructions", 0))
        if run.status != 0 or count == 0 or b"translate.ns" not in stats:
            bench.fail("muninn --stats printed no translate.instructions and translate.ns")
            return None
        per_instruction.append(int(stats[b"translate.ns"]) / count)
    low = min(per_instruction)
    mark = bench.mark("translation", low, targets.TRANSLATE_NS, "ns/instruction")
    print(
        f"\ntranslation: {low:.0f} ns an instruction ({count} instructions of cc1, "
        f"noise {spread(per_instruction):.0%}) {mark}",
        flush=True,
    )
    return {"ns_per_instruction": low, "instructions": count}


def timed(bench, what, argv, count):
    """The least wall time of `count` runs of `argv`, in ms; None if one failed."""
    walls = []
    for _ in range(count):
        run = bench.run(what, argv)
        if run is None:
            return None
        if run.status != 0:
            bench.fail(f"{what}: status {run.status}, {run.stderr[:200]!r}")
            return None
        walls.append(run.wall_s * 1000)
    return min(walls)


def bench_monitor(bench, _workloads):
    """The wire, the cost of a finding that is new and of one that is known, the start."""
    count = 3 if bench.options.quick else 7
    wire = inputs.wire_program(bench.cache)
    records = max(float(subprocess.check_output([wire])) for _ in range(count))
    prefix = [bench.options.muninn, "--tool=findingtest", "-q", "--error-limit=no",
              "--log-file=/dev/null"]
    program = inputs.program(bench.cache, "findings.c")
    none = timed(bench, "no finding", [*prefix, program, "0"], count)
    first = timed(bench, "the first finding", [*prefix, program, "1"], count)
    new = timed(bench, "new findings", [*prefix, program, "5001"], count)
    known = timed(bench, "known findings", [*prefix, program, "1000001", "1"], count)
    start = timed(bench, "true", [*prefix, "/bin/true"], 2 * count)
    if None in (none, first, new, known, start):
        return None
    new_us, known_ns = (new - first) / 5000 * 1000, (known - first) / 1000000 * 1e6
    # A target is an upper limit, so the records are judged by what one of them takes.
    mark = bench.mark("a record on the wire", 1000 / records, targets.RECORD_NS, "ns")
    print("\nmonitor")
    print(f"{'records, million a second':<32}{records:>10.1f} {mark}")
    print(f"{'new finding, us':<32}{new_us:>10.1f}")
    print(f"{'known finding, ns':<32}{known_ns:>10.0f}")
    print(f"{'first finding, ms':<32}{first - none:>10.1f}")
    print(f"{'start of true, ms':<32}{start:>10.1f}", flush=True)
    return {"records_million_per_s": records, "new_finding_us": new_us,
            "known_finding_ns": known_ns, "first_finding_ms": first - none, "start_ms": start}
