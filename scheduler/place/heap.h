/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of small numbers (tasks, mostly). The order must be total: what comes out then depends on nothing else.
 */
#ifndef GY_SCHEDULER_PLACE_HEAP_H
#define GY_SCHEDULER_PLACE_HEAP_H

#include "base/vec.h"
#include <stdint.h>

typedef bool (*gy_before)(const void *context, uint32_t a, uint32_t b);

typedef struct gy_heap {
    GY_VEC(uint32_t) at; /* at[0] comes first */
    gy_before before;
    const void *context; /* borrowed */
} gy_heap;

bool gy_heap_push(gy_heap *heap, uint32_t item); /* false: out of memory */
uint32_t gy_heap_pop(gy_heap *heap);             /* not of an empty heap */
void gy_heap_free(gy_heap *heap);

#endif
