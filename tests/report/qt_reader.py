# SPDX-License-Identifier: MIT
"""A reader of the XML report as strict as Qt Creator's: protocol 4 only, known tools and kinds only,
known elements in their places only, numbers that are numbers; fed piece by piece as a socket
delivers. Also what the report says, for tests to look at."""

import xml.parsers.expat

# The kinds that programs which wrote protocol 4 have always had.
KINDS = {"InvalidFree", "MismatchedFree", "InvalidRead", "InvalidWrite", "InvalidJump", "Overlap",
         "InvalidMemPool", "UninitCondition", "UninitValue", "SyscallParam", "ClientCheck",
         "FishyValue", "Leak_DefinitelyLost", "Leak_PossiblyLost", "Leak_StillReachable",
         "Leak_IndirectlyLost"}
TOOLS = {"memcheck", "helgrind"}

# element: elements that it may hold. An element that is not here holds only text.
HOLDS = {
    None: {"valgrindoutput"},
    "valgrindoutput": {"protocolversion", "protocoltool", "preamble", "pid", "ppid", "tool",
                       "usercomment", "args", "status", "error", "errorcounts", "suppcounts",
                       "announcethread", "clientmsg", "fatal_signal"},
    "preamble": {"line"},
    "args": {"vargv", "argv"}, "vargv": {"exe", "arg"}, "argv": {"exe", "arg"},
    "status": {"state", "time"},
    "error": {"unique", "tid", "threadname", "kind", "what", "xwhat", "auxwhat", "xauxwhat",
              "stack", "suppression"},
    "xwhat": {"text", "leakedbytes", "leakedblocks", "hthreadid"},
    "xauxwhat": {"text", "file", "dir", "line", "hthreadid"},
    "stack": {"frame"},
    "frame": {"ip", "obj", "fn", "dir", "file", "line"},
    "suppression": {"sname", "skind", "skaux", "sframe", "rawtext"},
    "sframe": {"fun", "obj"},
    "errorcounts": {"pair"}, "suppcounts": {"pair"}, "pair": {"count", "unique", "name"},
    "announcethread": {"hthreadid", "isrootthread", "stack"},
    "clientmsg": {"tid", "text", "stack"},
    "fatal_signal": {"tid", "threadname", "signo", "signame", "sicode", "event", "siaddr", "stack"},
}
NUMBERS = {"pid", "ppid", "tid", "line", "count", "leakedbytes", "leakedblocks", "hthreadid",
           "signo", "sicode", "protocolversion"}
HEXADECIMAL = {"unique", "ip", "siaddr"}


class Refused(Exception):
    """The report is not one that an IDE would take."""


class Reader:
    """feed() pieces, then close(). `errors`, `states` and `tree` say what was read."""

    def __init__(self):
        self.path = [None]
        self.text = []
        self.nodes = [{"name": None, "text": "", "children": []}]
        self.states, self.errors, self.finished = [], [], False
        self.parser = xml.parsers.expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters

    def feed(self, data):
        try:
            self.parser.Parse(data, False)
        except xml.parsers.expat.ExpatError as error:
            raise Refused(f"not XML: {error}") from error

    def close(self):
        try:
            self.parser.Parse(b"", True)
        except xml.parsers.expat.ExpatError as error:
            raise Refused(f"not XML: {error}") from error
        if not self.finished:
            raise Refused("no </valgrindoutput>")

    def start(self, name, attributes):
        parent = self.path[-1]
        if "usercomment" not in self.path:
            if attributes:
                raise Refused(f"<{name}> has attributes")
            if parent == "line" or name not in HOLDS.get(parent, ()):
                # <line> is a leaf, in the preamble and in frames.
                raise Refused(f"<{name}> in <{parent}>")
        self.path.append(name)
        self.nodes.append({"name": name, "text": "", "children": []})

    def characters(self, text):
        self.nodes[-1]["text"] += text

    def end(self, name):
        self.path.pop()
        node = self.nodes.pop()
        self.nodes[-1]["children"].append(node)
        text = node["text"]
        if name in HOLDS and name not in (None, "xauxwhat") and text.strip():
            raise Refused(f"text in <{name}>: {text.strip()!r}")
        if name in NUMBERS and not (name == "line" and self.path[-1] == "preamble"):
            try:
                int(text)
            except ValueError:
                raise Refused(f"<{name}> is {text!r}") from None
        if name in HEXADECIMAL:
            if not text.startswith("0x"):
                raise Refused(f"<{name}> is {text!r}")
            int(text, 16)
        if name == "protocolversion" and text != "4":
            raise Refused(f"protocol {text}")
        if name in ("tool", "protocoltool") and text not in TOOLS:
            raise Refused(f"tool {text}")
        if name == "kind" and text not in KINDS:
            raise Refused(f"kind {text}")
        if name == "state":
            if text not in ("RUNNING", "FINISHED"):
                raise Refused(f"state {text}")
            self.states.append(text)
        if name == "error":
            self.take_error(node)
        if name == "valgrindoutput":
            self.finished = True

    def take_error(self, node):
        have = [child["name"] for child in node["children"]]
        for needed in ("unique", "tid", "kind", "stack"):
            if needed not in have:
                raise Refused(f"an error without <{needed}>")
        if have.count("what") + have.count("xwhat") != 1:
            raise Refused("an error must have one what")
        self.errors.append(node)

    @property
    def tree(self):
        return self.nodes[0]["children"][0]


def child(node, name):
    """The text of the first child so named, or None."""
    return next((c["text"] for c in node["children"] if c["name"] == name), None)


def children(node, name):
    return [c for c in node["children"] if c["name"] == name]


def what(error):
    """The headline of an error, from <what> or <xwhat>."""
    plain = child(error, "what")
    return plain if plain is not None else child(children(error, "xwhat")[0], "text")


def read(data, sizes=(1 << 20,)):
    """Reads the report in pieces of the sizes given, over and over."""
    reader, at, turn = Reader(), 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        reader.feed(data[at:at + size])
        at += size
        turn += 1
    reader.close()
    return reader
