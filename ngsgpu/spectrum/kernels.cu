// Correction of reads by their k-mers; the reference is ngsgpu/spectrum/cpu.py.
//
// One pass lists the reads with weak k-mers, another corrects them, a thread for each.
// Bytes, operations and times of a data set are in docs/gpu.md.
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/spectrum/kmers/counts.cuh"
#include "ngsgpu/spectrum/rules/search.cuh"
#include "ngsgpu/spectrum/rules/voting.cuh"

namespace {

constexpr int kBlock = 128;       // threads that correct reads; BLOCK of gpu_correct.py
constexpr int kBlocksPerSM = 4;  // so that they have 128 registers

// Classes of reads and numbers of the rules; those of cpu.py.
enum Class { ERROR_FREE, FIXED, TRIMMED, DISCARDED };
enum Rule { SEARCH, VOTING, EXHAUSTIVE };

}  // namespace

// Count the k-mers of each part, uint64[kParts].
//
// Grid: any; block: kThreads, one thread per read. Bytes: the planes. Operations: 35 a base.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_parts(const Reads* reads_in, const AmbiguousBases* ambiguous_in, int64_t count, int k,
                unsigned long long* parts) {
    __shared__ uint32_t own[kParts];
    const Reads reads = *reads_in;
    const AmbiguousBases ambiguous = *ambiguous_in;
    for (int i = threadIdx.x; i < kParts; i += kThreads) own[i] = 0;
    __syncthreads();
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t read = int64_t(blockIdx.x) * kThreads + threadIdx.x; read < count; read += step)
        each_kmer(Kmers(reads, ambiguous, read, k), 0, kParts,
                  [&](uint64_t canonical) { atomicAdd(own + part_of(canonical), 1u); });
    __syncthreads();
    for (int i = threadIdx.x; i < kParts; i += kThreads)
        if (own[i]) atomicAdd(parts + i, (unsigned long long)(own[i]));
}

// Write the canonical k-mers of the parts from ``first`` up to ``last``, and count them in ``found``;
// there must be room.
//
// A warp counts those of 32 reads, takes their places, and makes them once more to write them.
//
// Grid: any; block: kThreads, one thread per read. Bytes: the planes twice, 8 a k-mer out.
// Operations: 70 a base.
extern "C" __global__ void __launch_bounds__(kThreads)
    collect_kmers(const Reads* reads_in, const AmbiguousBases* ambiguous_in, int64_t count, int k,
                  int first, int last, uint64_t* kmers, unsigned long long* found) {
    const Reads reads = *reads_in;
    const AmbiguousBases ambiguous = *ambiguous_in;
    const bool all = first == 0 && last == kParts;
    const int lane = threadIdx.x & 31;
    const int64_t step = int64_t(gridDim.x) * kThreads;
    int64_t begin = int64_t(blockIdx.x) * kThreads + (threadIdx.x & ~31);
    for (; begin < count; begin += step) {
        // A lane without a read takes the last one, and none of its k-mers.
        const bool has_read = begin + lane < count;
        Kmers own(reads, ambiguous, has_read ? begin + lane : count - 1, k);
        if (!has_read) own.length = 0;
        unsigned number = 0;
        each_kmer(own, first, last, [&](uint64_t) { ++number; });
        const unsigned total = __reduce_add_sync(WARP, number);
        unsigned long long place = 0;
        if (lane == 0 && total) place = atomicAdd(found, (unsigned long long)(total));
        place = __shfl_sync(WARP, place, 0);
        const int end = total ? longest(own.length) : 0;
        for (int at = 0; at < end; ++at) {
            uint64_t canonical = 0;
            bool wanted = at < own.length && own.next();
            if (wanted) {
                canonical = own.kmer.canonical();
                const int part = all ? first : part_of(canonical);
                wanted = part >= first && part < last;
            }
            const uint32_t mask = __ballot_sync(WARP, wanted);
            if (wanted) kmers[place + count_before(mask, lane)] = canonical;
            place += __popc(mask);
        }
    }
}

// Put k-mers that occur at least twice into the table.
//
// Grid: any; block: kThreads, one thread per k-mer. Bytes: 10 in; 32 in and out at random.
extern "C" __global__ void __launch_bounds__(kThreads)
    fill_table(const uint64_t* kmers, const uint16_t* counts, int64_t count, uint32_t solid_from,
               uint32_t strong_from, unsigned long long* words, uint64_t buckets) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const int level = kRare + (counts[i] >= solid_from) + (counts[i] >= strong_from);
        insert(words, buckets, kmers[i], level);
    }
}

// Put solid k-mers into the Bloom filter.
//
// Grid: any; block: kThreads, one thread per k-mer. Bytes: 10 in; 256 in and out at random.
extern "C" __global__ void __launch_bounds__(kThreads)
    fill_filter(const uint64_t* kmers, const uint16_t* counts, int64_t count, uint32_t solid_from,
                unsigned long long* words, uint64_t size) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step)
        if (counts[i] >= solid_from) programme(words, size, kmers[i]);
}

