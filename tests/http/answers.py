# SPDX-License-Identifier: MIT
"""What is answered: against `muninn heap --json`, SQL, and sums of the answers themselves."""

import http.client
import json
import struct
import time

from access import equal
from server import Server, Tree, heap, make_recording

TESTS = []
STATE = {}
METRICS = ("live", "peak", "allocated", "allocations", "temporary", "leaked", "growth")


def test(function):
    TESTS.append(function)
    return function


def served():
    if "server" not in STATE:
        STATE["path"], STATE["told"] = make_recording(
            "a.heap", "--events=60000", "--contexts=400", "--threads=4", "--spaces", "--asked=3")
        STATE["other"], _ = make_recording(
            "b.heap", "--events=50000", "--contexts=400", "--threads=4", "--seed=2", "--bare")
        STATE["server"] = Server(STATE["path"], STATE["other"])
    return STATE["server"]


def close():
    if "server" in STATE:
        STATE.pop("server").stop()


def sql(query, **parameters):
    return served().api("sql", q=query, **parameters)["rows"]


@test
def info_is_what_heap_summary_says():
    info, summary = served().api("info"), heap("summary", (served(), STATE["path"])[1])
    for here, there in (("duration_ns", "duration_ns"), ("events", "events"), ("pid", "pid"),
                        ("threads", "threads"), ("command", "run_command")):
        equal(info[here], summary[there])
    for here, there in (("allocated", "allocated_bytes"), ("allocations", "allocations"),
                        ("frees", "frees"), ("temporary", "temporary"), ("leaked", "live_bytes"),
                        ("leaked_blocks", "live_blocks"), ("reallocations", "reallocations")):
        equal(info["totals"][here], summary[there])
    heap_peak = next(p for p in summary["peaks"] if p["space"] == "heap")
    equal(info["peak"]["heap"], heap_peak["bytes"])
    equal(info["peak"]["ns"], heap_peak["time_ns"])
    equal(info["peak"]["heap"], int(STATE["told"]["peak"][0]))
    equal(info["events_kept"], "all")
    assert {"peak", "asked"} <= {state["reason"] for state in info["states"]}


@test
def contexts_are_what_heap_top_says():
    served()
    for by, group in (("stack", "context"), ("object", "library"), ("thread", "thread"),
                      ("function", "function")):
        top = heap("top", STATE["path"], f"--by={by}", "--limit=1000")
        rows = served().api("contexts", group=group, at="peak", limit=1000)["rows"]
        equal(sorted((r["live"], r["blocks"]) for r in rows if r["live"]),
              sorted((g["live_bytes"], g["live_blocks"]) for g in top["groups"]
                     if g["live_bytes"]))
    top = heap("top", STATE["path"], "--by=stack", "--limit=50")
    rows = {r["context"]: r for r in served().api("contexts", limit=1000)["rows"]}
    for group in top["groups"]:
        row = rows[group["context"]]
        equal(row["name"], group["where"])
        for here, there in (("peak", "live_bytes"), ("allocated", "allocated_bytes"),
                            ("allocations", "allocations"), ("freed", "freed_bytes"),
                            ("temporary", "temporary"), ("peak_own", "peak_bytes"),
                            ("first_ns", "first_ns"), ("last_ns", "last_ns")):
            equal(row[here], group[there])


