"""The paper's experiments, beside the methods that it compares with and those of today.

``python -m benchmarks._old.paper`` (`make reproduce`) runs them and writes tables and figures;
``python -m benchmarks._old.paper.evidence`` puts them into the pages of the documentation.
"""
