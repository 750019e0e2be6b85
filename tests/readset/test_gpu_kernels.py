"""Which of a package's kernels are used for which reads."""

from __future__ import annotations

from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import ReadMemory
from ngsgpu.readset.gpu_kernels import ReadKernels


def test_equal_reads_have_kernels_of_their_own() -> None:
    kernels = ReadKernels("ngsgpu.correct")
    for sequences, quality_bits, name in (
        (["ACGT", "GGGG"], 8, "equal_reads"),
        (["ACGT", "GGG"], 8, "kernels"),
        (["ACGT", "GGGG"], 2, "equal_reads_of_levels"),
        (["ACGT", "GGG"], 2, "kernels"),
        (["ACGTACGT", "GGGGGGGG"], 1, "kernels"),
        (["ACGT", "GGGG"], 0, "kernels"),
    ):
        qualities = ["I" * len(sequence) for sequence in sequences]
        reads = ReadSet.from_sequences(sequences, qualities, quality_bits=quality_bits)  # type: ignore[arg-type]
        assert kernels.of(ReadMemory.of(reads)).name == f"ngsgpu.correct.{name}"
