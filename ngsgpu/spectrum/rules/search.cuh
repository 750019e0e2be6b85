// The default correction: the cheapest way through solid k-mers, by quality, or none; the reference
// is ngsgpu/spectrum/rules/search.py, which explains it.
#pragma once
#include "ngsgpu/device/cuda/warp.cuh"
#include "ngsgpu/spectrum/rules/walk.cuh"

namespace {

constexpr int kAny = 256;  // above any quality

// Bases of a read: [begin, end).
struct Part {
    int begin, end;
};

// Whether the k-mers that hold the changed base ``at`` suffice as evidence.
__device__ __forceinline__ bool is_safe(const SearchRules& rules, const Space& space, int first,
                                        int at, int end) {
    const int score = space.score(at), checks = min(rules.kmer, end - at);
    if (score >= rules.end_quality && checks < rules.doubted_checks) {
        if (checks < rules.end_checks) return false;
        for (int i = at - rules.kmer + 1; i < at; ++i) {
            const bool kept = i < first || space.best(i - first) == space.code(i);
            if (kept && space.score(i) < rules.low_quality) return false;
        }
    }
    if (score < rules.low_quality) return true;
    int rare = 0, strong = 0;
    for (int i = at; i < at + checks; ++i) {
        rare += space.before(i - rules.kmer + 1) >= kRare;
        strong += space.best_level(i - first) == kStrong;
    }
    return 2 * rare <= checks || (score < rules.end_quality && 2 * strong > checks);
}

// Changes the read as the best way says, up to the first change that is not safe; returns the bases
// whose k-mers have other levels then.
__device__ __forceinline__ Part take(const SearchRules& rules, const Space& space, int length,
                                     int start, const Way& way, bool low_only) {
    const int k = rules.kmer, first = start + k, end = first + way.reach;
    int safe = first, last = -1;
    for (; safe < first + way.agreed; ++safe) {
        if (space.best(safe - first) == space.code(safe)) continue;
        if ((way.ended != COMPLETE && safe + k > end) ||
            (low_only && space.score(safe) >= rules.low_quality) ||
            !is_safe(rules, space, first, safe, end))
            break;
        last = safe;
    }
    if (last < 0) return {0, 0};
    for (int i = first; i <= last; ++i) space.set_code(i, space.best(i - first));
    // K-mers on the way are joined to the solid one in front; those behind it stay in doubt.
    const int joined = max(start + 1, safe - k + 1);
    for (int i = start + 1; i < joined; ++i) {
        space.level(i) = space.best_level(i - start - 1);
        space.trusted(i) = 1;
    }
    if (last < joined) return {0, 0};
    for (int i = joined; i <= last; ++i) space.trusted(i) = 0;
    return {joined, min(length, last + k)};
}

// Where to begin in front of the weak k-mer ``weak``, in solid k-mers from ``run`` on.
__device__ __forceinline__ int start_of(const SearchRules& rules, const Space& space, int run,
                                        int weak) {
    for (int i = weak; i < weak + rules.kmer - 1; ++i)
        if (space.score(i) < rules.low_quality) return max(run, i - rules.kmer);
    return weak - 1;
}

// Finds the runs of solid k-mers to start from; returns whether there is one.
__device__ __forceinline__ bool find_trusted(const SearchRules& rules, const Space& space,
                                             int kmers) {
    bool found = false;
    int run = 0;
    for (int at = 1; at <= kmers; ++at) {
        const bool solid = space.level(at - 1) >= kSolid;
        if (at < kmers && (space.level(at) >= kSolid) == solid) continue;
        bool trusted = solid && at - run >= rules.min_run;
        for (int i = at - 1; i < run + rules.kmer; ++i)
            trusted &= space.score(i) >= rules.low_quality;
        for (int i = run; i < at; ++i) space.trusted(i) = trusted;
        found |= trusted;
        run = at;
    }
    return found;
}

// Whether the best way changes a base that is not of low quality.
__device__ __forceinline__ bool changes_good(const SearchRules& rules, const Space& space,
                                             int first, int reach) {
    for (int i = 0; i < reach; ++i)
        if (space.best(i) != space.code(first + i) && space.score(first + i) >= rules.low_quality)
            return true;
    return false;
}

// How many k-mers of a read are solid.
__device__ __forceinline__ int solid_kmers(const Space& space, int kmers) {
    int found = 0;
    for (int i = 0; i < kmers; ++i) found += space.level(i) >= kSolid;
    return found;
}

// The one change of the k-mer at ``start`` that makes it solid: position (or -1) and base.
__device__ __forceinline__ int only_mutant(const Solid& solid, int k, const Space& space,
                                           int start, int* base) {
    Kmer kmer(k);
    for (int i = start; i < start + k; ++i) {
        if (space.code(i) == kUnknown) return -1;
        kmer.add(space.code(i));
    }
    int place = -1;
    for (int i = 0; i < k; ++i) {
        for (uint64_t change = 1; change < 4; ++change) {
            const uint64_t one = kmer.forward ^ (change << (2 * i));
            const uint64_t back = kmer.backward ^ (change << (kmer.top - 2 * i));
            if (level_of(solid, one < back ? one : back) < kSolid) continue;
            if (place >= 0) return -1;
            place = start + k - 1 - i;
            *base = space.code(place) ^ int(change);
        }
    }
    return place;
}

// Whether no window has more changes than are allowed.
__device__ __forceinline__ bool is_sparse(const SearchRules& rules, const Space& space,
                                          int length) {
    uint64_t history = 0;
    for (int i = 0; i < length; ++i) {
        const uint8_t was = space.original(i);
        history = (history << 1) | uint64_t(space.code(i) != was && was != kUnknown);
        if (changes_in(history, rules.window) > rules.max_changes) return false;
    }
    return true;
}

// What is tried with a loaded read whose levels are known, one after another: the trusted k-mers it
// has; or each run of solid k-mers, of which the cheapest end is taken; or, where no k-mer is solid,
// the changes that make one solid, until all are.
struct Attempts {
    enum Kind { TRUSTED, EACH, MUTANTS } kind;
    bool begun, low_only;
    int at, run, least;

