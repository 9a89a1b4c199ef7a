/* What the module for Fortran is compared with. */
#include "fz/hdf5.h"

size_t words_of_c(
    unsigned int* values, unsigned preset, unsigned mode, double bound, unsigned flags);

size_t words_of_c(
    unsigned int* values, unsigned preset, unsigned mode, double bound, unsigned flags) {
  return fz_hdf5_cd_values(values, preset, mode, bound, flags);
}

int filter_of_c(void);

int filter_of_c(void) {
  return FZ_HDF5_FILTER_ID;
}

unsigned last_preset_of_c(void);

unsigned last_preset_of_c(void) {
  return FZ_HDF5_FAST;
}
