// Queries with more locations than a warp sorts: who takes them.
#pragma once

namespace {

constexpr uint32_t kMostOfBlock = 0xFFFF;  // locations of a query that a block counts

// Counters of a search in a partition.
constexpr int kTakenQueries = 0;  // queries that warps have taken
constexpr int kLonger = 1;        // queries for blocks
constexpr int kLongest = 2;       // queries that are sorted in device memory
constexpr int kTakenLonger = 3;   // queries that blocks have taken

}  // namespace
