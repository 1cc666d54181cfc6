# SPDX-License-Identifier: MIT
"""Where reports go: files by template, descriptors, sockets, in every format, several at once; what
the user's filters leave of them; and the words of real findings beside the incumbent's."""

import json
import os
import re
import select
import socket
import subprocess
import sys
import threading

from world import (
    ROOT,
    VALGRIND,
    WORK,
    clean_environment,
    command,
    folder,
    need,
    reads,
    run,
    summary,
    test,
    wait_for,
    wait_for_end,
    wait_for_json,
    wait_for_xml,
)

sys.path.insert(0, str(ROOT / "tests" / "report"))
import qt_reader  # noqa: E402
import sarif_check  # noqa: E402

qt_reader.TOOLS.add("findingtest")


class Listener:
    """A reader at the other end of a socket, that takes what comes in odd pieces."""

    def __init__(self, sizes=(1, 7, 100, 3, 4096)):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(120)
        self.port = self.server.getsockname()[1]
        self.pieces, self.sizes = [], sizes
        self.thread = threading.Thread(target=self.take, daemon=True)
        self.thread.start()

    def take(self):
        connection, _ = self.server.accept()
        connection.settimeout(120)
        turn = 0
        while piece := connection.recv(self.sizes[turn % len(self.sizes)]):
            self.pieces.append(piece)
            turn += 1
        connection.close()

    def data(self):
        self.thread.join(timeout=120)
        assert not self.thread.is_alive(), "the connection was not closed"
        self.server.close()
        return b"".join(self.pieces)


# ------------------------------------------------------------------------------ the names


@test
def logs_are_named_by_template():
    where = folder()
    done = run(
        "find",
        1,
        "fork",
        "find",
        2,
        "end",
        environment={"MT_NAME": "what ever"},
        options=[f"--log-file={where}/%%-%q{{MT_NAME}}-%p-%n"],
    )
    assert done.err == "", done
    names = sorted(os.listdir(where))
    assert len(names) == 2, names
    for name in names:
        assert re.fullmatch(r"%-what ever-\d+-\d+", name), names
    texts = {name: wait_for_end(where / name) for name in names}
    assert sorted(reads(t)[0] for t in texts.values()) == [1, 2]
    assert sorted(n.rsplit("-", 1)[1] for n in names) == ["0", "1"], names
    for name, text in texts.items():
        assert text.startswith(f"=={name.split('-')[2]}=="), (name, text)


@test
def a_log_that_cannot_be_opened_is_refused_before_the_program_runs():
    done = run("out", "ran", options=["--log-file=/nowhere/at/all"])
    assert done.status == 126 and done.out == "" and "/nowhere/at/all" in done.err, done


@test
def a_log_goes_to_any_descriptor():
    reader, writer = os.pipe()
    done = subprocess.run(
        command("find", 1, options=[f"--log-fd={writer}"]),
        pass_fds=[writer],
        capture_output=True,
        text=True,
        timeout=120,
        env=clean_environment(),
    )
    os.close(writer)
    with os.fdopen(reader) as end:
        text = end.read()  # ends: nobody holds the other end any more
    assert summary(text) == (1, 1) and done.stderr == "", (text, done)


@test
def a_log_goes_to_standard_output_in_order():
    done = run("out", "a", "find", 1, "out", "b", options=["--log-fd=1"])
    assert re.search(r"a\n==\d+== Invalid read of size 1\n(==\d+== .*\n)+b\n", done.out), done


