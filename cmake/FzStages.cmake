# fz_stages(<category>/<stage>...): the whole list of stages, one line each.
# A stage folder brings its own sources, tests and documents; nothing else names it. Its rooms:
#   <stage>/*.h *.cc     settings, descriptor, codec
#   <stage>/cpu/         the CPU backend
#   <stage>/cuda/        the CUDA backend; cuda/op/ is what run-time compilation gets
#   <stage>/tests/       *_test.cc
# Of the headers only <stage>.h and <stage>_stage.h are public; the others are not installed.
function(fz_stages)
  set(FZ_STAGE_DECLS "")
  set(FZ_STAGE_ROWS "")
  set(FZ_STAGE_INCLUDES "")
  set(FZ_STAGE_PARTS "")
  foreach(path IN LISTS ARGN)
    set(dir ${CMAKE_CURRENT_SOURCE_DIR}/${path})
    if(NOT IS_DIRECTORY ${dir})
      message(FATAL_ERROR "fz_stages: no such stage folder: modules/${path}")
    endif()
    get_filename_component(stage ${path} NAME)
    file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc ${dir}/cpu/*.cc)
    list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
    if(FZ_CUDA)
      file(GLOB kernels CONFIGURE_DEPENDS ${dir}/*.cu ${dir}/cuda/*.cu ${dir}/cuda/*.cc)
      list(APPEND sources ${kernels})
    else()
      list(FILTER sources EXCLUDE REGEX "_cuda\\.cc$")
      string(APPEND FZ_STAGE_PARTS "MakeCudaPart ${stage}::cudaPartMaker() {\n  return nullptr;\n}\n")
    endif()
    target_sources(fz PRIVATE ${sources})
    file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
         ${dir}/${stage}.h ${dir}/${stage}_stage.h)
    foreach(header IN LISTS headers)
      string(APPEND FZ_STAGE_INCLUDES "#include \"${header}\"\n")
      set_property(GLOBAL APPEND PROPERTY FZ_STAGE_HEADERS ${header})
    endforeach()
    file(GLOB tests CONFIGURE_DEPENDS ${dir}/*_test.cc ${dir}/tests/*_test.cc)
    set_property(GLOBAL APPEND PROPERTY FZ_STAGE_TESTS ${tests})
    set_property(GLOBAL APPEND PROPERTY FZ_STAGE_PATHS ${path})
    string(APPEND FZ_STAGE_DECLS "namespace fz::${stage} {\nconst StageDescriptor& descriptor();\nMakeCudaPart cudaPartMaker();\n}\n")
    string(APPEND FZ_STAGE_ROWS "      &${stage}::descriptor(),\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/stage_table.cc.in
                 ${PROJECT_BINARY_DIR}/generated/stage_table.cc @ONLY)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/all_stages.h.in
                 ${PROJECT_BINARY_DIR}/generated/include/fz/all_stages.h @ONLY)
  target_sources(fz PRIVATE ${PROJECT_BINARY_DIR}/generated/stage_table.cc)
endfunction()
