// From candidates to calls and to lines of text; the references are calls.py, evidence.py,
// results.py and outputs/reads.py.
#include "ngsgpu/classify/call/gpu.structs"
#include "ngsgpu/classify/query/batch.cuh"

namespace {

constexpr int kPerMillion = 1000000;
constexpr int kBins = 101;   // per cent of features that hit
constexpr int kSpecies = 4, kGenus = 6;  // indexes of the ranks
constexpr int kGenusAccepted = 1, kAccepted = 2;  // as in evidence.py
constexpr int kTableLines = 0, kKrakenLines = 1;

__constant__ uint64_t kPowers[20] = {1ull,
                                     10ull,
                                     100ull,
                                     1000ull,
                                     10000ull,
                                     100000ull,
                                     1000000ull,
                                     10000000ull,
                                     100000000ull,
                                     1000000000ull,
                                     10000000000ull,
                                     100000000000ull,
                                     1000000000000ull,
                                     10000000000000ull,
                                     100000000000000ull,
                                     1000000000000000ull,
                                     10000000000000000ull,
                                     100000000000000000ull,
                                     1000000000000000000ull,
                                     10000000000000000000ull};

__device__ __forceinline__ int common_rank(const Rules& rules, int one, int two, int lowest) {
    if (one < 0 || two < 0) return -1;
    const int32_t* first = rules.lineages + int64_t(one) * rules.ranks;
    const int32_t* second = rules.lineages + int64_t(two) * rules.ranks;
    for (int rank = max(lowest, 1); rank < int(rules.ranks); ++rank)
        if (first[rank] >= 0 && first[rank] == second[rank]) return rank;
    return -1;
}

// Whether a candidate takes part: not dropped, and of a believed species where only those count.
__device__ __forceinline__ bool counts(int target, const u8* kept, const u8* accepted, bool near) {
    return (!kept || kept[target]) && (!near || accepted[target] == kAccepted);
}

// The most that is believed of a candidate near the best one; as ``_weigh`` of evidence.py.
__device__ __forceinline__ int acceptance_of(const Candidate* row, int most, const u8* accepted,
                                         const Rules& rules) {
    if (row[0].x < 0) return kAccepted;
    const int64_t threshold = (row[0].y - rules.min_hits) * rules.difference;
    int acceptance = 0;
    for (int i = 0; i < most && acceptance < kAccepted; ++i) {
        const Candidate own = row[i];
        if (own.x < 0 || (i > 0 && int64_t(own.y) * kPerMillion <= threshold)) break;
        acceptance = max(acceptance, int(accepted[own.x]));
    }
    return acceptance;
}

// ``_call`` of calls.py: the call of a query whose candidate ``first`` is the best that counts.
__device__ int call_query(const Candidate* row, int most, int first, int64_t features,
                          const Rules& rules, const u8* kept, const u8* accepted, bool near) {
    const Candidate best = row[first];
    const int64_t hits = best.y;
    if (hits < rules.min_hits || hits * kPerMillion < features * rules.confidence) return -1;
    const int node = rules.target_node[best.x];
    int rank = 0, call = int(rules.nodes) + best.x;
    if (rules.target_taxon) {
        call = rules.target_taxon[best.x];
        rank = rules.node_rank[call];
    }
    const int64_t threshold = (hits - rules.min_hits) * rules.difference;
    const int last = rules.best_alone ? first + 1 : most;
    for (int i = first + 1; i < last; ++i) {
        const Candidate other = row[i];
        if (other.x < 0 || int64_t(other.y) * kPerMillion <= threshold) break;
        if (!counts(other.x, kept, accepted, near)) continue;
        rank = common_rank(rules, node, rules.target_node[other.x], rank);
        if (rank < 0 || rank > rules.highest) return -1;
        call = rules.lineages[int64_t(node) * rules.ranks + rank];
    }
    if (rank <= kSpecies && hits * kPerMillion < features * rules.species_confidence) {
        rank = common_rank(rules, node, node, kSpecies + 1);
        if (rank < 0) return -1;
        call = rules.lineages[int64_t(node) * rules.ranks + rank];
    }
    return rank <= rules.highest ? call : -1;
}

// ``raise_rank`` of evidence.py: a doubtful call above the species or genus, or none.
__device__ int raise_call_rank(int call, int acceptance, int64_t hits, int64_t features,
                         const Rules& rules) {
    const int rejected = acceptance == kGenusAccepted ? kSpecies : kGenus;
    if (hits * kPerMillion < features * rules.doubtful_confidence) return -1;
    const bool is_sequence = call >= rules.nodes;
    const int node = is_sequence ? rules.target_node[call - rules.nodes] : call;
    if (node < 0) return -1;
    const int32_t* lineage = rules.lineages + int64_t(node) * rules.ranks;
    int lowest = 0;
    while (lowest < rules.ranks && lineage[lowest] < 0) ++lowest;
    if (lowest == rules.ranks) lowest = 0;
    if (!is_sequence && lowest > rejected) return call;
    for (int rank = rejected + 1; rank <= rules.highest; ++rank)
        if (lineage[rank] >= 0) return lineage[rank];
    return -1;
}

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

// Copy bytes by a warp; where the next go.
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

// Count queries whose best candidates are of one species, by it and by the per cent of their
// features that hit; SpeciesEvidence of evidence.py.
//
// Grid: any; block: kThreads, one thread a query. Bytes: 16 for each candidate that is as good as
// the best, and 4.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_evidence(const Candidate* candidates, const int32_t* features, uint32_t queries, int most,
                   const int32_t* species, int min_hits, unsigned long long* bins) {
    const uint32_t step = gridDim.x * kThreads;
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < queries; i += step) {
        const Candidate* row = candidates + int64_t(i) * most;
        const Candidate best = row[0];
        if (best.x < 0 || best.y < min_hits || species[best.x] < 0) continue;
        const int own = species[best.x];
        bool alone = true;
        for (int j = 1; j < most && alone; ++j) {
            const Candidate other = row[j];
            if (other.x < 0 || other.y < best.y) break;
            alone = species[other.x] == own;
        }
        if (!alone) continue;
        const int64_t share = int64_t(best.y) * 100 / max(features[i], 1);
        atomicAdd(bins + int64_t(own) * kBins + min(share, int64_t(100)), 1ull);
    }
}

