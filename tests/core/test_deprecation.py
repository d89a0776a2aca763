"""What is deprecated works as before, warns where it is used, and says what to write instead."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.deprecation import deprecated, renamed_parameter
from evalwright.core.errors import ConfigurationError
from evalwright.core.registry import positional_count


@deprecated(since="0.2.0", use_instead="`count_words`")
def count_tokens(text: str, *, lower: bool = False) -> int:
    """Count the words of a text."""
    return len((text.lower() if lower else text).split())


@deprecated(since="0.2.0", use_instead="`count_words`")
async def count_later(text: str) -> int:
    return len(text.split())


@deprecated(since="0.3.0", use_instead="`Interval`")
@dataclass(frozen=True, slots=True)
class Range:
    """Two ends."""

    low: float
    high: float = 1.0


class OldBase:
    def __init_subclass__(cls, *, label: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.label = label

    label = ""


OldBase = deprecated(since="0.3.0", use_instead="`Base`")(OldBase)  # type: ignore[misc]


@renamed_parameter("undecided", "unsure", since="0.2.0")
def rescore(run: str, unsure: str = "", *, name: str = "") -> tuple[str, str, str]:
    return run, unsure, name


@renamed_parameter("undecided", "unsure", since="0.2.0")
async def rescore_later(*, unsure: str = "") -> str:
    return unsure


def warnings_of(call: Any) -> list[warnings.WarningMessage]:
    """The warnings of a call, each of which must point into this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    for warning in caught:
        assert warning.category is DeprecationWarning
        assert Path(warning.filename) == Path(__file__)
    return list(caught)


def line_of_call(call: Any) -> int:
    return int(inspect.getsourcelines(call)[1])


def test_a_function_works_and_warns_at_the_line_of_the_caller() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"`count_tokens`.*0\.2\.0.*`count_words`"
    ):
        assert count_tokens("a b c", lower=True) == 3

    def call() -> None:
        count_tokens("a b")

    (warning,) = warnings_of(call)
    assert warning.lineno == line_of_call(call) + 1


def test_an_async_function_stays_one_and_warns_where_it_is_awaited() -> None:
    assert inspect.iscoroutinefunction(count_later)
    assert positional_count(count_later) == 1

    async def call() -> None:
        assert await count_later("a b") == 2

    (warning,) = warnings_of(lambda: asyncio.run(call()))
    assert warning.lineno == line_of_call(call) + 1


def test_a_class_warns_when_it_is_made() -> None:
    with pytest.warns(DeprecationWarning, match="`Range`"):
        made = Range(0.0)
    assert isinstance(made, Range) and (made.low, made.high) == (0.0, 1.0)


def test_deriving_from_a_class_warns_once_and_its_subclasses_do_not() -> None:
    def derive() -> None:
        class Mine(OldBase, label="mine"):
            pass

        class MineToo(Mine):
            pass

        assert (Mine.label, MineToo.label) == ("mine", "")
        Mine()
        MineToo()

    (warning,) = warnings_of(derive)
    assert warning.lineno == line_of_call(derive) + 1


def test_the_docstring_has_a_note_for_the_reference() -> None:
    assert count_tokens.__doc__ is not None and Range.__doc__ is not None
    assert count_tokens.__doc__.startswith(
        "Count the words of a text.\n\n.. deprecated:: 0.2.0\n"
    )
    assert ".. deprecated:: 0.3.0" in Range.__doc__
    assert (count_later.__doc__ or "").startswith(".. deprecated:: 0.2.0")


def test_a_parameter_by_its_old_name() -> None:
    with pytest.warns(DeprecationWarning, match=r"'undecided' of `rescore`.*'unsure'"):
        assert rescore("a", undecided="judge", name="b") == ("a", "judge", "b")  # type: ignore[call-arg]
    assert warnings_of(lambda: rescore("a", "judge")) == []
    assert warnings_of(lambda: rescore("a", unsure="judge")) == []

    def call() -> None:
        rescore("a", undecided="judge")  # type: ignore[call-arg]

    (warning,) = warnings_of(call)
    assert warning.lineno == line_of_call(call) + 1


def test_an_async_function_with_a_renamed_parameter() -> None:
    assert inspect.iscoroutinefunction(rescore_later)
    with pytest.warns(DeprecationWarning, match="'undecided'"):
        found = asyncio.run(rescore_later(undecided="judge"))  # type: ignore[call-arg]
    assert found == "judge"


@pytest.mark.parametrize("arguments", [("a", "judge"), ("a",)])
def test_both_names_at_once_are_an_error(arguments: tuple[str, ...]) -> None:
    new = {} if len(arguments) == 2 else {"unsure": "judge"}
    call: Any = rescore
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(
            ConfigurationError, match="'undecided' is the old name of 'unsure'"
        ):
            call(*arguments, **new, undecided="judge")


@pytest.mark.parametrize(("old", "new"), [("undecided", "unsur"), ("run", "unsure")])
def test_a_renaming_that_does_not_fit_is_refused_at_once(old: str, new: str) -> None:
    def rescore(run: str, unsure: str = "") -> None: ...

    with pytest.raises(TypeError, match=new):
        renamed_parameter(old, new, since="0.2.0")(rescore)
