/* SPDX-License-Identifier: Apache-2.0 */
/* Several files by one pattern, such as photos/?.jpg with a star in place of the question mark (glob(7)). */
#ifndef GY_BASE_PATHS_H
#define GY_BASE_PATHS_H

#include <gantry/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct gy_paths {
    char **at; /* `count` >= 1, by name (strcmp) */
    size_t count;
} gy_paths;

/* True if it has one of * ? [ and is not the very name of a file: several files may be meant. */
bool gy_is_pattern(const char *path);
/* The files that a pattern means, or the one path that is none, whether there is such a file or not. E_IO: no file has
 * such a name, or a folder cannot be read; `remedy` ends the message. gy_paths_free, but not after an error. */
gantry_status gy_paths_find(gy_paths *paths, const char *pattern, const char *remedy, gantry_error *err);
void gy_paths_free(gy_paths *paths);

#endif
