"""Small results of the steps that not every study has, as the programs write them."""

from __future__ import annotations

from typing import Any

from tests.support.report import fastp


def trimming() -> dict[str, Any]:
    """What fastp says of reads that it trimmed."""
    document = fastp(adapters=40)
    after = {"total_reads": 198, "total_bases": 500}
    document["summary"]["after_filtering"] = document["summary"]["before_filtering"] | after
    document["adapter_cutting"]["adapter_trimmed_bases"] = 90
    document["filtering_result"] = {"too_short_reads": 2}
    return document


def by_ngsgpu(document: dict[str, Any]) -> dict[str, Any]:
    """The same from ``ngsgpu trim``."""
    document["summary"]["fastp_version"] = "0.23.2, by ngsgpu 0.1.0"
    document["command"] = "ngsgpu trim --in1 x"
    return document


def mapped_quality(*entries: tuple[int, int, int, float | None]) -> dict[str, Any]:
    keys = ("quality", "bases", "errors", "observed")
    return {
        "bases": sum(entry[1] for entry in entries),
        "seen": sum(entry[2] for entry in entries),
        "stated": 3.5,
        "phred_error": 8.25,
        "mean_phred_error": 2.0,
        "by_quality": [dict(zip(keys, entry, strict=True)) for entry in entries],
    }


MAPPED: dict[str, Any] = {
    "schema": "ngsgpu.evaluate.mapped",
    "schema_version": 1,
    "correction": {
        "totals": {
            "bases": 5000, "mended": 6137, "introduced": 124, "introduced_in_undone": 115,
            "made_perfect": 3464, "made_imperfect": 14, "allele_bases": 5883,
            "alleles_switched": 26,
        },
        "rates": {"mismatches_per_kb_before": 1.679, "mismatches_per_kb_after": 0.512},
        "by_kind": {
            kind: {"reads": 1921, "errors_before": 1771, "errors_after": 1437, "introduced": 122}
            for kind in ("gaps_or_clipped", "many_mismatches", "others")
        },
        "heterozygous": {"sites": 119, "lost": 1},
        "minority": [{"from": 0.05, "to": 0.1, "variants": 25, "lost": 17}],
        "calibration": {
            "before": mapped_quality((20, 1000, 9, 20.5)),
            "after": mapped_quality((41, 9, 0, None)),
        },
    },
    "merging": {
        "pairs": {
            "pairs": 2000, "overlapping": 1139, "right": 1086, "near": 5, "wrong": 2, "missed": 46,
            "apart": 777, "apart_merged": 137, "unknown_fragment": 84,
        },
        "calibration": {
            "agree": mapped_quality((30, 500, 2, 24.0)),
            "disagree": mapped_quality((5, 50, 12, 6.2)),
            "alone": mapped_quality(),
        },
    },
}  # fmt: skip


MERGING: dict[str, Any] = {
    "schema": "ngsgpu.evaluate.merging",
    "schema_version": 1,
    "pairs": {"overlapping": 1234, "right": 1200, "near": 4, "wrong": 5, "missed": 25, "apart": 7},
    "rates": {"sensitivity": 0.9724, "precision": 0.9926, "error_rate_before": 0.002},
    "calibration": {
        "overlap": [
            {"quality": 20, "bases": 1000, "errors": 9, "observed": 20.5},
            {"quality": 41, "bases": 5000, "errors": 0, "observed": None},
        ],
        "alone": [],
    },
}


EXTENDED_QUAST = """Assembly\traw\tcorrected\tngsgpu_single\tngsgpu_merged\tkonnector_single
# contigs\t31\t29\t12\t14\t15
NGA50\t16522\t18000\t60001\t50000\t60000
# misassemblies\t0\t0\t1\t0\t-
# unaligned contigs\t0 + 0 part\t0 + 1 part\t0 + 0 part\t0 + 0 part\t0 + 0 part
"""


