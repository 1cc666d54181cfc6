# SPDX-License-Identifier: MIT
"""Programs of which every number is known."""

import re

from profiling import KNOWN, Run, build, check, queried, summary, unequal


def exact_peak(program, top, *options):
    def test():
        run = Run(KNOWN, program, options=options)
        profile = run.profile()
        if run.status:
            return f"status {run.status}: {run.err}"
        if not profile.peak:
            return "no peak"
        return unequal("the peak", profile.peak.heap, run.said_peak()) or \
            unequal("who", {name: size for name, size in profile.peak.top().items() if size}, top)
    return test


def known_answers():
    check("nothing is ever freed: the last moment is the peak",
          exact_peak("never_frees", {"allocate": 8008000}))
    check("freed late: the peak is at the top",
          exact_peak("frees_late", {"allocate": 100000, "at_the_top": 50000}))
    check("of two equal peaks the last counts",
          exact_peak("two_equal_peaks", {"allocate": 2000, "second_summit": 8000}))
    check("of peaks with equal totals that with most bytes that were asked for counts",
          exact_peak("growth_within_pages", {"grow": 200000}))
    check("realloc never counts both blocks", exact_peak("realloc_growth", {"grow": 100000}))
    check("every allocating function is known",
          exact_peak("every_function", {"every_function": 21120}))
    check("the same in time units of bytes",
          exact_peak("frees_late", {"allocate": 100000, "at_the_top": 50000}, "--time-unit=B"))
    check("and of instructions",
          exact_peak("frees_late", {"allocate": 100000, "at_the_top": 50000}, "--time-unit=i"))

    def agree():
        for name in ("never_frees", "frees_late", "realloc_growth", "growth_within_pages",
                     "two_equal_peaks", "peak_in_thread"):
            run = Run(KNOWN, name)
            heap, peak = summary(run)["peaks"][0], run.profile().peak
            if heap["bytes"] != peak.heap:
                return f"{name}: {heap} in the recording, {peak.heap} in massif.out"
        return ""
    check("the recording and massif.out have the same peak", agree)

    def stacks():
        run = Run(build("paths", "-O2"))
        rows = queried(run, "SELECT size, stack, count(*) FROM allocations JOIN contexts "
                            "ON context = contexts.id WHERE stack LIKE '%way_%' GROUP BY 1, 2")
        for size, stack, _ in rows:
            spelt = 1
            for way in re.findall(r"way_(\d)", stack):
                spelt = spelt * 4 + int(way)
            if spelt != int(size):
                return f"a block of {size} bytes is said to come from {stack}"
        return unequal("blocks", sum(int(row[2]) for row in rows), int(run.out))
    check("blocks whose sizes spell their stacks have these", stacks)

    def in_thread():
        run = Run(KNOWN, "peak_in_thread")
        peak = run.profile().peak
        path = [node.function for node in peak.tree.walk() if node.bytes == 640000]
        return unequal("the thread's part", peak.of("summit_in_thread"), 640000) or \
            ("" if "summit_in_thread" in path else f"no stack through the thread: {path}")
    check("a peak in a thread has the thread's stack", in_thread)
