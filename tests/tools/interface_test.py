# SPDX-License-Identifier: MIT
"""include/muninn/tool.h by tools that are built outside of the tree: what blocks insert, counters, wraps,
events, and what becomes of tools that cannot be loaded or that crash."""
import os
import re
import signal
import subprocess
import time

import lab
from lab import STRESSES, plugin, program, run, small
from suite import test


CANNOT_RUN = 126  # the exit status when the engine refuses


def probe(what, where, *stress):
    """The tool's lines, and how small.S has ended."""
    at = lab.symbols(small())[where] if isinstance(where, str) else where
    done = run(plugin("probe.c"), *stress, f"--what={what}", f"--at={at:#x}", small())
    return done.lines("probe"), done.status


def address_of(mnemonic, nth=0):
    return [pc for pc, name in sorted(lab.mnemonics(small()).items()) if name == mnemonic][nth]


# ------------------------------------------------------------------- what blocks insert


@test
def a_callback_reads_registers_and_flags():
    lines, status = probe("read", "marked")
    assert (lines, status) == (["calls 1 sum 1 last 0x1234"], 42), lines


@test
def a_callback_after_an_instruction_sees_what_it_has_done():
    lines, status = probe("read-after", "changed")
    assert (lines, status) == (["calls 1 sum 0 last 0x5"], 42), lines


@test
def a_callback_changes_registers():
    lines, status = probe("set", "changed")
    assert status == 39, (lines, status)  # 2 + 37


@test
def a_callback_changes_flags():
    lines, status = probe("clear-carry", "live")
    assert status == 1, (lines, status)  # the carry was missing


@test
def a_branch_tells_whether_it_is_taken():
    first = address_of("jb")
    lines, status = probe("branch", first)
    assert (lines, status) == (["calls 1000 sum 990 last 0"], 42), lines
    lines, _ = probe("branch", "live")
    assert lines[0] == "this is no branch", lines


@test
def what_is_counted_when_a_branch_is_not_taken():
    for stress in ((), ("--stress=signals",), ("--stress=tiny-blocks",)):
        lines, status = probe("not-taken", address_of("jb"), *stress)
        assert "not taken 10" in lines and status == 42, lines


@test
def a_call_after_a_branch_is_made_when_it_is_not_taken():
    lines, status = probe("after-branch", address_of("jb"))
    assert lines[0].startswith("calls 10 ") and status == 42, lines


@test
def indirect_jumps_calls_and_returns_tell_their_targets():
    names = lab.symbols(small())
    lines, _ = probe("target", address_of("call", 1))
    assert lines == [f"calls 5 sum {5 * names['leaf']} last {names['leaf']:#x}"], lines
    way_one, way_two = names["way_one"], names["way_two"]
    jump = max(pc for pc in lab.mnemonics(small()) if pc < way_one)
    lines, _ = probe("target", jump)
    assert lines == [f"calls 10 sum {5 * (way_one + way_two)} last {way_two:#x}"], lines
    lines, _ = probe("target", names["leaf"] + 4)
    assert lines[0].startswith("calls 1005 "), lines
    lines, _ = probe("target", "live")
    assert lines[0] == "this is no indirect jump", lines


@test
def accesses_tell_their_addresses_before_and_after():
    table = lab.symbols(small())["table"] + 512
    lines, status = probe("access", "word_loop")
    assert lines == [f"calls 50 sum {sum(table + 8 * i for i in range(50))} last {table + 392:#x}"], lines
    lines, status = probe("access-after", "word_loop")
    assert lines == [f"calls 50 sum {5 * 50} last {table + 392:#x}"] and status == 42, lines


@test
def what_blocks_call_is_called_under_stress_as_without():
    for what, where in (("read", "marked"), ("set", "changed"), ("access", "word_loop"),
                        ("access-after", "word_loop"), ("hot", "word_loop"), ("call-if", "word_loop"),
                        ("branch", address_of("jb")), ("target", address_of("call", 1))):
        expected = probe(what, where)
        for stress in STRESSES:
            seen = probe(what, where, f"--stress={stress}")
            assert seen == expected, (what, stress, seen, expected)


@test
def a_hot_call_is_made_each_time():
    lines, status = probe("hot", "word_loop")
    assert lines[0].startswith("calls 50 ") and status == 42, lines


