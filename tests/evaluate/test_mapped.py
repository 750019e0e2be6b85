"""Real reads against a reference: slow oracles, aligners as installed, refusals."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.errors import InputError, NgsgpuError, UsageError
from ngsgpu.evaluate.mapped import MappedEvaluation, Thresholds, evaluate_mapped_reads
from ngsgpu.evaluate.mapped.fragments import OUTCOMES
from tests.support.io.records import Record, fastq, write
from tests.support.minhash.oracle import reverse_complement

LENGTH = 40
CIGARS = (["40M"] * 6) + ["5S35M", "37M3S", "20M2I18M", "15M3D25M", "10=1X29="]


def operations(cigar: str) -> list[tuple[str, int]]:
    found, digits = [], ""
    for letter in cigar:
        if letter.isdigit():
            digits += letter
        else:
            found.append((letter, int(digits)))
            digits = ""
    return found


def under(cigar: str, begin: int) -> list[int | None]:
    """Position under each base of a read."""
    where: list[int | None] = []
    for kind, size in operations(cigar):
        if kind in "M=X":
            where += range(begin, begin + size)
            begin += size
        elif kind == "D":
            begin += size
        else:
            where += [None] * size
    return where


class Read:
    """A read in the direction of the reference, and what correction makes of it."""

    def __init__(self, rng: random.Random, genome: str, begin: int, cigar: str) -> None:
        self.cigar, self.begin = cigar, begin
        self.where = under(cigar, begin)
        self.mapq = rng.choice([60] * 9 + [3])
        bases = [rng.choice("ACGT") if p is None else genome[p] for p in self.where]
        for p in (60, 130):  # two alleles
            if p in self.where and rng.random() < 0.5:
                bases[self.where.index(p)] = "ACGT"["CGTA".index(genome[p])]
        if 90 in self.where and rng.random() < 0.2:  # a minority variant
            bases[self.where.index(90)] = "ACGT"["CGTA".index(genome[90])]
        for k in range(LENGTH):
            if rng.random() < 0.03:
                bases[k] = rng.choice("ACGTN")
        self.quality = [rng.choice([2, 30, 30, 40]) for _ in bases]
        self.raw = "".join(bases)
        out = list(bases)
        for k, p in enumerate(self.where):
            if p is not None and rng.random() < 0.5:
                out[k] = genome[p]
            if rng.random() < 0.01:
                out[k] = rng.choice("ACGT")
        self.out = "".join(out)


def pairs_of(rng: random.Random, genome: str, count: int) -> list[tuple[Read, Read, bool]]:
    """Pairs, left and right mate, and whether the first mate is the right one."""
    pairs = []
    for _ in range(count):
        begin = rng.randrange(len(genome) - 3 * LENGTH)
        second = begin + rng.randrange(LENGTH + 20)
        left = Read(rng, genome, begin, rng.choice(CIGARS))
        right = Read(rng, genome, second, rng.choice(CIGARS))
        if rng.random() < 0.7:  # mates of the same fragment agree more often
            right.raw = "".join(
                left.raw[left.where.index(p)] if p in left.where and p is not None else base
                for p, base in zip(right.where, right.raw, strict=True)
            )
        pairs.append((left, right, rng.random() < 0.5))
    return pairs


def study(folder: Path, seed: int) -> tuple[dict[str, Path], str, list[tuple[Read, Read, bool]]]:
    """Files of a study, its genome and its pairs."""
    rng = random.Random(seed)
    genome = "".join(rng.choices("ACGT", k=300))
    pairs = pairs_of(rng, genome, 500)
    sam = ["@SQ\tSN:g\tLN:300"]
    records: dict[str, list[Record]] = defaultdict(list)
    for number, (left, right, swapped) in enumerate(pairs):
        for mate, read in enumerate((right, left) if swapped else (left, right)):
            reverse = read is right
            flag = 1 | (64 << mate) | (16 if reverse else 0)
            sam.append(
                f"p{number}\t{flag}\tg\t{read.begin + 1}\t{read.mapq}\t{read.cigar}\t*\t0\t0"
                f"\t{read.raw}\t*"
            )
            for name, text in (("raw", read.raw), ("out", read.out)):
                quality = bytes(33 + q for q in read.quality)
                if reverse:
                    text, quality = reverse_complement(text), quality[::-1]
                record = Record(b"p%d/%d" % (number, mate + 1), text.encode(), quality)
                records[f"{name}{mate + 1}"].append(record)
    paths = {name: write(folder / f"{name}.fq", fastq(own)) for name, own in records.items()}
    paths["ref"] = write(folder / "ref.fa", f">g\n{genome}\n".encode())
    paths["sam"] = write(folder / "a.sam", "\n".join([*sam, ""]).encode())
    return paths, genome, pairs


def evaluated(paths: dict[str, Path], **more: object) -> MappedEvaluation:
    return evaluate_mapped_reads(
        paths["ref"], paths["raw1"], paths["raw2"], alignments=paths["sam"], **more,  # type: ignore[arg-type]
    )  # fmt: skip


class Oracle:
    """Everything counted base by base in dictionaries."""

    def __init__(self, genome: str, pairs: list[tuple[Read, Read, bool]], known: set[int]) -> None:
        self.genome, self.pairs = genome, pairs
        self.counts: dict[int, Counter[str]] = defaultdict(Counter)
        self.gaps: Counter[int] = Counter()
        for read in self.reads():
            for k, p in enumerate(read.where):
                if p is not None and read.raw[k] != "N" and read.quality[k] >= 20:
                    self.counts[p][read.raw[k]] += 1
            position = read.begin
            for kind, size in operations(read.cigar):
                if kind == "I":
                    self.gaps[position] += 1
                elif kind == "D":
                    for step in range(size):
                        self.gaps[position + step] += 1
                position += size if kind in "M=XD" else 0
        self.agreeing = self.agree("raw")
        self.near_gap = self.find_gaps()
        self.alleles: dict[int, tuple[str, str]] = {}
        self.minority: dict[tuple[int, str], float] = {}
        self.sites = set(known) | self.near_gap
        self.call()

    def reads(self) -> list[Read]:
        return [read for pair in self.pairs for read in pair[:2] if read.mapq >= 20]

    def agree(self, which: str) -> Counter[tuple[int, str]]:
        found: Counter[tuple[int, str]] = Counter()
        for left, right, _ in self.pairs:
            if min(left.mapq, right.mapq) < 20:
                continue
            for k, p in enumerate(left.where):
                if p is None or p not in right.where:
                    continue
                j = right.where.index(p)
                base = getattr(left, which)[k]
                good = min(left.quality[k], right.quality[j]) >= 20
                if good and base != "N" and base == getattr(right, which)[j]:
                    found[p, base] += 1
        return found

    def find_gaps(self) -> set[int]:
        near: set[int] = set()
        for p, count in self.gaps.items():
            depth = max(sum(self.counts[q].values()) for q in (max(0, p - 1), p))
            if count >= 3 and count >= 0.25 * (depth + count):
                near |= set(range(max(0, p - 5), p + 6))
        return near

    def call(self) -> None:
        for p, own in self.counts.items():
            depth = sum(own.values())
            ranked = sorted("ACGT", key=lambda base: -own[base])
            others = [own[base] for base in "ACGT" if base != self.genome[p]]
            if max(others) >= max(3, 0.25 * depth):
                self.sites.add(p)
            if p in self.near_gap:
                continue
            if depth >= 8 and own[ranked[1]] >= 0.25 * depth:
                self.alleles[p] = (ranked[0], ranked[1])
                self.sites.add(p)
            for base in ranked[1:]:
                if self.agreeing[p, base] >= 3 and own[base] >= max(1, 0.01 * depth):
                    self.minority[p, base] = own[base] / depth
                    self.sites.add(p)

    def totals(self) -> Counter[str]:
        found: Counter[str] = Counter(reads=2 * len(self.pairs))
        found["unaligned"] = 2 * len(self.pairs) - len(self.reads())
        for read in self.reads():
            before = after = 0
            introduced = 0
            for k, p in enumerate(read.where):
                if p is None:
                    continue
                raw, out, truth = read.raw[k], read.out[k], self.genome[p]
                if p in self.sites:
                    if p in self.alleles and raw in self.alleles[p]:
                        found["allele_bases"] += 1
                        if raw != out:
                            kind = "switched" if out in self.alleles[p] else "spoilt"
                            found[f"alleles_{kind}"] += 1
                    continue
                found["bases"] += 1
                found["n_before"] += raw == "N"
                found["n_after"] += out == "N"
                before += raw != truth
                after += out != truth
                introduced += raw == truth != out
                found["mended"] += raw != truth == out
                found["wrong_to_wrong"] += len({raw, out, truth}) == 3
            found["errors_before"] += before
            found["errors_after"] += after
            found["introduced"] += introduced
            found["perfect_before"] += before == 0
            found["perfect_after"] += after == 0
            found["made_perfect"] += before > 0 == after
            found["made_imperfect"] += before == 0 < after
            gapped = any(kind in "IDS" for kind, _ in operations(read.cigar))
            kind = "gaps_or_clipped" if gapped else "many_mismatches" if before > 6 else "others"
            found[f"{kind} reads"] += 1
            found[f"{kind} errors_before"] += before
            found[f"{kind} errors_after"] += after
            found[f"{kind} introduced"] += introduced
            self.undone(read, after, introduced, found)
        return found

    def undone(self, read: Read, after: int, introduced: int, found: Counter[str]) -> None:
        placed = [(k, p) for k, p in enumerate(read.where) if p is not None]
        (first, low), (last, high) = placed[0], placed[-1]
        if after == 0 or high - low == last - first:
            return

        def off(shift: int) -> int:
            text = self.genome + "-" * LENGTH
            return sum(read.out[k] != text[k + shift] for k in range(first, last + 1))

        gapped = sum(read.out[k] != self.genome[p] for k, p in placed)
        if min(off(low - first), off(high - last)) < gapped:
            found["indels_undone"] += 1
            found["errors_after_in_undone"] += after
            found["introduced_in_undone"] += introduced


def counted(evaluation: MappedEvaluation) -> Counter[str]:
    document = evaluation.document()["correction"]
    found = Counter(document["totals"])
    for kind, entry in document["by_kind"].items():
        found.update({f"{kind} {name}": count for name, count in entry.items()})
    return +found


@pytest.mark.parametrize("seed", range(4))
def test_correction_equals_the_oracle(tmp_path: Path, seed: int) -> None:
    paths, genome, pairs = study(tmp_path, seed)
    lines = [
        "##fileformat=VCFv4.2",
        "##contig=<ID=g,length=300>",
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO",
        f"g\t201\t.\t{genome[200:202]}\tT\t.\t.\t.",
        "",
    ]
    known = write(tmp_path / "k.vcf", "\n".join(lines).encode())
    evaluation = evaluated(paths, out1=paths["out1"], out2=paths["out2"], known=known)
    oracle = Oracle(genome, pairs, {200, 201})
    sites = evaluation.sites
    assert set(sites.position.tolist()) == oracle.sites
    rows = zip(sites.position.tolist(), sites.alleles.tolist(), strict=True)
    found = {p: ("ACGT"[a], "ACGT"[b]) for p, (a, b) in rows if a >= 0}
    assert found == oracle.alleles and len(found) >= 2
    assert counted(evaluation) == +oracle.totals()
    variants = {
        (int(sites.position[site]), "ACGT"[base]): frequency
        for site, base, frequency in zip(sites.site, sites.base, sites.frequency, strict=True)
    }
    assert variants == oracle.minority and variants
    after = oracle.agree("out")
    entries = evaluation.document()["correction"]["minority"]
    lost = [v for v in variants if 2 * after[v] < oracle.agreeing[v]]
    assert sum(entry["lost"] for entry in entries) == len(lost)
    assert sum(entry["variants"] for entry in entries) == len(variants)
    assert sum(entry["pairs_after"] for entry in entries) == sum(after[v] for v in variants)


def test_single_reads_and_no_qualities(tmp_path: Path) -> None:
    genome = "".join(random.Random(1).choices("ACGT", k=100))
    raw = genome[10:30] + "A" + genome[31:50]
    raw = raw if genome[30] != "A" else genome[10:30] + "C" + genome[31:50]
    line = f"r\t0\tg\t11\t60\t40M\t*\t0\t0\t{raw}\t*\n"
    paths = [
        write(tmp_path / "ref.fa", f">g\n{genome}\n".encode()),
        write(tmp_path / "raw.fa", f">r\n{raw[:7]}\n{raw[7:]}\n".encode()),
        write(tmp_path / "out.fa", f">r\n{genome[10:50]}\n".encode()),
        write(tmp_path / "a.sam", f"@SQ\tSN:g\tLN:100\n{line}".encode()),
    ]
    evaluation = evaluate_mapped_reads(paths[0], paths[1], out1=paths[2], alignments=paths[3])
    totals = evaluation.document()["correction"]["totals"]
    assert (totals["bases"], totals["errors_before"], totals["errors_after"]) == (40, 1, 0)
    assert (totals["mended"], totals["made_perfect"]) == (1, 1)


def test_changed_length_is_counted_not_compared(tmp_path: Path) -> None:
    paths, _, _ = study(tmp_path, 1)
    lines = paths["out1"].read_bytes().splitlines()
    lines[1], lines[3] = lines[1][:30], lines[3][:30]
    paths["out1"].write_bytes(b"\n".join([*lines, b""]))
    evaluation = evaluated(paths, out1=paths["out1"], out2=paths["out2"])
    assert evaluation.document()["correction"]["totals"]["changed_length"] == 1
    assert "another length" in "".join(table.plain() for table in evaluation.tables())


@pytest.mark.parametrize("seed", range(3))
def test_merging_equals_the_oracle(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    genome = "".join(rng.choices("ACGT", k=2000))
    expected: Counter[str] = Counter()
    sam, records = ["@SQ\tSN:g\tLN:2000"], [[], [], []]  # type: ignore[var-annotated]
    for number in range(200):
        span = rng.randint(25, 100)
        begin = 50 + 9 * number
        fragment = genome[begin : begin + span]
        reverse = rng.random() < 0.5
        strand = reverse_complement(fragment) if reverse else fragment
        tail = "".join(rng.choices("ACGT", k=LENGTH))
        mates = [(strand + tail)[:LENGTH], (reverse_complement(strand) + tail)[:LENGTH]]
        inside = min(span, LENGTH)
        kind = rng.choice(["right", "near", "wrong", "missed"])
        unknown = number % 25 == 3
        for mate, text in enumerate(mates):
            letters = list(text)
            if rng.random() < 0.5:
                letters[rng.randrange(inside)] = rng.choice("ACGTN")
            mates[mate] = "".join(letters)
            own_reverse = reverse ^ (mate == 1)
            clip = LENGTH - inside
            aligned = (f"{clip}S" if clip else "") + f"{inside}M"
            if not own_reverse:
                aligned = f"{inside}M" + (f"{clip}S" if clip else "")
            at = begin + span - inside if own_reverse else begin
            flag = 1 | (64 << mate) | (16 if own_reverse else 0) | (4 if unknown and mate else 0)
            text = reverse_complement(mates[mate]) if own_reverse else mates[mate]
            sam.append(f"p{number}\t{flag}\tg\t{at + 1}\t60\t{aligned}\t*\t0\t0\t{text}\t*")
            records[mate].append(Record(b"p%d" % number, mates[mate].encode(), b"I" * LENGTH))
        overlaps = 2 * inside - span >= 10
        expected["pairs"] += 1
        if unknown:
            expected["unknown_fragment"] += 1
            expected["unknown_merged"] += kind != "missed"
        elif overlaps:
            expected["overlapping"] += 1
            expected[kind] += 1
        else:
            expected["apart"] += 1
            expected["apart_merged"] += kind != "missed"
        if kind == "missed":
            continue
        bases = list(strand)
        bases[rng.randrange(span)] = rng.choice("ACGTN")
        qualities = [rng.choice([2, 20, 41]) for _ in bases]
        extra = {"right": 0, "near": 3, "wrong": 4}[kind]
        record = Record(
            b"p%d" % number,
            ("".join(bases) + "A" * extra).encode(),
            bytes(33 + q for q in qualities) + b"I" * extra,
        )
        records[2].append(record)
        if kind == "right" and overlaps and not unknown:
            other = reverse_complement(mates[1][:inside])
            for k, (truth, base) in enumerate(zip(strand, bases, strict=True)):
                first = mates[0][k] if k < inside else "N"
                second = other[k - span + inside] if k >= span - inside else "N"
                where = "agree" if first == second else "disagree"
                where = "alone" if "N" in (first, second) else where
                expected[f"{where} {qualities[k]}"] += 1
                expected[f"{where} {qualities[k]} errors"] += truth != base
    paths = [write(tmp_path / f"{i}.fq", fastq(own)) for i, own in enumerate(records)]
    ref = write(tmp_path / "ref.fa", f">g\n{genome}\n".encode())
    alignments = write(tmp_path / "a.sam", "\n".join([*sam, ""]).encode())
    # No site: errors of few reads at a position would be variants.
    evaluation = evaluate_mapped_reads(
        ref, paths[0], paths[1], merged=paths[2], alignments=alignments,
        limits=Thresholds(min_quality=93),
    )  # fmt: skip
    document = evaluation.document()["merging"]
    found = Counter({name: count for name, count in document["pairs"].items() if count})
    for where, entry in document["calibration"].items():
        for own in entry["by_quality"]:
            found[f"{where} {own['quality']}"] = own["bases"]
            found[f"{where} {own['quality']} errors"] = own["errors"]
    assert +found == +expected
    assert set(document["pairs"]) == set(OUTCOMES)


def test_calibration_by_hand(tmp_path: Path) -> None:
    import numpy as np

    from ngsgpu.evaluate.mapped.result import calibration

    table = np.zeros((94, 2), dtype=np.int64)
    table[10] = 100, 20
    table[30] = 1000, 0
    entry = calibration(table)
    assert (entry["bases"], entry["seen"], entry["stated"]) == (1100, 20, 11.0)
    assert entry["phred_error"] == 2.6  # 10 log10 (20 / 11)
    assert entry["mean_phred_error"] == 3.01  # stated 10, seen 6.99


@pytest.mark.parametrize("aligner", ["bwa", "minimap2"])
def test_aligners(tmp_path: Path, aligner: str, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(aligner) is None:
        pytest.skip(f"{aligner} is not installed")
    rng = random.Random(3)
    genome = "".join(rng.choices("ACGT", k=3000))
    records: list[list[Record]] = [[], [], [], []]
    errors = 0
    for number in range(100):
        begin = rng.randrange(2600)
        strands = [
            genome[begin : begin + 100],
            reverse_complement(genome[begin + 200 : begin + 300]),
        ]
        for mate, true in enumerate(strands):
            letters = list(true)
            letters[50] = "ACGT"["CGTA".index(true[50])]
            errors += 1
            name = b"p%d/%d" % (number, mate + 1)
            records[mate].append(Record(name, "".join(letters).encode(), b"I" * 100))
            records[2 + mate].append(Record(name, true.encode(), b"I" * 100))
    files = [str(write(tmp_path / f"{i}.fq", fastq(own))) for i, own in enumerate(records)]
    ref = str(write(tmp_path / "my ref.fa", f">g\n{genome}\n".encode()))
    target = tmp_path / "e.json"
    arguments = ["-i", files[0], "-I", files[1], "-o", files[2], "-O", files[3]]
    command = ["evaluate", "mapped", "--reference", ref, *arguments, "--aligner", aligner]
    assert main([*command, "--json", str(target)]) == 0
    document = json.loads(target.read_text())
    assert document["schema"] == "ngsgpu.evaluate.mapped"
    totals = document["correction"]["totals"]
    assert totals["errors_before"] == totals["mended"] == errors
    assert totals["errors_after"] == totals["introduced"] == 0
    assert "errors mended" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0.fq", "1.fq", "2.fq", "3.fq", "e.json", "my ref.fa",
    ]  # fmt: skip


def test_refusals(tmp_path: Path) -> None:
    paths, _, _ = study(tmp_path, 2)
    with pytest.raises(UsageError, match="`in2` and `out2` belong together"):
        evaluated(paths, out1=paths["out1"])
    with pytest.raises(UsageError, match="`aligner` must be one of"):
        evaluate_mapped_reads(paths["ref"], paths["raw1"], out1=paths["out1"], aligner="bowtie")
    with pytest.raises(UsageError, match="`merged` needs the pairs"):
        evaluate_mapped_reads(paths["ref"], paths["raw1"], merged=paths["out1"])
    with pytest.raises(InputError, match=r"raw1\.fq, record 1: read 'p0/1' is not where"):
        other = write(tmp_path / "b.sam", shuffled(paths["sam"]))
        evaluated(paths | {"sam": other}, out1=paths["out1"], out2=paths["out2"])
    with pytest.raises(InputError, match="lies in 'g', which is not in the reference"):
        evaluated(paths | {"ref": write(tmp_path / "x.fa", b">x\nACGT\n")}, merged=paths["raw1"])
    lines = paths["out2"].read_bytes().splitlines(keepends=True)
    with pytest.raises(InputError, match=r"moved\.fq, record 1: the read is 'p1/2' where"):
        other = write(tmp_path / "moved.fq", b"".join([*lines[4:], *lines[:4]]))
        evaluated(paths, out1=paths["out1"], out2=other)
    with pytest.raises(InputError, match=r"short\.fq: it has fewer records than"):
        other = write(tmp_path / "short.fq", b"".join(lines[:-4]))
        evaluated(paths, out1=paths["out1"], out2=other)
    with pytest.raises(InputError, match=r"a\.sam: it has 1,000 primary alignments of 998 reads"):
        fewer = {
            name: write(tmp_path / f"f{name}.fq", b"".join(own[:-4]))
            for name in ("raw1", "raw2")
            for own in [paths[name].read_bytes().splitlines(keepends=True)]
        }
        evaluated(paths | fewer, merged=paths["out1"])
    with pytest.raises(InputError, match=r"out1\.fq, record 1: the read is 'p0/1' where .*raw2"):
        evaluated(paths, out1=paths["out1"], out2=paths["out1"])
    with pytest.raises(InputError, match="none of the 1,000 reads aligns to it with a mapping"):
        evaluated(paths, merged=paths["out1"], limits=Thresholds(min_mapq=61))
    with pytest.raises(InputError, match=r"raw1\.fq: pysam cannot read it"):
        evaluated(paths | {"sam": paths["raw1"]}, merged=paths["raw1"])
    with pytest.raises(InputError, match=r"none\.fq: no such file"):
        evaluate_mapped_reads(paths["ref"], tmp_path / "none.fq", out1=paths["raw1"])
    with pytest.raises(InputError, match="reaches beyond the end of 'g'"):
        short = write(tmp_path / "short.fa", b">g\n" + b"ACGT" * 40 + b"\n")
        evaluated(paths | {"ref": short}, merged=paths["out1"])
    with pytest.raises(UsageError, match="`allele_fraction` must be"):
        Thresholds(allele_fraction=0)


def shuffled(sam: Path) -> bytes:
    lines = sam.read_bytes().splitlines(keepends=True)
    return b"".join([lines[0], *lines[3:], *lines[1:3]])


def test_an_aligner_that_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, _, _ = study(tmp_path, 2)
    program = tmp_path / "bin" / "bwa"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no good >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(NgsgpuError, match=r"bwa index ended with status 3 \(no good\)"):
        evaluate_mapped_reads(paths["ref"], paths["raw1"], out1=paths["out1"])
    program.unlink()
    with pytest.raises(UsageError, match="there is no program bwa on the PATH"):
        evaluate_mapped_reads(paths["ref"], paths["raw1"], out1=paths["out1"])


def test_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths, _, _ = study(tmp_path, 2)
    command = ["evaluate", "mapped", "--reference", str(paths["ref"]), "-i", str(paths["raw1"])]
    assert main(command) == 2
    assert "give --out1, --merged or both" in capsys.readouterr().err
