"""HRET's scaling methods: published beside HRET's own classes, where it is installed, and each
of their defects mended in corrected mode.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from evalwright.compat.hret.cot_parsers import parser_of
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.row_samples import ROW
from evalwright.compat.hret.rules import rules_of
from evalwright.compat.hret.utils.prompt_template import default_cot_parser
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    UsageError,
)
from evalwright.core.requests import Generate, Request, Reward
from evalwright.core.responses import Response, TokenLogProb
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Strategy
from evalwright.models.model_interface import Model
from evalwright.strategies.sampling import Sampling


class Door:
    """The door to plug-ins: a prompt as the item of a batch of one, their log-probabilities as
    tokens.
    """

    def __init__(self, plugin: Any) -> None:
        self.plugin = plugin

    def carries(self, role: str) -> frozenset[str]:
        """What requests may use."""
        return frozenset({"top_logprobs"})

    async def __call__(self, role: str, request: Request) -> Response:
        if isinstance(request, Reward):
            [item] = self.plugin.score_batch(
                [{"input": request.prompt, "prediction": request.response}]
            )
            return Response(values=(item["reward"],))
        assert isinstance(request, Generate)
        [item] = self.plugin.generate_batch([{"input": request.prompt}])
        if item["prediction"] is None:
            raise RequestFailed(Failure("bad reply", "model", "No prediction."))
        values = item.get("logits", {}).get("token_log_probs", ())
        return Response(
            item["prediction"],
            tokens=tuple(TokenLogProb("", value) for value in values),
        )


def answers(
    strategy: Strategy, rows: Sequence[dict[str, Any]], plugin: Any
) -> list[Answer]:
    """The strategy's answers where plug-ins are the models."""

    async def all_of_them() -> list[Answer]:
        samples = [
            Sample(str(place), metadata={ROW: row}) for place, row in enumerate(rows)
        ]
        return [await strategy(sample, Door(plugin), 0) for sample in samples]

    return asyncio.run(all_of_them())


def native(**more: Any) -> Native:
    """How a model of this package is asked; no request reaches it here."""
    return Native(cast(Model, None), **more)


def bracketed(reply: str) -> tuple[str, str]:
    """A parser: the letter in brackets."""
    found = re.search(r"\([A-E]\)", reply)
    return reply.strip(), found[0] if found else ""


def reading(parser: Any, trigger: str = "Let's think step by step.") -> Native:
    """One that is asked for a chain of thought."""
    return native(cot=True, trigger=trigger, parser=parser)


HRET = os.environ.get("HRET_PYTHON", "")
"""The interpreter of an environment that has HRET, to ask its own classes too."""
BESIDE = """
import json, sys
from unittest.mock import MagicMock
sys.modules["spacy"] = MagicMock()  # of its analysis, which is not asked here
from llm_eval.scaling_methods import load_scaling_method
class Model:
    def __init__(self, replies): self.replies = {key: list(value) for key, value in replies.items()}; self.asked = []
    def generate_batch(self, inputs, **options):
        for item in inputs:
            self.asked.append(item["input"])
            text, values = self.replies[item["input"]].pop(0)
            item["prediction"] = text
            item["logits"] = {"sum_log_prob": sum(values), "token_log_probs": values} if values else {}
        return inputs
for line in sys.stdin:
    case = json.loads(line)
    model = Model(case["replies"])
    rows = load_scaling_method(case["method"], model=model, **case["params"]).apply(case["rows"])
    print(json.dumps([[row["prediction"] for row in rows], sorted(model.asked)]), file=sys.stderr)
"""


def cases(count: int) -> list[dict[str, Any]]:
    """Random replies to random prompts, for every method with the parameters that change it."""
    chance = random.Random(16)
    made = []
    for number in range(count):
        method = ("self_consistency", "best_of_n", "beam_search")[number % 3]
        prompts = [f"질문 {number}.{place}?" for place in range(3)]
        behind = [""]
        told = 30
        params: dict[str, Any]
        if method == "self_consistency":
            params = {
                "n_paths": chance.randint(0, 6),
                "use_default_parser": chance.random() < 0.6,
            }
            texts = [
                "정답: (A)",
                "(A)",
                "Answer: (A)\n끝",
                " (B) ",
                "",
                "오답: (B)",
                "정답: 답: (B)",
            ]
            behind = ["\nLet's think step by step.\n"]
            most = 0
            told = params["n_paths"]
        elif method == "best_of_n":
            params = {"n": chance.randint(0, 5), "batch_size": chance.randint(1, 3)}
            texts = ["가", "나", "", "다 라"]
            most = 3
            told = params["n"]
        else:
            params = {
                "beam_size": chance.randint(1, 4),
                "max_tokens": chance.randint(0, 4),
            }
            params["agg_strategy"] = chance.choice(["sum", "mean", "max"])
            texts = ["a", "b", "ab", ""]
            most = 1
            for _ in range(params["max_tokens"]):  # any text may be continued
                behind += [text + token for text in behind for token in texts[:3]]

        def reply(texts: list[str], most: int) -> list[Any]:
            return [
                chance.choice(texts),
                [-chance.random() for _ in range(chance.randint(0, most))],
            ]

        replies = {
            prompt + text: [reply(texts, most) for _ in range(told)]
            for prompt in prompts
            for text in dict.fromkeys(behind)
        }
        rows = [{"input": prompt, "reference": "x"} for prompt in prompts]
        made.append(
            {"method": method, "params": params, "rows": rows, "replies": replies}
        )
    return made


