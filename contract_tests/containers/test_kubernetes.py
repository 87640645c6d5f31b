"""The manifests, put together by kustomize and held against the published schemas of Kubernetes."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from contract_tests.worlds.engine import PROJECT, VERSIONS
from contract_tests.worlds.go import go_program
from contract_tests.worlds.java import CannotRun
from irc_bridge.backends import settings_models
from irc_bridge.settings import load_settings

FOLDER = PROJECT / "docker/kubernetes"
KUSTOMIZE = ("sigs.k8s.io/kustomize/kustomize/v5", "v5.7.1")
Document = dict[str, Any]


@pytest.fixture(scope="module")
def manifests() -> list[Document]:
    """What `kubectl apply -k` would send."""
    try:
        kustomize = go_program(*KUSTOMIZE)
    except CannotRun as reason:
        pytest.skip(str(reason))
    built = subprocess.run([kustomize, "build", FOLDER], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return list(yaml.safe_load_all(built.stdout))


def of_kind(manifests: list[Document], kind: str) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def pods(manifests: list[Document]) -> dict[str, Document]:
    deployments = {name: each["spec"]["template"] for name, each in of_kind(manifests, "Deployment").items()}
    jobs = of_kind(manifests, "CronJob").items()
    return deployments | {name: each["spec"]["jobTemplate"]["spec"]["template"] for name, each in jobs}


def test_each_file_is_what_kubernetes_takes() -> None:
    documents = [each for file in FOLDER.glob("*.yaml") for each in yaml.safe_load_all(file.read_text())]
    checked = [each for each in documents if each["kind"] != "Kustomization"]
    assert len(checked) >= 6
    for each in checked:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_together_they_are_what_kubernetes_takes(manifests: list[Document]) -> None:
    for each in manifests:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)
    assert {each["kind"] for each in manifests} == {
        *("ConfigMap", "CronJob", "Deployment", "Namespace", "PodDisruptionBudget", "Service"),
    }
    assert {each["metadata"].get("namespace") for each in manifests if each["kind"] != "Namespace"} == {
        "irc-bridge"
    }


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    deployment = next(yaml.safe_load_all((FOLDER / "server.yaml").read_text()))
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="livenessprobe"):
        kubernetes_validate.validate(deployment, kubernetes_validate.latest_version(), strict=True)


def test_the_server_has_probes_and_a_budget(manifests: list[Document]) -> None:
    server = pods(manifests)["irc-bridge"]["spec"]["containers"][0]
    assert server["livenessProbe"]["httpGet"]["path"] == "/health/live"
    assert server["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    budget = of_kind(manifests, "PodDisruptionBudget")["irc-bridge"]
    labels = pods(manifests)["irc-bridge"]["metadata"]["labels"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert set(of_kind(manifests, "CronJob")) == {"expire", "mirror"}


def test_every_pod_is_locked_up_and_gets_its_secrets_as_files(manifests: list[Document]) -> None:
    names = of_kind(manifests, "ConfigMap")
    for pod in pods(manifests).values():
        spec = pod["spec"]
        (container,) = spec["containers"]
        assert container["image"].endswith(f":{VERSIONS['IRC_BRIDGE_VERSION']}")
        assert spec["securityContext"]["runAsUser"] == 10001
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "env" not in container and "envFrom" not in container
        volumes = {each["name"]: each for each in spec["volumes"]}
        assert volumes["secrets"]["secret"]["secretName"] == "irc-bridge"
        assert volumes["settings"]["configMap"]["name"] in names, "kustomize has put the hash of the content there"
        assert {each["mountPath"] for each in container["volumeMounts"]} == {
            *("/etc/irc-bridge", "/run/irc-bridge", "/tmp"),
        }


def test_the_settings_are_settings(manifests: list[Document], tmp_path: Path) -> None:
    (settings,) = of_kind(manifests, "ConfigMap").values()
    text = settings["data"]["irc-bridge.toml"]
    secrets = [line for line in text.splitlines() if "_file" in line]
    assert len(secrets) == 3
    for name in ("token", "access_key", "secret_key"):
        (tmp_path / name).write_text(f"a-{name}")
    (tmp_path / "x.toml").write_text(text.replace("/run/irc-bridge", str(tmp_path)))
    loaded = load_settings(tmp_path / "x.toml", {}, {}, settings_models())
    assert loaded.server.token is not None
    assert loaded.warehouses["main"].storage["aws_secret_access_key"] == "a-secret_key"
    assert tomllib.loads(text)["warehouses"]["main"]["root"].startswith("s3://")
