"""What the guide's manifest says, held against what Kubernetes and this app know."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from explorer.options import is_public, parse_arguments
from explorer.web.http.hosts import Hosts

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


def strange(given: Any, known: Any, place: str = "") -> list[str]:
    """Where something is that is not known, or of another type."""
    if isinstance(known, list):
        each = [strange(one, known[0], f"{place}[{i}]") for i, one in enumerate(given)]
        return sum(each, []) if isinstance(given, list) and given else [place]
    if isinstance(known, dict) and isinstance(given, dict):
        inside = [strange(value, known[name], f"{place}.{name}") for name, value in given.items() if name in known]
        return [f"{place}.{name}" for name in given if known and name not in known] + sum(inside, [])
    return [] if isinstance(known, type) and type(given) is known else [place]


@pytest.fixture(scope="module")
def objects() -> dict[str, dict[str, Any]]:
    """kind -> name -> spec."""
    found = defaultdict(dict)
    for each in yaml.safe_load_all(MANIFEST.read_text("utf-8")):
        assert set(each) == {"apiVersion", "kind", "metadata", "spec"} and set(each["metadata"]) <= {
            "name",
            "annotations",
        }
        assert strange(each["spec"], KINDS[each["apiVersion"], each["kind"]]) == []
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", each["metadata"]["name"])
        found[each["kind"]][each["metadata"]["name"]] = each["spec"]
    return found


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
    assert strange(given, DEPLOYMENT) == places


def test_services_lead_to_ports_that_there_are(objects, containers):
    labels = {name: {"app": name} for name in containers}
    for name, service in objects["Service"].items():
        (pod,) = [pod for pod, said in labels.items() if said == service["selector"]]
        (port,), (theirs,) = service["ports"], containers[pod]["ports"]
        assert port["name"] == theirs["name"], name
        assert port.get("targetPort", port["port"]) in (theirs["name"], theirs["containerPort"])
    (rule,) = objects["Ingress"]["explorer"]["rules"]
    (path,) = rule["http"]["paths"]
    to = path["backend"]["service"]
    assert objects["Service"][to["name"]]["ports"][0]["name"] == to["port"]["name"]


def test_the_image_runs_as_its_dockerfile_says(objects, containers):
    said = dict(re.findall(r"^(\w+) (.+)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE))
    assert json.loads(said["ENTRYPOINT"]) == ["python", "app.py"]
    for name in ("worker", "front"):
        (port,) = containers[name]["ports"]
        assert str(port["containerPort"]) == said["EXPOSE"]
        pod = (objects["StatefulSet"] | objects["Deployment"])[name]["template"]["spec"]
        assert str(pod["securityContext"]["runAsUser"]) == said["USER"]
        assert containers[name]["securityContext"]["readOnlyRootFilesystem"]
        assert [mount["mountPath"] for mount in containers[name]["volumeMounts"]] == ["/tmp"] and "HOME=/tmp" in said[
            "ENV"
        ]
        for probe in (value for key, value in containers[name].items() if key.endswith("Probe")):
            assert (probe["httpGet"]["path"], probe["httpGet"]["port"]) == ("/health", port["name"])
    assert Hosts.of_this_machine("0.0.0.0").have("10.1.2.3:7860")  # as probes ask


def test_the_front_asks_the_workers_there_are_and_they_share(objects, containers, monkeypatch):
    workers, front = (parse_arguments(containers[name]["args"]) for name in ("worker", "front"))
    spec, service = objects["StatefulSet"]["worker"], objects["StatefulSet"]["worker"]["serviceName"]
    assert objects["Service"][service]["clusterIP"] == "None"
    port = containers["worker"]["ports"][0]["containerPort"]
    assert front.workers == [(f"worker-{number}.{service}", port) for number in range(spec["replicas"])]
    assert workers.workers == 1 and is_public(workers)
    (redis,) = objects["Service"]["shared"]["ports"]
    assert workers.shared == f"redis://shared:{redis['port']}"
    assert objects["Ingress"]["explorer"]["rules"][0]["host"] in workers.allowed_hosts
    said = {each["name"]: each for each in containers["worker"]["env"]}
    assert said["GRADIO_ROOT_PATH"]["value"] == "/w$(NUMBER)" and list(said)[0] == "NUMBER"  # it is put in from before
