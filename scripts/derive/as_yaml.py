"""YAML as the products write it: long lines, lists indented, nothing shared."""

from __future__ import annotations

import re
from typing import Any

import yaml

_WORDS = re.compile(r"[\w./-]+( [\w./-]+)*")


class Plain(yaml.SafeDumper):  # type: ignore[misc]
    """Texts of several lines are blocks."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        """Indent lists below their key."""
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """Write the same value again."""
        return True

    def style_of(self, text: str) -> str | None:
        """How a text is written: as a block, in quotes, or as YAML needs it."""
        return "|" if "\n" in text else None


class Quoting(Plain):
    """All texts but words have double quotes, as nf-core has them."""

    def style_of(self, text: str) -> str | None:
        """Add the quotes."""
        return super().style_of(text) or (None if _WORDS.fullmatch(text) else '"')


class OneLine(Plain):
    """Lists, and alternatives in them, have a line each."""

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        """Write values on one line."""
        flow = not any(isinstance(own, dict) for own in sequence)
        return super().represent_sequence(tag, sequence, flow_style=flow)

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
        """Write what has neither description nor parts on one line."""
        parts = [own for own in mapping.values() if isinstance(own, dict) and "default" in own]
        return super().represent_mapping(
            tag, mapping, flow_style=not parts and "description" not in mapping
        )


def dump(content: Any, dumper: type[Plain] = Plain) -> str:
    """A value as YAML.

    Args:
        content: dictionaries, lists, texts, numbers.
        dumper: the style.
    """
    text = yaml.dump(content, Dumper=dumper, sort_keys=False, width=2**16, allow_unicode=True)
    return str(text)


def _text(dumper: Plain, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=dumper.style_of(text))


Plain.add_representer(str, _text)
Quoting.add_representer(str, _text)
OneLine.add_representer(str, _text)
