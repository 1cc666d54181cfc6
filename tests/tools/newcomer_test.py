# SPDX-License-Identifier: MIT
"""The way of a newcomer: `muninn new-tool`, the page that takes one from nothing to a tool, whose commands
are executed as they stand there, and installed tools by name."""
import os
import re
import subprocess

import lab
from suite import test


def installed():
    """An environment in which what is installed is found, as by a user."""
    return {**os.environ, "PATH": f"{lab.PREFIX}/bin:{os.environ['PATH']}"}


def shell(script, cwd):
    done = subprocess.run(["bash", "-e", "-c", script], cwd=cwd, env=installed(), text=True,
                          capture_output=True, check=False, timeout=lab.PATIENCE)
    assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def folder(name):
    path = os.path.join(lab.WORK, name)
    os.makedirs(path)
    return path


@test
def the_page_for_newcomers_works_as_it_stands():
    with open(f"{lab.ROOT}/docs/user/write-a-tool.md", encoding="utf-8") as file:
        parts = re.findall(r"^```(sh|c file=\S+)\n(.*?)^```$", file.read(), re.M | re.S)
    assert len(parts) >= 5, parts
    script = ""
    for kind, text in parts:
        name = kind.partition("file=")[2]
        script += f"cat > {name} <<'END_OF_FILE'\n{text}END_OF_FILE\ntouch -d '1 minute' {name}\n" if name else text
    output = shell(script, folder("newcomer"))
    assert re.search(r"^calls: \d+ instructions, \d+ calls of malloc$", output, re.M), output
    assert re.search(r"^calls: thread 1: malloc\(\d+\)$", output, re.M), output
    found = re.search(r"^calls: (\d+) direct calls, (\d+) indirect ones\n((?:calls: +\d+  .*\n){3})", output,
                      re.M)
    assert found and int(found[1]) > int(found[2]) > 0, output


@test
def a_new_tool_builds_and_runs_at_once():
    work = folder("skeleton")
    output = shell("muninn new-tool my-tool && cd my-tool && make -s run PROGRAM=/bin/true", work)
    assert re.search(r"^my-tool: \d+ instructions", output, re.M), output
    output = shell(f"{lab.MUNINN} new-tool other && cd other && make -s run PROGRAM=/bin/true", work)
    assert re.search(r"^other: \d+ instructions", output, re.M), output


@test
def names_that_are_none_are_refused():
    work = folder("names")
    os.makedirs(f"{work}/there")
    for words, reason in ((["there"], "cannot make the folder there: File exists"),
                          (["../up"], "is no name for a tool"), (["1st"], "is no name for a tool"),
                          ([], "usage: "), (["a", "b"], "usage: ")):
        done = subprocess.run([lab.MUNINN, "new-tool", *words], cwd=work, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 1 and reason in done.stderr, done.stderr
    assert os.listdir(work) == ["there"]


@test
def installed_tools_go_by_name():
    muninn = f"{lab.PREFIX}/bin/muninn"
    done = subprocess.run([muninn, "--tool=syscount", "/bin/true"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0 and "syscount: 100.00" in done.stderr, done.stderr
    done = subprocess.run([muninn, "--tool=hotblocks", "--help"], capture_output=True, text=True,
                          check=False)
    assert done.stdout.startswith("hotblocks: ") and "--limit=NUMBER" in done.stdout, done.stdout
    done = subprocess.run([muninn, "--tool=hotblock", "/bin/true"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and "unknown name 'hotblock'" in done.stderr, done.stderr


@test
def tools_that_are_absent_name_the_examples_that_show_the_same():
    for name, examples in (("lackey", ("howvec", "memtrace", "hotblocks")), ("exp-bbv", ("bbv",))):
        done = lab.run(name, "/bin/true")
        assert done.status == 1, done
        assert all(example in done.err for example in examples), done.err
        assert all(example in lab.sh(lab.MUNINN, "--help") for example in examples)
