/* SPDX-License-Identifier: Apache-2.0 */
#include "run/fill.h"

#include "run/edge.h"
#include "run/number.h"
#include "run/philox.h"
#include <math.h>
#include <string.h>

#define TWO_PI 6.283185307179586476925286766559

static uint64_t pair_of(gy_philox_block block, unsigned low)
{
    return (uint64_t)block.word[low + 1] << 32 | block.word[low];
}

static bool is_wide(gantry_dtype dtype)
{
    return gantry_dtype_size(dtype) == 8;
}

static double uniform_wide(uint64_t seed, uint64_t e)
{
    return (double)(pair_of(gy_philox_at(seed, e / 2), 2 * (unsigned)(e % 2)) >> 11) * 0x1p-53;
}

static double normal_of(double v, double w)
{
    return sqrt(-2 * log(v)) * cos(TWO_PI * w);
}

static double normal_wide(uint64_t seed, uint64_t e)
{
    gy_philox_block block = gy_philox_at(seed, e);
    return normal_of((double)((pair_of(block, 0) >> 11) + 1) * 0x1p-53, (double)(pair_of(block, 2) >> 11) * 0x1p-53);
}

static double normal_narrow(uint64_t seed, uint64_t e)
{
    gy_philox_block block = gy_philox_at(seed, e / 2);
    unsigned low = 2 * (unsigned)(e % 2);
    return normal_of(((double)block.word[low] + 1) * 0x1p-32, (double)block.word[low + 1] * 0x1p-32);
}

/* Integers: rounded down, and never the upper bound that is excluded. */
static void store_uniform(void *to, gantry_dtype dtype, uint64_t i, const gy_init *what, double u)
{
    double low = what->a.real, high = what->b.real, value = low + (high - low) * u;
    if (!gy_dtype_is_float(dtype)) {
        value = floor(value);
        value = value >= high && high > low ? high - 1 : value;
    }
    gy_element_store(to, dtype, i, value);
}

/* One block serves four neighbours. */
static void fill_uniform_narrow(void *to, gantry_dtype dtype, const gy_init *what, uint64_t first, uint64_t count)
{
    gy_philox_block block = gy_philox_at(what->seed, first / 4);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t e = first + i;
        if (e % 4 == 0)
            block = gy_philox_at(what->seed, e / 4);
        store_uniform(to, dtype, i, what, (double)block.word[e % 4] * 0x1p-32);
    }
}

static void fill_uniform(void *to, gantry_dtype dtype, const gy_init *what, uint64_t first, uint64_t count)
{
    if (!is_wide(dtype)) {
        fill_uniform_narrow(to, dtype, what, first, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        store_uniform(to, dtype, i, what, uniform_wide(what->seed, first + i));
}

static void fill_normal(void *to, gantry_dtype dtype, const gy_init *what, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t e = first + i;
        double z = is_wide(dtype) ? normal_wide(what->seed, e) : normal_narrow(what->seed, e);
        gy_element_store(to, dtype, i, what->a.real + what->b.real * z);
    }
}

/* The low bytes of a 64-bit whole number are the number modulo 2^bits. */
static void store_bits(void *to, gantry_dtype dtype, uint64_t i, uint64_t value)
{
    size_t size = gantry_dtype_size(dtype);
    unsigned char *at = (unsigned char *)to + i * size;
    for (size_t k = 0; k < size; k++)
        at[k] = (unsigned char)(value >> 8 * k); /* little endian, as all supported machines are */
}

static void fill_iota(void *to, gantry_dtype dtype, const gy_init *what, uint64_t first, uint64_t count)
{
    uint64_t step = gy_constant_bits(what->b), value = gy_constant_bits(what->a) + step * first;
    if (gy_dtype_is_float(dtype)) {
        for (uint64_t i = 0; i < count; i++)
            gy_element_store(to, dtype, i, what->a.real + what->b.real * (double)(first + i));
        return;
    }
    for (uint64_t i = 0; i < count; i++, value += step)
        store_bits(to, dtype, i, value);
}

/* Doubling what is there already: a block of memcpy instead of a call per element. */
static void fill_value(void *to, gantry_dtype dtype, gy_constant value, uint64_t count)
{
    size_t size = gantry_dtype_size(dtype), total = (size_t)count * size, done = size;
    if (count == 0)
        return;
    if (gy_dtype_is_float(dtype))
        gy_element_store(to, dtype, 0, value.real);
    else
        store_bits(to, dtype, 0, gy_constant_bits(value));
    while (done < total) {
        size_t more = done < total - done ? done : total - done;
        memcpy((char *)to + done, to, more);
        done += more;
    }
}

void gy_fill_elements(void *to, gantry_dtype dtype, const gy_init *what, uint64_t first, uint64_t count)
{
    switch (what->kind) {
    case GY_INIT_VALUE:
        fill_value(to, dtype, what->a, count);
        break;
    case GY_INIT_UNIFORM:
        fill_uniform(to, dtype, what, first, count);
        break;
    case GY_INIT_NORMAL:
        fill_normal(to, dtype, what, first, count);
        break;
    case GY_INIT_IOTA:
        fill_iota(to, dtype, what, first, count);
        break;
    default:
        break;
    }
}

static void fill_spd(void *to, gantry_dtype dtype, const gy_init *what, uint64_t n, uint64_t first, uint64_t count)
{
    const gy_init unit = { .kind = GY_INIT_UNIFORM, .seed = what->seed, .b = { .real = 1 } };
    for (uint64_t k = 0; k < count; k++) {
        uint64_t i = (first + k) / n, j = (first + k) % n;
        double value;
        gy_fill_elements(&value, GANTRY_F64, &unit, i < j ? i * n + j : j * n + i, 1);
        gy_element_store(to, dtype, k, i == j ? value + (double)n : value);
    }
}

static void fill_any(void *to, const gy_buffer *b, const gy_init *what, uint64_t first, uint64_t count)
{
    if (what->kind == GY_INIT_SPD)
        fill_spd(to, b->dtype, what, (uint64_t)b->shape[b->rank - 1], first, count);
    else
        gy_fill_elements(to, b->dtype, what, first, count);
}

/* A tile's lines lie apart in the whole array. */
static void fill_tile(char *to, const gy_buffer *b, const gy_init *what, int64_t tile)
{
    int64_t lines = b->tile_offset[tile] == b->tile_offset[tile + 1] ? 0 : gy_tile_lines(b, tile);
    for (int64_t i = 0; i < lines; i++) {
        gy_tile_line line = gy_tile_line_of(b, tile, i);
        fill_any(to, b, what, (uint64_t)line.first, (uint64_t)line.count);
        to += (uint64_t)line.count * gantry_dtype_size(b->dtype);
    }
}

void gy_fill_rows(void *to, const gy_buffer *buffer, const gy_init *what, int64_t first, int64_t last)
{
    if (!buffer->tile_offset) {
        uint64_t elements = (uint64_t)buffer->row_bytes / gantry_dtype_size(buffer->dtype);
        fill_any(to, buffer, what, (uint64_t)first * elements, (uint64_t)(last - first) * elements);
        return;
    }
    for (int64_t tile = first; tile < last; tile++)
        fill_tile((char *)to + gy_buffer_span(buffer, first, tile), buffer, what, tile);
}
