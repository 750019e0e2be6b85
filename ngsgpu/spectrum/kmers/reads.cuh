// A read as the kernels change it, and its k-mers; the reference is ngsgpu/spectrum/kmers/reads.py.
#pragma once
#include "ngsgpu/readset/unknown.cuh"
#include "ngsgpu/sequence/kmer.cuh"
#include "ngsgpu/spectrum/kmers/solid.cuh"

namespace {

constexpr int kUnknown = 4;      // code of a base other than A, C, G and T
constexpr int kLevelsAhead = 6;  // k-mers asked for before they are needed
constexpr int kVoteBytes = 16;   // of a base; _VOTE_BYTES of gpu_correct.py

// An array of a thread, in either direction.
struct View {
    uint8_t* first;
    int step;

    __device__ __forceinline__ uint8_t& operator[](int i) const { return first[step * i]; }
};

// The bases of a read, or of its reverse complement.
struct BaseView {
    View codes;
    int flip;

    __device__ __forceinline__ int operator[](int i) const {
        const int code = codes[i];
        return code == kUnknown ? code : code ^ flip;
    }
};

// The arrays of a thread, each with room for ``size`` bases: ReadSpace, and of a walk what cannot be
// told from the rest, since the caches hold no more for all threads.
struct Space {
    uint8_t* bytes;
    int size;
    // How the read is looked at: as it is stored, or as its reverse complement.
    int step, last_base, last_kmer, flip;

    __device__ __forceinline__ Space(uint8_t* bytes_in, int size_in)
        : bytes(bytes_in), size(size_in), step(1), last_base(0), last_kmer(0), flip(0) {}

    // From the read to its reverse complement, and back.
    __device__ __forceinline__ void turn(int length, int kmers) {
        last_base = step > 0 ? length - 1 : 0;
        last_kmer = step > 0 ? kmers - 1 : 0;
        step = -step;
        flip ^= 3;
    }

    __device__ __forceinline__ View bases(int number) const {
        return {bytes + number * size + last_base, step};
    }
    // ``take`` also clears places behind the last k-mer, up to k - 1 of them: in either direction they
    // lie where an array of k-mers has room that it does not use.
    __device__ __forceinline__ View kmers(int number) const {
        return {bytes + number * size + last_kmer, step};
    }
    __device__ __forceinline__ BaseView codes() const { return {bases(1), flip}; }
    __device__ __forceinline__ BaseView originals() const { return {bases(0), flip}; }
    __device__ __forceinline__ View levels() const { return kmers(3); }

    // Of the read as it is looked at.
    __device__ __forceinline__ int code(int i) const { return codes()[i]; }
    __device__ __forceinline__ void set_code(int i, int base) const {
        bases(1)[i] = uint8_t(base ^ flip);
    }
    __device__ __forceinline__ int score(int i) const { return bases(2)[i]; }
    __device__ __forceinline__ uint8_t& level(int i) const { return levels()[i]; }
    __device__ __forceinline__ uint8_t& before(int i) const { return kmers(4)[i]; }
    __device__ __forceinline__ uint8_t& trusted(int i) const { return kmers(5)[i]; }
    // Of the read as it is stored.
    __device__ __forceinline__ uint8_t& original(int i) const { return bytes[i]; }
    __device__ __forceinline__ uint8_t& cheapest(int i) const { return bytes[6 * size + i]; }
    // Of ways, from their beginning.
    __device__ __forceinline__ uint8_t& best(int i) const { return bytes[7 * size + i]; }
    __device__ __forceinline__ uint8_t& best_level(int i) const { return bytes[8 * size + i]; }
    // Of the bases on the way: which was taken, the level of the k-mer that ends with it, what is
    // to be tried in its place, and WalkSpace.known as a number of bases.
    __device__ __forceinline__ uint8_t& taken(int i) const { return bytes[9 * size + i]; }
    __device__ __forceinline__ uint8_t& taken_level(int i) const { return bytes[10 * size + i]; }
    __device__ __forceinline__ uint8_t& state(int i) const { return bytes[11 * size + i]; }
    __device__ __forceinline__ uint8_t& replaced(int i) const { return bytes[12 * size + i]; }
    // Room that a walk does not need at the same time.
    __device__ __forceinline__ View spare() const { return {bytes + 8 * size, 1}; }
    __device__ __forceinline__ int32_t* votes() const {
        return reinterpret_cast<int32_t*>(bytes) - 4 * size;
    }
};

// The positions of a read's unknown bases: [first, last).
struct Unknown {
    const int32_t* first;
    const int32_t* last;
};

__device__ __forceinline__ Unknown unknown_in(const AmbiguousBases& ambiguous, int64_t read) {
    const UnknownBases found = unknown_of(ambiguous, read);
    return {ambiguous.positions + found.begin, ambiguous.positions + found.end};
}

// The k-mers of a read as it is stored, one after another.
struct Kmers {
    const uint64_t* planes;
    Unknown unknown;
    uint64_t low, high;
    Kmer kmer;
    int words, length, k, known, at;

