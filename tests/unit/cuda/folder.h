/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with files of a test, a cache in it, and whether NVRTC is here at all. */
#ifndef TESTS_UNIT_CUDA_FOLDER_H
#define TESTS_UNIT_CUDA_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* The folder of the test that runs (each has a process of its own), and $XDG_CACHE_HOME in it. */
extern char folder[64];
void folder_make(void);
void folder_remove(void);
void folder_write(const char *name, const char *text);
const char *folder_path(const char *name); /* valid until the fourth call after it */
/* Files in the cache that end so; the path of the one that was found last, or "". */
int folder_cached(const char *ending, char *path, size_t size);

/* False where libnvrtc cannot be opened. Looked up in a process of its own, so that this one has not loaded it. */
bool have_nvrtc(void);
enum { SKIPPED = 77 };

#endif
