# SPDX-License-Identifier: Apache-2.0
# Guards of the compiler and the linker, as part of gantry_flags, and where built objects look for libraries (docs/security.md).
# tests/unit/loading reads them in the objects. GANTRY_GUARDS lists those that this build has and another may lack.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(GANTRY_GUARDS)
target_link_options(gantry_flags INTERFACE LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
check_c_compiler_flag(-fstack-protector-strong GANTRY_HAS_STACK_GUARD)
if(GANTRY_HAS_STACK_GUARD)
  target_compile_options(gantry_flags INTERFACE -fstack-protector-strong)
  list(APPEND GANTRY_GUARDS stack)
endif()
check_c_compiler_flag(-fcf-protection=full GANTRY_HAS_CET) # of x86 alone
if(GANTRY_HAS_CET)
  target_compile_options(gantry_flags INTERFACE -fcf-protection=full)
  list(APPEND GANTRY_GUARDS cet)
endif()
# The checked functions of libc want a compiler that optimises, and get in the way of the sanitizers' own. A compiler or
# a packager that asks for them already may ask for more, and is left alone.
if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$" AND NOT GANTRY_SANITIZE)
  set(CMAKE_REQUIRED_FLAGS -O2)
  check_c_source_compiles("
    #if !defined _FORTIFY_SOURCE || _FORTIFY_SOURCE < 2
    #error not asked for
    #endif
    int main(void) { return 0; }" GANTRY_HAS_FORTIFY)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT GANTRY_HAS_FORTIFY)
    target_compile_options(gantry_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
  list(APPEND GANTRY_GUARDS fortify)
endif()

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
  list(APPEND folders ${CMAKE_INSTALL_RPATH})
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${folders}")
endfunction()
