"""How families of open models write calls of tools into their text, and how those are read.

Which family a model belongs to is not guessed from its name: its own chat template writes a known
call, and the format that reads exactly that call back is the model's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.outcomes import LENGTH, TOOL_CALLS
from evalwright.core.requests import Message
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition

Calls = list[ToolCall]
Tools = tuple[ToolDefinition, ...]


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """A family's way to write calls.

    Attributes:
        name: the family.
        read: splits a text into what is not a call, and the calls in order.
    """

    name: str
    read: Callable[[str, Tools], tuple[str, Calls]]

    def with_calls(self, response: Response, tools: Tools) -> Response:
        """Return a response with its calls read from its text; they are no longer part of it.

        What the model wrote as reasoning holds no calls.
        """
        reasoning, answer = _after_reasoning(response.text)
        text, calls = self.read(answer, tools)
        if not calls:
            return response
        cut = response.finish_reason == LENGTH
        return replace(
            response,
            text=reasoning + text.strip(),
            tool_calls=tuple(calls),
            finish_reason=LENGTH if cut else TOOL_CALLS,
            tokens=(),
        )


def _after_reasoning(text: str) -> tuple[str, str]:
    end = text.rfind("</think>")
    if end < 0:
        return ("", text) if "<think>" not in text else (text, "")
    end += len("</think>")
    return text[:end], text[end:]


def _call_from(body: str, argument_keys: Sequence[str]) -> ToolCall:
    """Read a call from the JSON of its name and arguments.

    What is no such JSON is a call nevertheless, whose arguments are the text as it stands.
    """
    try:
        written = json.loads(body)
    except (ValueError, RecursionError):
        return _malformed(body)
    return _call_of(written, argument_keys) or _malformed(body)


def _call_of(written: Any, argument_keys: Sequence[str]) -> ToolCall | None:
    if not isinstance(written, Mapping) or not isinstance(written.get("name"), str):
        return None
    arguments: Any = next((written[key] for key in argument_keys if key in written), {})
    call_id = written.get("id")
    return ToolCall(
        written["name"],
        arguments if isinstance(arguments, str) else _as_json(arguments),
        call_id if isinstance(call_id, str) else "",
    )


def _as_json(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)


_NAME_IN_JSON = re.compile(r'"name"\s{0,8}:\s{0,8}"([^"\\]{1,200})"')


def _malformed(body: str) -> ToolCall:
    named = _NAME_IN_JSON.search(body[:2000])
    return ToolCall(named[1] if named else "", body)


_HERMES_OPEN = "<tool_call>"
_HERMES_CLOSE = "</tool_call>"


def _tagged(text: str) -> tuple[str, list[str]]:
    """Split a text into what is outside of <tool_call> tags, and what is inside of each."""
    outside: list[str] = []
    bodies: list[str] = []
    end = 0
    while (start := text.find(_HERMES_OPEN, end)) >= 0:
        outside.append(text[end:start])
        start += len(_HERMES_OPEN)
        close = text.find(_HERMES_CLOSE, start)
        if close < 0:  # the token limit cut it, or the model forgot the tag
            bodies.append(text[start:].strip())
            return "".join(outside), bodies
        bodies.append(text[start:close].strip())
        end = close + len(_HERMES_CLOSE)
    outside.append(text[end:])
    return "".join(outside), bodies


def read_hermes(text: str, tools: Tools) -> tuple[str, Calls]:
    """Read `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` (Hermes, Qwen 2.5, 3)."""
    outside, bodies = _tagged(text)
    return outside, [_call_from(body, ("arguments", "parameters")) for body in bodies]


_FUNCTION_OPEN = re.compile(r"<function=([^>\s]{1,200})>")
_PARAMETER = "<parameter="


def read_qwen_coder(text: str, tools: Tools) -> tuple[str, Calls]:
    """Read `<tool_call><function=NAME><parameter=KEY>value</parameter>...</function></tool_call>`.

    That is how Qwen3-Coder writes them. A value is text unless the tool's schema says that it is
    something else.
    """
    outside, bodies = _tagged(text)
    schemas = {tool.name: tool.schema for tool in tools}
    return outside, [_function_call(body, schemas) for body in bodies]


def _function_call(body: str, schemas: Mapping[str, Mapping[str, Any]]) -> ToolCall:
    opening = _FUNCTION_OPEN.match(body)
    if opening is None:
        return _malformed(body)
    properties = schemas.get(opening[1], {}).get("properties")
    arguments: dict[str, Any] = {}
    for piece in body[opening.end() :].split(_PARAMETER)[1:]:
        key, closed, argument_text = piece.partition(">")
        if not closed:
            return ToolCall(opening[1], body)
        argument_text = argument_text.partition("</parameter>")[0]
        argument_text = argument_text.removeprefix("\n").removesuffix("\n")
        of_key = properties.get(key) if isinstance(properties, Mapping) else None
        arguments[key] = _typed(argument_text, of_key)
    return ToolCall(opening[1], _as_json(arguments))


def _typed(text: str, schema: Any) -> Any:
    """Return a value as the schema's type; as text where that is its type, or it cannot be read."""
    if not isinstance(schema, Mapping) or schema.get("type") in (None, "string"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"True": True, "False": False, "None": None}.get(text, text)


_LLAMA_KEYS = ("parameters", "arguments")
_PYTHON_TAG = "<|python_tag|>"
_LLAMA_START = re.compile(r'\{\s{0,8}"(?:type"\s{0,8}:\s{0,8}"function"|name")')


