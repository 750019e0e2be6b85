"""What a command does with the files that a parameter names: a part of the parameter's type.

    in1: list[Reads] | None = option(None, "FILE", "Reads.", "-i", "--in1")
    out: Written | None = option(None, "FILE", "Contigs.", "-o", "--out")

A parameter of text that names no file is a ``Literal`` or `Text`; plain ``str`` is refused, so that
no file goes undeclared.
"""

from __future__ import annotations

from enum import Enum, auto
from pathlib import Path
from typing import Annotated


class Role(Enum):
    """What a command does with files."""

    READS = auto()
    """Read; each file may be given only once."""
    READ = auto()
    """Read; a directory stands for all its files. Other options may name it, too."""
    READ_BY_NAME = auto()
    """Read by a name or prefix that may be no file's; the command checks what it finds."""
    DATABASE = auto()
    """As ``READ``; a directory in which no output may lie."""
    SHEET = auto()
    """A sample sheet, read together with the files it lists."""
    WRITTEN = auto()
    """Written, a file or folder; ``{sample}`` is replaced by each sample name."""
    MULTIQC = auto()
    """Prefix of MultiQC content files."""
    PREFIX = auto()
    """Written under names that begin so, or in a folder of this name; the command checks them."""
    NONE = auto()
    """Text that names no file."""


Reads = Annotated[str, Role.READS]
ReadsPath = Annotated[Path, Role.READS]
Read = Annotated[str, Role.READ]
ReadPath = Annotated[Path, Role.READ]
ReadByName = Annotated[str, Role.READ_BY_NAME]
ReadFolder = Annotated[Path, Role.READ_BY_NAME]
ReadDatabase = Annotated[str, Role.DATABASE]
Sheet = Annotated[str, Role.SHEET]
Written = Annotated[str, Role.WRITTEN]
WrittenPath = Annotated[Path, Role.WRITTEN]
MultiqcPrefix = Annotated[str, Role.MULTIQC]
Prefix = Annotated[str, Role.PREFIX]
WrittenFolder = Annotated[Path, Role.PREFIX]
Text = Annotated[str, Role.NONE]
