# libfz_c: the C interface (include/fz.h) as a shared library that shows those functions alone. Its
# name is not libfz, because -lfz would then mean it instead of the static C++ library.
if(FZ_EXAMPLES OR FZ_TESTS)  # the library itself is C++
  include(CheckLanguage)
  foreach(language C Fortran)
    if(NOT CMAKE_${language}_COMPILER)  # may have been installed since the build folder was made
      unset(CMAKE_${language}_COMPILER CACHE)
    endif()
    check_language(${language})
    if(CMAKE_${language}_COMPILER)
      enable_language(${language})
    endif()
  endforeach()
endif()

file(GLOB c_api_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/c_api/*.cc)
add_library(fz_c_objects OBJECT ${c_api_sources})  # the tests link them without the library
target_include_directories(fz_c_objects PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(fz_c_objects PRIVATE FZ_HAVE_CUDA=$<BOOL:${FZ_CUDA}>
                                                FZ_PROJECT_VERSION="${PROJECT_VERSION}")
target_link_libraries(fz_c_objects PRIVATE fz fz_warnings fz_optimize fmt::fmt)
if(FZ_CUDA)
  target_link_libraries(fz_c_objects PRIVATE CUDA::cudart_static)
endif()

set(version_script ${PROJECT_SOURCE_DIR}/src/c_api/fz_c.map)
add_library(fz_c SHARED $<TARGET_OBJECTS:fz_c_objects>)
add_library(fz::c ALIAS fz_c)
set_target_properties(fz_c PROPERTIES
  EXPORT_NAME c LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION 0
  LINK_DEPENDS ${version_script})
target_include_directories(fz_c INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                          $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# A shared libfz passes on nothing of what it is linked with.
target_link_libraries(fz_c PRIVATE $<BUILD_INTERFACE:fz> $<BUILD_INTERFACE:fmt::fmt>)
if(FZ_CUDA)
  target_link_libraries(fz_c PRIVATE $<BUILD_INTERFACE:CUDA::cudart_static>)
endif()
target_link_options(fz_c PRIVATE LINKER:--version-script=${version_script})
if(BUILD_SHARED_LIBS)  # then it needs libfz.so, which is installed beside it
  set_target_properties(fz_c PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
if(NOT FZ_SANITIZE)  # whose functions come with the program
  target_link_options(fz_c PRIVATE LINKER:--no-undefined)
endif()
