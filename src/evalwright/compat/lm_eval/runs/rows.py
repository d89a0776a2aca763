"""Records of samples as lines of `samples_<task>_<time>.jsonl`, one for each sample and filter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from evalwright.compat.lm_eval.runs.names import COUNTED, digest, doc_digest, spelled
from evalwright.compat.lm_eval.tasks.estimates import FILTERED, NAMED
from evalwright.compat.lm_eval.tasks.options import DIALECT
from evalwright.core.requests import Message, Prompt, prompt_from
from evalwright.core.samples import Answer, SampleRecord

GENERATE, CHOOSE, CONTINUE, ROLLING = [
    "generate_until",
    "multiple_choice",
    "loglikelihood",
    "loglikelihood_rolling",
]
PAIRED = {"macro-f1", "balanced-accuracy"}
"""Metrics over classes, of which an item is the pair (right class, class given)."""


Render = Callable[[Sequence[Message]], str]
"""Messages as the text that a model got."""


def as_json(messages: Sequence[Message]) -> str:
    """Messages as JSON, as their chat backends get them."""
    plain = [{"role": message.role, "content": message.text} for message in messages]
    return json.dumps(plain, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ExportedMetric:
    """One metric of a task: `name,filter` there; label, kind and scorer here.

    theirs: the scorer is one of their filters, which keeps every metric as a part of its score.
    """

    name: str
    filter: str
    label: str
    kind: str
    scorer: str
    theirs: bool = False


class Rows:
    """Makes the lines of one task from its records. task: the task's part of `run.json`; render:
    messages as text.
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
            one["name"] for one in task["scorers"] if one.get("kind") == DIALECT
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
        given = (
            config.get("target_delimiter") if self.theirs else prompt.get("delimiter")
        )
        self.delimiter = "" if chat else str(" " if given is None else given)

    def lines(self, draws: Sequence[SampleRecord]) -> list[dict[str, Any]]:
        """The lines of one sample, of all its draws, by filter; none where nothing was scored."""
        answered = [
            record
            for record in draws
            if record.answer is not None and record.failure is None
        ]
        if not answered or not any(record.scores for record in answered):
            return []
        whole = self._request(answered)
        out = []
        for name in self.filters:
            found = {
                metric.name: metric for metric in self.metrics if metric.filter == name
            }
            filtered = self._filtered(name, list(found), answered, whole)
            items = {
                metric: self._item(found[metric], answered)
                for metric in filtered["metrics"]
            }
            # In the order of their lines, so that the files read alike.
            out.append({**whole, **filtered, **_hashes(whole), **items})
        return out

    def failed_line(self, record: SampleRecord) -> dict[str, Any]:
        """What is kept of a sample without a score, in a file of its own."""
        found = record.failure or next(iter(record.score_failures.values()), None)
        doc = self._doc(record)
        target = _target(record)
        line = {
            "doc_id": self._place(record),
            "doc": doc,
            "target": target,
            "doc_hash": doc_digest(doc),
        }
        return {**line, "failure": found.as_dict() if found else None}

    def _request(self, draws: Sequence[SampleRecord]) -> dict[str, Any]:
        first = draws[0]
        assert first.answer is not None
        kept = _kept(first)
        doc = self._doc(first)
        target = _target(first)
        asked = kept.get("arguments") or (
            first.answer.strategy.get("arguments") if self.theirs else None
        )
        arguments = (
            self._restored(asked, first.answer)
            if asked
            else self._arguments(first, first.answer)
        )
        made = [responses_of(record, self.repeats, self.rolling) for record in draws]
        requests = range(max(map(len, made)))
        resps = [
            [value for one in made if i < len(one) for value in one[i]]
            for i in requests
        ]
        return {
            "doc_id": self._place(first),
            "doc": doc,
            "target": target,
            "arguments": {
                f"gen_args_{i}": {f"arg_{j}": value for j, value in enumerate(part)}
                for i, part in enumerate(arguments)
            },
            "resps": kept.get("resps", resps),
        }

    def _place(self, record: SampleRecord) -> int:
        """The row's number in the data, which is the id of a sample of theirs."""
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
        kind = output_type(record, answer, self.rolling)
        prompt = self._text(answer.prompt)
        if kind == CHOOSE:
            letters = self.answer.get("mode") == "letter"
            options = ascii_uppercase if letters else record.sample.choices
            count = len(record.sample.choices)
            return [[prompt, self.delimiter + option] for option in options[:count]]
        if kind == CONTINUE:
            # A task of theirs answers with the whole continuation.
            return [
                [prompt, answer.text if self.theirs else self.delimiter + answer.text]
            ]
        return [[answer.text]] if kind == ROLLING else [[prompt, dict(self.generation)]]

    def _restored(
        self, kept: Sequence[Sequence[Any]], answer: Answer
    ) -> list[list[Any]]:
        """Recorded arguments: the prompt is kept once, in the answer, and None stands in its place."""

        def whole(value: Any) -> Any:
            if value is None:
                return self._text(answer.prompt)
            return self._text(prompt_from(value)) if isinstance(value, list) else value

        return [list(map(whole, part)) for part in kept]

    def _text(self, prompt: Prompt) -> str:
        return prompt if isinstance(prompt, str) else self.render(prompt)

    def _filtered(
        self,
        name: str,
        names: list[str],
        draws: Sequence[SampleRecord],
        whole: Mapping[str, Any],
    ) -> dict[str, Any]:
        score = draws[0].scores.get(name) if self.theirs else None
        noted: Mapping[str, Any] = (score.item or {}) if score else {}
        taken = _kept(draws[0]).get("filtered_resps", {}).get(name, noted.get(FILTERED))
        return {
            "filtered_resps": _taken(draws, whole) if taken is None else taken,
            "filter": name,
            "metrics": [one for one in noted.get(NAMED, names) if one in names],
        }

    def _item(self, metric: ExportedMetric, draws: Sequence[SampleRecord]) -> Any:
        items = _kept(draws[0]).get("items", {}).get(metric.filter, {})
        if metric.theirs and metric.name in items:
            return items[metric.name]
        scores = [
            record.scores[metric.scorer]
            for record in draws
            if metric.scorer in record.scores
        ]
        if not scores:
            return None
        unit = COUNTED.get(metric.name)
        if unit and {"log_likelihood", unit} <= scores[0].parts.keys():
            return [
                _mean(score.parts.get(part) for score in scores)
                for part in ("log_likelihood", unit)
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


def _taken(draws: Sequence[SampleRecord], whole: Mapping[str, Any]) -> list[Any]:
    """What was scored: the answers' texts without their reasoning, or the first response to each
    request.
    """
    first = draws[0]
    assert first.answer is not None
    if (
        output_type(first, first.answer) == GENERATE
        and "doc" not in first.sample.metadata
    ):
        texts = [record.answer.text for record in draws if record.answer]
        return texts if len(texts) == 1 else [texts]
    return first_responses(whole["resps"])


def _hashes(line: Mapping[str, Any]) -> dict[str, str]:
    requests = list(line["arguments"].values())
    prompt = str(requests[0].get("arg_0", "")) if requests else ""
    return {
        "doc_hash": doc_digest(line["doc"]),
        "prompt_hash": digest(prompt),
        "target_hash": digest(line["target"]),
    }


def is_rolling(definition: Mapping[str, Any]) -> bool:
    """Whether a task's definition says that whole texts are scored."""
    if definition.get("dialect") == DIALECT:
        return bool((definition.get("config") or {}).get("output_type") == ROLLING)
    return bool((definition.get("answer") or {}).get("mode") == "perplexity")


def output_type(record: SampleRecord, answer: Answer, rolling: bool = False) -> str:
    """Their word for how an answer was made, as its responses show it. rolling: see `is_rolling`."""
    if rolling:
        return ROLLING
    if not any(response.log_likelihood is not None for response in answer.responses):
        return GENERATE
    if record.sample.choices and len(answer.log_likelihoods) == len(
        record.sample.choices
    ):
        return CHOOSE
    return CONTINUE if answer.responses[0].is_greedy is not None else ROLLING


def responses_of(
    record: SampleRecord, repeats: int = 1, rolling: bool = False
) -> list[list[Any]]:
    """A record's responses by request, each asked `repeats` times where the record does not say:
    texts, numbers (rolling), or pairs of log-likelihood and whether it is greedy, all as text.
    """
    assert record.answer is not None
    responses = record.answer.responses
    values: list[Any] = []
    for response in responses:
        if response.log_likelihood is None:
            values.append(response.text)
        elif rolling or response.is_greedy is None:
            values.append(spelled(response.log_likelihood))
        else:
            values.append(spelled([response.log_likelihood, response.is_greedy]))
    several = _kept(record).get("repeats", repeats)
    return [values[i : i + several] for i in range(0, len(values), several)]


def first_responses(resps: Any) -> list[Any]:
    """The first response to each request."""
    return [one[0] if isinstance(one, list) and one else one for one in resps]


def _as_array(item: Any) -> Any:
    """The pair of a right class and probabilities, which they write as an array's text."""
    if (
        not isinstance(item, list | tuple)
        or len(item) != 2
        or not isinstance(item[1], list | tuple)
    ):
        return item
    import numpy as np

    return [item[0], str(np.array(item[1]))]


def generation(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Generation settings in their words, from the part `answer` of a task's definition."""
    temperature = answer.get("temperature") or 0.0
    out = {
        "until": list(answer.get("stop") or ()),
        "do_sample": temperature > 0,
        "temperature": temperature,
    }
    if answer.get("max_tokens") is not None:
        out["max_gen_toks"] = answer["max_tokens"]
    if answer.get("top_p") is not None:
        out["top_p"] = answer["top_p"]
    return out


def _kept(record: SampleRecord) -> Mapping[str, Any]:
    """What an import kept of a line that a record has no place for."""
    return dict(record.sample.metadata.get("lm_eval", {}))


def _target(record: SampleRecord) -> str:
    kept = _kept(record)
    if "target" in kept:
        return str(kept["target"])
    sample = record.sample
    listed = list(sample.gold) if sample.choices else list(sample.targets)
    return str(listed[0]) if len(listed) == 1 else str(listed) if listed else ""


def _mean(values: Iterable[float | None]) -> float:
    found = [value for value in values if value is not None]
    return sum(found) / len(found)
