"""Unknown bases take the letters of other reads: the rule in plain Python, by strings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ngsgpu.readset.fill import kmer_length

COMPLEMENT = str.maketrans("ACGTN", "TGCAN")


def fill_by_strings(reads: list[str]) -> list[str]:
    """The reads with letters for each N for which there are any.

    Each round looks at the reads in which the one before found the k-mers that it asked for.
    """
    k = kmer_length(sum(map(len, reads)))
    seen: set[tuple[int, int, bool]] = set()
    looked_at = [*range(len(reads))]
    for _ in range(32):
        asked = dict(questions(reads, k))
        if not asked.keys() - seen:
            break
        seen |= asked.keys()
        wanted = set(asked.values())
        following: Counter[tuple[str, str]] = Counter()
        found = []
        for number in looked_at:
            strands = reads[number], reads[number].translate(COMPLEMENT)[::-1]
            windows = [own[i : i + k + 1] for own in strands for i in range(len(own) - k + 1)]
            if any(window[:k] in wanted for window in windows):
                found.append(number)
            for window in windows:
                if "N" not in window and len(window) > k:
                    following[window[:k], window[k]] += 1
        looked_at = found
        votes: dict[tuple[int, int], Counter[str]] = {}
        for (number, position, behind), kmer in asked.items():
            for base in "ACGT":
                letter = base.translate(COMPLEMENT) if behind else base
                votes.setdefault((number, position), Counter())[letter] += following[kmer, base]
        new = [list(read) for read in reads]
        for (number, position), letters in votes.items():
            [(best, most)] = letters.most_common(1)
            if most >= 2 and most >= 4 * (letters.total() - most):
                new[number][position] = best
        reads = ["".join(read) for read in new]
    return reads


def questions(reads: list[str], k: int) -> Iterator[tuple[tuple[int, int, bool], str]]:
    """Of each N, the known k bases before it, and the reverse complement of those behind it."""
    for number, read in enumerate(reads):
        for position in (i for i, letter in enumerate(read) if letter == "N"):
            before, behind = read[max(0, position - k) : position], read[position + 1 :][:k]
            if len(before) == k and "N" not in before:
                yield (number, position, False), before
            if len(behind) == k and "N" not in behind:
                yield (number, position, True), behind.translate(COMPLEMENT)[::-1]
