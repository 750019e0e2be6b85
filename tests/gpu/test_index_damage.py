"""Searches in rubbish end on a GPU as they do on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from ngsgpu.errors import InputError
from ngsgpu.suffix import QueryParameters
from ngsgpu.suffix.places import SequencePlaces
from ngsgpu.suffix.query.cpu import find_places
from ngsgpu.suffix.query.run import Searcher
from tests.support.suffix.damage import reads, rubbish

pytest.importorskip("cupy")


@pytest.mark.parametrize("kind", ["zeros", "random", "bases"])
def test_rubbish(kind: str) -> None:
    from ngsgpu.suffix.query.gpu import DeviceIndex

    source = np.random.default_rng(len(kind))
    for size in (1, 31, 128, 129, 640, 100_000):
        index = rubbish(source, size, kind)
        places = SequencePlaces([b"a"], np.array([0, size // 2]))
        here = Searcher(index, places, QueryParameters(1))
        there = Searcher(index, places, QueryParameters(1), DeviceIndex(index))
        codes, starts = reads(source)
        found = []
        for search in (here, there):
            try:
                found.append(search.matches(codes, starts))
            except InputError:
                found.append(None)
        if found[0] is None or found[1] is None:
            assert found[0] is found[1] is None
        else:
            assert np.array_equal(*found)
        rows = source.integers(0, size + 1, 300)
        own = np.empty(300, dtype=np.int64)
        find_places(index.words, index.primary, index.totals, index.sample, rows, own)
        assert there.there is not None
        assert np.array_equal(there.there.places(rows), own)
