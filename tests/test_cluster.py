"""Kubernetes manifest of the guide, checked against what Kubernetes and this app support."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from explorer.options import is_public, parse_arguments
from explorer.web.http.hosts import AllowedHosts

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parent.parent
MANIFEST = ROOT / "explorer" / "web" / "workers" / "examples" / "kubernetes.yaml"
# Of Kubernetes' own reference, what an object of each kind may have, as far as is said there; {} for any names.
LABELS = {"metadata": {"labels": {}}}
PROBE = {
    "httpGet": {"path": str, "port": str},
    "tcpSocket": {"port": str},
    "periodSeconds": int,
    "timeoutSeconds": int,
    "failureThreshold": int,
}
ENV = {"name": str, "value": str, "valueFrom": {"fieldRef": {"fieldPath": str}}}
CONTAINER = {
    "name": str,
    "image": str,
    "args": [str],
    "env": [ENV],
    "ports": [{"name": str, "containerPort": int}],
    **dict.fromkeys(("startupProbe", "livenessProbe", "readinessProbe"), PROBE),
    "resources": {"requests": {}, "limits": {}},
    "securityContext": {"readOnlyRootFilesystem": bool, "allowPrivilegeEscalation": bool},
    "volumeMounts": [{"name": str, "mountPath": str}],
}
POD = {
    "securityContext": {"runAsUser": int, "runAsNonRoot": bool},
    "containers": [CONTAINER],
    "volumes": [{"name": str, "emptyDir": {"medium": str, "sizeLimit": str}}],
}
DEPLOYMENT = {"replicas": int, "selector": {"matchLabels": {}}, "template": LABELS | {"spec": POD}}
BACKEND = {"service": {"name": str, "port": {"name": str}}}
KINDS = {
    ("apps/v1", "Deployment"): DEPLOYMENT,
    ("apps/v1", "StatefulSet"): DEPLOYMENT | {"serviceName": str, "podManagementPolicy": str},
    ("v1", "Service"): {
        "clusterIP": str,
        "publishNotReadyAddresses": bool,
        "selector": {},
        "ports": [{"name": str, "port": int, "targetPort": str}],
    },
    ("networking.k8s.io/v1", "Ingress"): {
        "rules": [{"host": str, "http": {"paths": [{"path": str, "pathType": str, "backend": BACKEND}]}}]
    },
}


def find_mismatches(spec: Any, schema: Any, path: str = "") -> list[str]:
    """Return the paths of values that the schema lacks, or that are of another type."""
    if isinstance(schema, list):
        mismatches = [find_mismatches(item, schema[0], f"{path}[{i}]") for i, item in enumerate(spec)]
        return sum(mismatches, []) if isinstance(spec, list) and spec else [path]
    if isinstance(schema, dict) and isinstance(spec, dict):
        nested = [
            find_mismatches(value, schema[name], f"{path}.{name}") for name, value in spec.items() if name in schema
        ]
        return [f"{path}.{name}" for name in spec if schema and name not in schema] + sum(nested, [])
    return [] if isinstance(schema, type) and type(spec) is schema else [path]


@pytest.fixture(scope="module")
def objects() -> dict[str, dict[str, Any]]:
    """kind -> name -> spec."""
    specs = defaultdict(dict)
    for document in yaml.safe_load_all(MANIFEST.read_text("utf-8")):
        assert set(document) == {"apiVersion", "kind", "metadata", "spec"} and set(document["metadata"]) <= {
            "name",
            "annotations",
        }
        assert find_mismatches(document["spec"], KINDS[document["apiVersion"], document["kind"]]) == []
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", document["metadata"]["name"])
        specs[document["kind"]][document["metadata"]["name"]] = document["spec"]
    return specs


@pytest.fixture(scope="module")
def containers(objects) -> dict[str, dict[str, Any]]:
    pods = {**objects["StatefulSet"], **objects["Deployment"]}
    for spec in pods.values():
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    return {name: spec["template"]["spec"]["containers"][0] for name, spec in pods.items()}


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ({"replica": 3}, [".replica"]),
        ({"replicas": "3"}, [".replicas"]),
        ({"selector": {"match": {}}}, [".selector.match"]),
    ],
)
def test_what_is_strange_is_found(given, places):
    assert find_mismatches(given, DEPLOYMENT) == places


def test_services_lead_to_ports_that_there_are(objects, containers):
    labels = {name: {"app": name} for name in containers}
    for name, service in objects["Service"].items():
        (pod,) = [pod for pod, pod_labels in labels.items() if pod_labels == service["selector"]]
        (port,), (container_port,) = service["ports"], containers[pod]["ports"]
        assert port["name"] == container_port["name"], name
        assert port.get("targetPort", port["port"]) in (container_port["name"], container_port["containerPort"])
    (rule,) = objects["Ingress"]["explorer"]["rules"]
    (path,) = rule["http"]["paths"]
    target = path["backend"]["service"]
    assert objects["Service"][target["name"]]["ports"][0]["name"] == target["port"]["name"]


def test_the_image_runs_as_its_dockerfile_says(objects, containers):
    instructions = dict(re.findall(r"^(\w+) (.+)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE))
    assert json.loads(instructions["ENTRYPOINT"]) == ["python", "app.py"]
    for name in ("worker", "front"):
        (port,) = containers[name]["ports"]
        assert str(port["containerPort"]) == instructions["EXPOSE"]
        pod = (objects["StatefulSet"] | objects["Deployment"])[name]["template"]["spec"]
        assert str(pod["securityContext"]["runAsUser"]) == instructions["USER"]
        assert containers[name]["securityContext"]["readOnlyRootFilesystem"]
        assert [mount["mountPath"] for mount in containers[name]["volumeMounts"]] == [
            "/tmp"
        ] and "HOME=/tmp" in instructions["ENV"]
        for probe in (value for key, value in containers[name].items() if key.endswith("Probe")):
            assert (probe["httpGet"]["path"], probe["httpGet"]["port"]) == ("/health", port["name"])
    assert AllowedHosts.for_this_machine("0.0.0.0").allows("10.1.2.3:7860")  # as probes ask


def test_the_front_asks_the_workers_there_are_and_they_share(objects, containers, monkeypatch):
    workers, front = (parse_arguments(containers[name]["args"]) for name in ("worker", "front"))
    spec, service = objects["StatefulSet"]["worker"], objects["StatefulSet"]["worker"]["serviceName"]
    assert objects["Service"][service]["clusterIP"] == "None"
    port = containers["worker"]["ports"][0]["containerPort"]
    assert front.workers == [(f"worker-{number}.{service}", port) for number in range(spec["replicas"])]
    assert workers.workers == 1 and is_public(workers)
    (redis,) = objects["Service"]["shared"]["ports"]
    assert workers.store == f"redis://shared:{redis['port']}"
    assert objects["Ingress"]["explorer"]["rules"][0]["host"] in workers.allowed_hosts
    environment = {variable["name"]: variable for variable in containers["worker"]["env"]}
    assert (
        environment["GRADIO_ROOT_PATH"]["value"] == "/w$(NUMBER)" and list(environment)[0] == "NUMBER"
    )  # it is put in from before
