"""HRET's own back ends: what is sent to servers, and a transformer's numbers beside HRET's
formula.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compat.hret.test_calls import Rows
from evalwright.compat.hret import EvaluationResult, Evaluator, datasets
from evalwright.compat.hret.models import load_model
from evalwright.compat.hret.scaling_methods import load_scaling_method
from support.openai_server import serving


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(datasets.DATASET_REGISTRY, "rows", Rows)


def run(scoring: str = "corrected", **more: Any) -> EvaluationResult:
    call = {"model": "openai", "dataset": "rows", "language_penalize": False, **more}
    return Evaluator(scoring=scoring).run(**call)


@pytest.mark.parametrize("end", ["", "/", "/chat/completions"])
def test_defect_28_the_address_may_have_the_path_of_the_interface(end: str) -> None:
    with serving(answer=lambda prompt: str(int(prompt.split()[0]) + 1)) as server:
        result = run(model_params={"model_name": "m", "api_base": server.url + end})
    assert result.metrics == {"accuracy": 1.0}
    assert {entry["path"].rpartition("/v1")[2] for entry in server.log or ()} == {
        "/chat/completions"
    }


def test_defect_28_settings_are_sent_and_published_sends_what_hret_sends() -> None:
    given = {
        "model_name": "m",
        "cot": True,
        "cot_trigger": "생각하자.",
        "seed": 7,
        "max_tokens": 9,
        "system_message": "짧게.",
    }
    for scoring, expected in (("corrected", True), ("published", False)):
        with serving(answer=lambda prompt: "정답: 1") as server:
            run(
                scoring,
                model_params={
                    **given,
                    "api_base": server.url,
                    "api_key": "sk-not-shown-anywhere",
                },
            )
        bodies = [entry["body"] for entry in server.log or () if "body" in entry]
        assert len(bodies) == 6
        for body in bodies:
            assert ("seed" in body) is expected and body["max_tokens"] == 9
            assert body["messages"][0] == {"role": "system", "content": "짧게."}
            assert ("생각하자." in body["messages"][1]["content"]) is expected
    texts = [path.read_text(encoding="utf-8") for path in Path("runs").rglob("*.json*")]
    assert texts and not any("sk-not-shown-anywhere" in text for text in texts)


def test_several_draws_at_temperature_0_say_so_and_log_probabilities_are_asked_for() -> (
    None
):
    params = {"model_name": "m", "temperature": 0.0, "logprobs": True}
    with serving(answer=lambda prompt: "1") as server:
        params["api_base"] = server.url
        result = run(
            model_params=params,
            scaling_method="self_consistency",
            scaling_params={"n_paths": 2},
        )
    assert "the temperature is 0.7, in place of 0" in str(result.info["notes"])
    bodies = [entry["body"] for entry in server.log or () if "body" in entry]
    assert (
        all(body["temperature"] == 0.7 and body["logprobs"] is True for body in bodies)
        and bodies
    )


def with_log_probabilities(
    reply: dict[str, Any], body: Mapping[str, Any]
) -> dict[str, Any]:
    """A server's reply of one token, with its log-probability."""
    choices = []
    for choice in reply["choices"]:
        token = {
            "token": choice["message"]["content"],
            "logprob": -0.5,
            "bytes": None,
            "top_logprobs": [],
        }
        choices.append({**choice, "logprobs": {"content": [token]}})
    return {**reply, "choices": choices}


def test_best_of_n_stops_at_the_first_reply_without_log_probabilities() -> None:
    with serving(answer=lambda prompt: "1") as server:
        call: dict[str, Any] = {
            "scaling_method": "best_of_n",
            "scaling_params": {"n": 5},
        }
        params = {"model_name": "m", "api_base": server.url, "temperature": 0.7}
        refused = run(model_params=params, **call).metrics
        assert sum(server.received.values()) == 1
        as_hret = run("published", model_params=params, **call)
    assert list(refused) == [
        "pipeline_error"
    ] and "has none, so nothing more was sent" in str(refused)
    assert "accuracy" in as_hret.metrics
    (note,) = as_hret.info["notes"]
    assert "took the first draw" in note and "have no log-probabilities" in note


