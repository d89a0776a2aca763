"""Generates answers by transformers' own loop, for what `decoding.py` cannot serve: images, beams.

In float32, greedy answers do not depend on the batch, and sampled ones are decided by their request
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
    """Generate the answers of one batch, in order, by transformers' own loop.

    The loop ends with its last row. Prompts of a decoder are padded on the left, those of an
    encoder on the right. A job with arguments of generate() is alone in its batch.

    Args:
        loaded: the model.
        jobs: the answers to generate.
        inputs: the model's inputs, if they are more than tokens.
    """
    arguments = arguments_of(jobs[0].request)
    warpers = _make_warpers(loaded, jobs[0].request, arguments)
    if (
        warpers
    ):  # they do everything that narrows a distribution, in transformers' order
        neutral = replace(
            jobs[0].request, temperature=1.0, top_k=None, top_p=None, min_p=None
        )
        jobs = [replace(jobs[0], request=neutral)]
    if arguments:
        arguments["eos_token_id"] = sorted(loaded.end_tokens) or None
    pieces = Pieces(loaded.encoder)
    writers = [RowWriter(loaded, job, pieces) for job in jobs]
    answers: list[Response | Failure | None] = [None] * len(jobs)

    def chosen(_: Tensor, scores: Tensor) -> Tensor:
        """Mask `scores` (rows, vocabulary) except for the token that each row takes next.

        All others become minus infinity.
        """
        masked = torch.full_like(scores, float("-inf"))
        for row, token in enumerate(choose(scores, writers)):
            if token is None and answers[row] is None:
                answers[row] = not_a_number()
            masked[row, token or 0] = 0.0
        return masked

    def ended(ids: Tensor, _: Tensor, **__: Any) -> Tensor:
        """Return which rows are done, as a boolean tensor of shape (rows,)."""
        for row, token in enumerate(ids[:, -1].tolist()):
            if answers[row] is None:
                answers[row] = writers[row].add(token)
        return torch.tensor(
            [end is not None for end in answers], dtype=torch.bool, device=ids.device
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
    model_inputs = {"input_ids": ids, "attention_mask": mask, **(inputs or {})}
    _generate(
        loaded,
        model_inputs,
        how,
        max_new_tokens=max(job.room for job in jobs),
        **arguments,
    )
    return [answer for answer in answers if answer is not None]


def _make_warpers(
    loaded: Loaded, request: Generate, arguments: dict[str, Any]
) -> list[Any]:
    """Make transformers' warpers, if an argument needs one that `sampling` lacks.

    These arguments are removed from `arguments`.
    """
    sampling = {
        name: arguments.pop(name) for name in SAMPLING_ARGUMENTS if name in arguments
    }
    if not sampling or not request.temperature:
        return []
    values = {
        "temperature": request.temperature,
        "top_k": request.top_k,
        "top_p": request.top_p,
        "min_p": request.min_p,
        **sampling,
    }
    warpers: dict[str, Callable[[Any], Any]] = {
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
        for name, warper in warpers.items()
        if values.get(name) is not None
    ]


def _generate(
    loaded: Loaded, inputs: Mapping[str, Any], how: Mapping[str, Any], **settings: Any
) -> Any:
    start = loaded.start_tokens
    options = dict(how)
    if start:
        rows = len(inputs["input_ids"])
        options["decoder_input_ids"] = torch.tensor(
            [start] * rows, device=loaded.device
        )
    config = GenerationConfig(
        do_sample=False,
        pad_token_id=loaded.pad_token,
        decoder_start_token_id=start[0] if start else None,
        **settings,
    )
    with torch.inference_mode(), quiet():
        return loaded.model.generate(**inputs, generation_config=config, **options)


def write_beams(
    loaded: Loaded, job: Job, inputs: Mapping[str, Any]
) -> Response | Failure:
    """Return the best answer of transformers' own beam search, cut at the first stop string."""
    request = job.request
    ids = torch.tensor([job.tokens], device=loaded.device)
    beams = _generate(
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
    written = beams.sequences[0, len(loaded.start_tokens) or len(job.tokens) :].tolist()
    for position, token in enumerate(written):
        if request.top_logprobs is not None:
            logs = beams.scores[position][beams.beam_indices[0, position]].float()
            writer.values.append(values_of(logs, token, request.top_logprobs))
        if (answer := writer.add(token)) is not None:
            return answer
    return not_a_number()
