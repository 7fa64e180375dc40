/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE      ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)
#define OWN_PAGES ((size_t)64 << 10)

void *gy_alloc(size_t bytes)
{
    return malloc(bytes ? bytes : 1);
}

void *gy_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    return calloc(1, total ? total : 1);
}

void *gy_realloc(void *old, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    /* realloc(old, 0) frees on some systems: the caller would free twice. */
    return realloc(old, total ? total : 1);
}

void *gy_alloc_array(size_t bytes)
{
    if (bytes < OWN_PAGES)
        return gy_alloc(bytes);
    if (bytes > SIZE_MAX - HUGE_PAGE)
        return NULL;
    size_t page = bytes < 2 * HUGE_PAGE ? PAGE : HUGE_PAGE;
    size_t whole = (bytes + page - 1) / page * page;
    void *memory = aligned_alloc(page, whole);
    if (memory && page == HUGE_PAGE)
        madvise(memory, whole, MADV_HUGEPAGE); /* advice: without it all is as slow as ever */
    return memory;
}

void *gy_calloc_array(size_t bytes)
{
    void *memory = gy_alloc_array(bytes);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void gy_free(void *memory)
{
    free(memory);
}

char *gy_strdup(const char *text)
{
    return gy_strndup(text, strlen(text));
}

char *gy_strndup(const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = gy_alloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}
