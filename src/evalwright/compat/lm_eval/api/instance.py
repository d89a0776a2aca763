"""One request, as model classes of lm-evaluation-harness get it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

OutputType = Literal[
    "loglikelihood", "loglikelihood_rolling", "generate_until", "multiple_choice"
]


@dataclass
class Instance:
    """One request. `args` is what is asked:

    loglikelihood: (context, continuation). loglikelihood_rolling: (text,). generate_until: (prompt,
    settings), where settings has `until` (a list of stop strings), `do_sample`, `temperature`, and,
    where the task sets them, `max_gen_toks`, `top_p`, `seed`. idx: its place among the requests of
    one call. metadata: (task, document, repeats); the engine asks for content, not for documents,
    so `doc` is empty. Classes of before release 0.4 unpack it like its `args`.
    """

    request_type: OutputType
    doc: dict[str, Any]
    arguments: tuple[Any, ...]
    idx: int
    metadata: tuple[str | None, int | None, int | None] = (None, None, None)
    resps: list[Any] = field(default_factory=list)
    filtered_resps: dict[str, Any] = field(default_factory=dict)
    task_name: str | None = None
    doc_id: int | None = None
    repeats: int | None = None

    def __post_init__(self) -> None:
        self.task_name, self.doc_id, self.repeats = self.metadata

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments, always as a tuple."""
        return (
            self.arguments if isinstance(self.arguments, tuple) else (self.arguments,)
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.args)

    def __getitem__(self, index: int) -> Any:
        return self.args[index]
