"""One line per read: the table of calls, and the same in Kraken's format.

A kernel assembles the lines of a whole batch in one buffer; it releases the interpreter lock, so
that threads can process parts of a batch. The columns are described in
``docs/classification-outputs.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.results import CalledReads
from ngsgpu.classify.database.targets import Labels, texts
from ngsgpu.errors import UsageError
from ngsgpu.io.text.put import put_bytes, put_number
from ngsgpu.jit import njit

COLUMNS: Final = ("taxid", "rank", "name", "score", "target", "begin", "end")
"""Columns of the table after ``read``; taxid, rank and name come together."""

_GROUPS: Final = {"taxon": 3, "score": 1, "target": 1, "range": 2}
GROUPS: Final = tuple(_GROUPS)

_TAB: Final = 9
_LF: Final = 10
_DASH: Final = 45
_BAR: Final = 124
_COLON: Final = 58
_LETTER_C: Final = 67
_LETTER_U: Final = 85
_LONGEST_NUMBER: Final = 20


class ReadTableWriter:
    """Makes the lines of the table of reads; the same object may be used by several threads.

    Args:
        labels: what calls are called.
        columns: groups of columns after ``read``, out of ``GROUPS``: ``taxon`` (taxid, rank, name),
            ``score``, ``target``, ``range`` (begin, end); always in this order.

    Attributes:
        labels: as given.
        shown: bool[4], which of ``GROUPS`` there are.
        texts: taxid, rank and name of calls; see ``ngsgpu.classify.database.targets.texts``.

    Raises:
        UsageError: a group that does not exist.
    """

    def __init__(self, labels: Labels, columns: Sequence[str] = GROUPS) -> None:
        unknown = [group for group in columns if group not in _GROUPS]
        if unknown:
            raise UsageError(
                f"there are no columns {unknown[0]!r}; choose from {', '.join(GROUPS)}"
            )
        self.labels = labels
        self.shown = np.array([group in columns for group in GROUPS], dtype=np.bool_)
        self.texts = texts(labels)
        self._widest = int(np.diff(self.texts[1]).max()) + 8 + 4 * _LONGEST_NUMBER

    def header(self) -> bytes:
        """The first line of the file."""
        columns = iter(COLUMNS)
        shown = ["read"]
        for group, is_shown in zip(GROUPS, self.shown, strict=True):
            names = [next(columns) for _ in range(_GROUPS[group])]
            shown += names if is_shown else []
        return "\t".join(shown).encode() + b"\n"

    def text(self, reads: CalledReads) -> NDArray[np.uint8]:
        """Lines of the reads, uint8."""
        own, target = reads.queries, reads.target
        labels = self.labels
        room = int((own.name_end - own.name_start).sum()) + len(target) * self._widest
        if self.shown[2] and labels.targets > 0:
            lengths = labels.target_start[1:] - labels.target_start[:-1]
            room += int(lengths[target[target >= 0]].sum())
        out = np.empty(room, dtype=np.uint8)
        used = _table_lines(
            own.names, own.name_start, own.name_end, reads.call, reads.score, target,
            reads.window_begin, reads.window_end,
            *self.texts,
            labels.target_bytes, labels.target_start, labels.target_length,
            labels.sketch.window, labels.sketch.stride, self.shown, out,
        )  # fmt: skip
        return out[:used]


class KrakenLinesWriter:
    """Makes lines in Kraken's format: C or U, name, taxid, length, and hits.

    The last column has the taxid of the best candidate and its hits, ``562:14``; ``0:0`` without
    one. Lengths of mates are written as ``101|98``.

    Args:
        labels: taxids and names of calls.

    Attributes:
        taxid: int64[nodes + targets], of each call.
    """

    def __init__(self, labels: Labels) -> None:
        self.taxid = np.concatenate(
            [labels.taxonomy.taxid, labels.taxonomy.taxid[labels.node_of_target]]
        )
        self._nodes = labels.nodes

    def header(self) -> bytes:
        """Nothing: the format has no header."""
        return b""

    def text(self, reads: CalledReads) -> NDArray[np.uint8]:
        """Lines of the reads, uint8."""
        own = reads.queries
        room = int((own.name_end - own.name_start).sum()) + len(reads) * (10 + 5 * _LONGEST_NUMBER)
        out = np.empty(room, dtype=np.uint8)
        used = _kraken_lines(
            own.names, own.name_start, own.name_end, reads.call, reads.score, reads.target,
            own.length1, own.length2, own.paired, self.taxid, self._nodes, out,
        )  # fmt: skip
        return out[:used]


@njit(nogil=True, cache=True)
def _table_lines(  # type: ignore[no-untyped-def]
    names, name_start, name_end, call, score, target, window_begin, window_end,
    text, text_start, row_of_call,
    target_bytes, target_start, target_length, window_length, window_stride, shown, out,
):  # fmt: skip
    """Write the lines of the table; bytes used."""
    at = 0
    for i in range(call.size):
        at = put_bytes(out, at, names, name_start[i], name_end[i])
        if shown[0]:
            out[at] = _TAB
            row = row_of_call[call[i]]
            at = put_bytes(out, at + 1, text, text_start[row], text_start[row + 1])
        if shown[1]:
            out[at] = _TAB
            at = put_number(out, at + 1, score[i])
        best = target[i]
        if shown[2]:
            out[at] = _TAB
            if best >= 0:
                at = put_bytes(
                    out, at + 1, target_bytes, target_start[best], target_start[best + 1]
                )
            else:
                out[at + 1] = _DASH
                at += 2
        if shown[3]:
            begin = np.int64(0)
            end = np.int64(0)
            if best >= 0:
                begin = np.int64(window_begin[i]) * window_stride + 1
                end = np.int64(window_end[i]) * window_stride + window_length
                end = min(end, target_length[best])
            out[at] = _TAB
            at = put_number(out, at + 1, begin)
            out[at] = _TAB
            at = put_number(out, at + 1, end)
        out[at] = _LF
        at += 1
    return at


@njit(nogil=True, cache=True)
def _kraken_lines(  # type: ignore[no-untyped-def]
    names, name_start, name_end, call, score, target, length1, length2, paired, taxid, nodes, out
):
    """Write Kraken's lines; bytes used."""
    at = 0
    for i in range(call.size):
        out[at] = _LETTER_C if call[i] >= 0 else _LETTER_U
        out[at + 1] = _TAB
        at = put_bytes(out, at + 2, names, name_start[i], name_end[i])
        out[at] = _TAB
        at = put_number(out, at + 1, taxid[call[i]] if call[i] >= 0 else np.int64(0))
        out[at] = _TAB
        at = put_number(out, at + 1, length1[i])
        if paired:
            out[at] = _BAR
            at = put_number(out, at + 1, length2[i])
        out[at] = _TAB
        at += 1
        at = put_number(out, at, taxid[nodes + target[i]] if target[i] >= 0 else np.int64(0))
        out[at] = _COLON
        at = put_number(out, at + 1, score[i] if target[i] >= 0 else np.int32(0))
        out[at] = _LF
        at += 1
    return at
