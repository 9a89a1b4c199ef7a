! The HDF5 filter of fz for Fortran (2003 and later): its number and its parameters (cd_values).
! Names, rules and meanings are those of fz/hdf5.h; docs/hdf5.md is the guide. It needs neither HDF5
! nor fz to link: the filter itself is a plugin that HDF5 loads.
module fz_hdf5
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_double, c_size_t
  implicit none
  private

  integer, parameter, public :: FZ_HDF5_FILTER_ID = 62074
  integer(c_size_t), parameter, public :: FZ_HDF5_USER_WORDS = 6

  integer(c_int), parameter, public :: FZ_HDF5_LAYOUT = 1

  ! Presets
  integer(c_int), parameter, public :: FZ_HDF5_LOSSLESS = 0, FZ_HDF5_CUSZP = 1, &
    FZ_HDF5_CUSZP2 = 2, FZ_HDF5_CUSZP3 = 3, FZ_HDF5_CUSZP3_FIXED = 4, FZ_HDF5_CUSZP3_OUTLIER = 5, &
    FZ_HDF5_FZGPU = 6, FZ_HDF5_PFPL = 7, FZ_HDF5_CUSZ = 8, FZ_HDF5_LORENZO_BITPACK = 9, &
    FZ_HDF5_QUANTIZER_LORENZO_BITPACK = 10, FZ_HDF5_SPEED = 11, FZ_HDF5_BEST = 12, &
    FZ_HDF5_AUTO = 13, FZ_HDF5_BALANCED = 14, FZ_HDF5_FAST = 15

  ! Kinds of bound; a range is that of each chunk
  integer(c_int), parameter, public :: FZ_HDF5_ABS = 0, FZ_HDF5_REL = 1, FZ_HDF5_RANGE = 2

  ! Flags
  integer(c_int), parameter, public :: FZ_HDF5_STRICT = 1

  public :: fz_hdf5_cd_values

contains

  ! The words for h5pset_filter_f and nf90_def_var_filter: FZ_HDF5_USER_WORDS of them. HDF5 reads
  ! them as unsigned, so a word may look negative here.
  pure function fz_hdf5_cd_values(preset, mode, bound, flags) result(values)
    integer(c_int), intent(in) :: preset, mode
    real(c_double), intent(in) :: bound
    integer(c_int), intent(in), optional :: flags
    integer(c_int) :: values(FZ_HDF5_USER_WORDS)
    integer(c_int64_t) :: bits

    bits = transfer(bound, bits)
    values = [FZ_HDF5_LAYOUT, 0_c_int, preset, mode, word(bits), word(ishft(bits, -32))]
    if (present(flags)) values(2) = flags
  end function fz_hdf5_cd_values

  ! The low 32 bits, whatever a machine thinks of their sign.
  pure function word(bits) result(low)
    integer(c_int64_t), intent(in) :: bits
    integer(c_int) :: low
    integer(c_int64_t) :: masked

    masked = iand(bits, 4294967295_c_int64_t)
    if (masked > 2147483647_c_int64_t) masked = masked - 4294967296_c_int64_t
    low = int(masked, c_int)
  end function word

end module fz_hdf5
