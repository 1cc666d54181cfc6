# SPDX-License-Identifier: MIT
"""The error manager: what is the same error, limits, counts, lists, requests, suppressions."""

import os
import re
import subprocess
import time
from pathlib import Path

from world import (
    VALGRIND,
    WORK,
    clean_environment,
    command,
    folder,
    monitors,
    need,
    reads,
    run,
    start,
    summary,
    test,
)


def supp(*frames, kind="Memcheck:Addr1", name="s"):
    """A suppression file for the actor's find 1."""
    path = folder() / "file.supp"
    lines = "\n".join(f"   {f}" for f in frames)
    path.write_text(f"{{\n   {name}\n   {kind}\n{lines}\n}}\n")
    return path


# ------------------------------------------------------------------------ what is the same


@test
def four_frames_tell_errors_apart():
    # Four ways that differ in frames 5 and 6 are one error, in frames 3 and 4 four.
    assert summary(run("ways", "far").log) == (4, 1)
    assert summary(run("ways", "near").log) == (4, 4)


@test
def two_frames_after_a_hundred():
    done = run("many", 100, "ways", "near")
    assert summary(done.log) == (104, 101), done.log[-300:]
    done = run("ways", "near", "many", 100, "ways", "near")
    # What was told apart before stays so; what comes later counts for the first.
    assert summary(done.log) == (108, 104), done.log[-300:]


@test
def repetitions_are_counted_and_not_shown():
    done = run("again", 100000, options=["-s"])
    assert reads(done.log) == [5, 5], done  # the second in the list
    assert summary(done.log) == (100000, 1), done
    assert re.search(r"==\d+== 100000 errors in context 1 of 1:\n", done.log), done


@test
def a_finding_made_inside_the_cache_is_the_same():
    done = run(*["fast", 2, 4, 0, 0, "", 0] * 3)
    assert reads(done.log) == [4] and summary(done.log) == (3, 1), done


@test
def values_and_texts_tell_errors_apart():
    done = run(
        *[
            w
            for text in ("write(buf)", "read(fd)", "write(buf)")
            for w in ("kind", 5, 1, 0, 0, text, 0)
        ]
    )
    assert summary(done.log) == (3, 2), done


# --------------------------------------------------------------------------------- limits

CUTOFF = r"""==\d+== 
==\d+== More than 1000 different errors detected.  I'm not reporting any more.
==\d+== Final error counts will be inaccurate.  Go fix your program!
==\d+== Rerun with --error-limit=no to disable this cutoff.  Note
==\d+== that errors may occur in your program without prior warning from
==\d+== Muninn, because errors are no longer being displayed.
==\d+== 
"""


@test
def a_thousand_errors_are_enough():
    done = run("many", 1200, "exit", 3, options=["--error-exitcode=7"])
    assert done.status == 7 and reads(done.log) == list(range(1000)), done
    assert len(re.findall(CUTOFF, done.log)) == 1, done.log[-2000:]
    assert summary(done.log)[1] == 1000, summary(done.log)


@test
def no_limit_when_asked():
    done = run("many", 1200, options=["--error-limit=no"])
    assert reads(done.log) == list(range(1200)) and summary(done.log) == (1200, 1200)
    assert "More than" not in done.log


@test
def the_number_of_callers():
    for number in (1, 2, 5, 30, 500):
        done = run("deep", 600, options=[f"--num-callers={number}"])
        frames = len(re.findall(r"==\d+==    (?:at|by) ", done.log))
        assert frames == number, (number, frames)
    assert len(re.findall(r"==\d+==    (?:at|by) ", run("deep", 600).log)) == 12


@test
def stacks_end_at_main_unless_asked():
    assert "__libc_start" not in run("find", 1).log
    assert re.search(
        r"\(below main\)|__libc_start", run("find", 1, options=["--show-below-main=yes"]).log
    )


@test
def the_first_error_ends_the_run_when_asked():
    done = run(
        "out",
        "before",
        "find",
        1,
        "out",
        "after",
        "find",
        2,
        options=["--exit-on-first-error=yes", "--error-exitcode=9"],
    )
    assert done.status == 9 and done.out == "before\n", done
    assert reads(done.log) == [1], done
    done = run(
        "fast",
        2,
        4,
        0,
        0,
        "",
        0,
        "out",
        "after",
        options=["--exit-on-first-error=yes", "--error-exitcode=9"],
    )
    assert done.status == 9 and done.out == "", done


