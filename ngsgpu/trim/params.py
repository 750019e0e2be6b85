"""Parameters of trimming, with the names and values of fastp 0.23.2 (Chen et al. 2018)."""

from __future__ import annotations

from typing import Final, Literal

from ngsgpu.declared.options import RESEARCH, flag, option
from ngsgpu.declared.roles import Read, Text
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError

AUTO: Final = "auto"
MOST_TRIMMED: Final = 1000

UmiPlace = Literal["index1", "index2", "read1", "read2", "per_index", "per_read"]
IN_READS: Final = ("read1", "read2", "per_read")
"""Places of a UMI that is cut off a read."""


@parameters
class TrimParameters:
    """What is trimmed, and which reads are kept; the defaults are fastp's.

    Steps are done in this order: UMI, fixed numbers of bases and windows of quality, tails of G,
    adapters, tails of one base, longest length; then a read is kept or not.
    """

    adapter_sequence: Text = option(
        AUTO,
        "SEQUENCE",
        "Adapter of the first mates; in pairs, it is searched for where the mates do not overlap. "
        "auto: detect it, for single reads.",
        "-a",
        "--adapter-sequence",
        group="Adapters",
    )
    adapter_sequence_r2: Text = option(
        AUTO,
        "SEQUENCE",
        "Adapter of the second mates.",
        shown_default="auto; with --adapter-sequence that one",
        group="Adapters",
    )
    adapter_fasta: Read | None = option(
        None, "FASTA", "Further adapter sequences, searched for in all reads.", group="Adapters"
    )
    detect_adapter_for_pe: bool = flag("Detect adapters also in paired reads.", group="Adapters")
    disable_adapter_trimming: bool = flag(
        "Do not trim adapters.", "-A", "--disable-adapter-trimming", group="Adapters"
    )
    trim_front1: int = option(
        0,
        "N",
        "Bases to cut from the start of first mates.",
        "-f",
        "--trim-front1",
        least=0,
        most=MOST_TRIMMED,
        group="Fixed lengths",
    )
    trim_tail1: int = option(
        0,
        "N",
        "Bases to cut from the end of first mates.",
        "-t",
        "--trim-tail1",
        least=0,
        most=MOST_TRIMMED,
        group="Fixed lengths",
    )
    max_len1: int = option(
        0,
        "N",
        "Maximum length of first mates; longer ones are cut at their end. 0: any.",
        "-b",
        "--max-len1",
        least=0,
        group="Fixed lengths",
    )
    trim_front2: int | None = option(
        None,
        "N",
        "Bases to cut from the start of second mates.",
        "-F",
        "--trim-front2",
        shown_default="as of first mates",
        least=0,
        most=MOST_TRIMMED,
        group="Fixed lengths",
    )
    trim_tail2: int | None = option(
        None,
        "N",
        "Bases to cut from the end of second mates.",
        "-T",
        "--trim-tail2",
        shown_default="as of first mates",
        least=0,
        most=MOST_TRIMMED,
        group="Fixed lengths",
    )
    max_len2: int | None = option(
        None,
        "N",
        "Maximum length of second mates; longer ones are cut at their end.",
        "-B",
        "--max-len2",
        shown_default="as of first mates",
        least=0,
        group="Fixed lengths",
    )
    trim_poly_g: bool = flag(
        "Trim tails of G; without this, only in reads of two-colour instruments, recognised by "
        "the name of the first read.",
        "-g",
        "--trim-poly-g",
        group="Tails of one base",
    )
    disable_trim_poly_g: bool = flag(
        "Never trim tails of G.", "-G", "--disable-trim-poly-g", group="Tails of one base"
    )
    poly_g_min_len: int = option(
        10, "N", "Minimum length of a tail of G.", least=1, group="Tails of one base"
    )
    trim_poly_x: bool = flag(
        "Trim tails of any one base.", "-x", "--trim-poly-x", group="Tails of one base"
    )
    poly_x_min_len: int = option(
        10, "N", "Minimum length of a tail of one base.", least=1, group="Tails of one base"
    )
    cut_front: bool = flag(
        "Cut windows of low mean quality from the start.",
        "-5",
        "--cut-front",
        group="Ends of low quality",
    )
    cut_tail: bool = flag(
        "Cut windows of low mean quality from the end.",
        "-3",
        "--cut-tail",
        group="Ends of low quality",
    )
    cut_right: bool = flag(
        "Cut from the first window of low mean quality to the end.",
        "-r",
        "--cut-right",
        group="Ends of low quality",
    )
    cut_window_size: int = option(
        4,
        "N",
        "Window length in bases, for --cut-front, --cut-tail and --cut-right.",
        "-W",
        "--cut-window-size",
        least=1,
        most=1000,
        group="Ends of low quality",
    )
    cut_mean_quality: int = option(
        20,
        "Q",
        "Minimum mean quality of a window, for --cut-front, --cut-tail and --cut-right.",
        "-M",
        "--cut-mean-quality",
        least=1,
        most=30,
        group="Ends of low quality",
    )
    cut_front_window_size: int | None = option(
        None,
        "N",
        "Window length in bases, for --cut-front alone.",
        shown_default="--cut-window-size",
        least=1,
        most=1000,
        group="Ends of low quality",
    )
    cut_front_mean_quality: int | None = option(
        None,
        "Q",
        "Minimum mean quality of a window, for --cut-front alone.",
        shown_default="--cut-mean-quality",
        least=1,
        most=30,
        group="Ends of low quality",
    )
    cut_tail_window_size: int | None = option(
        None,
        "N",
        "Window length in bases, for --cut-tail alone.",
        shown_default="--cut-window-size",
        least=1,
        most=1000,
        group="Ends of low quality",
    )
    cut_tail_mean_quality: int | None = option(
        None,
        "Q",
        "Minimum mean quality of a window, for --cut-tail alone.",
        shown_default="--cut-mean-quality",
        least=1,
        most=30,
        group="Ends of low quality",
    )
    cut_right_window_size: int | None = option(
        None,
        "N",
        "Window length in bases, for --cut-right alone.",
        shown_default="--cut-window-size",
        least=1,
        most=1000,
        group="Ends of low quality",
    )
    cut_right_mean_quality: int | None = option(
        None,
        "Q",
        "Minimum mean quality of a window, for --cut-right alone.",
        shown_default="--cut-mean-quality",
        least=1,
        most=30,
        group="Ends of low quality",
    )
    disable_quality_filtering: bool = flag(
        "Keep reads of any quality and with any number of N.",
        "-Q",
        "--disable-quality-filtering",
        group="Reads to keep",
    )
    qualified_quality_phred: int = option(
        15,
        "Q",
        "Minimum quality of a base that counts as qualified.",
        "-q",
        "--qualified-quality-phred",
        least=0,
        most=93,
        group="Reads to keep",
    )
    unqualified_percent_limit: int = option(
        40,
        "N",
        "Maximum percentage of unqualified bases in a read.",
        "-u",
        "--unqualified-percent-limit",
        least=0,
        most=100,
        group="Reads to keep",
    )
    n_base_limit: int = option(
        5,
        "N",
        "Maximum number of N in a read.",
        "-n",
        "--n-base-limit",
        least=0,
        most=50,
        group="Reads to keep",
    )
    average_qual: int = option(
        0,
        "Q",
        "Minimum mean quality of a read; 0: any.",
        "-e",
        "--average-qual",
        least=0,
        most=93,
        group="Reads to keep",
    )
    disable_length_filtering: bool = flag(
        "Keep reads of any length.", "-L", "--disable-length-filtering", group="Reads to keep"
    )
    length_required: int = option(
        15,
        "N",
        "Minimum length of a read.",
        "-l",
        "--length-required",
        least=0,
        group="Reads to keep",
    )
    length_limit: int = option(
        0, "N", "Maximum length of a read; 0: any.", least=0, group="Reads to keep"
    )
    low_complexity_filter: bool = flag(
        "Drop reads of low complexity: too few bases differ from the next one.",
        "-y",
        "--low-complexity-filter",
        group="Reads to keep",
    )
    complexity_threshold: int = option(
        30,
        "N",
        "Minimum percentage of bases that differ from the next one, for --low-complexity-filter.",
        "-Y",
        "--complexity-threshold",
        least=0,
        most=100,
        group="Reads to keep",
    )
    correction: bool = flag(
        "Where mates overlap, correct bases of low quality by the other mate.",
        "-c",
        "--correction",
        group="Overlaps of mates",
    )
    overlap_len_require: int = option(
        30, "N", "Minimum overlap of mates, in bases.", least=1, group="Overlaps of mates"
    )
    overlap_diff_limit: int = option(
        5, "N", "Maximum mismatches in an overlap of mates.", least=0, group="Overlaps of mates"
    )
    overlap_diff_percent_limit: int = option(
        20,
        "N",
        "Maximum mismatches in an overlap of mates, in percent of its length.",
        least=0,
        most=100,
        group="Overlaps of mates",
    )
    umi: bool = flag(
        "Move unique molecular identifiers (UMI) to the read names.",
        "-U",
        "--umi",
        group="Molecular identifiers (UMI)",
    )
    umi_loc: UmiPlace | None = option(
        None,
        "PLACE",
        "Where the UMI is: index1, index2, read1, read2, per_index or per_read (both mates).",
        group="Molecular identifiers (UMI)",
    )
    umi_len: int = option(
        0,
        "N",
        "Length of a UMI that is in the read.",
        least=0,
        most=100,
        group="Molecular identifiers (UMI)",
    )
    umi_prefix: Text = option(
        "",
        "TEXT",
        "Text before the UMI in the read name, separated by an underscore.",
        group="Molecular identifiers (UMI)",
    )
    umi_skip: int = option(
        0,
        "N",
        "Bases to cut after a UMI that is in the read.",
        least=0,
        most=100,
        group="Molecular identifiers (UMI)",
    )
    dedup: bool = flag(
        "Keep only the first of identical reads or pairs.", "-D", "--dedup", group="Duplicates"
    )
    dup_calc_accuracy: int | None = option(
        None,
        "N",
        "Size of the table that finds identical reads: 1 to 6 for 2^32, 2^33, 2^33, 2^34, 2^35 and "
        "2^35 bits; only the bits that are set take memory.",
        shown_default="1; with --dedup 3",
        least=1,
        most=6,
        group="Duplicates",
    )
    dont_eval_duplication: bool = flag("Do not count identical reads.", group="Duplicates")
    fastp: bool = flag(
        "Write what fastp 0.23.2 writes: its detection of adapters, two-colour instruments and "
        "UMIs; pairs of which both mates fail are not in --failed-out.",
        group=RESEARCH,
    )

    def __post_init__(self) -> None:
        for name in ("adapter_sequence", "adapter_sequence_r2"):
            own = getattr(self, name)
            if own != AUTO and (len(own) < 4 or set(own) - set("ACGT")):
                raise UsageError(
                    f"`{name}` must be auto, or at least 4 letters A, C, G and T, not {own!r}"
                )
        if self.trim_poly_g and self.disable_trim_poly_g:
            raise UsageError("`trim_poly_g` and `disable_trim_poly_g` exclude each other")
        if not self.umi:
            return
        if self.umi_loc is None:
            raise UsageError("`umi` needs `umi_loc`")
        if (self.umi_loc in IN_READS) != (self.umi_len > 0):
            raise UsageError("`umi_len` is needed where `umi_loc` is in the reads, and only there")
        if self.umi_skip and self.umi_loc not in IN_READS:
            raise UsageError("`umi_skip` is for a UMI in the reads")
        if len(self.umi_prefix) > 9 or not (self.umi_prefix + "x").isalnum():
            raise UsageError("`umi_prefix` must have at most 9 letters and digits")

    @property
    def second_adapter(self) -> str:
        """``adapter_sequence_r2``, which is the first mates' if only that is given."""
        given = self.adapter_sequence_r2
        follows = given == AUTO and not self.detect_adapter_for_pe
        return self.adapter_sequence if follows else given

    @property
    def evaluates_duplication(self) -> bool:
        """Whether equal reads are counted."""
        return self.dedup or not self.dont_eval_duplication

    @property
    def duplication_level(self) -> int:
        """``dup_calc_accuracy``, or its default."""
        return self.dup_calc_accuracy or (3 if self.dedup else 1)

    def detects(self, paired: bool, second: bool) -> bool:
        """Whether the adapter of first or second mates is to be detected."""
        given = self.second_adapter if second else self.adapter_sequence
        wanted = self.detect_adapter_for_pe if paired else not second
        return wanted and given == AUTO and not self.disable_adapter_trimming
