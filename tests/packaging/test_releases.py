"""What a release is made of agrees: versions, dependencies, and the checks it goes through."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml
from rattler_build import Stage0Recipe, VariantConfig

from ngsgpu._version import __version__
from tests.support.workflow import ROOT

NAMES = {"isal": "python-isal", "matplotlib": "matplotlib-base", "snakemake": "snakemake-minimal"}
FOLDER = ROOT / "packaging/conda/recipe"
RECIPE = yaml.safe_load((FOLDER / "recipe.yaml").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(
    ("files", "pattern"),
    [
        ("CITATION.cff", r"^version: (.+)$"),
        ("packaging/conda/recipe/recipe.yaml", r'^  version: "(.+)"$'),
        ("packaging/container/Dockerfile", r'image\.version="(.+)"'),
        ("packaging/container/Dockerfile", r"-t ngsgpu/ngsgpu:(\S+)"),
        ("docs/install.md", r"-t ngsgpu/ngsgpu:(\S+)"),
        ("docs/install.md", r":/cache ngsgpu/ngsgpu:(\S+)"),
        ("packaging/container/ngsgpu.def", r"image\.version (.+)$"),
        ("envs/ngsgpu.post-deploy.sh", r"^VERSION=(.+)$"),
        ("envs/ngsgpu.yaml", r"^# ngsgpu (\S+) itself"),
        ("nextflow/nextflow.config", r"^    version = '(.+)'$"),
        ("nextflow/modules/ngsgpu/*/main.nf", r"^    container 'ngsgpu/ngsgpu:(.+)'$"),
        ("nextflow/modules/ngsgpu/*/environment*.yml", r"- ngsgpu(?:\[cuda12\])?==(.+)$"),
    ],
)
def test_versions_agree(files: str, pattern: str) -> None:
    found = sorted(ROOT.glob(files))
    assert found
    for path in found:
        assert re.findall(pattern, path.read_text(), re.M) == [__version__], path


def test_change_log_ends_with_this_version() -> None:
    """Before the first release nothing has a number."""
    sections = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert [own for own in sections if own != "Unreleased"][:1] in ([], [__version__])


def by_name(requirements: list[Any]) -> dict[str, str]:
    """Version bounds by a requirement's name in conda."""
    found: dict[str, str] = {}
    for requirement in requirements:
        name, bounds = re.match(r"([\w.-]+)(?:\[[\w,]+\])? ?([^;]*)", requirement).groups()
        found[NAMES.get(name, name)] = bounds
    return found


def test_recipe_has_the_dependencies_of_the_package() -> None:
    run = RECIPE["requirements"]["run"]
    extras = PROJECT["optional-dependencies"]
    wanted = by_name([*PROJECT["dependencies"], *extras["report"]])
    # conda has the library that the wheel is made of, with versions of its own.
    assert wanted.pop("deflate")
    wanted |= {"libdeflate": ">=1.20", "python": PROJECT["requires-python"], "__linux": ""}
    assert by_name([own for own in run if isinstance(own, str)]) == wanted
    (cuda,) = (by_name(own["then"]) for own in run if isinstance(own, dict))
    (cupy,) = (own for own in extras["cuda12"] if own.startswith("cupy"))
    assert cuda["cupy"] == by_name([cupy])["cupy-cuda12x"]
    assert cuda["__cuda"] == ">=12"
    assert RECIPE["build"]["noarch"] == "python"
    (snakemake,) = (own for own in extras["workflow"] if own.startswith("snakemake"))
    assert RECIPE["requirements"]["run_constraints"] == [
        f"snakemake-minimal {by_name([snakemake])['snakemake-minimal']}"
    ]


def test_rattler_build_reads_two_variants_of_the_recipe() -> None:
    variants = VariantConfig.from_file(FOLDER / "variants.yaml")
    rendered = Stage0Recipe.from_file(FOLDER / "recipe.yaml").render(variants)
    cpu, cuda = (own.recipe.to_dict() for own in rendered)
    assert cpu["package"] == cuda["package"] == {"name": "ngsgpu", "version": __version__}
    assert [own["build"]["string"].partition("_")[0] for own in (cpu, cuda)] == ["cpu", "cuda"]
    # The higher number makes machines with a driver take it.
    assert cpu["build"]["number"] < cuda["build"]["number"]
    more = set(cuda["requirements"]["run"]) - set(cpu["requirements"]["run"])
    assert {own.partition(" ")[0] for own in more} >= {"__cuda", "cupy", "cuda-nvrtc"}
    # What the channels' own checks ask of a recipe.
    assert all(cpu["about"][key] for key in ("homepage", "license", "license_file", "summary"))
    assert cpu["requirements"]["run_exports"]
    assert cpu["extra"]["recipe-maintainers"]
    assert cpu["tests"]


def test_images_are_made_of_what_the_wheel_is_made_of() -> None:
    """MANIFEST.in names what setup.py puts into the wheel beside the package."""
    grafted = re.findall(r"^graft (.+)$", (ROOT / "MANIFEST.in").read_text(), re.M)
    parts = {
        "LICENSE",
        "MANIFEST.in",
        "README.md",
        "ngsgpu",
        "pyproject.toml",
        "setup.py",
        *grafted,
    }
    assert all((ROOT / own).exists() for own in parts)
    kept = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.M)
    definition = (ROOT / "packaging/container/ngsgpu.def").read_text()
    copied = re.findall(r"^    (\S+) /source/\1$", definition, re.M)
    assert set(kept) == set(copied) == parts


def test_what_the_workflows_of_the_repository_call() -> None:
    folder = ROOT / ".github/workflows"
    jobs = {
        name: yaml.safe_load((folder / f"{name}.yml").read_text())["jobs"]
        for name in ("ci", "gpu", "release")
    }

    def commands(name: str) -> str:
        return "\n".join(
            step.get("run", "") for job in jobs[name].values() for step in job["steps"]
        )

    for command in (".ci/run", "make demo", "scripts/wheel-check", "mkdocs build --strict"):
        assert command in commands("ci")
    for command in ("scripts/wheel-check dist", "mkdocs build --strict", "docker push"):
        assert command in commands("release")
    assert "scripts/gpu-check" in commands("gpu")
    supported = re.findall(r"3\.\d+", " ".join(jobs["ci"]["wheel"]["strategy"]["matrix"]["python"]))
    assert supported == ["3.11", "3.12", "3.13", "3.14"]
