"""Extension of pairs to long reads by the other reads of the run (CAREx).

From each read of a pair a sequence grows towards the mate, by the consensus of the reads that
overlap its end; where the mate is reached, both reads and what lies between are one long read.

    from ngsgpu.extend import ExtensionOutputs, extend_files
    extend_files(["R1.fastq.gz"], ["R2.fastq.gz"], outputs=ExtensionOutputs("extended.fastq"))

``params`` says what can be chosen, ``pipeline`` goes from files to files by the steps of a ``run``
(``cpu_run``, ``gpu_run``). Of the kernels, ``task`` holds one sequence and its candidates,
``growth`` lets it grow, ``joining`` makes one connection of two, ``cpu`` runs the four tasks of a
pair, ``records`` writes. After Kallenborn (2024), chapter 8.
"""

from ngsgpu.extend.outputs import ExtensionOutputs
from ngsgpu.extend.params import ExtensionParameters
from ngsgpu.extend.pipeline import extend_files, extend_reads, plan_files
from ngsgpu.extend.stats import ExtensionStatistics
from ngsgpu.minhash.ends import EndParameters
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
