"""Predictions as an ONNX graph, for machines without Python."""
