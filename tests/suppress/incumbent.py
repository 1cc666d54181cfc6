# SPDX-License-Identifier: MIT
"""The incumbent as a black box: which errors a program has, with their stacks, and which of them
are left with a suppression file."""

import subprocess
import xml.etree.ElementTree as xml
from collections import namedtuple

VALGRIND = "/usr/bin/valgrind"

# mangled is what the incumbent matches; function is what it shows a person.
Frame = namedtuple("Frame", "function mangled object directory file line")
Error = namedtuple("Error", "tool kind extra leak_kind frames")


def run(program, output, *options):
    command = [VALGRIND, "-q", "--default-suppressions=no", "--leak-check=full",
               "--show-leak-kinds=all", "--num-callers=30", "--show-below-main=yes", "--xml=yes",
               f"--xml-file={output}", "--gen-suppressions=all", *options, str(program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def read_stacks(path):
    """[(skind, skaux, [frame elements])] of each error."""
    found = []
    for error in xml.parse(path).getroot().iter("error"):
        suppression = error.find("suppression")
        found.append((suppression.findtext("skind"), suppression.findtext("skaux") or "",
                      error.find("stack").findall("frame")))
    return found


def make_error(kind, aux, raw, shown):
    tool, kind = kind.split(":")
    leak = aux.split(": ")[1] if aux.startswith("match-leak-kinds: ") else ""
    frames = tuple(Frame(function.findtext("fn") or "", *(
        frame.findtext(tag) or "" for tag in ("fn", "obj", "dir", "file", "line")))
        for frame, function in zip(raw, shown))
    return Error(tool, kind, "" if leak else aux, leak, frames)


def errors_of(program, work, *options):
    """All errors of the program, or those that the options leave."""
    run(program, work / "raw.xml", "--demangle=no", *options)
    run(program, work / "shown.xml", "--demangle=yes", *options)
    return [make_error(kind, aux, raw, shown) for (kind, aux, raw), (_, _, shown)
            in zip(read_stacks(work / "raw.xml"), read_stacks(work / "shown.xml"))]


def raw_identity(kind, aux, frames):
    return kind, aux, tuple((f.findtext("fn"), f.findtext("line")) for f in frames)


def left_by(program, work, file):
    """What is left of the errors with this file: their identities; None if it is refused."""
    output = work / "left.xml"
    done = run(program, output, "--demangle=no", f"--suppressions={file}")
    if "FATAL: in suppressions file" in done.stderr:
        return None
    return {raw_identity(*each) for each in read_stacks(output)}


def identity(error):
    aux = f"match-leak-kinds: {error.leak_kind}" if error.leak_kind else error.extra
    return (f"{error.tool}:{error.kind}", aux,
            tuple((f.mangled or None, f.line or None) for f in error.frames))


def accepts(file):
    """Whether the incumbent reads this file."""
    done = subprocess.run([VALGRIND, "-q", "--default-suppressions=no", f"--suppressions={file}",
                           "/bin/true"], capture_output=True, text=True, timeout=120)
    return "FATAL: in suppressions file" not in done.stderr
