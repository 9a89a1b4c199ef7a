# Every option of the project.
option(FZ_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(FZ_BENCH "Build the benchmark" ${PROJECT_IS_TOP_LEVEL})
option(FZ_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(FZ_CLI "Build the command line tool" ON)
option(FZ_HDF5_FILTER "Build the HDF5 filter plugin; needs no HDF5" ${PROJECT_IS_TOP_LEVEL})
option(FZ_CUDA "Build the CUDA backend" OFF)
option(FZ_TBB "Run threads with oneTBB (else with std::jthread)" ON)
option(FZ_WERROR "Treat warnings as errors" OFF)
option(FZ_FUZZ "Build the fuzz targets (clang)" OFF)
option(BUILD_SHARED_LIBS "Build fz as a shared library" OFF)
set(FZ_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=: address,undefined or thread")
set(FZ_SHARED_DATA "${PROJECT_SOURCE_DIR}/../shared/data" CACHE PATH
    "Folder with real fields; tests that want it are skipped when it is absent")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
