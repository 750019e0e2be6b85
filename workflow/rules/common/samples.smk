# The rows of the sheets of samples and data sets: what they describe, and what no row may say. Functions
# only; the results are made in study.smk.

import re
from dataclasses import dataclass, field

# The demo's reads, which the workflow fetches itself (rule fetch_demo_reads).
DEMO_READS = "resources/demo"
SYNTHETIC = "synthetic:"
# Reads that the workflow fetches from the Sequence Read Archive (rules fetch_pairs, fetch_single).
ARCHIVED = "sra:"
FETCHED = "results/sra"
# Folders under results/ that are no sample's.
RESERVED = {
    "benchmarks",
    "complete",
    "databases",
    "genomes",
    "host",
    "multiqc",
    "sra",
    "tables",
    "versions",
}
# Columns of the sheets of samples and data sets that say how to treat a sample, in place of its
# group's or the config's.
SETTINGS = (
    "classify_reads",
    "classify_databases",
    "classify_extra",
    "correct_extra",
    "merge_extra",
    "extend_extra",
)
# The longest read of ART's built-in paired-end profiles.
LONGEST_READ = {
    "GA1": 44,
    "GA2": 75,
    "HS10": 100,
    "HS20": 100,
    "HS25": 150,
    "HSXn": 150,
    "HSXt": 150,
    "MSv1": 250,
    "MSv3": 250,
    "NS50": 75,
}


@dataclass
class Sample:
    """A set of reads, real or simulated; one file a lane, no second mates if single-end."""

    name: str
    first: list[str] = field(default_factory=list)
    second: list[str] = field(default_factory=list)
    reference: str | None = None
    variants: str | None = None
    truth: str | None = None
    group: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """How the reads of a simulated set are made; lengths in bases."""

    name: str
    reference: str
    art_profile: str
    read_length: int
    coverage: float
    insert_mean: int
    insert_sd: float
    seed: int
    chunks: int
    truth: str | None = None
    group: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


def reserved_name(name, number, column):
    """List the problem, if a sample would share its folder with something else."""
    if name not in RESERVED:
        return []
    return [
        f"line {number}, column {column}: '{name}' is a folder of the workflow; rename it"
    ]


def settings_of(row):
    """Take the cells that say how to treat a sample out of a row."""
    return {name: row.pop(name) for name in SETTINGS if name in row}


def archived_run(cell):
    """The accession of the run that a cell names; None if it names a file."""
    return cell.removeprefix(ARCHIVED) if cell.startswith(ARCHIVED) else None


def with_fetched(row, number):
    """Put the files that will be fetched in place of accessions; returns the row and problems."""
    columns = [column for column in ("fastq_1", "fastq_2") if column in row]
    runs = [archived_run(row[column]) for column in columns]
    if not any(run is not None for run in runs):
        return row, []
    problems = [
        f"line {number}, column {column}: '{row[column]}' names no run; expected {ARCHIVED} and "
        f"an accession as SRR1234567"
        for column, run in zip(columns, runs)
        if run is not None and not re.fullmatch("[SED]RR[0-9]+", run)
    ]
    if not problems and len(set(runs)) > 1:
        problems = [
            f"line {number}: fastq_1 and fastq_2 are not of the same run; give both as "
            f"{ARCHIVED}ACCESSION, or none"
        ]
    ends = ("_1", "_2") if len(runs) == 2 else ("",)
    files = {
        column: f"{FETCHED}/{run}{end}.fastq.gz"
        for column, run, end in zip(columns, runs, ends)
    }
    return row | files, problems


def alignments(path):
    """Whether a file is BAM or CRAM, which has both mates of its pairs."""
    return Path(path).suffix.lower() in (".bam", ".ubam", ".cram")


def check_mates(row, number, sample):
    """List the problem, if second mates are given as no command takes them."""
    first, second = row["fastq_1"], row.get("fastq_2", "")
    if second != first and (alignments(first) or alignments(second)) and second:
        return [
            f"line {number}: BAM and CRAM have both mates; give '{first}' as fastq_2, too, if it "
            "holds pairs, and nothing if it does not"
        ]
    if any(alignments(path) != alignments(first) for path in sample.first):
        return [
            f"line {number}: sample '{sample.name}' has lanes of FASTQ, and of BAM or CRAM; give "
            "them as two samples"
        ]
    return []


def read_samples(sheet, schema_file):
    """Read the sheet of real samples; the rows of one sample are its lanes, in order."""
    rows, problems = read_rows(sheet, schema_file)
    samples = {}
    owners = {}
    for number, row in rows:
        name = row["sample"]
        problems.extend(reserved_name(name, number, "sample"))
        row, wrong = with_fetched(row, number)
        problems.extend(wrong)
        for column in ("fastq_1", "fastq_2"):
            path = row.get(column)
            is_both = column == "fastq_2" and path == row["fastq_1"]
            if path and not (is_both and alignments(path)):
                if (name, path) in owners:
                    problems.append(
                        f"line {number}, column {column}: '{path}' is already in line "
                        f"{owners[name, path]} of this sample"
                    )
                owners.setdefault((name, path), number)
        paired = "fastq_2" in row
        settings = settings_of(row)
        whole = {
            column: row.get(column)
            for column in ("reference", "variants", "truth", "group")
        }
        sample = samples.setdefault(name, Sample(name, **whole, settings=settings))
        if sample.first and paired != bool(sample.second):
            problems.append(
                f"line {number}: sample '{name}' has lanes with and without second mates; "
                "give the single-end lanes another sample name"
            )
        problems.extend(check_mates(row, number, sample))
        above = vars(sample) | dict.fromkeys(SETTINGS) | sample.settings
        problems += [
            f"line {number}: sample '{name}' has another {column} further up"
            for column, cell in (whole | dict.fromkeys(SETTINGS) | settings).items()
            if above[column] != cell
        ]
        sample.first.append(row["fastq_1"])
        sample.second.extend([row["fastq_2"]] if paired else [])
    refuse(sheet, problems)
    return samples


def read_datasets(sheet, schema_file, genomes, default_chunks):
    """Read the sheet of simulated sets; ``genomes`` are the names of the synthetic genomes."""
    rows, problems = read_rows(sheet, schema_file)
    datasets = {}
    for number, row in rows:
        settings = settings_of(row)
        row = {"name": row.pop("dataset"), "chunks": default_chunks} | row
        dataset = Dataset(**row, settings=settings)
        problems.extend(reserved_name(dataset.name, number, "dataset"))
        if dataset.name in datasets:
            problems.append(
                f"line {number}: data set '{dataset.name}' is there twice; rename one"
            )
        longest = LONGEST_READ[dataset.art_profile]
        if dataset.read_length > longest:
            problems.append(
                f"line {number}, column read_length: ART's {dataset.art_profile} makes reads of at "
                f"most {longest} bases, not {dataset.read_length}"
            )
        if dataset.insert_mean <= dataset.read_length:
            problems.append(
                f"line {number}, column insert_mean: the fragments ({dataset.insert_mean} bases) "
                f"must be longer than the reads ({dataset.read_length})"
            )
        if dataset.reference.startswith(SYNTHETIC):
            genome = dataset.reference.removeprefix(SYNTHETIC)
            if genome not in genomes:
                problems.append(
                    f"line {number}, column reference: the config describes no synthetic genome "
                    f"'{genome}' under 'genomes'"
                )
        datasets[dataset.name] = dataset
    refuse(sheet, problems)
    return datasets
