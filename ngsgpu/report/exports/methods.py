"""A paragraph for the methods section of a paper: what a study did, with versions and sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, Final

from ngsgpu.report import words
from ngsgpu.report.exports.software import Runs
from ngsgpu.report.files import Json
from ngsgpu.report.model import Study

SOURCES: Final = {
    "art": "Huang W. et al. ART: a next-generation sequencing read simulator. Bioinformatics 28, "
    "593-594 (2012).",
    "fastp": "Chen S. et al. fastp: an ultra-fast all-in-one FASTQ preprocessor. Bioinformatics "
    "34, i884-i890 (2018).",
    "care": "Kallenborn F., Cascitti J., Schmidt B. CARE 2.0: reducing false-positive sequencing "
    "error corrections using machine learning. BMC Bioinformatics 23, 227 (2022).",
    "flash": "Magoč T., Salzberg S. L. FLASH: fast length adjustment of short reads to improve "
    "genome assemblies. Bioinformatics 27, 2957-2963 (2011).",
    "carex": "Kallenborn F. High-performance processing of Next-Generation Sequencing data on "
    "CUDA-enabled GPUs. Dissertation, Johannes Gutenberg University Mainz (2024).",
    "konnector": "Vandervalk B. P. et al. Konnector v2.0: pseudo-long reads from paired-end "
    "sequencing data. BMC Medical Genomics 8, S1 (2015).",
    "metacache": "Müller A. et al. MetaCache: context-aware classification of metagenomic reads "
    "using minhashing. Bioinformatics 33, 3740-3748 (2017).",
    "abundance": "Kobus R. Accelerating bioinformatics applications on CUDA-enabled multi-GPU "
    "systems. Dissertation, Johannes Gutenberg University Mainz (2023).",
    "spades": "Prjibelski A. et al. Using SPAdes de novo assembler. Current Protocols in "
    "Bioinformatics 70, e102 (2020).",
    "skesa": "Souvorov A., Agarwala R., Lipman D. J. SKESA: strategic k-mer extension for "
    "scrupulous assemblies. Genome Biology 19, 153 (2018).",
    "megahit": "Li D. et al. MEGAHIT: an ultra-fast single-node solution for large and complex "
    "metagenomics assembly via succinct de Bruijn graph. Bioinformatics 31, 1674-1676 (2015).",
    "quast": "Gurevich A. et al. QUAST: quality assessment tool for genome assemblies. "
    "Bioinformatics 29, 1072-1075 (2013).",
    "krona": "Ondov B. D., Bergman N. H., Phillippy A. M. Interactive metagenomic visualization in "
    "a Web browser. BMC Bioinformatics 12, 385 (2011).",
    "multiqc": "Ewels P. et al. MultiQC: summarize analysis results for multiple tools and samples "
    "in a single report. Bioinformatics 32, 3047-3048 (2016).",
    "snakemake": "Mölder F. et al. Sustainable data analysis with Snakemake. F1000Research 10, 33 "
    "(2021).",
}
"""References by what they are cited for; the titles are those of CITATION.cff."""


_MARKED: Final = re.compile(r"`([^`]*[<>&][^`]*)`|[<>&]|\]\(")


def _escaped(match: re.Match[str]) -> str:
    """Code with HTML's characters as HTML; elsewhere these characters, and links, as text."""
    if match[1] is not None:
        return f"<code>{escape(match[1])}</code>"
    return escape(match[0]) if match[0] != "](" else r"]\("


