"""Building databases: plan, sketch, index, store.

A plan reads the references once for the names and lengths and deals the targets out to
partitions. Each partition can then be built by a job of its own, which reads only the files that
hold its targets. Where everything fits into memory, `build_database` reads once: it sketches all
targets and deals them out afterwards.
"""

from __future__ import annotations

import itertools
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database import (
    Database,
    Partition,
    PlannedPartition,
    TargetTable,
    join_names,
    open_database,
    partition_digest,
    write_manifest,
    write_partition,
)
from ngsgpu.classify.index import (
    MOST_LOCATIONS,
    NO_TAXA,
    REMOVED,
    Limits,
    Pairs,
    WindowTaxa,
    build_index,
    index_bytes,
    keys_of_locations,
    removed_keys,
)
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.classify.references import (
    MOST_WINDOWS,
    TargetCollector,
    Targets,
    deal_out,
    find_references,
    read_ahead,
    read_reference,
)
from ngsgpu.classify.sketching import Unpacked, sketch_batches
from ngsgpu.classify.store import whole_folder
from ngsgpu.classify.taxonomy import RANK_CODES, Taxonomy, load_taxonomy
from ngsgpu.device.memory import available_memory, format_size
from ngsgpu.errors import DeviceError, InputError, UsageError
from ngsgpu.io.batch import printable
from ngsgpu.progress import Progress

logger = logging.getLogger("ngsgpu")

_Result = TypeVar("_Result")

