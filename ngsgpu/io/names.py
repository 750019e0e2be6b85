"""Sample, lane and mate, by the names of read files.

A name is read as sample, lane and mate: ``A_S1_L001_R1_001`` (Illumina's bcl2fastq and BCL
Convert), ``A_R1``, ``A.R1``, ``A-read1``, ``A_1``, ``A.1``, ``A_1P`` (Trimmomatic) or
``A_forward``, with ``_L001`` or ``_lane1`` before or behind it; and with ``_val_1`` of Trim Galore,
``.clean`` and the like behind it. A name without a mate is that of single-end reads.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PACKED: Final = r"(?:\.(?:gz|bgz|bgzf|bz2|xz|zst))?$"
ALIGNED: Final = re.compile(r"\.(?:u?bam|cram)$", re.IGNORECASE)
FASTQ: Final = re.compile(rf"\.(?:fastq|fq){_PACKED}", re.IGNORECASE)
_READS: Final = re.compile(
    rf"\.(?:fastq|fq|fasta|fa|fna){_PACKED}|{ALIGNED.pattern}", re.IGNORECASE
)
_TRIM_GALORE: Final = re.compile(r"(?<=[._-])(R?([12])(?:_\d{3})?)_val_\2$", re.IGNORECASE)
_AFTER: Final = r"(?P<after>(?:[._-].*)?)"
_DONE: Final = r"(?P<after>(?:[._-](?:clean(?:ed)?|trim(?:med)?|paired|filt(?:ered)?|fastp|qc))*)"
"""What programs append to a name that has a mate already."""
_KINDS: Final = (
    re.compile(
        r"(?P<before>.+)_S(?P<number>\d+)(?=_L\d{3}_|_[RI]\d_\d{3})(?:_L(?P<lane>\d{3}))?"
        rf"_(?P<kind>[RI])(?P<mate>[123])(?:_\d{{3}})?{_AFTER}"
    ),
    re.compile(
        r"(?:(?P<before>.*)[._-])?(?P<kind>R|read|mate)(?P<mate>[123])(?:_\d{3}(?=[._-]|$))?"
        + _AFTER,
        re.IGNORECASE,
    ),
    re.compile(rf"(?:(?P<before>.*)[._])?(?P<mate>[12])(?P<kind>P?){_DONE}", re.IGNORECASE),
    re.compile(
        rf"(?:(?P<before>.*)[._-])?(?P<kind>(?P<forward>forward|fwd)|reverse|rev){_DONE}",
        re.IGNORECASE,
    ),
)
_LANE: Final = re.compile(
    r"(?:(?P<before>.*)[._-])?(?:L(?P<lane>\d{3})|lane_?(?P<number>\d+))", re.I
)
_PAIRED: Final = re.compile(r"[._-]paired\b", re.IGNORECASE)
_LEFT: Final = re.compile(
    r"(?P<base>.*?)(?:[._-]R?[12](?:_\d{3})?)?[._-](?:[12]U|"
    r"(?:unpaired|singletons?|orphans?|unmated|umis?)(?:[._-]?[12])?)",
    re.IGNORECASE,
)
_LETTERS: Final = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L",
     "đ": "d", "Đ": "D", "ð": "d", "þ": "th"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReadName:
    """A file's name as it was read.

    Attributes:
        path: the file.
        sample: name of the sample, as the file has it.
        mate: 1 to 3; 0 without a mark.
        kind: how the mate is marked; ``I`` is an index read.
        number: of the sample in Illumina's sheet.
        lane: of the flow cell.
    """

    path: Path
    sample: str
    mate: int = 0
    kind: str = ""
    number: str = ""
    lane: str = ""

    @property
    def pair(self) -> tuple[Path, str, str, str, str]:
        """The same for both mates of a pair."""
        return self.path.parent, self.sample, self.number, self.lane, self.kind


def stem_of(path: Path) -> str:
    """A file's name without the endings of formats, composed (NFC)."""
    return unicodedata.normalize("NFC", _READS.sub("", path.name))


def read_name(path: Path) -> ReadName:
    """Read a file's name; one that is its mate's alone is of the sample that its folder names."""
    stem = _TRIM_GALORE.sub(r"\1", stem_of(path))
    match = next(filter(None, (kind.fullmatch(stem) for kind in _KINDS)), None)
    parts = match.groupdict(default="") if match else {"before": stem}
    before, after = parts["before"], _PAIRED.sub("", parts.get("after", ""))
    lane = parts.get("lane", "")
    if found := _LANE.fullmatch(before):
        before, lane = found["before"] or "", found["lane"] or found["number"]
    elif found := _LANE.fullmatch(after):
        after, lane = found["before"] or "", found["lane"] or found["number"]
    kind = parts.get("kind", "").upper()
    mate = parts.get("mate", "")
    if "forward" in parts:
        mate, kind = ("1" if parts["forward"] else "2"), "F"
    folder = unicodedata.normalize("NFC", path.absolute().parent.name)
    return ReadName(
        path, before + after or folder, int(mate or 0), "R" if kind in ("READ", "MATE") else kind,
        parts.get("number", ""), lane,
    )  # fmt: skip


def left_over_of(path: Path) -> str | None:
    """The sample whose pairs lost these reads, or of whose pairs they are UMIs; None for others."""
    match = _LEFT.fullmatch(stem_of(path))
    return match and match["base"]


def sample_of(path: str | Path) -> str:
    """A sample's name by its first file."""
    if str(path) == "-":
        return "stdin"
    name = read_name(Path(path))
    return sample_name(name.sample if name.mate < 2 else stem_of(Path(path)))


def sample_name(text: str) -> str:
    """A sample's name as sheets allow it: letters, digits, ``.``, ``_`` and ``-`` of ASCII.

    Letters with marks become those without.
    """
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    plain = "".join(own for own in plain if not unicodedata.combining(own))
    return re.sub(r"[^A-Za-z0-9._-]+", "_", plain).lstrip("._-") or "sample"
