/* SPDX-License-Identifier: Apache-2.0 */
/* Products of f16, bf16 and f8 by a library that multiplies f32 only: panels of the factors are converted, and their
 * sums, which are f32, meet before they are rounded. */
#include "base/memory.h"
#include "kernels/linalg.h"

#include <string.h>

/* The side of a panel: conversions are 1/SIDE of the multiplications, and three panels fit into a cache of 1 MiB. */
enum { SIDE = GY_BAND };

typedef struct panels {
    float a[SIDE * SIDE], b[SIDE * SIDE], sum[SIDE * SIDE];
} panels;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define CONVERT(type, LOAD)                                                                                            \
    for (int64_t j = 0; j < columns; j++)                                                                              \
        line[j] = LOAD(((const type *)m.data)[at + j]);                                                                \
    break;

/* The block of m from (row, column) on, with `rows` x `columns` elements, as it lies. */
static gy_matrix convert(float *to, gantry_dtype dtype, gy_matrix m, int64_t row, int64_t column, int64_t rows,
                         int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = (row + i) * m.ld + column;
        float *line = to + i * columns;
        switch (dtype) {
        case GANTRY_F16:
            CONVERT(uint16_t, gy_f16_to_float)
        case GANTRY_F8E4M3:
            CONVERT(uint8_t, gy_f8e4m3_to_float)
        case GANTRY_F8E5M2:
            CONVERT(uint8_t, gy_f8e5m2_to_float)
        default:
            CONVERT(uint16_t, gy_bf16_to_float)
        }
    }
    return (gy_matrix){ to, rows, columns, columns };
}

/* The block of op(m), before op. */
static gy_matrix convert_factor(float *to, gantry_dtype dtype, gy_matrix m, bool transposed, int64_t row,
                                int64_t column, int64_t rows, int64_t columns)
{
    return transposed ? convert(to, dtype, m, column, row, columns, rows)
                      : convert(to, dtype, m, row, column, rows, columns);
}

#define STORE(name, type, LOAD, NARROW)                                                                                \
    static void store_##name(const gy_product *p, const float *sum, int64_t row, int64_t column, int64_t rows,         \
                             int64_t columns)                                                                          \
    {                                                                                                                  \
        float alpha = (float)p->alpha, beta = (float)p->beta;                                                          \
        for (int64_t i = 0; i < rows; i++) {                                                                           \
            type *c = (type *)p->c.data + (row + i) * p->c.ld + column;                                                \
            for (int64_t j = 0; j < columns; j++)                                                                      \
                c[j] = NARROW(alpha * sum[i * columns + j] + (beta != 0 ? beta * LOAD(c[j]) : 0));                     \
        }                                                                                                              \
    }
STORE(f16, uint16_t, gy_f16_to_float, gy_float_to_f16)
STORE(bf16, uint16_t, gy_bf16_to_float, gy_float_to_bf16)
STORE(f32, float, GY_TO_F32, GY_TO_F32)

/* The block of c from (row, column) on. */
static void multiply(const gy_linalg *table, const gy_product *p, panels *w, int64_t row, int64_t column)
{
    int64_t rows = least(p->c.rows - row, SIDE), columns = least(p->c.columns - column, SIDE);
    int64_t depth = p->ta ? p->a.rows : p->a.columns;
    gy_matrix sum = { w->sum, rows, columns, columns };
    memset(w->sum, 0, sizeof w->sum);
    for (int64_t k = 0; k < depth; k += SIDE) {
        int64_t terms = least(depth - k, SIDE);
        gy_matrix a = convert_factor(w->a, p->dtype, p->a, p->ta, row, k, rows, terms);
        gy_matrix b = convert_factor(w->b, p->dtype, p->b, p->tb, k, column, terms, columns);
        table->gemm(GANTRY_F32, p->ta, p->tb, 1, a, b, k > 0, sum);
    }
    (p->result == GANTRY_F32   ? store_f32
     : p->result == GANTRY_F16 ? store_f16
                               : store_bf16)(p, w->sum, row, column, rows, columns);
}

bool gy_product_in_panels(const gy_linalg *table, const gy_product *p)
{
    panels *w = gy_calloc(1, sizeof *w);
    if (!w)
        return false;
    for (int64_t row = 0; row < p->c.rows; row += SIDE)
        for (int64_t column = 0; column < p->c.columns; column += SIDE)
            multiply(table, p, w, row, column);
    gy_free(w);
    return true;
}
