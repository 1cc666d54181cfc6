# SPDX-License-Identifier: MIT
"""Real programs, beside the incumbent and what the allocator says itself; allocators and servers."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading

import massif_file
from profiling import ENV, HERE, KNOWN, MUNINN, PROGRAMS, Run, WORK, build, check, queried, unequal
from life import ctl, wait_until
from suite import skip


def ms_print():
    if not shutil.which("ms_print"):
        skip("ms_print reads our files", "ms_print is missing")
        return
    for name in ("never_frees", "two_equal_peaks", "peak_in_thread", "maps_pages"):
        def test(name=name):
            run = Run(KNOWN, name, options=("--pages-as-heap=yes",) if name == "maps_pages" else ())
            done = subprocess.run(["ms_print", run.path()], capture_output=True, text=True,
                                  check=False, env=ENV)
            peak = run.profile().peak
            shown = re.search(r"\((\d+) \(peak\)|(\d+) \(peak\)", done.stdout)
            if done.returncode or done.stderr:
                return f"status {done.returncode}: {done.stderr[:300]}"
            return unequal("the peak", int(shown[1] or shown[2]), peak.number) or \
                ("" if f"{peak.total:,}" in done.stdout else "its total is not shown")
        check(f"ms_print reads our file of {name}", test)


def counted(argv, env):
    """What the interposed counter says of a native run."""
    read, write = os.pipe()
    os.dup2(write, 9)
    os.close(write)
    process = subprocess.Popen(argv, env={**env, "LD_PRELOAD": COUNTER}, pass_fds=(9,), cwd=WORK,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    os.close(9)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    process.wait()
    return list(map(int, text.split("\n")[0].split()))


def ours(run):
    usage = re.search(r"usage: (\d+) allocs, (\d+) frees, (\d+) bytes allocated; (\d+) reallocs",
                      run.err)
    peak = re.search(r"the peak is (\d+) bytes", run.err)
    return [int(usage[1]), int(usage[2]), int(usage[4]), int(usage[3]), int(peak[1])]


SQL = ("CREATE TABLE t(a,b); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE "
       "x<3000) INSERT INTO t SELECT x, hex(zeroblob(x%50)) FROM c; CREATE INDEX i ON t(b); "
       "SELECT count(*), sum(length(b)) FROM t GROUP BY b;")


def totals():
    global COUNTER
    COUNTER = build("counter.so", "-shared", "-fPIC", "-ldl", source="counter.c")
    # A program sees its environment: the other run has one of the same size.
    nothing = build("nothing.so", "-shared", "-fPIC", source="nothing.c")
    containers = build("containers", source="containers.cpp", compiler="g++")
    programs = {
        "a C++ program": [containers, "small"],
        "sqlite3": ["/usr/bin/sqlite3", ":memory:", SQL],
        "perl": ["/usr/bin/perl", "-e", "my %h; $h{$_ % 100} .= $_ x 3 for 1..3000; print keys %h"],
    }
    env = {**ENV, "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}
    for name, argv in programs.items():
        if not os.path.exists(argv[0]):
            skip(f"exact totals of {name}", f"{argv[0]} is missing")
            continue

        def test(argv=argv):
            native = counted(argv, env)
            run = Run(*argv, options=("-v",), env={**env, "LD_PRELOAD": nothing})
            return unequal("allocs, frees, reallocs, bytes and the peak", ours(run), native)
        check(f"exact totals of {name}, as an interposed counter has them", test)

    def pages():
        program = build("aligned", source="aligned.cpp", compiler="g++")
        run, empty = Run(program, options=("-v",)), Run(program, "nothing", options=("-v",))
        live = int(re.search(r"live: (\d+)", run.err)[1])
        return unequal("peak", ours(run)[4] - ours(empty)[4], live)
    check("what allocators add to blocks that begin with a page", pages)


def places(snapshot):
    """Bytes by the line that allocates them; what is in no line is left out."""
    sums = {}
    for node in snapshot.tree.children:
        line = re.search(r"\(([^()]+:\d+)\)$", node.text)
        if line:
            sums[line[1]] = sums.get(line[1], 0) + node.bytes
    return sums


def differential():
    """The same peak as the incumbent, within its own inaccuracy and what allocators add."""
    if not os.path.exists("/usr/bin/valgrind"):
        skip("beside the incumbent", "valgrind is missing")
        return
    programs = {
        "a C++ program": [os.path.join(PROGRAMS, "containers"), "small"],
        "sqlite3": ["/usr/bin/sqlite3", ":memory:", SQL],
        "python3": ["/usr/bin/python3", "-c", "x = [str(i) * 9 for i in range(20000)]; del x"],
    }
    env = {**ENV, "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"}
    for name, argv in programs.items():
        def test(argv=argv, name=name):
            out = os.path.join(WORK, "theirs.out")
            subprocess.run(["/usr/bin/valgrind", "-q", "--tool=massif", "--peak-inaccuracy=0.0",
                            "--time-unit=B", f"--massif-out-file={out}", *argv], env=env, check=True,
                           stdout=subprocess.DEVNULL, timeout=300)
            theirs, mine = massif_file.read(out), Run(*argv, env=env).profile()
            their_peak = max(s.heap for s in theirs.snapshots)
            off = abs(mine.peak.heap - their_peak) / their_peak
            if off > 0.011:
                return f"peak {mine.peak.heap}, theirs {their_peak}"
            if not theirs.peak:
                return ""
            # Who holds it: the same places in the sources.
            for place, size in places(theirs.peak).items():
                if abs(places(mine.peak).get(place, 0) - size) > their_peak * 0.02:
                    return f"{place} has {places(mine.peak).get(place, 0)}, theirs {size}"
            return ""
        check(f"the same peak as the incumbent: {name}", test)


def places_of(run):
    """The functions of `heap top`, with what they hold at the end."""
    done = subprocess.run([MUNINN, "heap", "top", "--by=function", "--at=end", "--json",
                           run.path(f"muninn.heap.{run.pid}")],
                          capture_output=True, text=True, timeout=300, check=True, env=ENV)
    return {group["where"].split(" (")[0]: group["value"]
            for group in json.loads(done.stdout)["groups"]}


def allocators():
    def requested():
        for flag in "-O0", "-O2":
            run = Run(build("own_allocator" + flag, flag, source="own_allocator.c"))
            why = unequal("massif.out", run.profile().snapshots[-1].top(), {"take": 50000}) or \
                unequal("heap top", places_of(run), {"take": 50000})
            if why:
                return f"{flag}: {why}"
        return ""
    check("blocks told by client requests are of who made them", requested)

    def unoptimised():
        program = os.path.join(PROGRAMS, "vectors")
        subprocess.run(["rustc", "-o", program, os.path.join(HERE, "vectors.rs")], check=True)
        run = Run(program)
        done = subprocess.run([MUNINN, "heap", "top", "--by=function", "--json",
                               "--metric=allocated", run.path(f"muninn.heap.{run.pid}")],
                              capture_output=True, text=True, timeout=300, check=True, env=ENV)
        found = {group["where"].split(" (")[0]: group["value"]
                 for group in json.loads(done.stdout)["groups"]}
        wanted = {"vectors::grow": 1000, "vectors::wide": 20000,
                  "<vectors::Own as core::clone::Clone>::clone": 3000}
        return unequal("places", {k: v for k, v in found.items() if v in (1000, 3000, 20000)},
                       wanted)
    if shutil.which("rustc"):
        check("Rust's library is known by names alone", unoptimised)
    else:
        skip("Rust's library is known by names alone", "rustc is missing")

    kinds = {
        "glibc": (),
        "a static program": ("-static",),
        "jemalloc": ("-l:libjemalloc.so.2",),
        "tcmalloc": ("-l:libtcmalloc_minimal.so.4",),
        "mimalloc": ("-l:libmimalloc.so.2",),
    }
    for name, flags in kinds.items():
        def test(name=name, flags=flags):
            program = build("holds-" + name.split()[-1], "-fno-builtin", *flags, source="holds.c")
            run = Run(program, options=("-v",))
            allocs = int(re.search(r"usage: (\d+) allocs", run.err)[1])
            return unequal("status", run.status, 0) or \
                unequal("hold", run.profile().peak.of("hold"), 1000000) or \
                ("" if 21000 <= allocs < 21100 else f"{allocs} allocations")
        try:
            check(f"blocks of {name}", test)
        except subprocess.CalledProcessError:
            skip(f"blocks of {name}", "it cannot be linked")

    def cxx():
        peak = Run(os.path.join(PROGRAMS, "containers")).profile().peak
        # The chunks that the allocator of the program takes: 20000 nodes of 32 bytes.
        taken = sum(size for name, size in peak.top().items() if re.search(r"\btake\b", name))
        return "" if taken >= 20 * 32768 else str(peak.top())
    check("a C++ program with an allocator of its own", cxx)

    def shim():
        path = os.path.join(WORK, "script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/usr/bin/python3\nx = bytearray(30000000)\nprint(len(x))\n")
        os.chmod(path, 0o755)
        run = Run(path)
        return unequal("output", run.out, "30000000\n") or \
            ("" if run.profile().peak.heap > 30000000 else f"peak {run.profile().peak.heap}")
    check("a Python script by its #! line", shim)


def talk(port, lines, barrier):
    """Sends lines, hears an answer to each, and stays until all others have done so."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        with connection.makefile("rw") as file:
            for line in range(lines):
                file.write(f"line {line}\n")
                file.flush()
                file.readline()
            barrier.wait(timeout=300)


