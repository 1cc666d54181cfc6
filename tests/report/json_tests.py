# SPDX-License-Identifier: MIT
"""JSON and SARIF, and what filters let through."""

import json
import random
import subprocess

import findings_table
import sarif_check
from driving import (DRIVER, SANE_DRIVER, WORK, build_sane, drive, hostile_run, json_of, sarif_of,
                     small_run, text_of, validator, whole_run)
from scripts import ALLOCATED, FREED, HELPER, MAIN, MALLOC, STRIPPED, Script
from suite import test


@test
def json_obeys_its_schema():
    check = validator()
    script = whole_run()
    document = json_of(script, "--num-callers=50")
    check.validate(document)
    assert len(document["findings"]) == 32
    assert document["findings"][2]["count"] == 3, "final counts are written back"
    assert {f["kind"] for f in document["findings"]} == {
        kind["id"] for kind in findings_table.read()[1]}
    entry = document["findings"][0]
    assert entry["stack"][0] == {"pc": "0x109170", "function": "helper", "function_offset": 0,
                                 "object": "/home/me/prog", "object_offset": "0x0", "line": 17,
                                 "directory": "/home/me/src/lib", "file": "b.c"}, entry["stack"][0]
    document["findings"][0]["surprise"] = 1
    assert not check.is_valid(document)


@test
def json_is_whole_after_every_finding():
    check = validator()
    for findings in range(4):
        script = Script()
        for n in range(findings):
            script.finding("invalid-read", (n,), (HELPER, MAIN), [ALLOCATED])
        for name, option in (("k.json", "--json-file"), ("k.sarif", "--sarif-file")):
            path = WORK / name
            drive(script.bytes() + b"kill\n", f"{option}={path}")
            document = json.loads(path.read_bytes())
            if name == "k.json":
                check.validate(document)
                assert document["status"] == "running" and len(document["findings"]) == findings
            else:
                sarif_check.check(document)
                assert len(document["runs"][0]["results"]) == findings


@test
def json_lines_and_pipes_stream():
    path = WORK / "out.jsonl"
    drive(small_run().close(4, 2), f"--json-file={path}")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["type"] for line in lines] == ["run", "finding", "finding", "summary"]
    assert lines[-1]["counts"] == {"0": 3, "1": 1}
    done = drive(small_run().close(4, 2), "--json-file=/dev/stderr", "-q",
                 f"--log-file={WORK / 'away'}")
    document = json.loads(done.stderr)
    validator().validate(document)
    assert document["summary"]["counts"] == {"0": 3, "1": 1}


@test
def standard_output_keeps_what_others_wrote_there():
    path = WORK / "shared.out"
    with open(path, "wb") as out:
        out.write(b"the program's\n")
        out.flush()
        subprocess.run([DRIVER, "--json-file=/dev/stdout", "-q"], stdout=out, check=True,
                       input=small_run().close(4, 2).bytes(), stderr=subprocess.DEVNULL)
    text = path.read_text()
    assert text.startswith("the program's\n"), text
    assert '"status": "finished"' in text


@test
def sarif_obeys_the_standard():
    document = sarif_of(whole_run())
    sarif_check.check(document)
    run = document["runs"][0]
    assert len(run["results"]) == 32 and run["results"][2]["occurrenceCount"] == 3
    freed = run["results"][3]
    steps = [step["location"]["message"]["text"]
             for step in freed["codeFlows"][0]["threadFlows"][0]["locations"]]
    assert steps[0] == "Block was alloc'd at" and steps[-1] == "Invalid write of size 1", steps
    assert len(freed["relatedLocations"]) == 2 and len(freed["stacks"]) == 3


@test
def sarif_paths_below_the_working_directory_are_relative():
    source = WORK / "my src"
    source.mkdir(exist_ok=True)
    mine = (0x10, "f", "/o", str(source), "ä #1.c", 9)
    script = Script().finding("invalid-read", (1,), (MALLOC, HELPER, mine, MAIN)).close(1, 1)
    document = sarif_of(script, cwd=WORK)
    sarif_check.check(document)
    location = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "my%20src/%C3%A4%20%231.c",
                                            "uriBaseId": "SRCROOT"}, location
    assert location["region"]["startLine"] == 9


@test
def fingerprint_survives_a_rebuild_and_tells_findings_apart():
    def fingerprint(*stack, kind="invalid-read", part=ALLOCATED):
        script = Script().finding(kind, (4,), stack, [part]).close(1, 1)
        sarif = sarif_of(script)["runs"][0]["results"][0]["partialFingerprints"]
        found = json_of(script)["findings"][0]["fingerprint"]
        assert sarif == {"muninnStack/v1": found}
        return found

    moved = (0x999, "main", "/other/prog", "/other", "a.c", 77)
    assert fingerprint(HELPER, MAIN) == fingerprint(HELPER, moved, part=FREED)
    assert fingerprint(HELPER, HELPER, HELPER, MAIN) == fingerprint(HELPER, MAIN), "recursion"
    assert len({fingerprint(HELPER, MAIN), fingerprint(MAIN), fingerprint(STRIPPED, MAIN),
                fingerprint(HELPER, MAIN, kind="invalid-write")}) == 4


