# Databases to classify with: what their sheet says, and which files are whose. Functions and
# constants only; the rules are in database.smk and classify.smk.

import json
import math

MIB = 1 << 20
# What `ngsgpu db plan` reads in a folder of references and in one of taxonomy, packed or not.
REFERENCE_ENDINGS = (".fa", ".fna", ".fasta", ".fas", ".ffn", ".fsa")
TAXONOMY_FILES = ("nodes.dmp", "names.dmp", "merged.dmp")
PACKED_ENDINGS = (".gz", ".bgz", ".bz2", ".xz")


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
        databases[database.name] = database
    refuse(sheet, problems)
    return databases


def study_databases():
    """Read the databases that the config names."""
    if config["databases"] is None:
        return {}
    return read_databases(
        config["databases"],
        workflow.source_path("../../schemas/databases.schema.yaml"),
    )


DATABASES = study_databases()


wildcard_constraints:
    database=one_of(DATABASES),
    partition="[0-9]{4}",


def files_in(folder, endings):
    """The files in a folder of the user's, one by one, so that a change of any is noticed.

    A folder that a rule makes (one not there yet, or with Snakemake's time stamp in it) stays one
    input, and so does a file.
    """
    path = Path(folder)
    if not path.is_dir() or (path / ".snakemake_timestamp").exists():
        return [given(folder)]
    packed = [ending + more for ending in endings for more in ("", *PACKED_ENDINGS)]
    inside = sorted(
        str(file)
        for file in path.rglob("*")
        if file.name.lower().endswith(tuple(packed)) and file.is_file()
    )
    return [given(file) for file in inside or [folder]]


def reference_files(wildcards):
    """What a database is planned from."""
    own = DATABASES[wildcards.database]
    return [
        *files_in(own.references, REFERENCE_ENDINGS),
        *(files_in(own.taxonomy, TAXONOMY_FILES) if own.taxonomy else []),
        *([given(own.map)] if own.map else []),
    ]


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


def partition_manifests(database):
    """Files that are there when all partitions of a database are."""
    return expand(
        "results/databases/{database}/partitions/{partition}.json",
        database=database,
        partition=partitions_of(database),
    )


def built_partitions(wildcards):
    """Files that are there when all partitions of the database of a job are."""
    return partition_manifests(wildcards.database)


def candidates_of_partitions(wildcards):
    """Candidates of a sample from all partitions of a database."""
    return expand(
        "results/databases/{database}/candidates/{partition}/{sample}.cand",
        sample=wildcards.sample,
        database=wildcards.database,
        partition=partitions_of(wildcards.database),
    )


def planned_memory(key, least_mb):
    """Memory of a partition's job, from the plan: ``key`` of it, and what programs take."""

    def mem_mb(wildcards, input, attempt):
        try:
            plan = json.loads(Path(input.plan).read_text())
        except ValueError:
            # A note: planning failed, and this job only hands it on.
            return least_mb
        planned = plan["partitions"][int(wildcards.partition)][key]
        return (math.ceil(planned / MIB) + least_mb) * attempt

    return mem_mb


def all_first(wildcards):
    """The first mates, or single-end reads, of all samples: one file a lane."""
    return [path for sample in STUDY.values() for path in sample.first]


def all_second(wildcards):
    """The second mates of all samples that have any: one file a lane."""
    return [path for sample in STUDY.values() for path in sample.second]


def classification_sheet(wildcards, input):
    """Lines of the sheet of samples for ``ngsgpu classify``: a row a lane."""
    first, second = iter(listed(input.first)), iter(listed(input.second))
    return ["sample\tfastq_1\tfastq_2"] + [
        f"{name}\t{next(first)}\t{next(second) if sample.second else ''}"
        for name, sample in STUDY.items()
        for _ in sample.first
    ]


def judged_classifications(kind="json"):
    """Comparisons of calls with the truth: of samples that have one, by databases with taxa."""
    return expand(
        "results/{sample}/classify/{database}/evaluation.{kind}",
        kind=kind,
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
