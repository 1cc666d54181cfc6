# SPDX-License-Identifier: MIT
"""Hunt: faults of system calls.

Half of the trials make the program's own calls fail, by --inject, and ask strace with the same
rule what should come of it. The other half make calls of the engine and the monitor fail, by
strace from outside: then the program's output may be cut short, but nothing may hang, and a run
that ends as if all were well must have a whole report.
"""
import json
import re
import shutil
import signal

from hunting import Found, Hunt, Skip, read_bytes, wait_for

# None executes another program: calls are counted anew from there on, by strace they are not.
PROGRAMS = (
    ["sort", "/etc/passwd"], ["cat", "/etc/passwd", "/etc/group"], ["ls", "-l", "/etc/apt"],
    ["grep", "-c", "o", "/etc/passwd", "/etc/group"], ["sha256sum", "/etc/passwd"],
    ["find", "/etc/apt", "-name", "*.list"], ["gzip", "-c", "-n", "/etc/services"],
    ["sed", "s/a/b/", "/etc/group"], ["tar", "cf", "-", "-C", "/etc", "group"],
    ["awk", "{print $1}", "/etc/fstab"],
    ["sqlite3", ":memory:", "select 1+1"],
    ["/usr/bin/python3", "-I", "-S", "-c", "print(sum(range(99)))"],
    ["sh", "-c", "echo a; (echo b); x=$(echo c); echo $x $?"], ["xz", "-0", "-c", "/etc/group"],
)
ERRORS = ("ENOENT", "EACCES", "EIO", "ENOMEM", "EINTR", "EAGAIN", "ENOSPC", "EMFILE", "EPERM",
          "EINVAL", "ENOSYS", "EBADF")
CALLS = ("openat", "read", "write", "mmap", "brk", "close", "newfstatat,fstat", "mprotect", "lseek",
         "munmap", "pread64", "%file", "%memory", "fcntl", "ioctl", "getdents64", "fadvise64",
         "rt_sigaction", "getrandom", "prlimit64", "wait4", "clone,vfork,clone3", "dup2",
         "pipe2,pipe")
# What engine and monitor need of the kernel, and with what it may refuse. Not close: strace gives
# the error instead of the call, and the descriptor stays open, which no kernel does.
OUTSIDE = {
    "memfd_create": "EMFILE ENFILE ENOMEM", "socketpair,socket": "EMFILE ENFILE ENOBUFS ENOMEM",
    "mmap": "ENOMEM EPERM EAGAIN", "munmap,mprotect": "ENOMEM", "madvise": "EINVAL ENOMEM EAGAIN",
    "openat": "ENOENT EACCES EMFILE ENFILE EINTR ENOMEM", "ftruncate": "ENOSPC EFBIG EINTR",
    "fork,clone,clone3,vfork": "EAGAIN ENOMEM", "poll,ppoll": "EINTR ENOMEM",
    "write,pwrite64": "EIO ENOSPC EINTR EAGAIN EPIPE EDQUOT", "read,pread64": "EIO EINTR EAGAIN",
    "sendmsg,sendto": "ENOBUFS EPIPE EINTR EMFILE", "recvmsg,recvfrom": "EINTR ENOMEM ECONNRESET",
    "fstat,newfstatat": "ENOMEM EACCES EOVERFLOW", "dup,dup2,dup3,fcntl": "EMFILE EINTR EBUSY",
    "process_vm_readv": "EPERM ESRCH ENOSYS", "pidfd_open": "ENOSYS EMFILE EPERM",
    "rename,renameat2": "EACCES ENOSPC EIO", "execve": "ENOMEM EACCES EIO",
    "mkdir,bind,listen": "EACCES ENOSPC EADDRINUSE EROFS", "prctl": "EPERM EINVAL ENOSYS",
    "getdents64": "EIO ENOENT", "setrlimit,prlimit64": "EPERM", "unlink,unlinkat": "EACCES EROFS",
}
LIMIT_S = 600
DEATHS = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL)


def choose_rule(trial, calls, errors):
    """A rule for one of the calls; errors: of all of them, or of each."""
    chance = trial.random
    call = chance.choice(list(calls))
    error = chance.choice(errors or calls[call].split())
    first = chance.choice((1, 2, 3, 5, 8, 13, 21, 40))
    when = f"{first}" + chance.choice(("", "", "+", "+3", f"..{first + 4}"))
    if error in ("EINTR", "EAGAIN"):  # what is tried again must succeed some day
        when = f"{first}..{first + chance.choice((0, 3))}"
    what = f"error={error}"
    if calls is CALLS and chance.random() < 0.15:
        what = chance.choice(("retval=0", "retval=1", "delay_enter=2ms", "delay_exit=2ms"))
    return f"{call}:{what}:when={when}"


