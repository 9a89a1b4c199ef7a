/* A field that is spread over the ranks of an MPI program, written into one HDF5 file with fz.
 *
 *   mpiexec -n 4 fz_mpi_hdf5 write out.h5 [-n 64x128x128] [-c 16x64x64] [-p pfpl] [-b 1e-3]
 *   mpiexec -n 3 fz_mpi_hdf5 read out.h5      any number of ranks: checks every value
 *
 * What a simulation copies is makeDataset() and writeSlab(). Four rules:
 *   1. H5Dwrite() is collective, and every rank calls it, those without data with an empty
 * selection;
 *   2. a chunk belongs to one rank, so the ranks are cut at chunk boundaries;
 *   3. memory and file have the same type (HDF5 cannot convert in filtered parallel writes);
 *   4. a failed call is agreed upon by all ranks before anyone leaves.
 * The filter is found through HDF5_PLUGIN_PATH, or in the folder that FZ_HDF5_PLUGIN names. */
#include <hdf5.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "fz/hdf5.h"

enum { RANK_OF_FIELD = 3, NO_FILTER = 1000 };

static const char* const kDataset = "temperature";
static const char* const kBoundName = "fz_bound";

typedef struct {
  hsize_t dims[RANK_OF_FIELD]; /* of the whole field, slowest first */
  hsize_t chunk[RANK_OF_FIELD];
  unsigned preset; /* number of fz/hdf5.h, or NO_FILTER */
  double bound;    /* absolute */
} Field;

/* The part of one rank: whole layers of chunks along the slowest axis. */
typedef struct {
  hsize_t first, count; /* planes */
  float* values;
} Slab;

static int isFirst(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == 0;
}

/* The same answer on all ranks: whether all of them are fine. */
static int allFine(int fine) {
  int all = 0;
  MPI_Allreduce(&fine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all;
}

static float valueAt(hsize_t z, hsize_t y, hsize_t x) {
  const double wave = sin(0.05 * (double)x) * cos(0.04 * (double)y) + 0.3 * sin(0.11 * (double)z);
  const double grain = (double)((x * 73856093u ^ y * 19349663u ^ z * 83492791u) % 1000u) * 1e-5;
  return (float)(280.0 + 15.0 * wave + grain);
}

static Slab slabOfRank(const Field* field) {
  int rank = 0, n_ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const hsize_t layers = (field->dims[0] + field->chunk[0] - 1) / field->chunk[0];
  const hsize_t first = layers * (hsize_t)rank / (hsize_t)n_ranks * field->chunk[0];
  hsize_t end = layers * ((hsize_t)rank + 1) / (hsize_t)n_ranks * field->chunk[0];
  if (end > field->dims[0]) {
    end = field->dims[0];
  }
  Slab slab = {first, end - first, NULL};
  const size_t n_values = (size_t)(slab.count * field->dims[1] * field->dims[2]);
  slab.values = malloc(n_values > 0 ? n_values * sizeof(float) : 1);
  return slab;
}

static void fillSlab(const Field* field, Slab* slab) {
  float* out = slab->values;
  for (hsize_t z = slab->first; z < slab->first + slab->count; ++z) {
    for (hsize_t y = 0; y < field->dims[1]; ++y) {
      for (hsize_t x = 0; x < field->dims[2]; ++x) {
        *out++ = valueAt(z, y, x);
      }
    }
  }
}

/* Collective. Negative when HDF5 refuses; its error stack says why. */
static hid_t makeDataset(hid_t file, const Field* field) {
  const hid_t space = H5Screate_simple(RANK_OF_FIELD, field->dims, NULL);
  const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(plist, RANK_OF_FIELD, field->chunk);
  H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER); /* everything is written anyway */
  if (field->preset != NO_FILTER) {
    unsigned values[FZ_HDF5_USER_WORDS];
    const size_t n_values = fz_hdf5_cd_values(values, field->preset, FZ_HDF5_ABS, field->bound, 0);
    H5Pset_filter(plist, FZ_HDF5_FILTER_ID, H5Z_FLAG_MANDATORY, n_values, values);
  }
  const hid_t dataset =
      H5Dcreate2(file, kDataset, H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  H5Pclose(plist);
  H5Sclose(space);
  return dataset;
}

/* The part of the file that belongs to a slab; an empty selection for an empty slab. */
static hid_t selectSlab(const Field* field, const Slab* slab, hid_t file_space) {
  const hsize_t start[RANK_OF_FIELD] = {slab->first, 0, 0};
  const hsize_t count[RANK_OF_FIELD] = {slab->count, field->dims[1], field->dims[2]};
  if (slab->count == 0) {
    H5Sselect_none(file_space);
    const hsize_t one = 1;
    const hid_t memory_space = H5Screate_simple(1, &one, NULL);
    H5Sselect_none(memory_space);
    return memory_space;
  }
  H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, count, NULL);
  return H5Screate_simple(RANK_OF_FIELD, count, NULL);
}

