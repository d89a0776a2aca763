"""Where in a recording each response stands: one pass over the file, a hash and a place kept for each.

`recorded` says what a row holds; it is used to build the index and again to read a response, so both always agree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

from evalwright.core.errors import ConfigurationError
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Ability
from evalwright.core.responses import Response

Subject = tuple[str, Any, str]
"""What a response answers: kind ("generate", "input", "log-likelihood", "rolling"), prompt as JSON, continuation."""

_KEY_BYTES = 12
_ABILITY: dict[str, Ability] = {
    "generate": "generate",
    "input": "generate",
    "log-likelihood": "log-likelihood",
    "rolling": "rolling",
}


class Recorded(NamedTuple):
    """A response in a row. draw None: the rows are counted."""

    subject: Subject
    draw: int | None
    response: Response


class Index:
    """places: (offset of the row, which of its responses) by key. Raises ConfigurationError, naming the row, for a file
    that is no recording."""

    def __init__(self, path: Path) -> None:
        self.places: dict[bytes, tuple[int, int]] = {}
        self.has_inputs = False
        self.rows = 0
        self._abilities: set[Ability] = set()
        self._repeated: dict[bytes, int] = {}
        digest = blake2b(digest_size=16)
        try:
            with path.open("rb") as file:
                offset = 0
                for number, line in enumerate(file, 1):
                    digest.update(line)
                    if line.strip():
                        self._add_row(line, offset, f"{path}, row {number}")
                    offset += len(line)
        except OSError as error:
            raise ConfigurationError(f"The recording {path} cannot be read: {error.strerror}.") from None
        if not self.places:
            raise ConfigurationError(f"The recording {path} has no responses.")
        self.content_hash = digest.hexdigest()
        self.abilities = frozenset(self._abilities)
        self._repeated.clear()

    def _add_row(self, line: bytes, offset: int, where: str) -> None:
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConfigurationError(f"{where} is not valid JSON: {error}.") from None
        try:
            found = list(recorded(row))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(f"{where} is not a recorded response: {error}.") from None
        self.rows += 1
        for slot, (subject, draw, _) in enumerate(found):
            self._note(subject)
            self.places.setdefault(self._key(subject, draw), (offset, slot))

    def _key(self, subject: Subject, draw: int | None) -> bytes:
        key = key_of(subject, draw or 0)
        if draw is None and key in self.places:
            count = self._repeated[key] = self._repeated.get(key, 0) + 1
            return key_of(subject, count)
        return key

    def _note(self, subject: Subject) -> None:
        kind, prompt, _ = subject
        if kind == "input":
            self.has_inputs = True
        self._abilities.add(_ABILITY[kind])
        if isinstance(prompt, list):
            self._abilities.add("chat")


def key_of(subject: Subject, draw: int) -> bytes:
    """A short hash of a request."""
    text = json.dumps([*subject, draw], ensure_ascii=False, separators=(",", ":"))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def samples_file(path: Path) -> Path:
    """The JSONL file that a path means: itself, or a run folder's samples."""
    found = path / "samples.jsonl" if path.is_dir() else path
    if not found.is_file():
        raise ConfigurationError(
            f"There is no recording at {found}: give a run's folder, its samples.jsonl, or a JSONL file of responses."
        )
    return found


def recorded(row: Any) -> Iterator[Recorded]:
    """The responses in a row, in a fixed order. Raises ValueError, KeyError or TypeError for a row that is none."""
    if not isinstance(row, Mapping):
        raise ValueError("it is not a JSON object")
    if "task" in row and "scores" in row:
        if "responses" in row:
            yield from _of_sample(row)
        return
    yield _of_plain(row)


def _of_sample(row: Mapping[str, Any]) -> Iterator[Recorded]:
    """A line of a run's samples.jsonl; one that failed has no responses and is passed over."""
    responses = [Response.from_dict(found) for found in row["responses"]]
    prompt = row["prompt"]
    scored = row.get("log_likelihoods", [])
    if not scored:
        yield from _generated(prompt, responses, row["draw"])
        return
    answers = [_with_likelihood(*pair) for pair in zip(responses, scored, strict=True)]
    if "choices" not in row:
        yield Recorded(("log-likelihood", prompt, row["answer"].strip()), 0, answers[0])
        if prompt == "":
            yield Recorded(("rolling", row["answer"], ""), 0, answers[0])
        return
    # Options were compared by their texts or by their letters; the record does not say which, so both are known.
    for names in (row["choices"], ascii_uppercase):
        for name, answer in zip(names, answers, strict=False):
            yield Recorded(("log-likelihood", prompt, name.strip()), 0, answer)


def _generated(prompt: Any, responses: list[Response], draw: int) -> Iterator[Recorded]:
    """One response to the prompt; or the replies of a conversation, each to the messages before it; or several draws."""
    last = len(responses) - 1
    if last > 0 and _is_conversation(prompt, responses):
        for index, response in enumerate(responses):
            yield Recorded(("generate", prompt[: len(prompt) - 2 * (last - index)], ""), draw, response)
        return
    for index, response in enumerate(responses):
        yield Recorded(("generate", prompt, ""), draw * len(responses) + index, response)


def _is_conversation(prompt: Any, responses: list[Response]) -> bool:
    """Whether every reply but the last stands in the prompt, two messages apart."""
    earlier = responses[:-1]
    if not isinstance(prompt, list) or len(prompt) <= 2 * len(earlier):
        return False
    replies = prompt[len(prompt) - 2 * len(earlier) :: 2]
    return all(
        role == "assistant" and text == separate_reasoning(response).answer
        for (role, text), response in zip(replies, earlier, strict=True)
    )


def _with_likelihood(response: Response, value: float) -> Response:
    if response.log_likelihood is not None:
        return response
    return Response.from_dict({**response.as_dict(), "log_likelihood": _number(value)})


def _of_plain(row: Mapping[str, Any]) -> Recorded:
    if "log_likelihood" in row:
        greedy = row.get("is_greedy")
        response = Response(
            log_likelihood=_number(row["log_likelihood"]),
            is_greedy=greedy if isinstance(greedy, bool) else None,
        )
        if "text" in row:
            return Recorded(("rolling", _text(row, "text"), ""), 0, response)
        if "prompt" not in row or "continuation" not in row:
            raise ValueError("a log_likelihood needs 'prompt' and 'continuation', or 'text'")
        continuation = _text(row, "continuation").strip()
        return Recorded(("log-likelihood", _prompt(row["prompt"]), continuation), 0, response)
    if "response" not in row:
        raise ValueError("it has no 'response'")
    answer = row["response"]
    if isinstance(answer, Mapping):
        response = Response.from_dict(dict(answer))
    else:
        response = Response(_text(row, "response"), finish_reason="stop")
    if "prompt" in row:
        return Recorded(("generate", _prompt(row["prompt"]), ""), None, response)
    if "input" in row:
        return Recorded(("input", _text(row, "input").strip(), ""), None, response)
    raise ValueError("it has neither 'prompt' nor 'input', which are used to find a response")


def _prompt(value: Any) -> Any:
    """Text, or messages as `{"role", "content"}` or `[role, content]`."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise ValueError("'prompt' must be text or a list of messages")
    turns = [[turn["role"], turn["content"]] if isinstance(turn, Mapping) else turn for turn in value]
    for turn in turns:
        if not isinstance(turn, list) or [type(part) for part in turn] != [str, str]:
            raise ValueError("a message of 'prompt' must have a role and a content, both text")
    return turns


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise ValueError(f"'{name}' must be text, not {type(value).__name__}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"'log_likelihood' must be a finite number, not {value!r}")
    return float(value)
