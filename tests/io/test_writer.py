"""Outputs appear together, whole, or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pysam
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ngsgpu.errors import OutputError, UsageError
from ngsgpu.io.compress.bgzf import is_bgzf
from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES, EOF_BLOCK
from ngsgpu.io.output import in_memory
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.in_memory import Appender
from ngsgpu.io.output.writer import OutputGroup, OutputSet, check_distinct, write_text_atomically
from ngsgpu.io.text.reader import read_batches
from ngsgpu.run.options import RunOptions
from tests.support.io.records import compression, fastq, reads, records_of


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_all(path: Path, pieces: list[bytes], **options: int) -> bytes:
    with OutputSet([path], **options) as outputs:
        for piece in pieces:
            outputs.write(0, piece)
    return path.read_bytes()


def test_files_appear_together_at_the_end(tmp_path: Path) -> None:
    paths = [tmp_path / "1.fq", tmp_path / "2.fq.gz"]
    with OutputSet([str(paths[0]), paths[1]]) as outputs:
        outputs.write(0, b"first ")
        outputs.write(1, memoryview(b"second"))
        outputs.write(0, np.frombuffer(b"and more", dtype=np.uint8))
        assert not paths[0].exists()
        assert not paths[1].exists()
    assert paths[0].read_bytes() == b"first and more"
    assert gzip.decompress(paths[1].read_bytes()) == b"second"
    assert names(tmp_path) == ["1.fq", "2.fq.gz"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_everything_as_it_was(
    tmp_path: Path, error: type[BaseException]
) -> None:
    old = tmp_path / "old.fq.gz"
    old.write_bytes(b"old")
    with pytest.raises(error), OutputSet([old, tmp_path / "new.fq"], threads=2) as outputs:
        for _ in range(10):
            outputs.write(0, b"x" * 3_000_000)
            outputs.write(1, b"y" * 3_000_000)
        raise error
    assert names(tmp_path) == ["old.fq.gz"]
    assert old.read_bytes() == b"old"


def test_existing_files_are_replaced_and_keep_their_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out.fq"
    path.write_bytes(b"old and longer")
    path.chmod(0o640)
    assert write_all(path, [b"new"]) == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    write_all(tmp_path / "out.fq", [b"new"])
    (tmp_path / "usual").touch()
    assert (tmp_path / "out.fq").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "out.fq", tmp_path / "link.fq"
    for existing in (False, True):
        if not existing:
            link.symlink_to(target)
        write_all(link, [b"data"])
        assert link.is_symlink()
        assert target.read_bytes() == b"data"
        assert names(tmp_path / "elsewhere") == ["out.fq"]


def test_special_files_are_written_directly() -> None:
    with OutputSet(["/dev/null", "/dev/null"]) as outputs:
        outputs.write(0, b"x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_name_of_the_greatest_length(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    assert write_all(path, [b"x"]) == b"x"
    assert len(names(tmp_path)) == 1


pieces_of_data = st.lists(
    st.one_of(
        st.binary(max_size=50),
        st.tuples(st.binary(min_size=1, max_size=9), st.integers(1, 40_000)).map(
            lambda drawn: drawn[0] * drawn[1]
        ),
    ),
    max_size=8,
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pieces_of_data)
def test_gzip_output_holds_what_was_written_however_it_was_cut(
    tmp_path: Path, pieces: list[bytes]
) -> None:
    path = tmp_path / "out.gz"
    written = write_all(path, pieces)
    assert gzip.decompress(written) == b"".join(pieces)
    assert write_all(path, [b"".join(pieces)], threads=4) == written


def test_what_compresses_is_loaded_beside(tmp_path: Path) -> None:
    """Which changes nothing, whether anything is compressed or not."""
    paths = [tmp_path / name for name in ("a.fq", "b.fq.gz", "c.fq.gz", "d.zst")]
    with OutputSet(paths) as outputs:
        outputs.load_packers()
        for index in range(len(paths)):
            outputs.write(index, b"text")
    assert paths[0].read_bytes() == b"text"
    assert [gzip.decompress(path.read_bytes()) for path in paths[1:3]] == [b"text"] * 2


def test_bgzf_output_is_read_by_others(tmp_path: Path) -> None:
    path = tmp_path / "reads.fastq.gz"
    data = fastq(reads(30_000, length=100))
    sizes = [1, 1_000_000, len(data)]
    outputs = {write_all(path, [data[:n], data[n:]], threads=t) for n in sizes for t in (1, 2, 4)}
    assert len(outputs) == 1
    written = path.read_bytes()
    assert written.endswith(EOF_BLOCK)
    assert not written.endswith(EOF_BLOCK * 2)
    assert is_bgzf(written)
    assert len(data) > 3 * 16 * BLOCK_BYTES
    with pysam.BGZFile(str(path), "rb") as file:
        assert file.read(len(data) + 1) == data
    with pysam.FastxFile(str(path)) as file:
        assert sum(1 for _ in file) == 30_000
    assert compression(path) == "bgzf"
    done = subprocess.run(["gzip", "-t", path], capture_output=True, check=False)
    assert done.returncode == 0
    assert records_of(read_batches(path, threads=2, chunk_bytes=100_000))[1] == data


@pytest.mark.parametrize("seed", range(5))
def test_appended_to_a_file_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """By the calling thread and by others that fill pages, in turn."""
    monkeypatch.setattr(in_memory, "_SMALL", 1000)
    monkeypatch.setattr(in_memory, "_FIRST_WINDOW", 5000)
    monkeypatch.setattr(in_memory, "MAPPED_BYTES", 30_000)
    rng = np.random.default_rng(seed)
    pieces = [rng.bytes(int(size)) for size in (*rng.integers(0, 20_000, 100), 0, 1, 90_000)]
    file = AtomicFile(tmp_path / "some.fq")
    with Appender(file) as appender:
        for piece in pieces:
            appender.append(memoryview(piece), behind=bool(rng.integers(2)))
        appender.finish()
    file.commit()
    assert (tmp_path / "some.fq").read_bytes() == b"".join(pieces)


def test_outputs_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AtomicFile, "is_in_memory", True)
    pieces = [np.random.default_rng(1).bytes(size) for size in (3 << 20, 300_000, 0, 1, 9 << 20)]
    assert write_all(tmp_path / "some.fq", 5 * pieces, threads=8) == b"".join(5 * pieces)
    assert write_all(tmp_path / "none.fq", [], threads=8) == b""
    with pytest.raises(RuntimeError), OutputSet([tmp_path / "some.fq"], threads=8) as outputs:
        for piece in pieces:
            outputs.write(0, piece)
        raise RuntimeError
    assert (tmp_path / "some.fq").read_bytes() == b"".join(5 * pieces)
    assert names(tmp_path) == ["none.fq", "some.fq"]


def test_a_window_in_memory_may_be_too_large(tmp_path: Path) -> None:
    """Where there is room for the bytes, but not for what may come next; then for neither."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system can only be mounted by root")
    try:
        file = AtomicFile(tmp_path / "some.fq")
        data = np.random.default_rng(1).bytes(1 << 20)
        with Appender(file) as appender:
            for _ in range(2):
                appender.append(memoryview(data), behind=True)
            with pytest.raises(OutputError, match="the disk is full"):
                appender.append(memoryview(data + data), behind=True)
            appender.finish()
        file.commit()
        assert (tmp_path / "some.fq").read_bytes() == 2 * data
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("threads", [1, 8])
def test_what_is_written_at_places_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, in_memory: bool
) -> None:
    """The writer of an output has nothing to end that it did not write."""
    monkeypatch.setattr(AtomicFile, "is_in_memory", in_memory)
    with OutputSet([tmp_path / "some.fq", tmp_path / "other.fq"], threads=threads) as outputs:
        file = outputs.file_for_offsets(0)
        assert file is not None
        file.write_at(b"one two", 0)
        outputs.write(1, b"three")
    assert (tmp_path / "some.fq").read_bytes() == b"one two"
    assert (tmp_path / "other.fq").read_bytes() == b"three"


