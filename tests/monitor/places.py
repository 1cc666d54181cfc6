# SPDX-License-Identifier: MIT
"""Where there is little: no /proc, nothing that can be written, no home, few descriptors, a log that
nobody reads. The program runs as it does elsewhere, and what is said of it is true."""

import os
import resource
import subprocess

from world import LIMIT, WORK, Skip, clean_environment, command, folder, test, wait_for_end


def heap_user(*options, tool="memcheck"):
    return command(options=options, tool=tool, program=WORK / "heap_user")


def run_shell(script, words, **others):
    """The words as "$@" of a script."""
    return subprocess.run(["sh", "-c", script, "sh", *map(str, words)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LIMIT,
                          **{"env": clean_environment(), **others})


def in_mount_namespace(script, words):
    """Skips where we may not have one."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        raise Skip("no mount namespaces for us here")
    return run_shell(f'exec unshare -m sh -c \'{script}; exec "$@"\' sh "$@"', words)


def check_report(text):
    assert "Conditional jump or move depends on uninitialised value(s)" in text, text
    assert "total heap usage: 1 allocs, 0 frees, 40 bytes allocated" in text, text
    assert "definitely lost: 40 bytes in 1 blocks" in text, text


def check_run(done, text=None):
    assert done.returncode == 5 and "alive\n" in done.stdout, done
    check_report(done.stderr if text is None else text)


@test
def without_proc():
    """Names come from what was opened, and allocation functions are found by their names."""
    done = in_mount_namespace("mount -t tmpfs none /proc", heap_user())
    check_run(done)
    assert "main (heap_user.c:" in done.stderr, done.stderr


@test
def on_a_root_that_is_read_only():
    done = in_mount_namespace("mount --bind / /mnt && mount -o remount,ro,bind /mnt && "
                              f"mount --bind {WORK} /mnt{WORK} && "
                              f"mount -o remount,ro,bind /mnt{WORK} && cd /mnt",
                              ["chroot", "/mnt", *heap_user()])
    check_run(done)


@test
def without_a_place_for_temporary_files_or_a_home():
    done = run_shell('exec env -i "$@"', heap_user())
    check_run(done)
    done = run_shell('exec "$@"', heap_user(),
                     env={"HOME": "/nonexistent", "TMPDIR": "/nonexistent", "PATH": "/bin:/usr/bin"})
    check_run(done)


@test
def a_trace_that_nobody_reads_kills_no_client():
    """Lines into a pipe without a reader are lost; their SIGPIPE is not the client's."""
    for tool in ("none", "memcheck"):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(heap_user("--trace=syscalls", tool=tool), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=writer, text=True, timeout=LIMIT,
                              env=clean_environment(), check=False)
        os.close(writer)
        assert done.returncode == 5 and done.stdout == "alive\n", done
    done = run_shell('exec "$@" 2>&-', heap_user("--trace=syscalls"))
    assert done.returncode == 5 and done.stdout == "alive\n", done
    done = run_shell('exec "$@"', heap_user("--trace=syscalls", "--log-file=/dev/full"))
    assert done.returncode == 5 and done.stdout == "alive\n", done


@test
def few_descriptors():
    """Hard limits, which an ordinary user cannot raise. From 14 on all is reported; below it the
    program runs, and a line says so where there is no report."""
    for limit in range(5, 20):
        log = folder() / "log"
        done = subprocess.run(
            heap_user(f"--log-file={log}"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LIMIT, env=clean_environment(), check=False,
            preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        assert done.returncode == 5 and done.stdout == "alive\n", f"{limit}: {done}"
        text = log.read_text()
        if limit < 14 and ("nothing will be reported" in text or "nothing more is reported" in text):
            continue
        check_report(wait_for_end(log))
