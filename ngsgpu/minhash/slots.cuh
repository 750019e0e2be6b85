// Entries of the minhash tables, and the reads' slots in them; see ngsgpu/minhash/gpu.py.
#pragma once
#include "ngsgpu/sequence/hashing.cuh"

constexpr uint32_t BUCKET_START = 0x80000000u;  // of an entry that begins a bucket
constexpr uint32_t NEAR_START = 0x80000000u;    // of a slot that is where the read's bucket begins
constexpr uint32_t NO_SLOT = 0xFFFFFFFFu;
constexpr int NEAR_ENTRIES = 64;  // of a bucket; of longer ones the ends are listed
constexpr int LOOK_AHEAD = 32;  // so that a warp may read on behind the last entry
