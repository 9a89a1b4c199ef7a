/* The C interface of fz. C99, needs no other header of the project; docs/c_api.md is its guide.
 *
 * Rules that hold for every function here:
 *  - It returns a status unless it cannot fail. FZ_OK is 0; fz_last_error() has the message.
 *  - No exception leaves it, it never ends the process and never prints.
 *  - Any bytes may be given as an archive: the result is right or an error. Nothing is read outside
 *    the archive's bytes or written outside the caller's buffer.
 *  - After an error the results it would have set are 0 or NULL (the exceptions say so), and every
 *    handle can be used on.
 *  - A handle is for one thread at a time unless it says more; different handles are independent.
 */
#ifndef FZ_H
#define FZ_H

#include <stddef.h>
#include <stdint.h>

#define FZ_VERSION_MAJOR 0
#define FZ_VERSION_MINOR 2
#define FZ_VERSION_PATCH 0

#if defined(__GNUC__)
#define FZ_API __attribute__((visibility("default")))
#else
#define FZ_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status ---- */

typedef int32_t fz_status;
enum {
  FZ_OK = 0,
  FZ_ERROR_INVALID_ARGUMENT = 1, /* a setting or argument outside its range, or NULL */
  FZ_ERROR_INVALID_STATE = 2,    /* the call does not fit the handle */
  FZ_ERROR_GRAPH = 3,            /* the stages do not form a valid pipeline */
  FZ_ERROR_TYPE_MISMATCH = 4,
  FZ_ERROR_BAD_SIZE = 5,
  FZ_ERROR_BUFFER_TOO_SMALL = 6, /* the size that is needed was stored nevertheless */
  FZ_ERROR_BOUND_VIOLATION = 7,  /* a value cannot be kept within the error bound */
  FZ_ERROR_CORRUPT = 8,          /* an archive is damaged or was never one */
  FZ_ERROR_UNSUPPORTED = 9,      /* valid, but not by this build, backend or version */
  FZ_ERROR_LIMIT = 10,           /* decoding would exceed a limit that the caller set */
  FZ_ERROR_OUT_OF_MEMORY = 11,
  FZ_ERROR_IO = 12,
  FZ_ERROR_CONFIG = 13, /* a configuration is wrong; the message has the line */
  FZ_ERROR_NO_DEVICE = 14,
  FZ_ERROR_CUDA = 15,
  FZ_ERROR_INTERNAL = 16,   /* a broken promise inside the library: please report */
  FZ_ERROR_FILL_VALUE = 17, /* a fill value sets the range that a bound is relative to */
  FZ_ERROR_TARGET = 18,     /* no bound reaches the ratio or PSNR that was asked for */
  FZ_ERROR_CANCELLED = 19   /* the caller asked the call to stop */
};

/* "corrupt", "limit", ...; "unknown" for other numbers. Never NULL. */
FZ_API const char* fz_status_name(fz_status status);
/* The message of this thread's last call that failed; "" before the first. Never NULL. Valid until
 * the thread's next failing call; cut at 1023 bytes. */
FZ_API const char* fz_last_error(void);
/* "major.minor.patch" of the library that is running; FZ_VERSION_... are those it was compiled
 * against. */
FZ_API const char* fz_version(void);

/* ---- Types and choices; the numbers never change ---- */

enum { /* element types */
       FZ_TYPE_UINT8 = 0,
       FZ_TYPE_UINT16 = 1,
       FZ_TYPE_UINT32 = 2,
       FZ_TYPE_UINT64 = 3,
       FZ_TYPE_INT8 = 4,
       FZ_TYPE_INT16 = 5,
       FZ_TYPE_INT32 = 6,
       FZ_TYPE_INT64 = 7,
       FZ_TYPE_FLOAT32 = 8,
       FZ_TYPE_FLOAT64 = 9,
       FZ_TYPE_UNKNOWN = 255
};
enum { FZ_BACKEND_AUTO = 0, FZ_BACKEND_CPU = 1, FZ_BACKEND_CUDA = 2 };
enum {
  FZ_MEMORY_HOST = 0,  /* the caller's arrays and archives are host memory, on either backend */
  FZ_MEMORY_DEVICE = 1 /* they are device memory; CUDA only */
};
enum {
  FZ_BOUND_DEFAULT = 0, /* as the preset, text or archive says */
  FZ_BOUND_ABS = 1,     /* |x - x'| <= error_bound */
  FZ_BOUND_REL = 2,     /* |x - x'| <= error_bound * |x| */
  FZ_BOUND_NOA = 3      /* |x - x'| <= error_bound * (max - min); see FZ_ERROR_FILL_VALUE */
};
enum { FZ_FUSION_AUTO = 0, FZ_FUSION_OFF = 1 };
enum {
  FZ_FALLBACK_LOSSLESS = 0, /* a lossless archive where that is smaller than a lossy one */
  FZ_FALLBACK_NONE = 1      /* archives are what the stages make, however large */
};

