"""promptfoo's assertions as those of the scorer `assertions`; programs are left out by name."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalwright import EvalwrightError
from evalwright.compat.promptfoo.config_files import (
    SCRIPTS,
    ConfigFolder,
    Notes,
    is_reference,
    read_document,
    read_text,
    suffix_of,
)
from evalwright.compat.promptfoo.patterns import to_python
from evalwright.compat.promptfoo.variables import Logic, as_text, fill
from evalwright.extend import bind_scorer, parse_json

TYPES = (
    "contains",
    "contains-all",
    "contains-any",
    "contains-json",
    "cost",
    "equals",
    "icontains",
    "icontains-all",
    "icontains-any",
    "is-json",
    "latency",
    "llm-rubric",
    "regex",
    "similar",
    "starts-with",
)
"""Types that mean the same here."""
RUN = ("javascript", "python", "ruby", "webhook")
"""Types that run a program or ask a server of the configuration's choice."""
SET = "assert-set"
_LISTS = ("contains-all", "contains-any", "icontains-all", "icontains-any", "similar")
_LEFT_OUT_KEYS = (
    "config",
    "contextTransform",
    "metric",
    "normalizeUnicode",
    "rubricPrompt",
)
"""Keys without which an assertion still asks the same of an answer, or nearly."""
_READ_KEYS = ("provider", "threshold", "type", "value", "weight")
_SIMILAR_IN_TABLES = 0.8
_OTHERS_IN_TABLES = 0.75
_IN_TABLES = re.compile(
    r"(?P<type>(?:not-)?[a-z][a-z0-9-]*(?::[a-z]+(?=\())?)(?:\((?P<threshold>\d+(?:\.\d+)?)\))?(?::(?P<value>.*))?",
    re.DOTALL,
)
_CODE_IN_TABLES = ("eval:", "fn:", "javascript:", "python:", "file://")
_WITH_THRESHOLD = ("cost", "latency", "similar", "starts-with")


class LeftOut(Exception):
    """An assertion cannot be taken over; the message says why."""


