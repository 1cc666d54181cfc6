# SPDX-License-Identifier: MIT
"""Where reports go: files, descriptors, sockets, terminals; and what fails there."""

import json
import os
import pty
import re
import socket

import qt_reader
from driving import DRIVER, WORK, drive, json_of, sarif_of, small_run, text_of, whole_run, xml_of
from xml_tests import listen
from scripts import MAIN, MALLOC, Script
from suite import test


@test
def all_outputs_at_once_and_names_are_expanded():
    where = WORK / "all"
    where.mkdir()
    text = text_of(whole_run(pid=4711), f"--log-file={where}/%q{{WHO}}.%p.%%.log", "--xml=yes",
                   f"--xml-file={where}/%p.xml", f"--json-file={where}/%p.json",
                   f"--sarif-file={where}/%p.sarif", environment={"WHO": "me"})
    assert text == "", text
    assert sorted(p.name for p in where.iterdir()) == ["4711.json", "4711.sarif", "4711.xml",
                                                       "me.4711.%.log"]
    qt_reader.read((where / "4711.xml").read_bytes())
    assert "Invalid read of size 4" in (where / "me.4711.%.log").read_text()
    assert json.loads((where / "4711.json").read_bytes())["status"] == "finished"


@test
def log_descriptor_and_socket():
    read_end, write_end = os.pipe()
    drive(small_run().close(4, 2), f"--log-fd={write_end}", pass_fds=[write_end])
    os.close(write_end)
    assert b"Invalid read" in os.read(read_end, 65536)
    os.close(read_end)
    port, thread, received = listen()
    assert text_of(small_run().close(4, 2), f"--log-socket=127.0.0.1:{port}") == ""
    thread.join()
    assert b"==123== Invalid read of size 4\n" in b"".join(received)


@test
def nobody_listens_so_standard_error_gets_it():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    text = text_of(small_run().close(4, 2), f"--log-socket=127.0.0.1:{port}")
    assert text.startswith(
        f"==123== Failed to connect to logging server '127.0.0.1:{port}'.\n"
        "==123== Logging messages will be sent to stderr instead.\n==123== Memcheck"), text
    text = text_of(small_run().close(4, 2), "--xml=yes", f"--xml-socket=127.0.0.1:{port}")
    assert "XML output will be sent to stderr instead.\n<?xml" in text, text


@test
def descriptor_that_is_not_open_is_said():
    text = text_of(small_run().close(4, 2), "--log-fd=99")
    assert text.startswith("muninn: the log: descriptor 99 is not open"), text
    assert "==123== Invalid read" in text


@test
def silent_child_writes_nothing():
    script = Script(fork=True).finding("uninit-branch", (), (MAIN,)).close(1, 1)
    path = WORK / "silent.json"
    assert text_of(script, "--child-silent-after-fork=yes", f"--json-file={path}") == ""
    assert not path.exists()


@test
def program_that_executes_another_makes_no_sum():
    script = small_run().add("close", 2, 2, 0, 0, -1, 0, "replaced")
    text = text_of(script)
    assert "Invalid read" in text and "SUMMARY" not in text and "ended" not in text, text
    assert not json_of(script)["summary"]["killed"]
    assert len(qt_reader.read(xml_of(script)).errors) == 2


@test
def question_about_suppressions_waits_on_its_line():
    script = Script().add("prompt", "---- Print suppression ? ---- ").add("entry", "{\n   x\n}\n")
    assert text_of(script.close(), "-q") == (
        "==123== \n==123== ---- Print suppression ? ---- {\n   x\n}\n")


@test
def killed_client_is_said():
    script = small_run().add("close", 2, 2, 0, 0, -1, 9, "killed")
    assert "==123== \n==123== Process killed by signal 9 (SIGKILL)\n==123== \n" in text_of(script)
    summary = json_of(script)["summary"]
    assert summary["killed"] and summary["signal"] == "SIGKILL" and "exit_code" not in summary
    invocation = sarif_of(script)["runs"][0]["invocations"][0]
    assert invocation["exitSignalName"] == "SIGKILL" and not invocation["executionSuccessful"]


@test
def output_that_cannot_be_opened_is_said_and_goes_to_the_log():
    done = drive(small_run().close(4, 2), "--json-file=/nope/x.json", "--log-file=/nope/x.log")
    text = done.stderr.decode()
    assert "Cannot create log file '/nope/x.log': No such file or directory\n" in text
    assert "Cannot create JSON file '/nope/x.json'" in text
    assert '"format": "muninn-report"' in text and "==123== Invalid read" in text


