"""HRET's documented calls, and its defects outside of scoring: the numbers are those of the
table in docs/reference/hret-parameters.md.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.hret import (
    EvaluationResult,
    Evaluator,
    PipelineRunner,
    datasets,
    evaluation,
    hret,
    models,
    run_from_config,
    scaling_methods,
)
from evalwright.compat.hret.evaluator import main
from evalwright.compat.hret.examples import (
    DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
    DEFAULT_FEW_SHOT_INSTRUCTION,
)
from evalwright.compat.hret.judge_types import Judging
from evalwright.compat.hret.models import BaseModel, load_model
from evalwright.compat.hret.rules import using
from evalwright.compat.hret.utils.prompt_template import format_few_shot_prompt_prefix
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.trackers import tracker

ROWS = [
    {
        "input": f"{n} 더하기 1은?",
        "reference": str(n + 1),
        "_subset_name": "짝" if n % 2 == 0 else "홀",
    }
    for n in range(6)
]


class Rows:
    """A dataset with nothing but `load`."""

    def __init__(
        self, split: str = "test", subset: Any = None, rows: Any = None, **kwargs: Any
    ) -> None:
        self.split = split
        self.rows = rows

    def load(self) -> list[dict[str, Any]]:
        if self.rows is not None:
            return [dict(row) for row in self.rows]
        if self.split == "dev":
            return [
                {"input": f"보기 {n}?", "reference": str(n), "_subset_name": "짝"}
                for n in range(4)
            ]
        if self.split == "test":
            return [dict(row) for row in ROWS]
        raise ValueError(f'Unknown split "{self.split}".')


class Model(BaseModel):
    """Says what is right, however it is asked to misbehave. seen: what it was given."""

    seen: list[dict[str, Any]] = []  # noqa: RUF012

    def __init__(self, how: str = "", cot_parser: Any = None) -> None:
        super().__init__(cot_parser=cot_parser)
        self.how = how

    def generate_batch(
        self, inputs: list[dict[str, Any]], return_logits: bool = False, **kwargs: Any
    ) -> list[dict[str, Any]]:
        Model.seen += [dict(one) for one in inputs]
        made = [
            {**one, "prediction": f"정답: {one.get('reference', '1')}"}
            for one in inputs
        ]
        if self.how == "reorder":
            return made[::-1]
        if self.how == "forget":
            return made[2:]
        if self.how == "mutate":
            for one in inputs:
                one["reference"] = "변조"
                one["input"] = ""
        if self.how == "none":
            made[0]["prediction"] = None
        if self.how == "new":
            return [{"prediction": one["prediction"]} for one in made]
        if self.how == "raise":
            raise RuntimeError("no weights")
        if self.how == "parse":
            for one in made:
                one["chain_of_thought"], one["prediction"] = self.cot_parser(
                    one["prediction"]
                )  # type: ignore[misc]
        return made


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    Model.seen = []
    tables: list[dict[str, Any]] = [
        datasets.DATASET_REGISTRY, models.MODEL_REGISTRY, scaling_methods.SCALING_REGISTRY, evaluation.EVALUATION_REGISTRY,
    ]  # fmt: skip
    kept = [dict(table) for table in tables]
    datasets.register_dataset("rows")(Rows)
    models.register_model("mine")(Model)
    yield
    for table, old in zip(tables, kept, strict=True):
        table.clear()
        table.update(old)


def run(how: str = "", **more: Any) -> EvaluationResult:
    call = {
        "model": "mine",
        "dataset": "rows",
        "model_params": {"how": how},
        "language_penalize": False,
        **more,
    }
    return Evaluator().run(**call)


def test_the_signatures_are_those_of_hret() -> None:
    made = inspect.signature(Evaluator).parameters
    defaults = {
        name: one.default
        for name, one in made.items()
        if one.kind is not one.KEYWORD_ONLY
    }
    assert defaults == {
        "default_model_backend": "huggingface", "default_judge_backend": None, "default_reward_backend": None,
        "default_scaling_method": None, "default_evaluation_method": "string_match", "default_split": "test", "default_cot_parser": None,
        "default_num_few_shot": 0, "default_few_shot_split": None, "default_few_shot_instruction": DEFAULT_FEW_SHOT_INSTRUCTION,
        "default_few_shot_example_template": DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
    }  # fmt: skip
    names = [
        name
        for name, one in inspect.signature(Evaluator.run).parameters.items()
        if one.kind is not one.KEYWORD_ONLY
    ]
    assert names == [
        "self", "model", "judge_model", "reward_model", "dataset", "subset", "split", "scaling_method", "evaluation_method", "dataset_params",
        "model_params", "judge_params", "reward_params", "scaling_params", "evaluator_params", "language_penalize", "target_lang",
        "custom_cot_parser", "num_few_shot", "few_shot_split", "few_shot_instruction", "few_shot_example_template",
    ]  # fmt: skip


def test_a_result_is_a_view_of_a_run() -> None:
    result = run()
    assert result["metrics"]["accuracy"] == 1.0 and result.info["n_missing"] == 0
    assert result.run is not None
    result.run.verify()
    assert result.info["subset_metrics"]["짝"]["accuracy"] == 1.0
    low, high = result.info["intervals"]["accuracy"]
    assert low < 1.0 <= high
    assert [row["_subset_name"] for row in result.samples] == [
        row["_subset_name"] for row in ROWS
    ]


@pytest.mark.parametrize("how", ["reorder", "mutate", "new"])
def test_what_a_plug_in_returns_is_matched_back(how: str) -> None:
    result = run(how)
    assert [row["reference"] for row in result.samples] == [
        row["reference"] for row in ROWS
    ]
    assert result.metrics["accuracy"] == 1.0


@pytest.mark.parametrize(("how", "failed"), [("forget", 2), ("none", 1)])
def test_defect_17_and_25_a_missing_reply_fails_its_sample_alone(
    how: str, failed: int
) -> None:
    result = run(how)
    assert result.metrics["accuracy"] == 1.0
    assert result.metrics["n_missing"] == result.info["n_missing"] == failed
    assert all(row["error"] for row in result.samples[:failed])


def test_defect_20_an_error_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no weights" in run("raise").metrics["pipeline_error"]
    assert "no rows" in run(dataset_params={"rows": []}).metrics["pipeline_error"]
    with pytest.raises(ValueError, match="Unknown dataset"):
        Evaluator().run(model="mine", dataset="nope", raise_on_error=True)
    call = ["--dataset", "rows", "--model", "mine", "--no-language_penalize"]
    assert main([*call, "--output_file", "out.json"]) == 0
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["metrics"] == {
        "accuracy": 1.0
    }
    assert main([*call, "--model_params", '{"how": "raise"}']) == 1
    assert main([*call, "--model_params", '{"how": "none"}']) == 1
    bad_json = (["--model_params", "{how:1}"], ["--dataset_params", "[1]"])
    for wrong in (*bad_json, ["--frobnicate"], ["--config", "x.yaml"]):
        with pytest.raises(SystemExit) as ended:
            main([*call, *wrong])
        assert ended.value.code == 2
    capsys.readouterr()


def test_defect_13_examples_are_of_another_split_and_never_the_row_itself() -> None:
    assert run(num_few_shot=2).info["few_shot_source_split"] == "dev"
    assert all(
        one["input"].startswith(DEFAULT_FEW_SHOT_INSTRUCTION) for one in Model.seen
    )
    Model.seen = []
    result = run(num_few_shot=2, dataset_params={"rows": ROWS})
    assert len(result.samples) == 4 and "rows of the evaluated split" in str(
        result.info["notes"]
    )
    for one in result.samples:
        *examples, question = (
            one["input"].removeprefix(DEFAULT_FEW_SHOT_INSTRUCTION).split("\n\n")
        )
        assert len(examples) == 2 and all(
            question not in example for example in examples
        )
    assert (
        "cannot be read"
        in run(num_few_shot=1, few_shot_split="train").metrics["pipeline_error"]
    )


def test_further_defect_3_no_rows_are_dropped_where_examples_cannot_be_made() -> None:
    result = run(num_few_shot=2, few_shot_example_template="{question}")
    assert "{question}" in result.metrics["pipeline_error"]


def test_defect_24_a_parser_is_loaded_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_parsers.py").write_text(
        "def last(text):\n    return text, text[-1]\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    result = run("parse", custom_cot_parser="own_parsers.last")
    assert result.samples[0]["chain_of_thought"] == "정답: 1"
    assert run(
        "parse", custom_cot_parser="own_parsers.last", reward_model="mine_reward"
    ).metrics["pipeline_error"]
    with pytest.raises(Exception, match="own_parsers"):
        Evaluator(default_cot_parser="own_parsers.nothing")
    with pytest.raises(ConfigurationError, match="not 3"):
        Evaluator(default_cot_parser=3)  # type: ignore[arg-type]
    config = {
        "dataset": {"name": "rows"},
        "model": {"name": "mine", "params": {"how": "parse"}},
        "custom_cot_parser": "own_parsers.last",
    }
    Path("c.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(Exception, match="settings that need your permission"):
        run_from_config("c.json")
    assert (
        run_from_config("c.json", trust=True).samples[0]["chain_of_thought"]
        == "정답: 1"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"text": "1?", "images": ["a.png"]},
        [{"role": "user", "content": "1?"}],
        None,
        "1?",
    ],
)
def test_defect_25_a_row_may_have_any_input(given: Any) -> None:
    result = run(
        dataset_params={"rows": [{"input": given, "reference": "1"}]}, num_few_shot=0
    )
    assert result.metrics["accuracy"] == 1.0
    assert Model.seen[0]["input"] == given == result.samples[0]["input"]


def test_defect_27_a_running_event_loop_is_no_obstacle() -> None:
    async def notebook() -> EvaluationResult:
        return run()

    assert asyncio.run(notebook()).metrics["accuracy"] == 1.0


def test_defect_29_importing_costs_little(tmp_path: Path) -> None:
    code = (
        "import sys, evalwright.compat.hret as h; h.Evaluator; h.hret\n"
        "heavy = {'torch', 'transformers', 'pandas', 'datasets', 'openai', 'litellm', 'PIL', 'spacy', 'sklearn'} & set(sys.modules)\n"
        "import os; assert not heavy, heavy; assert not os.listdir('.')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_defect_18_and_30_results_are_written_and_analysed(tmp_path: Path) -> None:
    result = run()
    result.samples[0]["evaluation"]["parsed"] = {1, 2} and object()
    kept = result.samples[1]["prediction"]
    result.samples[1]["prediction"] = "\ud800"
    result.save_json("new/folder/out.json")
    result.samples[1]["prediction"] = kept
    saved = json.loads(Path("new/folder/out.json").read_text(encoding="utf-8"))
    assert saved.keys() == {"metrics", "samples", "info"}
    text = result.analysis_report()
    assert isinstance(text, str) and [
        line[:4] for line in text.splitlines() if line.startswith("## ")
    ] == [f"## {n}" for n in range(1, 6)]
    found = result.analysis_report(output_format="dict", top_n=1)
    assert isinstance(found, dict) and found["summary"]["num_correct"] == 6
    assert found["subsets"] == {"짝": "100.00%", "홀": "100.00%"}
    with pytest.raises(ValueError, match="html"):
        result.analysis_report(output_format="html")
    table = result.to_dataframe()
    assert len(table) == 6 and "eval_is_correct" in table.columns


def test_defect_23_the_function_that_is_given_is_evaluated(tmp_path: Path) -> None:
    asked: list[str] = []

    def right(prompt: str) -> str:
        asked.append(prompt)
        return str(int(prompt.split()[0]) + 1)

    def wrong(prompt: str) -> str:
        if prompt.startswith("0"):
            raise ValueError("no zero")
        return "모름"

    hret.configure(output_dir="results")
    try:
        before = len(hret.get_metrics_history())
        assert (
            hret.quick_eval(right, dataset="rows", language_penalize=False).metrics[
                "accuracy"
            ]
            == 1.0
        )
        assert len(asked) == 6
        found = hret.compare_models(
            {"a": right, "b": wrong}, dataset="rows", language_penalize=False
        )
        assert found["a"].metrics["accuracy"] == 1.0 and found["b"].metrics == {
            "accuracy": 0.0,
            "n_missing": 1,
        }

        @hret.evaluate(dataset="rows", model="huggingface", language_penalize=False)
        def decorated(prompt: str) -> str:
            return right(prompt)

        assert decorated().metrics["accuracy"] == 1.0
        sent: list[Any] = []
        with hret.evaluation_context(
            dataset="rows", language_penalize=False
        ) as context:
            context.add_mlops_integration(
                lambda ended, results: sent.append((ended, results))
            )
            context.evaluate(right)
        assert sent[0][0]["metrics"] == {"accuracy": 1.0}
        history = hret.get_metrics_history()[before:]
        assert (
            len(history) == 4
            and hret.compare_metric("accuracy")["_stats"]["best"] == 1.0
        )
        assert list(Path("results").glob("hret_results_*.json"))
        with (
            pytest.raises(RuntimeError, match="boom"),
            hret.evaluation_context(dataset="rows") as context,
        ):
            context.add_mlops_integration(
                lambda *_: (_ for _ in ()).throw(RuntimeError("boom"))
            )
    finally:
        hret.configure(output_dir="./hret_results")


def test_runs_of_one_name_are_each_compared() -> None:
    """By the second and by the name alone, the later of two runs took the place of the earlier."""
    tracker = hret.MetricsTracker()
    for name, accuracy in (
        ("nightly", 0.25),
        ("nightly (2)", 0.5),
        ("nightly", 1.0),
        ("_stats", 0.75),
    ):
        tracker.start_run(name)
        tracker.log_metrics({"accuracy": accuracy})
        tracker.end_run()
    for _ in range(2):  # within one second
        tracker.start_run()
        tracker.log_metrics({"f1": 0.5})
        tracker.end_run()
    compared = tracker.compare_runs("accuracy")
    stats = {"best": 1.0, "worst": 0.25, "average": 0.625}
    runs = {"nightly": 0.25, "nightly (2)": 0.5, "nightly (3)": 1.0, "_stats (2)": 0.75}
    assert compared == {**runs, "_stats": stats}
    assert len(tracker.compare_runs("f1")) == 3


def test_models_that_are_compared_each_have_their_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run's `accuracy` was that of the last function."""
    history: list[dict[str, Any]] = []
    monkeypatch.setattr(hret._global_tracker, "metrics_history", history)
    monkeypatch.setattr(hret._global_config, "auto_save_results", False)
    functions = {
        "right": lambda prompt: str(int(prompt.split()[0]) + 1),
        "wrong": lambda prompt: "모름",
    }
    hret.compare_models(
        functions, dataset="rows", language_penalize=False, run_name="both"
    )
    assert history[0]["metrics"] == {"right.accuracy": 1.0, "wrong.accuracy": 0.0}
    compared = hret.compare_metric("accuracy")
    assert compared["both: right"] == 1.0 and compared["both: wrong"] == 0.0
    assert compared["_stats"]["average"] == 0.5


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"evaluator_params": {"ignore_cas": True}}, "'ignore_cas' of the evaluation method 'string_match'. Did you mean 'ignore_case'"),
        (
            {"evaluation_method": "llm_judge", "evaluator_params": {"judge_type": "k2"}}, "'judge_type' of the evaluation method 'llm_judge'",
        ),
        ({"judge_model": "openai_judge", "judge_params": {"model_name": "m", "modle": 1}}, "'modle' of the model 'openai_judge'"),
        ({"scaling_method": "best_of_n", "scaling_params": {"n_paths": 3}}, "'n_paths' of the scaling method 'best_of_n'. Known: n."),
        ({"dataset": "generic_file", "dataset_params": {"file_path": "a.csv", "seperator": ";"}}, "'seperator' of the dataset 'generic_file'"),
        ({"dataset": "rowz"}, "dataset 'rowz'. Did you mean 'rows'"),
    ],
)  # fmt: skip
def test_a_wrong_name_is_told_with_the_closest_and_all(
    more: dict[str, Any], said: str
) -> None:
    Path("a.csv").write_text("input,reference\na,b\n", encoding="utf-8")
    given = (
        {}
        if "dataset" not in more
        else {"dataset_params": more.pop("dataset_params", {})}
    )
    told = run(**given, **more).metrics["pipeline_error"]
    assert said in told and "Known: " in told and "__init__" not in told


