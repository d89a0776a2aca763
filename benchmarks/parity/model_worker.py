"""One process of `models.py`: load a model, answer a file of requests with one of the two systems,
write what came out.

    python model_worker.py {ours,theirs} MODEL REQUESTS RESULT WAYS [ATTENTION]

It is run by each system's own interpreter, so it imports nothing but that system. WAYS, with commas
between them, are ways of scoring (tree, plain, auto) for `ours` and batch sizes for `theirs`; the
model is loaded anew for each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Asked = dict[str, list[Any]]


def ours(
    model: str, requests_by_type: Asked, way: str, attention: str | None
) -> dict[str, Any]:
    """Pairs as (log-likelihood, is greedy, tokens), rolling texts as (log-likelihood, tokens),
    generations as text.
    """
    from evalwright.core.errors import Failure
    from evalwright.core.requests import (
        Generate,
        LogLikelihood,
        Message,
        Request,
        RollingLogLikelihood,
    )
    from evalwright.core.responses import Response
    from evalwright.models.local.hf.transformers_model import TransformersModel

    opened = TransformersModel(
        model, device="cpu", scoring=way, attn_implementation=attention
    )
    requests: list[Request] = [
        LogLikelihood(*pair) for pair in requests_by_type["pairs"]
    ]
    requests += [RollingLogLikelihood(text) for text in requests_by_type["rolling"]]
    for prompt, limit, stops in requests_by_type["generate"]:
        turns = (
            prompt
            if isinstance(prompt, str)
            else tuple(Message(*turn) for turn in prompt)
        )
        requests.append(Generate(turns, max_tokens=limit, stop=tuple(stops)))
    responses: dict[int, Response] = {}
    for index, response in opened.answer_batch(requests):
        if isinstance(response, Failure):
            raise SystemExit(f"request {index} failed: {response.message}")
        responses[index] = response
    answers = [responses[index] for index in range(len(requests))]
    scored = answers[: len(requests_by_type["pairs"])]
    unscored = answers[len(requests_by_type["pairs"]) :]
    rolling = unscored[: len(requests_by_type["rolling"])]
    written = unscored[len(requests_by_type["rolling"]) :]
    used = [
        response.usage.input_tokens
        for response in (*scored, *rolling)
        if response.usage is not None
    ]
    input_tokens = sum(count for count in used if count is not None)
    return {
        "pairs": [
            [response.log_likelihood, response.is_greedy, response.tokens_scored]
            for response in scored
        ],
        "rolling": [
            [response.log_likelihood, response.tokens_scored] for response in rolling
        ],
        "generate": [response.text for response in written],
        "how": opened.describe()["scoring"] | {"tokens_asked": input_tokens},
    }


def theirs(
    model: str, requests_by_type: Asked, batch_size: str, attention: str | None
) -> dict[str, Any]:
    """The same with lm_eval's transformers model. It has no number of tokens.

    It would also score the BOS that a tokenizer adds, once in a rolling text, and shift all windows
    by it, so for these texts it is told not to add one. Its softmax is in float64 there, because it
    sums a window's tokens in the softmax's dtype, and a sum of thousands in float32 is not known to
    a millionth for each token.
    """
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    more = {"attn_implementation": attention} if attention else {}
    settings = {
        "pretrained": model,
        "device": "cpu",
        "dtype": "float32",
        "batch_size": int(batch_size),
        **more,
    }
    opened = HFLM(**settings)

    def ask(kind: str, arguments: list[Any], asked_of: Any = opened) -> list[Any]:
        some = [
            Instance(request_type=kind, doc={}, arguments=argument, idx=0)
            for argument in arguments
        ]
        answers: list[Any] = getattr(asked_of, kind)(some, disable_tqdm=True)
        return answers

    # It looks at a batch's first text to see whether all have a BOS already, so conversations are
    # batches of their own.
    written: list[str] = [""] * len(requests_by_type["generate"])
    for chat in (False, True):
        places = [
            i
            for i, (prompt, *_) in enumerate(requests_by_type["generate"])
            if chat is not isinstance(prompt, str)
        ]
        writing = []
        for prompt, limit, stops in (
            requests_by_type["generate"][place] for place in places
        ):
            turns = (
                [{"role": role, "content": text} for role, text in prompt]
                if chat
                else []
            )
            text = opened.apply_chat_template(turns) if chat else prompt
            writing.append(
                (text, {"until": stops, "max_gen_toks": limit, "do_sample": False})
            )
        for place, text in zip(
            places, ask("generate_until", writing) if writing else [], strict=True
        ):
            written[place] = text
    for_rolling = HFLM(**settings, add_bos_token=False, softmax_dtype="float64")
    return {
        "pairs": ask(
            "loglikelihood", [tuple(pair) for pair in requests_by_type["pairs"]]
        ),
        "rolling": ask(
            "loglikelihood_rolling",
            [(text,) for text in requests_by_type["rolling"]],
            for_rolling,
        ),
        "generate": written,
    }


def main() -> None:
    """See the module."""
    side, model, requests, result, ways, *more = sys.argv[1:]
    requests_by_type = json.loads(Path(requests).read_text(encoding="utf-8"))
    run = theirs if side == "theirs" else ours
    answers_by_way = {
        way: run(model, requests_by_type, way, more[0] if more else None)
        for way in ways.split(",")
    }
    Path(result).write_text(json.dumps(answers_by_way), encoding="utf-8")


if __name__ == "__main__":
    main()
