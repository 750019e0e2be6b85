"""Other reads that witness a base, and what becomes of bases that they witness."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters, RunOptions, correct_reads
from ngsgpu.correct.rules import cpu_witnesses
from ngsgpu.correct.rules.cpu_witnesses import ReadAsker
from ngsgpu.correct.rules.witnesses import OWN, Asker, keep_witnessed, shown_by_others
from ngsgpu.correct.workspace import ASKED, DOUBTFUL, GOOD, HIGH_QUALITY, OF_RARE_STRAIN
from ngsgpu.readset import ReadSet
from ngsgpu.readset.fill import fill_unknown
from tests.support.correct.alignment import make_reads
from tests.support.correct.bench import edits_of
from tests.support.correct.scenarios import Scenario
from tests.support.correct.whole import assert_equal
from tests.support.correct.witnesses import is_contradicted, is_witnessed, length_of_kmers

LENGTH = 100
VARIANT = 90
"""Place of the genome that two reads of a strain, which overlap in 25 bases, have otherwise."""


def _asker(backend: str, reads: ReadSet) -> Asker:
    if backend == "cpu":
        return ReadAsker(reads, 2)
    from ngsgpu.correct.rules.gpu_witnesses import DeviceAsker
    from ngsgpu.readset.gpu import DeviceReadSet

    return DeviceAsker(DeviceReadSet.from_host(reads))


def _random_reads(random: Random) -> tuple[list[str], list[str] | None]:
    """An even number of reads of a short genome and of a variant of it, some with N."""
    genome = random.choices("ACGT", k=70)
    strain = [random.choice("ACGT") if random.random() < 0.05 else base for base in genome]
    letters, qualities = [], []
    for _ in range(2 * random.randrange(1, 20)):
        length = random.randrange(5, 50)
        start = random.randrange(len(genome) - length)
        bases = (strain if random.random() < 0.3 else genome)[start : start + length]
        bases = [random.choice("ACGTN") if random.random() < 0.01 else base for base in bases]
        if random.random() < 0.5:
            bases = ["TGCAN"["ACGTN".index(base)] for base in reversed(bases)]
        letters.append("".join(bases))
        qualities.append("".join(random.choices("+5?I", weights=(1, 3, 3, 3), k=length)))
    return letters, qualities if random.random() < 0.8 else None


@pytest.mark.parametrize("seed", range(12))
def test_witnesses_equal_the_oracle(
    backend: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    letters, qualities = _random_reads(random)
    paired, bits = random.random() < 0.5, random.choice([8, 8, 2])
    monkeypatch.setattr(cpu_witnesses, "KMERS_AT_A_TIME", random.choice([1, 7, 10_000]))
    reads = ReadSet.from_sequences(letters, qualities, paired=paired, quality_bits=bits)
    fill_unknown(reads)
    asker, k = _asker(backend, reads), length_of_kmers(reads.bases)
    places = [(read, at) for read, own in enumerate(letters) for at in range(len(own))]
    owner, positions = (np.array(own) for own in zip(*places, strict=True))
    owner, positions = owner.astype(np.uint32), positions.astype(np.int32)
    own = asker.kmers(owner, positions, np.full(len(owner), OWN, np.uint8), k)
    known = make_reads(letters, qualities, bits)
    expected = [is_witnessed(known, paired, *place) for place in places]
    assert shown_by_others(asker, owner, own, k).tolist() == expected
    assert own.qualities.tolist() == [known[read].score(at) for read, at in places]
    bases = random.choices(range(4), k=len(places))
    among = np.array([random.random() < 0.5 for _ in letters])
    instead = asker.kmers(owner, positions, np.array(bases, np.uint8), k)
    some = set(np.flatnonzero(among).tolist())
    expected = [
        is_contradicted(known, paired, read, at, "ACGT"[base], some)
        for (read, at), base in zip(places, bases, strict=True)
    ]
    assert shown_by_others(asker, owner, instead, k, among).tolist() == expected


def test_oracle_sees_both() -> None:
    """The random reads are only worth something if some bases are witnessed and others are not."""
    seen = set()
    for seed in range(12):
        letters, qualities = _random_reads(Random(seed))
        known = make_reads(letters, qualities, 8)
        seen |= {is_witnessed(known, False, 0, at) for at in range(len(letters[0]))}
    assert seen == {False, True}


def _edited(rare_reads: int) -> tuple[list[bool], list[bool]]:
    """Whether edits of four reads are doubtful then, and the reads of a rare strain.

    The first has a variant at Q40, which the second and the fourth share at Q11; the third has an
    error at Q40. Of a rare strain are so many reads from the fourth on.
    """
    random = Random(5)
    genome, elsewhere = ("".join(random.choices("ACGT", k=40)) for _ in range(2))
    strain = genome[:20] + "CGTA"["ACGT".index(genome[20])] + genome[21:]
    wrong = elsewhere[:20] + "CGTA"["ACGT".index(elsewhere[20])] + elsewhere[21:]
    letters = [strain, strain[5:], wrong, strain[7:]] + [genome] * 300
    qualities = ["I" * len(own) for own in letters]
    for read, at in ((1, 15), (3, 13)):
        qualities[read] = qualities[read][:at] + "," + qualities[read][at + 1 :]
    reads = ReadSet.from_sequences(letters, qualities)
    positions = [20, 15, 20, 13]
    edits = np.array([at << 2 | int(ASKED) for at in positions], np.uint32)
    edits[[0, 2]] |= GOOD
    count = np.zeros(len(letters), np.uint16)
    count[:4] = 1
    start = np.zeros(len(letters), np.int64)
    start[:4] = range(4)
    classes = np.full(len(letters), HIGH_QUALITY, np.uint8)
    classes[3 : 3 + rare_reads] |= np.uint8(OF_RARE_STRAIN)
    keep_witnessed(ReadAsker(reads, 1), start, count, edits, classes)
    return ((edits & DOUBTFUL) != 0).tolist(), ((classes[:4] & OF_RARE_STRAIN) != 0).tolist()


def test_in_a_read_of_a_rare_strain_a_witnessed_base_stays() -> None:
    """No read of Q20 or above witnesses the first; the second is asked about by nothing."""
    doubtful, rare = _edited(rare_reads=4)
    assert doubtful == [False, False, False, True]
    assert rare == [False, False, False, True]


def test_few_reads_of_rare_strains_are_not_asked_about() -> None:
    assert _edited(rare_reads=3)[0] == [False] * 4


def _reads(*, of_strains: bool) -> Scenario:
    """Reads of a genome, two with a variant, and two with others elsewhere if ``of_strains``."""
    random = Random(3)
    genome = "".join(random.choices("ACGT", k=400))
    letters = [genome[start : start + LENGTH] for start in range(0, 300, 4)]
    pairs = [(0, VARIANT), (75, VARIANT)]
    pairs += [(250, 300), (262, 300)] if of_strains else []
    for start, place in pairs:
        own = genome[:place] + "CGTA"["ACGT".index(genome[place])] + genome[place + 1 :]
        letters.append(own[start : start + LENGTH])
    minhash = MinhashParameters(kmer=16)
    parameters = CorrectionParameters(coverage=20, minhash=minhash, model="none")
    return Scenario(letters, ["I" * LENGTH] * len(letters), False, parameters)


@pytest.mark.parametrize("of_strains", [True, False])
def test_variant_of_reads_that_overlap_little(backend: str, of_strains: bool) -> None:
    """Each is aligned with reads of the genome alone, but where strains are seen, both keep it."""
    scenario = _reads(of_strains=of_strains)
    options = RunOptions(backend=backend)
    assert_equal(scenario, options)
    corrections, _ = correct_reads(scenario.read_set(), scenario.parameters, options)
    changed = [bool(edits_of(corrections, read)) for read in (75, 76)]
    assert changed == [not of_strains] * 2
