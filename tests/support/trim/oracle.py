"""Trimming in plain Python: strings, one rule after the other."""

from __future__ import annotations

from typing import NamedTuple

from ngsgpu.trim.params import AUTO, TrimParameters
from tests.support.io.records import Record
from tests.support.minhash.oracle import reverse_complement

SHORT, LONG, POOR, MANY_N, SIMPLE = 16, 17, 20, 12, 24


class Own(NamedTuple):
    """A read: bases, scores, and bases cut from its start."""

    bases: str
    scores: list[int]
    front: int = 0

    def part(self, begin: int, end: int) -> Own:
        return self._replace(bases=self.bases[begin:end], scores=self.scores[begin:end])


def trimmed(
    records: tuple[Record, ...], parameters: TrimParameters
) -> tuple[list[Own | None], list[int]]:
    """What is left of a read or pair (None: nothing), and whether each is kept (0) or why not."""
    reads: list[Own | None] = []
    for mate, record in enumerate(records):
        assert record.qualities is not None
        own = Own(record.bases.decode(), [score - 33 for score in record.qualities])
        reads.append(cut(own, mate, parameters))
    alive = [own for own in reads if own is not None]
    if len(alive) == len(reads):
        if parameters.trim_poly_g:
            alive = [without_g(own, parameters.poly_g_min_len) for own in alive]
        alive = without_adapters(alive, parameters)
        if parameters.trim_poly_x:
            alive = [without_x(own, parameters.poly_x_min_len) for own in alive]
        lengths = parameters.max_len1, parameters.max_len2
        for mate, own in enumerate(alive):
            most = lengths[mate] if lengths[mate] is not None else lengths[0]
            alive[mate] = own.part(0, most or len(own.bases))
        reads = list(alive)
    return reads, [SHORT if own is None else result(own, parameters) for own in reads]


def cut(own: Own, mate: int, parameters: TrimParameters) -> Own | None:
    """Fixed numbers of bases and windows."""
    p, n = parameters, len(own.bases)
    front = p.trim_front1 if mate == 0 or p.trim_front2 is None else p.trim_front2
    tail = p.trim_tail1 if mate == 0 or p.trim_tail2 is None else p.trim_tail2
    windows = p.cut_front or p.cut_tail or p.cut_right
    if not (front or tail or windows):
        return own
    end = n - tail
    if end < front:
        return None
    if windows:
        if p.cut_front:
            size = p.cut_front_window_size or p.cut_window_size
            if end - front <= size:
                return None
            at = front
            while at + size < end and _mean(own, at, size) < (
                p.cut_front_mean_quality or p.cut_mean_quality
            ):
                at += 1
            front = at + size - 1 if at else 0
            while front < n and own.bases[front] == "N":
                front += 1
        if p.cut_right:
            size = p.cut_right_window_size or p.cut_window_size
            least = p.cut_right_mean_quality or p.cut_mean_quality
            if end - front <= size:
                return None
            for at in range(front, end - size):
                if _mean(own, at, size) < least:
                    end = at
                    while end < n - 1 and own.scores[end] >= least:
                        end += 1
                    break
        elif p.cut_tail:
            size = p.cut_tail_window_size or p.cut_window_size
            if end - front <= size:
                return None
            last = end - 1
            while last - size >= front and _mean(own, last - size + 1, size) < (
                p.cut_tail_mean_quality or p.cut_mean_quality
            ):
                last -= 1
            if last < n - 1:
                last -= size - 1
            while last >= 0 and own.bases[last] == "N":
                last -= 1
            end = last + 1
        if end <= front or front >= n - 1:
            return None
    return own.part(front, end)._replace(front=front)


def _mean(own: Own, at: int, size: int) -> float:
    return sum(own.scores[at : at + size]) / size


