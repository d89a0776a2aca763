"""Puts the calls that the scorer `tool-calls` expects into the samples' metadata.

A scorer sees a sample, not its row, so that a recorded run can be scored again. A task that writes
`scorers: [tool-calls]` need not say so: the column `calls`, or the template that the option
`expected` names, becomes metadata of that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SCORER = "tool-calls"
OPTION = "expected"
CALLS = "calls"
"""The column and the metadata where the option names no other."""
_TEMPLATE = re.compile(r"\{\{.*\}\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")


def with_expected_calls(file: Any) -> Any:
    """Return a task file whose samples carry the calls that its scorers expect.

    Args:
        file: the mapping of the task file, before it is validated.

    Returns:
        The mapping, with `sample.metadata` for each scorer `tool-calls`; the same object where
        there is none, or where something else is malformed.
    """
    if not isinstance(file, Mapping) or not isinstance(file.get("scorers"), list):
        return file
    sample = file.get("sample") or {}
    metadata = sample.get("metadata") or {} if isinstance(sample, Mapping) else None
    if not isinstance(metadata, Mapping):
        return file
    scorers = []
    added: dict[str, str] = {}
    for use in file["scorers"]:
        expected = _expected(use)
        if isinstance(expected, str) and _TEMPLATE.fullmatch(expected.strip()):
            added[CALLS] = expected
            use = _with_name(use)
        elif isinstance(expected, str) and _NAME.fullmatch(expected):
            added.setdefault(expected, f"{{{{ {expected} }}}}")
        scorers.append(use)
    if not added:
        return file
    full_metadata = {**added, **metadata}
    return {**file, "scorers": scorers, "sample": {**sample, "metadata": full_metadata}}


def _expected(use: Any) -> Any:
    """Return the option `expected` of a use of the scorer; None for another scorer."""
    if use == SCORER:
        return CALLS
    if not isinstance(use, Mapping):
        return None
    if use.get("use") == SCORER:
        options = use.get("options")
        inner = options if isinstance(options, Mapping) else {}
        return use.get(OPTION, inner.get(OPTION, CALLS))
    if len(use) == 1 and SCORER in use:
        options = use[SCORER]
        return options.get(OPTION, CALLS) if isinstance(options, Mapping) else CALLS
    return None


def _with_name(use: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the template of a use by the name of the metadata that it fills."""
    if "use" not in use:
        return {SCORER: {**use[SCORER], OPTION: CALLS}}
    if OPTION in use:
        return {**use, OPTION: CALLS}
    return {**use, "options": {**use["options"], OPTION: CALLS}}
