# SPDX-License-Identifier: MIT
"""Every export, read by its real consumer where there is one here: protobuf's own decoder and `go
tool pprof`, heaptrack_print, ms_print; JSON and XML parsers and node for the rest."""
import gzip
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as xml

from suite import (MUNINN, WORK, answer, build_make_run, check, heap, make_recording, make_run, path,
                   same, skip, sql, verdict)

MESSAGES = {  # profile.proto, as far as a heap profile uses it
    "ValueType": [("type", 1, "int64", 0), ("unit", 2, "int64", 0)],
    "Sample": [("location_id", 1, "uint64", 1), ("value", 2, "int64", 1)],
    "Mapping": [("id", 1, "uint64", 0), ("memory_start", 2, "uint64", 0),
                ("memory_limit", 3, "uint64", 0), ("file_offset", 4, "uint64", 0),
                ("filename", 5, "int64", 0), ("build_id", 6, "int64", 0),
                ("has_functions", 7, "bool", 0), ("has_filenames", 8, "bool", 0),
                ("has_line_numbers", 9, "bool", 0), ("has_inline_frames", 10, "bool", 0)],
    "Line": [("function_id", 1, "uint64", 0), ("line", 2, "int64", 0)],
    "Location": [("id", 1, "uint64", 0), ("mapping_id", 2, "uint64", 0),
                 ("address", 3, "uint64", 0), ("line", 4, "Line", 1)],
    "Function": [("id", 1, "uint64", 0), ("name", 2, "int64", 0), ("system_name", 3, "int64", 0),
                 ("filename", 4, "int64", 0)],
    "Profile": [("sample_type", 1, "ValueType", 1), ("sample", 2, "Sample", 1),
                ("mapping", 3, "Mapping", 1), ("location", 4, "Location", 1),
                ("function", 5, "Function", 1), ("string_table", 6, "string", 1),
                ("time_nanos", 9, "int64", 0), ("duration_nanos", 10, "int64", 0),
                ("period_type", 11, "ValueType", 0), ("period", 12, "int64", 0),
                ("comment", 13, "int64", 1), ("default_sample_type", 14, "int64", 0)],
}


