"""Real reads whose truth is known: fetched from a folder that stands for the archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

import pysam
import pytest

from ngsgpu.io.compress.zstd import library as zstd
from scripts import fetch_truth
from scripts.fetch_truth import ENA, FIGSHARE, ZENODO, Entry, main, manifest

READS = b"".join(b"@r%d\nACGT\n+\nFFFF\n" % number for number in range(5))
FASTA = b"".join(b">s%d\nACGT\nAC\n" % number for number in range(5))


class Mirror:
    """A folder with a folder for each host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, address: str, data: bytes) -> str:
        parts = urlsplit(address)
        name = parts.path + (f"?{parts.query}" if parts.query else "")
        path = self.folder / parts.netloc / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return hashlib.md5(data).hexdigest()

    def put_json(self, address: str, value: object) -> None:
        self.put(address, json.dumps(value).encode())


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "a mirror")


def fetch(
    mirror: Mirror, entries: list[Entry], monkeypatch: pytest.MonkeyPatch, *more: str
) -> tuple[int, Path]:
    """Exit status, and the folder of the set."""
    monkeypatch.setattr(fetch_truth, "manifest", lambda: entries)
    folder = mirror.folder.parent / "data"
    words = ["own", "--folder", str(folder), "--mirror", str(mirror.folder), *more]
    return main(words), folder / "own"


def names(folder: Path) -> list[str]:
    found = folder.rglob("*") if folder.exists() else []
    return sorted(str(path.relative_to(folder)) for path in found if path.is_file())


