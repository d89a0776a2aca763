"""Command lines as people have written them, from public pages and repositories: each runs, or
is refused for the right reason.

Only what cannot be here is another one: the model's name is a tiny model's folder, an address is a
server on loopback, and the tasks have rows of our own. The program (`lm_eval`, `accelerate launch
... -m lm_eval`, `python main.py`) becomes `evalwright lm-eval`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.openai_server import OpenAIServer, serving
from support.typed import typed

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:MatMul8bitLt")]
pytest.importorskip("datasets")

LINES = [
    line.split("\t")
    for line in Path(__file__)
    .with_name("command_lines.tsv")
    .read_text(encoding="utf-8")
    .splitlines()
]
"""Where it was found, the line, and what its refusal says; "" where it runs."""
CHOICES = """
task: NAME
dataset_path: json
dataset_kwargs: {data_files: {train: rows.jsonl, test: rows.jsonl}}
output_type: multiple_choice
training_split: train
test_split: test
doc_to_text: "Q: {{question}}\\nA:"
doc_to_choice: "{{choices}}"
doc_to_target: answer
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
TEXTS = """
task: NAME
dataset_path: json
dataset_kwargs: {data_files: {train: rows.jsonl, test: rows.jsonl}}
output_type: generate_until
training_split: train
test_split: test
doc_to_text: "Q: {{question}}\\nA:"
doc_to_target: "{{choices[answer]}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 4}
metric_list: [{metric: exact_match}]
"""
GENERATED = re.compile(
    r"gsm8k|lambada$|cmmlu|squad|minerva|xlsum|scrolls|MJEE|evalita|humaneval|jcola|generative|bbh"
)
ROLLING = "output_type: loglikelihood_rolling\ndoc_to_text: ''\ndoc_to_target: '{{question}}'\nmetric_list: [{metric: word_perplexity}]\n"
ROWS = "".join(
    f'{{"question": "Is {n} even?", "choices": ["no", "yes"], "answer": {1 - n % 2}}}\n'
    for n in range(6)
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from support.tiny_models import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("tiny"), chat=True)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with serving() as opened:
        yield opened


def ours(line: str, tiny: Path, server: OpenAIServer) -> list[str]:
    """What a person writes here, with what cannot be here replaced."""
    words = shlex.split(line)
    program = max(
        at
        for at, word in enumerate(words[:9])
        if Path(word).name in ("lm_eval", "lm-eval", "main.py")
    )
    text = "\0".join(words[program + 1 :])
    text = re.sub(r"(?<=pretrained=)[^,\0]*(,revision=\w+)?", str(tiny), text)
    return re.sub(r"https?://[^/,\"\0]+(/[\w/]+)?/v\d/", f"{server.url}/", text).split(
        "\0"
    )


@pytest.mark.parametrize(
    ("source", "line", "refused"), LINES, ids=[str(n) for n in range(len(LINES))]
)
def test_a_command_line(
    source: str,
    line: str,
    refused: str,
    tiny: Path,
    server: OpenAIServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    words = ours(line, tiny, server)
    names = re.split(
        r"[,\0]",
        re.split(r"\0--?\w", re.split(r"--tasks[\0=]", "\0".join(words))[1])[0],
    )
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "rows.jsonl").write_text(ROWS)
    for name in names:
        body = (TEXTS if GENERATED.search(name) else CHOICES).replace("NAME", name)
        if name == "wikitext":
            body = (
                re.sub(r"(?m)^(output_type|doc_to_\w+|metric_list).*\n", "", body)
                + ROLLING
            )
        if name.startswith("humaneval"):
            body += "unsafe_code: true\n"
        (tmp_path / "tasks" / f"{name}.yaml").write_text(body)
    done = typed("lm-eval", *words, "--include_path", "tasks")
    assert "Traceback" not in done.err
    assert done.code == (2 if refused else 0), f"{source}: {done.err}"
    if refused:
        assert re.search(refused, done.err), f"{source}: {done.err}"
    else:
        assert all(f"|{name}" in done.out for name in names), done.out
        assert ("--output_path" not in words) or list(tmp_path.rglob("*_20*.json"))
