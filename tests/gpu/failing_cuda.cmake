# fz_failing_cuda(<target>): links the target so that the CUDA calls of failing_cuda.cc can be made
# to fail. The list is that of its wrappers.
function(fz_failing_cuda target)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/gpu/failing_cuda.cc
                                   ${PROJECT_SOURCE_DIR}/tests/gpu/device_life_steps.cc
                                   ${PROJECT_SOURCE_DIR}/tests/gpu/device_lives.cc)
  foreach(call
      cudaMalloc cudaMallocHost cudaMallocFromPoolAsync cudaMemPoolCreate cudaStreamCreateWithFlags
      cudaStreamCreateWithPriority cudaEventCreate cudaEventCreateWithFlags cudaGraphInstantiate cudaGraphExecUpdate
      cudaGraphLaunch cudaFuncSetAttribute cudaLaunchKernel __cudaLaunchKernel cudaStreamEndCapture
      cudaFree cudaFreeHost cudaFreeAsync cudaMemPoolDestroy cudaStreamDestroy cudaEventDestroy
      cudaGraphExecDestroy)
    target_link_options(${target} PRIVATE LINKER:--wrap=${call})
  endforeach()
endfunction()
