"""Versions of the programs that a study ran, in nf-core's ``software_versions.yml``."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ngsgpu.report.absent import read_note
from ngsgpu.report.files import Json, is_by_fastp, load_fastp, load_json
from ngsgpu.report.model import Sample, Study

TOOL_OF_RULE: Final = {
    "simulate_reads": "art",
    "assemble_reads": "spades",
    "assemble_extended": "spades",
    "assemble_megahit": "megahit",
    "assemble_skesa": "skesa",
    "evaluate_assemblies": "quast",
    "evaluate_extended_assemblies": "quast",
    "evaluate_engines": "quast",
    "connect_pairs": "abyss",
    "draw_krona": "krona",
    "run_multiqc": "multiqc",
}
"""Programs of the workflow's rules; ``ngsgpu`` is that of the others of ``_OWN``."""
_OWN: Final = frozenset(
    {
        "find_adapters", "trim_reads", "check_reads", "deplete_reads", "correct_reads",
        "merge_pairs", "extend_pairs", "chain_reads", "count_kmers", "merge_candidates",
        "assemble_ngsgpu", "build_unitigs", "evaluate_correction", "evaluate_merging",
        "evaluate_extension", "evaluate_classification", "evaluate_mapped",
    }
)  # fmt: skip
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]+")
_OTHER_WORDS: Final = frozenset({"yes", "no", "on", "off", "true", "false", "null"})
"""What YAML does not take for text."""
_SHOWN: Final = frozenset(string.digits + string.ascii_letters + string.punctuation + " ") - {
    *'"\\<>&'
}
_STATISTICS: Final = (("deplete",), ("correct",), ("merge",), ("extend",))
_TRIMMERS: Final = {"trim": "trim_reads", "qc": "check_reads"}
"""Rules that ran ngsgpu or fastp, by what they wrote, which says which of them."""
_CHAIN: Final = "chain_reads"
_CHAINED: Final = {
    "trim": "trim_reads",
    "deplete": "deplete_reads",
    "correct": "correct_reads",
    "merge": "merge_pairs",
    "extend": "extend_pairs",
}
"""Rules for which the jobs of ``_CHAIN`` stand, by what they wrote."""


@dataclass(frozen=True)
class Runs:
    """What ran in a study.

    Attributes:
        statistics: JSON documents of ngsgpu's runs by schema, such as ``ngsgpu.correct``.
        rules: names of the workflow's rules with jobs that ran.
        by_fastp: those of them that ran fastp in place of ngsgpu.
        versions: of all programs; several of one, if its runs differ, separated by commas.
    """

    statistics: Mapping[str, Sequence[Json]]
    rules: frozenset[str]
    by_fastp: frozenset[str]
    versions: Mapping[str, str]


def read_runs(study: Study) -> Runs:
    """Read from statistics and benchmarks what ran.

    Raises:
        InputError: statistics are damaged.
    """
    statistics: dict[str, list[Json]] = {}
    by_fastp = set()
    for sample in study.samples:
        for key, path in sample.files.paths.items():
            is_run = key in _STATISTICS or (key[0] == "classification" and key[-1] == "stats")
            if not path.is_file() or read_note(path) is not None:
                continue
            if is_run:
                own = Json(path, load_json(path, "make the file again"))
                statistics.setdefault(str(own.get("schema")), []).append(own)
            elif key[0] in _TRIMMERS and is_by_fastp(load_fastp(path)):
                by_fastp.add(_TRIMMERS[key[0]])
    rules = frozenset(rule for sample in study.samples for rule in _rules(sample))
    of_runs = sorted(
        {str(own.get("version")) for runs in statistics.values() for own in runs} - {"None"}
    )
    versions = dict(study.versions)
    if of_runs:
        versions["ngsgpu"] = ", ".join(of_runs)
    return Runs(statistics, rules, frozenset(by_fastp), versions)


def _rules(sample: Sample) -> Iterator[str]:
    """Rules with jobs for a sample; a chain's job counts as those of the stages that it made."""
    measured = sample.files.benchmarks
    for rule, paths in measured.items():
        if any(path.is_file() for path in paths):
            name = rule.partition(" (")[0]
            yield name
            if name == _CHAIN:
                there = {key[0] for key, path in sample.files.paths.items() if path.is_file()}
                yield from (own for stage, own in _CHAINED.items() if stage in there)


def software_versions(runs: Runs) -> str:
    """YAML: by rule of the workflow, the program that its jobs ran, with its version.

    Programs that work on the whole study have no jobs of samples; they are named because their
    version was asked for. The versions of ngsgpu are those in the statistics of its runs.
    """
    found: dict[str, dict[str, str]] = {}
    for rule in sorted(runs.rules):
        usual = TOOL_OF_RULE.get(rule) or ("ngsgpu" if rule in _OWN else "")
        tool = "fastp" if rule in runs.by_fastp else usual
        if tool in runs.versions:
            found[rule] = {tool: runs.versions[tool]}
    named = {tool for own in found.values() for tool in own}
    rule_of = {tool: rule for rule, tool in TOOL_OF_RULE.items()}
    for tool, version in sorted(runs.versions.items()):
        if tool not in named:
            found.setdefault(rule_of.get(tool, "Workflow"), {})[tool] = version
    return _yaml(found)


def _yaml(document: Mapping[str, Mapping[str, str]]) -> str:
    """YAML of two levels, in ASCII and without markup."""
    lines = []
    for rule, tools in document.items():
        lines.append(f"{_key(rule)}:\n")
        lines += [f"  {_key(tool)}: {_quoted(version)}\n" for tool, version in tools.items()]
    return "".join(lines)


def _key(name: str) -> str:
    is_word = _WORD.fullmatch(name) and name.lower() not in _OTHER_WORDS
    return name if is_word else _quoted(name)


def _quoted(text: str) -> str:
    escaped = (own if own in _SHOWN else f"\\U{ord(own):08x}" for own in text)
    return f'"{"".join(escaped)}"'
