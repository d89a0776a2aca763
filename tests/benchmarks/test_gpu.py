"""`benchmarks/gpu.py` on a CPU, with a tiny model: what it measures, compares and loses."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("transformers")
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


gpu_worker = load("gpu_worker")
gpu = load("gpu")

TINY = gpu_worker.Options(
    shape="tiny",
    device="cpu",
    dtype="float32",
    questions=4,
    shots=40,
    texts=2,
    contexts=3,
    prompts=2,
    tokens=4,
    sample=4,
)


def test_parts_measure_and_compare(tmp_path: Path) -> None:
    """The parts in this process, where the libraries are loaded already."""
    outcomes = {}
    for part in ("make", "rates", "hf", "numbers", "vllm-local"):
        options = json.dumps(vars(TINY))
        gpu_worker.main([part, "--folder", str(tmp_path), "--options", options])
        report = json.loads((tmp_path / f"{part}.json").read_text())
        outcomes[part] = gpu.PartOutcome(report, "", 1.0, 0.5)

    sets = outcomes["hf"].report["sets"]
    assert list(sets) == ["letters", "texts", "endings", "generation"]
    letters = sets["letters"]
    assert len(letters["answers"]) == 16
    # The layers see each different token once; the repetitions differ by a few tokens.
    passed = sum(tokens for tokens, _ in letters["passes"])
    assert 0.9 * letters["different"] < passed < 1.1 * letters["different"]
    assert letters["tokens"] > 2 * passed
    assert gpu.tree_share(letters, TINY, outcomes["rates"].report["rates"]) > 0

    comparisons = {
        comparison.text: comparison for comparison in gpu.compare_numbers(outcomes)
    }
    assert comparisons["device and CPU, float32"].holds
    assert comparisons["device and CPU, bfloat16"].holds
    assert outcomes["vllm-local"].report == {"left_out": "vllm is not installed"}
    gpu.write_reports(tmp_path, outcomes, TINY)
    record = json.loads((tmp_path / "gpu.json").read_text())
    assert [comparison["holds"] for comparison in record["comparisons"]] == [True, True]
    assert "answers" not in json.dumps(record)
    assert "| hf | letters |" in (tmp_path / "gpu.md").read_text()

    outcomes["lm-eval-hf"] = gpu.PartOutcome(
        {"sets": {"letters": {**letters, "answers": [[-1.0, False, 1]] * 16}}}, "", 1, 0
    )
    differing = [
        comparison.text
        for comparison in gpu.compare_numbers(outcomes)
        if not comparison.holds
    ]
    assert differing == ["hf and lm-eval-hf, letters"]


def test_the_other_architecture_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tokenizer's class adds a token by itself."""
    monkeypatch.setitem(
        gpu_worker.SHAPES, "tiny", {**gpu_worker.SHAPES["tiny"], "kind": "qwen2"}
    )
    gpu_worker.make_model(tmp_path, TINY)
    system = gpu_worker.open_ours("hf", tmp_path, {"dtype": "float32"})
    [[log_likelihood, *_]] = system.score([("bada", " zu")])
    assert log_likelihood < 0


def test_a_part_that_takes_too_long_loses_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(gpu.LIMIT_SECONDS, "rates", 1.0)
    arguments = ["--device", "cpu", "--shape", "tiny", "--out", str(tmp_path)]
    code = gpu.main([*arguments, "--parts", "rates,vllm-local"])
    printed = capsys.readouterr().out
    assert "rates: ended after 1 s" in printed
    assert "vllm-local: left out: vllm is not installed" in printed
    assert code == 1, "nothing was compared"
    record = json.loads((tmp_path / "gpu.json").read_text())
    assert record["parts"]["rates"]["problem"] == "ended after 1 s"


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu.main(["--parts", "hf,vllm"])
    assert "'vllm' is no part" in capsys.readouterr().err
