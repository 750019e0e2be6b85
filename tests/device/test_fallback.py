"""What happens when the GPU cannot: one rule, one line, for all commands; without a GPU."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.database import Database
from ngsgpu.classify.run.pipeline import Classifier
from ngsgpu.classify.run.samples import SampleOutputs, one_sample
from ngsgpu.correct import correct_files
from ngsgpu.errors import DeviceError, InputError, UnsuitableError
from ngsgpu.io.gpu.feed import IrregularInputError
from ngsgpu.io.output.writer import OutputGroup
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.merge import MergeOutputs, merge_files
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.record import RecordDriver
from tests.support.classify.world import make_world

AUTO = RunOptions(backend="cuda", may_fall_back=True)
READ = "ACGTTGCAAGGCTTAACGGATCCTTAGCATGCAAATCGGCTAGCTTACG"


def fail() -> str:
    raise DeviceError("no memory is left; buy more")


@pytest.fixture(autouse=True)
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often GPUs were given back."""
    said: list[int] = []
    monkeypatch.setattr("ngsgpu.run.options.keep_gpus", said.append)
    return said


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_rule(caplog, given_back):
    assert on_backend(RunOptions(), fail, lambda: "cpu") == "cpu"
    assert on_backend(AUTO, lambda: "gpu", fail) == "gpu"
    assert not given_back
    assert on_backend(AUTO, fail, lambda: "cpu") == "cpu"
    assert warnings(caplog) == ["no memory is left; continuing on the CPU"]
    assert given_back == [0]
    with pytest.raises(DeviceError, match="no memory is left; buy more"):
        on_backend(RunOptions(backend="cuda"), fail, lambda: "cpu")
    with pytest.raises(DeviceError):
        on_backend(AUTO, fail, lambda: "cpu", may_begin_again=lambda: False)
    assert on_backend(AUTO, fail, lambda: "cpu", gives_back=False) == "cpu"
    assert given_back == [0]


def test_other_errors_are_none_of_its_business():
    def wrong() -> str:
        raise InputError("reads.fq", "is wrong", "mend it")

    with pytest.raises(InputError):
        on_backend(AUTO, wrong, lambda: "cpu")


def write(path: Path, reads: int, last: str = "") -> str:
    path.write_text("".join(f"@{i}\n{READ}\n+\n{'I' * len(READ)}\n" for i in range(reads)) + last)
    return str(path)


@pytest.fixture
def mates(tmp_path: Path) -> tuple[list[str], list[str]]:
    return [write(tmp_path / "1.fq", 20)], [write(tmp_path / "2.fq", 20)]


def options(*, auto: bool) -> RunOptions:
    return RunOptions(backend="cuda", may_fall_back=auto)


def test_merging_to_a_stream(mates, capfdbinary, caplog):
    with pytest.raises(UnsuitableError, match="needs files, not standard input") as caught:
        merge_files(*mates, MergeOutputs("-"), options=options(auto=False))
    assert caught.value.exit_status == 2
    assert merge_files(*mates, MergeOutputs("-"), options=options(auto=True)).backend == "cpu"
    (line,) = warnings(caplog)
    assert line.endswith("standard output or pipes; continuing on the CPU")


def test_merging_what_the_gpu_does_not_read(mates, tmp_path, monkeypatch, caplog):
    def irregular(*_):
        raise IrregularInputError("1.fq: record 7 is not valid")

    monkeypatch.setattr(RecordDriver, "_work_on_gpu", irregular)
    out = tmp_path / "out.fq"
    with pytest.raises(UnsuitableError, match=r"1\.fq: record 7 is not valid, which .*GPU"):
        merge_files(*mates, MergeOutputs(out), options=options(auto=False))
    assert not out.exists()
    merge_files(*mates, MergeOutputs(out), options=options(auto=True))
    assert warnings(caplog) == [
        "1.fq: record 7 is not valid, which is not for merging on a GPU; continuing on the CPU"
    ]
    assert out.exists()
    # What is wrong with an input is said in the words of the CPU's reader.
    bad = [write(tmp_path / "3.fq", 20, "@20\nACGT\n+\nIII\n")]
    other = [write(tmp_path / "4.fq", 19, f"@x\n{READ}\n+\n{'I' * len(READ)}\n")]
    short = [write(tmp_path / "5.fq", 18)]
    for auto in (False, True):
        for wrong, words in ((bad, "4 bases but 3"), (other, "record 20"), (short, "5.fq")):
            with pytest.raises(InputError, match=words):
                merge_files(mates[0], wrong, MergeOutputs(out), options=options(auto=auto))


@pytest.mark.parametrize("auto", [False, True])
def test_commands_where_cuda_does_not_answer(tmp_path, mates, caplog, auto):
    """CuPy is there and no GPU: the first call of CUDA fails."""
    run = RunOptions(backend="cuda", may_fall_back=auto)
    outputs = [tmp_path / "c1.fq"], [tmp_path / "c2.fq"]
    if auto:
        statistics = correct_files(mates[0], outputs[0], mates[1], outputs[1], options=run)
        assert statistics.backend == "cpu"
        (line,) = [one for one in warnings(caplog) if "continuing on" in one]
        assert line.endswith("; continuing on the CPU")
    else:
        with pytest.raises(DeviceError):
            correct_files(mates[0], outputs[0], mates[1], outputs[1], options=run)
        assert not outputs[0][0].exists()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    world = make_world(tmp_path_factory.mktemp("world"))
    return build_database(world.references, None, options=RunOptions())


@pytest.mark.parametrize("inputs", ["file", "stdin"])
def test_a_sample_that_fails_on_the_gpu(database, tmp_path, monkeypatch, caplog, inputs):
    """It is classified by the CPU if it can be read again, and so are those that follow."""
    monkeypatch.setattr(Classifier, "_gpu_engine", lambda self: object())
    failed: list[str] = []
    real = Classifier._sample_run

    class Failing:
        totals = None

        def __init__(self, paths: list[str]) -> None:
            self.paths = paths
            self.sampled = ReadSample()

        def run(self, items: object, find: object, group: OutputGroup) -> None:
            with group.outputs(self.paths) as outputs:
                outputs.write(0, b"half of it")
                fail()

    def sample_run(self, sample, outputs):
        if self._gpu is None:
            return real(self, sample, outputs)
        failed.append(sample.name)
        return Failing(list(outputs.named().values()))

    monkeypatch.setattr(Classifier, "_on_gpu", lambda self, sample: nullcontext())
    monkeypatch.setattr(Classifier, "_sample_run", sample_run)
    paths = [write(tmp_path / f"{name}.fq", 20) for name in "ab"]
    if inputs == "stdin":
        paths[0] = "-"
    samples = [
        one_sample([path], [], interleaved=False, name=f"s{i}") for i, path in enumerate(paths)
    ]
    outputs = SampleOutputs(reads=str(tmp_path / "{sample}.tsv"))
    classifier = Classifier(database, options=RunOptions(backend="cuda", may_fall_back=True))
    if inputs == "stdin":
        with pytest.raises(DeviceError):
            classifier.classify(samples, outputs)
        assert not list(tmp_path.glob("*.tsv"))
        return
    done = classifier.classify(samples, outputs)
    assert len(done) == 2
    assert failed == ["s0"]
    tables = [path.read_text() for path in sorted(tmp_path.glob("*.tsv"))]
    assert [len(table.splitlines()) for table in tables] == [21, 21]
    assert "half" not in "".join(tables)
    assert [one for one in warnings(caplog) if "continuing on" in one] == [
        "no memory is left; continuing on the CPU"
    ]
