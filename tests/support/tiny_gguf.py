"""A tiny Llama as a GGUF file that calls tools, for llama.cpp's own server.

Its attention and its middle layers are zero, so that each token follows from the one before it
alone: after the head of its turn it writes `SAYS`, piece by piece. Its chat template has tools.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
SAYS = (
    '<tool_call>\n{"name": "weather", "arguments": {"city": "',
    "서울",
    '"}}\n</tool_call>',
    '\n<tool_call>\n{"name": "now", "arguments": {',
    "}}\n</tool_call>",
)
TEMPLATE = """\
{%- if tools %}{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n' }}{%- endif %}
{{- 'Tools:' }}
{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
{{- '\\nCall one with <tool_call>\\n{"name": NAME, "arguments": OBJECT}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'assistant' and not message.tool_calls) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant' }}
{%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
{%- for tool_call in message.tool_calls %}
{%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
{{- '\\n<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' }}
{{- tool_call.arguments | tojson }}{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
_UINT32 = 4
_FLOAT32 = 6
_BOOL = 7
_STRING = 8
_ARRAY = 9
_INT32 = 5
_ALIGNMENT = 32
_MULTIPLE = 64  # halves of heads are rotated
_NORMAL_TOKEN = 1
_CONTROL_TOKEN = 3


def write_tiny_gguf(path: Path) -> Path:
    """Write the file, and return its path."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letter_of = {byte: chr(byte) for byte in printable}
    letter_of |= {byte: chr(256 + index) for index, byte in enumerate(others)}
    pieces = ["".join(letter_of[byte] for byte in piece.encode()) for piece in SAYS]
    tokens = [*letter_of.values(), *SPECIAL, "ab", *pieces]
    kinds = [_NORMAL_TOKEN] * 256 + [_CONTROL_TOKEN] * len(SPECIAL)
    kinds += [_NORMAL_TOKEN] * (1 + len(pieces))
    width = -(-len(tokens) // _MULTIPLE) * _MULTIPLE
    end = tokens.index("<|im_end|>")
    chain = [tokens.index(letter_of[ord("\n")]), *map(tokens.index, pieces), end]
    fields: dict[str, tuple[int, Any]] = {
        "general.architecture": (_STRING, "llama"),
        "general.name": (_STRING, "tiny"),
        "llama.context_length": (_UINT32, 8192),
        "llama.embedding_length": (_UINT32, width),
        "llama.block_count": (_UINT32, 1),
        "llama.feed_forward_length": (_UINT32, width),
        "llama.attention.head_count": (_UINT32, 2),
        "llama.attention.head_count_kv": (_UINT32, 2),
        "llama.attention.layer_norm_rms_epsilon": (_FLOAT32, 1e-5),
        "llama.rope.dimension_count": (_UINT32, width // 2),
        "llama.vocab_size": (_UINT32, len(tokens)),
        "tokenizer.ggml.model": (_STRING, "gpt2"),
        "tokenizer.ggml.pre": (_STRING, "gpt-2"),
        "tokenizer.ggml.tokens": (_ARRAY, (_STRING, tokens)),
        "tokenizer.ggml.token_type": (_ARRAY, (_INT32, kinds)),
        "tokenizer.ggml.merges": (_ARRAY, (_STRING, ["a b"])),
        "tokenizer.ggml.bos_token_id": (_UINT32, 256),
        "tokenizer.ggml.eos_token_id": (_UINT32, end),
        "tokenizer.ggml.add_bos_token": (_BOOL, False),
        "tokenizer.chat_template": (_STRING, TEMPLATE),
    }
    one_hot = np.eye(len(tokens), width, dtype="<f4")
    following = np.zeros((len(tokens), width), "<f4")
    for token, next_token in pairwise(chain):
        following[next_token, token] = 1
    square = [f"blk.0.attn_{part}.weight" for part in ("q", "k", "v", "output")]
    tensors = {
        "token_embd.weight": one_hot,
        "output.weight": following,
        "output_norm.weight": np.ones(width, "<f4"),
        "blk.0.attn_norm.weight": np.ones(width, "<f4"),
        "blk.0.ffn_norm.weight": np.ones(width, "<f4"),
        **{name: np.zeros((width, width), "<f4") for name in square},
        "blk.0.ffn_gate.weight": np.zeros((width, width), "<f4"),
        "blk.0.ffn_up.weight": np.zeros((width, width), "<f4"),
        "blk.0.ffn_down.weight": np.zeros((width, width), "<f4"),
    }
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(fields))
    for name, (kind, value) in fields.items():
        head += _text(name) + struct.pack("<I", kind) + _value(kind, value)
    blocks = b""
    for name, tensor in tensors.items():
        sizes = tensor.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        head += struct.pack("<IQ", 0, len(blocks))
        blocks += _padded(tensor.tobytes())
    path.write_bytes(_padded(head) + blocks)
    return path


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(kind: int, value: Any) -> bytes:
    if kind == _ARRAY:
        inner, items = value
        head = struct.pack("<IQ", inner, len(items))
        return head + b"".join(_value(inner, item) for item in items)
    if kind == _STRING:
        return _text(value)
    return struct.pack({_UINT32: "<I", _INT32: "<i", _FLOAT32: "<f", _BOOL: "<?"}[kind], value)  # fmt: skip


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
