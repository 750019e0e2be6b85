"""``ngsgpu report``: one HTML page for a study."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from ngsgpu.declared.options import argument, option
from ngsgpu.declared.roles import ReadFolder, ReadPath, Text, WrittenFolder, WrittenPath
from ngsgpu.errors import UsageError


def report(
    manifest: Annotated[
        ReadPath | None,
        argument(..., "STUDY.json", "Study manifest."),
    ] = None,
    output: WrittenPath = option(
        Path("report.html"), "FILE", "HTML file to write.", "-o", "--output"
    ),
    study: ReadPath | None = option(
        None, "FILE", "Study manifest, as an option instead of an argument."
    ),
    results: ReadFolder | None = option(
        None,
        "DIRECTORY",
        "Results directory of the workflow, searched for files the manifest does not name. "
        "Without a manifest, report every sample found here.",
    ),
    benchmarks: ReadFolder | None = option(
        None, "DIRECTORY", "Directory of Snakemake benchmark files."
    ),
    sample: list[Text] | None = option(
        None, "NAME", "Report only this sample; repeat the option for several."
    ),
    write_study: WrittenPath | None = option(
        None, "FILE", "Also write the completed manifest here."
    ),
    tables: WrittenFolder | None = option(
        None, "DIRECTORY", "Also write the tables of the report here, as CSV files."
    ),
    methods: WrittenPath | None = option(
        None, "FILE", "Also write a methods paragraph with references here (Markdown)."
    ),
    software: WrittenPath | None = option(
        None, "FILE", "Also write the versions of all programs here (YAML, in nf-core's form)."
    ),
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
    if tables is not None and tables.exists() and not tables.is_dir():
        raise UsageError(f"{tables}: is no folder; name one for the tables")

    from ngsgpu.io.output.atomic import write_texts
    from ngsgpu.io.paths import check_distinct
    from ngsgpu.report.exports.software import software_versions
    from ngsgpu.report.exports.tables import csv_tables
    from ngsgpu.report.layout import fill_from_layout, study_from_layout
    from ngsgpu.report.render import render_page, report_context
    from ngsgpu.report.study import read_study

    if manifest is None:
        assert results is not None
        content = study_from_layout(results, benchmarks)
    else:
        content = read_study(manifest)
        if results is not None:
            content = fill_from_layout(content, results, benchmarks)
    read = [*content.paths(), *([] if manifest is None else [manifest])]
    named = [path for path in (output, write_study, methods, software) if path is not None]
    check_distinct([], named, also_read=read)
    if sample:
        content = content.of(sample)
    context = report_context(content)
    texts: dict[str | Path, str] = {output: render_page(context)}
    if write_study is not None:
        texts[write_study] = content.text(write_study.parent)
    if methods is not None:
        texts[methods] = context["methods"].text()
    if software is not None:
        texts[software] = software_versions(context["methods"].runs)
    if tables is not None:
        own: dict[str | Path, str] = {tables / n: t for n, t in csv_tables(context).items()}
        check_distinct([], [*named, *own], also_read=read)
        texts |= own
    is_new = tables is not None and not tables.exists()
    try:
        if tables is not None:
            tables.mkdir(exist_ok=True)
        write_texts(texts)
    except BaseException:
        if tables is not None and is_new:
            with suppress(OSError):
                tables.rmdir()
        raise
