# SPDX-License-Identifier: MIT
"""What the tests of the launcher share: a copy of it stands beside fake_engine.c, which says what it
was started with."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from suite import Skip, test  # noqa: F401: for those who import this file

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
MUNINN = Path(os.environ.get("MUNINN") or BUILD / "muninn").resolve()
WORK = Path(tempfile.mkdtemp(prefix="muninn-launch-"))
BIN = WORK / "bin"
PLAIN_ENV = {"PATH": "/usr/bin:/bin", "HOME": "/"}
# The launcher becomes the engine or exits: it has no reason to free anything.
ASAN_ENV = {"ASAN_OPTIONS": "detect_leaks=0"}


def set_up():
    BIN.mkdir()
    shutil.copy(MUNINN, BIN / "muninn")
    subprocess.run(["gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-O1", "-D_GNU_SOURCE",
                    f"-I{ROOT}/src", "-o", BIN / "muninn-engine", ROOT / "tests/launch/fake_engine.c",
                    *(ROOT / f"src/launch/{name}.c" for name in
                      ("options", "option_table", "option_values", "option_paths", "suggest",
                       "environment"))], check=True)


def run(*args, env=None, launcher=None, **kwargs):
    return subprocess.run([launcher or BIN / "muninn", *args], env=PLAIN_ENV | (env or {}),
                          capture_output=True, timeout=300, **kwargs)


class Started:
    """What the fake engine said: lists by key."""

    def __init__(self, done):
        assert done.returncode == 0, f"exit {done.returncode}: {done.stderr.decode()}"
        words = done.stdout.decode("utf-8", "surrogateescape").split("\0")
        self.values = {}
        for key, value in zip(words[::2], words[1::2]):
            self.values.setdefault(key, []).append(value)
        assert "parse_error" not in self.values, self.values["parse_error"]

    def __getitem__(self, key):
        return self.values.get(key, [])

    def one(self, key):
        values = self[key]
        return values[0] if len(values) == 1 else values or None


def start(*args, **kwargs):
    return Started(run(*args, **kwargs))


def equal(got, wanted):
    assert got == wanted, f"got {got!r}, wanted {wanted!r}"


def refused(done, status, *parts):
    """One clear line and this exit status."""
    text = done.stderr.decode()
    equal(done.returncode, status)
    assert text.startswith("muninn: ") and text.count("\n") == 1 and text.endswith("\n"), text
    for part in parts:
        assert part in text, f"{part!r} is not in {text!r}"
    equal(done.stdout, b"")


def script(name, text, mode=0o755):
    path = WORK / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return str(path)


def sanitized_launcher():
    """A launcher built with the address and undefined-behaviour sanitizers."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    subprocess.run(["make", "-s", "-C", ROOT, "MODE=asan", "build/asan/muninn"], check=True, env=env,
                   stdout=subprocess.DEVNULL)
    directory = WORK / "asan"
    if directory.exists():
        return directory / "muninn"
    directory.mkdir()
    shutil.copy(ROOT / "build/asan/muninn", directory / "muninn")
    shutil.copy("/bin/true", directory / "muninn-engine")
    return directory / "muninn"
