#The CUDA language and runtime.One architecture is enough to test; `release` builds several.
if (NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
set(CMAKE_CUDA_ARCHITECTURES 90) endif() enable_language(CUDA)
#CMake 3.25 does not know that nvcc 12 and later take C++ 20.
    if (NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION OR CMAKE_CUDA20_STANDARD_COMPILE_OPTION
            STREQUAL "") set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20") endif() set(CMAKE_CUDA_STANDARD 20)
            set(CMAKE_CUDA_STANDARD_REQUIRED ON) set(CMAKE_CUDA_EXTENSIONS OFF)
                set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O3 -lineinfo -DNDEBUG")
                    find_package(CUDAToolkit REQUIRED)
