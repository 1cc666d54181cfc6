# SPDX-License-Identifier: MIT
"""Reports of findings, and the page that needs no server."""

import json
import random
import re
import shutil
import subprocess

from access import equal
from server import BUILD, MUNINN, WORK, Server, Tree, heap, make_recording

TESTS = []
STATE = {}
# An engine with sanitizers runs nothing: there the reports are those of the release build.
RUNNER = str(BUILD.parent / "muninn") if BUILD.name == "asan" else MUNINN

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
static volatile int seen;
static inline __attribute__((always_inline)) int deep(char *p, int i) { return p[i]; }
struct node { struct node *next; char data[40]; };
static void *make(void) { return malloc(24); }
static int use(char *p, int i) { return deep(p, i); }
int main(int argc, char **argv)
{
    char *p = malloc(10);
    int sum = use(p, 10);
    int *q = malloc(4);
    for (int i = 0; i < 3 + argc - 1; i++)
        sum += deep(p, 12);
    if (*q > 5)
        puts("large");
    free(p);
#ifndef FIXED
    sum += p[1];
#else
    p[2] = 1;
#endif
    struct node *head = malloc(sizeof(*head));
    head->next = malloc(sizeof(*head));
    head->next->next = NULL;
    head = NULL;
    for (int i = 0; i < 3 + argc; i++)
        make();
    seen = sum;
    return argv == NULL;
}
"""


def test(function):
    TESTS.append(function)
    return function


def close():
    if "server" in STATE:
        STATE.pop("server").stop()


def reports():
    """a.json, b.json (of a changed program), a.jsonl, a.xml, and the incumbent's if it is there."""
    if "json" in STATE:
        return
    (WORK / "faulty.c").write_text(PROGRAM)
    for name, flags in (("faulty", []), ("fixed", ["-DFIXED"])):
        subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-w", *flags, "-o", WORK / name,
                        WORK / "faulty.c"], check=True, cwd=WORK)
    common = ["--tool=memcheck", "--leak-check=full", "--show-leak-kinds=all", "--track-origins=yes", "-q"]
    for program, outputs in (("faulty", ["--json-file=a.json"]), ("fixed", ["--json-file=b.json"]),
                             ("faulty", ["--json-file=a.jsonl"]),
                             ("faulty", ["--xml=yes", "--xml-file=a.xml"])):
        subprocess.run([RUNNER, *common, *outputs, f"./{program}"], cwd=WORK, timeout=300,
                       stderr=subprocess.DEVNULL)
    if shutil.which("valgrind"):
        subprocess.run(["valgrind", "--leak-check=full", "--show-leak-kinds=all", "-q",
                        "--xml=yes", "--xml-file=theirs.xml", "./faulty"], cwd=WORK, timeout=300,
                       stderr=subprocess.DEVNULL)
    STATE["json"] = json.loads((WORK / "a.json").read_text())
    assert STATE["json"]["findings"], "memcheck found nothing"


def served():
    if "server" not in STATE:
        reports()
        files = [WORK / n for n in ("a.json", "b.json", "a.jsonl", "a.xml")]
        if (WORK / "theirs.xml").exists():
            files.append(WORK / "theirs.xml")
        STATE["server"] = Server(*files)
    return STATE["server"]


def findings_of(answer):
    return [f for group in answer["groups"] for f in group["findings"]]


@test
def a_report_is_shown_by_source_line():
    report = (served(), STATE["json"])[1]
    files = served().api("files")["files"]
    equal({f["kind"] for f in files}, {"findings"})
    equal(files[0]["format"], "muninn-report")
    answer = served().api("findings")
    found = {f["id"]: f for f in findings_of(answer)}
    equal(set(found), {f["id"] for f in report["findings"]})
    for finding in report["findings"]:
        shown = found[finding["id"]]
        for member in ("kind", "what", "fingerprint", "count", "tool"):
            equal(shown[member], finding[member])
        equal([f.get("function") for f in shown["stack"]],
              [f.get("function") for f in finding["stack"]])
        equal([p.get("text") for p in shown["parts"]], [p.get("text") for p in finding["parts"]])
        equal(bool(shown["leak"]), "leak" in finding)
    group = next(g for g in answer["groups"] if g["function"] == "deep")
    equal((group["file"], group["line"]), ("faulty.c", 5))
    assert "return p[i]" in group["excerpt"]["text"][group["line"] - group["excerpt"]["first"]]
    assert any(f["inlined"] for f in group["findings"][0]["stack"])
    kinds = {k["id"]: k for k in answer["kinds"]}
    assert kinds["invalid-read"]["title"] and kinds["leak-definite"]["level"]
    source = served().api("source", id=group["source"])
    assert any("always_inline" in line for line in source["text"])
    uninit = next(f for f in found.values() if f["kind"] == "uninit-branch")
    origin = next(p for p in uninit["parts"] if p["kind"] == "origin-heap")
    assert "malloc(4)" in "".join(origin["excerpt"]["text"])