    __device__ __forceinline__ Attempts(const SearchRules& rules, const Space& space, int length)
        : kind(TRUSTED), begun(false), low_only(false), at(0), run(0), least(kNone) {
        const int kmers = length - rules.kmer + 1;
        if (solid_kmers(space, kmers) == 0) kind = MUTANTS;
        else if (!find_trusted(rules, space, kmers)) kind = EACH;
    }

    // Prepares the next one; whether there is any. The read is as the last one left it.
    __device__ __forceinline__ bool next(const Solid& solid, const SearchRules& rules,
                                         const Space& space, int length) {
        const bool is_first = !begun;
        begun = true;
        if (kind == TRUSTED) return is_first;
        if (kind == EACH) return next_run(solid, rules, space, length, is_first);
        return next_mutant(solid, rules, space, length, is_first);
    }

    __device__ __forceinline__ bool next_run(const Solid& solid, const SearchRules& rules,
                                             const Space& space, int length, bool is_first) {
        const int kmers = length - rules.kmer + 1;
        if (!is_first) {
            const int weak = kmers - solid_kmers(space, kmers);
            if (weak && !low_only) {
                low_only = true;
                begin_at(space, length, kmers);
                return true;
            }
            int cost = rules.weak_cost * weak;
            for (int i = 0; i < length; ++i)
                if (space.code(i) != space.original(i)) cost += rules.change_cost + space.score(i);
            if (cost < least) {
                least = cost;
                for (int i = 0; i < length; ++i) space.cheapest(i) = space.code(i);
            }
        }
        for (run = at; run < kmers && space.before(run) < kSolid;) ++run;
        for (at = run; at < kmers && space.before(at) >= kSolid;) ++at;
        low_only = false;
        if (run < kmers) {
            begin_at(space, length, kmers);
            return true;
        }
        for (int i = 0; i < length; ++i) space.set_code(i, space.cheapest(i));
        find_levels(solid, rules.kmer, space.codes(), 0, length, space.levels());
        return false;
    }

    // Makes the read what it was, and trusts one run.
    __device__ __forceinline__ void begin_at(const Space& space, int length, int kmers) const {
        for (int i = 0; i < length; ++i) space.set_code(i, space.original(i));
        for (int i = 0; i < kmers; ++i) {
            space.level(i) = space.before(i);
            space.trusted(i) = i >= run && i < at;
        }
    }

