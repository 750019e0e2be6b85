// FASTQ on the GPU: find line ends and records, validate and pack them.
//
// A chunk of a file is in ``raw[begin, end)`` and begins at a record; ``line_end`` lists the
// positions in ``raw`` of its line feeds. Validity is defined by ``scan_fastq`` of
// ngsgpu/io/text/scan.py; the packed arrays are those of ngsgpu/readset/cpu.py. A chunk is
// smaller than the L2 cache, so that all kernels but the first find it there.
#include "ngsgpu/device/cuda/block.cuh"
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/io/gpu/parse.structs"
#include "ngsgpu/io/gpu/lines.cuh"
#include "ngsgpu/sequence/hashing.cuh"

// Count the line feeds of each tile of a chunk.
//
// Grid: one block a tile; block: kThreads. Bytes: the chunk in, 4 out a tile. Operations: about 1
// for each byte.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_lines(const u8* raw, u32 begin, u32 end, u32* tile_lines) {
    const u32 at = (begin & ~15u) + blockIdx.x * kTile + threadIdx.x * kBytes;
    const u32 count = __popcll(line_feeds(raw, at, begin, end));
    u32 total;
    block_exclusive_sum<kThreads>(count, &total);
    if (threadIdx.x == 0) tile_lines[blockIdx.x] = total;
}

// Turn the tiles' counts into the number of line feeds before each tile; initialise the results.
//
// Grid: 1; block: kThreads. Bytes: 8 per tile.
extern "C" __global__ void __launch_bounds__(kThreads)
    sum_lines(u32* tile_lines, u32 tiles, u32 room, Found* found) {
    u32 before = 0;
    for (u32 base = 0; base < tiles; base += kThreads) {
        const u32 tile = base + threadIdx.x;
        const u32 count = tile < tiles ? tile_lines[tile] : 0;
        u32 total;
        const u32 sum = block_exclusive_sum<kThreads>(count, &total);
        if (tile < tiles) tile_lines[tile] = before + sum;
        before += total;
    }
    if (threadIdx.x == 0) *found = {before, 0, 0, kNone, kNone, 0, 0, 255, 0, before > room};
}

// List the positions of the line feeds.
//
// Grid and block as for count_lines. Bytes: the chunk in (from L2), 4 out per line.
extern "C" __global__ void __launch_bounds__(kThreads)
    list_lines(const u8* raw, u32 begin, u32 end, const u32* tile_lines, u32 room, u32* line_end) {
    const u32 at = (begin & ~15u) + blockIdx.x * kTile + threadIdx.x * kBytes;
    u64 feeds = line_feeds(raw, at, begin, end);
    u32 total;
    u32 line = tile_lines[blockIdx.x] + block_exclusive_sum<kThreads>(__popcll(feeds), &total);
    for (; feeds; feeds &= feeds - 1, ++line)
        if (line < room) line_end[line] = at + __ffsll(feeds) - 1;
}

