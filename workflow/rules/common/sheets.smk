# What the user wrote: checks the config, reads the sheets, and names what is wrong by key, or by
# file, line and column, all at once, and what a misspelt name should be. Whether a file is there is
# not asked, since another rule may make it. Functions only; the results are made in study.smk.

import csv
import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator
from snakemake.exceptions import WorkflowError

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
# Columns of the sheets that hold paths.
PATHS = {
    "fastq_1",
    "fastq_2",
    "reference",
    "references",
    "variants",
    "truth",
    "path",
    "taxonomy",
    "map",
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


def meant(name, known):
    """The known name that a misspelt one is closest to; None if it is like none of them."""

    def plain(text):
        return "".join(letter for letter in text.casefold() if letter.isalnum())

    names = {plain(own): own for own in known}
    close = get_close_matches(plain(name), names, n=1, cutoff=0.65)
    return names[close[0]] if close else None


def unknown_keys(error):
    """Say which keys of the config the schema does not know, and what they should be."""
    known = error.schema.get("properties", {})
    place = "".join(f"{key}." for key in error.absolute_path)
    for key in error.instance:
        if key not in known:
            own = meant(str(key), known)
            hint = (
                f"did you mean {place}{own}?"
                if own
                else f"there are {', '.join(map(str, known))}"
            )
            yield f"{place}{key}: no such key; {hint}"


def give_types(config, schema):
    """Give texts the types that the schema asks for.

    What stands in braces after --config, as in ``trim={enabled: false}``, comes as texts.
    """
    kinds = {"boolean": bool, "integer": int, "number": (int, float)}
    for key, own in schema.get("properties", {}).items():
        value = config.get(key)
        if isinstance(value, dict):
            give_types(value, own)
        elif isinstance(value, str) and own.get("type") in list(kinds):
            meant = yaml.safe_load(value)
            if isinstance(meant, kinds[own["type"]]):
                config[key] = meant


def check_config(config, schema_file):
    """Give the config the types of the schema, and refuse one that does not fit, in a line a problem.

    Raises:
        WorkflowError: it does not fit.
    """
    with open(schema_file) as file:
        schema = yaml.safe_load(file)
    give_types(config, schema)
    validator = Draft202012Validator(schema)
    problems = []
    for error in sorted(
        validator.iter_errors(config), key=lambda error: error.json_path
    ):
        if error.validator == "additionalProperties" and "properties" in error.schema:
            problems.extend(unknown_keys(error))
        else:
            place = ".".join(map(str, error.absolute_path))
            said = error.schema.get("description")
            hint = f" ({said})" if said and place else ""
            problems.append(f"{place}: {error.message}{hint}".lstrip(": "))
    if problems:
        raise WorkflowError(
            "the config cannot be used (config/README.md describes it): "
            + "\n  ".join(problems)
        )


def converted(text, schema):
    """Give a cell the type its column's schema asks for, or leave it for the schema to refuse."""
    kinds = {"integer": int, "number": float}
    try:
        return kinds.get(schema.get("type"), str)(text)
    except ValueError:
        return text


def with_data(text):
    """A path with the folder that the config names as ``data`` in place of ``{data}``.

    Raises:
        WorkflowError: the config names none.
    """
    if "{data}" not in text:
        return text
    if config["data"] is None:
        raise WorkflowError(
            f"'{text}' is in a folder that you name: add --config data=FOLDER"
        )
    return text.replace("{data}", str(config["data"]).rstrip("/"))


def sheet_lines(sheet):
    """Cells of a sheet's lines with their numbers: separated as in the first line, the header.

    Blank lines and lines that begin with '#' are skipped.
    """
    try:
        lines = Path(sheet).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WorkflowError(f"cannot read the sheet '{sheet}': {error}") from error
    delimiter = None
    for number, line in enumerate(lines, start=1):
        if not line.strip(" \t,;") or line.startswith("#"):
            continue
        if delimiter is None:
            delimiter = next((mark for mark in "\t,;" if mark in line), "\t")
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
        while cells and not cells[-1]:
            cells.pop()
        yield number, cells


def check_header(sheet, number, header, schema):
    """Refuse a header that lacks a column, has one twice, or one that looks misspelt.

    Raises:
        WorkflowError: it cannot be used.
    """
    columns = schema["properties"]
    absent = [name for name in columns if name not in header]
    problems = [
        f"there are two columns '{name}'" for name in columns if header.count(name) > 1
    ]
    for name in header:
        if name not in columns and (own := meant(name, absent)):
            problems.append(f"column '{name}': did you mean {own}?")
            absent.remove(own)
    problems += [
        f"there is no column '{name}'" for name in absent if name in schema["required"]
    ]
    if problems:
        raise WorkflowError(
            f"{sheet}, line {number}: {'; '.join(problems)}. The columns are {', '.join(columns)}, "
            f"of which {', '.join(schema['required'])} are required; any others are passed over"
        )


def braced_paths(row, number):
    """List the paths of a row with braces, which Snakemake takes for wildcards."""
    return [
        f"line {number}, column {column}: '{cell}' has a brace, which Snakemake takes for a "
        "wildcard; rename the file or folder, or make a link to it"
        for column, cell in row.items()
        if column in PATHS and re.search("[{}]", str(cell))
    ]


def read_rows(sheet, schema_file):
    """Read a sheet; returns (line number, row) pairs and a list of problems.

    An empty cell is a missing one, and columns that the schema does not know are passed over.
    """
    schema = yaml.safe_load(Path(schema_file).read_text())
    columns = schema["properties"]
    validator = Draft202012Validator(schema)
    rows, problems = [], []
    header = None
    for number, cells in sheet_lines(sheet):
        if header is None:
            header = cells
            check_header(sheet, number, header, schema)
            continue
        if len(cells) > len(header):
            problems.append(
                f"line {number}: {len(cells)} cells, but the header has {len(header)}"
            )
            continue
        row = {
            name: converted(with_data(cell), columns[name])
            for name, cell in zip(header, cells)
            if cell and name in columns
        }
        errors = sorted(validator.iter_errors(row), key=lambda error: error.message)
        for error in errors:
            column = str(error.path[0]) if error.path else ""
            if column:
                expected = columns[column]["description"]
                problems.append(
                    f"line {number}, column {column}: '{row[column]}' is not right; "
                    f"expected {expected}"
                )
            else:
                problems.append(f"line {number}: {error.message}: fill in the cell")
        problems.extend(braced_paths(row, number))
        if not errors:
            rows.append((number, row))
    if header is None:
        problems.append("there is not even a header line")
    return rows, problems


def refuse(sheet, problems):
    """Raise one error that lists all the problems of a sheet."""
    if problems:
        raise WorkflowError(
            f"{sheet} cannot be used:\n" + "\n".join(f"  {p}" for p in problems)
        )


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
            if path:
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
