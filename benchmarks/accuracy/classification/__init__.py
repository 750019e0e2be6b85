"""Calls, species and abundances of reads whose truth is known, beside other programs.

    python -m benchmarks.accuracy.classification pure --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --work FOLDER -o out.json

Read ``genomes`` (what is drawn from), ``reads`` (how), ``programs`` (what is run), ``judging`` (how
results are counted) and then the experiments: ``pure``, ``plasmids``, ``communities``,
``abundance`` and ``food``. Sets to choose rules on and to check them on have other seeds; a set of
strains (``--strains``) has other genomes as well.
"""
