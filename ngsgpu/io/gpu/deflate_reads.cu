// BGZF blocks of reads, as ngsgpu/io/compress/reads makes them: a block of threads for each.
//
// Threads take lines. What is copied in a line depends on other lines' text alone, so each line is
// gone through three times: to count symbols, to learn how many bits it takes, and to write them.
// The comments of the CPU's code say what is decided and why; names are the same.
namespace {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 kThreads = 256;
constexpr u32 kBlockBytes = 65280;
constexpr u32 kPieceBlocks = 16;      // _BLOCKS of deflate_reads.py
constexpr u32 kSlot = 1u << 16;      // bytes of a block of BGZF, at most
constexpr u32 kHeaderBytes = 18, kFooterBytes = 8;
constexpr u32 kMostLines = 4096;
constexpr u32 kWindow = 1u << 15;
constexpr u32 kMer = 16, kStride = 16, kFineStride = 8;
constexpr u32 kSlots = 1u << 11;
constexpr u32 kSampled = 60;
constexpr u32 kLeast = 5, kLeastField = 4, kShortRun = 4, kLongRun = 8;
constexpr u32 kLiterals = 286, kDistances = 30;
constexpr u32 kEnd = 256, kFirstLength = 257, kFirstDistance = 288;
constexpr u32 kSymbols = kFirstDistance + kDistances;
constexpr u32 kMostBits = 14, kMostLengthBits = 7, kLengthCodes = 19;
constexpr u32 kNowhere = ~0u;
__device__ const u8 kHeader[kHeaderBytes] = {0x1f, 0x8b, 8, 4, 0, 0,  0, 0, 0,
                                             0xff, 6,    0, 66, 67, 2, 0, 0, 0};
__device__ const u8 kLengthOrder[kLengthCodes] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                  11, 4,  12, 3, 13, 2, 14, 1, 15};

// What all threads of a block share.
struct Shared {
    u16 lines[kMostLines + 1];   // where lines begin, and the block's size
    u8 kinds[kMostLines + 1];    // whether each is a sequence; 0 behind the last
    u32 tables[2 * kSlots];      // first place of 16-mers in each half
    u32 counts[kSymbols];
    u32 codes[kSymbols];         // bits << 6 | length
    u8 lengths[kSymbols];
    u32 keys[kLiterals];
    u32 nodes[kLiterals];
    u16 runs[kSymbols];
    u32 numbers[kMostBits + 2];
    u32 of_threads[kThreads];
    u32 sums[256];               // table of the checksum
    u32 sequence_bytes, repeated, sequences, sampled, most, used, header_bits, sum;
};

// The sum of the values of earlier threads; the sum of all in *total.
__device__ u32 sum_before(u32 value, Shared& shared, u32* total) {
    const u32 own = threadIdx.x;
    shared.of_threads[own] = value;
    __syncthreads();
    u32 sum = value;
    for (u32 step = 1; step < blockDim.x; step *= 2) {
        const u32 more = own >= step ? shared.of_threads[own - step] : 0;
        __syncthreads();
        shared.of_threads[own] = sum += more;
        __syncthreads();
    }
    *total = shared.of_threads[blockDim.x - 1];
    __syncthreads();
    return sum - value;
}

__device__ u32 length_symbol(u32 length) {
    if (length == 258) return 28;
    u32 extra = 0;
    while ((length - 3) >> (extra + 3)) ++extra;
    return 4 * extra + ((length - 3) >> extra);
}
__device__ u32 length_extra(u32 symbol) { return symbol < 8 || symbol == 28 ? 0 : symbol / 4 - 1; }
__device__ u32 length_first(u32 symbol) {
    if (symbol == 28) return 258;
    return symbol < 8 ? 3 + symbol : 3 + ((4 + symbol % 4) << (symbol / 4 - 1));
}
__device__ u32 distance_symbol(u32 distance) {
    u32 extra = 0;
    while ((distance - 1) >> (extra + 2)) ++extra;
    return 2 * extra + ((distance - 1) >> extra);
}
__device__ u32 distance_extra(u32 symbol) { return symbol < 4 ? 0 : symbol / 2 - 1; }
__device__ u32 distance_first(u32 symbol) {
    return symbol < 4 ? 1 + symbol : 1 + ((2 + symbol % 2) << (symbol / 2 - 1));
}

