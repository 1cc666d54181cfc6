# SPDX-License-Identifier: MIT
"""Reports of real runs."""

import json
import os
import shutil
import subprocess
import threading

import real
import sarif_check
from driving import BUILD, WORK, golden, validator, whole_run, xml_of
from scripts import MAIN, Script
from suite import Skip, test


LEAKY = r"""
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
static int opened(void) { return open("/dev/null", O_RDONLY); }
int main(int argc, char **argv)
{
    int fd = opened();
    (void)argv;
    close(fd);
    close(fd);
    if (argc > 1)
        raise(SIGKILL);
    return opened() == -1;
}
"""


@test
def real_run_makes_every_report_even_when_killed():
    muninn = os.environ.get("MUNINN") or str(BUILD / "muninn")
    if not (BUILD / "muninn-monitor").exists():
        raise Skip("no monitor in this build")
    where = WORK / "real"
    where.mkdir()
    (where / "leaky.c").write_text(LEAKY)
    subprocess.run(["gcc", "-g", "-O0", "-o", "leaky", "leaky.c"], cwd=where, check=True)
    for arguments, code in (([], 0), (["die"], -9)):
        done = subprocess.run(
            [muninn, "--command-line-only=yes", "--track-fds=yes", "--json-file=r.json",
             "--sarif-file=r.sarif", "--xml=yes", "--xml-protocol=5", "--xml-file=r.xml",
             "--log-file=r.log", "--only=leaky", "./leaky", *arguments], cwd=where, timeout=300)
        assert done.returncode == code, done.returncode
        document = wait_for(where)
        validator().validate(document)
        twice = document["findings"][0]
        assert twice["kind"] == "fd-bad-close" and twice["stack"][-1]["line"] == 11, twice
        assert [part["kind"] for part in twice["parts"]] == ["fd-closed", "fd-opened"]
        sarif = json.loads((where / "r.sarif").read_bytes())
        sarif_check.check(sarif)
        place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "leaky.c", "uriBaseId": "SRCROOT"}, place
        assert "<kind>FdBadClose</kind>" in (where / "r.xml").read_text()
        assert (where / "r.xml").read_text().rstrip().endswith("</valgrindoutput>")
        log = (where / "r.log").read_text()
        assert "==    by 0x" in log and "main (leaky.c:11)" in log and "ERROR SUMMARY: " in log


def wait_for(where):
    """The document when all reports are whole: the monitor may be a moment behind a client that was
    killed."""
    for _ in range(2400):
        try:
            document = json.loads((where / "r.json").read_bytes())
            json.loads((where / "r.sarif").read_bytes())
            if document["status"] == "finished" and "SUMMARY: " in (where / "r.log").read_text() \
                    and (where / "r.xml").read_text().rstrip().endswith("</valgrindoutput>"):
                return document
        except ValueError:  # it is being written
            pass
        threading.Event().wait(0.05)
    raise AssertionError("the reports are not finished")


def needs_a_whole_build():
    if not (BUILD / "muninn-monitor").exists() or BUILD.name == "asan":
        raise Skip("no muninn that can run programs in this build")


def work_folder(name):
    (WORK / name).mkdir()
    return WORK / name


@test
def descriptors_are_errors_of_protocols_5_and_6():
    needs_a_whole_build()
    if not shutil.which("xmllint"):
        raise Skip("no xmllint")
    for tool in ("memcheck", "none"):
        real.descriptors_are_errors(work_folder(f"descriptors-{tool}"), tool)


@test
def every_kind_fits_the_schemas():
    if not shutil.which("xmllint"):
        raise Skip("no xmllint")
    script = whole_run()
    more = Script()
    more.frames([MAIN])
    more.add("thread", 1, "main").add("thread", 2, "wk").add("client", 2, "hello <world>\n")
    more.frames([MAIN])
    more.add("fatal", 11, 1, 0x1fff001000, 8388608, 1).close()
    entry = ("{\n   <insert_a_suppression_name_here>\n   Memcheck:Leak\n   match-leak-kinds: "
             "definite\n   fun:main\n   obj:/lib/a\n}\n")
    suppressed = Script().finding("leak-definite", (4, 1, 1, 1), (MAIN,), leak=(4, 1, 1, 1),
                                  suppression=entry).close(1, 1)
    for protocol in (4, 5, 6):
        for made in (script, more, suppressed):
            path = WORK / f"kinds{protocol}.xml"
            path.write_bytes(xml_of(made, f"--xml-protocol={protocol}",
                                    "--xml-user-comment=<a b='c'>d</a>"))
            real.check_schema(path, protocol)
    # The schemas are not of the kind that take anything.
    path.write_bytes(xml_of(script, "--xml-protocol=5"))
    for protocol in (4, 6):
        try:
            real.check_schema(path, protocol)
        except AssertionError:
            continue
        raise AssertionError(f"a report of protocol 5 is one of protocol {protocol}")


@test
def a_death_under_none_is_told_as_under_memcheck():
    needs_a_whole_build()
    real.none_says_what_memcheck_says(work_folder("deaths"))


@test
def words_on_a_death_are_these_and_under_the_incumbents_name_its():
    needs_a_whole_build()
    real.fatal_text_is_pinned(work_folder("pinned"), golden)
    real.filters_of_the_incumbent_find_their_lines(work_folder("filters"))


@test
def leaks_of_unloaded_plugins_keep_their_names():
    needs_a_whole_build()
    real.names_of_plugins_that_are_gone(work_folder("plugins"))
    real.errors_of_plugins_that_are_gone(work_folder("stale"))
