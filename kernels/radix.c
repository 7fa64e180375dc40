/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/radix.h"

#include <stdbool.h>
#include <stddef.h>
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

/* One digit of all keys, which threads take chunk by chunk. Row c of `count` is how many keys of chunk c have each
 * digit, then where the first of them goes. */
typedef struct pass {
    const void *keys, *values;
    void *keys_to, *values_to;
    int64_t n, chunk;
    uint32_t (*count)[GY_RADIX_DIGITS];
    int digit, bytes, value_bytes;
    gy_radix_order order;
} pass;

static int64_t end_of(const pass *p, int64_t chunk)
{
    return (chunk + 1) * p->chunk < p->n ? (chunk + 1) * p->chunk : p->n;
}

static inline __attribute__((always_inline)) unsigned digit_of(const pass *p, uint64_t key, int bytes)
{
    return (unsigned)(gy_radix_number(key, bytes, p->order) >> (8 * p->digit) & 255);
}

static inline __attribute__((always_inline)) void count(const pass *p, int64_t c, int bytes)
{
    memset(p->count[c], 0, sizeof p->count[c]);
    for (int64_t i = c * p->chunk; i < end_of(p, c); i++)
        p->count[c][digit_of(p, get(p->keys, i, bytes), bytes)]++;
}

static inline __attribute__((always_inline)) void scatter(const pass *p, int64_t c, int bytes, int value_bytes)
{
    for (int64_t i = c * p->chunk; i < end_of(p, c); i++) {
        uint64_t key = get(p->keys, i, bytes);
        int64_t to = p->count[c][digit_of(p, key, bytes)]++;
        put(p->keys_to, to, bytes, key);
        if (value_bytes)
            put(p->values_to, to, value_bytes, p->values ? get(p->values, i, value_bytes) : (uint64_t)i);
    }
}

/* The widths are constants in each loop. */
static gantry_status count_chunks(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const pass *p = data;
    (void)l;
    for (int64_t c = first; c < last; c++) {
#define WAY(b)                                                                                                         \
    if (p->bytes == (b))                                                                                               \
        count(p, c, b);
        WAY(1) WAY(2) WAY(4) WAY(8)
#undef WAY
    }
    return GANTRY_OK;
}

static gantry_status scatter_chunks(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const pass *p = data;
    (void)l;
    for (int64_t c = first; c < last; c++) {
#define WAY(b, v)                                                                                                      \
    if (p->bytes == (b) && p->value_bytes == (v))                                                                      \
        scatter(p, c, b, v);
#define WAYS(b) WAY(b, 0) WAY(b, 4) WAY(b, 8)
        WAYS(1) WAYS(2) WAYS(4) WAYS(8)
#undef WAYS
#undef WAY
    }
    return GANTRY_OK;
}

/* Turns counts into starts; true if all keys have the same digit. */
static bool begin_digits(const pass *p, int64_t chunks)
{
    int64_t before = 0;
    bool same = false;
    for (int d = 0; d < GY_RADIX_DIGITS; d++) {
        int64_t start = before;
        for (int64_t c = 0; c < chunks; c++) {
            uint32_t own = p->count[c][d];
            p->count[c][d] = (uint32_t)before;
            before += own;
        }
        same = same || before - start == p->n;
    }
    return same;
}

/* Without other threads there is one chunk, and all digits are counted while keys are read once. */
static inline __attribute__((always_inline)) void count_all(const pass *p, int bytes)
{
    for (int64_t i = 0; i < p->n; i++) {
        uint64_t number = gy_radix_number(get(p->keys, i, bytes), bytes, p->order);
        for (int b = 0; b < bytes; b++)
            p->count[b][number >> (8 * b) & 255]++;
    }
}

static void count_alone(const pass *p)
{
#define WAY(b)                                                                                                         \
    if (p->bytes == (b))                                                                                               \
        count_all(p, b);
    WAY(1) WAY(2) WAY(4) WAY(8)
#undef WAY
}

/* Chunks are as few as threads can share: each has a row of counts, which lie in the scratch that GPUs have more of. */
static int64_t chunk_of(int64_t n)
{
    enum { CHUNKS = 256 };
    int64_t share = (n + CHUNKS - 1) / CHUNKS;
    return share > GY_GRAIN ? share : GY_GRAIN;
}

/* Results go to the place that they do not come from; at the end they may have to be moved once more. */
void gy_radix_sort(const gantry_launch *l, const gy_radix *r)
{
    uint32_t alone[MOST_BYTES][GY_RADIX_DIGITS] = { { 0 } };
    bool is_alone = l->struct_size <= offsetof(gantry_launch, team) || !l->cut;
    pass p = { .keys = r->keys,
               .values = r->values,
               .keys_to = r->sorted,
               .values_to = r->moved,
               .n = r->n,
               .chunk = is_alone ? r->n : chunk_of(r->n),
               .count = is_alone ? alone : r->counts,
               .bytes = (int)gantry_dtype_size(r->dtype),
               .value_bytes = r->value_bytes,
               .order = gy_radix_order_of(r->dtype, r->descending) };
    int64_t chunks = is_alone ? 1 : (r->n + p.chunk - 1) / p.chunk;
    if (is_alone)
        count_alone(&p);
    for (p.digit = 0; p.digit < p.bytes; p.digit++) {
        bool last = p.digit == p.bytes - 1 && p.keys == r->keys; /* or values 0, 1, ... would not be written down */
        if (is_alone)
            p.count = &alone[p.digit];
        else
            gantry_launch_cut(l, chunks, 1, count_chunks, &p);
        if (begin_digits(&p, chunks) && !last)
            continue;
        gantry_launch_cut(l, chunks, 1, scatter_chunks, &p);
        p.keys = p.keys_to;
        p.values = p.values_to;
        p.keys_to = p.keys == r->sorted ? r->spare_keys : r->sorted;
        p.values_to = p.values == r->moved ? r->spare_values : r->moved;
    }
    if (p.keys == r->sorted)
        return;
    memcpy(r->sorted, p.keys, (size_t)(r->n * p.bytes));
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
