"""``ngsgpu db``: databases of reference sequences, for classification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ngsgpu.cli.classify_options import GpuMemory, Gpus
from ngsgpu.cli.options import (
    BackendChoice,
    BackendOption,
    Memory,
    Quiet,
    Threads,
    obey_quiet,
    with_groups,
)
from ngsgpu.cli.run import bytes_of, cpu_options, open_run
from ngsgpu.errors import InputError, UsageError

if TYPE_CHECKING:
    from ngsgpu.classify.database.plan import PartitionRequest
    from ngsgpu.classify.params import DatabaseParameters

References = Annotated[
    list[str],
    typer.Argument(
        metavar="REFS...", help="FASTA files or directories of them.", show_default=False
    ),
]
DatabasePath = Annotated[
    str, typer.Option("-d", "--database", metavar="DIR", help="The database.", show_default=False)
]
TaxonomyPath = Annotated[
    str | None,
    typer.Option(
        "--taxonomy",
        metavar="DIR",
        help="Directory with NCBI nodes.dmp and names.dmp; without it, reads are only assigned to "
        "sequences.",
    ),
]
Maps = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FILE",
        help="Sequence-to-taxon mapping: NCBI accession2taxid or assembly_summary.txt, or a table "
        "of sequence name and taxid; repeat for more.",
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option("--partitions", metavar="N", help="Number of partitions.", show_default="1"),
]
PartitionMemory = Annotated[
    str | None,
    typer.Option(
        "--partition-memory", metavar="SIZE", help="Maximum memory per partition, for example 40G."
    ),
]


@dataclass(frozen=True)
class IndexOptions:
    """Options of a database's index."""

    kmer: Annotated[int, typer.Option(metavar="K", help="k-mer length, 4 to 16.")] = 16
    sketch: Annotated[
        int, typer.Option(metavar="N", help="Features per window (sketch size), 1 to 32.")
    ] = 24
    window: Annotated[int, typer.Option(metavar="N", help="Window length in bases.")] = 127
    stride: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Distance between window starts.", show_default="window - kmer + 1"
        ),
    ] = None
    max_locations: Annotated[
        str,
        typer.Option(
            metavar="N|all", help="Keep the first N locations of a feature in each partition."
        ),
    ] = "254"
    remove_overfull: Annotated[
        bool,
        typer.Option("--remove-overfull", help="Drop features exceeding --max-locations instead."),
    ] = False
    ambiguous_rank: Annotated[
        str,
        typer.Option(
            metavar="RANK",
            help="Drop features found in more than --max-taxa taxa of this rank.",
            show_default="none",
        ),
    ] = ""
    max_taxa: Annotated[int, typer.Option(metavar="N", help="See --ambiguous-rank.")] = 1

    def parameters(self) -> DatabaseParameters:
        """Convert to the builder's parameters."""
        from ngsgpu.classify.params import KEEP_ALL, DatabaseParameters, SketchParameters

        try:
            limit = KEEP_ALL if self.max_locations == "all" else int(self.max_locations)
        except ValueError:
            raise UsageError(
                f"--max-locations must be all or a number, not {self.max_locations!r}"
            ) from None
        stride = self.window - self.kmer + 1 if self.stride is None else self.stride
        return DatabaseParameters(
            sketch=SketchParameters(self.kmer, self.sketch, self.window, stride),
            max_locations=limit,
            remove_overfull=self.remove_overfull,
            ambiguous_rank=self.ambiguous_rank,
            max_taxa=self.max_taxa,
        )


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, help="Build and inspect classification databases.")
    for command in (plan, build, add, info, verify):
        group.command(name=command.__name__)(with_groups(command))
    app.add_typer(group, name="db")


