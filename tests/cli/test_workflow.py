"""``ngsgpu workflow``: names of FASTQ files, and the study that is written for them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from ngsgpu.cli import main
from ngsgpu.errors import InputError, OutputError, UsageError
from ngsgpu.workflow import snakefile
from ngsgpu.workflow.reads import INDEX, LEFT_OVER, NO_FASTQ, UNDETERMINED, WITH_FASTQ, find_reads
from ngsgpu.workflow.sheet import RESERVED
from ngsgpu.workflow.study import init_study, profiles
from tests.support import content
from tests.support.interruption import killed_everywhere
from tests.support.io.alignments import Alignment, bam


def make(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def rows(folder: Path, **options: bool) -> list[tuple[str, ...]]:
    """Sample and file names of each lane."""
    found = find_reads([folder], **options)
    return [
        (lane.sample, *(own.name for own in (lane.first, lane.second) if own))
        for lane in found.lanes
    ]


@pytest.mark.parametrize(
    ("first", "second", "sample"),
    [
        ("A_S1_L001_R1_001.fastq.gz", "A_S1_L001_R2_001.fastq.gz", "A"),
        ("A-b_c_S12_R1_001.fastq.gz", "A-b_c_S12_R2_001.fastq.gz", "A-b_c"),
        ("1_S1_L001_R1_001.fastq.gz", "1_S1_L001_R2_001.fastq.gz", "1"),
        ("site_S1_R1.fq", "site_S1_R2.fq", "site_S1"),
        ("SRR1_1.fastq.gz", "SRR1_2.fastq.gz", "SRR1"),
        ("a.1.fq.gz", "a.2.fq.gz", "a"),
        ("a.R1.fastq", "a.R2.fastq", "a"),
        ("a_r1.FASTQ.GZ", "a_r2.FASTQ.GZ", "a"),
        ("a-R1.fq.gz", "a-R2.fq.gz", "a"),
        ("a_R2_R1.fq.gz", "a_R2_R2.fq.gz", "a_R2"),
        ("a_R1_trimmed.fq.gz", "a_R2_trimmed.fq.gz", "a_trimmed"),
        ("a_1_val_1.fq.gz", "a_2_val_2.fq.gz", "a"),
        ("a_S1_L001_R1_001_val_1.fq.gz", "a_S1_L001_R2_001_val_2.fq.gz", "a"),
        ("a_lane1_R1.fq.gz", "a_lane1_R2.fq.gz", "a"),
        ("a/R1.fastq.gz", "a/R2.fastq.gz", "a"),
        ("a (old)_R1.fq", "a (old)_R2.fq", "a_old_"),
        ("a_R1.fastq.bz2", "a_R2.fastq.xz", "a"),
        ("a_R1.fq.zst", "a_R2.fq.bgz", "a"),
        ("a_1P.fq.gz", "a_2P.fq.gz", "a"),
        ("a_R1_paired.fq.gz", "a_R2_paired.fq.gz", "a"),
        ("a_forward_paired.fq.gz", "a_reverse_paired.fq.gz", "a"),
        ("a_fwd.fq", "a_rev.fq", "a"),
        ("a_read1.fq", "a_read2.fq", "a"),
        ("a_1.clean.fq.gz", "a_2.clean.fq.gz", "a.clean"),
        ("a_1_trimmed.fq.gz", "a_2_trimmed.fq.gz", "a_trimmed"),
        ("a.clean_1.fq.gz", "a.clean_2.fq.gz", "a.clean"),
        ("a_S1_L001_R1_001.trimmed.fq.gz", "a_S1_L001_R2_001.trimmed.fq.gz", "a.trimmed"),
        ("a_R1_L001.fq.gz", "a_R2_L001.fq.gz", "a"),
        ("-a_R1.fq", "-a_R2.fq", "a"),
        ("Ümlaut_R1.fq", "U\u0308mlaut_R2.fq", "Umlaut"),
        ("Größe ñ_1.fq", "Größe ñ_2.fq", "Grosse_n"),
        ("\u2028a.b c_1.fq", "\u2028a.b c_2.fq", "a.b_c"),
    ],
)
def test_mates(tmp_path: Path, first: str, second: str, sample: str) -> None:
    make(tmp_path, second, first)
    assert rows(tmp_path) == [(sample, Path(first).name, Path(second).name)]


@pytest.mark.parametrize(
    ("name", "sample"),
    [
        ("a.fastq.gz", "a"),
        ("a_3.fq", "a_3"),
        ("a_S1_L001_R1_001.fastq.gz", "a"),
        ("a_L001.fq", "a"),
        ("a_R1.fastq", "a"),
    ],
)
def test_single_end(tmp_path: Path, name: str, sample: str) -> None:
    """Also where all files are first mates, as in runs of single-end reads."""
    make(tmp_path, name)
    assert rows(tmp_path) == [(sample, name)]


def test_lanes_of_samples_in_several_folders(tmp_path: Path) -> None:
    lanes = [f"A_S1_L00{lane}_R{mate}_001.fastq.gz" for lane in (2, 1) for mate in (1, 2)]
    make(tmp_path / "run1", *lanes, "A_S1_L001_I1_001.fastq.gz", "B_S2_L001_R1_001.fastq.gz")
    make(tmp_path / "run1", "B_S2_L001_R2_001.fastq.gz", "Undetermined_S0_L001_R1_001.fastq.gz")
    make(tmp_path / "run2" / "deep", *(f"A_S7_L001_R{mate}_001.fastq.gz" for mate in (1, 2)))
    make(tmp_path / "run2", ".hidden/x.fastq", "notes.txt", "reads.fasta")
    found = find_reads([tmp_path / "run1", tmp_path / "run2"])
    assert {name: len(own) for name, own in found.samples.items()} == {"A": 3, "B": 1}
    assert [lane.first.name[:9] for lane in found.lanes[:2]] == ["A_S1_L001", "A_S1_L002"]
    passed_over = {why: [own.name[:4] for own in of] for why, of in found.passed_over.items()}
    assert passed_over == {INDEX: ["A_S1"], UNDETERMINED: ["Unde"], NO_FASTQ: ["read"]}
    assert found.several == []
    make(tmp_path / "run3", *(f"A_S7_L001_R{mate}_001.fastq.gz" for mate in (1, 2)))
    assert find_reads([tmp_path / "run2", tmp_path / "run3"]).several == ["A"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "no reads in it"),
        (["a_1.fq"], "no mates found for a_1.fq"),
        (["a_R1.fq", "a_R2.fq", "b_R2.fq"], "no mates found for b_R2.fq"),
        (["a_L001_R1.fq", "a_L001_R2.fq", "a_L002_R1.fq"], "no mates found for a_L002_R1.fq"),
        (["a_R2.fq"], "no mates found for a_R2.fq"),
        ([f"{x}_1.fq" for x in "abcde"], "a_1.fq, b_1.fq, c_1.fq and 2 more"),
        (["a_1.fq", "a_2.fq", "a_3.fq"], "a_3.fq is beside a_1 and a_2"),
        (["a_1.fq", "a_2.fq", "a.fq"], "single-end reads of a sample with pairs"),
        (["a_R1.fq", "a_R1.fastq.gz", "a_R2.fq"], "both could be the same mates"),
        (["a b_R1.fq", "a+b_R1.fq"], "two samples would have one name"),
        (["a_S1_R1_001.fq", "a_S2_R1_001.fq"], "two samples would have one name"),
        ([f"a_S1_R{n}_001.fq" for n in (1, 2, 3)], "three mates of one lane: a_S1_R1_001.fq, "),
        ([f"a_R{n}.fq" for n in (1, 2, 3)], "three mates of one lane: a_R1.fq, a_R2.fq, a_R3.fq"),
        (["a_S1_R1_001.fq", "a_S1_R3_001.fq"], "three mates of one lane"),
        (["x/run1/a_1.fq", "x/run1/b_1.fq", "y/run2/a_1.fq"], "lanes of one sample, or two"),
        (
            ["x/a_1.fq", "x/a_2.fq", "y/b_1.fq", "y/b_2.fq", "y/a_1.fq", "y/a_2.fq"],
            "or two samples",
        ),
        (["x/a.fq", "x/b.fq", "y/a.fq"], "lanes of one sample, or two samples?"),
        (["D.sam", "E.fa.gz"], "no reads in it"),
        (["D.sam", "E.fa.gz"], "there is D.sam, E.fa.gz"),
    ],
)
def test_names_that_are_not_clear(tmp_path: Path, names: list[str], message: str) -> None:
    make(tmp_path, *names)
    with pytest.raises(InputError) as caught:
        find_reads([tmp_path])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_samples_in_folders_of_their_own_are_named_after_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As providers deliver them; all files of a sample have the same names as those of others."""
    make(tmp_path / "fq", *(f"S{n}/clean_{mate}.fq.gz" for n in (1, 2) for mate in (1, 2)))
    assert {name for name, *_ in rows(tmp_path / "fq")} == {"S1", "S2"}
    assert main(["workflow", "init", str(tmp_path / "x"), "--reads", str(tmp_path / "fq")]) == 0
    assert "files in several folders are called clean; named after these: S1, S2\n" in (
        capsys.readouterr().out
    )


