"""Rows of servers on one's own machine: what is sent are fields that the servers' sources
declare, and log-likelihoods are the weights'.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.requests import Generate, LogLikelihood, Message, Request
from evalwright.core.responses import Response
from evalwright.core.tools import ToolDefinition
from evalwright.models.model_interface import RemoteModel
from evalwright.models.registry import open_model
from support import openai_server
from support.llamacpp_server import is_part, token_bytes
from support.local_models import log_likelihood
from support.openai_server import serving
from support.tiny_models import make_tiny_model

FIELDS: dict[str, Any] = json.loads(
    Path(openai_server.__file__)
    .with_name("local_server_fields.json")
    .read_text(encoding="utf-8")
)
"""By row the version of which the fields were read, and the fields of both interfaces."""
SCHEMA = '{"type":"object"}'
EVERY: dict[str, Any] = {
    "top_k": 5,
    "min_p": 0.1,
    "num_beams": 2,
    "top_logprobs": 1,
    "json_schema": SCHEMA,
}

TOOLS = (ToolDefinition.of("now"),)
TOOL_OPTIONS = {"tool_choice": "auto", "parallel_tool_calls": True}


def ask(name: str, request: Request, **given: Any) -> Response:
    async def once() -> Response:
        model = open_model(name, given)
        assert isinstance(model, RemoteModel)
        assert model.refuses(request) is None
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return asyncio.run(once())


@pytest.mark.parametrize("row", FIELDS)
@pytest.mark.parametrize("interface", ["chat", "completions"])
def test_only_declared_fields_are_sent(row: str, interface: str) -> None:
    declared = FIELDS[row][interface]
    beyond = {"top_k", "min_p", "use_beam_search", "length_penalty", "n"}.intersection(
        declared
    )
    with serving(extra=tuple(beyond)) as server:
        name = f"{row}/{server.url}#m"
        model = open_model(name, {"interface": interface})
        options = {
            option: value for option, value in EVERY.items() if option in model.carries
        }
        asked: list[dict[str, Any]] = [
            {"temperature": 0.0},
            {
                "temperature": 0.7,
                "top_p": 0.9,
                "seed": 3,
                "stop": ("x",),
                "max_tokens": 9,
            },
        ]
        asked += [
            {option: value}
            for option, value in options.items()
            if option != "top_logprobs"
        ]
        if "tools" in model.carries:
            tool_options = {
                option: value
                for option, value in TOOL_OPTIONS.items()
                if option in model.carries
            }
            asked += [{"tools": TOOLS}, {"tools": TOOLS, **tool_options}]
        prompt = (
            "Hello"
            if interface == "completions"
            else (Message("system", "Be brief."), Message("user", "Hello"))
        )
        for settings in asked:
            ask(name, Generate(prompt, **settings), interface=interface)
        assert server.log is not None and len(server.log) == len(asked)
        sent = {field for entry in server.log for field in entry["body"]}
    assert sent <= set(declared), (
        f"{row} {FIELDS[row]['version']} does not declare {sent - set(declared)}"
    )


def test_what_each_row_can_do() -> None:
    found = {
        row: open_model(f"{row}/m", {"interface": "completions"}).abilities
        for row in (*FIELDS, "tgi", "llamacpp")
    }
    gives = {row for row, abilities in found.items() if "log-likelihood" in abilities}
    assert gives == {"vllm", "sglang", "llamacpp"}


def test_a_stop_string_that_a_server_leaves_in_its_text_is_cut_off() -> None:
    with serving(lambda prompt: "one two three", edit=_with_stop) as server:
        found = ask(
            f"transformers-serve/{server.url}#m",
            Generate("x", stop=("two",)),
            interface="completions",
        )
    assert found.text == "one "


def _with_stop(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    reply["choices"][0]["text"] += body["stop"][0]
    return reply


@pytest.mark.torch
@pytest.mark.parametrize("context", ["시험에", "A town", ""])
def test_sglang_writes_parts_of_characters_byte_by_byte(
    tmp_path: Path, context: str
) -> None:
    folder = make_tiny_model(tmp_path / "model")
    request = LogLikelihood(context, " 문제가 café 쉽다")

    def as_sglang(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        ids = server.answers.tokenizer(body["prompt"])["input_ids"]  # type: ignore[attr-defined]
        block = reply["choices"][0]["logprobs"]
        raw = [token_bytes(server.answers.tokenizer, one) for one in ids]  # type: ignore[attr-defined]
        texts = [one.decode("latin-1" if is_part(one) else "utf-8") for one in raw]
        block["tokens"][: len(ids)] = texts
        block["text_offset"] = [-1] * len(block["tokens"])
        return reply

    with serving(folder, edit=as_sglang) as server:
        found = ask(
            f"sglang/{server.url}#m", request, interface="completions", echo=True
        )
    there = log_likelihood(open_model(f"hf/{folder}"), context, request.continuation)  # type: ignore[arg-type]
    assert found.log_likelihood == pytest.approx(there, abs=1e-3)
