"""JUnit XML of a gate: well formed, and nothing in a name is more than text."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from evalwright.analysis.gate import Gate, RuleResult, judge, parse_gate_rule
from evalwright.reports.junit import junit_xml
from support.hostile import ACTIVE, HOSTILE
from support.runs import make_run


def test_a_case_per_rule_and_task(tmp_path: Path) -> None:
    one = make_run(tmp_path, scores={"x": [1] * 40, "y": [1] * 40, "z": [1]}, name="a")
    other = make_run(
        tmp_path, scores={"x": [0] * 40, "y": [1] * 40, "z": [None]}, name="b"
    )
    rules = ["accuracy drops by more than 2 points", "n_missing is above 5"]
    gate = judge(one, other, [parse_gate_rule(rule) for rule in rules])
    (suite,) = ElementTree.fromstring(junit_xml([gate]).encode())
    assert suite.attrib == {
        "name": "b against a", "tests": "4", "failures": "1", "errors": "1", "skipped": "0",
    }  # fmt: skip
    cases = {(case.get("classname"), case.get("name")): case for case in suite}
    assert list(cases) == [
        ("x", rules[0]),
        ("y", rules[0]),
        ("z", rules[0]),
        ("all tasks", rules[1]),
    ]
    assert [[part.tag for part in case] for case in cases.values()] == [
        ["failure"], ["system-out"], ["error"], ["system-out"],
    ]  # fmt: skip
    failure = cases["x", rules[0]][0]
    assert failure.get("type") == "shown"
    assert failure.text == failure.get("message") == gate.outcomes[0].sentence


def test_hostile_names_are_text() -> None:
    for name in (*HOSTILE, "]]>", "\ufffe\uffff", "\U0001fffe", "<!DOCTYPE x>"):
        outcome = RuleResult(
            f"{name} differs", name, name, True, True, f"{name}: found."
        )
        text = junit_xml([Gate(name, name, "shown", (outcome, outcome))])
        root = ElementTree.fromstring(text.encode("utf-8"))
        tags = ["testsuites", "testsuite", "testcase", "failure", "testcase", "failure"]
        assert [element.tag for element in root.iter()] == tags, name
        assert not set(text) & (set(ACTIVE) | {"\ufffe", "\uffff"}), name
