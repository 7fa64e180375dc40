/* SPDX-License-Identifier: Apache-2.0 */
/* Whole arrays in files: .npy by that ending, else the plain bytes. */
#ifndef GY_RUN_ARRAY_H
#define GY_RUN_ARRAY_H

#include "base/file.h"
#include "graph/graph.h"
#include "images/images.h"
#include <gantry/files.h>

/* The buffer's array in C order (gy_free). E_IO: the file cannot be read, is damaged, or holds another dtype, shape or
 * number of bytes. `folder` as in gy_file_open; `npy`: the file is one, whatever its name. */
gantry_status gy_array_read(void **array, const gy_buffer *buffer, const char *path, const char *folder, bool npy,
                            gantry_error *err);
/* Where the arrays of a file lie in it, one behind the other. */
typedef struct gy_array_place {
    uint64_t offset, arrays;
    bool stacked; /* the file has one more axis in front, of `arrays` entries; else it has one array */
} gy_array_place;
/* Looks into an open file that holds the buffer's array, or with `stacks` several of them. What is read from a file
 * that is not regular next is the first array. The same errors; E_IO for a stack of none. */
gantry_status gy_array_look(gy_array_place *place, const gy_file *file, const gy_buffer *buffer, bool npy, bool stacks,
                            gantry_error *err);
/* The array that follows in the open file, all that there is of one that is not regular. */
gantry_status gy_array_get(void *to, const gy_file *file, const gy_buffer *buffer, gantry_error *err);
/* Bytes [first, last) of array `index` of a regular file; `to` is where the array begins. */
gantry_status gy_array_get_bytes(void *to, const gy_file *file, const gy_array_place *place, uint64_t index,
                                 uint64_t first, uint64_t last, const gy_buffer *buffer, gantry_error *err);
/* JPEG or PNG files that the pattern names (images/images.h), in order of their names. The same errors, and
 * E_UNSUPPORTED without the module of their format. */
gantry_status gy_array_read_images(void **array, const gy_buffer *buffer, const char *pattern, gantry_error *err);
/* An array of so many images: u8 [image, height, width, channel], with 1 or 3 channels; of a single one the first axis
 * may be left out. */
bool gy_array_takes_images(const gy_buffer *buffer, uint64_t images);
/* E_IO: the buffer is none of as many. `pattern` is what messages call them. */
gantry_status gy_array_check_images(const gy_images *images, const gy_buffer *buffer, const char *pattern,
                                    gantry_error *err);
/* The array of images that it takes. */
gantry_status gy_array_fill_images(void *to, const gy_images *images, const gy_buffer *buffer, gantry_error *err);
/* One more of files that appear together. */
gantry_status gy_array_add(gantry_files *files, const void *array, const gy_buffer *buffer, const char *path,
                           gantry_error *err);
bool gy_is_npy_name(const char *path);
/* "f32 [3, 4]" */
void gy_array_text(gy_text *to, gantry_dtype dtype, int rank, const int64_t *shape);

#endif
