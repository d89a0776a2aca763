"""HRET's recorded runs against ours in published mode: prompts by role, metrics, and every field of every sample."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest

from compat.hret import golden

pytestmark = pytest.mark.skipif(not golden.FILE.exists(), reason="the recorded runs of HRET are not here")

PARTS = 8
"""The records in so many tests, which run side by side."""

FUNCTION = "the function that was given is evaluated; HRET evaluates the configured back end"
MISSING_NAME = f"{FUNCTION}, and fails without weights"
WEIGHTS = "the weights of the recorded run are not here; tests/compat/hret/test_models.py compares with HRET's own arithmetic"
NO_TEXT = "a reply without text is wrong in its row; HRET raises and loses all rows"
DIFFERENT = {
    "ds/k2_eval/judge_no_judge_model": "a judge that is missing is an error of the call; HRET's is inside of the metrics",
    "ds/generic_file/xlsx": "no library is here that writes the workbook",
    "eval/log_likelihood/none_pred": NO_TEXT,
    "eval/alias_log_prob": "the documented name is taken",
    "openai/flaky_loglik": NO_TEXT,
    "openai/full_path_404": "the documented address with the interface's path is taken",
    "config/null_section": "a section without a value is like one that is missing; HRET raises AttributeError",
    "config/examples_evaluator_config": WEIGHTS,
    "config/examples_aime2025_config": WEIGHTS,
    "config/examples_hret_config": WEIGHTS,
    "cli/bad_json": "wrong usage, exit code 2; HRET goes on without the parameters",
    "cli/math_json": "the result is written; HRET loses it, as JSON does not know sympy's objects",
    "cli/error_exit": "exit code 1; HRET's is 0",
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
    "hf/reward_best_of_n": "a tokenizer without a padding token is used; HRET raises ValueError",
    **dict.fromkeys(
        (f"unit/math_match/matrix{n}" for n in (0, 1, 3)),
        "another version of math-verify writes what it reads in `42\\%` in another way",
    ),
    **dict.fromkeys(
        (
            "hf/string_match_is_likelihood", "hf/loglik_kormed", "hf/loglik_kmmlu_fewshot", "hf/loglik_click", "hf/beam_search",
            "hf/gen_greedy_bs4_padding_defect", "hf/benchhub_empty_options", "hf/reward_best_of_n_pad_bs3", "hf/score_option",
        ),
        WEIGHTS,
    ),
}  # fmt: skip
"""Where ours is meant to do something else than HRET did, and what."""


@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_runs_are_reproduced(part: int, tmp_path: Path) -> None:
    wrong: dict[str, list[str]] = {}
    with golden.plugins(), golden.server() as port:
        for record in golden.records():
            name = record["name"]
            if name in DIFFERENT or blake2b(name.encode(), digest_size=2).digest()[0] % PARTS != part:
                continue
            found = golden.differences(record, *golden.run(record, port, Path.cwd()))
            if found:
                wrong[name] = found[:3]
    assert wrong == {}
