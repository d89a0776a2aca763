"""A native command that is given lm_eval's flags says the line that was meant, and that line
runs.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from evalwright.compat.lm_eval.harness.flags import FLAGS
from support.typed import typed

TASK = ("factual-choice-numbers", "--model", "demo/small", "--limit", "1")
ASIDE = {"limit", "model", "seed", "config"}
"""Flags that are called the same here."""
WITHOUT = {
    "samples", "predict_only", "check_integrity", "write_out", "show_config", "metadata", "wandb_config_args", "hf_hub_log_args",
}  # fmt: skip
"""Flags that only `evalwright lm-eval` has."""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def meant(*words: str) -> str:
    done = typed(*words)
    assert done.code == 2 and not done.out
    return done.err.strip()


def line(said: str) -> list[str]:
    """The words of the line after "evalwright"."""
    return shlex.split(
        said.partition("Write: evalwright ")[2].partition(". Not needed")[0]
    )


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--batch_size", "8"), ("-M", "batch_size=8")),
        (("--batch-size", "8"), ("-M", "batch_size=8")),
        (("--batch_size=auto:4",), ("-M", "batch_size=auto")),
        (
            ("--model_args", "threads=1,max_length=1024"),
            ("-M", "threads=1", "-M", "max_length=1024"),
        ),
        (("--output_path", "mine"), ("--out", "mine")),
        (
            ("--output_path", "mine", "--log_samples", "--use_cache", "x"),
            ("--out", "mine"),
        ),
        (("--system_instruction", "Be brief."), ("-T", "prompt.system=Be brief.")),
    ],
)
def test_a_line_of_ours_with_its_flags(
    flags: tuple[str, ...], words: tuple[str, ...]
) -> None:
    said = meant("run", *TASK, *flags)
    assert (
        f"Error: {flags[0].partition('=')[0]} is an option of lm_eval. Write: evalwright run"
        in said
    )
    assert line(said) == ["run", *TASK, *words]
    if words != ("-M", "batch_size=auto"):  # which the demonstration models do not know
        done = typed(*line(said), "--quiet")
        assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("typed_words", "wanted"),
    [
        (
            ("--model", "hf", "--model_args", "pretrained=gpt2,dtype=float32", "--tasks", "arc_easy,piqa", "--batch_size", "auto:4"),
            "lm-eval run --model hf --model_args pretrained=gpt2,dtype=float32 --tasks arc_easy,piqa --batch_size auto:4",
        ),
        (("arc_easy", "--model", "hf", "--num_fewshot", "5"), "lm-eval run --tasks arc_easy --model hf --num_fewshot 5"),
        (
            ("--model", "openai/gpt-4o-mini", "--tasks", "arc_easy,piqa", "--gen_kwargs", "temperature=0"),
            "run lm-eval:arc_easy lm-eval:piqa --model openai/gpt-4o-mini -D generation.temperature=0",
        ),
        (
            ("lm-eval:x", "--model", "hf/gpt2", "--include_path", "my tasks", "--apply_chat_template"),
            "run lm-eval:x --model hf/gpt2 --task-root 'my tasks' --format chat",
        ),
        (
            ("gsm8k", "--model", "hf/gpt2", "--gen_kwargs", "max_gen_toks=9,do_sample=true", "--num_fewshot", "2"),
            "run gsm8k --model hf/gpt2 -T answer.text.max_tokens=9 --num-fewshot 2",
        ),
    ],
)  # fmt: skip
def test_the_whole_line(typed_words: tuple[str, ...], wanted: str) -> None:
    assert meant("run", *typed_words).endswith(f"Write: evalwright {wanted}")


@pytest.mark.parametrize("name", [name for name, *_ in FLAGS if name not in ASIDE])
def test_every_flag_is_known_and_never_the_paid_batch(name: str) -> None:
    kind = next(kind for other, _, kind, _ in FLAGS if other == name)
    value = {"flag": (), "flag or text": (), "mapping": ("a=1",)}.get(kind, ("1",))
    for spelled in {f"--{name}", f"--{name.replace('_', '-')}"} - {"--num-fewshot"}:
        said = meant("run", *TASK, spelled, *value)
        assert f"{spelled} is an option of lm_eval." in said
        assert ("has nothing like" in said) == (name in WITHOUT)
        assert "--batch" not in line(said)


def test_other_commands_and_other_options() -> None:
    assert meant("plan", "gsm8k", "--num_fewshot", "3").endswith(
        "Write: evalwright plan gsm8k --num-fewshot 3"
    )
    assert meant("tasks", "list", "--include_path", "x").endswith(
        "Write: evalwright tasks list --task-root x"
    )
    assert "`evalwright runs list` has nothing like --batch_size" in meant(
        "runs", "list", "--batch_size", "3"
    )
    assert "No such option '--limt'" in meant("run", "gsm8k", "--limt", "3")


@pytest.mark.parametrize(
    "text",
    [
        "task: x\ndataset_path: owner/name\ndoc_to_text: '{{q}}'\n",
        "include: base.yaml\ntask: x\nmetric_list: [{metric: acc}]\n",
        "group: g\ntask: [a, b]\naggregate_metric_list: [{metric: acc}]\n",
    ],
)
def test_a_task_file_of_lm_eval_is_recognised(text: str) -> None:
    Path("mine.yaml").write_text(text, encoding="utf-8")
    said = meant("run", "mine.yaml", "--model", "demo/small")
    assert said.startswith("Error: mine.yaml:") and said.endswith(
        "is of a task file of lm-eval. Run it as lm-eval:mine.yaml"
    ), said


def test_a_data_set_that_cannot_be_loaded_says_the_cause() -> None:
    pytest.importorskip("datasets", reason="the extra lm-eval is not installed")
    Path("rows.jsonl").write_text('{"q": "a"}\n{broken\n', encoding="utf-8")
    Path("mine.yaml").write_text(
        "task: x\ndataset_path: json\ndataset_kwargs: {data_files: {test: rows.jsonl}}\noutput_type: generate_until\n"
        "test_split: test\ndoc_to_text: '{{q}}'\ndoc_to_target: '{{q}}'\nmetric_list: [{metric: exact_match}]\n",
        encoding="utf-8",
    )
    said = meant("run", "lm-eval:mine.yaml", "--model", "scripted/echo").splitlines()[
        -1
    ]
    assert "The data set 'json' cannot be loaded: " in said
    assert "JSON parse error" in said


OPTIONS = "question,A,B,C,answer\nWhat is 2 + 2?,3,4,5,B\n"
OPEN = "question,answer\nWhat is 2 + 2?,4\n"


@pytest.mark.parametrize(
    ("rows", "typed_words", "wanted"),
    [
        (
            OPTIONS,
            ("--tasks", "mine.csv"),
            "run mine.csv --model PROVIDER/NAME -T answer.mode=letter",
        ),
        (
            OPTIONS,
            (
                *("--model", "hf", "--model_args", "pretrained=tiny-a,dtype=float32"),
                "--tasks=mine.csv",
            ),
            "run mine.csv --model hf/./tiny-a -M dtype=float32 -T answer.mode=letter",
        ),
        (
            OPTIONS,
            (
                *("mine.csv", "--model", "demo/small", "--limit", "1"),
                *("-T", "answer.mode=likelihood", "--batch_size", "2"),
            ),
            "run mine.csv --model demo/small --limit 1 -T answer.mode=likelihood"
            " -M batch_size=2",
        ),
        (
            OPEN,
            ("--model_args", "pretrained=owner/name", "--tasks", "mine.csv"),
            "run mine.csv --model hf/owner/name",
        ),
    ],
)
def test_a_data_file_is_no_task_of_lm_eval(
    rows: str, typed_words: tuple[str, ...], wanted: str
) -> None:
    Path("tiny-a").mkdir()
    Path("mine.csv").write_text(rows, encoding="utf-8")
    assert meant("run", *typed_words).endswith(f"Write: evalwright {wanted}")
