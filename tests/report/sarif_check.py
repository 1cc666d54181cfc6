# SPDX-License-Identifier: MIT
"""The rules of SARIF 2.1.0 that our documents touch: required properties, enumerations, indices and
URIs, and what code-scanning services demand beyond them. Raises AssertionError."""

import re
from urllib.parse import urlparse

LEVELS = {"none", "note", "warning", "error"}
BASELINE_STATES = {"new", "unchanged", "updated", "absent"}
URI = re.compile(r"^[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*$")


def check_message(message):
    assert isinstance(message.get("text"), str) and message["text"], "a message needs a text"


def check_artifact(artifact, bases):
    uri = artifact["uri"]
    assert URI.match(uri) and not re.search(r"%(?![0-9A-F]{2})", uri), f"not a URI: {uri!r}"
    if "uriBaseId" in artifact:
        assert artifact["uriBaseId"] in bases, "a base that is not declared"
        assert not urlparse(uri).scheme and not uri.startswith("/"), f"not relative: {uri}"


def check_location(location, bases, must_be_physical=False):
    physical = location.get("physicalLocation")
    assert physical or not must_be_physical, "a location without a file"
    if physical:
        check_artifact(physical["artifactLocation"], bases)
        assert physical["region"]["startLine"] >= 1
    for logical in location.get("logicalLocations", ()):
        assert isinstance(logical["fullyQualifiedName"], str)
    if "message" in location:
        check_message(location["message"])


def check_result(result, rules, bases):
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] in LEVELS
    check_message(result["message"])
    assert result.get("baselineState", "new") in BASELINE_STATES
    assert result["occurrenceCount"] >= 1
    assert result["locations"], "code scanning wants a place for each result"
    for location in result["locations"]:
        check_location(location, bases, must_be_physical=True)
    for stack in result.get("stacks", ()):
        check_message(stack["message"])
        for frame in stack["frames"]:
            check_location(frame["location"], bases)
    ids = [location["id"] for location in result.get("relatedLocations", ())]
    assert len(ids) == len(set(ids)) and all(i >= 0 for i in ids)
    for location in result.get("relatedLocations", ()):
        check_location(location, bases)
        check_message(location["message"])
    for flow in result.get("codeFlows", ()):
        assert flow["threadFlows"], "a flow needs threads"
        for thread in flow["threadFlows"]:
            assert thread["locations"], "a thread flow needs locations"
            for step in thread["locations"]:
                check_location(step["location"], bases)
    for name, value in result["partialFingerprints"].items():
        assert re.fullmatch(r"\w+/v\d+", name) and isinstance(value, str)


def check(document):
    assert document["version"] == "2.1.0" and "sarif-2.1.0" in document["$schema"]
    assert document["runs"]
    for run in document["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"]
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(ids) == len(set(ids)), "a rule twice"
        for rule in driver["rules"]:
            check_message(rule["shortDescription"])
            assert rule["defaultConfiguration"]["level"] in LEVELS
        bases = run.get("originalUriBaseIds", {})
        for base in bases.values():
            assert base["uri"].startswith("file:///") and base["uri"].endswith("/")
        for result in run["results"]:
            check_result(result, driver["rules"], bases)
        for invocation in run.get("invocations", ()):
            assert isinstance(invocation["executionSuccessful"], bool)
