"""Sets of options, and files on which they are tried."""

from __future__ import annotations

from pathlib import Path

from tests.support.io.records import Record, fastq, write
from tests.support.trim.world import ADAPTERS

Files = dict[str, list[str]]
"""Options that name inputs, of each kind of them, and the file for ADAPTERS."""

FIRST = f"-a {ADAPTERS[0]}"
OPTIONS = [
    "",
    "-G",
    "-q 20 -u 30 -n 2",
    "-e 25",
    "-5 -3",
    "-r",
    "-5 -3 -W 6 -M 25",
    "-r -W 10 -M 28",
    "--cut_front --cut_front_window_size 1 --cut_front_mean_quality 3 --cut_tail_window_size 7 -3",
    "-f 5 -t 3",
    "-b 30",
    "-g --poly_g_min_len 5",
    "-G -x",
    "-x --poly_x_min_len 6 -g",
    "-A",
    f"{FIRST} -G",
    "-a CTGTCTCTTATACACATCT",
    "-l 30",
    "-l 20 --length_limit 50",
    "-L",
    "-Q",
    "-Q -L",
    "-y",
    "-y -Y 60",
    "-U --umi_loc read1 --umi_len 8",
    "-U --umi_loc per_read --umi_len 6 --umi_skip 3 --umi_prefix UMI",
    "-U --umi_loc index1",
    "-U --umi_loc per_index --umi_prefix X",
    "-f 3 -5 -3 -r -x -g -y -e 20 -l 10",
    "-3 -W 1 -M 30 -q 30 -u 10",
    "--adapter_fasta ADAPTERS",
    f"--adapter_fasta ADAPTERS {FIRST} -Q",
]
OF_PAIRS = [
    "-f 10 -F 2 -t 7 -T 0",
    "-b 40 -B 25",
    f"-G {FIRST} --adapter_sequence_r2 {ADAPTERS[1]}",
    "--detect_adapter_for_pe",
    "-c",
    "-c --overlap_len_require 12 --overlap_diff_limit 10 --overlap_diff_percent_limit 29",
    "-c -U --umi_loc read2 --umi_len 5 -f 2 -t 1 -b 45",
    "-U --umi_loc index2",
    "-f 3 -5 -3 -r -c -x -g -y -e 20 -l 10",
]
WITH_DUPLICATES = ["", "-D", "--dup_calc_accuracy 2", "-D --dup_calc_accuracy 2 -c"]
"""Of these fastp takes up to 4 GB of memory."""
OF_READS = ["", "-D --dup_calc_accuracy 2"]
"""The same of single reads; accuracies are those of pairs."""

_READS = {"--out1": "o1", "--failed_out": "failed"}
_PAIRS = _READS | {"--out2": "o2", "--unpaired1": "u1", "--unpaired2": "u2"}
OUTPUTS = {"reads": _READS, "pairs": _PAIRS, "interleaved": _PAIRS}
"""Names of outputs by their options, of each kind of inputs."""


def written(folder: Path, made: list[tuple[Record, Record]]) -> Files:
    """Write files of pairs, and of adapters."""
    mates = [write(folder / f"{mate}.fq", fastq(own[mate] for own in made)) for mate in (0, 1)]
    both = write(folder / "both.fq", fastq(record for own in made for record in own))
    named = [("b second", ADAPTERS[1]), ("a", ADAPTERS[0].lower()), ("c", "ACGTA"), ("d", "GGACT")]
    (folder / "adapters.fa").write_text("".join(f">{name}\n{text}\n" for name, text in named))
    return {
        "pairs": ["-i", str(mates[0]), "-I", str(mates[1])],
        "reads": ["-i", str(mates[0])],
        "interleaved": ["-i", str(both), "--interleaved_in"],
        "ADAPTERS": [str(folder / "adapters.fa")],
    }
