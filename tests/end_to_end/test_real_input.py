"""Real questions, a real transformer, and the same transformer behind a real server: the same
numbers.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from support.command import record, records
from support.openai_server import serving
from support.typed import typed

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "global_mmlu_lite"

TASK = """\
task: mmlu-{mode}
dataset: {data}/en_test.jsonl
sample:
  id: "{{{{ metadata.sample_id }}}}"
  input: "{{{{ prompts[0].question }}}}"
  choices: ["{{{{ prompts[0].option_a }}}}", "{{{{ prompts[0].option_b }}}}", "{{{{ prompts[0].option_c }}}}", "{{{{ prompts[0].option_d }}}}"]
  target: "{{{{ label }}}}"
  metadata: {{domain: "{{{{ metadata.subject_category }}}}"}}
prompt:
  user: "{user}"
  assistant: "{shot}"
  few_shot: {{count: 5, dataset: {data}/en_dev.jsonl, select: first}}
answer: {{mode: {mode}}}
metrics: [accuracy, balanced-accuracy, macro-f1]
"""
QUESTIONS = 6
USER = {
    "likelihood": "Question: {{ input }}\\nAnswer:",
    "letter": "{{ input }}\\nA. {{ choices[0] }}\\nB. {{ choices[1] }}\\nC. {{ choices[2] }}\\nD. {{ choices[3] }}\\nAnswer:",
}
SHOT = {"likelihood": "{{ target }}", "letter": "{{ letter }}"}


@pytest.mark.torch
@pytest.mark.slow
def test_transformers_and_http_agree_on_mmlu(tmp_path: Path) -> None:
    if not DATA.is_dir():
        pytest.skip("the Global-MMLU-Lite files are not beside the repository")
    from support.tiny_models import make_tiny_model

    folder = tmp_path / "model"
    make_tiny_model(folder, kind="llama", seed=3, context=4096)
    for mode in ("likelihood", "letter"):
        # All 400 questions take minutes behind the server, which answers one at a time; CI takes a
        # part.
        text = TASK.format(mode=mode, data=DATA, user=USER[mode], shot=SHOT[mode])
        (tmp_path / f"{mode}.yaml").write_text(text, encoding="utf-8")
    run = (
        "run",
        "likelihood.yaml",
        "letter.yaml",
        "--trust",
        ".",
        "--limit",
        str(QUESTIONS),
        "--name",
    )
    local = typed(*run, "local", "--model", f"hf/{folder}", folder=tmp_path)
    assert local.code == 0, local.text
    with serving(folder, log=False) as server:
        arguments = [
            "-M",
            f"base_url={server.url}",
            "-M",
            "interface=completions",
            "-M",
            "timeout=120",
        ]
        remote = typed(
            *run, "remote", "--model", "openai/tiny", *arguments, folder=tmp_path
        )
        assert remote.code == 0, remote.text

    ours = records(tmp_path / "runs" / "local")
    theirs = records(tmp_path / "runs" / "remote")
    assert len(ours) == len(theirs) == 2 * QUESTIONS
    largest = 0.0
    for left, right in zip(ours, theirs, strict=True):
        assert (left["id"], left["prompt"], left["choice"]) == (
            right["id"],
            right["prompt"],
            right["choice"],
        )
        for a, b in zip(left["log_likelihoods"], right["log_likelihoods"], strict=True):
            assert math.isfinite(a)
            largest = max(largest, abs(a - b))
    assert largest < 1e-4
    assert metrics(tmp_path / "runs" / "local") == metrics(tmp_path / "runs" / "remote")
    for row in ours:
        # Five shots and the question itself, and the question is not its own shot.
        assert row["prompt"].count("Answer:") == 6
        assert row["prompt"].count(row["input"]) == 1


def metrics(run: Path) -> list[Any]:
    return [
        (task["name"], task["metrics"], task["slices"]) for task in record(run)["tasks"]
    ]
