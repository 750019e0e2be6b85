// Merging on the GPU: ngsgpu/merge/cpu.py over the records of parsed chunks.
//
// find_overlaps decides and computes each pair's size in each output; write_records writes them. A
// block handles kTileUnits pairs, a warp one at a time.
#include "ngsgpu/merge/likelihood.cuh"
#include "ngsgpu/merge/records.cuh"

namespace {

constexpr u32 kOutputs = 3;  // merged, first, second
constexpr int kTrimOutward = 2;  // Outward.TRIM
constexpr u32 kMasked = 2;  // score of an N where two bases are equally likely

// The counters of ngsgpu/merge/cpu.py, in its order.
enum Counter {
    kPairs,
    kInward,
    kOutward,
    kShort,
    kDissimilar,
    kUnsure,
    kBeyond,
    kOverlapBases,
    kMismatches,
    kAmbiguousBases,
    kMerged,
    kTrimmed,
    kCorrected1,
    kCorrected2,
    kCounters
};

// FLASH's overlap of a pair, as ``likeliest`` returns it.
__device__ __forceinline__ int fewest_mismatches(const Planes& first, const Read& read1,
                                                 const Planes& second, const Read& read2,
                                                 bool known, const Rules& rules, u32 lane) {
    Best best = {rules.max_mismatch_density, -1, kNothing};
    int place =
        best_overlap(first, read1, second, read2, known, rules.min_overlap, rules, &best, lane);
    if (rules.outward && !(place >= 0 && best.density == 0)) {
        const int other = best_overlap(second, read2, first, read1, known, rules.min_outward,
                                       rules, &best, lane);
        if (other >= 0) return 2 * other + 1;
        place = max(place, other);
    }
    return place < 0 ? place : 2 * place;
}

// A pair whose reads overlap, the one that begins first being ``first``. Of the first mate the bases
// up to ``end1`` are kept, of the second those from ``begin2`` on.
struct Overlap {
    Read first;
    Read second;
    int place;
    int length;
    int fragment;
    int end1;
    int begin2;
    bool outward;
    bool cut;
};

__device__ __forceinline__ Overlap overlap_of(const Read& read1, const Read& read2, int found,
                                              const Rules& rules) {
    Overlap own;
    own.outward = found & 1;
    own.first = own.outward ? read2 : read1;
    own.second = own.outward ? read1 : read2;
    own.place = found >> 1;
    own.length = min(own.first.length - own.place, own.second.length);
    own.fragment = own.outward ? read2.length - own.place : own.place + read2.length;
    own.cut = rules.outward == kTrimOutward && (own.outward || own.fragment < read1.length);
    own.end1 = own.cut ? min(read1.length, own.fragment) : read1.length;
    own.begin2 = own.cut && own.outward ? own.place : 0;
    return own;
}

// Length of the merged read.
__device__ __forceinline__ int merged_length(const Overlap& overlap) {
    if (overlap.cut || !overlap.outward) return overlap.fragment;
    return overlap.first.length + overlap.second.length - overlap.length;
}

struct Called {
    u32 code;
    u32 score;
};

__device__ __forceinline__ Called call_of(const Read& read, int i, const u8* classes,
                                          const Rules& rules, const Tables& tables) {
    return {base_of(read, i, classes), u32(score_of(read, i, rules, tables))};
}

// A base outside of an overlap.
__device__ __forceinline__ Called call_alone(const Read& read, int i, const u8* classes,
                                             const Rules& rules, const Tables& tables) {
    const Called called = call_of(read, i, classes, rules, tables);
    return {called.code, tables.alone[called.score]};
}

// Decide base k of an overlap, as _consensus of ngsgpu/merge/cpu.py.
__device__ __forceinline__ Called decide(const Overlap& overlap, int k, const u8* classes,
                                         const Rules& rules, const Tables& tables) {
    const Called one = call_of(overlap.first, overlap.place + k, classes, rules, tables);
    const Called two = call_of(overlap.second, k, classes, rules, tables);
    const bool ambiguous1 = one.code == kAmbiguous, ambiguous2 = two.code == kAmbiguous;
    if (rules.never_ambiguous && (ambiguous1 || ambiguous2)) {
        const Called& known = ambiguous1 ? two : one;
        const u32 score = ambiguous1 && ambiguous2 ? min(one.score, two.score) : known.score;
        return {known.code, tables.agree[score * kScores]};
    }
    const u32 cell = one.score * kScores + two.score;
    if (one.code == two.code) return {one.code, tables.agree[cell]};
    if (rules.mask_ties && one.score == two.score) return {kAmbiguous, kMasked};
    const bool prefers_first = (rules.prefer_first && !overlap.outward) || ambiguous2;
    const bool takes_first = one.score > two.score || (one.score == two.score && prefers_first);
    return {takes_first ? one.code : two.code, tables.differ[cell]};
}

struct Output : WarpOutput {
    __device__ __forceinline__ void put_header(const u8* raw, const Header& header, bool of_pair) {
        put('@');
        copy(raw, header.start, of_pair ? header.slash : header.end);
        if (of_pair) copy(raw, header.resume, header.end);
        put('\n');
    }

