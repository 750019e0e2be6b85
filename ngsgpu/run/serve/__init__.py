"""A process that does what other commands ask for, with what it has opened once, for one user.

A command sends its words, folder, environment and standard streams over a socket of the file
system, and ends with the status that comes back. The server runs the words as if they were its own:
on the CPU each request in a copy (fork) of the server, which shares its memory; on GPUs, whose
state no copy inherits, one request after the other in the server itself.

Read in this order: ``place`` (where the socket is, and who is at the other end), ``request`` (what
is sent), ``client``, ``arriving``, ``server``.
"""
