/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose arrays follow each other, for a buffer that is fed. */
#ifndef GY_RUN_FEED_FILES_H
#define GY_RUN_FEED_FILES_H

#include "graph/graph.h"
#include <gantry/run.h>

typedef struct gy_feed_files gy_feed_files;

/* The files of a pattern, as gantry_run_feed_files describes them. *files stays NULL where it is one array, which is to
 * be bound. The buffer has to live as long. E_IO: files do not fit. */
gantry_status gy_feed_files_open(gy_feed_files **files, const gy_buffer *buffer, const char *pattern, gantry_feed order,
                                 gantry_error *err);
uint64_t gy_feed_files_arrays(const gy_feed_files *files);
/* By how many threads arrays are read at once, `most` at most, and in how many parts each. */
void gy_feed_files_share(const gy_feed_files *files, uint32_t most, uint32_t *parts, uint32_t *threads);
/* The same buffer in another graph. */
void gy_feed_files_move(gy_feed_files *files, const gy_buffer *buffer);
/* Part `part` of `parts` of an array, as gy_make (ahead.h): what gy_feed_files_share said. For several threads at once.
 */
gantry_status gy_feed_files_make(const gy_feed_files *files, uint64_t number, uint32_t part, uint32_t parts, void *to,
                                 gantry_error *err);
void gy_feed_files_free(void *files); /* NULL is fine */

#endif
