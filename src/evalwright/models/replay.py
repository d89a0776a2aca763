"""`replay/<file>`: answers from recorded responses, to repeat or score a run without its model.

A recording is one of

- a run: its folder, or its `samples.jsonl`, whose prompts and responses are taken as they are;
- any JSONL file with rows of `{"prompt": ..., "response": "..."}` or `{"input": ..., "response":
  "..."}`, and for likelihoods `{"prompt": ..., "continuation": ..., "log_likelihood": ...}` or
  `{"text": ..., "log_likelihood": ...}`.

A request is found by its prompt (sampling parameters are ignored) and, for repeated samples, by its
draw: in a plain file the n-th row with the same prompt is draw n. A request without a recording is
rejected. Memory holds a hash and a position for each response; texts are read from the file when
they are needed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from string import ascii_uppercase
from typing import Any, BinaryIO, NamedTuple

from evalwright.bounded import from_json
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    ModelError,
    Rejected,
    RequestError,
)
from evalwright.core.file_hashes import file_state
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import (
    Ability,
    Generate,
    LogLikelihood,
    Message,
    Prompt,
    Request,
    RollingLogLikelihood,
    prompt_payload,
)
from evalwright.core.responses import Response
from evalwright.models.model_interface import EVERY_OPTION, LocalModel, fingerprint_of
from evalwright.models.reply_mappings import response_from_mapping

Subject = tuple[str, Any, str]
"""What a response answers: kind, prompt as JSON, continuation.

The kind is "generate", "input", "log-likelihood" or "rolling".
"""

TOOL_CALLS = "tool_calls"
"""The key of a record's `strategy` that has the calls that were carried out."""
_INPUT_LINES = 60
"""A recorded `input` is looked for among this many lines at the end of a prompt."""


