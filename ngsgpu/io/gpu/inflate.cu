// Gzip files on the GPU, any number of members, each of any number of deflate blocks.
//
// A batch of compressed bytes is cut where blocks begin: find_starts looks for bits that can be the
// header of one, or the header of a BGZF block. A chunk, from one start to the next, is decoded by
// a warp. What its matches refer to before the chunk is not known yet, so its symbols are bytes or
// places in the 32 KiB before it (Kerbiriou and Chikhi, 2019; Knespel and Brunst, 2023). Then the
// windows of all chunks are put together, and the places are replaced. A start was right if the
// chunk before it ends there; what is wrong nevertheless does not have its member's checksum.
#include "ngsgpu/io/gpu/inflate.structs"
#include "ngsgpu/io/gpu/deflate.cuh"
#include "ngsgpu/sequence/search.cuh"

namespace {

constexpr u32 kFinders = kLanes == 1 ? 1 : 256;  // threads that look for a start
constexpr u32 kAtOnce = 8;              // places that each looks at before all compare
constexpr u64 kNowhere = ~0ull;
constexpr u64 kMember = 1ull << 63;     // of a place: a member's header is there, not a block
constexpr u64 kPatience = 1ull << 20;   // bits behind the next start after which it was none
constexpr u32 kPiece = 1024;            // bytes of which a thread makes the checksum
constexpr u32 kPowers = 31;             // powers of two of bytes that checksums are moved by

__device__ __forceinline__ u64 bits_at(const u32* words, u64 place) {
    const u32 word = u32(place >> 5), skipped = u32(place & 31);
    const u64 low = words[word] | u64(words[word + 1]) << 32;
    return skipped ? low >> skipped | u64(words[word + 2]) << (64 - skipped) : low;
}

// Whether complete codes are described from bit ``place`` on, as in read_codes.
__device__ bool has_codes(const u32* words, u64 place, u32 literals, u32 distances, u32 given) {
    u8 lengths[19] = {}, table[128];
    u64 three = bits_at(words, place);
    for (u32 i = 0; i < given; ++i, three >>= 3) lengths[kOrder[i]] = three & 7;
    u32 code = 0;
    for (u32 length = 1; length <= 7; ++length, code <<= 1)
        for (u32 symbol = 0; symbol < 19; ++symbol)
            if (lengths[symbol] == length) {
                for (u32 i = __brev(code) >> (32 - length); i < 128; i += 1u << length)
                    table[i] = u8(symbol << 3 | length);
                ++code;
            }
    Bits bits(words, place + 3 * given);
    u32 last = 0, sums[2] = {0, 0}, used = 0;
    bool ends = false;
    for (u32 at = 0; at < literals + distances;) {
        bits.refill();
        const u32 entry = table[u32(bits.buffer) & 127], symbol = entry >> 3;
        bits.drop(entry & 7);
        u32 times = 1, length = symbol;
        if (symbol == 16) {
            if (at == 0) return false;
            length = last;
            times = 3 + bits.take(2);
        } else if (symbol > 16) {
            length = 0;
            times = symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
        }
        if (at + times > literals + distances) return false;
        last = length;
        if (length == 0) {
            at += times;
            continue;
        }
        for (; times; --times, ++at) {
            ends |= at == kEnd;
            used += at >= literals;
            sums[at >= literals] += 1u << (kMaxLength - length);
        }
        if (sums[0] > 1u << kMaxLength || sums[1] > 1u << kMaxLength) return false;
    }
    return ends && sums[0] == 1u << kMaxLength && (used < 2 || sums[1] == 1u << kMaxLength);
}

// Whether a block that is not the last of its stream, with dynamic codes, can begin at a bit.
__device__ __forceinline__ bool may_begin_block(const u32* words, u64 place) {
    const u64 header = bits_at(words, place);
    if ((header & 7) != 4) return false;
    const u32 literals = u32(header >> 3) & 31, distances = u32(header >> 8) & 31;
    if (literals > 29 || distances > 29) return false;
    const u32 given = (u32(header >> 13) & 15) + 4;
    u64 three = bits_at(words, place + 17);
    u32 sum = 0;
    for (u32 i = 0; i < given; ++i, three >>= 3)
        if (three & 7) sum += 128u >> (three & 7);
    return sum == 128 && has_codes(words, place + 17, literals + 257, distances + 1, given);
}

// Whether a BGZF block begins at a byte.
__device__ __forceinline__ bool is_bgzf(const u32* words, u64 place) {
    if (u32(bits_at(words, place)) != 0x04088b1fu) return false;
    return (bits_at(words, place + 80) & 0xFFFFFFFFFFFFull) == 0x000243420006ull;
}

// First byte behind a member's header at byte ``at``; 0 if the data end before, kInvalid for what
// is none, or unusual.
__device__ u64 behind_header(const u8* bytes, u64 at, u64 end) {
    if (end - at < 10) return 0;
    const u32 flags = bytes[at + 3];
    if (bytes[at] != 0x1f || bytes[at + 1] != 0x8b || bytes[at + 2] != 8 || (flags & 0xE3))
        return kInvalid;
    at += 10;
    if (flags & 4) {
        if (end - at < 2) return 0;
        at += 2 + (bytes[at] | bytes[at + 1] << 8);
        if (at > end) return 0;
    }
    for (u32 text = flags >> 3 & 3; text; text &= text - 1) {
        while (at < end && bytes[at]) ++at;
        if (at++ >= end) return 0;
    }
    return at;
}

// Decode blocks from a place on up to another one, or to the last whole block.
template <class Output, class Notice, class EndOfMember>
__device__ Fate decode_chunk(const u32* words, u64 end, u64 place, u64 stop, Codes& codes,
                             Output& output, const Notice& note, const EndOfMember& end_member) {
    const u8* bytes = reinterpret_cast<const u8*>(words);
    const u64 passed = (stop & ~kMember) + kPatience;
    while (place != stop) {
        if ((place & ~kMember) > (stop & ~kMember)) return kRanOut;
        if (place & kMember) {
            const u64 at = (place & ~kMember) / 8;
            const u64 behind = behind_header(bytes, at, end / 8);
            if (behind == kInvalid && at < end / 8) return kBad;
            if (behind == 0 || at >= end / 8) return kRanOut;
            place = behind * 8;
            note(place, output.done);
            continue;
        }
        Bits bits(words, place);
        bool last;
        const Fate fate = decode_block(bits, end, passed, codes, output, &last);
        if (fate != kWhole) return fate;
        place = bits.position();
        if (last) {
            const u64 at = (place + 7) / 8;
            if ((at + 8) * 8 > end) return kRanOut;
            u32 ending[2] = {0, 0};
            for (u32 i = 0; i < 8; ++i) ending[i / 4] |= u32(bytes[at + i]) << (8 * (i % 4));
            end_member(output.done, ending);
            place = (at + 8) * 8 | kMember;
        }
        note(place, output.done);
    }
    return kWhole;
}

}  // namespace

