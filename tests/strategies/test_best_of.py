"""Best of n against brute force, by each way of choosing; a judge behind the door sees no
target.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import Failure, RequestFailed, UsageError
from evalwright.core.requests import Reward
from evalwright.core.responses import Response, TokenLogProb
from evalwright.core.samples import Score
from evalwright.scorers.registry import scorer
from strategies.asking import SAMPLE, asked, strategy
from support.command import records
from support.tiny_models import make_tiny_model
from support.typed import typed

VALUES = (-1.5, 0.0, 2.5)


def test_the_highest_reward_for_every_possible_three_the_first_of_equals() -> None:
    made = strategy("best-of-n", {"n": 3, "by": "reward"})
    for rewards in itertools.product(VALUES, repeat=3):

        def reply(
            role: str, request: Any, rewards: tuple[float, ...] = rewards
        ) -> Response | str:
            if isinstance(request, Reward):
                assert (role, request.prompt) == ("reward", SAMPLE.input)
                return Response(values=(rewards[int(request.response)],))
            return str(request.draw)

        answer, said = asked(made, reply)
        assert answer.text == str(rewards.index(max(rewards)))
        assert [draw["worth"] for draw in answer.strategy["draws"]] == list(rewards)
        assert len(said) == 6


def test_the_mean_log_probability_of_tokens_so_that_short_answers_are_not_preferred() -> (
    None
):
    def reply(role: str, request: Any) -> Response:
        assert request.top_logprobs == 0
        values = [(-1.0,), (-0.5, -0.7, -0.6), (-0.9, -0.9)][request.draw]
        return Response(
            f"draw {request.draw}",
            finish_reason="stop",
            tokens=tuple(TokenLogProb("t", v) for v in values),
        )

    answer, _ = asked(strategy("best-of-n", {"n": 3, "by": "log-probability"}), reply)
    assert (answer.text, answer.responses[-1].text) == ("draw 1", "draw 1")
    assert [draw["worth"] for draw in answer.strategy["draws"]] == [-1.0, -0.6, -0.9]


def test_a_draw_without_an_answer_is_never_the_best() -> None:
    def reply(role: str, request: Any) -> Response | str:
        if isinstance(request, Reward):
            return Response(values=(-9.0,))
        return Response("", finish_reason="length") if request.draw != 1 else "so"

    answer, said = asked(strategy("best-of-n", {"n": 3, "by": "reward"}), reply)
    assert (answer.text, answer.outcome, len(said)) == ("so", "answered", 4)
    assert answer.strategy["draws"][0] == {"text": "", "outcome": "cut"}


def test_an_empty_answer_never_wins_whatever_it_is_worth() -> None:
    texts = ["", "so", " \n"]
    made = strategy("best-of-n", {"n": 3, "by": "reward"})
    asked_for: list[str] = []

    def reply(role: str, request: Any) -> Response | str:
        if isinstance(request, Reward):
            asked_for.append(request.response)
            return Response(values=(-5.0 if request.response.strip() else 9.0,))
        return texts[int(request.draw)]

    assert asked(made, reply)[0].text == "so" and asked_for == ["so"]
    texts[1] = ""
    # nothing but empty answers: one of them, and no failure of the judge
    answer, said = asked(made, reply)
    assert answer.text == "" and len(said) == 3


def test_a_scorer_chooses_without_the_targets() -> None:
    @scorer("longest")
    def longest(sample: Any, answer: Any, *, sign: int = 1) -> Score:
        assert sample.input and not sample.targets and not sample.gold
        return Score(float(sign * len(answer.text)))

    texts = ["aa", "aaaa", "a"]
    for sign, wanted in ((1, "aaaa"), (-1, "a")):
        made = strategy(
            "best-of-n", {"n": 3, "by": {"scorer": "longest", "sign": sign}}
        )
        assert asked(made, lambda role, request: texts[request.draw])[0].text == wanted


def test_a_failed_draw_or_reward_is_a_failure_of_the_sample_and_the_others_are_finished() -> (
    None
):
    made = strategy("best-of-n", {"n": 3, "by": "reward"})
    ended: list[int] = []

    def reply(role: str, request: Any) -> Response | str:
        if isinstance(request, Reward) or request.draw == lost:
            raise RequestFailed(Failure("timeout", "provider", "No reply came."))
        ended.append(request.draw)
        return "x"

    for lost, party in ((0, "provider"), (9, "judge")):
        ended.clear()
        with pytest.raises(RequestFailed) as error:
            asked(made, reply)
        assert error.value.failure.party == party
        assert set(ended) == {0, 1, 2} - {lost}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'by'"),
        ({"by": "rewards"}, "Known: reward, judge, log-probability, and scorers"),
        ({"by": "log-probability", "role": "judge"}, "with reward and judge only"),
        ({"by": {"scorer": "instruction"}}, "Did you mean 'instructions'"),
        ({"by": "reward", "n": True}, "a whole number from 2 to"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        strategy("best-of-n", options)


# -- beam search from a task file to the record
# -------------------------------------------------------------------------


pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

QUESTIONS = [
    "The river rises",
    "Iron melts at 1538",
    "1 2 3",
    "Question: What is the capital of France?",
]


def test_beams_of_a_run_are_those_of_transformers(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = make_tiny_model(tmp_path / "tiny", "llama")
    rows = "".join(
        f"    - {{id: q{n}, input: '{text}', target: x}}\n"
        for n, text in enumerate(QUESTIONS)
    )
    (tmp_path / "beams.yaml").write_text(
        f"task: beams\ndataset:\n  rows:\n{rows}answer: {{max_tokens: 12}}\nprompt: {{format: text}}\nstrategy: {{name: beam-search, beams: 3}}\n",
        encoding="utf-8",
    )
    model = ["--model", f"hf/{folder}", "-M", "device=cpu"]
    long = [
        "-Tstrategy.length_penalty=3",
        "-Tstrategy.early_stopping=true",
        "-Tstrategy.beams=5",
    ]
    for name, more in (
        ("beams", []),
        ("greedy", ["-Tstrategy=single-draw"]),
        ("long", long),
    ):
        done = typed(
            "run",
            "beams.yaml",
            *model,
            *more,
            "--name",
            name,
            "--quiet",
            folder=tmp_path,
        )
        assert done.code == 0, done.text
    loaded = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts: dict[str, list[str]] = {"beams": [], "greedy": [], "long": []}
    for name, beams in (("beams", 3), ("greedy", 1), ("long", 5)):
        how = {"length_penalty": 3.0, "early_stopping": True} if name == "long" else {}
        for row in records(tmp_path / "runs" / name):
            ids = tokenizer(row["prompt"], return_tensors="pt").input_ids
            with torch.inference_mode():
                out = loaded.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    num_beams=beams,
                    do_sample=False,
                    max_new_tokens=12,
                    pad_token_id=tokenizer.eos_token_id,
                    **how,
                )
            new = out[0, ids.shape[1] :].tolist()
            ends = [
                place
                for place, token in enumerate(new)
                if token == tokenizer.eos_token_id
            ]
            wanted = tokenizer.decode(
                new[: ends[0]] if ends else new, skip_special_tokens=True
            )
            assert row["responses"][0]["text"] == wanted
            assert len(row["responses"]) == 1
            texts[name].append(wanted)
    assert texts["beams"] != texts["greedy"], (
        "beams that give the greedy answers would show nothing"
    )


def test_a_model_without_beams_refuses_them(tmp_path: Path) -> None:
    (tmp_path / "beams.yaml").write_text(
        "task: beams\ndataset: {rows: [{id: a, input: q, target: x}]}\nstrategy: beam-search\n",
        encoding="utf-8",
    )
    done = typed("run", "beams.yaml", "--model", "demo/small", folder=tmp_path)
    assert done.code == 2
    assert "does not take num_beams" in " ".join(done.text.split())
