"""Beam search from a task file to the record: the beams are those of transformers, and a model without beams refuses them before it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import records
from support.tiny_models import make_tiny_model
from support.typed import typed

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

QUESTIONS = ["The river rises", "Iron melts at 1538", "1 2 3", "Question: What is the capital of France?"]


def test_beams_of_a_run_are_those_of_transformers(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = make_tiny_model(tmp_path / "tiny", "llama")
    rows = "".join(f"    - {{id: q{n}, input: '{text}', target: x}}\n" for n, text in enumerate(QUESTIONS))
    (tmp_path / "beams.yaml").write_text(
        f"task: beams\ndataset:\n  rows:\n{rows}answer: {{max_tokens: 12}}\nprompt: {{format: text}}\nstrategy: {{name: beam-search, beams: 3}}\n",
        encoding="utf-8",
    )
    model = ["--model", f"hf/{folder}", "-M", "device=cpu"]
    long = ["-Tstrategy.length_penalty=3", "-Tstrategy.early_stopping=true", "-Tstrategy.beams=5"]
    for name, more in (("beams", []), ("greedy", ["-Tstrategy=single-draw"]), ("long", long)):
        done = typed("run", "beams.yaml", *model, *more, "--name", name, "--quiet", folder=tmp_path)
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
            ends = [place for place, token in enumerate(new) if token == tokenizer.eos_token_id]
            wanted = tokenizer.decode(new[: ends[0]] if ends else new, skip_special_tokens=True)
            assert row["responses"][0]["text"] == wanted
            assert len(row["responses"]) == 1
            texts[name].append(wanted)
    assert texts["beams"] != texts["greedy"], "beams that give the greedy answers would show nothing"


def test_a_model_without_beams_refuses_them(tmp_path: Path) -> None:
    (tmp_path / "beams.yaml").write_text(
        "task: beams\ndataset: {rows: [{id: a, input: q, target: x}]}\nstrategy: beam-search\n",
        encoding="utf-8",
    )
    done = typed("run", "beams.yaml", "--model", "demo/small", folder=tmp_path)
    assert done.code == 2
    assert "does not take num_beams" in " ".join(done.text.split())