// List the reads from ``first`` up to ``last`` that are to be corrected, counted from ``first`` on, in
// any order: of the search, those that are not clean; of the papers' rules, those with a weak k-mer.
//
// Grid: any; block: kThreads, one thread per read. Bytes: the planes; 32 at random for one in k / 4
// k-mers. Operations: 25 a base.
extern "C" __global__ void __launch_bounds__(kThreads)
    list_weak(const Reads* reads_in, const AmbiguousBases* ambiguous_in, int64_t first,
              int64_t last, const Solid* solid_in, int k, int rule, uint32_t* listed,
              unsigned long long* found) {
    const Reads reads = *reads_in;
    const AmbiguousBases ambiguous = *ambiguous_in;
    const Solid solid = *solid_in;
    const int lane = threadIdx.x & 31, pace = rule == SEARCH ? max(1, k / 4) : 1;
    const int64_t step = int64_t(gridDim.x) * kThreads;
    int64_t begin = first + int64_t(blockIdx.x) * kThreads + (threadIdx.x & ~31);
    for (; begin < last; begin += step) {
        bool weak = false;
        const int64_t read = begin + lane;
        if (read < last && read_length(reads, read) >= k)
            weak = !is_clean(solid, Kmers(reads, ambiguous, read, k), pace);
        const uint32_t mask = __ballot_sync(WARP, weak);
        unsigned long long place = 0;
        if (lane == 0 && mask) place = atomicAdd(found, (unsigned long long)(__popc(mask)));
        place = __shfl_sync(WARP, place, 0);
        if (weak) listed[place + count_before(mask, lane)] = uint32_t(read - first);
    }
}

// Correct listed reads, counted from ``offset`` on; the lanes of a warp search together. ``edits`` has
// room for all bases of each: uint32[count, room], position << 2 | base. Classes, parts and numbers of
// edits go to the places of the list's numbers. ``scratch`` has ``stride`` bytes for each thread.
//
// Grid: as many as there is scratch for; block: kBlock or less, one thread per read. Bytes: planes
// and qualities; 32 at random a k-mer and base tried; scratch, from the cache. Operations: about
// 40 a k-mer and 100 a base tried.
extern "C" __global__ void __launch_bounds__(kBlock, kBlocksPerSM)
    correct_reads(const Reads* reads_in, const AmbiguousBases* ambiguous_in, const uint8_t* scores,
                  const Solid* solid_in, const SearchRules* rules_in, int rule, int mutations,
                  int trim, int64_t offset, const uint32_t* listed, int64_t count,
                  uint8_t* scratch, int64_t stride, int room, uint8_t* classes, int32_t* begins,
                  int32_t* ends, uint16_t* counts, uint32_t* edits) {
    const Reads reads = *reads_in;
    const AmbiguousBases ambiguous = *ambiguous_in;
    const Solid solid = *solid_in;
    const SearchRules rules = *rules_in;
    const int k = rules.kmer;
    const int64_t thread = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    const int lane = threadIdx.x & 31;
    const int size = room + 1;
    Space space(scratch + thread * stride + kVoteBytes * size, size);
    for (int64_t first = thread - lane; first < count; first += step) {
        const int64_t i = first + lane;
        const bool has_read = i < count;
        const int64_t own = has_read ? listed[i] : 0;
        const int length =
            has_read ? load_read(reads, ambiguous, scores, offset + own, space) : 0;
        const int kmers = length - k + 1;
        int found = find_levels(solid, k, space.originals(), 0, length, space.kmers(4));
        const bool wanted = has_read && found != kmers;
        if (wanted) {
            for (int at = 0; at < length; ++at) space.set_code(at, space.original(at));
            for (int at = 0; at < kmers; ++at) space.level(at) = space.before(at);
        }
        __syncwarp();
        if (rule == SEARCH) found = search_reads(solid, rules, space, length, wanted);
        if (wanted) {
            if (rule == VOTING) found = vote_read(solid, k, mutations, space, length);
            if (rule == EXHAUSTIVE) found = try_all(solid, k, mutations, space, length, found);
            int begin = 0, end = length;
            if (found != kmers) {
                int size;
                begin = longest_run(space, kmers, &size);
                end = size ? begin + size + k - 1 : begin;
            }
            classes[own] = uint8_t(found == kmers ? FIXED : found ? TRIMMED : DISCARDED);
            begins[own] = begin;
            ends[own] = end;
            if (rule == SEARCH || found == kmers || trim) {
                uint32_t* changed = edits + i * room;
                int number = 0;
                for (int at = trim ? begin : 0; at < (trim ? end : length); ++at)
                    if (space.code(at) != space.original(at))
                        changed[number++] = (uint32_t(at) << 2) | space.code(at);
                counts[own] = uint16_t(number);
            }
        }
        __syncwarp();
    }
}

// Write the edits of listed reads without the room between them; those of ``listed[i]`` end at
// ``ends[i]``.
//
// Grid: any; block: kThreads, one thread per read. Bytes: 14 a read, 8 an edit.
extern "C" __global__ void __launch_bounds__(kThreads)
    pack_edits(const uint32_t* listed, int64_t count, const uint16_t* counts, const int64_t* ends,
               const uint32_t* edits, int room, uint32_t* out) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const int number = counts[listed[i]];
        for (int edit = 0; edit < number; ++edit)
            out[ends[i] - number + edit] = edits[i * room + edit];
    }
}
