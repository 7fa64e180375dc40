# SPDX-License-Identifier: Apache-2.0
# gantry_build_id.h, by the target gantry_build_id: a hash of all headers that the library and its modules share. A module reads the
# library's structures, so one that was built from other headers is refused (src/base/module.h).
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/include/gantry/*.h ${PROJECT_SOURCE_DIR}/src/*.h)
list(FILTER headers EXCLUDE REGEX "^src/backends/(blas|cuda|fftw|jpeg|mpi|png)/") # of one module alone
set(generated ${PROJECT_BINARY_DIR}/generated)
set(script ${CMAKE_CURRENT_LIST_DIR}/write_build_id.cmake)
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
list(JOIN headers "," joined)
add_custom_command(OUTPUT ${generated}/gantry_build_id.h
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DHEADERS=${joined} -DTO=${generated}/gantry_build_id.h -P ${script}
  DEPENDS ${paths} ${script} COMMENT "build id of library and modules" VERBATIM)
add_custom_target(gantry_build_id_header DEPENDS ${generated}/gantry_build_id.h)
add_library(gantry_build_id INTERFACE)
target_include_directories(gantry_build_id INTERFACE ${generated})
add_dependencies(gantry_build_id gantry_build_id_header)
