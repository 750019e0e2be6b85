"""Studies of any number of samples as the workflow leaves them, small, in the true formats.

Samples differ in all numbers. The kinds of a sample: ``paired``; ``single``, whose reads have no
mates and no adapter that fastp detects; ``empty``, of files without reads; ``failed``, whose reads
are damaged, so that notes are in place of results; ``host``, of which depletion leaves no read;
``short``, whose contigs are too short for QUAST; ``bare``, whose assemblies have no contigs. Every
second sample was trimmed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.report import statistics, write_json, write_note, write_text

SPECIES: Final = ("Escherichia coli", "Salmonella enterica", "Klebsiella oxytoca")
_LENGTH: Final = 150


def write_study(folder: Path, kinds: Sequence[str]) -> Path:
    """Write the results of samples ``s01``, ``s02``, ... and the manifest; give its path."""
    samples = []
    for number, kind in enumerate(kinds, start=1):
        name = f"s{number:02d}"
        files = _Sample(folder, name, kind, random.Random(number)).write()
        samples.append({"name": name, "kind": "real", "files": files})
    document = {"schema": "ngsgpu.study", "schema_version": 2, "title": "Isolates of a week",
                "samples": samples}  # fmt: skip
    return write_json(folder / "study.json", document)


class _Sample:
    """Writes the results of one sample."""

    def __init__(self, folder: Path, name: str, kind: str, chance: random.Random) -> None:
        self.folder, self.name, self.kind, self.chance = folder, name, kind, chance
        self.total = 0 if kind == "empty" else 2 * chance.randrange(50_000, 90_000)
        self.kept = 0 if kind == "host" else self.total - 2 * round(self.total * 0.05)
        self.is_trimmed = int(name[1:]) % 2 == 0
        self.files: dict[str, Any] = {}

    def write(self) -> dict[str, Any]:
        if self.kind == "failed":
            return self._failed()
        if self.is_trimmed:
            self._trimming()
        self._depletion()
        self._quality()
        self._correction()
        if self.kind != "single":
            self._merging()
            self._extension()
        self._assembly()
        self._calls()
        seconds = 3600 + self.chance.random() * 200
        bench = f"s\th:m:s\tmax_rss\tmean_load\tcpu_time\n{seconds}\t-\t{self.kept / 7}\t80\t9\n"
        self._keep("benchmarks", {"correct_reads": [self._text("bench/correct.tsv", bench)]})
        return self.files

    def _failed(self) -> dict[str, Any]:
        places = {"correct": "correct/stats.json", "merge": "merge/stats.json"}
        self.files |= {key: self._note(place) for key, place in places.items()}
        names = {key: self._note(f"assembly/{key}/contigs.fasta") for key in _ARMS}
        self._keep("contigs", names)
        self._keep("quast", self._note("quast/report.tsv"))
        return self.files

    def _note(self, place: str, kind: str = "failed") -> str:
        log = f"logs/correct_reads/{self.name}.log"
        message = "record 9 is damaged" if kind == "failed" else "no contig of at least 500 bases"
        write_note(self.folder / self.name / place, log, message, kind)
        return f"{self.name}/{place}"

    def _keep(self, name: str, value: Any) -> None:
        self.files[name] = value

    def _json(self, place: str, schema: str, **entries: Any) -> str:
        document = {"schema": f"ngsgpu.{schema}", "schema_version": 1, **entries}
        write_json(self.folder / self.name / place, document)
        return f"{self.name}/{place}"

    def _text(self, place: str, text: str) -> str:
        write_text(self.folder / self.name / place, text)
        return f"{self.name}/{place}"

    def _trimming(self) -> None:
        short = 2 * self.chance.randrange(1, 90) if self.total else 0
        before, cut = self.total + short, self.chance.randrange(9000) if self.total else 0
        after = {"total_reads": self.total, "total_bases": _LENGTH * self.total}
        counted = {"total_reads": before, "total_bases": _LENGTH * before + 30 * cut}
        document: dict[str, Any] = {
            "summary": {"before_filtering": counted, "after_filtering": after},
            "filtering_result": {"too_short_reads": short},
        }
        if self.kind != "single":
            document["adapter_cutting"] = {
                "adapter_trimmed_reads": cut, "adapter_trimmed_bases": 30 * cut,
            }  # fmt: skip
        write_json(self.folder / self.name / "trim/fastp.json", document)
        self._keep("trim", f"{self.name}/trim/fastp.json")

    def _depletion(self) -> None:
        host = self.total - self.kept
        reads = {"total": self.total, "host": host, "other": self.kept, "kept": self.kept}
        bases = {"total": _LENGTH * self.total, "kept": _LENGTH * self.kept}
        index = {"kmer": 24, "sources": ["host.fa"]}
        place = "deplete/stats.json"
        self._keep("deplete", self._json(place, "deplete", index=index, reads=reads, bases=bases))

    def _quality(self) -> None:
        share, found = self.chance.uniform(0.7, 0.99), self.chance.randrange(4000)
        counted = {
            "total_reads": self.kept, "total_bases": _LENGTH * self.kept, "q20_rate": 0.99,
            "q30_rate": share if self.kept else 0, "read1_mean_length": _LENGTH, "gc_content": 0.45,
        }  # fmt: skip
        document = {
            "summary": {"before_filtering": counted},
            "duplication": {"rate": self.chance.uniform(0, 0.6) if self.kept else 0},
            "read1_before_filtering": {"quality_curves": {"mean": [37.5, 36.0, 30.25]}},
            "command": "fastp --in1 x",
        }
        if self.kind != "single" and self.kept:
            document["adapter_cutting"] = {"adapter_trimmed_reads": found}
        write_json(self.folder / self.name / "qc/raw.json", document)
        self._keep("qc", {"raw": f"{self.name}/qc/raw.json"})

    def _correction(self) -> None:
        number = self.kept
        document = statistics(
            reads={"total": number, "bases": _LENGTH * number,
                   "min_length": _LENGTH if number else 0, "max_length": _LENGTH if number else 0},
            corrected={"reads": number // 3, "bases": self.chance.randrange(number + 1)},
            coverage={"value": self.chance.uniform(20, 60) if number else 1.0, "estimated": True},
            time_s={"total": self.chance.uniform(3600, 3700)},
            memory={"peak_rss_bytes": self.chance.randrange(10**9, 4 * 10**9)},
        )  # fmt: skip
        write_json(self.folder / self.name / "correct/stats.json", document)
        self._keep("correct", f"{self.name}/correct/stats.json")
        for arm, most in (("raw", 9_000), ("corrected", 90)):
            once = self.chance.randrange(most) if number else 0
            head = "# k=21 sampled=1/4 coverage=29.7\nmultiplicity\tcount\n"
            rows = f"1\t{once}\n30\t1000\n31\t900\n" if number else ""
            self.files.setdefault("kmers", {})[arm] = self._text(f"kmers/{arm}.tsv", head + rows)

    def _merging(self) -> None:
        pairs = self.kept // 2
        sizes = [[200 + i, 1 + self.chance.randrange(pairs // 60)] for i in range(20) if pairs]
        merged = sum(count for _, count in sizes)
        mean = round(sum(size * count for size, count in sizes) / merged, 3) if merged else 0.0
        insert = {"mean": mean, "median": mean, "deviation": 5.0}
        self._keep("merge", self._json(
            "merge/stats.json", "merge", insert_size=insert, histograms={"insert_sizes": sizes},
            pairs={"total": pairs, "merged": merged},
        ))  # fmt: skip

    def _extension(self) -> None:
        pairs = self.kept // 2
        connected = round(pairs * self.chance.uniform(0.6, 0.9))
        insert = {"mean": self.chance.uniform(300, 400), "sd": 30.0, "estimated": pairs > 0,
                  "pairs": pairs // 9}  # fmt: skip
        self._keep("extend", self._json(
            "extend/stats.json", "extend", insert=insert,
            pairs={"total": pairs, "connected": connected, "remaining": pairs - connected},
        ))  # fmt: skip

    def _assembly(self) -> None:
        if not self.kept:
            self._refused()
            return
        number = {"bare": 0, "short": 2}.get(self.kind, 5)
        n50 = {}
        for arm in _ARMS:
            longest = 400 if self.kind == "short" else self.chance.randrange(20_000, 30_000)
            lengths = [longest // (1 + n) for n in range(number)]
            contigs = "".join(
                f">c{n}\n{'ACGT' * (length // 4)}\n" for n, length in enumerate(lengths)
            )
            place = self._text(f"assembly/{arm}/contigs.fasta", contigs)
            self.files.setdefault("contigs", {})[arm] = place
            n50[arm] = _n50([length // 4 * 4 for length in lengths])
        if number and self.kind != "short":
            table = f"Assembly\traw\tcorrected\nN50\t{n50['raw']}\t{n50['corrected']}\n"
            self._keep("quast", self._text("quast/report.tsv", table))
        else:
            self._keep("quast", self._note("quast/report.tsv", "skipped"))

    def _refused(self) -> None:
        """SPAdes takes no files without reads."""
        for arm in _ARMS:
            log, place = (
                f"logs/assemble_reads/{self.name}/{arm}.log",
                f"assembly/{arm}/contigs.fasta",
            )
            write_note(
                self.folder / self.name / place, log, "== Error == file is empty: R1.fastq.gz"
            )
            self.files.setdefault("contigs", {})[arm] = f"{self.name}/{place}"
        self._keep("quast", self._note("quast/report.tsv", "skipped"))

    def _calls(self) -> None:
        left, lines = self.kept, []
        pairs = [] if not left else self.chance.sample(SPECIES, len(SPECIES))
        for place, name in enumerate(pairs):
            own = round(left * self.chance.uniform(0.3, 0.9))
            lines.append((own, own, "S", 10 + place, f"    {name}"))
            left -= own
        called = self.kept - left
        lines[:0] = [(left, left, "U", 0, "unclassified"), (called, 0, "R", 1, "root"),
                     (called, 0, "D", 2, "  Bacteria")]  # fmt: skip
        rows = "".join(f"0.0\t{clade}\t{own}\t{code}\t{taxid}\t{name}\n"
                       for clade, own, code, taxid, name in lines)  # fmt: skip
        place = self._text(f"classify/bacteria/{self.name}.kraken2.report.txt", rows)
        self._keep("classification", {"bacteria": {"report": place}})


_ARMS: Final = ("raw", "corrected")


def _n50(lengths: Sequence[int]) -> int:
    total, reached = sum(lengths), 0
    for length in sorted(lengths, reverse=True):
        reached += length
        if 2 * reached >= total:
            return length
    return 0