class Told:
    """The same as the model of `BESIDE`."""

    def __init__(self, replies: dict[str, Any]) -> None:
        self.replies = {prompt: list(told) for prompt, told in replies.items()}
        self.asked: list[str] = []

    def generate_batch(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A prompt's replies in their order."""
        self.asked += [item["input"] for item in inputs]
        told = [self.replies[item["input"]].pop(0) for item in inputs]
        return [
            {"prediction": text, "logits": {"token_log_probs": values}}
            for text, values in told
        ]


@pytest.mark.skipif(not HRET, reason="HRET is not installed beside (HRET_PYTHON)")
def test_published_answers_of_random_replies_are_those_of_hrets_own_classes(
    tmp_path: Path,
) -> None:
    every = cases(90)
    (tmp_path / "beside.py").write_text(BESIDE, encoding="utf-8")
    done = subprocess.run(
        [HRET, tmp_path / "beside.py"],
        input="\n".join(map(json.dumps, every)),
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = [
        json.loads(line) for line in done.stderr.splitlines() if line.startswith("[[")
    ]
    for case, (predictions, asked) in zip(every, theirs, strict=True):
        model = Told(case["replies"])
        found = answers(
            strategy_of(case["method"], case["params"], published=True),
            case["rows"],
            model,
        )
        assert [answer.text for answer in found] == predictions, case
        assert sorted(model.asked) == asked, case


def strategy_of(
    method: str | None,
    params: dict[str, Any],
    *,
    published: bool,
    native: Native | None = None,
    roles: Sequence[str] = (),
) -> Any:
    """The strategy of one of the rules."""
    rules = rules_of("published" if published else "corrected")
    return rules.strategy(method, params, native, roles)


class Saying:
    """A model that gives these texts in turn to every prompt; values: the log-probabilities of
    their tokens.
    """

    def __init__(
        self,
        *texts: str | None,
        values: Sequence[Sequence[float]] = (),
        reward: Any = None,
    ) -> None:
        self.asked: list[str] = []
        self._texts = texts
        self._values = values
        if reward is not None:
            self.score_batch: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = (
                lambda items: [
                    {**item, "reward": reward(item["prediction"])} for item in items
                ]
            )

    def generate_batch(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """As HRET's models."""
        made = []
        for item in inputs:
            place = self.asked.count(item["input"]) % len(self._texts)
            self.asked.append(item["input"])
            logits = (
                {"logits": {"token_log_probs": self._values[place]}}
                if self._values
                else {}
            )
            made.append({**item, "prediction": self._texts[place], **logits})
        return made


OPTIONS = {"input": "고르시오", "reference": "(B)", "options": ["(A)", "(B)", "(C)"]}


def corrected(
    method: str | None,
    params: dict[str, Any],
    model: Saying,
    row: Any = OPTIONS,
    **more: Any,
) -> Answer:
    """The one answer in corrected mode."""
    return answers(strategy_of(method, params, published=False, **more), [row], model)[
        0
    ]


def test_defect_1_5_votes_are_over_what_answers_say_not_over_their_texts() -> None:
    """Five draws of which three say B in three ways: HRET takes the first, since all texts
    differ.
    """
    texts = (
        "정답: (A)",
        "정답은 (B)입니다.",
        "따라서, 정답은: (B)",
        "정답은 (B) 입니다",
        "정답: (C)",
    )
    row = [OPTIONS]
    published = answers(
        strategy_of("self_consistency", {"n_paths": 5}, published=True),
        row,
        Saying(*texts),
    )[0]
    assert published.text == "(A)"
    assert (
        corrected("self_consistency", {"n_paths": 5}, Saying(*texts)).text == texts[1]
    )


def test_defect_10_best_of_n_without_a_reward_model_does_not_take_the_first_because_a_judge_is_there() -> (
    None
):
    texts = ("하나", "둘 둘", "셋")
    values = [(-2.0,), (-0.5, -0.6), (-0.9,)]
    roles = ("target", "judge")
    strategy = strategy_of("best_of_n", {"n": 3}, published=True, roles=roles)
    assert answers(strategy, [OPTIONS], Saying(*texts, values=values))[0].text == "하나"
    assert (
        corrected(
            "best_of_n", {"n": 3}, Saying(*texts, values=values), roles=roles
        ).text
        == "둘 둘"
    )
    # The sum of log-probabilities prefers short answers; the mean does not.
    strategy = strategy_of("best_of_n", {"n": 3}, published=True)
    assert answers(strategy, [OPTIONS], Saying(*texts, values=values))[0].text == "셋"


def test_defect_10_best_of_n_without_rewards_and_log_probabilities_fails_and_takes_no_draw() -> (
    None
):
    with pytest.raises(RequestFailed, match="no log-probabilities"):
        corrected("best_of_n", {"n": 2}, Saying("하나", "둘"))


def test_defect_2b_an_empty_answer_never_wins_whatever_its_reward() -> None:
    """HRET's reward model gives an empty answer 0.0, above every log-probability."""
    model = Saying(
        "",
        "옳은 답",
        "다른 답",
        reward=lambda text: {"": 0.0, "옳은 답": -1.0}.get(text, -2.0),
    )
    roles = ("target", "reward")
    strategy = strategy_of("best_of_n", {"n": 3}, published=True, roles=roles)
    assert answers(strategy, [OPTIONS], model)[0].text == ""
    model.asked.clear()
    assert corrected("best_of_n", {"n": 3}, model, roles=roles).text == "옳은 답"


def test_defect_14b_a_reply_of_none_costs_at_most_its_own_vote() -> None:
    """HRET's self-consistency crashes, and the whole evaluation with it."""
    assert (
        corrected(
            "self_consistency", {"n_paths": 3}, Saying("정답: B", "정답: B", None)
        ).text
        == "정답: B"
    )
    with pytest.raises(RequestFailed):
        corrected(
            "self_consistency", {"n_paths": 3}, Saying("정답: A", "정답: B", None)
        )


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        (
            "self_consistency",
            {"n_paths": 0},
            "'n_paths' of 'self_consistency' is a whole number from 1 on",
        ),
        ("best_of_n", {"n": 0}, "'n' of 'best_of_n' is a whole number"),
        ("beam_search", {"beam_size": 0}, "'beam_size'"),
        (
            "best_of_n",
            {"n_paths": 3},
            "Unknown parameter 'n_paths' of the scaling method 'best_of_n'",
        ),
        ("self_consistency", {"n_path": 3}, "Did you mean 'n_paths'"),
        ("beam_search", {"agg_strategy": "median"}, "agg_strategy is sum or mean"),
        ("top_k", {"k": 0}, "top_k is a whole number from 1 on"),
    ],
)
def test_defect_14b_numbers_and_parameters_that_cannot_be_are_refused(
    method: str, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        strategy_of(method, params, published=False)
    if method != "top_k" and "agg_strategy" not in params:
        assert strategy_of(method, params, published=True)  # HRET takes them


def test_defect_14b_the_readmes_num_iterations_is_named_as_without_effect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert strategy_of(
        "beam_search", {"beam_size": 3, "num_iterations": 5}, published=False
    )
    assert "'num_iterations' of 'beam_search' has no effect" in caplog.text


@pytest.mark.parametrize("method", ["self_consistency", "best_of_n", "beam_search"])
def test_one_path_is_one_request(method: str) -> None:
    name = {
        "self_consistency": "n_paths",
        "best_of_n": "n",
        "beam_search": "beam_size",
    }[method]
    model = Saying("정답: (B)")
    assert (
        corrected(method, {name: 1}, model).text == "정답: (B)"
        and len(model.asked) == 1
    )


def test_unknown_methods_say_which_there_are_and_documented_ones_exist_in_corrected_mode() -> (
    None
):
    for method in ("top_k", "top_p"):
        known = r"\['self_consistency', 'best_of_n', 'beam_search'\]"
        with pytest.raises(
            ValueError, match=f"Unknown scaling method: {method}. Available: {known}"
        ):
            strategy_of(method, {}, published=True)
    with pytest.raises(ValueError, match="Unknown aggregation strategy: median"):
        strategy_of("beam_search", {"agg_strategy": "median"}, published=True)
    with pytest.raises(
        ValueError,
        match=r"'best_of_m'. Did you mean 'best_of_n'",
    ):
        strategy_of("best_of_m", {}, published=False)
    drawn: dict[str, Any] = {
        "greedy": ({}, (0.0, None, None)),
        "temperature_sampling": ({"temperature": 0.4}, (0.4, None, None)),
        "top_k": ({"k": 7}, (1.0, 7, None)),
        "top_p": ({"top_p": 0.5, "temperature": 0.6}, (0.6, None, 0.5)),
    }
    for method, (params, wanted) in drawn.items():
        found: Sampling = strategy_of(method, params, published=False).sampling
        assert (found.temperature, found.top_k, found.top_p) == wanted


def test_a_custom_aggregator_decides_in_both_modes() -> None:
    texts = ("정답: (A)", "정답: (B)", "정답: (C)")
    params = {"n_paths": 3, "aggregator_fn": lambda candidates: candidates[-1]}
    assert (
        answers(
            strategy_of("self_consistency", params, published=True),
            [OPTIONS],
            Saying(*texts),
        )[0].text
        == "(C)"
    )
    assert corrected("self_consistency", params, Saying(*texts)).text == "정답: (C)"
    mean = {
        "n_paths": 3,
        "aggregator_fn": lambda candidates: str(sum(map(int, candidates)) / 3),
    }
    found = corrected(
        "self_consistency",
        mean,
        Saying("정답: 1", "정답: 2", "정답: 6"),
        {"input": "?"},
    )
    assert (found.text, found.strategy["chosen"]) == ("3.0", None)


def test_beams_of_corrected_mode_are_the_models_own_and_several_draws_have_a_temperature() -> (
    None
):
    for how, penalty in (("sum", 0.0), ("mean", 1.0)):
        params = {"beam_size": 3, "max_tokens": 9, "agg_strategy": how}
        made: Any = strategy_of("beam_search", params, published=False, native=native())
        found: Sampling = made.sampling
        assert (found.num_beams, found.max_tokens, found.temperature) == (3, 9, 0)
        assert found.length_penalty == penalty
    greedy = native(sampling=Sampling(temperature=0.0))
    drawn: Any = strategy_of("self_consistency", {}, published=False, native=greedy)
    assert drawn.sampling.temperature == 0.7


def test_defect_27_beams_without_log_probabilities_are_a_failure_and_not_the_first_text() -> (
    None
):
    params = {"beam_size": 2, "max_tokens": 3}
    published = strategy_of("beam_search", params, published=True)
    assert answers(published, [OPTIONS], Saying("가", "나"))[0].text in (
        "가가가",
        "나나나",
        "가나가",
        "나가나",
        "가가나",
    )
    with pytest.raises(RequestFailed, match="no log-probabilities to keep beams by"):
        corrected("beam_search", params, Saying("가", "나"))
    found = corrected(
        "beam_search", params, Saying("가", "나", values=[(-0.5,), (-0.1,)])
    )
    assert found.text[0] == "나" and len(found.text) == 3


def test_one_trigger_is_enough_in_corrected_mode() -> None:
    model = Saying("그래서 (B)")
    strategy = strategy_of(
        "self_consistency",
        {"n_paths": 2},
        published=False,
        native=reading(bracketed, "생각하자."),
    )
    found = answers(strategy, [OPTIONS], model)[0]
    assert model.asked == ["고르시오\n생각하자.\n"] * 2
    assert (found.text, found.reasoning) == ("(B)", "그래서 (B)")


def test_a_parser_that_fails_takes_the_whole_text_in_published_mode_and_is_a_failure_in_corrected() -> (
    None
):
    def bad(text: str) -> Any:
        return text, text, text

    model = reading(bad)
    found = answers(
        strategy_of(None, {}, published=True, native=model), [OPTIONS], Saying("(B)")
    )
    assert found[0].text == "(B)"
    with pytest.raises(ValueError, match="too many values"):
        answers(
            strategy_of(None, {}, published=False, native=model),
            [OPTIONS],
            Saying("(B)"),
        )


def test_defect_24_a_parser_by_dotted_path_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parsers_of_mine.py").write_text(
        "def mine(text):\n    return text, text[-3:]\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = parser_of("parsers_of_mine.mine")
    assert found is not None and found("그래서 (B)") == ("그래서 (B)", "(B)")
    assert parser_of(bracketed) is bracketed and parser_of(None) is None
    path = "llm_eval.utils.prompt_template.default_cot_parser"
    assert parser_of(path) is default_cot_parser


def test_defect_12b_a_parser_that_is_not_there_is_an_error_and_in_published_mode_the_default(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for path in ("no_module.fn", "json.nothing", "json.__name__", "fn"):
        with pytest.raises(ConfigurationError):
            parser_of(path)
    published = rules_of("published")
    own = parser_of("no_module.fn", rules=published)
    assert own is not None and own("오답: (B)") == default_cot_parser(
        "오답: (B)", rules=published
    )
    assert "cannot be imported" in caplog.text
