"""From sequences to the files of their index."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.plan import Allocation, HostPlan, MemoryPlan, gpu_memory
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.run.driver import FilesDriver
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions
from ngsgpu.run.progress import Run
from ngsgpu.sequence.codec import LETTERS
from ngsgpu.suffix import bwa
from ngsgpu.suffix.array import place_bytes, suffix_array
from ngsgpu.suffix.fm import SAMPLED, FmIndex, fm_index, word_count
from ngsgpu.suffix.params import Format
from ngsgpu.suffix.places import SequencePlaces
from ngsgpu.suffix.reference import Reference, read_reference
from ngsgpu.suffix.stats import IndexSummary
from ngsgpu.suffix.store import KIND, save_index

_END: int = ord("$")
"""Behind each sequence of a text."""

_DRIVER: Final = FilesDriver[None](lambda: None)


def build_index(
    path: str | Path,
    prefix: str | Path,
    kind: Format = "bwa",
    options: RunOptions | None = None,
    *,
    stats: str | Path | None = None,
) -> IndexSummary:
    """Index sequences.

    Args:
        path: FASTA file, plain or compressed; ``-`` is standard input.
        prefix: of BWA's five files, or the folder of another format.
        kind: ``bwa``, ``fm``, ``bwt`` or ``sa``; see ``ngsgpu.suffix.store``.
        options: backend, threads, memory and progress; do not affect the result.
        stats: JSON file for the statistics.

    Raises:
        InputError: the sequences cannot be read, or the folder holds something else.
        OutputError: an output cannot be written; none is then.
        HostMemoryError: the memory is too small.
        UsageError: an output is the input.
    """
    read: list[Reference] = []
    bwa_files = [f"{prefix}{ending}" for ending in (*bwa.ENDINGS, bwa.SUMS)]

    def built(run: Run[None], files: OutputSet) -> IndexSummary:
        if not read:
            with run.progress.stage("reading", unit="bases") as stage:
                read.append(read_reference(path, run.options.threads))
                stage.advance(len(read[0].codes))
        reference = read[0]
        bases, sequences = len(reference.codes), len(reference.sequences)
        plan_memory(bases, sequences, kind, run.options).check()
        with run.progress.stage("sorting", unit="bases") as stage:
            if kind == "bwa":
                _write_bwa(reference, files, run.options)
            else:
                _write_folder(reference, files.folder, kind, run.options)
            stage.advance(bases)
        return IndexSummary.after(
            run,
            parameters={"format": kind},
            sequences=sequences,
            bases=bases,
            replaced=sum(int(one.holes[:, 1].sum()) for one in reference.sequences),
        )

    return _DRIVER.run_files(
        [path], bwa_files if kind == "bwa" else (), built, parameters=None, options=options,
        stats=stats, folder=None if kind == "bwa" else (prefix, KIND), reads_once=True,
    )  # fmt: skip


def plan_index(
    path: str | Path, kind: Format = "bwa", options: RunOptions | None = None
) -> HostPlan:
    """Plan the memory of an index; reads the sequences, writes nothing.

    Arguments and errors are those of ``build_index``.
    """
    options = options or RunOptions()
    reference = read_reference(path, options.threads)
    bases, sequences = len(reference.codes), len(reference.sequences)
    gpus, limit = options.gpus, options.gpu_memory

    def plan_there() -> MemoryPlan:
        if kind in ("sa", "bwt"):
            from ngsgpu.suffix.gpu_team import plan_on_gpus

            return plan_on_gpus(bases + sequences, gpus, limit)
        from ngsgpu.suffix.bucket import plan_buckets

        return plan_buckets(2 * bases, gpu_memory(limit).budget)

    return replace(plan_memory(bases, sequences, kind, options), on_gpu=plan_there)


def _write_bwa(reference: Reference, files: OutputSet, options: RunOptions) -> None:
    summed = {end: bwa.SummedFile(partial(files.write, at)) for at, end in enumerate(bwa.ENDINGS)}
    holes, annotations, transform, packed, sample = summed.values()
    holes.write(bwa.hole_text(reference))
    annotations.write(bwa.annotation_text(reference))
    packed.write(bwa.packed_bases(reference.codes, options.threads).data)
    index = _index_of(reference, options)
    bwa.write_transform(index, transform.write)
    bwa.write_sample(index, sample.write)
    files.write(len(summed), bwa.sums_text(summed))


def _write_folder(reference: Reference, folder: Path, kind: Format, options: RunOptions) -> None:
    names = [one.name for one in reference.sequences]
    starts = [one.start for one in reference.sequences]
    places = SequencePlaces(names, np.array([*starts, len(reference.codes)], dtype=np.int64))
    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any] = {}
    if kind == "fm":
        index = _index_of(reference, options)
        arrays = {"words": index.words, "sample": index.sample}
        values = {"primary": index.primary, "totals": index.totals.tolist()}
    else:
        text = letters_of(reference)
        array = _array_of(text, options)
        if kind == "sa":
            arrays = {"text": text, "places": array}
        else:
            arrays = {"text": text, "transform": transform_of(text, array)}
    save_index(folder, kind, places, arrays, values, options.threads)


def _index_of(reference: Reference, options: RunOptions) -> FmIndex:
    """The FM index of both strands."""
    if options.backend == "cuda":
        from ngsgpu.suffix.bucket import fm_index_by_buckets

        return fm_index_by_buckets(reference.codes, limit=options.gpu_memory, gpus=options.gpus)
    text = reference.both_strands()
    return fm_index(text, suffix_array(text), options.threads)


def _array_of(text: NDArray[np.uint8], options: RunOptions) -> NDArray[Any]:
    """The suffix array of a text."""
    if options.backend == "cuda":
        from ngsgpu.suffix.gpu_team import suffix_array_on_gpus

        return suffix_array_on_gpus(text, gpus=options.gpus, limit=options.gpu_memory)
    return suffix_array(text)


def letters_of(reference: Reference) -> NDArray[np.uint8]:
    """The sequences in upper case with their ambiguous letters, and ``$`` behind each, uint8."""
    text = np.empty(len(reference.codes) + len(reference.sequences), dtype=np.uint8)
    for number, one in enumerate(reference.sequences):
        own = text[one.start + number : one.start + number + one.length]
        own[:] = LETTERS[reference.codes[one.start : one.start + one.length]]
        for (start, length), letter in zip(one.holes.tolist(), one.letters, strict=True):
            own[start - one.start : start - one.start + length] = letter & 0xDF
        text[one.start + number + one.length] = _END
    return text


def transform_of(text: NDArray[np.uint8], array: NDArray[Any]) -> NDArray[np.uint8]:
    """The Burrows-Wheeler transform, uint8[n + 1]; the end mark is 0.

    Args:
        text: uint8[n].
        array: its suffix array.
    """
    transform = np.empty(len(text) + 1, dtype=np.uint8)
    transform[0] = text[-1]
    np.take(text, array - 1, out=transform[1:], mode="wrap")
    transform[1:][array == 0] = 0
    return transform


def plan_memory(bases: int, sequences: int, kind: Format, options: RunOptions) -> HostPlan:
    """Plan the memory of the host for making an index.

    Args:
        bases: bases of all sequences.
        sequences: number of sequences.
        kind: format of the index.
        options: backend and memory budget.
    """
    on_gpu, remedies = options.backend == "cuda", ["bwa index"]
    if kind in ("sa", "bwt"):
        # The codes, the text, its suffix array, and the transform or, on a GPU, nothing more.
        size = bases + sequences
        parts = {"text": 2 * size, "array": size * place_bytes(size) * (2 if kind == "bwt" else 1)}
    else:
        size = 2 * bases
        parts = {"index": 4 * word_count(size) + 8 * (size // SAMPLED)}
        if on_gpu:
            parts["text"] = bases // 4
        else:
            parts["text and array"] = size * (1 + place_bytes(size))
            remedies.append("a GPU")
    parts = {"program": INTERPRETER_BYTES, "bases": bases, **parts}
    return HostPlan(
        doing=f"indexing {bases:,} bases",
        allocations=tuple(Allocation(name, own) for name, own in parts.items()),
        budget=options.budget,
        remedies=tuple(remedies),
        sizes={"sequences": sequences, "bases": bases},
        notes=(f"input    {sequences:,} sequences of {bases:,} bases",),
    )