enum {
  FZ_FILL_CHECK = 0, /* FZ_ERROR_FILL_VALUE where a value that nobody declared sets the range */
  FZ_FILL_TRUST = 1  /* there are no fill values but those declared */
};

/* "float32", ...; "unknown" for anything else. Never NULL. */
FZ_API const char* fz_type_name(int32_t type);
/* Bytes of one element; 0 for FZ_TYPE_UNKNOWN and numbers that are no type. */
FZ_API size_t fz_type_size(int32_t type);
/* 1 when this build has the backend and it can be used on this machine, else 0. */
FZ_API int32_t fz_backend_available(int32_t backend);

/* ---- Options ---- */

/* A setting of a stage: "stage.key", or "key" for the first stage that has it, and its text. */
typedef struct fz_param {
  const char* key;
  const char* value;
} fz_param;

/* Where memory comes from. Used for the working buffers of a pipeline on the CPU and for results
 * that fz_compress_alloc and fz_decompress_alloc hand over. Bookkeeping (names, graphs, handles,
 * threads) and device buffers inside a CUDA pipeline are the library's own. Both functions or none;
 * they are called on the thread that calls the library, and must not call it back. */
typedef struct fz_allocator {
  /* NULL when there is no memory: the call then fails with FZ_ERROR_OUT_OF_MEMORY. `alignment` is a
   * power of two, at most 64. */
  void* (*allocate)(size_t n_bytes, size_t alignment, void* context);
  void (*release)(void* memory, size_t n_bytes, void* context);
  void* context;
} fz_allocator;

/* Filled by fz_options_init(&options, sizeof options), then changed. Pointers are needed only
 * during the call that takes the options, except allocator.context. */
typedef struct fz_options {
  size_t struct_size;        /* of the caller's struct; set by fz_options_init */
  int32_t type;              /* element type; FZ_TYPE_UNKNOWN: as configured (presets: float32) */
  int32_t backend;           /* FZ_BACKEND_AUTO: CUDA if it can be used, else CPU */
  int32_t memory;            /* FZ_MEMORY_HOST */
  int32_t device;            /* of the CUDA backend; -1: the current one */
  int32_t bound_mode;        /* FZ_BOUND_DEFAULT */
  int32_t fusion;            /* FZ_FUSION_AUTO */
  double error_bound;        /* 0: as configured */
  size_t dims[3];            /* x fastest; {0, 0, 0}: as configured; {0, 1, 1}: one dimension */
  size_t n_threads;          /* 0: all */
  uint64_t max_output_bytes; /* decoding: of the result; 0: no limit */
  uint64_t max_memory_bytes; /* decoding: besides archive and result; 0: no limit */
  const fz_param* params;
  size_t n_params;
  fz_allocator allocator; /* all NULL: the library's own */
  int32_t fallback;       /* FZ_FALLBACK_LOSSLESS */
  int32_t reserved;       /* 0 */
  /* Values that mean "missing" besides NaN and infinities, up to 8. All of these come back bit for
   * bit, and bounds and ranges are those of the others. NULL and 0: none. Host memory only. */
  const double* fill;
  size_t n_fill;
  int32_t fill_check; /* FZ_FILL_CHECK */
  int32_t reserved_2; /* 0 */
} fz_options;

/* Zeros and defaults; a struct_size that no version had is FZ_ERROR_INVALID_ARGUMENT. */
FZ_API fz_status fz_options_init(fz_options* options, size_t struct_size);

