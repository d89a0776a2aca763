"""A module `vllm` that takes what the real one takes, for machines that cannot run it: the names
of its parameters are the real ones, and a real transformer computes what it answers.
"""

from __future__ import annotations

import ast
import json
import zipfile
from pathlib import Path

RECORDED = Path(__file__).with_name("vllm_interface.json")
_FILES = {
    "llm": "vllm/entrypoints/llm.py",
    "engine": "vllm/engine/arg_utils.py",
    "sampling": "vllm/sampling_params.py",
    "logprob": "vllm/logprobs.py",
    "output": "vllm/outputs.py",
}


def interface_of(wheel: Path) -> dict[str, list[str]]:
    """What a wheel's source declares: the parameters and fields that `vllm-local/` uses, and all
    others, by where they are.
    """
    with zipfile.ZipFile(wheel) as packed:
        trees = {name: ast.parse(packed.read(path)) for name, path in _FILES.items()}

    def declared(tree: str, name: str) -> ast.ClassDef:
        return next(
            node
            for node in ast.walk(trees[tree])
            if isinstance(node, ast.ClassDef) and node.name == name
        )

    def fields(tree: str, name: str) -> list[str]:
        body = declared(tree, name).body
        return [
            node.target.id
            for node in body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        ]

    def parameters(tree: str, name: str, method: str) -> list[str]:
        body = declared(tree, name).body
        function = next(
            node
            for node in body
            if isinstance(node, ast.FunctionDef) and node.name == method
        )
        return [
            argument.arg
            for argument in [*function.args.args, *function.args.kwonlyargs]
            if argument.arg != "self"
        ]

    return {
        "LLM": parameters("llm", "LLM", "__init__"),
        "EngineArgs": fields("engine", "EngineArgs"),
        "generate": parameters("llm", "LLM", "generate"),
        "SamplingParams": fields("sampling", "SamplingParams"),
        "Logprob": fields("logprob", "Logprob"),
        "CompletionOutput": fields("output", "CompletionOutput"),
        "RequestOutput": parameters("output", "RequestOutput", "__init__"),
    }


SOURCE = '''
"""See tests/support/vllm_stand_in.py."""

import dataclasses
import types

INTERFACE = {interface}


def _only(name, given):
    unknown = [key for key in given if key not in INTERFACE[name]]
    if unknown:
        raise TypeError(f"{{name}} has no {{unknown[0]}}")


def _made(name, **values):
    _only(name, values)
    return types.SimpleNamespace(**values)


class SamplingParams:
    def __init__(self, **given):
        _only("SamplingParams", given)
        for name, value in {{"temperature": 1.0, "max_tokens": 16, "prompt_logprobs": None, "logprobs": None, "stop": None}}.items():
            setattr(self, name, given.get(name, value))


EngineArgs = dataclasses.make_dataclass("EngineArgs", INTERFACE["EngineArgs"])


class LLM:
    def __init__(self, model, **given):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        unknown = [key for key in given if key not in INTERFACE["LLM"] + INTERFACE["EngineArgs"]]
        if unknown:
            raise TypeError(f"LLM has no {{unknown[0]}}")
        if given.get("data_parallel_size", 1) > 1:
            raise ValueError("not supported for single-process usage")
        self.longest = given["max_model_len"]
        self.tokenizer = AutoTokenizer.from_pretrained(given.get("tokenizer") or model)
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
        if self.longest > self.model.config.max_position_embeddings:
            raise ValueError("max_model_len is more than the model takes")

    def generate(self, prompts, sampling_params=None, **given):
        _only("generate", given)
        assert len(prompts) == len(sampling_params)
        return [self._one(prompt["prompt_token_ids"], how) for prompt, how in zip(prompts, sampling_params)]

    def _row(self, logits, token, most):
        import torch

        values = torch.log_softmax(logits.float(), dim=-1)
        wanted = {{token, *values.topk(most).indices.tolist()}}
        return {{
            one: _made("Logprob", logprob=float(values[one]), rank=int((values >= values[one]).sum())) for one in wanted
        }}

    def _one(self, tokens, how):
        import torch

        if not 0 < len(tokens) < self.longest:
            raise ValueError(f"a prompt of {{len(tokens)}} tokens does not fit {{self.longest}}")
        assert how.temperature == 0
        made, rows, prompt_rows, finish, text = [], [], None, "length", ""
        with torch.inference_mode():
            if how.prompt_logprobs is not None:
                logits = self.model(input_ids=torch.tensor([tokens])).logits[0]
                prompt_rows = [None] + [
                    self._row(logits[place - 1], token, how.prompt_logprobs) for place, token in enumerate(tokens) if place
                ]
            for _ in range(how.max_tokens):
                logits = self.model(input_ids=torch.tensor([[*tokens, *made]])).logits[0, -1]
                made.append(int(logits.argmax()))
                rows.append(self._row(logits, made[-1], how.logprobs or 0))
                if made[-1] == self.tokenizer.eos_token_id:
                    finish = "stop"
                    break
                text = self.tokenizer.decode(made, skip_special_tokens=True)
                places = [text.find(stop) for stop in how.stop or [] if stop in text]
                if places:
                    text, finish = text[: min(places)], "stop"
                    break
        output = _made(
            "CompletionOutput", index=0, text=text, token_ids=made, cumulative_logprob=None,
            logprobs=None if how.logprobs is None else rows, finish_reason=finish,
        )
        return _made("RequestOutput", request_id="0", prompt_token_ids=tokens, prompt_logprobs=prompt_rows, outputs=[output])
'''


def install(folder: Path) -> None:
    """Write the module to a folder for `sys.path`, with the metadata of an installed package."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    (folder / "vllm.py").write_text(
        SOURCE.format(interface=recorded["interface"]), encoding="utf-8"
    )
    info = folder / "vllm-0.33.0+cpu.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.0+cpu\n", encoding="utf-8"
    )
