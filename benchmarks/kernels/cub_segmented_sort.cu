// CUB's segmented sort behind a C function, for the micro-benchmark that compares it with ours.
#include <cstdint>
#include <cub/device/device_segmented_sort.cuh>

// Sort ``segments`` lists of ``size`` keys each; times of ``runs`` runs go to ``milliseconds``.
extern "C" int sort_segments(const uint32_t* keys, uint32_t* sorted, int64_t segments, int64_t size,
                             const int64_t* offsets, int runs, float* milliseconds) {
    void* memory = nullptr;
    size_t bytes = 0;
    auto sort = [&] {
        return cub::DeviceSegmentedSort::SortKeys(memory, bytes, keys, sorted, segments * size,
                                                  segments, offsets, offsets + 1);
    };
    if (sort() != cudaSuccess || cudaMalloc(&memory, bytes) != cudaSuccess) return 1;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    for (int run = 0; run < runs; ++run) {
        cudaEventRecord(begin);
        if (sort() != cudaSuccess) return 2;
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(milliseconds + run, begin, end);
    }
    cudaFree(memory);
    return cudaGetLastError() == cudaSuccess ? 0 : 3;
}
