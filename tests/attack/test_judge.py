"""The rule that attacks judge by sees what is wrong."""

import pytest

from tests.attack.forks import Ending
from tests.attack.judge import difference, files_below, refusal, success, unharmed

ERROR = "ngsgpu: error: a.fq: the disk is full; free some space\n"


@pytest.mark.parametrize(
    ("ending", "problem"),
    [
        (Ending(2, ERROR, 0.1), ""),
        (Ending(2, "ngsgpu: reading\n" + ERROR, 0.1), ""),
        (Ending(2, "Usage: ngsgpu\n\nError: No such option: -x\n", 0.1), ""),
        (Ending(1, ERROR, 0.1), "exit status 1"),
        (Ending(2, "", 0.1), "not one line of error but 0"),
        (Ending(2, ERROR + ERROR, 0.1), "not one line of error but 2"),
        (Ending(1, "Traceback (most recent call last):\n", 0.1), "traceback"),
        (Ending(2, ERROR.replace("a.fq", "\x1b[31m"), 0.1), "control characters in the message"),
        (Ending(-11, "", 0.1), "ended by signal 11"),
        (Ending(None, "", 60.0), "hung"),
    ],
)
def test_refusals(ending, problem):
    assert refusal(ending) == problem


def test_what_is_left_and_what_is_changed_are_seen(tmp_path):
    for name in ("in", "out", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "r.fq").write_text("reads")
    inputs, outputs = files_below(tmp_path / "in"), files_below(tmp_path / "out")
    assert unharmed(tmp_path, inputs, outputs) == ""
    (tmp_path / "out" / ".c.fq.tmp").write_text("half")
    assert unharmed(tmp_path, inputs, outputs) == "left in out/: new .c.fq.tmp"
    (tmp_path / "in" / "r.fq").write_text("other")
    assert unharmed(tmp_path, inputs, outputs) == "left in in/: changed r.fq"
    assert difference({"a": b""}, {}) == "gone a"


def test_outputs_have_to_be_the_expected_ones(tmp_path):
    for name in ("in", "out", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "c.fq").write_text("whole")
    (tmp_path / "out" / "s.json").write_text("1.2 s")
    expected = {"c.fq": b"whole", "s.json": b"1.3 s"}
    assert success(tmp_path, {}, expected, frozenset({"s.json"})) == ""
    assert success(tmp_path, {}, expected, frozenset()) == "wrong output: changed s.json"
    expected["u.fq"] = b""
    assert success(tmp_path, {}, expected, frozenset({"s.json"})) == "wrong output: gone u.fq"