def profile_class():
    """The class of Profile messages, from the real library."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    scalars = {"int64": 3, "uint64": 4, "bool": 8, "string": 9}
    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            row = message.field.add(name=field, number=number, label=3 if repeated else 1)
            if kind in scalars:
                row.type = scalars[kind]
            else:
                row.type, row.type_name = 11, f".p.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(
        pool.FindMessageTypeByName("p.Profile"))


def export(format_name, file, *words):
    out = path(f"out.{format_name}")
    done = heap("export", f"--format={format_name}", "-o", out, file, *words)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"export {format_name}: {done.stderr.decode()}")
    return out


def exports():
    known, facts = make_run(build_make_run(), "export-known")
    random, _ = make_recording("export-random", "--events=20000", "--contexts=50", "--threads=2",
                               "--spaces", "--seconds=5")
    hostile, _ = make_recording("export-hostile", "--events=5000", "--hostile", "--bare")
    for part in (pprof, folded, speedscope, svg, heaptrack, dhat, massif):
        for name, file in (("known", known), ("random", random), ("hostile", hostile)):
            part(name, file, facts if name == "known" else None)
    heaptrack_of_part(known)
    chosen(random)
    wrong(known)


def chosen(file):
    """A part of the recording in the formats that are made of events, and in pprof."""
    for words in (("--min-size=1k",), ("--max-size=200", "--from=1s", "--to=3s"),
                  ("--from=2s", "--to=4s"), ("--space=mapped", "--at=end"), ("--thread=2",)):
        name = " ".join(words)
        both = answer("summary", file, *words)
        wanted = (both["allocated_bytes"], both["allocations"], both["live_bytes"])
        with open(export("dhat", file, *words), encoding="utf-8") as out:
            points = json.load(out)["pps"]
        same(f"dhat with {name}", tuple(sum(p[k] for p in points) for k in ("tb", "tbk", "eb")),
             wanted)
        with open(export("heaptrack", file, *words), encoding="utf-8", errors="replace") as out:
            lines = [line.split() for line in out]
        sizes = [int(line[1], 16) for line in lines if line[0] == "a"]
        live = sum((1 if line[0] == "+" else -1) * sizes[int(line[1], 16)]
                   for line in lines if line[0] in "+-")
        same(f"heaptrack with {name}", live, both["live_bytes"])
        if not shutil.which("go"):
            continue
        done = subprocess.run(["go", "tool", "pprof", "-sample_index=alloc_space", "-unit=B",
                               "-nodefraction=0", "-nodecount=100000", "-top",
                               export("pprof", file, *words)], capture_output=True, text=True,
                              check=False, errors="replace", env={**os.environ, "HOME": WORK})
        sums = re.search(r"accounting for (\d+)B, .* of (\d+)B total", done.stdout)
        same(f"pprof with {name}: all of it is somewhere", sums and sums.groups(),
             (str(wanted[0]),) * 2)
    for format_name in ("heaptrack", "dhat"):
        done = heap("export", f"--format={format_name}", file, "--max-lifetime=1s")
        check(f"{format_name} has no lifetimes to choose by", done.returncode == 1 and
              b"lifetimes" in done.stderr, done.stderr.decode())


def totals(file, at):
    both = answer("summary", file, f"--at={at}")
    return (both["live_bytes"], both["live_blocks"], both["allocated_bytes"], both["allocations"])


def pprof(name, file, facts):
    out = export("pprof", file)
    try:
        profile = profile_class()()
    except ImportError:
        skip(f"pprof of {name}", "python3-protobuf is not installed")
        return
    with gzip.open(out) as compressed:
        profile.ParseFromString(compressed.read())
    text = profile.string_table
    types = [(text[t.type], text[t.unit]) for t in profile.sample_type]
    same(f"pprof of {name}: types", types,
         [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"),
          ("inuse_space", "bytes")])
    sums = [sum(s.value[i] for s in profile.sample) for i in range(4)]
    live, blocks, allocated, allocations = totals(file, "peak")
    same(f"pprof of {name}: sums", sums, [allocations, allocated, blocks, live])
    ids = {x.id for x in profile.location}
    functions = {f.id for f in profile.function}
    check(f"pprof of {name}: what is named exists",
          text[0] == "" and all(set(s.location_id) <= ids for s in profile.sample)
          and all(line.function_id in functions for x in profile.location for line in x.line)
          and {x.mapping_id for x in profile.location} <= {m.id for m in profile.mapping} | {0})
    if facts:
        names = {f.id: text[f.name] for f in profile.function}
        stacks = {tuple(names[line.function_id] for i in s.location_id
                        for x in profile.location if x.id == i for line in x.line): s.value[3]
                  for s in profile.sample}
        same("pprof of known: a stack", stacks["malloc", "spike", "main", "__libc_start_main"],
             4 << 20)
    if shutil.which("go"):
        done = subprocess.run(["go", "tool", "pprof", "-raw", out], capture_output=True,
                              text=True, check=False, errors="replace",
                              env={**os.environ, "HOME": WORK})
        check(f"go tool pprof reads {name}", done.returncode == 0 and "inuse_space/bytes" in
              done.stdout, done.stderr[-300:])
    else:
        skip(f"go tool pprof reads {name}", "there is no go")


def folded(name, file, facts):
    with open(export("folded", file), "rb") as text:
        rows = [line.rstrip(b"\n").rsplit(b" ", 1) for line in text]
    same(f"folded of {name}: the sum", sum(int(v) for _, v in rows), totals(file, "peak")[0])
    same(f"folded of {name}: as deep as the stacks",
         sorted(line.count(b";") + 1 for line, _ in rows),
         sorted(len(g["stack"]) for g in answer("top", file)["groups"] if g["value"]))
    if facts:
        check("folded of known: a line",
              [b"__libc_start_main;main;spike;malloc", b"4194304"] in rows, str(rows))


def speedscope(name, file, facts):
    with open(export("speedscope", file), encoding="utf-8") as text:
        scope = json.load(text)
    same(f"speedscope of {name}: the schema", scope["$schema"],
         "https://www.speedscope.app/file-format-schema.json")
    profiles = {p["name"]: p for p in scope["profiles"]}
    frames = scope["shared"]["frames"]
    bad = [p["name"] for p in scope["profiles"] if p["type"] != "sampled"
           or len(p["samples"]) != len(p["weights"]) or p["endValue"] != sum(p["weights"])
           or any(i >= len(frames) for s in p["samples"] for i in s)]
    same(f"speedscope of {name}: whole", bad, [])
    same(f"speedscope of {name}: sums",
         tuple(profiles[n]["endValue"] for n in ("live bytes", "live blocks", "allocated bytes",
                                                 "allocations")), totals(file, "peak"))
    if facts:
        first = profiles["live bytes"]
        spike = first["samples"][first["weights"].index(4 << 20)]
        same("speedscope of known: a stack", [frames[i] for i in spike][1:3],
             [{"name": "main", "file": "app.c", "line": 100},
              {"name": "spike", "file": "app.c", "line": 30}])


def svg(name, file, facts):
    out = export("svg", file)
    ns = "{http://www.w3.org/2000/svg}"
    tree = xml.parse(out).getroot()
    titles = [t.text for t in tree.iter(ns + "title")]
    check(f"svg of {name}: titles", titles and titles[0].startswith("all — "), str(titles[:2]))
    boxes = [g.find(ns + "rect") for g in tree.iter(ns + "g")]
    widths = [float(b.get("width")) for b in boxes]
    check(f"svg of {name}: the root is the widest", abs(widths[0] - 1180) < 1 and
          max(widths) == widths[0])
    with open(out, encoding="utf-8") as text:
        check(f"svg of {name}: nothing from elsewhere",
              not re.search(r"(href|src)=|https?://(?!www\.w3\.org/2000/svg)", text.read()))
    if facts:
        check("svg of known: a title", "spike (app.c) — 4.0 MiB, 79.2%" in titles or
              any(t.startswith("spike (app.c") and t.endswith("4.0 MiB, 79.2%") for t in titles),
              str(titles))
    if name == "known" and shutil.which("node"):
        script = path("svg.js")
        with open(script, "w", encoding="utf-8") as js:
            js.write(tree.find(ns + "script").text)
        done = subprocess.run(["node", "--check", script], capture_output=True, text=True,
                              check=False)
        verdict("svg: node takes the script", done.stderr[-300:] if done.returncode else "")
    if name == "known":
        svg_in_browser(out)


BROWSED = """
const found = [...document.querySelectorAll('.f')].find(
    g => g.querySelector('title').textContent.startsWith('spike'));
