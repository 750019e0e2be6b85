"""Single kernels beside the least time that the device needs for their bytes."""
