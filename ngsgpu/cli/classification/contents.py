"""``ngsgpu db info``, ``stats`` and ``verify``: what a database holds, and whether it is whole."""

from __future__ import annotations

from typing import Annotated

import click

from ngsgpu.declared.options import flag, option
from ngsgpu.declared.roles import ReadDatabase
from ngsgpu.errors import InputError

DatabasePath = Annotated[ReadDatabase, option(..., "DIR", "The database.", "-d", "--database")]


def stats(
    database: DatabasePath,
    json_output: bool = flag("Print JSON.", "--json"),
) -> None:
    """Show the size of a database, its features and how many locations they have."""
    from ngsgpu.classify.database.contents import contents_lines, database_contents
    from ngsgpu.classify.database.database import open_database
    from ngsgpu.device.memory import usable_cpus

    found = database_contents(open_database(database), usable_cpus())
    if json_output:
        import json

        click.echo(json.dumps(found, indent=1))
        return
    click.echo("\n".join(contents_lines(found)))


def info(
    database: DatabasePath,
    targets: bool = flag("List the reference sequences, tab-separated.", "--targets"),
    unmapped: bool = flag("List the reference sequences without a taxon.", "--unmapped"),
    json_output: bool = flag("Print JSON.", "--json"),
) -> None:
    """Show the contents of a database."""
    from ngsgpu.classify.database.database import open_database
    from ngsgpu.classify.database.info import database_info, partition_lines, target_lines
    from ngsgpu.io.mapped import check_mapped

    opened = open_database(database)
    if targets or unmapped:
        only = opened.targets.node < 0 if unmapped else None
        for line in target_lines(opened, only=only):
            click.echo(line)
        check_mapped()
        return
    found = database_info(opened)
    if json_output:
        import json

        click.echo(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        if name not in ("partitions", "parameters"):
            click.echo(f"{name.replace('_', ' '):18}{value}")
    for name, value in found["parameters"].items():
        click.echo(f"{name.replace('_', ' '):18}{value}")
    click.echo("\n".join(partition_lines(opened, built=opened.built())))


def verify(database: DatabasePath) -> None:
    """Verify the checksums of all files of a database."""
    from ngsgpu.classify.database.info import verify_database

    files, damaged = verify_database(database)
    for line in damaged:
        click.echo(line)
    if damaged:
        raise InputError(
            database,
            f"{len(damaged)} of {files} files are damaged",
            "copy or build the database again",
        )
    click.echo(f"{database}: {files} files verified")
