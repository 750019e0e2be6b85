// Records in and out: names, UMIs, writing; as ngsgpu/trim/records.py.
#pragma once
#include "ngsgpu/run/record.cuh"
#include "ngsgpu/trim/cuda/cuts.cuh"

namespace {

// Places of a UMI, as UMI_PLACES of ngsgpu/trim/rules.py.
enum UmiPlace { kNoUmi, kIndex1, kIndex2, kRead1, kRead2, kPerIndex, kPerRead };

constexpr u32 kShortestName = 5;
constexpr u32 kShortestIndex = 2;

struct Mates : Records<u8> {
    __device__ __forceinline__ Read read(u32 unit) const {
        const u32 i = number(unit);
        return {raw + seq_start[i], raw + qual_start[i], 0, lengths[i]};
    }
};

// Bytes ``start`` up to ``end``.
struct Piece {
    const u8* bytes;
    u32 start;
    u32 end;

    __device__ __forceinline__ u32 size() const { return end - start; }
};

// The name of a record, without @.
__device__ __forceinline__ Piece name_of(const Mates& mates, u32 unit) {
    const u32 i = mates.number(unit);
    const u32 start = record_start(mates.line_end, mates.begin, i) + 1;
    return {mates.raw, start, without_return(mates.raw, start, mates.line_end[4 * i])};
}

// The line behind the bases, with its plus.
__device__ __forceinline__ Piece plus_of(const Mates& mates, u32 unit) {
    const u32 i = mates.number(unit);
    const u32 start = mates.line_end[4 * i + 1] + 1;
    u32 end = mates.qual_start[i];
    while (end > start && (mates.raw[end - 1] == '\n' || mates.raw[end - 1] == '\r')) --end;
    return {mates.raw, start, end};
}

// Where the last of some bytes of a name is that may begin an index, kNone if there is none; the
// byte before a name, an @, is the first that is looked at.
template <typename Wanted>
__device__ __forceinline__ u32 index_mark(const Piece& name, Wanted wanted) {
    if (name.size() + 1 < kShortestName) return kNone;
    for (u32 at = name.end - kShortestIndex; at >= name.start; --at)
        if (wanted(name.bytes[at - 1])) return at - 1;
    return kNone;
}

// As fastp: what stands behind the last colon of a name, up to a plus sign.
__device__ __forceinline__ Piece first_index(const Piece& name) {
    u32 stop = name.end;
    const u32 mark = index_mark(name, [&](u8 byte) { return byte == ':'; });
    if (mark == kNone) return {name.bytes, 0, 0};
    for (u32 at = name.end - kShortestIndex; at > mark + 1; --at)
        if (name.bytes[at - 1] == '+') stop = at - 1;
    return {name.bytes, mark + 1, stop};
}

// As fastp: what stands behind the last colon or plus sign of a name.
__device__ __forceinline__ Piece last_index(const Piece& name) {
    const u32 mark = index_mark(name, [](u8 byte) { return byte == ':' || byte == '+'; });
    if (mark == kNone) return {name.bytes, 0, 0};
    return {name.bytes, mark + 1, name.end};
}

__device__ __forceinline__ bool is_base(u8 letter) {
    const u8 upper = letter & 0xdf;
    return upper == 'A' || upper == 'C' || upper == 'G' || upper == 'T' || upper == 'N';
}

// The first or last index of a name, as _index of ngsgpu/trim/records.py.
__device__ __forceinline__ Piece index_of(const Piece& name, bool last) {
    u32 begin = name.end;
    while (begin > name.start && name.bytes[begin - 1] != ':' && name.bytes[begin - 1] != '#')
        --begin;
    if (begin == name.start) return {name.bytes, 0, 0};
    u32 first_end = kNone, start = begin, at = begin;
    for (; at < name.end; ++at) {
        const u8 letter = name.bytes[at];
        if (letter == '+' || letter == '-') {
            if (first_end == kNone) first_end = at;
            start = at + 1;
        } else if (!is_base(letter)) {
            break;
        }
    }
    if (at < name.end && name.bytes[at] != '/' && name.bytes[at] != ' ' && name.bytes[at] != '\t')
        return {name.bytes, 0, 0};
    if (last) return {name.bytes, start, at};
    return {name.bytes, begin, first_end == kNone ? at : first_end};
}

// Where the first word of a name ends, which a tab may end as well as a space.
__device__ __forceinline__ u32 word_end(const Piece& name, bool at_tabs) {
    u32 at = name.start;
    while (at < name.end && name.bytes[at] != ' ' && !(at_tabs && name.bytes[at] == '\t')) ++at;
    return at;
}

// The first bases of a read.
__device__ __forceinline__ Piece first_bases(const Mates& mates, u32 unit, const Rules& rules) {
    const u32 i = mates.number(unit);
    return {mates.raw + mates.seq_start[i], 0, u32(min(mates.lengths[i], rules.umi_length))};
}

// What is put into both names of a pair, between a colon, the prefix and an underscore.
struct Umi {
    Piece first;
    Piece second;
    bool there;
    bool two;
    bool lacks_index;
    u32 behind;  // bytes of the first word of a name that stay behind the UMI

