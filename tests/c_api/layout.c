/* Sizes of the structs as C has them, for the Fortran test. */
#include <fz.h>

size_t layout_param(void) {
  return sizeof(fz_param);
}
size_t layout_allocator(void) {
  return sizeof(fz_allocator);
}
size_t layout_options(void) {
  return sizeof(fz_options);
}
size_t layout_archive_info(void) {
  return sizeof(fz_archive_info);
}
size_t layout_writer_options(void) {
  return sizeof(fz_writer_options);
}
size_t layout_reader_info(void) {
  return sizeof(fz_reader_info);
}
/* Each field has a value of its own, which Fortran must find under the same name. */
void layout_fill(fz_options* options, fz_archive_info* info) {
  const fz_options o = {.struct_size = 1,
                        .type = 2,
                        .backend = 3,
                        .memory = 4,
                        .device = 5,
                        .bound_mode = 6,
                        .fusion = 7,
                        .error_bound = 8.0,
                        .dims = {9, 10, 11},
                        .n_threads = 12,
                        .max_output_bytes = 13,
                        .max_memory_bytes = 14,
                        .n_params = 15,
                        .fallback = 16,
                        .n_fill = 17,
                        .fill_check = 18};
  const fz_archive_info i = {.struct_size = 1,
                             .version_major = 2,
                             .version_minor = 3,
                             .type = 4,
                             .n_dims = 5,
                             .dims = {6, 7, 8},
                             .original_bytes = 9,
                             .header_bytes = 10,
                             .payload_bytes = 11,
                             .archive_bytes = 12,
                             .has_bound = 13,
                             .bound_mode = 14,
                             .bound_requested = 15.0,
                             .bound_absolute = 16.0,
                             .is_lossless = 17,
                             .has_checksums = 18,
                             .n_stages = 19,
                             .n_segments = 20,
                             .n_missing = 21,
                             .n_filled = 22,
                             .n_fill = 23};
  *options = o;
  *info = i;
}
