# SPDX-License-Identifier: Apache-2.0
# Where built objects look for libraries. tests/unit/loading reads it in the objects.
# Objects of the build tree find each other relative to where they are. CMake would make room for the paths of the
# installation by colons at the end of those of the build tree, and the loader reads an empty entry as the current
# folder. So nothing is edited when it is installed: what is installed is linked with the paths that it will have, and
# CMake refuses to configure where that is forgotten.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_NO_BUILTIN_CHRPATH ON)

# gantry_installed(TARGET [FOLDER...]): it is installed, and looks for libraries in these folders, relative to its own; then in those
# of CMAKE_INSTALL_RPATH, by which whoever builds it names folders that the system does not search.
function(gantry_installed target)
  list(TRANSFORM ARGN PREPEND "$ORIGIN/" OUTPUT_VARIABLE folders)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${folders};${CMAKE_INSTALL_RPATH}")
endfunction()
