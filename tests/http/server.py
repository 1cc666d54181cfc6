# SPDX-License-Identifier: MIT
"""A `muninn view` to talk to, and the raw requests that its tests make."""

import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
MUNINN = os.environ.get("MUNINN") or str(BUILD / "muninn")
WORK = Path(tempfile.mkdtemp(prefix="muninn-http."))
URL = re.compile(r"http://(\S+?):(\d+)/\?token=([0-9a-f]{64})")


def make_recording(name, *options):
    """A recording that was never run; what the generator tells of it comes back by name."""
    path = WORK / name
    done = subprocess.run([BUILD / "tests/make_recording", *options, path], check=True,
                          stdout=subprocess.PIPE, text=True)
    told = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    return path, told


def heap(command, path, *options):
    done = subprocess.run([MUNINN, "heap", command, path, "--json", *options], check=True,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def make_checker():
    """path, value -> a line for each thing in an answer that docs/schema/http-api.schema.json does not
    say, or says otherwise. Members that it does not name are such things, too."""
    try:
        import jsonschema
    except ImportError:
        return lambda path, value: []
    schema = json.loads((ROOT / "docs/schema/http-api.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    checkers = {path: jsonschema.Draft7Validator({**answer, "definitions": schema["definitions"]})
                for path, answer in schema["answers"].items()}

    def check(path, value):
        return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
                for error in checkers[path].iter_errors(value)] if path in checkers else [
                    "no such path in docs/schema/http-api.schema.json"]
    return check


check_answer = make_checker()


class Server:
    def __init__(self, *words):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([MUNINN, "view", "--no-open", *words],
                                        stdout=subprocess.PIPE, stderr=self.errors)
        line = b""
        deadline = time.monotonic() + 120
        while b"\n" not in line and time.monotonic() < deadline:
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                piece = os.read(self.process.stdout.fileno(), 4096)
                if not piece:
                    break
                line += piece
        match = URL.search(line.decode())
        if not match:
            self.process.kill()
            raise RuntimeError(f"no address: {line!r} {self.said()!r}")
        self.host, self.port, self.token = match[1], int(match[2]), match[3]

    def raw(self, path, headers=None, method="GET", body=None, token=True, timeout=300):
        """(status, headers, bytes); without the token if asked."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        sent = dict(headers or {})
        if token:
            sent.setdefault("X-Muninn-Token", self.token)
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def send(self, data, timeout=120):
        """Bytes as they are; returns what came back."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as connection:
            connection.sendall(data)
            got = b""
            try:
                while True:
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    got += piece
            except (socket.timeout, ConnectionResetError):
                pass
            return got

    def api(self, path, expect=200, **parameters):
        """The JSON of an answer; asks again while it is pending."""
        if parameters:
            path += "?" + urllib.parse.urlencode(
                {k.rstrip("_"): v for k, v in parameters.items()})
        for _ in range(1000):
            status, _, body = self.raw("/api/" + path)
            if status != 202:
                break
            time.sleep(0.2)
        value = json.loads(body)
        assert status == expect, f"{path}: {status} {body[:300]!r}"
        wrong = check_answer("/api/" + path.partition("?")[0], value) if status == 200 else []
        assert not wrong, "\n".join([f"{path} is not what its schema says", *wrong[:5]])
        return value

    def rss_bytes(self):
        total = 0
        for pid in [self.process.pid, *children(self.process.pid)]:
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total = max(total, int(line.split()[1]) * 1024)
        return total

    def wait_for_parts(self, limit_s=60):
        """Until what is known of all events is known (src/inspect/http/parts.h), or the time is over:
        then answers come of walks, and are as right."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            try:
                names = [(task / "comm").read_text().strip() for task in tasks.iterdir()]
            except OSError:  # one of them has just ended
                continue
            if "parts" not in names:
                return
            time.sleep(0.05)

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        try:
            status = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        # What a sanitizer has to say.
        assert "ERROR:" not in self.said() and "runtime error" not in self.said(), self.said()[-3000:]
        return status


def children(pid):
    try:
        return [int(p) for p in
                Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class Tree:
    """The columns of a tree, to walk."""

    def __init__(self, answer):
        self.answer = answer
        self.count = len(answer["id"])

    def children(self, index):
        return [i for i in range(1, self.count) if self.answer["parent"][i] == index]

    def name(self, index):
        return self.answer["names"][self.answer["name"][index]]
