# SPDX-License-Identifier: MIT
"""Names that want to do harm, and findings made at random."""

import json
import random
import re

import findings_table
import qt_reader
import sarif_check
from driving import HOSTILE, SANE_DRIVER, WORK, build_sane, drive, hostile_run, validator
from output_tests import bare
from scripts import Script
from suite import test


@test
def hostile_names_are_harmless_everywhere():
    build_sane()
    check = validator()
    for name in HOSTILE:
        script = hostile_run(name)
        xml, js, sarif = WORK / "h.xml", WORK / "h.json", WORK / "h.sarif"
        for terminal in (False, True):
            options = [f"--json-file={js}", f"--sarif-file={sarif}", "-s", "--gen-suppressions=all"]
            done = drive(script, *options, *(["--color=yes"] if terminal else []),
                         driver=SANE_DRIVER)
            text = bare(done.stderr.decode(errors="replace")) if terminal else done.stderr.decode(
                errors="surrogateescape")
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text), (name, text)
            for line in text.split("\n"):
                assert re.match(r"==123==|--123--|\*\*123\*\*|[{} ]|$", line), (name, line)
        document = json.loads(js.read_bytes().decode())
        check.validate(document)
        sarif_check.check(json.loads(sarif.read_bytes().decode()))
        drive(script, "--xml=yes", f"--xml-file={xml}", driver=SANE_DRIVER)
        reader = qt_reader.read(xml.read_bytes())
        assert len(reader.errors) == 2, name
        if isinstance(name, str) and name.isprintable() and name:
            assert document["findings"][0]["stack"][0]["function"] == name
            function = qt_reader.child(qt_reader.children(qt_reader.children(
                reader.errors[0], "stack")[0], "frame")[0], "fn")
            assert function == name, (function, name)


@test
def random_findings_crash_no_writer():
    build_sane()
    check = validator()
    kinds, parts = ([row["id"] for row in rows] for rows in findings_table.read()[1:])
    for seed in range(25):
        dice = random.Random(seed)

        def name():
            roll = dice.random()
            if roll < 0.1:
                return None
            if roll < 0.3:
                return dice.choice(HOSTILE)
            return bytes(dice.choice((dice.randrange(1, 256), 0x61, 0x2f)) for _ in
                         range(dice.randrange(12)))

        def number():
            return dice.choice((0, 1, 2, 4, dice.getrandbits(64), (1 << 64) - 1))

        def stack():
            return [(dice.getrandbits(64), name(), name(), name(), name(),
                     dice.choice((0, 1, 4000000000)), *(["inlined"] * dice.randrange(2)))
                    for _ in range(dice.randrange(8))]

        script = Script(args=[name() or b"x" for _ in range(dice.randrange(1, 4))])
        for _ in range(dice.randrange(12)):
            script.finding(
                dice.choice(kinds), [number() for _ in range(dice.randrange(8))], stack(),
                [(dice.choice(parts), name(), [number() for _ in range(dice.randrange(7))], stack(),
                  *([(name(), name(), 3)] * dice.randrange(2))) for _ in range(dice.randrange(4))],
                text=name(), tid=dice.randrange(4), name=name(), suppression=name(),
                count=dice.choice((1, 7, (1 << 64) - 1)))
        script.close(3, 2)
        js, sarif, xml = WORK / "f.json", WORK / "f.sarif", WORK / "f.xml"
        options = dice.sample(["-s", "-v", "-q", "--color=yes", "--time-stamp=yes",
                               "--fullpath-after=", "--fullpath-after=a/", "--only=a",
                               "--error-markers=<,>", "--show-below-main=yes", "--num-callers=3",
                               f"--baseline={js}", "--xml-user-comment=x"], 4)
        if f"--baseline={js}" in options and not js.exists():
            options.remove(f"--baseline={js}")
        drive(script, *options, f"--json-file={js}", f"--sarif-file={sarif}", driver=SANE_DRIVER)
        check.validate(json.loads(js.read_bytes().decode()))
        sarif_check.check(json.loads(sarif.read_bytes().decode()))
        drive(script, *options, "--xml=yes", f"--xml-file={xml}", driver=SANE_DRIVER)
        qt_reader.read(xml.read_bytes(), (dice.randrange(1, 5000),))
