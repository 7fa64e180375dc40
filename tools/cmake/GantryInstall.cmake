# SPDX-License-Identifier: Apache-2.0
# What is installed, by component: library, dev, command, modules, mpi, cuda, python, docs. GantryPackages makes Debian packages of them.
include(CMakePackageConfigHelpers)
set(GANTRY_MODULE_DIR ${CMAKE_INSTALL_LIBDIR}/gantry)
set(GANTRY_DATA_DIR ${CMAKE_INSTALL_DATADIR}/gantry)
install(TARGETS gantry EXPORT gantry-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
foreach(module blas fftw jpeg png)
  if(TARGET gantry-${module})
    install(TARGETS gantry-${module} LIBRARY DESTINATION ${GANTRY_MODULE_DIR} COMPONENT modules)
  endif()
endforeach()
foreach(module mpi-mpich mpi-openmpi)
  if(TARGET gantry-${module})
    install(TARGETS gantry-${module} LIBRARY DESTINATION ${GANTRY_MODULE_DIR} COMPONENT mpi)
  endif()
endforeach()
if(TARGET gantry-cuda)
  install(TARGETS gantry-cuda LIBRARY DESTINATION ${GANTRY_MODULE_DIR} COMPONENT cuda)
endif()

# The command, with the graphs and machines that it knows by name.
install(TARGETS gantry-command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(DIRECTORY graphs/ DESTINATION ${GANTRY_DATA_DIR}/graphs COMPONENT command FILES_MATCHING PATTERN "*.json"
  PATTERN invalid EXCLUDE PATTERN machines EXCLUDE PATTERN reference EXCLUDE)
install(DIRECTORY graphs/machines DESTINATION ${GANTRY_DATA_DIR} COMPONENT command)
install(FILES docs/graph.schema.json DESTINATION ${GANTRY_DATA_DIR} COMPONENT command)
if(TARGET gantry-manual)
  install(FILES ${PROJECT_BINARY_DIR}/gantry.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
  install(FILES ${PROJECT_BINARY_DIR}/gantry.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME gantry
    COMPONENT command)
endif()

# For programs: headers, find_package(gantry) or find_package(Gantry), pkg-config.
install(DIRECTORY include/gantry DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT gantry-targets NAMESPACE gantry:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gantry COMPONENT dev)
file(WRITE ${PROJECT_BINARY_DIR}/gantry-config.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/gantry-targets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gantry-config-version.cmake COMPATIBILITY SameMinorVersion)
foreach(file config config-version) # by each of the two names
  string(REPLACE "config-version" "ConfigVersion" other ${file})
  string(REPLACE "config" "Config" other ${other})
  install(FILES ${PROJECT_BINARY_DIR}/gantry-${file}.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gantry COMPONENT dev)
  install(FILES ${PROJECT_BINARY_DIR}/gantry-${file}.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gantry RENAME Gantry${other}.cmake
    COMPONENT dev)
endforeach()
# Relative to the file itself, so that `cmake --install --prefix` and moved trees work.
file(RELATIVE_PATH GANTRY_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(tools/cmake/gantry.pc.in ${PROJECT_BINARY_DIR}/gantry.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gantry.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# `cmake --install BUILD --component python` alone installs the Python package: others have pip and the wheel for that.
set(GANTRY_PYTHON_DIR lib/python3/dist-packages CACHE STRING "Where the component python goes")
install(DIRECTORY tools/python/gantry DESTINATION ${GANTRY_PYTHON_DIR} COMPONENT python EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT docs)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT docs PATTERN CMakeLists.txt EXCLUDE PATTERN graph.schema.json EXCLUDE)