@test
def the_first_error_is_one_that_counts():
    done = run(
        "find",
        1,
        "out",
        "after",
        "find",
        2,
        "out",
        "never",
        options=[
            "--exit-on-first-error=yes",
            "--error-exitcode=9",
            f"--suppressions={supp('fun:muninn_test_finding')}",
        ],
    )
    assert done.status == 9 and done.out == "after\n", done


# ---------------------------------------------------------------------------------- lists


@test
def lists_when_asked():
    for options in (["-s"], ["--show-error-list=yes"]):
        done = run("find", 1, "find", 2, "find", 2, options=options)
        assert summary(done.log) == (3, 2), done
        assert re.search(
            r"==\d+== 1 errors in context 1 of 2:\n==\d+== Invalid read of size 1\n", done.log
        ), done
        assert "For lists of" not in done.log, done
    done = run("find", 1)
    assert "For lists of detected and suppressed errors, rerun with: -s" in done.log, done
    assert not re.search(r"errors in context", done.log), done


@test
def silence():
    assert run("out", "x", options=["-q"]).log == ""
    done = run("find", 1, options=["-q"])
    assert reads(done.log) == [1] and "SUMMARY" not in done.log and "Command" not in done.log, done


@test
def markers_stand_around_errors():
    done = run("find", 1, "find", 2, options=["--error-markers=BEGIN,END"])
    blocks = re.findall(r"==\d+== BEGIN\n(.*?)==\d+== END\n", done.log, re.DOTALL)
    assert len(blocks) == 2 and reads(blocks[0]) == [1] and reads(blocks[1]) == [2], done


# ------------------------------------------------------------------------------- requests


@test
def requests_stop_and_count_errors():
    done = run(
        "find", 1, "count", "quiet", "find", 2, "count", "loud", "find", 3, "find", 3, "count"
    )
    assert done.out.split() == ["1", "1", "3"], done
    assert reads(done.log) == [1, 3] and summary(done.log) == (3, 2), done
    # Disabling nests.
    done = run("quiet", "quiet", "loud", "find", 1, "loud", "find", 2)
    assert reads(done.log) == [2], done


@test
def suppressed_errors_are_not_counted_by_requests():
    done = run(
        "find", 1, "find", 2, "count", options=[f"--suppressions={supp('fun:muninn_test_finding')}"]
    )
    assert done.out == "1\n", done


@test
def printed_text_is_the_incumbents():
    """With the incumbent's own header, which the client was compiled with."""
    need(VALGRIND)

    def text(argv):
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=120, env=clean_environment()
        )
        lines = re.sub(r"\d+(?=\*\*|==)", "PID", done.stderr)
        lines = re.sub(r"0x[0-9A-F]+", "ADDR", lines)
        return [
            line for line in lines.splitlines() if re.match(r"\*\*PID|==PID==    (at|by)", line)
        ]

    ours = text(command(program=WORK / "prints"))
    theirs = text([VALGRIND, "--tool=none", WORK / "prints"])
    assert ours == theirs, f"ours: {ours}\ntheirs: {theirs}"


# --------------------------------------------------------------------------- suppressions


@test
def a_suppressed_error_is_counted_and_costs_nothing():
    file = supp(
        "fun:muninn_test_finding", "fun:find", "...", "fun:main", name="a name, with blanks"
    )
    done = run(
        "find", 1, "find", 1, "exit", 5, options=[f"--suppressions={file}", "--error-exitcode=9"]
    )
    assert done.status == 5 and reads(done.log) == [], done
    assert "ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 2 from 1)" in done.log, done
    done = run("find", 1, "find", 1, options=[f"--suppressions={file}", "-s"])
    assert re.search(
        rf"==\d+== used_suppression: +2 a name, with blanks {re.escape(str(file))}:2\n", done.log
    ) or re.search(
        rf"--\d+-- used_suppression: +2 a name, with blanks {re.escape(str(file))}:2\n", done.log
    ), done


