/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Factors of a matrix with many more rows than columns: blocks of rows, which stay in a core's cache, each by
 * reflections, then in the same way the stack of their triangles; q is that of each block times what the stack gave for
 * it (Demmel, Grigori, Hoemmen and Langou, Communication-optimal parallel and sequential QR and LU factorizations, SIAM
 * Journal on Scientific Computing 34, 2012). As reflections of the whole it is right for any matrix, also one whose
 * columns depend on each other; it takes half as many operations more, for the products.
 */
#include "base/error.h"
#include "base/memory.h"
#include "kernels/qr/qr.h"
#include <stdatomic.h>
#include <string.h>

/* A matrix of 2 MiB takes a third longer in blocks, one of 25 MiB half or a quarter as long (one core, OpenBLAS). */
enum {
    WHOLE_BYTES = 4 << 20,   /* that are factored at once */
    BLOCK_BYTES = 256 << 10, /* about, */
    LEAST_ROWS = 4           /* and of a block for each column */
};

typedef struct level {
    gantry_dtype dtype;
    gy_matrix q, stack; /* the triangle of block i is rows i n to (i + 1) n of the stack */
    int64_t blocks;
    _Atomic int32_t word; /* what LAPACK said of a block, which is the same of any */
} level;

/* It follows from the shape alone, and so do the bits. Each block has more rows than columns. */
static int64_t blocks_of(gantry_dtype dtype, gy_matrix q)
{
    int64_t size = (int64_t)gantry_dtype_size(dtype), least = LEAST_ROWS * q.columns;
    int64_t rows = BLOCK_BYTES / size / q.columns, blocks = q.rows / (rows < least ? least : rows);
    return q.rows * q.columns * size > WHOLE_BYTES && blocks > 1 ? blocks : 1;
}

static gy_matrix rows_of(gantry_dtype dtype, gy_matrix m, int64_t first, int64_t last)
{
    char *data = (char *)m.data + first * m.ld * (int64_t)gantry_dtype_size(dtype);
    return (gy_matrix){ data, last - first, m.columns, m.ld };
}

static gy_matrix block_of(const level *v, int64_t i)
{
    return rows_of(v->dtype, v->q, i * v->q.rows / v->blocks, (i + 1) * v->q.rows / v->blocks);
}

static gy_matrix triangle_of(const level *v, int64_t i)
{
    return rows_of(v->dtype, v->stack, i * v->q.columns, (i + 1) * v->q.columns);
}

static gantry_status factor_blocks(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    level *v = data;
    void *room = gy_calloc(GY_QR_ROOM * (size_t)v->q.columns, gantry_dtype_size(v->dtype));
    for (int64_t i = first; i < last && room; i++) {
        int32_t word = gy_qr_reflect(gy_linalg_of(l), v->dtype, block_of(v, i), triangle_of(v, i), room);
        if (word)
            atomic_store(&v->word, word);
    }
    gy_free(room);
    return room ? GANTRY_OK : GANTRY_E_NOMEM;
}

static gantry_status multiply_blocks(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const level *v = data;
    int64_t most = v->q.rows / v->blocks + 1;
    size_t row = (size_t)v->q.columns * gantry_dtype_size(v->dtype);
    void *room = gy_calloc((size_t)most, row);
    for (int64_t i = first; i < last && room; i++) {
        gy_matrix q = block_of(v, i), copy = { room, q.rows, q.columns, q.columns };
        memcpy(room, q.data, (size_t)q.rows * row);
        gy_linalg_of(l)->gemm(v->dtype, 0, 0, 1, copy, triangle_of(v, i), 0, q);
    }
    gy_free(room);
    return room ? GANTRY_OK : GANTRY_E_NOMEM;
}

static gantry_status factor_stack(const gantry_launch *l, level *v, gy_matrix r)
{
    double n = (double)v->q.columns, rows = (double)v->q.rows / (double)v->blocks;
    GY_TRY(gy_linalg_cut(l, v->blocks, 4 * rows * n * n, factor_blocks, v));
    *l->status = atomic_load(&v->word);
    if (*l->status)
        return GANTRY_OK;
    GY_TRY(gy_qr_factor(l, v->dtype, v->stack, r));
    return *l->status ? GANTRY_OK : gy_linalg_cut(l, v->blocks, 2 * rows * n * n, multiply_blocks, v);
}

gantry_status gy_qr_factor(const gantry_launch *l, gantry_dtype dtype, gy_matrix q, gy_matrix r)
{
    int64_t n = q.columns;
    level v = { .dtype = dtype, .q = q, .blocks = blocks_of(dtype, q) };
    size_t rows = v.blocks > 1 ? (size_t)(v.blocks * n) : GY_QR_ROOM;
    void *room = gy_calloc(rows * (size_t)n, gantry_dtype_size(dtype));
    gantry_status status = room ? GANTRY_OK : GANTRY_E_NOMEM;
    v.stack = (gy_matrix){ room, v.blocks * n, n, n };
    if (room && v.blocks > 1)
        status = factor_stack(l, &v, r);
    else if (room)
        *l->status = gy_qr_reflect(gy_linalg_of(l), dtype, q, r, room);
    gy_free(room);
    return status;
}