@dataclass(slots=True)
class AssertionConverter:
    """Converts assertions, and remembers which models they need.

    Attributes:
        config: the whole configuration, for `$ref`.
        folder: its folder.
        notes: what is left out.
        graders: the providers that assertions name for judging.
        kinds: the types that were taken over.
    """

    config: Mapping[str, Any]
    folder: ConfigFolder
    notes: Notes
    graders: list[Any] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    _checked: dict[str, str] = field(default_factory=dict)

    def convert(
        self, entry: Any, variables: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Convert one assertion; None, and a note, if that cannot be done.

        Args:
            entry: the assertion, as the configuration has it.
            variables: those of the test, to be filled in.
        """
        try:
            entry = self._resolved(entry)
            if entry.get("type") == SET:
                return self._convert_set(entry, variables)
            return self._convert_one(entry, variables)
        except LeftOut as reason:
            kind = entry.get("type") if isinstance(entry, Mapping) else None
            self.notes.add(
                f"An assertion{f' {kind!r}' if kind else ''} is left out: {reason}."
            )
        return None

    def _resolved(self, entry: Any) -> Mapping[str, Any]:
        """Return the assertion that a `$ref` stands for."""
        reference = entry.get("$ref") if isinstance(entry, Mapping) else None
        if reference is not None:
            node: Any = self.config
            for step in str(reference).removeprefix("#").strip("/").split("/"):
                node = node.get(step) if isinstance(node, Mapping) else None
            if not str(reference).startswith("#/") or not isinstance(node, Mapping):
                raise LeftOut(f"'{reference}' is not in the configuration")
            entry = node
        if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
            raise LeftOut(f"it has no `type`: {entry!r:.80}")
        return entry

    def _convert_set(
        self, entry: Mapping[str, Any], variables: Mapping[str, Any]
    ) -> dict[str, Any]:
        listed = entry.get("assert")
        members = [
            self.convert(member, variables)
            for member in (listed if isinstance(listed, list) else [])
            if not (isinstance(member, Mapping) and member.get("type") == SET)
        ]
        converted_members = [member for member in members if member is not None]
        if not converted_members:
            raise LeftOut("none of its assertions can be taken over")
        converted = {"type": SET, **self._numbers(entry), "assert": converted_members}
        self._check(converted)
        return converted

    def _convert_one(
        self, entry: Mapping[str, Any], variables: Mapping[str, Any]
    ) -> dict[str, Any]:
        name = "similar" if entry["type"] == "similar:cosine" else entry["type"]
        kind = name.removeprefix("not-")
        if kind in RUN:
            raise LeftOut("it runs a program, and nothing of a configuration is run")
        if kind not in TYPES:
            raise LeftOut("there is no such type here")
        if "transform" in entry:
            raise LeftOut("its `transform` is a program, and nothing is run")
        for key in entry:
            if key in _LEFT_OUT_KEYS:
                self.notes.add(f"'{key}' of assertions is left out.")
            elif key not in _READ_KEYS:
                self.notes.add(f"'{key}' of assertions is not known, and left out.")
        converted = {"type": name, **self._numbers(entry)}
        if kind not in ("cost", "latency"):
            converted |= self._expected(kind, entry.get("value"), variables)
        self._check(converted)
        self.kinds.add(kind)
        if "provider" in entry:
            self.graders.append(entry["provider"])
        return converted

    def _numbers(self, entry: Mapping[str, Any]) -> dict[str, float]:
        numbers: dict[str, float] = {}
        for key in ("threshold", "weight"):
            number = entry.get(key)
            if number is None:
                continue
            if not isinstance(number, int | float) or isinstance(number, bool):
                raise LeftOut(f"its `{key}` is not a number: {number!r:.40}")
            numbers[key] = int(number) if float(number).is_integer() else float(number)
        return numbers

    def _expected(
        self, kind: str, expected: Any, variables: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what an assertion compares with, its variables filled in."""
        if is_reference(expected):
            expected = self._of_file(expected)
        try:
            if isinstance(expected, str):
                expected = fill(expected, variables)
            elif isinstance(expected, list):
                expected = [
                    fill(text, variables) if isinstance(text, str) else text
                    for text in expected
                ]
        except Logic as reason:
            raise LeftOut(f"it has {reason}") from None
        if kind in _LISTS and isinstance(expected, list):
            expected = [as_text(text) for text in expected]
        elif kind in _LISTS and kind != "similar" and isinstance(expected, str):
            expected = _split(expected)
        if kind in ("is-json", "contains-json"):
            expected = _schema(expected)
        if kind == "llm-rubric" and isinstance(expected, Mapping | list):
            expected = as_text(expected)
        if kind == "regex":
            try:
                expected = to_python(as_text(expected))
            except ValueError as error:
                raise LeftOut(
                    f"the regular expression '{as_text(expected)[:60]}' has {error},"
                    " which is not translated"
                ) from None
        return {} if expected is None else {"value": _plain(expected)}

    def _of_file(self, reference: str) -> Any:
        if suffix_of(reference) in SCRIPTS:
            raise LeftOut(f"'{reference}' is a program, and nothing is run")
        path = self.folder.find(reference)
        if path.suffix.lower() in (".json", ".yaml", ".yml"):
            return read_document(path, "file of an assertion")
        return read_text(path)

    def _check(self, converted: dict[str, Any]) -> None:
        """Refuse what the scorer would refuse: a pattern that is none, a schema, no threshold."""
        written = json.dumps(converted, sort_keys=True, default=str)
        if written not in self._checked:
            models = {"judges": ["judge"], "role": "embedder"}
            try:
                bind_scorer("assertions", {"assertions": [converted], **models})
                self._checked[written] = ""
            except EvalwrightError as error:
                sentence = str(error).removeprefix(
                    "The option 'assertions', number 1: "
                )
                self._checked[written] = sentence.rstrip(".")
        if reason := self._checked[written]:
            raise LeftOut(reason)


def _split(text: str) -> list[str]:
    """Return the texts between commas; one in double quotes may have commas itself."""
    try:
        (cells,) = csv.reader([text.replace("\n", " ")], skipinitialspace=True)
    except (csv.Error, ValueError):
        cells = text.split(",")
    return [cell.strip() for cell in cells if cell.strip()]


def _schema(expected: Any) -> Any:
    """Return a JSON schema, which may be written as JSON in a text."""
    if expected is None or expected == "":
        return None
    if not isinstance(expected, str):
        return expected
    try:
        return parse_json(expected, "the schema")
    except EvalwrightError:
        raise LeftOut("its schema is not JSON") from None


def _plain(content: Any) -> Any:
    """Return a value of YAML as JSON has it: numbers as numbers."""
    if isinstance(content, Mapping):
        return {str(key): _plain(inner) for key, inner in content.items()}
    if isinstance(content, list):
        return [_plain(inner) for inner in content]
    if isinstance(content, float):
        return int(content) if content.is_integer() else float(content)
    return content


def assertion_of_cell(cell: str) -> dict[str, Any]:
    """Return the assertion that a cell of a column `__expected` stands for.

    "contains: Paris" and "similar(0.8): Hello" name a type; any other text is to be equalled.
    """
    text = cell.strip()
    if text.startswith(_CODE_IN_TABLES):
        is_python = text.startswith("python:") or suffix_of(text) == ".py"
        return {"type": "python" if is_python else "javascript", "value": text}
    if text.startswith("grade:"):
        return {"type": "llm-rubric", "value": text.removeprefix("grade:").strip()}
    match = _IN_TABLES.fullmatch(text)
    kind = match["type"].removeprefix("not-") if match else ""
    if match is None or not _is_type(kind):
        return {"type": "equals", "value": text}
    assertion: dict[str, Any] = {"type": match["type"]}
    if kind in _WITH_THRESHOLD:
        default = _SIMILAR_IN_TABLES if kind == "similar" else _OTHERS_IN_TABLES
        assertion["threshold"] = float(match["threshold"] or default)
    if (expected := match["value"]) is not None:
        assertion["value"] = expected.strip()
    return assertion


_OTHER_TYPES = [
    "answer-relevance",
    "bleu",
    "classifier",
    "contains-html",
    "contains-sql",
    "contains-xml",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "factuality",
    "g-eval",
    "gleu",
    "guardrails",
    "is-html",
    "is-refusal",
    "is-sql",
    "is-valid-function-call",
    "is-valid-openai-function-call",
    "is-valid-openai-tools-call",
    "is-xml",
    "levenshtein",
    "meteor",
    "model-graded-closedqa",
    "model-graded-factuality",
    "moderation",
    "perplexity",
    "perplexity-score",
    "pi",
    "rouge-n",
    "ruby",
    "select-best",
    "webhook",
    "word-count",
]
"""Types that are not here, and that a cell names by their beginning."""


def _is_type(kind: str) -> bool:
    return kind in TYPES or kind in _OTHER_TYPES
