"""What is said of names that nothing carries: short, with the right spelling where one is
likely, and no list of a hundred.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")

MAX_MESSAGE_CHARS = 500
RUN = ("run", "factual-closed-book", "--model")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*RUN, "gpt-4o"), "Did you mean 'openai/gpt-4o'?"),
        ((*RUN, "gpt-4o-2024-08-06"), "Did you mean 'openai/gpt-4o-2024-08-06'?"),
        ((*RUN, "claude-sonnet-4-5"), "Did you mean 'anthropic/claude-sonnet-4-5'?"),
        ((*RUN, "gemini-2.5-flash"), "Did you mean 'gemini/gemini-2.5-flash'?"),
        ((*RUN, "gtp-4o"), "Did you mean 'openai/gpt-4o'?"),
        ((*RUN, "small"), "Did you mean 'demo/small'?"),
        ((*RUN, "openai:gpt-4o"), "Did you mean 'openai/gpt-4o'?"),
        ((*RUN, "OpenAI:gpt-4o"), "Did you mean 'openai/gpt-4o'?"),
        ((*RUN, "openai"), "names no model after the provider: it must be 'provider/name', for example 'openai/"),
        ((*RUN, "demo/"), "for example 'demo/small'"),
        ((*RUN, "nobody-has-this"), "Providers are openai, anthropic, gemini, hf, ollama and others"),
        ((*RUN, "opnai/gpt-4o"), "Did you mean 'openai'?"),
        ((*RUN, "zzzz/name"), "Providers are openai, anthropic, gemini, hf, ollama and others"),
        ((*RUN, "facebook/opt-125m"), "is 'hf/facebook/opt-125m'."),
        ((*RUN, "demo/small", "--judge", "gpt-4o"), "Did you mean 'openai/gpt-4o'?"),
        ((*RUN, "openai/gpt-4o", "-M", "temprature=1"), "Did you mean 'temperature'?"),
        ((*RUN, "demo/small", "-M", "temprature=1"), "Sampling is a setting of the task: -T answer.temperature=..."),
        ((*RUN, "demo/small", "-M", "temperature=1"), "-T answer.temperature=..."),
        ((*RUN, "demo/small", "-T", "temprature=1"), "did you mean `answer.temperature`?"),
        ((*RUN, "demo/small", "-T", "answer.temprature=1"), "did you mean `temperature`?"),
        ((*RUN, "demo/small", "-T", 'scorers=["zzz"]'), " more."),
        ((*RUN, "demo/small", "-T", 'metrics=["zzz"]'), " more."),
        (("run", "lm_eval:mmlu", "--model", "demo/small"), "Did you mean 'lm-eval:mmlu'?"),
        (("run", "lm_eval:mmlu_*", "--model", "demo/small"), "Did you mean 'lm-eval:mmlu_*'?"),
        (("run", "sea_helm:nli", "--model", "demo/small"), "Did you mean 'sea-helm:nli'?"),
        (("run", "hf://squad", "--model", "demo/small"), "`dataset: {hub: squad, revision: first-fetch,"),
        (("run", "hf://datasets/a/b", "--model", "demo/small"), "`dataset: {hub: a/b, revision: first-fetch,"),
        (("run", "mmlu.yaml", "--model", "demo/small"), "A bundled task has the name 'mmlu', without an ending."),
        (("runz",), "Did you mean 'run' or 'runs'?"),
        (("models", "lsit"), "Unknown command 'lsit' of `evalwright models`. Did you mean 'list'?"),
        (("runs", "zz"), "Commands: "),
    ],
)  # fmt: skip
def test_an_unknown_name(arguments: tuple[str, ...], message: str) -> None:
    done = typed(*arguments)
    assert done.code == 2, done.text
    assert message in done.err
    assert len(done.err) < MAX_MESSAGE_CHARS


def test_a_task_file_that_is_not_there_has_its_likes_beside_it() -> None:
    Path("capitals.yaml").write_text("task: capitals\n")
    Path("unlike.yaml").write_text("task: unlike\n")
    done = typed("run", "captials.yaml", "--model", "demo/small")
    assert done.err.strip().endswith(
        "Unknown task file 'captials.yaml'. Did you mean 'capitals.yaml'?"
    )


def test_a_list_of_all_providers_is_a_command_away() -> None:
    listed = json.loads(typed("models", "list", "--json").out)
    assert len(listed) > 80
    assert f"shows all {len(listed)}" in typed(*RUN, "zzzz/name").err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("view --limit 3", "`evalwright run` has it (--limit N"),
        ("compare --limit=3", "`evalwright run` has it (--limit N"),
        ("plan --limit 3", "use --pilot N"),
        ("runs show --limit 3", "`evalwright runs samples` has it (--limit N"),
        ("view --fail-if x", "`evalwright compare` has it (--fail-if RULE"),
        ("view --output x", "To write a file: --html FILE; --out is the folder"),
        ("runs show --output x", "with > FILE; --out is the folder"),
    ],
)
def test_an_option_of_another_command_of_ours_is_said_with_it(
    words: str, says: str
) -> None:
    done = typed(*words.split())
    assert done.code == 2
    assert says in done.err
    assert "lm_eval" not in done.err and "Did you mean" not in done.err


def test_an_option_of_no_command_has_the_closest_of_its_own() -> None:
    done = typed("view", "--htm", "x")
    assert done.code == 2 and "'--html'" in done.err
