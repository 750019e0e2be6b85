"""Reads with much in common."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.minhash import oracle

GENOME = (
    "ACGTTGCAAGGCTTAACCGGTACGATTAGCCATGCAATCGTTTTTTTTTTTTACACACACACACAC"
    "GGCCGGCCAGCTAGCTTGGATATCCAATTGGTACGTACGTCCAT"
)

reads_with_much_in_common = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 70), st.booleans(), st.integers(0, 69)),
    max_size=25,
)


def make_reads(pieces: list[tuple[int, int, bool, int]]) -> list[str]:
    """Pieces of a genome with simple repeats and palindromes, turned or not, with an error."""
    reads = []
    for start, length, reverse_complemented, error in pieces:
        bases = list(GENOME[start : start + length])
        if error < len(bases):
            bases[error] = "ACGT"["CGTA".index(bases[error])]
        text = "".join(bases)
        reads.append(oracle.reverse_complement(text) if reverse_complemented else text)
    return reads
