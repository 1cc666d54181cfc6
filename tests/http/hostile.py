# SPDX-License-Identifier: MIT
"""What is not asked nicely: names, files, parameters, bytes on the wire."""

import json
import os
import random
import socket
import threading
import urllib.parse

from access import equal
from server import WORK, Server, make_recording

TESTS = []
STATE = {}
PATHS = ("files", "info", "timeline", "tree", "contexts", "stack", "functions", "function",
         "histogram", "map", "blocks", "threads", "sources", "source", "sql", "sql/tables",
         "findings", "leaks")


def test(function):
    TESTS.append(function)
    return function


def served():
    if "server" not in STATE:
        STATE["path"], _ = make_recording("hostile.heap", "--events=20000", "--contexts=200",
                                          "--hostile", "--bare", "--spaces")
        STATE["server"] = Server(STATE["path"])
    return STATE["server"]


def close():
    if "server" in STATE:
        STATE.pop("server").stop()


@test
def hostile_names_stay_inside_their_strings():
    names = set()
    for path in ("info", "timeline", "tree?min_ppm=0", "contexts?limit=1000",
                 "functions?limit=1000", "threads", "sources", "blocks?limit=100", "files"):
        _, headers, body = served().raw("/api/" + path)
        equal(headers["content-type"], "application/json")
        text = body.decode()  # valid UTF-8
        assert "<" not in text, path
        assert not any(ord(c) < 32 for c in text), path
        value = json.loads(text)
        if path.startswith("functions"):
            names = {row["function"] for row in value["rows"]}
    assert any("<script" in name for name in names), sorted(names)[:5]


@test
def parameters_that_make_no_sense_are_named():
    for path, word in (("tree?metric=nothing", "metric"), ("tree?from=x", "from"),
                       ("tree?from=-1", "from"), ("tree?from=9&to=5", "to"),
                       ("tree?f=1", "f"), ("tree?f=x", "f"), ("tree?f=99999999999999999999", "f"),
                       ("timeline?points=99999999", "points"), ("timeline?top=1000", "top"),
                       ("timeline?group=colour", "group"), ("contexts?limit=1000000", "limit"),
                       ("contexts?sort=colour", "sort"), ("contexts?order=up", "order"),
                       ("tree?space=outer", "space"), ("tree?function=/(/", ""),
                       ("map?start=zz", "start"), ("map?start=9&end=1", "end"),
                       ("tree?root=4000000000", "root"), ("stack?context=4000000000", "context"),
                       ("function?id=4000000000", ""), ("source?id=4000000000", "id"),
                       ("findings", ""), ("tree?base_f=7", "base_f"), ("tree?only=/(/", ""),
                       ("events?f=9", "f")):
        status, _, body = served().raw("/api/" + path)
        assert 400 <= status < 500, (path, status, body[:200])
        assert word in json.loads(body)["error"]["message"], (path, body)


@test
def every_endpoint_takes_any_parameters():
    rng = random.Random(11)
    names = ("f", "from", "to", "at", "space", "function", "file", "object", "thread", "min_size",
             "max_size", "min_lifetime", "max_lifetime", "metric", "group", "top", "points",
             "bottom_up", "collapse", "fold", "only", "root", "first", "min_ppm", "max_nodes",
             "max_depth", "sort", "order", "search", "offset", "limit", "spark", "context", "id",
             "name", "cells", "start", "end", "base_f", "base_at", "base_from", "q", "format",
             "kind", "by", "status")
    values = ("", "0", "1", "2", "-1", "4294967295", "18446744073709551615", "99999999999999999999",
              "peak", "end", "live", "growth", "all", "heap,stack", ",", "*", "/./", "/(/", "!*",
              "x" * 300, "\x01", "\xff", "%", "0x", "ffffffffffffffff", "function", "select 1",
              "name", "asc", "f64", "yes", "5000000000", "a b", "'", '"', "<", "é")
    for _ in range(400):
        query = urllib.parse.urlencode([(rng.choice(names), rng.choice(values))
                                        for _ in range(rng.randrange(6))])
        path = f"/api/{rng.choice(PATHS)}?{query}"
        status, _, body = served().raw(path)
        assert status in (200, 202, 400, 404, 409, 413, 503), (path, status, body[:200])
        if "f64" not in path and "octet" not in path:
            json.loads(body)
    equal(served().api("files")["version"], 1)


@test
def bytes_that_are_no_request_do_no_harm():
    rng = random.Random(5)
    token = served().token.encode()
    host = f"Host: {served().host}:{served().port}\r\n".encode()
    good = b"GET /api/files HTTP/1.1\r\n" + host + b"X-Muninn-Token: " + token + b"\r\n\r\n"
    shapes = [b"", b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\xff" * 5000 + b"\r\n\r\n",
              b"GET " + b"/" * 200000 + b" HTTP/1.1\r\n\r\n",
              b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
              b"POST /api/action?do=snapshot HTTP/1.1\r\n" + host + b"X-Muninn-Token: " + token +
              b"\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 100000,
              b"GET /api/files?%00=1 HTTP/1.1\r\n" + host + b"X-Muninn-Token: " + token +
              b"\r\nConnection: close\r\n\r\n",
              b"GET /api/files?%zz HTTP/1.1\r\n" + host + b"X-Muninn-Token: " + token +
              b"\r\nConnection: close\r\n\r\n"]
    for _ in range(60):
        piece = bytearray(good)
        for _ in range(rng.randrange(1, 8)):
            piece[rng.randrange(len(piece))] = rng.randrange(256)
        shapes.append(bytes(piece[:rng.randrange(len(piece))] if rng.random() < 0.3 else piece))
    for data in shapes:
        try:
            answer = served().send(data, timeout=0.15)
        except OSError:
            answer = b""
        assert b"hostile.heap" not in answer or b"X-Muninn-Token: " + token in data
    equal(served().api("files")["version"], 1)