static hid_t collectiveTransfer(void) {
  const hid_t plist = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(plist, H5FD_MPIO_COLLECTIVE);
  return plist;
}

/* Collective. */
static herr_t writeSlab(hid_t dataset, const Field* field, const Slab* slab) {
  const hid_t file_space = H5Dget_space(dataset);
  const hid_t memory_space = selectSlab(field, slab, file_space);
  const hid_t transfer = collectiveTransfer();
  const herr_t status =
      H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory_space, file_space, transfer, slab->values);
  H5Pclose(transfer);
  H5Sclose(memory_space);
  H5Sclose(file_space);
  return status;
}

/* Collective. */
static herr_t readSlab(hid_t dataset, const Field* field, Slab* slab) {
  const hid_t file_space = H5Dget_space(dataset);
  const hid_t memory_space = selectSlab(field, slab, file_space);
  const hid_t transfer = collectiveTransfer();
  const herr_t status =
      H5Dread(dataset, H5T_NATIVE_FLOAT, memory_space, file_space, transfer, slab->values);
  H5Pclose(transfer);
  H5Sclose(memory_space);
  H5Sclose(file_space);
  return status;
}

static hid_t openFile(const char* path, int is_new) {
  const hid_t plist = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(plist, MPI_COMM_WORLD, MPI_INFO_NULL);
  const hid_t file = is_new ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, plist)
                            : H5Fopen(path, H5F_ACC_RDONLY, plist);
  H5Pclose(plist);
  return file;
}

