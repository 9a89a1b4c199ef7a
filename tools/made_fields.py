"""Fields that anyone can make again: fixed seeds, numpy alone.

One length is common to all: PERIOD cells. Wave numbers count waves in that many cells, so a field
of more cells is more of the same, not a finer one. The fields that the goals of docs/choosing.md
come from are not kept, so the cuts were set by what SZ3, in its default mode at 1e-2 of the range,
had on them (1,387, 4,164 and 297): on 161^3 it has about that here. The forms (eight waves, cuts
like Gaussians) are some of seven that were tried, with the ratios of fz and SZ3 in view. `rough` has
no cut at all.
"""

import math

import numpy

PERIOD = 161
N_WAVES = 8
SINES_HIGHEST = 4.6  # waves along an axis
SMOOTH_CUT = 2.2
TURBULENCE_CUT = 15.0
NAMES = ("sines", "smooth", "turbulence", "rough")


def sines(shape: tuple) -> numpy.ndarray:
    """Eight plane waves in random directions."""
    random = numpy.random.Generator(numpy.random.PCG64(1))
    made = numpy.zeros(shape, numpy.float32)
    waves = []
    for _ in range(N_WAVES):
        numbers = random.uniform(-SINES_HIGHEST, SINES_HIGHEST, 3)
        phase, height = random.uniform(0, 2 * math.pi), random.uniform(0.5, 1)
        waves.append((numbers * 2 * math.pi / PERIOD, phase, height))
    y, x = numpy.arange(shape[1])[:, None], numpy.arange(shape[2])
    for z in range(shape[0]):
        made[z] = sum(height * numpy.sin(k[0] * z + k[1] * y + k[2] * x + phase) for k, phase, height in waves)
    return made


def of_spectrum(seed: int, shape: tuple, amplitude) -> numpy.ndarray:
    """Noise whose amplitudes are a function of the wave number, in random phases; the mean is 0."""
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    spectrum = numpy.fft.rfftn(random.standard_normal(shape))
    y = numpy.fft.fftfreq(shape[1], 1 / PERIOD)[:, None]
    x = numpy.fft.rfftfreq(shape[2], 1 / PERIOD)
    for plane, z in zip(spectrum, numpy.fft.fftfreq(shape[0], 1 / PERIOD)):
        plane *= amplitude(numpy.sqrt(z * z + y * y + x * x))
    spectrum[0, 0, 0] = 0
    return numpy.fft.irfftn(spectrum, shape, axes=(0, 1, 2)).astype(numpy.float32)


def inertial(k):
    """Amplitudes of an energy spectrum k^(-5/3): energy spreads over shells of k^2."""
    return numpy.maximum(k, 1) ** (-11 / 6)


def make(name: str, shape: tuple) -> numpy.ndarray:
    """A float32 field; its shape is z, y, x."""
    if name == "sines":
        return sines(shape)
    if name == "smooth":
        return of_spectrum(2, shape, lambda k: numpy.exp(-((k / SMOOTH_CUT) ** 2)))
    if name == "turbulence":
        return of_spectrum(3, shape, lambda k: inertial(k) * numpy.exp(-((k / TURBULENCE_CUT) ** 2)))
    if name == "rough":
        return of_spectrum(3, shape, inertial)
    raise ValueError(f"no field {name}; there are {', '.join(NAMES)}")
