# SPDX-License-Identifier: MIT
"""The run of make_run.c: its answers are known without any reckoning."""
import re

from suite import answer, build_make_run, check, heap, make_run, same, table

KiB, MiB = 1024, 1024 * 1024


def known():
    program = build_make_run()
    first, facts = make_run(program, "first")
    short, _ = make_run(program, "short", "--short")
    rebuilt, _ = make_run(program, "rebuilt", "--rebuilt")
    extra, _ = make_run(program, "extra", "--rebuilt", "--extra")
    own_frames(first)
    times(first, facts)
    leaks(first, short, extra)
    diffs(first, rebuilt, extra)
    texts(first)


def own_frames(first):
    rows = answer("top", first)["groups"]
    same("the user's own frame comes first", [r["where"] for r in rows],
         ["spike (app.c:30)", "grow (app.c:10)", "cache (cache.c:20)", "fill(int) (fill.cc:50)"])
    same("the stack has every frame", rows[3]["stack"],
         ["operator new(unsigned long) (in libc.so.6)",
          "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&) "
          "(vector.tcc:440)", "fill(int) (fill.cc:50)", "main (app.c:100)",
          "__libc_start_main (in libc.so.6)"])
    same("--by=file", [(r["where"], r["value"]) for r in
                       answer("top", first, "--at=end", "--by=file")["groups"] if r["value"]],
         [("/src/app/app.c", 1000 * KiB), ("/src/app/cache.c", 500 * KiB),
          ("/src/app/fill.cc", 64 * KiB)])
    same("--by=thread", [r["where"] for r in
                         answer("top", first, "--metric=allocations", "--by=thread")["groups"]],
         ["thread 1 (app)", "thread 2 (worker)"])
    same("--by=function", [r["where"] for r in answer("top", first, "--by=function")["groups"]],
         ["spike (app.c)", "grow (app.c)", "cache (cache.c)", "fill(int) (fill.cc)"])
    row, = answer("temporary", first)["groups"]
    same("temporary", (row["value"], row["where"]),
         (1000, "rust::churn::h0123456789abcdef (churn.rs:40)"))


def times(first, facts):
    total = {when: answer("top", first, f"--at={when}")["total"]
             for when in ("start", "1s", "1000ms", "10%", "5.05s", "5.2s", "end", "100%", "peak")}
    early = 64 * KiB + 100 * KiB + 500 * KiB
    same("moments", total, {
        "start": 0, "1s": early, "1000ms": early, "10%": early,
        "5.05s": 64 * KiB + 505 * KiB + 500 * KiB + 4 * MiB,
        "5.2s": 64 * KiB + 520 * KiB + 500 * KiB,
        "end": facts["live"], "100%": facts["live"], "peak": facts["peak"]})
    same("the peak is what is shown when nothing is asked", answer("top", first)["total"],
         facts["peak"])
    same("a range of the peak", answer("top", first, "--from=peak", "--metric=growth")["total"],
         facts["live"] - facts["peak"] + KiB)
    same("summary's peak", answer("summary", first)["peaks"][0]["bytes"], facts["peak"])
    for words, line in (
            (("--at=nonsense",), "nonsense is not a time: 1.5s, 200ms, 50%, start, peak or end"),
            (("--at=11s",), "11.0 s is after the end of the recording (10.0 s)"),
            (("--from=5s", "--to=4s"), "--to=4s is not after --from: nothing is selected"),
            (("--at=1s", "--to=4s"), "--at names a moment, --from and --to a range: give one of "
                                     "both"),
            (("--min-size=x",), "--min-size=x: that is not a SIZE"),
            (("--metric=x",), "--metric=x: that is not a METRIC: live|peak|allocated|allocations|"
                              "temporary|leaked|growth"),
            (("--limit",), "--limit needs a value: N"),
            (("--format=x",), "top has no option --format; muninn heap top --help lists them"),
            (("--json=x",), "--json takes no value"),
            (("more",), "top takes FILE: what is more?")):
        done = heap("top", first, *words)
        same(f"refused: {' '.join(words)}",
             (done.returncode, done.stdout, done.stderr.decode()),
             (1, b"", f"muninn heap: {line}\n"))
    done = heap("top", first, "--function=/[/")
    check("refused: a bad regular expression",
          done.returncode == 1 and done.stderr.count(b"\n") == 1, done.stderr.decode())


