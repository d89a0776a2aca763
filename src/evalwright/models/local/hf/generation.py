"""Generation: every row has its own end, EOS, a stop string, or its own limit, and is answered when it has it.

Prompts that begin alike are written together (`families.py`) by a loop of our own (`decoding.py`); what that cannot serve is
written by transformers' loop, which one line in the log says. Greedy answers do not depend on the batch
in float32, and sampled ones are decided by their request (`sampling.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from evalwright.core.errors import Failure, ModelError, RequestError
from evalwright.core.responses import Response
from evalwright.models.local.answering import Job
from evalwright.models.local.hf.batching import BatchRunner, Tensor, is_out_of_memory
from evalwright.models.local.hf.decoding import GenerationLoop
from evalwright.models.local.hf.families import families
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.quiet import logger, quiet
from evalwright.models.local.hf.reading import LogitReader, pad
from evalwright.models.local.hf.sampling import RowWriter, choose, not_a_number, values_of
from evalwright.models.local.tokens import room_for_answer
from evalwright.models.local.writing import Pieces


class Generator:
    """Writes answers, in the fastest way that the model allows. reader: None for an encoder-decoder model."""

    def __init__(
        self,
        loaded: Loaded,
        batcher: BatchRunner[Response | Failure],
        reader: LogitReader | None,
        name: str = "the model",
    ) -> None:
        self._loaded = loaded
        self._batcher = batcher
        self._name = name
        self._told: set[str] = set()
        self.decoder = None if reader is None else GenerationLoop(loaded, reader)

    def generate(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Response | Failure]]:
        """Yield `(index into jobs, answer)` once for every job, as they finish."""
        decoder, own = self.decoder, list[int]()
        apart = [place for place, job in enumerate(jobs) if job.request.num_beams > 1 or not job.tokens]
        for place in apart:
            yield place, self._alone(jobs[place])
        alone = set(apart)
        if decoder is not None:
            own = [
                place
                for place, job in enumerate(jobs)
                if place not in alone and decoder.refusal is None and decoder.is_short(job)
            ]
            if own and not decoder.ready(jobs[own[0]].tokens):
                own = []
            for family in families([jobs[place].tokens for place in own]):
                yield from self._together(decoder, jobs, family.shared, [own[i] for i in family.members])
        taken = {*own, *apart}
        others = [place for place in range(len(jobs)) if place not in taken]
        if others:
            if decoder is not None:
                self._tell(decoder, [jobs[place] for place in others])
            costs = [len(jobs[place].tokens) + jobs[place].room for place in others]
            for found, answer in self._batcher.run(
                costs, lambda batch: write(self._loaded, [jobs[others[i]] for i in batch])
            ):
                yield others[found], answer

    def _alone(self, job: Job) -> Response | Failure:
        """The answer to one prompt with images, or by beams."""
        try:
            inputs: dict[str, Any] = {}
            if not job.tokens:
                assert self._loaded.vision is not None
                inputs = self._loaded.vision.inputs(job.request)
                tokens = inputs["input_ids"][0].tolist()
                room = room_for_answer(len(tokens), job.room, self._loaded.reader.rules.max_length)
                job = replace(job, tokens=tokens, room=room)
            if job.request.num_beams > 1:
                return write_beams(self._loaded, job, inputs)
            return write(self._loaded, [job], inputs)[0]
        except RequestError as error:
            return error.as_failure()
        except Exception as error:
            if is_out_of_memory(error):
                return ModelError("Out of memory for this request, although it is alone.").as_failure()
            return ModelError(f"The model raised {type(error).__name__}: {error}").as_failure()

    def _together(
        self, decoder: GenerationLoop, jobs: Sequence[Job], shared: int, members: Sequence[int]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Write jobs whose prompts begin with the same `shared` tokens."""
        inside = shared if decoder.forward.cascading else 0
        some = {place: jobs[place] for place in members}
        costs = {place: len(job.tokens) - inside + job.room for place, job in some.items()}
        # Equal prompts stand side by side, so that they go through the model together.
        order = sorted(members, key=lambda place: (-costs[place], jobs[place].tokens))
        yield from self._batcher.stream(
            costs, order, lambda queue, rows: decoder.write(some, shared, queue, rows), decoder.most_rows
        )

    def _tell(self, decoder: GenerationLoop, jobs: Sequence[Job]) -> None:
        """Say once why transformers writes these."""
        reason = decoder.refusal
        if reason is None:
            reason = "some texts are longer than the attention window of some layers"
            if all(map(decoder.is_short, jobs)):
                reason = "memory ran out with this package's loop"
        if reason not in self._told:
            self._told.add(reason)
            logger.warning("%s: answers are generated by transformers' own loop: %s.", self._name, reason)


