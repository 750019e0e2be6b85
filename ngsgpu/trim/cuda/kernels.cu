// Trimming on the GPU: ngsgpu/trim/cpu.py over the records of parsed chunks.
//
// In this order: hash_units, count_reads of the reads as they are, trim_units, count_reads of those
// that are kept, write_units. Qualities of Phred+64 are made Phred+33 where they are, by the first
// count_reads, and corrected bases replaced, by trim_units.
#include "ngsgpu/trim/cuda/units.cuh"

// Hash all letters of each unit, as _hash_units of ngsgpu/trim/duplicates.py.
//
// ``codes``: u64[256]; ``factors``: u64[2048]; ``keys``: u64[units].
//
// Grid: one block per kTileUnits units; block: kThreads, one warp per unit. Bytes: bases in, 8 out
// per unit, the tables (from L1). Operations: about 8 per base.
extern "C" __global__ void __launch_bounds__(kThreads)
    hash_units(MATES(u8), u32 units, u32 paired, u64 mask, const u64* codes, const u64* factors,
               u64* keys) {
    const Mates mates[2] = {FIRST_MATES, SECOND_MATES};
    const u32 lane = threadIdx.x & 31;
    for (u32 entry = threadIdx.x / 32; entry < kTileUnits; entry += kWarps) {
        const u32 unit = blockIdx.x * kTileUnits + entry;
        if (unit >= units) break;
        u64 key = 0, before = 0;
        for (u32 mate = 0; mate < 1 + paired; ++mate) {
            const Read read = mates[mate].read(unit);
            for (int i = int(lane); i < read.end; i += 32) {
                const u64 place = before + u64(i);
                key += factors[place & 2047] * (codes[read.bases[i]] + place);
            }
            before += u64(read.end);
        }
        for (int distance = 16; distance > 0; distance /= 2)
            key += __shfl_xor_sync(kAll, key, distance);
        if (lane == 0) keys[unit] = key & mask;
    }
}

// Count the reads of one mate: all as they are, or with ``trimmed`` what is left of those that are
// kept. Qualities of Phred+64 (``is_64``) are made Phred+33.
//
// ``content`` and ``quality``: u64[cycles][kLetters], letters and the sum of their qualities;
// ``kmers``: u64[kKmers]; ``totals``: u64[4].
//
// Grid: one block per kCountedUnits units; block: kThreads, one warp per read. Bytes: bases and
// qualities in. Operations: about 40 per base, two atomics in shared memory among them; about 2,500
// atomics per block, and two per base beyond kCycles.
constexpr u32 kCountedUnits = 256;
constexpr u32 kCycles = 512;  // of which counts are summed in shared memory
constexpr u32 kLetters = 8;   // told apart by their lowest three bits
constexpr int kKmer = 5;
constexpr u32 kKmers = 1u << 2 * kKmer;
constexpr u32 kShift = 16;    // kCountedUnits qualities need less