def test_lanes_in_folders_of_their_own(tmp_path: Path) -> None:
    """BaseSpace's layout: they are of one sample."""
    for lane in (1, 2):
        make(
            tmp_path, *(f"A_L00{lane}-ds.1f{lane}/A_S1_L00{lane}_R{m}_001.fastq.gz" for m in (1, 2))
        )
    found = find_reads([tmp_path, tmp_path / "A_L001-ds.1f1"])
    assert {name: len(own) for name, own in found.samples.items()} == {"A": 2}
    assert found.several == [] and found.of_folders == {}


@pytest.mark.parametrize(
    ("left", "taken"),
    [
        (["a_1U.fq", "a_2U.fq"], []),
        (["a_R1_unpaired.fq", "a_unpaired_2.fq"], []),
        (["a.unpaired.fq", "a_singletons.fq.gz", "a_umi.fq"], []),
        ([], ["b_1U.fq"]),
    ],
)
def test_reads_that_lost_their_mates_are_no_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], left: list[str], taken: list[str]
) -> None:
    make(tmp_path / "fq", "a_1P.fq", "a_2P.fq", "D.sam", "notes.txt", *left, *taken)
    found = find_reads([tmp_path / "fq"])
    assert sorted(found.samples) == sorted(["a", *(Path(name).stem for name in taken)])
    assert [path.name for path in found.passed_over.get(LEFT_OVER, [])] == sorted(left)
    assert main(["workflow", "init", str(tmp_path / "x"), "--reads", str(tmp_path / "fq")]) == 0
    said = capsys.readouterr().out
    assert f"not taken, {NO_FASTQ}: D.sam\n" in said and "notes.txt" not in said
    assert all(name in said.partition(f"not taken, {LEFT_OVER}: ")[2] for name in left)


