# SPDX-License-Identifier: MIT
"""Variables, and how fast all of it is."""

import os
import re
import time

from asking import (COMPILERS, PROGRAMS, SANITIZE, add, ask, build, check, data_of, need, run,
                    symbols_of, test)
from suite import Skip


def variables(folder, compiler):
    need(compiler)
    prog = build(folder, compiler, "-g", "-fno-pie", link=["-no-pie"], optimise="-O0")
    data = data_of(prog)
    calls = next(name for name in data if name.startswith(("calls", "static_one.calls")))
    cases = {("counted", 8): "counted\tpart.c:9\t8\t40", ("zeroed", 99): "zeroed\tpart.c:11\t99\t100",
             ("total_of_all", 0): "total_of_all\tpart.c:10\t0\t8", (calls, 0): "calls\tpart.c:15\t0\t4"}
    answers = ask(prog, [f"d {data[name] + at:x}" for name, at in cases])
    for wanted, answer in zip(cases.values(), answers):
        shown = "\t".join(answer[0]).replace(str(PROGRAMS) + "/", "") if answer else "nothing"
        check(shown == wanted, f"{shown}, not {wanted}")
    # Without debug info the symbol table still has a name.
    run("objcopy", "--strip-debug", prog, folder / "bare")
    answer = ask(folder / "bare", [f"d {data['counted'] + 4:x}"])[0]
    check(answer == [["counted", "?", "4", "40"]], f"without debug info: {answer}")
    # Locals: gdb knows where they are.
    need("gdb")
    done = run("gdb", "-batch", "-ex", "break part.c:28", "-ex", "run", "-ex", "print $pc", "-ex",
               "print (long)&buffer - (long)$rbp - 16", "-ex", "print (long)&numbers - (long)$rbp - 16",
               "-ex", "print (long)&inner - (long)$rbp - 16", prog).stdout
    values = re.findall(r"^\$\d+ = .*?(-?\d+|0x[0-9a-f]+)(?: <.*)?$", done, flags=re.M)
    if len(values) != 4:
        raise Skip("gdb cannot run the program here")
    pc = re.search(r"\$1 = .*?0x([0-9a-f]+)", done)[1]
    buffer, numbers, inner = (int(v) for v in values[1:])
    cases = {buffer + 5: "buffer\tpart.c:22\t5\t32", numbers + 4: "numbers\tpart.c:23\t4\t20",
             inner: "inner\tpart.c:27\t0\t8"}
    answers = ask(prog, [f"s {pc} {at}" for at in cases])
    for wanted, answer in zip(cases.values(), answers):
        shown = "\t".join(answer[0]).replace(str(PROGRAMS) + "/", "") if answer else "nothing"
        check(shown == wanted, f"{shown}, not {wanted}")


def optimised_locals(folder, compiler):
    """In optimised code arrays still have memory; the CFA is what gdb says."""
    need(compiler, "gdb")
    prog = build(folder, compiler, "-g", "-fno-pie", link=["-no-pie"], optimise="-O1")
    done = run("gdb", "-batch", "-ex", "break printf", "-ex", "run", "-ex", "up", "-ex", "print &buffer",
               "-ex", "print &numbers", "-ex", "info frame", prog).stdout
    places = re.findall(r"^\$\d+ = .*?(0x[0-9a-f]+)", done, flags=re.M)
    frame = re.search(r"tack level \d+, frame at (0x[0-9a-f]+):\n rip = (0x[0-9a-f]+) in with_locals", done)
    if len(places) != 2 or not frame:
        raise Skip("gdb cannot run the program here")
    cfa, pc = int(frame[1], 16), int(frame[2], 16) - 1
    questions = [f"s {pc:x} {int(places[0], 16) + 3 - cfa}", f"s {pc:x} {int(places[1], 16) + 8 - cfa}"]
    shown = [answer[0][0] + " " + answer[0][2] if answer else "nothing" for answer in ask(prog, questions)]
    check(shown == ["buffer 3", "numbers 8"], f"{shown}")


for compiler_ in COMPILERS:
    add(f"locals_of_optimised_{compiler_}_programs_are_named",
        lambda folder, c=compiler_: optimised_locals(folder, c))
    add(f"variables_of_{compiler_}_programs_are_named",
        lambda folder, c=compiler_: variables(folder, c))


# Seconds of processor time for 10,000 frames of a file that was never opened: ten times what is usual,
# which only a defect reaches.
SPEED_LIMIT = 10


@test
def speed_of_ten_thousand_distinct_frames(folder):
    # One C++ unit, linked 24 times under other names: as much debug info as a large program has,
    # for the price of one compilation.
    source, big = folder / "unit.cc", folder / "big.so"
    source.write_text("#include <algorithm>\n#include <map>\n#include <regex>\n#include <sstream>\n"
                      + "".join(f"""
struct T{i} {{ std::map<std::string, int> m; std::vector<T{i} *> v; int a[{i + 1}]; }};
int work{i}(T{i} &t, const std::string &s)
{{
    std::ostringstream text;
    for (auto &[key, value] : t.m)
        text << key << value;
    std::sort(t.v.begin(), t.v.end());
    t.m[s + text.str()] = (int)t.v.size();
    return std::regex_match(s, std::regex("a+b*")) ? t.a[0] : (int)t.m.count(s);
}}
""" for i in range(4)))
    run("g++", "-std=c++17", "-O1", "-g", "-fPIC", "-c", source, "-o", folder / "unit.o")
    for i in range(24):
        run("objcopy", f"--prefix-symbols=copy{i}_", folder / "unit.o", folder / f"copy{i}.o")
    run("g++", "-shared", *[folder / f"copy{i}.o" for i in range(24)], "-o", big)
    spread = sorted(a for start, size in symbols_of(big).values()
                    for a in range(start, start + size, 3))
    check(len(spread) >= 10000, f"only {len(spread)} addresses")
    step = len(spread) / 10000
    questions = [f"{spread[int(i * step)]:x}" for i in range(10000)]
    began, before = time.monotonic(), os.times()
    answers = ask(big, questions)
    after = os.times()
    used = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    print(f"10,000 frames, cold: {used:.2f} s of processor time, {time.monotonic() - began:.2f} s, "
          f"debug info of {big.stat().st_size >> 20} MiB")
    named = sum(1 for a in answers if a[0][0] != "?" and ":" in a[0][1])
    check(named > 9900, f"only {named} have a name and a line")
    check(sum(len(a) > 1 for a in answers) > 1000, "few inlined frames")
    if not SANITIZE:
        check(used < SPEED_LIMIT, f"{used:.2f} s, the limit is {SPEED_LIMIT} s")
