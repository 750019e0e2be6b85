"""One HTML report a study, and MultiQC content for each sample.

Read ``study`` first (the manifest), then ``collect`` (files into tables), ``plots`` (tables into
SVG), ``render`` (all of it into one page through ``templates/``). ``multiqc`` stands by itself.
"""