class Methods:
    """The sentences about a study, and the sources that they cite, in this order."""

    def __init__(self, study: Study, runs: Runs) -> None:
        self.study = study
        self.runs = runs
        self.sources: list[str] = []
        told: tuple[Callable[[], Iterator[str]], ...] = (
            self._reads, self._trimming, self._depletion, self._correction, self._merging,
            self._extension, self._classification, self._assembly, self._summary,
        )  # fmt: skip
        self.sentences = [sentence for tell in told for sentence in tell()]

    def text(self) -> str:
        """The paragraph and its references, as Markdown; names are no markup in it."""
        listed = [f"{n}. {SOURCES[key]}\n" for n, key in enumerate(self.sources, start=1)]
        told = " ".join(" ".join(self.sentences).split())
        return f"{_MARKED.sub(_escaped, told)}\n\n{''.join(listed)}"

    def references(self) -> list[str]:
        """The references in the order of their numbers."""
        return [SOURCES[key] for key in self.sources]

    def _cite(self, *keys: str) -> str:
        for key in keys:
            if key not in self.sources:
                self.sources.append(key)
        return f"[{','.join(str(self.sources.index(key) + 1) for key in keys)}]"

    def _tool(self, name: str, key: str) -> str:
        """A program with its version and source."""
        version = self.runs.versions.get(key, "")
        return f"{name} {version} {self._cite(key)}" if version else f"{name} {self._cite(key)}"

    def _ran(self, stage: str) -> Sequence[Json]:
        return self.runs.statistics.get(f"ngsgpu.{stage}", ())

    def _which(self, stage: str) -> str:
        wanted = self.study.config.get(stage, {}).get("reads")
        return f"the {wanted} reads" if wanted in ("raw", "corrected") else "the reads"

    def _extra(self, stage: str) -> str:
        """Options that the config, or the sheet for single samples, adds."""
        usual = self.study.config.get(stage, {}).get("extra")
        given = [sample.parameters.get(f"{stage}_extra", usual) for sample in self.study.samples]
        extras = dict.fromkeys(str(extra).strip() for extra in given if extra)
        named = words.listed([f"`{extra}`" for extra in extras]) if extras else ""
        return f"; further options: {named}" if named else ""

    def _reads(self) -> Iterator[str]:
        samples = self.study.samples
        version = self.runs.versions.get("ngsgpu", "")
        made = f"{words.number_words(len(samples), 'sample')} went through ngsgpu {version}".strip()
        if "snakemake" in self.runs.versions:
            made += f", run by {self._tool('Snakemake', 'snakemake')}"
        yield f"{made[0].upper()}{made[1:]}."
        if "simulate_reads" in self.runs.rules:
            number = sum(sample.kind == "simulated" for sample in samples)
            yield (
                f"The reads of {words.number_words(number, 'sample')} were simulated with "
                f"{self._tool('ART', 'art')}."
            )
        if "check_reads" in self.runs.rules:
            yield (
                "Base qualities, GC content, adapters, duplication and lengths of the reads were "
                f"assessed with {self._trimmer('check_reads')}."
            )

    def _trimming(self) -> Iterator[str]:
        if "trim_reads" in self.runs.rules:
            yield (
                f"Adapters were trimmed with {self._trimmer('trim_reads')}, without filtering by "
                f"quality{self._extra('trim')}."
            )

    def _trimmer(self, rule: str) -> str:
        """The program that a rule trimmed or checked reads with."""
        if rule in self.runs.by_fastp:
            return self._tool("fastp", "fastp")
        return f"`ngsgpu trim`, which does what fastp does {self._cite('fastp')}"

    def _depletion(self) -> Iterator[str]:
        if runs := self._ran("deplete"):
            hosts = sorted({str(name) for own in runs for name in own.entries("index.sources")})
            of = f" ({words.listed(hosts)})" if hosts else ""
            yield (
                f"Reads of the host{of} were removed with `ngsgpu deplete` "
                f"({_said(runs, _DEPLETION)}{self._extra('deplete')})."
            )

    def _correction(self) -> Iterator[str]:
        if runs := self._ran("correct"):
            yield (
                "Sequencing errors were corrected with `ngsgpu correct`, which "
                f"{self._decides(runs)} ({_said(runs, _CORRECTION)}{self._extra('correct')})."
            )
        if runs := self._ran("spectrum"):
            yield (
                "Sequencing errors were corrected with `ngsgpu correct --method spectrum`, which "
                "replaces bases so that all k-mers of a read occur often enough "
                f"({_said(runs, _SPECTRUM)}{self._extra('correct')})."
            )

    def _decides(self, runs: Sequence[Json]) -> str:
        """What decides about bases: CARE's rules alone, or more than these."""
        care = self._cite("care")
        if all(run.get("parameters.classic") for run in runs):
            return f"decides as CARE {care} does"
        more = "keeps bases on which several reads agree"
        if any(run.get("parameters.model") not in (None, "none") for run in runs):
            more += " and lets a forest of decision trees decide where fixed thresholds do not"
        return f"aligns overlapping reads as CARE {care} does, {more}"

    def _merging(self) -> Iterator[str]:
        if runs := self._ran("merge"):
            yield (
                f"Overlapping pairs of {self._which('merge')} were merged with `ngsgpu merge`, "
                f"which {self._chooses(runs)} "
                f"({_said(runs, _MERGING)}{self._extra('merge')})."
            )

    def _chooses(self, runs: Sequence[Json]) -> str:
        if all(run.get("parameters.overlap") == "likelihood" for run in runs):
            return "takes the likeliest overlap by qualities, base composition and fragment lengths"
        return f"makes the decisions of FLASH {self._cite('flash')}"

    def _extension(self) -> Iterator[str]:
        if runs := self._ran("extend"):
            yield (
                f"The gaps between the mates of {self._which('extend')} were filled from other "
                f"reads with `ngsgpu extend`, which implements CAREx {self._cite('carex')} "
                f"({_said(runs, _EXTENSION)}{self._extra('extend')})."
            )
        if "connect_pairs" in self.runs.rules:
            options = self.study.config.get("extend", {}).get("konnector_options", "")
            version = self.runs.versions.get("abyss", "")
            yield (
                f"For comparison, they were also connected with Konnector of ABySS {version} "
                f"{self._cite('konnector')} (`{options}`)."
            )

    def _classification(self) -> Iterator[str]:
        runs = self._ran("classify")
        if not runs:
            return
        names = sorted({key[1] for s in self.study.samples for key in s.files.paths
                        if key[0] == "classification" and key[1]})  # fmt: skip
        databases = {own.get("database.digest"): own for own in runs}
        sizes = [f"{words.number_words(int(own.number('database.targets') or 0), 'sequence')}, "
                 f"{_said([own], _DATABASE)}" for own in databases.values()]  # fmt: skip
        called = f" {words.listed(names)}" if names else ""
        rank = self.study.config.get("classify", {}).get("abundance_rank", "")
        yield (
            "Taxa were assigned with `ngsgpu classify`, which uses MetaCache's minhash features "
            f"{self._cite('metacache')}, against the database{'s' * (len(databases) > 1)}{called} "
            f"({'; '.join(sizes)}; {_said(runs, _CALLS)}{self._extra('classify')})."
        )
        if rank:
            ranks = rank.split(",")
            at = f"rank{'s' * (len(ranks) > 1)} of {words.listed(ranks)}"
            yield f"Abundances were estimated at the {at} {self._cite('abundance')}."

    def _assembly(self) -> Iterator[str]:
        if "build_unitigs" in self.runs.rules:
            k = self.study.config.get("unitigs", {}).get("k", 31)
            yield (
                "The de Bruijn graphs of reads before and after correction were compacted with "
                f"`ngsgpu unitigs` (k = {k}{self._extra('unitigs')})."
            )
        programs = list(self._assemblers())
        if not programs:
            return
        yield f"Reads before and after correction were assembled with {words.listed(programs)}."
        if "evaluate_assemblies" in self.runs.rules:
            least = self.study.config.get("quast", {}).get("min_contig", 500)
            yield (
                f"Assemblies were compared with {self._tool('QUAST', 'quast')} (contigs of at "
                f"least {least} bases{self._extra('quast')})."
            )

    def _assemblers(self) -> Iterator[str]:
        config, rules = self.study.config.get("assemble", {}), self.runs.rules
        if {"assemble_reads", "assemble_extended"} & rules:
            yield (
                f"{self._tool('SPAdes', 'spades')} without its own error correction "
                f"(`--only-assembler -k {config.get('kmers', 'auto')}`{self._extra('assemble')})"
            )
        for engine, name in (("skesa", "SKESA"), ("megahit", "MEGAHIT")):
            if f"assemble_{engine}" in rules:
                extra = config.get(f"{engine}_extra")
                yield self._tool(name, engine) + (f" (further options: `{extra}`)" * bool(extra))
        if "assemble_ngsgpu" in rules:
            extra = config.get("ngsgpu_extra")
            yield "`ngsgpu assemble`" + (f" (further options: `{extra}`)" * bool(extra))

    def _summary(self) -> Iterator[str]:
        shown = [
            self._tool(name, key)
            for name, key in (("KronaTools", "krona"), ("MultiQC", "multiqc"))
            if key in self.runs.versions
        ]
        if shown:
            yield f"Results were summarized with {words.listed(shown)}."