extern "C" __global__ void __launch_bounds__(kThreads)
    count_reads(u8* raw, const u32* line_end, const u32* seq_start, const u32* qual_start,
                const int* lengths, u32 begin, u32 record, u32 step, u32 units, u32 mate,
                const Trimmed* trimmed, u32 is_64, u64* content, u64* quality, u64* kmers,
                u64* totals) {
    __shared__ u32 cells[kCycles * kLetters];  // by letter, so that the lanes use all banks
    __shared__ u32 counted[kKmers];
    __shared__ u32 sums[4];
    for (u32 i = threadIdx.x; i < kCycles * kLetters; i += kThreads) cells[i] = 0;
    for (u32 i = threadIdx.x; i < kKmers; i += kThreads) counted[i] = 0;
    if (threadIdx.x < 4) sums[threadIdx.x] = 0;
    __syncthreads();
    const Mates mates = {raw, line_end, seq_start, qual_start, lengths, begin, record, step};
    const u32 lane = threadIdx.x & 31;
    for (u32 entry = threadIdx.x / 32; entry < kCountedUnits; entry += kWarps) {
        const u32 unit = blockIdx.x * kCountedUnits + entry;
        if (unit >= units) break;
        Read read = mates.read(unit);
        if (trimmed != nullptr) {
            if (!trimmed[unit].kept) continue;
            read.begin = trimmed[unit].begin[mate];
            read.end = trimmed[unit].end[mate];
        }
        u32 good = 0, best = 0;
        for (int i = read.begin + int(lane); i < read.end; i += 32) {
            if (is_64) read.qualities[i] = u8(max(kLowest, read.qualities[i] - 31));
            const u32 score = read.qualities[i] - kLowest;
            good += score >= 20;
            best += score >= 30;
            const u32 cycle = u32(i - read.begin), row = read.bases[i] & (kLetters - 1);
            if (cycle < kCycles) {
                atomicAdd(cells + row * kCycles + cycle, (1u << kShift) + score);
            } else {
                atomicAdd(content + cycle * kLetters + row, 1ull);
                atomicAdd(quality + cycle * kLetters + row, u64(score));
            }
            if (i - read.begin < kKmer - 1) continue;
            u32 kmer = 0;
            bool known = true;
            for (int at = i - (kKmer - 1); at <= i; ++at) {
                const u8 letter = read.bases[at];
                known = known && (letter == 'A' || letter == 'C' || letter == 'G' || letter == 'T');
                // A, C, T and G by these two bits; fastp has A, T, C and G.
                const u32 code = letter >> 1 & 3;
                kmer = kmer << 2 | (code == 1 ? 2 : code == 2 ? 1 : code);
            }
            if (known) atomicAdd(counted + kmer, 1u);
        }
        good = __reduce_add_sync(kAll, good);
        best = __reduce_add_sync(kAll, best);
        if (lane != 0) continue;
        atomicAdd(sums, 1u);
        atomicAdd(sums + 1, u32(read.length()));
        atomicAdd(sums + 2, good);
        atomicAdd(sums + 3, best);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < kCycles * kLetters; i += kThreads) {
        const u32 cell = cells[i % kLetters * kCycles + i / kLetters];
        if (cell == 0) continue;
        atomicAdd(content + i, u64(cell >> kShift));
        atomicAdd(quality + i, u64(cell & ((1u << kShift) - 1)));
    }
    for (u32 i = threadIdx.x; i < kKmers; i += kThreads)
        if (counted[i]) atomicAdd(kmers + i, u64(counted[i]));
    if (threadIdx.x < 4 && sums[threadIdx.x])
        atomicAdd(totals + threadIdx.x, u64(sums[threadIdx.x]));
}