@test
def words_take_all_operations_and_leave_the_flags_alone():
    table = lab.symbols(small())["table"] + 512
    expected = [150, sum(range(50)), table + 392, table + 392, table, 49, (-7) % 2**64, 11]
    for stress in ((), *((f"--stress={s}",) for s in STRESSES)):
        lines, status = probe("words", "word_loop", *stress)
        words = [int(m[1], 16) for m in (re.match(r"word \d is (\S+)", s) for s in lines) if m]
        assert words == expected and status == 42, (stress, lines, expected)


@test
def conditional_calls_test_words():
    lines, status = probe("call-if", "word_loop")
    assert "times 1 49 10 40" in lines and status == 42, lines


@test
def an_instruction_is_described():
    names = lab.symbols(small())
    lines, _ = probe("describe", "word_loop")
    assert lines[0].endswith("mov, 8 bytes from 4c, class 0, target 0, reads 0x8002, writes 0"), lines
    assert lines[1] == "access of 8 bytes: writes", lines
    lines, _ = probe("describe", "live")
    assert lines[0].startswith("adc r12, 0x00") or lines[0].startswith("adc r12, 0"), lines
    assert lines[0].endswith("reads 0x11000, writes 0x11000"), lines  # r12 and the flags
    lines, _ = probe("describe", names["leaf"] + 4)
    assert "ret, 1 bytes from c3, class 6" in lines[0] and lines[1].endswith("reads stack"), lines
    lines, _ = probe("describe", address_of("call"))
    assert f"class 4, target {names['leaf']:#x}" in lines[0], lines


# ------------------------------------------------------------------- counters


def counted(done, process):
    return {int(at): int(n) for at, n in re.findall(r"^counts: \+(\d+) (\d+)$", process, re.M)}


def exact_under(stress, *arguments):
    faults = program("faults.c", "-O1", "-no-pie", "-static", "-pthread")
    names = lab.symbols(faults)
    log = os.path.join(lab.WORK, "counts" + "".join(stress + arguments).replace("=", "") + ".%p")
    done = run(plugin("counts.c"), *stress, f"--log-file={log}", f"--from={names['step']:#x}",
               f"--to={names['step_end']:#x}", faults, *arguments)
    assert done.status == 0, done.err
    processes = [line.split() for line in done.out.splitlines()]
    assert len(processes) == (4 if arguments else 1), done.out
    for pid, begun, also_begun, ended in processes:
        with open(log.replace("%p", pid), encoding="utf-8") as file:
            seen = counted(done, file.read())
        # incq (%rdi); incq 8(%rdi); movq (%rsi), %rax; incq 16(%rdi); ret
        expected = {0: int(begun), 3: int(also_begun), 7: int(ended), 10: int(ended), 14: int(ended)}
        assert begun == also_begun and int(ended) > 50000
        assert seen == expected, f"{stress} {arguments}: {seen} instead of {expected}"


@test
def counters_are_exact_with_faults_signals_threads_and_forks():
    exact_under(())
    exact_under((), "fork")


@test
def counters_are_exact_under_stress():
    for stress in STRESSES:
        exact_under((f"--stress={stress}",))


# ------------------------------------------------------------------- functions

ONCE = """before plain(1)
after plain = 12, state 51
before outer(2)
before jumps(2)
left jumps, state 52
after outer = 102, state 52
before throws(3)
left throws, state 53
before ends(1)
left ends, state 51
declined(5)
allocated 77""".splitlines()


@test
def functions_are_wrapped_replaced_and_left():
    wrapped = program("wrapped.cpp", "-O1", "-pthread", "-rdynamic")
    for stress in ((), *((f"--stress={s}",) for s in STRESSES)):
        done = run(plugin("wraps.c"), *stress, wrapped)
        assert done.status == 0, done.err
        assert done.out == ("plain 1012\nouter 102\nthrown\nreplaced 7\ndeclined 1006\n"), done.out
        assert sorted(done.lines("wraps")) == sorted(ONCE), (stress, done.err)


@test
def a_call_is_left_before_the_outer_one_returns():
    done = run(plugin("wraps.c"), program("wrapped.cpp", "-O1", "-pthread", "-rdynamic"))
    lines = done.lines("wraps")
    assert lines.index("left jumps, state 52") < lines.index("after outer = 102, state 52"), lines


