# What the user wrote: checks the config, reads any sheet, and names what is wrong by key, or by file,
# line and column, all at once, and what a misspelt name should be. Whether a file is there is not
# asked, since another rule may make it. Functions only; samples.smk says what rows mean.

import csv
import re
from difflib import get_close_matches
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator
from snakemake.exceptions import WorkflowError

# Of a config.
MOST_VALUES = 100_000
DEEPEST = 50

# Columns of the sheets that hold paths.
PATHS = {
    "fastq_1",
    "fastq_2",
    "reference",
    "references",
    "variants",
    "truth",
    "path",
    "taxonomy",
    "map",
}


def meant(name, known):
    """The known name that a misspelt one is closest to; None if it is like none of them."""

    def plain(text):
        return "".join(letter for letter in text.casefold() if letter.isalnum())

    names = {plain(own): own for own in known}
    close = get_close_matches(plain(name), names, n=1, cutoff=0.65)
    return names[close[0]] if close else None


def unknown_keys(error):
    """Say which keys of the config the schema does not know, and what they should be."""
    known = error.schema.get("properties", {})
    place = "".join(f"{key}." for key in error.absolute_path)
    for key in error.instance:
        if key not in known:
            own = meant(str(key), known)
            hint = (
                f"did you mean {place}{own}?"
                if own
                else f"there are {', '.join(map(str, known))}"
            )
            yield f"{place}{key}: no such key; {hint}"


def give_types(config, schema):
    """Give texts the types that the schema asks for.

    What stands in braces after --config, as in ``trim={enabled: false}``, comes as texts.
    """
    kinds = {"boolean": bool, "integer": int, "number": (int, float)}
    for key, own in schema.get("properties", {}).items():
        value = config.get(key)
        if isinstance(value, dict):
            give_types(value, own)
        elif isinstance(value, str) and own.get("type") in list(kinds):
            meant = yaml.safe_load(value)
            if isinstance(meant, kinds[own["type"]]):
                config[key] = meant


def check_size(config):
    """Refuse a config that aliases of YAML make larger than anybody writes.

    Raises:
        WorkflowError: it is so.
    """
    waiting, count = [(config, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if count > MOST_VALUES or depth > DEEPEST:
            raise WorkflowError(
                "the config cannot be used: it has too many values, or is nested too deeply; "
                "write values in place of aliases (*)"
            )
        inner = value.values() if isinstance(value, dict) else value
        if isinstance(value, (dict, list)):
            waiting.extend((own, depth + 1) for own in inner)


def check_config(config, schema_file):
    """Give the config the types of the schema, and refuse one that does not fit, in a line a problem.

    Raises:
        WorkflowError: it does not fit.
    """
    check_size(config)
    with open(schema_file) as file:
        schema = yaml.safe_load(file)
    give_types(config, schema)
    validator = Draft202012Validator(schema)
    problems = []
    for error in sorted(
        validator.iter_errors(config), key=lambda error: error.json_path
    ):
        if error.validator == "additionalProperties" and "properties" in error.schema:
            problems.extend(unknown_keys(error))
        else:
            place = ".".join(map(str, error.absolute_path))
            said = error.schema.get("description")
            hint = f" ({said})" if said and place else ""
            problems.append(f"{place}: {error.message}{hint}".lstrip(": "))
    if problems:
        raise WorkflowError(
            "the config cannot be used (config/README.md describes it): "
            + "\n  ".join(problems)
        )


def converted(text, schema):
    """Give a cell the type its column's schema asks for, or leave it for the schema to refuse."""
    kinds = {"integer": int, "number": float}
    try:
        return kinds.get(schema.get("type"), str)(text)
    except ValueError:
        return text


def with_data(text):
    """A path with the folder that the config names as ``data`` in place of ``{data}``.

    Raises:
        WorkflowError: the config names none.
    """
    if "{data}" not in text:
        return text
    if config["data"] is None:
        raise WorkflowError(
            f"'{text}' is in a folder that you name: add --config data=FOLDER"
        )
    return text.replace("{data}", str(config["data"]).rstrip("/"))


def sheet_lines(sheet):
    """Cells of a sheet's lines with their numbers: separated as in the first line, the header.

    Blank lines and lines that begin with '#' are skipped.
    """
    try:
        lines = Path(sheet).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkflowError(f"cannot read the sheet '{sheet}': {error}") from error
    delimiter = None
    for number, line in enumerate(lines, start=1):
        if not line.strip(" \t,;") or line.startswith("#"):
            continue
        if delimiter is None:
            delimiter = next((mark for mark in "\t,;" if mark in line), "\t")
        try:
            cells = [
                cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))
            ]
        except csv.Error as error:
            raise WorkflowError(f"{sheet}, line {number}: {error}") from error
        while cells and not cells[-1]:
            cells.pop()
        yield number, cells


def check_header(sheet, number, header, schema):
    """Refuse a header that lacks a column, has one twice, or one that looks misspelt.

    Raises:
        WorkflowError: it cannot be used.
    """
    columns = schema["properties"]
    absent = [name for name in columns if name not in header]
    problems = [
        f"there are two columns '{name}'" for name in columns if header.count(name) > 1
    ]
    for name in header:
        if name not in columns and (own := meant(name, absent)):
            problems.append(f"column '{name}': did you mean {own}?")
            absent.remove(own)
    problems += [
        f"there is no column '{name}'" for name in absent if name in schema["required"]
    ]
    if problems:
        raise WorkflowError(
            f"{sheet}, line {number}: {'; '.join(problems)}. The columns are {', '.join(columns)}, "
            f"of which {', '.join(schema['required'])} are required; any others are passed over"
        )


def braced_paths(row, number):
    """List the paths of a row with braces, which Snakemake takes for wildcards."""
    return [
        f"line {number}, column {column}: '{cell}' has a brace, which Snakemake takes for a "
        "wildcard; rename the file or folder, or make a link to it"
        for column, cell in row.items()
        if column in PATHS and re.search("[{}]", str(cell))
    ]


def read_rows(sheet, schema_file):
    """Read a sheet; returns (line number, row) pairs and a list of problems.

    An empty cell is a missing one, and columns that the schema does not know are passed over.
    """
    schema = yaml.safe_load(Path(schema_file).read_text())
    columns = schema["properties"]
    validator = Draft202012Validator(schema)
    rows, problems = [], []
    header = None
    for number, cells in sheet_lines(sheet):
        if header is None:
            header = cells
            check_header(sheet, number, header, schema)
            continue
        if len(cells) > len(header):
            problems.append(
                f"line {number}: {len(cells)} cells, but the header has {len(header)}"
            )
            continue
        row = {
            name: converted(with_data(cell), columns[name])
            for name, cell in zip(header, cells)
            if cell and name in columns
        }
        errors = sorted(validator.iter_errors(row), key=lambda error: error.message)
        for error in errors:
            column = str(error.path[0]) if error.path else ""
            if column:
                expected = columns[column]["description"]
                problems.append(
                    f"line {number}, column {column}: '{row[column]}' is not right; "
                    f"expected {expected}"
                )
            else:
                problems.append(f"line {number}: {error.message}: fill in the cell")
        problems.extend(braced_paths(row, number))
        if not errors:
            rows.append((number, row))
    if header is None:
        problems.append("there is not even a header line")
    return rows, problems


def refuse(sheet, problems):
    """Raise one error that lists all the problems of a sheet."""
    if problems:
        raise WorkflowError(
            f"{sheet} cannot be used:\n" + "\n".join(f"  {p}" for p in problems)
        )