def plan(
    *,
    references: References,
    database: DatabasePath,
    taxonomy: TaxonomyPath = None,
    maps: Maps = None,
    partitions: Partitions = None,
    partition_memory: PartitionMemory = None,
    index: IndexOptions,
    threads: Threads = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan; write nothing.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Plan a partitioned database from the names and lengths of the references.

    Writes the database without indexes and prints its partitions. Build each one, in separate jobs
    if you like, with `ngsgpu db build -d DIR --only-partition K`.
    """
    from ngsgpu.classify.database.folder import database_folder
    from ngsgpu.classify.database.info import partition_lines, taxon_lines
    from ngsgpu.classify.database.plan import inputs_of, plan_database
    from ngsgpu.classify.database.write import write_manifest

    obey_quiet(quiet)
    options = cpu_options(threads, None, quiet)
    planned = plan_database(
        references,
        database,
        parameters=index.parameters(),
        taxonomy=taxonomy,
        maps=maps or [],
        request=_request(partitions, partition_memory),
        options=options,
    )
    if not dry_run:
        inputs = inputs_of(references, planned.targets.files, taxonomy, maps or [])
        with database_folder(planned.path, inputs) as place:
            write_manifest(planned.moved(*place))
    typer.echo("\n".join(partition_lines(planned, built=None)))
    if not quiet:
        for line in taxon_lines(planned):
            typer.echo(line, err=True)


def build(
    *,
    references: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REFS...",
            help="FASTA files or directories of them; omit with --only-partition.",
            show_default=False,
        ),
    ] = None,
    database: DatabasePath = "",
    taxonomy: TaxonomyPath = None,
    maps: Maps = None,
    partitions: Partitions = None,
    partition_memory: PartitionMemory = None,
    only_partition: Annotated[
        int | None,
        typer.Option(
            "--only-partition", metavar="K", help="Build only this partition of a planned database."
        ),
    ] = None,
    index: IndexOptions,
    threads: Threads = 0,
    memory: Memory = None,
    backend: BackendOption = BackendChoice.auto,
    gpus: Gpus = None,
    gpu_memory: GpuMemory = None,
    quiet: Quiet = False,
) -> None:
    """Build a database from reference sequences.

    An existing database is replaced once the new one is complete; a directory that holds anything
    else is refused. References are FASTA, plain or compressed, with unique sequence names. With
    several GPUs, only as many are used as their memory is needed.

    In one go:          ngsgpu db build genomes/ -d DB --taxonomy tax --map seqid2taxid.tsv

    By partition:       ngsgpu db plan genomes/ -d DB --partitions 4 ...

                        ngsgpu db build -d DB --only-partition 0      (and 1, 2, 3)
    """
    if not database:
        raise UsageError("give the database with -d")
    planned = only_partition is not None
    others = references or taxonomy or maps or partitions or partition_memory
    if planned and (others or index != IndexOptions()):
        raise UsageError(
            "--only-partition builds a database planned with `ngsgpu db plan`: give only -d"
        )
    obey_quiet(quiet)
    # Further GPUs are initialised only if the memory of the first is too small.
    with open_run(
        "ngsgpu.classify.index.gpu_build",
        threads=threads,
        backend=backend,
        gpus=gpus,
        memory=memory,
        gpu_memory=gpu_memory,
        quiet=quiet,
        prepared_gpus=1,
    ) as (_, options):
        from ngsgpu.classify.database.build import build_database, build_partition
        from ngsgpu.classify.database.database import open_database

        parameters = index.parameters()
        if only_partition is not None:
            build_partition(open_database(database), only_partition, options)
            return
        built = build_database(
            references or [],
            database,
            parameters=parameters,
            taxonomy=taxonomy,
            maps=maps or [],
            request=_request(partitions, partition_memory),
            options=options,
        )
    if not quiet:
        from ngsgpu.classify.database.info import partition_lines, taxon_lines

        lines = [*partition_lines(built, built=built.built()), *taxon_lines(built)]
        typer.echo("\n".join(lines), err=True)


def add(
    references: References,
    database: DatabasePath,
    taxonomy: TaxonomyPath = None,
    maps: Maps = None,
    partitions: Partitions = None,
    partition_memory: PartitionMemory = None,
    into_last: Annotated[
        bool,
        typer.Option("--into-last", help="Add to the last partition instead of creating new ones."),
    ] = False,
    threads: Threads = 0,
    memory: Memory = None,
    quiet: Quiet = False,
) -> None:
    """Add reference sequences to a database; existing partitions are unchanged.

    The database keeps its taxonomy; --taxonomy only checks that it is the same one.
    """
    from ngsgpu.classify.database.add import add_references
    from ngsgpu.classify.database.info import partition_lines, taxon_lines

    obey_quiet(quiet)
    new = add_references(
        database,
        references,
        taxonomy=taxonomy,
        maps=maps or [],
        request=_request(partitions, partition_memory),
        into_last=into_last,
        options=cpu_options(threads, memory, quiet),
    )
    if not quiet:
        lines = [*partition_lines(new, built=new.built()), *taxon_lines(new)]
        typer.echo("\n".join(lines), err=True)


def info(
    database: DatabasePath,
    targets: Annotated[
        bool, typer.Option("--targets", help="List the reference sequences, tab-separated.")
    ] = False,
    unmapped: Annotated[
        bool, typer.Option("--unmapped", help="List the reference sequences without a taxon.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the contents of a database."""
    from ngsgpu.classify.database.database import open_database
    from ngsgpu.classify.database.info import database_info, partition_lines, target_lines

    opened = open_database(database)
    if targets or unmapped:
        for line in target_lines(opened, only_unmapped=unmapped):
            typer.echo(line)
        return
    found = database_info(opened)
    if json_output:
        import json

        typer.echo(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        if name not in ("partitions", "parameters"):
            typer.echo(f"{name.replace('_', ' '):18}{value}")
    for name, value in found["parameters"].items():
        typer.echo(f"{name.replace('_', ' '):18}{value}")
    typer.echo("\n".join(partition_lines(opened, built=opened.built())))


def verify(database: DatabasePath) -> None:
    """Verify the checksums of all files of a database."""
    from ngsgpu.classify.database.verify import verify_database

    files, damaged = verify_database(database)
    for line in damaged:
        typer.echo(line)
    if damaged:
        raise InputError(
            database,
            f"{len(damaged)} of {files} files are damaged",
            "copy or build the database again",
        )
    typer.echo(f"{database}: {files} files verified")


def _request(partitions: int | None, memory: str | None) -> PartitionRequest:
    from ngsgpu.classify.database.plan import PartitionRequest

    return PartitionRequest(partitions, bytes_of(memory))