// Puts bits into zeroed words, from any bit on; neighbours may share the first and the last word.
struct BitWriter {
    u32* words;
    u64 buffer = 0;
    u32 held;
    bool is_first = true;

    __device__ BitWriter(u32* all, u32 place) : words(all + place / 32), held(place % 32) {}
    __device__ void put(u32 bits, u32 count) {
        buffer |= u64(bits) << held;
        held += count;
        if (held < 32) return;
        if (is_first)
            atomicOr(words, u32(buffer));
        else
            *words = u32(buffer);
        is_first = false;
        ++words;
        buffer >>= 32;
        held -= 32;
    }
    __device__ void code(u32 entry) { put(entry >> 6, entry & 63); }
    __device__ void finish() {
        if (held) atomicOr(words, u32(buffer));
    }
};

// Counts symbols.
struct Counter {
    u32* counts;
    __device__ void literal(u32 byte) { atomicAdd(counts + byte, 1); }
    __device__ void copy(u32 length, u32 distance) {
        atomicAdd(counts + kFirstLength + length_symbol(length), 1);
        atomicAdd(counts + kFirstDistance + distance_symbol(distance), 1);
    }
};

// Counts bits.
struct Measure {
    const u8* lengths;
    u32 bits = 0;
    __device__ void literal(u32 byte) { bits += lengths[byte]; }
    __device__ void copy(u32 length, u32 distance) {
        const u32 symbol = length_symbol(length), far = distance_symbol(distance);
        bits += lengths[kFirstLength + symbol] + length_extra(symbol);
        bits += lengths[kFirstDistance + far] + distance_extra(far);
    }
};

// Writes them.
struct Emitter {
    const u32* codes;
    BitWriter writer;
    __device__ void literal(u32 byte) { writer.code(codes[byte]); }
    __device__ void copy(u32 length, u32 distance) {
        const u32 symbol = length_symbol(length), far = distance_symbol(distance);
        writer.code(codes[kFirstLength + symbol]);
        writer.put(length - length_first(symbol), length_extra(symbol));
        writer.code(codes[kFirstDistance + far]);
        writer.put(distance - distance_first(far), distance_extra(far));
    }
};

__device__ __noinline__ u32 common(const u8* first, const u8* second, u32 most) {
    u32 at = 0;
    while (at < most && first[at] == second[at]) ++at;
    return at;
}

__device__ u64 word_at(const u8* place) {
    u64 word = 0;
    for (u32 i = 0; i < 8; ++i) word |= u64(place[i]) << 8 * i;
    return word;
}

__device__ __noinline__ u32 slot_of(const u8* place) {
    constexpr u64 multiplier = 0x1E3779B97F4A7C15ull;
    const u64 mixed = (word_at(place) * multiplier) ^ word_at(place + 8);
    return u32((mixed * multiplier) >> 40) & (kSlots - 1);
}

// A block of reads and what was found out about it.
struct Block {
    const u8* text;
    u32 size, count, least;
    bool are_looked_up;
    Shared& shared;

    __device__ u32 begin(u32 line) const { return shared.lines[line]; }
    // The bytes that a line writes: a sequence leaves its line end to the line before.
    __device__ u32 own_begin(u32 line) const {
        return line ? begin(line) + shared.kinds[line] : 0;
    }
    __device__ u32 own_end(u32 line) const { return begin(line + 1) + shared.kinds[line + 1]; }

