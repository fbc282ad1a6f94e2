"""Reads a results folder with polars, DuckDB and pandas the way results/README.md says, and compares what they find.

    python tests/python/read_results.py RESULTS

The folder must hold runs of at least two experiments with different factors.
"""

import glob
import json
import pathlib
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq


def check_many_runs(results: str) -> None:
    for name in ("measurements", "samples", "settings"):
        pattern = f"{results}/*/*/{name}.parquet"
        paths = sorted(glob.glob(pattern))
        with_polars = pl.read_parquet(pattern)
        with_duckdb = duckdb.sql(f"SELECT * FROM '{pattern}'")
        with_pandas = pd.concat(map(pd.read_parquet, paths))
        assert with_polars.columns == with_duckdb.columns == list(with_pandas.columns), name
        assert with_polars.height == len(with_duckdb) == len(with_pandas) > 0, name
        # The first file must not decide: every order gives the same.
        backwards = pl.read_parquet(list(reversed(paths)))
        assert backwards.schema == with_polars.schema and backwards.height == with_polars.height, name
        check_no_nan(with_polars)

    pattern = f"{results}/*/*/measurements.parquet"
    runs = pl.read_parquet(pattern)
    assert runs["experiment"].n_unique() >= 2, "two experiments are needed"
    by_polars = (
        runs.filter(pl.col("valid") & (pl.col("kind") == "load"))
        .group_by("experiment", "treatment")
        .agg(pl.col("rows_per_second").median())
        .sort("experiment", "treatment")
        .rows()
    )
    by_duckdb = duckdb.sql(
        f"SELECT experiment, treatment, median(rows_per_second) FROM '{pattern}' "
        "WHERE valid AND kind = 'load' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    frame = pd.concat(map(pd.read_parquet, glob.glob(pattern)))
    frame = frame[frame.valid & (frame.kind == "load")]
    by_pandas = frame.groupby(["experiment", "treatment"]).rows_per_second.median()
    assert len(by_polars) == len(by_duckdb) == len(by_pandas) > 0
    for row, other, third in zip(by_polars, by_duckdb, by_pandas):
        assert row[:2] == other[:2], (row, other)
        assert abs(row[2] - other[2]) < 1e-6 and abs(row[2] - third) < 1e-6, (row, other, third)


def check_no_nan(frame: pl.DataFrame) -> None:
    for column in frame.select(pl.col(pl.Float64)):
        assert not column.is_nan().any() and not column.is_infinite().any(), column.name


def check_factors(results: str) -> None:
    for run in pathlib.Path(results).glob("*/*"):
        trials = pl.read_parquet(run / "measurements.parquet")
        treatments = pl.read_parquet(run / "treatments.parquet")
        joined = trials.join(treatments, on=["experiment", "run", "treatment"])
        assert joined.height == trials.height
        for row in joined.iter_rows(named=True):
            for factor, level in json.loads(row["factors"]).items():
                assert row[factor] == level, (factor, level, row[factor])
    name, factor = next(
        (row["experiment"], next(iter(json.loads(row["factors"]))))
        for row in pl.read_parquet(f"{results}/*/*/measurements.parquet").iter_rows(named=True)
    )
    pattern = f"{results}/{name}/*/measurements.parquet"
    levels = pl.read_parquet(pattern).with_columns(pl.col("factors").str.json_path_match(f"$.{factor}").alias(factor))
    by_duckdb = duckdb.sql(f"SELECT DISTINCT factors->>'$.{factor}' FROM '{pattern}'").fetchall()
    assert set(levels[factor]) == {row[0] for row in by_duckdb}


def check_metadata(results: str) -> None:
    for path in glob.glob(f"{results}/*/*/*.parquet"):
        metadata = pq.read_metadata(path).metadata
        assert metadata[b"loadlab.schema_version"] == b"1", path
        assert b"loadlab.tool_version" in metadata, path
        json.loads(metadata[b"loadlab.units"])


def main() -> None:
    results = sys.argv[1]
    check_many_runs(results)
    check_factors(results)
    check_metadata(results)
    print("polars, DuckDB and pandas read the same")


if __name__ == "__main__":
    main()
