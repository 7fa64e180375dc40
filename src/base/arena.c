/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/memory.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 16, FIRST_BLOCK = 4096, LAST_BLOCK = 1 << 20 };

struct gy_arena_block {
    gy_arena_block *next;
    size_t bytes; /* of data */
    _Alignas(ALIGN) unsigned char data[];
};

static gy_arena_block *new_block(size_t bytes)
{
    if (bytes > SIZE_MAX - sizeof(gy_arena_block))
        return NULL;
    gy_arena_block *block = gy_alloc(sizeof *block + bytes);
    if (block) {
        block->next = NULL;
        block->bytes = bytes;
    }
    return block;
}

/* A block of its own, put behind the head so that the room left in the head is not lost. */
static void *alloc_large(gy_arena *arena, size_t bytes)
{
    gy_arena_block *block = new_block(bytes);
    if (!block)
        return NULL;
    block->next = arena->head->next;
    arena->head->next = block;
    return block->data;
}

static void *alloc_in_new_head(gy_arena *arena, size_t bytes)
{
    /* Blocks double: a small arena stays small, a large one asks the heap rarely. */
    size_t size = arena->block_bytes ? arena->block_bytes : FIRST_BLOCK;
    gy_arena_block *block = new_block(size > bytes ? size : bytes);
    if (!block)
        return NULL;
    block->next = arena->head;
    arena->head = block;
    arena->used = bytes;
    arena->block_bytes = size < LAST_BLOCK ? size * 2 : size;
    return block->data;
}

static void *alloc_aligned(gy_arena *arena, size_t bytes, size_t align)
{
    if (!arena->head)
        return alloc_in_new_head(arena, bytes);
    size_t start = (arena->used + align - 1) & ~(align - 1);
    if (start <= arena->head->bytes && bytes <= arena->head->bytes - start) {
        arena->used = start + bytes;
        return arena->head->data + start;
    }
    return bytes > arena->block_bytes / 4 ? alloc_large(arena, bytes) : alloc_in_new_head(arena, bytes);
}

void *gy_arena_alloc(gy_arena *arena, size_t bytes)
{
    return alloc_aligned(arena, bytes ? bytes : 1, ALIGN);
}

void *gy_arena_calloc(gy_arena *arena, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    void *memory = gy_arena_alloc(arena, total);
    return memory ? memset(memory, 0, total) : NULL;
}

char *gy_arena_strdup(gy_arena *arena, const char *text)
{
    return gy_arena_strndup(arena, text, strlen(text));
}

char *gy_arena_strndup(gy_arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? alloc_aligned(arena, length + 1, 1) : NULL;
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *gy_arena_printf(gy_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length >= 0 ? alloc_aligned(arena, (size_t)length + 1, 1) : NULL;
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

void gy_arena_free(gy_arena *arena)
{
    while (arena->head) {
        gy_arena_block *next = arena->head->next;
        gy_free(arena->head);
        arena->head = next;
    }
    arena->used = arena->block_bytes = 0;
}
