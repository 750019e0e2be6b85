"""The k-mer spectrum of a read set on a GPU; equal to ``ngsgpu.readset.kmers.count_kmers``."""

from __future__ import annotations

import numpy as np

from ngsgpu.device.cuda.kernels import KernelModule, grid_for
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.kmers import KmerSpectrum, kmer_occurrences, sampling_shift, spectrum_of

KERNELS = KernelModule("ngsgpu.readset")
THREADS = 256
_BLOCKS_PER_MULTIPROCESSOR = 16


def count_kmers_on_gpu(reads: DeviceReadSet, k: int) -> KmerSpectrum:
    """Spectrum of a read set.

    Args:
        reads: the read set; ambiguous bases count as their replacements.
        k: k-mer length, 1 to 32.
    """
    import cupy

    occurrences = kmer_occurrences(reads.uniform_length, reads.lengths, reads.reads, k)
    shift = sampling_shift(occurrences)
    room = int((occurrences >> shift) * 1.25) + 1024
    found = cupy.zeros(1, dtype=cupy.uint64)
    while True:
        sample = cupy.empty(room, dtype=cupy.uint64)
        found[:] = 0
        KERNELS.launch(
            "sample_kmers",
            grid_for(reads.reads, THREADS, _BLOCKS_PER_MULTIPROCESSOR),
            (THREADS,),
            (
                reads.struct,
                np.int64(reads.reads),
                np.int32(k),
                np.uint64((1 << shift) - 1),
                np.int64(room),
                sample,
                found,
            ),
        )
        count = int(found[0])
        if count <= room:
            break
        room = count
    sample = sample[:count]
    radix_sort(sample)
    return spectrum_of(cupy.asnumpy(sample), k, shift, occurrences / max(1, reads.bases))