@test
def only_shows_what_passes_through_my_code():
    libfoo = (0x1, "foo", "/usr/lib/libfoo.so.1", None, None, 0)
    script = Script().finding("invalid-read", (1,), (libfoo, MAIN))
    script.finding("invalid-read", (2,), (libfoo, STRIPPED)).close(1, 1)

    def verdicts(*options):
        return drive(script, *options).stdout.decode().split()

    for pattern in ("/home/me/src/a.c", "/home/me", "src", "a.c", "*/src/*", "prog", "?.c", "./src"):
        assert verdicts(f"--only={pattern}") == ["new", "filtered"], pattern
    assert verdicts("--only=libfoo.so*") == ["new", "new"]
    assert verdicts("--only=nothing", "--only=libsecret.so.1") == ["filtered", "new"]
    assert verdicts("--only=rc", "--only=/home/m") == ["filtered", "filtered"]
    text = text_of(script, "--only=src")
    assert "size 1" in text and "size 2" not in text
    assert json_of(script, "--only=src")["summary"]["filtered"] == 1


@test
def baseline_lets_only_new_findings_count():
    old, new = WORK / "old.json", WORK / "new.json"
    first = Script().finding("invalid-read", (4,), (HELPER, MAIN))
    first.finding("invalid-write", (4,), (HELPER, MAIN)).close(2, 2)
    drive(first, f"--json-file={old}")
    moved = (0x77, "main", "/home/me/prog", "/home/me/src", "a.c", 99)
    second = Script().finding("invalid-read", (4,), (HELPER, moved), [ALLOCATED])
    second.finding("uninit-branch", (), (MAIN,)).close(1, 1)
    done = drive(second, f"--baseline={old}", f"--json-file={new}")
    text = done.stderr.decode()
    assert done.stdout.split() == [b"known", b"new"]
    assert "Invalid read" not in text and "Conditional jump" in text
    assert "==123== Baseline: 1 new, 1 known, 1 fixed\n" in text
    document = json.loads(new.read_bytes())
    assert [f["baseline"] for f in document["findings"]] == ["known", "new"]
    assert document["summary"]["baseline"] == {"new": 1, "known": 1, "fixed": 1}
    states = [r["baselineState"] for r in
              sarif_of(second, f"--baseline={old}")["runs"][0]["results"]]
    assert states == ["unchanged", "new"]
    # What the second run wrote is the baseline of the third.
    assert drive(second, f"--baseline={new}").stdout.split() == [b"known", b"known"]


@test
def bad_baseline_is_said_and_everything_is_new():
    bad = WORK / "bad.json"
    for content in (b"", b"{}", b"\x00\xff", b'{"format": "muninn-report', b"[" * 100000,
                    b'{"fingerprint": "0123456789abcdef"}'):
        bad.write_bytes(content)
        done = drive(small_run().close(2, 2), f"--baseline={bad}")
        assert done.stdout.split() == [b"new", b"new"]
        assert b"muninn: cannot use the baseline " in done.stderr, content
    assert b"No such file" in drive(Script().close(), "--baseline=/nope.json").stderr
    assert b"cannot use" in drive(Script().close(), "--baseline=/dev/zero").stderr


@test
def damaged_baseline_crashes_nothing():
    build_sane()
    path = WORK / "damaged.json"
    drive(hostile_run("a\"b\\"), f"--json-file={path}")
    good = path.read_bytes()
    for seed in range(40):
        dice = random.Random(seed)
        data = bytearray(good[:dice.randrange(len(good))] if seed % 2 else good)
        for _ in range(dice.randrange(20)):
            if data:
                data[dice.randrange(len(data))] = dice.choice(b'"\\:{}[]\x00\xff0a')
        path.write_bytes(data)
        drive(small_run().close(4, 2), f"--baseline={path}", driver=SANE_DRIVER)


@test
def names_in_a_baseline_cannot_pose_as_fingerprints():
    fingerprint = json_of(small_run().close(4, 2))["findings"][0]["fingerprint"]
    evil = (0x1, f'x", "fingerprint": "{fingerprint}', None, None, None, 0)
    path = WORK / "evil.json"
    drive(Script().finding("invalid-read", (1,), (evil,)).close(1, 1), f"--json-file={path}")
    assert drive(small_run().close(4, 2), f"--baseline={path}").stdout.split()[0] == b"new"
