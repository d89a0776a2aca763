"""The bodies that are sent, compared with what SEA-HELM's own code sends: the recorded
conversations and generation arguments.

Its client sends `model`, `messages` and the generation arguments, and nothing else. Base models are
asked by the text of its template for them. In the first of two requests it also sends
`include_stop_str_in_output`, and reads in the text whether the reply ended at the answer tag; here
the reply's `stop_reason` says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from compat.sea_helm.small_tree import entry, golden, needs_golden, rows, spoken, write
from evalwright.core.requests import LogLikelihood, Request
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Score
from evalwright.core.tasks import Task
from evalwright.models.registry import open_model
from evalwright.tasks.loading import load_tasks
from support.openai_server import OpenAIServer, serving
from support.tiny_models import make_tiny_model

LINES = ("seahelm_tasks/english_evals/bbh/bbh.py", "BBHExactMatch")
SHOTS = {"instruct-5shot": 5}
ROWS = 3
"""Of each recorded task and form."""


def recorded() -> Iterator[
    tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]], Sequence[Any]]
]:
    """Each task, its form, its first rows with their conversations, and its examples.

    A twin has those of its sibling.
    """
    languages: dict[tuple[str, str], Any] = {}
    tasks: dict[tuple[str, str], Any] = {}
    for line in golden("task"):
        pair = line["task"], line["lang"]
        sibling = line["task"].removesuffix("-logprobs"), line["lang"]
        languages[pair] = line["language_config"] or languages[sibling]
        tasks[pair] = {**line, "here": languages[pair]}
    lines = {
        (line["task"], line["lang"], line["form"]): line for line in golden("prompts")
    }
    for (name, language, form), line in lines.items():
        source = line
        while "same_conversations_as" in source:
            source = lines[
                source["same_conversations_as"][0],
                language,
                source["same_conversations_as"][1],
            ]
        # A row's own values stand with the conversations without shots.
        plain = lines[name.removesuffix("-logprobs"), language, "instruct-0shot"]
        values = {row["i"]: row for row in plain["rows"] if "prompts" in row}
        own = [
            {**values[row["i"]], **row}
            for row in source.get("rows", ())
            if row["i"] in values
        ][:ROWS]
        by_subject = name.startswith("global_mmlu_lite") and form != "instruct-0shot"
        if own and not by_subject:
            yield tasks[name, language], line, own, source.get("examples") or ()


def loaded(
    root: Path,
    task: Mapping[str, Any],
    form: str,
    own: Sequence[Any],
    examples: Sequence[Any],
    reasoning: bool = False,
) -> Task:
    """The task over these rows, read from files in SEA-HELM's own form of rows."""
    place = root / "seahelm_tasks" / "mine"
    name = task["task"]
    language = task["lang"]
    keys = ("id", "label", "prompts")
    write(
        place / "rows.jsonl",
        [{key: row.get(key) for key in keys} | {"metadata": {}} for row in own],
    )
    write(place / "examples.jsonl", list(examples))
    files = {"filepath": "seahelm_tasks/mine/rows.jsonl", "example_filepath": None}
    if examples:
        files["example_filepath"] = "seahelm_tasks/mine/examples.jsonl"
    config = {
        key: part
        for key, part in task["config"].items()
        if not key.startswith("dataloader")
    }
    if (
        config["metric_class"] == "QuestionAnsweringMetric"
    ):  # its words need libraries, and are no part of a request
        config |= {"metric_file": LINES[0], "metric_class": LINES[1]}
    config["languages"] = {language: {**task["here"], **files}}
    write(place / "config.yaml", {name: config})
    write(root / "seahelm_tasks" / "constants.yaml", {"few_shot_stop_tokens": ["\n\n"]})
    settings = {
        "task_root": str(root),
        "scoring": "published",
        "base_model": form == "base",
    }
    settings["reasoning"] = reasoning
    (made,) = load_tasks(
        f"sea-helm:{name}/{language}",
        dialect=settings,
        num_fewshot=SHOTS.get(form),
        chat=form != "base",
    )
    return made


