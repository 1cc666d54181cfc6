# SPDX-License-Identifier: MIT
"""The table of real programs: one row each, and the Debian packages they come from.

A row says what is run, what it needs, which stress modes stay quick enough for it, and which text
of its output changes between two native runs. @DIR@ is the row's work folder, @GUESTS@ holds the
compiled guests. Rows with a bare command name also test that muninn searches PATH.
"""
import os
import shutil
import subprocess

import inputs
import servers
import terminal
from harness import STRESS_MODES, Row

HERE = os.path.dirname(os.path.abspath(__file__))
GUESTS = os.path.join(HERE, "guests")
BENCH = os.path.join(HERE, "..", "..", "bench", "src")
TRACE_CHILDREN = ("--trace-children=yes",)
NO_STRESS = ()
LINKED_MODES = ("tiny-cache", "signals")  # for programs that tiny blocks make too slow

PACKAGES = {
    "ab": "apache2-utils",
    "busybox": "busybox-static",
    "bwrap": "bubblewrap",
    "cc1": "gcc",
    "curl": "curl",
    "erl": "erlang-base",
    "go": "golang-go",
    "java": "default-jdk-headless",
    "javac": "default-jdk-headless",
    "luajit": "luajit",
    "musl-gcc": "musl-tools",
    "nginx": "nginx-light",
    "node": "nodejs",
    "redis-benchmark": "redis-tools",
    "redis-cli": "redis-tools",
    "redis-server": "redis-server",
    "rg": "ripgrep",
    "script": "bsdutils",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "sshd": "openssh-server",
    "unshare": "util-linux",
    "xz": "xz-utils",
}

SHELL_PIDS = ((rb"(line \d+:) +\d+ ", rb"\1 PID "),)
ADDRESSES = ((rb"0x[0-9a-f]+", b"ADDRESS"),)
TERMINAL_PIDS = ((rb"^\[(\d+)\] \d+", rb"[\1] PID"),)
RUST_THREAD = ((rb"^(thread '\w+') \(\d+\)", rb"\1"),)


def guest(name):
    return os.path.join(GUESTS, name)


def bench(name):
    return os.path.join(BENCH, name)


def compressors(text):
    commands = {
        "gzip": ["/usr/bin/gzip", "-n", "-c"],
        "bzip2": ["/usr/bin/bzip2", "-c"],
        "xz": ["/usr/bin/xz", "-3", "-c"],
        "zstd": ["/usr/bin/zstd", "-q", "-c"],
    }
    for name, argv in commands.items():
        yield Row(name, [*argv, text])
        round_trip = f"{' '.join(argv)} {text} | {argv[0]} -d | cmp - {text} && echo same"
        yield Row(f"{name} round trip", ["sh", "-c", round_trip], options=TRACE_CHILDREN)
    yield Row("xz threads", ["/usr/bin/xz", "-1", "-T2", "--block-size=16KiB", "-c", text])
    yield Row("zstd threads", ["/usr/bin/zstd", "-q", "-T2", "-c", text])
    yield Row("gzip damaged", ["/usr/bin/gzip", "-d"], stdin=b"not gzip", status=1)


