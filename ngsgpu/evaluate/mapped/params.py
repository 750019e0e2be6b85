"""Parameters of the comparison of mapped reads."""

from __future__ import annotations

from ngsgpu.declared.options import option
from ngsgpu.declared.values import parameters


@parameters
class Thresholds:
    """What counts as an alignment, a base, a variant."""

    min_mapq: int = option(20, "N", "Lowest mapping quality of an alignment.", least=0)
    min_quality: int = option(20, "N", "Lowest quality of bases at variant sites.", least=0)
    min_depth: int = option(8, "N", "Fewest bases of a heterozygous site.", least=1)
    allele_fraction: float = option(
        0.25,
        "F",
        "Lowest fraction of each of the two alleles of a heterozygous site.",
        above=0,
        most=0.5,
    )
    min_frequency: float = option(
        0.01, "F", "Lowest frequency of a minority variant.", above=0, most=0.5
    )
    min_pairs: int = option(
        3, "N", "Fewest pairs with agreeing mates of a minority variant.", least=1
    )
    min_overlap: int = option(
        10, "N", "Pairs sharing at least this many bases count as overlapping.", least=1
    )
