# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=FOLDER -DHEADERS=a.h,b.h -DTO=FILE -P write_build_id.cmake: the same names and contents give the same id, wherever the
# folder is and whenever it is built. A file that would not change is left alone.
string(REPLACE "," ";" headers "${HEADERS}")
set(all "")
foreach(header IN LISTS headers)
  file(SHA256 ${ROOT}/${header} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 16 id)
set(text "/* Written by tools/cmake/write_build_id.cmake. */\n#define GY_BUILD_ID \"${id}\"\n")
set(old "")
if(EXISTS ${TO})
  file(READ ${TO} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${TO} "${text}")
endif()
