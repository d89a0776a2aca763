"""What a cluster checks before it takes a file: the schemas of Kubernetes, the restricted Pod
Security Standard, and that the parts of a pod fit together.

for manifest in manifests(text):
    check_schema(manifest, "1.33")
check_restricted(pod)
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

VERSIONS = ("1.31", "1.33")
SCHEMAS = Path(__file__).resolve().parents[1] / "data" / "kubernetes" / "schemas.json"
DEFINITIONS = {
    "Job": "io.k8s.api.batch.v1.Job",
    "ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "PersistentVolumeClaim": "io.k8s.api.core.v1.PersistentVolumeClaim",
    "Service": "io.k8s.api.core.v1.Service",
    "StatefulSet": "io.k8s.api.apps.v1.StatefulSet",
}
LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
RESTRICTED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip


@cache
def _definitions(version: str) -> dict[str, Any]:
    schemas = json.loads(SCHEMAS.read_text(encoding="utf-8"))
    definitions: dict[str, Any] = {}
    for number, changes in schemas.items():
        definitions |= changes
        if number == version:
            break
    return definitions


@cache
def _validator(kind: str, version: str) -> Any:
    schema = {"$ref": f"#/$defs/{DEFINITIONS[kind]}", "$defs": _definitions(version)}
    return jsonschema.Draft202012Validator(schema)


def manifests(text: str) -> list[dict[str, Any]]:
    """The objects in a file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for document in yaml.load_all(text, loader) if document]


def check_schema(manifest: dict[str, Any], version: str) -> None:
    """Check an object against its schema, which allows no unknown field, and its name and labels.

    Raises:
        jsonschema.ValidationError: the server would refuse it.
    """
    _validator(manifest["kind"], version).validate(manifest)
    assert NAME.fullmatch(manifest["metadata"]["name"]), manifest["metadata"]
    for label in manifest["metadata"].get("labels", {}).values():
        assert LABEL.fullmatch(label), label


def check_restricted(pod: dict[str, Any]) -> None:
    """Check a pod against the restricted Pod Security Standard."""
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        assert not pod.get(field), field
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context.get("runAsUser") != 0
    assert context["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost")
    for volume in pod["volumes"]:
        assert volume.keys() - {"name"} <= RESTRICTED_VOLUMES, volume
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert not security.get("privileged")
        assert not any("hostPort" in port for port in container.get("ports", []))


def check_pod(pod: dict[str, Any]) -> None:
    """Check that mounts name volumes, once each, and that no token of the cluster is mounted."""
    volumes = [volume["name"] for volume in pod["volumes"]]
    assert len(set(volumes)) == len(volumes)
    claims = {"data"}  # of a StatefulSet's templates
    for container in pod["containers"]:
        mounts = container["volumeMounts"]
        assert {mount["name"] for mount in mounts} <= {*volumes, *claims}
        paths = [mount["mountPath"] for mount in mounts]
        assert len(set(paths)) == len(paths)
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["automountServiceAccountToken"] is False


def check_failure_policy(job: dict[str, Any]) -> None:
    """Check what the server asks of a Job's policy for failures beyond the schema."""
    specification = job["spec"]
    pod = specification["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    containers = {container["name"] for container in pod["containers"]}
    first, *rules = specification["podFailurePolicy"]["rules"]
    # Rules are tried in order: what was displaced is never taken for a failure.
    assert first == {
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    for rule in rules:
        exit_codes = rule["onExitCodes"]
        assert exit_codes["containerName"] in containers
        assert exit_codes["operator"] == "In"
        assert exit_codes["values"] == sorted(set(exit_codes["values"]) - {0})
        assert 2 in exit_codes["values"]
        if rule["action"] == "FailIndex":
            assert specification["backoffLimitPerIndex"] > 0
            assert specification["completionMode"] == "Indexed"


def pods(objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The pods of Jobs and StatefulSets."""
    for manifest in objects:
        if manifest["kind"] in ("Job", "StatefulSet"):
            yield manifest["spec"]["template"]["spec"]


def why_no_kustomize() -> str:
    """Return why Kustomize cannot be run here; "" if it can."""
    return "" if shutil.which("kubectl") else "kubectl is not installed"


def kustomize(folder: Path) -> list[dict[str, Any]]:
    """What `kubectl apply -k` would send to the server."""
    built = subprocess.run(
        ["kubectl", "kustomize", folder], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    assert "deprecated" not in built.stderr, built.stderr
    return manifests(built.stdout)


def mount_files(
    manifest: dict[str, Any], config_map: dict[str, Any]
) -> dict[str, bytes]:
    """The content of a Job's volume of files, by path."""
    (pod,) = pods([manifest])
    (volume,) = [volume for volume in pod["volumes"] if "configMap" in volume]
    assert volume["configMap"]["name"] == config_map["metadata"]["name"]
    contents = {
        key: text.encode() for key, text in config_map.get("data", {}).items()
    } | {
        key: base64.b64decode(text)
        for key, text in config_map.get("binaryData", {}).items()
    }
    items = volume["configMap"]["items"]
    assert {item["key"] for item in items} == contents.keys()
    return {item["path"]: contents[item["key"]] for item in items}


def container_words(container: dict[str, Any]) -> list[str]:
    """A container's command as Kubernetes runs it: `$$` is `$`, and no `$(NAME)` is expanded."""
    assert not re.search(r"(?<!\$)(\$\$)*\$\(", " ".join(container["command"]))
    return [word.replace("$$", "$") for word in container["command"]]
