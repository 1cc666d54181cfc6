# SPDX-License-Identifier: MIT
"""Scripts for driver.c: findings as a test describes them."""


def quote(value):
    if value is None:
        return "-"
    if isinstance(value, tuple):  # pieces of a text
        value = b"\1".join(str(piece).encode() for piece in value)
    data = value if isinstance(value, bytes) else str(value).encode()
    if data == b"-":
        return "\\x2d"
    return "".join(chr(b) if 0x20 <= b < 0x7f and b != 0x5c else f"\\x{b:02x}" for b in data)


class Script:
    def __init__(self, tool="memcheck", title="Memcheck, a memory error detector", pid=123,
                 args=("./prog",), fork=False, options=()):
        self.lines = []
        self.unique = 0
        self.add("run", pid, 100, tool, title, "/home/me/prog")
        self.add("exe", "/usr/bin/muninn")
        for word in args:
            self.add("arg", word)
        for word in options:
            self.add("opt", word)
        if fork:
            self.add("fork")
        self.add("start")

    def add(self, *words):
        self.lines.append("\t".join(quote(word) for word in words))
        return self

    def frames(self, stack):
        """A frame is (pc, function, object, directory, file, line[, "inlined"])."""
        for frame in stack:
            self.add("frame", hex(frame[0]), *frame[1:])

    def finding(self, kind, values=(), stack=(), parts=(), text=None, tid=1, name=None, what=None,
                leak=None, count=1, suppression=None, param=None, fd=None, unique=None):
        """A part is (id, text, values, stack) or with (directory, file, line) behind."""
        self.add("finding", kind, self.unique if unique is None else unique, tid, name)
        self.unique += 1
        if values:
            self.add("values", *values)
        if text is not None:
            self.add("text", text)
        if what is not None:
            self.add("what", what)
        if leak:
            self.add("leak", *leak)
        if fd:
            self.add("fd", *fd)
        if param:
            self.add("param", param)
        if suppression:
            self.add("suppression", suppression)
        self.frames(stack)
        for part in parts:
            self.add("part", part[0], part[1], *part[2])
            if len(part) > 4:
                self.add("declared", *part[4])
            self.frames(part[3])
        return self.add("emit", count)

    def close(self, errors=0, contexts=0, suppressed=0, suppressed_contexts=0, code=0, signal=0):
        return self.add("close", errors, contexts, suppressed, suppressed_contexts, code, signal)

    def bytes(self):
        return ("\n".join(self.lines) + "\n").encode()


MAIN = (0x1091a1, "main", "/home/me/prog", "/home/me/src", "a.c", 5)
HELPER = (0x109170, "helper", "/home/me/prog", "/home/me/src/lib", "b.c", 17)
MALLOC = (0x48417b4, "malloc", "/usr/lib/muninn/engine", None, None, 0)
FREE = (0x484417b, "free", "/usr/lib/muninn/engine", None, None, 0)
STRIPPED = (0x4900010, None, "/usr/lib/libsecret.so.1", None, None, 0)
NOWHERE = (0x5249230, None, None, None, None, 0)
START = (0x488a249, "__libc_start_call_main", "/usr/lib/libc.so.6", "./csu", "start.h", 58)

ALLOCATED = ("address-block", None, (0x4a48044, 0, 2, 4, 0), (MALLOC, MAIN))
FREED = ("address-block", None, (0x4a48040, 0, 1, 10, 1), (FREE, MAIN))
WAS_ALLOCATED = ("allocated", None, (), (MALLOC, MAIN))


