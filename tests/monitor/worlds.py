# SPDX-License-Identifier: MIT
"""What a client can do to itself, and findings all the same; and many threads at once."""

import os
import re
import subprocess

from world import Skip, clean_environment, command, folder, reads, run, summary, test, wait_for_end


def expect(words, options=(), found=(1, 2), status=0, **others):
    """The words, between two findings, cost neither report nor status."""
    log = folder() / "log"
    done = run("find", 1, *words, "find", 2, options=[f"--log-file={log}", *options], **others)
    assert done.status == status, f"{words}\n{done}"
    text = wait_for_end(log)
    assert tuple(reads(text)) == found, f"{words}: {text}"
    assert summary(text) == (len(found), len(found)), f"{words}: {text}"
    return text


@test
def a_client_that_closes_all_descriptors():
    expect(["closeall"])
    expect(["closerange"])


@test
def a_child_after_all_descriptors_are_closed():
    where = folder()
    done = run(
        "closerange", "fork", "find", 5, "end", "find", 6, options=[f"--log-file={where}/%p"]
    )
    assert done.status == 0, done
    texts = [wait_for_end(path) for path in sorted(where.iterdir())]
    assert sorted(map(reads, texts)) == [[5], [6]], texts


@test
def a_client_in_another_root():
    if os.geteuid() != 0:
        raise Skip("not root")
    text = expect(["chroot", folder()])
    # Names come from files that the client cannot see any more.
    assert len(re.findall(r"muninn_test_finding \(actor.c:", text)) == 2, text


@test
def a_client_that_gives_up_its_rights():
    if os.geteuid() != 0:
        raise Skip("not root")
    expect(["setuid"])
    expect(["chroot", folder(), "setuid"])
    # Its child may not open a log of its own, and keeps its parent's.
    where = folder()
    done = run("setuid", "fork", "find", 3, "end", "find", 4, options=[f"--log-file={where}/%p"])
    assert done.status == 0, done
    texts = [wait_for_end(path) for path in sorted(where.iterdir())]
    assert list(map(reads, texts)) == [[3, 4]], texts


@test
def a_client_with_low_limits():
    expect(["fsize", 0])
    expect(["nofile", 3])
    expect(["nofile", 0])
    expect(["fsize", 0, "nofile", 4])


@test
def a_limit_on_file_size_from_outside_is_the_programs():
    """A soft limit is not ours. With a hard one that we may not lift there can be no report."""
    for limit in ("-S -f 64", "-f 64"):
        log = folder() / "log"
        done = subprocess.run(
            [
                "bash",
                "-c",
                f'ulimit {limit}; exec "$@"',
                "bash",
                *command("find", 1, "find", 2, "exit", 3, options=[f"--log-file={log}"]),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            env=clean_environment(),
        )
        if done.returncode == 126:
            assert limit == "-f 64" and "the program is not run" in done.stderr, done
        else:
            assert done.returncode == 3, done
            assert reads(wait_for_end(log)) == [1, 2]


@test
def a_daemon_has_a_report():
    where = folder()
    done = run(
        "find",
        1,
        "daemon",
        "sleep",
        300,
        "find",
        2,
        "closerange",
        "find",
        3,
        options=[f"--log-file={where}/%p"],
    )
    assert done.status == 0, done
    from children import logs

    # The one in between ends without a word of its own.
    found = sorted(reads(text) for text in logs(where, 3).values())
    assert [1] in found and [2, 3] in found, found


@test
def a_client_that_may_only_read_and_write():
    log = folder() / "log"
    done = run(
        "find", 1, "seccomp", "find", 2, "out", "x", "rawexit", 5, options=[f"--log-file={log}"]
    )
    assert done.status == 5 and done.out == "x\n", done
    assert reads(wait_for_end(log)) == [1, 2]


@test
def a_hundred_threads_make_findings_at_once():
    done = run("threads", 100, 5, options=["--error-limit=no"])
    assert done.status == 0, done
    # 500 of their own, made twice each, and one of all, made 500 times.
    assert summary(done.log) == (1500, 501), done.log[-300:]
    found = reads(done.log)
    expected = [n * 1000 + i for n in range(1, 101) for i in range(5)] + [1000000]
    assert sorted(found) == sorted(expected)
    for number in range(1, 101):  # each thread's own in its own order
        mine = [f for f in found if f // 1000 == number]
        assert mine == sorted(mine), mine
    # Findings are whole, never mixed line by line.
    blocks = re.findall(r"==\d+== Invalid read of size \d+\n==\d+==    at ", done.log)
    assert len(blocks) == 501, len(blocks)


@test
def threads_are_named():
    done = run("threads", 3, 1, "find", 1)
    for number in range(1, 4):
        assert re.search(rf"==\d+== Thread \d+ worker-{number}:\n", done.log), done
    # The main thread is named when the last finding was another's.
    assert re.search(r"==\d+== Thread 1[^\n]*:\n==\d+== Invalid read of size 1\n", done.log), done
    assert not re.search(r"Thread \d+", run("find", 1, "find", 2).log)
