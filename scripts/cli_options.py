#!/usr/bin/env python3
"""Write the options of all commands into the documentation, from the command line itself.

    scripts/cli_options.py             write docs/options.md, and the tables of other pages
    scripts/cli_options.py --check     only say whether they are up to date

A page of a stage holds the table of its command between two comments, `<!-- options of ngsgpu
NAME -->` and `<!-- end of options -->`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ngsgpu.cli import app
from ngsgpu.cli.adapter import Command, Group, commands_below
from ngsgpu.cli.help import EXAMPLE
from ngsgpu.declared.parameters import Parameter

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.made import write_or_check  # noqa: E402

DOCS = ROOT / "docs"
TABLE = re.compile(
    r"(?<=<!-- options of ngsgpu )([a-z -]+?)( -->\n).*?(?=<!-- end of options -->)", re.DOTALL
)
CODE = re.compile(r"`[^`]*`|(?<![\w-])--?[A-Za-z][\w-]*")
"""What is code in a help: what is marked so, with all that is in it, and options."""
OPENING = """# Options of all commands

What `ngsgpu COMMAND --help` prints, on one page; `ngsgpu --version` prints the version.
[Exit statuses](index.md#exit-statuses) are the same for all commands.

"""


def code(text: str) -> str:
    """Code for a table; a bar inside backticks means different things to different programs."""
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def prose(text: str) -> str:
    """Help as Markdown: options as code, on one line."""
    text = " ".join(text.split()).replace("<", "&lt;").replace("|", "&#124;")
    return CODE.sub(lambda found: found[0] if found[0][0] == "`" else f"`{found[0]}`", text)


def description(text: str) -> str:
    """A command's help as Markdown, with its examples as code."""
    parts: list[str] = []
    examples: list[tuple[str, str]] = []
    for paragraph in text.split("\n\n"):
        if found := EXAMPLE.fullmatch(paragraph):
            examples.append((found[1] or "", found[2]))
        else:
            parts.append(prose(paragraph))
    if examples:
        # Commands in one column, behind what they are examples of.
        width = max(len(label) for label, _ in examples)
        lines = [f"{label:{width}}  {command}" for label, command in examples]
        parts.append("\n".join(["```text", *lines, "```"]))
    return "\n\n".join(parts) + "\n\n"


def default(parameter: Parameter) -> str:
    """The value of a parameter that is not given, as its help shows it."""
    value = parameter.option.word if parameter.default is None else parameter.default
    if value is ...:
        return "required"
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    if parameter.option.shown_default is not None:
        return prose(parameter.option.shown_default)
    return "" if value is None or value is False or value == "" else f"`{value}`"


def table(command: Command | Group) -> str:
    """A command's arguments and options as a Markdown table; empty if it has none."""
    rows = []
    for parameter in getattr(command, "parameters", ()):
        option = parameter.option
        names = [] if option.is_argument else [", ".join(parameter.names)]
        shown = code(" ".join([*names, *filter(None, [option.metavar])]))
        meaning = prose(option.help)
        if parameter.is_list and not option.is_argument and "repeat" not in meaning:
            meaning += " Repeatable."
        if option.environment is not None:
            meaning += f" Environment: `{option.environment}`."
        rows.append(f"| {shown} | {default(parameter)} | {meaning.strip()} |\n")
    if not rows:
        return ""
    return "| option | default | meaning |\n|---|---|---|\n" + "".join(rows)


def pages() -> dict[Path, str]:
    """Each page that holds options, with its text as it has to be."""
    known: dict[str, Command | Group] = {"ngsgpu": app}
    known |= {f"ngsgpu {name}": command for name, command in commands_below(app)}
    chapters = [
        f"## {name}\n\n{description(command.help or '')}{table(command)}"
        for name, command in known.items()
    ]
    made = {DOCS / "options.md": OPENING + "\n\n".join(map(str.rstrip, chapters)) + "\n"}
    for page in DOCS.glob("*.md"):
        text = page.read_text()
        if page not in made and TABLE.search(text):
            made[page] = TABLE.sub(
                lambda found: f"{found[1]}{found[2]}\n{table(known['ngsgpu ' + found[1]])}\n", text
            )
    return made


def main() -> int:
    """Write the pages, or compare them; return the exit status."""
    return write_or_check("scripts/cli_options.py", __doc__ or "", pages)


if __name__ == "__main__":
    sys.exit(main())
