# SPDX-License-Identifier: MIT
"""The classic text, and the programs that read it."""

import difflib
import os
import re
import shutil
import subprocess

import incumbent
import qt_reader
from driving import HERE, WORK, drive, golden, small_run, text_of, whole_run, xml_of
from scripts import HELPER, MAIN, MALLOC, NOWHERE, START, STRIPPED, Script
from suite import Skip, test


@test
def every_kind_has_its_classic_words():
    golden("kinds.txt", text_of(whole_run()))


@test
def lists_of_findings_and_suppressions_are_as_before():
    script = small_run()
    script.finding("uninit-branch", (), (MAIN,), tid=2, name="worker")
    script.finding("leak-definite", (4, 1, 1, 1), (MALLOC, MAIN), leak=(4, 1, 1, 1))
    script.add("use", 3, "my-supp", "s.supp", 2, 0, 0)
    script.add("use", 1, "leak", "s.supp", 12, 4000, 1000)
    script.add("use", 0, "old", "s.supp", 20, 0, 0)
    script.close(6, 4, 4, 2)
    golden("lists.txt", text_of(script, "-s"))
    text = text_of(script, "--show-error-list=all")
    assert "--123-- unused_suppression:      0 old s.supp:20" in text, text


@test
def run_without_findings_says_so_once():
    lines = text_of(Script().close(), "-s").splitlines()
    assert lines[-1] == "==123== ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)"
    assert sum("ERROR SUMMARY" in line for line in lines) == 1


@test
def quiet_run_writes_findings_only():
    script = Script().add("line", "HEAP SUMMARY:").add("note", "said anyway")
    assert text_of(script.close(), "-q") == "==123== said anyway\n"
    text = text_of(small_run().close(4, 2), "-q")
    assert text.startswith("==123== Invalid read of size 4\n"), text
    assert text.endswith("\n==123== \n") and "SUMMARY" not in text, text
    assert "ERROR SUMMARY: 4" in text_of(small_run().close(4, 2), "-q", "-s")


@test
def markers_time_stamps_and_threads_come_in_their_order():
    script = Script().finding("invalid-read", (1,), (MAIN,), tid=2, name="wk")
    script.finding("invalid-read", (2,), (MAIN,), tid=2, name="wk")
    script.finding("invalid-read", (4,), (MAIN,)).close(3, 3)
    text = text_of(script, "-q", "--error-markers=BEG,END", "--time-stamp=yes")
    assert re.match(r"==00:00:00:00\.\d{3} 123== BEG\n", text), text
    plain = re.sub(r"==\S+ 123==", "==123==", text)
    assert plain.startswith("==123== BEG\n==123== Thread 2 wk:\n==123== Invalid read of size 1\n")
    assert plain.count("Thread 2") == 1 and "==123== BEG\n==123== Thread 1:\n" in plain, plain
    assert plain.endswith("==123== \n==123== END\n"), plain


@test
def frames_follow_the_options():
    stack = (HELPER, (0x109180, "inner", "/o", "/d", "i.c", 3, "inlined"), MAIN, START, STRIPPED)
    script = Script().finding("invalid-read", (1,), stack).close(1, 1)

    def shown(*options):
        lines = text_of(script, "-q", *options).splitlines()
        return [line.split("== ")[1].strip() for line in lines if "0x" in line]

    assert shown()[-1] == "by 0x1091A1: main (a.c:5)", shown()
    assert shown("--show-below-main=yes")[-2:] == [
        "by 0x488A249: __libc_start_call_main (start.h:58)",
        "by 0x4900010: ??? (in /usr/lib/libsecret.so.1)"]
    # An inlined function and its caller are one frame.
    assert len(shown("--num-callers=2")) == 3, shown("--num-callers=2")
    assert shown("--fullpath-after=")[0] == "at 0x109170: helper (/home/me/src/lib/b.c:17)"
    assert shown("--fullpath-after=/nope/", "--fullpath-after=/home/me/")[0].endswith("(src/lib/b.c:17)")
    below = Script().finding("invalid-jump", (), (NOWHERE, START, STRIPPED)).close(1, 1)
    assert "by 0x488A249: (below main) (start.h:58)\n==123== \n" in text_of(below, "-q")


