# SPDX-License-Identifier: Apache-2.0
# A wheel of the Python package with the library, its modules, graphs and machines in it, for the computer that it is made on:
#   cmake -DSOURCE=tools/python -DLIBRARY=libgantry.so -DMODULES=folder -DFOLDER=where -DPYTHON=python3 -DPROCESSOR=x86_64 -P wheel.cmake
set(tree ${FOLDER}/source)
file(REMOVE_RECURSE ${tree})
file(COPY ${SOURCE}/ DESTINATION ${tree} PATTERN __pycache__ EXCLUDE)
file(REAL_PATH ${LIBRARY} library)
configure_file(${library} ${tree}/gantry/lib/libgantry.so COPYONLY)
file(GLOB modules ${MODULES}/gantry-*.so)
foreach(module IN LISTS modules)
  file(COPY ${module} DESTINATION ${tree}/gantry/lib/gantry)
endforeach()
# Graphs and machines by name, as an installed command has them.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH tools)
cmake_path(GET tools PARENT_PATH root)
file(COPY ${root}/graphs/ DESTINATION ${tree}/gantry/data/graphs FILES_MATCHING PATTERN "*.json"
  PATTERN invalid EXCLUDE PATTERN machines EXCLUDE PATTERN reference EXCLUDE)
file(COPY ${root}/graphs/machines DESTINATION ${tree}/gantry/data)
file(WRITE ${tree}/setup.cfg "[bdist_wheel]\nplat_name = linux_${PROCESSOR}\n")
execute_process(
  COMMAND ${PYTHON} -m pip --disable-pip-version-check wheel -q --no-index --no-build-isolation --no-deps -w ${FOLDER} ${tree}
  COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${tree})
