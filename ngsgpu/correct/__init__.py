"""Error correction of reads by multiple sequence alignment of overlapping reads (CARE).

Each read, the anchor, is aligned with the reads that share a minimum k-mer; poor alignments are
dropped, and the columns of the rest show which bases are wrong.

    from ngsgpu.correct import CorrectionParameters, correct_files
    correct_files(["R1.fastq.gz"], ["C1.fastq.gz"], ["R2.fastq.gz"], ["C2.fastq.gz"])

``params`` defines the parameters; ``stage`` processes files in the steps of ``cpu_run``,
which runs the kernels of ``cpu`` (with ``align``; ``decide`` and ``votes`` change an anchor and its
candidates, in a thread's ``workspace``), or of ``gpu_run``, which plans (``gpu_plan``) and places
the data on which ``gpu`` runs the kernels of ``kernels.cu``, batch by batch;
``corrections`` and ``gpu_combine`` combine the decisions.
After Kallenborn (2024), chapter 4.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.correct.corrections import Corrections
    from ngsgpu.correct.cpu_run import CorrectionPlan
    from ngsgpu.correct.params import CorrectionParameters
    from ngsgpu.correct.stage import correct_files, correct_reads, plan_files
    from ngsgpu.correct.stats import CorrectionStatistics
    from ngsgpu.minhash import MinhashParameters
    from ngsgpu.run.options import RunOptions

__all__ = [
    "CorrectionParameters",
    "CorrectionPlan",
    "CorrectionStatistics",
    "Corrections",
    "MinhashParameters",
    "RunOptions",
    "correct_files",
    "correct_reads",
    "plan_files",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
