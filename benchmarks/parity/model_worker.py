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


def ours(model: str, asked: Asked, way: str, attention: str | None) -> dict[str, Any]:
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
    from evalwright.models.local.hf.model import TransformersModel

    opened = TransformersModel(
        model, device="cpu", scoring=way, attn_implementation=attention
    )
    requests: list[Request] = [LogLikelihood(*pair) for pair in asked["pairs"]]
    requests += [RollingLogLikelihood(text) for text in asked["rolling"]]
    for prompt, limit, stops in asked["generate"]:
        turns = (
            prompt
            if isinstance(prompt, str)
            else tuple(Message(*turn) for turn in prompt)
        )
        requests.append(Generate(turns, max_tokens=limit, stop=tuple(stops)))
    found: dict[int, Response] = {}
    for index, response in opened.answer_batch(requests):
        if isinstance(response, Failure):
            raise SystemExit(f"request {index} failed: {response.message}")
        found[index] = response
    answers = [found[index] for index in range(len(requests))]
    scored = answers[: len(asked["pairs"])]
    rest = answers[len(asked["pairs"]) :]
    rolling = rest[: len(asked["rolling"])]
    written = rest[len(asked["rolling"]) :]
    used = [
        each.usage.input_tokens
        for each in (*scored, *rolling)
        if each.usage is not None
    ]
    given = sum(count for count in used if count is not None)
    return {
        "pairs": [
            [each.log_likelihood, each.is_greedy, each.tokens_scored] for each in scored
        ],
        "rolling": [[each.log_likelihood, each.tokens_scored] for each in rolling],
        "generate": [each.text for each in written],
        "how": opened.describe()["scoring"] | {"tokens_asked": given},
    }


def theirs(
    model: str, asked: Asked, batch_size: str, attention: str | None
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
            Instance(request_type=kind, doc={}, arguments=each, idx=0)
            for each in arguments
        ]
        out: list[Any] = getattr(asked_of, kind)(some, disable_tqdm=True)
        return out

    # It looks at a batch's first text to see whether all have a BOS already, so conversations are
    # batches of their own.
    written: list[str] = [""] * len(asked["generate"])
    for chat in (False, True):
        places = [
            i
            for i, (prompt, *_) in enumerate(asked["generate"])
            if chat is not isinstance(prompt, str)
        ]
        writing = []
        for prompt, limit, stops in (asked["generate"][place] for place in places):
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
        "pairs": ask("loglikelihood", [tuple(pair) for pair in asked["pairs"]]),
        "rolling": ask(
            "loglikelihood_rolling", [(text,) for text in asked["rolling"]], for_rolling
        ),
        "generate": written,
    }


def main() -> None:
    """See the module."""
    side, model, requests, result, ways, *more = sys.argv[1:]
    asked = json.loads(Path(requests).read_text(encoding="utf-8"))
    run = theirs if side == "theirs" else ours
    found = {
        way: run(model, asked, way, more[0] if more else None)
        for way in ways.split(",")
    }
    Path(result).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
