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


def sea(fill):
    """Temperatures with land, and where the land is."""
    lat, lon = np.meshgrid(np.linspace(-1.5, 1.5, 60), np.linspace(0, 6.3, 90), indexing="ij")
    values = (288 + 12 * np.cos(lat) + np.sin(5 * lon)).astype("f4")
    land = np.sin(3 * lon) + np.cos(4 * lat) > 0.9
    values[land] = fill
    return np.stack([values, values + np.float32(0.5) * ~land]), land


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("bound", ["abs:1e-2", "range:1e-3"])
@pytest.mark.parametrize("is_decoded", [True, False])
def test_fill_values_of_xarray_survive_zarr(tmp_path, zarr_format, bound, is_decoded):
    # As they are in memory after xarray has read a file, with and without mask_and_scale.
    field, land = sea(np.nan if is_decoded else -9999.0)
    data = xr.Dataset({"t": (("time", "lat", "lon"), field), "n": ("time", np.arange(2))})
    if is_decoded:
        data.t.encoding = {"_FillValue": np.float32(-9999), "missing_value": np.float32(-9999)}
    else:
        data.t.attrs["_FillValue"] = np.float32(-9999)
    encoding = fz.zarr.encoding(data, bound, zarr_format=zarr_format)
    assert list(encoding) == ["t"]
    path = tmp_path / "a.zarr"
    data.to_zarr(path, encoding=encoding, zarr_format=zarr_format, consolidated=False)
    stored = zarr.open_group(path)["t"][...]
    assert (stored[:, land] == np.float32(-9999)).all()
    with xr.open_zarr(path, consolidated=False) as back:
        values = back.t.values
    assert (np.isnan(values) == land).all()
    valid = field[:, ~land].astype("f8")
    allowed = 1e-2 if bound.startswith("abs") else 1e-3 * (valid.max() - valid.min())
    assert np.abs(values[:, ~land].astype("f8") - valid).max() <= allowed


def test_the_encoding_keeps_what_it_does_not_change():
    data = xr.Dataset({"t": ("x", np.ones(4, "f8")), "packed": ("x", np.ones(4, "f8"))})
    data.t.encoding = {"chunks": (2,), "dtype": "f4", "zlib": True, "_FillValue": 1e20}
    data.packed.encoding = {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1}
    made = fz.zarr.encoding(data, "abs:1e-3", "cuszp2", exact=[-5.0])
    assert list(made) == ["t"]
    assert made["t"]["chunks"] == (2,) and made["t"]["dtype"] == "f4" and "zlib" not in made["t"]
    assert made["t"]["serializer"] == fz.zarr.FZ("abs:1e-3", "cuszp2", exact=[-5.0, 1e20])
