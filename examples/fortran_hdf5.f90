! A dataset that HDF5 compresses with fz, from Fortran. Build and run it with
!   h5fc -shlib fz_hdf5.f90 fortran_hdf5.f90 -o fortran_hdf5
!   HDF5_PLUGIN_PATH=<prefix>/lib/hdf5/plugin ./fortran_hdf5 field.h5
program fortran_hdf5
  use, intrinsic :: iso_c_binding, only: c_double, c_int
  use hdf5
  use fz_hdf5
  implicit none

  integer(hsize_t), parameter :: dims(3) = [64_hsize_t, 48_hsize_t, 16_hsize_t]
  real(c_double), parameter :: bound = 1e-3_c_double
  integer, parameter :: mandatory = 0  ! H5Z_FLAG_MANDATORY, which older modules of HDF5 lack
  real, target :: field(dims(1), dims(2), dims(3)), back(dims(1), dims(2), dims(3))
  integer(c_int) :: words(FZ_HDF5_USER_WORDS)
  integer(hid_t) :: file, space, plist, dataset
  integer(hsize_t) :: stored
  character(len=512) :: name
  integer :: error, x, y, z

  call get_command_argument(1, name)
  if (len_trim(name) == 0) name = "field.h5"
  do concurrent (x = 1:size(field, 1), y = 1:size(field, 2), z = 1:size(field, 3))
    field(x, y, z) = 280.0 + 10.0 * sin(0.1 * x) * cos(0.07 * y) + 0.2 * z
  end do

  call h5open_f(error)
  call require(error, "open HDF5")
  call h5fcreate_f(trim(name), H5F_ACC_TRUNC_F, file, error)
  call require(error, "create " // trim(name))
  call h5screate_simple_f(3, dims, space, error)
  call require(error, "describe the array")
  call h5pcreate_f(H5P_DATASET_CREATE_F, plist, error)
  call require(error, "make a property list")
  call h5pset_chunk_f(plist, 3, dims, error)
  call require(error, "set the chunk")
  words = fz_hdf5_cd_values(FZ_HDF5_BALANCED, FZ_HDF5_ABS, bound)
  call h5pset_filter_f(plist, FZ_HDF5_FILTER_ID, mandatory, FZ_HDF5_USER_WORDS, words, &
                       error)
  call require(error, "set the filter; is HDF5_PLUGIN_PATH the folder of libh5fz.so?")
  call h5dcreate_f(file, "T", H5T_NATIVE_REAL, space, dataset, error, plist)
  call require(error, "create the dataset")
  call h5dwrite_f(dataset, H5T_NATIVE_REAL, field, dims, error)
  call require(error, "write")
  call h5fflush_f(file, H5F_SCOPE_LOCAL_F, error)  ! chunks are compressed when they leave the cache
  call require(error, "compress")
  call h5dread_f(dataset, H5T_NATIVE_REAL, back, dims, error)
  call require(error, "read")
  call h5dget_storage_size_f(dataset, stored, error)
  call require(error, "ask for the size")
  call h5dclose_f(dataset, error)
  call h5pclose_f(plist, error)
  call h5sclose_f(space, error)
  call h5fclose_f(file, error)
  call require(error, "close " // trim(name))

  print '(i0, a, i0, a)', 4 * size(field), " bytes -> ", stored, " bytes"
  if (maxval(abs(real(field, c_double) - real(back, c_double))) > bound) error stop "bound broken"

contains

  subroutine require(status, what)
    integer, intent(in) :: status
    character(len=*), intent(in) :: what
    if (status < 0) error stop "cannot " // what
  end subroutine require

end program fortran_hdf5
