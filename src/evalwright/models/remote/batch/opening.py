"""Opens a model as its name and arguments say, through its provider's batch jobs if requested."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.models import arguments
from evalwright.models.model_interface import Model, RemoteModel
from evalwright.models.registry import open_model, parse_name
from evalwright.models.remote import providers as table
from evalwright.models.remote.batch.journal import Journal
from evalwright.models.replicated import ReplicaPool

_SETTINGS = {"batch_size": "size", "batch_poll": "poll"}


def open_batched(
    name: str,
    model_arguments: Mapping[str, Any] | None = None,
    *,
    batch: bool = False,
    home: Path = Path(".evalwright"),
) -> Model:
    """Open a model like `open_model`, with three more arguments for batch jobs.

    They are batch (true or false), batch_size (requests) and batch_poll (seconds). For a local
    model batch_size is instead the number of requests computed at once.

    Args:
        name: the model's name.
        model_arguments: its arguments.
        batch: whether to use batch jobs if the arguments do not say.
        home: the folder of the journal of batches.

    Raises:
        ConfigurationError: the model has no batch interface; or it is opened without batches
            although one is in progress, which would pay twice.
    """
    settings = dict(model_arguments or {})
    batched: bool | None = batch
    if "batch" in settings:
        batched = arguments.flag("batch", settings.pop("batch"))
    options = (
        {key: settings.pop(key) for key in _SETTINGS if key in settings}
        if batched
        else {}
    )
    for key in _SETTINGS:
        if key in settings and parse_name(name)[0] in table.names():
            raise ConfigurationError(
                f"{key} is a setting of batch jobs: add --batch, or leave out {key}."
            )
    model = open_model(name, settings)
    if batched:
        from evalwright.models.remote.api import ApiModel
        from evalwright.models.remote.batch.batch_model import BatchModel

        if isinstance(model, ReplicaPool):
            raise ConfigurationError(
                "Batch jobs go to one endpoint: leave out --batch, or leave out"
                " replicas."
            )
        if not isinstance(model, ApiModel):
            raise ConfigurationError(
                f"'{name}' has no batch jobs: only remote providers offer them. Leave"
                " out --batch."
            )
        return BatchModel(
            model, home, **{_SETTINGS[key]: value for key, value in options.items()}
        )
    if isinstance(model, RemoteModel) and Journal.is_there(home):
        _check_open(model, home)
    return model


def _check_open(model: Model, home: Path) -> None:
    journal = Journal(home)
    try:
        entries = journal.entries()
    finally:
        journal.close()
    for entry in entries:
        if entry.model == model.fingerprint and not entry.ended:
            raise ConfigurationError(
                f"A batch of {entry.n} requests to '{model.name}' is still in progress"
                f" at {entry.place}: add --batch to use its answers, or give it up with"
                f" 'evalwright store batches forget {entry.number}'."
            )
