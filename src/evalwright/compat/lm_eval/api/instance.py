"""A request in the form that model classes of lm-evaluation-harness take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

OutputType = Literal[
    "loglikelihood", "loglikelihood_rolling", "generate_until", "multiple_choice"
]


@dataclass
class Instance:
    """One request.

    `args` depends on the request type:
        loglikelihood: (context, continuation).
        loglikelihood_rolling: (text,).
        generate_until: (prompt, settings); settings has `until` (a list of stop strings),
            `do_sample`,
            `temperature`, and, if the task sets them, `max_gen_toks`, `top_p` and `seed`.

    `idx` is the request's position in the call. `doc` is empty, because the engine sends requests,
    not documents. Classes from before release 0.4 may unpack an instance like its `args`.
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