def test_best_of_n_goes_on_where_there_are_log_probabilities() -> None:
    answer = lambda prompt: str(int(prompt.split()[0]) + 1)  # noqa: E731
    with serving(answer=answer, edit=with_log_probabilities) as server:
        params = {"model_name": "m", "api_base": server.url, "temperature": 0.7}
        result = run(
            model_params=params, scaling_method="best_of_n", scaling_params={"n": 2}
        )
        assert sum(server.received.values()) == 12
    assert result.metrics == {"accuracy": 1.0} and "notes" not in result.info


def test_log_likelihood_that_could_judge_no_row_is_refused_before_anything_is_sent() -> (
    None
):
    with serving(answer=lambda prompt: "four") as server:
        for rows, said in (
            (OPTION_ROWS, "gives no log-probabilities"),
            (None, "no row of 'rows' has `options`"),
        ):
            params = {"model_name": "m", "api_base": server.url}
            data: dict[str, Any] = {"dataset_params": {"rows": rows}} if rows else {}
            metrics = run(
                model_params=params, evaluation_method="log_likelihood", **data
            ).metrics
            assert (
                list(metrics) == ["pipeline_error"]
                and said in metrics["pipeline_error"]
            )
        assert not server.received
        recorded = [
            {
                **row,
                "logits": {
                    "option_log_probs": [-2.0, -1.0, -3.0][: len(row["options"])]
                },
            }
            for row in OPTION_ROWS
        ]
        data = {"dataset_params": {"rows": recorded}}
        assert (
            run(
                model_params=params, evaluation_method="log_likelihood", **data
            ).metrics["accuracy"]
            == 0.5
        )


def test_a_conversation_of_a_row_is_sent_turn_by_turn() -> None:
    turns = [
        {"role": "system", "content": "짧게."},
        {"role": "user", "content": "1 더하기 1은?"},
    ]
    rows = [{"input": turns, "reference": "2"}]
    with serving(answer=lambda prompt: "2") as server:
        params = {
            "model_name": "m",
            "api_base": server.url,
            "cot": True,
            "cot_trigger": "생각하자.",
        }
        assert run(model_params=params, dataset_params={"rows": rows}).metrics == {
            "accuracy": 1.0
        }
    (sent,) = [
        entry["body"]["messages"] for entry in server.log or () if "body" in entry
    ]
    assert sent == [turns[0], {"role": "user", "content": "1 더하기 1은?\n생각하자.\n"}]


PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize("scoring", ["published", "corrected"])
def test_images_of_a_row_go_with_every_draw(scoring: str) -> None:
    rows = [
        {
            "input": {"text": "무엇인가?", "images": [{"image_url": {"url": PIXEL}}]},
            "reference": "점",
        }
    ]
    with serving(answer=lambda prompt: "점") as server:
        params = {
            "model_name": "m",
            "api_base": server.url,
            "is_vision_model": True,
            "temperature": 0.5,
        }
        scaling = {
            "scaling_method": "self_consistency",
            "scaling_params": {"n_paths": 2},
        }
        assert (
            "accuracy"
            in run(
                scoring, model_params=params, dataset_params={"rows": rows}, **scaling
            ).metrics
        )
    shown = [
        entry["body"]["messages"][-1]["content"]
        for entry in server.log or ()
        if "body" in entry
    ]
    assert len(shown) == 2 and all(PIXEL in str(one) for one in shown)


def test_an_image_that_cannot_be_read_fails_its_sample_and_published_is_a_sentence() -> (
    None
):
    rows = [{"input": "무엇인가?", "images": "nowhere.png", "reference": "점"}]
    with serving(answer=lambda prompt: "점") as server:
        params = {"model_name": "m", "api_base": server.url, "is_vision_model": True}
        told = run(model_params=params, dataset_params={"rows": rows}).metrics[
            "pipeline_error"
        ]
        run("published", model_params=params, dataset_params={"rows": rows})
    assert "'nowhere.png' cannot be read" in told
    (sent,) = [
        entry["body"]["messages"] for entry in server.log or () if "body" in entry
    ]
    assert "[Error processing image: nowhere.png]" in str(sent)


