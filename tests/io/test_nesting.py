"""JSON that is nested too deeply is refused wherever JSON is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ngsgpu.collectives.plan import read_plan
from ngsgpu.collectives.topology import read_topology
from ngsgpu.errors import InputError
from ngsgpu.report.files import load_json
from ngsgpu.taxonomy.mapping import _rows_of_report

NEST = '{"a":' * 50_000 + "1" + "}" * 50_000


@pytest.mark.parametrize(
    "read",
    [
        read_plan,
        lambda path: read_topology(str(path)),
        lambda path: load_json(path, "write it again"),
        lambda path: list(_rows_of_report(path)),
    ],
)
def test_deep_nesting(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = tmp_path / "x.json"
    path.write_text(NEST)
    with pytest.raises(InputError, match=r"x\.json"):
        read(path)
