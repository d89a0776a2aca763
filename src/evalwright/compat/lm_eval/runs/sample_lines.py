"""Converts sample records to lines of `samples_<task>_<time>.jsonl`.

There is one line for each sample and filter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from evalwright import Answer, Message, SampleRecord
from evalwright.compat.lm_eval.runs.names import (
    COUNT_UNITS,
    digest,
    doc_digest,
)
from evalwright.compat.lm_eval.tasks.estimates import FILTERED, NAMED
from evalwright.compat.lm_eval.tasks.options import DIALECT
from evalwright.compat.lm_eval.tasks.row_requests import (
    restored_prompt,
    stringify,
)
from evalwright.extend import Prompt

GENERATE, CHOOSE, CONTINUE, ROLLING = [
    "generate_until",
    "multiple_choice",
    "loglikelihood",
    "loglikelihood_rolling",
]
PAIRED = {"macro-f1", "balanced-accuracy"}
"""Metrics over classes, whose items are pairs (gold class, predicted class)."""


Render = Callable[[Sequence[Message]], str]
"""Turns messages into the text that a model got."""


def as_json(messages: Sequence[Message]) -> str:
    """Serialise messages as lm_eval's chat backends get them."""
    plain = [{"role": message.role, "content": message.text} for message in messages]
    return json.dumps(plain, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ExportedMetric:
    """One metric of a task: `name,filter` in lm_eval; label, kind and scorer here.

    theirs: the scorer is one of lm_eval's filters, which keeps every metric as a part of its score.
    """

    name: str
    filter: str
    label: str
    kind: str
    scorer: str
    theirs: bool = False


class Rows:
    """Builds the lines of one task.

    task: its record in `run.json`. render: turns messages into text.
    """

    def __init__(
        self,
        task: Mapping[str, Any],
        metrics: Sequence[ExportedMetric],
        render: Render = as_json,
    ) -> None:
        definition = task["definition"]
        self.render = render
        self.metrics = metrics
        pipelines = [
            scorer["name"]
            for scorer in task["scorers"]
            if scorer.get("kind") == DIALECT
        ]
        self.filters = tuple(
            dict.fromkeys([*(metric.filter for metric in metrics), *pipelines])
        )
        self.answer = definition.get("answer") or {}
        self.theirs = definition.get("dialect") == DIALECT
        self.rolling = is_rolling(definition)
        self.generation = definition.get("generation") or generation(self.answer)
        config = definition.get("config") or {}
        prompt = definition.get("prompt") or {}
        self.repeats = (
            int(config.get("repeats") or 1) if "generation" in definition else 1
        )
        chat = prompt.get("format") == "chat" and not prompt.get("prefill")
        delimiter = (
            config.get("target_delimiter") if self.theirs else prompt.get("delimiter")
        )
        self.delimiter = "" if chat else str(" " if delimiter is None else delimiter)

    def lines(self, draws: Sequence[SampleRecord]) -> list[dict[str, Any]]:
        """Build one line per filter from a sample's draws; no lines if nothing was scored."""
        answered = [
            record
            for record in draws
            if record.answer is not None and record.failure is None
        ]
        if not answered or not any(record.scores for record in answered):
            return []
        request_fields = self._request(answered)
        lines = []
        for name in self.filters:
            metrics_by_name = {
                metric.name: metric for metric in self.metrics if metric.filter == name
            }
            filtered = self._filtered(
                name, list(metrics_by_name), answered, request_fields
            )
            items = {
                metric: self._item(metrics_by_name[metric], answered)
                for metric in filtered["metrics"]
            }
            # In the order of their lines, so that the files read alike.
            lines.append(
                {**request_fields, **filtered, **_hashes(request_fields), **items}
            )
        return lines

    def failed_line(self, record: SampleRecord) -> dict[str, Any]:
        """Build the line of a sample without a score, for the failures file."""
        failure = record.failure or next(iter(record.score_failures.values()), None)
        doc = self._doc(record)
        target = _target(record)
        line = {
            "doc_id": self._doc_id(record),
            "doc": doc,
            "target": target,
            "doc_hash": doc_digest(doc),
        }
        return {**line, "failure": failure.as_dict() if failure else None}

    def _request(self, draws: Sequence[SampleRecord]) -> dict[str, Any]:
        first = draws[0]
        assert first.answer is not None
        extras = _import_extras(first)
        doc = self._doc(first)
        target = _target(first)
        recorded_arguments = extras.get("arguments") or (
            first.answer.strategy.get("arguments") if self.theirs else None
        )
        arguments = (
            self._restore_arguments(recorded_arguments, first.answer)
            if recorded_arguments
            else self._arguments(first, first.answer)
        )
        responses_by_draw = [
            responses_by_request(record, self.repeats, self.rolling) for record in draws
        ]
        resps: list[list[Any]] = []
        for by_request in responses_by_draw:
            resps += [[] for _ in range(len(by_request) - len(resps))]
            for index, responses in enumerate(by_request):
                resps[index] += responses
        return {
            "doc_id": self._doc_id(first),
            "doc": doc,
            "target": target,
            "arguments": {
                f"gen_args_{i}": {
                    f"arg_{j}": argument for j, argument in enumerate(request)
                }
                for i, request in enumerate(arguments)
            },
            "resps": extras.get("resps", resps),
        }

    def _doc_id(self, record: SampleRecord) -> int:
        """The row's number in the dataset, which is the sample's id in a task of lm_eval's."""
        return (
            int(record.sample.id)
            if self.theirs and record.sample.id.isdecimal()
            else record.index
        )

    def _doc(self, record: SampleRecord) -> Any:
        sample = record.sample
        if self.theirs and "doc" in sample.metadata:
            return sample.metadata["doc"]
        # The same columns in every row: viewers read the file as a table.
        return {
            "id": sample.id,
            "input": sample.input,
            "targets": list(sample.targets),
            "choices": list(sample.choices),
            "gold": list(sample.gold),
            "passages": [
                {"id": passage.id, "text": passage.text} for passage in sample.passages
            ],
            "cluster": sample.cluster,
            "metadata": dict(sample.metadata),
        }

    def _arguments(self, record: SampleRecord, answer: Answer) -> list[list[Any]]:
        answer_type = output_type(record, answer, self.rolling)
        prompt = self._text(answer.prompt)
        if answer_type == CHOOSE:
            letters = self.answer.get("mode") == "letter"
            options = ascii_uppercase if letters else record.sample.choices
            count = len(record.sample.choices)
            return [[prompt, self.delimiter + option] for option in options[:count]]
        if answer_type == CONTINUE:
            # A task of theirs answers with the whole continuation.
            return [
                [prompt, answer.text if self.theirs else self.delimiter + answer.text]
            ]
        return (
            [[answer.text]]
            if answer_type == ROLLING
            else [[prompt, dict(self.generation)]]
        )

    def _restore_arguments(
        self, recorded: Sequence[Sequence[Any]], answer: Answer
    ) -> list[list[Any]]:
        """Restore recorded arguments: the prompt, recorded once in the answer, replaces None."""

        def restore(argument: Any) -> Any:
            if argument is None:
                return self._text(answer.prompt)
            return (
                self._text(restored_prompt(argument))
                if isinstance(argument, list)
                else argument
            )

        return [list(map(restore, request)) for request in recorded]

    def _text(self, prompt: Prompt) -> str:
        return prompt if isinstance(prompt, str) else self.render(prompt)

    def _filtered(
        self,
        name: str,
        names: list[str],
        draws: Sequence[SampleRecord],
        request_fields: Mapping[str, Any],
    ) -> dict[str, Any]:
        score = draws[0].scores.get(name) if self.theirs else None
        noted: Mapping[str, Any] = (score.item or {}) if score else {}
        filtered = (
            _import_extras(draws[0])
            .get("filtered_resps", {})
            .get(name, noted.get(FILTERED))
        )
        return {
            "filtered_resps": _scored_responses(draws, request_fields)
            if filtered is None
            else filtered,
            "filter": name,
            "metrics": [
                metric for metric in noted.get(NAMED, names) if metric in names
            ],
        }

    def _item(self, metric: ExportedMetric, draws: Sequence[SampleRecord]) -> Any:
        items = _import_extras(draws[0]).get("items", {}).get(metric.filter, {})
        if metric.theirs and metric.name in items:
            return items[metric.name]
        scores = [
            record.scores[metric.scorer]
            for record in draws
            if metric.scorer in record.scores
        ]
        if not scores:
            return None
        unit = COUNT_UNITS.get(metric.name)
        if unit and {"log_likelihood", unit} <= scores[0].parts.keys():
            return [
                _mean(score.parts.get(part_name) for score in scores)
                for part_name in ("log_likelihood", unit)
            ]
        if metric.kind in PAIRED and {"gold", "predicted"} <= scores[0].parts.keys():
            return [scores[0].parts["gold"], scores[0].parts["predicted"]]
        if metric.theirs:
            # Items that are no numbers stand in `item` where the score has one.
            item = (scores[0].item or {}).get(
                metric.name, scores[0].parts.get(metric.name)
            )
            return _as_array(item) if metric.name == "brier_score" else item
        return _mean(score.value for score in scores)


def _scored_responses(
    draws: Sequence[SampleRecord], request_fields: Mapping[str, Any]
) -> list[Any]:
    """What was scored: answers without reasoning, or the first response to each request."""
    first = draws[0]
    assert first.answer is not None
    if (
        output_type(first, first.answer) == GENERATE
        and "doc" not in first.sample.metadata
    ):
        texts = [record.answer.text for record in draws if record.answer]
        return texts if len(texts) == 1 else [texts]
    return first_responses(request_fields["resps"])


def _hashes(line: Mapping[str, Any]) -> dict[str, str]:
    requests = list(line["arguments"].values())
    prompt = str(requests[0].get("arg_0", "")) if requests else ""
    return {
        "doc_hash": doc_digest(line["doc"]),
        "prompt_hash": digest(prompt),
        "target_hash": digest(line["target"]),
    }


def is_rolling(definition: Mapping[str, Any]) -> bool:
    """Whether a task scores whole texts."""
    if definition.get("dialect") == DIALECT:
        return bool((definition.get("config") or {}).get("output_type") == ROLLING)
    return bool((definition.get("answer") or {}).get("mode") == "perplexity")


def output_type(record: SampleRecord, answer: Answer, rolling: bool = False) -> str:
    """Infer lm_eval's output type of an answer from its responses."""
    if rolling:
        return ROLLING
    if not any(response.log_likelihood is not None for response in answer.responses):
        return GENERATE
    if record.sample.choices and len(answer.log_likelihoods) == len(
        record.sample.choices
    ):
        return CHOOSE
    return CONTINUE if answer.responses[0].is_greedy is not None else ROLLING


def responses_by_request(
    record: SampleRecord, repeats: int = 1, rolling: bool = False
) -> list[list[Any]]:
    """A record's responses by request, as text.

    Each is a text, a number (rolling), or a pair (log-likelihood, is greedy). repeats: responses to
    each request, unless the record says otherwise.
    """
    assert record.answer is not None
    responses = record.answer.responses
    values: list[Any] = []
    for response in responses:
        if response.log_likelihood is None:
            values.append(response.text)
        elif rolling or response.is_greedy is None:
            values.append(stringify(response.log_likelihood))
        else:
            values.append(stringify([response.log_likelihood, response.is_greedy]))
    per_request = _import_extras(record).get("repeats", repeats)
    return [values[i : i + per_request] for i in range(0, len(values), per_request)]


def first_responses(resps: Any) -> list[Any]:
    """The first response to each request."""
    return [
        responses[0] if isinstance(responses, list) and responses else responses
        for responses in resps
    ]


def _as_array(item: Any) -> Any:
    """Write the probabilities in a pair (gold class, probabilities) as numpy prints an array."""
    if (
        not isinstance(item, list | tuple)
        or len(item) != 2
        or not isinstance(item[1], list | tuple)
    ):
        return item
    import numpy as np

    return [item[0], str(np.array(item[1]))]


def generation(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Generation settings in lm_eval's terms, from `answer` in a task's definition."""
    temperature = answer.get("temperature") or 0.0
    settings = {
        "until": list(answer.get("stop") or ()),
        "do_sample": temperature > 0,
        "temperature": temperature,
    }
    if answer.get("max_tokens") is not None:
        settings["max_gen_toks"] = answer["max_tokens"]
    if answer.get("top_p") is not None:
        settings["top_p"] = answer["top_p"]
    return settings


def _import_extras(record: SampleRecord) -> Mapping[str, Any]:
    """What the import kept in the sample's metadata because a record cannot hold it."""
    return dict(record.sample.metadata.get("lm_eval", {}))


def _target(record: SampleRecord) -> str:
    extras = _import_extras(record)
    if "target" in extras:
        return str(extras["target"])
    sample = record.sample
    listed = list(sample.gold) if sample.choices else list(sample.targets)
    if len(listed) == 1:
        return str(listed[0])
    return str(listed) if listed else ""


def _mean(values: Iterable[float | None]) -> float:
    present = [value for value in values if value is not None]
    return sum(present) / len(present)