/* ---- What the library has ---- */

/* The caller sets struct_size of every ..._info before the call. The texts live as long as the
 * library. An index that is too large is FZ_ERROR_INVALID_ARGUMENT. */
typedef struct fz_preset_info {
  size_t struct_size;
  const char* name;
  const char* summary;
  const char* toml;
} fz_preset_info;

typedef struct fz_stage_info {
  size_t struct_size;
  const char* name;
  const char* category;
  const char* summary;
  uint32_t id;
  uint32_t n_params;
} fz_stage_info;

enum { FZ_PARAM_BOOL = 0, FZ_PARAM_INT = 1, FZ_PARAM_REAL = 2, FZ_PARAM_CHOICE = 3 };

typedef struct fz_param_info {
  size_t struct_size;
  const char* key;
  const char* help;
  double min; /* range of numbers, both ends included */
  double max;
  int32_t kind;           /* FZ_PARAM_... */
  int32_t n_choices;      /* of FZ_PARAM_CHOICE (0: any text), and of numbers with a closed list */
  char default_value[64]; /* as a configuration file would write it */
} fz_param_info;

FZ_API size_t fz_preset_count(void);
FZ_API fz_status fz_preset_get(size_t index, fz_preset_info* info);
FZ_API size_t fz_stage_count(void);
FZ_API fz_status fz_stage_get(size_t index, fz_stage_info* info);
FZ_API fz_status fz_stage_param_get(size_t stage, size_t index, fz_param_info* info);
FZ_API fz_status fz_stage_param_choice(size_t stage,
                                       size_t index,
                                       size_t choice,
                                       const char** text);

/* ---- Pipelines ---- */

typedef struct fz_pipeline fz_pipeline;

/* Each stores a new pipeline, or NULL after an error. `options` may be NULL: the defaults.
 * To compress, a preset other than "lossless" needs a bound, else FZ_ERROR_INVALID_ARGUMENT. */
FZ_API fz_status fz_pipeline_from_preset(const char* name,
                                         const fz_options* options,
                                         fz_pipeline** pipeline);
/* `toml` ends with a zero byte; docs/config.md describes it. */
FZ_API fz_status fz_pipeline_from_toml(const char* toml,
                                       const fz_options* options,
                                       fz_pipeline** pipeline);
/* The pipeline that wrote an archive (host memory): its stages, settings, type, bound and, when
 * the archive has two or three dimensions, dims; of one that was stored without loss, a lossless
 * pipeline. Only the header is read, and not kept. Fill values are those of the archive unless the
 * options have some. What no decoder needs is not in it and takes its default: encode_mode of
 * Huffman, auto_detect of Bitpack, outlier_capacity, and value_base of Quantizer. */
FZ_API fz_status fz_pipeline_from_archive(const void* archive,
                                          size_t archive_bytes,
                                          const fz_options* options,
                                          fz_pipeline** pipeline);
/* Only decodes and verifies; fz_compress and its like are FZ_ERROR_INVALID_STATE. */
FZ_API fz_status fz_pipeline_for_decoding(const fz_options* options, fz_pipeline** pipeline);
/* NULL is allowed. */
FZ_API void fz_pipeline_destroy(fz_pipeline* pipeline);

/* FZ_BACKEND_CPU or FZ_BACKEND_CUDA, whichever it runs on; FZ_BACKEND_AUTO for NULL. */
FZ_API int32_t fz_pipeline_backend(const fz_pipeline* pipeline);
/* The configuration as TOML text, and how the pipeline runs, for people, both without the Mask that
 * fields with missing values get. They end with a zero byte,
 * which counts in *text_bytes; a capacity of 0 (text may then be NULL) asks for that size alone and
 * gives FZ_ERROR_BUFFER_TOO_SMALL. */
FZ_API fz_status fz_pipeline_toml(const fz_pipeline* pipeline,
                                  char* text,
                                  size_t capacity,
                                  size_t* text_bytes);
FZ_API fz_status fz_pipeline_explain(const fz_pipeline* pipeline,
                                     char* text,
                                     size_t capacity,
                                     size_t* text_bytes);

/* ---- Compression ---- */

