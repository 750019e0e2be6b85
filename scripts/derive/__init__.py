"""What is made from the declarations of the commands: ``python -m scripts.derive``.

``commands.toml`` has what no declaration tells. Read ``stages`` first: a command with its files and
parameters as all products see it. Then one module makes each product: ``wrappers`` (Snakemake),
``nextflow``, ``galaxy``, and ``schema``, the options in the schema of the workflow's config.
"""
