# SPDX-License-Identifier: MIT
"""Programs that run, and files of other programs."""

import http.client
import json
import subprocess
import time

from access import equal
from server import BUILD, MUNINN, WORK, Server, heap, make_recording

TESTS = []
PROGRAM = r"""
#include <poll.h>
#include <stdlib.h>
static void *make(size_t n) { return malloc(n); }
int main(int argc, char **argv)
{
    struct pollfd in = {0, POLLIN, 0};
    int is_wanted = 1;
    for (int i = 0; i < atoi(argv[1]) || is_wanted; i++) {
        for (int k = 0; k < 100; k++) {
            make(1000);
            free(make(10));
        }
        is_wanted = is_wanted && poll(&in, 1, 50) == 0;
    }
    return argc == 0;
}
"""


def test(function):
    TESTS.append(function)
    return function


def close():
    pass


def start(tool, rounds, *options):
    """A program under muninn that grows for so many rounds, and on until its standard input is
    closed; once a monitor answers for it."""
    source = WORK / "grow.c"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-o", WORK / "grow", source], check=True)
    process = subprocess.Popen([MUNINN, f"--tool={tool}", *options, "./grow", str(rounds)],
                               cwd=WORK, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        done = subprocess.run([MUNINN, "ctl", str(process.pid), "status"], capture_output=True)
        if done.returncode == 0:
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError("no monitor answers")


def events(server, until, timeout_s=120):
    """(kind, data) of a stream, until one of a kind comes."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=timeout_s)
    connection.request("GET", "/api/events?f=0", headers={"X-Muninn-Token": server.token})
    answer = connection.getresponse()
    equal(answer.status, 200)
    kind = None
    try:
        while True:
            line = answer.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                yield kind, json.loads(line[6:])
                if kind == until:
                    return
    finally:
        connection.close()


@test
def a_program_that_runs_is_followed_to_its_end():
    if BUILD.name == "asan":
        return "an engine with sanitizers runs nothing"
    process = start("massif", 70)
    server = Server(str(process.pid))
    try:
        file = server.api("files")["files"][0]
        equal((file["live"], file["pid"]), (True, process.pid))
        seen = []
        asked = False
        for kind, data in events(server, "end"):
            seen.append((kind, data))
            if kind == "change" and len(seen) > 8 and not asked:
                asked = True
                # What was asked for is there to be read when the answer has come.
                for count in range(1, 7):
                    status, _, body = server.raw("/api/action?do=snapshot",
                                                 {"X-Muninn-Action": "1"}, method="POST")
                    equal((status, json.loads(body)["status"]), (200, 0))
                    states = [state["reason"] for state in server.api("info")["states"]]
                    equal(states.count("asked"), count)
                status, _, body = server.raw("/api/action?do=leak-check",
                                             {"X-Muninn-Action": "1"}, method="POST")
                equal((status, json.loads(body)["error"]["code"]), (409, "refused"))
                info = server.api("info")
                assert info["live"] and not info["end"]["known"]
                first = server.api("timeline", points=10)
                tree = server.api("tree")
                assert {"make", "main"} <= set(tree["names"]), tree["names"]
                assert tree["total"] > 0 and max(first["totals"]["heap"]) > 0
            if asked and len(seen) > 12 and not process.stdin.closed:
                process.stdin.close()
        process.wait(120)
        versions = [data["version"] for _, data in seen]
        equal(versions, sorted(versions))
        heaps = [data["heap"] for kind, data in seen if kind == "change"]
        assert len(heaps) > 5 and heaps[-1] > heaps[0], heaps
        info = server.api("info")
        assert not info["live"] and info["end"]["known"], info["end"]
        equal(info["totals"]["allocations"] >= 70 * 200, True)
        assert any(state["reason"] == "asked" for state in info["states"])
        equal(server.api("tree")["total"], info["totals"]["leaked"])
        equal(server.raw("/api/action?do=snapshot", {"X-Muninn-Action": "1"},
                         method="POST")[0], 409)
        equal(server.api("contexts")["totals"]["allocated"],
              heap("summary", file["path"])["allocated_bytes"])
    finally:
        process.kill()
        server.stop()


def leak_check(server):
    status, _, body = server.raw("/api/action?do=leak-check", {"X-Muninn-Action": "1"},
                                 method="POST")
    answer = json.loads(body)
    equal((status, answer.get("status")), (200, 0))
    return answer["text"]


def leaked(server):
    """Bytes of the definite leak of make(), as the findings have it; there is one record of it."""
    findings = [finding for group in server.api("findings")["groups"]
                for finding in group["findings"] if finding["kind"] == "leak-definite"]
    equal(len(findings), 1)
    assert "make" in [frame["function"] for frame in findings[0]["stack"]]
    return findings[0]["leak"]["bytes"]


@test
def a_leak_check_now_is_in_the_findings():
    if BUILD.name == "asan":
        return "an engine with sanitizers runs nothing"
    report = WORK / "now.json"
    process = start("memcheck", 100000, f"--json-file={report}", "-q")
    server = Server(str(process.pid))  # its report is found
    try:
        file = server.api("files")["files"][0]
        equal((file["kind"], file["live"], file["path"]), ("findings", True, str(report)))
        equal(server.api("findings")["findings_total"], 0)
        deadline = time.monotonic() + 120
        while "definitely lost" not in (text := leak_check(server)):  # it has hardly begun
            assert time.monotonic() < deadline, text
        first = later = 0
        while later <= first and time.monotonic() < deadline:
            if "are definitely lost" not in leak_check(server):
                continue  # it has not begun yet
            later = leaked(server)
            first = first or later
            equal(server.api("leaks")["total"], later)
        assert later > first > 0, (first, later)
    finally:
        process.kill()
        process.wait()
        server.stop()


@test
def a_report_that_grows_is_read_again():
    if BUILD.name == "asan":
        return "an engine with sanitizers runs nothing"
    process = start("memcheck", 60, f"--json-file={WORK / 'grows.json'}", "-q")
    server = Server(WORK / "grows.json")
    try:
        equal(server.api("files")["files"][0]["live"], True)
        process.stdin.close()
        list(events(server, "end"))
        assert server.api("info")["status"] == "finished"
    finally:
        process.kill()
        process.wait()
        server.stop()


@test
def a_running_program_without_a_file_to_look_at_is_told():
    if BUILD.name == "asan":
        return "an engine with sanitizers runs nothing"
    process = start("memcheck", 100000, "-q")
    try:
        done = subprocess.run([MUNINN, "view", "--no-open", str(process.pid)], timeout=300,
                              capture_output=True, text=True)
        equal(done.returncode, 1)
        assert "--json-file" in done.stderr, done.stderr
    finally:
        process.kill()
        process.wait()


@test
def how_a_program_ended_is_told():
    if BUILD.name == "asan":
        return "an engine with sanitizers runs nothing"
    options = ("--tool=massif", "-q", "--massif-out-file=/dev/null")
    ends = []
    for name, command in (("exit", "exit 3"), ("signal", "kill -TERM $$"),
                          ("killed", "kill -KILL $$"), ("executed", "exec /bin/true")):
        path = WORK / f"ended-{name}.heap"
        subprocess.run([MUNINN, *options, f"--recording-file={path}", "/bin/sh", "-c", command],
                       capture_output=True)
        ends.append((name, path))
        deadline = time.monotonic() + 120  # the monitor of one that was killed ends after it
        while heap("summary", path)["end"].startswith("goes on") and time.monotonic() < deadline:
            time.sleep(0.05)
    server = Server(*[path for _, path in ends])
    try:
        for number, (name, _) in enumerate(ends):
            end = server.api("info", f=number)["end"]
            equal((end["kind"], end["known"]), (name, name in ("exit", "signal")))
            equal((end["status"], end["signal"]),
                  (3 if name == "exit" else 0, 15 if name == "signal" else 0))
    finally:
        server.stop()


@test
def profiles_of_other_programs_are_opened():
    path, _ = make_recording("origin.heap", "--events=20000", "--contexts=100")
    total = heap("summary", path)["live_bytes"]
    made = []
    for kind in ("massif", "heaptrack", "pprof"):
        out = WORK / f"origin.{kind}"
        done = subprocess.run([MUNINN, "heap", "export", path, f"--format={kind}", "-o", out],
                              capture_output=True, text=True)
        if done.returncode == 0 and out.exists():
            made.append((kind, out))
    assert len(made) >= 2, "the exports are not there"
    server = Server(*[out for _, out in made])
    try:
        files = server.api("files")["files"]
        for (kind, _), file in zip(made, files):
            equal((file["kind"], file["format"]), ("heap", kind))
            info = server.api("info", f=file["id"])
            tree = server.api("tree", f=file["id"], metric="peak")
            assert tree["total"] > 0 and tree["nodes"] > 5, kind
            equal(server.api("contexts", f=file["id"])["totals"]["live"],
                  info["totals"]["leaked"])
            if kind == "heaptrack":
                equal(info["totals"]["leaked"], total)
            server.api("timeline", f=file["id"])
            server.api("map", expect=409, f=file["id"])  # their addresses are made up
    finally:
        server.stop()