// Trim each unit, decide where it goes, and the offset of its records within its tile's bytes of
// each output.
//
// ``duplicate``: u8[units], whether units are left out, or nullptr; ``turned``: u8, room as large as
// ``raw2``; ``trimmed``: [units]; ``offsets``: u32[5][units]; ``tile_bytes``: u32[5][tiles];
// ``counters``: u64[kCounters]; ``notes1`` and ``notes2``: see Notes, of ``note_bytes``: u32[2].
//
// Grid: one block per kTileUnits units; block: kThreads, of which one thread trims a unit, so that
// the units of a tile, which take their time each, are spread over all warps. Bytes: the records in
// (from L2), and the second mates out and in again. Operations: for mates of L bases up to 2 L
// overlaps of one or two words and 25 instructions each, and about 60 per base.
extern "C" __global__ void __launch_bounds__(kThreads)
    trim_units(MATES(u8), u32 units, const Rules* rules_in, const u8* duplicate, u8* turned,
               Trimmed* trimmed, u32* offsets, u32* tile_bytes, u64* counters, u8* notes1,
               u8* notes2, u32* note_bytes) {
    __shared__ Sizes<kOutputs> bytes;
    __shared__ u32 counted[kCounters];
    for (u32 i = threadIdx.x; i < kCounters; i += kThreads) counted[i] = 0;
    clear_sizes<kOutputs>(bytes);
    __syncthreads();
    const Mates mates1 = FIRST_MATES;
    const Mates mates2 = SECOND_MATES;
    const Rules& rules = *rules_in;
    const Notes notes = {{notes1, notes2}, note_bytes};
    const Trimmer trimmer = {rules, notes, counted};
    const u32 lane = threadIdx.x & 31, entry = lane * kWarps + threadIdx.x / 32;
    const u32 unit = blockIdx.x * kTileUnits + entry;
    if (entry < kTileUnits && unit < units) {
        Read read1 = mates1.read(unit), read2 = mates2.read(unit);
        const Umi umi = umi_of(mates1, mates2, unit, rules);
        const bool umi1 = rules.umi == kRead1 || rules.umi == kPerRead;
        const bool umi2 = rules.paired && (rules.umi == kRead2 || rules.umi == kPerRead);
        if (umi1) cut_umi(&read1, rules);
        if (umi2) cut_umi(&read2, rules);
        Trimmed own;
        own.last[0] = last_of_umi(read1, umi1, rules);
        own.last[1] = last_of_umi(read2, umi2, rules);
        int cut1, cut2 = 0;
        const bool left1 = cut_ends(&read1, 0, rules, &cut1);
        const bool left2 = !rules.paired || cut_ends(&read2, 1, rules, &cut2);
        if (left1 && left2) {
            if (rules.paired)
                trimmer.trim_pair(&read1, &read2, cut1, cut2,
                                  turned + mates2.seq_start[mates2.number(unit)]);
            else
                trimmer.trim_read(&read1);
        }
        const int result1 = left1 ? result_of(read1, rules) : kShort;
        const int result2 = !rules.paired ? kPassed : left2 ? result_of(read2, rules) : kShort;
        trimmer.count(max(result1, result2), rules.paired ? 2 : 1);
        trimmer.count(kUnits, 1);
        if (umi.lacks_index) trimmer.count(kNoIndex, 1);
        own.begin[0] = read1.begin;
        own.end[0] = read1.end;
        own.begin[1] = read2.begin;
        own.end[1] = read2.end;
        send_unit(&own, result1, result2, duplicate != nullptr && duplicate[unit], rules);
        const u32 tag = umi.size(rules);
        if (own.output[0] != kNoOutput)
            bytes[own.output[0]][entry] +=
                record_bytes(mates1, unit, read1, tag, reason_of(own.reason[0], rules));
        if (own.output[1] != kNoOutput)
            bytes[own.output[1]][entry] +=
                record_bytes(mates2, unit, read2, tag, reason_of(own.reason[1], rules));
        trimmed[unit] = own;
    }
    place_records<kOutputs>(bytes, units, offsets, tile_bytes);
    for (u32 i = threadIdx.x; i < kCounters; i += kThreads)
        if (counted[i]) atomicAdd(counters + i, u64(counted[i]));
}

// Write the records of each unit to the outputs, and the bytes of each output to ``totals``.
//
// Grid: one block per kTileUnits units; block: kThreads, one warp per unit. Bytes: the records in
// (from L2) and out. Operations: about 10 a byte.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_units(MATES(u8), u32 units, const Rules* rules_in, const Trimmed* trimmed,
                const u32* offsets, const u32* tile_bytes, u8* kept1, u8* kept2, u8* unpaired1,
                u8* unpaired2, u8* failed, u32* totals) {
    __shared__ u32 before[kOutputs];
    sum_before(tile_bytes, before, totals);
    const Mates mates[2] = {FIRST_MATES, SECOND_MATES};
    u8* const outputs[kOutputs] = {kept1, kept2, unpaired1, unpaired2, failed};
    const Rules& rules = *rules_in;
    const u32 lane = threadIdx.x & 31;
    for (u32 entry = threadIdx.x / 32; entry < kTileUnits; entry += kWarps) {
        const u32 unit = blockIdx.x * kTileUnits + entry;
        if (unit >= units) break;
        const Trimmed own = trimmed[unit];
        const Umi umi = umi_of(mates[0], mates[1], unit, rules);
        Output out{{nullptr, lane}};
        for (u32 mate = 0; mate < 2; ++mate) {
            const u32 number = own.output[mate];
            if (number == kNoOutput) continue;
            if (mate == 0 || number != own.output[0])  // else behind the first mate
                out.bytes = outputs[number] + before[number] + offsets[number * units + unit];
            Read read = mates[mate].read(unit);
            read.begin = own.begin[mate];
            read.end = own.end[mate];
            out.put_record(mates[mate], unit, read, umi, own, reason_of(own.reason[mate], rules),
                           rules);
        }
    }
}