class ReplayModel(LocalModel):
    """Answers from a file of recorded responses.

    Raises:
        ConfigurationError: the file is missing or not a recording; the message names the row.
    """

    heavy = False
    carries = EVERY_OPTION

    def __init__(self, path: str, *, revision: str | None = None) -> None:
        # The registry takes what follows a last '@' for a revision; here it is part of the path.
        written = path if revision is None else f"{path}@{revision}"
        self.name = f"replay/{written}"
        location = Path(written).expanduser()
        self._path = location / "samples.jsonl" if location.is_dir() else location
        if not self._path.is_file():
            raise ConfigurationError(
                f"There is no recording at {self._path}: give a run's folder, its"
                " samples.jsonl, or a JSONL file of responses."
            )
        self._file: BinaryIO | None = None
        self._rows = 0
        # By key: the row's offset, and which of its responses it is.
        self._places: dict[bytes, tuple[int, int]] = {}
        # By the first line of recorded inputs of several lines, in how many lines.
        self._line_counts: dict[str, set[int]] = {}
        kinds = self._index()
        self._has_inputs = "input" in kinds
        self.abilities: frozenset[Ability] = frozenset(
            "generate" if kind == "input" else kind  # type: ignore[misc]
            for kind in kinds
        )
        self.fingerprint = fingerprint_of({"replay": self._content_hash})

    def _index(self) -> set[str]:
        """Read the file once, and note the position of each response.

        Returns:
            The kinds of requests that the responses answer.
        """
        digest = blake2b(digest_size=16)
        offset = 0
        kinds: set[str] = set()
        repeated: dict[bytes, int] = {}
        try:
            with self._path.open("rb") as file:
                self._state = file_state(self._path)
                for number, line in enumerate(file, 1):
                    digest.update(line)
                    if line.strip():
                        self._rows += 1
                        for slot, (subject, draw, _) in enumerate(
                            self._row(line, number)
                        ):
                            self._note_lines(subject)
                            key = _key_of(subject, draw or 0)
                            if draw is None and key in self._places:
                                repeated[key] = repeated.get(key, 0) + 1
                                key = _key_of(subject, repeated[key])
                            self._places.setdefault(key, (offset, slot))
                            kinds |= {
                                subject[0],
                                *(["chat"] if isinstance(subject[1], list) else []),
                            }
                    offset += len(line)
        except OSError as error:
            raise ConfigurationError(
                f"The recording {self._path} cannot be read: {error.strerror}."
            ) from None
        if not self._places:
            raise ConfigurationError(f"The recording {self._path} has no responses.")
        self._content_hash = digest.hexdigest()
        return kinds

    def _note_lines(self, subject: Subject) -> None:
        """Remember how an input of several lines begins, so that a prompt with it is recognised."""
        if subject[0] == "input" and "\n" in subject[1]:
            first, *others = subject[1].split("\n")
            self._line_counts.setdefault(first.strip(), set()).add(1 + len(others))

    def _row(self, line: bytes, number: int) -> list[_Recorded]:
        where = f"{self._path}, row {number}"
        try:
            row = from_json(line)
        except ValueError as error:
            raise ConfigurationError(f"{where} is not valid JSON: {error}.") from None
        try:
            return list(_recorded(row))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(
                f"{where} is not a recorded response: {error}."
            ) from None

    def describe(self) -> dict[str, Any]:
        """Describe the model: the file's name and content hash, and how much it holds."""
        return {
            **super().describe(),
            "file": self._path.name,
            "content_hash": self._content_hash,
            "rows": self._rows,
            "responses": len(self._places),
            "note": "recorded responses",
        }

    def load(self) -> None:
        """Open the file."""
        if self._file is None:
            self._file = self._path.open("rb")

    def unload(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Answer one request after another, in order."""
        self.load()
        for index, request in enumerate(requests):
            try:
                yield index, self._answer(request)
            except RequestError as error:
                yield index, error.as_failure()

    def _answer(self, request: Request) -> Response:
        draw = request.draw if isinstance(request, Generate) else 0
        for subject in self._subjects(request):
            row_place = self._places.get(_key_of(subject, draw))
            if row_place is not None:
                return self._read(row_place, subject)
        raise Rejected(
            f"{self._path.name} has no recorded response for {_describe_request(request)}."
        )

    def _subjects(self, request: Request) -> Iterator[Subject]:
        """Yield the subjects under which the recording may have it, the likeliest first."""
        if isinstance(request, Generate):
            for form in _forms(request.prompt):
                yield ("generate", prompt_payload(form), "")
            if self._has_inputs:
                for text in _possible_inputs(request.prompt, self._line_counts):
                    yield ("input", text, "")
        elif isinstance(request, LogLikelihood):
            for form in _forms(request.context):
                continuation = request.continuation.strip()
                yield ("log-likelihood", prompt_payload(form), continuation)
        elif isinstance(request, RollingLogLikelihood):
            yield ("rolling", request.text, "")

    def _read(self, place: tuple[int, int], subject: Subject) -> Response:
        assert self._file is not None
        offset, slot = place
        self._file.seek(offset)
        try:
            recorded = list(_recorded(from_json(self._file.readline())))[slot]
        except (ValueError, IndexError, KeyError, TypeError):
            recorded = None
        if (
            recorded is None
            or recorded.subject != subject
            or file_state(self._path) != self._state
        ):
            raise ModelError(
                f"{self._path.name} has changed since it was opened. Run again."
            )
        return recorded.response


def _forms(prompt: Prompt) -> Iterator[Prompt]:
    """Yield the prompt, then the same as text or as messages if it is a single user message."""
    yield prompt
    if isinstance(prompt, str):
        yield (Message("user", prompt),)
    elif len(prompt) == 1 and prompt[0].role == "user":
        yield prompt[0].text


def _possible_inputs(
    prompt: Prompt, line_counts: Mapping[str, Collection[int]]
) -> Iterator[str]:
    """Yield texts in a rendered prompt that may be the row's input.

    They are the whole prompt, the last user message, then lines from the end, each also without a
    label such as "Question:", and the lines that begin as a recorded input of several lines does.

    Args:
        prompt: the prompt.
        line_counts: by the first line of an input of several lines, how many lines it may have.
    """
    if isinstance(prompt, str):
        texts = [prompt]
    else:
        texts = [turn.text for turn in reversed(prompt) if turn.role == "user"]
    for text in texts:
        yield text
        yield text.strip()
    for text in texts[:1]:
        for line in reversed(text.splitlines()[-_INPUT_LINES:]):
            yield line.strip()
            yield line.partition(":")[2].strip()
        if line_counts:
            yield from _inputs_of_lines(text.split("\n"), line_counts)


def _inputs_of_lines(
    lines: Sequence[str], line_counts: Mapping[str, Collection[int]]
) -> Iterator[str]:
    for line_index, line in enumerate(lines):
        for first in (line.lstrip(), line.partition(":")[2].lstrip()):
            for n_lines in sorted(line_counts.get(first.rstrip(), ()), reverse=True):
                yield "\n".join(
                    [first, *lines[line_index + 1 : line_index + n_lines]]
                ).strip()


def _describe_request(request: Request) -> str:
    if isinstance(request, Generate | LogLikelihood):
        prompt = request.prompt if isinstance(request, Generate) else request.context
        text = prompt if isinstance(prompt, str) else prompt[-1].text
        draw = (
            f" (draw {request.draw})"
            if isinstance(request, Generate) and request.draw
            else ""
        )
        after = (
            ""
            if isinstance(request, Generate)
            else f"'{request.continuation.strip()}' after "
        )
        return f"{after}the prompt that ends '{text[-60:]}'{draw}".replace("\n", " ")
    if isinstance(request, RollingLogLikelihood):
        return f"the text that begins '{request.text[:60]}'".replace("\n", " ")
    return f"a request of kind '{request.ability}'"


class _Recorded(NamedTuple):
    """A response in a row. If `draw` is None, rows with the same subject are counted."""

    subject: Subject
    draw: int | None
    response: Response


def _key_of(subject: Subject, draw: int) -> bytes:
    """Return a short hash of a request."""
    text = json.dumps([*subject, draw], ensure_ascii=False, separators=(",", ":"))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _recorded(row: Any) -> Iterator[_Recorded]:
    """Yield the responses in a row, in a fixed order.

    Raises:
        ValueError, KeyError, TypeError: the row is not a recording.
    """
    if not isinstance(row, Mapping):
        raise ValueError("it is not a JSON object")
    if "task" not in row or "scores" not in row:
        yield _from_plain_row(row)
    elif "responses" in row:
        yield from _from_sample_row(row)


def _from_sample_row(row: Mapping[str, Any]) -> Iterator[_Recorded]:
    """Yield the responses in a line of a run's samples.jsonl; a failed sample has none."""
    responses = [Response.from_dict(response) for response in row["responses"]]
    prompt = row["prompt"]
    scored = row.get("log_likelihoods", [])
    if not scored:
        for draw, response in _draws(row, len(responses)):
            yield _Recorded(("generate", prompt, ""), draw, responses[response])
        if "strategy" not in row or TOOL_CALLS in row["strategy"]:
            yield from _generated(prompt, responses, row["draw"])
        return
    answers = [_with_likelihood(*pair) for pair in zip(responses, scored, strict=True)]
    if "choices" not in row:
        yield _Recorded(
            ("log-likelihood", prompt, row["answer"].strip()), 0, answers[0]
        )
        if prompt == "":
            yield _Recorded(("rolling", row["answer"], ""), 0, answers[0])
        return
    # Options were compared by their texts or by their letters; the record does not say which, so
    # both are indexed.
    for names in (row["choices"], ascii_uppercase):
        for name, answer in zip(names, answers, strict=False):
            yield _Recorded(("log-likelihood", prompt, name.strip()), 0, answer)


def _draws(row: Mapping[str, Any], count: int) -> Iterator[tuple[int, int]]:
    """Yield the draw of each response of a strategy with one response for each draw.

    They are in order, except for the chosen one, which is last.
    """
    strategy = row.get("strategy") or {}
    draws = strategy.get("draws", [])
    chosen = strategy.get("chosen", 0)
    successful_draws = [
        index
        for index, draw_summary in enumerate(draws)
        if "failure" not in draw_summary and index != chosen
    ]
    if draws and len(successful_draws) + 1 == count:
        first = row["draw"] * (len(draws) + strategy.get("saved_draws", 0))
        yield from (
            (first + index, response)
            for response, index in enumerate([*successful_draws, chosen])
        )


def _generated(
    prompt: Any, responses: list[Response], draw: int
) -> Iterator[_Recorded]:
    """Yield the generated responses of a sample.

    They are one response to the prompt; or the replies of a conversation, each to the messages
    before it; or several draws.
    """
    last = len(responses) - 1
    ends = _places_of_replies(prompt, responses)
    if ends is None and last > 0:
        ends = _ends_of_prompts(prompt, responses)
    if ends is not None:
        for end, response in zip(ends, responses, strict=True):
            yield _Recorded(("generate", prompt[:end], ""), draw, response)
        return
    for index, response in enumerate(responses):
        yield _Recorded(
            ("generate", prompt, ""), draw * len(responses) + index, response
        )


def _places_of_replies(prompt: Any, responses: list[Response]) -> list[int] | None:
    """Return where the turn of each reply is in a conversation that has the last one, too.

    That is so where the last reply's calls were carried out, as where an agent submits. None if it
    is no such conversation.
    """
    if not responses or not responses[-1].tool_calls or not isinstance(prompt, list):
        return None
    places = [index for index, turn in enumerate(prompt) if turn[0] == "assistant"]
    places = places[max(0, len(places) - len(responses)) :]
    if len(places) != len(responses):
        return None
    for place, response in zip(places, responses, strict=True):
        _, content, *extras = prompt[place]
        calls = extras[0].get(TOOL_CALLS, []) if extras else []
        made = [call.as_dict() for call in response.tool_calls]
        if content != separate_reasoning(response).answer or calls != made:
            return None
    return places


def _ends_of_prompts(prompt: Any, responses: list[Response]) -> list[int] | None:
    """Return how many messages were sent for each response of a conversation.

    It is one if every reply but the last is an assistant's turn of the prompt: each followed by one
    question, or by results of tools. None if it is none.
    """
    if not isinstance(prompt, list):
        return None
    earlier = responses[:-1]
    places = [index for index, turn in enumerate(prompt) if turn[0] == "assistant"]
    places = places[max(0, len(places) - len(earlier)) :]
    has_results = any(turn[0] == "tool" for turn in prompt)
    alternating = [*range(len(prompt) - 2 * len(earlier), len(prompt), 2)]
    if len(places) != len(earlier) or not (has_results or places == alternating):
        return None
    for place, response in zip(places, earlier, strict=True):
        if prompt[place][1] != separate_reasoning(response).answer:
            return None
    return [*places, len(prompt)]


def _with_likelihood(response: Response, value: float) -> Response:
    if response.log_likelihood is not None:
        return response
    return Response.from_dict({**response.as_dict(), "log_likelihood": _number(value)})


def _from_plain_row(row: Mapping[str, Any]) -> _Recorded:
    if "log_likelihood" in row:
        greedy = row.get("is_greedy")
        response = Response(
            log_likelihood=_number(row["log_likelihood"]),
            is_greedy=greedy if isinstance(greedy, bool) else None,
        )
        if "text" in row:
            return _Recorded(("rolling", _text(row, "text"), ""), 0, response)
        if "prompt" not in row or "continuation" not in row:
            raise ValueError(
                "a log_likelihood needs 'prompt' and 'continuation', or 'text'"
            )
        continuation = _text(row, "continuation").strip()
        return _Recorded(
            ("log-likelihood", _prompt(row["prompt"]), continuation), 0, response
        )
    if "response" not in row:
        raise ValueError("it has no 'response'")
    answer = row["response"]
    if isinstance(answer, Mapping):
        response = response_from_mapping(answer)
    else:
        response = Response(_text(row, "response"), finish_reason="stop")
    if "prompt" in row:
        return _Recorded(("generate", _prompt(row["prompt"]), ""), None, response)
    if "input" in row:
        return _Recorded(("input", _text(row, "input").strip(), ""), None, response)
    raise ValueError(
        "it has neither 'prompt' nor 'input', which are used to find a response"
    )


def _prompt(value: Any) -> Any:
    """Read text, or messages as `{"role", "content"}` or `[role, content]`."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise ValueError("'prompt' must be text or a list of messages")
    turns = [
        [turn["role"], turn["content"]] if isinstance(turn, Mapping) else turn
        for turn in value
    ]
    for turn in turns:
        kinds = [type(part) for part in turn] if isinstance(turn, list) else []
        if kinds[:2] != [str, str] or kinds[2:] not in ([], [dict]):
            raise ValueError(
                "a message of 'prompt' must have a role and a content, both text"
            )
    return turns


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise ValueError(f"'{name}' must be text, not {type(value).__name__}")
    return value


def _number(value: Any) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
    ):
        raise ValueError(f"'log_likelihood' must be a finite number, not {value!r}")
    return float(value)