BYTES_A_LOCATION_BUILT: Final = 28
"""Memory that building takes for a location: pairs, sorted pairs, the index."""
_PACKED_FACTOR: Final = 4
_SHARE_OF_MEMORY: Final = 0.7
_UNMAPPED_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a build goes about it; none of these changes what is built.

    Attributes:
        threads: how many threads work.
        memory: bytes that may be taken; None for what the machine has free.
        progress: whether to show progress.
        backend: ``cpu`` or ``cuda``.
        may_fall_back: whether the CPU may do what the GPU cannot hold.
        gpu_memory: bytes of a GPU's memory that may be taken; None for what it has free.
    """

    threads: int = 1
    memory: int | None = None
    progress: bool = False
    backend: Literal["cpu", "cuda"] = "cpu"
    may_fall_back: bool = False
    gpu_memory: int | None = None

    @property
    def budget(self) -> int:
        """Bytes that may be taken."""
        return self.memory if self.memory is not None else available_memory()


@dataclass(frozen=True, slots=True)
class PartitionRequest:
    """Into how many partitions to cut.

    Attributes:
        number: how many; None: as ``bytes`` says.
        bytes: memory that the index of a partition may take; None: one partition, if it can be.
    """

    number: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        if self.number is not None and self.bytes is not None:
            raise UsageError("give --partitions or --partition-memory, not both")
        if self.number is not None and not 1 <= self.number <= 10_000:
            raise UsageError(f"--partitions must be from 1 to 10,000, not {self.number}")


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
        raise UsageError("--ambiguous-rank needs a --taxonomy")
    if rank not in RANK_CODES or rank == "sequence":
        raise UsageError(
            f"--ambiguous-rank {rank!r} is no rank; choose one of {', '.join(RANK_CODES)}"
        )
    lineages = taxonomy.ranked_lineages()
    return np.where(node < 0, np.int32(-1), lineages[node, RANK_CODES[rank]]).astype(np.int32)


def _expected_locations(windows: NDArray[np.int64], parameters: DatabaseParameters) -> int:
    return int(windows.sum()) * parameters.sketch.sketch


def _partition_of(
    targets: Targets, parameters: DatabaseParameters, request: PartitionRequest
) -> NDArray[np.int32]:
    """Deal targets out as was asked for; raises UsageError where that is not possible."""
    windows = targets.windows(parameters.sketch)
    sketch = parameters.sketch.sketch
    number = request.number or 1
    if request.bytes is not None:
        wanted = -(-index_bytes(_expected_locations(windows, parameters)) // request.bytes)
        number = max(1, min(wanted, len(targets)))
    while True:
        dealt = deal_out(windows, targets.file, number)
        largest = int(np.bincount(dealt, weights=windows).max())
        locations = largest * sketch
        if locations > MOST_LOCATIONS or largest > MOST_WINDOWS:
            if request.number is not None:
                raise UsageError(
                    f"a partition would have {locations:,} locations and can have "
                    f"{MOST_LOCATIONS:,}; ask for more partitions"
                )
        elif request.bytes is None or index_bytes(locations) <= request.bytes:
            return dealt
        if number == len(targets):
            one = index_bytes(int(windows.max()) * sketch)
            raise UsageError(
                f"the longest reference sequence alone takes {format_size(one)} and is not cut; "
                "allow more with --partition-memory"
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
    """Put a database together, without indexes and without writing anything."""
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
                folder=f"partition-{number:04d}-{generation:04d}",
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


def index_partition(
    database: Database,
    number: int,
    pairs: Sequence[Pairs],
    *,
    threads: int,
    removed: NDArray[np.uint32] | None = None,
) -> Partition:
    """Build the index of a partition.

    Args:
        database: says which targets it has.
        number: of the partition.
        pairs: of (at least) its targets.
        threads: how many threads work.
        removed: keys that have to have no location.
    """
    target, first_window = database.members(number)
    shift = np.full(len(database.targets), -1, dtype=np.int64)
    shift[target] = first_window[:-1]
    parameters = database.parameters
    ranked = ranked_nodes(database.targets.node, database.taxonomy, parameters.ambiguous_rank)
    taxa = NO_TAXA if ranked is None else WindowTaxa(first_window, ranked[target])
    limits = Limits(
        parameters.max_locations,
        int(parameters.remove_overfull),
        parameters.max_taxa if parameters.ambiguous_rank else 0,
    )
    shifts = [shift[own.target] for own in pairs]
    if removed is not None and len(removed) > 0:
        windows = np.full(len(removed), REMOVED, dtype=np.uint32)
        one = np.zeros(1, dtype=np.int64)
        pairs = [*pairs, Pairs(removed, windows, np.array([0, len(removed)]), one)]
        shifts.append(one)
    index = build_index(pairs, shifts, limits, taxa=taxa, threads=threads)
    return Partition(number, target, first_window, index)


class _Builder:
    """Sketches references and builds indexes, on the GPU where one is to be used.

    The index with features of many taxa removed is built on the CPU: it is rarely wanted.
    """

    def __init__(self, parameters: DatabaseParameters, options: BuildOptions) -> None:
        self._parameters = parameters
        self._threads = options.threads
        self._on_gpu = options.backend == "cuda" and not parameters.ambiguous_rank

    def sketch(self, batches: Iterable[Unpacked], advance: Callable[[int], None]) -> list[Any]:
        """Sketch references; what it gives is for ``index``."""
        if self._on_gpu:
            from ngsgpu.classify.gpu import sketch_on_gpu
            from ngsgpu.device.errors import cuda_errors

            with cuda_errors("sketching references"):
                return list(sketch_on_gpu(batches, self._parameters.sketch, advance))
        return list(
            sketch_batches(batches, self._parameters.sketch, threads=self._threads, advance=advance)
        )

    def index(self, database: Database, number: int, sketches: list[Any]) -> Partition:
        """Build the index of a partition."""
        if self._on_gpu:
            from ngsgpu.classify.gpu import index_on_gpu
            from ngsgpu.device.errors import cuda_errors

            with cuda_errors("building an index"):
                return index_on_gpu(database, number, sketches)
        return index_partition(database, number, sketches, threads=self._threads)


def _on_device(options: BuildOptions, work: Callable[[BuildOptions], _Result]) -> _Result:
    """Do work with the backend that was chosen, or on the CPU where the GPU cannot and may not."""
    if options.backend == "cpu":
        return work(options)
    from ngsgpu.device.gpu_memory import limited_gpu_memory

    try:
        with limited_gpu_memory(options.gpu_memory):
            return work(options)
    except DeviceError as error:
        if not options.may_fall_back:
            raise
        logger.warning("%s; going on with the CPU", error)
        return work(replace(options, backend="cpu"))


def collect_targets(
    files: Sequence[str], options: BuildOptions, collector: TargetCollector, progress: Progress
) -> None:
    """Read files for names and lengths."""
    with progress.stage("reading references", unit="bases") as stage:
        for path in files:
            for batch in read_reference(path, threads=options.threads):
                collector.add(batch)
                stage.advance(int(batch.seq_len.sum(dtype=np.int64)))


def taxa_of(
    targets: Targets, taxonomy: Taxonomy | None, maps: Sequence[str | Path]
) -> NDArray[np.int32]:
    """Find the taxa of targets, and name those that have none."""
    from ngsgpu.classify.mapping import map_targets

    if taxonomy is None:
        if maps:
            raise UsageError("--map needs a --taxonomy")
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


def plan_database(
    references: Sequence[str | Path],
    path: str | Path,
    *,
    parameters: DatabaseParameters | None = None,
    taxonomy: str | Path | None = None,
    maps: Sequence[str | Path] = (),
    request: PartitionRequest | None = None,
    options: BuildOptions | None = None,
) -> Database:
    """Read references for their names and lengths, and plan a database; nothing is written.

    Raises:
        InputError: a reference, the taxonomy or a map cannot be used.
        UsageError: what is asked for is not possible.
    """
    parameters = parameters or DatabaseParameters()
    options = options or BuildOptions()
    tree = None if taxonomy is None else load_taxonomy(taxonomy)
    collector = TargetCollector()
    with Progress(options.progress) as progress:
        collect_targets(find_references(references), options, collector, progress)
    targets = collector.targets
    node = taxa_of(targets, tree, maps)
    partition = _partition_of(targets, parameters, request or PartitionRequest())
    return assemble_database(Path(path), targets, parameters, tree, node, partition)


def build_database(
    references: Sequence[str | Path],
    path: str | Path | None,
    *,
    parameters: DatabaseParameters | None = None,
    taxonomy: str | Path | None = None,
    maps: Sequence[str | Path] = (),
    request: PartitionRequest | None = None,
    options: BuildOptions | None = None,
) -> Database:
    """Build a database.

    Args:
        references: FASTA files, or directories of them.
        path: the directory to make, or to replace; None builds in memory only.
        parameters: how it is built; MetaCache's values by default.
        taxonomy: directory with nodes.dmp and names.dmp; None: calls are sequences only.
        maps: which sequence belongs to which taxon; see ``ngsgpu.classify.mapping``.
        request: into how many partitions to cut.
        options: threads, memory and the like.

    Raises:
        InputError: a reference, the taxonomy or a map cannot be used.
        OutputError: the database cannot be written; an older one stays.
        UsageError: what is asked for is not possible.
    """
    parameters = parameters or DatabaseParameters()
    wanted = request or PartitionRequest()
    files = find_references(references)

    def work(own: BuildOptions) -> Database:
        if path is not None and not _fits(files, parameters, own):
            return _build_part_by_part(files, Path(path), parameters, taxonomy, maps, wanted, own)
        return _build_at_once(
            files, None if path is None else Path(path), parameters, taxonomy, maps, wanted, own
        )

    return _on_device(options or BuildOptions(), work)


def _build_part_by_part(
    files: Sequence[str],
    path: Path,
    parameters: DatabaseParameters,
    taxonomy: str | Path | None,
    maps: Sequence[str | Path],
    request: PartitionRequest,
    options: BuildOptions,
) -> Database:
    """Plan a database and build its partitions one after the other."""
    logger.info("the references do not fit into memory at once: building part by part")
    database = plan_database(
        files, path, parameters=parameters, taxonomy=taxonomy, maps=maps, request=request,
        options=options,
    )  # fmt: skip
    with whole_folder(path) as folder:
        there = replace(database, path=folder)
        write_manifest(there)
        for number in range(len(database.partitions)):
            _build_partition(there, number, options)
    return open_database(path)


def _build_at_once(
    files: Sequence[str],
    path: Path | None,
    parameters: DatabaseParameters,
    taxonomy: str | Path | None,
    maps: Sequence[str | Path],
    request: PartitionRequest,
    options: BuildOptions,
) -> Database:
    """Sketch all references, then deal them out and build the partitions."""
    tree = None if taxonomy is None else load_taxonomy(taxonomy)
    collector = TargetCollector()
    with Progress(options.progress) as progress:
        with progress.stage("sketching references", unit="bases") as stage:
            builder = _Builder(parameters, options)
            pairs = builder.sketch(_all_batches(files, collector, options), stage.advance)
        targets = collector.targets
        node = taxa_of(targets, tree, maps)
        partition = _partition_of(targets, parameters, request)
        database = assemble_database(path or Path(), targets, parameters, tree, node, partition)
        numbers = range(len(database.partitions))
        with progress.stage("building", total=len(numbers), unit="partitions") as stage:
            if path is None:
                for number in numbers:
                    database.loaded[number] = builder.index(database, number, pairs)
                    stage.advance()
                return database
            with whole_folder(database.path) as folder:
                there = replace(database, path=folder)
                for number in numbers:
                    write_partition(there, builder.index(there, number, pairs))
                    stage.advance()
                write_manifest(there)
    return database


def _fits(files: Sequence[str], parameters: DatabaseParameters, options: BuildOptions) -> bool:
    """Whether all references can be sketched at once, going by the sizes of their files."""
    size = 0
    for name in files:
        file = Path(name)
        if file.exists():
            packed = file.suffix in (".gz", ".bgz", ".bz2", ".xz")
            size += file.stat().st_size * (_PACKED_FACTOR if packed else 1)
    locations = size * parameters.sketch.sketch // parameters.sketch.stride
    return locations * BYTES_A_LOCATION_BUILT <= _SHARE_OF_MEMORY * options.budget


def _all_batches(
    files: Sequence[str], collector: TargetCollector, options: BuildOptions, first: int = 0
) -> Iterator[Unpacked]:
    """All sequences of files, collecting the targets."""
    with closing(read_ahead(files, options.threads)) as batches:
        for _, batch, codes, start in batches:
            begin = first + len(collector.targets)
            collector.add(batch)
            yield Unpacked(codes, start, np.arange(begin, begin + len(batch), dtype=np.int64))


def build_partition(
    database: Database, number: int, options: BuildOptions | None = None
) -> Partition:
    """Build and store one partition of a planned database.

    Raises:
        InputError: a reference cannot be read, or is not what it was when it was planned.
        UsageError: there is no such partition.
        OutputError: it cannot be written.
    """
    if not 0 <= number < len(database.partitions):
        raise UsageError(
            f"there is no partition {number}; the database has {len(database.partitions)}, "
            "counted from 0"
        )
    return _on_device(
        options or BuildOptions(), lambda own: _build_partition(database, number, own)
    )


def _build_partition(database: Database, number: int, options: BuildOptions) -> Partition:
    total = int(database.targets.length[database.targets.partition == number].sum())
    builder = _Builder(database.parameters, options)
    with Progress(options.progress) as progress:
        with progress.stage(f"sketching partition {number}", total=total, unit="bases") as stage:
            pairs = builder.sketch(_planned_batches(database, number, options), stage.advance)
        partition = builder.index(database, number, pairs)
        write_partition(database, partition)
    return partition


def _planned_batches(database: Database, number: int, options: BuildOptions) -> Iterator[Unpacked]:
    """The sequences of a partition's files, those of other partitions left out."""
    targets = database.targets
    names = targets.names()
    wanted = targets.partition == number
    first_target = np.searchsorted(targets.file, np.arange(len(targets.files) + 1))
    span = dict(zip(targets.files, itertools.pairwise(first_target.tolist()), strict=True))
    files = [path for path, (begin, end) in span.items() if wanted[begin:end].any()]
    done = {path: span[path][0] for path in files}
    with closing(read_ahead(files, options.threads)) as batches:
        for path, batch, codes, start in batches:
            at, end = done[path], span[path][1]
            after = done[path] = at + len(batch)
            same = after <= end and (batch.seq_len == targets.length[at:after]).all()
            if not same or batch.names() != names[at:after]:
                raise _other_references(path)
            here = np.arange(at, after, dtype=np.int64)
            yield Unpacked(codes, start, np.where(wanted[at:after], here, -1))
    for path in files:
        if done[path] != span[path][1]:
            raise _other_references(path)


