"""Answers by transformers' own loop: what the loop of `decoding.py` cannot serve, prompts with
images, and beams.

Greedy answers do not depend on the batch in float32, and sampled ones are decided by their request
(`sampling.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import transformers
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from evalwright.core.errors import Failure
from evalwright.core.requests import Generate, arguments_of
from evalwright.core.responses import Response
from evalwright.models.local.answering import Job
from evalwright.models.local.hf.batching import Tensor
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.options import SAMPLING_ARGUMENTS
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.reading import pad
from evalwright.models.local.hf.sampling import (
    RowWriter,
    choose,
    not_a_number,
    values_of,
)
from evalwright.models.local.writing import Pieces


def write(
    loaded: Loaded, jobs: Sequence[Job], inputs: Mapping[str, Any] | None = None
) -> list[Response | Failure]:
    """The answers of one batch, in its order, by transformers' own loop; the batch ends when its
    last row has its end.

    Prompts of a decoder are padded on the left, those of an encoder on the right. inputs: what the
    model is called with, where that is more than tokens. A job with arguments of generate() is the
    only one of its batch.
    """
    arguments = arguments_of(jobs[0].request)
    warpers = _warpers(loaded, jobs[0].request, arguments)
    if warpers:  # they do all that narrows a distribution, in transformers' order
        neutral = replace(
            jobs[0].request, temperature=1.0, top_k=None, top_p=None, min_p=None
        )
        jobs = [replace(jobs[0], request=neutral)]
    if arguments:
        arguments["eos_token_id"] = sorted(loaded.end_tokens) or None
    pieces = Pieces(loaded.encoder)
    writers = [RowWriter(loaded, job, pieces) for job in jobs]
    found: list[Response | Failure | None] = [None] * len(jobs)

    def chosen(_: Tensor, scores: Tensor) -> Tensor:
        """`scores` (rows, vocabulary), with all but the token that each row takes next at minus
        infinity.
        """
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
        return torch.tensor(
            [end is not None for end in found], dtype=torch.bool, device=ids.device
        )

    ids, mask = pad(
        [job.tokens for job in jobs],
        loaded.device,
        loaded.pad_token,
        left=not loaded.start_tokens,
    )
    how = {
        "stopping_criteria": StoppingCriteriaList([ended]),
        "logits_processor": LogitsProcessorList([*warpers, chosen]),
    }
    given = {"input_ids": ids, "attention_mask": mask, **(inputs or {})}
    _generate(
        loaded, given, how, max_new_tokens=max(job.room for job in jobs), **arguments
    )
    return [answer for answer in found if answer is not None]


def _warpers(loaded: Loaded, request: Generate, arguments: dict[str, Any]) -> list[Any]:
    """What narrows a drawn token's distribution as transformers narrows it, where an argument wants
    what `sampling` has not.

    Takes these arguments out of `arguments`.
    """
    given = {
        name: arguments.pop(name) for name in SAMPLING_ARGUMENTS if name in arguments
    }
    if not given or not request.temperature:
        return []
    values = {
        "temperature": request.temperature,
        "top_k": request.top_k,
        "top_p": request.top_p,
        "min_p": request.min_p,
        **given,
    }
    made: dict[str, Callable[[Any], Any]] = {
        "temperature": transformers.TemperatureLogitsWarper,
        "top_h": transformers.TopHLogitsWarper,
        "top_k": transformers.TopKLogitsWarper,
        "top_p": transformers.TopPLogitsWarper,
        "min_p": transformers.MinPLogitsWarper,
        "typical_p": transformers.TypicalLogitsWarper,
        "epsilon_cutoff": transformers.EpsilonLogitsWarper,
        "eta_cutoff": partial(transformers.EtaLogitsWarper, device=str(loaded.device)),
    }
    return [
        warper(values[name])
        for name, warper in made.items()
        if values.get(name) is not None
    ]


def _generate(
    loaded: Loaded, inputs: Mapping[str, Any], how: Mapping[str, Any], **settings: Any
) -> Any:
    start = loaded.start_tokens
    given = dict(how)
    if start:
        rows = len(inputs["input_ids"])
        given["decoder_input_ids"] = torch.tensor([start] * rows, device=loaded.device)
    config = GenerationConfig(
        do_sample=False,
        pad_token_id=loaded.pad_token,
        decoder_start_token_id=start[0] if start else None,
        **settings,
    )
    with torch.inference_mode(), quiet():
        return loaded.model.generate(**inputs, generation_config=config, **given)


def write_beams(
    loaded: Loaded, job: Job, inputs: Mapping[str, Any]
) -> Response | Failure:
    """The best answer of transformers' own beam search, cut at the first stop string."""
    request = job.request
    ids = torch.tensor([job.tokens], device=loaded.device)
    found = _generate(
        loaded,
        {"input_ids": ids, "attention_mask": torch.ones_like(ids), **inputs},
        {},
        max_new_tokens=job.room,
        num_beams=request.num_beams,
        length_penalty=request.length_penalty,
        early_stopping=request.early_stopping,
        **arguments_of(request),
        eos_token_id=sorted(loaded.end_tokens) or None,
        return_dict_in_generate=True,
        output_scores=request.top_logprobs is not None,
    )
    writer = RowWriter(loaded, job, Pieces(loaded.encoder))
    written = found.sequences[0, len(loaded.start_tokens) or len(job.tokens) :].tolist()
    for place, token in enumerate(written):
        if request.top_logprobs is not None:
            logs = found.scores[place][found.beam_indices[0, place]].float()
            writer.values.append(values_of(logs, token, request.top_logprobs))
        if (answer := writer.add(token)) is not None:
            return answer
    return not_a_number()