@test
def banner_names_the_parent_only_in_a_file():
    path = WORK / "banner.log"
    script = Script(args=["./a b", "x\ty", "q'"]).close()
    drive(script, f"--log-file={path}")
    lines = path.read_text().splitlines()
    assert lines[0] == "==123== Memcheck, a memory error detector"
    assert lines[3] == "==123== Command: ./a\\ b x\\\ty q'", lines[3]
    assert lines[4] == "==123== Parent PID: 100" and lines[5] == "==123== "
    assert "Parent" not in text_of(script)


@test
def client_text_and_thread_announcements_are_as_before():
    script = Script().add("client", 1, "hello\nworld\n")
    script.frames([MAIN])
    script.add("client", 1, "traced\n")
    script.frames([MAIN])
    script.add("thread", 2, "wk").close()
    assert "**123** hello\n**123** world\n**123** traced\n==123==    at 0x1091A1" in text_of(script)
    assert ("==123== ---Thread-Announcement------------------------------------------\n==123== \n"
            "==123== Thread #2 was created\n==123==    at 0x1091A1: main (a.c:5)\n==123== \n"
            ) in text_of(script)


@test
def fatal_signals_are_as_before():
    script = Script()
    script.frames([MAIN])
    script.add("fatal", 11, 1, 0x1fff001000, 8388608, 1).close()
    text = text_of(script)
    golden("fatal.txt", text)
    assert "main thread stack using the --main-stacksize= flag" in text_of(
        script, "--xml=yes", f"--xml-file={WORK / 'x.xml'}"), "cargo-valgrind looks for it"
    abort = Script()
    abort.frames([MAIN])
    abort.add("fatal", 6, -6, 0, 0, 1).close()
    assert text_of(abort, "-q") == ""
    assert "signal 6 (SIGABRT)\n==123==    at 0x1091A1" in text_of(abort)


@test
def generated_suppression_stands_without_prefix():
    entry = "{\n   <insert_a_suppression_name_here>\n   Memcheck:Addr4\n   fun:main\n}\n"
    script = Script().finding("invalid-read", (4,), (MAIN,), suppression=entry).close(1, 1)
    assert text_of(script, "-q").endswith("==123== \n" + entry)


# What cmCTestMemCheckHandler looks for (USERS.md 3.2).
CTEST = [
    r"^==[0-9]+== .*Invalid free\(\) / delete / delete\[\]",
    r"^==[0-9]+== .*Mismatched free\(\) / delete / delete \[\]",
    r"^==[0-9]+== .*[0-9,]+ bytes in [0-9,]+ blocks are definitely lost in loss record [0-9,]+ of "
    r"[0-9,]+",
    r"^==[0-9]+== .*[0-9,]+ \([0-9,]+ direct, [0-9,]+ indirect\) bytes in [0-9,]+ blocks are "
    r"definitely lost in loss record [0-9,]+ of [0-9,]+",
    r"^==[0-9]+== .*[0-9,]+ bytes in [0-9,]+ blocks are possibly lost in loss record [0-9,]+ of "
    r"[0-9,]+",
    r"^==[0-9]+== .*[0-9,]+ bytes in [0-9,]+ blocks are still reachable in loss record [0-9,]+ of "
    r"[0-9,]+",
    r"^==[0-9]+== .*Syscall param .* (contains|points to) unaddressable byte\(s\)",
    r"^==[0-9]+== .*Syscall param .* (contains|points to) uninitialised byte\(s\)",
    r"^==[0-9]+== .*Conditional jump or move depends on uninitialised value\(s\)",
    r"^==[0-9]+== .*Use of uninitialised value of size [0-9,]+",
    r"^==[0-9]+== .*Invalid read of size [0-9,]+",
    r"^==[0-9]+== .*Invalid write of size [0-9,]+",
    r"^==[0-9]+== .*Jump to the invalid address ",
]


