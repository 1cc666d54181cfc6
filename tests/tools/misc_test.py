# SPDX-License-Identifier: MIT
"""Allocation events, buffers of threads that fault and fork, and tools that use the interface wrongly."""
import os
import re

import lab
from lab import STRESSES, plugin, program, run
from suite import test


@test
def allocations_are_told_once_in_every_form():
    path = f"{lab.HERE}/programs/allocations.cpp"
    with open(path, encoding="utf-8") as file:
        expected = re.findall(r"TOLD (.*)$", file.read(), re.M)
    for flags in (("-O1",), ("-O1", "-static")):
        for stress in ((), ("--stress=tiny-blocks",)):
            done = run(plugin("allocs.c"), *stress, program("allocations.cpp", *flags))
            assert done.status == 0, done.err
            # In a static program libc's own allocations come before and after.
            lines = done.lines("allocs")
            at = lines.index(expected[0]) if expected[0] in lines else 0
            assert lines[at:at + len(expected)] == expected, (flags, stress, lines)
            assert "-static" in flags or len(lines) == len(expected), lines


@test
def a_call_on_another_stack_goes_on_after_the_one_that_started_it():
    done = run(plugin("wraps.c"), program("coroutine.c", "-O1", "-rdynamic"))
    assert done.status == 0 and done.out == "done\n", done.err
    assert done.lines("wraps") == ["before outer(2)", "before inner(1)", "after outer = 4, state 52",
                                   "after inner = 2, state 51"], done.err


@test
def the_headers_go_together_in_c_and_cxx():
    source = os.path.join(lab.WORK, "headers.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include <muninn/client.h>\n#include <muninn/tool.h>\n'
                   'MUNINN_TOOL("headers", "nothing")\n')
    for words in (["gcc", "-std=c99"], ["gcc", "-std=c11"], ["gcc", "-std=c17"],
                  ["g++", "-x", "c++", "-std=c++11"], ["g++", "-x", "c++", "-std=c++20"]):
        lab.sh(*words, "-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsyntax-only", *lab.header_flags(),
               source)


@test
def an_option_that_muninn_has_itself_is_refused():
    done = run(plugin("misuse.c"), "--how=taken-name", "/bin/true")
    assert done.status == 126 and "--stats is an option of Muninn's own" in done.err, done.err


def recorded(stress, *arguments, size=1000):
    """Whether buffers have what the program says that it has done."""
    faults = program("faults.c", "-O1", "-no-pie", "-static", "-pthread")
    names = lab.symbols(faults)
    log = os.path.join(lab.WORK, f"records{''.join(stress + arguments)}{size}.%p".replace("=", ""))
    done = run(plugin("records.c"), *stress, f"--log-file={log}", f"--size={size}",
               f"--from={names['step']:#x}", f"--to={names['step_end']:#x}", faults, *arguments)
    assert done.status == 0, done.err
    for pid, begun, also_begun, ended in (line.split() for line in done.out.splitlines()):
        with open(log.replace("%p", pid), encoding="utf-8") as file:
            text = file.read()
        seen = {int(at): int(n) for at, n in re.findall(r"^records: \+(\d+) (\d+)$", text, re.M)}
        # incq (%rdi); incq 8(%rdi); movq (%rsi), %rax; incq 16(%rdi); ret
        expected = {0: int(begun), 3: int(also_begun), 10: int(ended), 14: int(ended)}
        # The access that may fault is begun again where a signal comes before that of the fault.
        again = seen.pop(7) - int(begun)
        assert 0 <= again <= int(begun) - int(ended), f"{again} times more than {begun}"
        assert seen == expected, f"{stress} {arguments}: {seen} instead of {expected}"
        assert "the second buffer" not in text, text


@test
def buffers_have_every_access_with_faults_signals_threads_and_forks():
    recorded(())
    recorded((), "fork", size=100000)


@test
def buffers_have_every_access_under_stress():
    for stress in STRESSES:
        recorded((f"--stress={stress}",))


@test
def wrong_uses_get_a_clear_line():
    for how, reason in (
            ("late-wish", "muninn_on_block may be called in muninn_tool_start"),
            ("late-option", "muninn_option may be called in muninn_tool_start"),
            ("no-insn", "muninn_block_insn: 1000 of a block of"),
            ("no-function", "a call in a block needs a function"),
            ("no-word", "muninn_update: there is no word 99"),
            ("no-register", "muninn_update: there is no register 99"),
            ("old-insn", "after its block callback had returned"),
            ("many-words", "muninn_word: there are no more than 16"),
            ("many-buffers", "muninn_buffer: "),
            ("client-call", "muninn_call_client may not be called by a block"),
            ("module", "muninn_module_at may not be called by a block"),
            ("allocation", "muninn_call_client may not be called by a block"),
            ("empty-wrap", "muninn_wrap: main: there is nothing to call"),
            ("no-callback", "muninn_on_end: there is no function")):
        done = run(plugin("misuse.c"), f"--how={how}", "/bin/ls", "/")
        assert re.search(rf"^muninn: misuse: .*{reason}", done.err, re.M), (how, done.err)
        assert done.status == 126 and len(done.err.splitlines()) == 1, (how, done.status, done.err)