@test
def output_that_fails_later_costs_only_itself():
    path = WORK / "full.json"
    done = drive(small_run().close(4, 2), "--log-file=/dev/full", f"--json-file={path}")
    assert done.stderr.decode().count("muninn: cannot write to /dev/full") == 1
    assert len(json.loads(path.read_bytes())["findings"]) == 2
    read_end, write_end = os.pipe()
    os.close(read_end)  # a reader that went away
    done = drive(small_run().close(4, 2), f"--log-fd={write_end}", f"--json-file={path}",
                 pass_fds=[write_end])
    os.close(write_end)
    assert done.returncode == 0 and b"Broken pipe" in done.stderr


@test
def forked_child_does_not_destroy_its_parents_report():
    where = WORK / "fork"
    where.mkdir()
    options = (f"--log-file={where}/log", "--xml=yes", f"--xml-file={where}/x.xml",
               f"--json-file={where}/j.json")
    drive(small_run().close(4, 2), *options)
    drive(Script(pid=124, fork=True).finding("uninit-branch", (), (MAIN,)).close(1, 1), *options)
    log = (where / "log").read_text()
    assert "==123== Invalid read" in log and "==124== Conditional jump" in log
    assert len(json.loads((where / "j.json").read_bytes())["findings"]) == 2
    assert len(json.loads((where / "j.json.124").read_bytes())["findings"]) == 1
    assert len(qt_reader.read((where / "x.xml.124").read_bytes()).errors) == 1


def on_terminal(script, *options, columns=100):
    """What a terminal shows."""
    pid, terminal = pty.fork()
    if pid == 0:
        read_end, write_end = os.pipe()
        os.environ.update(TERM="xterm", COLUMNS=str(columns))
        os.environ.pop("NO_COLOR", None)
        if os.fork() == 0:
            os.close(read_end)
            with os.fdopen(write_end, "wb") as pipe:
                pipe.write(script.bytes())
            os._exit(0)
        os.close(write_end)
        os.dup2(read_end, 0)
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        os.execv(DRIVER, [str(DRIVER), *options])
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown.decode().replace("\r\n", "\n")


def bare(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def source_tree():
    source = WORK / "src"
    source.mkdir(exist_ok=True)
    (source / "a.c").write_text("".join(f"line {n};\n" for n in range(1, 10)))
    here = (0x10, "main", "/o", str(source), "a.c", 5)
    there = (0x20, "maker", "/o", str(source), "a.c", 9)
    return source, here, there


@test
def terminal_shows_colour_and_the_source_beside_its_origin():
    _, here, there = source_tree()
    part = ("address-block", None, (0x4a48044, 0, 2, 4, 0), (MALLOC, there))
    script = Script().finding("invalid-read", (4,), (here,), [part]).close(1, 1)
    narrow = on_terminal(script)
    assert "\x1b[1;31mInvalid read of size 4\x1b[0m" in narrow, narrow
    plain = bare(narrow)
    assert "==123==    here: a.c:5\n" in plain and "==123==    >     5 | line 5;\n" in plain
    assert "==123==    allocated at a.c:9\n" in plain and ">     9 | line 9;\n" in plain
    assert "==123==          3 | line 3;\n" in plain
    assert "Findings by source line:\n==123==       1  a.c:5  Invalid read of size 4\n" in plain
    wide = bare(on_terminal(script, columns=200))
    assert re.search(r">     5 \| line 5; +>?     ", wide), wide
    assert re.search(r"here: a\.c:5 +allocated at a\.c:9", wide), wide
    # The classic lines are all there, unchanged.
    for line in text_of(script).splitlines():
        assert line in plain.splitlines(), line


@test
def no_colour_and_no_excerpt_where_programs_read():
    _, here, _ = source_tree()
    script = Script().finding("invalid-read", (4,), (here,)).close(1, 1)
    for text in (text_of(script), on_terminal(script, "--color=no")):
        assert "\x1b" not in text and "here:" not in text and "by source line" not in text
    assert "\x1b[1;31m" in text_of(script, "--color=yes")
    verbose = text_of(script, "-v")
    assert "\x1b" not in verbose and "Findings by source line:" in verbose
    assert "Findings by source line:" in text_of(script, "-q", "--summary=lines")
    assert "by source line" not in text_of(script, "-v", "--summary=plain")


@test
def source_file_cannot_harm_the_terminal():
    source, _, _ = source_tree()
    (source / "evil.c").write_bytes(b"\x1b]0;owned\x07\xff\xc2\x9b31m\xe2\x80\xae\r\n" * 3)
    os.mkfifo(source / "pipe.c")
    frames = [(n, f"f{n}", "/o", str(source), name, 2) for n, name in
              enumerate(("pipe.c", "gone.c", "../src", "evil.c"), 1)]
    shown = on_terminal(Script().finding("invalid-read", (4,), frames).close(1, 1))
    assert "\\x1b]0;owned\\x07\\xff\\u{9b}31m\\u{202e}" in shown, shown
    left = bare(shown)
    assert "\x1b" not in left and "\x07" not in left and "\u202e" not in left
