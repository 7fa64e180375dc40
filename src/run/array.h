/* SPDX-License-Identifier: Apache-2.0 */
/* Whole arrays in files: .npy by that ending, else the plain bytes. */
#ifndef GY_RUN_ARRAY_H
#define GY_RUN_ARRAY_H

#include "graph/graph.h"
#include <gantry/files.h>

/* The buffer's array in C order (gy_free). E_IO: the file cannot be read, is damaged, or holds another dtype, shape or
 * number of bytes. `folder` as in gy_file_open; `npy`: the file is one, whatever its name. */
gantry_status gy_array_read(void **array, const gy_buffer *buffer, const char *path, const char *folder, bool npy,
                            gantry_error *err);
/* JPEG or PNG files that the pattern names (images/images.h), in order of their names. The same errors, and
 * E_UNSUPPORTED without the module of their format. */
gantry_status gy_array_read_images(void **array, const gy_buffer *buffer, const char *pattern, gantry_error *err);
/* One more of files that appear together. */
gantry_status gy_array_add(gantry_files *files, const void *array, const gy_buffer *buffer, const char *path,
                           gantry_error *err);
bool gy_is_npy_name(const char *path);
/* "f32 [3, 4]" */
void gy_array_text(gy_text *to, gantry_dtype dtype, int rank, const int64_t *shape);

#endif
