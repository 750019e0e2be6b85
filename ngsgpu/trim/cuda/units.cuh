// Trimming a unit, a thread each, and where its records go; as ngsgpu/trim/cpu.py.
#pragma once
#include "ngsgpu/trim/cuda/overlap.cuh"
#include "ngsgpu/trim/cuda/records.cuh"

namespace {

// The outputs of ngsgpu/trim/cpu.py, in its order.
enum OutputNumber { kKept1, kKept2, kUnpaired1, kUnpaired2, kFailed, kOutputs, kNoOutput = 255 };

constexpr int kOthers = 2;      // adapters before the sequences that are looked for in all reads
constexpr int kNeed = 4;        // bases by which the adapters must be found
constexpr int kMostInsert = 512;
constexpr u32 kMateFailed = kResults;

// The counters, as SECTIONS of ngsgpu/trim/gpu.py; the totals and the rest as in
// ngsgpu/trim/counts.py.
enum Counter {
    kTrimmedReads = kResults,
    kTrimmedBases,
    kCorrectedReads,
    kCorrectedBases,
    kUnits,
    kNoIndex,
    kTails,
    kInserts = kTails + 8,
    kBegun = kInserts + kMostInsert + 1,  // adapters without their first bases, by mate and how many
    kBegunOfMate = 5,
    kCounters = kBegun + 2 * kBegunOfMate
};

// Where what was cut off as an adapter goes, each followed by a line feed; nullptr: nowhere.
struct Notes {
    u8* texts[2];
    u32* sizes;
};

// Trims a unit, and counts.
struct Trimmer {
    const Rules& rules;
    const Notes& notes;
    u32* counted;

    __device__ __forceinline__ void count(int counter, u32 more) const {
        atomicAdd(counted + counter, more);
    }

    // Cut off what is behind a length, and note it as an adapter.
    __device__ __forceinline__ void end_at(Read* read, int length, int mate) const {
        if (length >= read->length()) return;
        const int start = read->begin + length, size = read->end - start;
        count(kTrimmedBases, u32(size));
        if (notes.texts[mate] != nullptr) {
            u8* const text = notes.texts[mate] + atomicAdd(notes.sizes + mate, u32(size) + 1);
            for (int i = 0; i < size; ++i) text[i] = read->bases[start + i];
            text[size] = '\n';
        }
        read->end = start;
    }

    // Cut the adapter of first or second mates off.
    __device__ __forceinline__ void cut_adapter(Read* read, int mate) const {
        const int at = find_adapter(*read, mate, rules, kNeed);
        if (at == kNowhere) return;
        count(kTrimmedReads, 1);
        if (at >= 0) return end_at(read, at, mate);
        const i64 size = rules.adapter_ends[mate + 1] - rules.adapter_ends[mate];
        count(kTrimmedBases, u32(size + at));
        count(kBegun + mate * kBegunOfMate - at, 1);
        read->end = read->begin;
    }

    // Cut off all sequences that are looked for in all reads, one after the other.
    __device__ __forceinline__ void cut_others(Read* read) const {
        for (int number = kOthers; number < rules.sequences; ++number) {
            const int at = find_adapter(*read, number, rules, rules.others_need);
            if (at != kNowhere) read->shorten(max(0, at));
        }
    }

    __device__ __forceinline__ void end_trimming(Read* read, int mate) const {
        if (rules.poly_x) {
            int bases;
            const int base = cut_poly_x(read, rules.poly_x, &bases);
            if (base >= 0) {
                count(kTails + base, 1);
                count(kTails + 4 + base, u32(bases));
            }
        }
        if (rules.longest[mate] > 0) read->shorten(rules.longest[mate]);
    }

    __device__ __forceinline__ void count_insert(const Read& read1, const Read& read2,
                                                 const Overlap& overlap, int fronts) const {
        int size = kMostInsert;
        if (overlap.found && overlap.offset > 0)
            size = read1.length() + read2.length() - overlap.length + fronts;
        else if (overlap.found)
            size = overlap.length + fronts;
        count(kInserts + min(size, kMostInsert), 1);
    }