def interpreters(cache, text):
    sql = inputs.filled(cache, "mix.sql", {"ROWS": 500})
    with open(sql, "rb") as file:
        yield Row("sqlite3", ["/usr/bin/sqlite3", ":memory:"], stdin=file.read())
    on_disk = "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); SELECT sum(a) FROM t; VACUUM;"
    yield Row("sqlite3 file", ["sqlite3", "data.db", on_disk], outputs=("data.db",))
    yield Row("sqlite3 error", ["sqlite3", ":memory:", "SELECT * FROM none"], status=1)
    yield Row("python3", ["/usr/bin/python3", "-I", bench("mix.py"), "1"])
    yield Row(
        "python3 processes", ["/usr/bin/python3", guest("processes.py")], status=3, timeout_s=30
    )
    yield Row(
        "python3 processes, children traced",
        ["/usr/bin/python3", guest("processes.py")],
        status=3,
        options=TRACE_CHILDREN,
        stress=NO_STRESS,
        timeout_s=30,
    )
    yield Row("perl", ["/usr/bin/perl", bench("mix.pl"), text, "1"])
    yield Row("perl processes", ["perl", guest("processes.pl")], status=255)
    yield Row("lua5.4", ["/usr/bin/lua5.4", bench("mix.lua"), "1"])
    yield Row("luajit", ["/usr/bin/luajit", guest("jit.lua")], status=4)
    yield Row("luajit interpreter", ["luajit", "-joff", bench("mix.lua"), "1"])
    yield Row(
        "node",
        ["/usr/bin/node", guest("jit.js")],
        status=6,
        stress=("tiny-cache", "signals"),
        timeout_s=60,
    )
    yield from erlang()
    yield Row("node one-liner", ["node", "-p", "[1, 2, 3].map((n) => n ** 2).join()"], timeout_s=30)


def erlang():
    """Code that is made at run time and keeps to no ABI: its stack is a process' heap, and its
    functions return comparisons in flags, which these tools let be dead elsewhere."""
    count = "F = fun(F, N) when N < 2 -> N; (F, N) -> F(F, N - 1) + F(F, N - 2) end, F(F, 16)"
    sort = "maps:size(maps:from_list([{{k, I rem 99}, I} || I <- lists:seq(1, 5000)]))"
    says = f'io:format("~p ~p~n", [begin {count} end, {sort}]), halt().'
    silent = {
        "none": (),
        "massif": ("--massif-out-file=/dev/null", "--recording=no"),
        "memcheck": ("--log-file=/dev/null",),
    }
    for tool, options in silent.items():
        yield Row(
            f"erlang {tool}",
            ["erl", "-noshell", "-eval", says],
            options=(f"--tool={tool}", "-q", *options, *TRACE_CHILDREN),
            stress=NO_STRESS,
            timeout_s=60,
        )


def java():
    work = dict(builds=("Work.class",), needs=("javac",), status=1, timeout_s=60)
    argv = ["/usr/bin/java", "-Xmx256m", "-cp", "@GUESTS@"]
    yield Row("java", [*argv, "Work"], stress=("signals",), **work)
    yield Row("java serial", [*argv, "-XX:+UseSerialGC", "Work"], stress=NO_STRESS, **work)
    yield Row("java interpreter", [*argv, "-Xint", "Work"], stress=NO_STRESS, **work)
    yield Row("java version", ["java", "--version"], stress=("tiny-cache",), timeout_s=30)


def text_tools(cache, text):
    records = inputs.records(cache, 300)
    repository = inputs.repository(cache, 12)
    git = ["/usr/bin/git", "-C", repository]
    yield Row("jq", ["/usr/bin/jq", "-f", bench("mix.jq"), records])
    yield Row("jq error", ["jq", ".[0].name.none", records], status=5)
    yield Row("ripgrep", ["/usr/bin/rg", "-j1", "-n", r"\w+ing\s+\w{3,}ed\b", text])
    yield Row(
        "ripgrep tree", ["rg", "--no-config", "--sort=path", "-c", "PROMPT|guest", HERE], stdin=b"x"
    )
    yield Row("ripgrep threads", ["rg", "-j4", "-l", "--sort=path", "scenario", HERE])
    yield Row("ripgrep -P", ["rg", "-P", "-j1", "-c", r"\b(\w)(\w)\w*\2\1\b", text])
    yield Row("grep -P", ["/usr/bin/grep", "-nP", r"\b(\w)(\w)\w*(?<=\2)\1\b", text])
    yield Row("git log", [*git, "--no-pager", "log", "-p", "--stat", "main"])
    yield Row("git grep -P", [*git, "grep", "-nP", r"(\w)\1\w*\b.* (\w)\w*\2ing\b", "main"])
    yield Row("git blame", [*git, "blame", "main", "--", "dir0/file0.txt"], stress=LINKED_MODES)
    work = "git init -q -b main . && echo a >a && git add a && git commit -qm first && git gc -q &&"
    work += " git clone -q . copy && git -C copy log --format='%H %s' && git fsck --strict"
    identity = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_AUTHOR_DATE": "1600000000 +0000",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
        "GIT_COMMITTER_DATE": "1600000000 +0000",
    }
    yield Row(
        "git work",
        ["sh", "-c", work],
        needs=("git",),
        options=TRACE_CHILDREN,
        environment=identity,
        stress=("tiny-cache",),
        timeout_s=40,
    )


