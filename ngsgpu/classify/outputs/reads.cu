// Calls and the lines of reads; the references are ngsgpu/classify/call/cpu.py and reads.py.
#include "ngsgpu/classify/call/calls.cuh"
#include "ngsgpu/classify/outputs/gpu.structs"
#include "ngsgpu/device/cuda/block.cuh"

namespace {

constexpr int kTableLines = 0, kKrakenLines = 1;

__constant__ uint64_t kPowers[20] = {
    1ull, 10ull, 100ull, 1000ull, 10000ull, 100000ull, 1000000ull,
    10000000ull, 100000000ull, 1000000000ull, 10000000000ull,
    100000000000ull, 1000000000000ull, 10000000000000ull,
    100000000000000ull, 1000000000000000ull,
    10000000000000000ull, 100000000000000000ull,
    1000000000000000000ull, 10000000000000000000ull};

__device__ __forceinline__ uint32_t digits(uint64_t value) {
    uint32_t count = 1;
    while (count < 20 && value >= kPowers[count]) ++count;
    return count;
}

// First and last base of a candidate's range, from 1 on; 0 and 0 of none.
__device__ __forceinline__ void bases_of(const Candidate& best, const Texts& texts, int64_t* first,
                                         int64_t* last) {
    *first = *last = 0;
    if (best.x < 0) return;
    *first = best.z * texts.stride + 1;
    *last = min(best.w * texts.stride + texts.window, texts.target_length[best.x]);
}

__device__ __forceinline__ int64_t row_of(const Texts& texts, const Rules& rules, int call) {
    return texts.row[call >= 0 ? call : rules.nodes + rules.targets];
}

__device__ uint32_t table_line_bytes(const Texts& texts, const Rules& rules, uint32_t name,
                                     int call, const Candidate& best) {
    uint32_t size = name + 1;
    if (texts.shown & 1) {
        const int64_t row = row_of(texts, rules, call);
        size += 1 + uint32_t(texts.text_start[row + 1] - texts.text_start[row]);
    }
    if (texts.shown & 2) size += 1 + digits(best.y);
    if (texts.shown & 4) {
        const int64_t* start = texts.target_start + best.x;
        size += 1 + (best.x < 0 ? 1 : uint32_t(start[1] - start[0]));
    }
    if (texts.shown & 8) {
        int64_t first, last;
        bases_of(best, texts, &first, &last);
        size += 2 + digits(first) + digits(last);
    }
    return size;
}

__device__ __forceinline__ uint64_t taxid_of(const Texts& texts, int64_t call) {
    return call < 0 ? 0 : uint64_t(texts.taxid[call]);
}

__device__ __forceinline__ int64_t call_of_target(const Rules& rules, int target) {
    return target < 0 ? -1 : rules.nodes + target;
}

__device__ uint32_t kraken_line_bytes(const Texts& texts, const Rules& rules, uint32_t name,
                                      int call, const Candidate& best, int length1, int length2,
                                      int paired) {
    return 7 + name + digits(taxid_of(texts, call)) + digits(length1) +
           (paired ? 1 + digits(length2) : 0) +
           digits(taxid_of(texts, call_of_target(rules, best.x))) +
           digits(best.x < 0 ? 0 : best.y);
}

// Copy bytes with a warp; return the next position.
__device__ __forceinline__ u8* put(u8* out, const u8* source, uint32_t size, uint32_t lane) {
    for (uint32_t i = lane; i < size; i += 32) out[i] = source[i];
    return out + size;
}

__device__ __forceinline__ u8* put_letter(u8* out, char letter, uint32_t lane) {
    if (lane == 0) *out = letter;
    return out + 1;
}

__device__ __forceinline__ u8* put_number(u8* out, uint64_t value, uint32_t lane) {
    const uint32_t size = digits(value);
    if (lane < size) {
        const uint64_t power = kPowers[size - 1 - lane];
        const uint32_t digit = value >> 32 ? uint32_t(value / power % 10)
                                           : uint32_t(value) / uint32_t(power) % 10;
        out[lane] = '0' + digit;
    }
    return out + size;
}

}  // namespace