def leaks(first, short, extra):
    found = answer("leaks", first)
    row, = found["growing"]
    same("leaks: what grows", (row["where"], row["live_bytes"], found["too_short"]),
         ("grow (app.c:10)", 1000 * KiB, False))
    slope = row["bytes_per_second"]
    check("leaks: the slope", 0.97 < slope / (100 * KiB) < 1.03, f"{slope}")
    check("leaks: the confidence", row["confidence_percent"] > 99, str(row))
    check("leaks: the series rises", row["series"] == sorted(row["series"]) and row["series"][-1])
    same("leaks: ranked", [r["where"] for r in answer("leaks", extra)["growing"]],
         ["grow.constprop.0 (app.c:50)", "extra (extra.c:100)"])
    found = answer("leaks", short)
    same("leaks: a short run gives what is live", (found["too_short"], found["growing"],
                                                   [r["where"] for r in found["live"]]),
         (True, [], ["fill(int) (fill.cc:50)", "cache (cache.c:20)", "grow (app.c:10)"]))
    text = heap("leaks", short).stdout.decode()
    check("leaks: and says so", "Too short a run to see growth (100 ms)" in text, text[:200])
    found = answer("leaks", first, "--function=cache")
    same("leaks: a long run of which little changes is not short",
         (found["too_short"], found["growing"], [r["where"] for r in found["live"]]),
         (False, [], ["cache (cache.c:20)"]))
    found = answer("leaks", first, "--function=cache", "--from=2s", "--to=8s")
    same("leaks: nor is one of which nothing does", (found["too_short"], found["growing"]),
         (False, []))
    text = heap("leaks", first).stdout.decode()
    check("leaks: what does not grow is not forgotten",
          "2 more are live at the end without growing (564 KiB); --all lists them" in text, text)
    same("leaks of a part: the later half has none but grow",
         [r["where"] for r in answer("leaks", first, "--from=2s", "--to=8s")["growing"]],
         ["grow (app.c:10)"])
    for words, title in ((("--at=100ms",), "growth (100 ms): still live at 100 ms"),
                         (("--function=cache", "--at=8s"), "Still live at 8.00 s"),
                         (("--function=cache", "--to=8s"), "Still live at 8.00 s"),
                         (("--function=cache",), "Still live at the end")):
        text = heap("leaks", first, *words).stdout.decode()
        check(f"leaks {words[-1]}: says of which moment", title in text.split("\n")[0], text[:200])
    done = heap("leaks", first, "--at=900ms")
    check("leaks in the first second: the cache grows too", b"cache" in done.stdout)


def diffs(first, rebuilt, extra):
    found = answer("diff", first, rebuilt)
    same("diff: the same program built again is the same",
         (found["changes"], found["unchanged"], found["total_change"]), ([], 4, 0))
    found = answer("diff", f"{first}@end", f"{extra}@end")
    same("diff: what is new", [(r["where"], r["kind"], r["change"]) for r in found["changes"]],
         [("extra (extra.c:100)", "new", 300000)])
    found = answer("diff", f"{extra}@end", f"{first}@end")
    same("diff: what is gone", [(r["where"], r["kind"], r["change"]) for r in found["changes"]],
         [("extra (extra.c:100)", "gone", -300000)])
    found = answer("diff", f"{first}@10%", "@90%")
    same("diff: two moments of a run", [(r["where"], r["kind"], r["change"], r["change_blocks"])
                                        for r in found["changes"]],
         [("grow (app.c:10)", "more", 800 * KiB, 800)])
    found = answer("diff", first, extra, "--metric=allocations", "--by=function")
    same("diff: by function and another metric",
         [(r["where"], r["change"]) for r in found["changes"]], [("extra (extra.c:100)", 100)])
    done = heap("diff", first, f"{rebuilt}.gone")
    check("diff: a file that is not there", done.returncode == 1 and not done.stdout,
          done.stderr.decode())


def texts(first):
    text = heap("top", first, "--limit=1", "--depth=0").stdout.decode()
    same("text: aligned, with units, and what is left out", text,
         "5.0 MiB live at the peak (5.10 s)\n\n"
         "   live      %  blocks  allocations  temporary  where\n"
         "4.0 MiB  79.2%       1            1          0  spike (app.c:30)\n"
         "3 more (1.0 MiB)\n")
    text = heap("tree", first, "--top-down", "--only=*app*").stdout.decode()
    check("text: the tree", re.search(r"^ *4\.0 MiB +79\.2% +4\.0 MiB +1 +.*spike \(app\.c:30\)$", text,
                                      re.M), text)
    text = heap("flame", first).stdout.decode()
    check("text: the flame graph", re.search(r"^\[spike \(app\.c:30\)-+\]\[grow", text, re.M), text)
    text = heap("top", first, "--metric=growth", "--from=5.05s", "--to=6s", "--depth=0")
    check("text: growth has a sign", "-4.0 MiB" in text.stdout.decode() and
          "+95.0 KiB" in text.stdout.decode(), text.stdout.decode())
    text = heap("temporary", first, "--depth=0").stdout.decode()
    same("text: temporary", text,
         "1,000 temporary of the whole run (10.0 s)\n\n"
         "temporary       %  blocks  allocations  of its own  where\n"
         "    1,000  100.0%       0        1,000      100.0%  "
         "rust::churn::h0123456789abcdef (churn.rs:40)\n")
    rows = table("top", first, "--limit=2")
    same("CSV: --limit", len(rows), 2)
    done = heap("top", first, "--limit=2", "--csv")
    check("CSV: what is left out is told beside it", b"2 more (" in done.stderr,
          done.stderr.decode())
    for command in ("summary", "query", "export", "diff"):
        done = heap(command, "--help")
        check(f"help of {command}", done.returncode == 0 and b"usage: muninn heap" in done.stdout)
    same("no command", heap().returncode, 1)
    check("an unknown command", b"there is no command nope" in heap("nope").stderr)
    same("heap help", heap("help").returncode, 0)
