"""Model classes of lm_eval's own files, with `evalwright.compat.lm_eval` for `lm_eval` in their
imports, behind our door.

python borrowed.py FOLDER WHAT SETTINGS
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from evalwright.compat.lm_eval import LM
from evalwright.compat.lm_eval.models.adapter import LMAdapter
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)

PAIRS = [
    ("The river rises in", " the hills"),
    ("What is the capital of France? Answer", ": Paris."),
    ("In spr", "ing the water"),
    ("Iron", " melts"),
]
SCORED: list[Request] = [LogLikelihood(*pair) for pair in PAIRS]
WRITTEN: list[Request] = [
    Generate("The river", stop=("\n",), max_tokens=5, temperature=0.0),
    Generate("A baker gets", stop=(" ",), max_tokens=7, temperature=0.0),
    Generate("Light", stop=("\n",), max_tokens=5, temperature=0.0),
]
ROLLING: list[Request] = [
    RollingLogLikelihood("A baker gets up at three o'clock."),
    RollingLogLikelihood("Iron"),
]


def answers(lm: Any, requests: list[Request]) -> list[Any]:
    """What a model gives, by request."""
    model = LMAdapter("lm/borrowed", type(lm), {}, instance=lm)
    model.load()
    found = dict(model.answer_batch(requests))
    return [_plain(found[place]) for place in range(len(requests))]


def _plain(answer: Any) -> Any:
    if not hasattr(answer, "log_likelihood"):
        return answer.message
    if answer.log_likelihood is None:
        return answer.text
    return [round(answer.log_likelihood, 4), answer.is_greedy]


def textsynth(settings: dict[str, Any]) -> Any:
    lm = import_module("their_textsynth").TextSynthLM(engine="gptj_6B")
    lm.api_url = settings["url"]
    return [
        sorted(LMAdapter("lm/t", type(lm), {}, instance=lm).abilities),
        answers(lm, SCORED + WRITTEN),
    ]


def completions(settings: dict[str, Any]) -> Any:
    """Of their file over our template, and of ours: one by one, and several at a time."""
    out = []
    for module in (
        "their_openai_completions",
        "evalwright.compat.lm_eval.models.openai_completions",
    ):
        for several in (1, 3):
            lm = import_module(module).LocalCompletionsAPI(
                base_url=settings["url"] + "/completions", model="m", tokenizer=settings["model"], tokenized_requests=False,
                num_concurrent=several,
            )  # fmt: skip
            out.append(answers(lm, SCORED + WRITTEN + ROLLING))
    return out


def chat(settings: dict[str, Any]) -> Any:
    out = []
    talk: list[Request] = [
        Generate((Message("system", "Be brief."), Message("user", text)), stop=("\n", "."), max_tokens=4, temperature=0.0)
        for text in ("Hello", "What is iron?")
    ]  # fmt: skip
    for module in (
        "their_openai_completions",
        "evalwright.compat.lm_eval.models.openai_completions",
    ):
        for several in (1, 3):
            lm = import_module(module).LocalChatCompletion(
                base_url=settings["url"] + "/chat/completions",
                model="m",
                num_concurrent=several,
            )
            out.append(answers(lm, talk))
    return out


def transformers(settings: dict[str, Any]) -> Any:
    """Their class over our base, ours, one of theirs that derives from ours, and one that sets
    everything by itself.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from evalwright.compat.lm_eval.models.huggingface import HFLM

    name = settings["model"]

    class Wrapper(HFLM):
        def __init__(self) -> None:
            LM.__init__(self)
            self._model = AutoModelForCausalLM.from_pretrained(name)
            self.tokenizer = AutoTokenizer.from_pretrained(name)
            self.tokenizer.pad_token_id = self.tokenizer.eos_token_id
            self._max_length = 64
            self._device = torch.device("cpu")

        @property
        def batch_size(self) -> int:
            return 3

    def steered(strength: float) -> Any:
        path = Path(settings["place"]) / f"{strength}.pt"
        vector = torch.linspace(-1, 1, 32)
        torch.save(
            {
                settings["layer"]: {
                    "steering_vector": vector,
                    "steering_coefficient": strength,
                    "action": "add",
                }
            },
            path,
        )
        return import_module("their_hf_steered").SteeredModel(
            pretrained=name, steer_path=str(path), device="cpu"
        )

    theirs = import_module("their_huggingface").HFLM(
        pretrained=name, device="cpu", batch_size=2
    )
    ours = HFLM(
        pretrained=AutoModelForCausalLM.from_pretrained(name),
        tokenizer=name,
        batch_size=2,
    )
    return [
        answers(lm, SCORED + WRITTEN + ROLLING)
        for lm in (theirs, ours, Wrapper(), steered(0.0), steered(5.0))
    ]


if __name__ == "__main__":
    folder, what, settings = sys.argv[1:]
    sys.path.insert(0, folder)
    warnings.simplefilter("ignore")
    result = globals()[what](json.loads(settings))
    assert "lm_eval" not in sys.modules
    sys.stdout.write("\n@" + json.dumps(result))
