# fz_stages(<category>/<stage>...): the whole list of stages, one line each. A folder that brings
# several stages names them: <category>/<folder>=<stage>,<stage>.
# A stage folder brings its own sources, tests and documents; nothing else names it. Its rooms:
#   <stage>/*.h *.cc     settings, descriptor, codec
#   <stage>/cpu/         the CPU backend
#   <stage>/cuda/        the CUDA backend; cuda/op/ is what run-time compilation gets
#   <stage>/tests/       *_test.cc
#   <stage>/instances.def  its classes, one a line, for the list that compares layouts
# Of the headers only <stage>.h and <stage>_stage.h are public, and those of the folder's own name;
# the others are not installed. A stage whose folder has another name can still be included as
# <category>/<stage>/<stage>_stage.h, through headers that are written here.
function(fz_stages)
  set(FZ_STAGE_DECLS "")
  set(FZ_STAGE_ROWS "")
  set(FZ_STAGE_INCLUDES "")
  set(FZ_STAGE_PARTS "")
  set(FZ_STAGE_INSTANCES "")
  foreach(entry IN LISTS ARGN)
    string(REGEX REPLACE "=.*" "" path ${entry})
    set(dir ${CMAKE_CURRENT_SOURCE_DIR}/${path})
    if(NOT IS_DIRECTORY ${dir})
      message(FATAL_ERROR "fz_stages: no such stage folder: modules/${path}")
    endif()
    get_filename_component(category ${path} DIRECTORY)
    get_filename_component(folder ${path} NAME)
    set(stages ${folder})
    if(entry MATCHES "=(.+)")
      string(REPLACE "," ";" stages ${CMAKE_MATCH_1})
    endif()
    file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc ${dir}/cpu/*.cc)
    list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
    if(FZ_CUDA)
      file(GLOB kernels CONFIGURE_DEPENDS ${dir}/*.cu ${dir}/cuda/*.cu ${dir}/cuda/*.cc)
      list(APPEND sources ${kernels})
    else()
      list(FILTER sources EXCLUDE REGEX "_cuda\\.cc$")
    endif()
    target_sources(fz PRIVATE ${sources})
    set(names ${folder} ${stages})
    list(REMOVE_DUPLICATES names)
    foreach(name IN LISTS names)
      file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
           ${dir}/${name}.h ${dir}/${name}_stage.h)
      foreach(header IN LISTS headers)
        string(APPEND FZ_STAGE_INCLUDES "#include \"${header}\"\n")
        set_property(GLOBAL APPEND PROPERTY FZ_STAGE_HEADERS ${header})
        if(NOT name STREQUAL folder)
          get_filename_component(file ${header} NAME)
          set(forwarder ${category}/${name}/${file})
          file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/include/${forwarder}
               CONTENT "#pragma once\n\n#include \"${header}\"\n")
          set_property(GLOBAL APPEND PROPERTY FZ_STAGE_FORWARDERS ${forwarder})
        endif()
      endforeach()
    endforeach()
    file(GLOB tests CONFIGURE_DEPENDS ${dir}/*_test.cc ${dir}/tests/*_test.cc)
    set_property(GLOBAL APPEND PROPERTY FZ_STAGE_TESTS ${tests})
    set_property(GLOBAL APPEND PROPERTY FZ_STAGE_PATHS ${path})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dir}/instances.def)
    file(STRINGS ${dir}/instances.def instances)
    foreach(instance IN LISTS instances)
      string(APPEND FZ_STAGE_INSTANCES " \\\n  X(${instance})")
    endforeach()
    foreach(stage IN LISTS stages)
      string(APPEND FZ_STAGE_DECLS "namespace fz::${stage} {\nconst StageDescriptor& descriptor();\nMakeCudaPart cudaPartMaker();\n}\n")
      string(APPEND FZ_STAGE_ROWS "      &${stage}::descriptor(),\n")
      if(NOT FZ_CUDA)
        string(APPEND FZ_STAGE_PARTS "MakeCudaPart ${stage}::cudaPartMaker() {\n  return nullptr;\n}\n")
      endif()
    endforeach()
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/stage_table.cc.in
                 ${PROJECT_BINARY_DIR}/generated/stage_table.cc @ONLY)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/public_stages.h.in
                 ${PROJECT_BINARY_DIR}/generated/list/public_stages.h @ONLY)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/all_stages.h.in
                 ${PROJECT_BINARY_DIR}/generated/include/fz/all_stages.h @ONLY)
  target_sources(fz PRIVATE ${PROJECT_BINARY_DIR}/generated/stage_table.cc)
endfunction()
