/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/files.h
 * @brief Files that appear together, complete, or not at all (docs/reliability.md).
 */
#ifndef GANTRY_FILES_H
#define GANTRY_FILES_H

#include <gantry/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gantry_files gantry_files;

/** No files yet. */
GANTRY_MUST_USE gantry_status gantry_files_new(gantry_files **files, gantry_error *err);
/** Writes a file where nobody sees it yet, and flushes it to the disk; what `path` names stays as it is. A pipe or a
 * device is written to at once. */
GANTRY_MUST_USE gantry_status gantry_files_add(gantry_files *files, const char *path, const void *data, size_t length,
                                               gantry_error *err);
/** Gives all files that were added their names, replacing what is there. Nothing is replaced when a file cannot be
 * prepared for it. On success the object is empty again and can be used for others. */
GANTRY_MUST_USE gantry_status gantry_files_commit(gantry_files *files, gantry_error *err);
/** Files that were added and not committed leave nothing behind. NULL is fine. */
GANTRY_API void gantry_files_free(gantry_files *files);

#ifdef __cplusplus
}
#endif

#endif
