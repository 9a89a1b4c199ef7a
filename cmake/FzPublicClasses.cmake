# Writes generated_public_classes.h: the public core headers, and an X macro with every class and
# struct that they define at the left margin. Templates are left out; those that matter are stages.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
     ${PROJECT_SOURCE_DIR}/include/*.h)
list(FILTER headers EXCLUDE REGEX "^(fz|fz_batch|fzgmod_cli|fz/hdf5)\\.h$")  # C, and a program's own
set(FZ_CLASS_INCLUDES "")
set(FZ_CLASS_ROWS "")
foreach(header IN LISTS headers)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY
    CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/${header})
  string(APPEND FZ_CLASS_INCLUDES "#include \"${header}\"\n")
  file(READ ${PROJECT_SOURCE_DIR}/include/${header} text)
  string(REPLACE ";" "!" text "${text}")  # a semicolon would end an element of a list
  string(REGEX REPLACE "template <[^\n]*>\n(class|struct) " "" text "${text}")
  string(REGEX MATCHALL "\n(class|struct) [A-Za-z0-9]+( final)?( :[^!{]*)? {" found "${text}")
  foreach(line IN LISTS found)
    string(REGEX REPLACE "\n(class|struct) ([A-Za-z0-9]+).*" "\\2" name "${line}")
    string(APPEND FZ_CLASS_ROWS " \\\n  X(${name})")
  endforeach()
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/public_classes.h.in
               ${PROJECT_BINARY_DIR}/generated/generated_public_classes.h @ONLY)
