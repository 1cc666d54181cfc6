# SPDX-License-Identifier: MIT
"""What `muninn view` needs for a large recording: the first picture, and whatever follows the mouse.

An interaction is judged by the CPU of the server for its answer. Every question is asked of times
that nobody has asked of before, because answers are remembered.
"""
import os
import sys
import time

import targets

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "tests", "http"))

FIRST_PICTURE = ("info", "timeline?points=1200", "tree?metric=peak&at=peak")
RANGE, MOMENT = "from={start}&to={end}", "at={moment}"
SPARKS = "limit=100&spark=64"

# What a person does: the question that the page then asks.
INTERACTIONS = (
    ("timeline, by function", "timeline?points=1200&group=function&to={end}"),
    ("timeline, by library", "timeline?points=1200&group=library&to={end}"),
    ("timeline, by thread", "timeline?points=1200&group=thread&to={end}"),
    ("timeline, zoomed", f"timeline?points=1200&{RANGE}"),
    ("timeline, a filter", "timeline?points=1200&to={end}&function=function_3*"),
    ("flame graph, a range", f"tree?metric=live&{RANGE}"),
    ("flame graph, a moment", f"tree?metric=live&{MOMENT}"),
    ("flame graph, bottom-up", f"tree?bottom_up=1&by_function=1&{RANGE}"),
    ("flame graph, allocations", f"tree?metric=allocations&{RANGE}"),
    ("flame graph, temporary", f"tree?metric=temporary&{RANGE}"),
    ("flame graph, leaked", f"tree?metric=leaked&{RANGE}"),
    ("flame graph, growth", f"tree?metric=growth&{RANGE}"),
    ("flame graph, folded, only my code", f"tree?collapse=1&fold=1&only=!/usr/*&{RANGE}"),
    ("flame graph, a filter", f"tree?function=function_3*&{RANGE}"),
    ("contexts with sparklines, a range", f"contexts?{SPARKS}&{RANGE}"),
    ("contexts with sparklines, a moment", f"contexts?{SPARKS}&sort=peak&{MOMENT}"),
    ("contexts, by function", f"contexts?{SPARKS}&group=function&{RANGE}"),
    ("contexts, by file", f"contexts?{SPARKS}&group=file&sort=allocated&{RANGE}"),
    ("contexts, by library", f"contexts?{SPARKS}&group=library&{RANGE}"),
    ("contexts, by thread", f"contexts?{SPARKS}&group=thread&{RANGE}"),
    ("contexts, searched", f"contexts?{SPARKS}&search=function_12&{RANGE}"),
    ("callers, functions", f"functions?limit=100&{RANGE}"),
    ("callers, one function", f"function?id=17&{RANGE}"),
    ("difference of moments, tree", f"tree?{MOMENT}&base_at={{start}}"),
    ("difference of moments, table", f"contexts?{MOMENT}&base_at={{start}}"),
    ("histograms, a range", f"histogram?{RANGE}"),
    ("histograms, a range and a filter", f"histogram?function=function_3*&{RANGE}"),
    ("histograms, a range of a thread", f"histogram?thread=2&{RANGE}"),
    ("address map, a moment", f"map?{MOMENT}"),
    ("blocks, a moment", "blocks?sort=size&at={start}"),
    ("threads with sparklines, a range", f"threads?spark=64&{RANGE}"),
    ("sources, a range", f"sources?{RANGE}"),
    ("a stack", "stack?context=12"),
)


def cpu_s(pid):
    return time.clock_gettime((~pid << 3) | 2)


def answer_ms(server, query):
    """CPU and wall of one answer."""
    pid = server.process.pid
    cpu, wall = cpu_s(pid), time.monotonic()
    server.api(query)
    return (cpu_s(pid) - cpu) * 1000, (time.monotonic() - wall) * 1000


def show(name, value, mark=""):
    print(f"{name:<44}{value:>10} {mark}".rstrip(), flush=True)


def judged(bench, server, duration_ns):
    result = {}
    for number, (name, query) in enumerate(INTERACTIONS):
        taken = []
        for turn in range(2):
            start = duration_ns * (300 + 2 * number + turn) // 1000
            times = {"start": start, "end": start + duration_ns * 2 // 5,
                     "moment": start + duration_ns // 5}
            taken.append(answer_ms(server, query.format(**times))[0])
        value = result[name] = min(taken)
        mark = bench.mark(f"view, {name}", value, targets.INTERACTION_MS, "ms")
        show(f"view, {name}, CPU ms", f"{value:.0f}", mark)
    return result


def bench_view(bench, path):
    os.environ["BUILD"] = bench.options.build
    os.environ["MUNINN"] = bench.options.muninn
    from server import Server  # it looks at these when it is imported

    began = time.monotonic()
    server = Server(path)
    try:
        for query in FIRST_PICTURE:
            server.api(query)
        picture_ms = (time.monotonic() - began) * 1000
        mark = bench.mark("view, first picture, wall", picture_ms, targets.PICTURE_MS, "ms")
        show("view, first picture, wall ms", f"{picture_ms:.0f}", mark)
        server.wait_for_parts(limit_s=300)
        ready_s = cpu_s(server.process.pid)
        show("view, parts made ready, CPU s", f"{ready_s:.1f}")
        interactions = judged(bench, server, server.api("info")["duration_ns"])
        memory_kib = server.rss_bytes() / 1024
        mark = bench.mark("view, memory", memory_kib, targets.VIEW_KIB, "KiB")
        show("view, memory after all, MiB", f"{memory_kib / 1024:.0f}", mark)
    finally:
        server.stop()
    return {"first_picture_wall_ms": picture_ms, "ready_cpu_s": ready_s,
            "interactions_cpu_ms": interactions, "memory_kib": memory_kib}