def tool_options(trial, tool):
    options = [f"--tool={tool}", f"--log-file={trial.path('log')}"]
    if tool == "massif":
        options += [f"--massif-out-file={trial.path('massif.out')}",
                    f"--recording-file={trial.path('recording')}"]
    if tool == "memcheck":
        options += [f"--json-file={trial.path('json')}", "--leak-check=full"]
    return options


def our_fault(trial, err=b""):
    """What the engine says of itself when it is wrong."""
    text = read_bytes(trial.path("log")) + err
    return re.search(rb"muninn: internal error.*|assertion failed.*|engine.*(fault|crash).*", text)


# --------------------------------------------------- the program's own calls

def inject_into_program(trial):
    argv = trial.random.choice([p for p in PROGRAMS if shutil.which(p[0])])
    rule = choose_rule(trial, CALLS, ERRORS)
    tool = trial.random.choice(("none", "none", "memcheck", "massif"))
    # Memcheck and the program have allocators of their own: other calls, other numbers.
    if tool == "memcheck" and re.search("mmap|brk|munmap|memory|mprotect|%desc", rule):
        tool = "none"
    want = trial.run(["strace", "-qq", "-f", "-o", "/dev/null", "-e", "signal=none", "-e",
                      f"inject={rule}", *argv], timeout_s=60, may_time_out=True)
    if want is None:
        return "the program does not end natively"
    got = trial.run([trial.muninn, *tool_options(trial, tool), "--trace-children=yes",
                     f"--inject={rule}", *argv], timeout_s=LIMIT_S)
    if found := our_fault(trial, got[2]):
        raise Found(f"{tool}, {rule}: {found[0].decode()}")
    for what, native, ours in zip(("status", "output"), want, got):
        if native != ours:
            raise Found(f"{tool}, {rule}, {argv}: {what} is {ours!r:.300}, under strace "
                        f"{native!r:.300}; it says {got[2][-300:]!r}, there {want[2][-300:]!r}")
    return f"{tool}, {rule}, {argv[0]}"


# ------------------------------------------------ the engine's and the monitor's

def report_is_whole(trial, tool):
    log = read_bytes(trial.path("log"))
    if tool == "memcheck":
        try:
            finished = json.loads(read_bytes(trial.path("json")))["status"] == "finished"
        except ValueError:
            finished = False
        return b"ERROR SUMMARY" in log and finished
    return tool == "none" or bool(read_bytes(trial.path("massif.out")))


def dies_in_loader(trial, rule, argv):
    """Whether the C library's loader, which the engine begins with, too, survives no such fault."""
    native = trial.run(["strace", "-qq", "-o", "/dev/null", "-e", "signal=none", "-e",
                        f"inject={rule}", *argv])
    return native[0] in DEATHS


def inject_from_outside(trial):
    argv = trial.random.choice([p for p in PROGRAMS if shutil.which(p[0])])
    rule = choose_rule(trial, OUTSIDE, None)
    tool = trial.random.choice(("memcheck", "memcheck", "massif", "none"))
    native = trial.run(argv)
    got = trial.run(["strace", "-qq", "-f", "-o", "/dev/null", "-e", "signal=none", "-e",
                     f"inject={rule}", trial.muninn, *tool_options(trial, tool), *argv],
                    timeout_s=LIMIT_S)
    if found := our_fault(trial, got[2]):
        raise Found(f"{tool}, {rule} from outside: {found[0].decode()}")
    said = got[2] + read_bytes(trial.path("log"))
    if got[0] in DEATHS and not (not said and dies_in_loader(trial, rule, argv)):
        raise Found(f"{tool}, {rule} from outside, {argv}: dies of signal {-got[0]}: "
                    f"{said[-500:]!r}")
    if got[:2] == native[:2] and not report_is_whole(trial, tool) and not re.search(
            rb"cannot|gone|nothing|without|not |no room|fail", said):
        raise Found(f"{tool}, {rule} from outside, {argv}: it ended well, and the report is not "
                    f"whole: {said[-500:]!r}")
    return f"{tool}, {rule} from outside, {argv[0]}"


def trial(trial):
    if not shutil.which("strace"):
        raise Skip("strace is missing: install the Debian package strace")
    return (inject_into_program if trial.number % 2 == 0 else inject_from_outside)(trial)


HUNT = Hunt("faults", "faults of system calls, the program's and our own", trial, full=1000,
            sample=8, timeout_s=3600)