ENGINES = """Assembly\tspades_raw\tspades_corrected\tskesa_raw\tskesa_corrected
# contigs\t31\t29\t40\t41
NGA50\t16522\t18000\t15001\t15002
# misassemblies\t0\t1\t0\t0
"""
ENGINE_CURVE = """            <div id='coord-{kind}-json'>
                {{"coord_x":[[0.0,40.0,60.0],[]],"coord_y":[[900,900,500],[]],\
"filenames":["spades_raw","skesa_raw"]}}
            </div>
"""


KRAKEN = """\
 20.00\t20\t20\tU\t0\tunclassified
 80.00\t80\t1\tR\t1\troot
 79.00\t79\t0\tR1\t131567\t  cellular organisms
 79.00\t79\t4\tD\t2\t    Bacteria
 55.00\t55\t0\tP\t1224\t      Pseudomonadota
 55.00\t55\t5\tG\t561\t        Escherichia
 50.00\t50\t30\tS\t562\t          Escherichia coli
 20.00\t20\t20\tS1\t83333\t            Escherichia coli K-12
 20.00\t20\t20\tP\t1239\t      Bacillota
"""

ABUNDANCE = """\
taxid\trank\tname\treads\tpercent_of_reads\tpercent_of_classified
562\tspecies\tEscherichia coli\t58\t58.0000\t72.5000
1239\tphylum\tBacillota\t22\t22.0000\t27.5000
0\tno rank\tunclassified\t20\t20.0000\t
"""

COVERAGE = """\
target\ttaxid\tname\tlength\twindows\tcovered\tmean_reads\tbin_bases\tbins
a.1\t562\tEscherichia coli\t1000\t9\t4\t0.5000\t224\t1,0,2,3,1
a.2\t562\tEscherichia coli\t3000\t27\t3\t0.1000\t336\t1,0,0,2,0,0,0,0,0
b.1\t1280\tStaphylococcus aureus\t500\t5\t1\t0.2000\t112\t0,0,1,0,0
"""

EVIDENCE = (
    "taxid\tcalled_as\tname\tnote\treads\town_reads\town_places\tplaces\tidentity\tidentity_low\t"
    "identity_high\tlog10_ratio\tscatter_p\trelatives\tdistant\n"
    "562\tspecies\tEscherichia coli\t\t1050.2\t800\t610\t4600\t0.9980\t0.9910\t1.0000\t812.31\t"
    "0.98\t0.0\t0.0\n"
    "623\tfamily\tShigella flexneri\tfew places\t0.0\t12\t3\t4500\t0.9370\t0.9080\t0.9570\t9.12\t"
    "1e-09\t0.0\t11.8\n"
    "28901\tfamily\tSalmonella enterica\tlittle evidence\t0.0\t0\t0\t4800\t0.8100\t0.8000\t0.8200\t"
    "0.00\t1\t0.0\t5.0\n"
)

CLASSIFICATION: dict[str, Any] = {
    "schema": "ngsgpu.evaluate.classification",
    "schema_version": 1,
    "version": "0.1.0",
    "runs": [
        {
            "name": "ngsgpu",
            "program": "ngsgpu",
            "reads": {"total": 100, "unclassified": 20, "without_truth": 0},
            "ranks": {
                "species": {"precision": 0.9, "sensitivity": 0.8, "f1": 0.847},
                "genus": {"precision": 0.99, "sensitivity": None, "f1": None},
            },
            "curve": {
                "hits": [5, 9],
                "ranks": {
                    "species": {"precision": [0.9, None], "sensitivity": [0.8, 0.0]},
                    "genus": {"precision": [0.99, None], "sensitivity": [None, None]},
                },
            },
            "abundance": {
                "rank": "species",
                "false_positives": 0.02,
                "deviation": 0.1,
                "taxa": [
                    {"taxid": 562, "name": "E. coli", "expected": 0.6, "observed": 0.58},
                    {"taxid": 9, "name": "Other", "expected": 0.0, "observed": 0.02},
                ],
            },
        },
        {
            "name": "Kraken 2",
            "program": "kraken",
            "reads": {"total": 100, "unclassified": 10, "without_truth": 0},
            "ranks": {"species": {"precision": 0.8, "sensitivity": 0.9, "f1": 0.847}},
        },
    ],
}
