# SPDX-License-Identifier: MIT
"""However the client ends, the report is whole; whatever the monitor does, the client goes on."""

import os
import random
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from world import (
    LIMIT,
    died_of,
    folder,
    kill_monitor,
    let_go,
    monitor_of,
    monitors_of,
    reads,
    run,
    start,
    summary,
    test,
    wait_for,
    wait_for_end,
    wait_for_json,
    wait_for_xml,
)

KILLS = 200


def answered(out):
    """The numbers that the client printed in full lines."""
    return [int(line) for line in out.split(b"\n")[:-1]]


def kill_once(seed):
    """Kills a client in the middle of its findings; all that it knows of must be in the reports."""
    where = folder()
    options = ["--error-limit=no", f"--log-file={where}/log", f"--json-file={where}/json"]
    process = start("loop", 100000, options=options, stderr=subprocess.DEVNULL)
    # From before the first instruction to some hundred findings in.
    chance = random.Random(seed)
    out = b"".join(process.stdout.readline() for _ in range(chance.choice((0, 1, 2, 5, 30, 150))))
    time.sleep(chance.uniform(0, 0.02))
    process.kill()
    out += process.stdout.read()
    process.stdout.close()
    process.wait()
    known = answered(out)
    if not known:
        return 0  # killed before it had begun: there may be no monitor yet
    log = wait_for_end(where / "log")
    missing = set(known) - set(reads(log))
    assert not missing, f"seed {seed}: answered but not in the log: {sorted(missing)[:5]}"
    errors, contexts = summary(log)
    assert errors == contexts == len(reads(log)), f"seed {seed}: {errors} {contexts}"
    assert len(reads(log)) - len(known) in (0, 1), "at most one can have been under way"
    document = wait_for_json(where / "json")
    assert len(document["findings"]) == errors, f"seed {seed}: {len(document['findings'])}"
    return len(known)


@test
def a_client_killed_at_random_moments_200_times_loses_nothing():
    with ThreadPoolExecutor(3) as pool:
        counts = list(pool.map(kill_once, range(KILLS)))
    assert sum(1 for count in counts if count) > KILLS / 4, f"too few were under way: {counts}"


@test
def xml_is_whole_after_a_kill():
    for seed in range(6):
        where = folder()
        process = start(
            "loop",
            100000,
            options=["--xml=yes", f"--xml-file={where}/xml"],
            stderr=subprocess.DEVNULL,
        )
        for _ in range(3 + seed * 5):
            process.stdout.readline()
        process.kill()
        known = 3 + seed * 5 + len(answered(process.stdout.read()))
        process.stdout.close()
        process.wait()
        root = wait_for_xml(where / "xml")
        assert len(root.findall("error")) in (known, known + 1), known
        states = [s.text for s in root.findall("status/state")]
        assert states == ["RUNNING", "FINISHED"], states


@test
def every_way_to_die_gives_a_report_and_the_right_status():
    for how, number in (
        ("abort", signal.SIGABRT),
        ("segv", signal.SIGSEGV),
        ("fpe", signal.SIGFPE),
        ("term", signal.SIGTERM),
        ("kill", signal.SIGKILL),
        ("oom", signal.SIGKILL),
    ):
        log = folder() / "log"
        done = run("find", 1, "find", 2, "die", how, options=[f"--log-file={log}"])
        died_of(done, number)
        text = wait_for_end(log)
        assert reads(text) == [1, 2] and summary(text) == (2, 2), f"{how}: {text}"


@test
def a_fatal_signal_is_reported_with_its_stack():
    done = run("die", "segv")
    died_of(done, signal.SIGSEGV)
    assert re.search(
        r"==\d+== Process terminating with default action of signal 11 \(SIGSEGV\)\n"
        r"==\d+==  Access not within mapped region at address 0x8\n"
        r"==\d+==    at 0x[0-9A-F]+: die \(actor.c:\d+\)\n",
        done.log,
    ), done
    assert "overflow" not in done.log, done
    done = run("die", "abort")
    died_of(done, signal.SIGABRT)
    assert "terminating with default action of signal 6 (SIGABRT)" in done.log, done


