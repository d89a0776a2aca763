"""From file to Task: every mode, every default, and what does not go together."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from evalwright.core.errors import DatasetError, TaskError
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.core.tasks import Task
from tasks.conftest import Load, Write

CHOICE = """\
task: t
dataset:
  rows:
    - {q: Two and two?, options: [three, four], right: 1, level: easy}
    - {q: Three and one?, options: [four, two], right: 0, level: hard}
    - {q: One and one?, options: [two, nine], right: 0, level: hard}
sample: {id: "{{ q }}", input: "{{ q }}", choices: "{{ options }}", target: "{{ right }}"}
"""
OPEN = """\
task: t
dataset: {rows: [{id: 1, input: Capital of France?, target: Paris}, {id: 2, input: Of Peru?, target: [Lima, Ciudad de los Reyes]}]}
"""


def asked(task: Task, index: int = 0) -> list[Request]:
    """What the strategy asks for a sample, from a model that says the same of everything."""
    requests: list[Request] = []

    async def ask(role: str, request: Request) -> Response:
        requests.append(request)
        return Response(
            text="reply", log_likelihood=-1.0, is_greedy=True, tokens_scored=1
        )

    asyncio.run(task.strategy(task.samples[index], ask, 0))
    return requests


def test_generate_in_text_form(load: Load) -> None:
    task = load(
        OPEN
        + 'prompt: {system: "Be brief.", user: "Q: {{ input }}\\nA:"}\nanswer: {max_tokens: 9, stop: "\\n"}\n'
    )
    assert asked(task) == [
        Generate("Be brief.\n\nQ: Capital of France?\nA:", max_tokens=9, stop=("\n",))
    ]
    assert task.strategy.needs == {"generate"}
    assert task.samples[1].targets == ("Lima", "Ciudad de los Reyes")


def test_generate_in_chat_form(load: Load) -> None:
    task = load(OPEN + 'prompt: {system: Be brief., prefill: "Answer:"}\n', chat=True)
    messages = (
        Message("system", "Be brief."),
        Message("user", "Capital of France?"),
        Message("assistant", "Answer:"),
    )
    assert asked(task) == [Generate(messages)]
    assert task.strategy.needs == {"generate", "chat"}


def test_the_format_can_be_forced(load: Load) -> None:
    assert isinstance(asked(load(OPEN, chat=True, prompt_format="text"))[0].prompt, str)  # type: ignore[union-attr]
    assert isinstance(asked(load(OPEN, prompt_format="chat"))[0].prompt, tuple)  # type: ignore[union-attr]
    assert isinstance(asked(load(OPEN + "prompt: {format: chat}\n"))[0].prompt, tuple)  # type: ignore[union-attr]


def test_likelihood(load: Load) -> None:
    task = load(CHOICE + "answer: {mode: likelihood}\n", chat=True)
    assert asked(task) == [
        LogLikelihood("Two and two?", " three"),
        LogLikelihood("Two and two?", " four"),
    ]
    assert task.strategy.needs == {"log-likelihood"}
    assert [scorer.kind for scorer in task.scorers] == ["choice"]


def test_letter(load: Load) -> None:
    task = load(CHOICE + "answer: {mode: letter}\n")
    prompt = "Two and two?\nA. three\nB. four\nAnswer:"
    assert asked(task) == [LogLikelihood(prompt, " A"), LogLikelihood(prompt, " B")]


def test_letter_in_chat_form_has_no_delimiter_before_the_letter(load: Load) -> None:
    task = load(CHOICE + "answer: {mode: letter}\n", prompt_format="chat")
    message = Message("user", "Two and two?\nA. three\nB. four\nAnswer:")
    assert asked(task)[1] == LogLikelihood((message,), "B")
    assert task.strategy.needs == {"log-likelihood", "chat"}
    with_prefill = load(
        CHOICE + 'answer: {mode: letter}\nprompt: {prefill: "It is"}\n',
        prompt_format="chat",
    )
    assert asked(with_prefill)[1].continuation == " B"  # type: ignore[union-attr]


@pytest.mark.parametrize("form", ["text", "chat"])
def test_the_letter_behind_reasoning_begins_with_the_delimiter_of_the_task(
    load: Load, form: str
) -> None:
    strategy = "strategy: {name: reason-then-choose, then: letter}\n"
    for given, letter in (("", " B"), ('prompt: {delimiter: ""}\n', "B")):
        task = load(CHOICE + strategy + given, prompt_format=form)
        assert asked(task)[-1].continuation == letter  # type: ignore[union-attr]


def test_continuation(load: Load) -> None:
    task = load(OPEN + 'answer: {mode: continuation}\nprompt: {delimiter: "\\n"}\n')
    assert asked(task) == [LogLikelihood("Capital of France?", "\nParis")]
    assert [metric.kind for metric in task.metrics] == ["accuracy", "token-perplexity"]


def test_perplexity_keeps_the_text_whole(load: Load) -> None:
    task = load(
        'task: t\ndataset: {rows: [{input: "  a text \\n\\n"}]}\nanswer: {mode: perplexity}\n'
    )
    assert asked(task) == [RollingLogLikelihood("  a text \n\n")]
    assert task.strategy.needs == {"rolling"}
    assert task.metrics[0].label == "word-perplexity"


def test_several_turns(load: Load) -> None:
    task = load(
        OPEN + 'prompt: {system: S, user: ["{{ input }}", "Sure about {{ input }}"]}\n',
        chat=True,
    )
    first, second = asked(task)
    assert first == Generate(
        (Message("system", "S"), Message("user", "Capital of France?"))
    )
    assert second.prompt[2:] == (  # type: ignore[union-attr]
        Message("assistant", "reply"),
        Message("user", "Sure about Capital of France?"),
    )


def test_drawing_by_form(load: Load) -> None:
    text = (
        OPEN
        + "answer: {temperature: 0.5, draws: 3, text: {max_tokens: 5, stop: [x]}, chat: {max_tokens: 50}}\n"
    )
    as_text = load(text)
    as_chat = load(text, chat=True)
    assert asked(as_text) == [
        Generate("Capital of France?", max_tokens=5, temperature=0.5, stop=("x",))
    ]
    assert asked(as_chat) == [
        Generate(
            (Message("user", "Capital of France?"),), max_tokens=50, temperature=0.5
        )
    ]
    assert as_text.draws == 3


def test_defaults_of_text_and_chat(load: Load) -> None:
    request: Any = asked(load(OPEN))[0]
    assert (request.max_tokens, request.temperature, request.stop) == (256, 0.0, ())
    request = asked(load(OPEN, chat=True))[0]
    assert request.max_tokens is None
    request = asked(load(OPEN + "prompt: {few_shot: {count: 1}}\n"))[0]
    assert request.stop == ("\n\n",)


def test_scorers_and_metrics_in_every_form(load: Load) -> None:
    task = load(
        OPEN
        + """\
