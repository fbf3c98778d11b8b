"""compose.yaml, the images and the lock files: they set what there is to set, and find what they name."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterable
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app import cli
from app.settings import PROJECT, Settings

WEBS, WORKERS = ("web1", "web2"), ("worker", "worker-gpu")
VALUES = {"SHAPES_DOMAIN": "shapes.example.org", "POSTGRES_PASSWORD": "secret", "SHAPES_WORKERS": "3",
          "SHAPES_MACHINES": "4", "SHAPES_METRICS": "0.0.0.0:9100",
          "SHAPES_SMTP": "smtps://mail.example.org", "SHAPES_SMTP_FROM": "shapes@example.org"}  # fmt: skip


def filled_in(text: str) -> str:
    """A text of compose.yaml with VALUES for its ${NAME}, ${NAME:-default} and ${NAME:?why}, from the innermost on."""
    while (replaced := re.sub(r"\$\{(\w+)(?::([-?])([^${}]*))?\}", value_of, text)) != text:
        text = replaced
    return text


def value_of(variable: re.Match[str]) -> str:
    return VALUES[variable[1]] if variable[2] == "?" else VALUES.get(variable[1], variable[3])


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load(filled_in((PROJECT / "compose.yaml").read_text(encoding="utf-8")))


@pytest.fixture
def settings_of(compose: Any, tmp_path: Path) -> Callable[[str], Settings]:
    """The settings that a service of compose.yaml gives its process, with a folder of this machine for the weights."""
    known = {f"ATTENTION_SHAPES_{name.upper()}": name for name in Settings.model_fields} | {
        "DATABASE_URL": "database_url"
    }

    def read(service: str) -> Settings:
        given = {**compose["services"][service]["environment"]}
        if "ATTENTION_SHAPES_WEIGHTS" in given:
            assert given["ATTENTION_SHAPES_WEIGHTS"] in str(compose["services"][service]["volumes"])
            given["ATTENTION_SHAPES_WEIGHTS"] = str(tmp_path)
        return Settings(**{known[name]: text for name, text in given.items()})

    return read


def test_compose_sets_what_there_is_to_set(settings_of: Callable[[str], Settings]) -> None:
    for service in (*WEBS, *WORKERS):
        settings = settings_of(service)
        assert settings.database == "postgresql+psycopg://shapes:secret@db:5432/shapes"
        assert settings.metrics == "0.0.0.0:9100"
    for service in WEBS:
        settings = settings_of(service)
        assert (settings.processes, settings.address) == (3 * 4, "https://shapes.example.org")
        assert not settings.weights
    assert all(settings_of(service).weights for service in WORKERS)


def test_compose_has_no_secret_and_no_start_without_one() -> None:
    text = (PROJECT / "compose.yaml").read_text(encoding="utf-8")
    asked = dict(re.findall(r"\$\{(\w+):([?-])", text))
    assert {name for name, kind in asked.items() if kind == "?"} == {"SHAPES_DOMAIN", "POSTGRES_PASSWORD"}
    assert all(not default for default in re.findall(r"\$\{SHAPES_SMTP\w*:-([^}]*)\}", text))
    page = (PROJECT / "docs" / "campus.md").read_text(encoding="utf-8")
    assert [name for name in asked if f"`{name}`" not in page] == []
    assert [name for name in re.findall(r"`((?:SHAPES|POSTGRES)_\w+)`", page) if name not in asked] == []


def test_the_parts_of_compose_find_each_other(compose: Any) -> None:
    services, dockerfile = compose["services"], (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    named = {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]}
    assert {name for name in named if not name.startswith(".")} == set(compose["volumes"])
    for service in services.values():
        for other in service.get("depends_on", {}):
            assert "healthcheck" in services[other] or ("build" in services[other] and "HEALTHCHECK" in dockerfile)
    for name in WEBS:  # or others could reach it past Caddy
        assert set(services[name]) & {"ports", "network_mode"} == set()
        assert (
            services[name]["environment"]["ATTENTION_SHAPES_PROXIES"]
            == (compose["networks"]["default"]["ipam"]["config"][0]["subnet"])
        )
        assert "data:/data" in services[name]["volumes"]  # the same secret key
    targets = services["caddy"]["environment"]["SHAPES_WEBS"]
    caddyfile = (PROJECT / "Caddyfile").read_text(encoding="utf-8")
    assert set(re.findall(r"reverse_proxy \{\$SHAPES_WEBS:([^}]+)\}", caddyfile)) == {targets}
    assert {target.partition(":")[0] for target in targets.split()} == set(WEBS)
    assert all(f"EXPOSE {target.partition(':')[2]}" in dockerfile for target in targets.split())
    assert set(re.findall(r"\{\$(\w+)", caddyfile)) == set(services["caddy"]["environment"])


def test_no_part_of_compose_may_take_the_machine(compose: Any) -> None:
    for service in compose["services"].values():
        assert "mem_limit" in service
        assert "no-new-privileges:true" in service["security_opt"]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert all(volume.endswith(":ro") for volume in service["volumes"] if "weights" in volume)


def test_compose_starts_what_the_terminal_has(compose: Any) -> None:
    services = compose["services"]
    assert services["web1"]["build"]["args"] == {"LIBRARIES": "pages"}
    assert "args" not in services["worker"]["build"]
    assert services["worker-gpu"]["build"]["args"] == {"TORCH": "cuda"}
    for name in WORKERS:
        program, command, *options = services[name]["command"]
        assert program == "attention-shapes"
        assert cli._parser([command]).parse_args([command, *options]).run


def locked(name: str) -> dict[str, str]:
    """The packages of a file in requirements/ with their versions, each of which has its hashes."""
    lock = (PROJECT / "requirements" / f"{name}.txt").read_text("utf-8")
    packages = re.findall(
        r"^([\w.-]+)==([^\s;]+)(.*\\\n(?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", lock, re.MULTILINE
    )
    assert len(packages) == len(re.findall(r"^[a-zA-Z]", lock, re.MULTILINE))
    return {canonicalize_name(package): version for package, version, _ in packages}


def needed_by(names: Iterable[str]) -> set[str]:
    """These packages and whatever they need on this machine, as their metadata says."""
    needed, left = set[str](), [Requirement(name) for name in names]
    while left:
        requirement = left.pop()
        needed.add(canonicalize_name(requirement.name))
        for line in metadata.requires(requirement.name) or ():
            other = Requirement(line)
            wanted = [{"extra": extra} for extra in ("", *requirement.extras)]
            if (not other.marker or any(map(other.marker.evaluate, wanted))) and other.name not in needed:
                left.append(other)
    return needed


def test_every_dependency_is_locked_with_its_hashes() -> None:
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    groups = {
        name: [line for line in lines if isinstance(line, str)]
        for name, lines in pyproject["dependency-groups"].items()
    }
    pages, runner, dev, smollm2, cpu, cuda = map(
        locked, ("pages", "runner", "dev", "smollm2", "torch-cpu", "torch-cuda")
    )
    assert needed_by(pyproject["project"]["dependencies"]) <= set(pages)
    assert canonicalize_name(Requirement(groups["build"][0]).name) in pages
    assert needed_by([*groups["runner"], *groups["torch"]]) <= {*pages, *runner, *cpu}
    assert needed_by(groups["torch"]) <= {*runner, *cpu}
    assert needed_by(groups["dev"]) <= {*pages, *runner, *dev}
    assert set(groups["smollm2"]) == set(smollm2)
    assert cpu == {"torch": f"{cuda['torch']}+cpu"}
    versions = {(name, version) for lock in (pages, runner, dev, cuda) for name, version in lock.items()}
    assert len(versions) == len(dict(versions))


def test_make_and_the_image_install_the_same_and_nothing_without_a_hash() -> None:
    made = subprocess.run(
        ["make", "--always-make", "--dry-run", "TORCH=cpu", "install"],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    image = (PROJECT / "Dockerfile").read_text("utf-8").replace("$TORCH", "cpu")
    files = list[set[str]]()
    for commands in (re.findall(r"pip install[^&\n]*", text) for text in (made, image)):
        assert all(
            "--require-hashes" in command or "--no-deps --no-build-isolation -e ." in command for command in commands
        )
        files.append({file for command in commands for file in re.findall(r"\S+\.txt", command)})
    assert files[0] == files[1]
    assert len(files[0]) == 3


def test_the_image_has_what_it_starts() -> None:
    dockerfile = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    script, verb = re.findall(r'"([\w-]+)"', re.findall(r"^CMD (.*)$", dockerfile, re.MULTILINE)[-1])
    scripts = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert script in scripts
    assert verb in chain(*cli.COMMANDS_BY_MODULE.values())
    copied = [shlex.split(line)[:-1] for line in re.findall(r"^COPY (.*)$", dockerfile, re.MULTILINE)]
    assert [name for name in chain(*copied) if not (PROJECT / name).exists()] == []
    stages = re.findall(r"^FROM \S+ AS (\w+)$", dockerfile, re.MULTILINE)
    assert stages == ["pages", "all"]
    assert re.findall(r"^ARG (\w+)=(.*)$", dockerfile, re.MULTILINE) == [
        ("LIBRARIES", "all"), ("TORCH", "cpu"),
    ]  # fmt: skip
