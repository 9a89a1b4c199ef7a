! The C interface of fz for Fortran (2003 and later). Names, rules and meanings are those of fz.h;
! docs/c_api.md is the guide. Arrays of any type are passed with c_loc(array).
module fz
  use, intrinsic :: iso_c_binding
  implicit none
  public

  ! Status
  integer(c_int32_t), parameter :: FZ_OK = 0, FZ_ERROR_INVALID_ARGUMENT = 1, &
    FZ_ERROR_INVALID_STATE = 2, FZ_ERROR_GRAPH = 3, FZ_ERROR_TYPE_MISMATCH = 4, &
    FZ_ERROR_BAD_SIZE = 5, FZ_ERROR_BUFFER_TOO_SMALL = 6, FZ_ERROR_BOUND_VIOLATION = 7, &
    FZ_ERROR_CORRUPT = 8, FZ_ERROR_UNSUPPORTED = 9, FZ_ERROR_LIMIT = 10, &
    FZ_ERROR_OUT_OF_MEMORY = 11, FZ_ERROR_IO = 12, FZ_ERROR_CONFIG = 13, &
    FZ_ERROR_NO_DEVICE = 14, FZ_ERROR_CUDA = 15, FZ_ERROR_INTERNAL = 16, &
    FZ_ERROR_FILL_VALUE = 17, FZ_ERROR_TARGET = 18, FZ_ERROR_CANCELLED = 19

  integer(c_int32_t), parameter :: FZ_TARGET_PSNR = 0, FZ_TARGET_RATIO = 1

  integer(c_int32_t), parameter :: FZ_TYPE_UINT8 = 0, FZ_TYPE_UINT16 = 1, FZ_TYPE_UINT32 = 2, &
    FZ_TYPE_UINT64 = 3, FZ_TYPE_INT8 = 4, FZ_TYPE_INT16 = 5, FZ_TYPE_INT32 = 6, &
    FZ_TYPE_INT64 = 7, FZ_TYPE_FLOAT32 = 8, FZ_TYPE_FLOAT64 = 9, FZ_TYPE_UNKNOWN = 255
  integer(c_int32_t), parameter :: FZ_BACKEND_AUTO = 0, FZ_BACKEND_CPU = 1, FZ_BACKEND_CUDA = 2
  integer(c_int32_t), parameter :: FZ_MEMORY_HOST = 0, FZ_MEMORY_DEVICE = 1
  integer(c_int32_t), parameter :: FZ_BOUND_DEFAULT = 0, FZ_BOUND_ABS = 1, FZ_BOUND_REL = 2, &
    FZ_BOUND_NOA = 3
  integer(c_int32_t), parameter :: FZ_FUSION_AUTO = 0, FZ_FUSION_OFF = 1
  integer(c_int32_t), parameter :: FZ_FALLBACK_LOSSLESS = 0, FZ_FALLBACK_NONE = 1
  integer(c_int32_t), parameter :: FZ_FILL_CHECK = 0, FZ_FILL_TRUST = 1

  type, bind(C) :: fz_param
    type(c_ptr) :: key = c_null_ptr
    type(c_ptr) :: value = c_null_ptr
  end type fz_param

  type, bind(C) :: fz_allocator
    type(c_funptr) :: allocate_memory = c_null_funptr
    type(c_funptr) :: release = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
  end type fz_allocator

  ! Column-major arrays: dims is shape(array), padded with ones.
  type, bind(C) :: fz_options
    integer(c_size_t) :: struct_size
    integer(c_int32_t) :: type
    integer(c_int32_t) :: backend
    integer(c_int32_t) :: memory
    integer(c_int32_t) :: device
    integer(c_int32_t) :: bound_mode
    integer(c_int32_t) :: fusion
    real(c_double) :: error_bound
    integer(c_size_t) :: dims(3)
    integer(c_size_t) :: n_threads
    integer(c_int64_t) :: max_output_bytes
    integer(c_int64_t) :: max_memory_bytes
    type(c_ptr) :: params
    integer(c_size_t) :: n_params
    type(fz_allocator) :: allocator
    integer(c_int32_t) :: fallback
    integer(c_int32_t) :: reserved
    type(c_ptr) :: fill  ! c_loc of real(c_double) values that mean "missing"
    integer(c_size_t) :: n_fill
    integer(c_int32_t) :: fill_check
    integer(c_int32_t) :: reserved_2
  end type fz_options

  type, bind(C) :: fz_archive_info
    integer(c_size_t) :: struct_size
    integer(c_int32_t) :: version_major
    integer(c_int32_t) :: version_minor
    integer(c_int32_t) :: type
    integer(c_int32_t) :: n_dims
    integer(c_int64_t) :: dims(3)
    integer(c_int64_t) :: original_bytes
    integer(c_int64_t) :: header_bytes
    integer(c_int64_t) :: payload_bytes
    integer(c_int64_t) :: archive_bytes
    integer(c_int32_t) :: has_bound
    integer(c_int32_t) :: bound_mode
    real(c_double) :: bound_requested
    real(c_double) :: bound_absolute
    integer(c_int32_t) :: is_lossless
    integer(c_int32_t) :: has_checksums
    integer(c_int32_t) :: n_stages
    integer(c_int32_t) :: n_segments
    integer(c_int64_t) :: n_missing
    integer(c_int64_t) :: n_filled
    integer(c_int32_t) :: n_fill
    integer(c_int32_t) :: reserved
  end type fz_archive_info

  integer, parameter :: FZ_MAX_AXES = 8

  ! Column-major arrays: extents is shape(array). The defaults are set.
  type, bind(C) :: fz_writer_options
    integer(c_size_t) :: struct_size = 168
    integer(c_int32_t) :: n_axes = 0
    integer(c_int32_t) :: keep_existing = 0
    integer(c_int64_t) :: extents(FZ_MAX_AXES) = 0
    integer(c_int64_t) :: chunk(FZ_MAX_AXES) = 0
    integer(c_int32_t) :: has_range = 0
    integer(c_int32_t) :: verify = 0
    real(c_double) :: range(2) = 0
  end type fz_writer_options

  type, bind(C) :: fz_reader_info
    integer(c_size_t) :: struct_size = 200
    integer(c_int32_t) :: type
    integer(c_int32_t) :: n_axes
    integer(c_int64_t) :: extents(FZ_MAX_AXES)
    integer(c_int64_t) :: chunk(FZ_MAX_AXES)
    integer(c_int64_t) :: n_chunks
    integer(c_int64_t) :: n_absent
    integer(c_int64_t) :: original_bytes
    integer(c_int64_t) :: archive_bytes
    integer(c_int32_t) :: has_bound
    integer(c_int32_t) :: bound_mode
    real(c_double) :: bound_requested
    real(c_double) :: bound_absolute
  end type fz_reader_info

  interface
    function fz_version_c() bind(C, name="fz_version") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function fz_last_error_c() bind(C, name="fz_last_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function fz_status_name_c(status) bind(C, name="fz_status_name") result(text)
      import :: c_ptr, c_int32_t
      integer(c_int32_t), value :: status
      type(c_ptr) :: text
    end function
    function fz_options_init(options, struct_size) bind(C) result(status)
      import :: c_int32_t, c_size_t, fz_options
      type(fz_options), intent(out) :: options
      integer(c_size_t), value :: struct_size
      integer(c_int32_t) :: status
    end function
    function fz_pipeline_from_preset_c(name, options, pipeline) &
        bind(C, name="fz_pipeline_from_preset") result(status)
      import :: c_int32_t, c_ptr, c_char, fz_options
      character(kind=c_char), intent(in) :: name(*)
      type(fz_options), intent(in) :: options
      type(c_ptr), intent(out) :: pipeline
      integer(c_int32_t) :: status
    end function
    function fz_pipeline_from_toml_c(toml, options, pipeline) &
        bind(C, name="fz_pipeline_from_toml") result(status)
      import :: c_int32_t, c_ptr, c_char, fz_options
      character(kind=c_char), intent(in) :: toml(*)
      type(fz_options), intent(in) :: options
      type(c_ptr), intent(out) :: pipeline
      integer(c_int32_t) :: status
    end function
    function fz_pipeline_from_archive(archive, archive_bytes, options, pipeline) bind(C) &
        result(status)
      import :: c_int32_t, c_size_t, c_ptr, fz_options
      type(c_ptr), value :: archive
      integer(c_size_t), value :: archive_bytes
      type(fz_options), intent(in) :: options
      type(c_ptr), intent(out) :: pipeline
      integer(c_int32_t) :: status
    end function
    function fz_pipeline_for_decoding(options, pipeline) bind(C) result(status)
      import :: c_int32_t, c_ptr, fz_options
      type(fz_options), intent(in) :: options
      type(c_ptr), intent(out) :: pipeline
      integer(c_int32_t) :: status
    end function
    subroutine fz_pipeline_destroy(pipeline) bind(C)
      import :: c_ptr
      type(c_ptr), value :: pipeline
    end subroutine
    function fz_compress_bound(pipeline, n_bytes, archive_bytes) bind(C) result(status)
      import :: c_int32_t, c_size_t, c_ptr
      type(c_ptr), value :: pipeline
      integer(c_size_t), value :: n_bytes
      integer(c_size_t), intent(out) :: archive_bytes
      integer(c_int32_t) :: status
    end function
    function fz_compress(pipeline, values, n_bytes, archive, capacity, archive_bytes, stream) &
        bind(C) result(status)
      import :: c_int32_t, c_size_t, c_ptr
      type(c_ptr), value :: pipeline, values, archive, stream
      integer(c_size_t), value :: n_bytes, capacity
      integer(c_size_t), intent(out) :: archive_bytes
      integer(c_int32_t) :: status
    end function
    function fz_decompress(pipeline, archive, archive_bytes, values, capacity, n_bytes, stream) &
        bind(C) result(status)
      import :: c_int32_t, c_size_t, c_ptr
      type(c_ptr), value :: pipeline, archive, values, stream
      integer(c_size_t), value :: archive_bytes, capacity
      integer(c_size_t), intent(out) :: n_bytes
      integer(c_int32_t) :: status
    end function
    function fz_verify(pipeline, archive, archive_bytes, stream) bind(C) result(status)
      import :: c_int32_t, c_size_t, c_ptr
      type(c_ptr), value :: pipeline, archive, stream
      integer(c_size_t), value :: archive_bytes
      integer(c_int32_t) :: status
    end function
    function fz_archive_inspect(archive, archive_bytes, inspection) bind(C) result(status)
      import :: c_int32_t, c_size_t, c_ptr
      type(c_ptr), value :: archive
      integer(c_size_t), value :: archive_bytes
      type(c_ptr), intent(out) :: inspection
      integer(c_int32_t) :: status
    end function
    ! info%struct_size = c_sizeof(info) before the call.
    function fz_archive_get(inspection, info) bind(C) result(status)
      import :: c_int32_t, c_ptr, fz_archive_info
      type(c_ptr), value :: inspection
      type(fz_archive_info), intent(inout) :: info
      integer(c_int32_t) :: status
    end function
    ! As in C, index counts from 0.
    function fz_archive_fill(inspection, index, value) bind(C) result(status)
      import :: c_int32_t, c_size_t, c_double, c_ptr
      type(c_ptr), value :: inspection
      integer(c_size_t), value :: index
      real(c_double), intent(out) :: value
      integer(c_int32_t) :: status
    end function
    function fz_find_bound(pipeline, target, target_value, values, n_bytes, bound, reached) &
        bind(C) result(status)
      import :: c_int32_t, c_size_t, c_double, c_ptr
      type(c_ptr), value :: pipeline, values
      integer(c_int32_t), value :: target
      real(c_double), value :: target_value
      integer(c_size_t), value :: n_bytes
      real(c_double), intent(out) :: bound, reached
      integer(c_int32_t) :: status
    end function
    function fz_find_settings(pipeline, values, n_bytes, text, capacity, text_bytes) &
        bind(C) result(status)
      import :: c_char, c_int32_t, c_size_t, c_ptr
      type(c_ptr), value :: pipeline, values
      integer(c_size_t), value :: n_bytes, capacity
      character(kind=c_char), intent(out) :: text(*)
      integer(c_size_t), intent(out) :: text_bytes
      integer(c_int32_t) :: status
    end function
    subroutine fz_archive_destroy(inspection) bind(C)
      import :: c_ptr
      type(c_ptr), value :: inspection
    end subroutine
    function fz_reader_open_c(path, options, reader) bind(C, name="fz_reader_open") result(status)
      import :: c_int32_t, c_ptr, c_char, fz_options
      character(kind=c_char), intent(in) :: path(*)
      type(fz_options), intent(in) :: options
      type(c_ptr), intent(out) :: reader
      integer(c_int32_t) :: status
    end function
    function fz_reader_get(reader, info) bind(C) result(status)
      import :: c_int32_t, c_ptr, fz_reader_info
      type(c_ptr), value :: reader
      type(fz_reader_info), intent(inout) :: info
      integer(c_int32_t) :: status
    end function
    ! byte_steps is c_null_ptr or c_loc of integer(c_ptrdiff_t) values, c_intptr_t before 2018.
    function fz_reader_read_box(reader, origin, extents, out, capacity, byte_steps) bind(C) &
        result(status)
      import :: c_int32_t, c_int64_t, c_size_t, c_ptr
      type(c_ptr), value :: reader, out, byte_steps
      integer(c_int64_t), intent(in) :: origin(*), extents(*)
      integer(c_size_t), value :: capacity
      integer(c_int32_t) :: status
    end function
    subroutine fz_reader_destroy(reader) bind(C)
      import :: c_ptr
      type(c_ptr), value :: reader
    end subroutine
    function fz_writer_create_c(path, pipeline, options, writer) &
        bind(C, name="fz_writer_create") result(status)
      import :: c_int32_t, c_ptr, c_char, fz_writer_options
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), value :: pipeline
      type(fz_writer_options), intent(in) :: options
      type(c_ptr), intent(out) :: writer
      integer(c_int32_t) :: status
    end function
    function fz_writer_chunk_count(writer) bind(C) result(n_chunks)
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: writer
      integer(c_int64_t) :: n_chunks
    end function
    ! Chunks count from 0, and so do the places in origin.
    function fz_writer_chunk_box(writer, chunk, origin, extents) bind(C) result(status)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: writer
      integer(c_int64_t), value :: chunk
      integer(c_int64_t), intent(out) :: origin(*), extents(*)
      integer(c_int32_t) :: status
    end function
    function fz_writer_append(writer, values, n_bytes) bind(C) result(status)
      import :: c_int32_t, c_size_t, c_ptr
      type(c_ptr), value :: writer, values
      integer(c_size_t), value :: n_bytes
      integer(c_int32_t) :: status
    end function
    function fz_writer_put(writer, chunk, values, n_bytes) bind(C) result(status)
      import :: c_int32_t, c_int64_t, c_size_t, c_ptr
      type(c_ptr), value :: writer, values
      integer(c_int64_t), value :: chunk
      integer(c_size_t), value :: n_bytes
      integer(c_int32_t) :: status
    end function
    function fz_writer_finish(writer, archive_bytes) bind(C) result(status)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: writer
      integer(c_int64_t), intent(out) :: archive_bytes
      integer(c_int32_t) :: status
    end function
    subroutine fz_writer_destroy(writer) bind(C)
      import :: c_ptr
      type(c_ptr), value :: writer
    end subroutine
    function fz_recover_c(from_path, to_path, n_damaged_bytes, n_dropped) &
        bind(C, name="fz_recover") result(status)
      import :: c_int32_t, c_int64_t, c_char
      character(kind=c_char), intent(in) :: from_path(*), to_path(*)
      integer(c_int64_t), intent(out) :: n_damaged_bytes, n_dropped
      integer(c_int32_t) :: status
    end function
  end interface

