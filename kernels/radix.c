/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/radix.h"

#include <stdbool.h>
#include <string.h>

enum { MOST_BYTES = 8 };

/* Negative floats have their magnitude reversed; kernels/radix.cuh does the same. */
uint64_t gy_radix_number(uint64_t bits, int bytes, gy_radix_order order)
{
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1), magnitude = bits & (sign - 1);
    if (order.infinity)
        bits = magnitude > order.infinity ? ~UINT64_C(0) : magnitude == 0 ? sign : bits & sign ? ~bits : bits | sign;
    else if (order.is_signed)
        bits ^= sign;
    return (order.descending ? ~bits : bits) & ((sign << 1) - 1);
}

static inline __attribute__((always_inline)) uint64_t get(const void *data, int64_t i, int bytes)
{
    return bytes == 1   ? ((const uint8_t *)data)[i]
           : bytes == 2 ? ((const uint16_t *)data)[i]
           : bytes == 4 ? ((const uint32_t *)data)[i]
                        : ((const uint64_t *)data)[i];
}

static inline __attribute__((always_inline)) void put(void *data, int64_t i, int bytes, uint64_t x)
{
    if (bytes == 1)
        ((uint8_t *)data)[i] = (uint8_t)x;
    else if (bytes == 2)
        ((uint16_t *)data)[i] = (uint16_t)x;
    else if (bytes == 4)
        ((uint32_t *)data)[i] = (uint32_t)x;
    else
        ((uint64_t *)data)[i] = x;
}

uint64_t gy_radix_bits(const void *data, int64_t i, int bytes)
{
    return get(data, i, bytes);
}

void gy_radix_copy(void *to, int64_t i, const void *from, int64_t j, int bytes)
{
    put(to, i, bytes, get(from, j, bytes));
}

/* One digit of all keys: `start` is where the first of each goes. */
typedef struct pass {
    const void *keys, *values;
    void *keys_to, *values_to;
    int64_t n, *start;
    int digit;
    gy_radix_order order;
} pass;

static inline __attribute__((always_inline)) void scatter(const pass *p, int bytes, int value_bytes)
{
    for (int64_t i = 0; i < p->n; i++) {
        uint64_t key = get(p->keys, i, bytes);
        int64_t to = p->start[gy_radix_number(key, bytes, p->order) >> (8 * p->digit) & 255]++;
        put(p->keys_to, to, bytes, key);
        if (value_bytes)
            put(p->values_to, to, value_bytes, p->values ? get(p->values, i, value_bytes) : (uint64_t)i);
    }
}

/* The widths are constants in each loop. */
static void scatter_of(const pass *p, int bytes, int value_bytes)
{
#define WAY(b, v)                                                                                                      \
    if (bytes == (b) && value_bytes == (v))                                                                            \
        scatter(p, b, v);
#define WAYS(b) WAY(b, 0) WAY(b, 4) WAY(b, 8)
    WAYS(1) WAYS(2) WAYS(4) WAYS(8)
#undef WAYS
#undef WAY
}

static void count_digits(const gy_radix *r, int bytes, int64_t count[MOST_BYTES][GY_RADIX_DIGITS])
{
    gy_radix_order order = gy_radix_order_of(r->dtype, r->descending);
    for (int64_t i = 0; i < r->n; i++) {
        uint64_t number = gy_radix_number(get(r->keys, i, bytes), bytes, order);
        for (int b = 0; b < bytes; b++)
            count[b][number >> (8 * b) & 255]++;
    }
}

/* Turns counts into starts; true if all keys have the same digit. */
static bool begin_digits(int64_t *count, int64_t n)
{
    int64_t before = 0;
    bool same = false;
    for (int d = 0; d < GY_RADIX_DIGITS; d++) {
        int64_t own = count[d];
        same = same || own == n;
        count[d] = before;
        before += own;
    }
    return same;
}

/* Results go to the place that they do not come from; at the end they may have to be moved once more. */
void gy_radix_sort(const gy_radix *r)
{
    int64_t count[MOST_BYTES][GY_RADIX_DIGITS] = { { 0 } };
    int bytes = (int)gantry_dtype_size(r->dtype);
    pass p = { r->keys, r->values, r->sorted, r->moved, r->n, NULL, 0, gy_radix_order_of(r->dtype, r->descending) };
    count_digits(r, bytes, count);
    for (int b = 0; b < bytes; b++) {
        p.start = count[b];
        p.digit = b;
        bool last = b == bytes - 1 && p.keys == r->keys; /* or values 0, 1, ... would not be written down */
        if (begin_digits(count[b], r->n) && !last)
            continue;
        scatter_of(&p, bytes, r->value_bytes);
        p.keys = p.keys_to;
        p.values = p.values_to;
        p.keys_to = p.keys == r->sorted ? r->spare_keys : r->sorted;
        p.values_to = p.values == r->moved ? r->spare_values : r->moved;
    }
    if (p.keys == r->sorted)
        return;
    memcpy(r->sorted, p.keys, (size_t)(r->n * bytes));
    if (r->value_bytes)
        memcpy(r->moved, p.values, (size_t)(r->n * r->value_bytes));
}

gantry_status gy_radix_check(const gantry_launch *l, int keys, char *text, size_t size)
{
    if (gy_arg_size(&l->arg[keys]) <= UINT32_MAX)
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" has %lld elements; at most %u can be sorted: split the buffer",
                         l->arg[keys].name, (long long)gy_arg_size(&l->arg[keys]), UINT32_MAX);
}