    __device__ __forceinline__ bool next_mutant(const Solid& solid, const SearchRules& rules,
                                                const Space& space, int length, bool is_first) {
        const int k = rules.kmer, kmers = length - k + 1, pace = max(1, k / 4);
        if (!is_first) {
            if (solid_kmers(space, kmers) == kmers && is_sparse(rules, space, length))
                return false;
            for (int i = 0; i < length; ++i) space.set_code(i, space.original(i));
            for (int i = 0; i < kmers; ++i) space.level(i) = 0;
        }
        for (; at < kmers; at += pace) {
            int base = 0;
            const int place = only_mutant(solid, k, space, at, &base);
            if (place < 0) continue;
            space.set_code(place, base);
            find_levels(solid, k, space.codes(), 0, length, space.levels());
            for (int i = 0; i < kmers; ++i) space.trusted(i) = space.level(i) >= kSolid;
            at += pace;
            return true;
        }
        return false;
    }
};

// The correction of a loaded read whose levels are known, from one walk to the next: in each attempt
// and both directions, behind every trusted k-mer that others follow.
struct Search {
    Attempts attempts;
    Walk walk;
    Part changed;  // whose k-mers have other levels than are known
    int direction, run, at, weak, start, last;
    bool is_walking, is_short;

    __device__ __forceinline__ Search(const SearchRules& rules, const Space& space, int length)
        : attempts(rules, space, length), walk(rules.kmer), changed{0, 0}, direction(2), run(0),
          at(0), weak(0), start(0), last(0), is_walking(false), is_short(false) {}

    // Begins another walk; whether there is any.
    __device__ __forceinline__ bool next(const Solid& solid, const SearchRules& rules, Space& space,
                                         int length) {
        while (!begins(rules, space, length)) {
            if (direction < 2) {
                space.turn(length, length - rules.kmer + 1);
                ++direction;
            } else {
                if (!attempts.next(solid, rules, space, length)) return false;
                direction = 0;
            }
            run = 0;
            at = 1;
        }
        return true;
    }

    // Begins a walk behind the next trusted k-mer that others follow in this direction, if there is
    // one.
    __device__ __forceinline__ bool begins(const SearchRules& rules, const Space& space,
                                           int length) {
        const int k = rules.kmer, kmers = direction < 2 ? length - k + 1 : 0;
        while (at < kmers && (space.trusted(at) || !space.trusted(at - 1))) {
            if (!space.trusted(at - 1)) run = at;
            ++at;
        }
        is_walking = at < kmers;
        if (!is_walking) return false;
        weak = at;
        while (at < kmers && !space.trusted(at)) ++at;
        // K-mers from `weak` to `at` - 1 are in question; the read ends or a trusted one follows.
        last = at == kmers ? length - 1 : at - 1;
        is_short = last < weak + k - 1;
        last = max(last, weak + k - 1);
        start = start_of(rules, space, run, weak);
        walk.begin(rules, space, length, start, last, rules.low_quality);
        return true;
    }

    // Takes the best way of a walk, if there was one; or begins it again, further back.
    __device__ __forceinline__ bool goes_again(const SearchRules& rules, const Space& space,
                                               int length) {
        changed = {0, 0};
        if (!is_walking) return false;
        const int k = rules.kmer;
        const Way way = walk.found();
        if (way.ended == AMBIGUOUS) return false;
        if (walk.kept == kAny || !changes_good(rules, space, start + k, way.reach)) {
            changed = take(rules, space, length, start, way, is_short || attempts.low_only);
            return false;
        }
        // Rather than a good base, one within the trusted k-mers may be wrong.
        start = max(run, weak - k);
        if (!is_short) last = min(length - 1, last + k - 1);
        walk.begin(rules, space, length, start, last, kAny);
        return true;
    }
};

// Corrects loaded reads whose levels are known, those of the lanes of a warp where it is ``wanted``;
// returns the number of solid k-mers then.
//
// Lanes meet before each step of their walks: those that part would work one after another to the
// end. Lanes whose walks have ended wait for half of the others, to go on together.
__device__ __forceinline__ int search_reads(const Solid& solid, const SearchRules& rules,
                                            Space& space, int length, bool wanted) {
    Search search(rules, space, wanted ? length : 0);
    bool walks = false;
    while (true) {
        const bool waits = wanted && !walks;
        if (waits) walks = search.goes_again(rules, space, length);
        __syncwarp();
        const Part changed = waits ? search.changed : Part{0, 0};
        find_levels(solid, rules.kmer, space.codes(), changed.begin, changed.end, space.levels());
        __syncwarp();
        if (waits && !walks) wanted = walks = search.next(solid, rules, space, length);
        const int left = __popc(__ballot_sync(WARP, wanted));
        if (left == 0) break;
        do {
            if (walks) walks = search.walk.step(solid, rules, space);
        } while (2 * __popc(__ballot_sync(WARP, walks)) > left);
    }
    return solid_kmers(space, length - rules.kmer + 1);
}

}  // namespace
