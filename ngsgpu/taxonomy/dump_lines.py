"""Kernels that parse the lines of NCBI's taxonomy dump; see ``dump`` for the format.

``data`` are whole lines, uint8 with a line feed at the end.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ngsgpu.io.text.keys import fnv64
from ngsgpu.jit import njit

_LF: Final = 10
_CR: Final = 13
_TAB: Final = 9
_BLANK: Final = 32
_BAR: Final = 124
_DIGITS: Final = 18
"""Digits of the largest taxid; all numbers with that many digits fit into 64 bits."""


@njit(nogil=True, cache=True)
def _number(data, at):  # type: ignore[no-untyped-def]
    """A decimal number at ``at``: (value, where it ends); value -1 where there is none."""
    while data[at] == _BLANK:
        at += 1
    start = at
    value = np.int64(0)
    while 48 <= data[at] <= 57 and at - start < _DIGITS:
        value = value * 10 + np.int64(data[at]) - 48
        at += 1
    return (value, at) if at > start else (np.int64(-1), at)


@njit(nogil=True, cache=True)
def _after_bar(data, at):  # type: ignore[no-untyped-def]
    """Where the field after the bar begins; -1 if no bar follows."""
    while data[at] == _BLANK or data[at] == _TAB:
        at += 1
    if data[at] != _BAR:
        return -1
    at += 1
    while data[at] == _BLANK or data[at] == _TAB:
        at += 1
    return at


@njit(nogil=True, cache=True)
def _field_end(data, at):  # type: ignore[no-untyped-def]
    """(end of the field's text, the bar or line end after it)."""
    stop = at
    while data[stop] != _BAR and data[stop] != _LF:
        stop += 1
    end = stop
    while end > at and (data[end - 1] == _TAB or data[end - 1] == _BLANK or data[end - 1] == _CR):
        end -= 1
    return end, stop


@njit(nogil=True, cache=True)
def _line_after(data, at):  # type: ignore[no-untyped-def]
    while data[at] != _LF:
        at += 1
    return at + 1


@njit(nogil=True, cache=True)
def _is_blank_line(data, at):  # type: ignore[no-untyped-def]
    return data[at] == _LF or (data[at] == _CR and data[at + 1] == _LF)


@njit(nogil=True, cache=True)
def _two_numbers(data, at):  # type: ignore[no-untyped-def]
    """Two numbers with a bar between: (first, second, end); end -1 where they are not there."""
    first, stop = _number(data, at)
    stop = _after_bar(data, stop) if first > 0 else -1
    if stop < 0:
        return first, first, -1
    second, stop = _number(data, stop)
    return first, second, stop if second >= 0 else -1


@njit(nogil=True, cache=True)
def parse_nodes(data, first_line, taxid, parent, hashes, lines):  # type: ignore[no-untyped-def]
    """Parse lines of nodes.dmp; (rows, -1) or (rows so far, first byte of the bad line)."""
    count = 0
    at = 0
    line = first_line
    while at < data.size:
        start = at
        if not _is_blank_line(data, at):
            taxid[count], parent[count], at = _two_numbers(data, at)
            field = _after_bar(data, at) if at >= 0 else -1
            if field < 0:
                return count, start
            end, at = _field_end(data, field)
            hashes[count] = fnv64(data, field, end)
            lines[count] = line
            count += 1
        at = _line_after(data, at)
        line += 1
    return count, -1


@njit(nogil=True, cache=True)
def parse_names(data, wanted, owner, length, text):  # type: ignore[no-untyped-def]
    """Parse lines of names.dmp and concatenate the names of the wanted class in ``text``.

    Returns:
        (names, bytes of text, -1), or with the first byte of the bad line.
    """
    count = 0
    used = 0
    at = 0
    while at < data.size:
        start = at
        if _is_blank_line(data, at):
            at = _line_after(data, at)
            continue
        number, at = _number(data, at)
        name = _after_bar(data, at) if number > 0 else -1
        if name < 0:
            return count, used, start
        name_end, at = _field_end(data, name)
        unique = _after_bar(data, at)
        if unique < 0:
            return count, used, start
        at = unique
        if data[at] != _BAR:
            _, at = _field_end(data, at)
        field = _after_bar(data, at)
        if field < 0:
            return count, used, start
        end, at = _field_end(data, field)
        same = end - field == wanted.size
        for i in range(wanted.size):
            same = same and data[field + i] == wanted[i]
        if same:
            for i in range(name, name_end):
                text[used + i - name] = data[i]
            owner[count] = number
            length[count] = name_end - name
            used += name_end - name
            count += 1
        at = _line_after(data, at)
    return count, used, -1


@njit(nogil=True, cache=True)
def parse_merged(data, old, new):  # type: ignore[no-untyped-def]
    """Parse lines of merged.dmp; as ``parse_nodes``."""
    count = 0
    at = 0
    while at < data.size:
        start = at
        if not _is_blank_line(data, at):
            old[count], new[count], at = _two_numbers(data, at)
            if at < 0:
                return count, start
            count += 1
        at = _line_after(data, at)
    return count, -1


@njit(nogil=True, cache=True)
def gather_names(text, start, which, taxid, name_start, out):  # type: ignore[no-untyped-def]
    """Copy names in the order of the nodes; decimal taxids where ``which`` is -1."""
    for node in range(taxid.size):
        at = name_start[node]
        if which[node] >= 0:
            source = start[which[node]]
            for i in range(name_start[node + 1] - at):
                out[at + i] = text[source + i]
        else:
            value = taxid[node]
            for i in range(name_start[node + 1] - 1, at - 1, -1):
                out[i] = 48 + value % 10
                value //= 10
