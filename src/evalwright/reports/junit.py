"""Gates as JUnit XML, which build servers show: one test case per rule and task.

Untrusted names appear in it only as escaped text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from evalwright.analysis.gate import Gate
from evalwright.reports.text import inert

_NO_XML = re.compile("[\ufffe\uffff]|[\U0001fffe\U0001ffff]")
"""Characters that XML 1.0 forbids, besides those that `inert` escapes."""


def junit_xml(gates: Sequence[Gate]) -> str:
    """Write one test suite per gate. A failed rule is a failure, one without a verdict an error."""
    root = ElementTree.Element("testsuites", name="evalwright compare")
    for gate in gates:
        judged = [outcome for outcome in gate.outcomes if outcome.judged]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_text(gate.b if gate.a == gate.b else f"{gate.b} against {gate.a}"),
            tests=str(len(gate.outcomes)),
            failures=str(sum(outcome.failed for outcome in judged)),
            errors=str(len(gate.outcomes) - len(judged)),
            skipped="0",
        )
        for outcome in gate.outcomes:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=_text(outcome.task or "all tasks"),
                name=_text(outcome.rule),
            )
            if outcome.failed:
                element_name = "failure" if outcome.judged else "error"
                problem = ElementTree.SubElement(
                    case, element_name, type=gate.mode, message=_text(outcome.sentence)
                )
                problem.text = _text(outcome.sentence)
            else:
                ElementTree.SubElement(case, "system-out").text = _text(
                    outcome.sentence
                )
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _text(text: str) -> str:
    return _NO_XML.sub("?", inert(text))
