#ifndef FZ_HDF5_H
#define FZ_HDF5_H

/* The HDF5 filter of fz, for programs in C and C++: its number and its parameters (cd_values).
 * This header needs neither HDF5 nor fz to link; the filter itself is a plugin that HDF5 loads.
 * docs/hdf5.md has the layout in words. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In the range that The HDF Group leaves to private use. Files with this number stay readable even
 * when fz gets a registered one. */
#define FZ_HDF5_FILTER_ID 62074

/* First word of cd_values. A filter that meets a number it does not know refuses to write. */
#define FZ_HDF5_LAYOUT 1u

/* Names as C has them. */
/* NOLINTBEGIN(readability-identifier-naming) */

/* Where what stands; the first FZ_HDF5_USER_WORDS come from the user, the others are filled in when
 * the dataset is created, and whatever the user put there is overwritten. */
enum {
  FZ_HDF5_WORD_LAYOUT = 0,
  FZ_HDF5_WORD_FLAGS = 1,
  FZ_HDF5_WORD_PRESET = 2,
  FZ_HDF5_WORD_MODE = 3,
  FZ_HDF5_WORD_BOUND = 4, /* two words, the low one first: the bits of a double */
  FZ_HDF5_USER_WORDS = 6,
  FZ_HDF5_WORD_TYPE = 6, /* as fz::DataType */
  FZ_HDF5_WORD_HAS_FILL = 7,
  FZ_HDF5_WORD_FILL = 8, /* two words, the low one first: the bits of the fill value */
  FZ_HDF5_WORD_RANK = 10,
  FZ_HDF5_WORD_DIMS = 11, /* of a chunk, the slowest first, as HDF5 has them */
  FZ_HDF5_MAX_RANK = 32,
  FZ_HDF5_MAX_WORDS = FZ_HDF5_WORD_DIMS + FZ_HDF5_MAX_RANK
};

/* Numbers of presets; part of the format of cd_values, so they never change. */
enum {
  FZ_HDF5_LOSSLESS = 0, /* any integer or float of 1, 2, 4 or 8 bytes, bit for bit */
  FZ_HDF5_CUSZP = 1,
  FZ_HDF5_CUSZP2 = 2,
  FZ_HDF5_CUSZP3 = 3,
  FZ_HDF5_CUSZP3_FIXED = 4,
  FZ_HDF5_CUSZP3_OUTLIER = 5,
  FZ_HDF5_FZGPU = 6,
  FZ_HDF5_PFPL = 7,
  FZ_HDF5_CUSZ = 8,
  FZ_HDF5_LORENZO_BITPACK = 9,
  FZ_HDF5_QUANTIZER_LORENZO_BITPACK = 10,
  FZ_HDF5_SPEED = 11,
  FZ_HDF5_BEST = 12,
  FZ_HDF5_AUTO = 13,
  FZ_HDF5_BALANCED = 14,
  FZ_HDF5_FAST = 15
};

/* Kinds of bound, as fz::ErrorBoundMode. A range is that of each chunk. */
enum { FZ_HDF5_ABS = 0, FZ_HDF5_REL = 1, FZ_HDF5_RANGE = 2 };

/* A chunk that the preset cannot keep within the bound is an error instead of being stored bit for
 * bit. */
enum { FZ_HDF5_STRICT = 1 };

/* Writes the words that a user gives to H5Pset_filter() and nc_def_var_filter(). Returns how many:
 * FZ_HDF5_USER_WORDS. */
static inline size_t fz_hdf5_cd_values(unsigned int values[FZ_HDF5_USER_WORDS],
                                       unsigned int preset,
                                       unsigned int mode,
                                       double bound,
                                       unsigned int flags) {
  uint64_t bits = 0;
  memcpy(&bits, &bound, sizeof bits);
  values[FZ_HDF5_WORD_LAYOUT] = FZ_HDF5_LAYOUT;
  values[FZ_HDF5_WORD_FLAGS] = flags;
  values[FZ_HDF5_WORD_PRESET] = preset;
  values[FZ_HDF5_WORD_MODE] = mode;
  values[FZ_HDF5_WORD_BOUND] = (unsigned int)(bits & 0xffffffffu);
  values[FZ_HDF5_WORD_BOUND + 1] = (unsigned int)(bits >> 32);
  return FZ_HDF5_USER_WORDS;
}

/* Adds what HDF5 otherwise fills in: for programs that compress chunks themselves. `type` is a
 * number of fz::DataType; `values` has room for FZ_HDF5_MAX_WORDS and starts with the words of
 * fz_hdf5_cd_values(). Returns how many words there are now. */
static inline size_t fz_hdf5_cd_values_of_chunk(unsigned int values[FZ_HDF5_MAX_WORDS],
                                                unsigned int type,
                                                unsigned int rank,
                                                const uint64_t* chunk_dims) {
  unsigned int i = 0;
  values[FZ_HDF5_WORD_TYPE] = type;
  values[FZ_HDF5_WORD_HAS_FILL] = 0;
  values[FZ_HDF5_WORD_FILL] = 0;
  values[FZ_HDF5_WORD_FILL + 1] = 0;
  values[FZ_HDF5_WORD_RANK] = rank;
  for (i = 0; i < rank && i < FZ_HDF5_MAX_RANK; ++i) {
    values[FZ_HDF5_WORD_DIMS + i] = (unsigned int)chunk_dims[i];
  }
  return FZ_HDF5_WORD_DIMS + (size_t)rank;
}

/* Exported by the plugin, for languages that open it at run time: the same from words. `preset` is
 * a name, `bound` is "abs:1e-3", "rel:1e-3" or "range:1e-3" (ignored for "lossless"; may be null).
 * Returns the number of words, or 0 with a message. */
typedef size_t (*fz_hdf5_cd_values_from_text_t)(const char* preset,
                                                const char* bound,
                                                unsigned int flags,
                                                unsigned int* values,
                                                size_t n_values_max,
                                                char* message,
                                                size_t message_bytes_max);

/* fz_hdf5_last_error(), exported by the plugin: why the filter last failed in this thread; empty
 * when it never did. HDF5 from 1.14 on does not show what filters say. */
typedef const char* (*fz_hdf5_last_error_t)(void);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif
