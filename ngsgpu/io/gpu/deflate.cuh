// Deflate streams (RFC 1951): bits, Huffman codes, block headers, and a block's symbols, by a warp.
//
// All lanes hold the same bits and take the same branches; they divide the work of building codes
// and of copying matches. On the host (tests) a warp has one lane.
#pragma once

namespace {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

#ifdef __CUDACC__
constexpr u32 kLanes = 32;
__device__ __forceinline__ u32 lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ void sync_lanes() { __syncwarp(); }
__device__ __forceinline__ void count_up(u32* count) { atomicAdd(count, 1); }
__device__ __forceinline__ u32 lanes_with_same(u32 value) {
    return __match_any_sync(0xFFFFFFFFu, value);
}
#else
constexpr u32 kLanes = 1;
inline u32 lane_id() { return 0; }
inline void sync_lanes() {}
inline void count_up(u32* count) { ++*count; }
inline u32 lanes_with_same(u32) { return 1; }
#endif

constexpr u32 kWindow = 32768;   // bytes that a match may reach back
constexpr u32 kMaxLength = 15;   // bits of a code
constexpr u32 kLiterals = 288;   // symbols of the first code
constexpr u32 kDistances = 32;   // of the second
constexpr u32 kEnd = 256;        // symbol that ends a block
constexpr u32 kInvalid = 0xFFFFu;
// Order in which a block's header has the lengths of the code of code lengths.
__device__ const u8 kOrder[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                  11, 4,  12, 3, 13, 2, 14, 1, 15};

// Bits in the order of deflate, from any bit of an array of words on.
//
// The word after the next one is read ahead. Readable must be two words behind the last bit used.
struct Bits {
    const u32* words;
    u64 buffer;
    u32 next, ahead, held;

    __device__ __forceinline__ Bits(const u32* words, u64 position) : words(words) {
        const u32 word = u32(position >> 5), skipped = u32(position & 31);
        buffer = words[word] >> skipped;
        held = 32 - skipped;
        next = word + 1;
        ahead = words[next];
    }
    // At least 32 bits are held afterwards.
    __device__ __forceinline__ void refill() {
        if (held >= 32) return;
        buffer |= u64(ahead) << held;
        held += 32;
        ahead = words[++next];
    }
    __device__ __forceinline__ void drop(u32 count) {
        buffer >>= count;
        held -= count;
    }
    __device__ __forceinline__ u32 take(u32 count) {
        const u32 bits = u32(buffer) & ((1u << count) - 1);
        drop(count);
        return bits;
    }
    __device__ __forceinline__ u64 position() const { return u64(next) * 32 - held; }
};

// A canonical Huffman code: a table for codes of up to kTableBits, counts for longer ones.
template <u32 kTableBits, u32 kSymbols>
struct Code {
    u16 table[1u << kTableBits];  // symbol << 4 | length; 0 for longer codes
    u16 sorted[kSymbols];         // symbols by code
    u32 count[kMaxLength + 1];    // codes of each length
    u32 first[kMaxLength + 1];    // the first of each
    u32 place[kMaxLength + 1];    // its place in ``sorted``
    u32 filled[kMaxLength + 1];

    // Build it from the lengths of its symbols' codes; false if they make no code.
    //
    // As in zlib, a code may be incomplete if it has no word of more than one bit.
    __device__ bool build(const u8* lengths, u32 symbols) {
        const u32 lane = lane_id();
        for (u32 i = lane; i <= kMaxLength; i += kLanes) count[i] = 0;
        for (u32 i = lane; i < 1u << kTableBits; i += kLanes) table[i] = 0;
        sync_lanes();
        for (u32 i = lane; i < symbols; i += kLanes)
            if (lengths[i]) count_up(count + lengths[i]);
        sync_lanes();
        int left = 1;
        u32 code = 0, sum = 0, longest = 0;
        bool good = true;
        for (u32 length = 1; length <= kMaxLength; ++length) {
            const u32 own = count[length];
            code <<= 1;
            if (lane == 0) {
                first[length] = code;
                place[length] = filled[length] = sum;
            }
            code += own;
            sum += own;
            left = 2 * left - int(own);
            if (own) longest = length;
            if (left < 0) good = false, left = 0;
        }
        sync_lanes();
        if (!good || (left > 0 && longest > 1)) return false;
        for (u32 base = 0; base < symbols; base += kLanes) {
            const u32 symbol = base + lane;
            const u32 length = symbol < symbols ? lengths[symbol] : 0;
            const u32 same = lanes_with_same(length);
            const u32 rank = __popc(same & ((1u << lane) - 1));
            const u32 at = length ? filled[length] + rank : 0;
            sync_lanes();
            if (length) {
                if (rank == 0) filled[length] += __popc(same);
                sorted[at] = u16(symbol);
                const u32 own = first[length] + at - place[length];
                if (length <= kTableBits)
                    for (u32 i = __brev(own) >> (32 - length); i < 1u << kTableBits;
                         i += 1u << length)
                        table[i] = u16(symbol << 4 | length);
            }
            sync_lanes();
        }
        return true;
    }

    // Take the next symbol; kInvalid if the bits are no code's.
    __device__ __forceinline__ u32 decode(Bits& bits) const {
        const u32 entry = table[u32(bits.buffer) & ((1u << kTableBits) - 1)];
        if (entry) {
            bits.drop(entry & 15);
            return entry >> 4;
        }
        const u32 reversed = __brev(u32(bits.buffer));
        for (u32 length = kTableBits + 1; length <= kMaxLength; ++length) {
            const u32 rank = (reversed >> (32 - length)) - first[length];
            if (rank < count[length]) {
                bits.drop(length);
                return sorted[place[length] + rank];
            }
        }
        return kInvalid;
    }
};

// The codes of a block, in shared memory.
struct Codes {
    Code<10, kLiterals> literals;
    Code<8, kDistances> distances;
    Code<7, 19> lengths;
    u8 of[kLiterals + kDistances];
};

// Read the header of a block with dynamic codes and build the codes.
__device__ bool read_codes(Bits& bits, Codes& codes) {
    const u32 lane = lane_id();
    bits.refill();
    const u32 literals = bits.take(5) + 257, distances = bits.take(5) + 1;
    const u32 given = bits.take(4) + 4;
    if (literals > 286 || distances > 30) return false;
    for (u32 i = lane; i < 19; i += kLanes) codes.of[i] = 0;
    sync_lanes();
    for (u32 i = 0; i < given; ++i) {
        bits.refill();
        const u32 length = bits.take(3);
        if (lane == 0) codes.of[kOrder[i]] = u8(length);
    }
    sync_lanes();
    if (!codes.lengths.build(codes.of, 19)) return false;
    u32 last = 0;
    for (u32 at = 0; at < literals + distances;) {
        bits.refill();
        const u32 symbol = codes.lengths.decode(bits);
        u32 times = 1, length = symbol;
        if (symbol == kInvalid) return false;
        if (symbol == 16) {
            if (at == 0) return false;
            length = last;
            times = 3 + bits.take(2);
        } else if (symbol > 16) {
            length = 0;
            times = symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
        }
        if (at + times > literals + distances) return false;
        for (u32 i = lane; i < times; i += kLanes) codes.of[at + i] = u8(length);
        at += times;
        last = length;
    }
    sync_lanes();
    return codes.of[kEnd] && codes.literals.build(codes.of, literals) &&
           codes.distances.build(codes.of + literals, distances);
}

// Build the fixed codes.
__device__ bool fix_codes(Codes& codes) {
    for (u32 i = lane_id(); i < kLiterals; i += kLanes)
        codes.of[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    for (u32 i = lane_id(); i < kDistances; i += kLanes) codes.of[kLiterals + i] = 5;
    sync_lanes();
    return codes.literals.build(codes.of, kLiterals) &&
           codes.distances.build(codes.of + kLiterals, kDistances);
}

// Counts symbols.
struct Counter {
    u32 done = 0;
    __device__ __forceinline__ void literal(u32) { ++done; }
    __device__ __forceinline__ void match(u32 length, u32) { done += length; }
    __device__ __forceinline__ void copy(const u8*, u32 length) { done += length; }
    __device__ __forceinline__ void flush() {}
};

// Writes symbols: bytes, or 256 + the place in the unknown window before the first one.
struct Writer {
    u16* symbols;
    u32 done = 0, waiting = 0, own = 0;

    __device__ explicit Writer(u16* symbols) : symbols(symbols) {}
    // Each lane keeps one of up to kLanes literals, which are written together.
    __device__ __forceinline__ void literal(u32 byte) {
        if (lane_id() == waiting) own = byte;
        if (++waiting == kLanes) flush();
    }
    __device__ __forceinline__ void flush() {
        if (lane_id() < waiting) symbols[done + lane_id()] = u16(own);
        done += waiting;
        waiting = 0;
        sync_lanes();
    }
    __device__ __forceinline__ void match(u32 length, u32 distance) {
        flush();
        for (u32 i = lane_id(); i < length; i += kLanes) {
            const u32 back = distance >= length ? i : i % distance;
            const int from = int(done + back) - int(distance);
            symbols[done + i] = from >= 0 ? symbols[from] : u16(256 + kWindow + from);
        }
        done += length;
        sync_lanes();
    }
    __device__ __forceinline__ void copy(const u8* bytes, u32 length) {
        flush();
        for (u32 i = lane_id(); i < length; i += kLanes) symbols[done + i] = bytes[i];
        done += length;
        sync_lanes();
    }
};

enum Fate : u32 { kWhole, kRanOut, kBad };

// What wrong bits mean: close to the end of the data a code may have been cut short.
__device__ __forceinline__ Fate fault(const Bits& bits, u64 end) {
    return bits.position() + 64 > end ? kRanOut : kBad;
}

// Decode the block that begins at ``bits``, which moves behind it.
//
// Args: end, bits of the data; passed, the first of them at which a block without an end is given
// up; last, whether it is the last of its stream.
template <class Output>
__device__ Fate decode_block(Bits& bits, u64 end, u64 passed, Codes& codes, Output& output,
                             bool* last) {
    bits.refill();
    *last = bits.take(1);
    const u32 type = bits.take(2);
    if (type == 0) {
        const u64 at = (bits.position() + 7) / 8;
        const u8* bytes = reinterpret_cast<const u8*>(bits.words) + at;
        if ((at + 4) * 8 > end) return kRanOut;
        const u32 length = bytes[0] | bytes[1] << 8, inverse = bytes[2] | bytes[3] << 8;
        if (length != (inverse ^ 0xFFFFu)) return fault(bits, end);
        if ((at + 4 + length) * 8 > end) return kRanOut;
        output.copy(bytes + 4, length);
        bits = Bits(bits.words, (at + 4 + length) * 8);
        return kWhole;
    }
    if (type == 3) return fault(bits, end);
    if (!(type == 1 ? fix_codes(codes) : read_codes(bits, codes)))
        return fault(bits, end);
    const u32 limit = u32((passed < end ? passed : end) / 32) + 2;
    while (true) {
        bits.refill();
        const u32 symbol = codes.literals.decode(bits);
        if (symbol < kEnd) {
            output.literal(symbol);
        } else if (symbol == kEnd) {
            break;
        } else {
            if (symbol > 285) return fault(bits, end);
            u32 length = symbol - 254;
            if (symbol == 285) {
                length = 258;
            } else if (symbol > 264) {
                const u32 extra = (symbol - 261) >> 2;
                length = ((4 + ((symbol - 261) & 3)) << extra) + 3 + bits.take(extra);
            }
            bits.refill();
            const u32 code = codes.distances.decode(bits);
            if (code > 29) return fault(bits, end);
            u32 distance = code + 1;
            if (code > 3) {
                const u32 extra = (code >> 1) - 1;
                distance = ((2 + (code & 1)) << extra) + 1 + bits.take(extra);
            }
            if (distance > kWindow) return fault(bits, end);
            output.match(length, distance);
        }
        if (bits.next > limit) return kRanOut;
    }
    output.flush();
    return bits.position() > end ? kRanOut : kWhole;
}

}  // namespace