def stopped(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """A reply as vLLM's server gives it, which says at what it ended."""
    stop = body.get("stop")
    reply["choices"][0]["stop_reason"] = stop[0] if stop and stop != ["\n\n"] else None
    return reply


def written(conversation: Sequence[Mapping[str, str]]) -> str:
    """A conversation by SEA-HELM's template for base models, without the start token."""
    return "".join(f"{turn['content'].strip()}\n\n" for turn in conversation)


@needs_golden
def test_every_recorded_task_sends_what_sea_helm_sends(tmp_path: Path) -> None:
    compared = {"instruct": 0, "base": 0, "twin": 0, "reasoning": 0}
    with serving(
        lambda prompt: " Reason,", edit=stopped, extra=("top_k", "min_p")
    ) as server:
        chat = {"base_url": server.url}
        models = {
            "chat": open_model("vllm/m", chat),
            "text": open_model(
                "vllm/m", {**chat, "interface": "completions", "echo": True}
            ),
        }
        for place, (task, line, own, examples) in enumerate(recorded()):
            form = line["form"]
            is_twin = task["task"].endswith("-logprobs")
            base = form == "base"
            if is_twin and not base:
                continue  # no server scores behind messages; see the next test
            made = loaded(tmp_path / str(place), task, form, own, examples)
            arguments, _ = task["gen"]["base" if base else "instruct"]
            tag = task["here"]["prompt_template"]["answer_tag"] or ""
            for index, row in enumerate(own):
                bodies = sent_by(
                    server, made, index, models["text" if base else "chat"]
                )
                if not base:
                    wanted = [
                        {"model": "m", "messages": row["conversation"], **arguments}
                    ]
                    compared["instruct"] += 1
                elif is_twin:
                    wanted = _of_twin(row, arguments, tag, line["answers_first"][index])
                    bodies = [
                        {key: body[key] for key in asked}
                        for body, asked in zip(bodies, wanted, strict=True)
                    ]
                    compared["twin"] += 1
                else:
                    wanted = _of_base(row, arguments, tag)
                    compared["base"] += 1
                assert bodies == wanted, (task["task"], task["lang"], form, index)
            if form == "instruct-0shot":
                thinking = loaded(
                    tmp_path / str(place), task, form, own, examples, reasoning=True
                )
                wanted = [
                    {
                        "model": "m",
                        "messages": own[0]["conversation"],
                        **task["gen"]["reasoning"][0],
                    }
                ]
                assert sent_by(server, thinking, 0, models["chat"]) == wanted
                compared["reasoning"] += 1
    assert compared == {"instruct": 123, "base": 24, "twin": 9, "reasoning": 36}


def sent_by(
    server: OpenAIServer, task: Task, index: int, model: Any
) -> list[dict[str, Any]]:
    """The bodies that a sample of the task sends."""
    log = server.log
    assert log is not None
    before = len(log)

    async def ask(role: str, request: Request) -> Response:
        response: Response = await model.answer(request)
        return response

    asyncio.run(_closing(task.strategy(task.samples[index], ask, 0), model))
    return [entry["body"] for entry in log[before:]]


async def _closing(answer: Any, model: Any) -> Any:
    try:
        return await answer
    finally:
        await model.close()


def _of_base(
    row: Mapping[str, Any], arguments: Mapping[str, Any], tag: str
) -> list[dict[str, Any]]:
    """Both requests of a base model whose first reply is " Reason," at the tag, which is one
    token to the test's server.
    """
    prompt = written(row["conversation"])
    first = {"model": "m", "prompt": prompt, **arguments}
    if not tag:
        return [first]
    left = arguments["max_tokens"] - 1
    second = {**first, "prompt": f"{prompt} Reason,{tag}", "max_tokens": left}
    return [{**first, "stop": [tag]}, second]


def _of_twin(
    row: Mapping[str, Any], arguments: Mapping[str, Any], tag: str, answer: str
) -> list[dict[str, Any]]:
    """The first request, and the text whose end is scored."""
    prompt = written(row["conversation"])
    first = {"model": "m", "prompt": prompt, **arguments, "stop": [tag]}
    return [
        first,
        {"model": "m", "prompt": f"{prompt} Reason,{tag}{answer}", "echo": True},
    ]


@needs_golden
def test_every_recorded_twin_scores_the_recorded_label_behind_the_recorded_conversation(
    tmp_path: Path,
) -> None:
    """By messages, as local models are asked."""
    compared = 0
    for place, (task, line, own, examples) in enumerate(recorded()):
        if not task["task"].endswith("-logprobs") or line["form"] == "base":
            continue
        made = loaded(tmp_path / str(place), task, line["form"], own, examples)
        tag = task["here"]["prompt_template"]["answer_tag"]
        for index, row in enumerate(own):
            for at, behind in ((tag, f" Reason,{tag}"), ("", " Reason,")):
                requests: list[Any] = []

                async def ask(
                    role: str,
                    request: Request,
                    at: str = at,
                    found: list[Any] = requests,
                ) -> Response:
                    found.append(request)
                    if isinstance(request, LogLikelihood):
                        return Response(log_likelihood=-1.0)
                    return Response(" Reason,", finish_reason="stop", stopped_at=at)

                asyncio.run(made.strategy(made.samples[index], ask, 0))
                first, scored = requests
                arguments, _ = task["gen"]["instruct"]
                told = [turn.as_dict() for turn in first.prompt]
                assert told == row["conversation"]
                assert (first.max_tokens, first.seed, first.stop) == (
                    arguments["max_tokens"],
                    arguments["seed"],
                    (tag,),
                )
                assert [turn.as_dict() for turn in scored.context] == [
                    *told,
                    {"role": "assistant", "content": behind},
                ]
                assert scored.continuation == line["answers_first"][index]
                compared += 1
    assert compared > 60


# -- replies that end without the tag
# -------------------------------------------------------------------------------------


def small(root: Path, *, base: bool, twin: bool) -> Task:
    """One small task, published."""
    place = root / "seahelm_tasks" / "mine"
    write(place / "id.jsonl", rows(4))
    config = entry("mine", {"id": spoken("mine", "id", example_filepath=None)})
    if twin:
        config |= {
            "metric_file": "src/metrics/logprob_metric.py", "metric_class": "LogProbMetric", "use_logprobs": "true",
            "metric": "average_cumulative_probabilities",
        }  # fmt: skip
    write(place / "config.yaml", {"mine": config})
    write(root / "seahelm_tasks" / "constants.yaml", {"few_shot_stop_tokens": ["\n\n"]})
    settings = {"task_root": str(root), "scoring": "published", "base_model": base}
    (made,) = load_tasks("sea-helm:mine", dialect=settings, chat=not base)
    return made


def answered(task: Task, replies: Sequence[Response]) -> tuple[Answer, list[Any]]:
    """The answer to the first sample with these replies, and the requests."""
    requests: list[Any] = []

    async def ask(role: str, request: Request) -> Response:
        requests.append(request)
        return replies[len(requests) - 1]

    return asyncio.run(task.strategy(task.samples[0], ask, 0)), requests


@pytest.mark.parametrize(
    ("first", "behind"),
    [
        (Response(" I am sure", finish_reason="stop", stopped_at=""), " I am sure"),
        (
            Response(" I am sure\n", finish_reason="stop", stopped_at="Jawaban:"),
            " I am sure\nJawaban:",
        ),
        (
            Response(" I am sure", finish_reason="stop", stopped_at="Jawaban:"),
            " I am sureJawaban:",
        ),
        # nothing says at what it ended
        (Response(" I am sure", finish_reason="stop"), " I am sureJawaban:"),
        (Response("", finish_reason="stop", stopped_at=""), ""),
    ],
)
def test_a_reply_is_gone_on_from_as_it_ended(
    tmp_path: Path, first: Response, behind: str
) -> None:
    twin = small(tmp_path / "twin", base=False, twin=True)
    answer, asked = answered(twin, [first, Response(log_likelihood=-0.5)])
    context = asked[1].context
    assert context[len(asked[0].prompt) :] == (
        () if not behind else (context[-1],)
    ) and (not behind or (context[-1].role, context[-1].text) == ("assistant", behind))
    assert (asked[1].continuation, answer.log_likelihoods) == (" A", (-0.5,))
    base = small(tmp_path / "base", base=True, twin=False)
    second = Response(" A", finish_reason="stop")
    answer, asked = answered(base, [first, second])
    assert asked[1].prompt == f"{asked[0].prompt}{behind}"
    score = base.scorers[0].function(base.samples[0], answer)
    assert isinstance(score, Score)
    # SEA-HELM reads its labels in the text of both: without the tag the whole text is no label.
    assert score.value == float("Jawaban:" in behind or behind == "")


def test_a_reply_that_was_cut_is_kept(tmp_path: Path) -> None:
    cut = Response(" I am", finish_reason="length", usage=Usage(5, 8))
    for task in (
        small(tmp_path / "twin", base=False, twin=True),
        small(tmp_path / "base", base=True, twin=False),
    ):
        answer, asked = answered(task, [cut])
        assert (len(asked), answer.text, answer.log_likelihoods) == (1, " I am", ())
    base = small(tmp_path / "full", base=True, twin=False)
    used_up = Response(
        " I am", finish_reason="stop", stopped_at="Jawaban:", usage=Usage(5, 8)
    )
    assert len(answered(base, [used_up])[1]) == 1


def test_a_transformer_says_at_what_its_answer_ended(tmp_path: Path) -> None:
    pytest.importorskip("torch").set_num_threads(1)
    pytest.importorskip("transformers")
    folder = make_tiny_model(tmp_path / "tiny", "llama", chat=True)
    model = open_model(f"hf/{folder}", {"dtype": "float32"})
    whole = _generated(model, ())
    assert whole.stopped_at is None
    ended = _generated(model, (whole.text[3:5],))
    assert ended.stopped_at == whole.text[3:5]
    assert ended.text == whole.text[: whole.text.index(whole.text[3:5])]
    assert _generated(model, ("no such text",)).stopped_at == ""


def _generated(model: Any, stop: tuple[str, ...]) -> Response:
    from evalwright.core.requests import Generate

    model.load()
    ((_, found),) = model.answer_batch(
        [Generate("Two and two", max_tokens=12, stop=stop)]
    )
    assert isinstance(found, Response)
    return found


@pytest.mark.parametrize(
    ("fields", "stopped_at"),
    [
        ({"stop_reason": "Jawaban:"}, "Jawaban:"),
        ({"stop_reason": None}, ""),
        ({"stop_reason": 128009}, ""),
        ({"matched_stop": "Jawaban:"}, "Jawaban:"),
        ({"matched_stop": 2}, ""),
        ({"stop_reason": "end_turn"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_servers_say_at_what_an_answer_ended(
    fields: Mapping[str, Any], stopped_at: str | None, stream: bool
) -> None:
    from evalwright.core.requests import Generate, Message

    def edited(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        reply["choices"][0] |= fields
        return reply

    with serving(lambda prompt: "Well", edit=edited) as server:
        for interface in ("chat", "completions"):
            model: Any = open_model(
                "vllm/m",
                {"base_url": server.url, "interface": interface, "stream": stream},
            )
            prompt = (Message("user", "Q"),) if interface == "chat" else "Q"
            request = Generate(prompt, stop=("Jawaban:",))
            found = asyncio.run(_closing(model.answer(request), model))
            assert found.stopped_at == stopped_at
