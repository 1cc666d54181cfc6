# SPDX-License-Identifier: MIT
"""Processes that the client makes: each has its own report with its own pid, and the right one."""

import os
import re
import signal
import subprocess

from world import (
    ACTOR,
    LIMIT,
    MUNINN,
    Skip,
    WORK,
    clean_environment,
    folder,
    kill_monitor,
    let_go,
    reads,
    run,
    start,
    summary,
    test,
    wait_for,
)


def logs(where, count, seconds=LIMIT):
    """{pid: text} of the finished logs in the folder, when there are that many."""

    def all_there():
        found = {int(p.name): p.read_text() for p in where.iterdir() if p.name.isdigit()}
        whole = {k: v for k, v in found.items() if "ERROR SUMMARY" in v}
        return whole if len(whole) >= count else None

    found = wait_for(all_there, seconds, f"{count} logs")
    for pid, text in found.items():
        prefixes = set(re.findall(r"^==(\d+)==", text, re.MULTILINE))
        assert prefixes == {str(pid)}, f"log of {pid} has lines of {prefixes}"
        assert text.count("ERROR SUMMARY") == 1, text
    return found


@test
def a_child_has_its_own_report():
    where = folder()
    run(
        "find",
        1,
        "fork",
        "find",
        2,
        "find",
        3,
        "end",
        "find",
        4,
        options=[f"--log-file={where}/%p"],
    )
    found = sorted(reads(text) for text in logs(where, 2).values())
    assert found == [[1, 4], [2, 3]], found


@test
def reports_on_one_descriptor_tell_processes_apart():
    done = run("find", 1, "fork", "find", 2, "end", "find", 3)
    by_pid = {}
    for pid, size in re.findall(r"==(\d+)== Invalid read of size (\d+)", done.log):
        by_pid.setdefault(pid, []).append(int(size))
    assert sorted(by_pid.values()) == [[1, 3], [2]], done
    assert done.log.count("ERROR SUMMARY") == 2, done


@test
def grandchildren_have_theirs():
    where = folder()
    run(
        "find",
        1,
        "fork",
        "find",
        2,
        "fork",
        "find",
        3,
        "fork",
        "find",
        4,
        "end",
        "end",
        "end",
        options=[f"--log-file={where}/%p"],
    )
    found = sorted(reads(text) for text in logs(where, 4).values())
    assert found == [[1], [2], [3], [4]], found


