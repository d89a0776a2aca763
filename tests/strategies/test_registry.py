"""A strategy of somebody's own: by decorator, by entry point, with options and a role; what does
not fit is refused at registration.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from evalwright import strategy as public
from evalwright.core import registry as core_registry
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.requests import Generate, Message
from evalwright.core.samples import Answer
from evalwright.strategies.registry import bind, registry, strategy
from strategies.asking import asked, setup


async def second_thoughts(
    sample: Any,
    ask: Any,
    draw: int,
    setup: Any,
    *,
    question: str = "Sure?",
    role: str = "target",
) -> Answer:
    """Asks, asks whether that is right, and takes the second answer."""
    prompt = setup.render(sample)
    first = await ask("target", setup.request(prompt, draw))
    again = setup.followed(prompt, first, question)
    second = await ask(role, setup.request(again, draw))
    made: Answer = setup.answer(again, (first, second))
    return made


def test_a_function_with_options_in_text_and_in_messages() -> None:
    assert public is strategy
    strategy("second-thoughts", needs={"generate", "chat"})(second_thoughts)
    made = bind("second-thoughts", setup(), {"question": "Really?"})
    answer, said = asked(
        made, lambda role, request: f"reply {len(request.prompt)}", draw=4
    )
    assert made.needs == {"generate", "chat"}
    assert [request.prompt for _, request in said if isinstance(request, Generate)] == [
        "What is 6 * 7?",
        "What is 6 * 7?reply 14\n\nReally?",
    ]
    assert answer.text == "reply 31" and len(answer.responses) == 2
    chat = setup(render=lambda sample: (Message("user", "Q"),))
    _, said = asked(
        bind("second-thoughts", chat), lambda role, request: "<think>x</think>a"
    )
    last = said[1][1]
    assert isinstance(last, Generate)
    assert last.prompt == (
        Message("user", "Q"),
        Message("assistant", "a"),
        Message("user", "Sure?"),
    )
    critic = bind("second-thoughts", chat, {"role": "critic"})
    assert critic.roles.keys() == {"critic"}  # type: ignore[attr-defined]


def test_it_is_a_draw_of_other_strategies_and_its_roles_are_theirs() -> None:
    strategy("second-thoughts")(second_thoughts)
    of = {"name": "second-thoughts", "role": "critic"}
    made = bind("self-consistency", setup(), {"n": 2, "of": of, "weight": "reward"})
    assert getattr(made, "roles").keys() == {"critic", "reward"}  # noqa: B009


def test_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("doubt", f"{__name__}:second_thoughts", "evalwright.strategies")
    asked_for: list[str] = []

    def points(group: str) -> list[EntryPoint]:
        asked_for.append(group)
        return [point] if group == "evalwright.strategies" else []

    monkeypatch.setattr(core_registry, "points_of", points)
    assert "doubt" in registry.names()
    assert bind("doubt", setup()).needs == {"generate"}
    assert set(asked_for) == {"evalwright.strategies"}


def test_what_does_not_fit() -> None:
    async def too_few(sample: Any, ask: Any) -> Answer:
        return Answer()

    with pytest.raises(ConfigurationError, match="must have the form `async def f"):
        strategy("bad")(too_few)
    strategy("second-thoughts")(second_thoughts)
    with pytest.raises(UnknownName, match="Did you mean 'question'"):
        bind("second-thoughts", setup(), {"questions": "?"})
    with pytest.raises(UnknownName, match="Did you mean 'second-thoughts'"):
        bind("second-thought", setup())
