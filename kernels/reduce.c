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

typedef struct sums {
    gy_add_row add;
    int64_t elements, columns, chunk;
    double of[GY_CHUNKS]; /* per chunk */
} sums;

/* Chunks are apart from each other, whoever adds them up. */
static gantry_status sum_chunks(const gantry_launch *l, void *data, int64_t first_chunk, int64_t last_chunk)
{
    sums *s = data;
    double column[MOST_COLUMNS];
    for (int64_t c = first_chunk; c < last_chunk; c++) {
        int64_t end = s->elements - c * s->chunk < s->chunk ? s->elements : (c + 1) * s->chunk;
        memset(column, 0, (size_t)s->columns * sizeof *column);
        for (int64_t first = c * s->chunk; first < end; first += s->columns)
            s->add(column, l, first, end - first < s->columns ? end - first : s->columns);
        s->of[c] = fold(column, s->columns);
    }
    return GANTRY_OK;
}

double gy_sum_rows(const gantry_launch *l, gy_add_row add)
{
    double sum[GY_CHUNK_SUMS] = { 0 };
    int64_t n = gy_arg_size(&l->arg[0]), size = (int64_t)gantry_dtype_size(l->arg[0].dtype);
    int64_t chunk = gy_chunk_size(n, size), chunks = (n + chunk - 1) / chunk;
    sums s = { .add = add, .elements = n, .columns = GY_CHUNK_ROW / size, .chunk = chunk };
    gantry_launch_cut(l, chunks, gy_grain_of_rows(chunk), sum_chunks, &s);
    for (int64_t c = 0; c < chunks; c++)
        sum[c % GY_CHUNK_SUMS] += s.of[c];
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
