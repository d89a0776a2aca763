"""The scorer `tool-calls`: are the calls of an answer those that its row expects?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evalwright.core.errors import ConfigurationError, ScoringError, check_known
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.json_schema import json_objects
from evalwright.scorers.registry import checked
from evalwright.scorers.tool_calls.expected import (
    MAX_EXPECTED,
    ExpectedCall,
    ExpectedCalls,
    read_expected,
)
from evalwright.scorers.tool_calls.model_calls import ModelCall, calls_of
from evalwright.scorers.tool_calls.values import (
    LOOSE,
    MATCHES,
    Difference,
    Match,
    compare,
    kind_of,
    mentions,
    pair_up,
)

CALLS = "calls"
"""The metadata of a sample that holds its expected calls, where the option names no other."""
ORDERS = ("fixed", "free")

CORRECT = "correct"
EXTRA_CALL = "extra call"
MALFORMED = "malformed arguments"
MISSING_ARGUMENT = "missing argument"
MISSING_CALL = "missing call"
NO_ANSWER = "no answer"
NO_CALL = "no call"
UNEXPECTED_ARGUMENT = "unexpected argument"
UNWANTED_CALL = "unwanted call"
WRONG_ORDER = "wrong order"
WRONG_TOOL = "wrong tool"

EMPTY: tuple[Any, ...] = ("", [], {})
AS_LEFT_OUT = "it is empty, which may count as left out"
"""Why one may argue about an empty argument that is not expected."""
MAX_READ_CALLS = 4 * MAX_EXPECTED
"""Calls of an answer that are read; no row expects as many."""
MAX_SEARCHED_CHARS = 4_000
"""Characters of a reply that are searched for a call that is written as text."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the calls of a turn.

    Args:
        label: its class, one of the labels above.
        text: a clause that says it.
        arguable: why a careful reader might disagree; "" if none would.
    """

    label: str
    text: str
    arguable: str = ""


def _check(options: Mapping[str, Any]) -> None:
    check_known("value of the option 'order'", [options["order"]], ORDERS)
    check_known("value of the option 'match'", [options["match"]], MATCHES)
    expected = options["expected"]
    if isinstance(expected, str):
        if not expected.strip():
            raise ConfigurationError(
                "The option 'expected' names the metadata with the expected calls; it is"
                " empty."
            )
    else:
        read_expected(expected, "The option 'expected'")


def expected_calls(sample: Sample, expected: Any = CALLS) -> ExpectedCalls:
    """Read the calls that a sample expects.

    Args:
        sample: the sample.
        expected: the scorer's option: the name of the metadata, or the calls themselves.

    Returns:
        The calls.

    Raises:
        ScoringError: the sample has no expected calls, or malformed ones.
    """
    if not isinstance(expected, str):
        return read_expected(expected, "The option 'expected'")
    if expected not in sample.metadata:
        raise ScoringError(
            f"The sample '{sample.id}' has no metadata '{expected}' with the calls that"
            " are expected; [] says that none is."
        )
    try:
        return read_expected(
            sample.metadata[expected], f"'{expected}' of the sample '{sample.id}'"
        )
    except ConfigurationError as error:
        raise ScoringError(str(error)) from None


@checked(_check)
def tool_calls(
    sample: Sample,
    answer: Answer,
    *,
    expected: Any = CALLS,
    order: Literal["free", "fixed"] = "free",
    match: Literal["exact", "loose"] = LOOSE,
) -> Score:
    """Score 1.0 if an answer makes exactly the calls that are expected, else 0.0.

    A row that expects no call wants text, any text. The label says where an answer went wrong
    first, the parts how much is right: "calls", the share of expected calls that were made, and
    "turns", the share of user turns without a fault, where the row lists calls by turn.

    Args:
        expected: the metadata with the expected calls (`expected.py`), or a list of calls that
            every answer should make.
        order: whether the calls of a turn may come in any order ("free").
        match: how texts are compared: "loose" ignores case, white space and punctuation outside of
            numbers, and arguments that are null; "exact" ignores nothing.

    Raises:
        ScoringError: the sample has no expected calls, or malformed ones.
    """
    calls = expected_calls(sample, expected)
    model_calls = calls_of(answer)
    n_turns = len(calls.turns)
    last_turn = n_turns - 1 if calls.by_turn else 0
    calls_by_turn: list[list[ModelCall]] = [[] for _ in range(n_turns)]
    for model_call in model_calls[:MAX_READ_CALLS]:
        turn = min(model_call.turn, last_turn)
        calls_by_turn[turn].append(model_call)
    faults: list[Fault | None] = []
    n_right = 0
    for expected_turn, model_turn in zip(calls.turns, calls_by_turn, strict=True):
        n_matched, fault = _judge_turn(expected_turn, model_turn, order, match)
        n_right += n_matched
        faults.append(fault)
    parts = _parts(calls, faults, n_right, len(model_calls))
    wrong = [(turn, fault) for turn, fault in enumerate(faults, 1) if fault is not None]
    if not wrong:
        return _right(answer, model_calls, parts, match)
    turn, first_fault = wrong[0]
    prefix = f"in turn {turn}, " if calls.by_turn and n_turns > 1 else ""
    all_arguable = all(fault.arguable for _, fault in wrong)
    unsure = first_fault.arguable if all_arguable else ""
    if not model_calls:
        unsure = _written_call(answer, calls)
    return Score(
        0.0,
        first_fault.label,
        _sentence(prefix + first_fault.text),
        parts,
        unsure=unsure,
    )


def _parts(
    calls: ExpectedCalls, faults: Sequence[Fault | None], n_right: int, n_made: int
) -> dict[str, float]:
    n_expected = sum(map(len, calls.turns))
    share = n_right / n_expected if n_expected else float(n_made == 0)
    parts = {"calls": share}
    if calls.by_turn:
        parts["turns"] = faults.count(None) / max(len(faults), 1)
    return parts


def _right(
    answer: Answer,
    model_calls: Sequence[ModelCall],
    parts: Mapping[str, float],
    match: Match,
) -> Score:
    """Return the score of an answer whose calls are those that are expected."""
    if model_calls:
        names = shortened(
            ", ".join(model_call.call.name for model_call in model_calls), 200
        )
        return Score(1.0, CORRECT, f"Makes the expected calls: {names}.", parts)
    if not answer.text.strip():
        return Score(
            0.0,
            NO_ANSWER,
            "No call is wanted, and the answer has no text either.",
            {**parts, "calls": 0.0},
        )
    called_name = _call_in_text(answer.text)
    unsure = (
        f"its text has what reads like a call of {called_name}" if called_name else ""
    )
    return Score(
        1.0, CORRECT, "Answers in text, where no call is wanted.", parts, unsure=unsure
    )


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


def _written_call(answer: Answer, calls: ExpectedCalls) -> str:
    """Say whether a reply without calls has an expected one in its text."""
    called_name = _call_in_text(answer.text)
    expected_names = {call.name for turn in calls.turns for call in turn}
    return (
        f"a call of {called_name} is written as text"
        if called_name in expected_names
        else ""
    )


def _call_in_text(text: str) -> str:
    """Return the name in a JSON object of a text that has the form of a call; "" without one."""
    if '"name"' not in text:
        return ""
    for document in json_objects(text[:MAX_SEARCHED_CHARS]):
        name = document.get("name")
        if isinstance(name, str) and {"arguments", "parameters"} & document.keys():
            return shortened(name)
    return ""


# -- one turn --------------------------------------------------------------------------


def _judge_turn(
    expected: Sequence[ExpectedCall],
    model_calls: Sequence[ModelCall],
    order: str,
    match: Match,
) -> tuple[int, Fault | None]:
    """Compare the calls of a turn.

    Returns:
        How many expected calls were made, and the first fault, None if there is none.
    """
    if not expected:
        return 0, _unwanted(model_calls)
    if not model_calls:
        names = shortened(", ".join(call.name for call in expected))
        return 0, Fault(NO_CALL, f"it calls nothing where {names} is expected")
    parsed = [_parse(model_call) for model_call in model_calls]

    def fits(expected_index: int, call_index: int) -> bool:
        arguments = parsed[call_index]
        return (
            isinstance(arguments, dict)
            and model_calls[call_index].call.name == expected[expected_index].name
            and _fault_of_arguments(expected[expected_index], arguments, match) is None
        )

    pairs = pair_up(len(expected), len(model_calls), fits)
    missing = [index for index in range(len(expected)) if index not in pairs]
    paired = set(pairs.values())
    unpaired = [index for index in range(len(model_calls)) if index not in paired]
    n_matched = len(pairs)
    if not missing and not unpaired:
        in_place = all(fits(index, index) for index in range(len(expected)))
        if order == "free" or in_place:
            return n_matched, None
        names = shortened(", ".join(model_call.call.name for model_call in model_calls))
        return n_matched, Fault(
            WRONG_ORDER, f"the calls are right but in the wrong order: {names}"
        )
    if not missing:
        return n_matched, _extra([model_calls[index] for index in unpaired])
    if not unpaired:
        call = expected[missing[0]]
        return n_matched, Fault(
            MISSING_CALL,
            f"{n_matched} of {len(expected)} calls are right, and a call of {call.name}"
            " is missing",
        )
    fault = _fault_of_calls(
        [expected[index] for index in missing],
        [(model_calls[index], parsed[index]) for index in unpaired],
        match,
    )
    return n_matched, fault


def _unwanted(model_calls: Sequence[ModelCall]) -> Fault | None:
    if not model_calls:
        return None
    names = shortened(", ".join(model_call.call.name for model_call in model_calls))
    return Fault(UNWANTED_CALL, f"it calls {names} where no call is wanted")


def _extra(extra: Sequence[ModelCall]) -> Fault:
    names = shortened(", ".join(model_call.call.name for model_call in extra))
    arguable = (
        "the calls that are too many failed, and the right ones followed"
        if all(model_call.failed for model_call in extra)
        else ""
    )
    return Fault(EXTRA_CALL, f"besides the expected calls, it calls {names}", arguable)


def _parse(model_call: ModelCall) -> dict[str, Any] | str:
    """Return a call's arguments, or why they are malformed."""
    try:
        return model_call.call.parsed()
    except ValueError as error:
        return shortened(str(error), 120).removesuffix(".")


