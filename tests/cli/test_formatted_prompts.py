"""A prompt as the text that a chat template makes of it: before a run, and from its record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.requests import Message
from evalwright.models.local.recorded_prompts import prompt_renderer
from support.tiny_models import make_tiny_model
from support.typed import typed

TEXT = (
    "<|im_start|>user\nWhat is 2+2?\nA. 3\nB. 4\nC. 5\n"
    "Answer with the letter of the right option.\nAnswer:<|im_end|>\n"
    "<|im_start|>assistant\n"
)
MODEL = ("--model", "hf/./tiny")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small chat model and questions with options."""
    folder = tmp_path_factory.mktemp("formatted")
    make_tiny_model(folder / "tiny", "llama", chat=True, context=512)
    (folder / "mine.csv").write_text(
        "id,question,A,B,C,answer\nsum,What is 2+2?,3,4,5,B\n", encoding="utf-8"
    )
    return folder


def test_the_preview_is_what_the_model_reads(folder: Path) -> None:
    from evalwright.models.registry import open_model

    preview = ("tasks", "preview", "mine.csv", *MODEL)
    shown = typed(*preview, folder=folder)
    assert f"[generate, as the chat template writes it]\n{TEXT}" in shown.out
    (row,) = json.loads(typed(*preview, "--json", folder=folder).out)
    assert row["formatted"] == [TEXT]

    (request,) = row["requests"]
    reader = open_model(f"hf/{folder / 'tiny'}", {}).reader()
    assert reader is not None
    messages = tuple(Message(role, text) for role, text in request["generate"])
    assert reader.render(messages)[0] == TEXT


def test_the_format_of_a_run_is_that_of_its_preview(folder: Path) -> None:
    preview = ("tasks", "preview", "mine.csv")
    as_text = typed(*preview, *MODEL, "--format", "text", folder=folder).out
    assert "<|im_start|>" not in as_text and "[generate]\nWhat is 2+2?" in as_text
    as_chat = typed(*preview, "--format", "chat", folder=folder).out
    assert "[user]\nWhat is 2+2?" in as_chat
    wrong = typed(*preview, "--format", "xml", folder=folder)
    assert wrong.code == 2 and "'xml'" in wrong.err


def test_a_template_that_is_not_known_is_said_to_be_so(folder: Path) -> None:
    remote = typed(
        "tasks", "preview", "mine.csv", "--model", "scripted/echo", folder=folder
    )
    assert "[user]\nWhat is 2+2?" in remote.out
    assert "How 'scripted/echo' writes these messages as one text" in remote.err


@pytest.mark.parametrize("mode", ["letter", "likelihood"])
def test_one_prompt_is_shown_once(folder: Path, mode: str) -> None:
    shown = typed(
        *("tasks", "preview", "mine.csv", "-T", f"answer.mode={mode}"), folder=folder
    ).out
    assert shown.count("What is 2+2?") == 1
    assert shown.startswith("mine: requests 1 to 3 of 3\n")
    continuations = [" A", " B", " C"] if mode == "letter" else [" 3", " 4", " 5"]
    lines = [f'[continuation] "{text}"' for text in continuations]
    assert "\n".join(lines) in shown


def test_a_record_shows_the_text_that_was_sent(folder: Path) -> None:
    command = ("run", "mine.csv", *MODEL, "-T", "answer.max_tokens=2", "--quiet")
    assert typed(*command, "--name", "chat", folder=folder).code == 0
    shown = typed("runs", "samples", "chat", "sum", folder=folder).out
    text = "\n".join(line.strip() for line in shown.splitlines())
    assert "Prompt as the chat template writes it" in text
    assert TEXT.strip() in text

    assert (
        typed(*command, "--format", "text", "--name", "plain", folder=folder).code == 0
    )
    plain = typed("runs", "samples", "plain", "sum", folder=folder).out
    assert "chat template" not in plain


def test_a_template_that_drops_the_system_message() -> None:
    facts: Mapping[str, Any] = {
        "template": {
            "source": "{% for m in messages if m.role == 'user' %}<{{ m.content }}>{% endfor %}",
            "variables": {},
        }
    }
    messages = (Message("system", "Be brief."), Message("user", "Why?"))
    assert prompt_renderer(facts)(messages) == "<Be brief.\n\nWhy?>"
    assert prompt_renderer(facts, leaves_out_system=True)(messages) == "<Why?>"