def test_alignments_are_samples_if_these_have_no_fastq(tmp_path: Path) -> None:
    """One with pairs is named as the file of both mates."""
    make(tmp_path, "a_1.fq", "a_2.fq", "a.bam", "c.cram", "e.fq", "e.cram")
    for name, flags in (("b_R1", (77, 141)), ("d", (4,))):
        records = [Alignment(b"x", own, b"ACGT", None) for own in flags]
        (tmp_path / f"{name}.bam").write_bytes(bam(records))
    found = find_reads([tmp_path])
    names = {own.sample: (own.first.name, own.second and own.second.name) for own in found.lanes}
    assert names == {
        "a": ("a_1.fq", "a_2.fq"), "b_R1": ("b_R1.bam", "b_R1.bam"), "c": ("c.cram", None),
        "d": ("d.bam", None), "e": ("e.fq", None),
    }  # fmt: skip
    assert [path.name for path in found.passed_over[WITH_FASTQ]] == ["a.bam", "e.cram"]


def test_names_that_may_be_of_mates_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "fq", "time_1_cold.fq", "time_2_cold.fq", "b_F.fq", "b_R.fq", "Über.fq", "c.fq")
    assert main(["workflow", "init", str(tmp_path / "x"), "--reads", str(tmp_path / "fq")]) == 0
    said = capsys.readouterr().out
    assert "single-end: b_F.fq, b_R.fq, time_1_cold.fq, time_2_cold.fq; if these are mates" in said
    assert "written in the sheet as Uber (Über)\n" in said


