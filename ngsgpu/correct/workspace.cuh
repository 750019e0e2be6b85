// What a block corrects anchors in; see ngsgpu/correct/workspace.py.
#pragma once
#include "ngsgpu/align/candidates.cuh"
#include "ngsgpu/align/msa.cuh"
#include "ngsgpu/correct/forests/forest.cuh"
#include "ngsgpu/correct/gpu.structs"
#include "ngsgpu/correct/rules/planes.cuh"

constexpr int MAX_THREADS = 256;

// One block's variables in addition to the dynamic shared memory.
struct Block {
    int count[2], kept[2], crowded[2], inside[3];
    int64_t support_sum;
    int item, smallest, coverage, repeat, listed;
    int warp_sum[MAX_THREADS / 32];
    int64_t edit_at;
    int64_t ambiguous_begin, ambiguous_end;
    unsigned long long gap;
    unsigned long long counters[COUNTERS];
    Forest forests[2];  // of anchors, of candidates
    MsaFeatures shared_features;
    int features[MAX_THREADS / 32][MOST_FEATURES];
};

// Bytes of dynamic memory for one mate's candidates, and for the MSA.
__host__ __device__ constexpr int64_t candidate_bytes(int cells, int limit, int max_length) {
    return int64_t(cells) * 12 + int64_t(limit) * 16 + (max_length + 127) / 128 * 16;
}

__device__ Candidates candidates_at(char* memory, const Sizes& sizes, int* count, int* kept) {
    Candidates c;
    c.set = (uint64_t*)memory;
    c.set_reads = (uint32_t*)(c.set + sizes.cells);
    c.entry = (uint64_t*)(c.set_reads + sizes.cells);
    c.compared = c.entry + sizes.limit;
    c.fit = (uint32_t*)(c.compared + (sizes.max_length + 63) / 64);
    c.kept = (uint16_t*)(c.fit + sizes.limit);
    c.weight = c.kept + sizes.limit;
    c.cells = sizes.cells;
    c.limit = sizes.limit;
    c.count = count;
    c.kept_count = kept;
    return c;
}

// Lay out the MSA for the longest reads.
__device__ void place_msa(char* memory, const Sizes& sizes, Block& block, Msa& msa,
                          Planes& planes) {
    const int columns = sizes.max_length + 2 * sizes.margin;
    const int words = (columns + 31) / 32;
    msa.sums = (Sums*)memory;
    msa.rows = (Row*)(msa.sums + columns);
    msa.masks = (uint32_t*)(msa.rows + ROWS);
    msa.mixed = msa.masks + MASKS * words;
    msa.ambiguous = msa.mixed + words;
    msa.begins = (int32_t*)(msa.ambiguous + (sizes.max_length + 31) / 32);
    planes.half = (uint32_t*)(msa.begins + columns + 1);
    msa.list = (uint16_t*)(planes.half + 4 * ((columns + 63) / 64));
    msa.consensus = (uint8_t*)(msa.list + columns);
    msa.alleles = msa.consensus + columns;
    msa.anchor = msa.alleles + columns;
    msa.listed = &block.listed;
    msa.margin = sizes.margin;
    msa.support_sum = &block.support_sum;
    msa.smallest = &block.smallest;
    msa.coverage = &block.coverage;
    msa.repeat = &block.repeat;
}
