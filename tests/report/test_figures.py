"""The report's figures are those of the raw files, computed again here by other means.

Nothing here uses the report's own readers, tables or formats: raw files are read as JSON and text,
and the page and its CSV files are read as anyone would.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

from ngsgpu.cli import main
from tests.support.figures import Kept, leave_empty
from tests.support.report import Page
from tests.support.report_studies import write_study

KINDS: Final = {
    1: ("paired",),
    3: ("single", "empty", "failed"),
    30: ("paired",) * 5 + ("empty", "failed", "single", "host", "short") + ("bare",) * 9
    + ("single",) * 2 + ("short",) * 2 + ("paired",) * 7,
}  # fmt: skip


class Raw:
    """The raw files of a sample."""

    def __init__(self, folder: Path, entry: dict[str, Any]) -> None:
        self.folder, self.name, self.files = folder, entry["name"], entry["files"]

    def text(self, *keys: str) -> str | None:
        place: Any = self.files
        for key in keys:
            place = place.get(key) if isinstance(place, dict) else None
        is_result = place and not any(
            (self.folder / f"{place}.{kind}").exists() for kind in ("failed", "skipped")
        )
        return (self.folder / place).read_text() if is_result else None

    def json(self, *keys: str) -> Any:
        text = self.text(*keys)
        return None if text is None else json.loads(text)

    def sequenced(self, what: str) -> int | None:
        """Reads or bases before trimming and depletion."""
        if (trim := self.json("trim")) is not None:
            return trim["summary"]["before_filtering"][f"total_{what}"]
        host = self.json("deplete")
        return host and host[what]["total"]

    def trimmed_share(self) -> float | None:
        trim, total = self.json("trim"), self.sequenced("reads")
        if trim is None or not total:
            return None
        return 100 * trim.get("adapter_cutting", {}).get("adapter_trimmed_reads", 0) / total

    def benchmark(self) -> list[str] | None:
        places = self.files.get("benchmarks", {}).get("correct_reads")
        return (self.folder / places[0]).read_text().splitlines()[1].split("\t") if places else None

    def contigs(self, arm: str) -> list[int] | None:
        text = self.text("contigs", arm)
        if text is None:
            return None
        return [len(part.partition("\n")[2].strip()) for part in text.split(">")[1:]]

    def calls(self) -> tuple[int, int, dict[str, int]] | None:
        """Classified reads, all of them, and reads by species."""
        text = self.text("classification", "bacteria", "report")
        if text is None:
            return None
        rows = [line.split("\t") for line in text.splitlines()]
        direct = {row[5].strip(): int(row[2]) for row in rows}
        species = {row[5].strip(): int(row[1]) for row in rows if row[3] == "S"}
        total = sum(direct.values())
        return total - direct["unclassified"], total, species


@pytest.fixture(scope="module", params=list(KINDS))
def study(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kept_figures: Kept
) -> Path:
    """A folder with a study, its page, whose plots are empty if there are many, and its tables."""
    folder = tmp_path_factory.mktemp("study")
    manifest = write_study(folder, KINDS[request.param])
    words = ["report", str(manifest), "-o", str(folder / "report.html")]
    with pytest.MonkeyPatch.context() as patch:
        if request.param > 3:
            leave_empty(patch, kept_figures)
        assert main([*words, "--tables", str(folder / "tables")]) == 0
    return folder


@pytest.fixture
def raw(study: Path) -> list[Raw]:
    document = json.loads((study / "study.json").read_text())
    return [Raw(study, entry) for entry in document["samples"]]


def table(study: Path, name: str) -> list[dict[str, str]]:
    with (study / "tables" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def steps(study: Path) -> dict[str, dict[str, str]]:
    return {row["step"]: row for row in table(study, "verdict")}


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]


def spread(values: list[float], unit: str, scale: float = 1.0) -> str:
    """A median and a range as the page has them."""
    shown = [f"{scale * v:,.1f}{unit}" for v in (median(values), min(values), max(values))]
    return shown[0] if shown[1] == shown[2] else f"{shown[0]} ({shown[1]} to {shown[2]})"


def test_every_cell_of_the_main_results(study: Path, raw: list[Raw]) -> None:
    def ratio(document: Any, part: Callable[[Any], float], of: Callable[[Any], float]) -> Any:
        return 100 * part(document) / of(document) if document and of(document) else None

    rows = {row["sample"]: row for row in table(study, "overview")}
    assert list(rows) == [own.name for own in raw]
    for own in raw:
        host, correct, calls = own.json("deplete"), own.json("correct"), own.calls()
        merge, extend, quality = own.json("merge"), own.json("extend"), own.json("qc", "raw")
        has_reads = quality and quality["summary"]["before_filtering"]["total_reads"]
        first = max(calls[2].items(), key=lambda item: item[1]) if calls and calls[2] else None
        quast = dict(zip(*[line.split("\t")[1:] for line in own.text("quast").splitlines()],
                         strict=True)) if own.text("quast") else {}  # fmt: skip
        expected = {
            "reads": own.sequenced("reads"),
            "reads trimmed (%)": own.trimmed_share(),
            "host reads (%)": ratio(
                host, lambda d: d["reads"]["host"], lambda d: d["reads"]["total"]
            ),
            "bases of Q30 or more (%)": 100 * quality["summary"]["before_filtering"]["q30_rate"]
            if has_reads else None,
            "duplicates (%)": 100 * quality["duplication"]["rate"] if has_reads else None,
            "bases replaced": correct and correct["corrected"]["bases"],
            "pairs merged (%)": ratio(
                merge, lambda d: sum(n for _, n in d["histograms"]["insert_sizes"]),
                lambda d: d["pairs"]["total"],
            ),
            "pairs connected (%)": ratio(
                extend, lambda d: d["pairs"]["connected"], lambda d: d["pairs"]["total"]
            ),
            "N50 before": float(quast["raw"]) if quast else None,
            "N50 after": float(quast["corrected"]) if quast else None,
            "classified with bacteria (%)": 100 * calls[0] / calls[1]
            if calls and calls[1] else None,
            "most frequent species with bacteria, share (%)": 100 * first[1] / calls[1]
            if calls and first else None,
            "correction time (s)": correct and correct["time_s"]["total"],
            "peak memory (MiB)": correct and correct["memory"]["peak_rss_bytes"] / 2**20,
        }  # fmt: skip
        for heading, value in expected.items():
            cell = rows[own.name].get(heading, "")
            assert bool(cell) == (value is not None), heading
            assert not cell or float(cell) == pytest.approx(value, rel=1e-12), heading
        species = "most frequent species with bacteria"
        assert rows[own.name].get(species, "") == (first[0] if first else "")


def test_steps_of_the_first_screen(study: Path, raw: list[Raw]) -> None:
    found = steps(study)
    trimmed = [share for one in raw if (share := one.trimmed_share()) is not None]
    assert ("Trimming" in found) == bool(trimmed)
    if trimmed:
        assert found["Trimming"]["what it did"] == (
            f"reads with adapter, trimmed: {spread(trimmed, ' %')}"
        )
        runs = [own for one in raw if (own := one.json("trim"))]
        cut = sum(own.get("adapter_cutting", {}).get("adapter_trimmed_bases", 0) for own in runs)
        share = 100 * cut / sum(own["summary"]["before_filtering"]["total_bases"] for own in runs)
        gain = f"{cut:,} bases of adapters ({share:.3g} %) taken off"
        assert found["Trimming"]["gain"] == gain
    hosts = [own for one in raw if (own := one.json("deplete")) and own["reads"]["total"]]
    shares = [own["reads"]["host"] / own["reads"]["total"] for own in hosts]
    assert found["Depletion"]["what it did"] == f"reads of the host: {spread(shares, ' %', 100)}"
    kept, total = (sum(own["reads"][of] for own in hosts) for of in ("kept", "total"))
    assert found["Depletion"]["gain"] == f"{kept:,} of {total:,} reads kept"

    seen = [own for one in raw if (own := one.json("qc", "raw"))
            and own["summary"]["before_filtering"]["total_reads"]]  # fmt: skip
    counted = [own["summary"]["before_filtering"] for own in seen]
    good = spread([own["q30_rate"] for own in counted], " %", 100)
    twice = spread([own["duplication"]["rate"] for own in seen], " %", 100)
    # fastp has no entry for single reads without an adapter: none of them has one.
    # What was trimmed has none left to speak of.
    cut = [
        quality.get("adapter_cutting", {}).get("adapter_trimmed_reads", 0)
        / quality["summary"]["before_filtering"]["total_reads"]
        for one in raw
        if (quality := one.json("qc", "raw")) in seen and not one.json("trim")
    ]
    text = f"Q30 or more: {good} of the bases; duplicates: {twice}; "
    assert found["Read quality"]["what it did"].startswith(
        f"{text}reads with adapter: {spread(cut, ' %', 100)}"
    )

    runs = [own for one in raw if (own := one.json("correct"))]
    replaced = sum(own["corrected"]["bases"] for own in runs)
    share = 100 * replaced / sum(own["reads"]["bases"] for own in runs)
    assert found["Correction"]["what it did"].startswith(
        f"{replaced:,} bases ({share:.3g} %) replaced"
    )
    once = [4 * sum(int(own.text("kmers", arm).splitlines()[2].split("\t")[1])
                    for own in raw if len((own.text("kmers", arm) or "").splitlines()) > 2)
            for arm in ("raw", "corrected")]  # fmt: skip
    assert numbers(found["Correction"]["gain"]) == once


def test_merged_and_connected_pairs(study: Path, raw: list[Raw]) -> None:
    found = steps(study)
    sizes = [own["histograms"]["insert_sizes"] for one in raw if (own := one.json("merge"))]
    means = [sum(s * n for s, n in own) / sum(n for _, n in own) for own in sizes if own]
    if not means:
        assert "Extension" not in found
        return
    name = "mean fragment of the merged pairs alone"
    assert found["Merging"]["gain"] == f"{name}: {spread(means, ' bases')}"
    inserts = [own["insert"]["mean"] for one in raw
               if (own := one.json("extend")) and own["pairs"]["connected"]]  # fmt: skip
    name = "mean insert size, estimated from connected pairs"
    assert found["Extension"]["gain"] == f"{name}: {spread(inserts, ' bases')}"


def test_assemblies_without_contigs_are_not_fine(study: Path, raw: list[Raw]) -> None:
    row, page = steps(study)["Assembly"], Page((study / "report.html").read_text())
    lengths = {own.name: (own.contigs("raw"), own.contigs("corrected")) for own in raw}
    assembled = {name: own for name, own in lengths.items() if None not in own}
    without = [name for name, own in assembled.items() if not any(own)]
    ratios = []
    for own in raw:
        if (text := own.text("quast")) is not None:
            before, after = map(int, text.splitlines()[1].split("\t")[1:])
            ratios.append(after / before)
            for arm, n50 in (("raw", before), ("corrected", after)):
                contigs = own.contigs(arm) or []
                longer = sum(length for length in contigs if length >= n50)
                assert n50 in contigs and 2 * longer >= sum(contigs)
    assert numbers(row["what it did"]) == [
        len(assembled), len(raw), len(assembled) - len(without), len(ratios),
    ]  # fmt: skip
    if without:
        few = f"{', '.join(without[:3])} and {len(without) - 3} more"
        named = few if len(without) > 3 else " and ".join(without)
        advice = f"{len(without)} of {len(raw)} samples ({named}) gave no contigs"
        assert advice in row["what to do"]
        assert f"{len(without)} of them gave no contigs" in page.text
    short = [name for name, own in assembled.items() if any(own) and max(own[0]) < 500]
    if short:
        assert (
            f"{len(short)} of {len(raw)} samples ({', '.join(short[:-1])} and {short[-1]})"
            in (row["what to do"])
        )
    assert row["gain"].startswith(f"contiguity {spread(ratios, 'x')}")


def test_species_are_named(study: Path, raw: list[Raw]) -> None:
    calls = [own for one in raw if (own := one.calls()) and own[1]]
    row = steps(study)["Classification with bacteria"]
    assert row["what it did"] == f"classified: {spread([c / t for c, t, _ in calls], ' %', 100)}"
    first = Counter(max(species, key=lambda name: species[name]) for _, _, species in calls)
    for name, number in first.items():
        assert name in row["gain"]
        assert len(calls) == 1 or f"{name} (in {number} of {len(calls)} samples)" in row["gain"]


def test_samples_without_reads_and_failed_ones_are_named(study: Path, raw: list[Raw]) -> None:
    text = Page((study / "report.html").read_text()).text
    screen = text[text.index("Terms and sources Summary") :][:2500]
    rows = {row["sample"]: row for row in table(study, "sample")}
    for own in raw:
        host, correct = own.json("deplete"), own.json("correct")
        if host is None:
            assert f"{own.name}: record 9 is damaged" in screen
            assert not any(rows[own.name].get(name) for name in ("reads", "coverage"))
            continue
        assert rows[own.name]["reads"] == str(own.sequenced("reads"))
        assert rows[own.name]["bases"] == str(own.sequenced("bases"))
        if own.json("trim"):
            assert rows[own.name]["reads after trimming"] == str(host["reads"]["total"])
        assert rows[own.name]["reads after depletion"] == str(host["reads"]["kept"])
        if host["reads"]["kept"]:
            assert float(rows[own.name]["coverage"]) == correct["coverage"]["value"]
            assert f"{own.name} (" not in screen[: screen.index("steps need")]
            continue
        why = "depletion left none" if host["reads"]["total"] else "its files are empty"
        assert f"{own.name} ({why})" in screen
        # That is the reason; what SPAdes says of empty files is in the sample's own findings.
        assert f"{own.name}: == Error" not in screen and "== Error == file is empty" in text
        assert rows[own.name]["coverage"] == "" and rows[own.name]["read length from"] == ""


def test_lead_counts_the_reads_of_each_step(study: Path, raw: list[Raw]) -> None:
    text = Page((study / "report.html").read_text()).text
    hosts = [own["reads"] for one in raw if (own := one.json("deplete"))]
    kept, total = (sum(own[of] for own in hosts) for of in ("kept", "total"))
    bases = sum(own["reads"]["bases"] for one in raw if (own := one.json("correct")))
    assert f"{kept:,} reads with {bases:,} bases in all" in text
    taken = f"depletion took out {total - kept:,} of {total:,} reads"
    assert taken in text
    trims = [own for one in raw if (own := one.json("trim"))]
    total, left = (sum(own["summary"][f"{when}_filtering"]["total_reads"] for own in trims)
                   for when in ("before", "after"))  # fmt: skip
    cut = sum(own.get("adapter_cutting", {}).get("adapter_trimmed_reads", 0) for own in trims)
    said = f"fastp trimmed adapters from {cut:,} of {total:,} reads"
    assert (said in text) == bool(total)
    assert (f"left out {total - left:,} that were too short" in text) == bool(total)
    seconds = [float(own[0]) for one in raw if (own := one.benchmark())]
    costs = table(study, "costs")
    assert [float(row["wall time (s)"]) for row in costs] == seconds
