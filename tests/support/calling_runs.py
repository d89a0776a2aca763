"""A finished run whose model calls tools, with hostile texts in calls and results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from evalwright import Run, ScriptedModel, evaluate, load_task
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from support.hostile import HOSTILE

HOSTILE_TEXT = "\n".join(
    text for text in HOSTILE if not any("\ud800" <= sign <= "\udfff" for sign in text)
)
"""Without lone surrogates, which no YAML file can hold."""
LOOK_UP: dict[str, Any] = {
    "name": "look_up",
    "description": "Look a word up.",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
}


def calling_run(folder: Path) -> Run:
    """Evaluate one item: a call, its result, a call that fails, and a last call as the answer."""
    rows = [
        {
            "id": "tide",
            "question": "What is a tide?",
            "tools": [LOOK_UP],
            "results": [
                {
                    "name": "look_up",
                    "arguments": {"word": "tide"},
                    "result": HOSTILE_TEXT,
                }
            ],
            "calls": [{"name": "look_up", "arguments": {"word": "ebb"}}],
        }
    ]
    definition = {
        "task": "calling",
        "dataset": {"rows": rows},
        "prompt": {"user": "{{ question }}"},
        "tools": "{{ tools }}",
        "strategy": {"name": "tool-loop", "max_steps": 3, "results": "{{ results }}"},
        "scorers": ["tool-calls"],
    }
    file = folder / "calling.yaml"
    file.write_text(yaml.safe_dump(definition), encoding="utf-8")
    model = ScriptedModel([_calling("tide"), _calling(HOSTILE_TEXT), _calling("ebb")])
    [run] = evaluate(load_task(str(file)), model, name="calling", out=folder / "runs")
    return run


def _calling(word: str) -> Response:
    call = ToolCall("look_up", json.dumps({"word": word}), f"call_{len(word)}")
    return Response(finish_reason="tool_calls", tool_calls=(call,))