def read_llama(text: str, tools: Tools) -> tuple[str, Calls]:
    """Read `{"name": ..., "parameters": {...}}`, the whole of a reply (Llama 3.1, 3.2, 3.3, 4).

    Several are separated by semicolons. A reply with other text holds no call.
    """
    body = text.strip().removeprefix(_PYTHON_TAG).strip()
    if not _LLAMA_START.match(body):
        return text, []
    calls: Calls = []
    decoder = json.JSONDecoder()
    position = 0
    while position < len(body):
        try:
            written, end = decoder.raw_decode(body, position)
        except (ValueError, RecursionError):
            if body[position] != "{":
                return text, []
            return "", [*calls, _malformed(body[position:])]
        call = _call_of(written, _LLAMA_KEYS)
        if call is None or written.keys().isdisjoint(_LLAMA_KEYS):
            return text, []
        calls.append(call)
        while end < len(body) and body[end] in "; \n\t":
            end += 1
        position = end
    return "", calls


_MISTRAL_MARK = "[TOOL_CALLS]"
_MISTRAL_ARGUMENTS = "[ARGS]"
_MISTRAL_ID = "[CALL_ID]"


def read_mistral(text: str, tools: Tools) -> tuple[str, Calls]:
    """Read `[TOOL_CALLS][{"name": ..., "arguments": {...}}]` or `[TOOL_CALLS]NAME[ARGS]{...}`.

    The second form, of newer tokenizers, may have `[CALL_ID]` and an id before the arguments.
    """
    before, mark, after = text.partition(_MISTRAL_MARK)
    if not mark:
        return text, []
    calls: Calls = []
    for body in after.split(_MISTRAL_MARK):
        calls.extend(_mistral_calls(body.strip()))
    return before, calls


def _mistral_calls(body: str) -> Iterator[ToolCall]:
    if body.startswith(("[", "{")):
        try:
            written, _ = json.JSONDecoder().raw_decode(body)
        except (ValueError, RecursionError):
            yield _malformed(body)
            return
        for row in written if isinstance(written, list) else [written]:
            yield _call_of(row, ("arguments", "parameters")) or _malformed(
                _as_json(row)
            )
        return
    head, _, arguments = body.partition(_MISTRAL_ARGUMENTS)
    name, _, call_id = head.partition(_MISTRAL_ID)
    yield ToolCall(name.strip(), arguments.strip(), call_id.strip())


FORMATS = (
    ToolFormat("qwen-coder", read_qwen_coder),
    ToolFormat("hermes", read_hermes),
    ToolFormat("mistral", read_mistral),
    ToolFormat("llama", read_llama),
)

_PROBE_TOOL = ToolDefinition.of(
    "look_up",
    "Look something up.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "what to look up"}},
        "required": ["query"],
    },
)
_PROBE_ARGUMENTS = {"query": "tide tables"}
_PROBE_CALL = ToolCall(_PROBE_TOOL.name, json.dumps(_PROBE_ARGUMENTS), "abcdefghi")
_PROBE_QUESTION = Message("user", "When is high tide?")
_PROBE_TURN = Message("assistant", "", tool_calls=(_PROBE_CALL,))

Render = Callable[[Sequence[Message], Tools, bool], str]
"""Renders turns with tools; the flag asks for the opening of the model's turn."""


def format_of(render: Render) -> ToolFormat | None:
    """Find out how a chat template writes calls, by letting it write one.

    Args:
        render: renders turns by the template; it may raise where the template refuses.

    Returns:
        The format that reads the call back, None if there is none or the template ignores tools.
    """
    try:
        question = render((_PROBE_QUESTION,), (_PROBE_TOOL,), True)
        answered = render((_PROBE_QUESTION, _PROBE_TURN), (_PROBE_TOOL,), False)
    except Exception:  # a template can raise any exception
        return None
    if _PROBE_TOOL.name not in question:
        return None
    # Templates may end the opening of a turn differently from the turn itself, so the model's text
    # begins where the two renderings part.
    start = next(
        (
            index
            for index, (one_sign, other_sign) in enumerate(
                zip(question, answered, strict=False)
            )
            if one_sign != other_sign
        ),
        min(len(question), len(answered)),
    )
    for tool_format in FORMATS:
        if _reads_probe(tool_format, answered, start):
            return tool_format
    return None


def _reads_probe(tool_format: ToolFormat, rendered: str, start: int) -> bool:
    # What a template writes before and after a turn is not known: its beginning is looked for up to
    # the mark of the family, its end at the last sign that closes a call.
    for beginning in range(start, max(start - 40, 0) - 1, -1):
        for end in _ends(rendered, beginning):
            _, calls = tool_format.read(rendered[beginning:end], (_PROBE_TOOL,))
            if len(calls) == 1 and calls[0].name == _PROBE_TOOL.name:
                try:
                    if calls[0].parsed() == _PROBE_ARGUMENTS:
                        return True
                except ValueError:
                    continue
    return False


def _ends(rendered: str, beginning: int) -> Iterator[int]:
    """Yield where a turn may end: behind its last closing sign, or at the end of the text."""
    last = max(rendered.rfind(sign) for sign in ("}", "]", ">"))
    closing = rendered.rfind("}")
    for end in (closing + 1, last + 1, len(rendered)):
        if end > beginning:
            yield end
