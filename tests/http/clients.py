# SPDX-License-Identifier: MIT
"""Clients that keep connections and do not behave: silent, slow, half closed, hurried, too many. Whatever
they do, somebody else gets an answer meanwhile."""

import json
import re
import resource
import socket
import threading
import time

from access import equal
from server import Server, children, make_recording

TESTS = []
STATE = {}
LIMIT_S = 180  # for what has to happen at some time


def test(function):
    TESTS.append(function)
    return function


def served():
    if "server" not in STATE:
        # A thousand connections of the tests' own, at most.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
        path, _ = make_recording("clients.heap", "--events=20000", "--contexts=100")
        STATE["server"] = Server(path)
    return STATE["server"]


def close():
    if "server" in STATE:
        STATE.pop("server").stop()


def connect():
    connection = socket.create_connection((served().host, served().port), timeout=LIMIT_S)
    return connection


def head(path="/api/files", token=True, extra=b"", method=b"GET"):
    lines = [method + b" " + path.encode() + b" HTTP/1.1",
             f"Host: {served().host}:{served().port}".encode()]
    if token:
        lines.append(b"X-Muninn-Token: " + served().token.encode())
    return b"\r\n".join(lines) + b"\r\n" + extra + b"\r\n"


def everything(connection):
    """What comes until the other side closes."""
    got = b""
    while True:
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            return got
        if not piece:
            return got
        got += piece


def answers_of(connection, count):
    """(status, body) of so many answers, each with a length."""
    got, answers = b"", []
    while len(answers) < count:
        first, end, rest = got.partition(b"\r\n\r\n")
        size = int(re.search(rb"(?i)content-length: (\d+)", first)[1]) if end else 0
        if end and len(rest) >= size:
            answers.append((int(first.split()[1]), rest[:size]))
            got = rest[size:]
            continue
        piece = connection.recv(65536)
        assert piece, (answers, got[:200])
        got += piece
    return answers


def one_answer(connection):
    return answers_of(connection, 1)[0]


def others_are_served():
    equal(served().raw("/api/files")[0], 200)


@test
def connections_that_say_nothing_keep_nobody_out():
    silent = [connect() for _ in range(400)]
    others_are_served()
    for _ in range(20):
        others_are_served()
    # Each ends at some time; those that had to go for others are told so.
    assert {everything(connection)[:12] for connection in silent} <= {b"", b"HTTP/1.1 503"}
    others_are_served()


@test
def requests_that_come_byte_by_byte_end():
    slow = [connect() for _ in range(100)]
    ended = set()
    stop = threading.Event()

    def trickle():
        text = head(extra=b"X-Slow: " + b"a" * 5000 + b"\r\n")
        for at in range(len(text)):
            for connection in slow:
                try:
                    connection.send(text[at:at + 1])
                except OSError:
                    pass  # ended
            if stop.wait(0.2):
                return

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        others_are_served()
        for connection in slow:
            ended.add(everything(connection)[:12])
            others_are_served()
    finally:
        stop.set()
        thread.join()
    # The reset for what was sent behind the answer may take the answer with it.
    assert ended <= {b"HTTP/1.1 408", b""} and b"HTTP/1.1 408" in ended, ended


@test
def a_client_that_sends_no_more_gets_its_answer():
    with connect() as connection:
        connection.sendall(head(extra=b"Connection: close\r\n"))
        connection.shutdown(socket.SHUT_WR)
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 200") and b"clients.heap" in answer, answer[:200]
    with connect() as connection:
        connection.sendall(head()[:-10])
        connection.shutdown(socket.SHUT_WR)
        equal(everything(connection)[:12] in (b"", b"HTTP/1.1 408"), True)
    others_are_served()


@test
def clients_that_vanish_amid_a_request_leave_nothing():
    for sent in (head()[:40], head(), head(method=b"POST", extra=b"Content-Length: 100\r\n")):
        for _ in range(100):
            connection = connect()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.sendall(sent)
            connection.close()  # with a reset
    others_are_served()


@test
def requests_in_one_piece_are_answered_in_their_order():
    with connect() as connection:
        connection.sendall(head("/api/files") + head("/api/nothing") + head("/api/info"))
        equal([status for status, _ in answers_of(connection, 3)], [200, 404, 200])
    # As many as fit, and then a client that reads none of the answers.
    with connect() as connection:
        connection.settimeout(5)
        try:
            for _ in range(2000):
                connection.sendall(head("/api/contexts?limit=100"))
        except (socket.timeout, OSError):
            pass
        others_are_served()
    others_are_served()


@test
def connections_that_are_kept_open_make_room():
    kept = []
    for _ in range(150):
        connection = connect()
        connection.sendall(head())
        equal(one_answer(connection)[0], 200)
        kept.append(connection)
        others_are_served()
    # The youngest may go on; the oldest were closed when there was no room for the next.
    kept[-1].sendall(head())
    equal(one_answer(kept[-1])[0], 200)
    equal(everything(kept[0]), b"")
    for connection in kept:
        connection.close()


@test
def heads_that_are_too_large_are_refused_with_words():
    for extra in (b"X-Large: " + b"a" * 40000 + b"\r\n", b"A: b\r\n" * 8000):
        with connect() as connection:
            connection.sendall(head(extra=extra))
            answer = everything(connection)
        assert answer.startswith(b"HTTP/1.1 431"), answer[:100]
        equal(json.loads(answer.split(b"\r\n\r\n")[1])["error"]["code"], "too-large")
    with connect() as connection:
        connection.sendall(head("/" + "a" * 40000))
        assert everything(connection).startswith(b"HTTP/1.1 431")
    # And those that fit are not.
    equal(served().raw("/api/files", {"X-Large": "a" * 20000})[0], 200)


