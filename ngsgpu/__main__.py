"""``python -m ngsgpu`` is ``ngsgpu``."""

from ngsgpu.cli import main_cli

main_cli()
