# SPDX-License-Identifier: MIT
"""Who is let in: tokens, cookies, hosts, origins, methods, paths."""

import os
import signal
import subprocess
import threading
import time

from server import MUNINN, WORK, Server, make_recording

TESTS = []
STATE = {}


def test(function):
    TESTS.append(function)
    return function


def served():
    if "server" not in STATE:
        path, _ = make_recording("access.heap", "--events=2000")
        STATE["path"] = path
        STATE["server"] = Server(path)
    return STATE["server"]


def close():
    if "server" in STATE:
        STATE.pop("server").stop()


def equal(seen, expected):
    assert seen == expected, f"{seen!r} is not {expected!r}"


@test
def nothing_is_answered_without_the_token():
    server = served()
    for path in ("/", "/app.js", "/app.css", "/api/files", "/api/tree", "/api/events",
                 "/api/nothing", "/nothing"):
        status, _, body = server.raw(path, token=False)
        equal(status, 401)
        assert b"access.heap" not in body
    for wrong in ("", "0", server.token[:-1], server.token + "0", "0" * 64, server.token.upper()):
        if wrong != server.token:
            equal(server.raw("/api/files", {"X-Muninn-Token": wrong}, token=False)[0], 401)
            equal(server.raw("/?token=" + wrong, token=False)[0], 401)
    # The token in a URL is good for the page alone.
    equal(server.raw("/api/files?token=" + server.token, token=False)[0], 401)


@test
def the_token_of_the_address_becomes_a_cookie():
    server = served()
    status, headers, body = server.raw("/?token=" + server.token, token=False)
    equal((status, headers["location"], body), (303, "/", b""))
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite" in cookie and "Path=/" in cookie
    pair = cookie.split(";")[0]
    equal(pair, f"muninn-{server.port}={server.token}")
    equal(server.raw("/", {"Cookie": f"other=1; {pair}; more=2"}, token=False)[0], 200)
    equal(server.raw("/api/files", {"Cookie": pair}, token=False)[0], 200)
    equal(server.raw("/api/files", {"Cookie": pair + "0"}, token=False)[0], 401)
    equal(server.raw("/api/files", {"Cookie": "x" + pair}, token=False)[0], 401)


@test
def foreign_hosts_and_origins_are_refused():
    server = served()
    own = f"{server.host}:{server.port}"
    for host in (own, f"localhost:{server.port}", f"LOCALHOST:{server.port}"):
        equal(server.raw("/api/files", {"Host": host})[0], 200)
    for host in ("evil.example", f"evil.example:{server.port}", server.host, f"{server.host}:1",
                 f"{own}.evil.example", f"[::1:{server.port}", "", ":", f"127.0.0.1:{server.port}x"):
        equal(server.raw("/api/files", {"Host": host})[0], 403)
        equal(server.raw("/?token=" + server.token, {"Host": host}, token=False)[0], 403)
    equal(server.raw("/api/files", {"Origin": "http://" + own})[0], 200)
    for origin in ("http://evil.example", "null", "https://" + own, f"http://{own}.evil.example",
                   "http://localhost:1", ""):
        equal(server.raw("/api/files", {"Origin": origin})[0], 403)
    for site, status in (("same-origin", 200), ("none", 200), ("cross-site", 403),
                         ("same-site", 403)):
        equal(server.raw("/api/files", {"Sec-Fetch-Site": site})[0], status)
    # A link from elsewhere to the page itself is no fetch.
    equal(server.raw("/", {"Sec-Fetch-Site": "cross-site"})[0], 200)
    # HTTP/1.0 without a Host.
    answer = server.send(f"GET /api/files HTTP/1.0\r\nX-Muninn-Token: {server.token}\r\n\r\n"
                         .encode())
    assert answer.startswith(b"HTTP/1.") and b" 403 " in answer.split(b"\r\n")[0], answer[:60]


@test
def every_answer_has_the_headers_that_protect():
    server = served()
    for path, token in (("/", True), ("/api/files", True), ("/api/nothing", True), ("/", False),
                        ("/app.js", True)):
        _, headers, _ = server.raw(path, token=token)
        policy = headers["content-security-policy"]
        for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
                     "base-uri 'none'"):
            assert rule in policy, policy
        assert "unsafe" not in policy
        equal(headers["x-content-type-options"], "nosniff")
        equal(headers["referrer-policy"], "no-referrer")
        equal(headers["x-frame-options"], "DENY")
        assert "access-control-allow-origin" not in headers
        assert headers["cache-control"] in ("no-store", "private, no-cache", "no-cache")


