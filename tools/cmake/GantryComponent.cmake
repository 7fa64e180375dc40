# SPDX-License-Identifier: Apache-2.0
# gantry_component(NAME [SOURCES ...] [NEEDS component-or-library ...])
#   a static library gantry_NAME that libgantry takes the objects of and tests link. NEEDS states the layers below; a test holds #include lines against the same table.
function(gantry_component name)
  cmake_parse_arguments(ARG "" "" "SOURCES;NEEDS" ${ARGN})
  add_library(gantry_${name} STATIC ${ARG_SOURCES})
  target_include_directories(gantry_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(gantry_${name} PRIVATE gantry_flags PUBLIC ${ARG_NEEDS})
endfunction()

# gantry_test(NAME SOURCES ... [LIBS ...] [LABELS ...] [TIMEOUT s]): a Check program under ctest; exit 77 is a skip.
function(gantry_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE GANTRY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE gantry_flags ${ARG_LIBS} PkgConfig::check)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77 LABELS "${ARG_LABELS}"
    ENVIRONMENT "CK_TIMEOUT_MULTIPLIER=20;GANTRY_SHARED=${PROJECT_SOURCE_DIR}/../shared")
endfunction()
