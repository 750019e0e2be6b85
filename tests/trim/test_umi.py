"""UMIs in names: mates stay mates, tags of SAM stay tags, and an index is one."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.support.commands import Commands, read_json
from tests.support.io.records import Record, fastq, write

UMI = "ACGTCA"
BASES = UMI + "TTGCATGCCGATTAGCCATGAACGTTCGATTACCGTAGGA"

NAMES = {
    "BGI": ("V30L1C001R004/1", "V30L1C001R004/2"),
    "old Illumina": ("HWUSI:6:73:941:0#ACGTAC/1", "HWUSI:6:73:941:0#ACGTAC/2"),
    "SRA": ("SRR1.7.1 7 length=46", "SRR1.7.2 7 length=46"),
    "SRA without mates' numbers": ("SRR1.1 1 length=46", "SRR1.1 1 length=46"),
    "underscore": ("r7_1", "r7_2"),
    "Casava": ("NB1:2:FC:1:10:20 1:N:0:ACGTAC+TTGCAA", "NB1:2:FC:1:10:20 2:N:0:ACGTAC+TTGCAA"),
    "tags of samtools fastq": ("r7/1\tRX:Z:AC\tBC:Z:ACGT-TTGC", "r7/2\tRX:Z:AC\tBC:Z:ACGT-TTGC"),
    "short": ("a", "a"),
    "no name": ("", ""),
}  # fmt: skip


def with_umi(name: str, umi: str, paired: bool) -> str:
    """In plain words: before the mate's number, at the end of the first word."""
    number = r"[/._][12]" if paired and name not in ("SRR1.1 1 length=46",) else r"/[12]"
    found = re.match(rf"([^ \t]*?)({number})?(?=[ \t]|$)", name)
    assert found is not None
    return f"{found[1]}:{umi}{name[len(found[1]) :]}"


def written(folder: Path, names: tuple[str, ...]) -> list[Path]:
    record = [Record(name.encode(), BASES.encode(), b"I" * len(BASES)) for name in names]
    return [write(folder / f"r{mate}.fq", fastq([own])) for mate, own in enumerate(record, 1)]


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("paired", [False, True])
def test_names_are_still_those_of_mates(
    ngsgpu: Commands, tmp_path: Path, backend: str, kind: str, paired: bool
) -> None:
    files = written(tmp_path, NAMES[kind][: 1 + paired])
    outs = [tmp_path / f"o{mate}.fq" for mate in range(1, 2 + paired)]
    inputs = [word for both in zip(("-i", "-I"), files, strict=False) for word in both]
    outputs = [word for both in zip(("-o", "-O"), outs, strict=False) for word in both]
    done = ngsgpu(
        "trim", *inputs, *outputs, "-A", "-U", "--umi-loc", "read1", "--umi-len", 6,
        "--backend", backend,
    )  # fmt: skip
    assert done.status == 0, done.err
    for name, out in zip(NAMES[kind], outs, strict=False):
        assert out.read_text().split("\n")[0][1:] == with_umi(name, UMI, paired)
    again = [word for both in zip(("-i", "-I"), outs, strict=False) for word in both]
    assert ngsgpu("adapters", *again).status == 0


INDICES = {
    ("r 1:N:0:ACGTAC", "r 2:N:0:ACGTAC"): ("ACGTAC", "ACGTAC"),
    ("r 1:N:0:ACGTAC+TTGCAA", "r 2:N:0:ACGTAC+TTGCAA"): ("ACGTAC", "TTGCAA"),
    ("r 1:N:0:ACGTAC-TTGCAA x", "r 2:N:0:ACGTAC-TTGCAA y"): ("ACGTAC", "TTGCAA"),
    ("H:6:73:941:0#ACGTAC/1", "H:6:73:941:0#ACGTAC/2"): ("ACGTAC", "ACGTAC"),
    ("H:6:73:941:0#ACGTAC+TTNN/1 l=4", "H:6:73:941:0#ACGTAC+TTNN/2 l=4"): ("ACGTAC", "TTNN"),
    ("r:A", "r:A"): ("A", "A"),
    ("r\tBC:Z:acgt-ttgc", "r\tBC:Z:acgt-ttgc"): ("acgt", "ttgc"),
}


