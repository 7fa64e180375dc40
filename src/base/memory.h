/* SPDX-License-Identifier: Apache-2.0 */
/* All heap memory of the library comes from here (a test counts on it: faults are injected behind these). */
#ifndef GY_BASE_MEMORY_H
#define GY_BASE_MEMORY_H

#include <stddef.h>

void *gy_alloc(size_t bytes);                            /* NULL when out of memory; 0 bytes gives a unique pointer */
void *gy_calloc(size_t count, size_t bytes);             /* zeroed; NULL on overflow too */
void *gy_realloc(void *old, size_t count, size_t bytes); /* old stays valid on failure */
/* For the contents of arrays: from 64 KiB on, on pages that no other array shares, as devices lock whole pages; large
 * ones on huge pages if the system gives them, which makes them quick to lock and to copy. */
void *gy_alloc_array(size_t bytes);
void *gy_calloc_array(size_t bytes); /* zeroed */
void gy_free(void *memory);
char *gy_strdup(const char *text);
char *gy_strndup(const char *text, size_t length);

#endif
