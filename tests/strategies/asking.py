"""Strategies asked in a test: a setup without a task file, and a door that is a function and
remembers what it was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scorer, Strategy
from evalwright.scorers.reading import reader
from evalwright.scorers.registry import bind as bind_scorer
from evalwright.strategies.registry import bind
from evalwright.strategies.sampling import Sampling
from evalwright.strategies.task_setup import Setup

SAMPLE = Sample("1", input="What is 6 * 7?", targets=("42",))
Said = tuple[str, Request]


def setup(**settings: Any) -> Setup:
    """A task's setup, drawn at temperature 0.7, whose answers are read as they are."""
    given = {
        "render": lambda sample: sample.input,
        "sampling": Sampling(temperature=0.7, max_tokens=50),
        "reader": lambda use: reader(use or "exact-match"),
        "scorer": _scorer,
        **settings,
    }
    return Setup(**given)


def _scorer(use: Any) -> Scorer:
    return bind_scorer(
        use["scorer"], {name: value for name, value in use.items() if name != "scorer"}
    )


def strategy(
    name: str, options: Mapping[str, Any] | None = None, **settings: Any
) -> Strategy:
    """A strategy over that setup."""
    return bind(name, setup(**settings), options)


def asked(
    made: Strategy,
    reply: Callable[[str, Any], Response | str],
    draw: int = 0,
    sample: Sample = SAMPLE,
) -> tuple[Answer, list[Said]]:
    """The strategy's answer where `reply` answers (role, request), and what it asked."""
    said: list[Said] = []

    async def ask(role: str, request: Request) -> Response:
        said.append((role, request))
        await asyncio.sleep(0)
        found = reply(role, request)
        return (
            Response(found, finish_reason="stop") if isinstance(found, str) else found
        )

    return asyncio.run(made(sample, ask, draw)), said


def draw_of(request: Request) -> int:
    """The draw of a request for text."""
    assert isinstance(request, Generate)
    return request.draw
