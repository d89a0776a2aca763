"""Decides on which devices the replicas of a local model run.

devices=all                            a replica on each device
devices=cuda:0,cuda:2                  a replica on each of these
devices=all devices_per_replica=2      a replica on every two devices, which share the model
replicas=4                             four replicas, on the devices in turn or on shares of cores

`devices` says which devices are used and `replicas` how many copies of the model there are; where
only one of them is set, the other follows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.models import arguments as checks
from evalwright.models.local.hardware.devices import (
    KNOWN_KINDS,
    Device,
    Devices,
)

MAX_REPLICAS = 128
"""Most processes of one machine: more are a mistake rather than a wish."""
_NO_ACCELERATOR = "no accelerator that torch can use is here"
_FORM = "Use devices=all, or names such as devices=cuda:0,cuda:2"
_GIB = 2**30
_DEVICE_BYTES = 6 * _GIB // 10
"""Memory that libraries take on every device beside the model."""


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """The user's arguments about replicas; None for each that is not set."""

    replicas: int | None = None
    devices: Any = None
    devices_per_replica: int | None = None


@dataclass(frozen=True, slots=True)
class ReplicaLayout:
    """The devices of each replica.

    Attributes:
        groups: for each replica its devices; an empty group computes on a share of the cores.
        environments: for each replica the variables that show it only its devices.
        model_arguments: arguments of the model that follow from the layout.
        cores: the share of each replica in the cores.
        all_cores: cores of all replicas together.
        place: where replicas without devices of ours compute.
        narrowed_by: the setting that hides further devices; "" if there is none.
    """

    groups: tuple[tuple[Device, ...], ...]
    environments: tuple[Mapping[str, str], ...]
    model_arguments: Mapping[str, Any]
    cores: int = 1
    all_cores: float = 1
    place: str = "the CPU"
    narrowed_by: str = ""

    def names(self) -> list[str]:
        """Return the devices of each replica, such as "cuda:0" or "cuda:0+cuda:1"."""
        return ["+".join(device.name for device in group) for group in self.groups]

    def describe(self) -> str:
        """Describe the layout: "4 replicas: cuda:0, cuda:1, cuda:2, cuda:3"."""
        count = len(self.groups)
        subject = f"{count} replica{'s' * (count > 1)}"
        if not self.groups[0]:
            return f"{subject} on {self.place}, {self._describe_cores()}"
        within = f" (within {self.narrowed_by})" if self.narrowed_by else ""
        return f"{subject}: {', '.join(self.names())}{within}"

    def _describe_cores(self) -> str:
        count = len(self.groups)
        if count > self.all_cores:
            plural = "" if self.all_cores == 1 else "s"
            return f"more than its {self.all_cores:g} core{plural}"
        return f"{self.cores} core{'s' * (self.cores > 1)} each"