// Call queries and compute the length of their lines.
//
// ``sizes``: as written by find_candidates. ``kept``: u8[targets], or null if all count. ``calls``: as in results.py. ``best``: the candidate of the call; target -1 for none.
// ``counts``: queries by call, those without one last; ``bases``: of all. ``window_reads``: by
// window, or null. ``wanted``: bits kTableLines, kKrakenLines; for each of them ``line_offsets``
// receives where every query's line begins in its block, and ``tile_bytes`` the bytes of each
// block's lines.
//
// Grid: one block per kThreads queries; block: kThreads, one thread per query. Bytes: 16 per
// candidate examined, 16 in and 28 out per query.
extern "C" __global__ void __launch_bounds__(kThreads)
    call_queries(const Candidate* candidates, const int32_t* sizes, uint32_t queries, int most,
                 const Rules* rules_in, const Texts* texts_in, const u8* kept,
                 const uint32_t* name_length, int paired, const int64_t* first_window, int32_t* window_reads,
                 int32_t* calls, Candidate* best_out, unsigned long long* counts_of,
                 unsigned long long* bases, int wanted, uint32_t* line_offsets,
                 uint32_t* tile_bytes) {
    const Rules rules = *rules_in;
    const Texts texts = *texts_in;
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t query = blockIdx.x * kThreads + threadIdx.x;
    uint32_t size[2] = {0, 0};
    int64_t own_bases = 0;
    int64_t slot = -1;
    if (query < queries) {
        const Candidate* row = candidates + int64_t(query) * most;
        Candidate best = {-1, 0, 0, 0};
        int call = -1, start;
        if (rules.by_model) {
            call = call_by_model(row, most, sizes[query], rules, &start);
            if (call >= 0 && call < rules.nodes && rules.node_rank[call] > rules.highest) call = -1;
        } else {
            start = start_of(row, most, kept);
            if (start >= 0) call = call_query(row, most, start, rules, kept);
        }
        if (start >= 0) best = row[start];
        calls[query] = call;
        best_out[query] = best;
        if (call >= 0 && window_reads)
            for (int window = best.z; window <= best.w; ++window)
                atomicAdd(window_reads + first_window[best.x] + window, 1);
        slot = call >= 0 ? call : rules.nodes + rules.targets;
        const int bases1 = sizes[queries + query], bases2 = sizes[2 * queries + query];
        own_bases = int64_t(bases1) + bases2;
        const uint32_t name = name_length[query];
        if (wanted & 1) size[kTableLines] = table_line_bytes(texts, rules, name, call, best);
        if (wanted & 2)
            size[kKrakenLines] =
                kraken_line_bytes(texts, rules, name, call, best, bases1, bases2, paired);
    }
    // Neighbours mostly have the same call.
    const uint32_t same = __match_any_sync(WARP, int(slot));
    if (slot >= 0 && lane == uint32_t(__ffs(same) - 1))
        atomicAdd(counts_of + slot, (unsigned long long)(__popc(same)));
    for (uint32_t distance = 16; distance > 0; distance /= 2)
        own_bases += __shfl_xor_sync(WARP, own_bases, distance);
    if (lane == 0) atomicAdd(bases, (unsigned long long)(own_bases));
    for (int i = 0; i < 2; ++i) {
        uint32_t total;
        const uint32_t before = block_exclusive_sum<kThreads>(size[i], &total);
        if (query < queries) line_offsets[int64_t(i) * queries + query] = before;
        if (threadIdx.x == 0) tile_bytes[i * gridDim.x + blockIdx.x] = total;
    }
}

// Turn the bytes of the tiles of each kind of lines into where each begins; ``totals``: of all.
//
// Grid: 2; block: kThreads. Bytes: 8 a tile.
extern "C" __global__ void __launch_bounds__(kThreads)
    sum_tiles(uint32_t* tile_bytes, uint32_t tiles, uint32_t* totals) {
    uint32_t* own = tile_bytes + blockIdx.x * tiles;
    uint32_t done = 0;
    for (uint32_t base = 0; base < tiles; base += kThreads) {
        const uint32_t tile = base + threadIdx.x;
        uint32_t total;
        const uint32_t before =
            block_exclusive_sum<kThreads>(tile < tiles ? own[tile] : 0, &total);
        if (tile < tiles) own[tile] = done + before;
        done += total;
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = done;
}

// Write the lines of the table of reads.
//
// Grid: any; block: kThreads, one warp per line. Bytes: the lines out, names and 28 per line in.
// Operations: about 20 per byte.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_table(uint32_t queries, const int32_t* calls, const Candidate* best_of,
                const Rules* rules_in, const Texts* texts_in, const u8* names,
                const uint32_t* name_start, const uint32_t* name_length,
                 const uint32_t* line_offsets,
                const uint32_t* tile_start, u8* lines) {
    const Rules rules = *rules_in;
    const Texts texts = *texts_in;
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t warps = gridDim.x * (kThreads / 32);
    for (uint32_t query = (blockIdx.x * kThreads + threadIdx.x) / 32; query < queries;
         query += warps) {
        const Candidate best = best_of[query];
        u8* out = lines + tile_start[query / kThreads] + line_offsets[query];
        out = put(out, names + name_start[query], name_length[query], lane);
        if (texts.shown & 1) {
            const int64_t row = row_of(texts, rules, calls[query]);
            const int64_t begin = texts.text_start[row];
            out = put_letter(out, '\t', lane);
            out = put(out, texts.text + begin, uint32_t(texts.text_start[row + 1] - begin), lane);
        }
        if (texts.shown & 2) out = put_number(put_letter(out, '\t', lane), best.y, lane);
        if (texts.shown & 4) {
            out = put_letter(out, '\t', lane);
            if (best.x < 0) {
                out = put_letter(out, '-', lane);
            } else {
                const int64_t begin = texts.target_start[best.x];
                out = put(out, texts.target_bytes + begin,
                          uint32_t(texts.target_start[best.x + 1] - begin), lane);
            }
        }
        if (texts.shown & 8) {
            int64_t first, last;
            bases_of(best, texts, &first, &last);
            out = put_number(put_letter(out, '\t', lane), first, lane);
            out = put_number(put_letter(out, '\t', lane), last, lane);
        }
        put_letter(out, '\n', lane);
    }
}

// Write Kraken's lines.
//
// Grid, block, bytes and operations as for write_table.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_kraken(uint32_t queries, const int32_t* calls, const Candidate* best_of,
                 const Rules* rules_in, const Texts* texts_in, const u8* names,
                 const uint32_t* name_start, const uint32_t* name_length,
                 const uint32_t* line_offsets,
                 const uint32_t* tile_start, const int32_t* sizes, int paired, u8* lines) {
    const Rules rules = *rules_in;
    const Texts texts = *texts_in;
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t warps = gridDim.x * (kThreads / 32);
    for (uint32_t query = (blockIdx.x * kThreads + threadIdx.x) / 32; query < queries;
         query += warps) {
        const Candidate best = best_of[query];
        const int call = calls[query];
        u8* out = lines + tile_start[query / kThreads] + line_offsets[query];
        out = put_letter(out, call >= 0 ? 'C' : 'U', lane);
        out = put_letter(out, '\t', lane);
        out = put(out, names + name_start[query], name_length[query], lane);
        out = put_number(put_letter(out, '\t', lane), taxid_of(texts, call), lane);
        out = put_number(put_letter(out, '\t', lane), sizes[queries + query], lane);
        if (paired)
            out = put_number(put_letter(out, '|', lane), sizes[2 * queries + query], lane);
        out = put_letter(out, '\t', lane);
        out = put_number(out, taxid_of(texts, call_of_target(rules, best.x)), lane);
        out = put_number(put_letter(out, ':', lane), best.x < 0 ? 0 : best.y, lane);
        put_letter(out, '\n', lane);
    }
}