// Find the records of a chunk, four lines each, and check every byte of them.
//
// Blank lines from ``content_end`` on are not records. If the file continues after the chunk,
// ``unit`` is 2 for interleaved mates, so that no pair is split. The first ``sampled`` records
// are examined for their range of qualities.
//
// Grid: any; block: kThreads, one warp per record. Bytes: the chunk in (from L2), 12 out per
// record. Operations: about 15 per byte. ``classes``: uint8[256], code of each letter, kAmbiguous,
// kNoBase.
extern "C" __global__ void __launch_bounds__(kThreads)
    check_records(const u8* raw, u32 begin, u32 content_end, const u32* line_end, u32 unit,
                  const u8* classes, u32 lowest, u32 max_header, u32 max_length, u32 sampled,
                  u32* seq_start, u32* qual_start, int* lengths, Found* found) {
    __shared__ u8 letters[256];
    for (u32 i = threadIdx.x; i < 256; i += kThreads) letters[i] = classes[i];
    __syncthreads();
    const u32 lane = threadIdx.x & 31;
    const u32 warps = gridDim.x * (kThreads / 32);
    const u32 groups = found->full ? 0 : found->lines / 4 / unit * unit;
    u32 shortest = kNone, longest = 0, ambiguous = 0, low = 255, high = 0, bad = kNone;
    for (u32 record = (blockIdx.x * kThreads + threadIdx.x) / 32; record <= groups;
         record += warps) {
        const u32 start = record_start(line_end, begin, record);
        if (record == groups || start >= content_end) {
            if (lane == 0 &&
                (record == 0 || record_start(line_end, begin, record - 1) < content_end)) {
                found->records = record;
                found->tail = start;
            }
            break;
        }
        const u32* ends = line_end + 4 * record;
        const u32 header = start + 1, header_end = without_return(raw, start, ends[0]);
        const u32 bases = ends[0] + 1, bases_end = without_return(raw, bases, ends[1]);
        const u32 plus = ends[1] + 1, plus_end = without_return(raw, plus, ends[2]);
        const u32 quals = ends[2] + 1, quals_end = without_return(raw, quals, ends[3]);
        const u32 length = bases_end - bases;
        bool good = raw[start] == '@' && raw[plus] == '+' && quals_end - quals == length &&
                    length <= max_length && ends[0] - start <= max_header + 1;
        good = good && no_zero(raw, header, header_end, lane);
        if (good && plus_end > plus + 1)
            good = ends[2] - plus <= max_header + 2 && no_zero(raw, plus, plus_end, lane) &&
                   same_first_word(raw, header, header_end, plus + 1, plus_end, lane);
        u32 own_low = 255, own_high = 0;
        if (good) {
            // From here on the lanes hold different findings.
            for (u32 i = lane; i < length; i += 32) {
                const u8 letter = letters[raw[bases + i]];
                const u32 quality = raw[quals + i];
                good = good && letter != kNoBase;
                ambiguous += letter == kAmbiguous;
                own_low = min(own_low, quality);
                own_high = max(own_high, quality);
            }
            good = good && own_high <= 126 && own_low >= lowest;
        }
        if (record < sampled) {
            low = min(low, own_low);
            high = max(high, own_high);
        }
        if (!__all_sync(kAll, good)) bad = min(bad, record);
        shortest = min(shortest, length);
        longest = max(longest, length);
        if (lane == 0) {
            seq_start[record] = bases;
            qual_start[record] = quals;
            lengths[record] = length;
        }
    }
    ambiguous = __reduce_add_sync(kAll, ambiguous);
    low = __reduce_min_sync(kAll, low);
    high = __reduce_max_sync(kAll, high);
    if (lane != 0) return;
    if (bad != kNone) atomicMin(&found->bad, bad);
    if (shortest != kNone) {
        atomicMin(&found->min_length, shortest);
        atomicMax(&found->max_length, longest);
    }
    if (ambiguous) atomicAdd(&found->ambiguous, ambiguous);
    if (low != 255) atomicMin(&found->low_quality, low);
    if (high) atomicMax(&found->high_quality, high);
}

// Check that records have mate names, by the rule of ngsgpu/io/text/pairs.py: record
// ``record1 + i * step`` of one chunk and record ``record2 + i * step`` of the other.
//
// ``bad`` becomes the smallest ``first_pair + i`` whose names disagree, if any.
//
// Grid: any; block: kThreads, one warp per pair. Bytes: the headers in (from L2).
extern "C" __global__ void __launch_bounds__(kThreads)
    check_mates(const u8* raw1, const u32* line_end1, u32 begin1, u32 record1, const u8* raw2,
                const u32* line_end2, u32 begin2, u32 record2, u32 step, u32 pairs, u64 first_pair,
                u64* bad) {
    const u32 lane = threadIdx.x & 31;
    const u32 warps = gridDim.x * (kThreads / 32);
    for (u32 pair = (blockIdx.x * kThreads + threadIdx.x) / 32; pair < pairs; pair += warps) {
        const u32 i = record1 + pair * step, j = record2 + pair * step;
        const u32 a = record_start(line_end1, begin1, i) + 1;
        const u32 b = record_start(line_end2, begin2, j) + 1;
        const u32 length = word_length(raw1, a, without_return(raw1, a, line_end1[4 * i]), lane);
        bool good =
            length == word_length(raw2, b, without_return(raw2, b, line_end2[4 * j]), lane);
        if (good) {
            const u32 same = same_bytes(raw1, a, raw2, b, length, lane);
            if (length >= 2) {
                const u8 mark = raw1[a + length - 2];
                const u8 last1 = raw1[a + length - 1], last2 = raw2[b + length - 1];
                if (same == length)
                    good = !(mark == '/' && (last1 == '1' || last1 == '2'));
                else
                    good = same == length - 1 && (mark == '/' || mark == '.' || mark == '_') &&
                           ((last1 == '1' && last2 == '2') || (last1 == '2' && last2 == '1'));
            } else {
                good = same == length;
            }
        }
        if (!good && lane == 0) atomicMin(bad, first_pair + pair);
    }
}

constexpr u32 kUnknownScore = 255;  // instead of a code, where scores have levels

