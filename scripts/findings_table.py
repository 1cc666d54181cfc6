# SPDX-License-Identifier: MIT
"""Reads src/wire/findings.def, for scripts and tests: the rows as the C compiler sees them."""

import re
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "src/wire/findings.def"
FAMILIES = {"MEMCHECK": "Memcheck", "CORE": "CoreError"}
TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([A-Za-z_.][\w.]*)|([(),=])|(\Z))')


class Failure(Exception):
    pass


def tokens(text):
    at = 0
    while True:
        match = TOKEN.match(text, at)
        if not match:
            raise Failure(f"findings.def: cannot read {text[at:at + 40]!r}")
        if match[4] is not None:
            return
        at = match.end()
        if match[1]:
            yield "text", re.sub(r"\\(.)", r"\1", match[1][1:-1])
        else:
            yield ("name", match[2]) if match[2] else ("mark", match[3])


class Reader:
    def __init__(self, text, macros):
        self.list = list(tokens(text))
        self.at = 0
        self.macros = macros

    def peek(self):
        return self.list[self.at] if self.at < len(self.list) else ("end", "")

    def next(self):
        self.at += 1
        return self.list[self.at - 1]

    def text(self):
        """Neighbouring literals are one; a name among them is a macro."""
        pieces = []
        while self.peek()[0] == "text" or self.peek()[1] in self.macros:
            kind, value = self.next()
            pieces.append(value if kind == "text" else self.macros[value])
        return "".join(pieces)

    def arguments(self):
        """Those of a call: each a text, a name, a (name, arguments) or a (member, text)."""
        assert self.next() == ("mark", "("), self.list[self.at - 4:self.at + 4]
        found = []
        while self.peek() != ("mark", ")"):
            if self.peek() == ("mark", ","):
                self.next()
            elif self.peek()[0] == "text":
                found.append(self.text())
            else:
                name = self.next()[1]
                if self.peek() == ("mark", "("):
                    found.append((name, self.arguments()))
                elif self.peek() == ("mark", "="):
                    self.next()
                    found.append((name.lstrip("."), self.text()))
                else:
                    found.append(name)
        self.next()
        return found


def members(arguments):
    row = {}
    for argument in arguments:
        if isinstance(argument, str):
            row["family"] = FAMILIES[argument]
        elif argument[0] == "XML":
            row["xml"] = row["xml_4"] = argument[1][0]
        else:
            row[argument[0]] = argument[1]
    return row


def fields(arguments):
    found = []
    for kind, (first, *rest) in (a for a in arguments if isinstance(a, tuple)):
        if kind == "CHOICE":
            found.append({"name": first, "type": "CHOICE", "words": rest[0].split("|"),
                          "about": rest[1]})
        else:
            found.append({"name": rest[0], "type": first, "about": rest[1]})
    return found


def read(path=TABLE):
    """(shapes by NAME, kinds, parts): lists of fields; and rows with their NAME, shape and members."""
    text = re.sub(r"//[^\n]*", "", path.read_text())
    macros = {}
    for name, body in re.findall(r"^#define (LOST|IN_RECORD)((?:.*\\\n)*.*)", text, re.M):
        macros[name] = Reader(body.replace("\\\n", " "), {}).text()
    text = re.sub(r"^#(?:.*\\\n)*.*", "", text, flags=re.M)
    reader, shapes, kinds, parts = Reader(text, macros), {}, [], []
    while reader.peek()[0] != "end":
        name = reader.next()[1]
        first, *rest = reader.arguments()
        if name == "SHAPE":
            shapes[first] = fields(rest)
        else:
            row = {"NAME": first, "shape": rest[0], **members(rest[1:])}
            (kinds if name == "KIND" else parts).append(row)
    return shapes, kinds, parts
