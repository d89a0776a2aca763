"""A prompt in a file of its own: slots are filled, every other brace stays, and a prompt without
a slot is refused.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.errors import TaskError
from evalwright.tasks import templates
from evalwright.tasks.prompt_files import with_prompt_file
from evalwright.tasks.yaml_files import Document
from tasks.conftest import Load, Write

TASK = """
task: t
dataset: {rows: [{id: 1, text: "An {odd} {{text}} {% here %}."}]}
sample: {input: "Article {{ id }}"}
prompt:
  fields: {article: "{{ text }}"}
  user: "Inline: {{ article }}"
"""
ARTICLE = "An {odd} {{text}} {% here %}."


def rendered(load: Load, write: Write, prompt: str | bytes) -> str:
    write("prompt.txt", prompt if isinstance(prompt, bytes) else prompt.encode())
    task = load(TASK, overrides={"prompt.file": "prompt.txt"})
    text = task.strategy.render(task.samples[0])  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("Summarise: {article}", f"Summarise: {ARTICLE}"),
        ("{article}", ARTICLE),
        ("{article} and {article}", f"{ARTICLE} and {ARTICLE}"),
        ('Reply {"summary": "..."}\n{article}', f'Reply {{"summary": "..."}}\n{ARTICLE}'),
        ("{}{0}{x!r} { article } {article}", f"{{}}{{0}}{{x!r}} {{ article }} {ARTICLE}"),
        ("{{literal}} {{ x }} {% raw %} {# no #} {article}", f"{{{{literal}}}} {{{{ x }}}} {{% raw %}} {{# no #}} {ARTICLE}"),
        ("{artcle} {article}", f"{{artcle}} {ARTICLE}"),
        ("{id} {input} {article}", f"1 Article 1 {ARTICLE}"),
        ("Passage: {{ article }}\n", f"Passage: {ARTICLE}"),
        ("{% if id == '1' %}{{ article }}{% endif %}", ARTICLE),
        ("\ufeffA {article}\r\nB", f"A {ARTICLE}\nB"),
    ],
)  # fmt: skip
def test_slots(load: Load, write: Write, prompt: str, wanted: str) -> None:
    assert rendered(load, write, prompt) == wanted


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (
            "Summarise.",
            "has no slot for the sample's text. The slots are: {article}, {id}, {input}, {target}.",
        ),
        ("Summarise {artcle}", "did you mean {article} where it has {artcle}?"),
        ("", "has no slot"),
        ('{"a": 1}', "has no slot"),
        ("{{ 'nothing' }}", "has no slot"),
        ("{% for x in %}", "the prompt file 'prompt.txt'"),
        (b"\xff\xfe{article}", "is not UTF-8 text (byte 1)"),
    ],
)
def test_a_prompt_without_a_place_is_refused(
    load: Load, write: Write, prompt: str | bytes, message: str
) -> None:
    with pytest.raises(TaskError) as caught:
        rendered(load, write, prompt)
    assert message in str(caught.value)


def test_a_file_that_is_not_there(load: Load) -> None:
    with pytest.raises(TaskError, match=r"'none.txt'.*No such file"):
        load(TASK, overrides={"prompt.file": "none.txt"})
    with pytest.raises(
        TaskError,
        match=r"`prompt.file` .*not a number|whole number",
    ):
        load(TASK, overrides={"prompt.file": 3})


def test_a_file_in_a_task_lies_beside_it(write: Write, load: Load) -> None:
    write("folder/prompt.txt", "Beside: {article}")
    path = write(
        "folder/task.yaml",
        TASK.replace('  user: "Inline: {{ article }}"', "  file: prompt.txt"),
    )
    from evalwright.tasks.loading import load_task

    task = load_task(path)
    assert task.strategy.render(task.samples[0]) == f"Beside: {ARTICLE}"  # type: ignore[attr-defined]
    # The text is part of what the run records, so that another prompt is another run.
    assert task.definition["prompt"]["user"] == "Beside: {{ article }}"
    assert "file" not in task.definition["prompt"]


@settings(max_examples=300)
@given(
    st.text(alphabet="{}%#ab '\"\n\\", max_size=40),
    st.text(alphabet="{}%#ab '\"\n\\", max_size=40),
    st.text(max_size=20),
)
def test_everything_but_slots_is_as_it_was(
    before: str, after: str, article: str
) -> None:
    import tempfile
    from pathlib import Path

    if before.endswith("{") or after.startswith("}"):
        return  # "{{article}}" is no slot
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "p.txt").write_bytes(f"{before}{{article}}{after}".encode())
        document = Document(
            {"prompt": {"file": "p.txt", "fields": {"article": "x"}}},
            "the task",
            Path(folder),
        )
        user = with_prompt_file(document, {}).value["prompt"]["user"]
    assert templates.text(user)({"article": article}) == f"{before}{article}{after}"
