// Records of parsed chunks, and their headers; as ngsgpu/merge/records.py.
#pragma once
#include "ngsgpu/merge/likelihood.cuh"
#include "ngsgpu/run/record.cuh"

namespace {

struct Mates : Records<const u8> {
    __device__ __forceinline__ Read read(u32 pair, bool reversed) const {
        const u32 i = number(pair);
        return {raw + seq_start[i], raw + qual_start[i], lengths[i], reversed};
    }
};

// A header without the white space at its end; a merged read's is [start, slash) and [resume, end).
struct Header {
    u32 start;
    u32 slash;
    u32 resume;
    u32 end;

    __device__ __forceinline__ u32 whole() const { return end - start; }
    __device__ __forceinline__ u32 of_pair() const { return slash - start + end - resume; }
};

// Place of the last byte that is wanted, kNone if there is none; for a whole warp.
template <typename Wanted>
__device__ __forceinline__ u32 last_that(const u8* raw, u32 start, u32 end, u32 lane,
                                         Wanted wanted) {
    for (; end > start; end -= min(32u, end - start)) {
        const u32 hits = __ballot_sync(kAll, lane < end - start && wanted(raw[end - 1 - lane]));
        if (hits) return end - __ffs(hits);
    }
    return kNone;
}

__device__ __forceinline__ Header header_of(const Mates& mates, u32 pair, u32 lane) {
    const u32 i = mates.number(pair);
    const u8* raw = mates.raw;
    Header header;
    header.start = record_start(mates.line_end, mates.begin, i) + 1;
    u32 end = without_return(raw, header.start, mates.line_end[4 * i]);
    const u32 text = last_that(raw, header.start, end, lane, [](u8 byte) {
        return byte != ' ' && (byte < '\t' || byte > '\r');
    });
    end = text == kNone ? header.start : text + 1;
    const u32 slash =
        last_that(raw, header.start, end, lane, [](u8 byte) { return byte == '/'; });
    header.end = end;
    header.slash = slash == kNone ? end : slash;
    header.resume = header.slash + 2 < end && raw[header.slash + 2] == '#' ? header.slash + 2 : end;
    return header;
}

// Size of a record in bytes.
__device__ __forceinline__ u32 record_bytes(u32 header, int bases) { return header + 2 * bases + 6; }

}  // namespace
