"""Commands of the machine: check it, lease its GPUs, compile kernels for it."""
