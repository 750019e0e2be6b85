"""What functions return is what commands write, to the byte, whatever form the reads have."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ngsgpu as package
from ngsgpu.correct import CorrectionParameters
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.spectrum import SpectrumParameters
from ngsgpu.trim import TrimParameters

Runs = Callable[..., None]
Two = tuple[Path, Path]


def same(*pairs: tuple[str, str]) -> None:
    for ours, theirs in pairs:
        assert Path(ours).read_bytes() == Path(theirs).read_bytes()
        assert Path(ours).stat().st_size > 0


FORMS = {
    "paths": lambda one, two: (one, two),
    "lists": lambda one, two: ([str(one)], [str(two)]),
    "opened": lambda one, two: (package.open(one, two),),
    "records": lambda one, two: (package.open(one), iter(package.open(two))),
    "pairs": lambda one, two: (iter(package.open(one, two)),),
    "arrays": lambda one, two: (package.open(one, two).batches(),),
    "arrays of each": lambda one, two: (
        (batch for (batch,) in package.open(one).batches()),
        [batch for (batch,) in package.open(two).batches()],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_pairs_are_corrected_as_by_the_command(runs: Runs, pair: Two, form: str) -> None:
    runs("correct", "-i", pair[0], "-I", pair[1], "-o", "c1.fq", "-O", "c2.fq", "-q")
    with package.correct(*FORMS[form](*pair), threads=2) as corrected:
        found = list(corrected)
        if form == "pairs":  # which alternate in one file then
            corrected.save("both.fq")
            with package.open("o1.fq", "o2.fq", mode="w") as out:
                for first, second in found:
                    out.write(first, second)
            assert list(package.open("both.fq", interleaved=True)) == found
        else:
            corrected.save("o1.fq", "o2.fq")
            assert found == list(package.open("o1.fq", "o2.fq"))
    same(("o1.fq", "c1.fq"), ("o2.fq", "c2.fq"))
    assert len(found) == 600
    assert corrected.statistics.corrected["bases"] > 100


def test_compressed_single_reads(runs: Runs, pair: Two) -> None:
    runs("correct", "-i", pair[0], "-o", "c.fq.gz", "-q", "--quality", "-t", 2)
    corrected = package.correct(pair[0], parameters=CorrectionParameters(quality=True))
    corrected.save("o.fq.gz", threads=2)
    same(("o.fq.gz", "c.fq.gz"))
    assert [read.name for read in corrected][:2] == ["read0 lane:1", "read1 lane:1"]


def test_correction_by_kmers(runs: Runs, pair: Two) -> None:
    runs("correct", "--method", "spectrum", "-i", pair[0], "-o", "c.fq", "-q")
    package.correct(pair[0], parameters=SpectrumParameters()).save("o.fq")
    same(("o.fq", "c.fq"))


def test_pairs_are_merged_as_by_the_command(runs: Runs, pair: Two) -> None:
    outputs = ("-o", "m.fq", "--unmerged1", "u1.fq", "--unmerged2", "u2.fq")
    runs("merge", "-i", pair[0], "-I", pair[1], *outputs, "-q")
    merged = package.merge(*pair)
    merged.save("om.fq")
    same(("om.fq", "m.fq"))
    merged.unmerged.save("o1.fq", "o2.fq")
    assert Path("o1.fq").read_bytes() == Path("u1.fq").read_bytes()
    assert Path("o2.fq").read_bytes() == Path("u2.fq").read_bytes()
    assert len(list(merged)) + len(list(merged.unmerged)) == 600


def test_stages_take_what_others_return(runs: Runs, pair: Two) -> None:
    runs("correct", "-i", pair[0], "-I", pair[1], "-o", "c1.fq", "-O", "c2.fq", "-q")
    runs("merge", "-i", "c1.fq", "-I", "c2.fq", "-o", "m.fq", "-q")
    package.merge(package.correct(*pair)).save("o.fq")
    same(("o.fq", "m.fq"))


def test_trimming(runs: Runs, pair: Two) -> None:
    words = ["--max-len1", 60, "--quiet"]
    runs("trim", "-i", pair[0], "-I", pair[1], "-o", "t1.fq", "-O", "t2.fq", *words)
    kept = package.trim(*pair, TrimParameters(max_len1=60))
    kept.save("o1.fq", "o2.fq")
    same(("o1.fq", "t1.fq"), ("o2.fq", "t2.fq"))
    assert {len(read) for both in kept for read in both} == {60}


def test_depletion(runs: Runs, library: Path, pair: Two) -> None:
    genome = (library / "genome.fa").read_text().split("\n")[1]
    Path("host.fa").write_text(f">host\n{genome[:2000]}\n")
    runs("deplete-index", "host.fa", "-o", "host.idx", "-q")
    runs("deplete", "-d", "host.idx", "-i", pair[0], "-I", pair[1], "-o", "d1.fq", "-O", "d2.fq")
    kept = package.deplete(*pair, host="host.idx")
    kept.save("o1.fq", "o2.fq")
    same(("o1.fq", "d1.fq"), ("o2.fq", "d2.fq"))
    assert 100 < len(list(kept)) < 500


def test_assembly(runs: Runs, pair: Two) -> None:
    Path("merged.fq").write_bytes(pair[0].read_bytes())
    runs("assemble", "-i", pair[0], "-I", pair[1], "-s", "merged.fq", "-o", "a.fa", "-q")
    contigs = package.assemble(*pair, single=iter(package.open("merged.fq")))
    contigs.save("o.fa")
    same(("o.fa", "a.fa"))
    assert max(map(len, contigs)) > 1000


def test_calls_and_report(runs: Runs, library: Path, pair: Two) -> None:
    runs("db", "build", library / "genome.fa", "-d", "db", "-q")
    files = ("-o", "calls.tsv", "--report", "report.txt")
    runs("classify", "-d", "db", "-i", pair[0], "-I", pair[1], *files, "-q")
    with package.Classifier("db", threads=2) as classifier:
        calls = classifier.classify(*pair)
        other = classifier.classify([package.Record("none", "ACGT" * 30)])
    calls.save("o.tsv", "o.txt")
    same(("o.tsv", "calls.tsv"), ("o.txt", "report.txt"))
    assert calls.report == Path("report.txt").read_text()
    found = list(calls)
    assert len(found) == 600 and calls.statistics.queries["classified"] > 500
    assert sum(call.classified for call in found) == calls.statistics.queries["classified"]
    assert {call.name for call in found if call.classified} == {"genome"}
    (call,) = other
    assert not call.classified and call.target is None and call.taxid == 0
    assert next(iter(package.classify(pair[0], database="db"))).read == "read0"


def test_nothing_is_left_when_results_are_gone(
    runs: Runs, pair: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    result = package.merge(iter(package.open(*pair)))
    (folder,) = (tmp_path / "temporary").iterdir()
    assert {file.name for file in folder.iterdir()} == {"merged", "first", "second"}
    unmerged = result.unmerged
    del result
    assert len(list(unmerged)) < 600
    del unmerged
    assert list((tmp_path / "temporary").iterdir()) == []
    with pytest.raises(InputError):
        package.correct(tmp_path / "missing.fq")
    with pytest.raises(UsageError, match="merging needs both mates"):
        package.merge(package.open(pair[0]))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_no_reads(runs: Runs) -> None:
    assert list(package.correct([])) == []
    assert list(package.count([], k=21)) == []


def test_what_is_refused(runs: Runs, pair: Two) -> None:
    with pytest.raises(UsageError, match="not int"):
        package.correct([1, 2])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="leave out their mates"):
        package.correct(package.open(*pair), pair[1])
    with pytest.raises(TypeError, match="unexpected keyword argument 'thread'"):
        package.correct(pair[0], thread=2)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="unknown backend"):
        package.correct(pair[0], backend="gpu")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="two paths, one for each mate"):
        package.correct(*pair, memory="4G").save("o.fq")
    assert not Path("o.fq").exists()
    with pytest.raises(UsageError, match="`threads` must be a whole number, not '2'"):
        package.correct(pair[0], threads="2")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="`phred_offset` must be auto, 33 or 64, not 32"):
        package.correct(pair[0], phred_offset=32)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="`phred_offset` must be auto, 33 or 64, not '33'"):
        package.correct(pair[0], phred_offset="33")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "given", [None, 5, b"R1.fq", {"a": "ACGT"}, package.Record("a", "AC"), io.StringIO("@a\nA\n")]
)
def test_what_is_no_read_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=f"must be a path, or .* not {type(given).__name__}"):
        package.trim(given)


def test_records_are_alike(runs: Runs) -> None:
    read, other = package.Record("a", "AC", "II"), package.Record("b", "AC")
    for mixed in ([read, (read, read)], [(read, read), read], [(read, read, read)]):
        with pytest.raises(UsageError, match="all records, or all pairs"):
            package.correct(mixed)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'b' has no qualities, the records before have some"):
        package.correct([read, other])
    with pytest.raises(UsageError, match="record 'a': ' ' in the sequence is no nucleotide code"):
        package.correct([read, package.Record("a", "A C", "III")])
    with pytest.raises(UsageError, match="with `mates`, or `interleaved=True` if `reads` holds"):
        package.merge([read])


def test_parameters(runs: Runs, pair: Two) -> None:
    masked = package.correct(pair[0], CorrectionParameters(mask=True))
    assert any("N" in read.sequence for read in masked)
    for wrong in (TrimParameters(), {"mask": True}):
        with pytest.raises(UsageError, match="`parameters` must be CorrectionParameters or Sp"):
            package.correct(pair[0], parameters=wrong)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="`parameters` must be QueryParameters"):
        package.Classifier("db", TrimParameters())  # type: ignore[arg-type]


def test_closed_results(runs: Runs, pair: Two) -> None:
    with package.trim(pair[0]) as trimmed:
        pass
    for use in (lambda: list(trimmed), lambda: trimmed.save("o.fq")):
        with pytest.raises(UsageError, match="closed"):
            use()


def test_batches_are_arrays(runs: Runs, pair: Two) -> None:
    (first, second), *_ = package.correct(*pair).batches()
    assert isinstance(first, RecordBatch) and len(first) == len(second) == 600
    assert first.seq_len.max() == 100
