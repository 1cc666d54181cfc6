# SPDX-License-Identifier: MIT
"""Each example tool against a truth that it has no part in: single steps, gcov, strace, and programs that
know what they do."""
import glob
import os
import re
import shutil
import subprocess
from collections import Counter

import lab
from lab import example, program, run, small
from suite import Skip, test


@test
def every_example_has_a_page_and_says_what_it_shows():
    names = sorted(os.path.basename(p).rsplit(".", 1)[0]
                   for p in glob.glob(f"{lab.ROOT}/examples/tools/*.c*"))
    assert len(names) >= 10, names
    for name in names:
        source = glob.glob(f"{lab.ROOT}/examples/tools/{name}.c*")[0]
        with open(source, encoding="utf-8") as file:
            assert f"// {name}: " in file.read(400), source
        assert os.path.exists(f"{lab.ROOT}/docs/user/tools/{name}.md"), f"no page for {name}"
        done = run(example(name), "--help")
        assert done.status == 0 and done.out.startswith(f"{name}: "), done.out + done.err


@test
def short_examples_are_short():
    for name, most in (("memtrace", 100), ("allocprof", 40)):
        with open(f"{lab.ROOT}/examples/tools/{name}.c", encoding="utf-8") as file:
            assert len(file.readlines()) <= most, name


@test
def howvec_counts_what_single_steps_count():
    truth, names = lab.stepped(small()), lab.mnemonics(small())
    done = run(example("howvec"), "--mnemonics=yes", small())
    assert done.status == 42, done.err
    lines = done.lines("howvec")
    counts, by = {}, ""
    for number, name in re.findall(r"^ *(\d+) +[\d.]+ %  (.*)$", "\n".join(lines), re.M):
        by = name if name.startswith("all, by ") else by
        counts[name if name == by else f"{name}, {by[5:]}"] = int(number)
    for kind in ("class", "extension", "mnemonic"):
        assert counts[f"all, by {kind}"] == sum(truth.values()), done.err
    of_name = Counter()
    for pc, count in truth.items():
        of_name[names[pc]] += count
    branches = sum(n for name, n in of_name.items() if name.startswith("j") and name != "jmp")
    indirect = 5  # calls by a register: in each second of ten rounds
    expected = {
        "conditional branch, by class": branches,
        "call, by class": of_name["call"] - indirect,
        "indirect call, by class": indirect,
        "return, by class": of_name["ret"],
        "system call, by class": of_name["syscall"],
        "SSE2, by extension": of_name["movdqu"] + of_name["paddd"],
        "adc, by mnemonic": of_name["adc"],
        "lea, by mnemonic": of_name["lea"],
    }
    for name, count in expected.items():
        assert counts.get(name) == count, f"{name}: {counts.get(name)} instead of {count}"


@test
def hotblocks_counts_what_single_steps_count():
    truth = lab.stepped(small())
    done = run(example("hotblocks"), "--limit=1000", small())
    rows = re.findall(r"^ *(\d+) +(\d+)  0x([0-9a-f]+)", "\n".join(done.lines("hotblocks")), re.M)
    assert rows, done.err
    began = Counter()
    for times, _, address in rows:
        began[int(address, 16)] += int(times)
    for address, times in began.items():
        assert times <= truth[address], f"{address:#x}: {times} of {truth[address]}"
    names = lab.symbols(small())
    assert began[names["leaf"]] == truth[names["leaf"]], "calls begin blocks"


@test
def bbv_adds_up_to_all_instructions():
    total = sum(lab.stepped(small()).values())
    work = os.path.join(lab.WORK, "bbv")
    os.makedirs(work, exist_ok=True)
    done = run(example("bbv"), "--interval-size=1000", "--bb-out-file=bb", "--pc-out-file=pc", small(),
               cwd=work)
    assert done.status == 42, done.err
    with open(f"{work}/bb", encoding="utf-8") as file:
        intervals = [re.findall(r":(\d+):(\d+) ", line[1:]) for line in file if line[0] == "T"]
    sums = [sum(int(n) for _, n in interval) for interval in intervals]
    assert sum(sums) == total, f"{sum(sums)} instead of {total}"
    assert all(1000 <= s < 1100 for s in sums[:-1]), sums
    with open(f"{work}/pc", encoding="utf-8") as file:
        known = {line.split(":")[1] for line in file}
    assert {i for interval in intervals for i, _ in interval} <= known