    __device__ __forceinline__ Kmers(const Reads& reads, const AmbiguousBases& ambiguous,
                                     int64_t read, int k_in)
        : planes(reads.planes + plane_start(reads, read)), unknown(unknown_in(ambiguous, read)),
          low(0), high(0), kmer(k_in), words((read_length(reads, read) + 63) >> 6),
          length(read_length(reads, read)), k(k_in), known(0), at(0) {}

    // Takes the next base; whether a k-mer without unknown bases ends with it.
    __device__ __forceinline__ bool next() {
        if ((at & 63) == 0) {
            low = planes[at >> 6];
            high = planes[words + (at >> 6)];
        }
        ++known;
        if (unknown.first != unknown.last && *unknown.first == at) {
            ++unknown.first;
            known = 0;
        }
        kmer.add((low & 1) | ((high & 1) << 1));
        low >>= 1;
        high >>= 1;
        ++at;
        return known >= k;
    }
};

// Writes the codes and Phred scores of a read; returns its length.
__device__ __forceinline__ int load_read(const Reads& reads, const AmbiguousBases& ambiguous,
                                         const uint8_t* scores, int64_t read, const Space& space) {
    const int length = read_length(reads, read), words = (length + 63) >> 6;
    const uint64_t* planes = reads.planes + plane_start(reads, read);
    const uint8_t* qualities = reads.qualities + quality_start(reads, read);
    for (int word = 0; word < words; ++word) {
        uint64_t low = planes[word], high = planes[words + word];
        for (int i = word << 6; i < min(length, (word + 1) << 6); ++i) {
            space.original(i) = uint8_t((low & 1) | ((high & 1) << 1));
            space.bases(2)[i] = scores[quality_code(qualities, int(reads.quality_bits), i)];
            low >>= 1;
            high >>= 1;
        }
    }
    const Unknown unknown = unknown_in(ambiguous, read);
    for (const int32_t* at = unknown.first; at != unknown.last; ++at) {
        space.original(*at) = kUnknown;
        space.bases(2)[*at] = 0;
    }
    return length;
}

// Writes the level of every k-mer of a part of a read; returns how many are solid.
__device__ __noinline__ int find_levels(const Solid& solid_in, int k, BaseView codes,
                                        int begin, int end, View levels) {
    const Solid solid = solid_in;
    Kmer kmer(k), ahead(k);
    int known = 0, found = 0;
    for (int i = begin; i < end + kLevelsAhead; ++i) {
        if (i < end) {
            ahead.add(codes[i] & 3);
            if (i >= begin + k - 1) ask_for(solid, ahead.canonical());
        }
        const int at = i - kLevelsAhead;
        if (at < begin) continue;
        const int code = codes[at];
        known = code == kUnknown ? 0 : known + 1;
        kmer.add(code & 3);
        if (at < begin + k - 1) continue;
        const int level = known >= k ? level_of(solid, kmer.canonical()) : 0;
        levels[at - k + 1] = uint8_t(level);
        found += level >= kSolid;
    }
    return found;
}

// Whether every ``step``-th k-mer of a stored read is solid, and its last one.
__device__ __forceinline__ bool is_clean(const Solid& solid, Kmers kmers, int step) {
    if (kmers.unknown.first != kmers.unknown.last) return false;
    int wait = 0;
    while (kmers.at < kmers.length) {
        if (!kmers.next()) continue;
        if ((wait == 0 || kmers.at == kmers.length) &&
            level_of(solid, kmers.kmer.canonical()) < kSolid)
            return false;
        wait = wait == 0 ? step - 1 : wait - 1;
    }
    return true;
}

// First k-mer of the longest run of solid ones (of equal runs the first); their number.
__device__ __forceinline__ int longest_run(const Space& space, int kmers, int* size) {
    int best = 0, run = 0;
    *size = 0;
    for (int i = 0; i < kmers; ++i) {
        run = space.level(i) >= kSolid ? run + 1 : 0;
        if (run > *size) {
            *size = run;
            best = i - run + 1;
        }
    }
    return best;
}

}  // namespace