    __device__ bool is_sequence(u32 line) const {
        const u32 from = begin(line) + 1, end = begin(line + 1);
        if (end < from + kMer) return false;
        for (u32 i = 0; i < kMer; ++i) {
            const u8 base = text[from + i];
            if (base != 'A' && base != 'C' && base != 'G' && base != 'T' && base != 'N')
                return false;
        }
        return true;
    }
    __device__ void insert(u32 from, u32 end) {
        for (u32 at = from; at + kMer <= end; at += kStride)
            atomicMin(shared.tables + at / kWindow * kSlots + slot_of(text + at), at);
    }
    __device__ u32 find(u32 at) const {
        const u32 slot = slot_of(text + at), half = at / kWindow;
        u32 place = shared.tables[half * kSlots + slot];
        if (place < at) return place;
        if (half == 0) return kNowhere;
        place = shared.tables[slot];
        return place != kNowhere && at - place <= kWindow ? place : kNowhere;
    }
    __device__ bool repeats(u32 from, u32 end) const {
        for (u32 at = from; at + kMer <= end; at += 3) {
            const u32 place = find(at);
            if (place != kNowhere && common(text + at, text + place, kMer) == kMer) return true;
        }
        return false;
    }
};

// Hands literals and copies on, in order.
template <class Output>
struct Steps {
    const u8* text;
    u32 at;
    Output& output;

    __device__ void literals(u32 end) {
        for (; at < end; ++at) output.literal(text[at]);
    }
    __device__ void put(u32 place, u32 length, u32 distance) {
        if (length == 0) return;
        literals(place);
        at += length;
        while (length > 0) {
            const u32 own = length >= 261 ? 258 : length > 258 ? length - 3 : length;
            output.copy(own, distance);
            length -= own;
        }
    }
};

template <class Output>
__device__ void put_runs(const Block& block, u32 at, u32 end, Steps<Output>& steps) {
    const u8* text = block.text;
    for (at = max(at, 1u); at + block.least <= end;) {
        const u32 length = common(text + at, text + at - 1, end - at);
        if (length >= block.least) steps.put(at, length, 1);
        at += max(length, 1u);
    }
}

template <class Output>
__device__ void put_sequence(const Block& block, u32 begin, u32 end, Steps<Output>& steps) {
    const u8* text = block.text;
    u32 done = begin;
    for (u32 at = begin; at + kMer <= end;) {
        const u32 place = block.find(at);
        const u32 length = place != kNowhere ? common(text + at, text + place, end - at) : 0;
        if (length < kMer) {
            ++at;
            continue;
        }
        u32 back = 0;
        while (at - back > done && place > back && text[at - back - 1] == text[place - back - 1])
            ++back;
        steps.put(at - back, length + back, at - place);
        at += length;
        done = at;
    }
}

__device__ __noinline__ u32 separator(const u8* text, u32 at, u32 end) {
    for (u32 i = at; i < min(end, at + 64); ++i)
        if (text[i] == ' ' || text[i] == ':') return i;
    return end;
}

template <class Output>
__device__ void put_fields(const u8* text, u32 at, u32 end, u32 other, u32 other_end,
                           Steps<Output>& steps) {
    while (true) {
        const u32 own = separator(text, at, end), others = separator(text, other, other_end);
        if (own >= end || others >= other_end) return;
        const u32 length = common(text + own, text + others, min(end - own, other_end - others));
        if (length == 0) return;
        if (length >= kLeastField && own - others <= kWindow) steps.put(own, length, own - others);
        at = own + length;
        other = others + length;
    }
}

template <class Output>
__device__ void put_line(const Block& block, u32 line, Steps<Output>& steps) {
    const u8* text = block.text;
    const u32 begin = block.begin(line), end = block.begin(line + 1);
    const u8 first = end > begin + 1 ? text[begin + 1] : 0;
    if (line < 4 || (first == '+' && end - begin == 2)) return;
    u32 back = 4, skipped = 0, other = block.begin(line - 4);
    u32 length = common(text + begin, text + other, min(end - begin, block.begin(line - 3) - other));
    if (first == '+' && end - begin == block.begin(line - 1) - block.begin(line - 2)) {
        back = skipped = 2;
        other = block.begin(line - 2);
        length = 2 + common(text + begin + 2, text + other + 2, end - begin - 2);
    } else if (first == '>') {
        for (u32 nearer = 3; nearer >= 2; --nearer) {
            const u32 place = block.begin(line - nearer);
            const u32 own = common(text + begin, text + place,
                                   min(end - begin, block.begin(line - nearer + 1) - place));
            if (own > length) length = own, back = nearer, other = place;
        }
    }
    const u32 other_end = block.begin(line - back + 1);
    if (length < skipped + kLeast || begin - other > kWindow)
        length = 0;
    else
        steps.put(begin + skipped, length - skipped, begin - other);
    const u32 most = min(end - begin, other_end - other) - length;
    u32 tail = 0;
    while (tail < most && text[end - tail - 1] == text[other_end - tail - 1]) ++tail;
    u32 joined = tail > 0 && block.shared.kinds[line + 1];
    if (tail + joined < kLeast || end - other_end > kWindow) tail = joined = 0;
    const u32 at = begin + length, stop = end - tail;
    if (length > 0 && (first == '@' || first == '>'))
        put_fields(text, at, stop, other + length, other_end, steps);
    else
        put_runs(block, at, stop, steps);
    steps.put(stop, tail + joined, end - other_end);
}