@test
def ctest_finds_every_kind():
    script = whole_run()
    script.lines.insert(-1, "\n".join(Script().finding(
        "leak-definite", (1100, 2, 1, 4), (MAIN,), leak=(1100, 2, 1, 4)).lines[4:]))
    lines = text_of(script, "-q").splitlines()
    assert all(re.match(r"^==[0-9]+==", line) for line in lines)
    for pattern in CTEST:
        assert any(re.search(pattern, line) for line in lines), f"no line matches {pattern}"


def redis_errors(text):
    """find_valgrind_errors of Redis' test suite (USERS.md 3.1)."""
    found = bool(re.search(r" at 0x", text)) or any(
        "Warning" in line and "set address range perms" not in line for line in text.splitlines())
    return found or any(word in text for word in (
        "Invalid", "Mismatched", "uninitialized", "has a fishy", "overlap"))


@test
def redis_sees_a_clean_run_as_clean_and_a_bad_one_as_bad():
    clean = Script().add("line", "\nHEAP SUMMARY:\n    in use at exit: 0 bytes in 0 blocks")
    clean.add("line", "\nAll heap blocks were freed -- no leaks are possible\n").close()
    for options in ((), ("-v",), ("-s",), ("--color=no",)):
        assert not redis_errors(text_of(clean, *options)), options
    assert redis_errors(text_of(whole_run()))


@test
def same_words_and_layout_as_the_incumbent():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    program, xml = WORK / "same", WORK / "same.xml"
    subprocess.run(["gcc", "-g", "-O0", "-w", "-o", program, HERE / "same.c", "-lpthread"],
                   check=True)
    options = ["--track-origins=yes", "--leak-check=full", "--show-leak-kinds=all", "-s"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VALGRIND")}
    subprocess.run(["valgrind", *options, "--xml=yes", f"--xml-file={xml}", program],
                   check=True, env=environment, stderr=subprocess.DEVNULL)
    theirs = subprocess.run(["valgrind", *options, program], env=environment, text=True,
                            stderr=subprocess.PIPE, check=True).stderr
    errors, contexts = re.search(r"SUMMARY: (\d+) errors from (\d+) contexts", theirs).groups()
    script = incumbent.script_of(qt_reader.read(xml.read_bytes()), [str(program)])
    script.close(errors, contexts)
    ours = text_of(script, "-s")

    def plain(text):
        text = re.sub(r"(?m)^==\d+==", "==PID==", text)
        text = re.sub(r"0x[0-9a-fA-F]+", lambda m: "0xA" if m[0][2:].upper() != m[0][2:] else "0xB", text)
        # Summaries are the tool's, and who made it is not compared.
        text = re.sub(r"==PID== (\n==PID== HEAP|LEAK) SUMMARY:\n(==PID==  +.*\n)*==PID== \n", "",
                      text)
        return re.sub(r"==PID== (Copyright|Using) .*\n", "", text).splitlines()

    assert plain(ours) == plain(theirs), "text differs\n" + "\n".join(
        difflib.unified_diff(plain(theirs), plain(ours), "theirs", "ours", lineterm=""))

    def plain_xml(data):
        text = re.sub(r"0x[0-9a-fA-F]+", "0xA", data.decode())
        text = re.sub(r"(?s)<(vargv|time|pid|ppid)>.*?</\1>", r"<\1/>", text)
        # The incumbent's fishy value has its line end inside.
        text = text.replace("\n</what>  ", "</what>\n  ")
        return re.sub(r"  <line>(Copyright|Using).*\n", "", text).splitlines()

    assert plain_xml(xml_of(script)) == plain_xml(xml.read_bytes()), "XML differs"
