# SPDX-License-Identifier: MIT
"""Findings as the corpus compares them, read from muninn's JSON and from valgrind's XML.

Both reports become Finding objects with the same fields, so that one expectation can be held
against either. Kinds are known by the id of src/wire/findings.def, whose rows also give the names of
the XML protocol.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import findings_table  # noqa: E402

BLOCK = re.compile(r"is ([\d,]+) bytes (before|inside|after) a (?:recently re-allocated )?"
                   r"block of size ([\d,]+) (alloc'd|free'd|client-defined)")


@dataclass
class Frame:
    function: str = ""
    file: str = ""
    line: int = 0


@dataclass
class Finding:
    kind: str
    what: str = ""
    count: int = 1
    frames: list = field(default_factory=list)
    fields: dict = field(default_factory=dict)  # what an expectation can name: size, block, ...
    origin: list = field(default_factory=list)  # frames of the origin
    allocated: list = field(default_factory=list)  # frames of the block's allocation
    freed: list = field(default_factory=list)  # frames of the block's release

    def line_in(self, file):
        return line_in(self.frames, file)

    def top(self):
        return self.frames[0].function if self.frames else ""


def line_in(frames, file):
    """The line of the innermost frame that is in FILE; 0 if none is."""
    return next((f.line for f in frames if f.file == file), 0)


def number(text):
    return int(text.replace(",", ""))


def read_kinds():
    """xml name -> id."""
    rows = [(kind["xml"], kind["id"]) for kind in findings_table.read()[1]]
    return dict(rows)


def describe(finding, texts):
    """Fills in fields from the headline and the texts of the parts, which both tools word alike."""
    fields, what = finding.fields, finding.what
    if found := re.search(r"of size (\d+)$", what):
        fields["size"] = found[1]
    if found := re.search(r"Syscall param (\S+\)?) (contains|points to) (\w+)", what):
        fields["param"], fields["bad"] = found[1], found[3]
        fields["by"] = "value" if found[2] == "contains" else "pointer"
    if found := re.match(r"(Uninitialised|Unaddressable) byte", what):
        fields["bad"] = found[1].lower()
    if found := re.search(r"overlap in (\w+)", what):
        fields["fn"] = found[1]
    if found := re.search(r"Argument '(\w+)' of function (.+?) has", what):
        fields["arg"], fields["fn"] = found[1], found[2]
    if found := re.match(r"Invalid alignment value: (\d+)", what):
        fields["alignment"] = found[1]
    if found := re.match(r"Mismatched (\S+) size value: (\d+)", what):
        fields["fn"], fields["told"] = found[1], found[2]
    if found := re.match(r"Mismatched (\S+) alignment alloc value: (\S+) dealloc value: (\S+)", what):
        fields["fn"], fields["had"], fields["told"] = found[1], found[2], found[3]
    if found := re.match(r"Invalid size value: .*multiple of alignment (\d+)", what):
        fields["multiple"] = found[1]
    if found := re.search(r"(?:\((-?[\d,]+) direct, ([\d,]+) indirect\) )?bytes in ([\d,]+) block",
                          what):
        if found[2]:
            fields["indirect"] = str(number(found[2]))
        fields["blocks"] = str(number(found[3]))
        fields["bytes"] = str(number(what.split()[0]))
    for text in texts:
        if found := BLOCK.search(text):
            fields["block"] = f"{found[2]}:{number(found[1])}"
            fields["of"] = str(number(found[3]))
            fields["state"] = {"alloc'd": "live", "free'd": "freed"}.get(found[4], "client")
        elif found := re.search(r"Uninitialised value was created by a (heap|stack|client)", text):
            fields["origin"] = found[1]
        elif found := re.search(r"is on thread (\d+)'s stack", text):
            fields["where"], fields["thread"] = "stack", found[1]
        elif "below stack pointer" in text:
            fields["below"] = "yes"
        elif found := re.search(r'data symbol "([^"]+)"', text):
            fields["where"], fields["symbol"] = "symbol", found[1]
        elif "anonymous segment" in text:
            fields["where"] = "anonymous"
        elif "mapped file" in text:
            fields["where"] = "file"
        elif re.search(r"is in the \w+ segment of", text):
            fields["where"] = "section"
        elif "is not stack'd, malloc'd" in text:
            fields["where"] = "unknown"
        elif found := re.search(r'inside (?:local|global) var "([^"]+)"', text):
            fields["var"] = found[1]


def take_part(finding, text, frames):
    """Files the frames that belong to a part."""
    if "was created by" in text:
        finding.origin = frames
    elif "free'd" in text:
        finding.freed = frames
    elif "alloc'd" in text or "client-defined" in text:
        finding.allocated = frames


def json_frames(stack):
    return [Frame(f.get("function", ""), f.get("file", ""), f.get("line", 0)) for f in stack]


def read_json(path):
    """The findings of muninn, and its summary. Raises ValueError if the document is not whole."""
    document = json.loads(Path(path).read_text(errors="replace"))
    findings = []
    for entry in document["findings"]:
        finding = Finding(entry["kind"], entry["what"], entry["count"],
                          json_frames(entry["stack"]))
        describe(finding, [part.get("text", "") for part in entry["parts"]])
        for part in entry["parts"]:
            take_part(finding, part.get("text", ""), json_frames(part.get("stack", [])))
        findings.append(finding)
    if document["status"] != "finished":
        raise ValueError("the report was not finished")
    return findings, document["summary"]


def xml_frames(stack):
    frames = []
    for frame in stack.findall("frame"):
        function = frame.findtext("fn", "")
        frames.append(Frame(function, frame.findtext("file", ""), int(frame.findtext("line", "0"))))
    return frames


def read_xml(path):
    """The findings of valgrind. A process that was killed leaves the document open."""
    text = Path(path).read_text(errors="replace")
    kinds, findings = read_kinds(), []
    for chunk in re.findall(r"<error>.*?</error>", text, re.S):
        error = ElementTree.fromstring(chunk)
        what = error.findtext("what") or error.findtext("xwhat/text", "")
        name = error.findtext("kind")
        finding = Finding(kinds.get(name, name), what)  # its count is told elsewhere
        texts, last = [], None
        for child in error:
            if child.tag in ("auxwhat", "xauxwhat"):
                last = child.text if child.tag == "auxwhat" else child.findtext("text", "")
                texts.append(last or "")
            elif child.tag == "stack" and last is None:
                finding.frames = xml_frames(child)
            elif child.tag == "stack":
                take_part(finding, last or "", xml_frames(child))
        describe(finding, texts)
        findings.append(finding)
    return findings
