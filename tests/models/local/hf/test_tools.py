"""Tools of transformers models: the format is found by the template, and calls are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.conversation import reply_turn, result_turn
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from support import tool_templates
from support.local_models import answers
from support.tiny_models import CHAT_TEMPLATE, make_tiny_model, make_tokenizer

pytestmark = pytest.mark.torch

TIDES = ToolDefinition.of(
    "tides",
    "High tide.",
    {"type": "object", "properties": {"port": {"type": "string"}}},
)
QUESTION = Message("user", "High tide?")


def renderer(template: str, **arguments: Any) -> Any:
    from evalwright.models.local.hf.prompts import ChatRenderer

    return ChatRenderer(make_tokenizer("llama", chat=template), None, arguments)


@pytest.mark.parametrize(
    ("template", "name"),
    [
        (tool_templates.HERMES, "hermes"),
        (tool_templates.QWEN_CODER, "qwen-coder"),
        (tool_templates.LLAMA, "llama"),
        (tool_templates.MISTRAL, "mistral"),
        (tool_templates.MISTRAL_ARGUMENTS, "mistral"),
        (tool_templates.UNKNOWN, None),
        (CHAT_TEMPLATE, None),
    ],
)
def test_the_template_itself_says_how_calls_are_written(
    template: str, name: str | None
) -> None:
    tool_format = renderer(template).tool_format()
    assert (tool_format and tool_format.name) == name


def test_tools_calls_and_results_are_in_the_rendered_prompt() -> None:
    call = ToolCall("tides", '{"port": "Brest"}', "call_of_another_length")
    turns = (
        QUESTION,
        Message("assistant", "", tool_calls=(call, ToolCall("tides", "{broken", "x"))),
        result_turn(call, "04:12"),
        Message("tool", "not JSON", tool_call_id="x", is_error=True),
    )
    text, _ = renderer(tool_templates.MISTRAL).render(turns, (TIDES,))
    assert text.startswith('<|im_start|>system\nTools:\n{"name": "tides"')
    assert '"arguments": {"port": "Brest"}, "id": "000010000"' in text
    assert '"arguments": {"arguments": "{broken"}' in text
    assert text.endswith("tool\nnot JSON<|im_end|>\n<|im_start|>assistant\n")
    plain, _ = renderer(tool_templates.MISTRAL).render((QUESTION,))
    assert "Tools" not in plain


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was trained until it calls the tool at the question, and answers by its result."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from evalwright.models.local.hf.prompts import ChatRenderer
    from support.tiny_models import saved

    folder = make_tiny_model(
        tmp_path_factory.mktemp("caller") / "model",
        "qwen2",
        chat=tool_templates.HERMES,
        hidden=64,
        context=512,
    )
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    chat = ChatRenderer(tokenizer, None, {})
    first, _ = chat.render((QUESTION,), (TIDES,))
    call = (
        '<tool_call>\n{"name": "tides", "arguments": {"port": "Brest"}}\n</tool_call>'
    )
    calling = Message(
        "assistant", "", tool_calls=(ToolCall("tides", '{"port": "Brest"}'),)
    )
    second, _ = chat.render(
        (QUESTION, calling, result_turn(calling.tool_calls[0], "04:12")), (TIDES,)
    )
    rows = []
    for prompt, reply in ((first, call), (second, "At 04:12.")):
        context = tokenizer.encode(prompt, add_special_tokens=False)
        target = tokenizer.encode(reply + "<|im_end|>", add_special_tokens=False)
        rows.append((torch.tensor([context + target]), len(context)))
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _step in range(400):
        total = 0.0
        for ids, start in rows:
            labels = ids.clone()
            labels[:, :start] = -100
            loss = model(input_ids=ids, labels=labels).loss
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        if total < 0.02:
            break
    assert total < 0.1, total
    saved(model, tokenizer, folder)
    return folder


def test_a_real_model_calls_a_tool_and_answers_by_its_result(caller: Path) -> None:
    from evalwright.models.local.hf.transformers_model import TransformersModel

    model = TransformersModel(str(caller))
    opening = Generate((QUESTION,), max_tokens=120, tools=(TIDES,))
    assert model.refuses(opening) is None
    [response] = answers(model, [opening])
    assert isinstance(response, Response), response
    assert (response.text, response.finish_reason) == ("", "tool_calls")
    [call] = response.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("tides", {"port": "Brest"})
    turns = (QUESTION, reply_turn(response), result_turn(call, "04:12"))
    [final] = answers(model, [Generate(turns, max_tokens=120, tools=(TIDES,))])
    assert (final.text, final.tool_calls) == ("At 04:12.", ())


def test_what_a_free_text_cannot_be_held_to_is_refused(caller: Path) -> None:
    from evalwright.models.local.hf.transformers_model import TransformersModel

    model = TransformersModel(str(caller))
    refusals = {
        "tool_choice": Generate((QUESTION,), tools=(TIDES,), tool_choice="required"),
        "parallel_tool_calls": Generate(
            (QUESTION,), tools=(TIDES,), parallel_tool_calls=False
        ),
    }
    for name, request in refusals.items():
        assert f"Leave {name} out" in str(model.refuses(request))
    forbidden = Generate((QUESTION,), 120, tools=(TIDES,), tool_choice="none")
    assert model.refuses(forbidden) is None
    [response] = answers(model, [forbidden])
    assert response.tool_calls == ()
    assert response.text.startswith("<tool_call>")


def test_a_template_without_a_known_form_or_without_tools_is_refused(
    tmp_path: Path,
) -> None:
    from evalwright.models.local.hf.transformers_model import TransformersModel

    unknown = make_tiny_model(
        tmp_path / "unknown", "llama", chat=tool_templates.UNKNOWN
    )
    request = Generate((QUESTION,), tools=(TIDES,))
    assert "in no form that is known here" in str(
        TransformersModel(str(unknown)).refuses(request)
    )
    plain = make_tiny_model(tmp_path / "plain", "llama", chat=True)
    refusal = str(TransformersModel(str(plain)).refuses(request))
    assert "does not take tools: its chat template has no place for them" in refusal
