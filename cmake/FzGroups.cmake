# The fused groups whose kernels are compiled with the library: each template in
# src/backends/cuda/groups once per field type, those of the bitpack family once per width of the
# codes and with and without outlier selection as well. Writes builtin_groups.h, which lists them.
set(template_dir ${PROJECT_SOURCE_DIR}/src/backends/cuda/groups)
set(group_dir ${PROJECT_BINARY_DIR}/generated)
set(FZ_LIST_DECLS "")
set(FZ_LIST_CALLS "")

# Uses the caller's FZ_* variables. `suffix` tells the file from others of the template.
macro(fz_group_file family suffix)
  set(FZ_LIST "${family}_${suffix}_groups")
  string(APPEND FZ_LIST_DECLS "std::span<const BuiltinGroup> ${FZ_LIST}();\n")
  if(FZ_LIST_CALLS)
    string(APPEND FZ_LIST_CALLS ", ")
  endif()
  string(APPEND FZ_LIST_CALLS "${FZ_LIST}()")
  configure_file(${template_dir}/${family}.cu.in ${group_dir}/groups_${family}_${suffix}.cu @ONLY)
  target_sources(fz PRIVATE ${group_dir}/groups_${family}_${suffix}.cu)
endmacro()

foreach(FZ_FIELD_TYPE float double)
  if(FZ_FIELD_TYPE STREQUAL "float")
    set(FZ_FIELD_NAME f32)
    # Rows of wider values than the codes have no room in shared memory there.
    set(FZ_MASK_PFPL "FZ_GROUP(fz::group::Field<float>, fz::mask::MaskOp<float>,
               fz::quantizer::ListOp<float, std::uint32_t, fz::quantizer::ListForm::kPlain>,
               fz::diff::DiffOp<std::uint32_t, fz::delta::Code::kNegabinary>,
               fz::bitshuffle::BitshuffleOp<4>, fz::rze::RzeOp<16384>),")
    set(FZ_FIELD_CAMEL Float)
  else()
    set(FZ_FIELD_NAME f64)
    set(FZ_MASK_PFPL "")
    set(FZ_FIELD_CAMEL Double)
  endif()
  foreach(family pfpl shuffle bitplane lorenzo_quant lorenzo_quant_grid)
    fz_group_file(${family} ${FZ_FIELD_NAME})
  endforeach()
  foreach(FZ_CODE_BITS 16 32)
    set(FZ_GROUP_OF_BITS FZ_BATCH_GROUP)  # of the presets
    if(FZ_CODE_BITS EQUAL 16)
      set(FZ_GROUP_OF_BITS FZ_GROUP)
    endif()
    foreach(FZ_OUTLIER true false)
      fz_group_file(bitpack ${FZ_FIELD_NAME}_u${FZ_CODE_BITS}_outlier_${FZ_OUTLIER})
    endforeach()
  endforeach()
endforeach()
configure_file(${template_dir}/builtin_groups.h.in ${group_dir}/builtin_groups.h @ONLY)