@pytest.mark.parametrize("scoring", ["published", "corrected"])
@pytest.mark.parametrize("same_place", [True, False])
def test_judge_and_generator_may_be_one_model(scoring: str, same_place: bool) -> None:
    def answer(prompt: str) -> str:
        if "Model's Response" not in prompt and '"check"' not in prompt:
            return "답"
        mark = re.search(r'"check": "(\w+)"', prompt)
        return (
            json.dumps({"check": mark[1], "reason": "-", "grade": 4})
            if mark
            else "Evaluation: ok\nScore: 4"
        )

    with serving(answer=answer) as first, serving(answer=answer) as second:
        judge_url = first.url if same_place else second.url
        result = run(
            scoring,
            model_params={"model_name": "m", "api_base": first.url},
            judge_model="openai_judge",
            judge_params={
                "model_name": "m",
                "api_base": judge_url,
                "api_key": "sk-any",
            },
            evaluation_method="llm_judge",
            evaluator_params={"default_judge_type": "k2_eval"},
        )
        asked = [sum(server.received.values()) for server in (first, second)]
    assert result.metrics == {"average_judge_score": 4.0}
    assert asked == ([12, 0] if same_place else [6, 6])


def test_responses_are_paid_for_once() -> None:
    with serving(answer=lambda prompt: "1") as server:
        for _ in range(2):
            run(model_params={"model_name": "m", "api_base": server.url})
        assert sum(server.received.values()) == 6


def test_classes_of_back_ends_and_scaling_methods_work_by_themselves() -> None:
    with serving(answer=lambda prompt: "정답: 2") as server:
        model = load_model("openai", model_name="m", api_base=server.url)
        assert [
            one["prediction"] for one in model.generate_batch([{"input": "1+1?"}])
        ] == ["정답: 2"]
        method = load_scaling_method("self_consistency", model=model, n_paths=3)
        assert method.apply([{"input": "1+1?"}])[0]["prediction"] == "정답: 2"
        multi = load_model(
            "multi",
            generate_model={
                "name": "openai",
                "params": {"model_name": "m", "api_base": server.url},
            },
        )
        assert multi.judge_batch([{"input": "x"}]) == [{"input": "x"}]
    with pytest.raises(ValueError, match="model is not set"):
        load_scaling_method("best_of_n").apply([{"input": "x"}])


OPTION_ROWS: list[dict[str, Any]] = [
    {
        "input": "Question: two and two?\nAnswer:",
        "reference": "four",
        "options": ["three", "four", "it is five"],
    },
    {
        "input": "질문: 하늘은?\n답:",
        "reference": "푸르다",
        "options": ["푸르다", "붉다"],
    },
]


class Transformer:
    """A small model, and HRET's formula for the log-probability of an option behind a prompt."""

    def __init__(self, folder: Path) -> None:
        torch = pytest.importorskip("torch")
        transformers = pytest.importorskip("transformers")
        from support.tiny_models import make_tiny_model

        self.folder = make_tiny_model(folder, "gpt2")
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder)
        self._weights = transformers.AutoModelForCausalLM.from_pretrained(
            self.folder
        ).eval()
        self._torch = torch

    def by_formula(self, prompt: str, option: str) -> float:
        ids = self._tokenizer(f"{prompt} {option}", return_tensors="pt").input_ids
        start = self._tokenizer(prompt, return_tensors="pt").input_ids.shape[1]
        with self._torch.no_grad():
            scores = self._torch.log_softmax(self._weights(ids).logits[0], dim=-1)
        return float(
            sum(
                scores[place - 1, ids[0, place]] for place in range(start, ids.shape[1])
            )
        )

    def run(self, scoring: str, **more: Any) -> EvaluationResult:
        params = {
            "model_name_or_path": str(self.folder),
            "device": "cpu",
            **more.pop("model_params", {}),
        }
        return run(scoring, model="huggingface", model_params=params, **more)


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Transformer:
    return Transformer(tmp_path_factory.mktemp("weights") / "tiny")


