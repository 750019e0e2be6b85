"""Other programs beside ngsgpu, on the same reads and machine: time, memory, accuracy."""
