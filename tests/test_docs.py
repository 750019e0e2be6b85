"""The documentation keeps up with the code: examples run, options exist, links lead somewhere."""

import doctest
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import ngsgpu
from ngsgpu import correct, errors, evaluate, extend, merge, minhash, readset
from ngsgpu.cli import app
from ngsgpu.cli.adapter import Group, commands_below
from ngsgpu.io.text import batch, pairs, reader
from ngsgpu.readset import kmers
from scripts import site_pages, task_outputs
from tests.support.copies import programs

ROOT = Path(__file__).parents[1]
TOP_PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
COMMANDS = dict(commands_below(app))
PAGES = [*TOP_PAGES, *sorted((ROOT / "docs").glob("*.md"))]


def by_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        linked = page.parent / name if name else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES[len(TOP_PAGES) :], ids=by_name)
def test_headings_have_one_anchor_everywhere(page):
    """GitHub and the versions of Markdown differ in what they make of several hyphens in a row."""
    assert [anchor for anchor in anchors(page) if "--" in anchor or anchor[:1] == "-"] == []


def code_blocks(text: str, languages: tuple[str, ...]) -> list[str]:
    """Contents of the fenced blocks in one of some languages."""
    parts = re.split(r"^```(.*)\n", text, flags=re.MULTILINE)
    # Fences open and close in turn, each with what is written behind it.
    return [
        content
        for language, content in zip(parts[1::4], parts[2::4], strict=False)
        if language in languages
    ]


def commands(page: Path) -> list[list[str]]:
    """The words of each ngsgpu command in the page's code blocks."""
    found = []
    for block in code_blocks(page.read_text(), ("", "bash", "sh", "console")):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.strip().removeprefix("$ ").removeprefix(".venv/bin/")
            if not line.startswith("ngsgpu "):
                continue
            words = shlex.split(line, comments=True)
            # Behind -- stands another program's command.
            end = next((i for i, word in enumerate(words) if word in ("--", *"|<>", "&&")), None)
            found.append(words[1:end])
    return found


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_commands_and_options_exist(page):
    for words in commands(page):
        command, name, rest = app, "", words
        while rest and isinstance(command, Group) and not rest[0].startswith("-"):
            name = f"{name} {rest[0]}".strip()
            assert name in COMMANDS, f"ngsgpu {' '.join(words)}"
            command, rest = COMMANDS[name], rest[1:]
        known = {name for option in command.params for name in option.opts}
        known |= {"-h", "--help"}
        for word in rest:
            if word.startswith("-") and word != "-":
                assert word.partition("=")[0] in known, f"ngsgpu {' '.join(words)}: {word}"


# Options of Snakemake before a file or folder that has to be there.
NAMING = {"--profile", "--workflow-profile", "--configfile", "--snakefile", "--directory"}


def shell_lines(page: Path) -> list[list[str]]:
    """The words of each line in the page's blocks, fenced or indented."""
    text = page.read_text().replace("\\\n", " ")
    fenced = "".join(code_blocks(text, ("", "bash", "sh", "console")))
    unfenced = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    indented = re.findall(r"^    (?! ).+", unfenced, re.MULTILINE)
    found = []
    for line in [*fenced.splitlines(), *(line.strip() for line in indented)]:
        try:
            found.append(shlex.split(line.strip().removeprefix("$ "), comments=True))
        except ValueError:
            continue
    return [words for words in found if words]


def files_missing(lines: list[list[str]]) -> list[str]:
    """Files of the repository that commands name, and profiles and the like, that are not there."""
    made_here = {"results", "logs", "resources", ".venv"}
    top = {path.name for path in ROOT.iterdir() if path.is_dir()} - made_here
    made, missing = set(), []
    for words in lines:
        if words[0] == "cp":
            made.add(words[-1])
        named = [
            word
            for word in words
            if word.partition("/")[0] in top and "/" in word and ":" not in word
        ]
        if "snakemake" in words:
            named += [own for word, own in itertools.pairwise(words) if word in NAMING]
        missing += [word for word in named if word not in made and not (ROOT / word).exists()]
    return missing


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_files_that_commands_name_exist(page):
    assert not files_missing(shell_lines(page))


def test_the_examples_above_find_something():
    assert len(commands(ROOT / "README.md")) >= 5
    assert files_missing([shlex.split("snakemake --executor slurm --workflow-profile my-cluster")])
    assert files_missing([shlex.split("scripts/none --full")]) == ["scripts/none"]
    assert ["scripts/slurm-check", "--full"] in shell_lines(ROOT / "docs" / "clusters.md")


