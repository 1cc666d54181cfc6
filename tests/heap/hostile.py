# SPDX-License-Identifier: MIT
"""Names that break what does not escape them, files that are not what they seem, queries that
would like to do more than ask, and the terminal."""
import json
import os
import random
import re
import subprocess
import time

from suite import (COMMANDS, MUNINN, WORK, check, heap, make_recording, path, same, table,
                   verdict)

LIMITED = ("top", "leaks", "temporary", "threads", "maps")
CONTROL = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


def once(pairs):
    """An object of which no member is there twice."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError(f"a member is there twice: {[key for key, _ in pairs]}")
    return dict(pairs)


def forms():
    """Every command in every form, on recordings of every kind."""
    kinds = (("plain", ("--spaces", "--samples=5")), ("hostile", ("--hostile", "--spaces")),
             ("bare", ("--bare",)), ("unclosed", ("--unclosed",)),
             ("bounded", ("--events=200000", "--max-bytes=200000")),
             ("empty", ("--events=0",)))
    for kind, options in kinds:
        events = () if any("--events" in o for o in options) else ("--events=4000",)
        file, _ = make_recording(kind, *events, *options)
        for command in COMMANDS:
            problems = []
            for form in ((), ("--json",), ("--csv",)):
                limit = ("--limit=2",) if form and command in LIMITED else ()
                done = heap(command, file, *form, *limit)
                try:
                    text = done.stdout.decode("utf-8")
                    if form == ("--json",):
                        json.loads(text, object_pairs_hook=once)
                except ValueError as problem:
                    problems.append(f"{form}: {problem}")
                if done.returncode != 0:
                    problems.append(f"{form}: status {done.returncode}: {done.stderr[:200]}")
                if not form and CONTROL.search(done.stdout):
                    problems.append(f"control characters: {CONTROL.search(done.stdout)}")
            rows = table(command, file, *limit)
            if any(None in row or None in row.values() for row in rows):
                problems.append("the CSV has rows of another length")
            verdict(f"{kind}: {command}", "; ".join(problems))
    names = {r["where"] for r in table("top", path("hostile"), "--metric=allocations",
                                       "--by=function")}
    check("hostile names come through CSV as they are",
          any("DROP TABLE" in n for n in names), str(names)[:300])


def bad_files():
    file, _ = make_recording("good", "--events=20000", "--seconds=5")
    with open(file, "rb") as good:
        data = good.read()
    cases = {
        "empty": b"", "text": b"desc: (none)\ncmd: ./a\n" * 100, "zeros": bytes(10000),
        "elf": open("/bin/true", "rb").read(), "noise": random.Random(1).randbytes(20000),
    }
    for name, content in cases.items():
        with open(path("bad"), "wb") as bad:
            bad.write(content)
        done = heap("top", path("bad"))
        lines = done.stderr.decode(errors="replace").splitlines()
        check(f"bad file: {name}", done.returncode == 1 and not done.stdout and len(lines) == 1
              and lines[0].startswith("muninn heap: ") and path("bad") in lines[0],
              f"{done.returncode} {done.stderr[:300]}")
    for name, target in (("a directory", WORK), ("a missing file", path("none")),
                         ("a device", "/dev/null")):
        done = heap("summary", target)
        check(f"bad file: {name}", done.returncode == 1 and done.stderr.count(b"\n") == 1,
              f"{done.returncode} {done.stderr[:300]}")
    truncated(data)
    mutated(data)


def mistakes():
    """What would destroy the recording, or select everything where nothing was meant."""
    file, _ = make_recording("mistakes", "--events=4000")
    with open(file, "rb") as before:
        data = before.read()
    for words in (("export", "--format=folded", file, "-o", file), ("flame", file, "-o", file)):
        done = heap(*words)
        with open(file, "rb") as after:
            check(f"{words[0]} does not write over what it reads", done.returncode == 1 and
                  after.read() == data and b"would be lost" in done.stderr, str(done))
    for option in ("--max-size=0", "--max-lifetime=0s", "--thread=0", "--function=", "--file=!",
                   "--object="):
        done = heap("top", file, option)
        check(f"{option} is refused", done.returncode == 1 and not done.stdout and
              b"would select nothing" in done.stderr, str(done))
    done = heap("top", file, "--json", "--csv")
    check("two forms are refused", done.returncode == 1 and not done.stdout, str(done))
    done = heap("query", file, "-- all\nSELECT count(*) FROM threads")
    check("SQL may begin with a comment", done.returncode == 0, str(done))


def partly_known():
    """Of a bounded recording the moment is named that the answer is of; a cut one has its peak."""
    bounded, _ = make_recording("partly", "--events=3000000", "--max-bytes=300000")
    done = heap("top", bounded, "--at=7%", "--limit=1")
    shown = re.match(rb".* live at (\S+ \S+)\n", done.stdout)
    noted = re.search(rb"details of (.*) were not kept: the nearest moment is (.*)\n", done.stderr)
    check("a bounded recording says of which moment it tells",
          shown and noted and noted[2] == shown[1] and noted[1] != noted[2], str(done)[:600])
    page = subprocess.run([MUNINN, "ms_print", "--at=7%", bounded], capture_output=True, text=True,
                          check=True).stdout
    live = re.search(r"^ +0 +([\d,]+) +[\d,]+ +([\d,]+)", page, re.M)
    told = json.loads(heap("top", bounded, "--at=7%", "--json").stdout)
    same("ms_print tells of the same moment",
         (int(live[1].replace(",", "")), int(live[2].replace(",", ""))),
         ((told["to_ns"] - 1) // 1000000, told["total"]))
    done = heap("query", bounded, "SELECT count(*) FROM allocations")
    check("a query of events that were not kept says so", done.returncode == 0 and
          b"were not kept" in done.stderr, str(done))
    done = heap("query", bounded, "SELECT count(*) FROM sites")
    same("a query of sums does not", done.stderr, b"")
    whole, _ = make_recording("whole", "--events=3000000")
    with open(whole, "rb") as file:
        data = file.read()
    for share in (3, 5, 6, 8):
        with open(path("cut"), "wb") as cut:
            cut.write(data[:len(data) * share // 10])
        filtered = heap("top", path("cut"), "--min-size=1", "--at=end", "--json")
        most = json.loads(heap("query", path("cut"), "SELECT max(heap_high) m FROM slices",
                               "--json").stdout)["rows"][0]["m"]
        peak = json.loads(heap("top", path("cut"), "--json").stdout)["total"]
        check(f"of a recording cut at {share}0 % blocks can be filtered", filtered.returncode == 0,
              filtered.stderr)
        same(f"a recording cut at {share}0 % has its peak", peak, most)


def truncated(data):
    """What can be read is read, and the rest told with its offset."""
    with open(path("cut"), "wb") as cut:
        cut.write(data[:len(data) * 6 // 10])
    done = heap("summary", path("cut"), "--json")
    check("a truncated file is read as far as it goes", done.returncode == 0 and
          json.loads(done.stdout)["allocations"] > 0, done.stderr.decode()[:300])
    check("and it is told where it ends", re.search(rb"offset \d+|byte \d+|at \d+", done.stderr),
          done.stderr.decode()[:300])
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 0x55
    with open(path("flipped"), "wb") as cut:
        cut.write(flipped)
    done = heap("query", path("flipped"), "SELECT count(*) FROM allocations", "--json")
    check("a corrupt chunk: the others are read", done.returncode == 0 and
          json.loads(done.stdout)["rows"][0]["count(*)"] > 0, done.stderr.decode()[:300])
    check("and its offset is told", re.search(rb"offset \d+", done.stderr),
          done.stderr.decode()[:300])
    rng = random.Random(3)
    for _ in range(300):
        flipped[rng.randrange(1000, len(data))] ^= 0x55
    with open(path("flipped"), "wb") as cut:
        cut.write(flipped)
    done = heap("summary", path("flipped"))
    check("broken in many places: a few lines and their number", done.returncode in (0, 1) and
          1 <= done.stderr.count(b"\n") <= 5, done.stderr.decode()[:600])


def mutated(data):
    """No file makes it crash or hang."""
    rng = random.Random(20261115)
    words = [("summary",), ("top", "--by=function"), ("tree",), ("leaks",), ("maps",),
             ("lifetimes",), ("query", "SELECT count(*) FROM events"),
             ("query", "SELECT count(*), sum(level) FROM frames"), ("export", "--format=pprof"),
             ("export", "--format=heaptrack"), ("export", "--format=dhat"),
             ("export", "--format=svg")]
    crashed = []
    start = time.monotonic()
    for turn in range(80):
        if time.monotonic() - start > 12:
            break
        bad = bytearray(data)
        for _ in range(rng.choice((1, 3, 20))):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        if turn % 4 == 0:
            del bad[rng.randrange(len(bad)):]
        with open(path("mutated"), "wb") as file:
            file.write(bad)
        command, *rest = words[turn % len(words)]
        done = heap(command, path("mutated"), *rest, timeout=300)
        if done.returncode not in (0, 1) or b"Sanitizer" in done.stderr:
            crashed.append((turn, command, done.returncode, done.stderr[-300:]))
    same("mutated files crash nothing", crashed, [])


def queries():
    """Only questions are answered."""
    file, _ = make_recording("asked", "--events=4000", "--hostile")
    before = open(file, "rb").read()
    target = path("written")
    for text in (f"ATTACH '{target}' AS x", "DETACH main", "CREATE TABLE t(a)",
                 "CREATE TEMP TABLE t(a)", "CREATE VIEW v AS SELECT 1", "DROP TABLE sites",
                 "DELETE FROM sites", "INSERT INTO sites(id) VALUES(1)", "UPDATE sites SET id=1",
                 "PRAGMA writable_schema=1", "PRAGMA journal_mode=wal", "PRAGMA temp_store=2",
                 f"PRAGMA temp_store_directory='{WORK}'", f"VACUUM INTO '{target}'", "BEGIN",
                 "SELECT load_extension('x')", "SELECT 1; SELECT 2",
                 f"SELECT writefile('{target}', 'x')", "SELECT readfile('/etc/passwd')",
                 "SELECT edit('x')", f"SELECT fts3_tokenizer('x', x'00')", "ANALYZE",
                 "SELECT randomblob(1000000000)", "SELECT", "", ";", "SELECT nope FROM sites",
                 "SELECT * FROM nope", "\x00", "SELECT '", "(" * 3000):
        done = heap("query", file, text.replace("\x00", "\x01"))
        lines = done.stderr.decode(errors="replace").splitlines()
        check(f"refused: {text[:40]!r}", done.returncode == 1 and len(lines) == 1 and
              lines[0].startswith("muninn heap: "), f"{done.returncode} {done.stderr[:200]}")
    check("nothing was written", not os.path.exists(target) and open(file, "rb").read() == before)
    start = time.monotonic()
    for text in ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "
                 "SELECT count(*) FROM c",
                 "SELECT count(*) FROM allocations a, allocations b, allocations c"):
        done = heap("query", file, text, "--time-limit=300ms")
        check(f"a query that does not end: {text[:30]}", done.returncode == 1 and
              b"took longer than 300 ms" in done.stderr, done.stderr.decode())
    check("in time", time.monotonic() - start < 60)
    done = heap("query", file, "SELECT id FROM contexts", "--limit=3", "--csv")
    same("--limit", (done.stdout, done.stderr),
         (b"id\r\n0\r\n1\r\n2\r\n", b"muninn heap: there are more rows than --limit=3\n"))
    done = heap("query", file, "SELECT 1 AS a, 2 AS a, NULL AS n, 1.5 AS r, x'00ff' AS b",
                "--json")
    same("values of every type", json.loads(done.stdout)["rows"],
         [{"a": 1, "a:1": 2, "n": None, "r": 1.5, "b": "x'00ff'"}])
    tables = {r["table"] for r in table("query", file, "--tables")}
    check("the tables of the manual are there", {"allocations", "contexts", "frames", "snapshots",
                                                 "maps", "threads"} <= tables, str(tables))
    done = heap("query", file, "PRAGMA table_info(frames)", "--json")
    columns = {r["name"] for r in json.loads(done.stdout)["rows"]}
    same("--tables and SQLite agree", columns,
         {r["column"] for r in table("query", file, "--tables") if r["table"] == "frames"})


def in_terminal(words, seconds=300, **env):
    """What a terminal would show, both streams."""
    command = " ".join(f"'{w}'" for w in (MUNINN, "heap", *words))
    done = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=seconds, check=False,
                          env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **env})
    return done.stdout


def terminal():
    file, _ = make_recording("shown", "--events=4000", "--hostile")
    check("colours on a terminal", b"\x1b[1m" in in_terminal(["top", file]))
    check("none with NO_COLOR", b"\x1b" not in in_terminal(["top", file], NO_COLOR="1"))
    check("none on a terminal that has none", b"\x1b" not in in_terminal(["top", file],
                                                                         TERM="dumb"))
    check("none in a pipe", b"\x1b" not in heap("top", file).stdout)
    plain, _ = make_recording("narrow", "--events=4000", "--depth=20")
    command = f"stty cols 60; '{MUNINN}' heap top '{plain}'; '{MUNINN}' heap tree '{plain}'"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=300, check=False,
                          env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"})
    lines = done.stdout.decode().splitlines()
    check("a narrow terminal: no line is longer", max(map(len, lines)) <= 60,
          max(lines, key=len))
    check("a narrow terminal: the place is kept",
          any(re.search(r"….*\(\S+:\d+\)$", line) for line in lines), str(lines[:9]))
    endless = "SELECT count(*) FROM allocations a, allocations b, allocations c"
    shown = in_terminal(["query", file, endless, "--time-limit=3000ms"])
    check("long work shows progress", b"asking: " in shown and b"\x1b[K" in shown, str(shown))
    done = heap("query", file, endless, "--time-limit=800ms")
    check("not in a pipe", b"asking" not in done.stderr)
    shown = in_terminal(["export", "--format=pprof", file])
    check("no binary on a terminal", b"pprof is not text: name a file with -o" in shown,
          str(shown[:200]))
    done = subprocess.run(f"{MUNINN} heap query {file} 'SELECT * FROM frames' --csv | head -1",
                          shell=True, capture_output=True, check=False)
    same("a reader that has seen enough", (done.stdout[:7], done.stderr), (b"context", b""))
