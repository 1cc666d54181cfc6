# SPDX-License-Identifier: MIT
"""A recording of millions of events: what is kept of its parts says what a walk through all events
says, in bounded memory, and what takes long does not hold up the rest. How quick it is,
`make bench` judges (bench/viewing.py).
"""

import time

from access import equal
from server import Server, heap, make_recording

TESTS = []
STATE = {}


def test(function):
    TESTS.append(function)
    return function


def close():
    if "server" in STATE:
        STATE.pop("server").stop()


def served():
    if "server" not in STATE:
        STATE["path"], _ = make_recording("big.heap", "--events=3000000", "--contexts=3000",
                                          "--threads=8", "--live=50000", "--seconds=100",
                                          "--spaces")
        server = STATE["server"] = Server(STATE["path"])
        server.wait_for_parts()
    return STATE["server"]


def sql(query):
    """By the command, whose limit of time can be set: the server's is for a person who waits."""
    served()
    rows = heap("query", STATE["path"], query, "--time-limit=600s")["rows"]
    return [list(row.values()) for row in rows]


def buckets_of(column, where):
    """{bucket: (count, bytes)} by SQL, which walks."""
    rows = sql(f"select {column}, count(*), sum(size) from allocations where {where} "
               f"group by case when {column} = 0 then 0 else cast(log2({column}) as int) + 1 end")
    return {int(value).bit_length(): (count, size) for value, count, size in rows}


def histogram_is_right(query, heap, start, end):
    answer = served().api(f"histogram?{query}from={start}&to={end}")
    equal(answer["exact"], True)
    born = buckets_of("size", f"{heap} and born_ns >= {start} and born_ns < {end}")
    equal({b["high"].bit_length(): (b["count"], b["bytes"])
           for b in answer["sizes"] if b["count"]}, born)
    died = buckets_of("died_ns - born_ns", f"{heap} and died_ns >= {start} and died_ns < {end}")
    equal({b["high"].bit_length(): b["count"] for b in answer["lifetimes"] if b["count"]},
          {bucket: count for bucket, (count, _) in died.items()})
    largest = sql(f"select max(size) from allocations where {heap} and born_ns >= {start} "
                  f"and born_ns < {end}")
    equal(answer["largest"], largest[0][0])


HEAP = "space = 'heap'"


@test
def histograms_of_a_range_are_those_of_a_walk():
    duration = served().api("info")["duration_ns"]
    histogram_is_right("", HEAP, duration // 7, duration * 5 // 7)
    histogram_is_right("", HEAP, 0, duration // 500)


@test
def histograms_of_a_range_and_a_thread_are_those_of_a_walk():
    duration = served().api("info")["duration_ns"]
    histogram_is_right("thread=3&", HEAP + " and thread = 3", duration // 3, duration * 8 // 9)


@test
def blocks_of_a_moment_are_those_of_a_walk():
    duration = served().api("info")["duration_ns"]
    for moment in (duration // 11, duration // 2, duration - 5):
        answer = served().api(f"map?at={moment}")
        lived = (f"from allocations where {HEAP} and born_ns < {moment} and "
                 f"(died_ns is null or died_ns >= {moment})")
        equal([answer["blocks"], answer["bytes"]],
              sql(f"select count(*), sum(size) {lived}")[0])
        rows = served().api(f"blocks?at={moment}&limit=5&sort=address&order=asc")["rows"]
        equal([[int(row["address"], 16), row["size"], row["born_ns"]] for row in rows],
              sql(f"select address, size, born_ns {lived} order by address limit 5"))


@test
def a_large_recording_is_small_in_memory():
    server = served()
    third, half = (server.api("info")["duration_ns"] // part for part in (3, 2))
    for query in ("timeline", "tree", "contexts?spark=64", f"timeline?from={third}&to={half}",
                  f"tree?at={half}&base_at={third}", "functions", "threads", "sources"):
        server.api(query)
    memory = server.rss_bytes()
    assert memory < 1 << 30, memory


@test
def what_takes_long_is_told_and_goes_on():
    path, _ = make_recording("long.heap", "--events=2000000", "--live=100000")
    server = Server(path)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            status, _, _ = server.raw("/api/map?at=end")
            if status == 200:
                break
            assert status == 202, status
            # Meanwhile the other lane answers.
            server.api("tree?metric=peak")
        assert status == 200
        assert server.api("map?at=end")["blocks"] > 10000
    finally:
        server.stop()
