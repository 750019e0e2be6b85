"""The sections on assemblers, with QUAST's metrics and curves, and on unitigs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngsgpu.errors import InputError
from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.quast import read_curves
from ngsgpu.report.render import render_report
from ngsgpu.report.study import read_study
from tests.support.report import Page, write_json, write_text
from tests.support.report_results import ENGINE_CURVE, ENGINES

# As QUAST leaves it where it knows no reference.
UNFILLED = """            <div id='coord-ngx-json'>
                {{ coordNGx }}
            </div>
"""


def test_section(manifest: Path, results: Path) -> None:
    write_text(results / "sim/quast_engines/report.tsv", ENGINES)
    curves = "".join(ENGINE_CURVE.format(kind=kind) for kind in ("nx", "ngx", "nax", "ngax"))
    write_text(results / "sim/quast_engines/report.html", curves)
    text = render_report(fill_from_layout(read_study(manifest), results))
    page = Page(text)
    assert "engines" in page.ids
    for words in (
        "SPAdes, uncorrected",
        "SKESA, corrected",
        "NGA50 of the assemblers' contigs, corrected reads: SPAdes 18,000 and SKESA 15,002.",
        "NGAx: the same for the blocks",
        "NGx: contigs of at least",
    ):
        assert words in page.text, words
    assert "NAx:" not in page.text
    assert text.count("NGAx (bases)") == 1


def test_curves_of_quasts_page(tmp_path: Path) -> None:
    page = write_text(tmp_path / "report.html", ENGINE_CURVE.format(kind="nx") + UNFILLED)
    assert read_curves(page) == {"nx": {"spades_raw": ([0.0, 40.0, 60.0], [900.0, 900.0, 500.0])}}
    damaged = ENGINE_CURVE.format(kind="nx").replace("coord_y", "coord_z")
    with pytest.raises(InputError, match="its curve nx cannot be read"):
        read_curves(write_text(tmp_path / "damaged.html", damaged))


def test_no_section_without_several_programs(manifest: Path, results: Path) -> None:
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "engines" not in page.ids
    assert "unitigs" not in page.ids


def test_unitigs(manifest: Path, results: Path) -> None:
    for variant, n50 in (("raw", 512), ("corrected", 3456)):
        graph = {"kmer": 31, "min_abundance": 2, "kmers": 70_001, "unitigs": 99, "bases": 73_000}
        graph |= {"longest": 9000, "n50": n50, "links": 120}
        document = {"schema": "ngsgpu.unitigs", "schema_version": 1, **graph}
        write_json(results / f"sim/unitigs/{variant}/stats.json", document)
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "unitigs" in page.ids
    for words in ("Unitigs, k = 31", "70,001", "512 → 3,456"):
        assert words in page.text.replace("\N{NO-BREAK SPACE}", " "), words
