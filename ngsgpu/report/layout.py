"""The files of a study by where the workflow puts them, for results without a manifest of files.

What lies in a results directory is taken, whoever put it there; the workflow itself names every
file in its manifest instead.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ngsgpu.errors import InputError
from ngsgpu.report.study import EXTENDERS, VARIANTS, Sample, SampleFiles, Study


def layout_files(
    sample: str, results: Path, benchmarks: Path | None, names: set[str]
) -> SampleFiles:
    """Files of one sample that are present in the workflow's layout.

    ``results/{sample}/correct/stats.json``, ``evaluate/correction.json``,
    ``merge/stats.json``, ``evaluate/merging.json``,
    ``extend/stats.json``, ``evaluate/extension_{ngsgpu,konnector}.json``,
    ``quast_extended/report.tsv``,
    ``kmers/{raw,corrected}.tsv``, ``assembly/{raw,corrected}/contigs.fasta`` (or ``.fa``),
    ``quast/report.tsv`` or ``quast/{raw,corrected}/report.tsv``,
    ``{sample}.kraken2.report.txt``, ``{abundance,coverage}.tsv`` and ``{stats,evaluation}.json``
    in ``classify/{database}`` (in ``classify`` itself for a database without a name), and
    ``benchmarks/{rule}/{sample}*.tsv`` (also ``benchmarks/{rule}/{sample}/{variant}.tsv``).

    Args:
        sample: name of the sample.
        results: the results directory.
        benchmarks: the directory of benchmark files, if any.
        names: names of all samples, so that ``ecoli`` does not take what is ``ecoli.2``'s.
    """
    folder = results / sample

    def present(*candidates: Path) -> Path | None:
        return next((path for path in candidates if path.is_file()), None)

    def both(*patterns: str) -> dict[str, Path]:
        found = {v: present(*(folder / p.format(v) for p in patterns)) for v in VARIANTS}
        return {variant: path for variant, path in found.items() if path is not None}

    joint = present(folder / "quast/report.tsv")
    extended = {name: present(folder / f"evaluate/extension_{name}.json") for name in EXTENDERS}
    return SampleFiles(
        correct=present(folder / "correct/stats.json"),
        evaluation=present(folder / "evaluate/correction.json"),
        merge=present(folder / "merge/stats.json"),
        merging=present(folder / "evaluate/merging.json"),
        extend=present(folder / "extend/stats.json"),
        quast_extended=present(folder / "quast_extended/report.tsv"),
        extension={name: path for name, path in extended.items() if path is not None},
        kmers=both("kmers/{}.tsv"),
        contigs=both("assembly/{}/contigs.fasta", "assembly/{}/contigs.fa"),
        quast={"all": joint} if joint is not None else both("quast/{}/report.tsv"),
        classification=_layout_classification(sample, folder),
        benchmarks=_layout_benchmarks(sample, benchmarks, names) if benchmarks else {},
    )


def _layout_classification(sample: str, folder: Path) -> dict[str, dict[str, Path]]:
    """Files of each database that the sample was classified with."""
    report = f"{sample}.kraken2.report.txt"
    calls = folder / "classify"
    folders = {path.parent.name: path.parent for path in sorted(calls.glob(f"*/{report}"))}
    if (calls / report).is_file():
        folders = {"": calls} | folders
    found = {}
    for database, home in folders.items():
        files = {
            "report": home / report,
            "abundance": home / "abundance.tsv",
            "coverage": home / "coverage.tsv",
            "stats": home / "stats.json",
            "evaluation": home / "evaluation.json",
        }
        if not database and not files["evaluation"].is_file():
            files["evaluation"] = folder / "evaluate/classification.json"
        found[database] = {name: path for name, path in files.items() if path.is_file()}
    return found


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


def fill_from_layout(study: Study, results: Path, benchmarks: Path | None = None) -> Study:
    """Add the files found in a results directory to samples that do not name them themselves."""
    names = {sample.name for sample in study.samples}

    def filled(sample: Sample) -> Sample:
        found = layout_files(sample.name, results, benchmarks, names)
        given = sample.files
        files = SampleFiles(
            correct=given.correct or found.correct,
            evaluation=given.evaluation or found.evaluation,
            merge=given.merge or found.merge,
            merging=given.merging or found.merging,
            extend=given.extend or found.extend,
            quast_extended=given.quast_extended or found.quast_extended,
            extension=given.extension or found.extension,
            kmers=given.kmers or found.kmers,
            contigs=given.contigs or found.contigs,
            quast=given.quast or found.quast,
            classification=given.classification or found.classification,
            benchmarks=given.benchmarks or found.benchmarks,
        )
        return replace(sample, files=files)

    return replace(study, samples=tuple(filled(sample) for sample in study.samples))


def study_from_layout(
    results: str | Path, benchmarks: str | Path | None = None, *, title: str = ""
) -> Study:
    """Make a study of a results directory alone.

    A sample is a folder with statistics of a correction, or with the report of a classification.

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
            "it holds no {sample}/correct/stats.json and no "
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