// Pack records of a chunk: bit planes, quality codes, lengths; list the letters that are not ACGT.
//
// Record ``record + i`` becomes read ``read + i * step``. Its planes begin at word
// ``planes_done + plane_start[entry]`` of ``planes``, where entry is ``mate + i * step``, or
// entry times the words of a read if ``uniform_length`` is not negative; likewise its quality
// codes. All words are written completely, so nothing needs to be zeroed. ``bins``: uint8[256],
// the code of each score; ``unknown`` is set if one has none. Letters that are not ACGT are appended to ``ambiguous`` as
// read << 15 | position, in any order.
//
// Grid: any; block: kThreads, one warp per read. Bytes: bases and qualities in (from L2); 16 per
// 64 bases, the codes and 4 out per read. Operations: about 10 per base.
extern "C" __global__ void __launch_bounds__(kThreads)
    pack_records(const u8* raw, const u32* seq_start, const u32* qual_start, const int* lengths,
                 u32 record, u32 records, u32 mate, u32 step, i64 read, const u8* classes,
                 const u8* bins, int phred_offset, int quality_bits, int uniform_length,
                 const i64* plane_start, const i64* quality_start, i64 planes_done,
                 i64 qualities_done, u64* planes, u8* qualities, int* read_lengths, u64* ambiguous,
                 u64* ambiguous_count, u32* unknown) {
    __shared__ u8 letters[256];
    __shared__ u8 codes[256];
    for (u32 i = threadIdx.x; i < 256; i += kThreads) {
        letters[i] = classes[i];
        codes[i] = bins[i];
    }
    __syncthreads();
    const u32 lane = threadIdx.x & 31;
    const u32 warps = gridDim.x * (kThreads / 32);
    for (u32 i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < records; i += warps) {
        const int length = lengths[record + i];
        const u8* bases = raw + seq_start[record + i];
        const u8* quals = raw + qual_start[record + i];
        const i64 entry = mate + i64(i) * step;
        const i64 number = read + i64(i) * step;
        const int words = (length + 63) >> 6;
        const bool uniform = uniform_length >= 0;
        u64* target_planes =
            planes + planes_done + (uniform ? entry * 2 * words : plane_start[entry]);
        u8* target = qualities + qualities_done +
                     (uniform ? entry * ((length * quality_bits + 7) >> 3) : quality_start[entry]);
        if (lane == 0) read_lengths[number] = length;
        for (int base = 0; base < length; base += 64) {
            u64 low_word = 0, high_word = 0;
            for (int half = 0; half < 64; half += 32) {
                const int position = base + half + int(lane);
                const bool inside = position < length;
                u32 letter = inside ? letters[bases[position]] : 0;
                const bool is_ambiguous = letter == kAmbiguous;
                const u32 strangers = __ballot_sync(kAll, is_ambiguous);
                if (strangers) {
                    append(ambiguous, ambiguous_count, strangers, lane,
                           u64(number) << 15 | position);
                    if (is_ambiguous) letter = u32(mix64(u64(number) << 15 | position)) & 3;
                }
                low_word |= u64(__ballot_sync(kAll, letter & 1)) << half;
                high_word |= u64(__ballot_sync(kAll, letter & 2)) << half;
                if (quality_bits == 0 || base + half >= length) continue;
                const int score =
                    inside && !is_ambiguous ? max(0, int(quals[position]) - phred_offset) : 0;
                u32 code = inside ? codes[score] : 0;
                if (code == kUnknownScore) {
                    *unknown = 1;
                    code = 0;
                }
                write_codes(target, code, base + half, length, quality_bits, lane);
            }
            if (lane < 2) target_planes[lane * words + (base >> 6)] = lane ? high_word : low_word;
        }
    }
}

// Mark the Phred scores of records, that of letters that are not ACGT being 0.
//
// Grid: any; block: kThreads, one warp per read. Bytes: bases and qualities in (from L2).
extern "C" __global__ void __launch_bounds__(kThreads)
    mark_scores(const u8* raw, const u32* seq_start, const u32* qual_start, const int* lengths,
                u32 record, u32 records, const u8* classes, int phred_offset, u8* present) {
    const u32 lane = threadIdx.x & 31;
    const u32 warps = gridDim.x * (kThreads / 32);
    for (u32 i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < records; i += warps) {
        const u8* bases = raw + seq_start[record + i];
        const u8* quals = raw + qual_start[record + i];
        for (int position = lane; position < lengths[record + i]; position += 32) {
            const bool is_ambiguous = classes[bases[position]] == kAmbiguous;
            present[is_ambiguous ? 0 : max(0, int(quals[position]) - phred_offset)] = 1;
        }
    }
}

// Copy the letters of every ``step``-th read, from ``record`` on: a row of ``width`` bytes a read,
// zeros behind its end; zeros only if it is longer than that.
//
// Grid: any; block: kThreads, one warp per read. Bytes: the bases of these reads in (from L2), the
// rows out.
extern "C" __global__ void __launch_bounds__(kThreads)
    sample_bases(const u8* raw, const u32* seq_start, const int* lengths, u32 record, u32 step,
                 u32 reads, u32 width, u8* rows) {
    const u32 lane = threadIdx.x & 31;
    const u32 warps = gridDim.x * (kThreads / 32);
    for (u32 i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < reads; i += warps) {
        const u32 number = record + i * step;
        const u32 length = u32(lengths[number]) <= width ? u32(lengths[number]) : 0;
        const u8* bases = raw + seq_start[number];
        for (u32 base = lane; base < width; base += 32)
            rows[u64(i) * width + base] = base < length ? bases[base] : 0;
    }
}