@pytest.mark.parametrize("level", range(1, 13))
def test_compression_levels(tmp_path: Path, level: int) -> None:
    data = fastq(reads(1000)) + np.random.default_rng(level).bytes(3 * BLOCK_BYTES)
    written = write_all(tmp_path / "out.bgz", [data], compression_level=level)
    assert gzip.decompress(written) == data


def test_empty_outputs(tmp_path: Path) -> None:
    assert write_all(tmp_path / "out.fq", []) == b""
    assert write_all(tmp_path / "out.fq.gz", []) == EOF_BLOCK


@pytest.mark.parametrize("level", [0, 13])
def test_compression_levels_that_do_not_exist(tmp_path: Path, level: int) -> None:
    with pytest.raises(UsageError, match="choose one from 1 to 12"):
        OutputSet([tmp_path / "out.gz"], compression_level=level)
    with pytest.raises(UsageError, match="`compress_level` must be from 1 to 12"):
        RunOptions(compress_level=level)
    assert names(tmp_path) == []


def refused(paths: list[Path | str]) -> str:
    with pytest.raises(OutputError) as caught:
        OutputSet(paths)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{paths[-1]}: ")
    assert "; " in message
    return message


def test_targets_that_cannot_be_written_are_refused_at_once(tmp_path: Path) -> None:
    good = tmp_path / "good.fq"
    (tmp_path / "file").touch()
    assert "directory does not exist" in refused([good, tmp_path / "none" / "out.fq"])
    (tmp_path / "folder").mkdir()
    assert "is a directory" in refused([good, tmp_path / "folder"])
    assert "is a directory" in refused([good, f"{tmp_path}/new/"])
    assert "is not a directory" in refused([good, tmp_path / "file" / "out.fq"])
    assert "name is too long" in refused([good, tmp_path / ("x" * 256)])
    assert names(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize("what", ["directory", "file"])
def test_no_permission(what: str) -> None:
    me = os.geteuid()
    # Not tmp_path, whose parents another user could not enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "out.fq"
        path.touch()
        (folder if what == "directory" else path).chmod(0o555)
        if me == 0:
            os.chown(folder, 65534, -1)
            os.chown(path, 65534, -1)
        try:
            if me == 0:
                os.seteuid(65534)
            message = refused([path])
        finally:
            os.seteuid(me)
        assert ("no permission" if what == "directory" else "write-protected") in message
        assert names(folder) == ["out.fq"]
        folder.chmod(0o700)


def test_the_same_target_twice(tmp_path: Path) -> None:
    path = tmp_path / "out.fq"
    with pytest.raises(UsageError, match="output twice"):
        OutputSet([path, tmp_path / "." / "out.fq"])
    with OutputSet([path]), pytest.raises(UsageError, match="is already being written"):
        OutputSet([path])
    assert names(tmp_path) == ["out.fq"]


@pytest.mark.parametrize("compressed", [False, True])
def test_full_device(tmp_path: Path, compressed: bool) -> None:
    link = tmp_path / ("full.gz" if compressed else "full")
    link.symlink_to("/dev/full")
    with (
        pytest.raises(OutputError, match="the disk is full; free some space") as caught,
        OutputSet([tmp_path / "other.fq", link]) as outputs,
    ):
        for _ in range(100):
            outputs.write(0, b"x" * 1000)
            outputs.write(1, np.random.default_rng(1).bytes(100_000))
    assert str(link) in str(caught.value)
    assert names(tmp_path) == [link.name]


FILL = """
import resource, sys
from ngsgpu.errors import OutputError
from ngsgpu.io.output.writer import OutputSet, write_text_atomically
folder, limit, threads = sys.argv[1], *map(int, sys.argv[2:])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with OutputSet([folder + "/1.fq", folder + "/2.fq.gz"], threads=threads) as outputs:
        for i in range(300):
            outputs.write(0, b"ACGT" * 25_000)
            outputs.write(1, b"ACGT" * 10)
except OutputError as error:
    print(error)
try:
    write_text_atomically(folder + "/stats.json", "x" * 30_000_000)
except OutputError as error:
    print(error)
"""


def fill(folder: Path, limit: int, threads: int = 1) -> list[str]:
    command = [sys.executable, "-c", FILL, str(folder), str(limit), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_file_that_grows_too_large(tmp_path: Path) -> None:
    (tmp_path / "1.fq").write_text("old")
    messages = fill(tmp_path, 2_000_000)
    assert [message.split(";")[0] for message in messages] == [
        f"{tmp_path}/{name}: the file grew beyond the largest size allowed"
        for name in ("1.fq", "stats.json")
    ]
    assert names(tmp_path) == ["1.fq"]
    assert (tmp_path / "1.fq").read_text() == "old"


@pytest.mark.parametrize("threads", [1, 8])
def test_full_disk(tmp_path: Path, threads: int) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system can only be mounted by root")
    try:
        (tmp_path / "1.fq").write_text("old")
        messages = fill(tmp_path, 0, threads)
        assert [m.split(": ", 1)[1] for m in messages] == [
            "the disk is full; free some space or write elsewhere"
        ] * 2
        assert names(tmp_path) == ["1.fq"]
        assert (tmp_path / "1.fq").read_text() == "old"
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_rename_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "out.fq"
    with pytest.raises(OutputError, match="is a directory"), OutputSet([path]) as outputs:
        outputs.write(0, b"x")
        path.mkdir()
    assert names(tmp_path) == ["out.fq"]


def test_a_rename_that_fails_after_others_brings_the_old_files_back(tmp_path: Path) -> None:
    old, new, last = (tmp_path / name for name in ("old.fq", "new.fq", "last.fq"))
    old.write_bytes(b"old")
    inode = old.stat().st_ino
    with (
        pytest.raises(OutputError, match=r"last\.fq: this is a directory"),
        OutputSet([old, new, last]) as outputs,
    ):
        outputs.write(0, b"written")
        last.mkdir()
    assert names(tmp_path) == ["last.fq", "old.fq"]
    assert (old.read_bytes(), old.stat().st_ino) == (b"old", inode)


def test_sets_of_outputs_that_are_committed_together(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    with pytest.raises(OutputError, match="the disk is full"), OutputGroup() as group:
        with group.outputs([one]) as outputs:
            outputs.write(0, b"1")
        with group.outputs([two, "/dev/full"]) as outputs:
            outputs.write(1, b"2")
    assert names(tmp_path) == []
    with OutputGroup() as group:
        for path in (one, two):
            with group.outputs([path]) as outputs:
                outputs.write(0, b"x")
            assert not path.exists()
    assert names(tmp_path) == ["1", "2"]


MANY = """
import sys
from ngsgpu.io.output.writer import OutputGroup
with OutputGroup() as group:
    for number in range(100):
        with group.outputs([f"{sys.argv[1]}/{number}"]) as outputs:
            outputs.write(0, b"x")
"""


def test_more_files_than_may_usually_be_open(tmp_path: Path) -> None:
    command = 'ulimit -Sn 50; "$@"'
    program = [sys.executable, "-c", MANY, tmp_path]
    subprocess.run(["bash", "-c", command, "", *program], check=True)
    assert len(names(tmp_path)) == 100


WAIT = """
import sys, time
from ngsgpu.io.output.writer import OutputSet
with OutputSet(sys.argv[1:], threads=2) as outputs:
    for i in range(20):
        outputs.write(0, b"x" * 1_000_000)
        outputs.write(1, b"y" * 1_000_000)
    print("ready", flush=True)
    time.sleep(600)
"""


def test_kill_leaves_nothing_under_the_name_and_the_next_run_cleans_up(tmp_path: Path) -> None:
    paths = [tmp_path / "1.fq", tmp_path / "2.fq.gz"]
    paths[0].write_text("old")
    command = [sys.executable, "-c", WAIT, *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    assert paths[0].read_text() == "old"
    assert not paths[1].exists()
    left = [name for name in names(tmp_path) if name not in ("1.fq", "2.fq.gz")]
    assert [name.rpartition("-")[0] for name in left] == [".1.fq.ngsgpu", ".2.fq.gz.ngsgpu"]
    with OutputSet(paths) as outputs:
        outputs.write(0, b"new")
        outputs.write(1, b"new")
    assert names(tmp_path) == ["1.fq", "2.fq.gz"]
    assert paths[0].read_text() == "new"


def test_temporary_files_of_running_processes_are_left_alone(tmp_path: Path) -> None:
    paths = [tmp_path / "1.fq", tmp_path / "2.fq.gz"]
    strangers = [".1.fq.ngsgpu-x.tmp", "1.fq.ngsgpu-1.tmp", ".1.fq.gz.ngsgpu-999999999.tmp"]
    for name in strangers:
        (tmp_path / name).touch()
    command = [sys.executable, "-c", WAIT, *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        theirs = set(names(tmp_path)) - set(strangers)
        assert len(theirs) == 2
        write_all(paths[0], [b"other"])
        assert theirs <= set(names(tmp_path))
        process.kill()
    assert set(strangers) <= set(names(tmp_path))


TO_STDOUT = """
import sys
from ngsgpu.errors import OutputError
from ngsgpu.io.output.writer import OutputSet
try:
    with OutputSet(["-", sys.argv[1]]) as outputs:
        for i in range(200):
            outputs.write(0, b"x" * 99_999 + b"\\n")
            outputs.write(1, b"y")
except OutputError as error:
    sys.exit(str(error))
"""


def test_standard_output(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TO_STDOUT, str(tmp_path / "2.fq")]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == (b"x" * 99_999 + b"\n") * 200
    assert names(tmp_path) == ["2.fq"]


def test_standard_output_that_is_closed_early(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TO_STDOUT, str(tmp_path / "2.fq")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        message = process.stderr.read().decode()
    assert process.returncode == 1
    assert message.startswith("standard output: the program that reads the output has ended; ")
    assert message.count("\n") == 1
    assert names(tmp_path) == []


def test_text_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "stats.json"
    write_text_atomically(path, "é{}\n")
    assert path.read_bytes() == "é{}\n".encode()

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(OutputError, match="the disk is full"):
        write_text_atomically(path, "new")
    monkeypatch.undo()
    assert path.read_bytes() == "é{}\n".encode()
    assert names(tmp_path) == ["stats.json"]


def test_inputs_and_outputs_have_to_be_distinct(tmp_path: Path) -> None:
    one, two, new = tmp_path / "1.fq", tmp_path / "2.fq", tmp_path / "new.fq"
    one.touch()
    two.touch()
    (tmp_path / "link.fq").symlink_to(one)
    (tmp_path / "hard.fq").hardlink_to(two)
    check_distinct([one, two, "-"], [new, "-"])
    check_distinct([one], ["/dev/null", "/dev/null"])
    cases: list[tuple[list[object], list[object], str]] = [
        ([one], [one], "input and output"),
        ([one], [tmp_path / "link.fq"], "input and output .also as"),
        ([two], [tmp_path / "hard.fq"], "input and output"),
        ([one, one], [], "input twice"),
        ([], [new, str(new)], "output twice"),
        ([], ["-", "-"], "output twice"),
        (["-", "-"], [], "input twice"),
        ([], [tmp_path / "folder" / "x.fq", tmp_path / "folder"], "lies in the output"),
    ]
    for inputs, outputs, message in cases:
        with pytest.raises(UsageError, match=message):
            check_distinct(inputs, outputs)  # type: ignore[arg-type]