template <class Output>
__device__ void go_through(const Block& block, u32 line, Output& output) {
    Steps<Output> steps{block.text, block.own_begin(line), output};
    if (!block.shared.kinds[line])
        put_line(block, line, steps);
    else if (block.are_looked_up)
        put_sequence(block, block.begin(line) + 1, block.begin(line + 1), steps);
    steps.literals(block.own_end(line));
}

// Find the lines; false if there are too many.
__device__ bool find_lines(Block& block) {
    const u32 piece = (block.size + blockDim.x - 1) / blockDim.x;
    const u32 from = max(1u, threadIdx.x * piece);
    const u32 stop = min(block.size, (threadIdx.x + 1) * piece);
    u32 own = 0;
    for (u32 at = from; at < stop; ++at) own += block.text[at] == '\n';
    u32 total;
    u32 line = 1 + sum_before(own, block.shared, &total);
    block.count = total + 1;
    if (block.count > kMostLines) return false;
    for (u32 at = from; at < stop; ++at)
        if (block.text[at] == '\n') block.shared.lines[line++] = u16(at);
    if (threadIdx.x == 0) {
        block.shared.lines[0] = 0;
        block.shared.lines[block.count] = u16(block.size);
        block.shared.kinds[block.count] = 0;
    }
    __syncthreads();
    return true;
}

// See _survey of the CPU; whether they are reads.
__device__ bool survey(Block& block) {
    Shared& shared = block.shared;
    for (u32 line = threadIdx.x; line < block.count; line += blockDim.x) {
        const u32 begin = block.begin(line) + 1, end = block.begin(line + 1);
        const bool is_sequence = block.is_sequence(line);
        shared.kinds[line] = is_sequence;
        if (!is_sequence) continue;
        atomicAdd(&shared.sequence_bytes, end - begin);
        block.insert(begin, end);
    }
    __syncthreads();
    for (u32 line = threadIdx.x; line < block.count; line += blockDim.x) {
        if (line & kSampled) continue;
        const u32 begin = block.begin(line), end = block.begin(line + 1);
        atomicAdd(&shared.sampled, end - begin);
        for (u32 at = begin; at < end; ++at) atomicAdd(shared.counts + block.text[at], 1);
        if (!shared.kinds[line]) continue;
        atomicAdd(&shared.sequences, 1);
        atomicAdd(&shared.repeated, block.repeats(begin + 1, end));
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < 256; i += blockDim.x) atomicMax(&shared.most, shared.counts[i]);
    __syncthreads();
    for (u32 i = threadIdx.x; i < 256; i += blockDim.x) shared.counts[i] = 0;
    block.least = 3 * shared.most > shared.sampled ? kLongRun : kShortRun;
    block.are_looked_up = 4 * shared.repeated > shared.sequences;
    if (block.are_looked_up)
        for (u32 line = threadIdx.x; line < block.count; line += blockDim.x)
            if (shared.kinds[line])
                block.insert(block.begin(line) + 1 + kFineStride, block.begin(line + 1));
    __syncthreads();
    return 4 * shared.sequence_bytes >= block.size;
}

