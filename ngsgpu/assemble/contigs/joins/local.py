"""Reads around two ends: those that lie at them, and their mates.

Of a repeat's copies, such reads have only the one between the ends, so words may be shorter than
any k of a graph, and still one goes on from another without a doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.joins.join import Join, all_words
from ngsgpu.assemble.contigs.pieces import Pieces, begin_of, end_of, turn
from ngsgpu.assemble.contigs.places import Places
from ngsgpu.assemble.contigs.reads import Reads, unpack
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.kmers import append, roll

_WORDS: Final = (31, 21, 15)
"""Lengths of the words by which reads go on from each other, tried in turn."""

_CHECKED: Final = 21
_RARE: Final = 4
"""Of reads, those words of this length contradict a patch that occur twice, and no less than a
quarter as often as most of those that agree with it."""

_RATIO: Final = 2
"""Reads go on by a base that this many times as many have as any other."""


_LEAST_ON: Final = 20
_UNLIKE: Final = 8
"""Bases that a read which goes on behind an end has on the piece, at least; an eighth of these, at
most, differ from it."""


class LocalReads:
    """The reads around ends that open joins have.

    Args:
        pieces: the graph.
        joins: of its ends.
        reads: the reads.
        places: of the paired reads on the graph.
        longest: bases of their longest fragments.
    """

    def __init__(
        self,
        pieces: Pieces,
        joins: Sequence[Join],
        reads: Reads,
        places: Places,
        longest: int,
    ) -> None:
        self._pieces, self._reads, self._longest = pieces, reads, longest
        self.reach = longest + int(reads.lengths.max(initial=0))
        wanted = np.zeros(len(pieces) + 1, dtype=np.bool_)
        for join in joins:
            if not join.closed or join.between:
                wanted[[join.source >> 1, join.target >> 1]] = True
        rows = np.flatnonzero(wanted[places.direction >> 1] & (places.direction >= 0))
        order = np.argsort(places.direction[rows], kind="stable")
        self._rows = rows[order]
        self._directions = places.direction[self._rows]
        self._at = places.at[self._rows]

    def between(self, join: Join, low: int, high: int) -> tuple[NDArray[np.uint8], int] | None:
        """What reads have between two ends, if they agree from either side.

        Args:
            join: of the ends.
            low: fewest bases between; overlaps count as negative.
            high: most bases between.

        Returns:
            The codes between, and the bases that both ends have, if they overlap.
        """
        pieces = self._pieces
        one = end_of(pieces, join.source, _WORDS[0])
        two = begin_of(pieces, join.target, _WORDS[0])
        rows, turned, cut = self._around(join)
        room = int(self._reads.lengths[rows].sum(dtype=np.int64))
        for word in _WORDS:
            if word >= pieces.k or high <= -word:
                continue
            words = np.empty((2, room), dtype=np.uint64)
            used = enter_reads(
                self._reads.bases, self._reads.starts, self._reads.lengths, rows, turned, cut, word,
                words,
            )  # fmt: skip
            words = np.sort(words[:, :used], axis=1)
            out = np.empty((2, high + word), dtype=np.uint8)
            first, last = one[-word:], two[:word]
            steps = int(go_on(words[0], word, as_word(first), as_word(last), out[0]))
            if not low <= steps - word <= high:
                continue
            turned_last, turned_first = turn(last), turn(first)
            back = int(go_on(words[1], word, as_word(turned_last), as_word(turned_first), out[1]))
            whole = np.concatenate([first, out[0, :steps]])
            other = np.concatenate([turned_last, out[1, : max(0, back)]])
            if np.array_equal(whole, turn(other)):
                return out[0, : max(0, steps - word)].copy(), max(0, word - steps)
        return None

    def overhang(self, d: int) -> NDArray[np.uint8]:
        """What the reads on a direction have behind its end, as far as most of them agree."""
        size = int(self._pieces.starts[(d >> 1) + 1] - self._pieces.starts[d >> 1])
        votes = np.zeros((self.reach, 4), dtype=np.int64)
        codes = np.empty(self.reach, dtype=np.uint8)
        for own, is_turned in ((d, False), (d ^ 1, True)):
            rows, at = self._on(own)
            lengths = self._reads.lengths[rows].astype(np.int64)
            over = -at if is_turned else at + lengths - size
            for row, length, behind in zip(
                rows[over > 0], lengths[over > 0], over[over > 0], strict=True
            ):
                unpack(self._reads.bases, self._reads.starts[row], length, codes)
                read = turn(codes[:length]) if is_turned else codes[:length]
                on = end_of(self._pieces, d, int(length - behind))
                part = read[max(0, length - behind - len(on)) : length - behind]
                if len(part) < _LEAST_ON or _UNLIKE * int((part != on).sum()) > len(part):
                    continue
                new = read[length - behind :]
                votes[np.arange(len(new)), new] += 1
        ranked = np.sort(votes, axis=1)
        sure = ranked[:, 3] > ranked[:, 2]
        return np.argmax(votes, axis=1)[: int(np.argmin(sure))].astype(np.uint8)

    def contradict(self, join: Join, text: NDArray[np.uint8], sizes: tuple[int, int]) -> bool:
        """Whether reads have a stretch that a patch has not: it goes past what they say is there.

        One base that is wrong is in no more words than a word has bases; what is left out, in more.

        Args:
            join: of the ends.
            text: codes of both ends and of the patch between, as far as they are known.
            sizes: bases of the first and of the second end that are known.
        """
        word = min(_CHECKED, self._pieces.k)
        rows, turned, cut = self._around(join, (len(text), *sizes))
        room = int(self._reads.lengths[rows].sum(dtype=np.int64))
        words = np.empty((2, room), dtype=np.uint64)
        used = enter_reads(
            self._reads.bases, self._reads.starts, self._reads.lengths, rows, turned, cut, word,
            words,
        )  # fmt: skip
        own, times = np.unique(words[0, :used], return_counts=True)
        known = np.isin(own, all_words(text, word))
        if not known.any():
            return False
        usual = int(np.sort(times[known])[int(known.sum()) // 2])
        return int((~known & (times >= max(2, usual // _RARE))).sum()) > word

    def _around(
        self, join: Join, text: tuple[int, int, int] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
        """Reads near the ends, and mates that may lie between, as far as they lie on a text.

        Args:
            join: of the ends.
            text: bases of the text, of the first end that it begins with, and of the second end
                that it ends with; None: what is between is not known, the ends are whole.

        Returns:
            The reads, which of them to turn, and, int64[2, n], the bases at their begins and ends,
            as they are turned, that lie before and behind the text.
        """
        parts: list[tuple[NDArray[np.int64], bool, NDArray[np.int64]]] = []
        for number, d in enumerate((join.source, join.target ^ 1)):
            size = int(self._pieces.starts[(d >> 1) + 1] - self._pieces.starts[d >> 1])
            whole, known = (None, size) if text is None else (text[0], text[1 + number])
            is_turned = bool(number)
            rows, at = self._on(d)
            lengths = self._reads.lengths[rows]
            near = at + lengths > size - self._pieces.k
            off = _off(known - size + at[near], lengths[near], whole)
            parts.append((rows[near], is_turned, off[::-1] if is_turned else off))
            if text is None or min(join.gap + text[2 - number], text[0] - known) >= self._longest:
                mates = rows[at + self._longest > size] ^ 1
                parts.append((mates, not is_turned, np.zeros((2, len(mates)), dtype=np.int64)))
            rows, at = self._on(d ^ 1)
            rows, at = rows[at < self._pieces.k], at[at < self._pieces.k]
            lengths = self._reads.lengths[rows]
            off = _off(known - at - lengths, lengths, whole)
            parts.append((rows, not is_turned, off[::-1] if is_turned else off))
        rows = np.concatenate([part[0] for part in parts])
        turned = np.concatenate([np.full(len(part[0]), part[1]) for part in parts])
        cut = np.concatenate([part[2] for part in parts], axis=1)
        # A read that is at one end, and the mate of one at the other, counts once.
        rows, first = np.unique(rows, return_index=True)
        return rows, turned[first], cut[:, first]

    def _on(self, d: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Reads that lie on a direction, and where."""
        begin, end = np.searchsorted(self._directions, [d, d + 1])
        return self._rows[begin:end], self._at[begin:end]


