"""Libraries that only some methods need."""

from __future__ import annotations

import importlib


def import_onnx() -> None:
    """Raise an ImportError that says what to type where ONNX is not installed."""
    try:
        importlib.import_module("onnx")
    except ImportError as error:
        raise ImportError(
            "to_onnx needs onnx: install it with pip install 'bowtienet[onnx]'."
        ) from error