// The numbers of codes of each length, from sorted frequencies; by one thread.
__device__ void number_lengths(u32* nodes, u32 used, u32 limit, u32* numbers) {
    nodes[0] += nodes[1];
    u32 root = 0, leaf = 2;
    for (u32 node = 1; node + 1 < used; ++node) {
        u32 total = 0;
        for (u32 i = 0; i < 2; ++i) {
            if (leaf >= used || (root < node && nodes[root] < nodes[leaf])) {
                total += nodes[root];
                nodes[root++] = node;
            } else {
                total += nodes[leaf++];
            }
        }
        nodes[node] = total;
    }
    nodes[used - 2] = 0;
    for (int node = int(used) - 3; node >= 0; --node) nodes[node] = nodes[nodes[node]] + 1;
    for (u32 length = 0; length <= limit; ++length) numbers[length] = 0;
    u32 room = 1, depth = 0;
    for (int node = int(used) - 2; room > 0; ++depth) {
        u32 inner = 0;
        for (; node >= 0 && nodes[node] == depth; --node) ++inner;
        numbers[min(depth, limit)] += room - inner;
        room = 2 * inner;
    }
    u32 total = 0;
    for (u32 length = 1; length <= limit; ++length) total += numbers[length] << (limit - length);
    for (; total > 1u << limit; --total) {
        --numbers[limit];
        u32 length = limit - 1;
        while (numbers[length] == 0) --length;
        --numbers[length];
        numbers[length + 1] += 2;
    }
}

