# SPDX-License-Identifier: MIT
"""A terminal that remembers what is on it: enough of the control sequences for tests."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


class Screen:
    """A program in a pseudo-terminal of width × height, and its screen."""

    def __init__(self, command, env, width=100, height=24):
        self.width, self.height = width, height
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            while termios.tcgetwinsize(0)[0] == 0:  # until the parent has set it
                time.sleep(0.001)
            os.execve(command[0], command, env)
        self.resize(width, height)
        self.raw = self.unread = ""
        self.scrolled = 0
        self.modes = set()
        self.status = None

    def blank(self):
        return [[" "] * self.width for _ in range(self.height)]

    def resize(self, width, height):
        self.width, self.height = width, height
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.cells, self.row, self.column = self.blank(), 0, 0
        self.is_in_place = False  # what came since the last "home" did not scroll
        self.frames_in_place = 0  # so many whole ones, one after the other

    def control(self, arguments, letter):
        if letter == "H":
            self.frames_in_place += self.is_in_place
            self.is_in_place = True
            self.row = self.column = 0
        elif letter == "K":
            self.cells[self.row][self.column:] = [" "] * (self.width - self.column)
        elif letter == "J":
            self.cells[self.row][self.column:] = [" "] * (self.width - self.column)
            for row in range(self.row + 1, self.height):
                self.cells[row] = [" "] * self.width
        elif letter in "hl" and arguments.startswith("?"):
            (self.modes.add if letter == "h" else self.modes.discard)(arguments[1:])
        elif letter != "m":
            raise AssertionError(f"an unknown control sequence: {arguments}{letter}")

    def feed(self, text):
        self.raw += text
        self.unread += text
        while self.unread:
            if self.unread[0] == "\x1b":
                found = SEQUENCE.match(self.unread)
                if not found:
                    return  # the rest of it comes later
                self.control(*found.groups())
                self.unread = self.unread[found.end():]
                continue
            char, self.unread = self.unread[0], self.unread[1:]
            if char == "\r":
                self.column = 0
            elif char == "\n":
                if self.row + 1 < self.height:
                    self.row += 1
                else:
                    self.scrolled += 1
                    self.is_in_place, self.frames_in_place = False, 0
            elif char >= " ":
                if self.column < self.width:
                    self.cells[self.row][self.column] = char
                self.column += 1

    def read(self, seconds):
        until, decoder = time.monotonic() + seconds, ""
        while self.status is None and time.monotonic() < until:
            if not select.select([self.fd], [], [], max(0, until - time.monotonic()))[0]:
                break
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                break
            decoder = data
            while True:  # a character may be cut
                try:
                    self.feed(decoder.decode())
                    break
                except UnicodeDecodeError:
                    decoder += os.read(self.fd, 1)

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def wait_for(self, condition, seconds=60):
        """Reads until condition(lines) is true. Returns whether it came to be."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.status is None:
            if condition(self.lines()):
                return True
            self.read(0.05)
        return condition(self.lines())

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self, seconds=60):
        """The exit status, or None if it does not end."""
        until = time.monotonic() + seconds
        while self.status is None and time.monotonic() < until:
            self.read(0.1)
        return self.status
