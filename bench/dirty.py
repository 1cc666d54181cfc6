# SPDX-License-Identifier: MIT
"""How often memcheck's dirty versions run, and what following undefined values costs.

The share is of the instructions that --tool=count counts. The cost is the CPU that memcheck takes
beyond --undef-value-errors=no, in native CPU times. That mode has no dirty versions, and does not
open the red zones of functions either: a program that hardly meets undefined values may pay much.
"""
import re

import programs

LIGHT = "--undef-value-errors=no"


def counters(bench, what, argv, stdin, pattern):
    """{name: count} of what muninn prints, or None."""
    run = bench.run(what, [bench.options.muninn, *argv], stdin)
    if run is None:
        return None
    found = {name.decode(): int(n) for name, n in re.findall(pattern, run.stderr)}
    if run.status != 0 or not found:
        bench.fail(f"{what}: status {run.status}, {len(found)} counters, {run.stderr[:200]!r}")
        return None
    return found


def cost(bench, column, argv, stdin):
    """CPU of memcheck, of its light mode and native, the least of some turns; None: one failed."""
    prefixes = [column.prefix, [*column.prefix, LIGHT], []]
    taken = [[] for _ in prefixes]
    for _ in range(2 if bench.options.quick else 3):
        for prefix, times in zip(prefixes, taken):
            run = bench.run("the cost of dirty versions", [*prefix, *argv], stdin)
            if run is None:
                return None
            times.append(run.cpu_s)
    return [min(times) for times in taken]


def bench_dirty(bench, workloads):
    column = bench.column("memcheck")
    if column is None:
        return None
    print(f"\n{'dirty versions':<20}{'million':>12}{'in dirty':>10}{'guards failed':>15}"
          f"{'steps a dirty':>15}{'V bits cost':>16}")
    print(f"{'':<20}{'instructions':>12}{'versions':>10}{'a million':>15}"
          f"{'instruction':>15}{'x native':>16}")
    rows = {}
    for workload in workloads:
        row = measure_program(bench, column, workload)
        if row is None:
            continue
        rows[workload.name] = row
        print(f"{workload.name:<20}{row['instructions'] / 1e6:>12.0f}{row['share']:>10.2%}"
              f"{row['guards_per_million']:>15.0f}{row['steps_per_instruction']:>15.2f}"
              f"{row['cost']:>16.2f}", flush=True)
    if rows:
        mean = sum(row["share"] for row in rows.values()) / len(rows)
        print(f"{'mean':<32}{mean:>10.2%}")
    return rows


def measure_program(bench, column, workload):
    found = programs.command(bench, workload, quick=True)
    if found is None:
        return None
    argv, stdin = found
    total = counters(bench, f"{workload.name} under count", ["--tool=count", *argv], stdin,
                     rb"count: total (instructions) (\d+)")
    stats = counters(bench, f"{workload.name} under memcheck --stats",
                     ["--tool=memcheck", "-q", "--stats", *argv], stdin,
                     rb"stats: memcheck\.(\w+) (\d+)")
    times = cost(bench, column, argv, stdin)
    if not (total and stats and times):
        return None
    memcheck, light, native = times
    dirty, instructions = stats["dirty_instructions"], total["instructions"]
    return {
        "instructions": instructions,
        **stats,
        "share": dirty / instructions,
        "guards_per_million": stats["guards_failed"] / instructions * 1e6,
        "steps_per_instruction": stats["steps"] / max(dirty, 1),
        "cost": (memcheck - light) / native,
    }