@test
def all_wraps_of_a_function_are_called():
    done = run(plugin("wraps.c"), "--twice=yes", program("wrapped.cpp", "-O1", "-pthread", "-rdynamic"))
    assert done.status == 0, done.err
    assert done.out == ("plain 2022\nouter 102\nthrown\nreplaced 7\ndeclined 1006\n"), done.out
    lines = done.lines("wraps")
    for part in (["before plain(1)", "before plain(11)", "after plain = 22, state 61",
                  "after plain = 1022, state 51"],
                 ["before throws(3)", "before throws(3)", "left throws, state 53", "left throws, state 53"],
                 ["before replaced(4)", "after replaced = 7, state 54"],
                 ["before declined(5)", "declined(5)", "after declined = 1006, state 55"],
                 ["before malloc(77)", "allocated 77"]):
        at = lines.index(part[0])
        assert lines[at:at + len(part)] == part, f"{part} in {lines}"


@test
def a_replacement_calls_a_function_of_the_client():
    wrapped = program("wrapped.cpp", "-O1", "-pthread", "-static", "-no-pie")
    done = run(plugin("wraps.c"), f"--called={lab.symbols(wrapped)['called']:#x}", wrapped)
    assert "called(4) = 12" in done.lines("wraps"), done.err


# ------------------------------------------------------------------- events

EVENTS = """options 1 12 default
thread 1 starts
thread 2 starts
thread 2 ends, its data is there
before getpriority(0, 0)
after: 20
signal 10
unmapped 8192 bytes
mapped 8192 bytes, protection 1
unmapped 8192 bytes
request 41: client, 1 1 0, in PROGRAM, 1 threads
thread 1 is in a child
the end
the end""".splitlines()


@test
def every_event_is_told():
    events = program("events.c", "-O1", "-g", "-pthread")
    done = run(plugin("events.c"), events)
    lines = [line.replace(os.path.basename(events), "PROGRAM") for line in done.lines("events")]
    assert done.status == 0 and done.out == "asked: 1\n", done.out + done.err
    assert lines == EVENTS, lines


@test
def contexts_and_names_are_known():
    done = run(plugin("events.c"), "--names=yes", program("events.c", "-O1", "-g", "-pthread"))
    lines = done.lines("events")
    assert "context is the same, has frames, innermost is right" in lines, done.err
    assert any(re.fullmatch(r"name ask \(events.c:\d+\)", line) for line in lines), lines


@test
def options_have_defaults_and_values():
    events = program("events.c", "-O1", "-g", "-pthread")
    done = run(plugin("events.c"), "--flag=no", "--number=0x20", "--text=a b", "--file=out.%p", events)
    assert done.lines("events")[0] == "options 0 32 a b", done.err
    written = [name for name in os.listdir(lab.WORK) if re.fullmatch(r"out\.\d+", name)]
    assert len(written) == 2, written  # the parent's and the child's
    help_text = run(plugin("events.c"), "--help").out
    assert "--number=NUMBER\n        A number. [12]\n" in help_text, help_text
    for word, reason in (("--number=x", "--number=x: a number, decimal or with 0x"),
                         ("--flag=maybe", "--flag=maybe: yes or no"),
                         ("--nothing=1", "it has no option --nothing; it has --flag, --number")):
        done = run(plugin("events.c"), word, events)
        assert done.status == CANNOT_RUN and reason in done.err, done.err
        assert len(done.err.splitlines()) <= 2, done.err  # the first option's line, and the reason


@test
def a_tool_goes_on_in_programs_that_are_executed():
    events = program("events.c", "-O1", "-g", "-pthread")
    done = run(plugin("events.c"), "--trace-children=yes", "--number=7", events, "exec")
    assert done.lines("events").count("options 1 7 default") == 2, done.err
    assert done.out == "asked: 1\n", done.out
    done = run(plugin("events.c"), events, "exec")
    assert done.lines("events").count("options 1 12 default") == 1, done.err


