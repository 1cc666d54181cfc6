# SPDX-License-Identifier: MIT
"""Hunt: coverage-guided fuzzing of all that reads what others wrote.

One trial is one target, a program of fuzz/ linked with libFuzzer and sanitizers. Seeds are made
by Muninn itself and by the tests' data; what was found to reach new code stays in
build/fuzz/corpus, so that the next run goes on from there. A crash, a leak, a hang, much memory
or a check that fails is a finding.
"""
import os
import re
import shutil
import struct
import subprocess
import time
from pathlib import Path

from hunting import ROOT, Found, Hunt, Skip

TARGETS = ("elf", "symbols", "suppressions", "reports", "foreign", "recording", "sql", "http",
           "intake")
FULL_S, SAMPLE_S = 1200, 60  # in the sample the number of inputs is the limit: a seed gives the same ones
SAMPLE_RUNS = 1000
INPUT_S = 60  # what one input may take, under sanitizers on a busy machine
MEMORY_MIB = 2560
LARGEST = {"elf": 4096, "symbols": 40000, "recording": 20000, "intake": 8192, "sql": 1500,
           "http": 3000}
TREE = ROOT / "build/fuzz"
# A crash elsewhere is one of a library: the reader of symbols has a process that contains it.
OURS = re.compile(r"(src|tests/hunt)/\S+\.c:\d+")


def fuzzer(target):
    return TREE / "tests/hunt/fuzz" / target


def prepare(options):
    if not shutil.which("clang"):
        raise Skip("clang is missing: install the Debian package clang")
    done = subprocess.run(["make", "-s", "-j2", "hunt-fuzz"], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        if "libclang_rt.fuzzer" in done.stdout:
            raise Skip("libFuzzer is missing: install the Debian package libclang-rt-14-dev")
        raise RuntimeError("the fuzzers cannot be built: " + done.stdout[-2000:])


# -------------------------------------------------------------------- seeds

PROGRAM = """#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) int a(int x) { return x * rand(); }
struct s { struct s *next; int v[4]; } global;
int counted;
int outer(int x) { int l[8]; l[x & 7] = a(x) + a(2); puts((char *)l); return l[0] + counted; }
int main(int c, char **v) { int *p = malloc(24); (void)v; if (p[c]) puts("x");
    void *q = malloc(100), *r = malloc(200); free(q); p = 0; r = 0;
    return outer(c) & 0 & (r == p); }
"""
FORMS = ("-g -gdwarf-5 -O1", "-g -gdwarf-4 -O2", "-g -gdwarf-2 -gno-strict-dwarf -O1",
         "-g -gz -O1", "-s -rdynamic")


def build_programs(trial):
    """The program in several forms; returns their paths."""
    trial.path("p.c").write_text(PROGRAM)
    built = []
    for number, flags in enumerate(FORMS):
        built.append(trial.path(f"p{number}"))
        trial.run(["gcc", *flags.split(), "-w", "-o", built[-1], trial.path("p.c")])
    return built


def make_recording(trial, name, *options):
    """A small recording, without compression so that bytes of it mean something."""
    maker = Path(trial.build) / "tests/make_recording"
    if not maker.exists():
        trial.run(["make", "-s", "-C", ROOT, f"OUT={trial.build}", maker])
    trial.run([maker, *options, trial.path(name + ".packed")])
    trial.run([fuzzer("recording"), "--plain", trial.path(name + ".packed"), trial.path(name)])
    return trial.path(name)


def run_tool(trial, *options):
    program = build_programs(trial)[0]
    trial.run([trial.muninn, f"--log-file={trial.path('log')}", *options, program])


def seeds_of_reports(trial, seeds):
    for option, name in (("json", "a.json"), ("json", "a.jsonl"), ("xml", "a.xml")):
        extra = ["--xml=yes"] if option == "xml" else []
        run_tool(trial, *extra, f"--{option}-file={seeds / name}", "--leak-check=full",
                 "--show-leak-kinds=all")


def seeds_of_foreign(trial, seeds):
    run_tool(trial, "--tool=massif", f"--massif-out-file={seeds / 'massif.out'}",
             f"--recording-file={trial.path('r')}", "--detailed-freq=1")
    for form in ("pprof", "heaptrack", "massif"):
        trial.run([trial.muninn, "heap", "export", f"--format={form}",
                   f"--output={seeds / form}", trial.path("r")])


def seeds_of_wire(_, seeds):
    """One record of each type, and a few together."""
    table = (ROOT / "src/wire/records.def").read_text()
    rows = re.findall(r"^RECORD\((\w+),\s*\w+,((?:\s*(?:U64|TEXT|WORDS)\(\w+\))+)", table, re.M)
    whole = b""
    for number, (name, fields) in enumerate(rows, start=2):
        words = b""
        for kind in re.findall(r"U64|TEXT|WORDS", fields):
            words += {"U64": struct.pack("<Q", 1), "TEXT": struct.pack("<Q8s", 4, b"text"),
                      "WORDS": struct.pack("<QQ", 1, 0x1000)}[kind]
        record = struct.pack("<BBBB", number, len(words) // 8 & 255, 0, 0) + words
        (seeds / name).write_bytes(b"\0" + record)
        whole += record if name in ("START", "MAP", "FINDING", "PART", "END") else b""
    (seeds / "some").write_bytes(b"\0" + whole)
    (seeds / "ring").write_bytes(b"\1" + bytes((0, 0, 0, 64, 0, 0, 0, 0)) + whole)


def seeds_of_sql(_, seeds):
    text = (ROOT / "src/inspect/http/queries.def").read_text()
    queries = ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', part))
               for part in re.split(r'^\{".*",$', text, flags=re.M)[1:]]
    for number, query in enumerate(queries):
        (seeds / f"q{number}").write_text(query.replace("\\n", "\n").replace('\\"', '"'))


def seeds_of_http(_, seeds):
    text = (ROOT / "src/inspect/http/call.c").read_text()
    common = "?file=0&from=10&to=900&metric=peak&function=f*&bottom_up=1&by=function&id=1&sort=x"
    headers = "\n127.0.0.1:8000\nhttp://127.0.0.1:8000\nsame-origin\n" + "7" * 64 + "\n\n"
    for path in re.findall(r'^\s+\{"(/api/[\w/]+)"', text, re.M):
        name = path.replace("/", "_")
        (seeds / name).write_text(path + common + headers)
        (seeds / (name + "1")).write_text(path + "?file=1" + headers)
    (seeds / "sql").write_text("/api/sql?file=0&q=SELECT+*+FROM+sites" + headers)


def seeds_of_suppressions(_, seeds):
    for file in (ROOT / "tests/suppress/files").iterdir():
        shutil.copy(file, seeds)


def seeds_of_programs(trial, seeds):
    for file in build_programs(trial):
        shutil.copy(file, seeds)


def seeds_of_recording(trial, seeds):
    for name, options in (("plain", ["--events=60", "--spaces", "--samples=2"]),
                          ("hostile", ["--events=40", "--hostile"]),
                          ("bare", ["--events=60", "--bare"]),
                          ("unclosed", ["--events=50", "--unclosed"])):
        shutil.copy(make_recording(trial, name, *options), seeds)


SEEDS = {"elf": seeds_of_programs, "symbols": seeds_of_programs, "reports": seeds_of_reports,
         "suppressions": seeds_of_suppressions, "foreign": seeds_of_foreign,
         "recording": seeds_of_recording, "sql": seeds_of_sql, "http": seeds_of_http,
         "intake": seeds_of_wire}


def surroundings(trial, target):
    """Files that a fuzzer asks about while it fuzzes the questions."""
    names = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:handle_abort=1",
             "TMPDIR": str(trial.folder)}
    if target in ("sql", "http"):
        names["FUZZ_RECORDING"] = str(make_recording(trial, "asked", "--events=60", "--spaces"))
    if target == "http":
        run_tool(trial, f"--json-file={trial.path('report.json')}")
        names["FUZZ_REPORT"] = str(trial.path("report.json"))
    return names


