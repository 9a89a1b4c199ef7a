"""Writes a netCDF file with a year of monthly sea surface temperature, as a model would.

Usage: make_field.py FILE.nc

The field is made up, but looks like the real one: warm equator, seasons, eddies, and land, where
there is no value (NaN).
"""

import sys

import numpy as np
import xarray as xr


def smooth_noise(rng: np.random.Generator, shape: tuple[int, int], waves: int) -> np.ndarray:
    """A sum of plane waves, periodic in longitude, between about -1 and 1."""
    lat = np.linspace(-np.pi / 2, np.pi / 2, shape[0])[:, None]
    lon = np.linspace(0, 2 * np.pi, shape[1], endpoint=False)[None, :]
    field = np.zeros(shape)
    for _ in range(waves):
        k, m = rng.integers(1, 9), rng.uniform(-9, 9)
        field += np.sin(k * lon + m * lat + rng.uniform(0, 2 * np.pi)) / np.hypot(k, m)
    return field / np.abs(field).max()


def make(n_months: int = 12, n_lat: int = 180, n_lon: int = 360) -> xr.Dataset:
    rng = np.random.default_rng(2024)
    lat = np.linspace(-89.5, 89.5, n_lat)
    lon = np.linspace(0.5, 359.5, n_lon)
    land = smooth_noise(rng, (n_lat, n_lon), 12) > 0.25
    months = []
    for month in range(n_months):
        season = 4 * np.sin(np.deg2rad(lat)) * np.cos(2 * np.pi * (month - 7) / 12)
        field = 29 * np.cos(np.deg2rad(lat)) ** 1.5 - 1.5 + season
        field = field[:, None] + 1.5 * smooth_noise(rng, (n_lat, n_lon), 30)
        field += rng.normal(scale=0.02, size=field.shape)
        # Rounded as instruments are, and so that every machine's sine gives the same file.
        months.append(np.where(land, np.nan, field.round(3)))
    return xr.Dataset(
        {
            "sst": (
                ("time", "lat", "lon"),
                np.array(months, "f4"),
                {"long_name": "sea surface temperature", "units": "degree_Celsius"},
            )
        },
        coords={
            "time": np.array([f"2024-{m + 1:02d}-15" for m in range(n_months)], "M8[ns]"),
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "lon": ("lon", lon, {"units": "degrees_east"}),
        },
    )


if __name__ == "__main__":
    make().to_netcdf(sys.argv[1], engine="h5netcdf")