@test
def a_pipe_takes_the_reports_of_children_too():
    """No file of another name appears beside it, as none does beside /dev/null."""
    where = folder()
    os.mkfifo(where / "pipe")
    with subprocess.Popen(["cat", where / "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        with open(where / "pipe", "wb"):  # so that it does not end before the last has written
            run("fork", "find", 2, "end", "waitall", "find", 1,
                options=[f"--json-file={where}/pipe"])
        text = reader.stdout.read()
    assert text.count('"format": "muninn-report"') == 2, text
    assert [p.name for p in where.iterdir()] == ["pipe"], list(where.iterdir())


@test
def a_grandchild_of_a_silent_child_has_its_own():
    where = folder()
    run("fork", "fork", "fork", "find", 4, "end", "end", "end", options=[f"--log-file={where}/%p"])
    found = wait_for(lambda: [t for t in logs(where, 1).values() if reads(t) == [4]])
    assert len(found) == 1


@test
def a_child_that_outlives_its_parent_still_reports():
    where = folder()
    done = run(
        "find",
        1,
        "forknowait",
        "sleep",
        500,
        "find",
        2,
        "end",
        "exit",
        3,
        options=[f"--log-file={where}/%p"],
    )
    assert done.status == 3
    found = sorted(reads(text) for text in logs(where, 2).values())
    assert found == [[1], [2]], found


@test
def a_child_of_a_killed_parent_still_reports():
    where = folder()
    run(
        "find",
        1,
        "forknowait",
        "sleep",
        500,
        "find",
        2,
        "end",
        "die",
        "kill",
        options=[f"--log-file={where}/%p"],
    )
    found = sorted(reads(text) for text in logs(where, 2).values())
    assert found == [[1], [2]], found


@test
def a_killed_child_has_a_report():
    where = folder()
    run("fork", "find", 2, "die", "kill", "end", "find", 1, options=[f"--log-file={where}/%p"])
    found = sorted(reads(text) for text in logs(where, 2).values())
    assert found == [[1], [2]], found


@test
def a_childs_findings_are_not_its_parents():
    done = run("find", 1, "fork", "find", 1, "end", "find", 1, options=[f"--error-exitcode=5"])
    assert sorted(re.findall(r"ERROR SUMMARY: (\d+)", done.log)) == ["1", "2"], done
    assert done.status == 5


@test
def two_hundred_children_at_once_have_reports():
    where = folder()
    done = run("storm", 200, "find", 1000, options=[f"--log-file={where}/%p"])
    assert done.status == 0, done
    found = sorted(reads(text)[0] for text in logs(where, 201, seconds=2 * LIMIT).values())
    assert found == [*range(200), 1000], found


@test
def silence_after_fork_is_kept():
    done = run(
        "find", 1, "fork", "find", 2, "end", "find", 3, options=["--child-silent-after-fork=yes"]
    )
    assert reads(done.log) == [1, 3] and done.log.count("SUMMARY") == 1, done


@test
def programs_started_in_passing_leave_no_trace():
    """vfork, posix_spawn and system without --trace-children: only our own report."""
    for how in ("vfork", "spawn", "system"):
        done = run("find", 1, how, "/bin/true", "find", 2)
        assert done.status == 0 and reads(done.log) == [1, 2], f"{how}\n{done}"
        assert done.log.count("ERROR SUMMARY") == 1, f"{how}\n{done}"


@test
def programs_started_in_passing_are_followed_when_asked():
    for how in ("vfork", "spawn"):
        where = folder()
        done = run(
            "find",
            1,
            how,
            "/bin/true",
            "find",
            2,
            options=["--trace-children=yes", f"--log-file={where}/%p"],
        )
        assert done.status == 0, done
        found = logs(where, 2)
        assert sorted(reads(text) for text in found.values()) == [[], [1, 2]], found
        assert any("Command: /bin/true" in text for text in found.values()), found


@test
def a_shell_and_its_programs_are_followed_when_asked():
    where = folder()
    script = folder() / "script"
    script.write_text(f"{ACTOR} find 7\n{ACTOR} find 8\n")
    done = run(
        "find",
        1,
        "system",
        f"/bin/sh {script}",
        options=["--trace-children=yes", f"--log-file={where}/%p"],
    )
    assert done.status == 0, done
    found = logs(where, 4)
    assert [7] in map(reads, found.values()) and [8] in map(reads, found.values()), found


@test
def exec_without_following_ends_the_report():
    done = run("find", 1, "exec", "/bin/echo")
    assert done.status == 0 and done.out == "\n" and reads(done.log) == [1], done


@test
def exec_that_fails_goes_on():
    done = run("find", 1, "exec", "/nowhere", "find", 2, "exit", 4)
    assert done.status == 4 and reads(done.log) == [1, 2] and summary(done.log) == (2, 2), done


@test
def exec_when_followed_reports_both_images():
    done = run("find", 1, "exec", ACTOR, "find", 2, "exit", 6, options=["--trace-children=yes"])
    assert done.status == 6 and reads(done.log) == [1, 2], done
    assert len(set(re.findall(r"^==(\d+)==", done.log, re.MULTILINE))) == 1, done
    assert len(re.findall(r"Command: ", done.log)) == 2, done


@test
def exec_when_followed_into_a_log_by_pid():
    where = folder()
    run(
        "find",
        1,
        "exec",
        ACTOR,
        "find",
        2,
        options=["--trace-children=yes", f"--log-file={where}/%p.%n"],
    )

    # The incumbent opens the file anew; whichever name, both images' findings must be found.
    def both():
        text = "".join(p.read_text() for p in where.iterdir())
        return sorted(reads(text)) in ([1, 2], [2]) and text

    wait_for(both, what="the second report")


@test
def many_generations_of_exec_end():
    words = ["find", 9]
    for _ in range(12):
        words = ["exec", ACTOR, *words]
    done = run(*words, options=["--trace-children=yes"])
    assert done.status == 0 and reads(done.log) == [9], done


@test
def a_child_that_executes_is_followed_with_its_own_report():
    where = folder()
    run(
        "find",
        1,
        "fork",
        "exec",
        ACTOR,
        "find",
        2,
        "end",
        options=["--trace-children=yes", f"--log-file={where}/%p"],
    )
    found = sorted(reads(text) for text in logs(where, 2).values())
    assert found == [[1], [2]], found


def in_a_namespace(words, options=(), **others):
    """Runs as pid 1 of a namespace of its own."""
    run_in = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*run_in, "true"], capture_output=True).returncode != 0:
        raise Skip("no new pid namespace here")
    return subprocess.run(
        [*run_in, MUNINN, "--tool=findingtest", *options, ACTOR, *map(str, words)],
        cwd=WORK, env=clean_environment(), capture_output=True, text=True, timeout=LIMIT, **others)


@test
def an_init_that_signals_everybody_keeps_its_report():
    """The monitor is in the namespace, too, and not meant."""
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGRTMIN + 3):
        words = ["find", 1, "forknowait", "pause", "end", "tellall", int(sig), "waitall", "find", 2,
                 "out", "end", "exit", 4]
        done = in_a_namespace(words)
        assert done.returncode == 4 and done.stdout == "end\n", (sig, done)
        assert sorted(reads(done.stderr)) == [1, 2], (sig, done.stderr)


@test
def a_program_that_is_the_first_of_its_namespace_sees_no_strange_child():
    """As pid 1, all orphans are its own; the monitor must not be among what wait() finds."""
    words = ["find", 1, "fork", "find", 2, "end", "waitall", "out", "end", "find", 3, "exit", 4]
    done = in_a_namespace(words)
    assert done.returncode == 4 and done.stdout == "end\n", done
    assert sorted(reads(done.stderr)) == [1, 2, 3], repr(done.stderr)


@test
def threads_of_a_child_ask_for_one_monitor():
    for _ in range(3):
        where = folder()
        done = run("fork", "threads", 30, 3, "end", options=[f"--log-file={where}/%p"])
        assert done.status == 0, done
        found = [summary(text) for text in logs(where, 1).values() if reads(text)]
        assert found == [(30 * 9, 30 * 3 + 1)], found


@test
def a_child_of_a_program_that_lost_its_monitor_is_not_told_again():
    log = folder() / "log"
    process = start(
        "out",
        "ready",
        "await",
        "find",
        1,
        "fork",
        "find",
        2,
        "end",
        "exit",
        3,
        options=[f"--log-file={log}"],
        stdin=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    kill_monitor(log)
    let_go(process)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 3 and log.read_text().count("the monitor has gone") == 1
