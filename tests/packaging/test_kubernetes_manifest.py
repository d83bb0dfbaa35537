"""The manifest of a mesh on Kubernetes: its containers run here, with its configuration and the document's TLS."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dask import config
from linkgauge.engine.model.errors import ClusterError
from linkgauge.mesh.cluster import import_dask, open_client

from ..mesh.host_processes import listening_hosts, until
from .conftest import ROOT

yaml: Any = pytest.importorskip("yaml")
MANIFEST = ROOT / "packaging" / "kubernetes" / "mesh.yaml"
DOCUMENT = ROOT / "docs" / "mesh-on-kubernetes.md"
SECRETS = "/etc/mesh-tls"
FENCE = re.compile(r"^```text\n(openssl .*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def manifest() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the config map and the cluster."""
    settings, cluster = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    return settings, cluster


def make_secrets(folder: Path) -> Path:
    """Carry out the document's commands in a folder; return it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed")
    folder.mkdir()
    (commands,) = FENCE.findall(DOCUMENT.read_text(encoding="utf-8"))
    subprocess.run(["/bin/sh", "-ec", commands], cwd=folder, check=True, capture_output=True, timeout=30)
    return folder


def settings_in(text: str, folder: Path) -> dict[str, Any]:
    """Return Dask's configuration as the manifest changes it, with the secret in a folder."""
    import_dask()  # its defaults
    return config.merge(config.global_config, yaml.safe_load(text.replace(SECRETS, str(folder))))


def test_each_container_has_the_configuration_and_the_secret_of_the_document(
    manifest: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path
) -> None:
    """What the configuration names is in the secret, at the place where the container has it."""
    settings, cluster = manifest
    made = make_secrets(tmp_path / "tls")
    (created,) = re.findall(r"kubectl create secret generic (\S+) (.*)", DOCUMENT.read_text(encoding="utf-8"))
    for role in ("worker", "scheduler"):
        pod = cluster["spec"][role]["spec"]
        sources = {volume["name"]: volume for volume in pod["volumes"]}
        (container,) = pod["containers"]
        places = {mount["mountPath"]: sources[mount["name"]] for mount in container["volumeMounts"]}
        assert places["/etc/dask"]["configMap"]["name"] == settings["metadata"]["name"]
        assert places[SECRETS]["secret"]["secretName"] == created[0]
    named = set(re.findall(rf"{SECRETS}/(\S+)", settings["data"]["mesh.yaml"]))
    assert named == set(re.findall(r"--from-file=(\S+)", created[1]))
    context = ssl.create_default_context(cafile=made / "ca.crt")
    context.load_cert_chain(made / "tls.crt", made / "tls.key")


@contextmanager
def containers(
    manifest: tuple[dict[str, Any], dict[str, Any]], folder: Path, secrets: Path
) -> Iterator[tuple[str, list[int]]]:
    """Run the scheduler's and a worker's container on loopback; yield the scheduler's address, and both pids."""
    settings, cluster = manifest
    configuration = folder / "dask"
    configuration.mkdir()
    (configuration / "mesh.yaml").write_text(settings["data"]["mesh.yaml"].replace(SECRETS, str(secrets)))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    further = {"scheduler": ["--host", "127.0.0.1", "--port", address.partition(":")[2]]}
    further["worker"] = ["--host", "127.0.0.2", "--no-nanny"]
    words = {"mesh-scheduler:8786": address, "$(DASK_WORKER_NAME)": "node-1"}
    operator = {"DASK_WORKER_NAME": "node-1", "DASK_SCHEDULER_ADDRESS": f"tcp://{address}"}
    programs: list[subprocess.Popen[bytes]] = []
    try:
        for role in ("scheduler", "worker"):
            program, *arguments = [*cluster["spec"][role]["spec"]["containers"][0]["args"], *further[role]]
            for name, value in words.items():
                arguments = [word.replace(name, value) for word in arguments]
            command = [str(Path(sys.executable).with_name(program)), *arguments]
            environment = {**operator, "DASK_CONFIG": str(configuration), "PATH": "/usr/bin:/bin"}
            quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            programs.append(subprocess.Popen(command, cwd=folder, env=environment, **quiet))
        yield f"tls://{address}", [program.pid for program in programs]
    finally:
        for program in programs:
            program.kill()
            program.wait(30)


@pytest.mark.every
async def test_only_a_client_with_the_certificate_gets_into_the_cluster(
    manifest: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path
) -> None:
    """A client of another CA, one without a certificate and one without TLS are refused with the reason."""
    ours, others = make_secrets(tmp_path / "ours"), make_secrets(tmp_path / "others")
    text = manifest[0]["data"]["mesh.yaml"]
    with containers(manifest, tmp_path, ours) as (scheduler, pids):
        await until(lambda: listening_hosts(pids[0]).count("127.0.0.1") == 2)  # one is HTTP, without a page
        with config.set(settings_in(text, ours)):
            async with open_client(scheduler) as client:
                await client.wait_for_workers(1, timeout=30)
                assert list((await client.run(os.getpid)).values()) == [pids[1]]
            with pytest.raises(ClusterError, match="encryption required"):
                async with open_client(scheduler.replace("tls", "tcp")):
                    pass
        with config.set(settings_in(text, others)), pytest.raises(ClusterError, match="no Dask scheduler answers"):
            async with open_client(scheduler):
                pass
        refusals = {scheduler: "needs a certificate", scheduler.replace("tls", "tcp"): "no Dask scheduler answers"}
        for address, reason in refusals.items():
            with pytest.raises(ClusterError, match=reason):
                async with open_client(address):
                    pass
        assert {address for pid in pids for address in listening_hosts(pid)} == {"127.0.0.1", "127.0.0.2"}
