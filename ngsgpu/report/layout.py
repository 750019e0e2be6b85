"""Finds the files of a study in the workflow's layout, for results without a manifest.

All results in a directory are used, whatever made them; the workflow itself names every file in its
manifest instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ngsgpu.errors import InputError
from ngsgpu.report.files import is_text
from ngsgpu.report.model import VARIANTS, Sample, SampleFiles, Study
from ngsgpu.report.sections import STAGES


def _layout_benchmarks(sample: str, folder: Path, names: set[str]) -> dict[str, tuple[Path, ...]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*/**/*.tsv")):
        rule, *rest = path.relative_to(folder).with_suffix("").parts
        word = "/".join(rest)
        owners = [name for name in names if re.match(rf"{re.escape(name)}($|[/._-])", word)]
        if max(owners, key=len, default=None) != sample:
            continue
        variant = word[len(sample) :].strip("/._-")
        key = f"{rule} ({variant})" if variant in VARIANTS else rule
        found.setdefault(key, []).append(path)
    return {rule: tuple(paths) for rule, paths in found.items()}


def _check_shown(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if not is_text(name):
            cause = f"the name of the folder {name!a} in it is not UTF-8"
            raise InputError(folder, cause, "rename that folder")


def fill_from_layout(study: Study, results: Path, benchmarks: Path | None = None) -> Study:
    """Add the files found in a results directory to samples that do not name them.

    Each stage knows its files (``Stage.find``); benchmarks are at ``{rule}/{sample}*.tsv`` or
    ``{rule}/{sample}/{variant}.tsv``.

    Args:
        study: the study.
        results: the results directory.
        benchmarks: the directory of benchmark files, if any.

    Raises:
        InputError: a folder whose name the page shows is named in bytes that are not UTF-8.
    """
    names = {sample.name for sample in study.samples}

    def filled(sample: Sample) -> Sample:
        given = sample.files
        paths: dict[tuple[str, ...], Path] = {}
        for stage in STAGES:
            found = stage.find(sample.name, results / sample.name)
            for spec in stage.files:
                own, other = (
                    {key: path for key, path in files.items() if key[0] == spec.name}
                    for files in (given.paths, found)
                )
                paths |= own or other
        measured = given.benchmarks
        if benchmarks and not measured:
            measured = _layout_benchmarks(sample.name, benchmarks, names)
        _check_shown(results, {sample.name, *(part for key in paths for part in key)})
        _check_shown(benchmarks or results, measured)
        return replace(sample, files=SampleFiles(paths, measured))

    return replace(study, samples=tuple(filled(sample) for sample in study.samples))


def study_from_layout(
    results: str | Path, benchmarks: str | Path | None = None, *, title: str = ""
) -> Study:
    """Make a study of a results directory alone.

    A sample is a folder with statistics of a correction, or with the report of a classification.

    Args:
        results: results directory of the workflow.
        benchmarks: Snakemake's benchmark files; by default the folder beside.
        title: title of the report.

    Raises:
        InputError: when the directory holds no such folder.
    """
    folder = Path(results)
    corrected = {path.parent.parent.name for path in folder.glob("*/correct/stats.json")}
    classified = {
        path.relative_to(folder).parts[0]
        for path in folder.glob("*/classify/**/*.kraken2.report.txt")
        if path.name == f"{path.relative_to(folder).parts[0]}.kraken2.report.txt"
    }
    names = sorted(corrected | classified)
    if not names:
        raise InputError(
            folder,
            "it contains no {sample}/correct/stats.json and no "
            "{sample}/classify/{sample}.kraken2.report.txt",
            "give the results directory of a finished workflow, or a study manifest",
        )
    samples = tuple(
        Sample(
            name=name,
            label=name,
            kind="simulated" if (folder / name / "evaluate/correction.json").is_file() else "real",
        )
        for name in names
    )
    study = Study(
        title=title or ("Read correction study" if corrected else "Read classification study"),
        samples=samples,
    )
    return fill_from_layout(study, folder, Path(benchmarks) if benchmarks else None)
