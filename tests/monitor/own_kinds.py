# SPDX-License-Identifier: MIT
"""Kinds of findings that no table has: the tool describes them when it connects to the monitor, and
every output knows them from that alone. --tool=findingtest brings two and a kind of part."""

import json

import findings_table
from suite import test
from world import folder, run, summary, wait_for_json, wait_for_xml

SHAPES, KINDS, PARTS = findings_table.read()
LATE, BARE = len(KINDS), len(KINDS) + 1  # behind those of the table
WAITED_FOR = len(PARTS) + 1  # 0: no part
FOUND = ("kind", LATE, 1500, 2, 0, "answer", WAITED_FOR)
SENTENCE = "answer answers 1,500 ms late: it waited for the network"


@test
def text_has_the_sentences_of_the_description():
    done = run(*FOUND, "kind", LATE, 7, 0, 1, "reply", 0, "kind", BARE, 1, 2, 3, "text", 0)
    assert f" {SENTENCE}\n" in done.log, done
    assert "  Thread #1500 was waiting\n" in done.log, done
    assert " reply answers 7 ms late again: it waited for nobody\n" in done.log, done
    assert " bare-kind\n" in done.log and summary(done.log) == (3, 3), done


@test
def texts_tell_findings_of_such_a_kind_apart():
    words = [w for name in ("a", "b", "a") for w in ("kind", LATE, 1, 0, 0, name, 0)]
    assert summary(run(*words).log) == (3, 2)


@test
def json_has_the_description_and_the_fields_by_name():
    where = folder() / "j"
    run(*FOUND, "kind", BARE, 0, 0, 0, "", 0, options=[f"--json-file={where}"])
    late, bare = wait_for_json(where)["findings"]
    assert late["kind"] == "late-answer" and late["tool"] == "Findingtest", late
    assert late["what"] == SENTENCE and late["level"] == "warning", late
    assert late["title"] == "An answer comes too late", late
    assert late["help"] == "https://example.org/late-answer", late
    assert late["fields"] == {"milliseconds": 1500, "cause": "the network", "is_repeated": False,
                              "function": "answer"}, late
    assert late["parts"][0]["kind"] == "waited-for", late
    assert bare["title"] == "bare-kind" and bare["level"] == "error", bare
    assert bare["fields"] == {} and "help" not in bare, bare


@test
def sarif_has_a_rule_for_each_described_kind():
    where = folder() / "s"
    run(*FOUND, options=[f"--sarif-file={where}"])
    sarif = json.loads(where.read_text())["runs"][0]
    result = sarif["results"][0]
    rule = sarif["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "late-answer" and rule["name"] == "LateAnswer", rule
    assert rule["helpUri"] == "https://example.org/late-answer", rule
    assert rule["defaultConfiguration"]["level"] == result["level"] == "warning", rule


@test
def xml_leaves_it_to_the_text_where_the_protocol_cannot_say_it():
    for protocol, expected in ((4, []), (5, ["LateAnswer"]), (6, ["LateAnswer"])):
        where = folder() / "x"
        done = run(*FOUND, options=["--xml=yes", f"--xml-file={where}",
                                    f"--xml-protocol={protocol}"])
        kinds = [e.text for e in wait_for_xml(where).findall("error/kind")]
        assert kinds == expected, (protocol, kinds)
        assert (SENTENCE in done.log) == (protocol == 4), done


@test
def generated_entry_suppresses_it():
    done = run(*FOUND, options=["--gen-suppressions=all"])
    entry = done.log[done.log.index("\n{\n") + 1:]
    entry = entry[:entry.index("}\n") + 2]
    assert "\n   Findingtest:LateNetwork\n" in entry, done
    path = folder() / "entry.supp"
    path.write_text(entry)
    options = [f"--suppressions={path}"]
    assert "0 errors from 0 contexts (suppressed: 1 from 1)" in run(*FOUND, options=options).log
    # Another cause is another kind of entry.
    assert summary(run("kind", LATE, 1, 1, 0, "answer", 0, options=options).log) == (1, 1)


@test
def a_forks_child_describes_them_again():
    done = run("fork", *FOUND, "end", "waitall")
    assert done.log.count(f" {SENTENCE}\n") == 1, done


@test
def what_nobody_has_described_is_no_finding():
    done = run("kind", BARE + 1, 1, 2, 3, "", 0, "find", 1, "kind", 2**32 - 1, 0, 0, 0, "", 0)
    assert summary(done.log) == (1, 1), done
