# SPDX-License-Identifier: MIT
"""Differential acceptance tests: a guest program must behave the same natively and under muninn.

A suite is a folder of small programs. Each is built once, run natively and run under the engine;
its standard output, standard error and wait status (the core-dump flag included) must be equal
byte for byte. What a program needs is said in `// KEY: value` comments at the top of its source:

    // BUILD: -O2 -static        compiler flags; several lines, each with a [tag], give variants
    // BUILD[pie]: -fPIE -pie
    // CC: musl-gcc              another compiler; the test is skipped where it is missing
    // LIB: name flags           also builds lib/name.c as name.so into the same folder
    // RUN: args                 arguments; several lines with tags give variants
    // RUN[ud2]: ud2 => SIGILL   what the native run must end in, when it is not exit status 0
    // MUNINN: --option          options for muninn; several lines give one run each
    // STRESS: tiny-blocks       one more run with --stress=<value>; several lines allowed
    // ENV: NAME=value           one more environment variable ($GUEST_DIR is expanded)
    // LIMIT: nofile=16          resource limits, as prlimit(1) names them
    // STDERR: any               standard error is not compared
    // CPU: avx512f              skipped unless /proc/cpuinfo has the flag
    // TIMEOUT: 300              seconds for each run, 120 when not said; three times that in stress

The native run is itself checked: it must end as promised and never print a line that starts with
"FAIL", so a test whose premise is broken on this machine does not pass by being equally wrong.
"""

import argparse
import concurrent.futures
import os
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import default_signals

LIB_DIR = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(LIB_DIR))
WARNINGS = "-Wall -Wextra -Wshadow -Wundef -Wvla -Werror"
BASE_FLAGS = {
    ".c": f"-std=gnu17 -D_GNU_SOURCE -O1 -g {WARNINGS} -Wstrict-prototypes",
    ".cc": f"-std=gnu++17 -O1 -g {WARNINGS}",
    ".S": "-g",
}
COMPILERS = {".c": "gcc", ".cc": "g++", ".S": "gcc"}
DIRECTIVE = re.compile(r"^(?://|#|/\*|\*)\s*([A-Z]+)(?:\[([\w.+-]+)\])?:[ \t]*(.*?)\s*(?:\*/)?$")
KEYS = {"BUILD", "CC", "LIB", "RUN", "MUNINN", "STRESS", "ENV", "LIMIT", "CPU", "STDERR", "TIMEOUT"}
DEFAULT_TIMEOUT_S = 120  # only what hangs takes that long, on whatever machine
STRESS_PATIENCE = 3  # stress modes are slow by design
# Just above the least the kernel accepts: the core-dump flag is then true and the file stays tiny.
CORE_LIMIT_BYTES = 8192
JOBS = 2


class Skip(Exception):
    """The machine lacks what the test needs."""


class Problem(Exception):
    """The test failed; the text says how."""


class Program:
    """One source file and what its directives ask for."""

    def __init__(self, path):
        self.path = path
        self.stem, self.ext = os.path.splitext(os.path.basename(path))
        self.directives = {}
        with open(path, encoding="utf-8") as source:
            for line in list(source)[:40]:
                match = DIRECTIVE.match(line.strip())
                if match and match[1] in KEYS:
                    self.directives.setdefault(match[1], []).append((match[2] or "", match[3]))

    def values(self, key):
        return [value for _, value in self.directives.get(key, [])]

    def one(self, key, default=None):
        return (self.values(key) or [default])[0]

    def variants(self, key):
        return self.directives.get(key) or [("", "")]


class Test:
    """One build of a program with one list of arguments."""

    def __init__(self, program, build, run):
        build_tag, self.flags = build
        run_tag, command = run
        args, _, self.expected = command.partition("=>")
        self.args = shlex.split(args)
        self.expected = self.expected.strip() or "exit 0"
        self.program = program
        self.binary_name = ".".join(filter(None, [program.stem, build_tag]))
        self.name = ".".join(filter(None, [self.binary_name, run_tag]))


class Outcome:
    """What the world can see of a finished run."""

    def __init__(self, status, stdout, stderr):
        self.status, self.stdout, self.stderr = status, stdout, stderr


def load_tests(suite_dir):
    tests = []
    for name in sorted(os.listdir(suite_dir)):
        if os.path.splitext(name)[1] in BASE_FLAGS:
            program = Program(os.path.join(suite_dir, name))
            tests += [Test(program, build, run) for build in program.variants("BUILD")
                      for run in program.variants("RUN")]
    return tests