    // Write the bases and the qualities of a record, whose base i is given by ``call``.
    template <typename Call>
    __device__ __forceinline__ void put_bases(int count, int phred_offset, Call call) {
        for (int i = int(lane); i < count; i += 32) {
            const Called called = call(i);
            bytes[i] = called.code < 4 ? u8(0x54474341u >> (8 * called.code)) : u8('N');
            bytes[count + 3 + i] = u8(called.score + phred_offset);
        }
        bytes += count;
        put('\n');
        put('+');
        put('\n');
        bytes += count;
        put('\n');
    }
};

// Write an unmerged record, in upper case and with N for ambiguous bases.
__device__ __forceinline__ void put_unchanged(Output* out, const Mates& mates, u32 pair,
                                              const u8* classes) {
    out->put_header(mates.raw, header_of(mates, pair, out->lane), false);
    const Read read = mates.read(pair, false);
    out->put_bases(read.length, 0, [&](int i) {
        return Called{classes[read.bases[i]], u32(read.quals[i])};
    });
}

// Write one read of an overlapping pair with the bases that were decided; the number of changed
// bases that this lane wrote.
__device__ __forceinline__ u32 put_corrected(Output* out, const Mates& mates, u32 pair,
                                             const Overlap& overlap, bool is_first,
                                             const u8* classes, const Rules& rules,
                                             const Tables& tables) {
    const Read& read = is_first ? overlap.first : overlap.second;
    const int from = is_first ? overlap.place : 0;
    const int begin = read.reversed ? overlap.begin2 : 0;
    const int end = read.reversed ? read.length : overlap.end1;
    u32 changed = 0;
    out->put_header(mates.raw, header_of(mates, pair, out->lane), false);
    out->put_bases(end - begin, rules.phred_offset, [&](int j) {
        const int i = read.reversed ? end - 1 - j : begin + j;
        Called own = call_alone(read, i, classes, rules, tables);
        if (i >= from && i < from + overlap.length) {
            const Called decided = decide(overlap, i - from, classes, rules, tables);
            changed += decided.code != own.code;
            own = decided;
        }
        if (read.reversed && own.code < 4) own.code ^= 3;
        return own;
    });
    return changed;
}

__device__ __forceinline__ void put_merged(Output* out, const Mates& mates1, u32 pair,
                                           const Overlap& overlap, const u8* classes,
                                           const Rules& rules, const Tables& tables) {
    const bool second_alone = overlap.cut && overlap.outward;
    const int shift = second_alone ? overlap.place : 0;
    out->put_header(mates1.raw, header_of(mates1, pair, out->lane), true);
    out->put_bases(merged_length(overlap), rules.phred_offset, [&](int j) {
        const int i = j + shift;
        if (i >= overlap.place && i < overlap.place + overlap.length)
            return decide(overlap, i - overlap.place, classes, rules, tables);
        const bool is_first = i < overlap.place || second_alone;
        return call_alone(is_first ? overlap.first : overlap.second,
                          is_first ? i : i - overlap.place, classes, rules, tables);
    });
}

}  // namespace

