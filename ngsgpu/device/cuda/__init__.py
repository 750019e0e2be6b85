"""CUDA C++: compiling and launching kernels, their structs and shared headers, sorting."""