def _off(
    begin: NDArray[np.int64], lengths: NDArray[np.int32], whole: int | None
) -> NDArray[np.int64]:
    """Bases of reads before a text and behind it, as int64[2, n]; without end, if it is None."""
    behind = begin + lengths - whole if whole is not None else np.zeros_like(begin)
    return np.maximum(0, np.stack([-begin, behind]))


def as_word(codes: NDArray[np.uint8]) -> np.uint64:
    """Codes as a number."""
    return np.uint64(all_words(codes, len(codes))[0])


@njit(nogil=True, cache=True)
def enter_reads(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    rows: NDArray[np.int64],
    turned: NDArray[np.bool_],
    cut: NDArray[np.int64],
    word: int,
    words: NDArray[np.uint64],
) -> int:
    """Write the words of some reads, of either strand; return their number.

    Args:
        bases: of the reads.
        starts: of the reads.
        lengths: of the reads.
        rows: which reads.
        turned: bool[n], which of them run backwards.
        cut: int64[2, n], bases at their begins and at their ends that are left out, as they are
            turned.
        word: bases of a word, at most 31.
        words: uint64[2, m], gets the words forwards, and those backwards.
    """
    codes = np.empty(np.int64(lengths[rows].max()) if len(rows) else 0, dtype=np.uint8)
    used = 0
    for i in range(len(rows)):
        length = np.int64(lengths[rows[i]])
        unpack(bases, starts[rows[i]], length, codes)
        own = np.uint64(0)
        other = np.uint64(0)
        begin, end = cut[1 if turned[i] else 0, i], length - cut[0 if turned[i] else 1, i]
        for at in range(begin, end):
            own, other = roll(own, other, np.uint64(codes[at]), word)
            if at >= begin + word - 1:
                words[1 if turned[i] else 0, used] = own
                words[0 if turned[i] else 1, used] = other
                used += 1
    return used