@test
def a_command_of_the_users_is_answered():
    runtime = os.path.join(lab.WORK, "runtime")
    os.makedirs(runtime, mode=0o700, exist_ok=True)
    env = {**os.environ, "XDG_RUNTIME_DIR": runtime}
    with subprocess.Popen([lab.MUNINN, f"--tool={plugin('events.c')}",
                           program("events.c", "-O1", "-g", "-pthread"), "wait"], env=env,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            assert process.stdout.readline() == "waits\n"
            pid = str(process.pid)
            answer = ask(env, pid, "greet", "you")
            assert answer.stdout == "hello you\n" and answer.returncode == 0, answer
            assert "greet NAME" in ask(env, pid, "help").stdout
            assert ask(env, pid, "dance").returncode != 0
            process.communicate("\n", timeout=lab.PATIENCE)
        finally:
            process.kill()


def ask(env, *words):
    until = time.monotonic() + 60
    while True:
        done = subprocess.run([lab.MUNINN, "ctl", *words], env=env, capture_output=True, text=True,
                              check=False, timeout=lab.PATIENCE)
        if "no program" not in done.stderr or time.monotonic() > until:
            return done
        time.sleep(0.1)


# ------------------------------------------------------------------- C++, threads, forks


@test
def callbacks_use_cxx_while_other_threads_fork():
    forks = program("forks.c", "-O1", "-pthread")
    native = lab.sh(forks)
    for stress in ((), ("--stress=signals",)):
        done = run(plugin("busy.cpp"), *stress, forks)
        assert done.status == 0 and done.out == native, (done.out, done.err)
        assert set(done.lines("busy")) <= {"done", "too little"} and "done" in done.lines("busy"), done.err


# ------------------------------------------------------------------- tools that are none


def refusal(tool, *words):
    done = run(tool, *words, "/bin/true")
    lines = done.err.splitlines()
    assert len(lines) == 1, done.err
    assert done.status in (1, CANNOT_RUN, 127), done.status
    return lines[0]


def other_version(name, version, minor):
    out = os.path.join(lab.WORK, name + ".so")
    lab.sh("gcc", "-shared", "-fPIC", f"-DVERSION={version}", f"-DMINOR={minor}", "-o", out,
           f"{lab.HERE}/plugins/other_version.c", *lab.header_flags())
    return out


@test
def what_cannot_be_loaded_gets_one_clear_line():
    text = os.path.join(lab.WORK, "text.so")
    with open(text, "w", encoding="utf-8") as file:
        file.write("this is a text\n")
    for tool, reason in (
            ("/no/such/tool.so", "No such file or directory"),
            (text, "file too short|invalid ELF header"),
            (plugin("no_tool.c"), "this is no tool: it has no MUNINN_TOOL"),
            (plugin("no_start.c"), "it defines no muninn_tool_start"),
            (other_version("old", 0, 0), "made for version 0 of the tool interface, and this is version 1"),
            (other_version("new", 99, 0), "made for version 99 of the tool interface"),
            (other_version("newer", 1, 99), "needs a newer muninn"),
            (other_version("lacks", 1, 0), "undefined symbol: muninn_of_the_future")):
        line = refusal(tool)
        assert re.search(reason, line) and f"--tool={tool}: " in line, line


@test
def a_tool_that_does_not_want_to_start_ends_the_run():
    done = run(plugin("crash.c"), "--where=fails", "/bin/echo", "it runs")
    assert done.status == CANNOT_RUN and done.out == "", done
    assert done.err == ("crash: there is no reason\n"
                        "muninn: crash: muninn_tool_start() has returned 3\n"), done.err


# ------------------------------------------------------------------- tools that crash


@test
def a_crash_of_the_tool_is_told_as_such():
    places = {
        "start": "muninn_tool_start",
        "block": "muninn_on_block",
        "call": "a call in a block",
        "end": "muninn_on_end",
        "thread": "muninn_on_thread_start",
        "syscall": "muninn_on_syscall_before",
        "wrap": "muninn_wrap",
    }
    crash = plugin("crash.c")
    victim = program("flows.c", "-g", "-O1")
    for where, name in places.items():
        for how in ("segv", "strlen", "abort"):
            done = run(crash, f"--where={where}", f"--how={how}", victim)
            told = "called abort()" if how == "abort" else "crashed (signal 11 at "
            assert f"the tool crash has {told}" in done.err, (where, how, done.err)
            assert f", in a callback of {name}" in done.err, (where, how, done.err)
            assert "internal error" not in done.err and "bug of muninn" not in done.err, done.err
            assert done.status < 0 or done.status > 1, (where, how, done.status)
    done = run(crash, "--where=hot", victim)
    assert f"the tool crash has crashed (signal {int(signal.SIGSEGV)} at {crash}+0x" in done.err, done.err
