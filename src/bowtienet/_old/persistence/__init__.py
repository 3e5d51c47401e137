"""Saving and loading without running code: arrays in safetensors, everything else as plain JSON.

A file is one safetensors file. Its metadata have the single key "bowtienet", whose text is

    {"sha256": ..., "schema": 1, "kind": ..., "version": ..., "content": tree}

and the tree is JSON. None, booleans, strings, whole numbers, finite floats and lists stand for
themselves; all else is an object with one key, which says what it is:

    {"dict": {...}}   {"tuple": [...]}   {"float": "inf"}   {"Status": "converged"}
    {"array": 3}   {"symmetric": 3}   {"scalar": 3}
    {"InverseGamma": {"concentration": ..., "scale": ...}}

Arrays are named by their number; of symmetric matrices the upper triangles are kept. The digest is
that of the whole file with zeros in its own place, so that no byte can change unnoticed; it finds
accidents, not forgers, who can compute it too. A forged file can hold wrong numbers, but nothing
besides the classes in `CONTAINERS` is ever built.
"""

from bowtienet._old.persistence.file import (
    FORMAT,
    check_writable,
    kind_of,
    load,
    replacing,
    save,
    size,
    version,
)
from bowtienet._old.persistence.schema import check_fields, check_type
from bowtienet._old.persistence.tree import CONTAINERS, SCHEMA

__all__ = [
    "CONTAINERS",
    "FORMAT",
    "SCHEMA",
    "check_fields",
    "check_type",
    "check_writable",
    "kind_of",
    "load",
    "replacing",
    "save",
    "size",
    "version",
]
