"""Names are replaced by numbers wherever the bytes are cut."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from ngsgpu.run.numbered import NumberedOutputs


class Kept:
    """Outputs in memory."""

    def __init__(self) -> None:
        self.texts = [bytearray(), bytearray()]

    def write(self, index: int, data: Any) -> None:
        self.texts[index] += bytes(data)

    def all_for_offsets(self) -> list[Any]:
        return [object(), object()]


def numbered(text: bytes, cuts: list[int], mates: int = 1) -> bytes:
    kept = Kept()
    outputs = NumberedOutputs(kept, mates)  # type: ignore[arg-type]
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        outputs.write(1, text[begin:end])
    assert kept.texts[0] == b""
    assert outputs.all_for_offsets() == [None, None]
    return bytes(kept.texts[1])


@pytest.mark.parametrize("seed", range(40))
def test_random_records(seed: int) -> None:
    rng = random.Random(seed)
    end = rng.choice([b"\n", b"\r\n"])
    mates = rng.choice([1, 2])
    is_fasta = rng.random() < 0.4
    text, expected = b"", b""
    for record in range(rng.choice([0, 1, 5, 1200])):
        name = bytes(rng.choices(b"@>+ab 12/", k=rng.randint(0, 30)))
        number = b"%d" % (record // mates + 1)
        bases = bytes(rng.choices(b"ACGT", k=rng.randint(0, 30)))
        if is_fasta:
            lines = end.join([bases, bases]) + end
            text += b">" + name + end + lines
            expected += b">" + number + end + lines
        else:
            qualities = bytes(rng.choices(b"@+>I!", k=len(bases)))
            again = rng.choice([b"", name])
            text += end.join([b"@" + name, bases, b"+" + again, qualities]) + end
            expected += end.join([b"@" + number, bases, b"+", qualities]) + end
    few = min(len(text), rng.choice([0, 1, 300]))
    cuts = sorted(rng.choices(range(len(text) + 1), k=few))
    assert numbered(text, cuts, mates) == expected


def test_large_numbers() -> None:
    text = b">x\nA\n" * 100_001
    names = re.findall(rb">(\d+)\n", numbered(text, []))
    assert list(map(int, names)) == [*range(1, 100_002)]
