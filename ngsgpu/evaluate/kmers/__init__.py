"""K-mers that correction removed or made: true ones lost, false ones introduced.

``result`` has the definitions, ``sample`` counts a sample of the k-mers of some files in bounded
memory, ``files`` goes from files to the result.
"""

from ngsgpu.evaluate.kmers.files import evaluate_kmers
from ngsgpu.evaluate.kmers.result import KmerEvaluation

__all__ = ["KmerEvaluation", "evaluate_kmers"]
