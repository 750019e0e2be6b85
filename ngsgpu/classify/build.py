"""Building databases: sketch, index, store.

A partition of a planned database is built by a job of its own, which reads only the files that
hold its targets. Where everything fits into memory, `build_database` reads once: it sketches all
targets and deals them out afterwards.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database import (
    Database,
    Partition,
    open_database,
    write_manifest,
    write_partition,
)
from ngsgpu.classify.index import (
    NO_TAXA,
    REMOVED,
    Limits,
    Pairs,
    WindowTaxa,
    build_index,
)
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.classify.plan import (
    BYTES_A_LOCATION_BUILT,
    BuildOptions,
    PartitionRequest,
    assemble_database,
    partition_of,
    plan_database,
    ranked_nodes,
    taxa_of,
)
from ngsgpu.classify.references import (
    TargetCollector,
    find_references,
    read_ahead,
)
from ngsgpu.classify.sketching import Unpacked, sketch_batches
from ngsgpu.classify.store import whole_folder
from ngsgpu.classify.taxonomy import load_taxonomy
from ngsgpu.errors import DeviceError, InputError, UsageError
from ngsgpu.progress import Progress

logger = logging.getLogger("ngsgpu")

_Result = TypeVar("_Result")

_PACKED_FACTOR: Final = 4
_SHARE_OF_MEMORY: Final = 0.7


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
            from ngsgpu.classify.gpu_build import sketch_on_gpu
            from ngsgpu.device.errors import cuda_errors

            with cuda_errors("sketching references"):
                return list(sketch_on_gpu(batches, self._parameters.sketch, advance))
        return list(
            sketch_batches(batches, self._parameters.sketch, threads=self._threads, advance=advance)
        )

    def index(self, database: Database, number: int, sketches: list[Any]) -> Partition:
        """Build the index of a partition."""
        if self._on_gpu:
            from ngsgpu.classify.gpu_build import index_on_gpu
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
            pairs = builder.sketch(all_batches(files, collector, options), stage.advance)
        targets = collector.targets
        node = taxa_of(targets, tree, maps)
        partition = partition_of(targets, parameters, request)
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


def all_batches(
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
