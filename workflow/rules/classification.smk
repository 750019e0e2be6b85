# Databases to classify with: what their sheet says, and which files are whose. Functions and
# constants only; the rules are in database.smk and classify.smk.

import json
import math

MIB = 1 << 20


@dataclass(frozen=True)
class ReferenceDatabase:
    """A database, as the sheet describes it."""

    name: str
    references: str
    taxonomy: str | None = None
    map: str | None = None
    partitions: int = 1


def read_databases(sheet, schema_file):
    """Read the sheet of databases; a row each."""
    rows, problems = read_rows(sheet, schema_file)
    databases = {}
    for number, row in rows:
        database = ReferenceDatabase(name=row.pop("database"), **row)
        if database.name in databases:
            problems.append(
                f"line {number}: database '{database.name}' is there twice; rename one"
            )
        for column in ("references", "taxonomy", "map"):
            path = getattr(database, column)
            if path and not Path(path).exists():
                problems.append(
                    f"line {number}, column {column}: there is nothing at '{path}'"
                )
        databases[database.name] = database
    refuse(sheet, problems)
    return databases


def study_databases():
    """Read the databases that the config names."""
    if config["databases"] is None:
        return {}
    return read_databases(
        config["databases"],
        workflow.source_path("../schemas/databases.schema.yaml"),
    )


DATABASES = study_databases()


wildcard_constraints:
    database=one_of(DATABASES),
    partition="[0-9]{4}",


def reference_files(wildcards):
    """What a database is planned from."""
    own = DATABASES[wildcards.database]
    return [path for path in (own.references, own.taxonomy, own.map) if path]


def plan_options(wildcards):
    """Options of ``ngsgpu db plan`` for a database."""
    own = DATABASES[wildcards.database]
    options = [shlex.quote(own.references), f"--partitions {own.partitions}"]
    if own.taxonomy:
        options.append(f"--taxonomy {shlex.quote(own.taxonomy)}")
    if own.map:
        options.append(f"--map {shlex.quote(own.map)}")
    return " ".join(options)


def partitions_of(database):
    """Numbers of a database's partitions, as they stand in file names."""
    return [f"{number:04d}" for number in range(DATABASES[database].partitions)]


def built_partitions(wildcards):
    """Files that are there when all partitions of a database are."""
    return expand(
        "results/databases/{database}/db/partition-{partition}-0001/manifest.json",
        database=wildcards.database,
        partition=partitions_of(wildcards.database),
    )


def candidates_of_partitions(wildcards):
    """Candidates of a sample from all partitions of a database."""
    return expand(
        "results/{sample}/classify/{database}/{partition}.cand",
        sample=wildcards.sample,
        database=wildcards.database,
        partition=partitions_of(wildcards.database),
    )


def planned_memory(key, least_mb):
    """Memory of a partition's job, from the plan: ``key`` of it, and what programs take."""

    def mem_mb(wildcards, input, attempt):
        plan = json.loads(Path(input.plan).read_text())
        planned = plan["partitions"][int(wildcards.partition)][key]
        return (math.ceil(planned / MIB) + least_mb) * attempt

    return mem_mb


def classification_sheet(wildcards):
    """The sheet of samples for ``ngsgpu classify``: a row a lane."""
    lines = ["sample\tfastq_1\tfastq_2"]
    for name, sample in STUDY.items():
        second = sample.second or [""] * len(sample.first)
        lines += [f"{name}\t{one}\t{two}" for one, two in zip(sample.first, second)]
    return "\\n".join(lines)


def all_reads(wildcards):
    """The raw reads of all samples."""
    return [
        path for sample in STUDY.values() for path in (*sample.first, *sample.second)
    ]


def judged_classifications():
    """Comparisons of calls with the truth: of samples that have one, by databases with taxa."""
    return expand(
        "results/{sample}/classify/{database}/evaluation.json",
        sample=[name for name, sample in STUDY.items() if sample.truth],
        database=[name for name, own in DATABASES.items() if own.taxonomy],
    )


def classification_targets():
    """What classification gives in the end, for every sample and database."""
    return judged_classifications() + expand(
        "results/{sample}/classify/{database}/{sample}.kraken2.report.txt",
        sample=STUDY,
        database=DATABASES,
    )
