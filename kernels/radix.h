/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable sorting by digits of 8 bits, the lowest first: what `sort`, `argsort` and `sort_pairs` have in common. Keys
 * are compared as their dtype says; of floats both zeros are equal and NaN comes behind all others, as in NumPy.
 * Descending is the reverse order, so NaN comes first; equal keys keep the order they came in.
 *
 * On GPUs keys are cut into tiles, and these into chunks of neighbouring tiles, a block for each (kernels/radix.cuh).
 * The result does not depend on where keys are cut.
 */
#ifndef GY_KERNELS_RADIX_H
#define GY_KERNELS_RADIX_H

#include "kernels/manifest.h"

enum { GY_RADIX_DIGITS = 256, GY_RADIX_LEAST_TILE = 4608, GY_RADIX_CHUNKS = 4096 };

/* Scratch as an expression of a manifest: whole units of 256 bytes for a copy of a region; on GPUs a count for each
 * digit of each chunk, and of all chunks. */
#define GY_RADIX_COPY(region)   "256 * ceil_div(" region ".bytes, 256)"
#define GY_RADIX_COUNTS(region) "1024 * (min(4096, ceil_div(" region ".size, 4608)) + 1)"

/* How bits of a dtype are compared. */
typedef struct gy_radix_order {
    uint64_t infinity; /* floats: bits of it; integers: 0 */
    int32_t is_signed; /* integers */
    int32_t descending;
} gy_radix_order;

typedef struct gy_radix {
    gantry_dtype dtype;  /* of the keys */
    int32_t value_bytes; /* 4, 8, or 0: there are none */
    int32_t descending;
    int64_t n;
    const void *keys, *values;       /* values NULL: 0, 1, 2, ... */
    void *sorted, *moved;            /* results: keys and values */
    void *spare_keys, *spare_values; /* as large */
    void *counts;                    /* a row for each chunk */
} gy_radix;

/* The number by which the element is sorted. */
uint64_t gy_radix_number(uint64_t bits, int bytes, gy_radix_order order);
/* Element i as it is. */
uint64_t gy_radix_bits(const void *data, int64_t i, int bytes);
/* Element i of `to` becomes element j of `from`. */
void gy_radix_copy(void *to, int64_t i, const void *from, int64_t j, int bytes);

/* On the host, by the threads of the launch. */
void gy_radix_sort(const gantry_launch *l, const gy_radix *r);

/* check(): positions are counted in 32 bits. */
gantry_status gy_radix_check(const gantry_launch *l, int keys, char *text, size_t size);

static inline gy_radix_order gy_radix_order_of(gantry_dtype dtype, int32_t descending)
{
    gy_radix_order order = { .descending = descending };
    order.infinity = dtype == GANTRY_F16    ? 0x7c00
                     : dtype == GANTRY_BF16 ? 0x7f80
                     : dtype == GANTRY_F32  ? 0x7f800000
                     : dtype == GANTRY_F64  ? UINT64_C(0x7ff0000000000000)
                                            : 0;
    order.is_signed = dtype == GANTRY_I8 || dtype == GANTRY_I32 || dtype == GANTRY_I64;
    return order;
}

/* The next piece of scratch. */
static inline void *gy_radix_take(char **scratch, int64_t bytes)
{
    void *piece = *scratch;
    *scratch += (bytes + 255) / 256 * 256;
    return piece;
}

#endif
