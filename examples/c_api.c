/* The C interface from end to end: a field is compressed, its archive described and decoded, the
 * bound checked, and a damaged archive refused. With an argument, the archive goes to that file. */
#include <fz.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kColumns = 360, kRows = 180, kValues = kColumns * kRows };

/* Ends the program with the library's message when a call failed. */
static void check(fz_status status, const char* call) {
  if (status != FZ_OK) {
    fprintf(stderr, "%s: %s: %s\n", call, fz_status_name(status), fz_last_error());
    exit(EXIT_FAILURE);
  }
}

static void* allocate(size_t n_bytes) {
  void* memory = malloc(n_bytes);
  if (memory == NULL) {
    fputs("out of memory\n", stderr);
    exit(EXIT_FAILURE);
  }
  return memory;
}

static void describe(const void* archive, size_t archive_bytes) {
  fz_archive* inspection = NULL;
  fz_archive_info info = {.struct_size = sizeof info};
  check(fz_archive_inspect(archive, archive_bytes, &inspection), "fz_archive_inspect");
  check(fz_archive_get(inspection, &info), "fz_archive_get");
  printf("archive: %s, %llu x %llu, format %u.%u, every value within %g\n", fz_type_name(info.type),
         (unsigned long long)info.dims[0], (unsigned long long)info.dims[1], info.version_major,
         info.version_minor, info.bound_absolute);
  for (size_t i = 0; i < info.n_stages; ++i) {
    fz_archive_stage_info stage = {.struct_size = sizeof stage};
    check(fz_archive_stage_get(inspection, i, &stage), "fz_archive_stage_get");
    printf("  stage %zu: %s\n", i, stage.name);
  }
  fz_archive_destroy(inspection);
}

static double largestError(const float* field, const float* decoded) {
  double largest = 0.0;
  for (size_t i = 0; i < kValues; ++i) {
    const double error = fabs((double)field[i] - (double)decoded[i]);
    largest = error > largest ? error : largest;
  }
  return largest;
}

static void save(const char* path, const void* archive, size_t archive_bytes) {
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(archive, 1, archive_bytes, file) != archive_bytes ||
      fclose(file) != 0) {
    perror(path);
    exit(EXIT_FAILURE);
  }
}

int main(int argc, char** argv) {
  const double bound = 0.001;
  const size_t n_bytes = kValues * sizeof(float);
  float* field = allocate(n_bytes);
  for (size_t i = 0; i < kValues; ++i) {
    field[i] = 0.5f * (float)(i % kColumns) + 0.25f * (float)(i / kColumns);
  }

  fz_options options;
  check(fz_options_init(&options, sizeof options), "fz_options_init");
  options.error_bound = bound;
  options.bound_mode = FZ_BOUND_ABS;
  options.dims[0] = kColumns;
  options.dims[1] = kRows;
  options.dims[2] = 1;
  fz_pipeline* pipeline = NULL;
  check(fz_pipeline_from_preset("cuszp2", &options, &pipeline), "fz_pipeline_from_preset");

  size_t archive_bytes = 0;
  check(fz_compress_bound(pipeline, n_bytes, &archive_bytes), "fz_compress_bound");
  unsigned char* archive = allocate(archive_bytes);
  check(fz_compress(pipeline, field, n_bytes, archive, archive_bytes, &archive_bytes, NULL),
        "fz_compress");
  printf("fz %s: %zu bytes -> %zu bytes\n", fz_version(), n_bytes, archive_bytes);
  describe(archive, archive_bytes);

  float* decoded = allocate(n_bytes);
  size_t decoded_bytes = 0;
  check(fz_decompress(pipeline, archive, archive_bytes, decoded, n_bytes, &decoded_bytes, NULL),
        "fz_decompress");
  const double error = largestError(field, decoded);
  printf("decoded: %zu bytes, largest error %g\n", decoded_bytes, error);
  if (argc > 1) {
    save(argv[1], archive, archive_bytes);
  }

  archive[archive_bytes / 2] ^= 1;
  const fz_status status = fz_verify(pipeline, archive, archive_bytes, NULL);
  printf("one bit flipped: %s\n", fz_status_name(status));

  fz_pipeline_destroy(pipeline);
  free(decoded);
  free(archive);
  free(field);
  return decoded_bytes == n_bytes && error <= bound && status == FZ_ERROR_CORRUPT ? EXIT_SUCCESS
                                                                                  : EXIT_FAILURE;
}