def every_kind(script):
    """One finding of each kind, as a run of Memcheck could have made it."""
    script.finding("uninit-branch", (), (HELPER, MAIN), [("origin-stack", None, (), (MAIN,))])
    script.finding("uninit-value", (8,), (MAIN,), [("origin-heap", None, (), (MALLOC, MAIN))])
    script.finding("invalid-read", (4,), (HELPER, MAIN), [ALLOCATED], count=3)
    script.finding("invalid-write", (1,), (MAIN,), [FREED, WAS_ALLOCATED])
    script.finding("invalid-jump", (), (NOWHERE, START), [("address-unknown", None, (5,), ())])
    script.finding("syscall-param", (1, 1), (MAIN,), text="write(buf)", param="write(buf)")
    script.finding("syscall-param", (1, 0), (MAIN,), text="write(buf)", param="write(buf)")
    script.finding("syscall-param", (0, 0), (MAIN,), text="close(fd)", param="close(fd)")
    script.finding("client-check", (0,), (MAIN,))
    script.finding("client-check", (1,), (MAIN,))
    script.finding("invalid-free", (), (FREE, MAIN), [
        ("address-stack", None, (0x1ffefff9be, 1), ()),
        ("stack-frame", "main (a.c:5)", (1,), ())])
    script.finding("invalid-free", (), (FREE, MAIN), [
        ("address-stack", None, (0x1ffefff9be, 1), ()), ("below-stack", None, (2418,), ())])
    script.finding("mismatched-free", (), (FREE, MAIN), [
        ("address-block", None, (0x4a48040, 1024, 1, 3000000, 0), (MALLOC, MAIN))])
    script.finding("overlap", (0x1fff000575, 0x1fff000574, 4), (MAIN,), text="memcpy")
    script.finding("overlap", (0x1fff000575, 0x1fff000574), (MAIN,), text="strcpy")
    script.finding("invalid-pool", (), (MAIN,), [("address-symbol", "g", (0x10c0a0, 0), ())])
    script.finding("fishy-size", (0xffffffffffffffff,), (MALLOC, MAIN), text=("malloc", "size"))
    script.finding("realloc-zero", (), (MAIN,), [
        ("address-anonymous", None, (0x4852000, 1), ()),
        ("address-file", "/tmp/f", (0x4853005, 5), ()),
        ("address-section", "/home/me/prog", (0x109474, 0), (MAIN,))])
    script.finding("bad-alignment", (3,), (MAIN,), [
        ("variable", "st", (0x1fff000588, 0), ()),
        ("declared", "a.c", (14, 1, 1), (), ("/home/me/src", "a.c", 14))])
    script.finding("bad-size", (0,), (MAIN,))
    script.finding("bad-size", (100, 64), (MAIN,))
    script.finding("zero-size", (0, 0), (MAIN,))
    script.finding("size-mismatch", (10, 11), (FREE, MAIN), [ALLOCATED], text="new/delete")
    script.finding("alignment-mismatch", (64, 0), (FREE, MAIN), [ALLOCATED], text="new[]/delete[]")
    script.finding("fd-bad-close", (5,), (MAIN,), [
        ("fd-closed", None, (), (HELPER, MAIN)), ("fd-opened", None, (), (MAIN,))],
        text=("", "/tmp/f"), fd=(5, "/tmp/f"))
    script.finding("fd-bad-use", (7,), (MAIN,), fd=(7, None))
    return script


def leaks(script):
    script.finding("leak-definite", (2016, 1, 1, 4, 16, 2000), (MALLOC, MAIN), leak=(2016, 1, 1, 4))
    script.finding("leak-indirect", (2000, 1, 2, 4, 2000, 0), (MALLOC, MAIN), leak=(2000, 1, 2, 4))
    script.finding("leak-possible", (272, 1, 3, 4), (MALLOC, STRIPPED), leak=(272, 1, 3, 4))
    script.finding("leak-reachable", (1100, 1100, 4, 4), (MALLOC, HELPER, MAIN),
                   leak=(1100, 1100, 4, 4))
    script.finding("fd-not-closed", (3,), (MAIN,), text=("", "/dev/null"),
                   fd=(3, "/dev/null"))
    script.finding("fd-not-closed", (9,), (), [("fd-inherited", None, (), ())], fd=(9, None))
    return script