@njit(nogil=True, cache=True)
def go_on(
    words: NDArray[np.uint64], word: int, first: np.uint64, last: np.uint64, out: NDArray[np.uint8]
) -> Integer:
    """Go on from a word, by the base that most reads have, until another word.

    Args:
        words: of reads, ascending.
        word: bases of a word.
        first: word to begin with.
        last: word at which to stop.
        out: gets the bases.

    Returns:
        The number of bases; -1 if reads end or disagree, come again to the same word, or have not
        arrived when ``out`` is full.
    """
    passed = np.empty(len(out) + 1, dtype=np.uint64)
    passed[0] = first
    own = first
    for at in range(len(out)):
        best = second = 0
        base = np.uint64(0)
        for code in range(4):
            near = append(own, np.uint64(code), word)
            times = int(np.searchsorted(words, near, side="right"))
            times -= int(np.searchsorted(words, near))
            if times > best:
                best, second, base = times, best, np.uint64(code)
            elif times > second:
                second = times
        if best == 0 or best < _RATIO * second:
            return np.int64(-1)
        own = append(own, base, word)
        out[at] = np.uint8(base)
        for i in range(at + 1):
            if passed[i] == own:
                return np.int64(-1)
        passed[at + 1] = own
        if own == last:
            return np.int64(at + 1)
    return np.int64(-1)
