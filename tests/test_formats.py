"""Files of formats that are read again, as released versions wrote them, are read as then."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from benchmarks.harness.archives import unpack
from ngsgpu._version import __version__
from scripts.format_corpus import CORPUS, READING, run

RELEASES = sorted(CORPUS.glob("*.tar.gz"))


def test_this_version_has_kept_its_files() -> None:
    """A changed format keeps the old files, and a version gets new ones before its release."""
    assert CORPUS / f"{__version__}.tar.gz" in RELEASES


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("archive", RELEASES, ids=lambda path: path.name)
def test_reads_what_a_release_wrote(archive: Path, name: str, tmp_path: Path) -> None:
    with tarfile.open(archive) as kept:
        unpack(kept, tmp_path)
    expected = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    run(READING[name], tmp_path)
    assert (tmp_path / name).read_bytes() == expected
