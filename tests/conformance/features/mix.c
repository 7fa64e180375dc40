/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel for tests that takes any regions in any way, and makes every byte it reads and every number it is told about
 * its regions show in what it writes. Arithmetic is modulo 2^bits of the element, so results are exact in any order.
 * oracle.py does the same in NumPy.
 */
#include <gantry/kernel.h>
#include <string.h>

static uint64_t load(const gantry_arg *a, int64_t i)
{
    switch (a->dtype) {
    case GANTRY_I8:
        return (uint64_t)((const int8_t *)a->data)[i];
    case GANTRY_U8:
        return ((const uint8_t *)a->data)[i];
    case GANTRY_I32:
        return (uint64_t)((const int32_t *)a->data)[i];
    case GANTRY_U32:
        return ((const uint32_t *)a->data)[i];
    default:
        return ((const uint64_t *)a->data)[i];
    }
}

static void store(const gantry_arg *a, int64_t i, uint64_t value)
{
    size_t size = gantry_dtype_size(a->dtype);
    memcpy((char *)a->data + (size_t)i * size, &value, size); /* little endian */
}

static int is_signed(gantry_dtype d)
{
    return d == GANTRY_I8 || d == GANTRY_I32 || d == GANTRY_I64;
}

/* The value as the element would hold it, widened again. */
static uint64_t narrow(const gantry_arg *a, uint64_t value)
{
    unsigned shift = 64 - 8 * (unsigned)gantry_dtype_size(a->dtype);
    return is_signed(a->dtype) ? (uint64_t)((int64_t)(value << shift) >> shift) : value << shift >> shift;
}

static int less(const gantry_arg *a, uint64_t x, uint64_t y)
{
    return is_signed(a->dtype) ? (int64_t)x < (int64_t)y : x < y;
}

static int64_t size_of(const gantry_arg *a)
{
    return a->rows * (a->row_bytes / (int64_t)gantry_dtype_size(a->dtype));
}

static uint64_t told(const gantry_arg *a)
{
    return (uint64_t)(31 * a->first_row + 17 * a->rows + 13 * a->own_first + 11 * a->own_rows + 7 * a->shape[0] +
                      5 * (a->tile[0] + 1) + 3 * (a->tile[1] + 1) + 19 * a->rank);
}

static uint64_t sum(const gantry_arg *a)
{
    uint64_t total = told(a);
    if (a->access != GANTRY_READ && a->access != GANTRY_READWRITE)
        return total;
    for (int64_t i = 0; i < size_of(a); i++)
        total += load(a, i) * (uint64_t)(i % 7 + 1);
    return total;
}

static void change(const gantry_arg *a, uint64_t from)
{
    for (int64_t i = 0; i < size_of(a); i++) {
        uint64_t mine = narrow(a, from + 3 * (uint64_t)i), old = a->access == GANTRY_WRITE ? 0 : load(a, i);
        switch (a->access) {
        case GANTRY_WRITE:
            store(a, i, mine);
            break;
        case GANTRY_READWRITE:
            store(a, i, 3 * old + mine);
            break;
        case GANTRY_SUM:
            store(a, i, old + mine);
            break;
        case GANTRY_PROD:
            store(a, i, old * (mine | 1));
            break;
        case GANTRY_MIN:
            store(a, i, less(a, mine, old) ? mine : old);
            break;
        case GANTRY_MAX:
            store(a, i, less(a, old, mine) ? mine : old);
            break;
        default:
            break;
        }
    }
}

/* a: a factor; then regions and lists of tiles, read and written. */
gantry_status mix(const gantry_launch *l)
{
    uint64_t total = (uint64_t)l->arg[0].integer * 101 + (uint64_t)l->iteration * 1009;
    for (int32_t i = 1; i < l->args; i++) {
        total += (uint64_t)l->arg[i].count * 23;
        for (int64_t k = 0; k < l->arg[i].count; k++)
            total += sum(l->arg[i].items ? &l->arg[i].items[k] : &l->arg[i]) * (uint64_t)(k + 1);
    }
    for (int32_t i = 1; i < l->args; i++)
        for (int64_t k = 0; k < l->arg[i].count; k++)
            change(l->arg[i].items ? &l->arg[i].items[k] : &l->arg[i], total + 5 * (uint64_t)i + 1000 * (uint64_t)k);
    return GANTRY_OK;
}
