# SPDX-License-Identifier: MIT
"""Reads a massif.out strictly: what is not as the incumbent writes it is an error."""
import re

NODE = re.compile(r"^( *)n(\d+): (\d+) (.*)$")
PLACES = re.compile(r"^in (\d+) (places, all|place,) below massif's threshold \((\d+\.\d\d)%\)$")
FRAME = re.compile(r"^0x([0-9A-F]+): (.*)$")
ROOTS = ("(heap allocation functions) malloc/new/new[], --alloc-fns, etc.",
         "(page allocation syscalls) mmap/mremap/brk, --alloc-fns, etc.")


class Node:
    def __init__(self, count, bytes_, text):
        self.count, self.bytes, self.text, self.children = count, bytes_, text, []
        frame = FRAME.match(text)
        self.name = frame[2] if frame else text
        self.function = re.sub(r" \((in )?[^()]*\)$", "", self.name)
        if not frame and not PLACES.match(text) and text not in ROOTS:
            raise ValueError(f"no entry of a tree: {text}")

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()


class Snapshot:
    def __init__(self, number):
        self.number, self.kind, self.tree = number, "", None
        self.time = self.heap = self.extra = self.stacks = 0

    @property
    def total(self):
        return self.heap + self.extra + self.stacks

    def of(self, function):
        """The bytes of the outermost entries of a function, whatever is called from it."""
        def search(node):
            if node.function == function:
                return node.bytes
            return sum(map(search, node.children))
        return search(self.tree)

    def top(self):
        """Functions that allocate, with their bytes."""
        sums = {}
        for node in self.tree.children:
            sums[node.function] = sums.get(node.function, 0) + node.bytes
        return sums


class Profile:
    def __init__(self, text):
        self.lines, self.at, self.snapshots = text.split("\n"), 0, []
        if self.lines.pop() != "":
            raise ValueError("the last line does not end")
        self.desc, self.cmd = self.field("desc: "), self.field("cmd: ")
        self.unit = self.field("time_unit: ")
        while self.at < len(self.lines):
            self.snapshots.append(self.snapshot())
        peaks = [s for s in self.snapshots if s.kind == "peak"]
        if len(peaks) > 1:
            raise ValueError("two peaks")
        self.peak = peaks[0] if peaks else None
        self.check()

    def field(self, name):
        line = self.lines[self.at]
        if not line.startswith(name):
            raise ValueError(f"line {self.at + 1}: no {name}: {line}")
        self.at += 1
        return line[len(name):]

    def snapshot(self):
        self.field("#-----------")
        snapshot = Snapshot(int(self.field("snapshot=")))
        self.field("#-----------")
        snapshot.time = int(self.field("time="))
        snapshot.heap = int(self.field("mem_heap_B="))
        snapshot.extra = int(self.field("mem_heap_extra_B="))
        snapshot.stacks = int(self.field("mem_stacks_B="))
        snapshot.kind = self.field("heap_tree=")
        if snapshot.kind in ("peak", "detailed"):
            snapshot.tree = self.node(0)
        elif snapshot.kind != "empty":
            raise ValueError(snapshot.kind)
        return snapshot

    def node(self, level):
        match = NODE.match(self.lines[self.at])
        if not match or len(match[1]) != level:
            raise ValueError(f"line {self.at + 1}: no entry at level {level}: "
                             + self.lines[self.at])
        self.at += 1
        node = Node(int(match[2]), int(match[3]), match[4])
        node.children = [self.node(level + 1) for _ in range(node.count)]
        return node

    def check(self):
        """What holds for every file: sums, order, the peak."""
        time = 0
        for number, s in enumerate(self.snapshots):
            if s.number != number or s.time < time:
                raise ValueError(f"snapshot {s.number} is out of order")
            time = s.time
            if self.peak and s.total > self.peak.total:
                raise ValueError(f"snapshot {number} is over the peak")
            if s.tree is None:
                continue
            if s.tree.bytes != s.heap:
                raise ValueError(f"snapshot {number}: {s.heap} bytes, its tree has {s.tree.bytes}")
            for node in s.tree.walk():
                total = sum(child.bytes for child in node.children)
                if node.children and total != node.bytes:
                    raise ValueError(f"snapshot {number}: {node.text}: {node.bytes} != {total}")
                sizes = [child.bytes for child in node.children]
                if sizes != sorted(sizes, reverse=True):
                    raise ValueError(f"snapshot {number}: {node.text}: not sorted")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return Profile(file.read())
