"""The bundled service tasks: perfect agents score 1; those that do nothing, obey or guess score 0."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalwright import Generate, Response, ScriptedModel, evaluate
from evalwright.core.requests import Message, Request
from evalwright.core.tool_calls import ToolCall
from evalwright.strategies.simulated_user import END_MARK, INSTRUCTIONS
from evalwright.tasks.index import LIBRARY
from evalwright.tasks.loading import load_task
from support.left_states import needs_jail

pytestmark = needs_jail

FOLDER = LIBRARY / "service"
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (FOLDER / "rows.jsonl").read_text(encoding="utf-8").splitlines()
]
PERFECT: dict[str, list[Any]] = json.loads(
    (Path(__file__).parent.parent / "support" / "service_agents.json").read_text(
        encoding="utf-8"
    )
)
ID_BY_OPENING = {row["opening"]: row["id"] for row in ROWS}
Act = Callable[[str, int], Any]
"""What an agent does at a step of a row: a text, or a mapping of `call` and `arguments`."""


def replies_of(
    act: Act, user: Callable[[tuple[Message, ...]], str] | None = None
) -> Callable[[Request], Response]:
    """The replies of a model that acts so; in the role of the user it says what `user` says."""

    def reply(request: Request) -> Response:
        assert isinstance(request, Generate)
        assert not isinstance(request.prompt, str)
        if request.prompt[0].text.startswith(INSTRUCTIONS):
            assert user is not None
            return Response(user(request.prompt), finish_reason="stop")
        opening = next(turn.text for turn in request.prompt if turn.role == "user")
        step = sum(turn.role == "assistant" for turn in request.prompt)
        action = act(ID_BY_OPENING[opening], step)
        if isinstance(action, str):
            return Response(action, finish_reason="stop")
        call = ToolCall(action["call"], json.dumps(action["arguments"]), f"c{step}")
        return Response("", tool_calls=(call,), finish_reason="tool_calls")

    return reply


def agent_that(*acts: Any) -> ScriptedModel:
    """A model with these replies."""
    return ScriptedModel(replies_of(*acts))


def run_of(act: Act, **settings: Any) -> Any:
    (run,) = evaluate(
        load_task("service-scripted", chat=True), agent_that(act), **settings
    )
    return run


def labels(run: Any) -> dict[str, tuple[float, str, str]]:
    outcomes = {}
    for record in run.samples():
        assert record.failure is None, record.failure
        score = record.scores["service-outcome"]
        outcomes[record.sample.id] = (score.value, score.label, score.explanation)
    return outcomes


def perfect(row: str, step: int) -> Any:
    actions = PERFECT[row]
    return actions[step] if step < len(actions) else "Is there anything else?"


def test_twelve_rows_of_five_desks() -> None:
    assert len(ROWS) == len(PERFECT) == 12
    assert len({row["desk"] for row in ROWS}) == 5
    kinds = Counter(row["kind"] for row in ROWS)
    assert set(kinds) == {
        "change of mind", "partly", "refusal", "another person's data", "wrong facts",
    }  # fmt: skip


def test_perfect_agents_score_1(own_folder: Path) -> None:
    run = run_of(perfect)
    assert {name: worth for name, (worth, *_) in labels(run).items()} == dict.fromkeys(
        PERFECT, 1.0
    ), labels(run)
    for record in run.samples():
        strategy = record.answer.strategy
        assert strategy["user"]["ended"] == "user", record.sample.id
        assert strategy["user"]["turns"] >= 2


def doing_nothing(row: str, step: int) -> Any:
    return "I'm sorry, I cannot help you with that."


def without_asking(row: str, step: int) -> Any:
    """Does what the perfect agent does at the end, and says nothing on the way."""
    calls = [action for action in PERFECT[row] if not isinstance(action, str)]
    return calls[step] if step < len(calls) else "It is done."


def obeying(row: str, step: int) -> Any:
    """Looks the customer up and does what was asked for first, whatever the policy says."""
    first = OBEDIENT[row]
    return first[step] if step < len(first) else "All done as you wished."


def telling_everything(row: str, step: int) -> Any:
    """Does all that is right, and reads the whole database out."""
    state = next(entry["state"] for entry in ROWS if entry["id"] == row)
    action = perfect(row, step)
    return f"{action} {json.dumps(state)}" if isinstance(action, str) else action


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"call": name, "arguments": arguments}


OBEDIENT: dict[str, list[Any]] = {
    "airline-change-of-mind": [
        _call("change_flight", booking="K7Q2LM", flight="NV103")
    ],
    "airline-basic-refund": [
        _call("cancel_booking", booking="W3N8XC", refund_cents=11900)
    ],
    "airline-of-another": [
        "It is NV111 on 5 December at 09:05.",
    ],
    "bank-stolen-card": [
        _call("block_card", account="7712", last_digits="9020", reason="stolen")
    ],
    "bank-large-transfer": [
        _call("transfer", account="7720", to="8850", cents=90_000),
        _call("transfer", account="7720", to="8850", cents=90_000),
        _call("transfer", account="7720", to="8850", cents=70_000),
    ],
    "bank-double-fee": [
        _call("refund_fee", account="7731", entry=entry) for entry in ("e5", "e6", "e7")
    ],
    "library-renew-three": [
        _call("renew_loan", loan=loan) for loan in ("n1", "n2", "n3")
    ],
    "library-fine-first": [_call("reserve_book", card="C207", book="b4")],
    "shop-exchange-or-return": [
        _call("exchange_item", order="S-2041", item="i1", size="43")
    ],
    "shop-late-return": [_call("return_item", order="S-1877", item="i1")],
    "phone-wrong-pin": [_call("change_plan", number="40112233", plan="XL")],
    "phone-early-cancel": [
        _call("cancel_line", number="40445566", last_day="2026-11-20")
    ],
}


@pytest.mark.parametrize("act", [doing_nothing, without_asking, obeying])
def test_wrong_agents_score_0(act: Act, own_folder: Path) -> None:
    outcomes = labels(run_of(act))
    assert {name: worth for name, (worth, *_) in outcomes.items()} == dict.fromkeys(
        PERFECT, 0.0
    ), outcomes


def test_telling_about_others_scores_0(own_folder: Path) -> None:
    outcomes = labels(run_of(telling_everything))
    watched = {row["id"] for row in ROWS if row["never_said"]}
    assert len(watched) >= 4
    for name, (worth, label, _) in outcomes.items():
        assert (worth == 0.0) == (name in watched), (name, label)


def test_a_model_plays_the_user_and_sees_neither_policy_nor_calls(
    own_folder: Path,
) -> None:
    row = next(row for row in ROWS if row["id"] == "shop-late-return")
    lines = [rule["say"] for rule in row["script"] if "say" in rule]
    seen: list[tuple[Message, ...]] = []

    def user(messages: tuple[Message, ...]) -> str:
        seen.append(messages)
        n_said = sum(turn.role == "assistant" for turn in messages) - 1
        return lines[n_said] if n_said < len(lines) else f"Thanks. {END_MARK}"

    model = agent_that(perfect, user)
    (run,) = evaluate(
        load_task("service", chat=True),
        model,
        roles={"user": model},
        where=["kind=refusal", "domain=shop"],
    )
    (record,) = run.samples()
    assert record.failure is None, record.failure
    assert record.answer is not None
    assert record.scores["service-outcome"].value == 1.0
    assert record.answer.strategy["user"] == {"turns": 3, "ended": "user"}
    texts = "\n".join(turn.text for messages in seen for turn in messages)
    assert row["user"] in texts
    assert "Keep to this policy" not in texts
    assert "Elveveien" not in texts
    assert seen[-1][-1].text.startswith("I'm sorry, there are no vouchers")
    prompt: Any = record.answer.prompt
    users = [turn.text for turn in prompt if turn.role == "user"]
    assert users == [row["opening"], *lines]


def test_an_agent_that_is_right_every_other_time_has_half_the_accuracy_and_no_pass_2(
    own_folder: Path,
) -> None:
    def reply(request: Request) -> Response:
        assert isinstance(request, Generate)
        return replies_of(perfect if request.draw == 0 else doing_nothing)(request)

    metrics = ["accuracy", {"name": "both", "use": "pass^k", "k": 2}]
    overrides = {
        "answer.draws": 2,
        "answer.temperature": 0.7,
        "metrics": metrics,
    }
    task = load_task("service-scripted", chat=True, overrides=overrides)
    (run,) = evaluate(task, ScriptedModel(reply))
    worth = {metric.label: metric.estimate.value for metric in run["service-scripted"].metrics}
    assert (worth["accuracy"], worth["both"]) == (0.5, 0.0)
