"""Kernels that are compiled before they are needed, without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngsgpu import compiled
from ngsgpu.cli import main
from ngsgpu.device.cuda import precompile
from ngsgpu.device.cuda.compiler import Target, known_architectures
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.errors import UsageError

MODULE = KernelModule("ngsgpu.readset")


@pytest.fixture(autouse=True)
def only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel file, and folders of its own."""
    monkeypatch.setattr(precompile, "all_modules", lambda: [MODULE])
    monkeypatch.setattr(compiled, "PREBUILT", tmp_path / "prebuilt")
    monkeypatch.setenv("NGSGPU_CACHE_DIR", str(tmp_path / "cache"))


def test_for_the_installation(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stale = tmp_path / "prebuilt" / f"gpu.{MODULE.name}-sm_90-{'0' * 32}.xz"
    stale.parent.mkdir()
    stale.touch()
    command = ["compile", "--gpu", "--shared", "--arch", "sm_80", "--arch", "sm_90", "-t", "2"]
    assert main(command) == 0
    assert capfd.readouterr().err == "2 kernel files for sm_80, sm_90 are compiled\n"
    for architecture in ("sm_80", "sm_90"):
        assert MODULE.prebuilt(Target(architecture)) == MODULE.compile_for(architecture)
    assert not stale.exists()
    assert len(list((tmp_path / "prebuilt").iterdir())) == 2
    assert not (tmp_path / "cache").exists()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "prebuilt").iterdir()}
    assert main([*command, "-q"]) == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert capfd.readouterr().err == ""


def test_for_the_user(tmp_path: Path) -> None:
    assert main(["compile", "--gpu", "--arch", "sm_90", "-q"]) == 0
    (path,) = (tmp_path / "cache" / "kernels").iterdir()
    assert compiled.read(path) == MODULE.image(Target("sm_90"))
    assert not (tmp_path / "prebuilt").exists()


def test_an_installation_that_may_not_be_written_to(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prebuilt").write_text("a file")
    assert main(["compile", "--gpu", "--shared", "--arch", "sm_90"]) == 1
    said = capfd.readouterr().err
    assert said.startswith(f"ngsgpu: error: {tmp_path}/prebuilt: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cpu", "--gpu"], "exclude each other"),
        (["--all", "--arch", "sm_90"], "exclude each other"),
        (["--cpu", "--all"], "leave out --cpu"),
        (["--gpu", "--arch", "90"], "'90' is not a CUDA architecture such as sm_90"),
        (["--gpu", "--arch", "sm_20"], "this CUDA compiler does not know sm_20; it knows sm_"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", *arguments]) == 2
    assert message in capfd.readouterr().err


def test_common_architectures_are_known() -> None:
    known = known_architectures()
    common = [target.architecture for target in precompile.common_targets()]
    assert {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90"} <= set(common)
    assert {target.architecture for target in precompile.all_targets()} >= set(common)
    assert len(precompile.all_targets()) == len(known)
    with pytest.raises(UsageError, match="is not a CUDA architecture"):
        precompile.checked_targets(["turing"])