@test
def findings_are_filtered():
    every = served().api("findings")
    for kind in [k["id"] for k in every["kinds"]]:
        some = findings_of(served().api("findings", kind=kind))
        equal({f["kind"] for f in some}, {kind})
        equal(len(some), next(k["findings"] for k in every["kinds"] if k["id"] == kind))
    both = findings_of(served().api("findings", kind="invalid-read,leak-definite"))
    equal({f["kind"] for f in both}, {"invalid-read", "leak-definite"})
    assert findings_of(served().api("findings", search="DEEP"))
    equal(findings_of(served().api("findings", search="no such text")), [])
    assert findings_of(served().api("findings", module="faulty"))
    equal(findings_of(served().api("findings", module="*/libnothing*")), [])
    first = served().api("findings", limit=1)
    equal((len(first["groups"]), first["groups_total"]), (1, every["groups_total"]))
    second = served().api("findings", limit=1, offset=1)
    equal(first["groups"] + second["groups"], every["groups"][:2])


@test
def a_baseline_tells_new_known_and_fixed():
    answer = served().api("findings", base_f=1)
    states = {f["status"] for f in findings_of(answer)}
    assert "known" in states and "new" in states and "fixed" in states, states
    counts = answer["baseline"]
    shown = findings_of(answer)
    for status in ("new", "known", "fixed"):
        equal(counts[status], sum(f["status"] == status for f in shown))
        only = findings_of(served().api("findings", base_f=1, status=status))
        equal(len(only), counts[status])
    assert all(f["status"] == "known" for f in findings_of(served().api("findings", base_f=0)))


@test
def a_suppression_suppresses():
    entries = [f["suppression"] for f in findings_of(served().api("findings"))]
    assert all(entries)
    named = "\n".join(e.replace("<insert_a_suppression_name_here>", f"s{i}")
                      for i, e in enumerate(entries))
    (WORK / "all.supp").write_text(named)
    done = subprocess.run([RUNNER, "--tool=memcheck", "--suppressions=all.supp", "--leak-check=full", "-q",
                           "--show-leak-kinds=all", "--track-origins=yes",
                           "--json-file=quiet.json", "./faulty"], cwd=WORK, timeout=300,
                          capture_output=True)
    left = json.loads((WORK / "quiet.json").read_text())["findings"]
    equal([f["what"] for f in left], [])
    assert done.returncode in (0, 1)


def own_bytes(finding):
    """Without what is lost with it, which has records of its own."""
    direct = re.search(r"\(([\d,]+) direct, ", finding["what"])
    return int(direct[1].replace(",", "")) if direct else finding["leak"]["bytes"]


@test
def leaks_are_a_tree():
    report = (served(), STATE["json"])[1]
    leaks = [f for f in report["findings"] if f["kind"].startswith("leak-")]
    has_indirect = any(f["kind"] == "leak-indirect" for f in leaks)
    total = sum(own_bytes(f) if has_indirect else f["leak"]["bytes"] for f in leaks)
    equal(served().api("info")["leaked"], total)
    for options in ({}, {"bottom_up": 1}, {"by": "holder"}):
        tree = Tree(served().api("leaks", **options))
        equal(tree.answer["value"][0], total)
        equal({i for i in tree.answer["finding"] if i >= 0}, {f["id"] for f in leaks})


def leak(number, kind, function, size, *held_by, check=1, what="10 bytes in 1 blocks are …"):
    frame = {"pc": "0x401000", "function": function, "file": "held.c", "line": number,
             "object": "/home/u/held"}
    return {"id": 100 * check + number, "kind": f"leak-{kind}", "tool": "Memcheck",
            "what": what, "count": 1, "thread": {"id": 1},
            "stack": [frame], "parts": [], "fingerprint": f"{number:016x}",
            "leak": {"bytes": size, "blocks": 1, "direct_bytes": size, "record": number,
                     "records": 9, "check": check, "held_by": list(held_by)}}


