"""Explains what is wrong with a bad record.

The kernels in ``scan`` only report where a bad record begins; here its bytes are examined again,
slowly, in reading order. Each function returns the first fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ngsgpu.io.text.batch import first_word, printable
from ngsgpu.io.text.scan import BASES, FASTA_BASES

PhredOffset = Literal["auto", 33, 64]

_FOUR_LINES: Final = "rewrite the file with four lines a record, for instance with `seqtk seq -l 0`"
_CUT_SHORT: Final = "the file may be truncated: copy or download it again"
_NUCLEOTIDES: Final = "give nucleotide sequences: the letters A, C, G, T, U, N and the IUPAC codes"
_NO_PROTEIN: Final = "this may be protein: give nucleotide sequences"
_AMINO_ACIDS_ONLY: Final = b"EFIJLOPQXZefijlopqxz"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a record.

    Attributes:
        cause: a clause for ``InputError``.
        remedy: a clause for ``InputError``.
        line: line within the record, from 0.
    """

    cause: str
    remedy: str
    line: int = 0


_RETURNS: Final = Fault(
    "lines end with a carriage return alone (old Macintosh)",
    "convert it first, for instance with `tr '\\r' '\\n'`",
)


def neither(text: bytes) -> Fault:
    """Describe a file that begins with neither ``@`` nor ``>``.

    Args:
        text: the beginning of its content, at least one byte.
    """
    remedy = "give a FASTQ file (records begin with '@') or a FASTA file (they begin with '>')"
    if text.startswith((b"BAM\x01", b"CRAM")):
        name = text[:4].strip(b"\1").decode()
        cause = f"this is a {name} file in another file, or one without blocks"
        return Fault(cause, f"give the {name} file as `samtools view` writes it")
    if text.startswith(b"NCBI.sra"):
        return Fault("this is an SRA archive", "convert it first with `fasterq-dump`")
    if text.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")):
        return Fault("the file was compressed twice", "decompress it once first")
    if text.startswith(b"\xef\xbb\xbf"):
        return Fault("begins with a UTF-8 byte-order mark", "save it as plain text without one")
    if b"\0" in text or sum(byte >= 127 or byte < 9 for byte in text) * 10 > len(text):
        return Fault("contains binary data, neither FASTQ nor FASTA", remedy)
    if text[:1] in (b"\r", b"\n"):
        return Fault("begins with a blank line, neither FASTQ nor FASTA", remedy)
    return Fault(f"begins with {_shown(text[0])}, neither FASTQ nor FASTA", remedy)


def fastq_fault(text: bytes, phred_offset: PhredOffset, longest_header: int) -> Fault:
    """Find the fault of the FASTQ record at the beginning of ``text``.

    Args:
        text: the record and what follows it, up to the end of the file or well beyond the record.
        phred_offset: as for ``read_batches``.
        longest_header: longest header allowed, bytes.
    """
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    header = lines[0]
    fault = _bad_record_start(header, b"@", text) or _bad_header(header, longest_header)
    if fault is not None:
        return fault
    if b"\r" in header and (len(lines) == 1 or bad_letter(lines[1], b"")):
        return _RETURNS
    if len(lines) == 1:
        return Fault("the file ends within the header", _CUT_SHORT)
    return (
        _bad_bases(lines, header)
        or _bad_plus(lines, header, longest_header)
        or _bad_qualities(lines, phred_offset)
        or Fault("the record is not valid", "check the file")
    )


def _bad_record_start(line: bytes, mark: bytes, text: bytes) -> Fault | None:
    if line.startswith(mark):
        return None
    if not line:
        blanks = len(text) - len(text.lstrip(b"\r\n"))
        cause = f"expected {mark.decode()!r} at the start of a record, found a blank line"
        if blanks == len(text):
            cause = "there are too many blank lines"
        return Fault(cause, "remove the blank line")
    cause = f"expected {mark.decode()!r} at the start of a record, found {_shown(line[0])}"
    return Fault(cause, "a record has four lines: check this one and the one before it")


def _bad_header(line: bytes, longest: int) -> Fault | None:
    if b"\0" in line[: longest + 1]:
        return Fault("the header contains a NUL byte", "the file is damaged: copy it again")
    if len(line) - 1 > longest:
        if b"\r" in line:
            return _RETURNS
        cause = f"the header is longer than {longest:,} bytes"
        return Fault(cause, "check that this is a file of reads")
    return None


def _bad_bases(lines: list[bytes], header: bytes) -> Fault | None:
    bases = lines[1]
    fault = bad_letter(bases, first_word(header[1:]))
    if fault is not None:
        if header.startswith((b"@HD\t", b"@SQ\t", b"@RG\t", b"@PG\t")):
            return Fault("this looks like a SAM file", "convert it first with `samtools fastq`")
        return Fault(fault.cause, fault.remedy, line=1)
    if len(lines) == 2:
        return Fault("the file ends within the sequence", _CUT_SHORT, line=1)
    return None