def write(
    loaded: Loaded, jobs: Sequence[Job], inputs: Mapping[str, Any] | None = None
) -> list[Response | Failure]:
    """The answers of one batch, in its order, by transformers' own loop; the batch ends when its last row has its end.

    Prompts of a decoder are padded on the left, those of an encoder on the right. inputs: what the model is called with, where
    that is more than tokens.
    """
    pieces = Pieces(loaded.encoder)
    writers = [RowWriter(loaded, job, pieces) for job in jobs]
    found: list[Response | Failure | None] = [None] * len(jobs)

    def chosen(_: Tensor, scores: Tensor) -> Tensor:
        """`scores` (rows, vocabulary), with all but the token that each row takes next at minus infinity."""
        out = torch.full_like(scores, float("-inf"))
        for row, token in enumerate(choose(scores, writers)):
            if token is None and found[row] is None:
                found[row] = not_a_number()
            out[row, token or 0] = 0.0
        return out

    def ended(ids: Tensor, _: Tensor, **__: Any) -> Tensor:
        """Which rows are done, as a boolean tensor of shape (rows,)."""
        for row, token in enumerate(ids[:, -1].tolist()):
            if found[row] is None:
                found[row] = writers[row].add(token)
        return torch.tensor([end is not None for end in found], dtype=torch.bool, device=ids.device)

    rows, start = [job.tokens for job in jobs], loaded.start_tokens
    given: dict[str, Any] = {"decoder_input_ids": torch.tensor([start] * len(jobs), device=loaded.device)}
    ids, mask = pad(rows, loaded.device, loaded.pad_token, left=not start)
    config = GenerationConfig(
        max_new_tokens=max(job.room for job in jobs),
        do_sample=False,
        pad_token_id=loaded.pad_token,
        decoder_start_token_id=start[0] if start else None,
    )
    with torch.inference_mode(), quiet():
        loaded.model.generate(
            **{"input_ids": ids, "attention_mask": mask, **(inputs or {})},
            generation_config=config,
            stopping_criteria=StoppingCriteriaList([ended]),
            logits_processor=LogitsProcessorList([chosen]),
            **(given if start else {}),
        )
    return [answer for answer in found if answer is not None]


def write_beams(loaded: Loaded, job: Job, inputs: Mapping[str, Any]) -> Response | Failure:
    """The best answer of transformers' own beam search, cut at the first stop string."""
    request, start = job.request, loaded.start_tokens
    ids = torch.tensor([job.tokens], device=loaded.device)
    given: dict[str, Any] = (
        {"decoder_input_ids": torch.tensor([start], device=loaded.device)} if start else {}
    )
    config = GenerationConfig(
        max_new_tokens=job.room,
        num_beams=request.num_beams,
        length_penalty=request.length_penalty,
        early_stopping=request.early_stopping,
        do_sample=False,
        eos_token_id=sorted(loaded.end_tokens) or None,
        pad_token_id=loaded.pad_token,
        decoder_start_token_id=start[0] if start else None,
        return_dict_in_generate=True,
        output_scores=request.top_logprobs is not None,
    )
    with torch.inference_mode(), quiet():
        found = loaded.model.generate(
            **{"input_ids": ids, "attention_mask": torch.ones_like(ids), **inputs},
            generation_config=config,
            **given,
        )
    writer = RowWriter(loaded, job, Pieces(loaded.encoder))
    written = found.sequences[0, len(start) or len(job.tokens) :].tolist()
    for place, token in enumerate(written):
        if request.top_logprobs is not None:
            logs = found.scores[place][found.beam_indices[0, place]].float()
            writer.values.append(values_of(logs, token, request.top_logprobs))
        if (answer := writer.add(token)) is not None:
            return answer
    return not_a_number()
