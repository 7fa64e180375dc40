/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in, whole files out. */
#ifndef GY_BASE_FILE_H
#define GY_BASE_FILE_H

#include <gantry/status.h>
#include <stdbool.h>
#include <stdint.h>

/* The file's bytes with a 0 after them; `path` "-" is standard input. For files that the user named: a pipe will do, as
 * long as it ends. Free with gy_free. */
gantry_status gy_file_read(char **text, size_t *length, const char *path, gantry_error *err);

/*
 * A file that somebody's file may have named. `folder` is NULL where the user named it; else `path` is that folder
 * joined with a name, which must lead to a regular file in it (base/beneath.h).
 */
typedef struct gy_file {
    int fd;
    const char *path; /* as messages show it */
    bool regular;     /* then `size` is known before anything is read */
    uint64_t size;
} gy_file;

gantry_status gy_file_open(gy_file *file, const char *path, const char *folder, gantry_error *err);
/* The next bytes; fewer than `bytes` only at the end of the file. */
gantry_status gy_file_get(const gy_file *file, void *to, size_t bytes, size_t *got, gantry_error *err);
void gy_file_close(const gy_file *file);
/* Whole, with a 0 after it, as gy_file_read; a file of more than `most` bytes is refused before it is read. */
gantry_status gy_file_read_in(char **text, size_t *length, const char *path, const char *folder, uint64_t most,
                              gantry_error *err);
/* Opens and closes it: what is wrong with a file that others will read. */
gantry_status gy_file_look(const char *path, const char *folder, gantry_error *err);
/* True if it can be read a second time: opening a FIFO again would wait for a writer. */
bool gy_file_is_regular(const char *path);

/* Written where nobody sees it, flushed, then renamed (base/files.h): never a half-written file. */
gantry_status gy_file_write(const char *path, const void *data, size_t length, gantry_error *err);
/* All bytes, however often a write is interrupted or short; false with errno. */
bool gy_write_all(int fd, const void *data, size_t length);
/* folder + name, or name alone if it is absolute or folder is NULL or "". Free with gy_free; NULL: out of memory. */
char *gy_path_join(const char *folder, const char *name);
/* The folder part of a path ("." if there is none). Free with gy_free. */
char *gy_path_folder(const char *path);
/* True if `name` is relative and, resolved as text, stays inside its folder ("a/../b" does, "../b" does not). */
int gy_path_is_inside(const char *name);

#endif