def without_g(own: Own, least: int) -> Own:
    """Without a tail of G."""
    others, first = 0, len(own.bases) - 1
    seen = 0
    for at in reversed(range(len(own.bases))):
        if own.bases[at] == "G":
            first = at
        else:
            others += 1
        if others > 5 or (others > (seen + 1) // 8 and seen >= least - 1):
            break
        seen += 1
    return own.part(0, first) if seen >= least else own


def without_x(own: Own, least: int) -> Own:
    """Without a tail of any one base."""
    tail, n = own.bases[::-1], len(own.bases)
    at = 0
    counts = dict.fromkeys("ATCG", 0)
    while at < n:
        for base in counts:
            counts[base] += tail[at] in (base, "N")
        allowed = min(5, (at + 1) // 8)
        if min(at + 1 - count for count in counts.values()) > allowed and (
            at >= 8 or at + 1 >= least - 1
        ):
            break
        at += 1
    if at + 1 < least:
        return own
    base = max(counts, key=lambda one: counts[one])
    last = tail.rfind(base, 0, at + 1)
    return own.part(0, n - last - 1)


def without_adapters(reads: list[Own], parameters: TrimParameters) -> list[Own]:
    """Mates corrected by each other, and without what is behind their fragment."""
    p = parameters
    offset = None
    if len(reads) == 2:
        offset = overlap(reads[0].bases, reads[1].bases, p)
        if p.correction and offset is not None:
            reads = corrected(reads[0], reads[1], offset)
    if p.disable_adapter_trimming:
        return reads
    if offset is not None and offset < 0:
        shared = min(len(reads[0].bases), len(reads[1].bases) + offset)
        fronts = reads[1].front, reads[0].front
        return [own.part(0, shared + front) for own, front in zip(reads, fronts, strict=True)]
    adapters = p.adapter_sequence, p.second_adapter
    return [without(own, adapter) for own, adapter in zip(reads, adapters, strict=False)]


def overlap(first: str, second: str, parameters: TrimParameters) -> int | None:
    """Where the second mate begins in the first; None if they do not overlap."""
    p, turned = parameters, reverse_complement(second)
    places = [*range(len(first) - p.overlap_len_require)]
    places += [-at for at in range(len(second) - p.overlap_len_require)]
    for offset in places:
        one, other = first[max(0, offset) :], turned[max(0, -offset) :]
        pairs = list(zip(one, other, strict=False))
        most = min(p.overlap_diff_limit, int(len(pairs) * (p.overlap_diff_percent_limit / 100)))
        differing = [a != b for a, b in pairs]
        if sum(differing) <= most or (len(pairs) > 50 and sum(differing[:50]) <= most):
            return offset
    return None


def corrected(first: Own, second: Own, offset: int) -> list[Own]:
    """Both mates, with poor bases replaced by good ones of the other."""
    bases1, scores1 = list(first.bases), list(first.scores)
    bases2, scores2 = list(second.bases), list(second.scores)
    length = min(len(bases1) - max(0, offset), len(bases2) - max(0, -offset))
    for at in range(length):
        one, other = max(0, offset) + at, len(bases2) - 1 - max(0, -offset) - at
        if bases1[one] == reverse_complement(bases2[other]):
            continue
        if scores1[one] >= 30 and scores2[other] <= 14:
            bases2[other], scores2[other] = reverse_complement(bases1[one]), scores1[one]
        elif scores2[other] >= 30 and scores1[one] <= 14:
            bases1[one], scores1[one] = reverse_complement(bases2[other]), scores2[other]
    return [
        Own("".join(bases1), scores1, first.front),
        Own("".join(bases2), scores2, second.front),
    ]


def without(own: Own, adapter: str) -> Own:
    """Without an adapter and what is behind it."""
    if adapter == AUTO:
        return own
    size = len(adapter)
    skipped = 4 if size >= 16 else 3 if size >= 12 else 2 if size >= 8 else 0
    for at in range(-skipped, len(own.bases) - 4):
        compared = min(len(own.bases) - at, size)
        mismatches = sum(own.bases[at + i] != adapter[i] for i in range(max(0, -at), compared))
        if mismatches <= compared // 8:
            return own.part(0, max(0, at))
    return own


def result(own: Own, parameters: TrimParameters) -> int:
    """Whether a read is kept (0), or why not."""
    p, n = parameters, len(own.bases)
    if n == 0:
        return SHORT
    if not p.disable_quality_filtering:
        poor = sum(score < p.qualified_quality_phred for score in own.scores)
        if 100 * poor > p.unqualified_percent_limit * n:
            return POOR
        if p.average_qual and sum(own.scores) // n < p.average_qual:
            return POOR
        if own.bases.count("N") > p.n_base_limit:
            return MANY_N
    if not p.disable_length_filtering:
        if n < p.length_required:
            return SHORT
        if p.length_limit and n > p.length_limit:
            return LONG
    if p.low_complexity_filter:
        differing = sum(a != b for a, b in zip(own.bases, own.bases[1:], strict=False))
        if n == 1 or 100 * differing < p.complexity_threshold * (n - 1):
            return SIMPLE
    return 0