_DEPLETION: Final = {
    "index.kmer": "k = {}",
    "bounds.most": "at least {} bases, or half of those of shorter reads, covered by its k-mers",
}
_CORRECTION: Final = {
    "parameters.minhash.kmer": "k = {}",
    "parameters.minhash.hashes": "{} hash functions",
}
_SPECTRUM: Final = {"kmers.k": "k = {}", "kmers.solid_from": "at least {} times"}
_MERGING: Final = {
    "parameters.min_overlap": "minimum overlap {}",
    "parameters.max_overlap": "maximum overlap {}",
    "parameters.max_mismatch_density": "maximum mismatch density {}",
}
_EXTENSION: Final = {
    "parameters.ends.kmer": "k = {}",
    "parameters.min_reads": "at least {} reads a step",
    "parameters.min_overlap": "minimum overlap {}",
    "parameters.strict": "strictness {}",
}
_DATABASE: Final = {
    "database.parameters.sketch.kmer": "k = {}",
    "database.parameters.sketch.smer": "closed syncmers of s = {}",
    "database.parameters.sketch.sketch": "{} features a sketch",
    "database.parameters.sketch.window": "windows of {} bases",
}
_CALLS: Final = {
    "parameters.posterior": "posterior probability {}",
    "parameters.species_identity": "species identity {}",
}


def _said(runs: Sequence[Json], options: dict[str, str]) -> str:
    """Options and their values; where runs differ, all of them."""
    said = []
    for key, text in options.items():
        values: list[Any] = list(dict.fromkeys(own.get(key) for own in runs))
        given = [str(value) for value in values if value is not None]
        if given:
            said.append(text.format(words.listed(given)))
    return ", ".join(said)