@test
def the_program_begins_behind_the_banner():
    """A full pipe holds the banner up; meanwhile the program has not begun."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    filled = 0
    for size in (4096, 1):
        try:
            while True:
                filled += os.write(writer, b"." * size)
        except BlockingIOError:
            pass
    os.set_blocking(writer, True)
    begun = subprocess.Popen(
        command("out", "a", options=[f"--log-fd={writer}"]),
        pass_fds=[writer],
        stdout=subprocess.PIPE,
        env=clean_environment(),
    )
    os.close(writer)
    early = select.select([begun.stdout], [], [], 0.5)[0]
    with os.fdopen(reader) as end:
        text = end.read()
    out, _ = begun.communicate(timeout=120)
    assert not early and out == b"a\n" and begun.returncode == 0, (early, out)
    assert text[filled:].startswith("==") and summary(text) == (0, 0), text[filled:]


@test
def a_log_goes_to_a_socket():
    listener = Listener()
    done = run("find", 1, "find", 2, "exit", 3, options=[f"--log-socket=127.0.0.1:{listener.port}"])
    text = listener.data().decode()
    assert done.status == 3 and summary(text) == (2, 2) and reads(text) == [1, 2], text
    assert not reads(done.err), done


@test
def without_a_listener_the_log_is_on_standard_error():
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    done = run("find", 1, "exit", 3, options=[f"--log-socket=127.0.0.1:{port}"])
    assert done.status == 3 and summary(done.err) == (1, 1), done


# -------------------------------------------------------------------------------- formats


def kinds_for_qt():
    """A finding of each kind that protocol 4 knows."""
    words = []
    for kind, values, text, part in (
        (0, (0, 0, 0), "", 15),
        (1, (8, 0, 0), "", 16),
        (2, (4, 0, 0), "", 11),
        (3, (4, 0, 0), "", 0),
        (4, (0, 0, 0), "", 0),
        (5, (1, 1, 0), "write(buf)", 0),
        (6, (0, 0, 0), "", 0),
        (7, (0, 0, 0), "", 0),
        (8, (0, 0, 0), "", 0),
        (9, (16, 32, 20), "memcpy", 0),
        (10, (0, 0, 0), "", 0),
        (11, (2**64 - 1 >> 1, 0, 0), "malloc\1size", 0),
    ):
        words += ["kind", kind, *values, text, part]
    return words


def check_qt(reader, kinds):
    assert reader.states == ["RUNNING", "FINISHED"], reader.states
    found = [qt_reader.child(error, "kind") for error in reader.errors]
    assert found == kinds, found


QT_KINDS = [
    "UninitCondition",
    "UninitValue",
    "InvalidRead",
    "InvalidWrite",
    "InvalidJump",
    "SyscallParam",
    "ClientCheck",
    "InvalidFree",
    "MismatchedFree",
    "Overlap",
    "InvalidMemPool",
    "FishyValue",
]


@test
def xml_in_a_file_is_read_by_qt_creators_rules():
    path = folder() / "xml"
    done = run(*kinds_for_qt(), "exit", 3, options=["--xml=yes", f"--xml-file={path}"])
    assert done.status == 3 and "Invalid read" not in done.err, done
    check_qt(qt_reader.read(path.read_bytes()), QT_KINDS)


@test
def xml_through_a_descriptor():
    reader, writer = os.pipe()
    done = subprocess.run(
        command("find", 1, options=["--xml=yes", f"--xml-fd={writer}"]),
        timeout=120,
        pass_fds=[writer],
        capture_output=True,
        text=True,
        env=clean_environment(),
    )
    os.close(writer)
    with os.fdopen(reader, "rb") as end:
        check_qt(qt_reader.read(end.read()), ["InvalidRead"])
    assert done.returncode == 0, done


@test
def xml_through_a_socket_in_pieces():
    listener = Listener()
    done = run(*kinds_for_qt(), options=["--xml=yes", f"--xml-socket=127.0.0.1:{listener.port}"])
    assert done.status == 0, done
    listener.data()
    reader = qt_reader.Reader()
    for piece in listener.pieces:
        reader.feed(piece)
    reader.close()
    check_qt(reader, QT_KINDS)


@test
def an_ide_sees_errors_while_the_program_runs():
    """The first error can be read from the socket before the program goes on."""
    listener = Listener(sizes=(65536,))
    process = subprocess.Popen(
        command(
            "find",
            1,
            "out",
            "x",
            "pause",
            options=["--xml=yes", f"--xml-socket=127.0.0.1:{listener.port}"],
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
    )
    assert process.stdout.readline() == b"x\n"
    wait_for(lambda: b"</error>" in b"".join(listener.pieces), seconds=10)
    process.terminate()
    process.wait()
    process.stdout.close()
    reader = qt_reader.read(listener.data())
    check_qt(reader, ["InvalidRead"])


@test
def xml_says_how_muninn_was_called():
    path = folder() / "xml"
    run("find", 1, options=["--xml=yes", f"--xml-file={path}", "--num-callers=7"])
    root = wait_for_xml(path)
    words = [e.text for e in root.findall("args/vargv/arg")]
    assert "--num-callers=7" in words and "--xml=yes" in words, words
    assert not any("muninn-exe" in w or "execfn" in w for w in words), words
    assert [e.text for e in root.findall("args/argv/arg")] == ["find", "1"]


@test
def counts_in_xml_are_exact():
    path = folder() / "xml"
    run("again", 1000, "find", 1, options=["--xml=yes", f"--xml-file={path}"])
    pairs = [int(e.text) for e in wait_for_xml(path).findall("errorcounts/pair/count")]
    assert sorted(pairs)[-2:] == [1, 1000], pairs


@test
def all_formats_at_once_agree():
    where = folder()
    listener = Listener()
    done = run(
        "find",
        1,
        "find",
        2,
        "find",
        2,
        "exit",
        3,
        options=[
            f"--log-socket=127.0.0.1:{listener.port}",
            f"--json-file={where}/j",
            f"--sarif-file={where}/s",
        ],
    )
    assert done.status == 3, done
    assert summary(listener.data().decode()) == (3, 2)
    document = json.loads((where / "j").read_text())
    assert [(f["kind"], f["what"], f["count"]) for f in document["findings"]] == [
        ("invalid-read", "Invalid read of size 1", 1),
        ("invalid-read", "Invalid read of size 2", 2),
    ]
    sarif = json.loads((where / "s").read_text())
    results = sarif["runs"][0]["results"]
    assert [(r["ruleId"], r["occurrenceCount"]) for r in results] == [
        ("invalid-read", 1),
        ("invalid-read", 2),
    ]
    where = folder()
    run(
        "find",
        1,
        options=[
            "--xml=yes",
            f"--xml-file={where}/x",
            f"--json-file={where}/j",
            f"--sarif-file={where}/s",
            f"--log-file={where}/l",
        ],
    )
    check_qt(qt_reader.read((where / "x").read_bytes()), ["InvalidRead"])
    assert len(json.loads((where / "j").read_text())["findings"]) == 1
    assert len(json.loads((where / "s").read_text())["runs"][0]["results"]) == 1


@test
def json_of_a_process_and_its_children():
    where = folder()
    run("find", 1, "fork", "find", 2, "end", "find", 3, options=[f"--json-file={where}/%p"])
    documents = [wait_for_json(path) for path in sorted(where.iterdir())]
    assert sorted([f["what"][-1] for f in d["findings"]] for d in documents) == [["1", "3"], ["2"]]
    # Without %p the first process's report is not lost to its child's.
    path = folder() / "j"
    run("find", 1, "fork", "find", 2, "end", "find", 3, options=[f"--json-file={path}"])
    document = wait_for_json(path)
    assert [f["what"][-1] for f in document["findings"]] == ["1", "3"], document


@test
def json_says_how_it_ended():
    for words, expected in (
        (["exit", 3], {"exit_code": 3}),
        (["die", "abort"], {"signal": "SIGABRT"}),
        (["die", "kill"], {"killed": True}),
    ):
        path = folder() / "j"
        run("find", 1, *words, options=[f"--json-file={path}"])
        found = wait_for(lambda: wait_for_json(path).get("summary"))
        assert {key: found.get(key) for key in expected} == expected, (words, found)


# -------------------------------------------------------------------------------- filters


@test
def only_my_code_is_shown():
    done = run("find", 1, "exit", 3, options=["--only=*/actor.c", "--error-exitcode=9"])
    assert done.status == 9 and reads(done.log) == [1], done
    done = run("find", 1, "exit", 3, options=["--only=*/other.c", "--error-exitcode=9"])
    assert done.status == 3 and reads(done.log) == [] and summary(done.log) == (0, 0), done


@test
def a_baseline_lets_only_new_findings_fail():
    first = folder() / "first.json"
    done = run("find", 1, "find", 2, options=[f"--json-file={first}", "--error-exitcode=9"])
    assert done.status == 9, done
    done = run("find", 1, "find", 2, options=[f"--baseline={first}", "--error-exitcode=9"])
    assert done.status == 0 and summary(done.log) == (0, 0), done
    done = run(
        "find", 1, "find", 2, "deep", 3, options=[f"--baseline={first}", "--error-exitcode=9"]
    )
    assert done.status == 9 and reads(done.log) == [77], done


@test
def with_a_baseline_that_is_none_every_finding_is_new():
    bad = folder() / "bad"
    bad.write_text("{ this is no report")
    done = run("find", 1, options=[f"--baseline={bad}", "--error-exitcode=9"])
    assert done.status == 9 and done.log.count("cannot use the baseline") == 1, done
    done = run("out", "ran", options=["--baseline=/nowhere/at.all"])
    assert done.status == 1 and done.out == "" and done.log.count("\n") == 1, done


# ------------------------------------------------------------------- beside the incumbent


@test
def descriptors_are_reported_as_by_the_incumbent():
    need(VALGRIND)

    def plain(argv):
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            env=clean_environment(),
        )
        text = re.sub(r"==\d+==", "==", done.stderr)
        text = re.sub(r"0x[0-9A-F]+: ", "ADDR: ", text)
        text = text[text.index("FILE DESCRIPTORS") :]
        mine = re.search(r"== Open file descriptor 3: /dev/null\n((?:==    .*\n)+)", text)
        # Inside libc names differ by what debug info says.
        own = [line for line in mine[1].splitlines() if "descriptors.c" in line]
        return re.search(r"FILE DESCRIPTORS: (.*)\n", text)[1], [
            re.sub("ADDR: ", "", o) for o in own
        ]

    ours = plain(command(program=WORK / "descriptors", tool="none", options=["--track-fds=yes"]))
    theirs = plain([VALGRIND, "--tool=none", "--track-fds=yes", str(WORK / "descriptors")])
    assert ours == theirs, f"ours {ours}, theirs {theirs}"


@test
def wrong_uses_of_descriptors_are_errors():
    done = run(
        program=WORK / "descriptors", tool="none", options=["--track-fds=yes", "--error-exitcode=9"]
    )
    assert done.status == 9, done
    assert re.search(
        r"File descriptor 4: /dev/null is already closed\n"
        r"==\d+==    at .*\n==\d+==    by .*: close_one",
        done.log,
    ), done
    assert re.search(
        r"==\d+==  Previously closed\n==\d+==    at .*\n==\d+==    by .*: close_one", done.log
    ), done
    assert re.search(
        r"==\d+==  Originally opened\n==\d+==    at .*\n==\d+==    by .*: open_one", done.log
    ), done
    done = run(
        "clean",
        program=WORK / "descriptors",
        tool="none",
        options=["--track-fds=bad", "--error-exitcode=9"],
    )
    assert done.status == 0 and summary(done.log) == (0, 0), done


@test
def descriptors_are_in_json_and_in_protocol_5():
    where = folder()
    run(
        program=WORK / "descriptors",
        tool="none",
        options=[
            "--track-fds=yes",
            f"--json-file={where}/j",
            "--xml=yes",
            "--xml-protocol=5",
            f"--xml-file={where}/x",
        ],
    )
    kinds = {f["kind"] for f in wait_for_json(where / "j")["findings"]}
    assert {"fd-bad-close", "fd-not-closed"} <= kinds, kinds
    kinds = {e.text for e in wait_for_xml(where / "x").findall("error/kind")}
    assert {"FdBadClose", "FdNotClosed"} <= kinds, kinds


@test
def sarif_keeps_the_rules():
    path = folder() / "s"
    run(*kinds_for_qt(), options=[f"--sarif-file={path}"])
    sarif_check.check(wait_for_json(path))
