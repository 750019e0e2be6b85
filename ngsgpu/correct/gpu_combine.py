"""Combining what GPUs decided into corrections, as ``CorrectionCollector.finish`` on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.corrections import VOTES_THAT_DECIDE, Corrections, are_of_class, settle_doubtful
from ngsgpu.correct.forests.forest import Second
from ngsgpu.correct.gpu import BY_ANCHOR, EDITS_OF_A_GPU, RESULTS, AnchorCorrector
from ngsgpu.correct.rules.gpu_witnesses import DeviceAsker
from ngsgpu.correct.rules.witnesses import keep_witnessed
from ngsgpu.correct.workspace import HIGH_QUALITY, LOW_QUALITY
from ngsgpu.device.arena import room
from ngsgpu.device.team import here

BYTES_PER_READ: Final = 256
"""Maximum bytes for combining, per read of a part."""

CONFLICT: Final = np.uint32(1 << 31)
"""Bit of ``vote_state`` that marks differing votes; the other bits count them."""

_COUNT: Final = np.uint32((1 << 31) - 1)

FEW: Final = 1 << 16
"""Reads that NumPy combines; on a new machine CuPy would compile twenty kernels for as few."""

_VOTES: Final = tuple(name for name in RESULTS if name not in BY_ANCHOR)
_STARTS: Final = "edit_start", "complete_start"


def combine(correctors: Sequence[AnchorCorrector], few: int = FEW) -> Corrections:
    """Combine what one or more GPUs decided on anchors of the same read set.

    An anchor was corrected by one of them; candidates may have votes from all. It is computed on
    the current GPU, a part of the reads at a time.

    Args:
        correctors: of the GPUs.
        few: reads up to which it is computed on the host.
    """
    count = correctors[0].reads.reads
    edit_start = np.empty(count, dtype=np.int64)
    edit_count = np.empty(count, dtype=np.uint16)
    classes = np.empty(count, dtype=np.uint8)
    numbers = np.zeros(5, dtype=np.int64)
    step = _reads_at_a_time()
    for begin in range(0, count, step):
        part = slice(begin, min(begin + step, count))
        results = _joined(correctors, part, on_host=count <= few)
        start, length, counted = decide(results, correctors[0].forests.second)
        _fetch(start, edit_start[part])
        _fetch(length, edit_count[part])
        _fetch(results["classes"], classes[part])
        own = np.empty_like(numbers)
        _fetch(counted, own)
        numbers += own
    pieces = [piece for corrector in correctors for piece in corrector.edits]
    edits = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.uint32)
    keep_witnessed(DeviceAsker(correctors[0].reads), edit_start, edit_count, edits, classes)
    settle_doubtful(edit_start, edit_count, edits, classes, correctors[0].reads.paired)
    counters = sum(here(corrector.counters).get().astype(np.int64) for corrector in correctors)
    return Corrections(
        edit_start,
        edit_count,
        edits,
        np.asarray(counters),
        *(int(number) for number in numbers),
    )


def _reads_at_a_time() -> int:
    free = room()
    return 1 << 20 if free is None else min(1 << 22, max(1 << 13, free // BYTES_PER_READ))


def _fetch(array: Any, out: NDArray[Any]) -> None:
    """Copy an array of NumPy's or CuPy's to the host."""
    if _module_of(array) is np:
        out[...] = array
    else:
        array.get(out=out)


def _joined(correctors: Sequence[AnchorCorrector], part: slice, *, on_host: bool) -> dict[str, Any]:
    """The results for a part of the reads, of all GPUs together, on the current one or the host."""
    joined: dict[str, Any] = {}
    edits_before = 0
    for member, corrector in enumerate(correctors):
        names = RESULTS if member == 0 or not corrector.shares_results else _VOTES
        results = {name: _brought(corrector.results[name][part], corrector) for name in names}
        if on_host:
            results = {name: array.get() for name, array in results.items()}
        if not corrector.shares_results:
            for name in _STARTS:
                results[name] = results[name] + edits_before
        joined = join(joined, results) if joined else results
        edits_before += sum(map(len, corrector.edits))
    if correctors[0].shares_results and len(correctors) > 1:
        for name in _STARTS:
            joined[name] = _counted_together(joined[name], correctors)
    return joined


def _brought(array: Any, corrector: AnchorCorrector) -> Any:
    """Results on the current GPU."""
    # What kernels find on the host is copied by one.
    return array + array.dtype.type(0) if corrector.shares_results else here(array)


def _counted_together(starts: Any, correctors: Sequence[AnchorCorrector]) -> Any:
    """Places in the edits of all GPUs, of places in those of one; see ``EDITS_OF_A_GPU``."""
    edits_before = 0
    together = starts
    for member, corrector in enumerate(correctors):
        more = edits_before - member * EDITS_OF_A_GPU
        together = _module_of(starts).where(
            starts >= member * EDITS_OF_A_GPU, starts + more, together
        )
        edits_before += sum(map(len, corrector.edits))
    return together


def join(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Join the results of two sets of anchors; arrays are NumPy's or CuPy's.

    Where both write into the same arrays of anchors, ``theirs`` has only the votes.
    """
    module = _module_of(ours["classes"])
    joined = {name: ours[name] for name in BY_ANCHOR}
    if "classes" in theirs:
        their_anchor = theirs["classes"] != 0
        joined = {name: module.where(their_anchor, theirs[name], ours[name]) for name in BY_ANCHOR}
    first, second = ours["vote_hash"], theirs["vote_hash"]
    differ = (first != 0) & (second != 0) & (first != second)
    joined["vote_hash"] = module.where(first != 0, first, second)
    votes = (ours["vote_state"] & _COUNT) + (theirs["vote_state"] & _COUNT)
    conflict = ((ours["vote_state"] | theirs["vote_state"]) >= CONFLICT) | differ
    joined["vote_state"] = votes + conflict * CONFLICT
    return joined


def _module_of(array: Any) -> Any:
    """NumPy or CuPy, whose array it is."""
    if type(array) is np.ndarray:
        return np
    import cupy

    return cupy


def decide(results: dict[str, Any], second_counts: Second = "equal") -> tuple[Any, Any, Any]:
    """First edit and number of edits of each read; int64[5], the reads of each kind.

    The kinds are those of ``Corrections``, in its order; arrays are NumPy's or CuPy's.
    """
    module = _module_of(results["classes"])
    low = are_of_class(results["classes"], LOW_QUALITY)
    votes, state = results["vote_hash"], results["vote_state"]
    decided = low & ((state & _COUNT) >= VOTES_THAT_DECIDE)
    agreed = decided & (state < CONFLICT)
    confirmed = agreed & (votes == results["edit_hash"])
    completed = agreed & ~confirmed & (votes == results["complete_hash"])
    rejected = decided & ~confirmed & ~completed
    second = {
        "equal": completed, "rejected": decided & ~confirmed, "unconfirmed": low & ~confirmed
    }[second_counts]  # fmt: skip
    start = module.where(second, results["complete_start"], results["edit_start"])
    length = module.where(second, results["complete_count"], results["edit_count"])
    length = length * (second | ~rejected)
    high = are_of_class(results["classes"], HIGH_QUALITY)
    kinds = [high, confirmed, completed, low & ~decided, rejected]
    # CuPy has a sum of int64; one of booleans it would compile, for six seconds.
    counted = module.stack([kind.astype(np.int64).sum(dtype=np.int64) for kind in kinds])
    return start, length, counted