class Builder:
    """Compiles into one folder, again only when a source is newer than its product."""

    def __init__(self, suite_dir, out_dir):
        self.suite_dir, self.out_dir = suite_dir, out_dir
        self.locks, self.guard = {}, threading.Lock()
        os.makedirs(out_dir, exist_ok=True)
        self.shared = [os.path.join(LIB_DIR, name) for name in os.listdir(LIB_DIR)
                       if name.endswith(".h") or name == "difftest.py"]

    def build(self, test):
        program = test.program
        compiler = program.one("CC", COMPILERS[program.ext])
        if not shutil.which(compiler):
            raise Skip(f"no {compiler}")
        for lib in program.values("LIB"):
            name, *flags = shlex.split(lib)
            source = os.path.join(self.suite_dir, "lib", name + ".c")
            self.compile("gcc", source, name + ".so", ["-shared", "-fPIC", *flags])
        return self.compile(compiler, program.path, test.binary_name, shlex.split(test.flags))

    def compile(self, compiler, source, product, flags):
        out = os.path.join(self.out_dir, product)
        with self.guard:
            lock = self.locks.setdefault(out, threading.Lock())
        with lock:
            if not self.is_fresh(out, source):
                self.run_compiler(compiler, source, out, flags)
        return out

    def is_fresh(self, out, source):
        if not os.path.exists(out):
            return False
        made = os.path.getmtime(out)
        return all(os.path.getmtime(path) <= made for path in [source, *self.shared])

    def run_compiler(self, compiler, source, out, flags):
        base = shlex.split(BASE_FLAGS[os.path.splitext(source)[1]])
        libs = [flag for flag in flags if flag.startswith(("-l", "-Wl,--no-as-needed"))]
        rest = [flag.replace("$OUT", self.out_dir) for flag in flags if flag not in libs]
        command = [compiler, *base, "-I", LIB_DIR, *rest, "-o", out + ".tmp", source, *libs]
        result = subprocess.run(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            lines = result.stderr.decode(errors="replace").splitlines()
            raise Problem("\n".join(["does not compile: " + shlex.join(command), *lines[:12]]))
        os.rename(out + ".tmp", out)


def describe_status(status):
    if os.WIFEXITED(status):
        return f"exit {os.WEXITSTATUS(status)}"
    return signal_name(os.WTERMSIG(status)) + (" core" if os.WCOREDUMP(status) else "")


def signal_name(number):
    """Python names no signals that libc keeps for itself, and of the real-time ones only the ends."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def wait_for(process, timeout_s):
    """The raw wait status, or None when the time ran out. Popen itself would drop the core flag."""
    poller = select.poll()
    pidfd = os.pidfd_open(process.pid)
    try:
        poller.register(pidfd, select.POLLIN)
        in_time = poller.poll(timeout_s * 1000)
        if not in_time:
            os.killpg(process.pid, signal.SIGKILL)
        status = os.waitpid(process.pid, 0)[1]
    finally:
        os.close(pidfd)
    process.returncode = status
    return status if in_time else None


def execute(command, env, timeout_s):
    work_dir = tempfile.mkdtemp(prefix="difftest")
    try:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, env=env, cwd=work_dir, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True)
            status = wait_for(process, timeout_s)
            out.seek(0)
            err.seek(0)
            outcome = Outcome("", out.read(), err.read())
    finally:
        shutil.rmtree(work_dir, ignore_errors=True)
    outcome.status = f"time-out ({timeout_s:g} s)" if status is None else describe_status(status)
    return outcome


def shorten(line):
    text = line.decode(errors="backslashreplace") if line is not None else "<end>"
    return repr(text if len(text) <= 160 else text[:157] + "...")


def first_difference(label, expected, actual):
    left, right = expected.split(b"\n"), actual.split(b"\n")
    for i in range(max(len(left), len(right))):
        a = left[i] if i < len(left) else None
        b = right[i] if i < len(right) else None
        if a != b:
            return f"{label} line {i + 1}: native {shorten(a)}, muninn {shorten(b)}"
    return None


def compare(native, other, with_stderr):
    difference = first_difference("stdout", native.stdout, other.stdout)
    if native.status != other.status:
        tail = other.stderr.strip().split(b"\n")[-1]
        note = f" (stderr ends {shorten(tail)})" if tail and not difference else ""
        difference = f"ended in {other.status}, native in {native.status}" \
            + (f"; {difference}" if difference else note)
    if with_stderr:
        # What killed the program is told there.
        said = re.sub(rb"(?m)^==\d+== .*\n", b"", other.stderr)
        difference = difference or first_difference("stderr", native.stderr, said)
    if difference:
        raise Problem(difference)


def check_native(test, native):
    if native.status != test.expected:
        tail = native.stderr.strip().split(b"\n")[-1]
        raise Problem(f"native run ended in {native.status}, not {test.expected}: {shorten(tail)}")
    for line in native.stdout.split(b"\n"):
        if line.startswith(b"FAIL"):
            raise Problem(f"native run: {shorten(line)}")


class Runner:
    """Runs tests and keeps the score."""

    def __init__(self, options, builder, out_dir):
        self.options, self.builder, self.out_dir = options, builder, out_dir
        self.score = {"ok": 0, "not ok": 0, "skip": 0}
        self.print_lock = threading.Lock()
        with open("/proc/cpuinfo", encoding="ascii") as info:
            self.cpu = set(re.search(r"^flags\s*:(.*)$", info.read(), re.M)[1].split())

    def environment(self, program):
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/", "LC_ALL": "C",
               "GUEST_DIR": self.out_dir}
        for pair in program.values("ENV"):
            name, _, value = pair.partition("=")
            env[name] = value.replace("$GUEST_DIR", self.out_dir)
        return env

    def engine_runs(self, program):
        """The ways to run the program that must equal the native one: (label, command prefix)."""
        if self.options.native:
            return [("", [])] * self.options.repeat
        engine = shlex.split(self.options.engine or "") or [self.options.muninn, "--tool=none"]
        if self.options.engine:
            return [("", engine)] * self.options.repeat
        forced = [f"--stress={self.options.stress}"] if self.options.stress else []
        plain = program.values("MUNINN") or [""]
        runs = [(line, engine + forced + shlex.split(line)) for line in plain]
        for stress in program.values("STRESS") if not forced else []:
            option = f"--stress={stress}"
            runs.append((option, engine + shlex.split(plain[-1]) + [option]))
        return runs * self.options.repeat

    def run(self, test):
        program = test.program
        if program.one("CPU") and not set(program.one("CPU").split()) <= self.cpu:
            raise Skip(f"the CPU has no {program.one('CPU')}")
        command = [self.builder.build(test), *test.args]
        limits = [f"--{limit}" for line in program.values("LIMIT") for limit in line.split()]
        prefix = ["prlimit", *limits, "--"] if limits else []
        if prefix and subprocess.run(prefix + ["true"], stderr=subprocess.DEVNULL).returncode != 0:
            raise Skip(f"may not set {' '.join(limits)}")
        timeout_s = float(program.one("TIMEOUT", DEFAULT_TIMEOUT_S)) * self.options.patience
        env = self.environment(program)

        native = execute(prefix + command, env, timeout_s)
        check_native(test, native)
        for label, engine in self.engine_runs(program):
            try:
                patience = STRESS_PATIENCE if "--stress" in " ".join(engine) else 1
                outcome = execute(prefix + engine + command, env, timeout_s * patience)
                compare(native, outcome, program.one("STDERR") != "any")
            except Problem as problem:
                raise Problem(f"[{label}] {problem}" if label else str(problem)) from None

    def run_and_report(self, test):
        try:
            self.run(test)
            verdict, note = "ok", ""
        except Skip as reason:
            verdict, note = "skip", f": {reason}"
        except Problem as problem:
            verdict, note = "not ok", f": {problem}"
        with self.print_lock:
            self.score[verdict] += 1
            print(f"{verdict} - {test.name}{note}", flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description="native against muninn, byte for byte")
    parser.add_argument("-k", default="", metavar="PATTERN", help="only tests whose name matches")
    parser.add_argument("--list", action="store_true", help="print the names of the tests")
    parser.add_argument("--native", action="store_true", help="compare native with native")
    parser.add_argument("--engine", help="another engine, such as 'valgrind --tool=none -q'")
    parser.add_argument("--stress", help="run every test under these stress modes instead")
    parser.add_argument("--repeat", type=int, default=1, help="engine runs for each test")
    parser.add_argument("--patience", type=float, default=1, help="multiplies every time-out")
    parser.add_argument("--jobs", type=int, default=JOBS)
    return parser.parse_args()


def main(suite_dir):
    default_signals.restore()
    options = parse_options()
    tests = [test for test in load_tests(suite_dir) if re.search(options.k, test.name)]
    if options.list:
        print("\n".join(test.name for test in tests))
        return 0

    build_dir = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
    options.muninn = os.environ.get("MUNINN", os.path.join(build_dir, "muninn"))
    if not options.native and not options.engine and not os.access(options.muninn, os.X_OK):
        sys.exit(f"difftest: no engine at {options.muninn}: build it, set MUNINN, or use --native")

    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == resource.RLIM_INFINITY or hard >= CORE_LIMIT_BYTES:
        resource.setrlimit(resource.RLIMIT_CORE, (CORE_LIMIT_BYTES, hard))
    out_dir = os.path.join(build_dir, "tests", "guest", os.path.basename(suite_dir))
    runner = Runner(options, Builder(suite_dir, out_dir), out_dir)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(runner.run_and_report, test) for test in tests]:
            done.result()
    score = runner.score
    print(f"{score['ok']} passed, {score['not ok']} failed, {score['skip']} skipped")
    return 1 if score["not ok"] or not tests else 0
