"""Reasoning first: what each of the two requests is, in text and in messages, and what is done
at the limits.
"""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.errors import UsageError
from evalwright.core.requests import Generate, LogLikelihood, Message
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Sample
from evalwright.strategies.registry import MODES, bind, registry
from evalwright.strategies.sampling import Sampling
from strategies.asking import asked, setup, strategy

CHAT = {
    "render": lambda sample: (
        Message("system", "Be brief."),
        Message("user", sample.input),
    ),
    "delimiter": "",
}
GREEDY = Sampling(max_tokens=20, stop=("\n\n",))


def replies(*texts: str, reason: str = "stop", tokens: int = 0) -> Any:
    """One reply after another; `reason` and `tokens` are of the first."""
    waiting = iter(texts)
    first = [Response(next(waiting), finish_reason=reason, usage=Usage(5, tokens))]

    def reply(role: str, request: Any) -> Response:
        return first.pop() if first else Response(next(waiting), finish_reason="stop")

    return reply


def test_the_reasoning_stops_at_the_tag_and_the_answer_goes_on_behind_it() -> None:
    made = strategy("reason-then-choose", {"reasoning_tokens": 300}, sampling=GREEDY)
    answer, said = asked(made, replies(" Six sevens are 42.\n", " 42"))
    assert [request for _, request in said] == [
        Generate("What is 6 * 7?", max_tokens=300, stop=("Answer:",)),
        Generate(
            "What is 6 * 7? Six sevens are 42.\nAnswer:", max_tokens=20, stop=("\n\n",)
        ),
    ]
    assert (answer.text, answer.reasoning) == (" 42", "Six sevens are 42.")
    assert [response.text for response in answer.responses] == [
        " Six sevens are 42.\n",
        " 42",
    ]


def test_in_messages_the_model_goes_on_from_its_own_turn() -> None:
    options = {"trigger": "<think>", "tag": "</think>"}
    answer, said = asked(
        strategy("reason-then-choose", options, **CHAT), replies("Six sevens.", "42")
    )
    system = Message("system", "Be brief.")
    user = Message("user", "What is 6 * 7?")
    prompts = [request.prompt for _, request in said if isinstance(request, Generate)]
    assert prompts == [
        (system, user, Message("assistant", "<think>")),
        (system, user, Message("assistant", "<think> Six sevens.\n</think>")),
    ]
    assert answer.text == "42"


def test_it_may_choose_by_likelihood_behind_the_tag() -> None:
    sample = Sample("1", input="Which?", choices=("cat", "dog"), gold=(1,))

    def reply(role: str, request: Any) -> Response:
        if isinstance(request, Generate):
            return Response(" It barks. ", finish_reason="stop")
        return Response(log_likelihood={" A": -2.0, " B": -1.0}[request.continuation])

    made = strategy("reason-then-choose", {"then": "letter"})
    answer, said = asked(made, reply, sample=sample)
    assert [request for _, request in said[1:]] == [
        LogLikelihood("Which? It barks. Answer:", " A"),
        LogLikelihood("Which? It barks. Answer:", " B"),
    ]
    assert (answer.choice, answer.text, answer.reasoning) == (1, "dog", "It barks.")
    assert made.needs == {"generate", "log-likelihood"}
    assert getattr(made, "lacks")(Sample("2")) and not getattr(made, "lacks")(sample)  # noqa: B009


@pytest.mark.parametrize("delimiter", ["", " ", "\n"])
def test_what_is_scored_behind_the_tag_begins_with_the_tasks_own_delimiter(
    delimiter: str,
) -> None:
    sample = Sample("1", input="哪个？", choices=("甲", "乙"), gold=(1,))
    written = {"render": lambda one: one.input}
    spoken = {"render": lambda one: (Message("user", one.input),)}
    for form in (written, spoken):
        made = strategy(
            "reason-then-choose",
            {"then": "likelihood", "tag": "答案："},
            **form,
            delimiter=delimiter,
        )
        _, said = asked(
            made,
            lambda role, request: (
                "" if isinstance(request, Generate) else Response(log_likelihood=-1.0)
            ),
            sample=sample,
        )
        scored = [request for _, request in said if isinstance(request, LogLikelihood)]
        assert [request.continuation for request in scored] == [
            f"{delimiter}甲",
            f"{delimiter}乙",
        ]


def test_a_budget_that_is_used_up_asks_for_the_answer_all_the_same_or_keeps_what_there_is() -> (
    None
):
    for at_limit, text, count in (("answer", " 42", 2), ("keep", " Six sevens", 1)):
        made = strategy("reason-then-choose", {"at_limit": at_limit})
        answer, said = asked(made, replies(" Six sevens", " 42", reason="length"))
        assert (answer.text, len(said)) == (text, count)
    answer, said = asked(strategy("reason-then-choose"), replies("", reason="length"))
    assert (answer.outcome, len(said)) == ("cut", 1)
    answer, said = asked(
        strategy("reason-then-choose"), replies("x", reason="content_filter")
    )
    assert (answer.outcome, len(said)) == ("filtered", 1)


def test_a_shared_budget_leaves_the_answer_what_the_reasoning_did_not_use() -> None:
    made = strategy("reason-then-choose", {"reasoning_tokens": None})
    _, said = asked(made, replies("Six.", "42", tokens=15))
    assert [
        request.max_tokens for _, request in said if isinstance(request, Generate)
    ] == [50, 35]
    _, said = asked(made, replies("Six.", "42", tokens=0))
    assert [
        request.max_tokens for _, request in said if isinstance(request, Generate)
    ] == [50, 50]