@test
def a_stack_that_is_full_is_told_as_such():
    for how, thread in (("overflow", 1), ("overflow-thread", 2)):
        done = run("die", how)
        died_of(done, signal.SIGSEGV)
        told = re.search(r" at address 0x([0-9A-F]+)\n==\d+== Stack overflow in thread #(\d): can't "
                         r"grow stack to 0x([0-9a-f]+)\n==\d+==    at 0x[0-9A-F]+: use_stack ",
                         done.log)
        assert told, done.log
        assert int(told[1], 16) & ~4095 == int(told[3], 16) and int(told[2]) == thread, told[0]
        advice = "The main thread stack size used in this run was 8388608." in done.log
        assert advice == (thread == 1), done.log


@test
def an_exit_in_any_way_gives_a_report():
    for words, status in ((("exit", 7), 7), (("die", "_exit"), 9), (("rawexit", 4), 4), ((), 0)):
        done = run("find", 1, *words)
        assert done.status == status and summary(done.log) == (1, 1), done


@test
def an_exit_status_is_the_clients_unless_asked_otherwise():
    for options, words, status in (
        ([], ["find", 1, "exit", 3], 3),
        (["--error-exitcode=42"], ["find", 1, "exit", 3], 42),
        (["--error-exitcode=42"], ["exit", 3], 3),
        (["--error-exitcode=42"], ["find", 1], 42),
    ):
        done = run(*words, options=options)
        assert done.status == status, f"{options} {words}\n{done}"
    done = run("find", 1, "die", "kill", options=["--error-exitcode=42"])
    died_of(done, signal.SIGKILL)
    died_of(run("find", 1, "die", "abort", options=["--error-exitcode=42"]), signal.SIGABRT)


@test
def the_client_outlives_its_monitor_with_one_warning():
    for words, seen in (
        # Found out at the next finding, by many threads at once, or at the end.
        (["find", 1, "out", "ready", "await", "find", 2, "find", 3, "exit", 6], 1),
        (["out", "ready", "await", "threads", 20, 3, "find", 3, "exit", 6], 0),
        (["find", 1, "out", "ready", "await", "exit", 6], 1),
        (["find", 1, "out", "ready", "await", "print", "x", "print", "y", "exit", 6], 1),
    ):
        log = folder() / "log"
        options = [f"--log-file={log}", "--error-exitcode=9"]
        process = start(*words, options=options, stdin=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        kill_monitor(log)
        let_go(process)
        out, err = process.communicate(timeout=LIMIT)
        # Nobody has judged the run: that is no success.
        assert process.returncode == 9, (words, process.returncode, err)
        text = log.read_text()
        for place in (text, err.decode()):
            warnings = [line for line in place.splitlines() if "monitor" in line]
            assert len(warnings) == 1, (words, place)
        assert len(reads(text)) == seen and "SUMMARY" not in text, text


@test
def a_monitor_that_is_stopped_holds_the_client_and_no_more():
    log = folder() / "log"
    process = start(
        "out",
        "ready",
        "await",
        "find",
        1,
        "out",
        "past",
        options=[f"--log-file={log}"],
        stdin=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    monitor = monitor_of(log)
    os.kill(monitor, signal.SIGSTOP)
    let_go(process)
    time.sleep(0.6)
    assert process.poll() is None
    os.kill(monitor, signal.SIGCONT)
    assert process.communicate(timeout=LIMIT)[0] == b"past\n"
    assert summary(log.read_text()) == (1, 1)


@test
def no_monitor_stays_behind():
    log = folder() / "log"
    run("find", 1, "fork", "find", 2, "end", options=[f"--log-file={log}"])
    wait_for(lambda: not monitors_of(log), what="the end of the monitors")
