"""Fixtures of the tests of merging."""

from __future__ import annotations

import pytest

from tests.correct.data import Commands


@pytest.fixture
def ngsgpu(capsys: pytest.CaptureFixture[str]) -> Commands:
    """Runs commands in this process."""
    return Commands(capsys)
