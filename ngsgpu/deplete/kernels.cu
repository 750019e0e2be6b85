// Depletion on the GPU: ngsgpu/deplete/cpu.py over the records of parsed chunks.
//
// find_kept decides and computes each unit's size in each output; write_kept writes them. A block
// handles kTileUnits units (pairs, or reads without mate), a warp one at a time.
#include "ngsgpu/deplete/gpu.structs"
#include "ngsgpu/run/record.cuh"
#include "ngsgpu/sequence/hashing.cuh"

namespace {

constexpr u32 kOutputs = 2;  // reads or first mates, second mates
constexpr u32 kMillion = 1000000;

// The counters of ngsgpu/deplete/cpu.py, in its order.
enum Counter { kUnits, kKeptUnits, kBases, kKeptBases, kCounters };

struct Mates : Records<const u8> {
    __device__ __forceinline__ u32 start(u32 unit) const {
        return record_start(line_end, begin, number(unit));
    }

    // End of the qualities; one line feed is written after them.
    __device__ __forceinline__ u32 end(u32 unit) const { return line_end[4 * number(unit) + 3]; }
};

// Whether the table holds the k-mer with this hash.
__device__ __forceinline__ bool contains(const uint4* table, u32 groups, u64 hashed) {
    u32 group = __umulhi(u32(hashed >> 32), groups);
    const u32 mark = max(u32(hashed), 1u);
    for (u32 left = groups; left > 0; --left) {  // one that was changed may have no room
        const uint4 one = table[2 * u64(group)], two = table[2 * u64(group) + 1];
        if (one.x == mark || one.y == mark || one.z == mark || one.w == mark || two.x == mark ||
            two.y == mark || two.z == mark || two.w == mark)
            return true;
        if (two.w == 0) return false;
        if (++group == groups) group = 0;
    }
    return false;
}

__device__ __forceinline__ u32 centre(u32 low, u32 high, const Rules& rules) {
    return (low >> rules.offset & 0xFFFFu) | (high >> rules.offset & 0xFFFFu) << 16;
}

// A base of a unit that is read as another: its place, counted over both mates, and its code.
struct Change {
    int at;
    u32 code;
};

// The bases of one or two mates, the second of length 0 without.
struct Unit {
    const u8 *first, *second;
    int length1, length2;
};

// Bases of a read that sampled k-mers of the host cover, up to the first 32 k-mers with which they
// are enough; for a whole warp, a lane per k-mer. ``missed``: whether others were sampled, too.
__device__ __forceinline__ i64 covered_bases(const u8* bases, int length, const u8* classes,
                                             const Rules& rules, i64 enough, u32 lane,
                                             Change change, bool& missed) {
    const u32 unused = 32 - rules.kmer;
    const u32 mask = kAll >> unused;
    const auto class_at = [&](int i) {
        if (i >= length) return u32(kAmbiguous);
        return i == change.at ? change.code : u32(classes[bases[i]]);
    };
    u32 code = class_at(lane);
    u32 low = __ballot_sync(kAll, code & 1), high = __ballot_sync(kAll, code & 2);
    u32 hidden = __ballot_sync(kAll, code > 3);
    i64 covered = 0;
    int last = 0;
    for (int base = 0; base + rules.kmer <= length; base += 32) {
        code = class_at(base + 32 + int(lane));
        const u32 next_low = __ballot_sync(kAll, code & 1);
        const u32 next_high = __ballot_sync(kAll, code & 2);
        const u32 next_hidden = __ballot_sync(kAll, code > 3);
        const u32 own_low = __funnelshift_r(low, next_low, lane) & mask;
        const u32 own_high = __funnelshift_r(high, next_high, lane) & mask;
        const u32 other_low = __brev(~own_low & mask) >> unused;
        const u32 other_high = __brev(~own_high & mask) >> unused;
        const u32 middle =
            min(centre(own_low, own_high, rules), centre(other_low, other_high, rules));
        const bool sampled = (__funnelshift_r(hidden, next_hidden, lane) & mask) == 0 &&
                             mix32(middle) <= rules.limit;
        bool hit = sampled;
        if (hit) {
            const u64 kmer = min(u64(own_high) << 32 | own_low, u64(other_high) << 32 | other_low);
            hit = contains(reinterpret_cast<const uint4*>(rules.table), rules.groups, mix64(kmer));
        }
        const u32 hits = __ballot_sync(kAll, hit);
        missed |= __ballot_sync(kAll, sampled) != hits;
        if (hits) {
            const u32 before = hits & ((1u << lane) - 1);
            const int end = base + int(lane) + rules.kmer;
            const int previous = before ? base + 31 - __clz(before) + rules.kmer : last;
            covered += __reduce_add_sync(kAll, hit ? u32(min(rules.kmer, end - previous)) : 0u);
            last = base + 31 - __clz(hits) + rules.kmer;
            if (covered >= enough) break;
        }
        low = next_low;
        high = next_high;
        hidden = next_hidden;
    }
    return covered;
}

// The same of both mates of a unit.
__device__ __forceinline__ i64 covered_unit(const Unit& unit, const u8* classes, const Rules& rules,
                                            i64 enough, u32 lane, Change change, bool& missed) {
    i64 covered = covered_bases(unit.first, unit.length1, classes, rules, enough, lane, change,
                                missed);
    if (unit.length2 > 0 && covered < enough)
        covered += covered_bases(unit.second, unit.length2, classes, rules, enough - covered, lane,
                                 {change.at - unit.length1, change.code}, missed);
    return covered;
}

// Whether k-mers cover enough bases of a unit once a base that none of them covers is replaced; for
// a whole warp. ``covered``: those that they cover as it is, fewer than enough.
//
// Few units come here (of short reads with an error, or a k-mer of the host by chance), so that a
// call for each of their bases and replacements costs little.
__device__ __noinline__ bool is_host_but_for_one(const Unit& unit, const u8* classes,
                                                 const Rules& rules, i64 covered, i64 enough,
                                                 u32 lane) {
    bool missed = false;
    for (int at = 0; at < unit.length1 + unit.length2; ++at) {
        // Without a base that a k-mer covers, they cover less.
        if (covered_unit(unit, classes, rules, enough, lane, {at, kAmbiguous}, missed) != covered)
            continue;
        for (u32 code = 0; code < 4; ++code)
            if (covered_unit(unit, classes, rules, enough, lane, {at, code}, missed) >= enough)
                return true;
    }
    return false;
}

// Copy a record; returns where the next goes.
__device__ __forceinline__ u8* put_record(u8* out, const Mates& mates, u32 unit, u32 lane) {
    const u32 start = mates.start(unit), size = mates.end(unit) - start;
    for (u32 i = lane; i < size; i += 32) out[i] = mates.raw[start + i];
    if (lane == 0) out[size] = '\n';
    return out + size + 1;
}

}  // namespace