contains

  function fz_pipeline_from_preset(name, options, pipeline) result(status)
    character(*), intent(in) :: name
    type(fz_options), intent(in) :: options
    type(c_ptr), intent(out) :: pipeline
    integer(c_int32_t) :: status
    status = fz_pipeline_from_preset_c(trim(name)//c_null_char, options, pipeline)
  end function fz_pipeline_from_preset

  function fz_pipeline_from_toml(toml, options, pipeline) result(status)
    character(*), intent(in) :: toml
    type(fz_options), intent(in) :: options
    type(c_ptr), intent(out) :: pipeline
    integer(c_int32_t) :: status
    status = fz_pipeline_from_toml_c(toml//c_null_char, options, pipeline)
  end function fz_pipeline_from_toml

  function fz_reader_open(path, options, reader) result(status)
    character(*), intent(in) :: path
    type(fz_options), intent(in) :: options
    type(c_ptr), intent(out) :: reader
    integer(c_int32_t) :: status
    status = fz_reader_open_c(trim(path)//c_null_char, options, reader)
  end function fz_reader_open

  function fz_writer_create(path, pipeline, options, writer) result(status)
    character(*), intent(in) :: path
    type(c_ptr), intent(in) :: pipeline
    type(fz_writer_options), intent(in) :: options
    type(c_ptr), intent(out) :: writer
    integer(c_int32_t) :: status
    status = fz_writer_create_c(trim(path)//c_null_char, pipeline, options, writer)
  end function fz_writer_create

  function fz_recover(from_path, to_path, n_damaged_bytes, n_dropped) result(status)
    character(*), intent(in) :: from_path, to_path
    integer(c_int64_t), intent(out) :: n_damaged_bytes, n_dropped
    integer(c_int32_t) :: status
    status = fz_recover_c(trim(from_path)//c_null_char, trim(to_path)//c_null_char, &
      n_damaged_bytes, n_dropped)
  end function fz_recover

  function fz_version() result(text)
    character(:), allocatable :: text
    text = fz_text(fz_version_c())
  end function fz_version

  function fz_last_error() result(text)
    character(:), allocatable :: text
    text = fz_text(fz_last_error_c())
  end function fz_last_error

  function fz_status_name(status) result(text)
    integer(c_int32_t), intent(in) :: status
    character(:), allocatable :: text
    text = fz_text(fz_status_name_c(status))
  end function fz_status_name

  ! A copy of a text that the library gave, up to its zero byte.
  function fz_text(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer :: n, i
    integer, parameter :: most = 1048576
    call c_f_pointer(pointer, bytes, [most])
    n = 0
    do while (bytes(n + 1) /= c_null_char)
      n = n + 1
    end do
    allocate (character(n) :: text)
    do i = 1, n
      text(i:i) = bytes(i)
    end do
  end function fz_text

end module fz