def _fault_of_calls(
    missing: Sequence[ExpectedCall],
    unpaired: Sequence[tuple[ModelCall, dict[str, Any] | str]],
    match: Match,
) -> Fault:
    """Say what is wrong first, where calls are lacking and others were made instead."""
    for model_call, arguments in unpaired:
        if isinstance(arguments, str):
            return Fault(
                MALFORMED,
                f"the call of {shortened(model_call.call.name)} cannot be read:"
                f" {arguments[:1].lower()}{arguments[1:]}",
            )
    expected_names = [call.name for call in missing]
    for model_call, _ in unpaired:
        if model_call.call.name not in expected_names:
            return Fault(
                WRONG_TOOL,
                f"it calls {shortened(model_call.call.name)} where"
                f" {shortened(', '.join(expected_names))} is expected",
            )
    nearest: list[Fault] = []
    for model_call, arguments in unpaired:
        assert isinstance(arguments, dict)
        faults = [
            _fault_of_arguments(call, arguments, match)
            for call in missing
            if call.name == model_call.call.name
        ]
        differing = [fault for fault in faults if fault is not None]
        arguable = [fault for fault in differing if fault.arguable]
        nearest.append((arguable or differing)[0])
    fault = next((fault for fault in nearest if not fault.arguable), nearest[0])
    if len(unpaired) == len(missing):
        return fault
    return Fault(fault.label, fault.text)


