/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The library's heap with a switch: after a given number of allocations there is no memory left. Include this in one
 * file of a test program: it brings in src/base/memory.c over its own malloc, so that the linker does not take that of
 * the (static) library.
 */
#ifndef TEST_UNIT_BASE_FAULT_MEMORY_H
#define TEST_UNIT_BASE_FAULT_MEMORY_H

#include "suite.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static long fault_countdown = -1; /* allocations that still succeed; below 0: all */
static bool fault_happened;
static long fault_alive; /* pieces of memory that were not freed */

/* All later ones fail, too: a machine that has no memory does not recover for the second try. */
static bool fault_refuse(void)
{
    if (fault_countdown != 0) {
        fault_countdown -= fault_countdown > 0;
        return false;
    }
    fault_happened = true;
    return true;
}

static void *fault_malloc(size_t bytes)
{
    void *memory = fault_refuse() ? NULL : malloc(bytes);
    fault_alive += memory != NULL;
    return memory;
}

static void *fault_calloc(size_t count, size_t bytes)
{
    void *memory = fault_refuse() ? NULL : calloc(count, bytes);
    fault_alive += memory != NULL;
    return memory;
}

static void *fault_aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = fault_refuse() ? NULL : aligned_alloc(alignment, bytes);
    fault_alive += memory != NULL;
    return memory;
}

static void *fault_realloc(void *old, size_t bytes)
{
    bool fresh = !old;
    void *memory = fault_refuse() ? NULL : realloc(old, bytes);
    fault_alive += memory && fresh;
    return memory;
}

static void fault_free(void *memory)
{
    fault_alive -= memory != NULL;
    free(memory);
}

#define malloc(bytes)                   fault_malloc(bytes)
#define calloc(count, bytes)            fault_calloc(count, bytes)
#define aligned_alloc(alignment, bytes) fault_aligned_alloc(alignment, bytes)
#define realloc(old, bytes)             fault_realloc(old, bytes)
#define free(memory)                    fault_free(memory)
#include "base/memory.c"
#undef malloc
#undef calloc
#undef aligned_alloc
#undef realloc
#undef free

/* Runs `work` with ever more memory. It returns whether it got through, and must tell the truth. */
static void assert_survives(bool (*work)(void), long at_least)
{
    for (long n = 0;; n++) {
        ck_assert_int_lt(n, 1000000);
        long before = fault_alive;
        fault_happened = false;
        fault_countdown = n;
        bool fine = work();
        fault_countdown = -1;
        ck_assert_msg(fine == !fault_happened, "allocation %ld: %s", n,
                      fine ? "its failure was not noticed" : "failed without a reason");
        ck_assert_msg(fault_alive == before, "allocation %ld: %ld pieces were not freed", n, fault_alive - before);
        if (fine) {
            ck_assert_int_ge(n, at_least);
            return;
        }
    }
}

#endif
