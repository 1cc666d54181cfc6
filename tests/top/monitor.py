# SPDX-License-Identifier: MIT
"""A control socket that answers heap_top as a monitor does, with whatever a test wants."""
import json
import os
import socket
import threading

SPACES = ("heap", "mapped", "stacks")


def frame(function, file=None, line=0, object=None, pc="0x401000"):
    return {"pc": pc, "function": function, "file": file, "line": line, "object": object}


def context(number, size, space="heap", **more):
    return {"context": number, "space": space, "bytes": size, "blocks": size // 16,
            "peak_bytes": size, "growth_bytes": 0, "growth_bytes_per_s": 0, "allocations": 0,
            "allocations_per_s": 0, "temporary": 0, "temporary_per_s": 0,
            "frames": [frame(f"f{number}", "app.c", number), frame("main", "app.c", 99)], **more}


def answer(time_ms, contexts, **totals):
    sums = {space: {"bytes": sum(c["bytes"] for c in contexts if c["space"] == space), "blocks": 0,
                    "usable_bytes": 0, "peak_bytes": 5 << 20, "peak_time_ms": 0}
            for space in SPACES}
    return {"pid": os.getpid(), "time_ms": time_ms, "interval_ms": 1, **sums,
            "rss_bytes": 7 << 20, "rss_peak_bytes": 8 << 20, "allocations": 0, "frees": 0,
            "temporary": 0, "reallocations": 0, "unknown_frees": 0, "contexts": contexts, **totals}


class FakeMonitor(threading.Thread):
    """`script(n)` is the n-th answer: a dictionary, text, (status, text), or None for silence."""

    def __init__(self, runtime, script):
        super().__init__(daemon=True)
        folder = os.path.join(runtime, "muninn")
        os.makedirs(folder, 0o700, exist_ok=True)
        self.path = os.path.join(folder, f"{os.getpid()}-{os.getpid()}")
        self.script, self.questions = script, []
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(self.path)
        self.socket.listen(8)
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                try:
                    self.questions.append(connection.recv(4096).decode())
                    self.reply(connection, self.script(len(self.questions) - 1))
                except OSError:
                    pass

    @staticmethod
    def reply(connection, what):
        if what is None:
            return
        status, text = what if isinstance(what, tuple) else (0, what)
        data = text.encode() if isinstance(text, str) else json.dumps(text).encode()
        for at in range(0, len(data), 30000):
            connection.send(b"t" + data[at:at + 30000])
        connection.send(b"e" + bytes([status]))

    def stop(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.join()
        if os.path.exists(self.path):
            os.unlink(self.path)
