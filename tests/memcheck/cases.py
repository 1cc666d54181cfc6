# SPDX-License-Identifier: MIT
"""The corpus: which cases there are, what is expected of each, and how they are built.

A file of corpus/ is a topic; CASE(name) opens a case, which reaches to the next CASE. The program
runs the case that argv[1] names. Everything is said in comments of the source:

    // OPTIONS --leak-check=full     options of the tool: of the file, or of the case it stands in
    // BUILD -mavx2 -pthread         flags of the compiler, for the file
    // ONLY gcc-O0 clang-O2          the builds this file or case is for
    // NEEDS avx512bw                what the processor must have, by /proc/cpuinfo, for this file
    // NOT-VALGRIND anchor           the incumbent cannot run it; a section of the differences says why
    // DIES SIGSEGV                  how the case ends; `EXITS 3` likewise
    // SAYS text                     Muninn prints a line with this in it
    // ONCE reason                   it is another case when it is run again: not for loops (hot.py)
    x = p[2];  // EXPECT memcheck invalid-read size=4 block=after:0 of=8 alloc=-3

EXPECT names a finding whose innermost frame in this file is on this line. Its fields must all hold:
    size param bad by fn arg bytes blocks indirect block of state where symbol var below thread
                  alignment multiple had told as findings.py reads them (`block=after` alone leaves the distance open)
    origin=heap:-2  the kind of origin and, relative to this line, the line that made it
    alloc=-3 free=-1  relative line of the block's allocation and release
    top=memcpy    the innermost function
    via=load      one of the functions
    line=any      the finding has no frame in this file
    why=anchor    a section of docs/design/memcheck-differences.md; needed where tools differ
EXPECT may be narrowed: EXPECT-O2, EXPECT-GCC, EXPECT-CLANG-O0, EXPECT-MUNINN, EXPECT-VALGRIND.
A comment that fills a line of its own is about the code above it.
MAYBE is an EXPECT that need not come true: for a second report of the same bug that depends on
what the compiler made of it. A case without EXPECT must be silent.
"""

import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILDS = ["gcc-O0", "gcc-O2", "clang-O0", "clang-O2"]
PAIRS = [{"gcc-O0", "clang-O2"}, {"gcc-O2", "clang-O0"}]
COMPILERS = {".c": {"gcc": "gcc", "clang": "clang"}, ".cc": {"gcc": "g++", "clang": "clang++"}}
CASE = re.compile(r"^\s*(?:static void )?CASE[( ]\s*(\w+)")
RUST_CASE = re.compile(r"^\s*// CASE (\w+)")
EXPECT = re.compile(r"(?://|#)?\s*(EXPECT|MAYBE)((?:-\w+)*) memcheck ([\w-]+)"
                    r"((?:\s+[a-z]+=\S+)*)")
NARROW = {"O0", "O2", "GCC", "CLANG", "MUNINN", "VALGRIND"}


@dataclass
class Expectation:
    kind: str
    line: int
    fields: dict
    narrow: set
    required: bool

    def applies(self, tool, build):
        compiler, level = build.upper().split("-")
        tools, compilers = {"MUNINN", "VALGRIND"}, {"GCC", "CLANG"}
        for group, mine in ((tools, tool.upper()), (compilers, compiler), ({"O0", "O2"}, level)):
            wanted = self.narrow & group
            if wanted and mine not in wanted:
                return False
        return True

    def __str__(self):
        fields = " ".join(f"{k}={v}" for k, v in self.fields.items())
        return f"line {self.line}: {self.kind} {fields}".rstrip()


@dataclass
class Case:
    topic: "Topic"
    name: str
    line: int
    options: list = field(default_factory=list)
    builds: list = None
    ends: str = "EXITS 0"
    not_valgrind: str = ""
    says: str = ""
    once: bool = False
    expectations: list = field(default_factory=list)

    def __str__(self):
        return f"{self.topic.name}/{self.name}"


@dataclass
class Topic:
    path: Path
    options: list = field(default_factory=list)
    flags: list = field(default_factory=list)
    builds: list = None
    needs: set = field(default_factory=set)
    cases: list = field(default_factory=list)

    @property
    def name(self):
        return self.path.stem

    def builds_of(self, case):
        return case.builds or self.builds or (
            ["gcc-O0", "gcc-O2"] if self.path.suffix == ".rs" else
            ["gcc-O0"] if self.path.suffix == ".S" else BUILDS)


