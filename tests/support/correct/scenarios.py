"""Small sets of reads with repeats, errors, indels, N, ties, crowded buckets."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from ngsgpu.correct import CorrectionParameters, MinhashParameters
from ngsgpu.readset import ReadSet
from ngsgpu.readset.fill import fill_unknown
from tests.support.correct import oracle
from tests.support.correct.alignment import make_reads
from tests.support.minhash.oracle import reverse_complement


@dataclass(frozen=True)
class Scenario:
    """Reads (as letters and quality characters, mates alternating) and how to correct them."""

    letters: list[str]
    qualities: list[str] | None
    paired: bool
    parameters: CorrectionParameters

    @property
    def coverage(self) -> float:
        assert self.parameters.coverage is not None
        return self.parameters.coverage

    def read_set(self) -> ReadSet:
        reads = ReadSet.from_sequences(
            self.letters,
            self.qualities,
            paired=self.paired,
            quality_bits=self.parameters.quality_bits,
        )
        fill_unknown(reads)
        return reads

    def oracle(self) -> oracle.Corrector:
        reads = make_reads(self.letters, self.qualities, self.parameters.quality_bits)
        return oracle.Corrector(reads, self.parameters, self.coverage, paired=self.paired)


def make_genome(random: Random, length: int, copies: int, divergence: float) -> str:
    """A genome of which a part is repeated, with differences, on both strands."""
    part = "".join(random.choices("ACGT", k=length))
    genome = part
    for _ in range(copies - 1):
        copy = mutated(random, part, divergence)
        spacer = "".join(random.choices("ACGT", k=random.randint(0, 20)))
        genome += spacer + (reverse_complement(copy) if random.random() < 0.5 else copy)
    return genome


def mutated(random: Random, bases: str, rate: float) -> str:
    return "".join(
        random.choice("ACGT".replace(base, "")) if random.random() < rate else base
        for base in bases
    )


def with_indel(random: Random, bases: str) -> str:
    """The same with up to three bases missing or too many somewhere."""
    at, size = random.randint(0, len(bases)), random.randint(1, 3)
    if random.random() < 0.5:
        return bases[:at] + bases[at + size :]
    return bases[:at] + "".join(random.choices("ACGT", k=size)) + bases[at:]


def sequence(random: Random, truth: str, error: float, ambiguous: float) -> tuple[str, str]:
    """A read of a piece of the genome: letters and qualities, which mostly know the errors."""
    letters, qualities = "", ""
    for base in mutated(random, truth, error):
        letters += random.choice("NNN.nRU") if random.random() < ambiguous else base
    for true, letter in zip(truth, letters, strict=True):
        low = random.random() < (0.8 if true != letter else 0.1)
        qualities += chr(33 + (random.randint(0, 21) if low else random.choice([20, 30, 40, 93])))
    if random.random() < 0.1:
        letters = letters.lower()
    return letters, qualities


@st.composite
def read_sets(draw: st.DrawFn, max_reads: int = 60) -> tuple[list[str], list[str] | None, bool]:
    """Letters, qualities and whether reads are paired."""
    random = Random(draw(st.integers(0, 1 << 30)))
    copies = draw(st.sampled_from([1, 1, 2, 3]))
    length = draw(st.integers(60, 400)) // copies
    genome = make_genome(random, length, copies, draw(st.sampled_from([0.0, 0.01, 0.03, 0.08])))
    paired = draw(st.booleans())
    count = draw(st.sampled_from([2, 9, max_reads // 3, max_reads // 2, max_reads]))
    shortest, longest = draw(
        st.sampled_from([(50, 50), (40, 40), (70, 80), (20, 80), (5, 70), (0, 64), (64, 65)])
    )
    error = draw(st.sampled_from([0.0, 0.01, 0.02, 0.05, 0.1]))
    ambiguous = draw(st.sampled_from([0.0, 0.0, 0.01, 0.05]))
    duplicates = draw(st.sampled_from([0.0, 0.0, 0.3]))
    indels = draw(st.sampled_from([0.0, 0.0, 0.1, 0.3]))
    reads: list[tuple[str, str]] = []
    while len(reads) < count:
        if reads and random.random() < duplicates:
            reads += random.choices(reads, k=1)
            continue
        size = min(random.randint(shortest, longest), len(genome))
        start = random.randint(0, len(genome) - size)
        fragment = genome[start : start + random.randint(size, 3 * size + 1)]
        pieces = [fragment[:size]]
        if paired:
            other = random.randint(shortest, longest)
            pieces.append(reverse_complement(fragment)[:other])
        if random.random() < 0.5:
            pieces = [reverse_complement(piece) for piece in pieces]
        pieces = [
            with_indel(random, piece) if random.random() < indels else piece for piece in pieces
        ]
        reads += [sequence(random, piece, error, ambiguous) for piece in pieces]
    reads = reads[: count // 2 * 2] if paired else reads[:count]
    qualities = [quality for _, quality in reads] if draw(st.sampled_from([1, 1, 1, 0])) else None
    return [letters for letters, _ in reads], qualities, paired


@st.composite
def parameters(draw: st.DrawFn, depth: float) -> CorrectionParameters:
    """Parameters that suit short reads, at a coverage near ``depth``."""
    return CorrectionParameters(
        coverage=round(max(0.3, depth * draw(st.sampled_from([0.2, 0.5, 1, 1, 1, 2]))), 2),
        minhash=MinhashParameters(
            kmer=draw(st.sampled_from([8, 9, 10, 11, 12, 16, 21, 31, 32])),
            hashes=draw(st.integers(1, 8)),
            crowd_factor=draw(st.sampled_from([2.5, 2.5, 1.0, 0.5])),
            crowd_minimum=draw(st.sampled_from([10, 10, 5, 2])),
            seed=draw(st.sampled_from([0, 0, 1, (1 << 32) - 1])),
        ),
        quality_bits=draw(st.sampled_from([8, 8, 2, 1, 0])),
        min_overlap=draw(st.sampled_from([8, 15, 20, 30])),
        min_overlap_ratio=draw(st.sampled_from([0.3, 0.3, 0.75])),
        refine_factor=draw(st.sampled_from([0.3, 0.3, 0.15])),
        refine_rounds=draw(st.sampled_from([5, 5, 1, 0])),
        margin=draw(st.sampled_from([15, 15, 3, 0])),
        model="none",
        **draw(st.sampled_from([{}, {"classic": True}, {"classic": True}, {"keep_variants": 2}])),
    )


@st.composite
def scenarios(draw: st.DrawFn, max_reads: int = 60) -> Scenario:
    letters, qualities, paired = draw(read_sets(max_reads))
    depth = sum(map(len, letters)) / 200
    return Scenario(letters, qualities, paired, draw(parameters(depth)))
