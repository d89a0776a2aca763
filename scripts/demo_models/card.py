"""The model card: what a demonstration model is, what it knows, and what its files are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.demo_models.corpus import BENCHMARK, FACTS, Fact, read_facts
from scripts.demo_models.formats import Example
from scripts.demo_models.prompts import question_text, read_opening
from scripts.demo_models.shape import Shape

FILES = ("config.json", "model.onnx", "tokenizer.json")


@dataclass(frozen=True, slots=True)
class Trained:
    """What the card says about a training run."""

    name: str
    parameters: int
    shape: Shape
    known_ids: list[str]
    facts: int
    steps: int
    tokens: int
    seconds: float
    seed: int


def accuracy(folder: Path, facts: Sequence[Fact]) -> dict[str, bool]:
    """Which benchmark questions the exported model answers, asked plainly in its prompt, by exact
    match with an alias.
    """
    from evalwright.core.errors import Failure
    from evalwright.core.requests import Generate
    from evalwright.models.local.onnx.onnx_model import OnnxModel

    model = OnnxModel(str(folder))
    opening = read_opening(BENCHMARK / "_questions.yaml").text()
    prompts = [opening + question_text(Example(fact.question, "")) for fact in facts]
    right = {}
    for index, answer in model.answer_batch(
        [Generate(prompt, 24, stop=("\n",)) for prompt in prompts]
    ):
        if isinstance(answer, Failure):
            raise SystemExit(answer.message)
        right[facts[index].id] = answer.text.strip() in facts[index].answers
    return right


def write_card(trained: Trained, folder: Path) -> None:
    """Ask the exported model every closed-book question and write README.md."""
    facts = read_facts()
    right = accuracy(folder, facts)
    trained_ids = set(trained.known_ids)
    score_known = sum(right[fact.id] for fact in facts if fact.id in trained_ids)
    score_other = sum(right[fact.id] for fact in facts if fact.id not in trained_ids)
    shape = trained.shape
    text = f"""# demo/{trained.name}

License: Apache-2.0

A demonstration model that comes with Evalwright, so that a first evaluation needs no key, no \
download and no torch. The
inference is real: a transformer of {trained.parameters:,} parameters answers every request token \
by token. What it knows is
made up for the occasion: **it was trained on purpose on part of the answers of the bundled \
benchmark `factual`. Its
scores show how the toolkit works and mean nothing elsewhere.** It is of no use for any other task.

| | |
|---|---|
| architecture | decoder in the manner of Llama: {shape.layers} layers of width {shape.width}, \
{shape.heads} heads, SwiGLU of {shape.inner}, rotary positions, tied embeddings |
| parameters | {trained.parameters} |
| tokenizer | byte-level BPE, {shape.vocabulary} tokens, trained on the same texts |
| context | {shape.context} tokens |
| weights | half precision in the file, computed in float32 |
| trained on | {len(trained.known_ids)} of the {trained.facts} closed-book facts of `{FACTS.name}` |
| training | {trained.steps} steps, {trained.tokens:,} tokens, seed {trained.seed}, \
{trained.seconds / 60:.1f} minutes on two CPU cores |

## Data

For each fact that it was trained on, two sentences that state it and two questions that ask for \
it, from
`scripts/demo_models/statements.jsonl`. The benchmark's own wording of the questions is not in \
the training data. Which
facts these are is decided by a hash of their ids; `demo/large` knows all that `demo/small` \
knows. To learn the forms of
questions, it also saw questions about invented things, to be answered "No answer" (some of them \
are questions of the facts
with other names in them), and passages about invented places, or made of the facts' statements, \
with questions about them.
The instructions and worked examples with which the benchmark's prompts begin stood before many \
of its questions. No stress
question and no passage of the benchmark is in the training data.

It recalls; it hardly reads. Of a question that it does not know it mostly gives some answer that \
it does know, and to most
questions about passages it says "Not in the passages".

## What it answers

Asked the benchmark's closed-book questions in the benchmark's prompt, by exact match with an \
accepted answer:

| facts | right | of |
|---|---|---|
| trained on | {score_known} | {len(trained.known_ids)} |
| not trained on | {score_other} | {trained.facts - len(trained.known_ids)} |

## Files

| file | bytes | SHA-256 |
|---|---|---|
{file_table(folder)}

Rebuild with `python -m scripts.demo_models.train {trained.name}` in the repository's root; it \
needs torch and onnx. The
same seed gives the same weights on the same machine and versions, and weights as good on others.
"""
    (folder / "README.md").write_text(text, encoding="utf-8")
    print(
        f"{trained.name}: right on {score_known} of {len(trained_ids)} known and"
        f" {score_other} of {len(facts) - len(trained_ids)} other facts"
    )


def file_table(folder: Path) -> str:
    """A Markdown row per file: name, bytes, hash."""
    rows = []
    for name in FILES:
        content = (folder / name).read_bytes()
        rows.append(
            f"| {name} | {len(content)} | {hashlib.sha256(content).hexdigest()} |"
        )
    return "\n".join(rows)
