from ngsgpu._version import __version__ as __version__
from ngsgpu.api import *  # noqa: F403
