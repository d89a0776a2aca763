"""HRET's recorded runs against ours in published mode: prompts by role, metrics, and every field
of every sample.

Two exceptions are equal only where their types are, or ours derives from HRET's. Runs with weights
that are not here are bound to what the weights answered (`recorded_weights.py`); test_models.py
compares with HRET's formula on weights of our own.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest

from compat.hret import golden

pytestmark = pytest.mark.skipif(
    not golden.FILE.exists(), reason="the recorded runs of HRET are not here"
)

PARTS = 8
"""The records in so many tests, which run side by side."""

FUNCTION = (
    "the function that was given is evaluated; HRET evaluates the configured back end"
)
MISSING_NAME = f"{FUNCTION}, and fails without weights"
EXAMPLE_FILE = "the example file of HRET is not here, and needs a model of the hub"
NO_TEXT = "a reply without text is wrong in its row; HRET raises and loses all rows"
DIFFERENT = {
    "ds/k2_eval/judge_no_judge_model": "a judge that is missing is an error of the call; HRET's is inside of the metrics",
    "ds/generic_file/xlsx": "no library is here that writes the workbook",
    "eval/log_likelihood/none_pred": NO_TEXT,
    "eval/alias_log_prob": "the documented name is taken",
    "openai/flaky_loglik": NO_TEXT,
    "config/null_section": "a section without a value is like one that is missing; HRET raises AttributeError",
    "config/examples_evaluator_config": EXAMPLE_FILE,
    "config/examples_aime2025_config": EXAMPLE_FILE,
    "config/examples_hret_config": EXAMPLE_FILE,
    "cli/bad_json": "wrong usage, exit code 2; HRET goes on without the parameters",
    "cli/math_json": "the result is written; HRET loses it, as JSON does not know sympy's objects",
    "unit/registries": "the registries in another order, with what this test registers",
    "unit/string_match/empty_list": "no samples have the accuracy 0; HRET raises IndexError",
    "plugin/row_shape_2": "chat messages are sent as they are; HRET raises TypeError",
    "plugin/row_shape_3": "a row without an input has an empty prompt; HRET raises KeyError",
    "hret/evaluate_documented": MISSING_NAME,
    "hret/benchmark_documented": MISSING_NAME,
    "hret/quick_eval_documented": MISSING_NAME,
    "hret/context_documented": "`dataset=` is taken, as HRET's documents have it",
    "hret/evaluate_with_method": FUNCTION,
    "hret/evaluate_scripted_no_method": FUNCTION,
    "hret/benchmark_scripted": FUNCTION,
    "hret/quick_eval_scripted": FUNCTION,
    "hret/history": "the history has the runs; HRET's is always empty",
    "hret/tracker_mixed": "values that are no numbers are shown and not compared; HRET raises TypeError",
    "hret/integration_error_hidden": "what an integration raises is raised; HRET hides it",
    "litellm/judge_k2": "each verdict is its own sample's; HRET has them in the order of their arrival",
    "litellm/azure": "a sample keeps its options; HRET loses them",
    "plugin/result_api": "citations of all benchmarks, by the keys of their entries",
    "unit/get_raw_samples/benchhub_1": "the raw rows are given; HRET raises NotImplementedError",
    "hf/gen_default_temperature0": "temperature 0 is greedy; HRET raises ValueError",
    "hf/reward_best_of_n": "a tokenizer without a padding token is used; HRET raises ValueError",
    **dict.fromkeys(
        (f"unit/math_match/matrix{n}" for n in (0, 1, 3)),
        "another version of math-verify writes what it reads in `42\\%` in another way",
    ),
}  # fmt: skip
"""Where ours is meant to do something else than HRET did, and what."""

NOT_COMPARED = {"hf/gen_greedy_bs4_padding_defect": ".tokens:"}
"""Fields alone: HRET's padding defect wrote tokens of the prompt, which have no
log-probabilities.
"""


@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_runs_are_reproduced(part: int, tmp_path: Path) -> None:
    wrong: dict[str, list[str]] = {}
    with golden.plugins(), golden.server() as port:
        for record in golden.records():
            name = record["name"]
            if (
                name in DIFFERENT
                or blake2b(name.encode(), digest_size=2).digest()[0] % PARTS != part
            ):
                continue
            differences = golden.differences(
                record, *golden.run(record, port, Path.cwd())
            )
            field = NOT_COMPARED.get(name)
            if remaining := [
                line for line in differences if not field or field not in line
            ]:
                wrong[name] = remaining[:3]
    assert wrong == {}
