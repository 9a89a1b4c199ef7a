# Compiles the headers of device code into the library, for the run-time compiler of fused groups.
# A new header in a stage's cuda/ folder takes part by itself.
set(device_headers "")
foreach(root src modules include)
  set(patterns ${PROJECT_SOURCE_DIR}/${root}/*.cuh)
  if(root STREQUAL "src")
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/src/shared/*.h ${PROJECT_SOURCE_DIR}/src/backends/cuda/group/*.h
         ${PROJECT_SOURCE_DIR}/src/backends/cuda/rtc/standard.h)
  elseif(root STREQUAL "modules")
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/modules/*.h)
  else()
    set(patterns ${PROJECT_SOURCE_DIR}/include/fz/device_types.h ${PROJECT_SOURCE_DIR}/include/fz/device_types.h
        ${PROJECT_SOURCE_DIR}/include/fz/stream.h)
  endif()
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/${root} ${patterns})
  if(root STREQUAL "modules")  # codecs, and all that stands in the rooms of the device
    list(FILTER found INCLUDE REGEX "codec[a-z_]*\\.h$|/cuda/|_op\\.h$|_cuda\\.h$|\\.cuh$")
  endif()
  list(SORT found)
  foreach(name IN LISTS found)
    list(APPEND device_headers "${PROJECT_SOURCE_DIR}/${root}:${name}")
  endforeach()
endforeach()

set(device_files "")
foreach(entry IN LISTS device_headers)
  string(REPLACE ":" "/" file "${entry}")
  list(APPEND device_files ${file})
endforeach()
set(device_sources ${PROJECT_BINARY_DIR}/generated/device_sources.cc)
add_custom_command(OUTPUT ${device_sources}
  COMMAND ${CMAKE_COMMAND} "-DHEADERS=${device_headers}" -DOUTPUT=${device_sources}
          -P ${PROJECT_SOURCE_DIR}/cmake/EmbedSources.cmake
  DEPENDS ${device_files} ${PROJECT_SOURCE_DIR}/cmake/EmbedSources.cmake
  VERBATIM)
target_sources(fz PRIVATE ${device_sources})