// Make lengths and entries of an optimal code; all threads call it.
__device__ __noinline__ void make_code(const u32* counts, u32 symbols, u32 limit, u8* lengths, u32* codes,
                          Shared& shared) {
    if (threadIdx.x == 0) shared.used = 0;
    __syncthreads();
    for (u32 symbol = threadIdx.x; symbol < symbols; symbol += blockDim.x) {
        lengths[symbol] = 0;
        codes[symbol] = 0;
        if (counts[symbol] == 0) continue;
        u32 rank = 0;
        for (u32 other = 0; other < symbols; ++other)
            rank += counts[other] && (counts[other] < counts[symbol] ||
                                      (counts[other] == counts[symbol] && other < symbol));
        shared.keys[rank] = symbol;
        shared.nodes[rank] = counts[symbol];
        atomicAdd(&shared.used, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0 && shared.used == 1) lengths[shared.keys[0]] = 1;
    if (threadIdx.x == 0 && shared.used > 1) {
        number_lengths(shared.nodes, shared.used, limit, shared.numbers);
        u32 at = 0;
        for (u32 length = limit; length > 0; --length)
            for (u32 i = 0; i < shared.numbers[length]; ++i)
                lengths[shared.keys[at++]] = u8(length);
    }
    if (threadIdx.x == 0) {
        u32 following[kMostBits + 2] = {};
        for (u32 symbol = 0; symbol < symbols; ++symbol) ++following[lengths[symbol]];
        following[0] = 0;
        u32 code = 0;
        for (u32 length = 1; length <= kMostBits; ++length) {
            const u32 own = following[length];
            following[length] = code;
            code = (code + own) << 1;
        }
        for (u32 symbol = 0; symbol < symbols; ++symbol) {
            const u32 length = lengths[symbol];
            if (length) codes[symbol] = __brev(following[length]++) >> (32 - length) << 6 | length;
        }
    }
    __syncthreads();
}

// Put symbols for lengths and for repeats of them, each below its further bits; their number.
__device__ u32 put_repeats(const u8* lengths, u32 literals, u32 distances, u16* runs,
                           u32* counts) {
    const u32 all = literals + distances;
    auto length_at = [&](u32 at) -> u32 {
        return lengths[at < literals ? at : kFirstDistance + at - literals];
    };
    u32 count = 0;
    for (u32 at = 0; at < all;) {
        const u32 length = length_at(at);
        u32 same = 1, symbol = length, more = 0;
        while (at + same < all && length_at(at + same) == length) ++same;
        if (length == 0 && same >= 3) {
            same = min(same, 138u);
            symbol = same <= 10 ? 17 : 18;
            more = same <= 10 ? same - 3 : same - 11;
        } else if (length > 0 && same >= 4) {
            same = min(same - 1, 6u);
            runs[count++] = u16(length);
            ++counts[length];
            ++at;
            symbol = 16;
            more = same - 3;
        } else {
            same = 1;
        }
        runs[count++] = u16(symbol | more << 5);
        ++counts[symbol];
        at += same;
    }
    return count;
}

// Put the header of the stream and set header_bits; all threads call it.
__device__ void put_header(Shared& shared, u32* words) {
    // What the codes were made of is needed no more but for counts.
    __shared__ u32 counts[kLengthCodes], codes[kLengthCodes], count, literals, distances;
    __shared__ u8 lengths[kLengthCodes];
    if (threadIdx.x == 0) {
        for (u32 i = 0; i < kLengthCodes; ++i) counts[i] = 0;
        literals = kLiterals;
        distances = kDistances;
        while (literals > kFirstLength && shared.lengths[literals - 1] == 0) --literals;
        while (distances > 1 && shared.lengths[kFirstDistance + distances - 1] == 0) --distances;
        count = put_repeats(shared.lengths, literals, distances, shared.runs, counts);
    }
    __syncthreads();
    make_code(counts, kLengthCodes, kMostLengthBits, lengths, codes, shared);
    if (threadIdx.x == 0) {
        u32 given = kLengthCodes, bits = 17;
        while (lengths[kLengthOrder[given - 1]] == 0) --given;
        BitWriter writer(words, 8 * kHeaderBytes);
        writer.put(5 | (literals - kFirstLength) << 3 | (distances - 1) << 8 | (given - 4) << 13,
                   17);
        for (u32 i = 0; i < given; ++i) writer.put(lengths[kLengthOrder[i]], 3);
        bits += 3 * given;
        for (u32 i = 0; i < count; ++i) {
            const u32 symbol = shared.runs[i] & 31;
            const u32 more = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
            writer.code(codes[symbol]);
            writer.put(shared.runs[i] >> 5, more);
            bits += (codes[symbol] & 63) + more;
        }
        writer.finish();
        shared.header_bits = bits;
    }
    __syncthreads();
}

// The CRC-32 of the block, in shared.sum.
//
// Args: moves, what each bit of a register becomes by 1, 2, 4, ... bytes of zeros.
__device__ void sum_block(const Block& block, const u32* moves) {
    Shared& shared = block.shared;
    for (u32 i = threadIdx.x; i < 256; i += blockDim.x) {
        u32 sum = i;
        for (u32 bit = 0; bit < 8; ++bit) sum = sum & 1 ? sum >> 1 ^ 0xEDB88320u : sum >> 1;
        shared.sums[i] = sum;
    }
    __syncthreads();
    const u32 piece = (block.size + blockDim.x - 1) / blockDim.x;
    const u32 from = min(block.size, threadIdx.x * piece), stop = min(block.size, from + piece);
    u32 sum = threadIdx.x == 0 ? ~0u : 0;
    for (u32 at = from; at < stop; ++at)
        sum = shared.sums[(sum ^ block.text[at]) & 255] ^ sum >> 8;
    u32 left = block.size - stop;
    for (u32 power = 0; left; ++power, left >>= 1) {
        if (!(left & 1)) continue;
        u32 moved = 0;
        for (u32 bit = 0; bit < 32; ++bit)
            if (sum >> bit & 1) moved ^= moves[power * 32 + bit];
        sum = moved;
    }
    atomicXor(&shared.sum, sum);
    __syncthreads();
}

// Bits of all symbols and of what follows on them; by all threads.
__device__ u32 all_bits(Shared& shared) {
    u32 own = 0, total;
    for (u32 symbol = threadIdx.x; symbol < kSymbols; symbol += blockDim.x) {
        u32 bits = shared.lengths[symbol];
        if (symbol >= kFirstDistance)
            bits += distance_extra(symbol - kFirstDistance);
        else if (symbol >= kFirstLength && symbol < kLiterals)
            bits += length_extra(symbol - kFirstLength);
        own += shared.counts[symbol] * bits;
    }
    sum_before(own, shared, &total);
    return total;
}

}  // namespace

