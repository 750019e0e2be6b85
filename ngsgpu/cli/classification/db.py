"""``ngsgpu db``: databases of reference sequences, for classification."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from ngsgpu.classify.params import (
    ALL_KEYS,
    KEEP_ALL,
    LEAST_KEPT,
    DatabaseParameters,
    PartitionRequest,
    SketchParameters,
)
from ngsgpu.cli.classification.contents import DatabasePath, info, stats, verify
from ngsgpu.cli.classification.options import ClassifyRun
from ngsgpu.cli.classification.serve import serve
from ngsgpu.cli.options import DryRun, HostRun, Memory, StatsFile
from ngsgpu.cli.run import bytes_of, cpu_options, open_run, shows_plan
from ngsgpu.declared.limits import MAX_TAXID
from ngsgpu.declared.options import argument, flag, option
from ngsgpu.declared.parameters import Options
from ngsgpu.declared.roles import Prefix, Read, Text
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ngsgpu.classify.database.database import Database
    from ngsgpu.device.plan import HostPlan

References = Annotated[
    list[Read],
    argument(..., "REFS...", "FASTA files or directories of them; see --source."),
]
MaxSize = Annotated[
    Text | None,
    option(
        ...,
        "SIZE",
        "Keep as many features as fit into a database of this size, for example 64G; see "
        "--fraction.",
    ),
]
ChangedDatabase = Annotated[Prefix, option(..., "DIR", "The database.", "-d", "--database")]


@dataclass(frozen=True)
class SourceOptions:
    """What a database is made of besides the sequences, and its partitions."""

    taxonomy: Read | None = option(
        None,
        "DIR",
        "Directory with NCBI nodes.dmp and names.dmp, or GTDB's taxonomy files (one, or their "
        "directory); without it, reads are only assigned to sequences.",
        shown_default="with REFS, where there is one",
    )
    maps: list[Read] | None = option(
        None,
        "FILE",
        "Sequence-to-taxon mapping: NCBI accession2taxid, assembly_summary.txt or "
        "assembly_data_report.jsonl, or a table of sequence name, or file, and taxid; repeat for "
        "more.",
        "--map",
    )
    request: PartitionRequest = field(default_factory=PartitionRequest)
    partition_memory: Text | None = option(
        None, "SIZE", "Maximum memory per partition, for example 40G."
    )

    source: Text = option(
        "auto",
        "KIND",
        "What REFS are: ncbi (an NCBI datasets folder), refseq (genomes and assembly_summary.txt), "
        "gtdb (genomes and GTDB's taxonomy files), kraken2 (library/ and taxonomy/), table (of "
        "files and taxids), files (FASTA); auto: by what is in them.",
    )

    def settings(
        self,
        references: Sequence[str],
        *,
        has_taxonomy: bool = False,
        max_size: str | None = None,
    ) -> dict[str, Any]:
        """Arguments of the builder; of a database that has a taxonomy, without one."""
        from ngsgpu.classify.database.source import find_sources

        request = replace(
            self.request, bytes=bytes_of(self.partition_memory), size=bytes_of(max_size)
        )
        found = find_sources(
            references, self.taxonomy, self.maps or [], self.source, has_taxonomy=has_taxonomy
        )
        return {
            "references": found.references,
            "taxonomy": self.taxonomy if has_taxonomy else found.taxonomy,
            "maps": found.maps,
            "request": request,
        }


@dataclass(frozen=True, kw_only=True)
class AddRun(ClassifyRun):
    """A run that adds to a database."""

    memory: Memory = None


@dataclass(frozen=True, kw_only=True)
class BuildRun(AddRun):
    """A run that builds a database."""

    dry_run: DryRun = False


def plan(
    *,
    references: References,
    database: ChangedDatabase,
    sources: SourceOptions,
    index: Options[DatabaseParameters],
    max_size: MaxSize = None,
    update: bool = flag(
        "Keep a complete database whose references have not changed, and add new ones to its last "
        "partition.",
        "--update",
    ),
    dry_run: bool = flag("Print the plan; write nothing.", "--dry-run"),
    run: HostRun,
) -> None:
    """Plan a partitioned database from the names and lengths of the references.

    Writes the database without indexes and prints its partitions. Build each one, in separate jobs
    if you like, with `ngsgpu db build -d DIR --only-partition K`. With --update, a reference is
    changed if its file is newer than the database; --memory is for adding only.
    """
    if update and dry_run:
        raise UsageError("--update changes the database: omit --dry-run")
    from ngsgpu.classify.database.change.update import update_database
    from ngsgpu.classify.database.folder import database_folder
    from ngsgpu.classify.database.info import partition_lines, taxon_lines
    from ngsgpu.classify.database.plan import inputs_of, plan_database
    from ngsgpu.classify.database.write import write_manifest

    options = cpu_options(run)
    settings = sources.settings(references, max_size=max_size)
    if update:
        kept = update_database(
            path=database, parameters=_parameters(index), **settings, options=options
        )
        if kept is not None:
            _say(kept, run.quiet)
            return
    planned = plan_database(
        path=database, parameters=_parameters(index), **settings, options=options
    )
    if not dry_run:
        inputs = inputs_of(
            references, planned.targets.files, settings["taxonomy"], settings["maps"]
        )
        with database_folder(planned.path, inputs) as place:
            write_manifest(planned.moved(*place))
    click.echo("\n".join(partition_lines(planned, built=None)))
    if not run.quiet:
        for line in taxon_lines(planned):
            click.echo(line, err=True)


def build(
    *,
    references: Annotated[
        list[Read] | None,
        argument(..., "REFS...", "FASTA files or directories of them; omit with --only-partition."),
    ] = None,
    database: Prefix | None = option(None, "DIR", "The database (required).", "-d", "--database"),
    sources: SourceOptions,
    only_partition: int | None = option(
        None, "K", "Build only this partition of a planned database."
    ),
    if_missing: bool = flag(
        "With --only-partition: keep the partition if it is built.", "--if-missing"
    ),
    index: Options[DatabaseParameters],
    max_size: MaxSize = None,
    stats: StatsFile = None,
    run: BuildRun,
) -> None:
    """Build a database from reference sequences.

    An existing database is replaced once the new one is complete; a directory that holds anything
    else is refused. References are FASTA, plain or compressed, with unique sequence names. With
    several GPUs, only as many are used as their memory is needed.

    In one go:          ngsgpu db build genomes/ -d DB --taxonomy tax --map seqid2taxid.tsv

    From a download:    ngsgpu db build ncbi_dataset/ -d DB --taxonomy taxdump/

    By partition:       ngsgpu db plan genomes/ -d DB --partitions 4 ...

                        ngsgpu db build -d DB --only-partition 0      (and 1, 2, 3)
    """
    if database is None:
        raise UsageError("give the database with -d")
    planned = only_partition is not None
    if planned and (references or sources != SourceOptions() or index.given or max_size):
        raise UsageError(
            "--only-partition builds a database planned with `ngsgpu db plan`: give only -d"
        )
    if if_missing and not planned:
        raise UsageError("--if-missing needs --only-partition")
    if if_missing and not run.dry_run and _is_built(database, only_partition):
        return
    # Further GPUs are initialised only if the memory of the first is too small.
    with open_run(run, "ngsgpu.classify.index.gpu_build", prepared_gpus=1) as options:
        from ngsgpu.classify.database.build import (
            build_database,
            build_partition,
            plan_build_of,
            plan_partition,
        )
        from ngsgpu.classify.database.database import open_database
        from ngsgpu.classify.database.info import partition_lines

        def settings() -> dict[str, Any]:
            found = sources.settings(references or [], max_size=max_size)
            return {"path": database, "parameters": _parameters(index), "options": options, **found}

        def plan() -> HostPlan:
            if only_partition is None:
                own, planned = plan_build_of(**settings())
            else:
                planned = open_database(database)
                own = plan_partition(planned, only_partition, options)
            return replace(own, notes=tuple(partition_lines(planned, built=None)))

        if shows_plan(run, options, stats, plan):
            return
        if only_partition is not None:
            build_partition(open_database(database), only_partition, options, stats)
            return
        built = build_database(**settings(), stats=stats)
    _say(built, run.quiet)


def add(
    *,
    references: References,
    database: ChangedDatabase,
    sources: SourceOptions,
    into_last: bool = flag(
        "Add to the last partition, on the CPU, instead of creating new ones.", "--into-last"
    ),
    run: AddRun,
) -> None:
    """Add reference sequences to a database; existing partitions are unchanged.

    The database keeps its taxonomy; --taxonomy only checks that it is the same one.
    """
    if into_last:
        if run.backend == "cuda":
            raise UsageError("--into-last works on the CPU: omit --backend cuda")
        run = replace(run, backend="cpu")
    with open_run(run, "ngsgpu.classify.index.gpu_build", prepared_gpus=1) as options:
        from ngsgpu.classify.database.change.add import add_references
        from ngsgpu.classify.database.database import open_database

        has_taxonomy = open_database(database).taxonomy is not None
        new = add_references(
            database,
            **sources.settings(references, has_taxonomy=has_taxonomy),
            into_last=into_last,
            options=options,
        )
    _say(new, run.quiet)


def thin(
    *,
    database: DatabasePath,
    output: Annotated[Prefix, option(..., "DIR", "The thinned database.", "-o", "--output")],
    fraction: float | None = option(
        None,
        "F",
        "Keep this fraction of all features, as --fraction of `ngsgpu db build` does.",
        least=LEAST_KEPT / ALL_KEYS,
        most=1,
    ),
    max_size: MaxSize = None,
    run: HostRun,
) -> None:
    """Write a smaller database with fewer features, as if it had been built with --fraction.

    Needs no reference sequences. The database itself does not change.

    For example: ngsgpu db thin -d DB -o SMALL --max-size 16G
    """
    from ngsgpu.classify.database.change.thin import thin_database

    thinned = thin_database(
        database, output, fraction=fraction, size=bytes_of(max_size), options=cpu_options(run)
    )
    if not run.quiet:
        click.echo(f"{output}: fraction {thinned.parameters.sketch.fraction:g}", err=True)
    _say(thinned, run.quiet)


def remove(
    *,
    names: Annotated[
        list[Text] | None,
        argument(..., "NAMES...", "Sequences, reference files, or accessions in their names."),
    ] = None,
    database: ChangedDatabase,
    taxa: list[int] | None = option(
        None,
        "TAXID",
        "Remove this taxon and all below it; repeat for more.",
        "--taxon",
        most=MAX_TAXID,
    ),
    listed: Read | None = option(None, "FILE", "Names, one per line.", "--list"),
    dry_run: bool = flag("Print what would be removed; change nothing.", "--dry-run"),
    run: HostRun,
) -> None:
    """Remove reference sequences from a database; partitions without them are unchanged.

    What other features had lost to --max-locations stays lost.
    """
    from ngsgpu.classify.database.change.remove import chosen_targets, read_names, remove_references
    from ngsgpu.classify.database.database import open_database
    from ngsgpu.classify.database.info import target_lines

    wanted = [*(names or []), *(read_names(listed) if listed is not None else [])]
    if not (wanted or taxa):
        raise UsageError("name what to remove: sequences, reference files, --taxon or --list")
    if dry_run:
        opened = open_database(database)
        for line in target_lines(opened, only=chosen_targets(opened, wanted, taxa or [])):
            click.echo(line)
        return
    options = cpu_options(run)
    _say(remove_references(database, wanted, taxa or [], options=options), run.quiet)


def _is_built(database: str, partition: int | None) -> bool:
    from ngsgpu.classify.database.database import open_database

    return partition in open_database(database).built()


def _say(database: Database, quiet: bool) -> None:
    from ngsgpu.classify.database.info import partition_lines, taxon_lines

    if not quiet:
        lines = [*partition_lines(database, built=database.built()), *taxon_lines(database)]
        click.echo("\n".join(lines), err=True)


COMMANDS: Final = {
    "plan": plan,
    "build": build,
    "add": add,
    "remove": remove,
    "thin": thin,
    "serve": serve,
    "info": info,
    "stats": stats,
    "verify": verify,
}


def _parameters(index: Options[DatabaseParameters]) -> DatabaseParameters:
    """The parameters that were given; windows overlap so that each k-mer is in one."""
    given, usual = index.given, SketchParameters()
    more: dict[str, int] = {}
    if "stride" not in given:
        overlap = given.get("kmer", usual.kmer) - 1
        more["stride"] = max(1, given.get("window", usual.window) - overlap)
    if given.get("max_locations", 0) is None:
        more["max_locations"] = KEEP_ALL
    return index.make(**more)
