"""The sheets: what they may say, and what is said about what they may not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.exceptions import WorkflowError

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
DATASETS_HEADER = (
    "dataset\treference\tart_profile\tread_length\tcoverage\tinsert_mean\tinsert_sd\tseed"
)


@pytest.fixture(scope="module")
def sheets() -> Any:
    """The functions that read the sheets, which are plain Python."""
    names: dict[str, Any] = {"__name__": __name__}
    for part in ("sheets", "samples"):
        path = ROOT / "workflow" / "rules" / "common" / f"{part}.smk"
        exec(compile(path.read_text(), str(path), "exec"), names)
    return SimpleNamespace(**names)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with reads, mates and a reference, all empty files."""
    for name in ("a_1.fq", "a_2.fq", "b_1.fq", "b_2.fq", "ref.fa"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def samples_of(sheets: Any, text: str) -> Any:
    Path("samples.tsv").write_text(text)
    return sheets.read_samples("samples.tsv", SCHEMAS / "samples.schema.yaml")


def datasets_of(sheets: Any, text: str, genomes: tuple[str, ...] = ("g",)) -> Any:
    Path("datasets.tsv").write_text(text)
    return sheets.read_datasets("datasets.tsv", SCHEMAS / "datasets.schema.yaml", set(genomes), 4)


def test_lanes_of_a_sample_come_together_in_order(sheets: Any, folder: Path) -> None:
    samples = samples_of(
        sheets,
        "sample\tfastq_1\tfastq_2\treference\n"
        "# a comment, and a blank line\n\n"
        "x\tb_1.fq\tb_2.fq\tref.fa\n"
        "y\ta_1.fq\n"
        "x\ta_1.fq\ta_2.fq\tref.fa\n",
    )
    assert list(samples) == ["x", "y"]
    assert samples["x"].first == ["b_1.fq", "a_1.fq"]
    assert samples["x"].second == ["b_2.fq", "a_2.fq"]
    assert samples["x"].reference == "ref.fa"
    assert samples["y"].second == [] and samples["y"].reference is None


def test_accessions_become_the_files_that_are_fetched(sheets: Any, folder: Path) -> None:
    samples = samples_of(
        sheets,
        "sample\tfastq_1\tfastq_2\nx\tsra:SRR1\tsra:SRR1\nx\ta_1.fq\ta_2.fq\ny\tsra:ERR2\n",
    )
    assert samples["x"].first == ["results/sra/SRR1_1.fastq.gz", "a_1.fq"]
    assert samples["x"].second == ["results/sra/SRR1_2.fastq.gz", "a_2.fq"]
    assert (samples["y"].first, samples["y"].second) == (["results/sra/ERR2.fastq.gz"], [])


def test_alignments_have_both_mates(sheets: Any, folder: Path) -> None:
    for name in ("a.bam", "b.CRAM", "c.bam"):
        (folder / name).touch()
    head = "sample\tfastq_1\tfastq_2\n"
    samples = samples_of(sheets, head + "x\ta.bam\ta.bam\nx\tb.CRAM\tb.CRAM\ny\tc.bam\n")
    assert (samples["x"].first, samples["x"].second) == (["a.bam", "b.CRAM"],) * 2
    assert (samples["y"].first, samples["y"].second) == (["c.bam"], [])
    for rows, said in (
        ("x\ta.bam\tc.bam\n", "give 'a.bam' as fastq_2, too, if it holds pairs"),
        ("x\ta_1.fq\tc.bam\n", "BAM and CRAM have both mates"),
        ("x\ta.bam\ta.bam\nx\ta.bam\ta.bam\n", "'a.bam' is already in line 2"),
        ("x\ta.bam\ta.bam\nx\ta_1.fq\ta_2.fq\n", "lanes of FASTQ, and of BAM or CRAM"),
    ):
        with pytest.raises(WorkflowError, match=said):
            samples_of(sheets, head + rows)


def test_names_like_numbers_and_missing_values_stay_names(sheets: Any, folder: Path) -> None:
    samples = samples_of(sheets, "sample\tfastq_1\n007\ta_1.fq\nNA\tb_1.fq\n")
    assert list(samples) == ["007", "NA"]


def test_windows_line_ends_and_byte_order_mark_do_no_harm(sheets: Any, folder: Path) -> None:
    samples = samples_of(sheets, "\ufeffsample\tfastq_1\r\nx\ta_1.fq\r\n")
    assert samples["x"].first == ["a_1.fq"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("a b\ta_1.fq", "line 2, column sample: 'a b'"),
        ("../x\ta_1.fq", "line 2, column sample: '../x'"),
        ("multiqc\ta_1.fq", "'multiqc' is a folder of the workflow"),
        ("x\tb{x}_1.fq", "line 2, column fastq_1: 'b{x}_1.fq' has a brace"),
        ("x\ta_1.fq\t\td}/ref.fa", "line 2, column reference: 'd}/ref.fa' has a brace"),
        ("x\t\ta_2.fq", "'fastq_1' is a required property"),
        ("x\ta_1.fq\ta_1.fq", "'a_1.fq' is already in line 2"),
        ("x\ta_1.fq\ta_2.fq\nx\ta_1.fq\tb_2.fq", "line 3, column fastq_1: 'a_1.fq' is already"),
        ("x\ta_1.fq\ta_2.fq\nx\tb_1.fq", "lanes with and without second mates"),
        ("x\ta_1.fq\nx\tb_1.fq\t\tref.fa", "another reference further up"),
        ("x\tsra:PRJ1", "line 2, column fastq_1: 'sra:PRJ1' names no run"),
        ("x\tsra:SRR1\tsra:SRR2", "line 2: fastq_1 and fastq_2 are not of the same run"),
        ("x\ta_1.fq\tsra:SRR2", "line 2: fastq_1 and fastq_2 are not of the same run"),
        ("x\tsra:SRR1\nx\tsra:SRR1", "line 3, column fastq_1: 'results/sra/SRR1.fastq.gz' is"),
        ("x\ta_1.fq\ta_2.fq\tref.fa\tmore", "5 cells, but the header has 4"),
    ],
)
def test_samples_refused(sheets: Any, folder: Path, rows: str, said: str) -> None:
    with pytest.raises(WorkflowError) as refusal:
        samples_of(sheets, f"sample\tfastq_1\tfastq_2\treference\n{rows}\n")
    assert said in str(refusal.value)
    assert "samples.tsv" in str(refusal.value)


