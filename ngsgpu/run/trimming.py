"""What is said of reads that continue into adapters: a warning and remedy, or a report."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ngsgpu._version import __version__
from ngsgpu.io.compress.alignments import is_alignments
from ngsgpu.io.compress.formats import without_packing
from ngsgpu.io.inputs import ReadFiles, pair_inputs, warn_of_mates
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import check_distinct
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.run.adapters import Adapters, find_adapters
from ngsgpu.run.options import RunOptions, chunk_bytes_within
from ngsgpu.run.progress import Progress, say_if_compiling
from ngsgpu.run.rehearsal import end_rehearsal

_LOG = logging.getLogger("ngsgpu")


@dataclass(frozen=True, slots=True)
class Looked:
    """Reads and adapters of files.

    Attributes:
        reads: their number.
        bases: of all of them.
        adapters: what the sample says.
        remedy: a command line that trims them; empty if that is not needed.
    """

    reads: int
    bases: int
    adapters: Adapters
    remedy: str

    def to_json(self) -> str:
        """As JSON text."""
        document = {
            "schema": "ngsgpu.adapters",
            "schema_version": 1,
            "version": __version__,
            "reads": {"total": self.reads, "bases": self.bases},
            "adapters": self.adapters.for_statistics(),
        }
        return json.dumps(document, indent=1) + "\n"

    def fasta(self) -> str:
        """The adapters, none where reads need not be trimmed."""
        sequences = self.adapters.sequences if self.adapters.many else ()
        return "".join(
            f">adapter_{number}\n{sequence}\n"
            for number, sequence in enumerate(sequences, start=1)
            if sequence
        )

    def summary(self) -> list[str]:
        """Lines for people."""
        found = self.adapters
        share = _share(found.with_adapter, found.reads)
        name = f" ({_name(found)})" if found.with_adapter else ""
        return [
            f"{self.reads:,} reads, {self.bases:,} bases; {found.reads:,} reads sampled",
            f"{share} continue into an adapter{name}, "
            f"{_share(found.poly_g, found.reads)} end in G's",
            f"trim: {self.remedy}" if self.remedy else "no need to trim",
        ]


def look_for_adapters(
    in1: Sequence[str | Path],
    in2: Sequence[str | Path] = (),
    *,
    interleaved: bool = False,
    phred_offset: PhredOffset = "auto",
    stats: str | Path | None = None,
    fasta: str | Path | None = None,
    options: RunOptions | None = None,
) -> Looked:
    """Read files, check all of their records, and look for adapters.

    Args:
        in1: files of single reads, of first mates, or of interleaved mates; ``-`` is standard
            input.
        in2: files of second mates, as many as ``in1``, or none.
        interleaved: whether ``in1`` holds both mates.
        phred_offset: 33, 64, or ``auto``.
        stats: JSON file for what was found.
        fasta: FASTA file for the adapters.
        options: threads and memory.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files are inconsistent.
        OutputError: an output cannot be written; none was.
    """
    options = options or RunOptions()
    lanes = pair_inputs(in1, in2, interleaved=interleaved)
    wanted = {"stats": stats, "fasta": fasta}
    outputs = [str(path) for path in wanted.values() if path is not None]
    check_distinct([path for lane in lanes for path in lane.inputs], outputs)
    warn_of_mates(lanes)
    end_rehearsal(outputs)
    say_if_compiling()
    sample, reads, bases = ReadSample(), 0, 0
    with (
        OutputSet(outputs) as files,
        Progress(options.progress) as progress,
        progress.stage("reading", unit="reads") as stage,
    ):
        for lane in lanes:
            batches = lane.batches(
                threads=options.threads,
                phred_offset=phred_offset,
                chunk_bytes=chunk_bytes_within(options.budget, options.chunk_bytes),
            )
            for mates in sample.of_lane(batches, interleaved=lane.interleaved):
                reads += sum(map(len, mates))
                bases += sum(int(batch.seq_len.sum(dtype=np.int64)) for batch in mates)
                stage.advance(sum(map(len, mates)))
        found = find_adapters(sample)
        needed = found.many or found.many_poly_g
        remedy = _remedy(lanes, found, sample.has_qualities) if needed else ""
        looked = Looked(reads, bases, found, remedy)
        texts = {"stats": looked.to_json, "fasta": looked.fasta}
        makers = [texts[name] for name, path in wanted.items() if path is not None]
        for index, make in enumerate(makers):
            files.write(index, make().encode())
    return looked


def warn_of_adapters(sample: ReadSample, lanes: Sequence[ReadFiles], harm: str) -> dict[str, Any]:
    """Look for adapters in a sample, and warn if many reads have them.

    Args:
        sample: of the run.
        lanes: its inputs.
        harm: what the stage does with adapters.

    Returns:
        What was found, for the statistics.
    """
    found = find_adapters(sample)
    causes = []
    if found.many:
        share = _share(found.with_adapter, found.reads)
        causes.append(f"{share} continue into an adapter ({_name(found)})")
    if found.many_poly_g:
        share = _share(found.poly_g, found.reads)
        causes.append(f"{share} end in G's, as two-colour instruments write where nothing shines")
    if causes:
        _LOG.warning(
            "of %s sampled reads %s; %s. Trim them first, for example: %s",
            f"{found.reads:,}",
            " and ".join(causes),
            harm,
            _remedy(lanes, found, sample.has_qualities),
        )
    return found.for_statistics()


def _name(found: Adapters) -> str:
    return ", ".join(filter(None, (found.kit, *found.sequences[:1]))) or "of unknown sequence"


def _share(count: int, total: int) -> str:
    return f"{100 * count / max(1, total):.1f} %"


def _remedy(lanes: Sequence[ReadFiles], found: Adapters, has_qualities: bool) -> str:
    """A command line that trims, for the first lane."""
    # Beside pairs there may be single reads, such as merged ones, without adapters.
    lane = next((lane for lane in lanes if lane.paired), lanes[0])
    given = lane.given or lane.inputs
    outputs = [shlex.quote(f"trimmed_{_trimmed_name(path)}") for path in given]
    inputs = [shlex.quote(path) for path in given]
    command = _ngsgpu_trim if has_qualities else _cutadapt
    return command(lane, inputs, outputs, found) + (
        " (and the other inputs likewise)" if len(lanes) > 1 else ""
    )


def _trimmed_name(path: str) -> str:
    """Name for the trimmed reads of a file: FASTQ, in a compression that can be written."""
    name = Path(path).name
    if is_alignments(path):
        return f"{without_packing(name)}.fastq"
    return name.removesuffix(".bz2").removesuffix(".xz")


def _ngsgpu_trim(lane: ReadFiles, inputs: list[str], outputs: list[str], found: Adapters) -> str:
    options = ["ngsgpu trim"]
    if len(inputs) == 2:
        options += ["-i", inputs[0], "-I", inputs[1], "-o", outputs[0], "-O", outputs[1]]
    else:
        options += ["-i", inputs[0], *["--interleaved-in"] * lane.interleaved]
        options += ["-o", "-" if inputs[0] == "-" else outputs[0]]
    if lane.paired and found.many and any(found.sequences):
        options.append("--detect-adapter-for-pe")
    elif not lane.paired and found.sequences[0]:
        options += ["--adapter-sequence", found.sequences[0]]
    if found.many_poly_g:
        options.append("--trim-poly-g")
    options.append("--disable-quality-filtering")
    return " ".join(options)


def _cutadapt(lane: ReadFiles, inputs: list[str], outputs: list[str], found: Adapters) -> str:
    """For FASTA, which `ngsgpu trim` does not take."""
    options = ["cutadapt", *["--interleaved"] * lane.interleaved]
    for option, sequence in zip(("-a", "-A")[: 1 + lane.paired], found.sequences, strict=False):
        options += [option, sequence] if sequence else []
    options += ["-a", '"G{20}"'] if found.many_poly_g else []
    for option, output in zip(("-o", "-p"), outputs, strict=False):
        options += [option, output] if inputs[0] != "-" else []
    return " ".join([*options, *inputs])
