"""Tables of a sample: abundances at a rank, coverage of reference sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.abundance import Abundance
from ngsgpu.classify.call.coverage import sums_by_sequence
from ngsgpu.classify.call.model import Species
from ngsgpu.classify.database.targets import Labels
from ngsgpu.taxonomy.ranks import GENUS, SPECIES, rank_name

ABUNDANCE_HEADER: Final = (
    "taxid\trank\tname\treads\tpercent_of_reads\tpercent_of_classified\tgenome_bases\t"
    "percent_of_genomes\tat_rank\n"
)
COVERAGE_HEADER: Final = (
    "target\ttaxid\tname\tlength\twindows\tcovered\tmean_reads\tbin_bases\tbins\n"
)
EVIDENCE_HEADER: Final = (
    "taxid\tcalled_as\tname\tnote\treads\town_reads\town_places\tplaces\tidentity\tidentity_low\t"
    "identity_high\tlog10_ratio\tscatter_p\trelatives\tdistant\n"
)
_LEAST_READS: Final = 0.5
BINS: Final = 200
"""Parts that a sequence is shown in, at most."""


def abundance_table(abundances: Sequence[Abundance], sizes: NDArray[np.float64]) -> str:
    """The abundances at one rank after the other.

    For each, a line a taxon, most reads first, equal ones by taxid; then relatives that the
    database lacks, or the reads that were not called at the rank or below, and last the
    unclassified ones. Without the model, reads that rounding gave to no taxon are missing.

    Args:
        abundances: of one tree.
        sizes: float64[n], bases of a genome of each node, see ``genome_sizes``; 0: unknown.
    """
    return ABUNDANCE_HEADER + "".join(
        line for abundance in abundances for line in _abundance_lines(abundance, sizes)
    )


def _abundance_lines(abundance: Abundance, sizes: NDArray[np.float64]) -> Iterator[str]:
    taxonomy, reads, at_rank = abundance.taxonomy, abundance.reads, rank_name(abundance.rank)
    classified = max(abundance.classified, 1)
    total = max(abundance.classified + abundance.unclassified, 1)
    seen = np.flatnonzero(reads)
    genomes = np.divide(reads[seen], sizes[seen], out=np.zeros(len(seen)), where=sizes[seen] > 0)
    shares = (100 * genomes / max(float(genomes.sum()), 1e-300)).tolist()
    share_of = dict(zip(seen.tolist(), shares, strict=True))
    for node in seen[np.argsort(-reads[seen], kind="stable")].tolist():
        count, size = int(reads[node]), float(sizes[node])
        by_size = f"{size:.0f}\t{share_of[node]:.4f}" if size > 0 else "\t"
        yield (
            f"{taxonomy.taxid[node]}\t{rank_name(int(taxonomy.rank[node]))}\t{taxonomy.name(node)}"
            f"\t{count}\t{100 * count / total:.4f}\t{100 * count / classified:.4f}\t{by_size}"
            f"\t{at_rank}\n"
        )
    for node, count in sorted(abundance.relatives.items(), key=lambda own: (-own[1], own[0])):
        yield (
            f"0\tno rank\trelatives of {taxonomy.name(node)}\t{count}\t{100 * count / total:.4f}\t"
            f"{100 * count / classified:.4f}\t\t\t{at_rank}\n"
        )
    # By the fit, every read is in one row.
    for name in ("unclassified",) if abundance.is_fitted else ("unknown", "unclassified"):
        count = getattr(abundance, name)
        yield f"0\tno rank\t{name}\t{count}\t{100 * count / total:.4f}\t\t\t\t{at_rank}\n"


def evidence_table(labels: Labels, species: Sequence[Species]) -> str:
    """A line for each species that reads look like, most reads first; see ``Species``."""
    lines = [EVIDENCE_HEADER]
    for own in species:
        if max(own.reads, own.relatives, own.distant) < _LEAST_READS:
            continue
        node = own.taxon
        if own.taxon >= labels.nodes:
            target = own.taxon - labels.nodes
            node, name = int(labels.node_of_target[target]), labels.target_name(target)
        else:
            name = labels.taxonomy.name(node)
        called = "species" if not own.note else "genus" if own.relatives > own.distant else "family"
        lines.append(
            f"{labels.taxonomy.taxid[node]}\t{called}\t{name}\t{own.note}\t{own.reads:.1f}\t"
            f"{own.own}\t{own.places}\t{own.possible:.0f}\t{own.identity:.4f}\t{own.low:.4f}\t"
            f"{own.high:.4f}\t{own.gain:.2f}\t{own.scatter:.3g}\t{own.relatives:.1f}\t"
            f"{own.distant:.1f}\n"
        )
    return "".join(lines)


def coverage_table(labels: Labels, window_reads: NDArray[np.int32], most: int = 100) -> str:
    """One line for each of the reference sequences with the most covered windows.

    ``bins`` has, separated by commas, the summed reads of the windows in up to 200 equal bins of
    ``bin_bases`` bases. The name is that of the species or genus, if there is one, otherwise of the
    taxon itself; ``mean_reads`` is a mean over windows.

    Args:
        labels: the reference sequences.
        window_reads: int32, reads (or pairs) whose best range covers each window, concatenated over
            all sequences.
        most: maximum number of lines.
    """
    windows = labels.windows()
    first = np.concatenate([[0], np.cumsum(windows)])
    sums = sums_by_sequence(window_reads, windows)
    covered = sums_by_sequence(window_reads > 0, windows)
    order = np.argsort(-covered, kind="stable")[:most]
    lines = [COVERAGE_HEADER]
    for target in order[covered[order] > 0].tolist():
        part = window_reads[first[target] : first[target + 1]]
        width = -(-len(part) // BINS)
        bins = np.add.reduceat(part.astype(np.int64), np.arange(0, len(part), width))
        numbers = ",".join(map(str, bins))
        node = int(labels.node_of_target[target])
        lines.append(
            f"{labels.target_name(target)}\t{labels.taxonomy.taxid[node]}\t{_name(labels, node)}\t"
            f"{labels.target_length[target]}\t{windows[target]}\t{covered[target]}\t"
            f"{sums[target] / windows[target]:.4f}\t{width * labels.sketch.stride}\t{numbers}\n"
        )
    return "".join(lines)


def _name(labels: Labels, node: int) -> str:
    """Name of the species, or else the genus, of a node; its own if it has neither."""
    taxonomy = labels.taxonomy
    by_rank = {int(taxonomy.rank[at]): at for at in taxonomy.lineage(node)}
    return taxonomy.name(by_rank.get(SPECIES, by_rank.get(GENUS, node)))
