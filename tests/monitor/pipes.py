# SPDX-License-Identifier: MIT
"""The monitor among other processes: it keeps no pipe open, stops and ends with the program as far
as a user can see, and reports in step with the program's own output."""

import os
import pty
import re
import select
import signal
import subprocess
import time

from world import (
    LIMIT,
    MUNINN,
    WORK,
    clean_environment,
    command,
    folder,
    let_go,
    read_within,
    reads,
    run,
    start,
    summary,
    test,
    wait_for,
    wait_for_end,
)


@test
def a_pipe_ends_with_the_program():
    """Although a child of it lives on, whose monitor lives too."""
    where = folder()
    process = start(
        "find",
        1,
        "forknowait",
        "closerange",
        "find",
        2,
        "pause",
        "end",
        "out",
        "x",
        options=[f"--log-file={where}/%p"],
        stderr=subprocess.DEVNULL,
    )
    data, ended = read_within(process.stdout.fileno(), LIMIT)
    process.wait()
    process.stdout.close()

    def children():
        names = [int(path.name) for path in where.iterdir() if reads(path.read_text()) == [2]]
        return [pid for pid in names if pid != process.pid]

    child = wait_for(children, what="the child's report")[0]
    os.kill(child, signal.SIGTERM)
    assert ended and data == b"x\n", (data, ended)
    assert summary(wait_for_end(where / str(child))) == (1, 1)


@test
def a_command_substitution_ends_with_the_program():
    script = 'x=$("$@" 2>/dev/null); echo "got $x"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *command("out", "hello", "find", 1)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        cwd=WORK,
        env=clean_environment(),
    )
    assert done.stdout == "got hello\n", done


@test
def a_reader_that_has_enough_ends_the_program():
    done = subprocess.run(
        [
            "bash",
            "-c",
            '"$@" 2>err | head -n 3; echo "${PIPESTATUS[0]}"',
            "bash",
            *command("loop", 100000, options=["--error-limit=no"]),
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        cwd=folder(),
        env=clean_environment(),
    )
    lines = done.stdout.split()
    assert lines[:3] == ["0", "1", "2"] and lines[3] == str(128 + signal.SIGPIPE), done


@test
def standard_error_ends_too():
    process = start("find", 1, stdout=subprocess.DEVNULL)
    data, ended = read_within(process.stderr.fileno(), LIMIT)
    assert ended and summary(data.decode()) == (1, 1), data
    assert process.wait() == 0
    process.stderr.close()


@test
def the_report_is_written_when_the_program_has_ended():
    """What a script greps for after the command is there, always."""
    for _ in range(15):
        log = folder() / "log"
        run("find", 1, "find", 2, options=[f"--log-file={log}"])
        assert summary(log.read_text()) == (2, 2)


@test
def interrupting_the_group_ends_the_client_and_gives_the_report():
    log = folder() / "log"
    process = start(
        "find", 1, "out", "ready", "pause", options=[f"--log-file={log}"], start_new_session=True
    )
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=LIMIT) == -signal.SIGINT
    text = wait_for_end(log)
    assert reads(text) == [1] and summary(text) == (1, 1), text
    process.stdout.close()
    process.stderr.close()


@test
def a_stopped_job_goes_on():
    log = folder() / "log"
    process = start(
        "find",
        1,
        "out",
        "ready",
        "await",
        "find",
        2,
        options=[f"--log-file={log}"],
        process_group=0,
        stdin=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status
    os.killpg(process.pid, signal.SIGCONT)
    let_go(process)
    assert process.wait(timeout=LIMIT) == 0
    assert reads(wait_for_end(log)) == [1, 2]
    process.stdout.close()
    process.stderr.close()


@test
def control_c_on_a_terminal_reaches_the_client_only():
    log = folder() / "log"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(WORK)
        os.execve(
            MUNINN,
            command("find", 1, "out", "ready", "pause", options=[f"--log-file={log}"]),
            clean_environment(),
        )
    data = b""
    while b"ready" not in data:
        assert select.select([terminal], [], [], LIMIT)[0], data
        data += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, status
    assert summary(wait_for_end(log)) == (1, 1)
    os.close(terminal)


@test
def reports_stand_where_they_happened_in_the_programs_output():
    words = []
    for number in range(30):
        words += ["err", f"line-{number}", "find", number]
    for kind in ("find", "fast"):
        if kind == "fast":
            words = []
            for number in range(30):
                words += ["err", f"line-{number}", "fast", 2, number, 0, 0, "", 0]
        done = run(*words)
        order = re.findall(r"^line-(\d+)$|Invalid read of size (\d+)", done.log, re.MULTILINE)
        flat = [a or b for a, b in order]
        assert flat == [str(n) for n in range(30) for _ in (0, 1)], flat
        # A report is whole before the next line of the program.
        for block in re.split(r"^line-\d+\n", done.log, flags=re.MULTILINE)[1:]:
            assert re.match(r"(==\d+== [^\n]*\n)+$", block), block


@test
def printed_texts_stand_where_they_were_printed():
    done = run("err", "a", "print", "one", "err", "b", "backtrace", "two", "err", "c")
    order = re.findall(r"^(?:a|b|c|\*\*\d+\*\* (?:one|two))$", done.log, re.MULTILINE)
    assert [o.split()[-1] for o in order] == ["a", "one", "b", "two", "c"], done


@test
def a_slow_reader_of_the_log_loses_nothing():
    process = start(
        "many", 1500, options=["--error-limit=no", "--log-fd=2"], stdout=subprocess.DEVNULL
    )
    time.sleep(1)  # the pipe is full long since
    data = b""
    while piece := os.read(process.stderr.fileno(), 3000):
        data += piece
        if len(data) < 60000:
            time.sleep(0.01)
    assert process.wait() == 0
    process.stderr.close()
    text = data.decode()
    assert reads(text) == list(range(1500)) and summary(text) == (1500, 1500), summary(text)


@test
def a_reader_of_the_log_that_goes_away_does_not_stop_the_program():
    process = start("many", 500, "exit", 3)
    os.read(process.stderr.fileno(), 100)
    process.stderr.close()
    assert process.wait(timeout=LIMIT) == 3
    process.stdout.close()
