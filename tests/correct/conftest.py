"""What the tests of the correction share."""

from __future__ import annotations

import pytest

from tests.correct.data import Commands


@pytest.fixture
def ngsgpu(capsys: pytest.CaptureFixture[str]) -> Commands:
    """The command line, in this process."""
    return Commands(capsys)
