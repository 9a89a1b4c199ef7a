cmake_minimum_required(VERSION 3.24)

file(REMOVE_RECURSE ${WORK_DIR})
set(options_my_coder "")
set(options_my_gpu_coder --cuda)
set(options_my_map --fused)
set(options_my_gpu_map --cuda --fused)
set(id 16500)
foreach(stage my_coder my_gpu_coder my_map my_gpu_map)
  execute_process(
    COMMAND ${PYTHON} ${SOURCE_DIR}/tools/new_stage.py coders/${stage} --id ${id}
            --types int16,float32 --root ${WORK_DIR} ${options_${stage}}
    COMMAND_ERROR_IS_FATAL ANY)
  math(EXPR id "${id} + 1")
endforeach()

set(includes -I ${WORK_DIR}/modules -I ${SOURCE_DIR}/include -I ${SOURCE_DIR}/modules
             -I ${SOURCE_DIR}/src -I ${SOURCE_DIR}/tests)
file(GLOB_RECURSE sources ${WORK_DIR}/modules/*.cc)
list(LENGTH sources n_sources)
if(NOT n_sources EQUAL 18)  # four of each stage, and the two that have a device side
  message(FATAL_ERROR "new_stage.py wrote ${n_sources} sources")
endif()
# Sources of one role come from one text, so one compiler run takes them all: most of its time goes
# into headers. CPU parts and tests stay alone, since they have names outside their stage's namespace.
set(units "")
foreach(role descriptor.cc stage.cc cuda/stage.cc)
  file(GLOB of_role ${WORK_DIR}/modules/coders/*/${role})
  list(REMOVE_ITEM sources ${of_role})
  list(TRANSFORM of_role REPLACE "(.+)" "#include \"\\1\"\n")
  list(JOIN of_role "" text)
  string(REPLACE "/" "_" unit ${role})
  file(WRITE ${WORK_DIR}/units/${unit} "${text}")
  list(APPEND units ${WORK_DIR}/units/${unit})
endforeach()
list(LENGTH sources n_alone)
if(NOT n_alone EQUAL 8)
  message(FATAL_ERROR "sources of other roles: ${sources}")
endif()
foreach(source IN LISTS units sources)
  execute_process(
    COMMAND ${CXX} -std=c++20 -Wall -Wextra -Wconversion -Wshadow -Werror -fsyntax-only
            ${includes} ${source}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()

if(NOT NVCC)
  return()
endif()
file(WRITE ${WORK_DIR}/op.cu "
#include \"backends/cuda/group/kernel.cuh\"
#include \"backends/cuda/group/plain_op.cuh\"
#include \"coders/my_gpu_map/cuda/op/op.cuh\"
using C = fz::group::AnyChain<float, fz::my_gpu_map::Op<float>, fz::group::PlainOp>;
template __global__ void fz::group::encodeGroup<C>(const __grid_constant__ typename C::Args);
template __global__ void fz::group::decodeGroup<C>(const __grid_constant__ typename C::Args);
")
list(GET ARCHITECTURES 0 architecture)
file(GLOB_RECURSE kernels ${WORK_DIR}/modules/*.cu)
foreach(source IN LISTS kernels ITEMS ${WORK_DIR}/op.cu)
  execute_process(
    COMMAND ${NVCC} -std=c++20 -arch=sm_${architecture} --Werror=all-warnings -cubin
            -o ${WORK_DIR}/kernel.cubin ${includes} ${source}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
