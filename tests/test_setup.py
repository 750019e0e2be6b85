"""Set-up on machines where things are in the way: other programs installing, spaces in paths."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "setup.sh"
APT_GET = """#!/bin/sh
echo "$*" >> "$CALLS"
[ "$(wc -l < "$CALLS")" -gt {failures} ] && exit 0
echo "E: {error}" >&2
exit 100
"""
LISTS = "Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"
DPKG = "Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr)"


def run(script: Path, code: str, tmp_path: Path, **programs: str) -> subprocess.CompletedProcess:
    """Run code after set-up's functions, with stand-ins for programs first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in ({"id": "#!/bin/sh\necho 0\n", "sleep": "#!/bin/sh\n"} | programs).items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return subprocess.run(
        ["bash", "-c", f'source "$1"; {code}', "bash", str(script)],
        env=os.environ
        | {"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("error", [LISTS, DPKG])
def test_it_waits_while_another_program_installs(tmp_path, error):
    apt_get = APT_GET.format(failures=3, error=error)
    done = run(SCRIPT, "apt_install flash", tmp_path, **{"apt-get": apt_get})
    assert done.returncode == 0, done.stderr
    update, install = "-q update", "-q install -y --no-install-recommends flash"
    assert (tmp_path / "calls").read_text().splitlines() == [*[update] * 4, install]
    assert done.stderr.count("package manager is busy; waiting up to 15 minutes") == 1
    assert error in done.stderr


def test_its_patience_ends(tmp_path):
    apt_get = APT_GET.format(failures=99, error=DPKG)
    done = run(SCRIPT, "PATIENCE=0; apt_install flash", tmp_path, **{"apt-get": apt_get})
    assert done.returncode == 100
    assert "Waited 0 minutes" in done.stderr
    assert DPKG in done.stderr


def test_other_failures_are_not_waited_for(tmp_path):
    apt_get = APT_GET.format(failures=1, error="Unable to locate package flash")
    done = run(SCRIPT, "APT_UPDATED=yes; apt_install flash", tmp_path, **{"apt-get": apt_get})
    assert done.returncode == 100
    assert "Unable to locate package flash" in done.stderr
    assert "busy" not in done.stderr


def test_it_installs_a_python_that_is_new_enough(tmp_path):
    """Ubuntu 22.04 has Python 3.11 beside its python3, 3.10."""
    old = {f"python3{minor}": "#!/bin/sh\nexit 1\n" for minor in ("", ".12", ".13", ".14")}
    new = '#!/bin/sh\ngrep -q python3.11-venv "$CALLS"\n'
    apt_get = APT_GET.format(failures=0, error="")
    programs = {**old, "python3.11": new, "apt-get": apt_get}
    done = run(SCRIPT, "conda_program() { :; }; find_python", tmp_path, **programs)
    assert done.stdout == "python3.11\n", done.stderr


@pytest.mark.parametrize("name", ["checkout", "a b [c]"])
def test_tools_run_from_any_path(tmp_path, name):
    """The command is in the checkout; what it runs is too, but for paths that QUAST refuses."""
    script = tmp_path / name / "scripts" / "setup.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(SCRIPT, script)
    code = (
        f"XDG_CACHE_HOME={tmp_path}/cache; source {str(script)!r}; mkdir -p $TOOLS/quast/bin;"
        'printf \'#!/bin/sh\\necho by "$0" "$@"\' | tee $TOOLS/quast/bin/{python,quast.py};'
        "chmod +x $TOOLS/quast/bin/*; wrap quast.py quast/bin/quast.py quast/bin/python;"
        "wrap alone quast/bin/quast.py"
    ).replace("$TOOLS", '"$TOOLS"')
    done = run(script, code, tmp_path)
    assert done.returncode == 0, done.stderr
    own = script.parents[1] / ".tools"
    tools = own if name == "checkout" else tmp_path / "cache" / "ngsgpu-tools"
    assert " " not in str(tools)
    program = f"{tools}/quast/bin/quast.py"
    for command, said in (
        ("quast.py", f"by {tools}/quast/bin/python {program} x y"),
        ("alone", f"by {program} x y"),
    ):
        answer = subprocess.run([own / "bin" / command, "x y"], capture_output=True, text=True)
        assert answer.stdout.strip() == said