def _fault_of_arguments(
    call: ExpectedCall, arguments: Mapping[str, Any], match: Match
) -> Fault | None:
    """Say what is wrong first with the arguments of a call whose name is right."""
    names = {
        name
        for name, argument in arguments.items()
        if match != LOOSE or not _is_left_out(call, name, argument)
    }
    for name in call.required:
        if name not in names:
            return Fault(
                MISSING_ARGUMENT,
                f"the call of {call.name} lacks the argument '{name}'",
            )
    arguable: Fault | None = None
    for name in arguments:
        may_occur = (
            name in call.accepted or name in call.contains or name in call.optional
        )
        if name in names and not may_occur:
            unexpected = Fault(
                UNEXPECTED_ARGUMENT,
                f"the call of {call.name} has the argument '{shortened(name)}', which is"
                " not expected",
                AS_LEFT_OUT if match == LOOSE and arguments[name] in EMPTY else "",
            )
            if not unexpected.arguable:
                return unexpected
            arguable = arguable or unexpected
    for name in arguments:
        if name not in names:
            continue
        difference = _difference(call, name, arguments[name], match)
        if difference is None:
            continue
        fault = Fault(
            difference.label,
            f"in the call of {call.name}, '{name}' {difference.text}",
            difference.arguable and f"'{name}': {difference.arguable}",
        )
        if not fault.arguable:
            return fault
        arguable = arguable or fault
    return arguable


def _is_left_out(call: ExpectedCall, name: str, argument: Any) -> bool:
    """Return whether an argument says nothing: null, or no text where there need be none."""
    if argument is None:
        return None not in call.accepted.get(name, ())
    free_text = name in call.contains and name in call.optional
    return free_text and isinstance(argument, str) and not argument.strip()


def _difference(
    call: ExpectedCall, name: str, argument: Any, match: Match
) -> Difference | None:
    """Compare an argument with the values that are right, and return the least difference."""
    if name in call.contains:
        return _lacking_text(call.contains[name], argument)
    differences = []
    for accepted in call.accepted.get(name, ()):
        difference = compare(
            accepted, argument, match, unordered=name in call.unordered
        )
        if difference is None:
            return None
        differences.append(difference)
    return next(
        (difference for difference in differences if difference.arguable),
        differences[0] if differences else None,
    )


def _lacking_text(texts: Sequence[Sequence[str]], argument: Any) -> Difference | None:
    """Compare a text with those that it must contain."""
    if not isinstance(argument, str):
        return Difference("wrong type", f"is {kind_of(argument)}, not a text")
    if not argument.strip():
        return Difference("wrong value", "is empty")
    for forms in texts:
        if not mentions(argument, forms):
            return Difference(
                "wrong value",
                f"does not mention '{shortened(forms[0])}'",
                "it may say so in other words",
            )
    return None
