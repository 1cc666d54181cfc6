# SPDX-License-Identifier: MIT
"""What each option changes."""

import os
import re
import subprocess

import massif_file
from profiling import ENV, HOLDS, KNOWN, MUNINN, Run, WORK, build, check, queried, summary, unequal


def options():
    def heap_admin():
        run = Run(KNOWN, "frees_late", options=("--heap-admin=100", "--time-unit=B"))
        peak = run.profile().peak
        # 101 blocks of 100, and what glibc adds: 1000 stays, 50000 becomes 50008 or so
        return "" if 101 * 100 <= peak.extra < 101 * 100 + 3000 else f"extra {peak.extra}"
    check("--heap-admin is counted for each block", heap_admin)

    def no_heap():
        profile = Run(KNOWN, "frees_late", options=("--heap=no",)).profile()
        return "" if all(s.total == 0 for s in profile.snapshots) else "something is counted"
    check("--heap=no counts nothing", no_heap)

    def depth():
        run = Run(KNOWN, "deep", options=("--depth=5",))
        peak = run.profile().peak
        chain, node = [], peak.tree
        while node.children:
            node = node.children[0]
            chain.append(node.function)
        return unequal("the stack", chain, ["recursion"] * 5)
    check("--depth cuts stacks", depth)

    def default_depth():
        peak = Run(KNOWN, "deep").profile().peak
        return unequal("levels", max(1 for _ in [0]) and sum(1 for _ in peak.tree.walk()) - 1, 30)
    check("the default depth is 30", default_depth)

    def alloc_fn():
        run = Run(KNOWN, "wrapped_and_ignored", options=("--alloc-fn=wrapper",))
        top = {name: size for name, size in run.profile().peak.top().items() if size}
        return unequal("who", top, {"grow": 20000, "ignored": 7000, "wrapped_and_ignored": 5600})
    check("--alloc-fn passes blocks on to callers", alloc_fn)

    def alloc_fns():
        run = Run(KNOWN, "own_allocator", options=("--alloc-fns=own_get=malloc,own_give=free",))
        return unequal("the peak", run.profile().peak.heap, 8000)
    check("--alloc-fns names allocators of the program's own", alloc_fns)

    def bad_alloc_fns():
        known = Run("/bin/true", options=("--alloc-fns=a=malloc,b=free,c=malloc_usable_size",))
        run = Run("/bin/true", options=("--alloc-fns=own_get=malloc,own_give=fre",))
        return unequal("status", (known.status, run.status), (0, 126)) or \
            ("" if "own_give=fre" in run.err else run.err)
    check("a function of --alloc-fns that does not allocate is refused", bad_alloc_fns)

    def ignore_fn():
        run = Run(KNOWN, "wrapped_and_ignored", options=("--ignore-fn=ignored",))
        return unequal("the peak", run.profile().peak.heap, 5600)
    check("--ignore-fn leaves blocks out, and what they are reallocated to", ignore_fn)

    def ignored_past():
        library = build("libnameless.so", "-fPIC", "-shared", "-s", "-fno-builtin",
                        source="nameless.c")
        program = build("inlined", "-fno-builtin", library)
        peaks = {name: Run(program, options=(f"--ignore-fn={name}",)).profile().peak.heap
                 for name in ("exported", "innermost", "between", "outermost", "main", "other")}
        return unequal("the peaks", peaks, {"exported": 6000, "innermost": 5000, "between": 5000,
                                            "outermost": 5000, "main": 3000, "other": 7000})
    check("--ignore-fn looks past functions without names, and into what is inlined", ignored_past)

    def threshold():
        run = Run(KNOWN, "wrapped_and_ignored", options=("--threshold=30",))
        tree = run.profile().peak.tree
        return unequal("entries", [(n.bytes, bool(re.match("in [2-9] places, all below massif's "
                                                           r"threshold \(30.00%\)", n.text)))
                                   for n in tree.children], [(20000, False), (12600, True)])
    check("--threshold sums up what is small", threshold)

    def max_snapshots():
        for most in (10, 50):
            got = len(Run(KNOWN, "never_frees",
                          options=(f"--max-snapshots={most}", "--time-unit=B")).profile().snapshots)
            if not most / 2 - 1 <= got <= most:
                return f"{got} snapshots with --max-snapshots={most}"
        return ""
    check("--max-snapshots keeps between half of it and all", max_snapshots)

    def spread():
        # The clock of bytes: bytes are what the program decides, and not the machine.
        for name, most, part in (("never_frees", 100, 1 / 15), ("never_frees", 10, 0.35),
                                 ("steady", 20, 0.2), ("steady", 10, 0.35)):
            profile = Run(KNOWN, name, options=("--time-unit=B", f"--max-snapshots={most}")).profile()
            end = profile.snapshots[-1].time
            gaps = [b.time - a.time for a, b in zip(profile.snapshots, profile.snapshots[1:])]
            if max(gaps) > end * part:
                return f"{name}: a gap of {max(gaps)} in {end} with --max-snapshots={most}"
        return ""
    check("snapshots are spread over the whole run", spread)

    def at_the_end():
        # Many frees in the last millisecond, which has a snapshot already: not always, so ten times.
        left = [Run(HOLDS, options=("--max-snapshots=10",)).profile().snapshots[-1].heap
                for _ in range(10)]
        return unequal("bytes in the last snapshot", left, [0] * 10)
    check("the last snapshot is the end, also if its millisecond has another", at_the_end)

    def detailed_freq():
        profile = Run(KNOWN, "frees_late",
                      options=("--detailed-freq=7", "--max-snapshots=1000")).profile()
        kinds = [s.kind for s in profile.snapshots if s.kind != "peak"]
        wanted = ["detailed" if i % 7 == 6 else "empty" for i in range(len(kinds) - 1)]
        return unequal("kinds", kinds[:-1], wanted)
    check("--detailed-freq", detailed_freq)

    def every_detailed():
        profile = Run(KNOWN, "frees_late").profile()
        return "" if all(s.tree for s in profile.snapshots) else "one is empty"
    check("by default every snapshot has its tree", every_detailed)

    def out_file():
        env = {**ENV, "WHERE": "here"}
        run = Run(KNOWN, "deep", options=("--massif-out-file=out.%q{WHERE}.%p",
                                          "--recording-file=rec.%q{WHERE}.%p"), env=env)
        names = sorted(os.listdir(run.folder))
        return unequal("files", names, [f"out.here.{run.pid}", f"rec.here.{run.pid}"])
    check("--massif-out-file and --recording-file are expanded", out_file)

    def no_recording():
        run = Run(KNOWN, "deep", options=("--recording=no",))
        return unequal("files", os.listdir(run.folder), [f"massif.out.{run.pid}"])
    check("--recording=no", no_recording)

    def cannot_write():
        for option in ("massif-out-file", "recording-file"):
            run = Run(KNOWN, "deep", options=(f"--{option}=/proc/no/such",))
            if run.status != 126 or f"--{option}=/proc/no/such: No such file" not in run.err:
                return f"{run.status}: {run.err}"
        run = Run(KNOWN, "deep", options=("--recording-file=/dev/null",))
        if run.status != 1 or "--recording=no makes none" not in run.err:
            return run.err
        run = Run(KNOWN, "deep", options=("--recording-file=/dev/null", "--recording=no"))
        if run.status != 0:
            return run.err
        run = Run(KNOWN, "deep", options=(f"--recording-file={WORK}/elsewhere.%p",))
        if run.status != 0 or not os.path.exists(f"{WORK}/elsewhere.{run.pid}"):
            return run.err
        run = Run(KNOWN, "deep", options=("--recording-file=one", "--massif-out-file=one"))
        return "" if run.status == 1 and "are two files" in run.err else run.err
    check("files that cannot be written are told before the program runs", cannot_write)

    def time_b():
        profile = Run(KNOWN, "never_frees", options=("--time-unit=B", "--heap-admin=0")).profile()
        last = profile.snapshots[-1]
        return unequal("unit", profile.unit, "B") or unequal("time", last.time, last.total)
    check("--time-unit=B counts bytes", time_b)

    def time_ms():
        profile = Run(KNOWN, "forks", options=("--time-unit=ms",)).profile()
        return unequal("unit", profile.unit, "ms") or \
            ("" if profile.snapshots[-1].time >= 300 else f"{profile.snapshots[-1].time} ms")
    check("--time-unit=ms counts milliseconds", time_ms)

    def pages():
        profile = Run(KNOWN, "maps_pages", options=("--pages-as-heap=yes",)).profile()
        peak = profile.peak
        return ("" if peak.tree.text.startswith("(page allocation") else peak.tree.text) or \
            unequal("its pages", peak.of("maps_pages"), (64 - 16 - 16 + 48) << 20) or \
            unequal("extra", peak.extra, 0)
    check("--pages-as-heap=yes counts mmap, munmap in the middle and mremap", pages)

    def branches():
        program = build("branches", "-no-pie")
        native = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        done = subprocess.run([MUNINN, "--tool=massif", "-q", program], capture_output=True,
                              text=True, cwd=WORK, env=ENV, check=False, timeout=300)
        return unequal("the lines", done.stdout, native) or unequal("lines", len(native.split("\n")), 7)
    check("flags of a return and places that change are left alone", branches)

    def frames():
        run = Run(build("frames"))
        rows = queried(run, "select count(*), sum(c.stack like '%main%') "
                            "from allocations a join contexts c on c.id = a.context "
                            "where c.function = 'of_size'")
        return unequal("status", run.status, 0) or unequal("blocks", rows, [("60000", "60000")])
    check("a frame may be as large as it likes, and of another size each time", frames)

    def handlers():
        program = build("handlers", source="handlers.cpp", compiler="g++")
        nested = queried(Run(program, "nested"), "select size, count(*) from allocations "
                         "where space = 'heap' and size in (19, 70) group by 1 order by 1")
        run = Run(program, "left")
        known = queried(run, "select count(*), sum(died_ns is null) from allocations "
                             "where space = 'heap' and size < 20000")
        return unequal("in handlers", nested, [("19", "10"), ("70", "10")]) or \
            unequal("status", run.status, 0) or unequal("interrupted", known, [("600000", "0")])
    check("a signal in the middle of an allocation hides nothing", handlers)

    def shared():
        profile = Run(KNOWN, "maps_shared", options=("--pages-as-heap=yes",)).profile()
        last = profile.snapshots[-1]
        return unequal("the peak's", profile.peak.of("maps_shared"), 12 << 20) or \
            unequal("the end's", last.of("maps_shared"), 4 << 20)
    check("--pages-as-heap=yes counts shmat and shmdt", shared)

    def remapped():
        run = Run(KNOWN, "maps_pages")
        rows = queried(run, "select c.stack from maps m join contexts c on c.id = m.context "
                            "where m.size = 48 << 20")
        return "" if "maps_pages" in str(rows) else str(rows)
    check("the recording has what mremap made, with its stack", remapped)

    def kinds_of_pages():
        run = Run(KNOWN, "maps_pages")
        told = {kind for which in (run, Run(KNOWN, "never_frees"))
                for kind, in queried(which, "select distinct kind from maps")}
        moved = queried(run, "select distinct kind from maps where size = 48 << 20")
        stacks = queried(Run(KNOWN, "peak_in_thread"), "select count(*) from maps where kind = 'stack'")
        segments = queried(Run(KNOWN, "maps_shared"), "select distinct kind from maps where context in "
                           "(select context from frames where function = 'maps_shared')")
        shown = summary(run, command="maps")
        return unequal("kinds", told, {"program", "file", "anonymous", "brk", "stack"}) or \
            unequal("what mremap moved", moved, [("anonymous",)]) or \
            ("" if int(stacks[0][0]) >= 2 else f"stacks of threads: {stacks}") or \
            unequal("segments", segments, [("shm",)]) or \
            unequal("all kinds", sum(k["bytes"] for k in shown["kinds"]), shown["mapped_bytes"])
    check("the recording says what pages are: a file's, a stack, the break", kinds_of_pages)

    def peaks():
        for options, counted in ((), 501000), (("--stacks=yes",), 1000), (("--heap=no",), 0), \
                (("--pages-as-heap=yes",), 0), (("--heap=no", "--stacks=yes"), 0):
            run = Run(KNOWN, "peaks", options=options)
            at_peak = queried(run, "select sum(at_peak_bytes), sum(at_peak_blocks) from sites where "
                                   "space = 'heap' and context in "
                                   "(select context from frames where function = 'allocate')")
            shown = {peak["space"]: peak for peak in summary(run)["peaks"]}
            why = unequal("the heap's", at_peak, [("501000", "5010")]) or \
                ("" if 501000 <= shown["heap"]["bytes"] <= 510000 else str(shown)) or \
                ("" if shown["mapped"]["bytes"] > 50 << 20 else str(shown))
            peak = run.profile().peak if options != ("--heap=no",) else None
            if peak and not why and "--pages-as-heap=yes" not in options:
                why = unequal("massif.out's", peak.heap, counted)
            if why:
                return f"{' '.join(options)}: {why}"
        return ""
    check("the recording has the heap's peak, whatever massif.out counts", peaks)

    def inaccuracy():
        peaks = [Run(KNOWN, "frees_late", options=(f"--peak-inaccuracy={percent}",)).profile().peak
                 for percent in ("0.0", "1.0", "50.0")]
        exact = Run(KNOWN, "frees_late").profile().peak
        return unequal("peaks", [peak.total for peak in peaks], [exact.total] * 3)
    check("--peak-inaccuracy is allowed, and the peak is exact whatever it says", inaccuracy)

    def lifetimes():
        run = Run(KNOWN, "sleeps_between")
        rows = queried(run, "select count(*), sum(lifetime_ns < 15000000) from allocations "
                            "where size = 333")
        return unequal("blocks, and those that died young", rows, [(str(20 * 100 + 190), "0")])
    check("what lived while the program slept is as old as that", lifetimes)

    def time_i():
        first, second = (Run(KNOWN, "counts", options=("--time-unit=i",)).profile()
                         for _ in range(2))
        at = {s.heap: s.time for s in reversed(first.snapshots)}
        return unequal("unit", first.unit, "i") or \
            ("" if 2000000 <= at[1100] - at[100] < 2000300 else f"{at[1100] - at[100]}") or \
            unequal("times of a second run", [s.time for s in second.snapshots],
                    [s.time for s in first.snapshots])
    check("--time-unit=i counts instructions exactly", time_i)

    def stacks():
        profile = Run(KNOWN, "stack_and_heap", options=("--stacks=yes",)).profile()
        most = max(s.stacks for s in profile.snapshots)
        return "" if 101 * 4096 <= most < 101 * 4096 + 100000 else f"{most} bytes of stacks"
    check("--stacks=yes measures stacks", stacks)

    def broken_down():
        run = Run(KNOWN, "stack_and_heap", options=("--stacks=yes",))
        rows = queried(run, "select max(a.size) from allocations a join frames f using (context) "
                            "where a.space = 'stack' and f.function = 'uses_stack'")
        return "" if rows and int(rows[0][0] or 0) >= 101 * 4096 else str(rows)
    check("--stacks=yes tells whose the stack is", broken_down)

    def apart():
        run = Run(KNOWN, "stack_before_heap", options=("--stacks=apart",))
        rows = queried(run, "select s.reason, max(s.heap_bytes), max(s.stack_bytes) from snapshots s "
                            "where s.reason in ('peak', 'peak stack') group by 1")
        peaks = {reason: (int(heap), int(stack)) for reason, heap, stack in rows}
        owner = queried(run, "select distinct f.function from snapshots s join snapshot_sites p on "
                             "p.snapshot = s.id join sites t on t.id = p.site join frames f on "
                             "f.context = t.context and f.level = 0 where s.reason = 'peak stack' "
                             "and t.space = 'stack' and p.live_bytes > 0")
        return unequal("the heap's peak", peaks["peak"][0], 70000) or \
            ("" if peaks["peak stack"][1] >= 100 * 4096 else str(peaks)) or \
            unequal("whose the stack was", owner, [("digs",)])
    check("--stacks=apart has peaks of heap and stacks, and whose the stack was when nobody looked",
          apart)

    def together():
        run = Run(KNOWN, "deep", options=("--stacks=yes", "--pages-as-heap=yes"))
        return "" if run.status not in (0, None) and "--stacks" in run.err else run.err
    check("--stacks and --pages-as-heap exclude each other", together)

    def bad_trigger():
        run = Run(KNOWN, "deep", options=("--snapshot-when=heap",))
        return "" if run.status and "--snapshot-when" in run.err else f"{run.status} {run.err}"
    check("a --snapshot-when that makes no sense is refused", bad_trigger)

    def no_room():
        done = subprocess.run(["sh", "-c", 'ulimit -S -f 4; exec "$0" "$@"', MUNINN, "--tool=massif",
                               "--massif-out-file=full.out", "--recording-file=full.heap", KNOWN,
                               "never_frees"], cwd=WORK, capture_output=True, text=True, env=ENV,
                              check=False)
        told = [line.split(" ", 2)[2] for line in done.stderr.splitlines() if "full" in line
                and "Command" not in line]
        # The recording's is told as soon as it is met, which the end may come before.
        return unequal("status", done.returncode, 0) or \
            unequal("words before", set(told[:-2]) - set(told[-1:]), set()) or \
            unequal("words", told[-2:], [f"write massif's output {WORK}/full.out: File too large",
                                         f"write the recording {WORK}/full.heap: File too large"])
    check("what there is no room for is told with the reason", no_room)

    def to_standard_output():
        run = Run(KNOWN, "never_frees", options=("--massif-out-file=/dev/stdout", "--recording=no"))
        said, profile = run.out.split("\n", 1)
        return unequal("the peak", massif_file.Profile(profile).peak.heap, int(said.split()[1]))
    check("--massif-out-file=/dev/stdout is the program's", to_standard_output)
