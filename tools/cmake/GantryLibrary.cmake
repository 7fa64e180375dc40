# SPDX-License-Identifier: Apache-2.0
# libgantry: the objects of every component in one shared library; only the functions of the public headers leave it.
set(gantry_objects)
foreach(component base images kernel maths graph machine import schedule sim scheduler run_data run backend_host backend_sim export kernels)
  list(APPEND gantry_objects $<TARGET_OBJECTS:gantry_${component}>)
endforeach()
set(gantry_libraries PkgConfig::jansson PkgConfig::hwloc Threads::Threads ${CMAKE_DL_LIBS} m)
add_library(gantry SHARED ${gantry_objects})
target_link_libraries(gantry PRIVATE gantry_flags ${gantry_libraries})
target_include_directories(gantry PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set(soversion ${PROJECT_VERSION_MAJOR})
if(soversion EQUAL 0) # until 1.0 a minor version may break programs (docs/abi.md)
  set(soversion 0.${PROJECT_VERSION_MINOR})
endif()
target_link_options(gantry PRIVATE LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/libgantry.map)
set_target_properties(gantry PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${soversion}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/libgantry.map)
gantry_installed(gantry)
add_library(gantry::gantry ALIAS gantry)
# Whoever builds the library builds its OpenBLAS with it: a module of other headers is refused without a word, and plain C, right and slow,
# runs in its place.
if(TARGET gantry-blas)
  add_dependencies(gantry gantry-blas)
endif()
