"""The scorer `service-outcome`: did a helpdesk change what it should, and say what it should?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from evalwright.bounded import from_json
from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.samples import Answer, Sample, Score
from evalwright.sandboxes.protocol import Sandbox, SandboxPathError
from evalwright.scorers.registry import checked, in_sandbox

STATE_PATH = "/desk/state.json"
MAX_STATE_BYTES = 16 << 20
MAX_SHOWN_CHANGES = 10
_SHOWN_CHARS = 80


def _check_options(options: Mapping[str, Any]) -> None:
    options = {
        name: None if _is_template(option) and name != "initial" else option
        for name, option in options.items()
    }
    initial = options["initial"]
    is_state = isinstance(initial, Mapping) and initial
    if not is_state and not _is_template(initial):
        raise ConfigurationError(
            "The scorer 'service-outcome' needs `initial`, the state at the beginning, a"
            f" mapping such as a column of the row, not {initial!r:.80}."
        )
    for name in ("changes", "said", "never_said"):
        listed = options[name]
        if listed is not None and not isinstance(listed, list | tuple):
            raise ConfigurationError(
                f"The option '{name}' of 'service-outcome' is a list, not {listed!r:.80}."
            )
    for change in options["changes"] or ():
        is_pair = isinstance(change, list | tuple) and len(change) == 2
        if not is_pair or not isinstance(change[0], list | tuple) or not change[0]:
            raise ConfigurationError(
                "A change is a list of a path and the content of that place at the end, such as"
                f" [[orders, S-1, status], returned], not {change!r:.80}."
            )


@checked(_check_options)
@in_sandbox
async def service_outcome(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    sandbox: Sandbox,
    *,
    initial: Mapping[str, Any] | None = None,
    changes: Sequence[Any] | None = None,
    said: Sequence[Any] | None = None,
    never_said: Sequence[Any] | None = None,
    path: str = STATE_PATH,
) -> Score:
    """Score 1.0 if the state has the expected changes and no others, and the right was said.

    Labels: "passed", "wrong state", "not said", "must not be said". Parts: `state`, `said` and
    `unsaid`, each 1 or 0.

    Args:
        initial: the state at the beginning.
        changes: pairs of a path (a list of keys) and what stands there at the end.
        said: what the model must have said to the user, in any case: texts, or lists of texts of
            which one is enough.
        never_said: what it must not have said.
        path: the file of the sandbox that has the state, as JSON.
    """
    expected = deepcopy(dict(initial or {}))
    for keys, content in changes or ():
        _put(expected, keys, content)
    try:
        state = from_json(await sandbox.read(path, MAX_STATE_BYTES))
    except (SandboxPathError, ValueError) as error:
        return Score(0.0, "wrong state", f"The state cannot be read: {error}")
    differences = list(_differences(expected, state))
    spoken = _spoken(answer)
    unsaid = [texts for texts in said or () if not _is_in(texts, spoken)]
    leaked = [texts for texts in never_said or () if _is_in(texts, spoken)]
    parts = {
        "state": float(not differences),
        "said": float(not unsaid),
        "unsaid": float(not leaked),
    }
    reasons = [f"state: {text}" for text in differences[:MAX_SHOWN_CHANGES]]
    reasons += [f"not said: {_shown(texts)}" for texts in unsaid]
    reasons += [f"must not be said: {_shown(texts)}" for texts in leaked]
    if not reasons:
        return Score(1.0, "passed", "The state and what was said are right.", parts)
    label = (
        "wrong state" if differences else "not said" if unsaid else "must not be said"
    )
    return Score(0.0, label, "; ".join(reasons), parts)


def _is_template(option: Any) -> bool:
    """Tell whether an option is filled in for each sample, and is then checked again."""
    return isinstance(option, str) and "{{" in option


def _put(state: dict[str, Any], keys: Sequence[Any], content: Any) -> None:
    table: Any = state
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = content


def _spoken(answer: Answer) -> str:
    """Return all that the model said to the user: its replies without calls."""
    replies = [
        separate_reasoning(response).answer
        for response in answer.responses
        if not response.tool_calls
    ]
    return "\n".join(replies).casefold()


def _is_in(texts: Any, spoken: str) -> bool:
    listed = texts if isinstance(texts, list | tuple) else [texts]
    return any(str(text).casefold() in spoken for text in listed)


def _differences(expected: Any, actual: Any, at: str = "") -> list[str]:
    """Say where a state differs from the expected one."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return [
            text
            for key in sorted({*expected, *actual}, key=str)
            for text in _differences(
                expected.get(key), actual.get(key), f"{at}.{key}" if at else str(key)
            )
        ]
    if json.dumps(expected, sort_keys=True) == json.dumps(actual, sort_keys=True):
        return []
    return [f"{at} is {_shown(actual)}, not {_shown(expected)}"]


def _shown(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)[:_SHOWN_CHARS]
