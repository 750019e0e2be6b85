"""Slow readers written from the description of the formats alone."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.support.io.records import Record, name_of

_BASES = rb"[ACGTUNRYSWKMBDHVacgtunryswkmbdhv.]*"
_END = rb"(?:\r\n|\n)"
_LAST = rb"(?:\r\n|\n|\r\Z|\Z)"
_FASTQ = re.compile(
    rb"@(?P<header>[^\n\0]*)\n"
    rb"(?P<bases>" + _BASES + rb")" + _END + rb"\+(?P<again>[^\n\0]*)\n"
    rb"(?P<qualities>[!-~]*)" + _LAST
)
_FASTA = re.compile(
    rb">(?P<header>[^\n\r\0]*\r?)(?:\n(?P<lines>(?:"
    + _BASES
    + rb"(?:\r\n|\n|\r\Z))*"
    + _BASES
    + rb"))?"
)


class Bad(NamedTuple):
    record: int


def read_fastq(data: bytes) -> list[Record] | Bad:
    """The records, or the number (from 1) of the first bad one."""
    records: list[Record] = []
    at = 0
    while at < len(data):
        if not data[at:].strip(b"\r\n"):
            break
        found = _FASTQ.match(data, at)
        if found is None:
            return Bad(len(records) + 1)
        header = found["header"].removesuffix(b"\r")
        again = found["again"].removesuffix(b"\r")
        if again and name_of(again) != name_of(header):
            return Bad(len(records) + 1)
        if len(found["bases"]) != len(found["qualities"]):
            return Bad(len(records) + 1)
        records.append(Record(header, found["bases"], found["qualities"]))
        at = found.end()
    return records


def read_fasta(data: bytes) -> list[Record] | Bad:
    """The records, or the number (from 1) of the first bad one."""
    records: list[Record] = []
    at = 0
    while at < len(data):
        found = _FASTA.match(data, at)
        if found is None:
            return Bad(len(records) + 1)
        end = found.end()
        if end < len(data) and not (data[end : end + 1] == b">" and data[end - 1 : end] == b"\n"):
            return Bad(len(records) + 1)
        bases = (found["lines"] or b"").replace(b"\r", b"").replace(b"\n", b"")
        records.append(Record(found["header"].removesuffix(b"\r"), bases, None))
        at = end
    return records