def holder(kind, size, **members):
    return {"kind": kind, "blocks": 0, "bytes": size, **members}


HELD = [
    leak(1, "definite", "gone", 999),  # of a search before
    leak(1, "definite", "lost_list", 1150, holder("record", 90, record=1), check=2,
         what="1,150 (1,100 direct, 50 indirect) bytes in 1 blocks are definitely lost"),
    leak(2, "indirect", "payload", 50, holder("record", 50, record=1), check=2),
    leak(3, "reachable", "node", 160, holder("record", 144, record=3),
         holder("global", 16, name="list", object="/home/u/held", address="0x404000"), check=2),
    leak(4, "reachable", "value", 1000, holder("record", 600, record=3),
         holder("stack", 300, thread=2, address="0x7000"),
         holder("others", 100, holders=3), check=2),
    leak(5, "reachable", "ring_a", 10, holder("record", 10, record=6), check=2),
    leak(6, "reachable", "ring_b", 20, holder("record", 20, record=5), check=2),
    leak(7, "indirect", "below_hidden", 7, holder("record", 7, record=9, leak="leak-possible", stack=[
        {"pc": "0x402000", "function": "hidden", "object": "/home/u/held"}]), check=2),
]
HELD_TREE = {
    "nothing points to these": {"lost_list": [1100, {"payload": [50, {}]}]},
    "variable list (held)": {"node": [160, {"value": [600, {}]}]},
    "stack of thread 2": {"value": [400, {}]},
    "blocks that point to each other": {"ring_a": [10, {"ring_b": [20, {}]}]},
    "records that the report leaves out": {"hidden": [0, {"below_hidden": [7, {}]}]},
}


@test
def leaks_stand_below_who_holds_them():
    path = WORK / "held.json"
    path.write_text(json.dumps({"format": "muninn-report", "version": 1, "run": {"pid": 1},
                                "findings": HELD, "status": "finished"}))
    server = Server(path)
    try:
        tree = Tree(server.api("leaks", by="holder", min_ppm=0))
        def below(node):
            return {tree.name(i): [tree.answer["self"][i], below(i)] for i in tree.children(node)}
        equal({name: inner for name, (own, inner) in below(0).items()}, HELD_TREE)
        equal(tree.answer["value"][0], sum(own_bytes(f) for f in HELD[1:]))
        equal(server.api("info")["findings"], len(HELD) - 1)
    finally:
        server.stop()


@test
def a_kind_that_only_the_report_knows_has_its_words():
    path = WORK / "own.json"
    own = {"kind": "late-answer", "tool": "Findingtest", "what": "late", "fingerprint": "0" * 16,
           "count": 1, "thread": {"id": 1}, "stack": [], "parts": [], "fields": {"ms": 12}}
    path.write_text(json.dumps({
        "format": "muninn-report", "version": 1, "run": {"pid": 1}, "status": "finished",
        "findings": [{"id": 0, **own, "title": "An answer comes too late", "level": "note"},
                     {"id": 1, **own, "kind": "bare-kind"},
                     {"id": 2, **own, "kind": "invalid-read", "title": "a lie", "level": "note"}]}))
    server = Server(path)
    try:
        kinds = {k["id"]: (k["title"], k["level"]) for k in server.api("findings")["kinds"]}
        equal(kinds, {"late-answer": ("An answer comes too late", "note"),
                      "bare-kind": ("bare-kind", "error"),
                      "invalid-read": ("Memory is read that does not belong to the program",
                                       "error")})
    finally:
        server.stop()


@test
def json_lines_and_xml_say_the_same():
    first = {(f["kind"], f["what"], f["count"]) for f in findings_of(served().api("findings"))}
    for f in (2, 3):
        other = findings_of(served().api("findings", f=f))
        equal({(x["kind"], x["what"], x["count"]) for x in other}, first)
    prints = {f["fingerprint"] for f in findings_of(served().api("findings"))}
    equal({f["fingerprint"] for f in findings_of(served().api("findings", f=3))}, prints)