// Decide each unit, and the offset of its records within its tile's bytes of each output.
//
// ``kept``: u8[units]; ``offsets``: u32[2][units], bytes before the unit's within its tile;
// ``tile_bytes``: u32[2][tiles].
//
// Grid: one block per kTileUnits units; block: kThreads, one warp per unit. Bytes: bases in (from
// L2), a group of 32 bytes for each sampled k-mer (from memory, at random places), 9 out per unit.
// Operations: about 60 a base.
extern "C" __global__ void __launch_bounds__(kThreads)
    find_kept(MATES(const u8), u32 units, const Rules* rules_in, const u8* classes_in, u8* kept,
              u32* offsets, u32* tile_bytes, u64* counters) {
    __shared__ u8 classes[256];
    __shared__ Sizes<kOutputs> bytes;
    __shared__ u32 counted[kCounters];
    load_table(classes_in, classes);
    if (threadIdx.x < kCounters) counted[threadIdx.x] = 0;
    clear_sizes<kOutputs>(bytes);
    __syncthreads();
    const Mates first = FIRST_MATES;
    const Mates second = SECOND_MATES;
    const Rules rules = *rules_in;
    const u32 lane = threadIdx.x & 31;
    for (u32 entry = threadIdx.x / 32; entry < kTileUnits; entry += kWarps) {
        const u32 unit = blockIdx.x * kTileUnits + entry;
        if (unit >= units) break;
        const u32 i = first.number(unit), j = second.number(unit);
        const int length1 = lengths1[i], length2 = rules.paired ? lengths2[j] : 0;
        const i64 bases = i64(length1) + length2;
        const i64 by_share = (rules.millionths * bases + kMillion - 1) / kMillion;
        i64 longer = 0;
        for (const i64 longest : rules.longest) longer += bases > longest;
        const i64 by_hits = min(i64(rules.most), bases / 2) + longer * rules.kmer;
        const i64 enough = max(max(i64(rules.least), by_hits), by_share);
        const Unit own = {raw1 + seq_start1[i], rules.paired ? raw2 + seq_start2[j] : nullptr,
                          length1, length2};
        bool missed = false;
        const i64 covered = covered_unit(own, classes, rules, enough, lane, {-1, 0}, missed);
        bool is_host = covered >= enough;
        if (!is_host && covered > 0 && bases <= rules.short_bases)
            is_host = (!missed && covered >= by_share) ||
                      is_host_but_for_one(own, classes, rules, covered, max(enough, 2 * bases / 3),
                                          lane);
        const bool keep = is_host == (rules.keep_host != 0);
        if (lane != 0) continue;
        kept[unit] = keep;
        atomicAdd(counted + kUnits, 1u);
        atomicAdd(counted + kBases, u32(bases));
        if (!keep) continue;
        atomicAdd(counted + kKeptUnits, 1u);
        atomicAdd(counted + kKeptBases, u32(bases));
        bytes[0][entry] = first.end(unit) - first.start(unit) + 1;
        if (rules.paired)
            bytes[rules.interleaved ? 0 : 1][entry] += second.end(unit) - second.start(unit) + 1;
    }
    place_records<kOutputs>(bytes, units, offsets, tile_bytes);
    add_counts(counted, counters);
}

// Write the records that are kept to the outputs, and the bytes of each output to ``totals``.
//
// Grid and block as for find_kept. Bytes: the kept records in (from L2) and out.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_kept(MATES(const u8), u32 units, const Rules* rules_in, const u8* kept,
               const u32* offsets, const u32* tile_bytes, u8* out1, u8* out2, u32* totals) {
    __shared__ u32 before[kOutputs];
    sum_before(tile_bytes, before, totals);
    const Mates first = FIRST_MATES;
    const Mates second = SECOND_MATES;
    const Rules rules = *rules_in;
    const u32 lane = threadIdx.x & 31;
    for (u32 entry = threadIdx.x / 32; entry < kTileUnits; entry += kWarps) {
        const u32 unit = blockIdx.x * kTileUnits + entry;
        if (unit >= units) break;
        if (!kept[unit]) continue;
        u8* const next = put_record(out1 + before[0] + offsets[unit], first, unit, lane);
        if (!rules.paired) continue;
        put_record(rules.interleaved ? next : out2 + before[1] + offsets[units + unit], second,
                   unit, lane);
    }
}
