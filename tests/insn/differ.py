# SPDX-License-Identifier: MIT
"""Runs a case file natively and under the engine and explains every difference.

Shared by tests/insn/run and tests/random/run. The environment:
  MUNINN        the engine (an absolute path; default: BUILD/muninn)
  BUILD         the build directory (default: build, beside tests)
  INSN_ENGINE   a whole command to use instead of `MUNINN --tool=none`; `native` is allowed
  INSN_XMASK    limits the compared xsave components, for engines that lack some
  INSN_TIMEOUT  seconds allowed to one run (default 600)
"""
import os
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
TIMEOUT_S = float(os.environ.get("INSN_TIMEOUT", "600"))
CRASHES_MAX = 20  # after so many deaths of the engine the rest of a file is not worth the time
EXPLAIN_MAX = 30  # differences shown in full

CFLAGS = ("-std=gnu17 -Wall -Wextra -Wshadow -Wundef -Wvla -Wstrict-prototypes -Werror -O2 -I"
          + os.path.join(ROOT, "src") + " -I" + HERE).split()
# The guest has no libc and touches no vector register; it lives at a fixed low address.
GUEST_FLAGS = ("-mgeneral-regs-only -mno-red-zone -fno-pic -fno-pie -ffreestanding "
               "-fno-stack-protector -fno-tree-loop-distribute-patterns -fcf-protection=none "
               "-no-pie -static -nostdlib").split()


class Counter:
    """The lines of a test run and their sum."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def ok(self, name):
        self.passed += 1
        print("ok - " + name, flush=True)

    def not_ok(self, name, why):
        self.failed += 1
        print("not ok - %s: %s" % (name, why), flush=True)

    def skip(self, name, why):
        self.skipped += 1
        print("skip - %s: %s" % (name, why), flush=True)

    def finish(self):
        print("%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped))
        sys.exit(1 if self.failed else 0)


def compile_program(out, sources, flags=(), libs=()):
    """Compiles `sources` (absolute or in tests/insn) to BUILD/`out` unless it is up to date."""
    target = os.path.join(BUILD, out)
    paths = [os.path.join(HERE, s) for s in sources]
    folders = {os.path.dirname(p) for p in paths} | {HERE}
    inputs = paths + [os.path.join(d, f) for d in folders for f in os.listdir(d)
                      if f.endswith((".h", ".def"))] + [os.path.abspath(__file__)]
    newest = max(os.path.getmtime(p) for p in inputs)
    if not os.path.exists(target) or os.path.getmtime(target) < newest:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        subprocess.run([os.environ.get("CC", "gcc"), *CFLAGS, *flags, "-o", target, *paths, *libs],
                       check=True)
    return target


def compile_guest():
    return compile_program("tests/insn/guest", ["guest.c", "guest_x64.S"], GUEST_FLAGS)


def compile_show():
    return compile_program("tests/insn/show", ["show.c", "forms.c"], libs=["-lZydis"])


def engine_command(*stress, tool="none"):
    """The engine as a list of arguments, or None if there is none."""
    custom = os.environ.get("INSN_ENGINE")
    if custom:
        return [] if custom == "native" else shlex.split(custom)
    muninn = os.environ.get("MUNINN", os.path.join(BUILD, "muninn"))
    if not os.access(muninn, os.X_OK):
        return None
    return [muninn, "--tool=" + tool] + ["--stress=" + s for s in stress]


def outcome_id(line):
    """The case (or first case of a group) a line is about; None if it is about none."""
    head = line.split(" ", 1)[0].split("..")[0]
    return int(head) if head.isdigit() else None


class Differ:
    """One case file, run with one set of guest options."""

    def __init__(self, cases, options=(), stress=(), tool="none"):
        self.guest = compile_guest()
        self.show = compile_show()
        self.cases = cases
        self.options = list(options)
        if os.environ.get("INSN_XMASK"):
            self.options.append("xmask=" + os.environ["INSN_XMASK"])
        self.engine = engine_command(*stress, tool=tool)

    def run(self, native, *extra, timeout_s=TIMEOUT_S):
        """Returns (lines, how it ended); the latter is "" after a clean exit."""
        command = ([] if native else self.engine) + [self.guest, self.cases, *self.options, *extra]
        try:
            p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, timeout=timeout_s, check=False)
            out, err, status = p.stdout, p.stderr, p.returncode
        except subprocess.TimeoutExpired as e:
            out, err, status = e.stdout or b"", e.stderr or b"", "no end after %g s" % timeout_s
        text = out.decode("latin-1")
        lines = text[:text.rfind("\n") + 1].splitlines()  # a line cut off by a death is no outcome
        if status == 0:
            return lines, ""
        last_words = err.decode("latin-1").strip().splitlines()[-3:]
        last_words += [l for l in lines[-1:] if l.startswith("guest:")]
        how = status if isinstance(status, str) else (
            "killed by signal %d" % -status if status < 0 else "exit status %d" % status)
        return lines, "; ".join([how] + last_words)

    def outcomes(self, native, *extra, first=0):
        """{id: line}. Where the engine dies, the line says so and the rest is still run."""
        found = {}
        start = first
        for _ in range(CRASHES_MAX):
            lines, how = self.run(native, *extra, "from=%d" % start)
            found.update((i, l) for l in lines if (i := outcome_id(l)) is not None)
            if not how:
                return found
            # Lines in the guest's buffer are lost with it: find the case with flushing on.
            resume_at = max((i for i in found), default=start - 1) + 1
            lines, how = self.run(native, *extra, "flush", "from=%d" % max(resume_at, start))
            found.update((i, l) for l in lines if (i := outcome_id(l)) is not None)
            if not how:
                return found
            culprit = max(max((i for i in found), default=-1) + 1, start)
            found[culprit] = "%d engine died: %s" % (culprit, how)
            start = culprit + 1
        found[start] = "%d not run: the engine died %d times before" % (start, CRASHES_MAX)
        return found

    def compare(self, *extra, first=0):
        """Returns (native outcomes, ids that differ, engine outcomes)."""
        native = self.outcomes(True, *extra, first=first)
        other = self.outcomes(False, *extra, first=first)
        differ = sorted(i for i in set(native) | set(other) if native.get(i) != other.get(i))
        return native, differ, other

    def dump(self, native, case_id):
        span = ("dump", "from=%d" % case_id, "to=%d" % case_id)
        return self.run(native, *span, timeout_s=20)

    def explain(self, case_id, seen=""):
        """Prints the case and what differs in it."""
        shown = subprocess.run([self.show, self.cases, str(case_id)], stdout=subprocess.PIPE,
                               check=False).stdout.decode()
        want, _ = self.dump(True, case_id)
        got, how = self.dump(False, case_id)
        text = shown.splitlines()
        if not any(outcome_id(l) == case_id for l in got):
            want = [l for l in want if outcome_id(l) == case_id]  # there is nothing to compare with
        want_set, got_set = set(want), set(got)
        text += ["  native: " + l.strip() for l in want if l not in got_set]
        text += ["  engine: " + l.strip() for l in got if l not in want_set]
        if how:
            text.append("  engine: " + how)
        if want == got:
            text.append("  the difference is gone when the case is run by itself" +
                        ("; seen: " + seen if seen else ""))
        print("".join("#   %s\n" % l for l in text), end="", flush=True)
