"""Files that nobody wrote for us: what they hold, and what becomes of them."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

from hypothesis import strategies as st

from bowtienet import load, read_table

SUFFIXES = (".csv", ".tsv", ".xlsx", ".parquet", ".jsonl", ".btn")
STARTS = (b"", b"PK\x03\x04", b"PAR1", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1f\x8b", b'{"a": 1}\n')
CONTENTS = st.tuples(
    st.sampled_from(STARTS),
    st.one_of(
        st.binary(max_size=200),
        st.text("ab,;\t|\"'\n\r12.-é:/ ", max_size=300).map(str.encode),
        st.lists(st.sampled_from(("1,2\n", "a;b\n", '"x\n', "1e400,nan\n", "\0"))).map(
            lambda lines: "".join(lines).encode()
        ),
    ),
).map(b"".join)
"""Of files that nobody wrote for us."""


def check_foreign(content: bytes) -> None:
    """A file that nobody wrote for us is a table or refused in one sentence."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        for suffix in SUFFIXES:
            path = Path(folder, "file" + suffix)
            path.write_bytes(content)
            try:
                (load if suffix == ".btn" else read_table)(path)
            except ValueError as error:
                assert_sentence(error)
            else:
                assert suffix != ".btn"


def assert_sentence(error: ValueError) -> None:
    """Ours, or a list of ours: more than a word, and no page."""
    lines = str(error).splitlines()
    assert len(str(error)) > 20, error
    assert max(map(len, lines)) < 400, error
    assert len(lines) < 20, error