@test
def suppressions_are_by_kind_and_stack():
    for file in (
        supp("fun:muninn_test_finding", kind="Memcheck:Addr2"),
        supp("fun:muninn_test_finding", kind="Helgrind:Race"),
        supp("fun:find"),
        supp("fun:muninn_test_finding", "fun:main"),
    ):
        done = run("find", 1, options=[f"--suppressions={file}"])
        assert reads(done.log) == [1], (file.read_text(), done.log)
    for frames in (
        ("obj:*/actor",),
        ("src:actor.c", "...", "fun:main"),
        ("...", "fun:do_find"),
        ("fun:m*_finding",),
    ):
        done = run("find", 1, options=[f"--suppressions={supp(*frames)}"])
        assert reads(done.log) == [], (frames, done.log)


@test
def a_bad_suppression_file_is_refused_before_the_program_runs():
    bad = folder() / "bad.supp"
    bad.write_text("{\n   name\n   Memcheck:Leak\n   nonsense\n}\n")
    done = run("out", "ran", options=[f"--suppressions={bad}"])
    assert done.status == 1 and done.out == "", done
    assert re.search(rf"{re.escape(str(bad))}:4", done.log) and done.log.count("\n") == 1, done
    done = run("out", "ran", options=["--suppressions=/nowhere/at.all"])
    assert done.status == 1 and done.out == "" and "/nowhere/at.all" in done.log, done


@test
def generated_suppressions_suppress():
    done = run("find", 1, "find", 2, options=["--gen-suppressions=all"])
    entries = re.findall(r"^\{\n(?:   .*\n)+\}$", done.log, re.MULTILINE)
    assert len(entries) == 2, done
    file = folder() / "made.supp"
    file.write_text("\n".join(entries) + "\n")
    done = run("find", 1, "find", 2, options=[f"--suppressions={file}"])
    assert summary(done.log) == (0, 0) and "(suppressed: 2 from 2)" in done.log, done


@test
def suppressions_are_generated_by_answers():
    prompt = r"---- Print suppression \? --- \[Return/N/n/Y/y/C/c\] ---- "
    for answers, wanted, asked in (
        ("y\nn\nY\n", [1, 3], 3),
        ("\ny\n\n", [2], 3),
        ("C\n", [], 1),
        ("y\nc\n", [1], 2),
        ("", [], 1),
    ):
        done = run(
            "find", 1, "find", 2, "find", 3, options=["--gen-suppressions=yes"], input=answers
        )
        assert reads(done.log) == [1, 2, 3] and done.status == 0, done
        assert len(re.findall(prompt, done.log)) == asked, (answers, done.log)
        made = [int(n) for n in re.findall(r"^   Memcheck:Addr(\d)$", done.log, re.MULTILINE)]
        assert made == wanted, (answers, made, done.log)


@test
def answers_may_come_on_another_descriptor():
    reader, writer = os.pipe()
    os.write(writer, b"y\n")
    os.close(writer)
    done = subprocess.run(
        command("find", 1, options=["--gen-suppressions=yes", f"--input-fd={reader}"]),
        pass_fds=[reader],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        env=clean_environment(),
    )
    os.close(reader)
    assert re.search(r"^   Memcheck:Addr1$", done.stderr, re.MULTILINE), done


# ------------------------------------------------------------------------------ many, huge


def peak_kib(process):
    """The most memory that a monitor of the run has had."""
    marks = []
    while process.poll() is None:
        for pid, argv in monitors().items():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
                marks += [int(n) for n in re.findall(r"VmRSS:\s+(\d+)", status)]
            except OSError:
                pass
        time.sleep(0.2)
    return max(marks)


@test
def a_hundred_thousand_different_errors():
    log = folder() / "log"
    process = start(
        "many",
        100000,
        options=["--error-limit=no", f"--log-file={log}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak = peak_kib(process)
    assert process.returncode == 0
    assert summary(log.read_text()) == (100000, 100000)
    # About 2.5 KiB for each: it stays in the list that -s would show.
    assert peak < 400 * 1024, f"{peak} KiB"


@test
def long_texts_are_shown():
    text = "x" * 200
    done = run("kind", 5, 1, 0, 0, f"{text}(y)", 0)
    assert f"Syscall param {text}(y) points to" in done.log, done
    done = run("print", "z" * 3000)
    assert "z" * 3000 in done.log, done
