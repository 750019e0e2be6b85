"""Numbers are read by one function, wherever users write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngsgpu.declared.numbers import decimal_number, is_digits, whole_number
from ngsgpu.device.memory import parse_size
from ngsgpu.errors import InputError, UsageError
from ngsgpu.evaluate.classification.files import read_composition
from ngsgpu.taxonomy.tree import stated_taxid
from tests.support.commands import Commands

ODD = ["1_000", "\u0663", "\uff11\uff12", "\u00b2", "0x10", "1,000", "", "-", "1e", "--1", "1 0"]


@pytest.mark.parametrize("text", ODD)
def test_what_is_no_number(text: str) -> None:
    for read in (whole_number, decimal_number, stated_taxid):
        with pytest.raises(ValueError, match="is not a number"):
            read(text)
    with pytest.raises(UsageError):
        parse_size(f"{text}G")
    assert not is_digits(text)


def test_numbers() -> None:
    assert [whole_number(text) for text in ("0", " -12\n", "+7")] == [0, -12, 7]
    assert [decimal_number(text) for text in ("1", ".5", "2.", "1e-3")] == [1, 0.5, 2, 0.001]
    assert parse_size("1.5k") == 1536
    with pytest.raises(UsageError, match="more than any machine has"):
        parse_size("9" * 309)


@pytest.mark.parametrize("text", ["1_0", "\u0663", "\uff13"])
def test_command_line_and_tables(tmp_path: Path, ngsgpu: Commands, text: str) -> None:
    (tmp_path / "r.fq").write_text("@r\nACGT\n+\nIIII\n")
    run = ("trim", "-i", tmp_path / "r.fq", "-o", tmp_path / "o.fq")
    for option in (["-w", text], ["--average_qual", text], ["--compression", text]):
        assert ngsgpu(*run, *option).status == 2, option
    assert ngsgpu("correct", *run[1:], "--memory", f"{text}G").status == 2
    assert not (tmp_path / "o.fq").exists()
    (tmp_path / "shares.tsv").write_text(f"taxid\tshare\n562\t0.5\n{text}\t0.5\n")
    with pytest.raises(InputError):
        read_composition(tmp_path / "shares.tsv")