// Decide each pair, and the offset of its records within its tile's bytes of each output.
//
// ``words``: words per plane for the longest read, plus one. ``found``: offset and direction, or
// why there is none. ``offsets``: u32[3][pairs], bytes before the pair's within its tile;
// ``tile_bytes``: u32[3][tiles]. ``lengths``: [2][most], inward and outward; ``inserts`` and
// ``overlaps``: [most].
//
// Grid: one block per kTileUnits pairs; block: kThreads, one warp per pair. Shared: planes of two
// reads per warp. Bytes: bases and headers in (from L2), 16 out per pair. Operations: for reads of
// L bases about L overlaps of 2 words and 12 instructions each, 10 per eight bases for packing.
extern "C" __global__ void __launch_bounds__(kThreads)
    find_overlaps(MATES(const u8), u32 pairs, const Rules* rules_in, const Tables* tables_in,
                  const u8* classes_in, u32 words, int* found, u32* offsets, u32* tile_bytes,
                  u64* counters, u64* lengths, u64* inserts, u64* overlaps, u64* densities,
                  u32 most) {
    extern __shared__ u32 room[];
    __shared__ u8 classes[256];
    __shared__ Sizes<kOutputs> bytes;
    __shared__ u32 counted[kCounters];
    load_table(classes_in, classes);
    if (threadIdx.x < kCounters) counted[threadIdx.x] = 0;
    clear_sizes<kOutputs>(bytes);
    __syncthreads();
    const Mates mates1 = FIRST_MATES;
    const Mates mates2 = SECOND_MATES;
    const Rules rules = *rules_in;
    const Tables tables = *tables_in;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    u32* planes = room + warp * 2 * kPlanes * words;
    const Planes first = planes_at(planes, words);
    const Planes second = planes_at(planes + kPlanes * words, words);
    for (u32 entry = warp; entry < kTileUnits; entry += kWarps) {
        const u32 pair = blockIdx.x * kTileUnits + entry;
        if (pair >= pairs) break;
        const Read read1 = mates1.read(pair, false), read2 = mates2.read(pair, true);
        const bool known1 = pack(read1, classes, planes, words, lane);
        const bool known2 = pack(read2, classes, planes + kPlanes * words, words, lane);
        const bool known = known1 && known2;
        const int code =
            rules.likelihood
                ? likeliest(first, read1, second, read2, known, rules, tables, lane)
                : fewest_mismatches(first, read1, second, read2, known, rules, lane);
        const Header header1 = header_of(mates1, pair, lane);
        const Header header2 = header_of(mates2, pair, lane);
        u32 sizes[kOutputs] = {0, 0, 0};
        int size1 = read1.length, size2 = read2.length;
        if (code >= 0) {
            const Overlap overlap = overlap_of(read1, read2, code, rules);
            const int length = overlap.length, place = overlap.place;
            const bool outward = overlap.outward;
            const Planes& left = outward ? second : first;
            const Planes& right = outward ? first : second;
            u32 mismatches = 0, ambiguous = 0;
            for (int word = int(lane); 32 * word < length; word += 32) {
                const u32 inside = first_bits(length - 32 * word);
                const u32 hidden = hidden_bases(left, place, right, word) & inside;
                ambiguous += __popc(hidden);
                mismatches += __popc(different_bases(left, place, right, word) & inside & ~hidden);
            }
            mismatches = __reduce_add_sync(kAll, mismatches);
            ambiguous = __reduce_add_sync(kAll, ambiguous);
            const u32 total = u32(merged_length(overlap));
            size1 = overlap.end1;
            size2 = read2.length - overlap.begin2;
            if (!rules.correct_only) sizes[0] = record_bytes(header1.of_pair(), int(total));
            if (lane == 0) {
                atomicAdd(counted + (outward ? kOutward : kInward), 1u);
                if (length > rules.max_overlap) atomicAdd(counted + kBeyond, 1u);
                atomicAdd(counted + kOverlapBases, u32(length));
                atomicAdd(counted + kMismatches, mismatches);
                atomicAdd(counted + kAmbiguousBases, ambiguous);
                atomicAdd(counted + kMerged, total);
                atomicAdd(counted + kTrimmed, u32(read1.length - size1 + overlap.begin2));
                atomicAdd(lengths + (outward ? most : 0) + total, 1ull);
                atomicAdd(inserts + overlap.fragment, 1ull);
                atomicAdd(overlaps + length, 1ull);
                atomicAdd(densities + 100 * mismatches / max(1u, length - ambiguous), 1ull);
            }
        }
        if (rules.wanted && (code < 0 || rules.correct_only)) {
            sizes[1] = record_bytes(header1.whole(), size1);
            sizes[2] = record_bytes(header2.whole(), size2);
            if (rules.interleaved) {
                sizes[1] += sizes[2];
                sizes[2] = 0;
            }
        }
        if (lane == 0) {
            atomicAdd(counted + kPairs, 1u);
            if (code < 0)
                atomicAdd(counted + (code == kTooShort    ? kShort
                                     : code == kUndecided ? kUnsure
                                                          : kDissimilar),
                          1u);
            found[pair] = code;
            for (u32 output = 0; output < kOutputs; ++output) bytes[output][entry] = sizes[output];
        }
        __syncwarp();  // before the planes are written again
    }
    place_records<kOutputs>(bytes, pairs, offsets, tile_bytes);
    add_counts(counted, counters);
}

