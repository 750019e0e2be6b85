"""The report of fastp 0.23.2, as JSON, which MultiQC and others read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final

import numpy as np

from ngsgpu.trim.counts import (
    CORRECTED_BASES,
    CORRECTED_READS,
    KMER,
    LENGTHS,
    MOST_INSERT,
    Q20,
    Q30,
    READS,
    TRIMMED_BASES,
    TRIMMED_READS,
    UNITS,
    Counts,
    ReadCounts,
)
from ngsgpu.trim.filters import LONG, MANY_N, PASSED, POOR, SHORT, SIMPLE
from ngsgpu.trim.params import AUTO, TrimParameters

_LETTERS: Final = "ATCG"
_LEAST_SHARE: Final = 0.01
"""Part of the adapters that a sequence must be to be listed."""


def report_of(
    counts: Counts,
    parameters: TrimParameters,
    *,
    paired: bool,
    adapters: tuple[str, str],
    version: str,
    command: str,
    cuts: Mapping[str, Any],
) -> str:
    """The report of a run.

    Args:
        counts: what was counted.
        parameters: of trimming.
        paired: whether the reads have mates.
        adapters: of first and second mates; empty if there is none.
        version: of the program.
        command: the command line.
        cuts: what is cut off reads besides adapters, which fastp does not say; empty: neither here.
    """
    mates = 2 if paired else 1
    before, after = counts.before[:mates], counts.after[:mates]
    cycles = " + ".join(f"{one.cycles} cycles" for one in before)
    parts = [
        '\t"summary": {',
        f'\t\t"fastp_version": {json.dumps(version)},',
        f'\t\t"sequencing": "{"paired" if paired else "single"} end ({cycles})",',
        '\t\t"before_filtering": {',
        *_summary(before),
        "\t\t},",
        '\t\t"after_filtering": {',
        *_summary(after),
        "\t\t}",
        "\t},",
        *_filtering(counts, parameters, paired),
    ]
    if parameters.evaluates_duplication:
        share = counts.duplicates / max(1, int(counts.totals[UNITS]))
        parts += ['\t"duplication": {', f'\t\t"rate": {_number(share)}', "\t},"]
    if paired:
        parts += _inserts(counts)
    if not parameters.disable_adapter_trimming and (paired or adapters[0]):
        parts += _adapters(counts, adapters[:mates])
    if parameters.trim_poly_x:
        parts += _poly_x(counts)
    for when, each in (("before", before), ("after", after)):
        for mate, own in enumerate(each, start=1):
            parts += [f'\t"read{mate}_{when}_filtering": {{', *_reads(own), "\t},"]
    if cuts:
        parts.append(f'\t"cuts": {json.dumps(cuts)},')
    return "\n".join(["{", *parts, f'\t"command": {json.dumps(command)}', "}"])


def _number(value: float) -> str:
    """A number with six digits."""
    return f"{value:g}"


def _summary(each: list[ReadCounts]) -> Iterator[str]:
    totals = sum((own.totals for own in each), np.zeros(4, dtype=np.int64)).tolist()
    bases = int(sum(own.content.sum() for own in each))
    gc = int(sum(own.content[:, [ord("G") & 7, ord("C") & 7]].sum() for own in each))
    share = max(1, bases)
    pad = "\t\t\t"
    yield f'{pad}"total_reads":{totals[READS]},'
    yield f'{pad}"total_bases":{bases},'
    yield f'{pad}"q20_bases":{totals[Q20]},'
    yield f'{pad}"q30_bases":{totals[Q30]},'
    yield f'{pad}"q20_rate":{_number(totals[Q20] / share)},'
    yield f'{pad}"q30_rate":{_number(totals[Q30] / share)},'
    for mate, own in enumerate(each, start=1):
        mean = int(own.totals[LENGTHS]) // max(1, int(own.totals[READS]))
        yield f'{pad}"read{mate}_mean_length":{mean},'
    yield f'{pad}"gc_content":{_number(gc / share)}'


def _filtering(counts: Counts, parameters: TrimParameters, paired: bool) -> Iterator[str]:
    results, totals = counts.results.tolist(), counts.totals.tolist()
    yield '\t"filtering_result": {'
    yield f'\t\t"passed_filter_reads": {results[PASSED]},'
    if parameters.correction and paired:
        yield f'\t\t"corrected_reads": {totals[CORRECTED_READS]},'
        yield f'\t\t"corrected_bases": {totals[CORRECTED_BASES]},'
    yield f'\t\t"low_quality_reads": {results[POOR]},'
    yield f'\t\t"too_many_N_reads": {results[MANY_N]},'
    if parameters.low_complexity_filter:
        yield f'\t\t"low_complexity_reads": {results[SIMPLE]},'
    yield f'\t\t"too_short_reads": {results[SHORT]},'
    yield f'\t\t"too_long_reads": {results[LONG]}'
    yield "\t},"


def _inserts(counts: Counts) -> Iterator[str]:
    sizes = counts.inserts.tolist()
    listed = sizes[:MOST_INSERT]
    yield '\t"insert_size": {'
    yield f'\t\t"peak": {listed.index(max(listed))},'
    yield f'\t\t"unknown": {sizes[MOST_INSERT]},'
    yield f'\t\t"histogram": [{",".join(map(str, listed))}]'
    yield "\t},"


def _adapters(counts: Counts, adapters: tuple[str, ...]) -> Iterator[str]:
    yield '\t"adapter_cutting": {'
    yield f'\t\t"adapter_trimmed_reads": {int(counts.totals[TRIMMED_READS])},'
    yield f'\t\t"adapter_trimmed_bases": {int(counts.totals[TRIMMED_BASES])},'
    for mate, sequence in enumerate(adapters, start=1):
        named = sequence if sequence not in ("", AUTO) else "unspecified"
        yield f'\t\t"read{mate}_adapter_sequence": "{named}",'
    for mate, found in enumerate(counts.adapters[: len(adapters)], start=1):
        comma = "," if mate < len(adapters) else ""
        yield f'\t\t"read{mate}_adapter_counts": {{{_listed(found)}}}{comma}'
    yield "\t},"


def _listed(found: Counter[bytes]) -> str:
    """Frequent sequences, the short ones first, and how many others there are."""
    total = found.total()
    listed = [
        (sequence.decode("latin-1"), number)
        for sequence, number in sorted(found.items(), key=lambda item: (len(item[0]), item[0]))
        if number / total >= _LEAST_SHARE
    ]
    if others := total - sum(number for _, number in listed):
        listed.append(("others", others))
    return ", ".join(f'"{sequence}":{number}' for sequence, number in listed)


def _poly_x(counts: Counts) -> Iterator[str]:
    yield '\t"polyx_trimming": \t{'
    names = "polyx_trimmed_reads", "polyx_trimmed_bases"
    for name, row, comma in zip(names, counts.poly_x.tolist(), (",", ""), strict=True):
        own = ", ".join(f'"{letter}": {n}' for letter, n in zip(_LETTERS, row, strict=True))
        yield f'\t\t"total_{name}": {sum(row)},'
        yield f'\t\t"{name}":{{{own}}}{comma}'
    yield "\t},"


def _reads(own: ReadCounts) -> Iterator[str]:
    cycles = own.cycles
    content, quality = own.content[:cycles], own.quality[:cycles]
    bases = content.sum(axis=1)
    mean = quality.sum(axis=1) / bases
    yield f'\t\t"total_reads": {int(own.totals[READS])},'
    yield f'\t\t"total_bases": {int(bases.sum())},'
    yield f'\t\t"q20_bases": {int(own.totals[Q20])},'
    yield f'\t\t"q30_bases": {int(own.totals[Q30])},'
    yield f'\t\t"total_cycles": {cycles},'
    yield '\t\t"quality_curves": {'
    for letter in _LETTERS:
        row = ord(letter) & 7
        there = content[:, row]
        curve = np.where(there > 0, quality[:, row] / np.maximum(there, 1), mean)
        yield f'\t\t\t"{letter}":[{_curve(curve)}],'
    yield f'\t\t\t"mean":[{_curve(mean)}]'
    yield "\t\t},"
    yield '\t\t"content_curves": {'
    for letter in _LETTERS + "N":
        yield f'\t\t\t"{letter}":[{_curve(content[:, ord(letter) & 7] / bases)}],'
    gc = content[:, ord("G") & 7] + content[:, ord("C") & 7]
    yield f'\t\t\t"GC":[{_curve(gc / bases)}]'
    yield "\t\t},"
    yield from _kmers(own)
    yield '\t\t"overrepresented_sequences": {'
    yield "\t\t}"


def _kmers(own: ReadCounts) -> Iterator[str]:
    """K-mers, sixteen in a row."""
    yield '\t\t"kmer_count": {'
    names = map("".join, product(_LETTERS, repeat=KMER))
    cells = [f'\t\t\t"{name}":{n}' for name, n in zip(names, own.kmers.tolist(), strict=True)]
    rows = [",".join(cells[at : at + 16]) for at in range(0, len(cells), 16)]
    yield ",\n".join(rows)
    yield "\t\t},"


def _curve(values: Iterable[float]) -> str:
    return ",".join(map(_number, values))
