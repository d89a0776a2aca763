"""`replay/<file>`: answers from recorded responses, so that a run can be repeated or scored without its model.

A recording is one of
- a run: its folder, or its `samples.jsonl`, whose prompts and responses are taken as they are;
- any JSONL file with rows of `{"prompt": ..., "response": "..."}` or `{"input": ..., "response": "..."}`, and for
  likelihoods `{"prompt": ..., "continuation": ..., "log_likelihood": ...}` or `{"text": ..., "log_likelihood": ...}`.

A request is found by its prompt (sampling parameters are not looked at) and, for repeated samples, by its draw: in a plain
file the n-th row with one prompt is draw n. What has no recording is rejected. In memory there is a hash and a place for
each response; texts are read from the file when they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from evalwright.core.errors import Failure, ModelError, Rejected, RequestError
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Message,
    Prompt,
    Request,
    RollingLogLikelihood,
    prompt_payload,
)
from evalwright.core.responses import Response
from evalwright.models.base import LocalModel, fingerprint_of
from evalwright.models.replay_index import Index, Subject, key_of, recorded, samples_file

_INPUT_LINES = 60
"""Lines of a prompt, from its end, among which a recorded `input` is looked for."""


class ReplayModel(LocalModel):
    """Answers from a file. Raises ConfigurationError for a file that is missing or is no recording, naming the row."""

    heavy = False

    def __init__(self, path: str, *, revision: str | None = None) -> None:
        # The registry takes what follows a last '@' for a revision; here it is part of the path.
        written = path if revision is None else f"{path}@{revision}"
        self.name = f"replay/{written}"
        self._path = samples_file(Path(written).expanduser())
        self._index = Index(self._path)
        self._file: BinaryIO | None = None
        self.abilities = self._index.abilities
        self.fingerprint = fingerprint_of({"replay": self._index.content_hash})

    def describe(self) -> dict[str, Any]:
        """The file's name and content hash, and how much it holds."""
        return {
            **super().describe(),
            "file": self._path.name,
            "content_hash": self._index.content_hash,
            "rows": self._index.rows,
            "responses": len(self._index.places),
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

    def answer_batch(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response | Failure]]:
        """One after another, in order."""
        self.load()
        for index, request in enumerate(requests):
            try:
                answer: Response | Failure = self._answer(request)
            except RequestError as error:
                answer = error.as_failure()
            yield index, answer

    def _answer(self, request: Request) -> Response:
        draw = request.draw if isinstance(request, Generate) else 0
        for subject in _subjects(request, self._index.has_inputs):
            place = self._index.places.get(key_of(subject, draw))
            if place is not None:
                return self._read(place, subject)
        raise Rejected(f"{self._path.name} has no recorded response for {_shown(request)}.")

    def _read(self, place: tuple[int, int], subject: Subject) -> Response:
        assert self._file is not None
        offset, slot = place
        self._file.seek(offset)
        try:
            found = list(recorded(json.loads(self._file.readline())))[slot]
        except (ValueError, IndexError, KeyError, TypeError):
            found = None
        if found is None or found.subject != subject:
            raise ModelError(f"{self._path.name} has changed since it was opened. Run again.")
        return found.response


def _subjects(request: Request, has_inputs: bool) -> Iterator[Subject]:
    """What the recording may call this request, the likeliest first."""
    if isinstance(request, Generate):
        for form in _forms(request.prompt):
            yield ("generate", prompt_payload(form), "")
        if has_inputs:
            for text in _possible_inputs(request.prompt):
                yield ("input", text, "")
    elif isinstance(request, LogLikelihood):
        for form in _forms(request.context):
            yield ("log-likelihood", prompt_payload(form), request.continuation.strip())
    elif isinstance(request, RollingLogLikelihood):
        yield ("rolling", request.text, "")


def _forms(prompt: Prompt) -> Iterator[Prompt]:
    """The prompt, then the same as text or as messages, where one user message is all there is."""
    yield prompt
    if isinstance(prompt, str):
        yield (Message("user", prompt),)
    elif len(prompt) == 1 and prompt[0].role == "user":
        yield prompt[0].content


def _possible_inputs(prompt: Prompt) -> Iterator[str]:
    """Texts in a rendered prompt that may be the row's input: the whole, the last user message, then lines from the end,
    each also without a label such as "Question:"."""
    if isinstance(prompt, str):
        texts = [prompt]
    else:
        texts = [turn.content for turn in reversed(prompt) if turn.role == "user"]
    for text in texts:
        yield text
        yield text.strip()
    for text in texts[:1]:
        for line in reversed(text.splitlines()[-_INPUT_LINES:]):
            yield line.strip()
            yield line.partition(":")[2].strip()


def _shown(request: Request) -> str:
    if isinstance(request, Generate | LogLikelihood):
        prompt = request.prompt if isinstance(request, Generate) else request.context
        text = prompt if isinstance(prompt, str) else prompt[-1].content
        draw = f" (draw {request.draw})" if isinstance(request, Generate) and request.draw else ""
        after = "" if isinstance(request, Generate) else f"'{request.continuation.strip()}' after "
        return f"{after}the prompt that ends '{text[-60:]}'{draw}".replace("\n", " ")
    if isinstance(request, RollingLogLikelihood):
        return f"the text that begins '{request.text[:60]}'".replace("\n", " ")
    return f"a request of kind '{request.ability}'"
