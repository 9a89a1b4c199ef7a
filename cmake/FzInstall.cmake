# Installs the libraries, their headers, two CMake packages (fz, and FZGPUModules for projects that
# ask for it by that name) and pkg-config files. Everything is relative to the prefix, so the
# installed tree may be moved.
include(CMakePackageConfigHelpers)

# The version of the FZGPUModules interface that the compatible package offers.
set(FZ_COMPATIBLE_VERSION 2.0.0)
set(include_dir ${CMAKE_INSTALL_INCLUDEDIR}/fzgmod)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake)
set(generated_dir ${PROJECT_BINARY_DIR}/generated/install)

install(TARGETS fz EXPORT fzTargets)
install(EXPORT fzTargets NAMESPACE fz:: DESTINATION ${package_dir}/fz)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${include_dir}
        FILES_MATCHING PATTERN "*.h" PATTERN "fz.h" EXCLUDE
        PATTERN "fz_batch.h" EXCLUDE)
get_property(stage_headers GLOBAL PROPERTY FZ_STAGE_HEADERS)
foreach(header IN LISTS stage_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/modules/${header} DESTINATION ${include_dir}/${folder})
endforeach()
get_property(stage_forwarders GLOBAL PROPERTY FZ_STAGE_FORWARDERS)
foreach(header IN LISTS stage_forwarders)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_BINARY_DIR}/generated/include/${header}
          DESTINATION ${include_dir}/${folder})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/include/fz/all_stages.h
        DESTINATION ${include_dir}/fz)

# A static library leaves its own dependencies to whoever links it.
get_target_property(library_type fz TYPE)
set(FZ_IS_STATIC OFF)
if(library_type STREQUAL "STATIC_LIBRARY")
  set(FZ_IS_STATIC ON)
endif()

# What the static library of the command line tools needs besides.
set(FZ_CLI_MODULES "")
if(hdf5_FOUND)
  set(FZ_CLI_MODULES hdf5)
endif()

foreach(package fz FZGPUModules)
  set(version ${PROJECT_VERSION})
  if(package STREQUAL "FZGPUModules")
    set(version ${FZ_COMPATIBLE_VERSION})
  endif()
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/${package}Config.cmake.in
    ${generated_dir}/${package}Config.cmake INSTALL_DESTINATION ${package_dir}/${package}
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
  write_basic_package_version_file(${generated_dir}/${package}ConfigVersion.cmake
    VERSION ${version} COMPATIBILITY SameMajorVersion)
  install(FILES ${generated_dir}/${package}Config.cmake ${generated_dir}/${package}ConfigVersion.cmake
          DESTINATION ${package_dir}/${package})
endforeach()

# pkg-config resolves ${pcfiledir}, so the way up to the prefix is all that has to be written.
file(RELATIVE_PATH FZ_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" FZ_PC_TO_PREFIX "${FZ_PC_TO_PREFIX}")
set(FZ_PC_REQUIRES "fmt libdeflate libhwy")
if(FZ_TBB)
  string(APPEND FZ_PC_REQUIRES " tbb")
endif()
set(FZ_PC_LIBS "${CMAKE_THREAD_LIBS_INIT}")
if(FZ_CUDA)
  string(APPEND FZ_PC_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lpthread -ldl -lrt")
endif()
# Nobody asks pkg-config for --static on account of one library, so a static one names all it needs.
set(FZ_PC_PRIVATE ".private")
set(FZ_PC_LIBS_PUBLIC "")
if(FZ_IS_STATIC)
  set(FZ_PC_PRIVATE "")
  if(FZ_PC_LIBS)
    set(FZ_PC_LIBS_PUBLIC " ${FZ_PC_LIBS}")
  endif()
endif()
set(pc_files fz fzgpumodules)
if(FZ_C_API)
  # Its users need neither the C++ library nor what that links.
  install(TARGETS fz_c EXPORT fzCTargets)
  install(EXPORT fzCTargets NAMESPACE fz:: DESTINATION ${package_dir}/fz)
  install(FILES ${PROJECT_SOURCE_DIR}/include/fz.h ${PROJECT_SOURCE_DIR}/include/fz_batch.h
                ${PROJECT_SOURCE_DIR}/include/fz.f90
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  list(APPEND pc_files fz-c)
endif()
foreach(name IN LISTS pc_files)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${generated_dir}/${name}.pc @ONLY)
  install(FILES ${generated_dir}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