@pytest.mark.parametrize("names", INDICES)
def test_indices(ngsgpu: Commands, tmp_path: Path, backend: str, names: tuple[str, str]) -> None:
    first, second = INDICES[names]
    files, out = written(tmp_path, names), tmp_path / "o.fq"
    for place, umi in (("index1", first), ("index2", second), ("per_index", f"{first}_{second}")):
        done = ngsgpu(
            "trim", "-i", files[0], "-I", files[1], "-o", out, "-A", "-U", "--umi-loc", place,
            "--backend", backend,
        )  # fmt: skip
        assert done.status == 0, done.err
        headers = [line[1:] for line in out.read_text().split("\n")[:-1:4]]
        assert headers == [with_umi(name, umi, paired=True) for name in names]


NO_INDEX = (
    "V30L1C001R004/{}", "SRR1.7 7 length=4", "H:6:73:941:0#0/{}", "r {}:N:0:1", "r {}:N:0:", "r",
    "", "r:+A", "r #ACGU",
)  # fmt: skip


@pytest.mark.parametrize("name", NO_INDEX)
def test_names_without_an_index(ngsgpu: Commands, tmp_path: Path, backend: str, name: str) -> None:
    """Refused if the first has none; else counted, and those names stay as they are."""
    names = name.format(1), name.format(2)
    files, out, stats = written(tmp_path, names), tmp_path / "o.fq", tmp_path / "s.json"
    words = ["-i", files[0], "-I", files[1], "-A", "-U", "-o", out, "--backend", backend]
    for place in ("index1", "per_index"):
        done = ngsgpu("trim", *words, "--umi-loc", place)
        assert done.status == 2 and "has no index" in done.error and "record 1" in done.error
        assert not out.exists()
    good = [fastq([Record(b"g %d:N:0:ACGT" % mate, b"ACGT" * 9, b"I" * 36)]) for mate in (1, 2)]
    for path, record in zip(files, good, strict=True):
        path.write_bytes(record + path.read_bytes())
    done = ngsgpu("trim", *words, "--umi-loc", "index1", "--stats", stats)
    assert done.status == 0 and "names of 1 pairs lack an index" in done.err, done.err
    assert read_json(stats)["without_index"] == 1
    headers = [line[1:] for line in out.read_text().split("\n")[:-1:4]]
    assert headers == ["g:ACGT 1:N:0:ACGT", "g:ACGT 2:N:0:ACGT", *names]


def test_many_names(ngsgpu: Commands, tmp_path: Path, backend: str) -> None:
    """Of all kinds in one file, with UMIs of both mates."""
    rng = random.Random(1)
    kinds = [names for kind, names in NAMES.items() if kind != "SRA without mates' numbers"]
    chosen = [rng.choice(kinds) for _ in range(300)]
    umis = [["".join(rng.choices("ACGT", k=6)) for _ in range(2)] for _ in chosen]
    files = [
        write(tmp_path / f"r{mate}.fq", fastq(
            Record(names[mate].encode(), (umi[mate] + BASES).encode(), b"I" * (6 + len(BASES)))
            for names, umi in zip(chosen, umis, strict=True)
        ))
        for mate in (0, 1)
    ]  # fmt: skip
    out = tmp_path / "o.fq"
    done = ngsgpu(
        "trim", "-i", files[0], "-I", files[1], "-o", out, "-A", "-U", "--umi-loc", "per_read",
        "--umi-len", 6, "--backend", backend,
    )  # fmt: skip
    assert done.status == 0, done.err
    headers = [line[1:] for line in out.read_text().split("\n")[:-1:4]]
    assert headers == [
        with_umi(name, "_".join(umi), paired=True)
        for names, umi in zip(chosen, umis, strict=True)
        for name in names
    ]
