# SPDX-License-Identifier: MIT
"""Where there is little: no /proc, nothing that can be written, no home, few descriptors, a log
that nobody reads. The program runs as it does elsewhere, and what is said of it is true."""

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
    nowhere = {"HOME": "/nonexistent", "TMPDIR": "/nonexistent", "PATH": "/bin:/usr/bin"}
    done = run_shell('exec "$@"', heap_user(), env=nowhere)
    check_run(done)


@test
def a_trace_that_nobody_reads_kills_no_client():
    """Lines into a pipe without a reader are lost; their SIGPIPE is not the client's. A tool that
    judges does not begin without a place for its report."""
    for tool, status, out in (("none", 5, "alive\n"), ("memcheck", 126, "")):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(heap_user("--trace=syscalls", tool=tool), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=writer, text=True, timeout=LIMIT,
                              env=clean_environment(), check=False)
        os.close(writer)
        assert done.returncode == status and done.stdout == out, done
    done = run_shell('exec "$@" 2>&-', heap_user("--trace=syscalls"))
    assert done.returncode == 5 and done.stdout == "alive\n", done
    done = run_shell('exec "$@"', heap_user("--trace=syscalls", "--log-file=/dev/full"))
    assert done.returncode == 126 and "cannot write to /dev/full" in done.stderr, done


@test
def few_descriptors():
    """Hard limits, which an ordinary user cannot raise. From 16 on all is reported. Below it the
    program is refused with a line that says how many are needed; without a report it runs."""
    for limit in range(5, 20):
        log = folder() / "log"
        done = subprocess.run(
            heap_user(f"--log-file={log}"), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=LIMIT, env=clean_environment(), check=False,
            preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        quiet = subprocess.run(
            heap_user(tool="none"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LIMIT, env=clean_environment(), check=False,
            preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        assert quiet.returncode == 5 and quiet.stdout == "alive\n", f"{limit}: {quiet}"
        if limit < 16:
            line = f"needs 16 descriptors, and the hard limit allows {limit}"
            assert done.returncode == 126 and done.stdout == "", f"{limit}: {done}"
            assert line in done.stderr, f"{limit}: {done}"
            continue
        assert done.returncode == 5 and done.stdout == "alive\n", f"{limit}: {done}"
        check_report(wait_for_end(log))


@test
def a_program_that_takes_all_descriptors_is_not_said_to_be_in_order():
    """Of a user who cannot raise the limit: what is ours has to go, too, and judgement ends with it.
    That is told on standard error and by the status."""
    done = subprocess.run(
        command("setuid", "openall", "find", 1, "exit", 5,
                options=[f"--log-file={folder()}/log", "--error-exitcode=42"]),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
        env=clean_environment(), check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60)))
    assert done.returncode == 42, done
    assert "nothing more is reported" in done.stderr, done


@test
def a_reaper_has_no_unknown_children():
    """The monitors of the programs that it starts are no children of its, whoever follows them."""
    options = ["--trace-children=yes", f"--log-file={folder()}/%p"]
    done = run_shell('exec "$@"', command(WORK / "heap_user", options=options, tool="memcheck",
                                          program=WORK / "reaper"))
    assert done.stdout.endswith("own 3, others 0\n"), done


@test
def process_1_that_collects_nobody_keeps_no_zombies():
    if subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True,
                      check=False).returncode:
        raise Skip("no pid namespaces for us here")
    # perl waits for the one child it has made, and reads a last line of the list of processes.
    script = ('use strict; my $pid = fork; if (!$pid) { exec @ARGV } waitpid $pid, 0; '
              'print `ps -eo stat,comm --no-headers`;')
    done = subprocess.run(["unshare", "-pf", "--mount-proc", "perl", "-e", script, *heap_user()],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
                          env=clean_environment(), check=False)
    assert "alive" in done.stdout, done
    assert "muninn" not in done.stdout, done
    check_report(done.stderr)


@test
def a_tracer_of_the_program_sees_no_monitor():
    trace = folder() / "trace"
    if subprocess.run(["strace", "-o", trace, "true"], capture_output=True, check=False).returncode:
        raise Skip("no strace, or it may not trace")
    done = subprocess.run(["strace", "-f", "-e", "trace=execve", "-o", trace, *heap_user()],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
                          env=clean_environment(), check=False)
    check_run(done)
    assert "muninn-monitor" not in trace.read_text(), trace.read_text()
    processes = {line.split()[0] for line in trace.read_text().splitlines()}
    assert len(processes) == 1, trace.read_text()
