"""What people have to build a database of: which references, taxonomy and tables it amounts to.

A directory, or a table of files, is recognised by what is in it:

- ``ncbi``: what NCBI datasets unpacks, with ``assembly_data_report.jsonl`` (``data_report.jsonl``);
- ``refseq``: genomes beside NCBI's ``assembly_summary.txt``;
- ``gtdb``: genomes beside GTDB's taxonomy files, which are the taxonomy, too;
- ``kraken2``: ``library/`` and ``taxonomy/`` of a Kraken 2 database;
- ``table``: a table of FASTA files and taxids;
- ``files``: anything else, FASTA files or directories of them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu.classify.sketch.references import find_references
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.lines import read_line_blocks
from ngsgpu.taxonomy.lineages import lineage_files

logger = logging.getLogger("ngsgpu")

_REPORTS: Final = ("assembly_data_report.jsonl", "data_report.jsonl")
_NO_GENOME: Final = re.compile(
    r"(?:^|_)(?:cds|rna)_from_genomic\.|^(?:cds|rna|gene|[35]p_utr)\.", re.IGNORECASE
)
"""Names of files with genes or transcripts, which NCBI puts beside genomes."""
_FILE: Final = ("file", "path")
_TABLES: Final = (".tsv", ".txt", ".tab")


@dataclass(frozen=True, slots=True)
class Sources:
    """What a database is built of.

    Attributes:
        references: FASTA files, or directories of them.
        taxonomy: as for ``load_taxonomy``; None without one.
        maps: tables of accessions and taxids.
    """

    references: Sequence[str | Path]
    taxonomy: str | Path | None = None
    maps: Sequence[str | Path] = ()


def find_sources(
    references: Paths,
    taxonomy: str | Path | None = None,
    maps: Paths = (),
    kind: str = "auto",
    *,
    has_taxonomy: bool = False,
) -> Sources:
    """Replace what is recognised among references by its FASTA files, taxonomy and tables.

    Args:
        references: files and directories.
        taxonomy: goes before one that is found.
        maps: go before those that are found.
        kind: a name in ``KINDS``; ``auto`` recognises each.
        has_taxonomy: whether the database has one already.

    Raises:
        InputError: a directory is not of the kind given, or lacks something.
        UsageError: there is no such kind, or two taxonomies were found.
    """
    references, maps = listed(references), listed(maps)
    if kind not in ("auto", "files", *KINDS):
        kinds = ", ".join(("auto", *KINDS, "files"))
        raise UsageError(f"`source` {kind!r} is not known; choose one of {kinds}")
    taxonomies = [] if taxonomy is None else [taxonomy]
    found = [_recognised(Path(path), kind) for path in references]
    if taxonomy is None:
        taxonomies = list(dict.fromkeys(own.taxonomy for own in found if own.taxonomy is not None))
    if len(taxonomies) > 1:
        raise UsageError(
            f"the references come with two taxonomies, {taxonomies[0]} and {taxonomies[1]}; "
            "choose with `taxonomy`"
        )
    more = [table for own in found for table in own.maps]
    if taxonomies and (lineages := lineage_files(taxonomies[0])):
        more = list(lineages)  # NCBI's taxids are not GTDB's
    elif more and not taxonomies and not has_taxonomy:
        logger.warning("%s is not used: it needs a `taxonomy`", ", ".join(map(str, more)))
        more = []
    return Sources(
        [file for own in found for file in own.references],
        taxonomies[0] if taxonomies else None,
        list(dict.fromkeys([*maps, *more])),
    )


def _recognised(path: Path, kind: str) -> Sources:
    if kind in KINDS:
        if (own := KINDS[kind][0](path)) is None:
            raise InputError(path, f"there is no {KINDS[kind][1]}", "check `source`")
        return own
    for name, (recognise, _) in KINDS.items() if kind == "auto" else ():
        if (own := recognise(path)) is not None:
            logger.info("%s: taken as `source='%s'`", path, name)
            return own
    return Sources([path])


def _ncbi(folder: Path) -> Sources | None:
    for place in (folder, folder / "data", folder / "ncbi_dataset" / "data"):
        for report in _REPORTS:
            if (place / report).is_file():
                return Sources(_genomes(place), maps=[place / report])
    return None


def _refseq(folder: Path) -> Sources | None:
    summaries = sorted(folder.glob("assembly_summary*.txt*")) if folder.is_dir() else []
    return Sources(_genomes(folder), maps=summaries) if summaries else None


def _gtdb(folder: Path) -> Sources | None:
    tables = lineage_files(folder) if folder.is_dir() else []
    return Sources(_genomes(folder), folder, tables) if tables else None


def _genomes(folder: Path) -> list[str]:
    """FASTA files in a directory, without those of genes and transcripts."""
    try:
        files = [own for own in find_references([folder]) if not _NO_GENOME.search(Path(own).name)]
    except InputError:
        files = []
    if not files:
        remedy = "put them there; for NCBI datasets, `datasets rehydrate` fetches them"
        raise InputError(folder, "there is no FASTA file of a genome", remedy)
    return files


def _kraken2(folder: Path) -> Sources | None:
    library, taxonomy, known = (
        folder / name for name in ("library", "taxonomy", "seqid2taxid.map")
    )
    if not (library.is_dir() and taxonomy.is_dir()):
        return None
    maps = [known] if known.is_file() else sorted(taxonomy.glob("*.accession2taxid*"))
    return Sources([library], taxonomy, maps)


def _table(path: Path) -> Sources | None:
    """A table of files and taxids; its rows are looked up by the paths of files."""
    if not (path.is_file() and path.name.lower().endswith(_TABLES)):
        return None
    files: list[str] = []
    column: int | None = None
    for block in read_line_blocks(path):
        lines = block.data.tobytes().decode("utf-8", "replace").split("\n")
        for number, line in enumerate(lines, start=block.first_line + 1):
            fields = [field.strip() for field in line.split("\t")]
            if column is None:
                names = [field.lstrip("# ").lower() for field in fields]
                if line.startswith(">") or (len(fields) == 1 and line.strip()[:1] not in ("", "#")):
                    return None
                if "taxid" in names:
                    column = next((names.index(own) for own in _FILE if own in names), 0)
                    continue
            if not line.strip() or line.startswith("#"):
                continue
            column = column or 0
            files.append(_listed(path, fields[column] if column < len(fields) else "", number))
    return Sources(list(dict.fromkeys(files)), maps=[path]) if files else None


def _listed(table: Path, file: str, line: int) -> str:
    """A file that a table lists, from the working directory or else from that of the table."""
    for place in (Path(file), table.parent / file):
        if place.is_file():
            return str(place)
    raise InputError(
        table, f"the file {file!r} does not exist",
        "give its path from the working directory or from that of the table", line=line,
    )  # fmt: skip


KINDS: Final[dict[str, tuple[Callable[[Path], Sources | None], str]]] = {
    "ncbi": (_ncbi, "assembly_data_report.jsonl"),
    "refseq": (_refseq, "assembly_summary.txt"),
    "kraken2": (_kraken2, "library/ and taxonomy/"),
    "gtdb": (_gtdb, "GTDB taxonomy file (bac120_taxonomy.tsv)"),
    "table": (_table, "table of files and taxids"),
}
"""What recognises each kind, and what it looks for."""
