/* Many arrays in one call: part of the C interface of fz, with the rules of fz.h. */
#ifndef FZ_BATCH_H
#define FZ_BATCH_H

#include "fz.h"

#ifdef __cplusplus
extern "C" {
#endif

/* fz_compress of n_fields arrays: field i from values[i], n_bytes[i] bytes, to archives[i], which
 * has room for capacities[i]. statuses[i] and archive_bytes[i] are what fz_compress for that field
 * alone would give; a field that fails leaves the others. FZ_OK when all are done, else the status
 * of the first that is not, with its message. Arrays in host memory may differ in length, and
 * threads of the options take one field each; an allocator of the caller is not used. With
 * FZ_MEMORY_DEVICE all have the same length. */
FZ_API fz_status fz_compress_batch(fz_pipeline* pipeline,
                                   size_t n_fields,
                                   const void* const* values,
                                   const size_t* n_bytes,
                                   void* const* archives,
                                   const size_t* capacities,
                                   size_t* archive_bytes,
                                   fz_status* statuses,
                                   void* stream);
/* The same for fz_decompress: archive i to values[i], which has room for capacities[i]; n_bytes[i]
 * is the length of its values, and 0 where it is not decoded. */
FZ_API fz_status fz_decompress_batch(fz_pipeline* pipeline,
                                     size_t n_fields,
                                     const void* const* archives,
                                     const size_t* archive_bytes,
                                     void* const* values,
                                     const size_t* capacities,
                                     size_t* n_bytes,
                                     fz_status* statuses,
                                     void* stream);

#ifdef __cplusplus
}
#endif

#endif