@pytest.mark.torch
def test_options_have_hret_s_log_probabilities(transformer: Transformer) -> None:
    rows = {"rows": OPTION_ROWS}
    for scoring in ("published", "corrected"):
        result = transformer.run(
            scoring, evaluation_method="log_likelihood", dataset_params=rows
        )
        for row, sample in zip(OPTION_ROWS, result.samples, strict=True):
            expected = [
                transformer.by_formula(row["input"], option)
                for option in row["options"]
            ]
            assert sample["logits"]["option_log_probs"] == pytest.approx(
                expected, abs=1e-3
            )
    model = load_model(
        "huggingface", model_name_or_path=str(transformer.folder), device="cpu"
    )
    for prompt in ("질문: 하늘은?", "A ", "정답:\n"):
        for option in ("(A)", "푸르다", ""):
            assert model._score_option(prompt, option) == pytest.approx(
                transformer.by_formula(prompt, option), abs=1e-3
            )
    drawn = transformer.run(
        "published",
        model_params={"max_new_tokens": 3},
        dataset_params={"rows": [{"input": "1?", "reference": "1"}]},
    )
    assert (
        "pipeline_error" not in drawn.metrics
    )  # defect 26: temperature 0 with do_sample
    logits = drawn.samples[0]["logits"]  # as HRET's back end, unasked
    assert (
        logits["sum_log_prob"] == pytest.approx(sum(logits["token_log_probs"]))
        and logits["tokens"]
    )


TRIGGER = "차근차근 생각하자."


@pytest.mark.torch
@pytest.mark.parametrize(
    ("scoring", "behind"),
    [("published", ""), ("corrected", f"\n{TRIGGER}\n")],
    ids=["published", "corrected"],
)
def test_options_are_scored_by_likelihood_with_a_chain_of_thought(
    transformer: Transformer, scoring: str, behind: str
) -> None:
    result = transformer.run(
        scoring,
        model_params={"cot": True, "cot_trigger": TRIGGER, "max_new_tokens": 4},
        evaluation_method="log_likelihood",
        dataset_params={"rows": OPTION_ROWS},
    )
    assert "n_missing" not in result.metrics
    right = []
    for row, sample in zip(OPTION_ROWS, result.samples, strict=True):
        expected = [
            transformer.by_formula(row["input"] + behind, option)
            for option in row["options"]
        ]
        assert sample["logits"]["option_log_probs"] == pytest.approx(expected, abs=1e-3)
        assert sample["prediction"] == row["options"][expected.index(max(expected))]
        assert sample.get("chain_of_thought") is None
        right.append(sample["prediction"] == row["reference"])
    assert result.metrics["accuracy"] == sum(right) / len(right)


@pytest.mark.torch
@pytest.mark.parametrize("method", ["self_consistency", "best_of_n", "beam_search"])
def test_options_are_scored_by_likelihood_with_a_scaling_method(
    transformer: Transformer, method: str
) -> None:
    result = transformer.run(
        "corrected",
        evaluation_method="log_likelihood",
        scaling_method=method,
        dataset_params={"rows": OPTION_ROWS},
    )
    assert "n_missing" not in result.metrics and "pipeline_error" not in result.metrics
    (note,) = result.info["notes"]
    assert (
        f"'{method}' has no part in 'log_likelihood'" in note
        and "temperature" not in note
    )
    alone = transformer.run(
        "corrected",
        evaluation_method="log_likelihood",
        dataset_params={"rows": OPTION_ROWS},
    )
    assert [row["logits"] for row in result.samples] == [
        row["logits"] for row in alone.samples
    ]
    assert all(
        len(sample["logits"]["option_log_probs"]) == len(sample["options"])
        for sample in result.samples
    )


@pytest.mark.torch
@pytest.mark.parametrize("scoring", ["published", "corrected"])
def test_the_best_of_n_keeps_its_logits(transformer: Transformer, scoring: str) -> None:
    result = transformer.run(
        scoring,
        model_params={"max_new_tokens": 3, "temperature": 1.0},
        scaling_method="best_of_n",
        scaling_params={"n": 4},
        dataset_params={"rows": [{"input": "1?", "reference": "1"}]},
    )
    (sample,) = result.samples
    logits = sample["logits"]
    assert len(logits["token_log_probs"]) == len(logits["tokens"]) > 0
    assert logits["sum_log_prob"] == pytest.approx(sum(logits["token_log_probs"]))
    if scoring == "corrected":
        assert "".join(logits["tokens"]).startswith(sample["prediction"])
    alone = transformer.run(
        "corrected",
        model_params={"max_new_tokens": 3},
        dataset_params={"rows": OPTION_ROWS},
    )
    assert not any("logits" in row for row in alone.samples)
