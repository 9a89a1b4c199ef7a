"""fz.hdf5 as the wheel brings it, with the HDF5 that h5py brings."""

import h5py
import numpy as np
import pytest
import xarray as xr
from conftest import wave

import fz
import fz.hdf5


def test_the_wheel_has_the_plugin_and_h5py_sees_it():
    assert fz.hdf5.plugin_directory().parent.name == "fz"
    assert fz.hdf5.is_visible()


def test_datasets_keep_their_bound_and_chunks_are_frames(tmp_path):
    field = wave((40, 50))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        options = fz.hdf5.filter(bound="abs:1e-3", preset="cuszp2")
        file.create_dataset("d", data=field, chunks=(20, 50), **options)
    with h5py.File(tmp_path / "a.h5") as file:
        back = file["d"][...]
        _, frame = file["d"].id.read_direct_chunk((20, 0))
    assert np.abs(back.astype("f8") - field.astype("f8")).max() <= 1e-3
    assert (fz.decompress(frame) == back[20:]).all()


def test_xarray_writes_netcdf_with_missing_values(tmp_path):
    field = wave((30, 40))
    field[3, 4:20] = np.nan
    data = xr.Dataset({"t": (("y", "x"), field)})
    options = {**fz.hdf5.filter(bound="abs:1e-3"), "chunksizes": (30, 40)}
    data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding={"t": options})
    back = xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf")["t"].values
    assert (np.isnan(back) == np.isnan(field)).all()
    assert np.nanmax(np.abs(back.astype("f8") - field.astype("f8"))) <= 1e-3


@pytest.mark.parametrize("bound", ["abs:1e-2", "range:1e-3"])
@pytest.mark.parametrize("preset", ["pfpl", "cuszp2"])
def test_fill_values_of_xarray_survive_netcdf(tmp_path, bound, preset):
    field = 280 + 10 * wave((60, 80))
    field[10:40, 5:60] = np.nan
    land = np.isnan(field)
    data = xr.Dataset({"t": (("y", "x"), field)})
    options = fz.hdf5.filter(bound=bound, preset=preset)
    fill = {"_FillValue": np.float32(-9999), "chunksizes": (30, 40)}
    data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding={"t": {**fill, **options}})
    with h5py.File(tmp_path / "a.nc") as file:
        assert (file["t"][...][land] == np.float32(-9999)).all()
    back = xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf")["t"].values
    assert (np.isnan(back) == land).all()
    valid = field[~land].astype("f8")
    allowed = 1e-2 if bound.startswith("abs") else 1e-3 * (valid.max() - valid.min())
    assert np.abs(back[~land].astype("f8") - valid).max() <= allowed


def test_mistakes_say_what_is_allowed():
    with pytest.raises(ValueError, match="presets are lossless, cuszp"):
        fz.hdf5.filter(bound="abs:1e-3", preset="none")
