/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce.h"

#include <string.h>

enum { MOST_COLUMNS = GY_CHUNK_ROW / 2 };

gy_number gy_number_load(const void *data, gantry_dtype dtype, int64_t i)
{
    gy_number n = { 0, 0 };
    switch (dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        n.real = (double)LOAD(((const type *)data)[i]);                                                                \
        break;
        GY_FLOAT_TYPES(REAL)
#undef REAL
#define WHOLE(dtype, type, wide, LOAD, STORE)                                                                          \
    case dtype:                                                                                                        \
        n.integer = LOAD(((const type *)data)[i]);                                                                     \
        break;
        GY_INTEGER_TYPES(WHOLE)
#undef WHOLE
    default:
        break;
    }
    return n;
}

void gy_number_store(void *data, gantry_dtype dtype, int64_t i, gy_number value)
{
    switch (dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        ((type *)data)[i] = STORE((wide)value.real);                                                                   \
        break;
        GY_FLOAT_TYPES(REAL)
#undef REAL
#define WHOLE(dtype, type, wide, LOAD, STORE)                                                                          \
    case dtype:                                                                                                        \
        ((type *)data)[i] = STORE(value.integer);                                                                      \
        break;
        GY_INTEGER_TYPES(WHOLE)
#undef WHOLE
    default:
        break;
    }
}

/* Neighbours, then neighbouring pairs, and so on. `count` is a power of two. */
static double fold(double *column, int64_t count)
{
    for (; count > 1; count /= 2)
        for (int64_t i = 0; i < count / 2; i++)
            column[i] = column[2 * i] + column[2 * i + 1];
    return column[0];
}

double gy_sum_rows(const gantry_launch *l, gy_add_row add)
{
    double column[MOST_COLUMNS], sum[GY_CHUNK_SUMS] = { 0 };
    int64_t n = gy_arg_size(&l->arg[0]), size = (int64_t)gantry_dtype_size(l->arg[0].dtype);
    int64_t columns = GY_CHUNK_ROW / size, chunk = gy_chunk_size(n, size);
    for (int64_t c = 0; c * chunk < n; c++) {
        int64_t end = n - c * chunk < chunk ? n : (c + 1) * chunk;
        memset(column, 0, (size_t)columns * sizeof *column);
        for (int64_t first = c * chunk; first < end; first += columns)
            add(column, l, first, end - first < columns ? end - first : columns);
        sum[c % GY_CHUNK_SUMS] += fold(column, columns);
    }
    return fold(sum, GY_CHUNK_SUMS);
}

gantry_status gy_check_accumulator(const gantry_launch *l, int x, int out, char *text, size_t size)
{
    gantry_dtype from = l->arg[x].dtype, to = l->arg[out].dtype;
    gantry_status status = gy_check_one_element(l, out, text, size);
    if (status)
        return status;
    int wider = gy_is_float(from) ? gy_is_float(to) && gantry_dtype_size(to) > gantry_dtype_size(from)
                                  : !gy_is_float(to) && gantry_dtype_size(to) == 8;
    if (from == to || wider)
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" is %s and \"%s\" is %s; it must be %s or %s", l->arg[x].name,
                         gantry_dtype_name(from), l->arg[out].name, gantry_dtype_name(to), gantry_dtype_name(from),
                         gy_is_float(from) ? "a wider floating type" : "i64 or u64");
}
