"""K-mers before and after correction against an oracle of Python sets."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.cli import main
from ngsgpu.errors import InputError, UsageError
from ngsgpu.evaluate.kmers import evaluate_kmers
from ngsgpu.evaluate.kmers.sample import SampleCounts
from tests.support.io.records import Record, fastq, write
from tests.support.minhash.oracle import reverse_complement

K = 11


def kmers_of(texts: list[str], k: int = K) -> Counter[str]:
    found: Counter[str] = Counter()
    for text in texts:
        for i in range(len(text) - k + 1):
            word = text[i : i + k].upper()
            if set(word) <= set("ACGT"):
                found[min(word, reverse_complement(word))] += 1
    return found


def study(folder: Path, seed: int) -> tuple[dict[str, Path], dict[str, list[str]]]:
    rng = random.Random(seed)
    major = "".join(rng.choices("ACGT", k=1500))
    minor = "".join(rng.choice("ACGT") if rng.random() < 0.03 else base for base in major)
    texts: dict[str, list[str]] = {"ref": [major], "minor": [minor], "raw": [], "out": []}
    for number in range(400):
        genome = minor if number % 5 == 0 else major
        begin = rng.randrange(1440)
        read = genome[begin : begin + 60]
        raw = "".join(rng.choice("ACGTN") if rng.random() < 0.02 else base for base in read)
        out = major[begin : begin + 60] if rng.random() < 0.5 else raw
        strands = (raw, out) if rng.random() < 0.5 else map(reverse_complement, (raw, out))
        for name, text in zip(("raw", "out"), strands, strict=True):
            texts[name].append(text)
    paths = {}
    for name in ("raw", "out"):
        records = [
            Record(b"r%d" % i, text.encode(), b"I" * 60) for i, text in enumerate(texts[name])
        ]
        paths[name] = write(folder / f"{name}.fq", fastq(records))
    for name in ("ref", "minor"):
        text = texts[name][0].lower()
        paths[name] = write(folder / f"{name}.fa", f">g\n{text[:70]}\n{text[70:]}\n".encode())
    return paths, texts


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_oracle(tmp_path: Path, seed: int) -> None:
    paths, texts = study(tmp_path, seed)
    document = evaluate_kmers(
        paths["raw"], paths["out"], reference=paths["ref"], minority=paths["minor"], k=K
    ).document()
    major, minor = set(kmers_of(texts["ref"])), set(kmers_of(texts["minor"]))
    raw, out = kmers_of(texts["raw"]), kmers_of(texts["out"])
    true = major | minor
    assert document["sampled"] == 1
    assert document["true"]["kmers"] == len(true)
    assert document["true"]["lost"] == sum(raw[w] > 0 == out[w] for w in true)
    for entry in document["true"]["by_coverage"][:-1]:
        own = [w for w in true if raw[w] == entry["coverage"]]
        assert (entry["kmers"], entry["lost"]) == (len(own), sum(out[w] == 0 for w in own))
    assert document["true"]["gained"] == sum(out[w] > 0 == raw[w] for w in true)
    assert document["false"] == {
        "before": len(set(raw) - true),
        "after": len(set(out) - true),
        "introduced": len(set(out) - true - set(raw)),
    }
    covered = [w for w in minor - major if raw[w] >= 4]
    kept = sum(out[w] >= 3 for w in covered)
    assert covered and document["minority"] == {
        "own": len(minor - major),
        "min_before": 4,
        "min_after": 3,
        "covered": len(covered),
        "kept": kept,
        "erased": sum(out[w] == 0 for w in covered),
        "share_kept": kept / len(covered),
    }


def test_a_sample_holds_all_occurrences_of_its_kmers(tmp_path: Path) -> None:
    paths, texts = study(tmp_path, 7)
    document = evaluate_kmers(paths["raw"], paths["out"], reference=paths["ref"], k=K, room=500)
    exact = evaluate_kmers(
        paths["raw"], paths["out"], reference=paths["ref"], k=K, room=500, exact=True
    )
    assert exact.sampled == 1 and document.sampled >= 4
    assert document.sampled * document.true == pytest.approx(exact.true, rel=0.25)
    assert "one in" in document.tables()[1].plain()
    counts = SampleCounts(K, 300)
    for text in texts["raw"]:
        data = np.frombuffer(bytearray(text.encode()), np.uint8)
        counts.add(data, np.zeros(1, np.int64), np.full(1, len(text), np.int64))
    counts.settle()
    assert 100 < len(counts.kmers) <= 300
    every = {spelt(kmer): count for kmer, count in zip(counts.kmers, counts.counts, strict=True)}
    raw = kmers_of(texts["raw"])
    assert every == {word: raw[word] for word in every}


def spelt(kmer: np.uint64) -> str:
    return "".join("ACGT"[int(kmer) >> 2 * (K - 1 - i) & 3] for i in range(K))


@pytest.mark.parametrize("k", [1, 31, 32])
def test_shortest_and_longest(tmp_path: Path, k: int) -> None:
    paths, texts = study(tmp_path, 2)
    document = evaluate_kmers(paths["raw"], paths["out"], reference=paths["ref"], k=k).document()
    true = set(kmers_of(texts["ref"], k))
    assert document["true"]["kmers"] == len(true)
    assert document["false"]["before"] == len(set(kmers_of(texts["raw"], k)) - true)


def test_error_free_reads_as_truth(tmp_path: Path) -> None:
    lines = ["@SQ\tSN:g\tLN:100", "r0\t0\tg\t1\t99\t15=\t*\t0\t0\tACGTTGCATGCCATA\t*", ""]
    truth = write(tmp_path / "t.sam", "\n".join(lines).encode())
    raw = write(tmp_path / "raw.fq", b"@r0\nACGTTGCATGCCATA\n+\nIIIIIIIIIIIIIII\n")
    out = write(tmp_path / "out.fq", b"@r0\nACGTTGCATGCCATC\n+\nIIIIIIIIIIIIIII\n")
    document = evaluate_kmers(raw, out, truth=truth, k=K).document()
    assert (document["true"]["kmers"], document["true"]["lost"]) == (5, 1)
    assert document["false"] == {"before": 0, "after": 1, "introduced": 1}


def test_command_and_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths, _ = study(tmp_path, 5)
    target = tmp_path / "k.json"
    command = ["evaluate", "kmers", "-i", str(paths["raw"]), "-o", str(paths["out"])]
    both = ["--reference", str(paths["ref"]), "--minority", str(paths["minor"])]
    assert main([*command, *both, "-k", str(K), "--json", str(target)]) == 0
    assert json.loads(target.read_text())["schema"] == "ngsgpu.evaluate.kmers"
    assert "own k-mers of the minority" in capsys.readouterr().out
    assert main(command) == 2
    with pytest.raises(UsageError, match="`kmer` must be from 1 to 32"):
        evaluate_kmers(paths["raw"], paths["out"], reference=paths["ref"], k=33)
    short = write(tmp_path / "s.fa", b">s\nACGT\n")
    with pytest.raises(InputError, match="it has no 21-mers"):
        evaluate_kmers(paths["raw"], paths["out"], reference=short)
