# SPDX-License-Identifier: MIT
"""Every answer against a recount of the recording's events, which is written here in a few lines
and knows nothing of sums, slices or key frames."""
from collections import defaultdict

from suite import answer, check, make_recording, same, sql, table

FIELDS = "time_ns, kind, address, size, usable, thread, site, context, space, born_ns, temporary"


class Recount:
    """Blocks and sums of a recording, from its events."""

    def __init__(self, file):
        self.events = sql(file, f"SELECT {FIELDS} FROM events")
        self.site_thread = dict(sql(file, "SELECT id, thread FROM sites"))
        self.last_ns = answer("summary", file)["duration_ns"]
        self.blocks = []  # (space, address, size, site, context, born, died or None, temporary)
        live = {}
        for ns, kind, address, size, _, _, site, context, space, born, temporary in self.events:
            if kind == "alloc":
                live[space, address] = (size, site, context, ns)
            else:
                old = live.pop((space, address))
                # What is left of a mapping that is cut comes anew, and keeps its birth.
                known = old if space == "heap" else (*old[:3], born)
                assert known == (size, site, context, born), (old, size, site, context, born)
                self.blocks.append((space, address, size, site, context, born, ns, temporary))
        for (space, address), (size, site, context, ns) in live.items():
            self.blocks.append((space, address, size, site, context, ns, None, 0))

    def live(self, ns, space="heap", keep=lambda block: True):
        """Live bytes and blocks by context after everything that happened at ns."""
        sums = defaultdict(lambda: [0, 0])
        for block in self.blocks:
            if block[0] == space and block[5] <= ns and (block[6] is None or block[6] > ns) \
                    and keep(block):
                sums[block[4]][0] += block[2]
                sums[block[4]][1] += 1
        return {context: tuple(both) for context, both in sums.items()}

    def peak(self):
        now = high = high_ns = 0
        for ns, kind, _, size, _, _, _, _, space, _, _ in self.events:
            if space == "heap":
                now += size if kind == "alloc" else -size
                if now > high:
                    high, high_ns = now, ns
        return high, high_ns

    def born(self, start, end, space="heap"):
        """Allocations and bytes by context in [start, end)."""
        sums = defaultdict(lambda: [0, 0])
        for block in self.blocks:
            if block[0] == space and start <= block[5] < end:
                sums[block[4]][0] += 1
                sums[block[4]][1] += block[2]
        return {context: tuple(both) for context, both in sums.items()}


def live_rows(groups):
    return {g["context"]: (g["live_bytes"], g["live_blocks"]) for g in groups if g["live_bytes"]}


def bucket(value):
    return value.bit_length()


def histogram(rows):
    return {bucket(r["to_bytes" if "to_bytes" in r else "to_ns"]): r["blocks"] for r in rows
            if r["range"] != "still live"}


def recount():
    file, said = make_recording("recount", "--events=30000", "--contexts=60", "--threads=3",
                                "--spaces", "--samples=10", "--asked=2", "--seconds=10")
    truth = Recount(file)
    high, high_ns = truth.peak()
    same("the generator and the events agree on the peak", (high, high_ns),
         tuple(map(int, said["peak"])))
    peak = live_rows(answer("top", file)["groups"])
    same("top: the peak is the state of which it is the sum", sum(b for b, _ in peak.values()),
         high)
    end = live_rows(answer("top", file, "--at=end")["groups"])
    same("top --at=end", end, truth.live(truth.last_ns))
    moments(file, truth)
    filters(file, truth)
    queries(file, truth)
    histograms(file, truth)
    threads(file, truth)
    trees(file, truth)