def _other_references(path: str) -> InputError:
    return InputError(
        path,
        "the sequences are not those that were there when the database was planned",
        "plan the database again with `ngsgpu db plan`",
    )


def add_references(
    path: str | Path,
    references: Sequence[str | Path],
    *,
    taxonomy: str | Path | None = None,
    maps: Sequence[str | Path] = (),
    request: PartitionRequest | None = None,
    into_last: bool = False,
    options: BuildOptions | None = None,
) -> Database:
    """Add references to a database, as new partitions or to the last one.

    The other partitions are not touched. With ``into_last`` the result is that of building the
    last partition of its own and the new references.

    Args:
        path: the database.
        references: FASTA files, or directories of them.
        taxonomy: only to check that it is the database's own.
        maps: as for ``build_database``.
        request: into how many new partitions to cut.
        into_last: whether to add to the last partition instead.
        options: threads, memory and the like.

    Raises:
        InputError: as for ``build_database``; a name is in the database already, or the taxonomy
            is another one.
    """
    options = options or BuildOptions()
    old = open_database(path)
    if taxonomy is not None and load_taxonomy(taxonomy).digest() != old.taxonomy_digest:
        raise InputError(
            taxonomy,
            "this is not the taxonomy that the database was built with",
            "leave out --taxonomy, or build a new database",
        )
    if old.taxonomy is None and maps:
        raise UsageError("--map needs a database with a taxonomy")
    if into_last and request not in (None, PartitionRequest()):
        raise UsageError("--into-last adds no partitions: leave out --partitions")
    known = old.targets.names()
    collector = TargetCollector(known, old.targets.files)
    with Progress(options.progress) as progress:
        with progress.stage("sketching references", unit="bases") as stage:
            pairs = sketch_batches(
                _all_batches(find_references(references), collector, options, len(known)),
                old.parameters.sketch,
                threads=options.threads,
                advance=stage.advance,
            )
        added = collector.targets
        node = np.concatenate([old.targets.node, taxa_of(added, old.taxonomy, maps)])
        last = len(old.partitions) - 1
        if into_last:
            dealt = np.full(len(added), last, dtype=np.int32)
        else:
            fresh = replace_files(added, len(old.targets.files))
            dealt = _partition_of(fresh, old.parameters, request or PartitionRequest()) + last + 1
        targets = Targets(
            names=known + added.names,
            length=old.targets.length.tolist() + added.length,
            file=old.targets.file.tolist() + added.file,
            files=added.files,
        )
        new = assemble_database(
            old.path,
            targets,
            old.parameters,
            old.taxonomy,
            node,
            np.concatenate([old.targets.partition, dealt.astype(np.int32)]),
            taxonomy_digest=old.taxonomy_digest,
            generation=old.generation + 1,
        )
        kept = last if into_last else last + 1
        new = replace(new, partitions=old.partitions[:kept] + new.partitions[kept:])
        removed = None
        if into_last:
            partition = old.load_partition(last)
            pairs = [pairs_of(partition), *pairs]
            removed = removed_keys(partition.index)
        for number in range(kept, len(new.partitions)):
            write_partition(
                new,
                index_partition(new, number, pairs, threads=options.threads, removed=removed),
            )
        write_manifest(new)
    _remove_others(new)
    return new


