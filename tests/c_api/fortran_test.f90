! The module against the header, and the calls that the example leaves out.
program fortran_test
  use, intrinsic :: ieee_arithmetic
  use, intrinsic :: iso_c_binding
  use fz
  implicit none
  interface
    function layout_param() bind(C) result(n)
      import :: c_size_t
      integer(c_size_t) :: n
    end function
    function layout_allocator() bind(C) result(n)
      import :: c_size_t
      integer(c_size_t) :: n
    end function
    function layout_options() bind(C) result(n)
      import :: c_size_t
      integer(c_size_t) :: n
    end function
    function layout_archive_info() bind(C) result(n)
      import :: c_size_t
      integer(c_size_t) :: n
    end function
    function layout_writer_options() bind(C) result(n)
      import :: c_size_t
      integer(c_size_t) :: n
    end function
    function layout_reader_info() bind(C) result(n)
      import :: c_size_t
      integer(c_size_t) :: n
    end function
    subroutine layout_fill(options, info) bind(C)
      import :: fz_options, fz_archive_info
      type(fz_options), intent(out) :: options
      type(fz_archive_info), intent(out) :: info
    end subroutine
  end interface
  integer, parameter :: n = 1000
  real(c_double), target :: values(n), decoded(n)
  integer(c_int8_t), target :: archive(100000), again(100000)
  character(*), parameter :: toml = '[[stage]]'//new_line('a')//'name = "q"'//new_line('a')// &
    'type = "Quantizer"'//new_line('a')//'input_type = "float64"'//new_line('a')// &
    'code_type = "uint32"'//new_line('a')//'error_bound = 0.5'//new_line('a')// &
    'error_bound_mode = "ABS"'//new_line('a')
  type(fz_param) :: param
  type(fz_allocator) :: allocator
  type(fz_options) :: options
  type(fz_archive_info) :: info
  type(fz_writer_options) :: array
  type(fz_reader_info) :: stored
  real(c_double), target :: fill(1) = [-9999d0]
  real(c_double) :: declared
  type(c_ptr) :: pipeline, inspection
  integer(c_size_t) :: n_bytes, archive_bytes, again_bytes
  integer(c_int32_t) :: status
  integer :: i

  call expect(c_sizeof(param) == layout_param(), 'fz_param')
  call expect(c_sizeof(allocator) == layout_allocator(), 'fz_allocator')
  call expect(c_sizeof(options) == layout_options(), 'fz_options')
  call expect(c_sizeof(info) == layout_archive_info(), 'fz_archive_info')
  call expect(c_sizeof(array) == layout_writer_options(), 'fz_writer_options')
  call expect(array%struct_size == layout_writer_options(), 'default of fz_writer_options')
  call expect(c_sizeof(stored) == layout_reader_info(), 'fz_reader_info')
  call expect(stored%struct_size == layout_reader_info(), 'default of fz_reader_info')
  call layout_fill(options, info)
  call expect(all([int(options%struct_size), options%type, options%backend, options%memory, &
    options%device, options%bound_mode, options%fusion, int(options%error_bound), &
    int(options%dims), int(options%n_threads), int(options%max_output_bytes), &
    int(options%max_memory_bytes), int(options%n_params), &
    int(options%fallback), int(options%n_fill), int(options%fill_check)] == [(i, i=1, 18)]), &
    'fields of options')
  call expect(all([int(info%struct_size), info%version_major, info%version_minor, info%type, &
    info%n_dims, int(info%dims), int(info%original_bytes), int(info%header_bytes), &
    int(info%payload_bytes), int(info%archive_bytes), info%has_bound, info%bound_mode, &
    int(info%bound_requested), int(info%bound_absolute), info%is_lossless, info%has_checksums, &
    info%n_stages, info%n_segments, int(info%n_missing), int(info%n_filled), &
    info%n_fill] == [(i, i=1, 23)]), 'fields of info')

  values = [(0.25d0*i, i=1, n)]
  n_bytes = c_sizeof(values)
  call expect(fz_options_init(options, c_sizeof(options)) == FZ_OK, 'options')
  call expect(options%type == FZ_TYPE_UNKNOWN .and. options%device == -1, 'defaults')
  options%backend = FZ_BACKEND_CPU
  options%fallback = FZ_FALLBACK_NONE  ! a quantizer alone saves little
  call expect(fz_pipeline_from_toml(toml, options, pipeline) == FZ_OK, 'toml')
  call expect(fz_compress(pipeline, c_loc(values), n_bytes, c_loc(archive), c_sizeof(archive), &
    archive_bytes, c_null_ptr) == FZ_OK, 'compress')
  call fz_pipeline_destroy(pipeline)

  call expect(fz_pipeline_from_archive(c_loc(archive), archive_bytes, options, pipeline) == FZ_OK, &
    'archive')
  call expect(fz_compress(pipeline, c_loc(values), n_bytes, c_loc(again), c_sizeof(again), &
    again_bytes, c_null_ptr) == FZ_OK, 'compress again')
  call expect(again_bytes == archive_bytes, 'length again')
  call expect(all(again(1:archive_bytes) == archive(1:archive_bytes)), 'bytes again')
  call fz_pipeline_destroy(pipeline)

  call expect(fz_pipeline_for_decoding(options, pipeline) == FZ_OK, 'decoder')
  call expect(fz_verify(pipeline, c_loc(archive), archive_bytes, c_null_ptr) == FZ_OK, 'verify')
  call expect(fz_decompress(pipeline, c_loc(archive), archive_bytes, c_loc(decoded), n_bytes, &
    n_bytes, c_null_ptr) == FZ_OK, 'decompress')
  call expect(all(abs(values - decoded) <= 0.5d0), 'bound')
  call fz_pipeline_destroy(pipeline)

  ! A fill value and a NaN come back bit for bit, and the archive counts them.
  values(10:19) = fill(1)
  values(20) = ieee_value(values(20), ieee_quiet_nan)
  options%type = FZ_TYPE_FLOAT64
  options%bound_mode = FZ_BOUND_NOA
  options%error_bound = 1d-3
  options%fill = c_loc(fill)
  options%n_fill = size(fill)
  call expect(fz_pipeline_from_preset('cuszp2', options, pipeline) == FZ_OK, 'preset with fill')
  call expect(fz_compress(pipeline, c_loc(values), n_bytes, c_loc(archive), c_sizeof(archive), &
    archive_bytes, c_null_ptr) == FZ_OK, 'compress with fill')
  call expect(fz_decompress(pipeline, c_loc(archive), archive_bytes, c_loc(decoded), n_bytes, &
    n_bytes, c_null_ptr) == FZ_OK, 'decompress with fill')
  call fz_pipeline_destroy(pipeline)
  call expect(all(decoded(10:19) == fill(1)) .and. ieee_is_nan(decoded(20)), 'missing values')
  call expect(all(abs(values(21:) - decoded(21:)) <= 0.25d0), 'bound beside missing values')
  call expect(fz_archive_inspect(c_loc(archive), archive_bytes, inspection) == FZ_OK, 'inspect')
  info%struct_size = c_sizeof(info)
  call expect(fz_archive_get(inspection, info) == FZ_OK, 'info')
  call expect(info%n_missing == 11 .and. info%n_filled == 10 .and. info%n_fill == 1, 'counts')
  call expect(fz_archive_fill(inspection, 0_c_size_t, declared) == FZ_OK, 'fill value')
  call expect(declared == fill(1), 'the fill value declared')
  call fz_archive_destroy(inspection)

  call expect(fz_options_init(options, c_sizeof(options)) == FZ_OK, 'options again')
  options%backend = FZ_BACKEND_CPU
  call test_chunks()

  status = fz_pipeline_from_preset('nosuch', options, pipeline)
  call expect(status == FZ_ERROR_INVALID_ARGUMENT, 'status of an unknown preset')
  call expect(fz_status_name(status) == 'invalid argument', 'name of a status')
  call expect(index(fz_last_error(), "no preset 'nosuch'") > 0, 'message')

