"""Renders a chat template as transformers does, in a process with limits of time and memory.

This module is what that process imports: transformers' own function, so that the text is the same,
and nothing of torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers.utils.chat_template_utils import render_jinja_template


def rendered(
    template: str, messages: Sequence[Mapping[str, str]], how: Mapping[str, Any]
) -> str:
    """Return the conversation as text.

    Args:
        template: the chat template.
        messages: the conversation.
        how: how it ends, special tokens, and variables that the template reads.
    """
    texts, _ = render_jinja_template(
        conversations=[list(messages)], chat_template=template, **how
    )
    return str(texts[0])
