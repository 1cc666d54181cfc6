# SPDX-License-Identifier: MIT
"""How long a search for leaks takes in a heap of many blocks in disorder."""
import os

import inputs
import targets

BLOCKS_FULL, BLOCKS_QUICK = 10_000_000, 1_000_000
CASES = {"kept": "one variable holds all", "lost": "all are lost"}


def searched(bench, column, argv):
    """{case: (wall, CPU, CPU of the caller)} in seconds, or None."""
    run = bench.run(f"leaks under {column.name}", [*column.prefix, *argv])
    if run is None:
        return None
    with open(os.path.join(bench.scratch, "stdout"), encoding="ascii") as file:
        rows = [line.split() for line in file]
    found = {row[0]: tuple(float(value) for value in row[1:]) for row in rows if len(row) == 4}
    if run.status != 0 or set(found) != set(CASES):
        bench.fail(f"leaks under {column.name}: status {run.status}, {run.stderr[:200]!r}")
        return None
    return found


def bench_leaks(bench, _workloads):
    """What a search takes under memcheck. On processors with other work the CPU of the thread
    that asks is what it would take alone: that is judged, and only at full size."""
    count = BLOCKS_QUICK if bench.options.quick else BLOCKS_FULL
    argv = [inputs.program(bench.cache, "leaks.c"), str(count)]
    limit = None if bench.options.quick else targets.LEAKS_S
    result = {"blocks": count}
    print(f"\n{f'leaks, {count} blocks, s':<44}{'wall':>8}{'CPU':>8}{'caller':>8}")
    for column in bench.columns:
        if not column.name.endswith(" memcheck"):
            continue
        best = None
        for _ in range(min(column.repetitions, 3)):
            found = searched(bench, column, argv)
            if found is None:
                return result
            best = best or found
            best = {case: min(best[case], found[case], key=lambda row: row[2]) for case in CASES}
        for case, words in CASES.items():
            wall, cpu, own = best[case]
            name = f"{column.name}, {words}"
            mark = bench.mark(f"a search for leaks, {words}", own, limit, "s") if column.tool else ""
            print(f"{name:<44}{wall:>8.2f}{cpu:>8.2f}{own:>8.2f} {mark}".rstrip(), flush=True)
        result[column.name] = best
    return result
