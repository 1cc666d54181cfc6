# SPDX-License-Identifier: MIT
"""What the interface for tools costs, as ratios to --tool=none.

Exact counters are those of --tool=count, four at every instruction; the trace is one of all accesses
to memory, through buffers (bench/src/trace_tool.c).
"""
import os

import inputs
import programs
import targets
from bench import Column, geomean

TOOLS = ("count", "trace")


def columns(bench):
    log = "--log-file=/dev/null"
    muninn = bench.options.muninn
    trace = inputs.tool(bench.cache, "trace_tool.c")
    repetitions = bench.ours()[0].repetitions
    return [
        Column("native", [], 1),
        Column("none", [muninn, "--tool=none", log], repetitions),
        Column("count", [muninn, "--tool=count", log], repetitions),
        Column("trace", [muninn, f"--tool={os.path.abspath(trace)}", log], repetitions),
    ]


def bench_tools(bench, workloads):
    """CPU of each tool on the engine's set, over that of none."""
    table = columns(bench)
    print(f"\n{'tools, CPU over none':<24}{'count':>8}{'trace':>8}")
    rows = {}
    for workload in workloads:
        found = programs.command(bench, workload, quick=True) if workload.in_set else None
        runs = bench.interleaved(workload.name, *found, columns=table) if found else None
        if runs is None:
            continue
        least = {name: min(run.cpu_s for run in taken) for name, taken in runs.items()}
        rows[workload.name] = {tool: least[tool] / least["none"] for tool in TOOLS}
        print(f"{workload.name:<24}" + "".join(f"{rows[workload.name][t]:>8.2f}" for t in TOOLS),
              flush=True)
    if not rows:
        return rows
    line = f"{'geomean':<24}"
    for tool in TOOLS:
        mean = geomean([row[tool] for row in rows.values()])
        limit = targets.OVER_NONE[tool]
        line += f"{mean:>8.2f} " + bench.mark(f"{tool} over none, geomean", mean, limit, "x")
    print(line)
    return rows
