"""Plans databases: the references, their taxa and their partitions.

A plan reads the references once for names and lengths and assigns the targets to partitions. Each
partition can then be built by a separate job (``build``).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.database import Database
from ngsgpu.classify.database.fit import bytes_beside, fitted
from ngsgpu.classify.database.folder import check_place
from ngsgpu.classify.database.targets import (
    PlannedPartition,
    TargetTable,
    join_names,
    partition_digest,
    partition_folder,
)
from ngsgpu.classify.index.index import MAX_LOCATIONS, WindowTaxa, index_bytes
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest
from ngsgpu.classify.sketch.references import (
    MAX_WINDOWS,
    TargetCollector,
    Targets,
    add_batch,
    assign_partitions,
    find_references,
    read_reference,
)
from ngsgpu.device.memory import format_size
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.batch import printable
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Progress, say_short
from ngsgpu.taxonomy.dump import load_taxonomy
from ngsgpu.taxonomy.mapping import keys_of, map_targets
from ngsgpu.taxonomy.ranks import RANK_CODES
from ngsgpu.taxonomy.tree import Taxonomy

logger = logging.getLogger("ngsgpu")

_UNMAPPED_SHOWN: Final = 10
_KEYS_SHOWN: Final = 6
_TAXA_SHOWN: Final = 3


def ranked_nodes(
    node: NDArray[np.int32], taxonomy: Taxonomy | None, rank: str
) -> NDArray[np.int32] | None:
    """Each target's taxon at a rank, int32, -1 without one; None if no rank is given.

    Raises:
        UsageError: the rank does not exist, or there is no taxonomy.
    """
    if not rank:
        return None
    if taxonomy is None:
        raise UsageError("`ambiguous_rank` needs a `taxonomy`")
    if rank not in RANK_CODES or rank == "sequence":
        raise UsageError(
            f"`ambiguous_rank` {rank!r} is not a rank; choose one of {', '.join(RANK_CODES)}"
        )
    lineages = taxonomy.ranked_lineages()
    return np.where(node < 0, np.int32(-1), lineages[node, RANK_CODES[rank]]).astype(np.int32)


def window_taxa(database: Database, number: int) -> WindowTaxa | None:
    """The taxa of a partition's windows, where features of many taxa are to be removed."""
    rank = database.parameters.ambiguous_rank
    ranked = ranked_nodes(database.targets.node, database.taxonomy, rank)
    if ranked is None:
        return None
    target, first_window, _ = database.members(number)
    return WindowTaxa(first_window, ranked[target])


def check_windows(targets: Targets, parameters: DatabaseParameters) -> int:
    """Windows of all targets; logs how many targets are too short for any.

    Raises:
        InputError: all are.
    """
    windows, kmer = targets.windows(parameters.sketch), parameters.sketch.kmer
    if not np.any(windows):
        raise InputError(
            targets.files[targets.file[0]],
            f"no reference sequence of {len(targets):,} has {kmer} bases",
            "give longer sequences, or a smaller k",
        )
    say_short(int(np.count_nonzero(windows == 0)), len(targets), kmer)
    return int(windows.sum())


