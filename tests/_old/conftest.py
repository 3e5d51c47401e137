"""Settings that must precede every import of JAX, and the random generator of the tests."""

import os
import signal
import zlib

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So shells start what runs in the background; tests of Ctrl-C need one that is heeded.
    signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np
import pytest


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Generator seeded by the test's own name: the same on every machine and in every order."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.replace("tests/_old/", "tests/").encode()))