@test
def headers_that_say_who_asks_stand_once():
    host = f"Host: {served().host}:{served().port}\r\n".encode()
    token = b"X-Muninn-Token: " + served().token.encode() + b"\r\n"
    for extra in (host, b"Host: evil.example\r\n", token, b"host: x\r\n",
                  b"Origin: http://" + host[6:-2] + b"\r\nOrigin: http://evil.example\r\n",
                  b"Content-Length: 0\r\nContent-Length: 5\r\n"):
        with connect() as connection:
            connection.sendall(head(extra=extra + b"Connection: close\r\n"))
            answer = everything(connection)
        assert answer.startswith(b"HTTP/1.1 400"), (extra, answer[:100])
    for request in (b"GET http://evil.example/api/files HTTP/1.1\r\n" + host + token + b"\r\n",
                    b"GET http://evil.example/api/files HTTP/1.1\r\nHost: evil.example\r\n" + token +
                    b"\r\n"):
        with connect() as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answer = everything(connection)
        assert b"clients.heap" not in answer and b" 200 " not in answer[:20], answer[:200]


@test
def a_body_is_waited_for_only_from_those_who_may_send_one():
    with connect() as connection:
        connection.sendall(head("/api/action?do=snapshot", token=False, method=b"POST",
                                extra=b"Content-Length: 4000\r\n"))
        assert everything(connection).startswith(b"HTTP/1.1 401")
    with connect() as connection:
        connection.sendall(head("/api/action?do=snapshot", method=b"POST",
                                extra=b"Content-Length: 4000\r\n") + b"a")
        everything(connection)  # it ends
    others_are_served()


@test
def when_all_are_busy_the_next_is_told():
    # A long answer that its client does not read keeps a place.
    query = "/api/sql?q=select+printf('%25.*c',15000000,'x')"
    served().raw(query)
    greedy = []
    for _ in range(64):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(LIMIT_S)
        connection.connect((served().host, served().port))
        connection.sendall(head(query))
        greedy.append(connection)
    for connection in greedy:
        assert connection.recv(1), "the answer has begun"
    told = []

    def ask():
        with connect() as connection:
            connection.sendall(head(extra=b"Connection: close\r\n"))
            told.append(everything(connection))

    threads = [threading.Thread(target=ask) for _ in range(300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection in greedy:
        connection.close()
    # What a client sends behind the server's last words is answered with a reset, which may take them.
    status = {answer[9:12] for answer in told}
    assert status <= {b"503", b"200", b""} and b"503" in status, status
    for answer in told:
        if answer[9:12] == b"503":
            equal(json.loads(answer.split(b"\r\n\r\n")[1])["error"]["code"], "busy")
    deadline = time.monotonic() + LIMIT_S
    while served().raw("/api/files")[0] != 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    others_are_served()


@test
def a_query_that_is_one_long_operation_is_ended():
    # SQLite looks at the clock between operations: this is one.
    endless = "select instr(printf('%.*c',16000000,'a'), printf('%.*c',8000000,'a')||'b')"
    answers = []
    thread = threading.Thread(target=lambda: answers.append(
        served().api("sql", expect=400, q=endless)["error"]["message"]))
    thread.start()
    while not children(served().process.pid) and thread.is_alive():
        time.sleep(0.05)
    # Others use the same recording meanwhile.
    equal(served().raw("/api/histogram?from=1&to=5000000000")[0], 200)
    thread.join()
    equal(answers, ["the query took longer than 10000 ms"])
    equal(children(served().process.pid), [])
    equal(served().api("sql", q="select 1")["rows"], [[1]])


@test
def queries_that_want_too_much_end():
    for query, word in (
            ("with recursive c(x) as (select 1 union all select x + 1 from c) select max(x) from c",
             "longer"),
            ("select group_concat(printf('%.*c', 1000000, 'x')) from events", "big"),
            ("select zeroblob(1 << 30)", "big"),
            ("select count(*) from sites where 'x' like '" + "%a" * 2000 + "'", "LIKE"),
            ("select length(s) from (select printf('%.*c', 16000000, 'x') || size as s from events) "
             "order by s", "")):
        message = served().api("sql", expect=400, q=query)["error"]["message"]
        assert word in message, (query, message)
    others_are_served()


@test
def queries_reach_neither_files_nor_memory():
    for query in ("select fts3_tokenizer('simple')", "select hex(fts3_tokenizer('simple'))",
                  "select load_extension('x')", "select readfile('/etc/passwd')",
                  "select writefile('/tmp/x', 'x')", "attach '/tmp/x' as y", "detach main",
                  "vacuum into '/tmp/x'", "pragma temp_store", "pragma database_list",
                  "select * from pragma_database_list", "select * from pragma_compile_options",
                  "select * from sqlite_stmt", "select * from dbstat", "select * from fsdir('/')",
                  "select * from sqlite_dbpage", "select * from bytecode('select 1')",
                  "select sqlite_compileoption_get(0)", "select sqlite_log(1, 'x')",
                  "create virtual table x using fts3(a)", "create temp table x(a)",
                  "insert into sites values (1)", "select rtreecheck('sites')",
                  "explain select 1; select 2", "begin"):
        error = served().api("sql", expect=400, q=query)["error"]
        equal(error["code"], "bad-parameter")
    for query, expected in (("select value from json_each('[1,2]')", [[1], [2]]),
                            ("select count(*) > 5 from pragma_table_info('sites')", [[1]]),
                            ("select upper(hex(x'ab')) || lower('C')", [["ABc"]])):
        equal(served().api("sql", q=query)["rows"], expected)