def lay_out_replicas(
    name: str,
    arguments: Mapping[str, Any],
    settings: ReplicaSettings,
    *,
    options: Collection[str],
    available: Devices,
    cores: float,
) -> ReplicaLayout | None:
    """Choose the devices of each replica.

    Args:
        name: the model, for messages.
        arguments: the model's other arguments.
        settings: the arguments about replicas.
        options: all arguments that the model takes.
        available: the accelerators of this machine.
        cores: cores that this process may use.

    Returns:
        The layout; None if `devices=all` is one process on the CPU, for want of accelerators.

    Raises:
        ConfigurationError: the arguments do not fit each other or this machine.
    """
    replicas, per_replica = _checked_counts(settings)
    _check_arguments(name, arguments, settings, options)
    chosen = _choose_devices(arguments, settings.devices, options, available)
    if not chosen:
        return _lay_out_on_cores(
            settings, replicas, per_replica, cores, str(arguments.get("device"))
        )
    size = _group_size(arguments, settings, chosen)
    _check_group(name, size, options, chosen)
    if settings.devices is not None:
        _check_all_used(settings.devices, replicas, chosen, size)
    groups = [
        tuple(chosen[start : start + size])
        for start in range(0, len(chosen) - size + 1, size)
    ]
    count = len(groups) if replicas is None else replicas
    spread = [groups[index % len(groups)] for index in range(count)]
    return ReplicaLayout(
        groups=tuple(spread),
        environments=tuple(available.environment(group) for group in spread),
        model_arguments=_model_arguments(arguments, settings, options, available, size),
        cores=max(1, int(cores) // count),
        all_cores=cores,
        narrowed_by=available.narrowed_by,
    )


def _checked_counts(settings: ReplicaSettings) -> tuple[int | None, int | None]:
    """Return the numbers of replicas, and of devices of each; None for what is not set."""
    replicas = checks.whole_number("replicas", settings.replicas)
    if replicas is not None and replicas > MAX_REPLICAS:
        raise ConfigurationError(
            f"replicas={replicas} is more than the {MAX_REPLICAS} processes that a model"
            " may have on one machine: use fewer."
        )
    per_replica = checks.whole_number(
        "devices_per_replica", settings.devices_per_replica
    )
    return replicas, per_replica


def _lay_out_on_cores(
    settings: ReplicaSettings,
    replicas: int | None,
    per_replica: int | None,
    cores: float,
    device: str,
) -> ReplicaLayout | None:
    """Divide the cores among replicas; None for `devices=all`, which is one process."""
    if per_replica is not None:
        raise ConfigurationError(
            f"devices_per_replica={per_replica} has no effect: {_NO_ACCELERATOR}. Leave"
            " it out."
        )
    if replicas is None and settings.devices is not None:
        return None
    count = replicas or 1
    share = max(1, int(cores) // count)
    return ReplicaLayout(
        groups=((),) * count,
        environments=({"OMP_NUM_THREADS": str(share)},) * count,
        model_arguments={},
        cores=share,
        all_cores=cores,
        place="the CPU" if device in ("None", "auto", "cpu") else device,
    )


def describe_missing(name: str, available: Devices) -> str:
    """Say that `devices=all` is one process, or raise if a card could be used with another torch.

    Raises:
        ConfigurationError: the machine has cards for which torch was not built.
    """
    _refuse_unusable_cards("devices", available)
    return (
        f"devices=all: {_NO_ACCELERATOR}, so '{name}' runs in one process on the CPU"
        " (-M replicas=N has N processes share the cores)."
    )


def _refuse_unusable_cards(argument: str, available: Devices) -> None:
    """Raise ConfigurationError if there are cards for which torch was not built."""
    cards = available.unusable_cards
    if cards:
        raise ConfigurationError(
            f"There {'is a card' if cards == 1 else f'are {cards} cards'} of NVIDIA here,"
            f" but the installed torch ({available.build or 'none'}) cannot use"
            f" {'it' if cards == 1 else 'them'}: install a build of torch for CUDA, or"
            f" leave out {argument}."
        )


def _check_arguments(
    name: str,
    arguments: Mapping[str, Any],
    settings: ReplicaSettings,
    options: Collection[str],
) -> None:
    """Raise ConfigurationError for arguments that exclude each other."""
    for argument in ("devices", "devices_per_replica"):
        if getattr(settings, argument) is not None and not _uses_devices(options):
            raise ConfigurationError(
                f"{argument} has no effect on '{name}', which computes on the CPU. Leave"
                " it out; -M replicas=N has N processes share the cores."
            )
    if settings.devices is None:
        if settings.devices_per_replica is not None and settings.replicas is None:
            raise ConfigurationError(
                "devices_per_replica has no effect without devices or replicas: add -M"
                " devices=all."
            )
        return
    device = arguments.get("device")
    if device not in (None, "auto"):
        raise ConfigurationError(
            f"device={device!r} and devices cannot both be given: devices already says"
            " where replicas run."
        )


def _uses_devices(options: Collection[str]) -> bool:
    return "device" in options or "tensor_parallel_size" in options


def _choose_devices(
    arguments: Mapping[str, Any],
    devices: Any,
    options: Collection[str],
    available: Devices,
) -> tuple[Device, ...]:
    """Return the devices to use; none for replicas on the CPU."""
    if devices is not None:
        return _named_devices(devices, available)
    device = str(arguments.get("device") or "auto")
    if not _uses_devices(options) or device == "cpu":
        return ()
    kind, colon, _ = device.partition(":")
    if device != "auto" and kind != available.kind:
        if kind in KNOWN_KINDS:
            raise _no_such_device("device", device, available)
        return ()  # the model itself says whether it can be used
    if not colon:
        return available.devices
    return _named_devices([device], available)


def _named_devices(devices: Any, available: Devices) -> tuple[Device, ...]:
    """Return the devices that `devices` names: "all", or a list of names or numbers."""
    if devices == "all":
        return available.devices
    names = _listed_names(devices)
    if not names or "" in names:
        problem = "has a place that names no device" if names[1:] else "names no device"
        raise ConfigurationError(
            f"devices={_text_of(devices) or repr('')} {problem}. {_FORM}."
        )
    for name in names:
        if name in ("cpu", "auto"):
            raise ConfigurationError(
                f"devices={name} is not an accelerator. {_FORM}; on the CPU, -M device=cpu"
                " -M replicas=N has N processes share the cores."
            )
    if not available.devices:
        raise _no_such_device("devices", _text_of(devices), available)
    if _is_one_number(devices):
        raise _ambiguous_number(int(devices), available)
    by_name = {device.name: device for device in available.devices}
    chosen: list[Device] = []
    for name in names:
        device_name = f"{available.kind}:{name}" if name.isdecimal() else name
        if device_name not in by_name:
            raise _unknown_device(device_name, available)
        if by_name[device_name] in chosen:
            raise ConfigurationError(
                f"devices names {device_name} twice. For several replicas on a device,"
                " add -M replicas=N."
            )
        chosen.append(by_name[device_name])
    return tuple(chosen)


def _listed_names(devices: Any) -> list[str]:
    """Split `devices` into names and numbers; those that cannot be any are empty."""
    if _is_one_number(devices):
        return [str(devices)]
    listed = devices.split(",") if isinstance(devices, str) else devices
    if not isinstance(listed, Sequence):
        return []
    return [
        str(name).strip()
        if isinstance(name, int | str) and not isinstance(name, bool)
        else ""
        for name in listed
    ]


def _is_one_number(devices: Any) -> bool:
    if isinstance(devices, str):
        return devices.isdecimal()
    return isinstance(devices, int) and not isinstance(devices, bool) and devices >= 0


def _ambiguous_number(number: int, available: Devices) -> ConfigurationError:
    copies = (
        f" For {number} copies of the model use -M replicas={number}." if number else ""
    )
    return ConfigurationError(
        f"devices={number} could be a number of devices or the number of one.{copies} For"
        f" the device with this number use -M devices={available.kind}:{number}."
    )


def _no_such_device(
    argument: str, device: str, available: Devices
) -> ConfigurationError:
    """Return the error of a device on a machine that has none of its kind.

    Raises:
        ConfigurationError: the machine has cards for which torch was not built.
    """
    _refuse_unusable_cards(argument, available)
    if available.devices:
        names = ", ".join(device.name for device in available.devices)
        return ConfigurationError(
            f"{argument}={device} cannot be used: what torch can use here is {names}."
        )
    within = f" within {available.narrowed_by}" if available.narrowed_by else ""
    return ConfigurationError(
        f"{argument}={device} cannot be used: {_NO_ACCELERATOR}{within}. Leave it out; -M"
        " replicas=N has N processes share the cores of the CPU."
    )


def _unknown_device(name: str, available: Devices) -> UnknownName:
    names = [device.name for device in available.devices]
    within = f" within {available.narrowed_by}" if available.narrowed_by else ""
    hint = f"There are{within}: {', '.join(names)}. devices=all uses all of them."
    return UnknownName("device", name, ["all", *names], hint)


def _group_size(
    arguments: Mapping[str, Any],
    settings: ReplicaSettings,
    chosen: Sequence[Device],
) -> int:
    """Return the number of devices of each replica.

    Raises:
        ConfigurationError: the arguments do not agree on it.
    """
    per_replica = settings.devices_per_replica
    parallel = _tensor_parallel(arguments)
    if per_replica is not None and parallel not in (None, per_replica):
        raise ConfigurationError(
            f"devices_per_replica={per_replica} and the model's own {parallel} devices"
            " (tensor_parallel_size times pipeline_parallel_size) do not agree: leave"
            " one of them out."
        )
    if (
        settings.devices is not None
        and per_replica is None
        and arguments.get("device_map") is not None
        and len(chosen) > 1
    ):
        raise ConfigurationError(
            "device_map spreads each replica over several devices, and"
            " devices_per_replica says over how many: add -M devices_per_replica=2, or"
            " leave out device_map."
        )
    return per_replica or parallel or 1


def _check_group(
    name: str, size: int, options: Collection[str], chosen: Sequence[Device]
) -> None:
    """Raise ConfigurationError if the model cannot be spread over so many of the devices."""
    if size == 1:
        return
    if not {"device_map", "tensor_parallel_size"} & set(options):
        raise ConfigurationError(
            f"'{name}' cannot be spread over several devices: leave out"
            " devices_per_replica."
        )
    if any(device.is_slice for device in chosen):
        raise ConfigurationError(
            f"A process can use one slice of a divided card (MIG), not {size}: leave out"
            " devices_per_replica, or undo the division."
        )
    if size > len(chosen):
        raise ConfigurationError(
            f"A replica with {size} devices does not fit: there"
            f" {'is' if len(chosen) == 1 else 'are'} {len(chosen)}"
            f" ({', '.join(device.name for device in chosen)})."
        )


def _tensor_parallel(arguments: Mapping[str, Any]) -> int | None:
    """Return how many devices vLLM's own arguments want; None if they are not set."""
    sizes = [
        arguments.get(key) for key in ("tensor_parallel_size", "pipeline_parallel_size")
    ]
    if sizes == [None, None]:
        return None
    product = 1
    for size in sizes:
        # What is no number is refused by the model, with its name.
        product *= size if isinstance(size, int) else 1
    return product


def _check_all_used(
    devices: Any, replicas: int | None, chosen: Sequence[Device], size: int
) -> None:
    """Raise ConfigurationError if a device that was named would be idle."""
    if len(chosen) % size:
        raise ConfigurationError(
            f"{len(chosen)} devices cannot be divided into groups of {size}"
            f" (devices_per_replica): name a multiple of {size}, for example -M"
            f" devices={','.join(device.name for device in chosen[: -(len(chosen) % size)])}."
        )
    groups = len(chosen) // size
    if replicas is not None and replicas < groups:
        used = ",".join(device.name for device in chosen[: replicas * size])
        raise ConfigurationError(
            f"devices={_text_of(devices)} names devices for {groups} replicas, but"
            f" replicas={replicas} would leave some idle: leave out replicas, or name"
            f" only those to use, -M devices={used}."
        )


def _text_of(devices: Any) -> str:
    """Return `devices` as it is typed on the command line."""
    if isinstance(devices, str):
        return devices
    is_plain = isinstance(devices, list | tuple) and all(
        isinstance(name, str | int) and not isinstance(name, bool) for name in devices
    )
    if is_plain and devices:
        return ",".join(map(str, devices))
    return json.dumps(devices, default=str)


def _model_arguments(
    arguments: Mapping[str, Any],
    settings: ReplicaSettings,
    options: Collection[str],
    available: Devices,
    size: int,
) -> dict[str, Any]:
    """Return the model's arguments for a process that sees only the replica's devices."""
    if size > 1 and "tensor_parallel_size" in options:
        is_set = _tensor_parallel(arguments) is not None
        return {} if is_set else {"tensor_parallel_size": size}
    if size > 1:
        return {"device_map": arguments.get("device_map") or "auto"}
    if "device" not in options or arguments.get("device_map") is not None:
        return {}
    is_named = settings.devices is not None or str(arguments.get("device")) not in (
        "None",
        "auto",
    )
    # Not "auto", which would be the CPU if a driver did not answer.
    return {"device": available.kind} if is_named else {}


def check_memory(
    name: str, layout: ReplicaLayout, weight_bytes: int | None, argument: str
) -> None:
    """Raise ConfigurationError if the weights surely do not fit on the devices of a replica.

    Args:
        name: the model.
        layout: where its replicas run.
        weight_bytes: bytes of its weights; None if they are not known.
        argument: the argument that spreads it over several devices.
    """
    free = [
        device.free if device.free is not None else device.memory
        for group in layout.groups
        for device in group
    ]
    known_free = [free_bytes for free_bytes in free if free_bytes is not None]
    if weight_bytes is None or len(known_free) < len(free) or not known_free:
        return
    sharing = max(layout.groups.count(group) for group in layout.groups)
    size = len(layout.groups[0])
    least = min(known_free)

    def need(devices: int) -> int:
        return sharing * (weight_bytes // devices + _DEVICE_BYTES)

    if need(size) <= least:
        return
    names = dict.fromkeys(device for group in layout.groups for device in group)
    fitting = [
        devices
        for devices in range(size + 1, len(names) + 1)
        if len(names) % devices == 0 and need(devices) <= least
    ]
    if sharing > 1:
        advice = f"{sharing} replicas share each device: use fewer"
    elif fitting:
        advice = f"add -M {argument}={fitting[0]}"
    else:
        advice = (
            "not even all of them together hold it: use a smaller model or number"
            " format, quantization, or device=cpu"
        )
    raise ConfigurationError(
        f"'{name}' does not fit: it needs at least {need(size) / _GIB:.1f} GiB on"
        f" {'the' if len(names) == 1 else 'each'} device, and {least / _GIB:.1f} GiB are"
        f" free{f' on the fullest of the {len(names)}' * (len(names) > 1)}; {advice}."
    )