scorers:
  - exact-match
  - {name: loose, use: exact-match}
  - exact-match: {name: third}
metrics:
  - accuracy
  - mean: {scorer: loose}
  - {name: other, use: mean, scorer: third}
"""
    )
    assert [(scorer.name, scorer.kind) for scorer in task.scorers] == [
        ("exact-match", "exact-match"),
        ("loose", "exact-match"),
        ("third", "exact-match"),
    ]
    assert [(metric.label, metric.kind, metric.scorer) for metric in task.metrics] == [
        ("accuracy", "accuracy", "exact-match"),
        ("loose-mean", "mean", "loose"),
        ("other", "mean", "third"),
    ]


def test_metadata_of_the_task_reaches_its_samples(load: Load) -> None:
    text = """\
task: t
dataset: {rows: [{id: a, input: x, domain: art, page: 4}, {id: b, input: y}]}
sample: {metadata: {page: "{{ page | default(none) }}", fixed: [1, "{{ input }}"]}}
metadata: {language: de, domain: other, licence: CC0}
slices: [domain]
"""
    task = load(text)
    assert task.samples[0].metadata == {
        "language": "de",
        "domain": "art",
        "page": 4,
        "fixed": [1, "x"],
    }
    assert task.samples[1].metadata == {
        "language": "de",
        "domain": "other",
        "fixed": [1, "y"],
    }
    assert task.slices == ("domain",)
    assert task.metadata == {"language": "de", "domain": "other", "licence": "CC0"}


def test_where_by_value_list_path_and_expression(load: Load) -> None:
    def left(where: str) -> list[str]:
        return [sample.id for sample in load(CHOICE + f"where: {where}\n").samples]

    assert left("{level: hard}") == ["Three and one?", "One and one?"]
    assert left("{level: [easy, medium]}") == ["Two and two?"]
    assert left("{level: hard, right: 0, q: One and one?}") == ["One and one?"]
    assert left("right == 1 or 'nine' in options") == ["Two and two?", "One and one?"]
    with pytest.raises(DatasetError, match=r"task.yaml:8: .*`where`"):
        left("{right: true}")


def test_the_definition_is_whole_and_decides_what_is_asked(
    write: Write, load: Load
) -> None:
    write(
        "rows.jsonl",
        [
            {"id": 1, "input": "a", "target": "b"},
            {"id": 2, "input": "c", "target": "d"},
        ],
    )
    text = "task: t\ndataset: rows.jsonl\nprompt: {few_shot: {count: 1}}\nscorers: [{name: s, use: exact-match}]\n"
    first = load(text)
    assert json.loads(json.dumps(first.definition)) == first.definition
    assert first.definition["prompt"]["user"] == "{{ input }}"
    assert first.definition["prompt"]["format"] == "text"
    assert first.definition["answer"] == {
        "mode": "generate", "draws": 1, "max_tokens": 256, "temperature": 0.0, "stop": ["\n\n"],
    }  # fmt: skip
    assert first.definition["dataset"]["samples"] == 2
    assert (
        first.definition["prompt"]["few_shot"]["dataset"]["content_hash"]
        == first.samples.content_hash
    )
    assert load(text + "version: '1'\n").definition == first.definition
    assert load(text, chat=True).definition != first.definition
    write(
        "rows.jsonl",
        [
            {"id": 1, "input": "a", "target": "b"},
            {"id": 2, "input": "c", "target": "D"},
        ],
    )
    assert load(text).definition != first.definition


def test_the_recorded_definition_can_be_loaded_again(load: Load, tmp_path: Any) -> None:
    from evalwright.tasks.loading import task_from_definition

    task = load(
        CHOICE
        + "answer: {mode: letter}\nprompt: {few_shot: {count: 1, same: [level]}}\nwhere: {level: hard}\n"
    )
    again = dict(task.definition)
    for part in (again["dataset"], again["prompt"]["few_shot"]["dataset"]):
        part.pop("samples"), part.pop("content_hash")
    again["prompt"]["few_shot"].pop("dataset")
    copy = task_from_definition(again, base=tmp_path)
    assert asked(copy) == asked(task)
    assert copy.samples.content_hash == task.samples.content_hash


BAD = [
    ("several draws of a greedy model", OPEN + "answer:\n  draws: 5\n", "task.yaml:4: several draws need a temperature above 0"),
    (
        "drawing without generating",
        CHOICE + "answer: {mode: letter, max_tokens: 5}\n",
        "task.yaml:8: `answer.max_tokens` cannot be used with the mode letter.",
    ),
    (
        "turns without generating",
        CHOICE + "answer: {mode: letter}\nprompt: {user: [a, b]}\n",
        "task.yaml:9: several user turns cannot be used with the mode letter.",
    ),
    ("turns with shots", OPEN + "prompt: {user: [a, b], few_shot: {count: 1}}\n", "`few_shot` cannot be used with several user turns."),
    ("turns as text", OPEN + "prompt: {user: [a, b], format: text}\n", "several user turns need the chat form of the prompt, not text."),
    ("perplexity with a system", OPEN + "answer: {mode: perplexity}\nprompt: {system: S}\n", "`system` cannot be used with the mode perplexity"),
    (
        "an unknown scorer",
        OPEN + "scorers:\n  - exact-macth\n",
        "task.yaml:4: Unknown scorer 'exact-macth'. Did you mean 'exact-match'?",
    ),
    ("an unknown option", OPEN + "scorers: [{exact-match: {lenient: true}}]\n", "Unknown option 'lenient' of the scorer 'exact-match'."),
    ("an unknown metric", OPEN + "metrics: [acuracy]\n", "task.yaml:3: Unknown metric 'acuracy'. Did you mean 'accuracy'"),
    ("an unknown metric option", OPEN + "metrics: [{accuracy: {per: x}}]\n", "Unknown option 'per' of the metric 'accuracy'."),
    (
        "a metric over no scorer",
        OPEN + "metrics: [{accuracy: {scorer: exact}}]\n",
        "the metric 'accuracy' uses the scorer 'exact', which the task does not have. Did you mean 'exact-match'?",
    ),
    ("two scorers of one name", OPEN + "scorers: [exact-match, exact-match]\n", "two scorers have the name 'exact-match'"),
    ("two metrics of one label", OPEN + "metrics: [accuracy, accuracy]\n", "two metrics have the label 'accuracy'"),
    ("no scorer", OPEN + "scorers: []\n", "a task needs at least one scorer."),
    ("a broken template", OPEN + 'prompt:\n  user: "{{ input"\n', "task.yaml:4: the template '{{ input' cannot be used: unexpected end"),
    ("a broken sample template", OPEN + 'sample: {input: "{% if %}"}\n', "task.yaml:3: the template '{% if %}' cannot be used:"),
    ("a broken condition", OPEN + "where: 'a =='\n", "task.yaml:3: the template 'a ==' cannot be used:"),
    ("where over a mapping", OPEN + "where: {input: {a: b}}\n", "`where.input` is a value, a list of values, `contains` with one of them, or `holds` with an expression, not a mapping."),
    ("more shots than rows", OPEN + "prompt: {few_shot: {count: 9}}\n", "task.yaml:3: 9 shots are needed, and the pool has 2 rows."),
    ("an empty pool", OPEN + "prompt: {few_shot: {count: 1, dataset: {rows: []}}}\n", "task.yaml:3: the dataset is empty"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_what_does_not_go_together(load: Load, text: str, message: str) -> None:
    with pytest.raises((TaskError, DatasetError)) as caught:
        load(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("task.yaml:")
    assert "\n" not in str(caught.value)
