"""dask and xarray, with worker processes that know only the package."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from conftest import rough, same_bits
from dask.distributed import Client, LocalCluster

import fz
import fz.numcodecs
import fz.zarr


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 2, "processes": True}
    with LocalCluster(dashboard_address=None, **options) as made, Client(made) as client:
        yield client


def test_workers_write_and_read_one_array(cluster, tmp_path):
    field = rough((120, 160))
    lazy = da.from_array(field, chunks=(40, 40))
    target = zarr.create_array(
        tmp_path / "a.zarr", shape=field.shape, dtype=field.dtype, chunks=(40, 40),
        **fz.zarr.codecs("abs:1e-3", "cuszp2"),
    )  # fmt: skip
    da.store(lazy, target, lock=False)
    back = da.from_zarr(str(tmp_path / "a.zarr")).compute()
    finite = np.isfinite(field)
    assert same_bits(back[~finite], field[~finite])
    assert np.abs(back[finite].astype("f8") - field[finite].astype("f8")).max() <= 1e-3
    workers = cluster.run(lambda: __import__("os").getpid())
    assert len(set(workers.values())) == 2


def test_frames_do_not_depend_on_the_process(cluster):
    field = rough((50, 60))
    frames = cluster.map(fz.compress, [field] * 4, bound="abs:1e-3", pure=False)
    assert {future.result() for future in frames} == {fz.compress(field, "abs:1e-3")}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_writes_and_reads_datasets(cluster, tmp_path, zarr_format):
    field = rough((6, 40, 50))
    field[np.isinf(field)] = 0  # xarray decodes the fill value to NaN
    data = xr.Dataset(
        {"t": (("time", "lat", "lon"), field, {"units": "K"})},
        coords={"time": np.arange(6), "lat": np.linspace(-90, 90, 40)},
    ).chunk(time=2)
    if zarr_format == 3:
        encoding = fz.zarr.codecs("abs:1e-3")
    else:
        encoding = {"compressors": (fz.numcodecs.FZ(bound="abs:1e-3"),)}
    path = tmp_path / "data.zarr"
    data.to_zarr(path, encoding={"t": encoding}, zarr_format=zarr_format, consolidated=False)
    with xr.open_zarr(path, consolidated=False) as back:
        assert back.t.dims == ("time", "lat", "lon") and back.t.attrs["units"] == "K"
        values = back.t.values
        assert (back.lat == data.lat).all()
    finite = np.isfinite(field)
    assert np.isnan(values[~finite]).all()
    assert np.abs(values[finite].astype("f8") - field[finite].astype("f8")).max() <= 1e-3
