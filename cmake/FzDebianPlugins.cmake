# Run by CPack for each package, with its files in place: HDF5 on Debian looks for filters in a folder
# for each of its variants, so a .deb has a link in each of them.
if(CPACK_GENERATOR STREQUAL "DEB" AND CPACK_FZ_MULTIARCH)
  file(GLOB_RECURSE plugins RELATIVE ${CPACK_TEMPORARY_DIRECTORY} ${CPACK_TEMPORARY_DIRECTORY}/*libh5fz.so)
  foreach(plugin IN LISTS plugins)
    foreach(variant serial openmpi mpich)
      set(folder usr/lib/${CPACK_FZ_MULTIARCH}/hdf5/${variant}/plugins)
      file(MAKE_DIRECTORY ${CPACK_TEMPORARY_DIRECTORY}/${folder})
      file(RELATIVE_PATH target /${folder} /${plugin})
      file(CREATE_LINK ${target} ${CPACK_TEMPORARY_DIRECTORY}/${folder}/libh5fz.so SYMBOLIC)
    endforeach()
  endforeach()
endif()