def _bad_plus(lines: list[bytes], header: bytes, longest: int) -> Fault | None:
    plus = lines[2]
    if not plus.startswith(b"+"):
        if not any(lines[2:]):
            return Fault("the file ends after the sequence", _CUT_SHORT, line=2)
        if plus and all(byte in BASES for byte in plus):
            cause = "the sequence goes on in a second line: a wrapped FASTQ is not read"
            return Fault(cause, _FOUR_LINES, line=2)
        found = _shown(plus[0]) if plus else "a blank line"
        cause = f"expected '+' after the sequence, found {found}"
        return Fault(cause, "a record has four lines: check this one", line=2)
    fault = _bad_header(plus, longest + 1)
    if fault is not None:
        return Fault(fault.cause.replace("header", "'+' line"), fault.remedy, line=2)
    if len(lines) == 3:
        return Fault("the file ends within the '+' line", _CUT_SHORT, line=2)
    name, again = first_word(header[1:]), first_word(plus[1:])
    if plus != b"+" and name != again:
        cause = f"the '+' line names {printable(again)}, but the record is {printable(name)}"
        return Fault(cause, "make the '+' lines empty or the names equal", line=2)
    return None


def _bad_qualities(lines: list[bytes], phred_offset: PhredOffset) -> Fault | None:
    bases, qualities = lines[1], lines[3]
    if len(qualities) < len(bases) and _is_wrapped(lines):
        cause = "the qualities go on in a second line: a wrapped FASTQ is not read"
        return Fault(cause, _FOUR_LINES, line=4)
    lowest = 59 if phred_offset == 64 else 33
    for at, quality in enumerate(qualities):
        if not lowest <= quality <= 126:
            return _bad_quality(quality, at, phred_offset)
    if len(qualities) == len(bases):
        return None
    cause = f"{len(bases):,} bases but {len(qualities):,} qualities"
    if len(lines) == 4 and len(qualities) < len(bases):
        return Fault(f"the file ends within the qualities ({cause})", _CUT_SHORT, line=3)
    return Fault(cause, "a read needs one quality per base: check this record", line=3)


def _bad_quality(quality: int, at: int, phred_offset: PhredOffset) -> Fault:
    where = f"at position {at + 1:,}"
    if quality in b" \t":
        what = "a space" if quality == 32 else "a tab"
        return Fault(f"{what} in the qualities {where}", "remove it or repair the record", line=3)
    if 33 <= quality < 59:
        cause = f"the quality {_shown(quality)} {where} is too low for Phred+64"
        return Fault(cause, "give `phred_offset=33` or omit the option", line=3)
    scale = "Phred+64, ';' to '~'" if phred_offset == 64 else "Phred+33, '!' to '~'"
    cause = f"the byte {_shown(quality)} {where} is no quality ({scale})"
    return Fault(cause, "the file is damaged: repair the record or copy it again", line=3)


def _is_wrapped(lines: list[bytes]) -> bool:
    """Whether the following lines bring the qualities to exactly the length of the sequence."""
    total = len(lines[3])
    for at in range(4, len(lines)):
        line = lines[at]
        if not line or any(not 33 <= byte <= 126 for byte in line):
            return False
        total += len(line)
        if total >= len(lines[1]):
            following = lines[at + 1] if at + 1 < len(lines) else b""
            return total == len(lines[1]) and following[:1] in (b"@", b"")
    return False


def fasta_fault(text: bytes, phred_offset: PhredOffset, longest_header: int) -> Fault:
    """Find the fault of the FASTA record that ``text`` begins with; args as ``fastq_fault``."""
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    fault = _bad_record_start(lines[0], b">", text) or _bad_header(lines[0], longest_header)
    if fault is not None:
        return fault
    if b"\r" in lines[0]:
        return _RETURNS
    name = first_word(lines[0][1:])
    for number, line in enumerate(lines[1:], start=1):
        if line.startswith(b">"):
            break
        fault = bad_letter(line, name, FASTA_BASES)
        if fault is not None:
            return Fault(fault.cause, fault.remedy, line=number)
    return Fault(
        f"a letter of {printable(name)} is not a nucleotide", _NUCLEOTIDES, line=len(lines) - 1
    )


def bad_letter(bases: bytes, name: bytes, letters: bytes = BASES) -> Fault | None:
    """Find the first byte of a sequence line that is not a nucleotide code.

    Args:
        bases: one line of a sequence.
        name: the read's name, for the message.
        letters: the codes.
    """
    at = next((at for at, byte in enumerate(bases) if byte not in letters), None)
    if at is None:
        return None
    byte = bases[at]
    if byte == 13:
        return _RETURNS
    where = f"at position {at + 1:,} of the line"
    if byte in b" \t":
        what = "a space" if byte == 32 else "a tab"
        return Fault(f"{what} in the sequence {where}", "remove it or repair the record")
    if byte in b"-*":
        what = "a gap '-'" if byte == 45 else "a '*'"
        remedy = "give reads, not an alignment or a translation"
        return Fault(f"{what} in the sequence {where}", remedy)
    if byte == 0:
        return Fault(f"a NUL byte in the sequence {where}", "the file is damaged: copy it again")
    cause = f"{_shown(byte)} {where} is not a nucleotide code (read {printable(name)})"
    return Fault(cause, _NO_PROTEIN if byte in _AMINO_ACIDS_ONLY else _NUCLEOTIDES)


def _shown(byte: int) -> str:
    """A byte in quotes, or by its number if it cannot be printed."""
    return repr(chr(byte)) if 32 < byte < 127 else f"0x{byte:02x}"