// Find the first place in each slice of the data at which a chunk can begin.
//
// Grid: one block a slice; block: kFinders. Bytes: the data in, 8 out a slice. Operations: about
// 100 a bit.
extern "C" __global__ void __launch_bounds__(kFinders)
    find_starts(const u32* words, u64 bytes, u32 slice_bytes, u64* starts) {
    __shared__ u64 found;
    if (threadIdx.x == 0) found = kNowhere;
    __syncthreads();
    const u64 begin = u64(blockIdx.x) * slice_bytes * 8;
    const u64 end = min(bytes * 8, begin + u64(slice_bytes) * 8);
    for (u64 base = begin; base < end; base += kFinders * kAtOnce) {
        for (u32 i = 0; i < kAtOnce; ++i) {
            const u64 place = base + i * kFinders + threadIdx.x;
            if (place >= end) break;
            if (place % 8 == 0 && is_bgzf(words, place))
                atomicMin(&found, place);
            else if (may_begin_block(words, place))
                atomicMin(&found, place);
        }
        __syncthreads();
        if (found != kNowhere) break;
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    if (found != kNowhere && found % 8 == 0 && is_bgzf(words, found)) found |= kMember;
    starts[blockIdx.x] = found;
}

// Measure chunks: the place behind the last whole block of each, its symbols, its members' ends.
//
// A chunk goes from its own start to the next; the last one to the end of the data. ``ends`` lists
// the members that end, ``ends_found`` of them, of which ``room`` are written.
//
// Grid: one block a chunk; block: one warp. Bytes: the data in, 16 out a chunk. Operations: about
// 60 a symbol, one after the other.
extern "C" __global__ void __launch_bounds__(kLanes)
    measure_chunks(const u32* words, u64 bytes, const u64* starts, u32 chunks, Chunk* measured,
                   MemberEnd* ends, u32 room, u32* ends_found) {
    __shared__ Codes codes;
    const u32 chunk = blockIdx.x;
    const u64 start = starts[chunk];
    const u64 stop = chunk + 1 < chunks ? starts[chunk + 1] : kNowhere >> 8;
    Counter output;
    Chunk own = {start, 0, kWhole};
    const auto note = [&](u64 place, u32 symbols) {
        own.end = place;
        own.symbols = symbols;
    };
    const auto end_member = [&](u32 symbols, const u32* ending) {
        if (lane_id() != 0) return;
        const u32 number = atomicAdd(ends_found, 1);
        if (number < room) ends[number] = {chunk, symbols, ending[0], ending[1]};
    };
    own.fate = decode_chunk(words, bytes * 8, start, stop, codes, output, note, end_member);
    if (lane_id() == 0) measured[chunk] = own;
}

// Decode chunks to symbols; those of chunk c begin at ``offsets[c]``.
//
// Grid: one block a chunk; block: one warp. Bytes: the data in, 2 out a symbol. Operations: about
// 100 a symbol, one after the other.
extern "C" __global__ void __launch_bounds__(kLanes)
    decode_chunks(const u32* words, u64 bytes, const u64* starts, const Chunk* measured,
                  const u32* offsets, u16* symbols) {
    __shared__ Codes codes;
    const u32 chunk = blockIdx.x;
    Writer output(symbols + offsets[chunk]);
    decode_chunk(words, bytes * 8, starts[chunk], measured[chunk].end, codes, output,
                 [](u64, u32) {}, [](u32, const u32*) {});
}

// Find the 32 KiB that end with each chunk, as symbols that refer to those before its group.
//
// Grid: one block a group of chunks; block: any. Bytes: 128 KiB in and 64 KiB out a chunk (L2).
extern "C" __global__ void
    compose_windows(const u16* symbols, const u32* offsets, u32 chunks, u32 group, u16* windows) {
    const u32 first = blockIdx.x * group;
    for (u32 chunk = first; chunk < min(chunks, first + group); ++chunk) {
        const u32 size = offsets[chunk + 1] - offsets[chunk];
        const u16* before = windows + (u64(chunk) - 1) * kWindow;
        u16* after = windows + u64(chunk) * kWindow;
        for (u32 i = threadIdx.x; i < kWindow; i += blockDim.x) {
            u32 symbol = i + size < kWindow
                             ? 256 + i + size
                             : symbols[u64(offsets[chunk]) + i + size - kWindow];
            if (symbol >= 256 && chunk > first) symbol = before[symbol - 256];
            after[i] = u16(symbol);
        }
        __syncthreads();
    }
}

// Find the bytes of the window before each group; the first is there, and one follows the last.
//
// Grid: 1; block: any. Bytes: 96 KiB in and 32 KiB out a group (L2).
extern "C" __global__ void
    chain_windows(const u16* windows, u32 chunks, u32 group, u8* before_groups) {
    for (u32 first = 0; first < chunks; first += group) {
        const u16* after = windows + (u64(min(chunks, first + group)) - 1) * kWindow;
        const u8* before = before_groups + u64(first / group) * kWindow;
        u8* next = before_groups + u64(first / group + 1) * kWindow;
        for (u32 i = threadIdx.x; i < kWindow; i += blockDim.x) {
            const u32 symbol = after[i];
            next[i] = symbol < 256 ? u8(symbol) : before[symbol - 256];
        }
        __syncthreads();
    }
}

// Turn symbols to bytes.
//
// Grid: one block a chunk, and any number of rows; block: any. Bytes: 2 in and 1 out a symbol.
extern "C" __global__ void
    resolve_symbols(const u16* symbols, const u32* offsets, u32 group, const u16* windows,
                    const u8* before_groups, u8* text) {
    const u32 chunk = blockIdx.x;
    const u16* before = windows + (u64(chunk) - 1) * kWindow;
    const u8* before_group = before_groups + u64(chunk / group) * kWindow;
    const u32 step = gridDim.y * blockDim.x;
    for (u32 i = offsets[chunk] + blockIdx.y * blockDim.x + threadIdx.x; i < offsets[chunk + 1];
         i += step) {
        u32 symbol = symbols[i];
        if (symbol >= 256 && chunk % group != 0) symbol = before[symbol - 256];
        if (symbol >= 256) symbol = before_group[symbol - 256];
        text[i] = u8(symbol);
    }
}

// Compute the checksum of each section of the text, a member or a part of one, from the one before.
//
// ``places`` and ``pieces`` have the first byte and the first piece of each section, and of what
// would follow the last; ``moves``, 32 columns for each power of two, how that many zeros change a
// checksum. ``sums`` are 0 at first.
//
// Grid: a thread for each piece; block: 256. Bytes: the text in. Operations: about 4 a byte.
extern "C" __global__ void __launch_bounds__(256)
    sum_sections(const u8* text, const u32* places, const u32* pieces, u32 sections,
                 const u32* initial, const u32* moves, u32* sums) {
    __shared__ u32 table[4][256];
    __shared__ u32 columns[kPowers * 32];
    u32 sum = threadIdx.x;
    for (u32 i = 0; i < 8; ++i) sum = sum & 1 ? sum >> 1 ^ 0xEDB88320u : sum >> 1;
    table[0][threadIdx.x] = sum;
    for (u32 i = threadIdx.x; i < kPowers * 32; i += blockDim.x) columns[i] = moves[i];
    __syncthreads();
    for (u32 i = 1; i < 4; ++i) {
        sum = table[i - 1][threadIdx.x];
        table[i][threadIdx.x] = table[0][sum & 255] ^ sum >> 8;
        __syncthreads();
    }
    const u32 piece = blockIdx.x * blockDim.x + threadIdx.x;
    if (piece >= pieces[sections]) return;
    // The last section that begins with this piece or before.
    const u32 low = last_that(0u, sections, [&](u32 i) { return pieces[i] <= piece; });
    u32 at = places[low] + (piece - pieces[low]) * kPiece;
    const u32 end = places[low + 1], stop = min(end, at + kPiece);
    sum = piece == pieces[low] ? initial[low] : 0;
    for (; at < stop && at % 4; ++at) sum = table[0][(sum ^ text[at]) & 255] ^ sum >> 8;
    for (; at + 4 <= stop; at += 4) {
        sum ^= *reinterpret_cast<const u32*>(text + at);
        sum = table[3][sum & 255] ^ table[2][sum >> 8 & 255] ^ table[1][sum >> 16 & 255] ^
              table[0][sum >> 24];
    }
    for (; at < stop; ++at) sum = table[0][(sum ^ text[at]) & 255] ^ sum >> 8;
    u32 left = end - stop;
    for (u32 power = 0; left; ++power, left >>= 1) {
        if (!(left & 1)) continue;
        u32 moved = 0;
        for (u32 bit = 0; bit < 32; ++bit)
            if (sum >> bit & 1) moved ^= columns[power * 32 + bit];
        sum = moved;
    }
    atomicXor(sums + low, sum);
}
