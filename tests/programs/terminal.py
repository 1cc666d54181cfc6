# SPDX-License-Identifier: MIT
"""Sessions on a pseudo-terminal: an interactive bash with job control, driven key by key.

Each key is sent only once the program shows that it waits for it (a prompt, or a word that the
foreground job prints), so a transcript is the same in every run.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from harness import RunError

PROMPT = b"@@ "
WAITING = ("61", "247")  # wait4, waitid
READING = ("0", "23", "270", *WAITING)  # read, select, pselect6
CTRL_C, CTRL_D, CTRL_Z, CTRL_BACKSLASH = b"\x03", b"\x04", b"\x1a", b"\x1c"

# What the user types, as the line, what shows that it is time for the key, and the key.
READY = "sh -c 'echo re\"\"ady; exec sleep 100'"
BASH_SESSION = [
    ("echo $-; [ -t 0 ] && echo on a terminal", None, None),
    ("stty size", None, None),
    (READY, rb"^ready\r", CTRL_C),
    ("echo status $?", None, None),
    (READY, rb"^ready\r", CTRL_BACKSLASH),
    ("echo status $?", None, None),
    (READY, rb"^ready\r", CTRL_Z),
    ("echo status $?; jobs", None, None),
    ("bg", None, None),
    ("jobs", None, None),
    ("fg", rb"^sh -c .*\r\n", CTRL_C),
    ("jobs; echo status $?", None, None),
    ("cat", rb"cat\r\n", b"typed\r" + CTRL_D),
    ("seq 3 | sort -r | cat", None, None),
    ("sh -c 'echo started >started; exec sleep 100' &", None, None),
    ("until [ -s started ]; do sleep 0.01; done", None, None),
    ("kill %1; wait %1; echo status $?", None, None),
    ("echo abx\x7fc", None, None),
    ("(trap 'echo interrupted; exit 5' INT; echo re\"\"ady; read line)", rb"^ready\r", CTRL_C),
    ("echo status $?", None, None),
]


def system_call_of(pid):
    """The number of the call that a process sleeps in, as text. Where that may not be read, it is
    taken to wait soon."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            return file.read().split()[0]
    except OSError:
        time.sleep(0.1)
        return WAITING[0]


class Session:
    def __init__(self, context, argv):
        self.context = context
        self.seen = b""
        self.mark = 0
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # python ignores it
                os.chdir(context.folder)
                os.execve(argv[0], argv, context.environment)
            finally:
                os._exit(127)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def send(self, keys):
        self.mark = len(self.seen)
        os.write(self.master, keys)

    def expect(self, pattern):
        """Reads until `pattern` appears in what came since the last send()."""
        while not re.search(pattern, self.seen[self.mark :], re.MULTILINE):
            if not self.read():
                raise RunError(f"the terminal closed, waiting for {pattern!r}")

    def read(self):
        ready, _, _ = select.select([self.master], [], [], self.context.remaining_s())
        if not ready:
            raise RunError(f"timeout: the terminal shows {self.seen[-100:]!r}")
        try:
            data = os.read(self.master, 65536)
        except OSError:  # EIO: the last process on the terminal is gone
            return False
        self.seen += data
        return bool(data)

    def wait_for_foreground_job(self):
        self.context.until(
            "a job in the foreground", lambda: os.tcgetpgrp(self.master) != self.pid
        )

    def wait_until_the_shell_waits(self):
        """The shell gives the terminal away just before it waits for the job."""
        self.context.until("a shell that waits", lambda: system_call_of(self.pid) in WAITING)

    def wait_until_the_job_reads(self):
        """A shell that is told before it reads looks at its traps only when that is over."""
        self.context.until("a job that reads",
                           lambda: system_call_of(os.tcgetpgrp(self.master)) in READING)

    def close(self):
        while self.read():
            continue
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def bash_session(context):
    context.environment.update(PS1=PROMPT.decode(), INPUTRC="/dev/null", HISTFILE="")
    argv = [*context.prefix, "/bin/bash", "--norc", "--noprofile", "-i"]
    session = Session(context, argv)
    session.expect(rb"^" + re.escape(PROMPT))
    for line, cue, keys in BASH_SESSION:
        session.send(line.encode() + b"\r")
        if cue:
            session.expect(cue)
            session.wait_for_foreground_job()
            session.wait_until_the_shell_waits()
            if "read line" in line:
                session.wait_until_the_job_reads()
            session.send(keys)
        session.expect(rb"\n" + re.escape(PROMPT))
    session.send(b"exit 12\r")
    status = session.close()
    return session.seen + f"\nexit status {status}\n".encode()
