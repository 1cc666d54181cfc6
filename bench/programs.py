# SPDX-License-Identifier: MIT
"""The main table: CPU of every workload in every column, as ratios to native, and what follows."""
import os

import targets
from bench import geomean, noise_text, summary
from workloads import WORKLOADS

WIDTH = 19


def command(bench, workload, quick):
    """(argv, stdin) of a workload, or None with the failure noted when it is not installed."""
    argv, stdin = workload.command(bench.cache, workload.quick if quick else workload.full)
    if os.path.exists(argv[0]):
        return argv, stdin
    bench.fail(f"{workload.name}: {argv[0]} is missing (Debian package {workload.package})")
    return None


def bench_programs(bench, selected):
    others = [column for column in bench.columns if column.name != "native"]
    print(f"\n{'CPU ratio to native':<20}{'native s':>9}{'noise':>6}", end="")
    print("".join(f"{column.name:>{WIDTH}}" for column in others))
    rows = {}
    for workload in selected:
        found = command(bench, workload, bench.options.quick)
        runs = bench.interleaved(workload.name, *found) if found else None
        if runs is None:
            continue
        row = {name: summary(taken, "cpu_s") for name, taken in runs.items()}
        for name, taken in runs.items():
            row[name]["wall_min_s"] = min(run.wall_s for run in taken)
            row[name]["ratio"] = row[name]["min_s"] / row["native"]["min_s"]
            row[name]["wall_ratio"] = row[name]["wall_min_s"] / row["native"]["wall_min_s"]
        rows[workload.name] = row
        print_program(bench, workload, row, others)
    result = {"rows": rows}
    engine_set = [w for w in selected if w.in_set and w.name in rows]
    if engine_set:
        complete = len(engine_set) == sum(w.in_set for w in WORKLOADS)
        result.update(print_geomeans(bench, [rows[w.name] for w in engine_set], others, complete))
        print("geomeans over "
              + ("the engine's set, its churns included" if complete else
                 f"{len(engine_set)} programs, not the whole of the engine's set: not judged")
              + "".join(f"; without {w.name}" for w in selected if not w.in_set))
    print_heaptrack(bench, rows, [w for w in selected if w.churn and w.name in rows])
    if any(not column.compared for column in others):
        print("heaptrack prints into the program's output: only its status is compared")
    return result


def print_program(bench, workload, row, others):
    native = row["native"]
    line = f"{workload.name:<20}{native['min_s']:>9.2f}{noise_text(native):>6}"
    for column in others:
        cell = row[column.name]
        mark = bench.mark(f"{column.name}, {workload.name} CPU ratio", cell["ratio"],
                          targets.of_program(column.tool, workload), "x")
        text = f"{cell['ratio']:.2f} {mark:<4} {noise_text(cell):>4}"
        line += f"{text:>{WIDTH}}"
    print(line, flush=True)


def print_geomeans(bench, rows, others, judged):
    """The geomeans of CPU and of wall time, and how much faster muninn is than Valgrind."""
    result = {}

    def limit_of(column, name):
        return getattr(targets.of(column.tool), name) if judged else None

    for title, field, limit in (("geomean CPU", "ratio", "geomean"),
                                ("geomean wall", "wall_ratio", "wall_geomean")):
        means = {c.name: geomean([row[c.name][field] for row in rows]) for c in others}
        line = f"{title:<35}"
        for column in others:
            mean = means[column.name]
            mark = bench.mark(f"{column.name}, {title}", mean, limit_of(column, limit), "x")
            line += f"{f'{mean:.2f} {mark:<4}     ':>{WIDTH}}"
        print(line.rstrip())
        result[limit] = means
    line, result["faster"] = f"{'times faster than valgrind':<35}", {}
    for column in others:
        theirs = result["geomean"].get(f"valgrind {column.tool}")
        if column.tool is None or theirs is None:
            line += " " * WIDTH
            continue
        faster = result["faster"][column.tool] = theirs / result["geomean"][column.name]
        mark = bench.mark(f"{column.name}, times faster than valgrind", faster,
                          limit_of(column, "faster"), "x", at_least=True)
        line += f"{f'{faster:.2f} {mark:<4}     ':>{WIDTH}}"
    if result["faster"]:
        print(line.rstrip())
    return result


def print_heaptrack(bench, rows, churns):
    for column in bench.columns:
        if not targets.of(column.tool).below_heaptrack:
            continue
        for workload in churns:
            row = rows[workload.name]
            if "heaptrack" not in row:
                continue
            relative = row[column.name]["min_s"] / row["heaptrack"]["min_s"]
            what = f"{column.name} / heaptrack, {workload.name}"
            print(f"{what:<44}{relative:>10.2f} {bench.mark(what, relative, 1.0, 'x')}")


def bench_large(bench, workloads):
    """Peak memory of large programs, at full scale always: the sum over the process tree.

    In quick mode only where something is promised."""
    columns = [column for column in bench.ours()
               if not (bench.options.quick and column.tool and not targets.of(column.tool).large)]
    print(f"\n{'peak RSS of tree, MiB':<24}" + "".join(f"{c.name:>{WIDTH}}" for c in columns))
    result = {}
    for workload in (w for w in workloads if w.large):
        found = command(bench, workload, quick=False)
        if not found:
            continue
        row, line = {}, f"{workload.name:<24}"
        for column in columns:
            run = bench.run(f"{workload.name} under {column.name}", [*column.prefix, *found[0]],
                            found[1], peak=True)
            if run is None or run.status != 0:
                bench.fail(f"peak of {workload.name} under {column.name}: no result")
                return result
            row[column.name] = run.peak_kib
            limits = targets.of(column.tool)
            limit = (limits.large * row["native"] + limits.large_more_kib) / 1024 \
                if limits.large else None
            mark = bench.mark(f"{column.name}, {workload.name} peak", run.peak_kib / 1024, limit,
                              "MiB")
            line += f"{f'{run.peak_kib / 1024:.0f} {mark:<4}':>{WIDTH}}"
        result[workload.name] = row
        print(line, flush=True)
    return result
