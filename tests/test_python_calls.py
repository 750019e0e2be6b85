"""What Python callers pass by mistake is refused with a clear message, or does the obvious."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.assemble.contigs import AssemblyParameters
from ngsgpu.assemble.contigs.cleaning import CleaningParameters
from ngsgpu.assemble.euler import EulerParameters
from ngsgpu.assemble.params import UnitigParameters
from ngsgpu.classify.params import (
    DatabaseParameters,
    EvidenceParameters,
    QueryParameters,
    SketchParameters,
)
from ngsgpu.correct import CorrectionParameters, correct_files
from ngsgpu.deplete import DepletionParameters, IndexParameters, build_index
from ngsgpu.errors import UsageError
from ngsgpu.extend import ExtensionParameters
from ngsgpu.kmers import CountParameters, count_files, open_database
from ngsgpu.merge import MergeParameters
from ngsgpu.minhash import MinhashParameters
from ngsgpu.minhash.params import EndParameters
from ngsgpu.readset import ReadSet
from ngsgpu.run.options import RunOptions
from ngsgpu.spectrum import SpectrumParameters
from ngsgpu.suffix.params import QueryParameters as MatchParameters
from ngsgpu.train.fit import Settings
from tests.support.io.records import fastq, reads

OUT_OF_RANGE: list[tuple[Callable[..., object], dict[str, Any]]] = [
    (CorrectionParameters, {"max_mismatch_ratio": 5}),
    (CorrectionParameters, {"max_mismatch_ratio": float("nan")}),
    (CorrectionParameters, {"min_overlap": 0}),
    (CorrectionParameters, {"min_overlap_ratio": -0.1}),
    (CorrectionParameters, {"pair_mismatch_ratio": 1.1}),
    (CorrectionParameters, {"error_rate": 0.5}),
    (CorrectionParameters, {"coverage_factor": -1}),
    (CorrectionParameters, {"refine_factor": -1}),
    (CorrectionParameters, {"refine_rounds": -1}),
    (CorrectionParameters, {"position_support": 2}),
    (CorrectionParameters, {"position_max_reads": -1}),
    (CorrectionParameters, {"margin": -1}),
    (CorrectionParameters, {"compared_quality": 94}),
    (CorrectionParameters, {"evidence_reads": -1}),
    (CorrectionParameters, {"evidence_ratio": -1}),
    (CorrectionParameters, {"quality_bits": 3}),
    (MinhashParameters, {"crowd_factor": -1}),
    (MinhashParameters, {"crowd_minimum": 0}),
    (EndParameters, {"window": 5}),
    (ExtensionParameters, {"step": 65}),
    (ExtensionParameters, {"strict": 3}),
    (ExtensionParameters, {"max_mismatch_ratio": 5}),
    (MergeParameters, {"max_mismatch_density": 2}),
    (SpectrumParameters, {"window": 64}),
    (CountParameters, {"kmer": 10}),
    (UnitigParameters, {"kmer": 30}),
    (AssemblyParameters, {"bubbles": "some"}),
    (AssemblyParameters, {"min_contig": 0}),
    (EulerParameters, {"length": 33}),
    (CleaningParameters, {"tip_ratio": -1}),
    (SketchParameters, {"stride": 0}),
    (DatabaseParameters, {"max_taxa": 0}),
    (QueryParameters, {"min_hits": 0}),
    (QueryParameters, {"lowest": "clan"}),
    (QueryParameters, {"lowest": "genus", "highest": "species"}),
    (EvidenceParameters, {"posterior": 1.5}),
    (IndexParameters, {"one_in": 0}),
    (DepletionParameters, {"min_share": 2}),
    (MatchParameters, {"min_length": 0}),
    (Settings, {"method": "other"}),
    (Settings, {"leaves": 1}),
    (Settings, {"learning_rate": 0}),
    (RunOptions, {"threads": 0}),
    (RunOptions, {"memory": -1}),
    (RunOptions, {"backend": "tpu"}),
]


@pytest.mark.parametrize(
    ("kind", "values"), OUT_OF_RANGE, ids=[f"{k.__name__}-{v}" for k, v in OUT_OF_RANGE]
)
def test_parameters_out_of_their_range(kind: Callable[..., object], values: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        kind(**values)
    name = next(iter(values))
    message = str(caught.value)
    option = name.replace("_", "-")
    assert name in message or option in message or {"window", "length"} & {name}, message
    assert "\n" not in message


@pytest.fixture
def single(tmp_path: Path) -> Path:
    path = tmp_path / "R1.fq"
    path.write_bytes(fastq(reads(40)))
    return path


@pytest.mark.parametrize("kind", [str, Path])
def test_a_single_path_is_a_list_of_one(
    tmp_path: Path, single: Path, kind: Callable[[Path], Any]
) -> None:
    one, other = tmp_path / "one.fq", tmp_path / "other.fq"
    correct_files(kind(single), kind(one))
    correct_files([single], [other])
    assert one.read_bytes() == other.read_bytes()
    count_files(kind(single), tmp_path / "counts", CountParameters(kmer=11))
    assert open_database(tmp_path / "counts").source.sequences == 40
    fasta = tmp_path / "host.fa"
    fasta.write_text(">host\n" + "ACGTTGCATGCATTGACCGATAGACCATGGAT" * 3 + "\n")
    assert build_index(kind(fasta)).sequences == 1


@pytest.mark.parametrize("given", ["ACGT", b"ACGT"])
def test_one_string_is_no_list_of_sequences(given: Any) -> None:
    with pytest.raises(UsageError, match="put it in a list"):
        ReadSet.from_sequences(given)
    with pytest.raises(UsageError, match="put it in a list"):
        ReadSet.from_sequences([b"ACGT"], given)