// Write the records of each pair to the outputs, and the bytes of each output to ``totals``.
//
// Grid and block as for find_overlaps. Bytes: the records in (from L2), the outputs out, and the
// tables of scores (from L1). Operations: about 20 a byte.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_records(MATES(const u8), u32 pairs, const Rules* rules_in, const Tables* tables_in,
                  const u8* classes_in, const int* found, const u32* offsets,
                  const u32* tile_bytes, u8* merged, u8* single1, u8* single2, u32* totals,
                  u64* counters) {
    __shared__ u8 classes[256];
    __shared__ u32 before[kOutputs];
    load_table(classes_in, classes);
    sum_before(tile_bytes, before, totals);
    const Mates mates1 = FIRST_MATES;
    const Mates mates2 = SECOND_MATES;
    const Rules rules = *rules_in;
    const Tables tables = *tables_in;
    const u32 lane = threadIdx.x & 31;
    u32 changed1 = 0, changed2 = 0;
    for (u32 entry = threadIdx.x / 32; entry < kTileUnits; entry += kWarps) {
        const u32 pair = blockIdx.x * kTileUnits + entry;
        if (pair >= pairs) break;
        Output outputs[kOutputs] = {{merged + before[0] + offsets[pair], lane},
                                    {single1 + before[1] + offsets[pairs + pair], lane},
                                    {single2 + before[2] + offsets[2 * pairs + pair], lane}};
        const int code = found[pair];
        if (code >= 0 && !rules.correct_only) {
            const Overlap overlap =
                overlap_of(mates1.read(pair, false), mates2.read(pair, true), code, rules);
            put_merged(&outputs[0], mates1, pair, overlap, classes, rules, tables);
            continue;
        }
        if (!rules.wanted) continue;
        Output* second = rules.interleaved ? &outputs[1] : &outputs[2];
        if (code < 0) {
            put_unchanged(&outputs[1], mates1, pair, classes);
            put_unchanged(second, mates2, pair, classes);
            continue;
        }
        const Overlap overlap = overlap_of(mates1.read(pair, false), mates2.read(pair, true), code, rules);
        changed1 += put_corrected(&outputs[1], mates1, pair, overlap, !overlap.outward, classes,
                                  rules, tables);
        changed2 += put_corrected(second, mates2, pair, overlap, overlap.outward, classes, rules,
                                  tables);
    }
    changed1 = __reduce_add_sync(kAll, changed1);
    changed2 = __reduce_add_sync(kAll, changed2);
    if (lane != 0) return;
    if (changed1) atomicAdd(counters + kCorrected1, u64(changed1));
    if (changed2) atomicAdd(counters + kCorrected2, u64(changed2));
}