def test_archives_are_asked_for_addresses_and_checksums(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(READS)
    md5 = mirror.put("https://ftp.ebi/R1_1.fastq.gz", packed)
    other = mirror.put("https://ftp.ebi/R1_2.fastq.gz", packed)
    urls = "ftp.ebi/R1_1.fastq.gz;ftp.ebi/R1_2.fastq.gz"
    mirror.put_json(ENA.format("R1"), [{"fastq_ftp": urls, "fastq_md5": f"{md5};{other}"}])
    mirror.put("https://zenodo.org/files/b.fa", FASTA)
    link = {"self": "https://zenodo.org/files/b.fa"}
    checksum = "md5:" + hashlib.md5(FASTA).hexdigest()
    mirror.put_json(
        ZENODO.format(7), {"files": [{"key": "b.fa", "links": link, "checksum": checksum}]}
    )
    mirror.put("https://fig.share/1", b"one")
    file = {"name": "t.txt", "download_url": "https://fig.share/1"}
    mirror.put_json(FIGSHARE.format(9), [file | {"computed_md5": hashlib.md5(b"one").hexdigest()}])
    entries = [
        Entry("own", "r_2.fastq.gz", "ena:R1/2", "archive", "fastq"),
        Entry("own", "b.fa", "zenodo:7/b.fa", "archive", "fasta"),
        Entry("own", "truth/", "figshare:9", "archive", "-"),
    ]
    status, folder = fetch(mirror, entries, monkeypatch)
    assert status == 0
    assert names(folder) == ["b.fa", "r_2.fastq.gz", "truth/t.txt"]
    assert (folder / "r_2.fastq.gz").read_bytes() == packed
    # What is there is left alone, and not looked at.
    (folder / "b.fa").write_bytes(b"")
    assert fetch(mirror, entries, monkeypatch)[0] == 0
    assert (folder / "b.fa").read_bytes() == b""


def test_lists_of_checksums(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    md5 = mirror.put("https://host/chr20.fa.gz", gzip.compress(FASTA))
    mirror.put("https://host/md5sum.txt", f"0 other\n{md5} *./chr20.fa.gz\n".encode())
    entry = Entry(
        "own", "a.fa.gz", "https://host/chr20.fa.gz", "list:https://host/md5sum.txt", "fasta"
    )
    assert fetch(mirror, [entry], monkeypatch)[0] == 0


@pytest.mark.parametrize(
    ("data", "checksum", "holds", "message"),
    [
        (READS, "md5:0", "fastq", "its md5 is"),
        (FASTA, "-", "fastq", "a.fq does not hold fastq"),
        (READS[:-9], "-", "fastq", "a.fq does not hold fastq: "),
        (b"#a\tb\n", "-", "columns:#a,c", "a.fq does not hold columns:#a,c"),
        (b"none", "-", "tar", "a.fq does not hold tar"),
        (b"none", "-", "zip", "a.fq does not hold zip"),
    ],
)
def test_what_is_not_as_stated_is_refused(
    data: bytes,
    checksum: str,
    holds: str,
    message: str,
    mirror: Mirror,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mirror.put("https://host/a.fq", data)
    entry = Entry("own", "a.fq", "https://host/a.fq", checksum, holds)
    status, folder = fetch(mirror, [entry], monkeypatch)
    assert status == 1
    assert message in capsys.readouterr().err
    assert not names(folder)


def test_what_is_not_there(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.put_json(ZENODO.format(7), {"files": []})
    for source, message in (
        ("https://host/a", "https://host/a: "),
        ("zenodo:7/a", "zenodo:7/a is not in the archive any more"),
        ("gopher:a", "is no source"),
    ):
        entry = Entry("own", "a", source, "-", "-")
        assert fetch(mirror, [entry], monkeypatch)[0] == 1
        assert message in capsys.readouterr().err


def test_excerpts(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    table = b"##x\n#CHROM\tPOS\n1\t2\n1\t3\n1\t4\n"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    for name, data in (("a.fq.gz", gzip.compress(READS)), ("b.fa", FASTA), ("c.vcf", table)):
        mirror.put(f"https://host/{name}", data)
    mirror.put("https://host/d.fq.zst", zstd.compress(READS))
    mirror.put("https://host/e.tar", archive.getvalue())
    holds = ["fastq", "fasta", "columns:#CHROM,POS", "fastq", "tar"]
    entries = [
        Entry("own", name, f"https://host/{name}", "md5:of the whole", kind)
        for name, kind in zip(["a.fq.gz", "b.fa", "c.vcf", "d.fq.zst", "e.tar"], holds, strict=True)
    ]
    status, folder = fetch(mirror, entries, monkeypatch, "--excerpt", "2")
    assert status == 0
    two = READS[: 2 * len(READS) // 5]
    assert gzip.decompress((folder / "a.fq.gz").read_bytes()) == two
    assert zstd.decompress((folder / "d.fq.zst").read_bytes()) == two
    assert (folder / "b.fa").read_bytes() == FASTA[: 2 * len(FASTA) // 5]
    assert (folder / "c.vcf").read_bytes() == table[: table.index(b"1\t4")]
    assert not (folder / "e.tar").exists()
    # The whole archive is taken where the whole set is wanted.
    whole = [Entry("own", "e.tar", "https://host/e.tar", "-", "tar")]
    assert fetch(mirror, whole, monkeypatch)[0] == 0
    assert (folder / "e.tar").read_bytes() == archive.getvalue()


def test_pairs_of_a_region(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    path = mirror.folder / "host" / "a.bam"
    path.parent.mkdir(parents=True)
    header = {"HD": {"VN": "1.6", "SO": "coordinate"}, "SQ": [{"SN": "chr20", "LN": 1000}]}
    rows = [("a", 99, 10), ("alone", 97, 15), ("b", 163, 20), ("a", 147, 30), ("b", 83, 40)]
    with pysam.AlignmentFile(str(path), "wb", header=header) as file:
        for name, flag, start in rows:
            read = pysam.AlignedSegment(file.header)
            read.query_name, read.flag, read.reference_id, read.reference_start = (
                name, flag, 0, start
            )  # fmt: skip
            read.query_sequence, read.cigarstring = "AACGT", "5M"
            read.query_qualities = pysam.qualitystring_to_array("ABCDE")
            file.write(read)
    pysam.index(str(path))
    entry = Entry("own", "r_1.fq.gz,r_2.fq.gz", "bam:https://host/a.bam#chr20", "-", "fastq")
    status, folder = fetch(mirror, [entry], monkeypatch)
    assert status == 0
    forward, backward = "AACGT\n+\nABCDE\n", "ACGTT\n+\nEDCBA\n"
    first = gzip.decompress((folder / "r_1.fq.gz").read_bytes()).decode()
    second = gzip.decompress((folder / "r_2.fq.gz").read_bytes()).decode()
    assert first == f"@a\n{forward}@b\n{backward}"
    assert second == f"@a\n{backward}@b\n{forward}"


def test_the_manifest_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    entries = manifest()
    assert len({(entry.set, entry.file) for entry in entries}) == len(entries)
    for entry in entries:
        kind = entry.source.partition(":")[0]
        assert kind in {"https", "ena", "zenodo", "figshare", "bam"}
        assert entry.checksum != "archive" or kind in {"ena", "zenodo", "figshare"}
        if entry.checksum.startswith("sha256:"):
            assert len(entry.checksum) == len("sha256:") + 64
    assert main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(entries)
