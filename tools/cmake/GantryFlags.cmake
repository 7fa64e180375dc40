# SPDX-License-Identifier: Apache-2.0
# gantry_flags: what every source of the project is compiled with. The property GANTRY_VISIBLE of a target leaves its symbols visible.
add_library(gantry_flags INTERFACE)
target_compile_options(gantry_flags INTERFACE
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:GANTRY_VISIBLE>>>:-fvisibility=hidden> -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
  -Wmissing-prototypes -Wold-style-definition -Wcast-qual -Wpointer-arith -Wwrite-strings -Wundef -Wvla)
target_compile_definitions(gantry_flags INTERFACE _GNU_SOURCE)
if(GANTRY_WERROR)
  target_compile_options(gantry_flags INTERFACE -Werror)
endif()
if(GANTRY_SANITIZE)
  target_compile_options(gantry_flags INTERFACE -fsanitize=${GANTRY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(gantry_flags INTERFACE -fsanitize=${GANTRY_SANITIZE})
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# A program is not linked again because a shared library of the build tree was: it finds the new one when it starts.
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
