"""Error correction of reads by multiple sequence alignments of the reads themselves (CARE).

For each read, the anchor: reads that share a minimal k-mer are laid beside it, those that do not
fit are dropped, and the columns of what is left say which bases are wrong.

    from ngsgpu.correct import CorrectionParameters, correct_files
    correct_files(["R1.fastq.gz"], ["C1.fastq.gz"], ["R2.fastq.gz"], ["C2.fastq.gz"])

``params`` says what can be chosen, ``pipeline`` goes from files to files by the steps of a ``run``.
``cpu_run`` runs the kernels of ``cpu`` (with ``align``); ``gpu_run`` plans (``gpu_plan``) and
places what ``gpu`` runs the kernels of ``kernels.cu`` on, batch by batch (``gpu_batches``);
``corrections`` and ``gpu_combine`` combine what they decide.
After Kallenborn (2024), chapter 4.
"""

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.correct.pipeline import correct_files, correct_reads, plan_files
from ngsgpu.correct.stats import CorrectionStatistics
from ngsgpu.minhash import MinhashParameters
from ngsgpu.run.options import RunOptions

__all__ = [
    "CorrectionParameters",
    "CorrectionStatistics",
    "Corrections",
    "MinhashParameters",
    "RunOptions",
    "correct_files",
    "correct_reads",
    "plan_files",
]