@test
def only_reading_is_allowed():
    server = served()
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"):
        for path in ("/api/files", "/", "/api/tree?metric=live"):
            equal(server.raw(path, method=method)[0], 405)
    equal(server.raw("/api/action?do=snapshot")[0], 405)
    status, headers, body = server.raw("/api/files", method="HEAD")
    equal((status, body), (200, b""))
    assert int(headers["content-length"]) > 10
    # The actions want a header that no form can send, and a program that runs.
    equal(server.raw("/api/action?do=snapshot", method="POST")[0], 403)
    action = {"X-Muninn-Action": "1"}
    equal(server.raw("/api/action?do=snapshot", action, method="POST")[0], 409)
    equal(server.raw("/api/action?do=format-disk", action, method="POST")[0], 400)
    equal(server.raw("/api/action?do=snapshot", action, method="POST", token=False)[0], 401)


@test
def no_path_leads_to_a_file():
    server = served()
    secret = WORK / "secret.txt"
    secret.write_text("a secret")
    for path in ("/../../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/etc/passwd",
                 f"/{secret}", f"//{secret}", "/api/../../etc/passwd", "/api/source?id=../../x",
                 f"/api/source?path={secret}", f"/api/source?id=0&file={secret}", "/app.js/..",
                 "/index.html/../secret.txt", "/./"):
        status, _, body = server.raw(path)
        assert status in (400, 404) or (status == 200 and b"a secret" not in body), path
        assert b"root:" not in body and b"a secret" not in body, path


@test
def a_second_server_has_another_token_and_port():
    first = served()
    second = Server(STATE["path"])
    try:
        assert first.token != second.token and first.port != second.port
        equal(second.raw("/api/files", {"X-Muninn-Token": first.token}, token=False)[0], 401)
    finally:
        equal(second.stop(signal.SIGTERM), 0)


@test
def ctrl_c_ends_it_also_while_it_works():
    path, _ = make_recording("ends.heap", "--events=400000")
    server = Server(path)
    worker = threading.Thread(target=lambda: quietly(server, "/api/map?at=end"))
    worker.start()
    time.sleep(0.05)
    began = time.monotonic()
    equal(server.stop(), 0)
    assert time.monotonic() - began < 60
    worker.join()


def quietly(server, path):
    try:
        server.raw(path)
    except OSError:
        pass


@test
def options_say_what_is_wrong_with_them():
    for words, said in ((["--port=99999", "x"], "65535"), (["--port=x", "x"], "65535"),
                        (["--frobnicate", "x"], "no option"), ([], "usage"),
                        (["--host=no.such.host.invalid", str(served() and STATE["path"])],
                         "no.such.host.invalid"),
                        (["999999999"], "no program")):
        done = subprocess.run([MUNINN, "view", "--no-open", *words], capture_output=True,
                              text=True, timeout=300)
        equal(done.returncode, 1)
        assert said in done.stderr, (words, done.stderr)
    done = subprocess.run([MUNINN, "view", "--no-open", f"--port={served().port}", STATE["path"]],
                          capture_output=True, text=True, timeout=300)
    equal(done.returncode, 1)
    assert "cannot listen" in done.stderr


@test
def another_host_comes_with_a_warning():
    served()
    server = Server("--host=0.0.0.0", STATE["path"])
    try:
        own = {"Host": f"127.0.0.1:{server.port}"}
        equal(server.raw("/api/files", own)[0], 200)
        equal(server.raw("/api/files", {"Host": f"evil.example:{server.port}"})[0], 403)
    finally:
        server.stop()
    assert "others can reach" in server.said()


@test
def the_browser_is_given_no_token_on_its_command_line():
    served()
    folder = WORK / "bin"
    folder.mkdir()
    told = WORK / "told"
    opener = folder / "xdg-open"
    opener.write_text(f"#!/bin/sh\nls -l \"$1\" > {told}.new\necho \"$1\" >> {told}.new\n"
                      f"cat \"$1\" >> {told}.new\nmv {told}.new {told}\n")
    opener.chmod(0o755)
    environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", DISPLAY=":9",
                       XDG_RUNTIME_DIR=str(WORK))
    process = subprocess.Popen([MUNINN, "view", STATE["path"]], env=environment,
                               stdout=subprocess.PIPE, text=True)
    try:
        token = process.stdout.readline().split("token=")[1][:64]
        for _ in range(2400):
            if told.exists():
                break
            time.sleep(0.05)
        listing, path, page = told.read_text().split("\n", 2)
        assert listing.startswith("-rw-------"), listing
        assert token not in path and token in page
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)
    assert not os.path.exists(path), "the file that leads to the page stays behind"
