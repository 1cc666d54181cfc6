# SPDX-License-Identifier: MIT
"""What heap recordings cost: bytes of an event, CPU to write one, time and memory to open and view
them.

Real recordings are made of the programs that allocate most; the large one is generated, because
what counts for its reader is its size. tests/lib/measure_recording.c asks it.
"""
import os
import re

import programs
import targets
import viewing

EVENTS_FULL, EVENTS_QUICK = 125_000_000, 20_000_000  # the former is 1 GiB on disk


def asked(bench, what, argv):
    """{name: value} of `name value unit` lines, or None."""
    run = bench.run(what, argv)
    if run is None:
        return None
    with open(os.path.join(bench.scratch, "stdout"), encoding="ascii") as file:
        found = dict(re.findall(r"^(\S+) ([\d.]+)", file.read(), re.MULTILINE))
    if run.status != 0 or not found:
        bench.fail(f"{what}: status {run.status}, {run.stderr[:200]!r}")
        return None
    return {name: float(value) for name, value in found.items()}


def show(name, value, mark=""):
    print(f"{name:<44}{value:>10} {mark}".rstrip(), flush=True)


def event_bytes(bench, measure_recording, workloads):
    """Plain bytes of an event in recordings of programs."""
    result = {}
    path = os.path.join(bench.scratch, "real.heap")
    for workload in workloads:
        found = programs.command(bench, workload, quick=True)
        if found is None:
            continue
        argv, stdin = found
        prefix = [*bench.column("massif").prefix, f"--recording-file={path}"]
        if bench.run(f"{workload.name} under massif", [*prefix, *argv], stdin) is None:
            continue
        answer = asked(bench, f"the recording of {workload.name}", [measure_recording, path])
        if answer is None:
            continue
        size = result[workload.name] = answer["plain_bytes_per_event"]
        mark = bench.mark(f"plain bytes an event, {workload.name}", size, targets.EVENT_BYTES,
                          "bytes")
        show(f"plain bytes an event, {workload.name}", f"{size:.2f}", mark)
    return result


def written(bench, measure_recording, path):
    """CPU of an event, by the kind of program."""
    answer = asked(bench, "writing recordings", [measure_recording, "--write", path])
    for name, value in (answer or {}).items():
        show(f"CPU to write an event, {name.removeprefix('write_')}, ns", f"{value:.1f}")
    return answer


def opened(bench, measure_recording, path):
    """The large recording: when the first answer is there, and what memory that takes."""
    first = asked(bench, "opening a recording", [measure_recording, path])
    if first is None:
        return None
    ready_ms = first["open"] + first["first_answer"]
    mark = bench.mark("open and first answer, CPU", ready_ms, targets.FIRST_ANSWER_MS, "ms")
    show("open and first answer, CPU ms", f"{ready_ms:.0f}", mark)
    mark = bench.mark("memory of the reader", first["memory"], targets.READER_KIB, "KiB")
    show("memory after all questions, MiB", f"{first['memory'] / 1024:.0f}", mark)
    run = bench.run("muninn heap summary", [bench.options.muninn, "heap", "summary", path],
                    peak=True)
    if run is None or run.status != 0:
        bench.fail("muninn heap summary: no answer")
        return first
    wall_ms = run.wall_s * 1000
    mark = bench.mark("muninn heap summary, wall", wall_ms, targets.FIRST_ANSWER_MS, "ms")
    show("muninn heap summary, wall ms", f"{wall_ms:.0f}", mark)
    mark = bench.mark("muninn heap summary, memory", run.peak_kib, targets.READER_KIB, "KiB")
    show("muninn heap summary, peak MiB", f"{run.peak_kib / 1024:.0f}", mark)
    return {**first, "summary_wall_ms": wall_ms, "summary_peak_kib": run.peak_kib}


def bench_recordings(bench, workloads):
    if bench.column("massif") is None:
        return None
    make, measure = (os.path.join(bench.options.build, "tests", name)
                     for name in ("make_recording", "measure_recording"))
    for program in (make, measure):
        if not os.path.exists(program):
            bench.fail(f"{program} is missing: make unit")
            return None
    print("\nrecordings")
    result = {"event_bytes": event_bytes(bench, measure, [w for w in workloads if w.recorded])}
    path = os.path.join(bench.scratch, "large.heap")
    result["written"] = written(bench, measure, path)
    events = EVENTS_QUICK if bench.options.quick else EVENTS_FULL
    argv = [make, f"--events={events}", "--contexts=20000", "--live=200000", path]
    if asked(bench, "a large recording", argv) is None:
        return result
    size_mib = os.path.getsize(path) / (1 << 20)
    show(f"recording of {events // 1000000} million events, MiB on disk", f"{size_mib:.0f}")
    result["opened"] = opened(bench, measure, path)
    result["viewed"] = viewing.bench_view(bench, path)
    os.unlink(path)
    return result