def test_published_scoring_of_one_evaluator_reads_chains_of_thought_by_its_own_rules() -> (
    None
):
    model = load_model("vllm", model_name_or_path="m", cot=True)
    wrong_answer = "생각. 오답: (B)"
    for scoring, said in (("published", "(B)"), ("corrected", wrong_answer)):
        with using(scoring):
            parser = model.native().parser
        assert parser is not None and parser(wrong_answer)[1] == said


def test_what_rules_are_unsure_of_counts_and_is_in_the_result() -> None:
    rows = [
        {"input": "수도는?", "reference": "서울"},
        {"input": "어디?", "reference": "부산"},
    ]
    said = {"수도는?": "서울입니다.", "어디?": "부산 또는 서울"}

    @models.register_model("said")
    class Said(Model):
        def generate_batch(
            self, inputs: list[dict[str, Any]], *_: Any, **__: Any
        ) -> list[dict[str, Any]]:
            return [{**one, "prediction": said[one["input"]]} for one in inputs]

    result = run(model="said", model_params={}, dataset_params={"rows": rows})
    assert result.metrics == {"accuracy": 0.5, "n_unsure": 1}
    assert result.info["counts"] == {"accuracy": 2}
    assert "unsure" not in result.samples[0] and result.samples[1]["unsure"]
    result = run(model="said", model_params={}, dataset_params={"rows": rows[1:]})
    assert result.metrics == {"accuracy": 0.0, "n_unsure": 1}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"num_few_shot": -1},
            "num_few_shot must be a whole number from 0 on, not -1.",
        ),
        (
            {
                "dataset": "generic_file",
                "dataset_params": {"file_path": "a.csv"},
                "split": "dev",
            },
            "no splits",
        ),
        (
            {
                "dataset": "generic_file",
                "dataset_params": {"file_path": "a.csv"},
                "subset": "c",
            },
            "no subsets",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(more: dict[str, Any], said: str) -> None:
    Path("a.csv").write_text("input,reference\na,b\n", encoding="utf-8")
    assert said in run(**more).metrics["pipeline_error"]
    assert "pipeline_error" not in run(scoring="published", **more).metrics


@pytest.mark.parametrize("scoring", ["published", "corrected"])
def test_parameters_of_what_is_not_named_are_noted(
    scoring: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = run(
        scoring=scoring,
        judge_model=None,
        reward_model=None,
        judge_params={"model_name": "m"},
        reward_params={"how": "x"},
        scaling_method=None,
        scaling_params={"beam_size": 3, "num_iterations": 5},
        evaluator_params={},
    )
    notes = [
        "scaling_params have no effect without scaling_method.",
        "judge_params have no effect without judge_model.",
        "reward_params have no effect without reward_model.",
    ]
    assert result.info["notes"] == notes and "pipeline_error" not in result.metrics
    assert [
        record.message for record in caplog.records if "no effect" in record.message
    ] == notes
    assert "notes" not in run(scoring=scoring, judge_params={}, scaling_params={}).info


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--dataset", "rows", "--model", "mine", "--output_file", "."])
    assert (
        ended.value.code == 2
        and "directory" in capsys.readouterr().err
        and not Model.seen
    )


def test_answers_are_in_the_result_where_no_verdict_can_be_read() -> None:
    @models.register_model("mute_judge")
    class Mute(models.BaseJudge):
        def judge_batch(
            self, inputs: list[dict[str, Any]], **kwargs: Any
        ) -> list[dict[str, Any]]:
            return [{**one, "prediction": "no verdict"} for one in inputs]

    result = run(evaluation_method="llm_judge", judge_model="mute_judge")
    assert (
        "pipeline_error" in result.metrics
        and len(result.samples) == 6
        and result.run is not None
    )
    assert all(one["prediction"] and one["score_error"] for one in result.samples)


def test_published_examples_may_have_conversions_and_widths() -> None:
    template = "{input!r}|{reference:>4}\n"
    result = run(
        scoring="published",
        num_few_shot=1,
        few_shot_split="dev",
        few_shot_example_template=template,
    )
    assert result.info["num_few_shot_applied"] == 1 and Model.seen[0]["input"].endswith(
        "'보기 0?'|   0\n0 더하기 1은?"
    )
    wide = run(
        scoring="published",
        num_few_shot=1,
        few_shot_split="dev",
        few_shot_example_template="{input:>99999}",
    )
    assert wide.info["num_few_shot_applied"] == 0


def test_settings_of_the_facade_have_their_effect(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    met = threading.Barrier(2)
    sizes: list[int] = []
    logged: list[str] = []

    def alone(prompt: str) -> str:
        met.wait(60)
        return "1"

    def together(prompts: list[str]) -> list[str]:
        sizes.append(len(prompts))
        return ["1"] * len(prompts)

    def log(run: Any, where: str, before: str) -> str:
        logged.append(run.name)
        return "id"

    monkeypatch.setitem(tracker._TRACKERS._found, "mine", log)
    monkeypatch.setattr(
        hret, "_global_config", hret.HRETConfig(auto_save_results=False)
    )
    hret.configure(max_workers=2, batch_size=4, custom_loggers=["mine=here"])
    hret.quick_eval(alone, dataset="rows", language_penalize=False)
    assert len(logged) == 1 and "batch_size has no effect on 'alone'" in caplog.text
    hret.quick_eval(together, dataset="rows", language_penalize=False)
    assert max(sizes) == 4 and "max_workers has no effect on 'together'" in caplog.text
    hret.configure(custom_loggers=["nowhere"])
    with pytest.raises(UnknownName, match="nowhere"):
        hret.quick_eval(together, dataset="rows")


def test_further_defects_of_configurations(tmp_path: Path) -> None:
    Path("null.yaml").write_text(
        "dataset: {name: rows}\nmodel: {name: mine}\nscaling:\nfew_shot: null\nlanguage_penalize: false\n"
    )
    assert run_from_config("null.yaml").metrics["accuracy"] == 1.0
    Path("bad.yaml").write_text("dataset: [\n")
    with pytest.raises(Exception, match="not valid YAML"):
        run_from_config("bad.yaml")
    load_model("openai", model_name="m", api_base="http://127.0.0.1:9/v1")  # no key
    with pytest.raises(ValueError, match="model_name and api_base are required"):
        load_model("openai", model_name="m")
    with pytest.raises(
        ValueError,
        match=r"'temprature'.*'huggingface'.*'temperature'.*Known: ",
    ):
        load_model("huggingface", model_name_or_path="x", temprature=1)
    with pytest.raises(ValueError, match="already registered"):
        evaluation.register_evaluator("string_match")(object)


@pytest.mark.parametrize(
    "setting",
    [
        "model: {name: mine, params: {cot: true, cot_parser: os.system}}",
        "custom_cot_parser: os.system",
        "model: {name: multi, params: {generate_model: {name: openai, params: {model_name: m, cot_parser: os.system}}}}",
        "judge_model: {name: openai_judge, params: {model_name: m, api_base: 'http://other.example/v1'}}",
        "judge_model: {name: openai_judge, params: {model_name: m, api_base: 'https://api.openai.com:x@other.example/v1'}}",
        "model: {name: huggingface, params: {model_name_or_path: m, model_kwargs: {trust_remote_code: true}}}",
        "dataset: {name: kmmlu, params: {trust_remote_code: true}}",
        "dataset: {name: benchhub, params: {hf_load_kwargs: {data_files: /etc/passwd}}}",
        "dataset: {name: generic_file, params: {file_path: /etc/passwd}}",
        "dataset: {name: generic_file, params: {file_path: ~/private.csv}}",
        "dataset: {name: generic_file, params: {file_path: 'https://other.example/a.csv'}}",
    ],
)
def test_a_configuration_file_runs_no_code_and_sends_nothing_elsewhere(
    setting: str,
) -> None:
    Path("strange.yaml").write_text(setting)
    with pytest.raises(ConfigurationError, match="settings that need your permission"):
        run_from_config("strange.yaml")


def test_a_configuration_of_many_aliases_is_refused_at_once() -> None:
    lines = ["a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    Path("bomb.yaml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="more than 100,000 values"):
        run_from_config("bomb.yaml")


def test_examples_of_the_evaluated_split_leave_rows_of_every_subset() -> None:
    rows = [
        {"input": f"{n}?", "reference": str(n), "_subset_name": "ab"[n % 2]}
        for n in range(4)
    ]
    result = run(num_few_shot=2, dataset_params={"rows": rows})
    assert sorted(one["_subset_name"] for one in result.samples) == ["a", "b"]


def test_templates_pad_nothing() -> None:
    """A width of a gigabyte in a template of examples makes no text at all."""
    rows = [{"input": "a", "reference": "b"}]
    assert format_few_shot_prompt_prefix(rows, "", "{input} {reference}") == "a b"
    assert format_few_shot_prompt_prefix(rows, "", "{input:>3}") == ""
    judging = Judging(
        judge_prompts={"mine": "{input:>3}"}, judge_parsers={"mine": "(A|B)"}
    )
    assert (
        judging.prompt({"judge_type": "mine", "input": "a", "prediction": "b"}) is None
    )


def test_guards() -> None:
    def guarded(name: str, **limits: Any) -> None:
        kind = type("Guarded", (Rows,), {"info": lambda self: limits})
        datasets.register_dataset(name)(kind)

    guarded("only_math", evaluation_only="math_match")
    guarded("nothing", evaluation_only=True)
    guarded("scaled", scaling_only=["best_of_n"])
    assert (
        "only allows evaluation methods"
        in run(dataset="only_math").metrics["pipeline_error"]
    )
    assert (
        "only allows"
        in run(dataset="only_math", evaluation_method="math").metrics["pipeline_error"]
    )
    assert (
        "requires a specific evaluation method"
        in run(dataset="nothing").metrics["pipeline_error"]
    )
    assert (
        "requires a scaling method" in run(dataset="scaled").metrics["pipeline_error"]
    )
    with pytest.raises(ValueError, match="only allows scaling methods"):
        PipelineRunner(
            "scaled", model_backend_name="mine", scaling_method_name="self_consistency"
        )


def test_plug_ins_of_every_kind_work_together() -> None:
    @models.register_model("mine_judge")
    class Judge(models.BaseJudge):
        def judge_batch(
            self, inputs: list[dict[str, Any]], **kwargs: Any
        ) -> list[dict[str, Any]]:
            return [{**one, "prediction": "Score: 4"} for one in inputs]

    @models.register_model("mine_reward")
    class Reward(models.BaseRewardModel):
        def score_batch(
            self, inputs: list[dict[str, Any]], **kwargs: Any
        ) -> list[dict[str, Any]]:
            return [{**one, "reward": len(one["prediction"])} for one in inputs]

    @evaluation.register_evaluator("mine_eval")
    class Lengths(evaluation.BaseEvaluator):
        def evaluate_predictions(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
            return {
                "length": sum(len(one["prediction"]) for one in samples) / len(samples)
            }

    @scaling_methods.register_scaling_method("twice")
    class Twice(scaling_methods.BaseScalingMethod):
        def apply(self, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
            first, second = self.model.generate_batch(
                [{"input": one["input"]} for one in data for _ in range(2)]
            )
            return [
                {**data[0], "prediction": first["prediction"] + second["prediction"]}
            ]

    result = run(
        evaluation_method="mine_eval",
        scaling_method="twice",
        reward_model="mine_reward",
        judge_model="mine_judge",
    )
    assert result.metrics == {"length": 10.0}
    assert len(Model.seen) == 12  # every draw is asked for, and each once
    best = run(
        scaling_method="best_of_n", scaling_params={"n": 3}, reward_model="mine_reward"
    )
    assert best.metrics["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("method", "sees"),
    [("self_consistency", "input"), ("beam_search", "input"), ("best_of_n", "row")],
)
def test_a_scaling_method_of_hret_shows_the_model_what_it_showed(
    method: str, sees: str
) -> None:
    class Marks(Model):
        def generate_batch(
            self, inputs: list[dict[str, Any]], *args: Any, **kwargs: Any
        ) -> list[dict[str, Any]]:
            Model.seen += [dict(one) for one in inputs]
            for one in inputs:
                one.update(
                    prediction="정답: 1",
                    logits={
                        "sum_log_prob": -1.0,
                        "token_log_probs": [-1.0],
                        "tokens": ["1"],
                    },
                )
            return inputs

    models.register_model("marks")(Marks)
    size = {
        "self_consistency": "n_paths",
        "beam_search": "beam_size",
        "best_of_n": "n",
    }[method]
    params = {size: 2, **({"max_tokens": 2} if method == "beam_search" else {})}
    result = run(
        model="marks", scoring="published", scaling_method=method, scaling_params=params
    )
    assert (
        all(("reference" in one) == (sees == "row") for one in Model.seen)
        and Model.seen
    )
    assert (
        all(("logits" in one) == (sees == "row") for one in result.samples)
        and len(result.samples) == 6
    )


def test_saved_results_become_runs(tmp_path: Path) -> None:
    from evalwright.compat.hret.importing import import_hret
    from evalwright.core.errors import RunError

    run().save_json("one.json")
    (imported,) = import_hret(Path("one.json"), Path("imported"))
    assert (
        imported.tasks[0].metrics[0].estimate.value == 1.0
        and imported.tasks[0].n_samples == 6
    )
    assert next(iter(imported.samples())).answer is not None
    Path("bad.json").write_text(
        '{"metrics": {}, "samples": [], "info": {"error": "was empty"}}',
        encoding="utf-8",
    )
    deep = (
        '{"metrics": {}, "info": {}, "samples": [{"input": "a", "metadata": '
        + "[" * 990
        + "]" * 990
        + "}]}"
    )
    Path("deep.json").write_text(deep, encoding="utf-8")
    for name, why in (
        ("bad.json", "was empty"),
        ("nope.json", "does not exist"),
        ("deep.json", "nested too deeply"),
    ):
        with pytest.raises(RunError, match=why):
            import_hret(Path(name), Path("imported"))


def test_saved_samples_without_a_verdict_are_failures_and_likelihoods_are_verdicts() -> (
    None
):
    from evalwright.compat.hret.importing import import_hret

    def saved(
        name: str, method: str, metrics: dict[str, Any], *samples: dict[str, Any]
    ) -> Any:
        info = {
            "dataset_name": "d",
            "evaluation_method_name": method,
            "model_backend_name": "openai",
        }
        text = json.dumps({"metrics": metrics, "samples": samples, "info": info})
        Path(f"{name}.json").write_text(text, encoding="utf-8")
        (made,) = import_hret(Path(f"{name}.json"), Path("imported"))
        assert made.folder.name == name  # HRET's results do not say which model it was
        return made.tasks[0].metrics[0]

    said = {"input": "a", "prediction": "Score: 4"}
    grade = saved(
        "grades",
        "llm_judge",
        {"average_judge_score": 4.0},
        {**said, "judge_score": 4.0},
        said,
    )
    assert (grade.label, grade.estimate.value) == ("average_judge_score", 4.0)
    assert (grade.estimate.n, grade.estimate.n_missing, grade.estimate.bounds) == (
        1,
        1,
        (1.0, 5.0),
    )
    options = {"input": "a", "reference": "y", "options": ["x", "y"], "prediction": "z"}
    right, wrong = (
        {**options, "logits": {"option_log_probs": values}}
        for values in ([-2, -1], [-1, -2])
    )
    assert (
        saved(
            "options", "log_likelihood", {"accuracy": 0.5}, right, wrong
        ).estimate.value
        == 0.5
    )
    pair = {**said, "judge_correct": True, "judge_winner": "A"}
    assert (
        saved("pairs", "llm_judge", {"judge_accuracy": 1.0}, pair).label
        == "judge_accuracy"
    )


@pytest.mark.parametrize("scoring", ["published", "corrected"])
def test_a_class_derived_from_an_evaluator_of_hret_is_called(scoring: str) -> None:
    @evaluation.register_evaluator("lengths")
    class Lengths(evaluation.StringMatchEvaluator):
        name = "lengths"

        def parse_prediction(self, raw_output: Any) -> Any:
            return str(raw_output).removeprefix("정답: ")

        def evaluate_predictions(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
            assert not any(str(one["prediction"]).startswith("정답") for one in samples)
            return {**super().evaluate_predictions(samples), "n": len(samples)}

    result = run(
        evaluation_method="lengths",
        evaluator_params={"ignore_case": False},
        scoring=scoring,
    )
    assert result.metrics == {"accuracy": 1.0, "n": 6}


class Logits(Model):
    """Says what is right, with the logits of the row's `says`."""

    def generate_batch(
        self, inputs: list[dict[str, Any]], return_logits: bool = False, **kwargs: Any
    ) -> list[dict[str, Any]]:
        return [
            {**one, "prediction": one["reference"], "logits": one["says"]}
            for one in inputs
        ]


@pytest.mark.parametrize("scoring", ["published", "corrected"])
def test_a_row_with_logits_that_are_none_fails_alone(scoring: str) -> None:
    models.register_model("logits")(Logits)
    row = {"input": "?", "reference": "a", "options": ["a", "b"]}
    rows = [{**row, "says": None}, {**row, "says": {"option_log_probs": [-1.0, -2.0]}}]
    how: dict[str, Any] = {
        "evaluation_method": "log_likelihood",
        "dataset_params": {"rows": rows},
    }
    result = run(model="logits", model_params={}, scoring=scoring, **how)
    first, second = result.samples
    assert first["score_error"] and "score_error" not in second
    assert result.info["n_missing"] == 1
    assert result.metrics["accuracy"] == (0.5 if scoring == "published" else 1.0)
    how["dataset_params"] = {"rows": rows[:1]}
    assert (
        "pipeline_error"
        in run(model="logits", model_params={}, scoring=scoring, **how).metrics
    )


def test_published_best_of_n_goes_by_the_sum_that_a_class_gives() -> None:
    @models.register_model("sums")
    class Sums(Model):
        draws: Iterator[tuple[str, Any]] = iter(())

        def generate_batch(
            self, inputs: list[dict[str, Any]], *_: Any, **__: Any
        ) -> list[dict[str, Any]]:
            drawn = [next(Sums.draws) for _ in inputs]
            return [
                {**one, "prediction": text, "logits": logits}
                for one, (text, logits) in zip(inputs, drawn, strict=True)
            ]

    how: dict[str, Any] = {
        "scaling_method": "best_of_n",
        "scaling_params": {"n": 3},
        "scoring": "published",
        "dataset_params": {"rows": [{"input": "?", "reference": "b"}]},
    }
    Sums.draws = iter(
        [
            ("a", {"sum_log_prob": -2.0}),
            ("b", {"sum_log_prob": -1.0}),
            ("c", {"sum_log_prob": -3}),
        ]
    )
    assert run(model="sums", model_params={}, **how).metrics == {"accuracy": 1.0}
    Sums.draws = iter([("a", None), ("b", {"sum_log_prob": -1.0}), ("c", None)])
    assert (
        "logits that are None"
        in run(model="sums", model_params={}, **how).metrics["pipeline_error"]
    )


def test_a_decorated_function_is_evaluated_in_a_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        hret, "_global_config", hret.HRETConfig(auto_save_results=False)
    )

    @hret.evaluate(dataset="rows", model="huggingface", language_penalize=False)
    def checkpoint(input_text: str) -> str:
        return str(int(input_text.split()[0]) + 1)

    with hret.evaluation_context(
        run_name="epoch_3", dataset="rows", language_penalize=False
    ) as context:
        assert (
            context.evaluate(checkpoint).metrics
            == checkpoint().metrics
            == {"accuracy": 1.0}
        )


def test_classes_are_where_the_documents_of_hret_import_them_from() -> None:
    from evalwright.compat.hret.evaluation.log_prob import LogProbEvaluator
    from evalwright.compat.hret.evaluation.math_eval import MathMatchEvaluator
    from evalwright.compat.hret.evaluation.partial_match import PartialMatchEvaluator
    from evalwright.compat.hret.evaluation.string_match import StringMatchEvaluator
    from evalwright.compat.hret.scaling_methods.beam_search import BeamSearch
    from evalwright.compat.hret.scaling_methods.best_of_n import BestOfN
    from evalwright.compat.hret.scaling_methods.self_consistency import (
        SelfConsistencyScalingMethod,
    )

    evaluators = (
        LogProbEvaluator,
        MathMatchEvaluator,
        PartialMatchEvaluator,
        StringMatchEvaluator,
    )
    assert {cls.name for cls in evaluators} < evaluation.EVALUATION_REGISTRY.keys()
    methods = {BeamSearch, BestOfN, SelfConsistencyScalingMethod}
    assert methods <= set(scaling_methods.SCALING_REGISTRY.values())


def test_a_litellm_model_takes_what_its_library_takes() -> None:
    given: dict[str, Any] = {
        "provider": "openai",
        "model_name": "m",
        "api_key": "k",
        "temperature": 0.0,
    }
    model = load_model(
        "litellm", **given, max_tokens=512, stop="끝", seed=3, frequency_penalty=0.5
    )
    for scoring in ("published", "corrected"):
        with using(scoring):
            sampling = model.native().sampling
        assert (sampling.max_tokens, sampling.stop, sampling.seed) == (512, ("끝",), 3)
    assert load_model("litellm", **given).native().sampling.max_tokens == 128
