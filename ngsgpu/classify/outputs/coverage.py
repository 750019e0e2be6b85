"""Where on the reference sequences reads were mapped, for the report's coverage plots."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.labels import Labels
from ngsgpu.taxonomy.tree import GENUS, SPECIES

HEADER: Final = "target\ttaxid\tname\tlength\twindows\tcovered\tmean_reads\tbin_bases\tbins\n"
BINS: Final = 200
"""Parts that a sequence is shown in, at most."""


def coverage_table(labels: Labels, window_reads: NDArray[np.int32], most: int = 100) -> str:
    """A line for each of the reference sequences with most covered windows.

    ``bins`` has, separated by commas, the reads of the windows of each of up to 200 equal parts of
    the sequence, added up, ``bin_bases`` bases each. The name is that of the species
    or genus, if there is one, otherwise of the taxon itself; ``mean_reads`` is a mean over windows.

    Args:
        labels: the reference sequences.
        window_reads: int32, reads (or pairs) whose best range covers each window of all
            sequences, one after the other.
        most: lines at most.
    """
    windows = labels.windows()
    first = np.concatenate([[0], np.cumsum(windows)])
    running = np.concatenate([[0], np.cumsum(window_reads, dtype=np.int64)])
    covers = np.concatenate([[0], np.cumsum(window_reads > 0, dtype=np.int64)])
    sums = running[first[1:]] - running[first[:-1]]
    covered = covers[first[1:]] - covers[first[:-1]]
    order = np.argsort(-covered, kind="stable")[:most]
    lines = [HEADER]
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
