// The extension of pairs; the reference is ngsgpu/extend/cpu.py, which this must equal to the byte.
//
// A warp works on one pair at a time, through all of its tasks, and then takes the next pair from a
// counter, so that no lane waits for another pair. Pairs differ greatly in cost (a repeat has
// hundreds of candidates), and a batch has many more of them than there are warps, so that warps
// finish at about the same time; their clocks in ``progress`` measure the utilisation.
//
// Memory accesses per iteration (20 new bases, 15 candidates): about 9 look-ups, two sectors of
// cells and three of entries each; a sector or two of the planes of 7 new candidates, and of
// qualities where columns are mixed: 2 KB, all at random. Including its share of starting a task,
// it takes some 9,000 warp instructions, two thirds of them for k-mer hashes and look-ups.
#include "ngsgpu/extend/gpu.structs"
#include "ngsgpu/extend/tasks/growth.cuh"
#include "ngsgpu/extend/tasks/joining.cuh"

constexpr int WARPS = 4;  // of a block
constexpr int TASKS = 4;  // of a pair: from the first read, outwards from the second, and back
constexpr int MAX_WEIGHTS = 256;

// Counters of a run, in the order of ngsgpu/extend/cpu.py.
enum Counter { PRIMARY_STEPS = KINDS, AUXILIARY_STEPS, CANDIDATES_TAKEN, AUXILIARY_TASKS, COUNTERS };

struct Block {
    Reads reads;
    EndTables tables;
    Rules rules;
    Batch batch;
    Weight weights[MAX_WEIGHTS];
    Task tasks[WARPS][TASKS];
    LookUp look_ups[WARPS][LANES];
};

// Bytes of a warp's slab for a sequence, and for the candidates of a task.
__device__ __forceinline__ int64_t sequence_bytes(int64_t words) { return words * (16 + 16 + 64); }
constexpr int64_t CANDIDATE_BYTES = MAX_CANDIDATES * 32 + 4 * SET_CELLS;

// Lay out the memory of a warp's tasks. Candidates outlast a primary task only for the extension
// outwards; else both primary tasks, and both auxiliary ones, use the same memory.
__device__ void lay_out_tasks(const Block& block, Task* tasks, int64_t warp, int lane) {
    const int64_t words = block.batch.words;
    const int slots = block.rules.outward ? TASKS : TASKS / 2;
    const int64_t slab = TASKS * sequence_bytes(words) + slots * CANDIDATE_BYTES;
    if (lane < TASKS) {
        Task& task = tasks[lane];
        char* memory = block.batch.workspace + warp * slab;
        char* own = memory + lane * sequence_bytes(words);
        task.planes = (uint64_t*)own;
        task.stream = (uint32_t*)(own + 16 * words);
        task.qualities = (uint8_t*)(own + 32 * words);
        own = memory + TASKS * sequence_bytes(words) + (lane % slots) * CANDIDATE_BYTES;
        Candidates& all = task.candidates;
        all.low = (uint64_t*)own;
        all.high = all.low + MAX_CANDIDATES;
        all.end = (uint32_t*)(all.high + MAX_CANDIDATES);
        all.start = (int32_t*)(all.end + MAX_CANDIDATES);
        all.mismatches = all.start + MAX_CANDIDATES;
        all.left = all.mismatches + MAX_CANDIDATES;
        task.met.cells = (uint32_t*)(all.left + MAX_CANDIDATES);
        task.words = int(words);
    }
    __syncwarp();
}

// Run a primary task from the end ``start`` until it has found the end ``mate`` or stops; the
// auxiliary task, which starts from the mate, grows with it at branches. With ``outwards`` of at
// least 0, only extend the auxiliary task until it has that many new bases.
__device__ __forceinline__ void run_tasks(const Worker& w, int which, uint32_t start,
                                          uint32_t mate, int outwards) {
    Task& primary = w.tasks[which];
    Task& auxiliary = w.tasks[which + 1];
    bool helping = outwards >= 0, ready = false;
    int grown = outwards;
    for (;;) {
        Task& task = helping ? auxiliary : primary;
        if (task.status == NOT_BEGUN) begin_task(w, task, helping ? mate : start);
        const bool starting = task.status == STARTING;
        int limit = w.rules.max_length;
        if (helping) limit = task.start_length + grown;
        if (!starting && helping) {
            if (task.status != RUNNING || task.length >= limit) {
                if (outwards >= 0) return;
                helping = false;
                ready = true;
                continue;
            }
        } else if (!starting && !ready) {
            bool ends = task.status != RUNNING || find_mate(w, task, mate);
            if (!ends && task.length >= limit) {
                __syncwarp();
                if (w.lane == 0) task.status = STOPPED;
                ends = true;
            }
            if (ends) {
                // The next scan would have found them, but there is none.
                if (task.wider) empty_set(task.met, w.lane);
                __syncwarp();
                return;
            }
        }
        find_candidates(w, task,
                        starting ? w.rules.start_mismatch_permille : w.rules.max_mismatch_permille);
        if (starting) {
            correct_start(w, task);
            continue;
        }
        const int status =
            advance(w, task, helping ? primary : auxiliary, helping || ready, limit);
        if (helping) continue;
        ready = false;
        if (status == WAITING) {
            helping = true;
            grown = task.length - task.start_length + w.rules.pair_slack;
        }
    }
}

// Bases that an auxiliary task gives to the outside of a fragment.
__device__ __forceinline__ int outward_bases(const Rules& rules, const Task& task) {
    if (!rules.outward || task.status == NOT_BEGUN) return 0;
    return min(task.length - task.start_length, rules.max_length);
}

