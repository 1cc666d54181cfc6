# SPDX-License-Identifier: MIT
"""XML: what its readers accept, in pieces and by socket."""

import re
import socket
import subprocess
import threading

import qt_reader
from driving import DRIVER, WORK, golden, small_run, text_of, whole_run, xml_of
from scripts import MAIN, Script
from suite import test


@test
def xml_is_what_qt_creator_accepts():
    reader = qt_reader.read(xml_of(whole_run(), "--xml-user-comment=<b>mine</b>"))
    assert reader.states == ["RUNNING", "FINISHED"]
    kinds = {qt_reader.child(error, "kind") for error in reader.errors}
    assert len(reader.errors) == 28 and "FishyValue" in kinds, len(reader.errors)
    leak = reader.errors[-4]
    assert qt_reader.what(leak).startswith("2,016 (16 direct, 2,000 indirect) bytes in 1 blocks")
    assert qt_reader.child(qt_reader.children(leak, "xwhat")[0], "leakedbytes") == "2016"
    golden("kinds.xml", re.sub(r"<time>.*</time>", "<time/>", xml_of(whole_run()).decode()))


@test
def strict_reader_refuses_what_qt_creator_refuses():
    good = xml_of(small_run().close(4, 2))
    for old, new in ((b"<protocolversion>4", b"<protocolversion>6"), (b"InvalidRead", b"Novelty"),
                     (b"<tool>memcheck", b"<tool>dhat"), (b"</error>", b"<fd>1</fd></error>"),
                     (b"<unique>0x", b"<unique>"), (b"FINISHED", b"DONE"),
                     (b"</valgrindoutput>", b"")):
        try:
            qt_reader.read(good.replace(old, new))
        except qt_reader.Refused:
            continue
        raise AssertionError(f"{new} was accepted")


@test
def xml_can_be_read_in_pieces_of_any_size():
    data = xml_of(whole_run())
    whole = qt_reader.read(data)
    for sizes in ((1,), (3, 7, 1), (4096,), (1, 1000)):
        assert qt_reader.read(data, sizes).tree == whole.tree


@test
def descriptors_are_in_protocol_5_and_in_the_text_before():
    path = WORK / "p.xml"
    text = text_of(whole_run(), "--xml=yes", f"--xml-file={path}")
    assert "Fd" not in path.read_text()
    assert "==123== Open file descriptor 3: /dev/null\n" in text, text
    assert "Invalid read" not in text and "SUMMARY" not in text
    newer = xml_of(whole_run(), "--xml-protocol=5").decode()
    assert "<protocolversion>5<" in newer and "<kind>FdNotClosed</kind>\n  <fd>3</fd>\n" in newer
    assert "<kind>ReallocSizeZero</kind>" in newer and "<error_summary>" not in newer


@test
def protocol_6_has_the_summaries():
    script = small_run().add("extra", "heap_summary", "  <bytes>0</bytes>", '{"bytes": 0}')
    script.close(4, 2, 1, 1)
    data = xml_of(script, "--xml-protocol=6").decode()
    assert "<heap_summary>\n  <bytes>0</bytes>\n</heap_summary>\n" in data
    assert "<error_summary>\n  <errors>4</errors>\n" in data
    assert "summary" not in xml_of(script).decode()


@test
def suppression_in_xml_has_its_pieces():
    entry = ("{\n   <insert_a_suppression_name_here>\n   Memcheck:Leak\n   match-leak-kinds: "
             "definite\n   fun:operator<<\n   obj:/lib/a]]>b\n   ...\n}\n")
    script = Script().finding("leak-definite", (4, 1, 1, 1), (MAIN,), leak=(4, 1, 1, 1),
                              suppression=entry).close(1, 1)
    reader = qt_reader.read(xml_of(script))
    node = qt_reader.children(reader.errors[0], "suppression")[0]
    assert qt_reader.child(node, "sname") == "insert_a_suppression_name_here"
    assert qt_reader.child(node, "skind") == "Memcheck:Leak"
    assert qt_reader.child(node, "skaux") == "match-leak-kinds: definite"
    frames = [c["children"][0]["text"] for c in qt_reader.children(node, "sframe")]
    assert frames == ["operator<<", "/lib/a]]>b"], frames
    assert qt_reader.child(node, "rawtext").strip() == entry.strip()


def listen():
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(120)
    received = []

    def take():
        connection, _ = server.accept()
        connection.settimeout(120)
        while piece := connection.recv(777):
            received.append(piece)

    thread = threading.Thread(target=take)
    thread.start()
    return server.getsockname()[1], thread, received


@test
def xml_streams_to_a_socket_error_by_error():
    port, thread, received = listen()
    process = subprocess.Popen([DRIVER, "--xml=yes", f"--xml-socket=127.0.0.1:{port}"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    script = small_run().bytes()
    process.stdin.write(script)
    process.stdin.flush()
    assert process.stdout.readline() == b"new\n" and process.stdout.readline() == b"new\n"
    reader = qt_reader.Reader()
    deadline = 2400
    while b"".join(received).count(b"</error>") < 2 and deadline:
        deadline -= 1
        threading.Event().wait(0.05)
    so_far = b"".join(received)
    reader.feed(so_far)
    assert len(reader.errors) == 2 and reader.states == ["RUNNING"]
    process.stdin.write(b"close\t4\t2\t0\t0\t0\t0\n")
    process.stdin.close()
    process.stdout.read()
    process.wait()
    thread.join()
    reader.feed(b"".join(received)[len(so_far):])
    reader.close()
    assert reader.states == ["RUNNING", "FINISHED"]