@test
def the_incumbents_xml_is_read():
    served()
    if not (WORK / "theirs.xml").exists():
        return "valgrind is not here"
    info = served().api("info", f=4)
    equal((info["tool"], info["status"]), ("memcheck", "finished"))
    assert info["command"] == "./faulty"
    found = findings_of(served().api("findings", f=4))
    assert {"invalid-read", "leak-definite"} <= {f["kind"] for f in found}
    assert all(f["stack"] and f["suppression"] for f in found)
    read = next(f for f in found if f["kind"] == "invalid-read")
    assert "alloc'd" in read["parts"][0]["text"] and read["parts"][0]["stack"]


@test
def reports_that_are_cut_or_mangled_do_no_harm():
    reports()
    names = []
    for source in ("a.json", "a.jsonl", "a.xml"):
        data = (WORK / source).read_bytes()
        rng = random.Random(7)
        for i in range(8):
            name = WORK / f"cut{i}.{source}"
            piece = bytearray(data[:rng.randrange(60, len(data))])
            if i >= 4:
                for _ in range(20):
                    piece[rng.randrange(40, len(piece))] = rng.randrange(256)
            name.write_bytes(piece)
            names.append(name)
    deep = WORK / "deep.json"
    deep.write_text('{"format": "muninn-report", "x": ' + "[" * 100000)
    nested = WORK / "deep.xml"
    nested.write_text("<?xml version='1.0'?>" + "<valgrindoutput>" * 1000)
    server = Server(*names, deep, nested)
    try:
        files = server.api("files")["files"]
        for file in files:
            if file["kind"] == "findings":
                server.api("findings", f=file["id"])
                server.api("leaks", f=file["id"])
            else:
                assert file["error"]
        assert sum(file["kind"] == "findings" for file in files) > len(files) // 2
    finally:
        server.stop()


@test
def an_export_is_one_page_with_the_answers():
    path, _ = make_recording("export.heap", "--events=40000", "--contexts=300", "--hostile",
                             "--threads=3")
    reports()
    page = WORK / "page.html"
    done = subprocess.run([MUNINN, "view", f"--export={page}", path, WORK / "a.json"],
                          capture_output=True, text=True, timeout=300)
    if "without npm" in done.stderr:
        return "this build has no page"
    equal(done.returncode, 0)
    text = page.read_text()
    assert len(text.encode()) <= 5 << 20
    assert "src=" not in text.split("<body")[0].replace("data:,", "") or "app.js" not in text
    data = re.search(r'<script type="application/json" id="muninn-export">(.*?)</script>', text,
                     re.S)[1]
    assert "<" not in data
    answers = json.loads(data)["answers"]
    equal(answers["/api/files"]["export"], True)
    for key in ("/api/info", "/api/timeline", "/api/timeline?group=function", "/api/tree",
                "/api/tree?bottom_up=1&metric=peak", "/api/contexts", "/api/functions",
                "/api/contexts?group=thread", "/api/histogram", "/api/map", "/api/threads",
                "/api/sources", "/api/info?f=1", "/api/findings?f=1", "/api/leaks?f=1",
                "/api/leaks?bottom_up=1&f=1"):
        assert key in answers, key
    summary = heap("summary", path)
    equal(answers["/api/info"]["totals"]["allocated"], summary["allocated_bytes"])
    equal(answers["/api/tree"]["total"], summary["live_bytes"])
    row = answers["/api/contexts"]["rows"][0]
    assert f"/api/stack?context={row['context']}" in answers


@test
def a_large_export_stays_below_five_megabytes():
    path, _ = make_recording("wide.heap", "--events=150000", "--contexts=15000", "--threads=20",
                             "--depth=60")
    page = WORK / "wide.html"
    done = subprocess.run([MUNINN, "view", f"--export={page}", path], capture_output=True,
                          text=True, timeout=300)
    if "without npm" in done.stderr:
        return "this build has no page"
    equal(done.returncode, 0)
    size = page.stat().st_size
    assert 1 << 20 < size <= 5 << 20, size


@test
def an_export_that_cannot_be_written_says_so():
    path, _ = make_recording("small.heap", "--events=1000")
    done = subprocess.run([MUNINN, "view", "--export=/nowhere/x.html", path],
                          capture_output=True, text=True, timeout=300)
    equal(done.returncode, 1)
    assert "/nowhere/x.html" in done.stderr or "without npm" in done.stderr
    done = subprocess.run([MUNINN, "view", f"--export={WORK}/x.html", WORK / "gone.heap"],
                          capture_output=True, text=True, timeout=300)
    equal(done.returncode, 1)
