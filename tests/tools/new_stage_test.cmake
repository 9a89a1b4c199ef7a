cmake_minimum_required(VERSION 3.24)

file(REMOVE_RECURSE ${WORK_DIR})
execute_process(
  COMMAND ${PYTHON} ${SOURCE_DIR}/tools/new_stage.py coders/my_coder --id 16500
          --types int16,int32 --root ${WORK_DIR}
  COMMAND_ERROR_IS_FATAL ANY)

file(GLOB sources ${WORK_DIR}/modules/coders/my_coder/*.cc)
list(LENGTH sources n_sources)
if(n_sources EQUAL 0)
  message(FATAL_ERROR "new_stage.py wrote no sources")
endif()
foreach(source IN LISTS sources)
  execute_process(
    COMMAND ${CXX} -std=c++20 -Wall -Wextra -Wconversion -Wshadow -Werror -fsyntax-only
            -I ${WORK_DIR}/modules -I ${SOURCE_DIR}/include -I ${SOURCE_DIR}/modules
            -I ${SOURCE_DIR}/src -I ${SOURCE_DIR}/tests ${source}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