def test_all_problems_are_told_at_once(sheets: Any, folder: Path) -> None:
    with pytest.raises(WorkflowError) as refusal:
        samples_of(sheets, "sample\tfastq_1\nx y\ta_1.fq\ny/z\ta_1.fq\n")
    assert "line 2" in str(refusal.value) and "line 3" in str(refusal.value)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_separator_and_further_columns(sheets: Any, folder: Path, mark: str, end: str) -> None:
    """As spreadsheets write it: byte order mark, quoted cells, empty cells to the right."""
    rows = [
        ["sample", "tissue", "fastq_1", "fastq_2", "note", ""],
        ["x", "liver", '"a 1.fq"', "a_2.fq", "", ""],
        ["", "", "", "", "", ""],
        ["y", "", "b_1.fq", "", "", ""],
    ]
    samples = samples_of(sheets, "\ufeff" + "".join(mark.join(row) + end for row in rows))
    assert samples["x"].first == ["a 1.fq"] and samples["x"].second == ["a_2.fq"]
    assert samples["y"].first == ["b_1.fq"] and samples["y"].second == []


def test_data_sets_as_comma_separated_values(sheets: Any, folder: Path) -> None:
    text = f"{DATASETS_HEADER}\nd\tref.fa\tHS20\t100\t2.5\t300\t10\t7\n"
    assert datasets_of(sheets, text.replace("\t", ",")) == datasets_of(sheets, text)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("sample\tfastq1", "line 1: column 'fastq1': did you mean fastq_1?"),
        ("Sample,FASTQ_1", "column 'Sample': did you mean sample?"),
        ("sample\tfastq_1\tfatsq_2", "column 'fatsq_2': did you mean fastq_2?"),
        ("sample\tfastq_1\treferences", "column 'references': did you mean reference?"),
        ("fastq_1", "there is no column 'sample'"),
        ("sample\tfastq_1\tfastq_1", "there are two columns 'fastq_1'"),
    ],
)
def test_header_refused(sheets: Any, folder: Path, header: str, said: str) -> None:
    with pytest.raises(WorkflowError) as refusal:
        samples_of(sheets, f"{header}\n")
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("text", ["", "# nothing\n\n"])
def test_sheet_without_header_refused(sheets: Any, folder: Path, text: str) -> None:
    with pytest.raises(WorkflowError, match="not even a header"):
        samples_of(sheets, text)


def test_missing_sheet_refused(sheets: Any, folder: Path) -> None:
    with pytest.raises(WorkflowError, match=r"cannot read the sheet 'no\.tsv'"):
        sheets.read_samples("no.tsv", SCHEMAS / "samples.schema.yaml")


def test_dataset_is_read_with_types_and_default_chunks(sheets: Any, folder: Path) -> None:
    datasets = datasets_of(sheets, f"{DATASETS_HEADER}\nd\tref.fa\tHS20\t100\t2.5\t300\t10\t7\n")
    dataset = datasets["d"]
    assert (dataset.read_length, dataset.coverage, dataset.seed) == (100, 2.5, 7)
    assert dataset.chunks == 4
    own = datasets_of(
        sheets, f"{DATASETS_HEADER}\tchunks\nd\tsynthetic:g\tHS20\t100\t2\t300\t10\t7\t9\n"
    )
    assert own["d"].chunks == 9


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("d\tref.fa\tHS99\t100\t30\t300\t10\t1", "column art_profile: 'HS99'"),
        ("d\tref.fa\tHS20\tlong\t30\t300\t10\t1", "column read_length: 'long'"),
        ("d\tref.fa\tHS20\t101\t30\t300\t10\t1", "reads of at most 100 bases"),
        ("d\tref.fa\tHS20\t100\t0\t300\t10\t1", "column coverage: '0.0'"),
        ("d\tref.fa\tHS20\t100\t30\t100\t10\t1", "must be longer than the reads"),
        ("d\tref.fa\tHS20\t100\t30\t2000\t10\t1", "column insert_mean: '2000'"),
        ("d\tref.fa\tHS20\t100\t30\t300\t10\t", "'seed' is a required property"),
        ("d\tsynthetic:h\tHS20\t100\t30\t300\t10\t1", "no synthetic genome 'h'"),
        ("genomes\tref.fa\tHS20\t100\t30\t300\t10\t1", "is a folder of the workflow"),
    ],
)
def test_datasets_refused(sheets: Any, folder: Path, row: str, said: str) -> None:
    with pytest.raises(WorkflowError) as refusal:
        datasets_of(sheets, f"{DATASETS_HEADER}\n{row}\n")
    assert said in str(refusal.value)


def test_dataset_twice_refused(sheets: Any, folder: Path) -> None:
    row = "d\tref.fa\tHS20\t100\t30\t300\t10\t1\n"
    with pytest.raises(WorkflowError, match="line 3: data set 'd' is there twice"):
        datasets_of(sheets, f"{DATASETS_HEADER}\n{row}{row}")