/* `stream` is a cudaStream_t, or NULL for the default stream and on the CPU. A call returns when
 * its result is there. */

/* What to look for a bound for; values of fz_find_bound. */
enum {
  FZ_TARGET_PSNR = 0, /* at least this many decibels, over the values that are not missing */
  FZ_TARGET_RATIO = 1 /* at most 1 / value of the original bytes */
};

/* The absolute bound with which a pipeline of these stages and settings reaches a result for these
 * values (host memory): the largest for a PSNR, a small one for a ratio. `reached`, which may be
 * NULL, is what it comes to; infinity: nothing is lost. At most five trials. Make the pipeline
 * again with FZ_BOUND_ABS and this bound to compress. FZ_ERROR_TARGET: none does, and the message
 * has the best. FZ_ERROR_FILL_VALUE: as with FZ_BOUND_NOA, since the search begins at the range. */
FZ_API fz_status fz_find_bound(const fz_pipeline* pipeline,
                               int32_t target,
                               double target_value,
                               const void* values,
                               size_t n_bytes,
                               double* bound,
                               double* reached);

/* Settings that stages choose by looking at these values (host memory), for the next field of the
 * kind: a line "stage.key=value" for each, whose two parts an fz_param takes, and a zero byte at
 * the end; "" where no stage looks for any. The presets "best", "auto" and "balanced" look for a
 * plan. Costs a compression. A capacity of 0 asks for *text_bytes alone, as for fz_pipeline_toml.
 */
FZ_API fz_status fz_find_settings(const fz_pipeline* pipeline,
                                  const void* values,
                                  size_t n_bytes,
                                  char* text,
                                  size_t capacity,
                                  size_t* text_bytes);

/* Bytes that no input of n_bytes can exceed when compressed: at most n_bytes + 592, unless the
 * options say FZ_FALLBACK_NONE. */
FZ_API fz_status fz_compress_bound(const fz_pipeline* pipeline,
                                   size_t n_bytes,
                                   size_t* archive_bytes);
/* Stores the archive and its length. FZ_ERROR_BUFFER_TOO_SMALL stores the length that is needed and
 * leaves the buffer as it was. `values` may be NULL when n_bytes is 0. */
FZ_API fz_status fz_compress(fz_pipeline* pipeline,
                             const void* values,
                             size_t n_bytes,
                             void* archive,
                             size_t capacity,
                             size_t* archive_bytes,
                             void* stream);
/* Into memory of the pipeline's allocator (without one, of the library), of just that length. With
 * FZ_MEMORY_DEVICE the allocator is needed and gives device memory. */
FZ_API fz_status fz_compress_alloc(fz_pipeline* pipeline,
                                   const void* values,
                                   size_t n_bytes,
                                   void** archive,
                                   size_t* archive_bytes,
                                   void* stream);
/* Any archive, of any pipeline. FZ_ERROR_BUFFER_TOO_SMALL stores the length that is needed.
 * Checksums are verified before the first byte is written; an archive that passes them and still
 * does not decode (made to deceive) may leave part of its data in the buffer. */
FZ_API fz_status fz_decompress(fz_pipeline* pipeline,
                               const void* archive,
                               size_t archive_bytes,
                               void* values,
                               size_t capacity,
                               size_t* n_bytes,
                               void* stream);
FZ_API fz_status fz_decompress_alloc(fz_pipeline* pipeline,
                                     const void* archive,
                                     size_t archive_bytes,
                                     void** values,
                                     size_t* n_bytes,
                                     void* stream);
/* Gives back what an ..._alloc call of this pipeline handed over, with the length that it stored.
 * NULL memory is allowed. */
FZ_API void fz_release(const fz_pipeline* pipeline, void* memory, size_t n_bytes);
/* Checksums and a full decode within the pipeline's limits; nothing is given back. */
FZ_API fz_status fz_verify(fz_pipeline* pipeline,
                           const void* archive,
                           size_t archive_bytes,
                           void* stream);

/* ---- Archives ---- */

/* What an archive says about itself. Host memory; the header alone is read, and not kept. */
typedef struct fz_archive fz_archive;

