// Cutting a read, as ngsgpu/trim/cuts.py; and whether it is kept, as ngsgpu/trim/filters.py.
#pragma once
#include "ngsgpu/io/gpu/lines.cuh"
#include "ngsgpu/trim/gpu.structs"

namespace {

constexpr int kLowest = 33;      // the quality character of zero
constexpr int kOneIn = 8;        // bases of which one may differ
constexpr int kMostMismatches = 5;
constexpr int kNowhere = -(1 << 30);

// Results, as fastp numbers them.
enum Result { kPassed = 0, kManyN = 12, kShort = 16, kLong = 17, kPoor = 20, kSimple = 24 };
constexpr int kResults = 32;

// A read that is being trimmed: bases and qualities ``begin`` up to ``end``.
struct Read {
    u8* bases;
    u8* qualities;
    int begin;
    int end;

    __device__ __forceinline__ int length() const { return end - begin; }

    // Cut off what exceeds a length; shorter reads stay as they are.
    __device__ __forceinline__ void shorten(int length) {
        if (0 <= length && length <= end - begin) end = begin + length;
    }
};

// A window: bases (0: nothing is cut), the sum that its quality characters need, and one of these
// that is not too low.
struct Window {
    int size;
    int least;
    int character;

    __device__ __forceinline__ explicit Window(const int32_t (&rule)[3])
        : size(rule[0]), least(rule[1]), character(rule[2]) {}
};

// Where the first window is that is poor, or that is not; else where none fits any more.
__device__ __forceinline__ int find_window(const u8* quality, int begin, int end,
                                           const Window& window, bool poor) {
    int total = 0;
    for (int i = 0; i < window.size - 1; ++i) total += quality[begin + i];
    int at = begin;
    for (; at + window.size < end; ++at) {
        total += quality[at + window.size - 1];
        if (at > begin) total -= quality[at - 1];
        if ((total < window.least) == poor) break;
    }
    return at;
}

// Bases to cut from the start, of which ``front`` anyway.
__device__ __forceinline__ int cut_from_front(const Read& read, int front, int tail,
                                              const Window& window) {
    const int length = read.length();
    int at = find_window(read.qualities + read.begin, front, length - tail, window, false);
    if (at > 0) at += window.size - 1;
    while (at < length && read.bases[read.begin + at] == 'N') ++at;
    return at;
}

// Bases that are left behind ``front``, up to the first poor window.
__device__ __forceinline__ int left_before_poor(const Read& read, int front, int tail,
                                                const Window& window) {
    const u8* quality = read.qualities + read.begin;
    const int length = read.length(), end = length - tail;
    int at = find_window(quality, front, end, window, true);
    if (at + window.size >= end) return end - front;
    while (at < length - 1 && quality[at] >= window.character) ++at;
    return at - front;
}

// Bases that are left behind ``front``, without the poor windows at the end.
__device__ __forceinline__ int left_of_tail(const Read& read, int front, int tail,
                                            const Window& window) {
    const u8* quality = read.qualities + read.begin;
    const int length = read.length(), last = length - tail - 1;
    int total = 0;
    for (int i = 0; i < window.size - 1; ++i) total += quality[last - i];
    int at = last;
    for (; at - window.size >= front; --at) {
        total += quality[at - window.size + 1];
        if (at < last) total -= quality[at + 1];
        if (total >= window.least) break;
    }
    if (at < length - 1) at -= window.size - 1;
    while (at >= 0 && read.bases[read.begin + at] == 'N') --at;
    return at - front + 1;
}

// Cut fixed numbers of bases and windows of low quality. Whether something is left, else the read is
// as it was; ``cut`` is how many bases were cut from its start.
__device__ __forceinline__ bool cut_ends(Read* read, int mate, const Rules& rules, int* cut) {
    *cut = 0;
    int front = rules.fronts[mate];
    const int tail = rules.tails[mate], length = read->length();
    const Window by_front(rules.cut_front), by_tail(rules.cut_tail), by_right(rules.cut_right);
    const bool by_windows = by_front.size + by_tail.size + by_right.size > 0;
    if (front == 0 && tail == 0 && !by_windows) return true;
    int left = length - front - tail;
    if (left < 0) return false;
    if (by_windows) {
        if (by_front.size) {
            if (left <= by_front.size) return false;
            front = cut_from_front(*read, front, tail, by_front);
            left = length - front - tail;
        }
        if (by_right.size) {
            if (length - front - tail <= by_right.size) return false;
            left = left_before_poor(*read, front, tail, by_right);
        } else if (by_tail.size) {
            if (length - front - tail <= by_tail.size) return false;
            left = left_of_tail(*read, front, tail, by_tail);
        }
        if (left <= 0 || front >= length - 1) return false;
    }
    read->begin += front;
    read->end = read->begin + left;
    *cut = front;
    return true;
}

// Cut a tail of G of at least this length; one mismatch in eight, five in all.
__device__ __forceinline__ void cut_poly_g(Read* read, int least) {
    const int length = read->length();
    int mismatches = 0, first = length - 1, i = 0;
    for (; i < length; ++i) {
        if (read->bases[read->end - i - 1] == 'G')
            first = length - i - 1;
        else
            ++mismatches;
        if (mismatches > kMostMismatches || (mismatches > (i + 1) / kOneIn && i >= least - 1))
            break;
    }
    if (i >= least) read->shorten(first);
}

// The letters of tails, in fastp's order.
__device__ __forceinline__ u8 letter_of(int base) { return u8(0x47435441u >> (8 * base)); }

// Cut a tail of one base: its number, -1 if there is no such tail; ``bases`` is its length.
__device__ __forceinline__ int cut_poly_x(Read* read, int least, int* bases) {
    const int length = read->length();
    int counts[4] = {0, 0, 0, 0};
    int at = 0;
    for (; at < length; ++at) {
        const u8 letter = read->bases[read->end - at - 1];
        const int seen = at + 1, allowed = min(kMostMismatches, seen / kOneIn);
        bool goes_on = false;
        for (int base = 0; base < 4; ++base) {
            counts[base] += letter == letter_of(base) || letter == 'N';
            goes_on |= seen - counts[base] <= allowed;
        }
        if (!goes_on && (at >= kOneIn || seen >= least - 1)) break;
    }
    *bases = 0;
    if (at + 1 < least) return -1;
    int most = 0, count = counts[0];
    for (int base = 1; base < 4; ++base) {
        if (counts[base] <= count) continue;
        most = base;
        count = counts[base];
    }
    while (at >= 0 && (at >= length || read->bases[read->end - at - 1] != letter_of(most))) --at;
    read->shorten(length - at - 1);
    *bases = at + 1;
    return most;
}

// Where an adapter begins in a read; it may lack its first bases, then that is negative. One base in
// eight may differ. kNowhere if it is not there.
__device__ __forceinline__ int find_adapter(const Read& read, int number, const Rules& rules,
                                            int need) {
    const u8* own = rules.adapters + rules.adapter_ends[number];
    const int size = int(rules.adapter_ends[number + 1] - rules.adapter_ends[number]);
    if (size < need) return kNowhere;
    const int start = size >= 16 ? -4 : size >= 12 ? -3 : size >= 8 ? -2 : 0;
    const int length = read.length();
    for (int at = start; at < length - need; ++at) {
        const int compared = min(length - at, size), allowed = compared / kOneIn;
        int mismatches = 0;
        for (int i = max(0, -at); i < compared && mismatches <= allowed; ++i)
            mismatches += own[i] != read.bases[read.begin + at + i];
        if (mismatches <= allowed) return at;
    }
    return kNowhere;
}

// Whether a read is kept (kPassed), or why not.
__device__ __forceinline__ int result_of(const Read& read, const Rules& rules) {
    const int length = read.length();
    if (length == 0) return kShort;
    int poor = 0, unknown = 0, total = 0, differing = 0;
    u8 before = read.bases[read.begin];
    for (int i = read.begin; i < read.end; ++i) {
        const u8 letter = read.bases[i], quality = read.qualities[i];
        total += quality - kLowest;
        poor += quality < rules.qualified;
        unknown += letter == 'N';
        differing += letter != before;
        before = letter;
    }
    if (rules.by_quality) {
        if (100 * poor > rules.unqualified * length) return kPoor;
        if (rules.mean > 0 && total / length < rules.mean) return kPoor;
        if (unknown > rules.most_n) return kManyN;
    }
    if (rules.by_length) {
        if (length < rules.shortest) return kShort;
        if (0 < rules.most_length && rules.most_length < length) return kLong;
    }
    if (rules.complexity >= 0 &&
        (length == 1 || 100 * differing < rules.complexity * (length - 1)))
        return kSimple;
    return kPassed;
}

}  // namespace
