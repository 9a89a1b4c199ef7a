! The C interface from Fortran: a field is compressed, its archive described and decoded, the bound
! checked, and a damaged archive refused. With an argument, the archive goes to that file.
program fortran_api
  use, intrinsic :: iso_c_binding
  use fz
  implicit none
  integer, parameter :: n_columns = 360, n_rows = 180
  real(c_double), parameter :: bound = 0.001d0
  real(c_float), allocatable, target :: field(:, :), decoded(:, :)
  integer(c_int8_t), allocatable, target :: archive(:)
  integer(c_size_t) :: n_bytes, archive_bytes, decoded_bytes
  integer(c_int32_t) :: status
  type(fz_options) :: options
  type(fz_archive_info) :: info
  type(c_ptr) :: pipeline, inspection
  real(c_double) :: error
  integer :: column, row, unit, at
  character(4096) :: path

  allocate (field(n_columns, n_rows), decoded(n_columns, n_rows))
  do row = 1, n_rows
    do column = 1, n_columns
      field(column, row) = 0.5*real(column - 1) + 0.25*real(row - 1)
    end do
  end do
  n_bytes = size(field, kind=c_size_t)*c_sizeof(field(1, 1))

  call check(fz_options_init(options, c_sizeof(options)), 'fz_options_init')
  options%error_bound = bound
  options%bound_mode = FZ_BOUND_ABS
  options%dims = [int(n_columns, c_size_t), int(n_rows, c_size_t), 1_c_size_t]
  call check(fz_pipeline_from_preset('cuszp2', options, pipeline), 'fz_pipeline_from_preset')

  call check(fz_compress_bound(pipeline, n_bytes, archive_bytes), 'fz_compress_bound')
  allocate (archive(archive_bytes))
  call check(fz_compress(pipeline, c_loc(field), n_bytes, c_loc(archive), &
    size(archive, kind=c_size_t), archive_bytes, c_null_ptr), 'fz_compress')
  print '(3a, i0, a, i0, a)', 'fz ', fz_version(), ': ', n_bytes, ' bytes -> ', archive_bytes, &
    ' bytes'

  call check(fz_archive_inspect(c_loc(archive), archive_bytes, inspection), 'fz_archive_inspect')
  info%struct_size = c_sizeof(info)
  call check(fz_archive_get(inspection, info), 'fz_archive_get')
  call fz_archive_destroy(inspection)
  print '(a, i0, a, i0, a, i0, a, es8.1)', 'archive: ', info%dims(1), ' x ', info%dims(2), ', ', &
    info%n_stages, ' stages, every value within', info%bound_absolute

  call check(fz_decompress(pipeline, c_loc(archive), archive_bytes, c_loc(decoded), n_bytes, &
    decoded_bytes, c_null_ptr), 'fz_decompress')
  error = maxval(abs(real(field, c_double) - real(decoded, c_double)))
  print '(a, i0, a, es8.1)', 'decoded: ', decoded_bytes, ' bytes, largest error', error

  if (command_argument_count() > 0) then
    call get_command_argument(1, path)
    open (newunit=unit, file=trim(path), access='stream', form='unformatted', status='replace')
    write (unit) archive(1:archive_bytes)
    close (unit)
  end if

  at = int(archive_bytes/2) + 1
  archive(at) = ieor(archive(at), 1_c_int8_t)
  status = fz_verify(pipeline, c_loc(archive), archive_bytes, c_null_ptr)
  print '(2a)', 'one bit flipped: ', fz_status_name(status)
  call fz_pipeline_destroy(pipeline)
  if (decoded_bytes /= n_bytes .or. error > bound .or. status /= FZ_ERROR_CORRUPT) error stop

contains

  subroutine check(status, call_name)
    integer(c_int32_t), intent(in) :: status
    character(*), intent(in) :: call_name
    if (status /= FZ_OK) then
      print '(5a)', call_name, ': ', fz_status_name(status), ': ', fz_last_error()
      error stop
    end if
  end subroutine check

end program fortran_api
