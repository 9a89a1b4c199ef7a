! The words of the Fortran module are those of fz/hdf5.h, for every preset, kind of bound and sign
! that a word can have.
program fortran_test
  use, intrinsic :: iso_c_binding
  use fz_hdf5
  implicit none

  interface
    function words_of_c(values, preset, mode, bound, flags) bind(C) result(n)
      import :: c_int, c_double, c_size_t
      integer(c_int), intent(out) :: values(*)
      integer(c_int), value :: preset, mode, flags
      real(c_double), value :: bound
      integer(c_size_t) :: n
    end function words_of_c
    function filter_of_c() bind(C) result(id)
      import :: c_int
      integer(c_int) :: id
    end function filter_of_c
    function last_preset_of_c() bind(C) result(number)
      import :: c_int
      integer(c_int) :: number
    end function last_preset_of_c
  end interface

  real(c_double), parameter :: bounds(5) = [1e-3_c_double, 0.1_c_double, 1e-300_c_double, &
                                            1.0_c_double / 3.0_c_double, 1e300_c_double]
  integer(c_int) :: preset, mode, i, expected(FZ_HDF5_USER_WORDS)

  if (FZ_HDF5_FILTER_ID /= filter_of_c()) error stop "another filter"
  if (FZ_HDF5_FAST /= last_preset_of_c()) error stop "another number of presets"
  do preset = FZ_HDF5_LOSSLESS, FZ_HDF5_FAST
    do mode = FZ_HDF5_ABS, FZ_HDF5_RANGE
      do i = 1, size(bounds)
        if (words_of_c(expected, preset, mode, bounds(i), FZ_HDF5_STRICT) /= FZ_HDF5_USER_WORDS) &
          error stop "another number of words"
        if (any(fz_hdf5_cd_values(preset, mode, bounds(i), FZ_HDF5_STRICT) /= expected)) &
          error stop "other words"
      end do
    end do
  end do
  expected(2) = 0
  if (any(fz_hdf5_cd_values(FZ_HDF5_FAST, FZ_HDF5_RANGE, bounds(5)) /= expected)) &
    error stop "flags are not 0 where none are given"
end program fortran_test