def moments(file, truth):
    for share in (5, 33, 50, 90):
        ns = truth.last_ns * share // 100
        rows = live_rows(answer("top", file, f"--at={share}%")["groups"])
        same(f"top --at={share}%", rows, truth.live(ns))
    start, end = truth.last_ns // 4, truth.last_ns // 2
    rows = answer("top", file, "--from=25%", "--to=50%", "--metric=allocated")["groups"]
    same("top --from --to --metric=allocated",
         {r["context"]: (r["allocations"], r["value"]) for r in rows if r["value"]},
         truth.born(start, end))
    rows = answer("top", file, "--from=25%", "--to=50%", "--metric=growth")["groups"]
    before, after = truth.live(start - 1), truth.live(end - 1)
    expected = {c: after.get(c, (0, 0))[0] - before.get(c, (0, 0))[0]
                for c in set(before) | set(after)}
    same("top --metric=growth", {r["context"]: r["value"] for r in rows},
         {c: v for c, v in expected.items() if v})
    mapped = live_rows(answer("top", file, "--at=50%", "--space=mapped")["groups"])
    same("top --space=mapped", mapped, truth.live(truth.last_ns * 50 // 100, "mapped"))


def filters(file, truth):
    at = truth.last_ns
    rows = live_rows(answer("top", file, "--at=end", "--min-size=512", "--max-size=2k")["groups"])
    same("--min-size and --max-size", rows,
         truth.live(at, keep=lambda b: 512 <= b[2] <= 2048))
    rows = live_rows(answer("top", file, "--at=end", "--thread=2")["groups"])
    same("--thread", rows, truth.live(at, keep=lambda b: truth.site_thread[b[3]] == 2))

    def age(block):
        return (at if block[6] is None else block[6]) - block[5]
    rows = answer("top", file, "--metric=allocations", "--max-lifetime=1ms")["groups"]
    expected = defaultdict(int)
    for block in truth.blocks:
        if block[0] == "heap" and age(block) <= 1000000:
            expected[block[4]] += 1
    same("--max-lifetime", {r["context"]: r["value"] for r in rows if r["value"]}, dict(expected))
    with_main = {c for c, in sql(file, "SELECT DISTINCT context FROM frames "
                                       "WHERE function = 'function_7'")}
    rows = live_rows(answer("top", file, "--at=end", "--function=function_7")["groups"])
    same("--function", rows, truth.live(at, keep=lambda b: b[4] in with_main))
    rows = live_rows(answer("top", file, "--at=end", "--function=!function_7")["groups"])
    same("--function=!", rows, truth.live(at, keep=lambda b: b[4] not in with_main))


def queries(file, truth):
    heap = [b for b in truth.blocks if b[0] != "mapped"]
    maps = [b for b in truth.blocks if b[0] == "mapped"]
    rows = sql(file, "SELECT space, address, size, site, context, born_ns, died_ns, temporary "
                     "FROM allocations")
    same("SQL: allocations are the blocks of the events", sorted(rows, key=str),
         sorted(heap, key=str))
    same("SQL: maps are those that are mapped", sorted(sql(
        file, "SELECT space, address, size, site, context, born_ns, died_ns, temporary FROM maps"),
        key=str), sorted(maps, key=str))
    middle, late = truth.last_ns // 2, truth.last_ns * 6 // 10
    context = max(b[4] for b in heap)
    site = heap[0][3]
    asks = (
        (f"born_ns >= {middle}", lambda b: b[5] >= middle),
        (f"born_ns < {middle}", lambda b: b[5] < middle),
        (f"born_ns BETWEEN {middle} AND {late}", lambda b: middle <= b[5] <= late),
        (f"born_ns > {middle}.5", lambda b: b[5] > middle + 0.5),
        (f"died_ns > {middle}", lambda b: b[6] is not None and b[6] > middle),
        (f"died_ns <= {middle}", lambda b: b[6] is not None and b[6] <= middle),
        (f"died_ns BETWEEN {middle} AND {late}", lambda b: b[6] and middle <= b[6] <= late),
        ("died_ns IS NULL", lambda b: b[6] is None),
        (f"died_ns IS NULL AND born_ns < {middle}", lambda b: b[6] is None and b[5] < middle),
        (f"born_ns <= {middle} AND (died_ns IS NULL OR died_ns > {middle})",
         lambda b: b[5] <= middle and (b[6] is None or b[6] > middle)),
        (f"context = {context}", lambda b: b[4] == context),
        (f"site = {site}", lambda b: b[3] == site),
        (f"site = {site} AND born_ns >= {middle}", lambda b: b[3] == site and b[5] >= middle),
        (f"context IN ({context}, {context - 1})", lambda b: b[4] in (context, context - 1)),
        ("size > 1000 AND size <= 1500", lambda b: 1000 < b[2] <= 1500),
        ("size = -1", lambda b: False),
        ("thread = 2", lambda b: truth.site_thread[b[3]] == 2),
        ("site = 'x'", lambda b: False),
        ("temporary", lambda b: b[7]),
    )
    for where, keep in asks:
        kept = [b for b in heap if keep(b)]
        same(f"SQL: WHERE {where.replace(str(middle), 'M').replace(str(late), 'L')}",
             sql(file, f"SELECT count(*), coalesce(sum(size), 0) FROM allocations WHERE {where}"),
             [(len(kept), sum(b[2] for b in kept))])
    joined = dict(sql(file, "SELECT a.context, sum(a.size) FROM sites s JOIN allocations a "
                            "ON a.site = s.id AND a.space = 'heap' WHERE a.died_ns IS NULL "
                            "GROUP BY 1"))
    same("SQL: a join that asks for one site at a time", joined,
         {c: v for c, (v, _) in truth.live(truth.last_ns).items()})
    found = answer("query", file, "SELECT count(*) FROM frames f JOIN allocations a USING (context)",
                   "--time-limit=10s")["rows"]
    depth = dict(sql(file, "SELECT id, depth FROM contexts"))
    same("SQL: a join reads the events once, whatever its order", found,
         [{"count(*)": sum(depth[b[4]] for b in heap)}])
    sites = {(r[0], r[1]): r[2:] for r in sql(
        file, "SELECT space, context, sum(live_bytes), sum(live_blocks), sum(allocations), "
              "sum(allocated_bytes) FROM sites GROUP BY 1, 2")}
    born, live = truth.born(0, truth.last_ns + 1), truth.live(truth.last_ns)
    same("SQL: sites",
         {c: sites["heap", c] for c in born},
         {c: (*live.get(c, (0, 0)), *born[c]) for c in born})
    (reason, ns, total), = sql(file, "SELECT reason, time_ns, heap_bytes FROM snapshots "
                                     "WHERE reason = 'peak'")
    same("SQL: the peak's sites add up to it",
         sql(file, "SELECT sum(x.live_bytes) FROM snapshot_sites x JOIN snapshots p "
                   "ON x.snapshot = p.id JOIN sites ON sites.id = x.site WHERE reason = 'peak' AND space = 'heap'"),
         [(total,)])
    same("SQL: the peak", (total, ns), truth.peak())
    slices = sql(file, "SELECT sum(events), sum(allocations) FROM slices")
    same("SQL: slices", slices[0][0], len(truth.events))
    same("SQL: two cursors at once", sql(
        file, "SELECT count(*) FROM (SELECT born_ns FROM allocations LIMIT 50) a "
              "JOIN (SELECT born_ns FROM events LIMIT 70) b"), [(3500,)])
    stacks = sql(file, "SELECT id, depth, stack FROM contexts WHERE id > 0")
    frames = defaultdict(list)
    for c, function in sql(file, "SELECT context, function FROM frames ORDER BY context, level"):
        frames[c].insert(0, function or "???")
    same("SQL: contexts and frames agree", {c: s for c, _, s in stacks},
         {c: ";".join(f) for c, f in frames.items()})


def histograms(file, truth):
    expected, lifetimes = defaultdict(int), defaultdict(int)
    for block in truth.blocks:
        if block[0] == "heap":
            expected[bucket(block[2])] += 1
            if block[6] is not None:
                lifetimes[bucket(block[6] - block[5])] += 1
    same("sizes", histogram(answer("sizes", file)["buckets"]), dict(expected))
    same("lifetimes", histogram(answer("lifetimes", file)["buckets"]), dict(lifetimes))
    at = truth.last_ns // 2
    live = defaultdict(int)
    for block in truth.blocks:
        if block[0] == "heap" and block[5] <= at and (block[6] is None or block[6] > at):
            live[bucket(block[2])] += 1
    same("sizes --at=50%", histogram(answer("sizes", file, "--at=50%")["buckets"]), dict(live))


def threads(file, truth):
    expected = defaultdict(lambda: [0, 0])
    for block in truth.blocks:
        if block[0] == "heap":
            expected[truth.site_thread[block[3]]][0] += 1
            expected[truth.site_thread[block[3]]][1] += block[2]
    rows = table("threads", file)
    same("threads", {int(r["thread"]): [int(r["allocations"]), int(r["allocated_bytes"])]
                     for r in rows}, dict(expected))
    regions = table("maps", file)
    live = [b for b in truth.blocks if b[0] == "mapped" and b[6] is None]
    same("maps: the regions", sorted(int(r["address"], 16) for r in regions),
         sorted(b[1] for b in live))


def trees(file, truth):
    for way in ("--top-down", "--bottom-up"):
        nodes = answer("tree", file, way, "--at=end", "--limit=0", "--threshold=0")["nodes"]
        below = defaultdict(int)
        for node in nodes[1:]:
            below[node["parent"]] += node["value"]
        wrong = [n for n in nodes if n["value"] != n["self"] + below[n["id"]]]
        check(f"tree {way}: a node is its own and its children's", not wrong, str(wrong[:2]))
        same(f"tree {way}: the root is the sum", nodes[0]["value"],
             sum(v for v, _ in truth.live(truth.last_ns).values()))
    cut = answer("tree", file, "--at=end", "--limit=10")["nodes"]
    below = defaultdict(int)
    for node in cut[1:]:
        below[node["parent"]] += node["value"]
    wrong = [n for n in cut if n["id"] is not None and n["value"] != n["self"] + below[n["id"]]]
    check("tree --limit: what is left out is summed up", not wrong and any(
        n["more_nodes"] for n in cut), str(wrong[:2]))
