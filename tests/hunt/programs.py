# SPDX-License-Identifier: MIT
"""Hunt: random programs, natively and in every stress mode.

Half of the programs are csmith's, half those of generator.py, of which it is known what memcheck
has to report. Output and status must be those of the native run, under each tool; memcheck's
findings must be the same in all stress modes, and those that the generator knows.
"""
import json
import shutil

import generator
from hunting import TOOLS, Found, Hunt, Skip, stress_modes

CSMITH_INCLUDE = "/usr/include/csmith"
NATIVE_S = 5  # csmith's programs may loop for ever: such ones are not taken
COMPILERS = ("gcc", "gcc", "clang")
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
CSMITH_OPTIONS = ("--float", "--bitfields", "--packed-struct", "--unions", "--inline-function",
                  "--longlong", "--math64", "--volatiles", "--jumps")


def compile_program(trial, text):
    random = trial.random
    compiler = random.choice([c for c in COMPILERS if shutil.which(c)])
    flags = [random.choice(LEVELS), "-g", "-w", "-fno-strict-aliasing"]
    if random.random() < 0.3:
        flags.append("-mavx2" if "avx2" in open("/proc/cpuinfo").read() else "-msse4.2")
    if random.random() < 0.2:
        flags += ["-fomit-frame-pointer", "-fno-pie", "-no-pie"]
    trial.path("program.c").write_text(text)
    status, _, err = trial.run([compiler, *flags, "-I", CSMITH_INCLUDE, "-o", trial.path("program"),
                                trial.path("program.c"), "-lpthread", "-lm"])
    if status != 0:
        raise Found("the hunt itself: the program does not compile: " + err.decode()[:500])


def make_csmith(trial):
    if not shutil.which("csmith"):
        raise Skip("csmith is missing: install the Debian packages csmith and libcsmith-dev")
    options = [o if trial.random.random() < 0.6 else o.replace("--", "--no-", 1)
               for o in CSMITH_OPTIONS]
    status, text, err = trial.run(["csmith", "--seed", trial.random.getrandbits(31), *options])
    if status != 0:
        raise Found("the hunt itself: csmith: " + err.decode()[:300])
    return text.decode(), None


def make_program(trial):
    """A program that ends by itself; returns what memcheck has to report, or None if unknown."""
    while True:
        if trial.number % 2 == 0:
            text, expected = make_csmith(trial)
        else:
            text, expected = generator.generate(trial.random)
        compile_program(trial, text)
        native = trial.run([trial.path("program")], timeout_s=NATIVE_S, may_time_out=True)
        if native is not None:
            return native, expected


def choose_runs(trial):
    """(tool, stress modes) of all runs. The plain ones are always there."""
    modes = stress_modes()
    runs = [(tool, "") for tool in TOOLS]
    if trial.full:
        runs += [(tool, mode) for tool in TOOLS for mode in (*modes, "all")]
    else:
        runs += [("memcheck", trial.random.choice(modes)), ("memcheck", "all"),
                 (trial.random.choice(TOOLS), trial.random.choice(modes))]
    if trial.full:
        runs += [("memcheck", ",".join(sorted(trial.random.sample(modes, 2)))) for _ in range(2)]
    return runs


def read_findings(file):
    """{(kind, lines of the stack in the program): count} from a JSON report. A system call that a
    signal reaches before it has begun is begun again, and its arguments are judged again: those are
    not counted."""
    found = {}
    for finding in json.loads(file.read_text())["findings"]:
        lines = tuple(f["line"] for f in finding["stack"] if f.get("file") == "program.c")
        key = (finding["kind"], lines)
        count = 0 if finding["kind"] == "syscall-param" else finding["count"]
        found[key] = found.get(key, 0) + count
    return found


def describe(findings):
    return "; ".join(f"{kind} at {'<'.join(map(str, lines))} x{count}"
                     for (kind, lines), count in sorted(findings.items())) or "nothing"


def run_once(trial, tool, mode, native):
    report = trial.path(f"report.{mode or 'plain'}.json")
    options = [f"--tool={tool}", f"--log-file={trial.path('log')}"]
    options += [f"--stress={mode}"] if mode else []
    if tool == "memcheck":
        options += [f"--json-file={report}", "--error-limit=no", "--leak-check=no"]
    elif tool == "massif":
        options += [f"--massif-out-file={trial.path('massif.out')}", "--recording=no"]
    got = trial.run([trial.muninn, *options, trial.path("program")])
    for what, want, is_now in zip(("status", "output", "standard error"), native, got):
        if want != is_now:
            raise Found(f"--tool={tool} --stress={mode or 'none'}: {what} is {repr(is_now)[:300]}, "
                        f"natively {repr(want)[:300]}")
    return read_findings(report) if tool == "memcheck" else None


def compare_truth(findings, expected):
    told = {(kind, lines[0]) for kind, lines in findings if lines}
    def lines(some):
        return "; ".join(f"{kind} at {line}" for kind, line in sorted(some))

    if missing := expected - told:
        raise Found("memcheck does not report " + lines(missing))
    if others := told - expected:
        raise Found("memcheck reports what is defined: " + lines(others))


def trial(trial):
    native, expected = make_program(trial)
    plain = None
    for tool, mode in choose_runs(trial):
        findings = run_once(trial, tool, mode, native)
        if tool != "memcheck":
            continue
        if not mode:
            plain = findings
            if expected is not None:
                compare_truth(findings, expected)
        elif findings != plain:
            ours = {k: n for k, n in findings.items() if plain.get(k) != n}
            theirs = {k: n for k, n in plain.items() if findings.get(k) != n}
            raise Found(f"memcheck --stress={mode} reports {describe(ours)}; "
                        f"without it {describe(theirs)}")
    return f"{'own' if expected is not None else 'csmith'}, {len(plain)} findings"


HUNT = Hunt("programs", "random programs in every stress mode", trial, full=1000, sample=6,
            timeout_s=7200)
