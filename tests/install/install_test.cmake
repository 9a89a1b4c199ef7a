cmake_minimum_required(VERSION 3.24)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${WORK_DIR}/first)
file(RENAME ${WORK_DIR}/first ${WORK_DIR}/moved)
set(prefix ${WORK_DIR}/moved)

# What is installed must not know where it was built or first installed.
file(GLOB_RECURSE texts ${prefix}/*.cmake ${prefix}/*.pc ${prefix}/*.h ${prefix}/*.f90)
foreach(text IN LISTS texts)
  file(READ ${text} content)
  foreach(place ${BUILD_DIR} ${WORK_DIR}/first ${CONSUMER_DIR})
    string(FIND "${content}" "${place}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${text} names ${place}")
    endif()
  endforeach()
endforeach()

foreach(package fz FZGPUModules)
  set(dir ${WORK_DIR}/${package})
  run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${dir} -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${CXX}
      -D CMAKE_PREFIX_PATH=${prefix} -D PACKAGE=${package} -D LIST_DIR=${LIST_DIR})
  # The second package is other names of the first one's targets; stages are the same files.
  if(package STREQUAL "fz")
    run(${CMAKE_COMMAND} --build ${dir})
    run(${dir}/every_stage)
  else()
    run(${CMAKE_COMMAND} --build ${dir} --target consumer)
    if(EXISTS ${prefix}/bin/fz)
      run(${CMAKE_COMMAND} --build ${dir} --target consumer_cli)
    endif()
  endif()
  run(${dir}/consumer)
  if(EXISTS ${prefix}/bin/fz)
    run(${dir}/consumer_cli)
  endif()
endforeach()

set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig:$ENV{PKG_CONFIG_PATH})
foreach(module fz fzgpumodules)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${module}
                  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(program ${WORK_DIR}/consumer_${module})
  run(${CXX} -std=c++20 ${CONSUMER_DIR}/consumer.cc -o ${program} ${flags}
      -Wl,-rpath,${prefix}/${LIBDIR})
  run(${program})
  if(NOT module STREQUAL "fz")
    continue()  # the same flags under another name
  endif()
  # A stage of one's own needs nothing but installed headers; this is its half on the CPU.
  set(program ${WORK_DIR}/custom_stage_${module})
  set(stage_dir ${EXAMPLES_DIR}/custom_gpu_stage)
  run(${CXX} -std=c++20 ${stage_dir}/main.cc ${stage_dir}/offset_stage.cc
      ${stage_dir}/offset_no_cuda.cc -o ${program} ${flags} -Wl,-rpath,${prefix}/${LIBDIR})
  run(${program} cpu)
endforeach()

if(NOT CC)
  return()
endif()
# The filter's header as docs/hdf5.md includes it, with nothing but the prefix's include folder.
if(EXISTS ${prefix}/${LIBDIR}/hdf5/plugin)
  file(WRITE ${WORK_DIR}/words.c "#include \"fz/hdf5.h\"\nint main(void) { unsigned v[FZ_HDF5_USER_WORDS];\n"
       "  return fz_hdf5_cd_values(v, FZ_HDF5_PFPL, FZ_HDF5_ABS, 1e-3, 0) == FZ_HDF5_USER_WORDS ? 0 : 1; }\n")
  run(${CC} -std=c99 -I${prefix}/include ${WORK_DIR}/words.c -o ${WORK_DIR}/words)
  run(${WORK_DIR}/words)
  if(NOT EXISTS ${prefix}/include/fz_hdf5.f90)
    message(FATAL_ERROR "the filter's module for Fortran is not installed")
  endif()
endif()
if(NOT C_API)
  return()
endif()
set(dir ${WORK_DIR}/c)
run(${CMAKE_COMMAND} -S ${C_CONSUMER_DIR} -B ${dir} -G ${GENERATOR} -D CMAKE_C_COMPILER=${CC}
    -D CMAKE_PREFIX_PATH=${prefix} -D EXAMPLES_DIR=${EXAMPLES_DIR})
run(${CMAKE_COMMAND} --build ${dir})
run(${dir}/c_consumer)

execute_process(COMMAND ${PKG_CONFIG} --cflags --libs fz-c
                OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
set(run_path -Wl,-rpath,${prefix}/${LIBDIR})
run(${CC} -std=c99 ${EXAMPLES_DIR}/c_api.c -o ${WORK_DIR}/c_pkg_config ${flags} -lm ${run_path})
run(${WORK_DIR}/c_pkg_config)
if(FC)
  run(${dir}/fortran_consumer)
  execute_process(COMMAND ${PKG_CONFIG} --variable=fortran_module fz-c OUTPUT_VARIABLE module
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  run(${FC} -J ${WORK_DIR} ${module} ${EXAMPLES_DIR}/fortran_api.f90
      -o ${WORK_DIR}/fortran_pkg_config ${flags} ${run_path})
  run(${WORK_DIR}/fortran_pkg_config)
endif()