const box = found.querySelector('rect'), wholeLink = document.getElementById('r');
const said = [box.getAttribute('width')];
found.dispatchEvent(new MouseEvent('mouseenter'));
said.push(document.getElementById('d').textContent);
found.dispatchEvent(new MouseEvent('click'));
said.push(box.getAttribute('width'), document.querySelectorAll('.f.o').length);
wholeLink.dispatchEvent(new MouseEvent('click'));
said.push(box.getAttribute('width'), document.querySelectorAll('.f.o').length);
mark('^(spike|grow)');
said.push(document.getElementById('s').textContent);
mark('[');
document.getElementById('said').textContent = JSON.stringify(said);
"""


def svg_in_browser(out):
    """Hover, click and search, in a browser."""
    if not shutil.which("chromium"):
        skip("svg in a browser", "there is no chromium")
        return
    with open(out, encoding="utf-8") as text:
        picture = text.read().split("\n", 1)[1]
    picture = picture.replace("<![CDATA[", "").replace("]]>", "")
    with open(path("svg.html"), "w", encoding="utf-8") as page:
        page.write(f"<meta charset=utf-8>{picture}<pre id=said></pre><script>{BROWSED}</script>")
    done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                           f"--user-data-dir={path('browser')}", "--dump-dom",
                           f"file://{path('svg.html')}"], capture_output=True, text=True,
                          check=False, timeout=300)
    said = re.search(r'<pre id="said">(.*?)</pre>', done.stdout)
    said = json.loads(said[1]) if said and said[1] else [done.stderr[-300:]]
    width = said[0]
    same("svg in a browser: hover, click, back, search", said[1:],
         ["spike (app.c) — 4.0 MiB, 79.2%", "1180", 7, width, 0, "^(spike|grow): 89.1%"])


def heaptrack(name, file, facts):
    out = export("heaptrack", file)
    if not shutil.which("heaptrack_print"):
        skip(f"heaptrack of {name}", "heaptrack is not installed")
        return
    done = subprocess.run(["heaptrack_print", "-f", out, "-F", path("ht.folded"),
                           "--flamegraph-cost-type", "leaked"],
                          capture_output=True, text=True, check=False, errors="replace")
    live, _, _, _ = totals(file, "end")
    peak = sql(file, "SELECT heap_bytes FROM snapshots WHERE reason = 'peak'")[0][0]
    calls = re.search(r"calls to allocation functions: (\d+)", done.stdout)
    same(f"heaptrack_print of {name}: calls", int(calls[1]) if calls else done.stderr[-200:],
         answer("summary", file)["allocations"])
    for what, value in (("peak heap memory consumption", peak), ("total memory leaked", live)):
        found = re.search(rf"{what}: (\S+)", done.stdout)
        same(f"heaptrack_print of {name}: {what}", found and found[1], decimal(value))
    with open(path("ht.folded"), encoding="utf-8", errors="replace") as stacks:
        same(f"heaptrack_print of {name}: its stacks add up",
             sum(int(line.rsplit(" ", 1)[1]) for line in stacks), live)
    if facts:
        check("heaptrack_print of known: names and lines",
              "spike" in done.stdout and "/src/app/app.c:30" in done.stdout)


def decimal(value):
    """As heaptrack_print writes bytes."""
    if value < 1000:
        return f"{value}B"
    for unit in "KMGT":
        value /= 1000
        if value < 1000:
            return f"{value:.2f}{unit}"
    return str(value)


def heaptrack_of_part(file):
    """A range begins with what was live then."""
    if not shutil.which("heaptrack_print"):
        return
    out = export("heaptrack", file, "--from=6s", "--to=8s")
    done = subprocess.run(["heaptrack_print", "-f", out], capture_output=True, text=True,
                          check=False)
    found = re.search(r"total memory leaked: (\S+)", done.stdout)
    live = answer("top", file, "--from=0", "--to=8s", "--metric=live")["total"]
    same("heaptrack of a range: what is live at its end", found and found[1], decimal(live))
    bounded, _ = make_recording("export-bounded", "--events=200000", "--max-bytes=300000")
    check("the oldest events are gone", answer("summary", bounded)["events_kept_since_ns"] > 0)
    done = subprocess.run(["heaptrack_print", "-f", export("heaptrack", bounded)], check=False,
                          capture_output=True, text=True)
    found = re.search(r"total memory leaked: (\S+)", done.stdout)
    same("heaptrack without the oldest events: what is live at the end", found and found[1],
         decimal(totals(bounded, "end")[0]))


def dhat(name, file, facts):
    with open(export("dhat", file), encoding="utf-8") as text:
        found = json.load(text)
    live, blocks, allocated, allocations = totals(file, "end")
    peak, peak_blocks, _, _ = totals(file, "peak")
    points = found["pps"]
    same(f"dhat of {name}: version", (found["dhatFileVersion"], found["mode"], found["ftbl"][0]),
         (2, "heap", "[root]"))
    same(f"dhat of {name}: sums",
         {k: sum(p[k] for p in points) for k in ("tb", "tbk", "eb", "ebk", "gb", "gbk")},
         {"tb": allocated, "tbk": allocations, "eb": live, "ebk": blocks, "gb": peak,
          "gbk": peak_blocks})
    check(f"dhat of {name}: frames exist, highs are high",
          all(0 < f < len(found["ftbl"]) for p in points for f in p["fs"]) and
          all(max(p["gb"], p["eb"]) <= p["mb"] <= p["tb"] for p in points))
    if facts:
        point, = (p for p in points if found["ftbl"][p["fs"][1]].endswith("spike (app.c:30)"))
        same("dhat of known: a point", {k: point[k] for k in ("tb", "tbk", "tl", "mb", "mbk")},
             {"tb": 4 << 20, "tbk": 1, "tl": 100000, "mb": 4 << 20, "mbk": 1})


def massif(name, file, facts):
    done = heap("export", "--format=massif", "-o", path("out.massif"), file)
    if b"no format to export to" in done.stderr:
        skip(f"massif of {name}", "not there")
        return
    same(f"massif of {name}: written", (done.returncode, done.stderr), (0, b""))
    with open(path("out.massif"), encoding="utf-8", errors="replace") as file_out:
        text = file_out.read()
    peaks = re.findall(r"mem_heap_B=(\d+)\n[^\n]*\n[^\n]*\nheap_tree=peak", text)
    # However few slices the recording has.
    shown = subprocess.run([MUNINN, "ms_print", file], capture_output=True, check=False)
    same(f"massif of {name}: as many snapshots as ms_print has", text.count("\nsnapshot="),
         int(re.search(rb"Number of snapshots: (\d+)", shown.stdout)[1]))
    same(f"massif of {name}: the peak", list(map(int, peaks)),
         [sql(file, "SELECT heap_bytes FROM snapshots WHERE reason = 'peak'")[0][0]])
    ms_print = "/usr/bin/ms_print"
    if os.path.exists(ms_print):
        done = subprocess.run([ms_print, path("out.massif")], capture_output=True, text=True,
                              check=False, errors="replace")
        check(f"ms_print reads {name}", done.returncode == 0 and "Number of snapshots" in
              done.stdout, done.stderr[-300:])


def wrong(file):
    done = heap("export", file)
    check("export without a format", done.returncode == 1 and b"pprof, folded" in done.stderr)
    done = heap("export", "--format=nope", file)
    check("export to an unknown format", done.returncode == 1 and b"nope is no format" in
          done.stderr, done.stderr.decode())
    done = heap("export", "--format=folded", "-o", "/nonexistent/x", file)
    check("export to where nothing can be written", done.returncode == 1 and
          b"cannot write /nonexistent/x" in done.stderr)
    done = heap("export", "--format=svg", "-o", "/dev/full", file)
    check("export to a full disk", done.returncode == 1 and b"No space left" in done.stderr,
          done.stderr.decode())
    done = heap("export", "--format=folded", file)
    check("export to standard output", done.returncode == 0 and b"main;spike" in done.stdout)
    done = heap("flame", file, "-o", path("flame.svg"), "--bottom-up", "--only=*app*")
    titles = [t.text for t in xml.parse(path("flame.svg")).iter(
        "{http://www.w3.org/2000/svg}title")] if done.returncode == 0 else done.stderr
    check("flame -o writes the SVG, with the options of trees",
          [t.split(" ")[0] for t in titles[:3]] == ["all", "spike", "main"], str(titles[:3]))
