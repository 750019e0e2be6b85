"""``ngsgpu report``: one HTML page for a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ngsgpu.cli.options import option
from ngsgpu.errors import UsageError


def report(
    manifest: Annotated[
        Path | None,
        typer.Argument(metavar="STUDY.json", help="Study manifest.", show_default=False),
    ] = None,
    output: Path = option(Path("report.html"), "FILE", "HTML file to write.", "-o", "--output"),
    study: Path | None = option(
        None, "FILE", "Study manifest, as an option instead of an argument."
    ),
    results: Path | None = option(
        None,
        "DIRECTORY",
        "Results directory of the workflow, searched for files the manifest does not name. "
        "Without a manifest, report every sample found here.",
    ),
    benchmarks: Path | None = option(None, "DIRECTORY", "Directory of Snakemake benchmark files."),
    write_study: Path | None = option(None, "FILE", "Also write the completed manifest here."),
) -> None:
    """Write a self-contained HTML report of a study.

    Missing results are listed in the report; damaged files are an error.
    """
    if manifest is not None and study is not None:
        raise UsageError("study manifest given twice; give either STUDY.json or --study")
    manifest = manifest or study
    if manifest is None and results is None:
        raise UsageError("nothing to report; give a study manifest or --results")
    if benchmarks is not None and results is None:
        raise UsageError("--benchmarks needs --results")

    from ngsgpu.io.output.atomic import write_texts
    from ngsgpu.io.paths import check_distinct
    from ngsgpu.report.layout import fill_from_layout, study_from_layout
    from ngsgpu.report.render import render_report
    from ngsgpu.report.study import read_study

    if manifest is None:
        assert results is not None
        content = study_from_layout(results, benchmarks)
    else:
        content = read_study(manifest)
        if results is not None:
            content = fill_from_layout(content, results, benchmarks)
    outputs = [output] if write_study is None else [output, write_study]
    check_distinct([], outputs, also_read=content.paths())
    texts: dict[str | Path, str] = {output: render_report(content)}
    if write_study is not None:
        texts[write_study] = content.text(write_study.parent)
    write_texts(texts)
