# Packages of what `make install` installs: `cpack -G TGZ` anywhere, `cpack -G DEB` on Debian and its
# like. One package has tools, libraries, headers and the HDF5 filter.
set(CPACK_PACKAGE_NAME fz)
set(CPACK_PACKAGE_VENDOR "the fz developers")
set(CPACK_PACKAGE_CONTACT "the fz developers <fz@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" system)
set(CPACK_PACKAGE_FILE_NAME fz-${PROJECT_VERSION}-${system})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# The C++ library is static and leaves these to whoever links it; the tools need none of them.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfmt-dev, libtbb-dev, libhwy-dev, libdeflate-dev, pkg-config")
set(CPACK_FZ_MULTIARCH "${CMAKE_LIBRARY_ARCHITECTURE}")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/FzDebianPlugins.cmake)
include(CPack)
