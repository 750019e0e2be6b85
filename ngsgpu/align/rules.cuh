// What the kernels compare with.
#pragma once
#include "ngsgpu/align/rules.structs"
#include "ngsgpu/align/weights.cuh"

constexpr int SUPPORT_BITS = 20;

// Counters of a run, in the order of ngsgpu/correct/workspace.py.
enum Counter {
    ANCHORS, ALONE, CROWDED, HIGH, LOW, FOUND, ALIGNED, KEPT, REFINED_AWAY, Q20_BASES, Q20_ERRORS,
    Q30_BASES, Q30_ERRORS, COUNTERS
};
