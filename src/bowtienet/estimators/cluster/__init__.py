"""Rows on the workers of a Dask scheduler: they and their local factors stay, statistics travel.

    parts = partitions(DaskSource(frame, "fare"))       a Dask table, checked on the workers
    moments = survey_partitions(client, parts, measure)
    with cluster_rows(client, parts, standardize) as rows:
        result = fit(model, rows, factors)

`source` reads Dask tables, `rows` keeps them for a fit, `ownership` says which worker has which
partition, `worker` is what runs there, `link` the connection, and `reading` what an estimator uses.
"""

from bowtienet.estimators.cluster.link import running_client
from bowtienet.estimators.cluster.rows import ClusterRows, cluster_rows, survey_partitions
from bowtienet.estimators.cluster.source import DaskSource, is_dask, partitions

__all__ = [
    "ClusterRows",
    "DaskSource",
    "cluster_rows",
    "is_dask",
    "partitions",
    "running_client",
    "survey_partitions",
]
