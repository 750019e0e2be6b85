"""Extension of read pairs to long reads with the other reads of the run (CAREx).

From each read of a pair a sequence grows towards the mate, following the consensus of the reads
that overlap its end; once the mate is reached, both reads and the gap become one long read.

    from ngsgpu.extend import ExtensionOutputs, extend_files
    extend_files(["R1.fastq.gz"], ["R2.fastq.gz"], outputs=ExtensionOutputs("extended.fastq"))

``params`` defines the parameters; ``stage`` processes files in the steps of
``cpu_run`` or ``gpu_run``. Of the kernels, ``task`` holds one sequence and its candidates,
``growth`` extends it, ``joining`` joins two sequences, ``cpu`` runs the four tasks of a pair,
``records`` formats the output, whose bases ``fragments`` writes. After Kallenborn (2024),
chapter 8.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.extend.outputs import ExtensionOutputs
    from ngsgpu.extend.params import ExtensionParameters
    from ngsgpu.extend.stage import extend_files, extend_reads, plan_files
    from ngsgpu.extend.stats import ExtensionStatistics
    from ngsgpu.minhash.params import EndParameters
    from ngsgpu.run.options import RunOptions

__all__ = [
    "EndParameters",
    "ExtensionOutputs",
    "ExtensionParameters",
    "ExtensionStatistics",
    "RunOptions",
    "extend_files",
    "extend_reads",
    "plan_files",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
