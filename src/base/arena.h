/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator: many small things with one life. Nothing is freed on its own. */
#ifndef GY_BASE_ARENA_H
#define GY_BASE_ARENA_H

#include <stddef.h>

typedef struct gy_arena_block gy_arena_block;
typedef struct gy_arena {
    gy_arena_block *head;
    size_t used, block_bytes;
} gy_arena; /* zero-initialised is ready */

void *gy_arena_alloc(gy_arena *arena, size_t bytes); /* aligned to 16, uninitialised; NULL when out of memory */
void *gy_arena_calloc(gy_arena *arena, size_t count, size_t bytes);
char *gy_arena_strdup(gy_arena *arena, const char *text);
char *gy_arena_strndup(gy_arena *arena, const char *text, size_t length);
char *gy_arena_printf(gy_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gy_arena_free(gy_arena *arena); /* everything; the arena is ready again */

#endif