static double cpuSeconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec +
         (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

/* One line for machines: what the slowest rank took, and the CPU seconds of all. */
static void report(const char* what,
                   hid_t dataset,
                   const Slab* slab,
                   const Field* field,
                   double wall_s,
                   double cpu_s) {
  int n_ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const double mine_bytes = (double)(slab->count * field->dims[1] * field->dims[2] * sizeof(float));
  double sums[2] = {mine_bytes, cpu_s}, all[2], slowest_s = 0;
  MPI_Reduce(sums, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&wall_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const double stored_bytes = (double)H5Dget_storage_size(dataset);
  if (isFirst()) {
    printf(
        "{\"what\": \"%s\", \"ranks\": %d, \"bytes\": %.0f, \"stored_bytes\": %.0f, "
        "\"wall_s\": %.6f, \"cpu_s\": %.6f}\n",
        what, n_ranks, all[0], stored_bytes, slowest_s, all[1]);
  }
}

static void writeBound(hid_t dataset, double bound) {
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t attribute =
      H5Acreate2(dataset, kBoundName, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, H5T_NATIVE_DOUBLE, &bound);
  H5Aclose(attribute);
  H5Sclose(space);
}

static int writeField(const char* path, const Field* field) {
  const hid_t file = openFile(path, 1);
  const hid_t dataset = file < 0 ? -1 : makeDataset(file, field);
  if (!allFine(dataset >= 0)) {
    return 1;
  }
  Slab slab = slabOfRank(field);
  if (!allFine(slab.values != NULL)) {
    return 1;
  }
  fillSlab(field, &slab);
  MPI_Barrier(MPI_COMM_WORLD);
  const double cpu_start_s = cpuSeconds(), start_s = MPI_Wtime();
  const int fine = allFine(writeSlab(dataset, field, &slab) >= 0);
  const double wall_s = MPI_Wtime() - start_s, cpu_s = cpuSeconds() - cpu_start_s;
  if (fine) {
    report("write", dataset, &slab, field, wall_s, cpu_s);
    writeBound(dataset, field->preset == NO_FILTER || field->preset == FZ_HDF5_LOSSLESS
                            ? 0.0
                            : field->bound);
  }
  free(slab.values);
  H5Dclose(dataset);
  return H5Fclose(file) >= 0 && fine ? 0 : 1;
}

/* Values outside the bound, in exact arithmetic: the difference of two floats of like size fits a
 * double. */
static long violations(const Field* field, const Slab* slab) {
  long count = 0;
  const float* value = slab->values;
  for (hsize_t z = slab->first; z < slab->first + slab->count; ++z) {
    for (hsize_t y = 0; y < field->dims[1]; ++y) {
      for (hsize_t x = 0; x < field->dims[2]; ++x) {
        const double error = fabs((double)*value++ - (double)valueAt(z, y, x));
        count += !(error <= field->bound);
      }
    }
  }
  return count;
}

static int describeField(hid_t dataset, Field* field) {
  const hid_t space = H5Dget_space(dataset);
  const hid_t plist = H5Dget_create_plist(dataset);
  const hid_t attribute = H5Aopen(dataset, kBoundName, H5P_DEFAULT);
  const int fine = H5Sget_simple_extent_ndims(space) == RANK_OF_FIELD &&
                   H5Sget_simple_extent_dims(space, field->dims, NULL) == RANK_OF_FIELD &&
                   H5Pget_chunk(plist, RANK_OF_FIELD, field->chunk) == RANK_OF_FIELD &&
                   H5Aread(attribute, H5T_NATIVE_DOUBLE, &field->bound) >= 0;
  H5Aclose(attribute);
  H5Pclose(plist);
  H5Sclose(space);
  return fine;
}

static int readField(const char* path) {
  Field field = {{0}, {0}, 0, 0};
  const hid_t file = openFile(path, 0);
  const hid_t dataset = file < 0 ? -1 : H5Dopen2(file, kDataset, H5P_DEFAULT);
  if (!allFine(dataset >= 0 && describeField(dataset, &field))) {
    return 1;
  }
  Slab slab = slabOfRank(&field);
  if (!allFine(slab.values != NULL)) {
    return 1;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double cpu_start_s = cpuSeconds(), start_s = MPI_Wtime();
  const int fine = allFine(readSlab(dataset, &field, &slab) >= 0);
  const double wall_s = MPI_Wtime() - start_s, cpu_s = cpuSeconds() - cpu_start_s;
  long mine = 0, all = 0;
  if (fine) {
    report("read", dataset, &slab, &field, wall_s, cpu_s);
    mine = violations(&field, &slab);
  } else if (isFirst()) {
    fprintf(stderr, "the dataset cannot be read\n");
  }
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (isFirst() && all > 0) {
    fprintf(stderr, "%ld values are outside the bound %g\n", all, field.bound);
  }
  free(slab.values);
  H5Dclose(dataset);
  H5Fclose(file);
  return !fine ? 3 : all > 0 ? 4 : 0;
}

static int parseDims(const char* text, hsize_t dims[RANK_OF_FIELD]) {
  unsigned long long d[RANK_OF_FIELD];
  if (sscanf(text, "%llux%llux%llu", &d[0], &d[1], &d[2]) != RANK_OF_FIELD) {
    return 0;
  }
  for (int axis = 0; axis < RANK_OF_FIELD; ++axis) {
    dims[axis] = d[axis];
  }
  return d[0] > 0 && d[1] > 0 && d[2] > 0;
}

static int parsePreset(const char* name, unsigned* preset) {
  static const struct {
    const char* name;
    unsigned number;
  } kPresets[] = {{"none", NO_FILTER},      {"lossless", FZ_HDF5_LOSSLESS},
                  {"pfpl", FZ_HDF5_PFPL},   {"cuszp2", FZ_HDF5_CUSZP2},
                  {"fzgpu", FZ_HDF5_FZGPU}, {"cusz", FZ_HDF5_CUSZ},
                  {"speed", FZ_HDF5_SPEED}};
  for (size_t i = 0; i < sizeof kPresets / sizeof kPresets[0]; ++i) {
    if (strcmp(name, kPresets[i].name) == 0) {
      *preset = kPresets[i].number;
      return 1;
    }
  }
  return 0;
}

static int run(int argc, char** argv) {
  Field field = {{64, 128, 128}, {16, 64, 64}, FZ_HDF5_PFPL, 1e-3};
  int fine = argc >= 3;
  for (int i = 3; fine && i < argc; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    fine = strcmp(argv[i], "-n") == 0   ? parseDims(value, field.dims)
           : strcmp(argv[i], "-c") == 0 ? parseDims(value, field.chunk)
           : strcmp(argv[i], "-p") == 0 ? parsePreset(value, &field.preset)
           : strcmp(argv[i], "-b") == 0 ? (field.bound = atof(value)) > 0
                                        : 0;
  }
  if (fine && strcmp(argv[1], "write") == 0) {
    return writeField(argv[2], &field);
  }
  if (fine && strcmp(argv[1], "read") == 0) {
    return readField(argv[2]);
  }
  if (isFirst()) {
    fprintf(stderr, "usage: %s write|read FILE [-n ZxYxX] [-c ZxYxX] [-p PRESET|none] [-b BOUND]\n",
            argv[0]);
  }
  return 2;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* plugin_folder = getenv("FZ_HDF5_PLUGIN");
  if (plugin_folder != NULL) {
    H5PLprepend(plugin_folder);
  }
  const int code = run(argc, argv);
  MPI_Finalize();
  return code;
}