typedef struct fz_archive_info {
  size_t struct_size;
  uint32_t version_major; /* of the format */
  uint32_t version_minor;
  int32_t type;
  int32_t n_dims;
  uint64_t dims[3]; /* x fastest */
  uint64_t original_bytes;
  uint64_t header_bytes;
  uint64_t payload_bytes;
  uint64_t archive_bytes;
  int32_t has_bound; /* what it promises for every value, in the next three; of a lossless one:
                        what it was asked for, when a lossy one would have been larger */
  int32_t bound_mode;
  double bound_requested;
  /* On every value; 0 for FZ_BOUND_REL, where it depends on the value. Not 0 with FZ_BOUND_REL: the
   * bound is of the largest |x| of the field, as LorenzoQuant takes it. */
  double bound_absolute;
  int32_t is_lossless; /* no stage changes values */
  int32_t has_checksums;
  uint32_t n_stages;
  uint32_t n_segments;
  /* Where missing values were taken out before the other stages, else 0; a lossless archive keeps
   * them with the others. */
  uint64_t n_missing; /* NaN, infinities and fill values */
  uint64_t n_filled;  /* those of them that are equal to a declared fill value */
  uint32_t n_fill;    /* declared fill values, see fz_archive_fill */
  int32_t reserved;   /* 0 */
} fz_archive_info;

typedef struct fz_archive_stage_info {
  size_t struct_size;
  const char* name;
  uint32_t id;
  uint32_t version;
  uint32_t n_params;
  uint32_t n_types;
  int32_t types[4]; /* FZ_TYPE_UNKNOWN beyond n_types */
} fz_archive_stage_info;

typedef struct fz_archive_segment_info {
  size_t struct_size;
  const char* stage;
  const char* port;
  uint64_t n_bytes;
  int32_t type;
  int32_t reserved; /* 0 */
} fz_archive_segment_info;

FZ_API fz_status fz_archive_inspect(const void* archive,
                                    size_t archive_bytes,
                                    fz_archive** inspection);
FZ_API void fz_archive_destroy(fz_archive* inspection);
/* The texts live as long as the inspection. */
FZ_API fz_status fz_archive_get(const fz_archive* inspection, fz_archive_info* info);
FZ_API fz_status fz_archive_stage_get(const fz_archive* inspection,
                                      size_t index,
                                      fz_archive_stage_info* info);
/* The value as a configuration file would write it. */
FZ_API fz_status fz_archive_stage_param(
    const fz_archive* inspection, size_t stage, size_t index, const char** key, const char** value);
FZ_API fz_status fz_archive_segment_get(const fz_archive* inspection,
                                        size_t index,
                                        fz_archive_segment_info* info);
/* A fill value that was declared when the archive was made. */
FZ_API fz_status fz_archive_fill(const fz_archive* inspection, size_t index, double* value);

/* ---- Arrays of any size: archives of chunks, see docs/archives.md ---- */

#define FZ_MAX_AXES 8 /* of an array; all numbers for axes have the fastest one, x, first */

/* Bytes that can be read at any place. `read` fills all of `out` and returns 0; anything else is
 * FZ_ERROR_IO. It is called on the threads that call the library, and must not call it back. */
typedef struct fz_source {
  uint64_t n_bytes;
  int32_t (*read)(uint64_t offset, void* out, size_t n_bytes, void* context);
  void* context;
} fz_source;

/* Bytes that are written one after the other, one call at a time; otherwise as fz_source. */
typedef struct fz_sink {
  int32_t (*write)(const void* bytes, size_t n_bytes, void* context);
  void* context;
} fz_sink;

/* A reader may be used by several threads at once, and reads archives of one piece as well. */
typedef struct fz_reader fz_reader;

typedef struct fz_reader_info {
  size_t struct_size;
  int32_t type;
  int32_t n_axes; /* 0: a single value */
  uint64_t extents[FZ_MAX_AXES];
  uint64_t chunk[FZ_MAX_AXES]; /* extents of a chunk; those at the end of an axis may be smaller */
  uint64_t n_chunks;
  uint64_t n_absent; /* chunks that are not there */
  uint64_t original_bytes;
  uint64_t archive_bytes;
  int32_t has_bound; /* these four as in fz_archive_info; absolute: the largest of all chunks */
  int32_t bound_mode;
  double bound_requested;
  double bound_absolute;
} fz_reader_info;

