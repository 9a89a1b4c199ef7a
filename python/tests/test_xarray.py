"""Datasets of xarray, whatever writes them."""

import numpy as np
import pytest
import xarray as xr

import fz.hdf5
import fz.xarray
import fz.zarr

FILL = np.float32(-9999)


def ocean():
    """Temperatures with land as a fill value, counts, flags and a coordinate of floats."""
    y, x = np.meshgrid(np.linspace(-1, 1, 40), np.linspace(0, 6, 60), indexing="ij")
    tos = (280 + 10 * np.cos(y) + np.sin(x)).astype("f4")
    tos[np.sin(2 * x) + y > 1] = np.nan
    data = xr.Dataset(
        {"tos": (("lat", "lon"), tos), "count": (("lat",), np.arange(40, dtype="i4")),
         "is_ice": (("lat", "lon"), tos < 275), "rough": (("lat", "lon"), np.sin(20 * tos))},
        coords={"lat": np.linspace(-90, 90, 40), "lon": np.linspace(0, 360, 60)},
    )  # fmt: skip
    data.tos.encoding["_FillValue"] = FILL
    return data


def written(data, path, encoding, engine):
    if engine == "zarr":
        data.to_zarr(path, encoding=encoding, consolidated=False)
        return xr.open_zarr(path, consolidated=False)
    data.to_netcdf(path, engine=engine, encoding=encoding)
    return xr.open_dataset(path, engine=engine)


@pytest.fixture(params=["zarr", "h5netcdf"])
def engine(request):
    if request.param == "h5netcdf" and not fz.hdf5.is_visible():
        pytest.skip("the HDF5 of h5py does not load the filter")
    return request.param


def test_bounds_by_variable_keep_mask_and_bound(engine, tmp_path):
    data = ocean()
    encoding = fz.xarray.encoding(data, {"tos": "abs:0.01"}, engine=engine)
    assert list(encoding) == ["tos"]
    with written(data, tmp_path / "a", encoding, engine) as back:
        land = np.isnan(data.tos.values)
        assert (np.isnan(back.tos.values) == land).all()
        error = np.abs(back.tos.values[~land].astype("f8") - data.tos.values[~land])
        assert 0 < error.max() <= 0.01
        for name in ("count", "is_ice", "rough", "lat", "lon"):
            assert np.array_equal(back[name].values, data[name].values, equal_nan=True)


def test_one_bound_is_for_floats_and_no_coordinates(engine):
    encoding = fz.xarray.encoding(ocean(), "range:1e-3", engine=engine)
    assert sorted(encoding) == ["rough", "tos"]


def test_lossless_takes_what_is_no_float(engine, tmp_path):
    data = ocean().drop_vars("is_ice") if engine == "h5netcdf" else ocean()
    encoding = fz.xarray.encoding(data, "lossless", engine=engine)
    assert sorted(encoding) == sorted(data.data_vars)
    with written(data, tmp_path / "a", encoding, engine) as back:
        for name in data.data_vars:
            assert np.array_equal(back[name].values, data[name].values, equal_nan=name != "is_ice")


def test_what_cannot_be_is_said(engine):
    data = ocean()
    with pytest.raises(TypeError, match="'count' is stored as int32.*'lossless'"):
        fz.xarray.encoding(data, {"count": "abs:1"}, engine=engine)
    with pytest.raises(KeyError, match="no data variable 'sst'; there are tos"):
        fz.xarray.encoding(data, {"sst": "abs:1"}, engine=engine)
    with pytest.raises(ValueError, match="h5netcdf"):
        fz.xarray.encoding(data, "abs:1", engine="netcdf4")
    with pytest.raises(ValueError, match="zarr, h5netcdf, netcdf4"):
        fz.xarray.encoding(data, "abs:1", engine="grib")


def test_types_that_frames_do_not_have_pass_through_zarr(tmp_path):
    import zarr

    for dtype in ("f2", "?", "i8", "u1"):
        values = (np.arange(600).reshape(20, 30) % 7).astype(dtype)
        array = zarr.create_array(
            tmp_path / f"{np.dtype(dtype).name}.zarr", data=values, chunks=(7, 30),
            **fz.zarr.codecs("lossless"),
        )  # fmt: skip
        assert array[:].dtype == values.dtype and np.array_equal(array[:], values)
    with pytest.raises(TypeError, match="bound='lossless'"):
        zarr.create_array({}, data=np.arange(5), **fz.zarr.codecs("abs:1e-3"))
