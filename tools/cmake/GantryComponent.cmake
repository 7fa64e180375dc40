# SPDX-License-Identifier: Apache-2.0
# gantry_component(NAME [SOURCES ...] [NEEDS component-or-library ...])
#   a static library gantry_NAME that libgantry takes the objects of. NEEDS states the layers below; a test holds #include lines against the same table.
#   Its symbols are visible so that tests can link gantry_internal, one shared library of all components. The map of
#   libgantry hides them again; without interposition within a file, the compiler sees them as it would hidden ones.
function(gantry_component name)
  cmake_parse_arguments(ARG "" "" "SOURCES;NEEDS" ${ARGN})
  add_library(gantry_${name} STATIC ${ARG_SOURCES})
  set_target_properties(gantry_${name} PROPERTIES GANTRY_VISIBLE ON)
  target_compile_options(gantry_${name} PRIVATE -fno-semantic-interposition)
  target_include_directories(gantry_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_compile_definitions(gantry_${name} PRIVATE GANTRY_NO_MACROS) # mistakes in a graph are in no line of the library
  target_link_libraries(gantry_${name} PRIVATE gantry_flags PUBLIC ${ARG_NEEDS})
endfunction()

# gantry_test_support(NAME SOURCES ... [LIBS ...]): what several tests share, compiled once; they name it among their LIBS.
function(gantry_test_support name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  gantry_test_sources(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
endfunction()

# For tests of damaged files: a size may ask for more memory than there is, which must be an error like others, also under
# AddressSanitizer.
set(GANTRY_DAMAGED_SIZES "ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=4096")

# gantry_test(NAME SOURCES ... [LIBS ...] [LABELS ...] [TIMEOUT s] [PUBLIC]): a Check program under ctest; exit 77 is a skip.
#   It links gantry_internal and may call whatever the library consists of; PUBLIC: it links libgantry, as programs of users do.
function(gantry_test name)
  cmake_parse_arguments(ARG "PUBLIC" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900) # it ends a test that hangs: the slowest takes a quarter of it, on a machine with nothing else to do
  endif()
  if(GANTRY_SANITIZE) # they take five times as long
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 4")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  gantry_test_sources(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} $<IF:$<BOOL:${ARG_PUBLIC}>,gantry,gantry_internal>)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77 LABELS "${ARG_LABELS}"
    ENVIRONMENT "CK_TIMEOUT_MULTIPLIER=20;GANTRY_SHARED=${PROJECT_SOURCE_DIR}/../shared")
endfunction()

function(gantry_test_sources target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${target} PRIVATE GANTRY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE gantry_flags test_places PkgConfig::check)
endfunction()

# gantry_mpi_program(<name> <source> <label> <processes> [words...]): a program that uses MPI itself, <name>_<mpi> for each that there is a
# module for, and a test that its launcher starts so many of it; with words, of a program that is there, a test more.
function(gantry_mpi_program name source label processes)
  list(JOIN ARGN " " words)
  foreach(mpi mpich openmpi)
    set(program ${name}_${mpi})
    if(NOT TARGET gantry-mpi-${mpi})
      continue()
    endif()
    if(NOT TARGET ${program})
      add_executable(${program} ${source})
      target_link_libraries(${program} PRIVATE gantry_flags gantry PkgConfig::${mpi})
      add_dependencies(${program} gantry-mpi-${mpi})
      # The loader knows where MPI is; CMake would write the folder of its development files into the program.
      file(RELATIVE_PATH libraries ${CMAKE_CURRENT_BINARY_DIR} ${PROJECT_BINARY_DIR}/lib)
      set_target_properties(${program} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/${libraries}")
    endif()
    set(launcher mpirun.${mpi})
    if(mpi STREQUAL openmpi)
      string(APPEND launcher " --oversubscribe --allow-run-as-root")
    endif()
    string(REPLACE " " "_" test "${program} ${words}")
    string(REGEX REPLACE "_$" "" test ${test})
    add_test(NAME ${test} COMMAND sh -c "command -v mpirun.${mpi} || exit 77; ${launcher} -n ${processes} $<TARGET_FILE:${program}> ${words}")
    set_tests_properties(${test} PROPERTIES LABELS ${label} TIMEOUT 120 RESOURCE_LOCK mpi SKIP_RETURN_CODE 77)
    if("${GANTRY_SANITIZE}" MATCHES address) # what MPI and its plug-ins keep to the end
      set_tests_properties(${test} PROPERTIES ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
    endif()
  endforeach()
endfunction()
