"""Parameters of trimming, with the names and values of fastp 0.23.2 (Chen et al. 2018)."""

from __future__ import annotations

from typing import Final, Literal

from ngsgpu.declared.options import flag, option
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
        "Adapter of the first mates; of pairs it is looked for where the mates do not overlap. "
        "auto: detected, for reads without mates.",
        "-a",
        "--adapter-sequence",
    )
    adapter_sequence_r2: Text = option(
        AUTO,
        "SEQUENCE",
        "Adapter of the second mates.",
        shown_default="auto; with --adapter-sequence that one",
    )
    adapter_fasta: Read | None = option(
        None, "FASTA", "Sequences that are looked for in all reads, after the adapters."
    )
    detect_adapter_for_pe: bool = flag("Detect the adapters of pairs, too.")
    disable_adapter_trimming: bool = flag("Leave adapters.", "-A", "--disable-adapter-trimming")
    trim_front1: int = option(
        0, "N", "Bases to cut from the start of first mates.", "-f", "--trim-front1",
        least=0, most=MOST_TRIMMED,
    )  # fmt: skip
    trim_tail1: int = option(
        0, "N", "Bases to cut from their end.", "-t", "--trim-tail1", least=0, most=MOST_TRIMMED
    )
    max_len1: int = option(
        0, "N", "Longest first mate; more is cut from its end. 0: any.", "-b", "--max-len1", least=0
    )
    trim_front2: int | None = option(
        None, "N", "Bases to cut from the start of second mates.", "-F", "--trim-front2",
        shown_default="as of first mates", least=0, most=MOST_TRIMMED,
    )  # fmt: skip
    trim_tail2: int | None = option(
        None, "N", "Bases to cut from their end.", "-T", "--trim-tail2",
        shown_default="as of first mates", least=0, most=MOST_TRIMMED,
    )  # fmt: skip
    max_len2: int | None = option(
        None, "N", "Longest second mate.", "-B", "--max-len2",
        shown_default="as of first mates", least=0,
    )  # fmt: skip
    trim_poly_g: bool = flag(
        "Trim tails of G; without it, of instruments with two colours, told by the first name.",
        "-g",
        "--trim-poly-g",
    )
    disable_trim_poly_g: bool = flag("Never trim tails of G.", "-G", "--disable-trim-poly-g")
    poly_g_min_len: int = option(10, "N", "Shortest tail of G.", least=1)
    trim_poly_x: bool = flag("Trim tails of any one base.", "-x", "--trim-poly-x")
    poly_x_min_len: int = option(10, "N", "Shortest tail of one base.", least=1)
    cut_front: bool = flag("Cut windows of low mean quality from the start.", "-5", "--cut-front")
    cut_tail: bool = flag("Cut windows of low mean quality from the end.", "-3", "--cut-tail")
    cut_right: bool = flag(
        "Cut the first window of low mean quality and all behind it.", "-r", "--cut-right"
    )
    cut_window_size: int = option(
        4, "N", "Bases of a window.", "-W", "--cut-window-size", least=1, most=1000
    )
    cut_mean_quality: int = option(
        20, "Q", "Mean quality that a window needs.", "-M", "--cut-mean-quality", least=1, most=30
    )
    cut_front_window_size: int | None = option(
        None, "N", "The same for --cut-front.", shown_default="--cut-window-size",
        least=1, most=1000,
    )  # fmt: skip
    cut_front_mean_quality: int | None = option(
        None, "Q", "The same for --cut-front.", shown_default="--cut-mean-quality", least=1, most=30
    )
    cut_tail_window_size: int | None = option(
        None, "N", "The same for --cut-tail.", shown_default="--cut-window-size", least=1, most=1000
    )
    cut_tail_mean_quality: int | None = option(
        None, "Q", "The same for --cut-tail.", shown_default="--cut-mean-quality", least=1, most=30
    )
    cut_right_window_size: int | None = option(
        None, "N", "The same for --cut-right.", shown_default="--cut-window-size",
        least=1, most=1000,
    )  # fmt: skip
    cut_right_mean_quality: int | None = option(
        None, "Q", "The same for --cut-right.", shown_default="--cut-mean-quality", least=1, most=30
    )
    disable_quality_filtering: bool = flag(
        "Keep reads of any quality and with any number of N.", "-Q", "--disable-quality-filtering"
    )
    qualified_quality_phred: int = option(
        15, "Q", "A base of lower quality is unqualified.", "-q", "--qualified-quality-phred",
        least=0, most=93,
    )  # fmt: skip
    unqualified_percent_limit: int = option(
        40, "N", "Most unqualified bases of a read, in percent.", "-u",
        "--unqualified-percent-limit", least=0, most=100,
    )  # fmt: skip
    n_base_limit: int = option(
        5, "N", "Most N of a read.", "-n", "--n-base-limit", least=0, most=50
    )
    average_qual: int = option(
        0, "Q", "Lowest mean quality of a read; 0: any.", "-e", "--average-qual", least=0, most=93
    )
    disable_length_filtering: bool = flag(
        "Keep reads of any length.", "-L", "--disable-length-filtering"
    )
    length_required: int = option(
        15, "N", "Shortest read that is kept.", "-l", "--length-required", least=0
    )
    length_limit: int = option(0, "N", "Longest read that is kept; 0: any.", least=0)
    low_complexity_filter: bool = flag(
        "Keep only reads of which enough bases differ from the next one.",
        "-y",
        "--low-complexity-filter",
    )
    complexity_threshold: int = option(
        30, "N", "How many, in percent.", "-Y", "--complexity-threshold", least=0, most=100
    )
    correction: bool = flag(
        "Where mates overlap, correct bases of low quality by the other mate.",
        "-c",
        "--correction",
    )
    overlap_len_require: int = option(30, "N", "Shortest overlap of mates.", least=1)
    overlap_diff_limit: int = option(5, "N", "Most bases that differ in an overlap.", least=0)
    overlap_diff_percent_limit: int = option(
        20, "N", "The same in percent of the overlap.", least=0, most=100
    )
    umi: bool = flag("Move unique molecular identifiers (UMI) to the names.", "-U", "--umi")
    umi_loc: UmiPlace | None = option(
        None,
        "PLACE",
        "Where the UMI is: index1, index2, read1, read2, per_index or per_read (of both mates).",
    )
    umi_len: int = option(0, "N", "Its length in a read.", least=0, most=100)
    umi_prefix: Text = option("", "TEXT", "Written before it, with an underscore between.")
    umi_skip: int = option(0, "N", "Bases to cut behind it.", least=0, most=100)
    dedup: bool = flag("Keep only the first of equal reads or pairs.", "-D", "--dedup")
    dup_calc_accuracy: int | None = option(
        None,
        "N",
        "Bits by which equal reads are known: 1 to 6 for 2^32, 2^33, 2^33, 2^34, 2^35 and 2^35, of "
        "which memory holds as many as there are.",
        shown_default="1; with --dedup 3",
        least=1,
        most=6,
    )
    dont_eval_duplication: bool = flag("Do not count equal reads.")
    fastp: bool = flag(
        "Write what fastp 0.23.2 writes: adapters, two-colour instruments and UMIs as it finds "
        "them, and of pairs whose mates both fail nothing to --failed-out."
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