def read_expectations(text, line, where):
    for verb, narrow, kind, fields in EXPECT.findall(text):
        words = set(narrow.split("-")[1:])
        if words - NARROW:
            raise SystemExit(f"{where}: EXPECT-{'-'.join(words - NARROW)} means nothing")
        yield Expectation(kind, line, dict(f.split("=", 1) for f in fields.split()), words,
                          verb == "EXPECT")


def read_topic(path):
    topic = Topic(path)
    owner, pattern = topic, RUST_CASE if path.suffix == ".rs" else CASE
    code_line = 0
    for line, text in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.name}:{line}"
        if not re.match(r"\s*(//|#) *(EXPECT|MAYBE)", text):
            code_line = line
        if found := pattern.match(text):
            owner = Case(topic, found[1], line)
            topic.cases.append(owner)
        if found := re.search(r"(?://|#) (OPTIONS|BUILD|ONLY|NEEDS|DIES|EXITS|SAYS|ONCE|NOT-VALGRIND) (.*)$", text):
            words = found[2].split() if found[1] in ("ONCE", "SAYS") else shlex.split(found[2])
            if found[1] == "OPTIONS":
                owner.options = words
            elif found[1] == "BUILD":
                topic.flags = words
            elif found[1] == "NEEDS":
                topic.needs = set(words)
            elif found[1] == "ONLY":
                owner.builds = words
            elif found[1] == "ONCE":
                owner.once = True
            elif found[1] == "SAYS":
                owner.says = found[2].strip()
            elif found[1] == "NOT-VALGRIND":
                owner.not_valgrind = words[0]
            else:
                owner.ends = f"{found[1]} {words[0]}"
        found = list(read_expectations(text, code_line, where))
        if found and owner is topic:
            raise SystemExit(f"{where}: EXPECT outside a case")
        if len(found) != len(re.findall(r"\b(?:EXPECT|MAYBE)[-\w]* memcheck", text)):
            raise SystemExit(f"{where}: cannot read the expectation")
        if found:
            owner.expectations += found
    if not topic.cases:
        raise SystemExit(f"{path.name}: no case")
    return topic


def read_topics():
    paths = sorted(p for p in (HERE / "corpus").iterdir() if p.suffix in (".c", ".cc", ".S", ".rs"))
    has = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    return [topic for topic in map(read_topic, paths) if topic.needs <= has]


def command(topic, build, output):
    compiler, level = build.split("-")
    path, suffix = topic.path, topic.path.suffix
    if suffix == ".rs":
        return ["rustc", "--edition=2021", "-g", "-C", f"opt-level={level[1]}",
                "-C", "debug-assertions=no", "-C", "overflow-checks=no", "-A", "warnings",
                *topic.flags, "-o", output, path]
    tool = COMPILERS.get(suffix, COMPILERS[".c"])[compiler]
    # The incumbent cannot read the DWARF 5 of this clang.
    return [tool, "-g" if compiler == "gcc" else "-gdwarf-4", f"-{level}", "-w", "-fno-omit-frame-pointer",
            "-fno-optimize-sibling-calls", "-D_GNU_SOURCE",
            "-I", HERE / "corpus", *topic.flags, "-o", output, path, "-ldl", "-lm"]


def binary(topic, build, directory):
    """Without a suffix: rustc names its temporary files after what is in front of one, and two
    builds at a time would share them."""
    return directory / f"{topic.path.name}-{build}".replace(".", "-")


def compile_one(topic, build, directory):
    """Returns the compiler's complaint; empty if all is well. Nothing is done twice: the command
    and the dates of the sources decide."""
    output = binary(topic, build, directory)
    argv = [str(word) for word in command(topic, build, output)]
    stamp = output.with_suffix(output.suffix + ".cmd")
    newest = max(p.stat().st_mtime for p in
                 [topic.path, HERE / "corpus/corpus.h", HERE / "corpus/corpus_asm.h"])
    if (output.exists() and stamp.exists() and stamp.read_text() == " ".join(argv)
            and output.stat().st_mtime > newest):
        return ""
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr or f"exited with {done.returncode}"
    stamp.write_text(" ".join(argv))
    return ""


def compile_all(jobs, directory):
    """JOBS are (topic, build). Returns the complaints by job."""
    directory.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        complaints = list(pool.map(lambda job: compile_one(*job, directory), jobs))
    return {(t.name, b): text for (t, b), text in zip(jobs, complaints) if text}
