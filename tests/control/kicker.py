# SPDX-License-Identifier: MIT
"""A client of control sockets: asks as `muninn ctl` does, without a process for each question."""
import os
import random
import socket
import threading


def sockets(runtime):
    """(pid, path) of each socket under a XDG_RUNTIME_DIR."""
    folder = os.path.join(runtime, "muninn")
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [(int(name.split("-")[0]), os.path.join(folder, name)) for name in names]


def ask_path(path, command, timeout=60):
    """(status, answer); status -1 when the other end has gone."""
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(timeout)
        try:
            s.connect(path)
            s.send(command if isinstance(command, bytes) else command.encode())
            while True:
                packet = s.recv(1 << 16)
                if not packet:
                    return -1, answer.decode(errors="replace")
                if packet[:1] == b"e":
                    return packet[1], answer.decode(errors="replace")
                answer += packet[1:]
        except OSError as error:
            return -1, f"{error}"


class Kicker(threading.Thread):
    """Asks every program under `runtime`, again and again."""

    def __init__(self, runtime, commands=("threads", "open_fds", "nothing-knows-this"), pause=0.002):
        super().__init__(daemon=True)
        self.runtime, self.commands, self.pause = runtime, commands, pause
        self.enough = threading.Event()
        self.answers = self.silences = 0
        self.random = random.Random(1)

    def run(self):
        while not self.enough.wait(self.pause):
            for _, path in sockets(self.runtime):
                status, text = ask_path(path, self.random.choice(self.commands))
                self.answers += status >= 0
                self.silences += "answers" in text

    def stop(self):
        self.enough.set()
        self.join()
