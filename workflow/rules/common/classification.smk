# Databases to classify with: what their sheet says, and which files are whose. Functions and
# constants only; the rules are in database.smk and classify.smk.

import json

# What `ngsgpu db plan` reads in a folder of references and in one of taxonomy, packed or not.
REFERENCE_ENDINGS = (".fa", ".fna", ".fasta", ".fas", ".ffn", ".fsa")
TAXONOMY_FILES = ("nodes.dmp", "names.dmp", "merged.dmp")
PACKED_ENDINGS = (".bam", ".cram", ".bgz", ".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class ReferenceDatabase:
    """A database, as the sheet describes it."""

    name: str
    references: str | None = None
    path: str | None = None
    taxonomy: str | None = None
    map: str | None = None
    partitions: int = 1
    max_size: str | None = None


def partitions_elsewhere(path, said):
    """Count the partitions of a database that was made elsewhere.

    Args:
        path: the database.
        said: what the sheet says; needed if the database is not there yet.

    Raises:
        ValueError: there is no database, or the sheet says something else.
    """
    try:
        manifest = json.loads((Path(path) / "manifest.json").read_text())
        there = len(manifest["partitions"])
    except FileNotFoundError:
        if said is None:
            raise ValueError(
                f"there is no database in '{path}' (no manifest.json); correct the path or, if a rule "
                "makes the database, fill in partitions"
            ) from None
        return said
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"'{path}' is no database of ngsgpu ({error})") from error
    if said not in (None, there):
        raise ValueError(f"'{path}' has {there} partitions, not {said}")
    return there


def read_databases(sheet, schema_file):
    """Read the sheet of databases; a row each."""
    rows, problems = read_rows(sheet, schema_file)
    databases = {}
    for number, row in rows:
        if ("references" in row) == ("path" in row):
            problems.append(
                f"line {number}: give the references of a database to build, or the path of one "
                "made elsewhere"
            )
        elif "path" in row:
            try:
                row["partitions"] = partitions_elsewhere(
                    row["path"], row.get("partitions")
                )
            except ValueError as error:
                problems.append(f"line {number}, column path: {error}")
            for column in ("map", "max_size"):
                if column in row:
                    problems.append(
                        f"line {number}, column {column}: the database in '{row['path']}' has its own"
                    )
        database = ReferenceDatabase(name=row.pop("database"), **row)
        if database.name in databases:
            problems.append(
                f"line {number}: database '{database.name}' is there twice; rename one"
            )
        databases[database.name] = database
    refuse(sheet, problems)
    return databases


def study_databases():
    """Read the databases that the config names.

    Raises:
        WorkflowError: the files are in a default storage.
    """
    if config["databases"] is None:
        return {}
    if workflow.storage_settings.default_storage_provider:
        raise WorkflowError(
            "databases do not work with a default storage, which carries single files between jobs "
            "and no folders that several jobs write to; set databases to null, or leave out "
            "--default-storage-provider"
        )
    return read_databases(
        config["databases"],
        workflow.source_path("../../schemas/databases.schema.yaml"),
    )


DATABASES = study_databases()
# Those that the workflow builds, and those that it only reads.
BUILT = {name: own for name, own in DATABASES.items() if own.path is None}
FOREIGN = {name: own for name, own in DATABASES.items() if own.path is not None}


wildcard_constraints:
    database=one_of(DATABASES),
    partition="[0-9]{4}",
    batch="[0-9]{4}",


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


def manifest_of(wildcards):
    """The manifest of a database, in whose folder all of it is."""
    own = DATABASES[wildcards.database]
    if own.path is not None:
        return given(str(Path(own.path) / "manifest.json"))
    return f"results/databases/{own.name}/db/manifest.json"


def reference_files(wildcards):
    """What the database of a job is planned from."""
    return sources_of(wildcards.database)


def sources_of(database):
    """Files that a database is made of."""
    own = DATABASES[database]
    return [
        *files_in(own.references, REFERENCE_ENDINGS),
        *(files_in(own.taxonomy, TAXONOMY_FILES) if own.taxonomy else []),
        *([given(own.map)] if own.map else []),
    ]


def taxonomy_if_known(wildcards):
    """The taxonomy of a job's database as a list of one or no folder."""
    own = DATABASES[wildcards.database].taxonomy
    return [given(own)] if own else []


def plan_options(wildcards):
    """Options of ``ngsgpu db plan`` for a database."""
    own = DATABASES[wildcards.database]
    options = [shlex.quote(own.references), f"--partitions {own.partitions}"]
    if own.taxonomy:
        options.append(f"--taxonomy {shlex.quote(own.taxonomy)}")
    if own.map:
        options.append(f"--map {shlex.quote(own.map)}")
    if own.max_size:
        options.append(f"--max-size {own.max_size}")
    return " ".join(options)


def partitions_of(database):
    """Numbers of a database's partitions, as they stand in file names."""
    return [f"{number:04d}" for number in range(DATABASES[database].partitions)]


def partition_manifests(database):
    """Files that are there when all partitions of a database that the workflow builds are."""
    return expand(
        "results/databases/{database}/partitions/{partition}.json",
        database=database,
        partition=partitions_of(database) if database in BUILT else [],
    )


def built_partitions(wildcards):
    """Files that are there when all partitions of the database of a job are."""
    return partition_manifests(wildcards.database)


def built_partition(wildcards):
    """The file that is there when the partition of a job is."""
    return partition_manifests(wildcards.database)[int(wildcards.partition) :][:1]


def call_files(name, database):
    """What is kept of a sample's classification with a database."""
    kinds = ["reads.tsv.gz", "kraken2.report.txt", "kraken2.classifiedreads.txt.gz"]
    named = [f"{name}.{kind}" for kind in [*kinds, "krona.txt", "profile", "biom"]]
    tables = ["abundance.tsv", "coverage.tsv", "evidence.tsv", "stats.json"]
    return expand(
        "results/{sample}/classify/{database}/{file}",
        sample=name,
        database=database,
        file=[*named, *tables],
    )


def judged_classifications(kind="json"):
    """Comparisons of calls with the truth: of samples that have one, by databases with taxa."""
    return [
        f"results/{name}/classify/{database}/evaluation.{kind}"
        for name, sample in STUDY.items()
        for database in databases_of(name)
        if sample.truth and DATABASES[database].taxonomy
    ]