@test
def rows_add_up_to_their_totals_in_every_group_and_range():
    duration = served().api("info")["duration_ns"]
    for selection in ({}, {"from_": duration // 3, "to": duration // 2}, {"at": duration // 4},
                      {"space": "all"}, {"thread": 2}, {"function": "function_1*"},
                      {"object": "!*/app"}):
        totals = None
        for group in ("context", "function", "file", "library", "thread"):
            answer = served().api("contexts", group=group, limit=1000, **selection)
            equal(len(answer["rows"]), answer["rows_total"])
            for cell in ("live", "blocks", "peak", "allocated", "frees", "temporary", "growth"):
                equal(sum(r[cell] for r in answer["rows"]), answer["totals"][cell])
            totals = totals or {k: v for k, v in answer["totals"].items() if k != "peak_own"}
            equal({k: v for k, v in answer["totals"].items() if k != "peak_own"}, totals)


@test
def the_metrics_are_those_of_sql():
    totals = served().api("contexts")["totals"]
    row = sql("select sum(live_bytes), sum(live_blocks), sum(allocated_bytes), sum(allocations), "
              "sum(temporary), sum(at_peak_bytes) from sites where space = 'heap'")[0]
    equal([totals[k] for k in ("live", "blocks", "allocated", "allocations", "temporary",
                               "peak")], row)
    duration = served().api("info")["duration_ns"]
    half = duration // 2
    answer = served().api("contexts", from_=half, sort="leaked")["totals"]
    equal([answer["allocated"], answer["leaked"]], sql(
        f"select sum(size), sum(size) filter (where died_ns is null) from allocations "
        f"where space = 'heap' and born_ns >= {half}")[0])
    equal(served().api("contexts", from_=half)["totals"]["leaked"], answer["leaked"])
    # Where it is not written down it would take a walk, which only who sorts by it waits for.
    expected = sql(f"select (select sum(size) from allocations where died_ns is null and born_ns "
                   f">= {half}) + (select coalesce(sum(size), 0) from maps where died_ns is null "
                   f"and born_ns >= {half})")[0][0]
    parts = served().api("contexts", from_=half, space="all")["totals"]
    assert parts["leaked"] in (None, expected), (parts, expected)
    equal(served().api("contexts", from_=half, space="all", sort="leaked")["totals"]["leaked"],
          expected)
    live = sql(f"select sum(size) from allocations where space = 'heap' and born_ns < {half} "
               f"and (died_ns is null or died_ns >= {half})")[0][0]
    equal(served().api("contexts", at=half)["totals"]["live"], live)
    equal(served().api("contexts", from_=half)["totals"]["growth"], totals["live"] - live)


@test
def trees_sum_up_and_nothing_is_lost():
    for metric in METRICS:
        total = served().api("contexts", limit=1)["totals"][metric]
        for options in ({}, {"bottom_up": 1}, {"by_function": 1}, {"collapse": 1}, {"fold": 1},
                        {"only": "app"}, {"allocators": 1}, {"max_nodes": 10}, {"max_depth": 2}):
            tree = Tree(served().api("tree", metric=metric, **options))
            equal(tree.answer["value"][0], total)
            equal(tree.answer["total"], total)
            for i in range(tree.count):
                children = tree.children(i)
                if tree.answer["id"][i] >= 0 and children:
                    equal(sum(tree.answer["value"][k] for k in children) + tree.answer["self"][i],
                          tree.answer["value"][i])
                if i:
                    assert tree.answer["parent"][i] < i


@test
def n_more_opens_until_every_node_was_seen():
    whole = Tree(served().api("tree", min_ppm=0, max_nodes=200000))
    assert not any(whole.answer["more"])
    expected = sorted(whole.answer["id"])
    cut = {"min_ppm": 100000, "max_nodes": 5}
    seen, asked = set(), [(0, 0)]
    while asked:
        root, first = asked.pop()
        tree = Tree(served().api("tree", root=root, first=first, **cut))
        value = sum(tree.answer["value"][i] for i in tree.children(0))
        equal(tree.answer["value"][0], value if first else tree.answer["value"][0])
        for i in range(tree.count):
            if tree.answer["id"][i] >= 0:
                seen.add(tree.answer["id"][i])
            else:
                parent = tree.answer["id"][tree.answer["parent"][i]]
                step = (parent, tree.answer["first"][i])
                if step == (root, first):
                    cut = {"min_ppm": cut["min_ppm"] // 2, "max_nodes": cut["max_nodes"] * 2}
                asked.append(step)
    equal(sorted(seen), expected)


@test
def the_tree_is_that_of_heap_tree():
    tree = Tree(served().api("tree", metric="peak", by_function=1, min_ppm=0))
    by_function = {}
    for row in sql("select c.stack, sum(s.at_peak_bytes) from sites s join contexts c "
                   "on c.id = s.context where s.space = 'heap' group by s.context", limit=5000):
        by_function.setdefault(row[0].split(";")[0], 0)
        by_function[row[0].split(";")[0]] += row[1]
    roots = {}
    for i in tree.children(0):
        roots[tree.name(i)] = roots.get(tree.name(i), 0) + tree.answer["value"][i]
    for name, value in by_function.items():
        if value and name in roots:
            equal(roots[name], value)
    assert set(roots) & set(by_function)


@test
def the_timeline_adds_up_at_every_point():
    info = served().api("info")
    for selection in ({}, {"from_": info["duration_ns"] // 3, "to": info["duration_ns"] // 2},
                      {"space": "all"}, {"group": "function"}, {"group": "thread", "points": 7},
                      {"group": "none"}, {"top": 0}, {"points": 1}, {"points": 4000}):
        line = served().api("timeline", **selection)
        points = selection.get("points", 600)
        equal(len(line["times"]), points)
        spaces = ("heap", "mapped", "stack") if "space" in selection else ("heap",)
        for i in range(0, points, max(1, points // 50)):
            equal(sum(series[i] for series in line["series"]) + line["other"][i],
                  sum(line["totals"][space][i] for space in spaces))
            for space in line["totals"]:
                assert line["high"][space][i] >= line["totals"][space][i]
    line = served().api("timeline", points=40)
    for i in (0, 9, 25, 39):
        at = line["times"][i]
        expected = sql(f"select coalesce(sum(size), 0) from allocations where space = 'heap' and "
                       f"born_ns < {at} and (died_ns is null or died_ns >= {at})")[0][0]
        equal(line["totals"]["heap"][i], expected)
    equal(line["peak"], {"ns": info["peak"]["ns"], "value": info["peak"]["heap"]})
    assert max(line["high"]["heap"]) == info["peak"]["heap"]
    assert len(line["rss"]["times"]) == len(line["rss"]["client"]) > 0


@test
def a_timeline_can_be_had_as_doubles():
    line = served().api("timeline", points=50, top=3)
    status, headers, body = served().raw("/api/timeline?points=50&top=3&format=f64")
    equal((status, headers["content-type"]), (200, "application/octet-stream"))
    values = struct.unpack(f"<{len(body) // 8}d", body)
    equal(values[:2], (50, 3))
    columns = [list(values[2 + i * 50:52 + i * 50]) for i in range((len(values) - 2) // 50)]
    equal(columns, [line["times"], *line["totals"].values(), *line["high"].values(),
                    line["other"], *line["series"]])


@test
def filters_on_blocks_are_exact():
    rows = sql("select count(*), sum(size) from allocations where space = 'heap' and size >= 100 "
               "and size <= 1000")[0]
    totals = served().api("contexts", min_size=100, max_size=1000)["totals"]
    equal([totals["allocations"], totals["allocated"]], rows)
    line = served().api("timeline", min_size=100, max_size=1000, points=10)
    for i in (3, 9):
        at = line["times"][i]
        expected = sql(f"select coalesce(sum(size), 0) from allocations where space = 'heap' and "
                       f"size >= 100 and size <= 1000 and born_ns < {at} and "
                       f"(died_ns is null or died_ns >= {at})")[0][0]
        equal(sum(series[i] for series in line["series"]) + line["other"][i], expected)
    histogram = served().api("histogram", min_size=100, max_size=1000)
    equal(histogram["allocations"], rows[0])
    equal(sum(bucket["bytes"] for bucket in histogram["sizes"]), rows[1])


@test
def histograms_count_every_block_once():
    info = served().api("info")
    equal(served().api("histogram")["exact"], True)
    start = info["duration_ns"] // 2
    part = served().api("histogram", from_=start)
    for bucket in part["sizes"]:
        equal([bucket["count"], bucket["bytes"] or None], sql(
            f"select count(*), sum(size) from allocations where space = 'heap' and born_ns >= "
            f"{start} and size between {bucket['low']} and {bucket['high']}")[0])
    for bucket in part["lifetimes"]:
        equal(bucket["count"], sql(
            f"select count(*) from allocations where space = 'heap' and died_ns >= {start} and "
            f"lifetime_ns between {bucket['low']} and {bucket['high']}")[0][0])


@test
def functions_and_their_relatives_agree_with_the_stacks():
    functions = served().api("functions", limit=1000)
    total = functions["total"]
    by_id = {row["id"]: row for row in functions["rows"]}
    equal(sum(row["self"] for row in functions["rows"]), total)
    for row in functions["rows"][:12]:
        one = served().api("function", id=row["id"])
        equal((one["total"], one["self"], one["count"]), (row["total"], row["self"], row["count"]))
        for relative in one["callers"] + one["callees"]:
            assert 0 <= relative["value"] <= row["total"]
            assert relative["value"] <= by_id[relative["id"]]["total"]
        if one["callees"] and row["self"] == 0:
            assert sum(c["value"] for c in one["callees"]) >= row["total"]
    main = served().api("function", name="main")
    equal((main["total"], main["callers"]), (total, []))
    found = served().api("functions", search="KLASS", limit=1000)["rows"]
    assert found and all("Klass" in row["function"] for row in found)


@test
def the_map_has_every_live_block():
    for at in ("peak", "end", served().api("info")["duration_ns"] // 3):
        at_map = served().api("map", at=at, cells=64)
        blocks = served().api("blocks", at=at, limit=1000, sort="size")
        totals = served().api("contexts", at=at)["totals"]
        equal((at_map["bytes"], at_map["blocks"]), (totals["live"], totals["blocks"]))
        equal(blocks["rows_total"], at_map["blocks"])
        for region in at_map["regions"]:
            equal(sum(region["cell_live"]), region["bytes"])
            equal(sum(region["cell_blocks"]), region["blocks"])
        equal(sum(r["bytes"] for r in at_map["regions"]), at_map["bytes"])
        pages = at_map["fragmentation"]
        equal(sum(pages["fill"]), pages["used_pages"])
        assert 0 <= pages["lost"] < 1
        sizes = [row["size"] for row in blocks["rows"]]
        equal(sizes, sorted(sizes, reverse=True))
    equal(served().api("map"), served().api("map", at="peak"))
    region = max(at_map["regions"], key=lambda r: r["bytes"])
    inside = served().api("blocks", at=at, start=region["start"], end=region["end"], limit=1)
    equal(inside["rows_total"], region["blocks"])


@test
def threads_and_stacks_are_those_of_the_recording():
    threads = served().api("threads", spark=20)["rows"]
    equal([t["number"] for t in threads], [1, 2, 3, 4])
    equal(sum(t["live"] for t in threads), served().api("info")["totals"]["leaked"])
    for thread in threads:
        equal(len(thread["spark"]), 20)
        equal(thread["spark"][-1], thread["live"])
    context = served().api("contexts", limit=1)["rows"][0]["context"]
    frames = served().api("stack", context=context)["frames"]
    names = sql(f"select function from frames where context = {context} order by level")
    equal([f["function"] for f in frames if not f["function"].startswith("0x")],
          [n[0] for n in names if n[0] and not n[0].startswith("?")])


@test
def tables_are_sorted_searched_and_paged():
    for sort in ("live", "peak", "allocated", "allocations", "temporary", "average", "first",
                 "last", "blocks", "frees", "peak_own"):
        key = {"first": "first_ns", "last": "last_ns"}.get(sort, sort)
        for order in ("desc", "asc"):
            rows = served().api("contexts", sort=sort, order=order, limit=1000)["rows"]
            values = [row[key] for row in rows]
            equal(values, sorted(values, reverse=order == "desc"))
    names = [r["name"] for r in served().api("contexts", sort="name", order="asc",
                                             limit=1000)["rows"]]
    equal(names, sorted(names, key=lambda n: n.encode()))
    rows = served().api("contexts", limit=1000)["rows"]
    pages = []
    for offset in range(0, len(rows) + 50, 50):
        pages += served().api("contexts", limit=50, offset=offset)["rows"]
    equal(pages, rows)
    found = served().api("contexts", search="Function_7", limit=1000)
    assert 0 < found["rows_total"] < len(rows)
    sparks = served().api("contexts", spark=30, limit=5)["rows"]
    for row in sparks:
        equal(row["spark"][-1], row["live"])


@test
def differences_of_moments_and_of_recordings():
    duration = served().api("info")["duration_ns"]
    early, late = duration // 4, duration // 2
    before = served().api("contexts", at=early)["totals"]["live"]
    after = served().api("contexts", at=late)["totals"]["live"]
    diff = served().api("contexts", at=late, base_at=early, limit=1000)
    equal(diff["totals"]["live"], after - before)
    for row in diff["rows"]:
        assert row["base"]["live"] + row["live"] >= 0
    for options in ({}, {"bottom_up": 1}, {"by_function": 1}):
        tree = Tree(served().api("tree", at=late, base_at=early, min_ppm=0, **options))
        equal((tree.answer["total"], tree.answer["base_total"]), (after - before, before))
        for i in range(tree.count):
            if tree.answer["id"][i] >= 0 and tree.children(i):
                equal(sum(tree.answer["base"][k] for k in tree.children(i)) <=
                      tree.answer["base"][i], True)
    other = served().api("contexts", f=1)["totals"]["live"]
    own = served().api("contexts")["totals"]["live"]
    for path in ("contexts", "tree", "functions"):
        answer = served().api(path, base_f=1)
        equal(answer["total"] if path != "contexts" else answer["totals"]["live"], own - other)
        back = served().api(path, f=1, base_f=0)
        equal(back["total"] if path != "contexts" else back["totals"]["live"], other - own)
    same = served().api("contexts", base_f=0, limit=1000)
    equal({row["live"] for row in same["rows"]}, {0})


@test
def sql_reads_and_nothing_else():
    equal(sql("select count(*) from events")[0][0], 60000)
    answer = served().api("sql", q="select address from events", limit=10)
    equal((len(answer["rows"]), answer["truncated"]), (10, True))
    equal(sql("select 9007199254740993, 1.5, null, 'x'"), [["9007199254740993", 1.5, None, "x"]])
    for query in ("drop table events", "attach 'x' as y", "select load_extension('x')",
                  "select", "pragma writable_schema=1", "select * from nothing", ""):
        error = served().api("sql", expect=400, q=query)["error"]
        equal(error["code"], "bad-parameter")
        assert error["message"]
    tables = served().api("sql/tables")
    assert {"allocations", "contexts", "sites"} <= {t["name"] for t in tables["tables"]}
    for example in tables["examples"]:
        served().api("sql", q=example["query"])


@test
def answers_are_remembered_and_marked():
    status, headers, body = served().raw("/api/tree?metric=peak")
    again = served().raw("/api/tree?metric=peak", {"If-None-Match": headers["etag"]})
    equal((status, again[0], again[2]), (200, 304, b""))
    other = served().raw("/api/tree?metric=live", {"If-None-Match": headers["etag"]})
    equal(other[0], 200)
    # The order of parameters, and empty ones, make no difference.
    equal(served().raw("/api/tree?from=&metric=peak&f=0")[2], body)


@test
def streams_tell_where_a_file_stands():
    connection = http.client.HTTPConnection(served().host, served().port, timeout=120)
    connection.request("GET", "/api/events", headers={"X-Muninn-Token": served().token})
    answer = connection.getresponse()
    equal((answer.status, answer.getheader("content-type")), (200, "text/event-stream"))
    events = []
    while len(events) < 2:
        line = answer.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            events.append((kind, json.loads(line[6:])))
    equal([(kind, data["f"]) for kind, data in events], [("end", 0), ("end", 1)])
    equal(events[0][1]["duration_ns"], served().api("info")["duration_ns"])
    connection.close()


@test
def streams_are_few_and_end_when_nobody_listens():
    open_ones = []
    for _ in range(12):
        connection = http.client.HTTPConnection(served().host, served().port, timeout=120)
        connection.request("GET", "/api/events?f=0", headers={"X-Muninn-Token": served().token})
        answer = connection.getresponse()
        open_ones.append((connection, answer))
    statuses = [answer.status for _, answer in open_ones]
    assert 503 in statuses and statuses[:4] == [200] * 4, statuses
    for connection, answer in open_ones:
        answer.close()
        connection.close()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(served().host, served().port, timeout=120)
        connection.request("GET", "/api/events?f=0", headers={"X-Muninn-Token": served().token})
        status = connection.getresponse().status
        connection.close()
        if status == 200:
            return
        time.sleep(0.3)
    raise AssertionError("streams of those who have gone still count")