@test
def a_long_query_fits_and_a_longer_one_does_not():
    query = "select '" + "x" * 15000 + "'"
    equal(len(served().api("sql", q=query)["rows"][0][0]), 15000)
    status, _, _ = served().raw("/api/sql?q=" + "x" * 60000)
    assert status in (400, 414, 431), status


@test
def many_connections_at_once_are_bounded():
    held = []
    for _ in range(100):
        try:
            held.append(socket.create_connection((served().host, served().port), timeout=2))
        except OSError:
            break
    for connection in held:
        connection.close()
    answers = []

    def ask():
        answers.append(served().raw("/api/tree?metric=peak")[0])

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(set(answers), {200})


@test
def files_that_are_damaged_give_a_readable_answer():
    served()
    data = STATE["path"].read_bytes()
    rng = random.Random(3)
    paths = []
    for i, size in enumerate((0, 10, 100, len(data) // 2, len(data) - 5)):
        path = WORK / f"cut{i}.heap"
        path.write_bytes(data[:size])
        paths.append(path)
    for i in range(6):
        damaged = bytearray(data)
        for _ in range(5):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path = WORK / f"bad{i}.heap"
        path.write_bytes(damaged)
        paths.append(path)
    noise = WORK / "noise"
    noise.write_bytes(os.urandom(5000))
    server = Server(*paths, noise, WORK / "gone", WORK, "/dev/zero")
    try:
        files = server.api("files")["files"]
        equal(len(files), len(paths) + 4)
        for file in files:
            if file["kind"] == "unreadable":
                assert len(file["error"]) > 10, file
                status, _, body = server.raw(f"/api/tree?f={file['id']}")
                equal(status, 422)
                equal(json.loads(body)["error"]["code"], "bad-file")
            else:
                for path in ("info", "timeline", "tree", "contexts", "functions", "map",
                             "histogram", "threads"):
                    status = server.raw(f"/api/{path}?f={file['id']}")[0]
                    assert status in (200, 409, 500), (file["name"], path, status)
        assert sum(f["kind"] == "heap" for f in files) >= 4
        assert any(f["warnings"] for f in files)
    finally:
        server.stop()


@test
def only_sources_that_a_recording_names_are_read():
    # A report may name anything; what does not look like source text is not shown.
    key = WORK / "id_rsa"
    key.write_text("PRIVATE KEY\n")
    code = WORK / "code.c"
    code.write_text("int main(void) { return 0; }\n")
    link = WORK / "link.c"
    link.symlink_to(key)
    pipe = WORK / "pipe.c"
    os.mkfifo(pipe)
    frames = [{"pc": "0x1", "function": "f", "file": name, "directory": directory, "line": 1}
              for directory, name in ((str(WORK), "id_rsa"), (str(WORK), "code.c"),
                                      ("/etc", "passwd"), ("relative", "code.c"),
                                      (str(WORK), "pipe.c"), ("/dev", "zero.c"))]
    finding = {"id": 0, "kind": "invalid-read", "tool": "Memcheck", "what": "x",
               "fingerprint": "0" * 16, "count": 1, "thread": {"id": 1}, "stack": frames,
               "parts": []}
    report = WORK / "names.json"
    report.write_text(json.dumps({"format": "muninn-report", "version": 1, "run": {},
                                  "findings": [finding], "status": "finished"}))
    server = Server(report)
    try:
        texts = [server.api("source", id=i)["text"] for i in range(6)]
        equal([bool(t) for t in texts], [False, True, False, False, False, False])
    finally:
        server.stop()


@test
def sums_that_do_not_fit_stay_at_the_largest_number():
    most = 2 ** 64 - 1
    findings = [{"id": i, "kind": "leak-definite", "tool": "Memcheck", "what": "x",
                 "fingerprint": f"{i:016x}", "count": most, "thread": {"id": 1},
                 "leak": {"bytes": most, "blocks": most},
                 "stack": [{"pc": "0x1", "function": name}, {"pc": "0x2", "function": "main"}],
                 "parts": []} for i, name in enumerate("abc")]
    report = WORK / "sums.json"
    report.write_text(json.dumps({"format": "muninn-report", "version": 1, "run": {},
                                  "findings": findings, "status": "finished"}))
    # A profile says its sizes as text; what no memory has is damage.
    profile = WORK / "sums.out"
    profile.write_text("desc: -\ncmd: x\ntime_unit: B\nsnapshot=0\ntime=1\nmem_heap_B=7\n"
                       "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\nsnapshot=1\ntime=2\n"
                       "mem_heap_B=9223372036854775807\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
                       "heap_tree=empty\n")
    server = Server(report, profile)
    try:
        info = server.api("info")
        equal([info["errors"], info["leaked"], info["leaked_blocks"]], [most] * 3)
        equal(server.api("findings")["errors"], most)
        equal(server.api("findings")["kinds"][0]["count"], most)
        equal(server.api("leaks")["total"], 2 ** 63 - 1)
        equal(server.api("contexts", f=1)["totals"]["live"], 7)
        warnings = server.api("files")["files"][1]["warnings"]
        assert any("a size of at most a PiB" in line for line in warnings), warnings
    finally:
        server.stop()
