# SPDX-License-Identifier: MIT
"""Servers under load: redis, nginx, PostgreSQL run in the mode under test, their clients natively.

A scenario starts the server on a free port of the loopback, loads it with the client made for it,
asks questions whose answers are known, shuts it down as an administrator would, and returns a
transcript of everything that must not depend on time: answers, counts, statuses, key log lines.
"""
import hashlib
import os
import pwd
import re
import shutil
import signal
import subprocess

import harness
from harness import RunError

HERE = os.path.dirname(os.path.abspath(__file__))
POSTGRES = "/usr/lib/postgresql"


def guest_file(name):
    with open(os.path.join(HERE, "guests", name), "rb") as file:
        return file.read()


def tail(path):
    try:
        with open(path, "rb") as file:
            return file.read()[-300:].decode(errors="replace").strip().replace("\n", " | ")
    except OSError:
        return ""


def await_port(context, server, port, log):
    """Waits until the server listens; an early death is reported with the end of its log."""

    def listening():
        if server.poll() is not None:
            status = harness.describe_status(server.returncode)
            raise RunError(f"the server ended with {status}: {tail(log)}")
        return harness.port_open(port)

    context.until(f"the server does not listen: {tail(log)}", listening)


def redis(context):
    port, log = harness.free_port(), os.path.join(context.folder, "log")
    argv = ["/usr/bin/redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    argv += ["--dir", context.folder, "--enable-debug-command", "yes"]
    server = context.start(argv, log)
    await_port(context, server, port, log)
    cli = ["/usr/bin/redis-cli", "-p", str(port)]

    def ask(*words, stdin=b""):
        return context.native([*cli, *words], stdin)

    load = ["/usr/bin/redis-benchmark", "-p", str(port), "-n", "2000", "-c", "16", "-P", "2"]
    load += ["--csv", "-t", "ping,set,get,incr,lpush,lpop,sadd,hset,zadd,lrange_100,mset"]
    transcript = [line.split(b",")[0] for line in context.native(load).splitlines()]
    transcript.append(ask(stdin=guest_file("questions.redis")))
    transcript.append(ask("GET", "counter:__rand_int__"))
    transcript.append(ask("BGSAVE"))
    context.until(
        "BGSAVE does not end", lambda: b"rdb_bgsave_in_progress:0" in ask("INFO", "persistence")
    )
    saved = re.search(rb"rdb_last_bgsave_status:(\w+)", ask("INFO", "persistence"))
    transcript += [b"bgsave " + saved.group(1), ask("SAVE"), ask("DEBUG", "RELOAD"), ask("DBSIZE")]
    transcript.append(ask("BGREWRITEAOF"))
    context.until(
        "BGREWRITEAOF does not end",
        lambda: b"aof_rewrite_in_progress:0" in ask("INFO", "persistence"),
    )
    ask("SHUTDOWN", "SAVE")
    transcript.append(f"exit {context.finish(server)}".encode())
    context.native(["/usr/bin/redis-check-rdb", os.path.join(context.folder, "dump.rdb")])
    with open(log, "rb") as file:
        text = file.read()
    for line in (b"Ready to accept connections", b"Redis is now ready to exit, bye bye..."):
        transcript.append(line + (b" logged" if line in text else b" not logged"))
    return b"\n".join(transcript) + b"\n"


AB_FACTS = re.compile(
    rb"^(?:(?:Complete|Failed) requests|Document Length|Non-2xx responses|HTML transferred): .*",
    re.MULTILINE,
)


def nginx(context):
    port, folder = harness.free_port(), context.folder
    log = os.path.join(folder, "log")
    os.mkdir(os.path.join(folder, "html"))
    with open(os.path.join(folder, "html", "page.txt"), "wb") as out:
        out.write(b"".join(b"line %d of the page\n" % n for n in range(3000)))
    text = guest_file("nginx.conf").decode().replace("@DIR@", folder).replace("@PORT@", str(port))
    config = os.path.join(folder, "nginx.conf")
    with open(config, "w", encoding="ascii") as out:
        out.write(text)
    argv = ["/usr/sbin/nginx", "-p", folder, "-e", os.path.join(folder, "error.log"), "-c", config]
    server = context.start(argv, log)
    await_port(context, server, port, log)
    site, transcript = f"http://127.0.0.1:{port}", []

    def load(path, *options):
        out = context.native(["/usr/bin/ab", "-q", "-c", "8", *options, site + path])
        transcript.extend([path.encode(), *AB_FACTS.findall(out)])

    def fetch(path, *options):
        body = context.native(["/usr/bin/curl", "-sS", *options, site + path])
        digest = hashlib.sha256(body).hexdigest()
        transcript.append(f"{path} {len(body)} {digest}".encode())

    load("/page.txt", "-n", "1000")
    load("/page.txt", "-n", "1000", "-k", "-H", "Accept-Encoding: gzip")
    load("/match/word/42", "-n", "500", "-k")
    load("/proxied/page.txt", "-n", "100")
    load("/missing", "-n", "100")
    fetch("/page.txt", "--compressed")
    fetch("/page.txt", "-r", "100-299")
    old = workers_of(server.pid)
    server.send_signal(signal.SIGHUP)
    context.until(
        "the reload does not end",
        lambda: len(workers_of(server.pid)) == 2 and not old & workers_of(server.pid),
    )
    load("/page.txt", "-n", "500")
    server.send_signal(signal.SIGQUIT)
    transcript.append(f"exit {context.finish(server)}".encode())
    with open(os.path.join(folder, "access.log"), "rb") as file:
        transcript.append(b"%d requests logged" % len(file.read().splitlines()))
    with open(os.path.join(folder, "error.log"), "rb") as file:
        bad = re.findall(rb"\[(?:alert|crit|emerg)\].*", file.read())
    return b"\n".join([*transcript, *bad]) + b"\n"


def sshd(context):
    """Before a client has proved who it is, sshd talks to it from a process in a sandbox."""
    port, folder = harness.free_port(), context.folder
    log = os.path.join(folder, "log")
    text = guest_file("sshd.conf").decode().replace("@DIR@", folder).replace("@PORT@", str(port))
    config, key = os.path.join(folder, "sshd.conf"), os.path.join(folder, "user")
    with open(config, "w", encoding="ascii") as out:
        out.write(text)
    for name in "host", "user":
        context.native(
            ["/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}"]
        )
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    server = context.start(["/usr/sbin/sshd", "-D", "-e", "-f", config], log)
    await_port(context, server, port, log)
    client = ["/usr/bin/ssh", "-F", "none", "-p", str(port), "-i", key, "-o", "BatchMode=yes"]
    client += ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    user = pwd.getpwuid(os.geteuid()).pw_name
    answers = []
    for command in "echo over ssh", "cat | tr a-z A-Z; exit 0", "grep ^Seccomp: /proc/self/status":
        answers.append(context.native([*client, f"{user}@127.0.0.1", command], b"some text\n"))
    server.send_signal(signal.SIGTERM)
    answers.append(f"exit {context.finish(server)}".encode())
    with open(log, "rb") as file:
        answers.append(b"%d accepted" % file.read().count(b"Accepted publickey"))
    return b"\n".join(answers) + b"\n"


def workers_of(master):
    with open(f"/proc/{master}/task/{master}/children", encoding="ascii") as file:
        return set(file.read().split())


def unprivileged(context):
    """The words that run a command as a user other than root, who can reach muninn.

    A build under a private home is out of reach of another user: then root becomes an ordinary user
    by name only, in a user namespace.
    """
    if os.geteuid() != 0:
        return []
    as_user = ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    check = subprocess.run([*as_user, "test", "-x", context.muninn], check=False)
    if check.returncode == 0:
        user = pwd.getpwnam("postgres")
        os.chown(context.folder, user.pw_uid, user.pw_gid)
        return as_user
    return ["/usr/bin/unshare", "--user", "--map-user=1000", "--map-group=1000"]


def postgres_binaries():
    found = sorted(os.listdir(POSTGRES), key=int) if os.path.isdir(POSTGRES) else []
    if not found:
        raise RunError(f"no PostgreSQL in {POSTGRES}: install the Debian package postgresql")
    return os.path.join(POSTGRES, found[-1], "bin")


def removed(folder):
    """Its last processes may still write there when the server has ended."""
    shutil.rmtree(folder, ignore_errors=True)
    return not os.path.exists(folder)


def postgres(context):
    binaries, user = postgres_binaries(), unprivileged(context)
    prefix, folder = [*user, *context.prefix], context.folder
    data, log = os.path.join(folder, "data"), os.path.join(folder, "log")
    port, transcript = harness.free_port(), []
    argv = [f"{binaries}/initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync"]
    initdb = context.start([*argv, "--no-locale", "-E", "UTF8", "--no-instructions"], log, prefix)
    status = context.finish(initdb)
    if status != 0:
        raise RunError(f"initdb: {harness.describe_status(status)}: {tail(log)}")
    with open(log, "rb") as file:
        transcript.append(file.read())
    argv = [f"{binaries}/postgres", "-D", data, "-p", str(port), "-k", folder, "-F"]
    server = context.start([*argv, "-c", "listen_addresses=127.0.0.1"], log, prefix)
    await_port(context, server, port, log)
    where = ["-h", "127.0.0.1", "-p", str(port), "-U", "tester", "postgres"]
    probe = [f"{binaries}/pg_isready", "-q", *where[:6], "-d", "postgres"]
    context.until(
        "PostgreSQL does not accept connections",
        lambda: subprocess.run(probe, check=False).returncode == 0,
    )
    context.native([f"{binaries}/pgbench", "-i", "-q", "-s", "1", *where])
    load = context.native([f"{binaries}/pgbench", "-n", "-c", "4", "-j", "2", "-t", "100", *where])
    transcript += re.findall(rb"^number of (?:transactions|failed).*", load, re.MULTILINE)
    psql = [f"{binaries}/psql", "-X", "-q", "-A", "-t", *where]
    transcript.append(context.native(psql, guest_file("questions.sql")))
    server.send_signal(signal.SIGINT)  # fast shutdown: ends sessions, writes a checkpoint
    transcript.append(f"exit {context.finish(server)}".encode())
    state = context.native([f"{binaries}/pg_controldata", data])
    transcript += re.findall(rb"^Database cluster state:.*", state, re.MULTILINE)
    with open(log, "rb") as file:
        text = file.read()
    transcript += re.findall(rb"(?:PANIC|ERROR|server process .* was terminated).*", text)
    transcript.append(b"shut down" if b"database system is shut down" in text else b"not shut down")
    context.until("PostgreSQL's files cannot be removed", lambda: removed(data))
    return b"\n".join(transcript) + b"\n"
