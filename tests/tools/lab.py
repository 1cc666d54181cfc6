# SPDX-License-Identifier: MIT
"""What the tests of loaded tools share: an installed header, programs, tools built outside of the tree,
runs."""
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
MUNINN = os.environ.get("MUNINN", os.path.join(BUILD, "muninn"))
WORK = tempfile.mkdtemp(prefix="muninn-tools-")
PREFIX = os.path.join(WORK, "prefix")
PATIENCE = 600  # seconds; the machine may be busy
STRESSES = ("signals", "tiny-blocks", "tiny-cache", "no-link")


def sh(*argv, **options):
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=True,
                          **options).stdout


def make(*words):
    mode = [] if os.path.basename(BUILD) == "build" else [f"MODE={os.path.basename(BUILD)}"]
    sh("make", "-s", "-C", ROOT, *mode, *words)


def set_up():
    """Builds the examples and installs what there is into a prefix of its own."""
    make("examples")
    make("install", "PREBUILT=yes", f"PREFIX={PREFIX}")


def example(name):
    return os.path.join(PREFIX, "lib", "muninn", "tools", name + ".so")


def header_flags():
    env = {**os.environ, "PKG_CONFIG_PATH": f"{PREFIX}/lib/pkgconfig"}
    return sh("pkg-config", "--cflags", "muninn-tool", env=env).split()


building = threading.Lock()  # tests run in parallel


def plugin(name):
    """A tool of this suite, built where the tree is not, with the installed header alone."""
    out = os.path.join(WORK, name.split(".")[0] + ".so")
    with building:
        if not os.path.exists(out):
            compiler = ["g++", "-std=c++17"] if name.endswith(".cpp") else ["gcc"]
            sh(*compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-shared",
               "-fPIC", "-pthread", "-o", out, os.path.join(HERE, "plugins", name), *header_flags(),
               cwd=WORK)
    return out


def program(name, *flags):
    """A program of this suite; with other flags it is another one."""
    out = os.path.join(WORK, re.sub(r"\W", "_", name + "".join(flags)))
    with building:
        if not os.path.exists(out):
            compiler = "g++" if name.endswith(".cpp") else "gcc"
            sh(compiler, "-o", out, os.path.join(HERE, "programs", name), "-I", f"{ROOT}/include",
               *flags)
    return out


def small():
    return program("small.S", "-nostdlib", "-static", "-no-pie", "-Wl,-z,noseparate-code")


class Done:
    """How a run went."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def lines(self, tool):
        """What the tool has said."""
        return re.findall(rf"^{tool}: (.*)$", self.err, re.M)


def run(tool, *words, stdin="", cwd=WORK):
    done = subprocess.run([MUNINN, f"--tool={tool}", *words], input=stdin, capture_output=True,
                          text=True, timeout=PATIENCE, check=False, cwd=cwd)
    return Done(done.returncode, done.stdout, done.stderr)


def symbols(path):
    """name -> address."""
    return {line.split()[2]: int(line.split()[0], 16) for line in sh("nm", path).splitlines()
            if len(line.split()) == 3}


def stepped(path):
    """address -> how often it was executed, natively."""
    stepper = os.path.join(WORK, "stepper")
    with building:
        if not os.path.exists(stepper):
            sh("gcc", "-O2", "-o", stepper, os.path.join(HERE, "stepper.c"))
    pairs = (line.split() for line in sh(stepper, path).splitlines())
    return Counter({int(pc, 16): int(count) for pc, count in pairs})


def mnemonics(path):
    """address -> mnemonic, as objdump has them."""
    found = re.findall(r"^\s*([0-9a-f]+):\s+(\w+)", sh(
        "objdump", "-d", "-M", "intel", "--no-show-raw-insn", path), re.M)
    return {int(pc, 16): name for pc, name in found}
