"""On which devices the replicas of a model run, and what a person is told about it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.models.local.hardware.devices import Device, Devices
from evalwright.models.local.replica_layout import (
    ReplicaLayout,
    ReplicaSettings,
    check_memory,
    describe_missing,
    lay_out_replicas,
)
from evalwright.models.registry import open_model
from support.command import environment
from support.drivers import write_nvidia
from support.tiny_models import make_tiny_model
from support.typed import typed

GIB = 2**30
HF = ("device", "device_map")
VLLM = ("tensor_parallel_size", "pipeline_parallel_size")
ONNX = ("threads",)


def machine(count: int, free_gib: float = 24, *, slices: bool = False) -> Devices:
    devices = [
        Device(f"cuda:{number}", str(number), 24 * GIB, int(free_gib * GIB), slices)
        for number in range(count)
    ]
    kind = "cuda" if devices else "cpu"
    return Devices(kind, tuple(devices), ("CUDA_VISIBLE_DEVICES",))


def lay_out(
    count: int,
    settings: dict[str, Any],
    arguments: dict[str, Any] | None = None,
    options: tuple[str, ...] = HF,
    available: Devices | None = None,
) -> ReplicaLayout | None:
    return lay_out_replicas(
        "hf/m",
        arguments or {},
        ReplicaSettings(**settings),
        options=options,
        available=machine(count) if available is None else available,
        cores=8,
    )


@pytest.mark.parametrize(
    ("settings", "arguments", "options", "names", "model_arguments"),
    [
        ({"devices": "all"}, {}, HF, ["cuda:0", "cuda:1", "cuda:2", "cuda:3"], {"device": "cuda"}),
        ({"devices": "cuda:2,cuda:0"}, {}, HF, ["cuda:2", "cuda:0"], {"device": "cuda"}),
        ({"devices": [1, "3"]}, {}, HF, ["cuda:1", "cuda:3"], {"device": "cuda"}),
        ({"devices": "1,3"}, {}, VLLM, ["cuda:1", "cuda:3"], {}),
        ({"devices": "all", "devices_per_replica": 2}, {}, HF, ["cuda:0+cuda:1", "cuda:2+cuda:3"],
         {"device_map": "auto"}),
        ({"devices": "all", "devices_per_replica": 2}, {"device_map": "balanced"}, HF,
         ["cuda:0+cuda:1", "cuda:2+cuda:3"], {"device_map": "balanced"}),
        ({"devices": "all", "devices_per_replica": 2}, {}, VLLM, ["cuda:0+cuda:1", "cuda:2+cuda:3"],
         {"tensor_parallel_size": 2}),
        ({"devices": "all"}, {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, VLLM,
         ["cuda:0+cuda:1+cuda:2+cuda:3"], {}),
        ({"devices": "cuda:1", "replicas": 2}, {}, HF, ["cuda:1", "cuda:1"], {"device": "cuda"}),
        ({"replicas": 3}, {}, HF, ["cuda:0", "cuda:1", "cuda:2"], {}),
        ({"replicas": 2}, {"device": "cuda:3"}, HF, ["cuda:3", "cuda:3"], {"device": "cuda"}),
        ({"replicas": 2}, {"device_map": "auto"}, HF, ["cuda:0", "cuda:1"], {}),
        ({"replicas": 1, "devices_per_replica": 2}, {}, HF, ["cuda:0+cuda:1"], {"device_map": "auto"}),
        ({"replicas": 2}, {"device": "cpu"}, HF, ["", ""], {}),
        ({"replicas": 2}, {}, ONNX, ["", ""], {}),
    ],
)  # fmt: skip
def test_devices_of_each_replica(
    settings: dict[str, Any],
    arguments: dict[str, Any],
    options: tuple[str, ...],
    names: list[str],
    model_arguments: dict[str, Any],
) -> None:
    layout = lay_out(4, settings, arguments, options)
    assert layout is not None
    assert layout.names() == names
    assert layout.model_arguments == model_arguments
    for name, variables in zip(names, layout.environments, strict=True):
        if name:
            assert variables == {
                "CUDA_VISIBLE_DEVICES": name.replace("cuda:", "").replace("+", ",")
            }
        else:
            assert variables == {"OMP_NUM_THREADS": "4"}


@pytest.mark.parametrize(
    ("settings", "arguments", "options", "words"),
    [
        ({"devices": "2"}, {}, HF, "copies of the model use -M replicas=2"),
        ({"devices": 2}, {}, HF, "-M devices=cuda:2"),
        ({"devices": "cuda:7"}, {}, HF, "There are: cuda:0, cuda:1, cuda:2, cuda:3"),
        ({"devices": "cuda:1,1"}, {}, HF, "names cuda:1 twice"),
        ({"devices": "cpu"}, {}, HF, "-M device=cpu -M replicas=N"),
        ({"devices": []}, {}, HF, "devices=[] names no device."),
        ({"devices": ""}, {}, HF, "devices='' names no device."),
        ({"devices": True}, {}, HF, "devices=true names no device."),
        ({"devices": -1}, {}, HF, "devices=-1 names no device."),
        ({"devices": 1.5}, {}, HF, "devices=1.5 names no device."),
        ({"devices": {"cuda": 0}}, {}, HF, 'devices={"cuda": 0} names no device.'),
        ({"devices": "cuda:0,"}, {}, HF, "devices=cuda:0, has a place that names no device"),
        ({"devices": [None, 1]}, {}, HF, "devices=[null, 1] has a place that names no device"),
        ({"devices": "alle"}, {}, HF, "Did you mean 'all'?"),
        ({"devices": "cuda"}, {}, HF, "devices=all uses all of them"),
        ({"replicas": 2}, {"device": "mps"}, HF, "device=mps cannot be used: what torch can use here is cuda:0"),
        ({"devices": "all"}, {"device": "cuda:1"}, HF, "cannot both be given"),
        ({"devices": "all"}, {}, ONNX, "which computes on the CPU"),
        ({"devices": "all", "replicas": 2}, {}, HF, "-M devices=cuda:0,cuda:1"),
        ({"devices": "all", "devices_per_replica": 3}, {}, HF, "-M devices=cuda:0,cuda:1,cuda:2"),
        ({"devices": "cuda:0", "devices_per_replica": 2}, {}, HF, "2 devices does not fit"),
        ({"devices": "all", "devices_per_replica": 2}, {}, ("device",), "cannot be spread"),
        ({"devices": "all", "devices_per_replica": 2}, {"tensor_parallel_size": 4}, VLLM, "do not agree"),
        ({"devices": "all"}, {"device_map": "auto"}, HF, "add -M devices_per_replica=2"),
        ({"devices_per_replica": 2}, {}, HF, "add -M devices=all"),
        ({"devices": "all", "devices_per_replica": 0}, {}, HF, "must be a number above 0"),
        ({"devices": "all", "devices_per_replica": "two"}, {}, HF, "must be a number"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    settings: dict[str, Any],
    arguments: dict[str, Any],
    options: tuple[str, ...],
    words: str,
) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        lay_out(4, settings, arguments, options)


def test_a_process_uses_one_slice_of_a_divided_card() -> None:
    divided = machine(4, slices=True)
    layout = lay_out(4, {"devices": "all"}, available=divided)
    assert layout is not None and len(layout.groups) == 4
    with pytest.raises(ConfigurationError, match="one slice of a divided card"):
        lay_out(4, {"devices": "all", "devices_per_replica": 2}, available=divided)


def test_without_accelerators() -> None:
    assert lay_out(0, {"devices": "all"}) is None
    assert "runs in one process on the CPU" in describe_missing("hf/m", machine(0))
    layout = lay_out(0, {"devices": "all", "replicas": 2})
    assert layout is not None
    assert layout.describe() == "2 replicas on the CPU, 4 cores each"
    more_than_cores = lay_out(0, {"replicas": 9})
    assert more_than_cores is not None
    assert more_than_cores.describe() == "9 replicas on the CPU, more than its 8 cores"
    unusable = Devices("cpu", unusable_cards=2, build="2.13.0+cpu")
    with pytest.raises(ConfigurationError, match=r"2 cards .* \(2.13.0\+cpu\)"):
        describe_missing("hf/m", unusable)
    with pytest.raises(ConfigurationError, match=r"2 cards .* or leave out device\."):
        lay_out(0, {"replicas": 2}, {"device": "cuda"}, available=unusable)


@pytest.mark.parametrize("devices", ["cuda:0", "cuda:0,cuda:1", [0, 1], 1, "ALL"])
def test_devices_of_a_machine_without_any(devices: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        lay_out(0, {"devices": devices})
    shown = "0,1" if isinstance(devices, list) else devices
    assert str(refused.value) == (
        f"devices={shown} cannot be used: no accelerator that torch can use is here. Leave"
        " it out; -M replicas=N has N processes share the cores of the CPU."
    )


@pytest.mark.parametrize(
    ("weights_gib", "settings", "count", "words"),
    [
        (23, {"devices": "all"}, 4, ""),
        (26, {"devices": "all"}, 4,
         "needs at least 26.6 GiB on each device, and 24.0 GiB are free on the fullest of the 4;"
         " add -M devices_per_replica=2"),
        (26, {"devices": "all", "devices_per_replica": 2}, 4, ""),
        (90, {"devices": "all"}, 4, "add -M devices_per_replica=4"),
        (200, {"devices": "all"}, 4, "not even all of them together"),
        (30, {"devices": "all"}, 1, "on the device, and 24.0 GiB are free; not even"),
        (15, {"devices": "all", "replicas": 8}, 4, "2 replicas share each device: use fewer"),
    ],
)  # fmt: skip
def test_weights_that_surely_do_not_fit_are_refused_with_numbers(
    weights_gib: int, settings: dict[str, Any], count: int, words: str
) -> None:
    layout = lay_out(count, settings)
    assert layout is not None
    weight_bytes = weights_gib * GIB
    if not words:
        check_memory("hf/m", layout, weight_bytes, "devices_per_replica")
        return
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        check_memory("hf/m", layout, weight_bytes, "devices_per_replica")
    check_memory("hf/m", layout, None, "devices_per_replica")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    make_tiny_model(folder, "llama")
    return folder


DESCRIBE = """
import json, sys
from evalwright.models.registry import open_model
print(json.dumps(open_model(sys.argv[1], {"devices": "all"}).describe()))
assert "torch" not in sys.modules
"""


def run_on_machine(
    variables: dict[str, str], *command: str
) -> subprocess.CompletedProcess[str]:
    """Run Python on a machine of `support.drivers`, whose user wants three of the cards."""
    return subprocess.run(
        [sys.executable, *command],
        env={**environment(), "CUDA_VISIBLE_DEVICES": "2,0,1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_model_sees_the_drivers_devices(tmp_path: Path, tiny: Path) -> None:
    variables = write_nvidia(tmp_path, [20, 20, 20, 20])
    described = run_on_machine(variables, "-c", DESCRIBE, f"hf/{tiny}")
    assert described.returncode == 0, described.stderr
    description = json.loads(described.stdout)
    assert description["device"] == "cuda"
    assert [replica["name"] for replica in description["replicas"]] == [
        "process 1 on cuda:0",
        "process 2 on cuda:1",
        "process 3 on cuda:2",
    ]
    assert description["replica_devices"] == (
        "3 replicas: cuda:0, cuda:1, cuda:2 (within CUDA_VISIBLE_DEVICES=2,0,1)"
    )


def test_what_fits_is_checked_before_anything_is_loaded(
    tmp_path: Path, tiny: Path
) -> None:
    checked = run_on_machine(
        write_nvidia(tmp_path, [20, 0, 0]),
        *("-m", "evalwright", "models", "check", f"hf/{tiny}", "-M", "devices=all"),
    )
    assert checked.returncode == 2
    assert "0.0 GiB are free on the fullest of the 3" in checked.stderr


def test_all_devices_of_a_machine_without_any_are_its_cpu(tiny: Path) -> None:
    alone = open_model(f"hf/{tiny}")
    model = open_model(f"hf/{tiny}", {"devices": "all"})
    assert "one process on the CPU" in model.remark
    assert model.fingerprint == alone.fingerprint
    assert not model.replicas
    checked = typed("models", "check", f"hf/{tiny}", "-M", "devices=all")
    assert "one process on the CPU" in checked.err


@pytest.mark.parametrize("argument", ["devices", "devices_per_replica", "replicas"])
def test_null_is_as_if_it_were_not_given(tiny: Path, argument: str) -> None:
    model = open_model(f"hf/{tiny}", {argument: None, "device": "cpu"})
    assert model.fingerprint == open_model(f"hf/{tiny}", {"device": "cpu"}).fingerprint
