# SPDX-License-Identifier: MIT
"""What the tests of reports share: the driver, what it makes of a script, and golden texts."""

import difflib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts import ALLOCATED, FREED, HELPER, MAIN, Script, WAS_ALLOCATED, every_kind, leaks
from suite import Skip

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
WORK = Path(tempfile.mkdtemp(prefix="muninn-report."))
DRIVER = WORK / "driver"
SANE_DRIVER = WORK / "driver-sane"
CFLAGS = ["-std=gnu17", "-Wall", "-Wextra", "-Wshadow", "-g", "-D_GNU_SOURCE", "-DMUNINN_DEBUG=0",
          '-DMUNINN_VERSION="0.1.0"', "-I" + str(ROOT / "src")]
UPDATE = "--update" in sys.argv


def build():
    # A library that was built with sanitizers wants a program that is.
    sanitizers = ["-fsanitize=address,undefined"] if BUILD.name == "asan" else []
    subprocess.run(["gcc", *CFLAGS, *sanitizers, "-o", DRIVER, HERE / "driver.c",
                    BUILD / "libmonitor.a"], check=True)


def build_sane():
    """The driver with sanitizers, for hostile input."""
    if SANE_DRIVER.exists():
        return
    sources = [*(ROOT / "src/monitor/report").glob("*.c"), *(ROOT / "src/wire").glob("findings*.c"),
               *(ROOT / "src/base").glob("*.c"),
               *(ROOT / "src/launch").glob("option*.c"), ROOT / "src/launch/suggest.c"]
    subprocess.run(["gcc", *CFLAGS, "-O1", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=all", "-o", SANE_DRIVER, HERE / "driver.c", *sources],
                   check=True)


def drive(script, *options, driver=None, environment=None, **more):
    """Runs the driver. Returns the completed process: text in .stderr, verdicts in .stdout."""
    env = {**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})}
    data = script if isinstance(script, bytes) else script.bytes()
    done = subprocess.run([driver or DRIVER, *map(str, options)], input=data, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, **more)
    assert done.returncode in (0, -9), f"driver ended with {done.returncode}: {done.stderr[-2000:]}"
    return done


def text_of(script, *options, **more):
    return drive(script, *options, **more).stderr.decode(errors="surrogateescape")


def xml_of(script, *options):
    path = WORK / "out.xml"
    drive(script, "--xml=yes", f"--xml-file={path}", *options)
    return path.read_bytes()


def json_of(script, *options, **more):
    path = WORK / "out.json"
    drive(script, f"--json-file={path}", *options, **more)
    return json.loads(path.read_bytes())


def sarif_of(script, *options, **more):
    path = WORK / "out.sarif"
    drive(script, f"--sarif-file={path}", *options, **more)
    return json.loads(path.read_bytes())


def golden(name, got):
    path = HERE / "golden" / name
    if UPDATE:
        path.write_text(got)
    wanted = path.read_text()
    if got != wanted:
        print("".join(difflib.unified_diff(wanted.splitlines(True), got.splitlines(True), name,
                                           "got")))
        raise AssertionError(f"differs from golden/{name}")


def whole_run(**more):
    return leaks(every_kind(Script(**more)).add("ended")).close(28, 26)


def small_run(count=3):
    script = Script().finding("invalid-read", (4,), (HELPER, MAIN), [ALLOCATED], count=count)
    return script.finding("invalid-write", (1,), (MAIN,), [FREED, WAS_ALLOCATED])


def validator():
    try:
        import jsonschema
    except ImportError:
        raise Skip("no python3-jsonschema") from None
    schema = json.loads((ROOT / "docs/schema/report.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


HOSTILE = ["<script>alert(1)</script>", "a]]>b", "a&b;\"c'd", "\x1b[31mred\x1b[0m", "x\ny\r\tz",
           b"\xff\xfe\xc0\x80", b"\xed\xa0\x80", "\u202eevil", "\x01\x7f\x9b", "n" * 10000, "",
           "\ufffe\uffff", "%s%n%d", "\\", "-", "==1== ERROR SUMMARY: 0 errors", "\U0001f600"]


def hostile_run(name):
    frame = (0x10, name, name, name, name, 3)
    entry = b"{\n   <n>\n   Memcheck:Addr4\n   fun:" + (
        name if isinstance(name, bytes) else name.encode()).replace(b"\n", b"") + b"\n}\n"
    script = Script(args=[name, name], options=[name])
    script.finding("invalid-read", (4,), (frame, frame), tid=2, name=name, suppression=entry,
                   parts=[("address-file", name, (1, 5), (frame,)),
                          ("declared", name, (3, 1, 1), (), (name, name, 3))])
    script.finding("syscall-param", (1, 1), (frame,), text=name, param=name or None)
    script.finding("fd-not-closed", (3,), (frame,), text=name, fd=(3, name))
    script.add("line", name).add("note", name).add("client", 1, name)
    script.add("use", 1, name, name, 3, 0, 0)
    return script.add("thread", 2, name).close(3, 3)
