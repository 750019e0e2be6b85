// The kernels for reads of one length with a byte for each quality; see reads.cuh.
#define EQUAL_READS 8
#include "ngsgpu/extend/kernels.cu"
