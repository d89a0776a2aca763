"""Prompts in both forms: what stands between the parts, and what a template can see."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.requests import Message, Prompt
from evalwright.core.tasks import Task
from evalwright.tasks.loading import task_from_definition
from tasks.conftest import Load


def prompt(task: Task, index: int = 0) -> Prompt:
    strategy: Any = task.strategy
    rendered: Prompt = strategy.render(task.samples[index])
    return rendered


BODY = """\
task: t
dataset: {rows: [{input: one, target: eins}, {input: two, target: zwei}, {input: three, target: drei}]}
"""
SHOTS = """\
prompt:
  system: "Translate. "
  user: "EN: {{ input }}\\n"
  prefill: "DE:"
  delimiter: "\\n"
  separator: "\\n##\\n"
  few_shot: {count: 1, select: first}
"""


def test_text_with_every_part(load: Load) -> None:
    assert (
        prompt(load(BODY + SHOTS), 1)
        == "Translate.\n##\nEN: one\nDE:\neins\n##\nEN: two\nDE:"
    )


def test_chat_with_every_part(load: Load) -> None:
    assert prompt(load(BODY + SHOTS, chat=True), 1) == (
        Message("system", "Translate."),
        Message("user", "EN: one"),
        Message("assistant", "DE:\neins"),
        Message("user", "EN: two"),
        Message("assistant", "DE:"),
    )


@pytest.mark.parametrize(
    ("delimiter", "end"),
    [(" ", ""), ("\\n", "\n"), ("\\n\\n", "\n\n"), ("\\n ", "\n"), ("", "")],
)
def test_a_text_prompt_to_generate_from_never_ends_with_a_space(
    load: Load, delimiter: str, end: str
) -> None:
    assert (
        prompt(
            load(
                BODY
                + f'prompt: {{user: "{{{{ input }}}}  ", delimiter: "{delimiter}"}}\n'
            )
        )
        == "one" + end
    )


def test_what_a_template_sees(load: Load) -> None:
    text = """\
task: t
dataset:
  rows:
    - {id: x, "Odd name": odd, metadata: raw, options: [p, q], right: B, text: body}
sample:
  input: "{{ text }}"
  choices: "{{ options }}"
  target: "{{ right }}"
  passages: ["{{ text }}"]
  metadata: {kind: "{{ metadata }}"}
prompt:
  user: >-
    {{ id }} {{ input }} {{ text }} {{ row['Odd name'] }} {{ row.metadata }} {{ metadata.kind }} {{ choices[1] }} {{ target }}
    {{ targets | length }} {{ letters | join }} {{ letter }} {{ passages[0].id }}{{ passages[0].text }} {{ options | join }} <{{ lettered }}>
"""
    assert (
        prompt(load(text)) == "x body body odd raw raw q q 1 AB B 1body pq <A. p\nB. q>"
    )


def test_a_system_text_over_columns_is_rendered_for_each_sample(load: Load) -> None:
    task = load(
        BODY
        + 'prompt: {system: "Say {{ input }}.", few_shot: {count: 1, select: first}}\n'
    )
    assert prompt(task, 1) == "Say two.\n\none eins\n\ntwo"
    assert prompt(task, 2) == "Say three.\n\none eins\n\nthree"


@given(
    texts=st.lists(
        st.text(st.characters(codec="utf-8"), max_size=10),
        min_size=3,
        max_size=6,
        unique=True,
    ),
    count=st.integers(0, 2),
)
def test_text_and_chat_hold_the_same_parts(texts: list[str], count: int) -> None:
    rows = [
        {"id": str(index), "input": text, "target": "t"}
        for index, text in enumerate(texts)
    ]
    definition = {
        "task": "t",
        "dataset": {"rows": rows},
        "prompt": {
            "user": "Q{{ id }} {{ input }}|",
            "few_shot": {"count": count},
            "separator": "\n\n",
        },
    }
    as_text = task_from_definition(definition)
    as_chat = task_from_definition(definition, chat=True)
    for index in range(len(texts)):
        text = prompt(as_text, index)
        messages = prompt(as_chat, index)
        assert isinstance(text, str)
        assert isinstance(messages, tuple)
        users = [message.text for message in messages if message.role == "user"]
        assert len(users) == count + 1
        assert text == " t\n\n".join(users)