@pytest.mark.parametrize("mark", ["R", "", "S3_L001_R"])
def test_pairs_beside_a_single_end_sample(
    tmp_path: Path, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    last = "_001" if mark.startswith("S3") else ""
    files = [f"{name}_{mark}{mate}{last}.fq" for name, mate in (("a", 1), ("a", 2), ("b", 1))]
    make(tmp_path / "fastq", *files)
    assert rows(tmp_path / "fastq") == [("a", *files[:2]), ("b", files[2])]
    assert main(["workflow", "init", str(tmp_path / "x"), "--reads", str(tmp_path / "fastq")]) == 0
    said = capsys.readouterr().out
    assert "2 samples (1 paired, 1 single-end)" in said
    assert f"no second mates: {files[2]};" in said


def test_next_commands_for_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What Snakemake lacks for them comes first, then what only the user knows."""
    found = ["snakemake"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name in found or None)
    command = ["workflow", "init", str(tmp_path / "x"), "--profile", "slurm"]
    for plugin in (False, True):
        found += ["snakemake_executor_plugin_slurm"] * plugin
        assert main(command) == 0
        said = capsys.readouterr().out.partition("next:\n")[2].splitlines()
        assert ("  pip install snakemake-executor-plugin-slurm" in said) is not plugin
        place = "workflow/profiles/slurm/profile.yaml"
        assert said[-2] == f"  # edit the marked section of {place}: account and partitions"
        assert said[-1].endswith("--workflow-profile workflow/profiles/slurm")


def test_single_end_takes_every_name(tmp_path: Path) -> None:
    make(tmp_path, "a_1.fq", "a_2.fq", "a_3.fq")
    assert rows(tmp_path, single_end=True) == [(f"a_{n}", f"a_{n}.fq") for n in (1, 2, 3)]


def test_study_is_written_and_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "fastq", "a_1.fq", "a_2.fq")
    command = ["workflow", "init", "my study", "--reads", "fastq"]
    assert main(command) == 0
    assert "  cd 'my study'\n  snakemake" in capsys.readouterr().out
    study = tmp_path / "my study"
    sheet = study / "config" / "samples.tsv"
    assert (
        sheet.read_text().splitlines()[1] == f"a\t{tmp_path}/fastq/a_1.fq\t{tmp_path}/fastq/a_2.fq"
    )
    for name in ("config/config.yaml", "config/databases.tsv", "config/README.md"):
        assert (study / name).is_file()
    assert any((study / "workflow" / "profiles" / "default").iterdir())
    # The same again changes nothing and is no error; something else is.
    assert main(command) == 0
    sheet.write_text("mine\n")
    before = content(study)
    assert main(command) == 2
    assert f"already there: {Path('my study/config/samples.tsv')};" in capsys.readouterr().err
    assert content(study) == before
    assert main([*command, "--force"]) == 0
    assert sheet.read_text() != "mine\n"


def test_reads_inside_the_study_are_named_from_there(tmp_path: Path) -> None:
    make(tmp_path / "fastq", "a.fq")
    init_study(tmp_path, reads=[tmp_path / "fastq"])
    assert "a\tfastq/a.fq\n" in (tmp_path / "config" / "samples.tsv").read_text()


def test_study_without_reads_has_empty_sheets(tmp_path: Path) -> None:
    study = init_study(tmp_path / "x")
    assert study.found.lanes == []
    assert (
        tmp_path / "x/config/samples.tsv"
    ).read_text() == "sample\tfastq_1\tfastq_2\treference\n"


def test_next_run_is_added_to_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, sheet = tmp_path / "study", tmp_path / "study/config/samples.tsv"
    run = {}
    for number, names in ((42, "AB"), (43, "BC")):
        files = [f"{own}_S1_L001_R{mate}_001.fastq.gz" for own in names for mate in (1, 2)]
        run[number] = make(tmp_path / f"run{number}", *files)
    assert main(["workflow", "init", str(study), "--reads", str(run[42])]) == 0
    before = sheet.read_text().replace(
        "B_S1_L001_R2_001.fastq.gz\n", "B_S1_L001_R2_001.fastq.gz\tref.fa"
    )
    sheet.write_text(f"# mine\n{before}")
    add = ["workflow", "add", str(study), "--reads"]
    capsys.readouterr()
    assert main([*add, str(run[43]), "--reads", str(run[42])]) == 0
    said = capsys.readouterr().out
    assert f"{sheet}: 2 lanes added; 2 were there\nnew samples: C\n" in said
    assert "samples with more lanes: B\n" in said
    text = sheet.read_text()
    assert text.startswith(f"# mine\n{before}\n")
    rows = [row.split("\t") for row in text[len(before) + 8 :].splitlines()]
    names = [[cell.rpartition("/")[2] for cell in row] for row in rows]
    assert names == [
        ["B", "B_S1_L001_R1_001.fastq.gz", "B_S1_L001_R2_001.fastq.gz", "ref.fa"],
        ["C", "C_S1_L001_R1_001.fastq.gz", "C_S1_L001_R2_001.fastq.gz", ""],
    ]
    # The same again changes nothing.
    assert main([*add, str(run[43])]) == 0
    assert sheet.read_text() == text


def test_sheets_of_other_forms_are_added_to(tmp_path: Path) -> None:
    make(tmp_path / "run", "a, b_R1.fq", "a, b_R2.fq")
    sheet = make(tmp_path, "config/samples.tsv") / "config/samples.tsv"
    sheet.write_bytes(b"\xef\xbb\xbfgroup,sample,fastq_2,fastq_1\r\ng,a_b,y.fq,x.fq\r\n")
    assert main(["workflow", "add", str(tmp_path), "--reads", str(tmp_path / "run")]) == 0
    assert sheet.read_bytes().decode() == (
        "group,sample,fastq_2,fastq_1\r\ng,a_b,y.fq,x.fq\r\n"
        'g,a_b,"run/a, b_R2.fq","run/a, b_R1.fq"\r\n'
    )


def test_what_cannot_be_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path / "run", "a_R1.fq", "a_R2.fq")
    make(tmp_path / "odd", "complete_R1.fq", "complete_R2.fq")
    add = ["workflow", "add", str(tmp_path), "--reads"]
    for text, run, said in (
        (None, "run", "there is no sheet of samples; name the directory of a study"),
        ("x\ty\n", "run", "must name the columns sample and fastq_1"),
        ("sample\tfastq_1\n", "run", "has no column fastq_2"),
        ("sample\tfastq_1\tfastq_2\na\tx.fq\n", "run", "pairs of sample a, of which"),
        ("sample\tfastq_1\tfastq_2\n", "odd", "cannot have a sample 'complete'"),
        ("sample\tfastq_1\tfastq_2\n", "none", "there is no such directory"),
    ):
        sheet = make(tmp_path, *["config/samples.tsv"] * (text is not None)) / "config/samples.tsv"
        if text is not None:
            sheet.write_text(text)
        assert main([*add, str(tmp_path / run)]) == 2
        assert said in capsys.readouterr().err
        assert text is None or sheet.read_text() == text


def test_what_cannot_be_written_or_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        init_study(tmp_path / "x", reads=[tmp_path / "none"])
    with pytest.raises(UsageError, match=r"there is no profile 'none'; choose one of .*local"):
        init_study(tmp_path / "x", profile="none")
    make(tmp_path / "odd", 'a"b.fq')
    with pytest.raises(InputError, match="a sheet cannot hold this path"):
        init_study(tmp_path / "x", reads=[tmp_path / "odd"])
    for name in ("b{x}_R1.fq.gz", "{data}_R1.fq.gz", "in {brackets}/a.fq", "a}.fq"):
        make(tmp_path / name[0], name)
        with pytest.raises(InputError, match=r"braces in a path for wildcards; rename the file"):
            init_study(tmp_path / "x", reads=[tmp_path / name[0]], single_end=True)
    for number, name in enumerate(("databases_R1.fq", "host.fq", "complete_1.fq.gz")):
        make(tmp_path / f"reserved{number}", name, name.replace("1.", "2."))
        sample = re.split(r"[_.]", name)[0]
        with pytest.raises(
            InputError, match=f"cannot have a sample '{sample}'.*; rename"
        ) as caught:
            init_study(tmp_path / "x", reads=[tmp_path / f"reserved{number}"])
        assert caught.value.exit_status == 2
    assert not (tmp_path / "x").exists()
    make(tmp_path, "file")
    with pytest.raises(OutputError, match=r"not a directory|exists"):
        init_study(tmp_path / "file")


@pytest.mark.parametrize("profile", profiles())
def test_every_profile_can_be_had(tmp_path: Path, profile: str) -> None:
    study = init_study(tmp_path, profile=profile)
    folder = tmp_path / "workflow" / "profiles"
    if profile == "local":
        assert (folder / "default").is_dir()
    else:
        assert any((folder / profile).iterdir())
        assert f"--workflow-profile workflow/profiles/{profile}" in study.command


STEPS = {"assemble": "spades.py", "quast": "quast.py", "multiqc": "multiqc"}


@pytest.mark.parametrize(
    ("have", "off"),
    [
        ([], [*STEPS]),
        (["conda"], []),
        (["spades.py"], ["quast", "multiqc"]),
        ([*STEPS.values()], []),
    ],
)
def test_steps_are_on_where_their_programs_are(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    have: list[str],
    off: list[str],
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name if name in have else None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert main(["workflow", "init", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert all((f"{step} ({program})" in said) == (step in off) for step, program in STEPS.items())
    assert ("--use-conda" in said) == (have == ["conda"])
    config = yaml.safe_load((tmp_path / "config" / "config.yaml").read_text())
    enabled = {step: config[step]["enabled"] for step in ("assemble", "quast")}
    enabled["multiqc"] = config["multiqc"]
    assert enabled == {step: step not in off for step in STEPS}


def test_path_of_the_workflow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflow", "path"]) == 0
    assert capsys.readouterr().out == snakefile() + "\n"
    assert Path(snakefile()).is_file()


def test_reserved_names_are_those_of_the_workflow() -> None:
    text = (Path(snakefile()).parent / "rules" / "common" / "samples.smk").read_text()
    (written,) = re.findall(r"^RESERVED = (\{.*?\})", text, re.MULTILINE | re.DOTALL)
    assert ast.literal_eval(written) == RESERVED


def test_a_study_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        init_study(folder / "study")

    whole = None
    for folder in killed_everywhere(tmp_path, lambda folder: None, work):
        init_study(folder / "study")  # what the killed run had written is no obstacle
        found = content(folder)
        whole = whole or found
        assert found == whole
    assert whole is not None
    assert {str(name) for name in whole} >= {"study/config/config.yaml", "study/workflow/Snakefile"}