# ---------------------------------------------------------------------- trial

def is_contained(target, text):
    """Whether it happened in a library that parses debug info, which has a process of its own."""
    frames = re.findall(r"^\s+#\d+ 0x\S+ (.*)$", text, re.M)
    frames = [f for f in frames if "libclang_rt" not in f and "sanitizer" not in f
              and "asan_" not in f and "interceptor" not in f.lower()]
    return target == "symbols" and bool(frames) and not OURS.search(frames[0])


def judge(trial, target, environment, artifacts):
    """Runs each input that was kept once more; raises Found unless all are contained."""
    contained = 0
    for file in sorted(artifacts.iterdir()):
        status, out, err = trial.run([fuzzer(target), f"-timeout={INPUT_S}", file],
                                     environment=environment)
        text = (out + err).decode(errors="replace")
        if status != 0 and not is_contained(target, text):
            start = max(text.find("ERROR:"), 0)
            raise Found(f"{target}: {file.name}\n{text[start : start + 3000]}")
        contained += status != 0
    return contained


def trial(trial):
    target = TARGETS[trial.number % len(TARGETS)]
    seconds = trial.options.target_seconds or (FULL_S if trial.full else SAMPLE_S)
    seeds, artifacts = trial.path("seeds"), trial.path("artifacts")
    corpus = TREE / "corpus" / target if trial.full else trial.path("corpus")
    for folder in (seeds, artifacts, corpus):
        os.makedirs(folder, exist_ok=True)
    SEEDS[target](trial, seeds)
    environment = surroundings(trial, target)
    bounded = [] if trial.full or trial.options.target_seconds else [f"-runs={SAMPLE_RUNS}"]
    began = time.monotonic()
    many = ["-fork=1", "-ignore_crashes=1"] if target == "symbols" and trial.full else []
    status, out, err = trial.run(
        [fuzzer(target), f"-max_total_time={seconds:.0f}",
         f"-seed={trial.random.getrandbits(30) + 1}", f"-artifact_prefix={artifacts}/",
         f"-timeout={INPUT_S}", f"-rss_limit_mb={MEMORY_MIB}",
         f"-max_len={LARGEST.get(target, 8192)}", "-print_final_stats=1", *bounded, *many, corpus, seeds],
        timeout_s=seconds + 900, environment=environment)
    text = (out + err).decode(errors="replace")
    contained = judge(trial, target, environment, artifacts)
    if status != 0 and not contained:
        raise Found(f"{target}: the fuzzer ended with {status}: {text[-2000:]}")
    took = time.monotonic() - began
    runs = re.findall(r"number_of_executed_units:\s*(\d+)|^#(\d+)", text, re.M)
    count = next((a or b for a, b in reversed(runs)), "?")
    return f"{target}, {count} inputs in {took:.0f} s" + (f", {contained} contained" if contained
                                                             else "")


HUNT = Hunt("fuzz", "coverage-guided fuzzing of all that reads what others wrote", trial,
            full=len(TARGETS), sample=len(TARGETS), prepare=prepare, timeout_s=7200)
