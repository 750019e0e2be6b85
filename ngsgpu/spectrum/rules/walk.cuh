// Ways through a read in which all k-mers are solid, and the cheapest of them; the reference is
// ngsgpu/spectrum/rules/walk.py.
#pragma once
#include "ngsgpu/spectrum/kmers/reads.cuh"

namespace {

constexpr int kNone = 1 << 30;  // more than any cost
constexpr int kRead = 0, kEnd = 5;
constexpr int kAhead = 8;  // k-mers asked for at a time

enum Ended { COMPLETE, PARTIAL, AMBIGUOUS };

// How a search ended, the number of bases in ``best``, and on how many of them all good ways agree.
struct Way {
    int ended, reach, agreed;
};

// Changes among the last bases.
__device__ __forceinline__ int changes_in(uint64_t history, int window) {
    return __popcll(history & ((1ull << window) - 1));
}

// A search for the best way from the solid k-mer at ``start``; bases up to ``last_change`` may
// change, those whose k-mer is solid only if their quality is below ``kept``.
//
// The k-mer, the changes and the cost up to the last base of the way are in registers; on the way
// back they follow from the bases.
struct Walk {
    Kmer kmer;
    uint64_t history;
    int first, stop, last_change, kept, depth, reach, nodes, best, agreed, cost;
    // Of the last base: what to try next, the level of the k-mer with the read's base, and the
    // number of bases behind which k-mers have no replaced one.
    int option, own, replaced;
    bool ambiguous;

    __device__ __forceinline__ explicit Walk(int k)
        : kmer(k), history(0), first(0), stop(0), last_change(0), kept(0), depth(0), reach(0),
          nodes(0), best(kNone), agreed(0), cost(0), option(kRead), own(0), replaced(0),
          ambiguous(false) {}

    __device__ __forceinline__ void begin(const SearchRules& rules, const Space& space, int length,
                                          int start, int last_change_in, int kept_in) {
        *this = Walk(rules.kmer);
        first = start + rules.kmer;
        last_change = last_change_in;
        stop = agreed = min(length, last_change + rules.kmer);
        kept = kept_in;
        for (int i = start; i < first; ++i) kmer.add(space.code(i));
    }

    // Tries one base, or goes back; whether there is more to do.
    __device__ __forceinline__ bool step(const Solid& solid, const SearchRules& rules,
                                         const Space& space) {
        const int at = first + depth;
        if (at == stop) return end(rules, space);
        const int original = space.code(at);
        if (option == kRead ? original == kUnknown : option - 1 == original) ++option;
        const bool changes = option != kRead;
        if (changes && (!may_change(rules, space) ||
                        (original != kUnknown &&
                         changes_in(history, rules.window - 1) >= rules.max_changes)))
            return go_back(rules, space);
        const int base = changes ? option - 1 : original;
        ++option;
        ambiguous = ++nodes > rules.max_nodes;
        if (ambiguous) return false;
        Kmer longer = kmer;
        longer.add(base);
        // A k-mer without replaced bases is the read's own.
        const int level = !changes && replaced == 0 ? int(space.level(at - rules.kmer + 1))
                                                    : level_of(solid, longer.canonical());
        if (!changes) own = level;
        if (level < kSolid) return true;
        space.taken(depth) = uint8_t(base);
        space.taken_level(depth) = uint8_t(level);
        space.state(depth) = uint8_t(own << 3 | option);
        space.replaced(depth) = uint8_t(replaced);
        ++depth;
        kmer = longer;
        history = (history << 1) | uint64_t(changes && original != kUnknown);
        if (changes) cost += rules.change_cost + space.score(at);
        replaced = changes ? rules.kmer - 1 : max(0, replaced - 1);
        option = kRead;
        own = 0;
        if (replaced > 0 && (changes || replaced % kAhead == 0)) look_ahead(solid, space, at + 1);
        return true;
    }

    // Asks for the k-mers that follow with the read's own bases, which are needed next.
    __device__ __forceinline__ void look_ahead(const Solid& solid, const Space& space,
                                               int at) const {
        Kmer next = kmer;
        const int end = min(stop, at + kAhead);
        for (; at < end; ++at) {
            next.add(space.code(at) & 3);
            ask_for(solid, next.canonical());
        }
    }

    // Whether there is another base to try behind the last one, as far as its changes do not matter.
    __device__ __forceinline__ bool may_change(const SearchRules& rules, const Space& space) const {
        const int at = first + depth;
        if (option >= kEnd || at > last_change) return false;
        const int score = space.score(at);
        return (own < kSolid || score < kept) &&
               (best == kNone || cost + rules.change_cost + score < best + rules.margin);
    }

    // At the end of a way.
    __device__ __forceinline__ bool end(const SearchRules& rules, const Space& space) {
        int same = 0;
        while (same < depth && best != kNone && space.taken(same) == space.best(same)) ++same;
        const bool better = cost < best;
        if (!better || best < cost + rules.margin) agreed = min(agreed, same);
        else agreed = stop;
        if (better) {
            best = cost;
            keep(space);
        }
        return leave(rules, space);
    }

    // Where the way does not go on.
    __device__ __forceinline__ bool go_back(const SearchRules& rules, const Space& space) {
        if (best == kNone && depth > reach) keep(space);
        return leave(rules, space);
    }

    __device__ __forceinline__ void keep(const Space& space) {
        reach = depth;
        for (int i = 0; i < depth; ++i) {
            space.best(i) = space.taken(i);
            space.best_level(i) = space.taken_level(i);
        }
    }

    // Back by a base; whether there is one.
    __device__ __forceinline__ bool leave(const SearchRules& rules, const Space& space) {
        if (--depth < 0) return false;
        const int at = first + depth, original = space.code(at), out = depth - rules.kmer;
        kmer.remove(out < 0 ? space.code(at - rules.kmer) : space.taken(out));
        if (space.taken(depth) != original) cost -= rules.change_cost + space.score(at);
        history >>= 1;
        if (depth >= 64 && is_changed(space, depth - 64)) history |= 1ull << 63;
        option = space.state(depth) & 7;
        own = space.state(depth) >> 3;
        replaced = space.replaced(depth);
        return true;
    }

    __device__ __forceinline__ bool is_changed(const Space& space, int i) const {
        const int original = space.code(first + i);
        return original != kUnknown && space.taken(i) != original;
    }

    __device__ __forceinline__ Way found() const {
        if (ambiguous) return {AMBIGUOUS, 0, 0};
        if (best == kNone) return {PARTIAL, reach, reach};
        return {COMPLETE, reach, min(agreed, reach)};
    }
};

}  // namespace
