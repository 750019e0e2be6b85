// The kernels for reads of one length with two bits for each quality; see reads.cuh.
#define EQUAL_READS 2
#include "ngsgpu/extend/kernels.cu"