def rust_compiler():
    """The compiler itself: what PATH finds may be rustup's proxy, which needs the user's home."""
    if not shutil.which("rustc"):
        return "rustc"
    command = ["rustc", "--print", "sysroot"]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return os.path.join(found.stdout.strip(), "bin", "rustc")


def go_cache(cache):
    """The cache that the guests were compiled with, so that the standard library is in it."""
    return os.path.join(os.path.dirname(cache), "go")


def compilers(cache):
    cc1 = subprocess.run(
        ["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, text=True, check=False
    ).stdout.strip()
    flags = ["-quiet", "-O2", "-fpreprocessed", inputs.c_file(cache, 1), "-o", "-"]
    yield Row("cc1", [cc1 or "cc1", *flags], timeout_s=30)
    yield Row(
        "g++",
        ["g++", "-std=c++17", "-O1", "-c", bench("churn.cpp"), "-o", "churn.o"],
        outputs=("churn.o",),
        options=TRACE_CHILDREN,
        stress=NO_STRESS,
        timeout_s=60,
    )
    yield Row(
        "rustc",
        [rust_compiler(), "--emit=obj", "-O", guest("work.rs"), "-o", "work.o"],
        outputs=("work.o",),
        stress=NO_STRESS,
        timeout_s=60,
    )
    yield Row(
        "javac",
        ["javac", "-d", ".", guest("Work.java")],
        outputs=("*.class",),
        stress=NO_STRESS,
        timeout_s=60,
    )
    yield Row(
        "go build",
        ["go", "build", "-trimpath", "-o", "work", guest("work.go")],
        outputs=("work",),
        environment={"GOCACHE": go_cache(cache), "GO111MODULE": "off"},
        builds=("work-go",),
        options=TRACE_CHILDREN,
        stress=NO_STRESS,
        timeout_s=60,
    )
    yield Row("gcc error", ["gcc", "-c", "missing.c"], status=1)
    yield Row(
        "make and gcc",
        ["make", "-C", "project"],
        files={"project": guest("project")},
        outputs=("project/*",),
        needs=("gcc", "ar"),
        options=TRACE_CHILDREN,
        stress=("tiny-cache",),
        timeout_s=60,
    )
    yield Row(
        "make in parallel",
        ["make", "-j2", "-s", "-C", "project", "words", "words-static.a"],
        files={"project": guest("project")},
        outputs=("project/*",),
        needs=("gcc", "ar"),
        options=TRACE_CHILDREN,
        stress=NO_STRESS,
        timeout_s=60,
    )


def coreutils(text):
    cases = {
        "true": (["true"], 0),
        "false": (["false"], 1),
        "ls": (["ls", "-la", "--time-style=+%s", "/usr/share/doc/coreutils"], 0),
        "ls missing": (["ls", "/nonexistent"], 2),
        "sort": (["sort", text], 0),
        "sort threads": (["sort", "--parallel=4", "-S1M", "-k2", text], 0),
        "wc": (["wc", text], 0),
        "sha256sum": (["sha256sum", text], 0),
        "md5sum": (["md5sum", "/bin/true"], 0),
        "date": (["date", "-u", "-d", "@0"], 0),
        "env": (["env", "-i", "A=1", "B=2", "env"], 0),
        "printenv": (["printenv", "HOME", "LC_ALL"], 0),
        "echo": (["echo", "a", "--tool=none", "-q"], 0),
        "factor": (["factor", "1234567890123456789", "18446744073709551557"], 0),
        "od": (["od", "-A", "x", "-t", "fD", "-N", "256", "/bin/true"], 0),
        "seq": (["seq", "0.1", "0.1", "5"], 0),
        "dd": (["dd", f"if={text}", "bs=1k", "count=3", "status=none"], 0),
        "stat": (["stat", "-c", "%s %F %a", "/bin/true", "/dev/null"], 0),
        "readlink exe": (["readlink", "/proc/self/exe"], 0),
        "cat cmdline": (["cat", "/proc/self/cmdline"], 0),
        "cat comm": (["cat", "/proc/self/comm"], 0),
        "ls fd": (["ls", "/proc/self/fd"], 0),
        "timeout": (["timeout", "0.1", "sleep", "10"], 124),
        "timeout kill": (["timeout", "-s", "KILL", "0.1", "sleep", "10"], -9),
        "nice": (["nice", "-n", "3", "nice"], 0),
        "awk": (["awk", "{ n += NF } END { print n, NR }", text], 0),
        "sed": (["sed", "-n", r"s/\(ing\) \([a-z]*\)/\2 \1/gp", text], 0),
        "find": (["find", GUESTS, "-name", "*.c", "-size", "+1k", "-printf", "%f %s\\n"], 0),
        "tar": (["tar", "-C", HERE, "--sort=name", "--mtime=@0", "-cf", "-", "guests"], 0),
        "bc": (["sh", "-c", "echo 'scale=50; 4*a(1)' | busybox bc -l"], 0),
    }
    for name, (argv, status) in cases.items():
        yield Row(name, argv, status=status)
    pipes = {
        "cat of pipes": f"cat {text} | cat - /dev/null | cat | wc -c",
        "head closes the pipe": "yes | head -n 3; (while echo y; do :; done) 2>&1 | head -n 1",
        "SIGPIPE status": "{ yes; echo status $? >&2; } | head -n 1",
        "xargs": "seq 1 50 | xargs -n 7 -P 1 echo",
        "tee": f"tee a b < {text} | cmp - {text} && cmp a b && rm a b && echo same",
        "fifo": "mkfifo p; (seq 1 2000 >p &); tail -n 1 p; rm p",
        "redirections": "echo out; echo err >&2; exec 1>&-; echo lost; exit 7",
    }
    for name, script in pipes.items():
        status = 7 if name == "redirections" else 0
        for title, options in ((name, ()), (f"{name}, children traced", TRACE_CHILDREN)):
            yield Row(title, ["sh", "-c", script], options=options, status=status)


def loaders():
    """What the dynamic loader sees: its variables must reach the client, and only the client."""
    variables = {
        "LD_LIBRARY_PATH": "/nonexistent",
        "LD_BIND_NOW": "1",
        "MALLOC_ARENA_MAX": "1",
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
    }
    loader = "/lib64/ld-linux-x86-64.so.2"
    yield Row("loader variables", ["env"], environment=variables)
    yield Row("preloaded library", ["/bin/echo", "a"], environment={"LD_PRELOAD": "libm.so.6"})
    missing = ["env", "LD_PRELOAD=/nonexistent.so", "/bin/echo", "a"]
    yield Row("preloaded nothing", missing, options=TRACE_CHILDREN)
    yield Row("loader as a program", [loader, "/bin/echo", "through the loader"])
    traced = ["env", "LD_TRACE_LOADED_OBJECTS=1", "/bin/ls"]
    yield Row("ldd", traced, options=TRACE_CHILDREN, masks=ADDRESSES)
    yield Row("script by name", [guest("shebang.sh"), "a", "b c"], status=21)
    yield Row("script by env", [guest("shebang.py"), "a", "b c"], options=TRACE_CHILDREN)


def openssl(text):
    key = ["-K", "0123456789abcdef" * 2, "-iv", "0123456789abcdef" * 2, "-in", text]
    yield Row("openssl digests", ["openssl", "dgst", "-sha512", text])
    yield Row("openssl aes", ["openssl", "enc", "-aes-128-ctr", *key])
    prime = ["openssl", "prime", "-checks", "5", "170141183460469231731687303715884105727"]
    yield Row("openssl prime", prime)


def shells():
    script = ["/bin/bash", guest("pipelines.sh")]
    yield Row("bash pipelines", script, status=11, masks=SHELL_PIDS, timeout_s=30)
    yield Row(
        "bash pipelines, children traced",
        script,
        status=11,
        masks=SHELL_PIDS,
        options=TRACE_CHILDREN,
        stress=("tiny-cache",),
        timeout_s=60,
    )
    session = dict(scenario=terminal.bash_session, masks=TERMINAL_PIDS)
    yield Row("bash on a terminal", **session, needs=("bash", "stty"), timeout_s=30)
    yield Row(
        "bash on a terminal, children traced",
        **session,
        needs=("bash", "stty"),
        options=TRACE_CHILDREN,
        stress=NO_STRESS,
        timeout_s=60,
    )
    command = "bash -c 'test -t 1 && echo on a terminal; stty size; exit 9'"
    yield Row(
        "script",
        ["script", "-qec", command, "/dev/null"],
        status=9,
        options=TRACE_CHILDREN,
        stress=LINKED_MODES,
    )


def guests(text):
    links = ("plain", "plain-static", "plain-static-pie", "plain-no-pie", "plain-musl")
    for name in (*links, "plain-musl-static"):
        yield Row(name, [f"@GUESTS@/{name}", "a", "b"], builds=(name,), status=3)
    ways = {"divide": -8, "null": -11, "illegal": -4, "pipe": -13, "terminate": -15, "abort": -6}
    for way, status in {**ways, "overflow": -11}.items():
        yield Row(f"die {way}", ["@GUESTS@/die", way], builds=("die",), status=status)
    yield Row(
        "go",
        ["@GUESTS@/work-go"],
        builds=("work-go",),
        environment={"GOMAXPROCS": "4"},
        status=2,
        stress=LINKED_MODES,
        timeout_s=40,
    )
    yield Row("rust", ["@GUESTS@/work-rs"], builds=("work-rs",), masks=RUST_THREAD, status=9)
    yield Row("c++ churn", ["@GUESTS@/churn-cpp", "1"], builds=("churn-cpp",))
    yield Row("rust churn", ["@GUESTS@/churn-rs", "1"], builds=("churn-rs",))
    yield Row("threads", ["@GUESTS@/threads", "4", "20"], builds=("threads",))
    busybox = "busybox seq 1 20 | busybox awk '{ s += $1 } END { print s }'; busybox uname -s"
    yield Row("busybox", ["/bin/busybox", "sha256sum", text])
    yield Row("busybox sh", ["/bin/busybox", "sh", "-c", busybox], options=TRACE_CHILDREN)
    yield Row("busybox applets", ["busybox", "--list"])


def ptrace_forbidden():
    """Containers may forbid ptrace altogether; then no debugger works, natively either."""
    probe = subprocess.run(
        ["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL, check=False
    )
    return "ptrace is forbidden on this machine" if probe.returncode != 0 else None


def debuggers():
    ptrace = dict(builds=("plain",), forbidden=ptrace_forbidden, stress=NO_STRESS, timeout_s=60)
    gdb = ["gdb", "-nx", "-batch", "-ex", "set startup-with-shell off", "-ex", "break run_threads"]
    gdb += ["-ex", "set debuginfod enabled off", "-ex", "run", "-ex", "bt", "-ex", "print calls"]
    gdb += ["-ex", "finish", "-ex", "info threads", "-ex", "kill", "@GUESTS@/plain"]
    masks = ((rb"(LWP|process) \d+", rb"\1 PID"), (rb"Target Id +Frame", b"Target Id Frame"))
    quiet = ((rb"^\[(?:New Thread|Thread) .*\n", b""), (rb"^(?:threads: .*|warning: .*)\n", b""))
    yield Row("gdb", gdb, masks=(*ADDRESSES, *masks, *quiet), **ptrace)
    yield Row(
        "strace",
        ["strace", "-f", "-qq", "-e", "trace=exit_group", "-e", "signal=none", "@GUESTS@/plain"],
        masks=((rb"^\[pid +\d+\] ", b""), (rb"\) += ", b") = ")),
        status=1,
        **ptrace,
    )


def sandbox_forbidden():
    """Containers may forbid the namespaces that bwrap is made of."""
    words = ["bwrap", "--ro-bind", "/", "/", "true"]
    probe = subprocess.run(words, stderr=subprocess.DEVNULL, check=False)
    return "namespaces are forbidden on this machine" if probe.returncode != 0 else None


def sshd_forbidden():
    return None if os.geteuid() == 0 else "sshd wants to be root"


def sandboxes():
    yield Row("libseccomp", ["@GUESTS@/sandbox"], builds=("sandbox",), status=7)
    # REPORTS: a folder that must be there for a tool which follows the program into the sandbox.
    script = "@GUESTS@/sandbox export > filter && exec bwrap --ro-bind / / --dev /dev "
    script += '${REPORTS:+--bind "$REPORTS" "$REPORTS"} '
    script += "--seccomp 9 sh -c 'uname; echo $?; mkdir /tmp/x; echo $?; ls -d /usr' 9< filter"
    bwrap = dict(builds=("sandbox",), needs=("bwrap",), forbidden=sandbox_forbidden)
    for title, options in ("", ()), (" followed", TRACE_CHILDREN):
        yield Row("bwrap" + title, ["sh", "-c", script], options=options, stress=NO_STRESS, **bwrap)
    page = dict(environment={"MANWIDTH": "80"}, stress=NO_STRESS, timeout_s=40)
    for title, options in ("", ()), (" followed", TRACE_CHILDREN):
        yield Row(
            "man" + title, ["man", "-P", "cat", "@DIR@/muninn.1"], options=options,
            files={"muninn.1": os.path.join(HERE, "..", "..", "docs", "man", "muninn.1")}, **page
        )
    ssh = dict(scenario=servers.sshd, needs=("sshd", "ssh", "ssh-keygen"), stress=NO_STRESS)
    for title, options in ("", ()), (" followed", TRACE_CHILDREN):
        yield Row(
            "sshd" + title, options=options, forbidden=sshd_forbidden, timeout_s=60, **ssh
        )


def server_rows():
    yield Row(
        "redis",
        scenario=servers.redis,
        needs=("redis-server", "redis-cli", "redis-benchmark"),
        stress=("signals",),
        timeout_s=90,
    )
    yield Row(
        "nginx",
        scenario=servers.nginx,
        needs=("nginx", "ab", "curl"),
        stress=("signals",),
        timeout_s=80,
    )
    yield Row(
        "postgresql",
        scenario=servers.postgres,
        needs=("setpriv", "unshare"),
        options=TRACE_CHILDREN,
        stress=NO_STRESS,
        timeout_s=120,
    )


def rows(cache):
    text = inputs.text(cache, 64 << 10)
    return [
        *server_rows(),
        *java(),
        *interpreters(cache, text),
        *compressors(text),
        *text_tools(cache, text),
        *compilers(cache),
        *coreutils(text),
        *loaders(),
        *openssl(text),
        *shells(),
        *guests(text),
        *debuggers(),
        *sandboxes(),
    ]