def partition_of(
    targets: Targets, parameters: DatabaseParameters, request: PartitionRequest
) -> NDArray[np.int32]:
    """Assign targets to partitions as requested; raises UsageError if that is impossible.

    Args:
        targets: names and lengths of the reference sequences.
        parameters: of the database.
        request: number of partitions or their size in bytes.
    """
    windows = targets.windows(parameters.sketch)
    number = request.number or 1
    if request.bytes is not None:
        most = parameters.sketch.most_features(int(windows.sum()))
        wanted = -(-index_bytes(most) // request.bytes)
        number = max(1, min(wanted, len(targets)))
    while True:
        dealt = assign_partitions(windows, targets.file, number)
        largest = int(np.bincount(dealt, weights=windows).max())
        locations = parameters.sketch.most_features(largest)
        if locations > MAX_LOCATIONS or largest > MAX_WINDOWS:
            if request.number is not None:
                raise UsageError(
                    f"a partition would have {locations:,} locations and can have "
                    f"{MAX_LOCATIONS:,}; ask for more partitions"
                )
        elif request.bytes is None or index_bytes(locations) <= request.bytes:
            return dealt
        if number == len(targets):
            one = index_bytes(parameters.sketch.most_features(int(windows.max())))
            raise UsageError(
                f"the longest reference sequence alone takes {format_size(one)} and is not cut; "
                "allow more with `partition_memory`"
            )
        number = min(number + 1, len(targets))


def assemble_database(
    path: Path,
    targets: Targets,
    parameters: DatabaseParameters,
    taxonomy: Taxonomy | None,
    node: NDArray[np.int32],
    partition: NDArray[np.int32],
    *,
    taxonomy_digest: str | None = None,
    generation: int = 1,
) -> Database:
    """Put a database together, without indexes and without writing anything.

    Args:
        path: folder of the database.
        targets: names, lengths and files of the reference sequences.
        parameters: of the database.
        taxonomy: the taxonomy; None without one.
        node: taxon of each target, int32[n]; -1 without one.
        partition: partition of each target, int32[n].
        taxonomy_digest: digest of the taxonomy's files, if known.
        generation: counts the changes of the database.
    """
    name_bytes, name_start = join_names(targets.names)
    table = TargetTable(
        name_bytes=name_bytes,
        name_start=name_start,
        length=np.array(targets.length, dtype=np.int64),
        node=node,
        partition=partition,
        file=np.array(targets.file, dtype=np.int32),
        files=tuple(targets.files),
    )
    windows = targets.windows(parameters.sketch)
    ranked = ranked_nodes(node, taxonomy, parameters.ambiguous_rank)
    planned = []
    for number in range(int(partition.max()) + 1):
        members = np.flatnonzero(partition == number)
        planned.append(
            PlannedPartition(
                folder=partition_folder(number, generation),
                targets=len(members),
                windows=int(windows[members].sum()),
                digest=partition_digest(
                    parameters,
                    [targets.names[member] for member in members.tolist()],
                    table.length[members],
                    None if ranked is None else ranked[members],
                ),
            )
        )
    digest = taxonomy_digest
    if digest is None:
        digest = "" if taxonomy is None else taxonomy.digest()
    return Database(path, parameters, table, tuple(planned), taxonomy, digest, generation)


def taxa_of(
    targets: Targets, taxonomy: Taxonomy | None, maps: Sequence[str | Path]
) -> NDArray[np.int32]:
    """Find the taxa of targets, and name those that have none.

    Raises:
        InputError: a map cannot be read.
        UsageError: there are maps but no taxonomy.
    """
    if taxonomy is None:
        if maps:
            raise UsageError("`maps` needs a `taxonomy`")
        return np.full(len(targets), -1, dtype=np.int32)
    files = [targets.files[file] for file in targets.file]
    node = map_targets(targets.names, targets.headers, taxonomy, maps, files=files)
    without = np.flatnonzero(node < 0)
    if len(without) > 0:
        names = [printable(targets.names[target]) for target in without[:_UNMAPPED_SHOWN].tolist()]
        more = len(without) - len(names)
        logger.warning(
            "%d of %d reference sequences have no taxon: %s%s",
            len(without),
            len(targets),
            ", ".join(names),
            f" and {more:,} more (`ngsgpu db info --unmapped` lists them)" if more else "",
        )
    return node


def inputs_of(
    references: Sequence[str | Path],
    files: Sequence[str],
    taxonomy: str | Path | None,
    maps: Sequence[str | Path],
) -> list[str | Path]:
    """All files and folders that a database is made of.

    Args:
        references: files and folders, as given.
        files: the files found in them.
        taxonomy: folder of the taxonomy, if any.
        maps: tables of accessions and taxids.
    """
    return [*references, *files, *([] if taxonomy is None else [taxonomy]), *maps]


def check_taxa(
    node: NDArray[np.int32], targets: Targets, taxonomy: Taxonomy | None, maps: Sequence[str | Path]
) -> None:
    """Refuse a taxonomy, or maps, that fit no reference sequence; raises UsageError.

    Args:
        node: taxon of each target, int32[n]; -1 without one.
        targets: names and files of the reference sequences.
        taxonomy: the taxonomy; None without one.
        maps: tables of accessions and taxids.
    """
    if taxonomy is None or (node >= 0).any():
        return
    first = printable(targets.names[0])
    why = "no header has a taxid, and no `maps` was given"
    remedy = "give one, or omit `taxonomy`"
    if maps:
        names = ", ".join(map(str, maps))
        keys = dict.fromkeys(keys_of(targets.names[0], targets.files[targets.file[0]]))
        looked_up = ", ".join(key.decode("utf-8", "replace") for key in [*keys][:_KEYS_SHOWN])
        why = (
            f"{names} and the headers give them no taxid that the taxonomy knows (looked up as "
            f"{looked_up})"
        )
        remedy = "give a `maps` with their names and taxids of this taxonomy"
    some = (node for node in range(len(taxonomy)) if node != taxonomy.root)
    taxa = [f"{taxonomy.taxid[node]} ({taxonomy.name(node)})" for node in islice(some, _TAXA_SHOWN)]
    raise UsageError(
        f"none of {len(targets):,} reference sequences (first {first}) has a taxon: {why}; the "
        f"taxonomy has {len(taxonomy):,} taxa, {', '.join(taxa)} and so on; {remedy}"
    )


def plan_database(
    references: Paths,
    path: str | Path,
    *,
    parameters: DatabaseParameters | None = None,
    taxonomy: str | Path | None = None,
    maps: Paths = (),
    request: PartitionRequest | None = None,
    options: RunOptions | None = None,
) -> Database:
    """Read references for their names and lengths, and plan a database; nothing is written.

    Args:
        references: FASTA files, or folders of them.
        path: folder of the database.
        parameters: of the database; by default the usual ones.
        taxonomy: folder with nodes.dmp and names.dmp, if any.
        maps: tables of accessions and taxids.
        request: number or size of partitions; by default one.
        options: threads, memory and progress.

    Raises:
        InputError: a reference, the taxonomy or a map cannot be used, or no database may be created
            at the path.
        UsageError: the request is impossible.
    """
    references, maps = listed(references), listed(maps)
    parameters = parameters or DatabaseParameters()
    options = options or RunOptions()
    files = find_references(references)
    check_place(path, inputs_of(references, files, taxonomy, maps))
    tree = None if taxonomy is None else load_taxonomy(taxonomy)
    collector = TargetCollector()
    with (
        Progress(options.progress) as progress,
        progress.stage("reading references", unit="bases") as stage,
    ):
        for own in files:
            for batch in read_reference(own, threads=options.threads):
                add_batch(collector, batch)
                stage.advance(int(batch.seq_len.sum(dtype=np.int64)))
    return plan_targets(
        Path(path), collector.targets, parameters, tree, maps, request or PartitionRequest()
    )


def plan_targets(
    path: Path,
    targets: Targets,
    parameters: DatabaseParameters,
    taxonomy: Taxonomy | None,
    maps: Sequence[str | Path],
    request: PartitionRequest,
) -> Database:
    """Plan a database of targets; see ``plan_database``."""
    node = taxa_of(targets, taxonomy, maps)
    check_taxa(node, targets, taxonomy, maps)
    beside = bytes_beside(len(targets), sum(map(len, targets.names)), targets.files, taxonomy)
    windows = check_windows(targets, parameters)
    parameters = fitted(parameters, windows, beside, request)
    partition = partition_of(targets, parameters, request)
    return assemble_database(path, targets, parameters, taxonomy, node, partition)