    // Cut tails and adapters off both mates, of which ``cut1`` and ``cut2`` bases were cut before.
    __device__ __forceinline__ void trim_pair(Read* read1, Read* read2, int cut1, int cut2,
                                              u8* turned) const {
        if (rules.poly_g) {
            cut_poly_g(read1, rules.poly_g);
            cut_poly_g(read2, rules.poly_g);
        }
        const Overlap overlap = find_overlap(*read1, *read2, turned, rules);
        count_insert(*read1, *read2, overlap, cut1 + cut2);
        if (rules.corrects) {
            int reads;
            const int bases = correct(*read1, *read2, overlap, &reads);
            count(kCorrectedReads, u32(reads));
            count(kCorrectedBases, u32(bases));
        }
        if (rules.trims_adapters) {
            if (overlap.found && overlap.offset < 0) {
                end_at(read1, overlap.length + cut2, 0);
                end_at(read2, overlap.length + cut1, 1);
                count(kTrimmedReads, 2);
            } else {
                cut_adapter(read1, 0);
                cut_adapter(read2, 1);
            }
            cut_others(read1);
            cut_others(read2);
        }
        end_trimming(read1, 0);
        end_trimming(read2, 1);
    }

    // Cut tails and adapters off a read without mate.
    __device__ __forceinline__ void trim_read(Read* read) const {
        if (rules.poly_g) cut_poly_g(read, rules.poly_g);
        if (rules.trims_adapters) {
            cut_adapter(read, 0);
            cut_others(read);
        }
        end_trimming(read, 0);
    }
};

__device__ __forceinline__ bool writes(const Rules& rules, u32 output) {
    return rules.wanted >> output & 1;
}

__device__ __forceinline__ void send(Trimmed* own, int mate, bool wanted, u32 output, int reason) {
    if (!wanted) return;
    own->output[mate] = u8(output);
    own->reason[mate] = u8(reason);
}

// Decide where each mate goes.
__device__ __forceinline__ void send_unit(Trimmed* own, int result1, int result2, bool duplicate,
                                          const Rules& rules) {
    own->output[0] = own->output[1] = kNoOutput;
    own->reason[0] = own->reason[1] = kPassed;
    own->kept = result1 == kPassed && result2 == kPassed && !duplicate;
    if (duplicate) return;
    const bool failed = writes(rules, kFailed), alone1 = writes(rules, kUnpaired1),
               alone2 = writes(rules, kUnpaired2);
    const u32 second = rules.interleaved ? kKept1 : kKept2;
    if (result1 == kPassed && result2 == kPassed) {
        send(own, 0, writes(rules, kKept1), kKept1, kPassed);
        send(own, 1, rules.paired && writes(rules, second), second, kPassed);
    } else if (!rules.paired) {
        send(own, 0, failed, kFailed, result1);
    } else if (result1 == kPassed) {
        send(own, 0, failed, kFailed, kMateFailed);
        send(own, 0, alone1, kUnpaired1, kPassed);
        send(own, 1, failed, kFailed, result2);
    } else if (result2 == kPassed) {
        send(own, 0, failed, kFailed, result1);
        send(own, 1, failed, kFailed, kMateFailed);
        send(own, 1, alone1 || alone2, alone2 ? kUnpaired2 : kUnpaired1, kPassed);
    } else {
        send(own, 0, failed && !rules.as_fastp, kFailed, result1);
        send(own, 1, failed && !rules.as_fastp, kFailed, result2);
    }
}

// The last base of a mate that is all UMI, but for which it would be corrected unseen; or 0.
__device__ __forceinline__ u8 last_of_umi(const Read& read, bool has_umi, const Rules& rules) {
    return has_umi && read.end > 0 && read.begin < min(read.end, rules.umi_length)
               ? read.bases[read.end - 1]
               : 0;
}

}  // namespace