def test_first_screen():
    """What it is, the two commands, the picture, how to run it on one's own reads."""
    screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:32])
    for needed in ("make demo", "make test", "docs/images/report.png", "ngsgpu correct -i"):
        assert needed in screen
    assert "snakemake --use-conda --resources gpu=8" in screen
    # The catalogue of Snakemake workflows looks for these two words.
    assert {"snakemake", "workflow"} <= set(re.findall(r"\w+", screen.lower()))


def menu_pages(entry) -> list[str]:
    """The pages below an entry of the site's menu."""
    if isinstance(entry, str):
        return [entry]
    below = entry if isinstance(entry, list) else entry.values()
    return [page for part in below for page in menu_pages(part)]


def test_every_page_is_in_the_menu():
    listed = menu_pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    docs = ROOT / "docs"
    pages = [str(page.relative_to(docs)) for page in docs.rglob("*.md")]
    assert sorted(listed) == sorted([*pages, *site_pages.PAGES])


def test_pages_are_there_as_markdown(tmp_path):
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    site_pages.on_post_build(config | {"site_dir": tmp_path, "docs_dir": ROOT / "docs"})
    listed = re.findall(r"^- \[.+\]\((.+)\)$", (tmp_path / "llms.txt").read_text(), re.MULTILINE)
    assert listed == menu_pages(config["nav"])
    assert all((tmp_path / page).read_text().startswith("# ") for page in listed)


def test_pages_from_elsewhere_keep_their_links():
    assert "](reproduction-configs.md)" in site_pages.as_page("config/README.md")
    assert "](install.md#containers)" in site_pages.as_page("nextflow/README.md")
    assert "those of benchmarks/peers." in site_pages.as_page("config/reproduce/README.md")


def test_the_site_builds(tmp_path):
    """Strictly: links, anchors, images and menu."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    run = subprocess.run(
        [*command, "--site-dir", tmp_path / "site"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "site/first-study/index.html").exists()
    assert (tmp_path / "site/images/rooms.svg").exists()


@pytest.mark.parametrize(
    "script",
    [
        "benchmark_tables.py",
        "cli_options.py",
        "draw_charts.py",
        "gpu_results.py",
    ],
)
def test_generated_parts_are_current(script):
    """The options of all commands, and the tables of benchmark results."""
    command = [sys.executable, ROOT / "scripts" / script, "--check"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_outputs_of_tasks_are_current():
    page = task_outputs.PAGE.read_text()
    assert task_outputs.made(page, programs()) == page


def test_options_of_all_commands_are_listed():
    page = (ROOT / "docs/options.md").read_text()
    sections = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", page, flags=re.MULTILINE))

    for name, command in COMMANDS.items():
        for option in command.params:
            if option.param_type_name == "option":
                assert max(option.opts, key=len) in sections[f"ngsgpu {name}"], (name, option.opts)
    assert len(sections) > 15


def test_code_within_a_help_stays_whole():
    page = (ROOT / "docs/options.md").read_text()
    assert "with `ngsgpu db build -d DIR --only-partition K`. With `--update`," in page


def names_in(page: str, before: str) -> set[str]:
    """What looks like a function or a class in the prose of a page's section."""
    text = (ROOT / "docs" / page).read_text().partition(before)[2]
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return set(re.findall(r"`([a-z]+_[a-z_]+|[A-Z][a-z]+[A-Z]\w+|probe)`", prose))


def test_what_the_pages_name_of_packages_can_be_imported():
    ours = [correct, merge, extend, evaluate, minhash, readset, kmers, pairs, reader, errors]
    known = {name for module in ours for name in dir(module)} | set(vars(batch.RecordBatch))
    named = names_in("python-api.md", "## Files") | names_in("formats.md", "## From Python")
    assert {"CorrectionPlan", "plan_files", "read_batches"} <= named
    assert named - known <= {"exit_status", "from_sequences"}


def test_options_of_correct_are_described():
    page = (ROOT / "docs" / "correct.md").read_text()
    for option in COMMANDS["correct"].params:
        longest = max(option.opts, key=len)
        if longest not in ("--in1", "--in2", "--out1", "--out2", "--help"):
            assert longest in page, longest


def test_options_of_merge_are_described():
    page = (ROOT / "docs" / "merge.md").read_text()
    for option in COMMANDS["merge"].params:
        longest = max(option.opts, key=len)
        assert longest in page or longest == "--help", longest


def test_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == ngsgpu.__version__