// Write a pair's result.
__device__ __forceinline__ void keep_pair(const Worker& w, const Batch& batch, int64_t row,
                                          const Connection& connection) {
    const Task &first = w.tasks[0], &second = w.tasks[1];
    const Task &third = w.tasks[2], &fourth = w.tasks[3];
    const bool connected = connection.kind != NOT_CONNECTED;
    const int gap = connection.total - first.start_length - third.start_length;
    const int left = connected ? outward_bases(w.rules, fourth) : 0;
    const int right = connected ? outward_bases(w.rules, second) : 0;
    const int behind = left + (connected ? max(0, gap) : 0);
    unsigned long long start = 0;
    if (w.lane == 0) {
        start = atomicAdd(batch.progress + 1, (unsigned long long)(behind + right));
        batch.kind[row] = uint8_t(connection.kind);
        batch.total[row] = connected ? connection.total : 0;
        batch.left[row] = left;
        batch.right[row] = right;
        batch.start[row] = int64_t(start);
    }
    start = __shfl_sync(WARP, start, 0);
#pragma unroll 1
    for (int i = w.lane; i < behind + right; i += LANES) {
        BaseQuality base;
        if (i < left) {
            const int source = fourth.start_length + left - 1 - i;
            base = {uint8_t(3 - base_of(fourth, source)), fourth.qualities[source]};
        } else if (i < behind) {
            base = base_between(first, third, connection, first.start_length + i - left);
        } else {
            const int source = second.start_length + i - behind;
            base = {uint8_t(base_of(second, source)), second.qualities[source]};
        }
        batch.codes[start + i] = base.code;
        batch.qualities[start + i] = base.quality;
    }
}

// Extend one pair and write its result; returns what the lane's counter grows by.
__device__ __forceinline__ int extend_pair(const Worker& w, const Batch& batch, int64_t row) {
    const int reverse_complemented = w.rules.reverse_complemented_input;
    const uint32_t first = uint32_t(4 * w.pair + reverse_complemented), second = first + 2;
    Connection connection = {NOT_CONNECTED, 0, false, false};
    __syncwarp();
    if (w.lane < TASKS) {
        Task& task = w.tasks[w.lane];
        task.status = NOT_BEGUN;
        task.steps = task.taken = task.start_length = 0;
    }
    __syncwarp();
    const int shorter =
        min(read_length(w.reads, 2 * w.pair), read_length(w.reads, 2 * w.pair + 1));
    if (shorter >= w.tables.window) {
        // Both primary tasks, then the extension outwards of both auxiliary ones.
        for (int part = 0; part < 4; ++part) {
            int outwards = -1;
            if (part == 2) {
                connection = join(w, w.tasks[0], w.tasks[2]);
                if (!w.rules.outward || connection.kind == NOT_CONNECTED) break;
            }
            if (part >= 2) outwards = connection.total;
            const uint32_t start = part & 1 ? second : first, mate = part & 1 ? first : second;
            run_tasks(w, 2 * (part & 1), start, mate ^ 1, outwards);
        }
    }
    __syncwarp();
    keep_pair(w, batch, row, connection);
    int counted = w.lane == connection.kind;
    for (int task = 0; task < TASKS; ++task) {
        const bool auxiliary = task & 1;
        if (w.lane == (auxiliary ? AUXILIARY_STEPS : PRIMARY_STEPS)) counted += w.tasks[task].steps;
        if (w.lane == CANDIDATES_TAKEN) counted += w.tasks[task].taken;
        if (w.lane == AUXILIARY_TASKS && auxiliary) counted += w.tasks[task].status != NOT_BEGUN;
    }
    return counted;
}

// Extend pairs. ``progress`` is all 0 at the start; ``counters`` grow.
//
// Grid: at most as many blocks as the workspace has slabs for; block: WARPS warps.
extern "C" __global__ void __launch_bounds__(WARPS * LANES)
    extend_pairs(const Reads* reads, const EndTables* tables, const Rules* rules,
                 const Weight* weights, int weight_count, const Batch* batch_in) {
    __shared__ Block block;
    if (threadIdx.x == 0) {
        block.reads = *reads;
        block.tables = *tables;
        block.rules = *rules;
        block.batch = *batch_in;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < weight_count; i += blockDim.x) block.weights[i] = weights[i];
    __syncthreads();
    const int lane = threadIdx.x & (LANES - 1), warp = threadIdx.x / LANES;
    const Batch& batch = block.batch;
    Task* tasks = block.tasks[warp];
    lay_out_tasks(block, tasks, int64_t(blockIdx.x) * WARPS + warp, lane);
    const long long begin = clock64();
    unsigned long long counted = 0;
    for (;;) {
        unsigned long long row = 0;
        if (lane == 0) row = atomicAdd(batch.progress, 1ull);
        row = __shfl_sync(WARP, row, 0);
        if (row >= (unsigned long long)batch.count) break;
        const int64_t pair = batch.pairs ? batch.pairs[row] : batch.first_pair + int64_t(row);
        const Worker worker = {block.reads,          block.tables, block.rules, block.weights, tasks,
                               block.look_ups[warp], lane,         pair};
        counted += extend_pair(worker, batch, int64_t(row));
    }
    if (lane < COUNTERS && counted) atomicAdd(batch.counters + lane, counted);
    if (lane == 0) {
        const unsigned long long clocks = (unsigned long long)(clock64() - begin);
        atomicAdd(batch.progress + 2, clocks);
        atomicMax(batch.progress + 3, clocks);
    }
}
