/* SPDX-License-Identifier: Apache-2.0 */
/* Files that appear together: what gantry/files.h promises, and gy_file_write. */
#ifndef GY_BASE_FILES_H
#define GY_BASE_FILES_H

#include "base/vec.h"
#include <gantry/files.h>
#include <sys/types.h>

typedef struct gy_piece {
    const void *at;
    size_t count;
} gy_piece;

/* A file that is written, and has not taken its place yet. Its descriptor stays open and locked (flock) until then, so
 * that no other process takes its temporary name for that of a dead one. */
typedef struct gy_new_file {
    int fd;
    int old;             /* holds what is replaced, so that its blocks are freed after all renames; -1: nothing is */
    char *path, *target; /* as messages name it; what is replaced, with links followed */
    char *temporary;     /* NULL: it has no name at all (O_TMPFILE) */
} gy_new_file;

struct gantry_files {
    GY_VEC(gy_new_file) list;
};

/* gantry_files_add of a head and a body. */
gantry_status gy_files_add(gantry_files *files, const char *path, const gy_piece pieces[2], gantry_error *err);
/* Commits if `status` says that all were added; in any case nothing is left to free. */
gantry_status gy_files_finish(gantry_files *files, gantry_status status, gantry_error *err);

#endif
