/* Many arrays in one call: part of the C interface of fz, with the rules of fz.h. */
#ifndef FZ_BATCH_H
#define FZ_BATCH_H

#include "fz.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The fields of one call. Each array has n_fields entries; the last two are results. */
typedef struct fz_batch {
  size_t struct_size; /* sizeof(fz_batch) */
  size_t n_fields;
  const void* const* inputs;
  const size_t* input_bytes;
  void* const* outputs;
  const size_t* capacities; /* bytes of the outputs */
  size_t* output_bytes;
  fz_status* statuses;
} fz_batch;

/* fz_compress of n_fields arrays: inputs are values, outputs archives. statuses[i] and
 * output_bytes[i] are what fz_compress for that field alone would give; a field that fails leaves
 * the others. FZ_OK when all are done, else the status of the first that is not, with its message.
 * Arrays in host memory may differ in length, and threads of the options take one field each; an
 * allocator of the caller is not used. With FZ_MEMORY_DEVICE all have the same length. */
FZ_API fz_status fz_compress_batch(fz_pipeline* pipeline, const fz_batch* batch, void* stream);
/* The same for fz_decompress: inputs are archives, outputs values. output_bytes[i] is 0 where a
 * field is not decoded, unless its buffer is too small. */
FZ_API fz_status fz_decompress_batch(fz_pipeline* pipeline, const fz_batch* batch, void* stream);

#ifdef __cplusplus
}
#endif

#endif