// Mark the windows in the ranges of candidates; CoverageCounter of coverage.py.
//
// Grid: any; block: kThreads, one thread a query. Bytes: 16 a candidate, 1 a window.
extern "C" __global__ void __launch_bounds__(kThreads)
    mark_covered(const Candidate* candidates, uint32_t queries, int most, int min_hits,
                 const int64_t* first_window, u8* covered) {
    const uint32_t step = gridDim.x * kThreads;
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < queries; i += step) {
        for (int j = 0; j < most; ++j) {
            const Candidate own = candidates[int64_t(i) * most + j];
            if (own.x < 0) break;
            if (own.y < min_hits) continue;
            for (int window = own.z; window <= own.w; ++window)
                covered[first_window[own.x] + window] = 1;
        }
    }
}

// Call queries and find how long their lines become.
//
// ``sizes``: as find_candidates writes them. ``kept`` and ``accepted``: u8[targets], or null where all targets are. ``calls``: as in
// results.py. ``best``: the candidate of the call; target -1 of none. ``counts``: queries by call,
// those without one last; ``bases``: of all. ``window_reads``: by window, or null. ``wanted``: bit
// kTableLines, kKrakenLines; of each ``line_offsets`` takes, for every query, where its line
// begins in those of its block, and ``tile_bytes`` the bytes of each block's lines.
//
// Grid: a block for kThreads queries; block: kThreads, one thread a query. Bytes: 16 a candidate
// that is looked at, 16 in and 28 out a query.
extern "C" __global__ void __launch_bounds__(kThreads)
    call_queries(const Candidate* candidates, const int32_t* sizes, uint32_t queries, int most,
                 const Rules* rules_in, const Texts* texts_in, const u8* kept, const u8* accepted,
                 const uint32_t* name_length, int paired, const int64_t* first_window, int32_t* window_reads,
                 int32_t* calls, Candidate* best_out, unsigned long long* counts_of,
                 unsigned long long* bases, int wanted, uint32_t* line_offsets,
                 uint32_t* tile_bytes) {
    __shared__ uint32_t sums[2][kThreads / 32];
    const Rules rules = *rules_in;
    const Texts texts = *texts_in;
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const uint32_t query = blockIdx.x * kThreads + threadIdx.x;
    uint32_t size[2] = {0, 0};
    int64_t own_bases = 0;
    int64_t slot = -1;
    if (query < queries) {
        const Candidate* row = candidates + int64_t(query) * most;
        const int64_t all = sizes[query];
        const int acceptance = accepted ? acceptance_of(row, most, accepted, rules) : kAccepted;
        const bool near = accepted && acceptance == kAccepted;
        int place = 0;
        while (place < most && row[place].x >= 0 &&
               !counts(row[place].x, kept, accepted, near))
            ++place;
        Candidate best = {-1, 0, 0, 0};
        int call = -1;
        if (place < most && row[place].x >= 0) {
            best = row[place];
            call = call_query(row, most, place, all, rules, kept, accepted, near);
            if (call >= 0 && acceptance < kAccepted)
                call = raise_call_rank(call, acceptance, best.y, all, rules);
        }
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
    const uint32_t same = __match_any_sync(kAll, int(slot));
    if (slot >= 0 && lane == uint32_t(__ffs(same) - 1))
        atomicAdd(counts_of + slot, (unsigned long long)(__popc(same)));
    for (uint32_t distance = 16; distance > 0; distance /= 2)
        own_bases += __shfl_xor_sync(kAll, own_bases, distance);
    if (lane == 0) atomicAdd(bases, (unsigned long long)(own_bases));
    uint32_t sum[2] = {size[0], size[1]};
    for (int i = 0; i < 2; ++i) {
        for (uint32_t distance = 1; distance < 32; distance *= 2) {
            const uint32_t other = __shfl_up_sync(kAll, sum[i], distance);
            if (lane >= distance) sum[i] += other;
        }
        if (lane == 31) sums[i][warp] = sum[i];
    }
    __syncthreads();
    for (int i = 0; i < 2; ++i) {
        uint32_t before = 0, total = 0;
        for (uint32_t j = 0; j < kThreads / 32; ++j) {
            if (j < warp) before += sums[i][j];
            total += sums[i][j];
        }
        if (query < queries)
            line_offsets[int64_t(i) * queries + query] = before + sum[i] - size[i];
        if (threadIdx.x == 0) tile_bytes[i * gridDim.x + blockIdx.x] = total;
    }
}

// Turn the bytes of the tiles of each kind of lines into where each begins; ``totals``: of all.
//
// Grid: 2; block: kThreads. Bytes: 8 a tile.
extern "C" __global__ void __launch_bounds__(kThreads)
    sum_tiles(uint32_t* tile_bytes, uint32_t tiles, uint32_t* totals) {
    __shared__ uint32_t sums[kThreads / 32];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    uint32_t* own = tile_bytes + blockIdx.x * tiles;
    uint32_t done = 0;
    for (uint32_t base = 0; base < tiles; base += kThreads) {
        const uint32_t tile = base + threadIdx.x;
        const uint32_t size = tile < tiles ? own[tile] : 0;
        uint32_t sum = size;
        for (uint32_t distance = 1; distance < 32; distance *= 2) {
            const uint32_t other = __shfl_up_sync(kAll, sum, distance);
            if (lane >= distance) sum += other;
        }
        if (lane == 31) sums[warp] = sum;
        __syncthreads();
        uint32_t before = 0, total = 0;
        for (uint32_t i = 0; i < kThreads / 32; ++i) {
            if (i < warp) before += sums[i];
            total += sums[i];
        }
        if (tile < tiles) own[tile] = done + before + sum - size;
        done += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = done;
}

// Write the lines of the table of reads.
//
// Grid: any; block: kThreads, one warp a line. Bytes: the lines out, names and 28 a line in.
// Operations: about 20 a byte.
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