// Make a BGZF block of each 65,280 bytes of pieces of text.
//
// Grid: 16 blocks for each piece. Block: 256 threads.
// Args: text, pieces with room for 16 blocks each; pieces, the bytes of each; most, bytes of a
// stream, else the block is stored; moves, see sum_block; out, 64 KiB for each block, of which the
// first are written; sizes, bytes of each block, 0 if it is not reads or behind its piece.
extern "C" __global__ void __launch_bounds__(kThreads)
    deflate_reads(const u8* text, const u32* pieces, u32 most, const u32* moves, u8* out,
                  u32* sizes) {
    __shared__ Shared shared;
    const u32 bytes = pieces[blockIdx.x / kPieceBlocks];
    const u32 begin = blockIdx.x % kPieceBlocks * kBlockBytes;
    if (begin >= bytes) {
        if (threadIdx.x == 0) sizes[blockIdx.x] = 0;
        return;
    }
    const u8* own = text + u64(blockIdx.x) * kBlockBytes;
    Block block{own, min(kBlockBytes, bytes - begin), 0, 0, false, shared};
    u8* slot = out + u64(blockIdx.x) * kSlot;
    u32* words = reinterpret_cast<u32*>(slot);
    for (u32 i = threadIdx.x; i < kSlot / 4; i += blockDim.x) words[i] = 0;
    for (u32 i = threadIdx.x; i < kSymbols; i += blockDim.x) {
        shared.counts[i] = shared.codes[i] = 0;
        shared.lengths[i] = 0;
    }
    for (u32 i = threadIdx.x; i < 2 * kSlots; i += blockDim.x) shared.tables[i] = kNowhere;
    if (threadIdx.x == 0)
        shared.sequence_bytes = shared.repeated = shared.sequences = shared.sampled = shared.most =
            shared.sum = 0;
    __syncthreads();
    if (!find_lines(block) || !survey(block)) {
        if (threadIdx.x == 0) sizes[blockIdx.x] = 0;
        return;
    }
    Counter counter{shared.counts};
    for (u32 line = threadIdx.x; line < block.count; line += blockDim.x)
        go_through(block, line, counter);
    if (threadIdx.x == 0) atomicAdd(shared.counts + kEnd, 1);
    __syncthreads();
    make_code(shared.counts, kLiterals, kMostBits, shared.lengths, shared.codes, shared);
    make_code(shared.counts + kFirstDistance, kDistances, kMostBits,
              shared.lengths + kFirstDistance, shared.codes + kFirstDistance, shared);
    put_header(shared, words);
    const u32 bits = shared.header_bits + all_bits(shared);
    u32 length = (bits + 7) / 8;
    if (bits > 8 * most) {
        length = 5 + block.size;
        const u32 lengths = block.size | (block.size ^ 0xFFFFu) << 16;
        for (u32 i = threadIdx.x; i < 5; i += blockDim.x)
            slot[kHeaderBytes + i] = i ? u8(lengths >> 8 * (i - 1)) : 1;
        for (u32 i = threadIdx.x; i < block.size; i += blockDim.x)
            slot[kHeaderBytes + 5 + i] = block.text[i];
    } else {
        u32 place = 8 * kHeaderBytes + shared.header_bits;
        for (u32 base = 0; base < block.count; base += blockDim.x) {
            const u32 line = base + threadIdx.x;
            Measure measure{shared.lengths};
            if (line < block.count) go_through(block, line, measure);
            u32 total;
            const u32 before = sum_before(measure.bits, shared, &total);
            if (line < block.count) {
                Emitter emitter{shared.codes, BitWriter(words, place + before)};
                go_through(block, line, emitter);
                if (line + 1 == block.count) emitter.writer.code(shared.codes[kEnd]);
                emitter.writer.finish();
            }
            place += total;
        }
    }
    sum_block(block, moves);
    if (threadIdx.x > 0) return;
    const u32 whole = kHeaderBytes + length + kFooterBytes;
    for (u32 i = 0; i < kHeaderBytes - 2; ++i) slot[i] = kHeader[i];
    slot[kHeaderBytes - 2] = u8(whole - 1);
    slot[kHeaderBytes - 1] = u8((whole - 1) >> 8);
    for (u32 i = 0; i < 4; ++i) {
        slot[kHeaderBytes + length + i] = u8(~shared.sum >> 8 * i);
        slot[kHeaderBytes + length + 4 + i] = u8(block.size >> 8 * i);
    }
    sizes[blockIdx.x] = whole;
}
