/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The files that the text of a CUDA source depends on. NVRTC neither tells which files it has read nor what a source is
 * after preprocessing, so the `#include` lines are looked for here: wherever they are, also where the preprocessor
 * would pass them by, so that too much is found rather than too little.
 */
#ifndef GY_CUDA_USERCODE_INCLUDES_H
#define GY_CUDA_USERCODE_INCLUDES_H

#include <gantry/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Adds to *hash `text`, the contents of the file `path`, and every file that its includes can mean, and theirs: each
 * one of that name beside the file that asks for it or in one of the folders. Names that are in none of them count as
 * names (the toolkit's headers). *known becomes false where a name is made by a macro, or `__has_include` asks: then it
 * cannot be known if a file has changed. E_NOMEM only. */
gantry_status gy_includes_hash(uint64_t *hash, bool *known, const char *path, const char *text, size_t length,
                               const char *const *folders, size_t count, gantry_error *err);

#endif
