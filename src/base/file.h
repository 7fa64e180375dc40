/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in, whole files out. */
#ifndef GY_BASE_FILE_H
#define GY_BASE_FILE_H

#include <gantry/status.h>

/* The file's bytes with a 0 after them; `path` "-" is standard input. Free with gy_free. */
gantry_status gy_file_read(char **text, size_t *length, const char *path, gantry_error *err);
/* Under a temporary name in the same folder, flushed, then renamed: never a half-written file. */
gantry_status gy_file_write(const char *path, const void *data, size_t length, gantry_error *err);
/* folder + name, or name alone if it is absolute or folder is NULL or "". Free with gy_free; NULL: out of memory. */
char *gy_path_join(const char *folder, const char *name);
/* The folder part of a path ("." if there is none). Free with gy_free. */
char *gy_path_folder(const char *path);
/* True if `name` is relative and, resolved as text, stays inside its folder ("a/../b" does, "../b" does not). */
int gy_path_is_inside(const char *name);

#endif
