"""Opens a model with `replicas` among its arguments: endpoints of a remote model, or processes.

replicas=http://a:8000/v1,http://b:8000/v1                     addresses
replicas=[{"api_key_env": "KEY_A"}, {"api_key_env": "KEY_B"}]  what differs from the model's own
replicas=4                                                     processes of a local model
devices=all                                                    one such process on each device
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError, check_known
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.secrets import without_login
from evalwright.models import arguments
from evalwright.models.built_in import BUILT_IN
from evalwright.models.model_interface import (
    Forwarding,
    LocalModel,
    Model,
    RemoteModel,
    fingerprint_of,
)
from evalwright.models.replicas import Replica

if TYPE_CHECKING:
    from evalwright.models.local.replica_layout import ReplicaSettings

ARGUMENTS = ("replicas", "replicas_differ", "devices", "devices_per_replica")
_DIFFERING = (
    "api_key_env",
    "base_url",
    "headers",
    "max_concurrency",
    "model",
    "requests_per_minute",
    "variables",
)
"""Arguments that may differ for one endpoint: none that would change an answer."""
_FORM = (
    "replicas must be addresses with commas between them, such as"
    " replicas=http://a:8000/v1,http://b:8000/v1, or a list of mappings, each with what"
    " differs"
)

Open = Callable[[str, Mapping[str, Any]], Model]
"""Opens one model without replicas."""


class ReplicaPool(Forwarding):
    """A remote model behind several endpoints that answer alike: URLs, keys, regions.

    To all code except the engine's sender it is the model.

    Args:
        model: the model without its replicas, whose fingerprint the pool has.
        endpoints: (name, model) of each.
        differ: whether the endpoints may answer differently; then their answers are never shared
            with the model or another pool.
    """

    def __init__(
        self,
        model: RemoteModel,
        endpoints: Sequence[tuple[str, RemoteModel]],
        *,
        differ: bool = False,
    ) -> None:
        super().__init__(model)
        self.resumes = model.resumes
        most = sum(member.pacing.max_concurrency for _, member in endpoints)
        self.pacing = replace(model.pacing, max_concurrency=most)
        self.replicas = [Replica(name) for name, _ in endpoints]
        self._endpoints = [member for _, member in endpoints]
        fingerprints = sorted(member.fingerprint for member in self._endpoints)
        self.differ = differ
        if differ:
            self.fingerprint = fingerprint_of({"replicas": fingerprints})

    def members(self) -> list[tuple[RemoteModel, Replica]]:
        """Return each endpoint with its record."""
        return list(zip(self._endpoints, self.replicas, strict=True))

    def describe(self) -> dict[str, Any]:
        """Describe the model, and each endpoint with its record."""
        description = super().describe()
        mine: list[dict[str, Any]] = []
        for member, replica in self.members():
            member_description = member.describe()
            differing = {
                name: member_description[name]
                for name in ("base_url", "key", "model")
                if member_description.get(name) != description.get(name)
            }
            mine.append({**replica.as_dict(), **differing})
        return {**description, "fingerprint": self.fingerprint, "replicas": mine}

    def check(self) -> None:
        """Check every endpoint."""
        for member in self._endpoints:
            member.check()

    def listen(self, tell: Callable[[str], None]) -> None:
        """Pass the callback to every endpoint."""
        for member in self._endpoints:
            member.listen(tell)

    async def answer(self, request: Request) -> Response:
        """Answer by the first endpoint; the engine itself calls each endpoint directly."""
        return await self._endpoints[0].answer(request)

    async def close(self) -> None:
        """Release the connections of all endpoints."""
        for member in (self._model, *self._endpoints):
            await member.close()


def open_replicated(
    name: str,
    model_arguments: Mapping[str, Any],
    open_one: Open,
    options: Sequence[str],
) -> Model:
    """Open the model that `name` and `model_arguments`, which have `replicas`, describe.

    Args:
        name: the model's name.
        model_arguments: its arguments.
        open_one: opens the model of one replica.
        options: names of the arguments that the model takes.

    Raises:
        UsageError: like `open_one`.
    """
    common = dict(model_arguments)
    replicas = common.pop("replicas", None)
    devices = common.pop("devices", None)
    per_replica = common.pop("devices_per_replica", None)
    places_processes = devices is not None or per_replica is not None
    if _is_count(replicas) or (replicas is None and places_processes):
        from evalwright.models.local.replica_layout import ReplicaSettings

        placing = ReplicaSettings(replicas, devices, per_replica)
        return _in_processes(name, common, placing, open_one, options)
    if replicas is None:
        raise ConfigurationError(
            "replicas_differ has no effect without replicas: name them, or leave it"
            " out."
        )
    _refuse_no_addresses(name, replicas, options)
    if places_processes:
        raise ConfigurationError(
            f"{_device_argument(devices)} is for models that are computed here, and"
            " replicas has addresses: leave one of them out."
        )
    differ = arguments.flag("replicas_differ", common.pop("replicas_differ", None))
    endpoints = _open_endpoints(name, common, _list_endpoints(replicas), open_one)
    has_address = "base_url" in common or _address(name)
    model = open_one(name, common) if has_address else endpoints[0][1]
    assert isinstance(model, RemoteModel)
    return ReplicaPool(model, endpoints, differ=bool(differ))


def _is_count(replicas: Any) -> bool:
    return isinstance(replicas, int) and not isinstance(replicas, bool)


def _device_argument(devices: Any) -> str:
    """Return the name of the argument about devices that is set."""
    return "devices_per_replica" if devices is None else "devices"


def _refuse_no_addresses(name: str, replicas: Any, options: Sequence[str]) -> None:
    """Raise ConfigurationError if `replicas` is no number, but the model has no servers."""
    if not _is_computed_here(name, options):
        return
    has_devices = not {"device", "tensor_parallel_size"}.isdisjoint(options)
    advice = " -M devices=all has one on each device." if has_devices else ""
    raise ConfigurationError(
        f"'{name}' is a model in this process, which has no addresses: replicas must be a"
        f" number of processes, such as replicas=2, not {_as_typed(replicas)}.{advice}"
    )


def _is_computed_here(name: str, options: Sequence[str]) -> bool:
    """Return whether the model is a backend of the package that has no server."""
    has_server = not {"base_url", "api_key_env"}.isdisjoint(options)
    return name.partition("/")[0] in BUILT_IN and not has_server


def _as_typed(setting: Any) -> str:
    """Return a setting as it is typed on the command line."""
    if isinstance(setting, str):
        return setting or "''"
    return json.dumps(setting, ensure_ascii=False, default=str)


def _list_endpoints(replicas: Any) -> list[dict[str, Any]]:
    """Return what differs for each endpoint: its address, key, region and such.

    Raises:
        ConfigurationError: `replicas` is not as it must be, or two of them are the same.
    """
    listed = replicas.split(",") if isinstance(replicas, str) else replicas
    if not isinstance(listed, list) or not listed:
        raise ConfigurationError(f"{_FORM}; it is {_as_typed(replicas)}.")
    endpoints: list[dict[str, Any]] = []
    for number, replica in enumerate(listed, 1):
        settings = _settings(replica)
        if settings in endpoints:
            raise ConfigurationError(
                f"Replica {number} is the same as replica {endpoints.index(settings) + 1}:"
                " leave it out."
            )
        endpoints.append(settings)
    return endpoints


def _open_endpoints(
    name: str,
    common: Mapping[str, Any],
    endpoints: Sequence[Mapping[str, Any]],
    open_one: Open,
) -> list[tuple[str, RemoteModel]]:
    """Open the model of each endpoint; return them with their labels."""
    opened: list[tuple[str, RemoteModel]] = []
    for number, settings in enumerate(endpoints, 1):
        endpoint = open_one(
            _endpoint_name(name, settings),
            {**common, **_merge_settings(common, settings)},
        )
        if not isinstance(endpoint, RemoteModel):
            raise ConfigurationError(
                f"'{name}' is a model in this process, which has no addresses: leave out"
                " replicas."
            )
        endpoint.name = name
        opened.append((_label(settings, number), endpoint))
    return opened


def _in_processes(
    name: str,
    common: dict[str, Any],
    settings: ReplicaSettings,
    open_one: Open,
    options: Sequence[str],
) -> Model:
    """Open a local model whose replicas are processes of this machine."""
    from evalwright.models.local.hardware.devices import list_devices
    from evalwright.models.local.hardware.machine import usable_cores
    from evalwright.models.local.processes import in_processes
    from evalwright.models.local.replica_layout import (
        describe_missing,
        lay_out_replicas,
    )

    if common.pop("replicas_differ", None) is not None:
        raise ConfigurationError(
            "replicas_differ has no effect on a model in this machine's processes:"
            " leave it out."
        )
    if settings.devices is not None or settings.devices_per_replica is not None:
        _require_local(name, _device_argument(settings.devices), open_one, common)
    available = list_devices(os.environ)
    layout = lay_out_replicas(
        name,
        common,
        settings,
        options=options,
        available=available,
        cores=usable_cores(),
    )
    if layout is None:
        remark = describe_missing(name, available)
        model = open_one(name, common)
        model.remark = remark
        return model
    common |= layout.model_arguments
    model = open_one(name, common)
    if not isinstance(model, LocalModel):
        raise ConfigurationError(
            f"replicas={settings.replicas} does not suit '{name}', which a server computes:"
            f" {_FORM}."
        )
    if name.partition("/")[0] not in BUILT_IN:
        raise ConfigurationError(
            "Only models of the package's own backends run in several processes:"
            f" '{name}' is a plug-in's. Leave out replicas and devices."
        )
    return in_processes(model, common, layout, options)


def _require_local(
    name: str, argument: str, open_one: Open, common: Mapping[str, Any]
) -> None:
    """Raise ConfigurationError if a model with an argument about devices is not computed here."""
    if not isinstance(open_one(name, common), LocalModel):
        raise ConfigurationError(
            f"{argument} has no effect on '{name}', which a server computes. Leave it out;"
            " replicas=ADDRESS,ADDRESS names several servers."
        )


def _settings(replica: Any) -> dict[str, Any]:
    settings = {"base_url": replica.strip()} if isinstance(replica, str) else replica
    if not isinstance(settings, Mapping) or settings.get("base_url") == "":
        raise ConfigurationError(f"{_FORM}; one of them is {_as_typed(replica)}.")
    check_known("setting of a replica", settings, _DIFFERING)
    return dict(settings)


def _address(name: str) -> str:
    """Return the address in a model's name; "" if it has none."""
    address_and_model = name.partition("/")[2]
    return (
        address_and_model.partition("#")[0]
        if address_and_model.startswith(("http://", "https://"))
        else ""
    )


def _endpoint_name(name: str, settings: Mapping[str, Any]) -> str:
    """Return the name of an endpoint's model, with the endpoint's own address or model name."""
    provider, _, address_and_model = name.partition("/")
    address = _address(name)
    model = settings.get("model") or (
        address_and_model.partition("#")[2] if address else address_and_model
    )
    return (
        f"{provider}/{address}#{model}"
        if address and "base_url" not in settings
        else f"{provider}/{model}"
    )


def _merge_settings(
    common: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Merge an endpoint's settings with the model's own entries in mappings."""
    merged = {key: value for key, value in settings.items() if key != "model"}
    for key in ("headers", "variables"):
        if isinstance(merged.get(key), Mapping) and isinstance(
            common.get(key), Mapping
        ):
            merged[key] = {**common[key], **merged[key]}
    return merged


def _label(settings: Mapping[str, Any], number: int) -> str:
    """Return what people call an endpoint: its address, key, region; never a header."""
    variables = settings.get("variables")
    labels = [
        settings.get("base_url"),
        settings.get("model"),
        settings.get("api_key_env"),
    ]
    labels += variables.values() if isinstance(variables, Mapping) else []
    return (
        " ".join(without_login(str(label)) for label in labels if label)
        or f"replica {number}"
    )