def test_chain_of_thought_in_text_and_in_messages() -> None:
    made = strategy("chain-of-thought", {"reasoning_tokens": 99}, sampling=GREEDY)
    answer, said = asked(made, replies(" Six sevens.", " 42."))
    assert [request for _, request in said] == [
        Generate(
            "What is 6 * 7? Let's think step by step.", max_tokens=99, stop=("\n\n",)
        ),
        Generate(
            "What is 6 * 7? Let's think step by step. Six sevens.\nTherefore, the answer is",
            max_tokens=20,
            stop=("\n\n",),
        ),
    ]
    assert (answer.text, answer.reasoning) == (" 42.", "Six sevens.")

    made = strategy(
        "chain-of-thought", {"extractor": "So?", "trigger": "Think."}, **CHAT
    )
    answer, said = asked(made, replies("<think>a</think>Six sevens.", "42"), draw=2)
    system = Message("system", "Be brief.")
    user = Message("user", "What is 6 * 7?\n\nThink.")
    assert said[1][1] == Generate(
        (system, user, Message("assistant", "Six sevens."), Message("user", "So?")),
        max_tokens=50,
        temperature=0.7,
        draw=2,
    )
    assert (answer.text, answer.reasoning) == ("42", "a\n\nSix sevens.")


def test_without_an_extractor_the_reasoning_is_the_answer_and_a_cut_one_is_not_asked_about() -> (
    None
):
    answer, said = asked(
        strategy("chain-of-thought", {"extractor": None}), replies("It is 42.")
    )
    assert (answer.text, len(said)) == ("It is 42.", 1)
    answer, said = asked(strategy("chain-of-thought"), replies("", reason="length"))
    assert (answer.outcome, len(said)) == ("cut", 1)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("reason-then-choose", {"tag": " "}, "the text before the answer"),
        ("reason-then-choose", {"then": "letters"}, "Did you mean 'letter'"),
        ("reason-then-choose", {"at_limit": "stop"}, "Known: answer, keep"),
        (
            "reason-then-choose",
            {"reasoning_tokens": 0},
            "a whole number from 1 on, or null",
        ),
        (
            "chain-of-thought",
            {"reasoning_tokens": 1.5},
            "a whole number from 1 on, or null",
        ),
        ("beam-search", {"beams": 1}, "a whole number from 2 on"),
        ("beam-search", {}, "leave `answer.temperature` at 0"),
        ("conversation", {}, "several user turns"),
        ("beam-serch", {}, "Did you mean 'beam-search'"),
    ],
)
def test_options_that_cannot_be(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        strategy(name, options)


def test_a_parser_reads_reasoning_and_answer_out_of_one_reply() -> None:
    def parsed(text: str) -> tuple[str, str]:
        return tuple(text.split(" => "))  # type: ignore[return-value]

    made = strategy("chain-of-thought", {"parser": parsed})
    answer, said = asked(made, lambda role, request: "six times seven => 42")
    assert (answer.text, answer.reasoning, len(said)) == ("42", "six times seven", 1)
    assert answer.responses[0].text == "six times seven => 42"
    with pytest.raises(ValueError, match="unpack"):  # a failure of the sample, in a run
        asked(made, lambda role, request: "42")
    with pytest.raises(UsageError, match="'parser' or 'extractor'"):
        strategy("chain-of-thought", {"parser": parsed, "extractor": "So?"})


def test_ways_to_draw_by_name_whatever_the_tasks_settings_say() -> None:
    wanted: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
        "greedy": ({}, (0.0, None, None, 0)),
        "temperature": ({"temperature": 0.3}, (0.3, None, None, 2)),
        "top-k": ({"k": 5}, (1.0, 5, None, 2)),
        "top-p": ({"p": 0.5, "temperature": 0.9}, (0.9, None, 0.5, 2)),
    }
    for name, (options, drawn) in wanted.items():
        _, [(_, request)] = asked(
            strategy(name, options), lambda role, request: "x", draw=2
        )
        assert isinstance(request, Generate)
        assert (
            request.temperature,
            request.top_k,
            request.top_p,
            request.draw,
        ) == drawn
    voted = strategy("self-consistency", {"n": 2, "of": {"name": "top-k", "k": 3}})
    _, said = asked(voted, lambda role, request: "x")
    assert [request.top_k for _, request in said] == [3, 3]  # type: ignore[union-attr]
    for name, options in (
        ("top-k", {"k": 0}),
        ("top-p", {"p": 1.5}),
        ("temperature", {"temperature": True}),
    ):
        with pytest.raises(UsageError, match="A draw's"):
            strategy(name, options)


def test_conversations_cannot_be_reasoned_about_in_two_phases() -> None:
    several = setup(turns=lambda sample: ("And then?",))
    for name in (
        "reason-then-choose",
        "chain-of-thought",
        "single-draw",
        "beam-search",
    ):
        with pytest.raises(UsageError):
            bind(name, several)
    assert bind("conversation", several).needs == {"generate", "chat"}


def test_every_strategy_of_the_table_can_be_made_and_beams_are_one_request() -> None:
    greedy = setup(sampling=GREEDY)
    for name in MODES.keys() - {"conversation", "given"}:
        assert bind(name, greedy).needs
    assert set(registry.names()) >= MODES.keys()
    _, said = asked(bind("beam-search", greedy, {"beams": 3}), replies("42"))
    assert said == [
        (
            "target",
            Generate("What is 6 * 7?", max_tokens=20, stop=("\n\n",), num_beams=3),
        )
    ]