def servers():
    def rust():
        program = os.path.join(PROGRAMS, "server")
        subprocess.run(["rustc", "-g", "-O", "-o", program, os.path.join(HERE, "server.rs")],
                       check=True, capture_output=True)
        run = Run(program, "4", wait=False)
        port = int(run.line())
        barrier = threading.Barrier(4)
        threads = [threading.Thread(target=talk, args=(port, 50, barrier)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run.end()
        # Its lines, and the table that holds them, by the blocks of the place that makes each.
        made = dict(queried(run, "select at_peak_bytes / at_peak_blocks, sum(at_peak_blocks) from "
                            "sites where at_peak_blocks and context in (select context from frames "
                            "where function like '%keep_line%') group by 1"))
        lines = made.pop("5000", "0")
        return unequal("output", run.out, "200\n") or unequal("lines at the peak", lines, "200") or \
            unequal("tables at the peak", list(made.values()), ["1"])
    if shutil.which("rustc"):
        check("a Rust server under load", rust)
    else:
        skip("a Rust server under load", "rustc is missing")

    def redis():
        path = os.path.join(WORK, "redis")
        run = Run("/usr/bin/redis-server", "--port", "0", "--unixsocket", path, "--save", "",
                  "--daemonize", "no", wait=False)
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(120)
        wait_until(lambda: client.connect_ex(path) == 0)
        with client, client.makefile("rwb") as file:
            for i in range(2000):
                file.write(b"SET key%d %s\r\n" % (i, b"x" * 1000))
                file.flush()
                if file.readline() != b"+OK\r\n":
                    return "no answer"
            top = json.loads(ctl(run.pid, "heap_top", "3").stdout)
            file.write(b"SHUTDOWN NOSAVE\r\n")
            file.flush()
            file.readline()
        run.end()
        peak = run.profile().peak
        return unequal("status", run.status, 0) or \
            ("" if peak.heap > 2000000 else f"peak {peak.heap}") or \
            ("" if top["heap"]["bytes"] > 2000000 else f"live {top['heap']}")
    if os.path.exists("/usr/bin/redis-server"):
        check("redis", redis)
    else:
        skip("redis", "redis-server is missing")
