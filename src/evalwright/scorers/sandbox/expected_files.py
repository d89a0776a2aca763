"""The scorer `files`: does what the model left have the expected content?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from evalwright import bounded
from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, ScoringError, check_known
from evalwright.core.samples import Answer, Sample, Score
from evalwright.sandboxes.protocol import Sandbox, SandboxPathError
from evalwright.scorers.registry import checked, in_sandbox

MAX_FILE_BYTES = 16 << 20
"""Most bytes of a file that is compared."""
PATTERN_SECONDS = 10.0
MAX_PARTS = 100
"""Most files whose own scores are parts of the score."""
CONDITIONS = ("equals", "contains", "matches", "exists")
_OPTIONS = frozenset(("expected", "compare"))
_SHOWN_CHARS = 120
Compare = Literal["stripped", "exact"]


def expand_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Move paths that stand beside the options into `expected`.

    A path has a slash or a dot, which no option has.
    """
    paths = {
        name: option
        for name, option in options.items()
        if name not in _OPTIONS and ("/" in name or "." in name)
    }
    if not paths:
        return dict(options)
    named = {name: option for name, option in options.items() if name not in paths}
    return {**named, "expected": {**dict(named.get("expected") or {}), **paths}}


def _check_options(options: Mapping[str, Any]) -> None:
    expected = options["expected"]
    if not isinstance(expected, Mapping) or not expected:
        raise ConfigurationError(
            "The scorer 'files' needs paths with their expected content, such as"
            f' {{/work/out.txt: "3"}}, not {expected!r}.'
        )
    check_known(
        "value of the option 'compare' of 'files'",
        [options["compare"]],
        ("stripped", "exact"),
    )
    for path, condition in expected.items():
        _check_condition(str(path), condition)


def _check_condition(path: str, condition: Any) -> None:
    if isinstance(condition, str | int | float):
        return
    if not isinstance(condition, Mapping) or not condition:
        raise ConfigurationError(
            f"What is expected of '{path[:80]}' is a text, or a mapping of"
            f" {', '.join(CONDITIONS)}, not {condition!r}."
        )
    check_known(f"condition of the file '{path[:80]}'", list(condition), CONDITIONS)
    exists = condition.get("exists", True)
    if not isinstance(exists, bool):
        raise ConfigurationError(
            f"`exists` of '{path[:80]}' is true or false, not {exists!r}."
        )
    if not exists and len(condition) > 1:
        raise ConfigurationError(
            f"The file '{path[:80]}' should not exist, so nothing else can be expected"
            " of it."
        )
    for name in ("equals", "contains", "matches"):
        texts = condition.get(name, "")
        listed = texts if isinstance(texts, list | tuple) else [texts]
        if not all(isinstance(text, str | int | float) for text in listed):
            raise ConfigurationError(
                f"`{name}` of '{path[:80]}' is a text, or a list of texts."
            )


@checked(_check_options)
@in_sandbox
async def files(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    sandbox: Sandbox,
    *,
    expected: Mapping[str, Any] | None = None,
    compare: Compare = "stripped",
) -> Score:
    """Score the share of files that have the expected content.

    Labels: "passed" if all have, else "failed". Parts: 1 or 0 by path.

    Args:
        expected: path -> text that the file is equal to, or a mapping of `equals`, `contains` (a
            text or a list of them), `matches` (a regular expression that is found in it) and
            `exists` (true or false). Paths may also stand beside the options.
        compare: "stripped": white space at the ends of lines and of the text does not count for
            `equals`; "exact": every byte does.
    """
    faults: dict[str, str] = {}
    for path, condition in (expected or {}).items():
        fault = await _fault(sandbox, str(path), condition, compare)
        if fault:
            faults[str(path)] = fault
    n_files = len(expected or {})
    share = (n_files - len(faults)) / n_files
    parts = {
        str(path): float(str(path) not in faults)
        for path in list(expected or {})[:MAX_PARTS]
    }
    explanation = "; ".join(f"{path}: {fault}" for path, fault in faults.items())
    return Score(
        share,
        "failed" if faults else "passed",
        explanation[:2_000] or "all files are as expected",
        parts,
    )


async def _fault(sandbox: Sandbox, path: str, condition: Any, compare: Compare) -> str:
    """Say how a file differs from what is expected; "" if it does not."""
    conditions = condition if isinstance(condition, Mapping) else {"equals": condition}
    try:
        content = await sandbox.read(path, MAX_FILE_BYTES + 1)
    except SandboxPathError as error:
        if error.is_missing and conditions.get("exists") is False:
            return ""
        return str(error).removeprefix(f"{path}: ")
    if conditions.get("exists") is False:
        return "the file exists"
    if len(content) > MAX_FILE_BYTES:
        return f"the file is larger than {MAX_FILE_BYTES >> 20} MiB"
    text = content.decode("utf-8", "surrogateescape")
    if "equals" in conditions and not _is_equal(
        text, str(conditions["equals"]), compare
    ):
        return f"expected {_shown(conditions['equals'])}, not {_shown(text)}"
    for part in _listed(conditions.get("contains", ())):
        if part not in text:
            return f"it does not contain {_shown(part)}"
    for pattern in _listed(conditions.get("matches", ())):
        try:
            is_match = _is_match(pattern, text)
        except bounded.LimitExceeded as error:
            return f"looking in it for {_shown(pattern)} was given up: {error}"
        if not is_match:
            return f"nothing in it matches {_shown(pattern)}"
    return ""


def _is_equal(text: str, expected: str, compare: Compare) -> bool:
    if compare == "exact":
        return text == expected
    return _stripped(text) == _stripped(expected)


def _stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().split("\n")]


def _listed(texts: Any) -> list[str]:
    return (
        [str(text) for text in texts]
        if isinstance(texts, list | tuple)
        else [str(texts)]
    )


def _is_match(pattern: str, text: str) -> bool:
    """Tell whether a pattern is in a file's text.

    Raises:
        LimitExceeded: it takes too long, of which what the model wrote is the reason.
        ScoringError: it is no pattern.
    """
    try:
        is_match: bool = bounded.call(
            _search, pattern, text, seconds=PATTERN_SECONDS, key=pattern
        )
    except bounded.Raised as error:
        raise ScoringError(
            f"The pattern {_shown(pattern)} cannot be used: {error}."
        ) from None
    return is_match


def _search(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.MULTILINE) is not None


def _shown(text: object) -> str:
    full_text = str(text)
    cut = (
        full_text
        if len(full_text) <= _SHOWN_CHARS
        else f"{full_text[:_SHOWN_CHARS]}..."
    )
    return (
        ascii(cut) if any(0xD800 <= ord(char) < 0xE000 for char in cut) else repr(cut)
    )


vars(files)["expand_options"] = expand_options
