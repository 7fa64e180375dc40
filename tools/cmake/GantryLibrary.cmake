# SPDX-License-Identifier: Apache-2.0
# libgantry: the objects of every component in one shared library; only GANTRY_API symbols leave it.
set(objects)
foreach(component base kernel graph machine import schedule sim scheduler run_data run backend_host backend_sim export kernels)
  list(APPEND objects $<TARGET_OBJECTS:gantry_${component}>)
endforeach()
add_library(gantry SHARED ${objects})
target_link_libraries(gantry PRIVATE gantry_flags PkgConfig::jansson PkgConfig::hwloc Threads::Threads ${CMAKE_DL_LIBS} m)
target_include_directories(gantry PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(gantry PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
add_library(gantry::gantry ALIAS gantry)