/* Each stores a new reader, or NULL after an error. Of the options, which may be NULL, backend,
 * n_threads and the limits are used; the limits hold for the index and for each chunk. */
FZ_API fz_status fz_reader_open(const char* path, const fz_options* options, fz_reader** reader);
FZ_API fz_status fz_reader_open_callbacks(const fz_source* source,
                                          const fz_options* options,
                                          fz_reader** reader);
FZ_API void fz_reader_destroy(fz_reader* reader); /* NULL is allowed */
FZ_API fz_status fz_reader_get(const fz_reader* reader, fz_reader_info* info);
/* The values of a box (host memory); `origin` and `extents` have a number for each axis. Only the
 * chunks that it touches are read. `byte_steps` is how far apart values are in `out` along each
 * axis, none of them negative; NULL: one after the other. FZ_ERROR_BUFFER_TOO_SMALL: the last value
 * would end behind `capacity` bytes. After another error `out` may have part of the values. */
FZ_API fz_status fz_reader_read_box(const fz_reader* reader,
                                    const uint64_t* origin,
                                    const uint64_t* extents,
                                    void* out,
                                    size_t capacity,
                                    const ptrdiff_t* byte_steps);

typedef struct fz_writer fz_writer;

/* What is written. struct_size is set, and 0 is the default of everything else. */
typedef struct fz_writer_options {
  size_t struct_size;
  int32_t n_axes;
  int32_t keep_existing;         /* not 0: a file that is there already is FZ_ERROR_IO */
  uint64_t extents[FZ_MAX_AXES]; /* the last, the slowest, may be 0: as many as are appended */
  uint64_t chunk[FZ_MAX_AXES];   /* all 0: the library's choice, about 64 MiB */
  int32_t has_range;
  int32_t verify;  /* not 0: every chunk is decoded and compared before it is written */
  double range[2]; /* smallest and largest value of all chunks, which FZ_BOUND_NOA needs */
} fz_writer_options;

/* Each stores a new writer, or NULL after an error. Chunks are compressed as the pipeline does it
 * (stages, type, bound, fill values, threads; dims are those of the chunks), which is needed during
 * the call only. A file has its name when fz_writer_finish returns; before it is `path.part`, of
 * which fz_recover saves what a crash has left. The context of a sink lives as long. */
FZ_API fz_status fz_writer_create(const char* path,
                                  const fz_pipeline* pipeline,
                                  const fz_writer_options* options,
                                  fz_writer** writer);
FZ_API fz_status fz_writer_create_callbacks(const fz_sink* sink,
                                            const fz_pipeline* pipeline,
                                            const fz_writer_options* options,
                                            fz_writer** writer);
/* Without fz_writer_finish a file is gone. NULL is allowed. */
FZ_API void fz_writer_destroy(fz_writer* writer);
FZ_API uint64_t fz_writer_chunk_count(const fz_writer* writer); /* 0: it may still grow, or NULL */
FZ_API fz_status fz_writer_chunk_box(const fz_writer* writer,
                                     uint64_t chunk,
                                     uint64_t* origin,
                                     uint64_t* extents);
/* The next values in the order of memory, any number of them. Not together with fz_writer_put. */
FZ_API fz_status fz_writer_append(fz_writer* writer, const void* values, size_t n_bytes);
/* One chunk, in any order, each once. Several threads may call it at once. */
FZ_API fz_status fz_writer_put(fz_writer* writer,
                               uint64_t chunk,
                               const void* values,
                               size_t n_bytes);
/* FZ_ERROR_BAD_SIZE where values are missing, which may still come. archive_bytes may be NULL. */
FZ_API fz_status fz_writer_finish(fz_writer* writer, uint64_t* archive_bytes);

/* Makes a new file of what is left of an archive: the array up to the first missing part of its
 * slowest axis. Counts what is damaged, and sound chunks behind that; NULL is allowed. */
FZ_API fz_status fz_recover(const char* from_path,
                            const char* to_path,
                            uint64_t* n_damaged_bytes,
                            uint64_t* n_dropped);

#ifdef __cplusplus
}
#endif

#endif