def replace_files(targets: Targets, files: int) -> Targets:
    """Targets whose files are counted from the first that is not among the ``files`` before."""
    return Targets(
        targets.names, targets.length, [file - files for file in targets.file],
        targets.files[files:], targets.headers,
    )  # fmt: skip


def pairs_of(partition: Partition) -> Pairs:
    """The pairs that a partition's index keeps, in the order of targets and windows."""
    index = partition.index
    keys = keys_of_locations(index)
    order = np.argsort(index.locations, kind="stable")
    windows = index.locations[order]
    start = np.searchsorted(windows, partition.first_window.astype(np.int64))
    own = np.repeat(partition.first_window[:-1], np.diff(start))
    return Pairs(
        keys[order], windows - own, start.astype(np.int64), partition.target.astype(np.int64)
    )


def _remove_others(database: Database) -> None:
    """Remove the folders of earlier generations that the manifest does not name any more."""
    generation = f"-{database.generation:04d}"
    named = {partition.folder for partition in database.partitions}
    for folder in database.path.iterdir():
        kind = folder.name.split("-", 1)[0]
        if kind == "partition" and folder.name not in named:
            shutil.rmtree(folder, ignore_errors=True)
        if kind in ("targets", "taxonomy") and not folder.name.endswith(generation):
            shutil.rmtree(folder, ignore_errors=True)