contains

  ! An archive of chunks is written plane by plane, and a box of it read into a part of an array.
  subroutine test_chunks()
    character(*), parameter :: path = 'fortran_chunks.fz'
    integer, parameter :: nx = 20, ny = 15, nz = 9
    real(c_float), target :: field(nx, ny, nz), part(12, 7, 5)
    integer(c_intptr_t), target :: steps(3)
    type(c_ptr) :: made, writer, reader
    integer(c_int64_t) :: written, origin(3), extents(3), damaged, dropped
    integer :: x, y, z
    do z = 1, nz
      do y = 1, ny
        do x = 1, nx
          field(x, y, z) = sin(0.1*x) + cos(0.2*y) + 0.3*z
        end do
      end do
    end do
    options%type = FZ_TYPE_FLOAT32
    options%bound_mode = FZ_BOUND_ABS
    options%error_bound = 1d-3
    call expect(fz_pipeline_from_preset('balanced', options, made) == FZ_OK, 'preset of chunks')
    array%n_axes = 3
    array%extents(1:3) = [nx, ny, nz]
    array%chunk(1:3) = [nx, 8, 4]
    array%verify = 1
    call expect(fz_writer_create(path, made, array, writer) == FZ_OK, 'writer')
    call fz_pipeline_destroy(made)
    call expect(fz_writer_chunk_count(writer) == 6, 'count of chunks')
    call expect(fz_writer_chunk_box(writer, 5_c_int64_t, origin, extents) == FZ_OK, 'chunk box')
    call expect(all(origin == [0, 8, 8]) .and. all(extents == [nx, 7, 1]), 'place of a chunk')
    do z = 1, nz
      call expect(fz_writer_append(writer, c_loc(field(1, 1, z)), &
        int(4*nx*ny, c_size_t)) == FZ_OK, 'append')
    end do
    call expect(fz_writer_finish(writer, written) == FZ_OK, 'finish')
    call fz_writer_destroy(writer)

    call expect(fz_reader_open(path, options, reader) == FZ_OK, 'reader')
    call expect(fz_reader_get(reader, stored) == FZ_OK, 'reader info')
    call expect(all(stored%extents(1:3) == [nx, ny, nz]) .and. stored%n_chunks == 6, 'extents')
    call expect(stored%archive_bytes == written .and. stored%bound_mode == FZ_BOUND_ABS, 'bound')
    part = -7
    steps = [4, 4*12, 4*12*7]
    origin = [3, 5, 2]
    extents = [10, 7, 5]
    call expect(fz_reader_read_box(reader, origin, extents, c_loc(part), c_sizeof(part), &
      c_loc(steps)) == FZ_OK, 'box')
    call fz_reader_destroy(reader)
    call expect(all(abs(part(1:10, :, :) - field(4:13, 6:12, 3:7)) <= 1e-3), 'values of the box')
    call expect(all(part(11:, :, :) == -7), 'values beside the box')

    call expect(fz_recover(path, path//'.new', damaged, dropped) == FZ_OK, 'recover')
    call expect(damaged >= 0 .and. dropped == 0, 'recovered')
    open (unit=10, file=path)
    close (10, status='delete')
    open (unit=10, file=path//'.new')
    close (10, status='delete')
  end subroutine test_chunks

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) then
      print '(4a)', 'not so: ', what, ' ', fz_last_error()
      error stop
    end if
  end subroutine expect

end program fortran_test