    __device__ __forceinline__ u32 size(const Rules& rules) const {
        if (!there) return 0;
        const u32 prefix = rules.umi_prefix_length > 0 ? rules.umi_prefix_length + 1 : 0;
        return 1 + prefix + first.size() + two + second.size();
    }
};

__device__ __forceinline__ Umi umi_of(const Mates& mates1, const Mates& mates2, u32 unit,
                                      const Rules& rules) {
    Umi umi = {{nullptr, 0, 0}, {nullptr, 0, 0}, false, false, false, 0};
    const int place = rules.umi;
    if (place == kNoUmi) return umi;
    const bool both = place == kPerIndex || place == kPerRead;
    const bool index1 = place == kIndex1 || place == kPerIndex;
    const bool index2 = rules.paired && (place == kIndex2 || place == kPerIndex);
    const Piece name1 = name_of(mates1, unit);
    const Piece name2 = rules.paired ? name_of(mates2, unit) : name1;
    if (index1) umi.first = rules.as_fastp ? first_index(name1) : index_of(name1, false);
    if (place == kRead1 || place == kPerRead) umi.first = first_bases(mates1, unit, rules);
    if (rules.paired) {
        umi.two = both;
        if (index2) umi.second = rules.as_fastp ? last_index(name2) : index_of(name2, true);
        if (place == kRead2 || place == kPerRead) umi.second = first_bases(mates2, unit, rules);
    }
    const bool any = umi.first.size() + umi.second.size() > 0;
    umi.there = any || (both && (place == kPerRead || rules.as_fastp));
    if (rules.as_fastp) return umi;
    umi.lacks_index = (index1 && umi.first.size() == 0) || (index2 && umi.second.size() == 0);
    const u32 end = word_end(name1, true);
    if (end - name1.start < 2) return umi;
    const u8 last = name1.bytes[end - 1];
    const bool of_mate = rules.paired
                             ? name2.bytes[word_end(name2, true) - 1] != last
                             : name1.bytes[end - 2] == '/' && (last == '1' || last == '2');
    umi.behind = of_mate ? 2 : 0;
    return umi;
}

// Cut the UMI off a read; at least one base stays.
__device__ __forceinline__ void cut_umi(Read* read, const Rules& rules) {
    const int length = read->length(), size = min(length, rules.umi_length);
    read->begin += max(0, min(length - 1, size + rules.umi_skip));
}

// The reason why a read is not kept, as ``Trimmed`` holds it; empty for a read that is.
__device__ __forceinline__ Piece reason_of(int reason, const Rules& rules) {
    return {rules.reasons, u32(rules.reason_ends[reason]), u32(rules.reason_ends[reason + 1])};
}

// Bytes of a record.
__device__ __forceinline__ u32 record_bytes(const Mates& mates, u32 unit, const Read& read,
                                            u32 umi, const Piece& reason) {
    return 5 + name_of(mates, unit).size() + umi + (reason.size() ? 1 + reason.size() : 0) +
           plus_of(mates, unit).size() + 2 * read.length();
}

struct Output : WarpOutput {
    __device__ __forceinline__ void put_piece(const Piece& piece) {
        copy(piece.bytes, piece.start, piece.end);
    }

    // The last base of a mate that is all UMI is written as it was before it was corrected.
    __device__ __forceinline__ void put_umi(const Umi& umi, const Trimmed& own, const Rules& rules) {
        if (!umi.there) return;
        put(u8(':'));
        if (rules.umi_prefix_length > 0) {
            copy(rules.umi_prefix, 0, u32(rules.umi_prefix_length));
            put(u8('_'));
        }
        put_part(umi.first, own.last[0]);
        if (umi.two) put(u8('_'));
        put_part(umi.second, own.last[1]);
    }

    __device__ __forceinline__ void put_part(const Piece& part, u8 last) {
        put_piece(part);
        if (last && part.size() && lane == (part.size() - 1) % 32) bytes[-1] = last;
    }

    __device__ __forceinline__ void put_record(const Mates& mates, u32 unit, const Read& read,
                                               const Umi& umi, const Trimmed& own,
                                               const Piece& reason, const Rules& rules) {
        const Piece name = name_of(mates, unit);
        const u32 split = umi.there ? word_end(name, !rules.as_fastp) - umi.behind : name.end;
        put(u8('@'));
        put_piece(Piece{name.bytes, name.start, split});
        put_umi(umi, own, rules);
        put_piece(Piece{name.bytes, split, name.end});
        if (reason.size()) {
            put(u8(' '));
            put_piece(reason);
        }
        put(u8('\n'));
        copy(read.bases, u32(read.begin), u32(read.end));
        put(u8('\n'));
        put_piece(plus_of(mates, unit));
        put(u8('\n'));
        copy(read.qualities, u32(read.begin), u32(read.end));
        put(u8('\n'));
    }
};

}  // namespace
