# SPDX-License-Identifier: MIT
"""Findings of the incumbent as scripts for driver.c. Its XML is read, each sentence is taken apart
into the numbers and texts that an engine would have sent, and what our writers make of those is
compared with its own text and XML."""

import re

from qt_reader import child, children
from scripts import Script

KIND_IDS = {"UninitCondition": "uninit-branch", "UninitValue": "uninit-value",
            "InvalidRead": "invalid-read", "InvalidWrite": "invalid-write",
            "SyscallParam": "syscall-param", "InvalidFree": "invalid-free",
            "MismatchedFree": "mismatched-free", "Overlap": "overlap", "FishyValue": "fishy-size",
            "InvalidJump": "invalid-jump", "ClientCheck": "client-check",
            "Leak_DefinitelyLost": "leak-definite", "Leak_IndirectlyLost": "leak-indirect",
            "Leak_PossiblyLost": "leak-possible", "Leak_StillReachable": "leak-reachable"}

# sentence: (pattern, function from groups to (values, text))
HEADLINES = [
    (r"Invalid (?:read|write) of size (\d+)", lambda n: ((n,), None)),
    (r"Use of uninitialised value of size (\d+)", lambda n: ((n,), None)),
    (r"Syscall param (\S+) (contains|points to) (un\w+) byte\(s\)",
     lambda t, how, state: ((int(how != "contains"), int(state == "unaddressable")), t)),
    (r"Source and destination overlap in (\w+)\((\w+), (\w+)(?:, (\d+))?\)",
     lambda f, a, b, n: ((a, b) + ((n,) if n else ()), f)),
    (r"Argument '(\w+)' of function (\w+) has a fishy \(possibly negative\) value: (-?\d+)\s*",
     lambda a, f, n: ((int(n) & (1 << 64) - 1,), (f, a))),
    (r"([\d,]+)(?: \(([\d,]+) direct, ([\d,]+) indirect\))? bytes in ([\d,]+) blocks are .* in loss "
     r"record ([\d,]+) of ([\d,]+)",
     lambda total, direct, indirect, blocks, record, records:
     ((total, blocks, record, records) + ((direct, indirect) if direct else ()), None)),
    (r".*", lambda: ((), None)),
]
PARTS = [
    (r"Address (0x\w+) is ([\d,]+) bytes (before|inside|after) a (recently re-allocated )?block of "
     r"size ([\d,]+) (alloc'd|free'd|client-defined)",
     lambda a, n, where, again, size, state:
     ("address-block", (a, n, ["before", "inside", "after"].index(where), size,
                        ["alloc'd", "free'd", "client-defined"].index(state), int(bool(again))),
      None)),
    (r"Block was alloc'd at", lambda: ("allocated", (), None)),
    (r"Uninitialised value was created by a (heap|stack) allocation",
     lambda kind: ("origin-" + kind, (), None)),
    (r"Address (0x\w+) is on thread (\d+)'s stack", lambda a, t: ("address-stack", (a, t), None)),
    (r"in frame #(\d+), created by (.*)", lambda n, t: ("stack-frame", (n,), t)),
    (r"(\d+) bytes below stack pointer", lambda n: ("below-stack", (n,), None)),
    (r"Address (0x\w+) is not stack'd, malloc'd or \(recently\) free'd",
     lambda a: ("address-unknown", (a,), None)),
    (r"Address (0x\w+) is (\d+) bytes inside data symbol \"(.*)\"",
     lambda a, n, t: ("address-symbol", (a, n), t)),
    (r"Address (0x\w+) is in a ([rwx-]+) anonymous segment",
     lambda a, p: ("address-anonymous", (a, bits(p)), None)),
    (r"Address (0x\w+) is in the Text segment of (.*)",
     lambda a, t: ("address-section", (a, 0), t)),
]


def bits(letters):
    return sum(bit for letter, bit in zip(letters, (1, 2, 4)) if letter != "-")


def match(table, sentence):
    for pattern, take in table:
        found = re.fullmatch(pattern, sentence.rstrip("\n"), re.DOTALL)
        if found:
            return take(*found.groups())
    raise AssertionError(f"no form for the sentence {sentence!r}")


def plain(values):
    return tuple(v.replace(",", "") if isinstance(v, str) else v for v in values)


def frames(stack):
    def text(frame, name):
        return child(frame, name)
    return [(int(text(f, "ip"), 16), text(f, "fn"), text(f, "obj"), text(f, "dir"),
             text(f, "file"), text(f, "line") or 0) for f in children(stack, "frame")]


def add_error(script, error, count):
    kind = child(error, "kind")
    leak = children(error, "xwhat")
    sentence = child(leak[0], "text") if leak else child(error, "what")
    values, text = match(HEADLINES, sentence)
    stack, parts = None, []
    for node in error["children"]:
        if node["name"] == "stack" and stack is None:
            stack = frames(node)
        elif node["name"] == "auxwhat":
            part, numbers, part_text = match(PARTS, node["text"])
            parts.append([part, part_text, plain(numbers), ()])
        elif node["name"] == "stack":
            parts[-1][3] = frames(node)
    values = plain(values)
    if leak:
        leak = (child(leak[0], "leakedbytes"), child(leak[0], "leakedblocks"), *values[2:4])
    script.finding(KIND_IDS[kind], values, stack, parts, text=text, tid=child(error, "tid"),
                   name=child(error, "threadname"), leak=leak or None, count=count,
                   unique=child(error, "unique"))


def script_of(reader, args):
    """The whole run, except for the tool's own summary lines."""
    counts = {}
    for pair in children(children(reader.tree, "errorcounts")[0], "pair"):
        counts[child(pair, "unique")] = child(pair, "count")
    script = Script(args=args)
    is_over = False
    for node in reader.tree["children"]:
        if node["name"] == "status" and child(node, "state") == "FINISHED":
            script.add("ended")
            is_over = True
        elif node["name"] == "error":
            add_error(script, node, counts.get(child(node, "unique"), 1))
    assert is_over
    return script
