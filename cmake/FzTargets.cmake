# Interface targets that carry flags; linked privately, so nothing leaks to users of fz.
add_library(fz_warnings INTERFACE)
target_compile_options(fz_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow>
  $<$<AND:$<BOOL:${FZ_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<BOOL:${FZ_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:--Werror=all-warnings>)

# Every operation rounds once: no contraction into fused multiply-add, no value-changing shortcuts.
# That no operation traps (the default of clang) changes no value, and lets gcc vectorise loops with
# selects.
add_library(fz_exact_fp INTERFACE)
target_compile_options(fz_exact_fp INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-fast-math -fno-unsafe-math-optimizations>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-trapping-math>
  $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false -Xcompiler=-ffp-contract=off>)

# RelWithDebInfo means -O2 by default; the tile loops need the vectoriser of -O3. Line tables are
# enough for stack traces, and full debug info would double the build.
add_library(fz_optimize INTERFACE)
target_compile_options(fz_optimize INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:RelWithDebInfo,Release>>:-O3>)

add_library(fz_sanitize INTERFACE)
if(FZ_SANITIZE)
  target_compile_options(fz_sanitize INTERFACE
    -fsanitize=${FZ_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(fz_sanitize INTERFACE -fsanitize=${FZ_SANITIZE})
  # Null pointers end a test without these checks too, which are a third of the code that they make.
  if(FZ_SANITIZE_LESS)
    target_compile_options(fz_sanitize INTERFACE
      -fno-sanitize=null,vptr,object-size,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()

# fz_precompile(<target> <header>...): with FZ_PCH, precompiles headers that many sources include and
# that never change here. `make` asks for it; a build without it shows an include that is missing, and
# so does clang-tidy.
function(fz_precompile target)
  if(FZ_PCH)
    foreach(header IN LISTS ARGN)
      target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
    endforeach()
  endif()
endfunction()

# fz_compile_together(<target> <group> <source>...): with FZ_UNITY, compiles sources of a target as one.
# A small source takes most of its time for headers and templates that it shares with its neighbours.
# Names in the unnamed namespaces of a group must differ; the sanitizers' builds find those that do not.
function(fz_compile_together target group)
  if(FZ_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
    # gcc takes a source inside another for a header, where such types would be a mistake.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

set(FZ_STANDARD_HEADERS algorithm array atomic bit cmath cstddef cstdint cstring functional limits map
    memory mutex optional span stdexcept string string_view thread type_traits utility vector)
