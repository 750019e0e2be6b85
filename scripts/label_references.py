#!/usr/bin/env python3
"""Write references as each classifier wants them: in one plain file, and once more with taxids.

The folder gets ``plain.fna``; ``labelled.fna``, with taxids in the headers, for Kraken 2;
``map.tsv``, the names and taxids of these sequences; and ``taxonomy`` with the dump files and the
map in NCBI's format. Sequences without a taxid are only in the first.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

DUMPS = ("nodes.dmp", "names.dmp", "merged.dmp")


def lines_of(path: Path) -> Iterator[bytes]:
    """Lines of a plain or gzip-compressed file."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield from file


def taxids_in(table: Path) -> dict[str, str]:
    """Taxids by the name of the sequence, from the first two columns."""
    rows = (line.decode().rstrip("\n").split("\t") for line in lines_of(table))
    return {row[0]: row[1] for row in rows if len(row) > 1 and row[1].isdecimal()}


def label(references: list[Path], taxids: dict[str, str], folder: Path) -> list[tuple[str, str]]:
    """Write both files of sequences; returns the names and taxids of those with a taxid."""
    known: list[tuple[str, str]] = []
    is_known = False
    with (folder / "plain.fna").open("wb") as plain, (folder / "labelled.fna").open("wb") as own:
        for path in references:
            for line in lines_of(path):
                plain.write(line)
                if line.startswith(b">"):
                    name = line[1:].split()[0].decode()
                    is_known = name in taxids
                    if is_known:
                        known.append((name, taxids[name]))
                        own.write(f">{name}|kraken:taxid|{taxids[name]}\n".encode())
                elif is_known:
                    own.write(line)
    return known


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("references", type=Path, nargs="+", help="FASTA files, plain or gzip")
    add("--map", type=Path, required=True, help="table of sequence names and taxids")
    add("--taxonomy", type=Path, nargs="+", required=True, help="nodes.dmp, names.dmp, merged.dmp")
    add("-o", "--output", type=Path, required=True, help="folder to write")
    options = parser.parse_args(arguments)
    folder: Path = options.output
    (folder / "taxonomy").mkdir(parents=True, exist_ok=True)
    known = label(options.references, taxids_in(options.map), folder)
    if not known:
        print(f"label_references.py: {options.map} has none of the sequences", file=sys.stderr)
        return 2
    (folder / "map.tsv").write_text("".join(f"{name}\t{taxid}\n" for name, taxid in known))
    accessions = [f"{name.split('.')[0]}\t{name}\t{taxid}\t0\n" for name, taxid in known]
    (folder / "taxonomy" / "map.accession2taxid").write_text(
        "accession\taccession.version\ttaxid\tgi\n" + "".join(accessions)
    )
    for path in options.taxonomy:
        name = path.name.removesuffix(".gz")
        if name in DUMPS:
            with (folder / "taxonomy" / name).open("wb") as out:
                out.writelines(lines_of(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