@test
def execlog_has_every_instruction_and_its_accesses():
    truth, names = lab.stepped(small()), lab.symbols(small())
    done = run(example("execlog"), "--out=exec.log", "--registers=yes", small())
    assert done.status == 42, done.err
    with open(f"{lab.WORK}/exec.log", encoding="utf-8") as file:
        text = file.read()
    seen = Counter(int(pc, 16) for pc in re.findall(r"^1 0x([0-9a-f]+) ", text, re.M))
    assert seen == truth, {hex(a): (seen[a], truth[a]) for a in seen | truth if seen[a] != truth[a]}
    stores = re.findall(rf"^1 {names['word_loop']:#x} .*\n1   store (0x[0-9a-f]+)$", text, re.M)
    assert [int(s, 16) for s in stores] == [names["table"] + 512 + 8 * i for i in range(50)], stores
    assert re.search(rf"^1 {names['changed']:#x} .*\n1   r15=0x5$", text, re.M), "a register"


@test
def memtrace_has_every_access_in_order():
    names = lab.symbols(small())
    done = run(example("memtrace"), "--out=mem.log", small())
    assert done.status == 42, done.err
    with open(f"{lab.WORK}/mem.log", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    table = names["table"]
    of_fill = [(kind, int(at, 16), int(size)) for _, _, kind, at, size in lines
               if table <= int(at, 16) < table + 4096]
    once = [("W", table + 8 * i, 8) for i in range(100)] + [("R", table + 8 * i, 8) for i in range(100)]
    vector = [("R", table, 16)]
    expected = []
    for round_ in range(10):
        expected += once + (vector if round_ % 2 == 0 else [])
    expected += [("W", table + 512 + 8 * i, 8) for i in range(50)]
    assert of_fill == expected, f"{len(of_fill)} instead of {len(expected)}"
    calls = sum(1 for _, pc, kind, _, _ in lines if kind == "R" and int(pc, 16) == names["leaf"] + 4)
    assert calls == 1005, f"{calls} returns"  # 100 calls and, in each second round, one more


@test
def cachesim_misses_what_a_small_cache_must_miss():
    # 800 bytes that are written and read in turn, in lines of 64: 13 lines.
    done = run(example("cachesim"), "--d1-size=4096", "--d1-ways=4", "--limit=3", small())
    fits = misses(done)
    done = run(example("cachesim"), "--d1-size=128", "--d1-ways=1", "--limit=3", small())
    thrashes = misses(done)
    # All first touches: the table's 15 lines, sums, the stack, the data.
    assert fits <= 24, fits
    assert thrashes >= 10 * 2 * 12, thrashes


def misses(done):
    found = re.search(r"^cachesim: (\d+) misses", done.err, re.M)
    assert done.status == 42 and found, done.err
    return int(found[1])


def gcov_lines(work, *arguments):
    """line -> was it executed, as gcov says."""
    source = f"{lab.HERE}/programs/branches.c"
    lab.sh("gcc", "-O0", "-g", "--coverage", "-o", "native", source, cwd=work)
    lab.sh("./native", *arguments, cwd=work)
    notes = glob.glob(f"{work}/*.gcda")
    lab.sh("gcov", "-o", work, notes[0], cwd=work)
    found = {}
    with open(f"{work}/branches.c.gcov", encoding="utf-8") as file:
        for line in file:
            count, number, _ = line.split(":", 2)
            if count.strip() != "-" and int(number):
                found[int(number)] = count.strip().rstrip("*") != "#####"
    return found


def lcov_lines(path, source):
    found, current = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("SF:"):
                current = os.path.basename(line[3:].strip())
            if line.startswith("DA:") and current == source:
                number, count = line[3:].split(",")
                found[int(number)] = int(count) > 0
    return found


def source_line(number):
    with open(f"{lab.HERE}/programs/branches.c", encoding="utf-8") as file:
        return file.read().splitlines()[number - 1]


@test
def coverage_agrees_with_gcov():
    plain = program("branches.c", "-g", "-O0")
    for arguments in ((), ("all",)):
        work = os.path.join(lab.WORK, "gcov" + "".join(arguments))
        os.makedirs(work, exist_ok=True)
        truth = gcov_lines(work, *arguments)
        done = run(example("coverage"), "--out=c.drcov", "--lcov=c.info", plain, *arguments, cwd=work)
        assert done.status == 0, done.err
        mine = lcov_lines(f"{work}/c.info", "branches.c")
        # Labels and the heads of functions have counts in gcov, and no code in the line table.
        missing = [n for n in truth if n not in mine and not re.match(r" *(case|default|static|int) ?",
                                                                      source_line(n))]
        assert not missing, f"lines {missing} are missing"
        wrong = [n for n in truth if n in mine and truth[n] != mine[n]]
        assert not wrong, f"lines {wrong} differ"
        assert not all(truth.values()) or arguments, "some lines are not executed"


@test
def coverage_writes_drcov_files_that_hold_together():
    done = run(example("coverage"), "--out=d.drcov", program("branches.c", "-g", "-O0"))
    assert done.status == 0, done.err
    with open(f"{lab.WORK}/d.drcov", "rb") as file:
        data = file.read()
    head, _, rest = data.partition(b"BB Table: ")
    count, _, table = rest.partition(b" bbs\n")
    assert head.startswith(b"DRCOV VERSION: 2\n"), head[:40]
    modules = re.findall(rb"^ *(\d+), 0x([0-9a-f]+), 0x([0-9a-f]+), .*, (/.*)$", head, re.M)
    assert len(modules) == int(re.search(rb"count (\d+)", head)[1])
    assert any(path.endswith(b"branches_c_g_O0") for *_, path in modules), head
    assert len(table) == 8 * int(count) > 0, f"{len(table)} bytes for {int(count)} parts"
    for at in range(0, len(table), 8):
        module = int.from_bytes(table[at + 6:at + 8], "little")
        assert module < len(modules)


@test
def genhtml_shows_what_coverage_writes():
    if not shutil.which("genhtml"):
        raise Skip("genhtml (of the package lcov) is not installed")
    work = os.path.join(lab.WORK, "gcov")
    run(example("coverage"), "--lcov=h.info", program("branches.c", "-g", "-O0"), cwd=work)
    done = subprocess.run(["genhtml", "-o", "html", "h.info", "--ignore-errors", "source"], cwd=work,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and os.path.exists(f"{work}/html/index.html"), done.stderr


@test
def syscount_agrees_with_strace():
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    calls = program("calls.c", "-static")
    lab.sh("strace", "-c", "-o", f"{lab.WORK}/strace.txt", calls)
    with open(f"{lab.WORK}/strace.txt", encoding="utf-8") as file:
        truth = table(file.read())
    done = run(example("syscount"), calls)
    mine = table("\n".join(done.lines("syscount")))
    for name in ("getppid", "write", "open", "openat", "clock_nanosleep"):
        assert truth.get(name) == mine.get(name), f"{name}: {mine.get(name)}, not {truth.get(name)}"
    assert mine["getppid"] == (100, 0)
    sleep = next(line for line in done.lines("syscount") if line.endswith(" clock_nanosleep"))
    assert float(sleep.split()[1]) >= 0.002, sleep  # seconds that the program sleeps


def table(text):
    """name -> calls and errors."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 5 and words[0][0].isdigit() and words[-1] != "total":
            found[words[-1]] = (int(words[3]), int(words[4]) if len(words) > 5 else 0)
    return found


@test
def allocprof_finds_the_places_that_allocate():
    done = run(example("allocprof"), program("allocates.c", "-g", "-O1"))
    text = "\n".join(done.lines("allocprof"))
    assert re.search(r"^100000 bytes in 100 calls\n    much \(allocates.c:11\)\n    main", text, re.M), text
    assert re.search(r"^2000 bytes in 5 calls\n    little \(allocates.c:20\)", text, re.M), text
    assert re.search(r"^200 bytes in 5 calls\n    little \(allocates.c:19\)", text, re.M), text


def line_of(name, mark):
    with open(f"{lab.HERE}/programs/{name}", encoding="utf-8") as file:
        return next(i for i, line in enumerate(file, 1) if f"// {mark}" in line)


@test
def taint_follows_what_is_read_to_branches_and_writes():
    for flags in (("-g", "-O1"), ("-g", "-O3", "-static")):
        done = run(example("taint"), program("flows.c", *flags), stdin="abcxefgh")
        assert done.status == 0 and done.out == "abcx", done.err
        text = "\n".join(done.lines("taint"))
        assert re.search(rf"a branch.*flows.c:{line_of('flows.c', 'BRANCH')}\)", text), text
        assert re.search(r"it is written, 1 times", text), text
        assert f"flows.c:{line_of('flows.c', 'CLEAN')})" not in text, text


@test
def taint_is_silent_where_nothing_flows():
    done = run(example("taint"), program("flows.c", "-g", "-O1"), "none", stdin="abcxefgh")
    assert done.out == "fixed\n" and done.lines("taint") == ["nothing depends on what was read"], done.err
