/* SPDX-License-Identifier: Apache-2.0 */
/* A growable array of any type: typedef GY_VEC(int) ints; ints v = {0}; if (!gy_vec_push(&v, 7)) nomem. */
#ifndef GY_BASE_VEC_H
#define GY_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#define GY_VEC(...)                                                                                                    \
    struct {                                                                                                           \
        __VA_ARGS__ *at;                                                                                               \
        size_t count, capacity;                                                                                        \
    }

/* `at` is the address of the typed pointer. */
bool gy_vec_grow_(void *at, size_t *capacity, size_t need, size_t item);

/* All three are false when out of memory; the array is then as it was. */
#define gy_vec_reserve(v, n) ((n) <= (v)->capacity || gy_vec_grow_(&(v)->at, &(v)->capacity, (n), sizeof *(v)->at))
#define gy_vec_push(v, item) (gy_vec_reserve((v), (v)->count + 1) && ((v)->at[(v)->count++] = (item), true))
/* Appends n items that the caller fills (uninitialised). */
#define gy_vec_add(v, n) (gy_vec_reserve((v), (v)->count + (n)) && ((v)->count += (n), true))
#define gy_vec_last(v)   (&(v)->at[(v)->count - 1])
/* The entries from the i-th on; NULL of an empty array, as C11 allows no sum of NULL and a number, not even 0. */
#define gy_vec_from(v, i) ((v)->at ? (v)->at + (i) : NULL)
#define gy_vec_free(v)    (gy_free((v)->at), (v)->at = NULL, (v)->count = (v)->capacity = 0)

#include "base/memory.h"

#endif
