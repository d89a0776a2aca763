"""What stands in place of a file of others: a pipe or a device is never waited for, a link to
another store never followed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from evalwright.engine.opening import open_store
from support.command import write_questions
from support.typed import typed

CONFIG = json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]})
INDEX = json.dumps({"weight_map": {"a": "other.safetensors"}})


@pytest.mark.parametrize(
    "command",
    [
        ["runs", "submit", "verify", "pipe"],
        ["runs", "submit", "verify", "pipe.json"],
        ["run", "--config", "pipe.json"],
        ["run", "--config", "pipe.yaml"],
        ["run", "pipe.yaml", "--model", "scripted/echo"],
        ["run", "questions.yaml", "--model", "replay/pipe.jsonl"],
        ["run", "questions.yaml", "--model", "hf/folder/pipe"],
        ["import", "lm-eval", "pipe.json"],
        ["import", "open-factual-bench", "pipe.json"],
        ["import", "hhem", ".", "--articles", "pipe.csv"],
        ["runs", "show", "pipe"],
    ],
    ids=" ".join,
)
def test_a_pipe_in_place_of_a_file_is_not_waited_for(
    own_folder: Path, command: list[str]
) -> None:
    write_questions(own_folder, 1)
    (own_folder / "folder").mkdir()
    for name in (
        "pipe",
        "pipe.json",
        "pipe.yaml",
        "pipe.jsonl",
        "pipe.csv",
        "folder/pipe",
    ):
        os.mkfifo(own_folder / name)
    done = typed(*command)
    assert done.code == 2 and "bug" not in done.err, done.text


@pytest.mark.parametrize(
    "model, name, more",
    [
        ("hf/model", "model.safetensors", {"config.json": CONFIG}),
        ("hf/model", "chat_template.jinja", {"config.json": CONFIG}),
        ("hf/model", "additional_chat_templates/a.jinja", {"config.json": CONFIG}),
        (
            "hf/model",
            "other.safetensors",
            {"config.json": CONFIG, "model.safetensors.index.json": INDEX},
        ),
        ("onnx/model", "model.onnx", {"tokenizer.json": "{}"}),
    ],
)
def test_a_pipe_in_a_models_folder_is_refused(
    own_folder: Path, model: str, name: str, more: dict[str, str]
) -> None:
    write_questions(own_folder, 1)
    pipe = own_folder / "model" / name
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    for other, text in more.items():
        (own_folder / "model" / other).write_text(text)
    done = typed("run", "questions.yaml", "--model", model)
    assert (
        done.code == 2
        and f"model/{name}' cannot be read: it is no ordinary file" in done.err
    ), done.text


def test_a_pipe_for_keys_is_an_error_where_keys_are_wanted(own_folder: Path) -> None:
    write_questions(own_folder, 1)
    os.mkfifo(own_folder / ".env")
    done = typed(
        "run", "questions.yaml", "--model", "openai/gpt-4o-mini", folder=own_folder
    )
    assert done.code == 2 and ".env cannot be read" in done.err, done.text


@pytest.mark.parametrize("name", ["store.sqlite", "store.sqlite-wal"])
def test_a_link_to_another_store_is_not_followed(own_folder: Path, name: str) -> None:
    write_questions(own_folder, 1)
    open_store(own_folder / "other").close()
    mine = own_folder / "home"
    other = own_folder / "other" / "store.sqlite"
    before = other.read_bytes()
    mine.mkdir()
    (mine / name).symlink_to(other)
    done = typed("run", "questions.yaml", "--model", "scripted/echo")
    assert done.code == 2 and "is not followed" in done.err, done.text
    assert other.read_bytes() == before
    assert (
        typed(
            "run", "questions.yaml", "--model", "scripted/echo", "--home", "other"
        ).code
        == 0
    )


def test_what_stands_in_place_of_a_task_file_is_said(own_folder: Path) -> None:
    os.mkfifo("pipe.yaml")
    Path("folder.yaml").mkdir()
    Path("link.yaml").symlink_to("nowhere")
    for name, says in (
        ("pipe", "no ordinary file"),
        ("folder", "a folder"),
        ("link", "leads to no file"),
    ):
        done = typed("tasks", "check", f"{name}.yaml")
        assert done.code == 2 and says in done.err and "Did you mean" not in done.err, (
            done.text
        )
