/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "kernels/linalg.h"

/* Column j of blocks of GY_BAND; what is left of it is done. */
typedef struct column {
    gantry_dtype dtype;
    gy_matrix a;
    int64_t j;
} column;

static gy_matrix block_of(const column *c, int64_t i)
{
    return gy_band_of_columns(gy_band_of_rows(c->a, c->dtype, i), c->dtype, c->j);
}

static gy_matrix before(const column *c, int64_t i)
{
    gy_matrix rows = gy_band_of_rows(c->a, c->dtype, i);
    rows.columns = c->j * GY_BAND;
    return rows;
}

/* Block j + k: the products of what is left of it and of the block on the diagonal are taken off. */
static gantry_status take_off(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const column *c = data;
    const gy_linalg *table = gy_linalg_of(l);
    for (int64_t k = first; k < last; k++)
        if (k == 0)
            table->syrk(c->dtype, -1, before(c, c->j), 1, block_of(c, c->j));
        else
            table->gemm(c->dtype, 0, 1, -1, before(c, c->j + k), before(c, c->j), 1, block_of(c, c->j + k));
    return GANTRY_OK;
}

/* Block j + 1 + k, once that on the diagonal has its factor. */
static gantry_status divide(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const column *c = data;
    for (int64_t k = first; k < last; k++)
        gy_linalg_of(l)->trsm(c->dtype, block_of(c, c->j), block_of(c, c->j + 1 + k));
    return GANTRY_OK;
}

/* The plain table has the order of additions that GPUs without libraries have, so its one call does all. */
static gantry_status run(const gantry_launch *l)
{
    column c = { l->arg[0].dtype, gy_matrix_of(&l->arg[0]), 0 };
    const double cube = (double)GY_BAND * GY_BAND * GY_BAND;
    int64_t bands = gy_bands_of(c.a.rows);
    int32_t code = 0;
    if (gy_linalg_of(l) == &gy_linalg_plain || bands < 2) {
        *l->status = gy_linalg_of(l)->potrf(c.dtype, c.a);
        return GANTRY_OK;
    }
    for (c.j = 0; c.j < bands && !code; c.j++) {
        if (c.j)
            GY_TRY(gy_linalg_cut(l, bands - c.j, 2 * cube * (double)c.j, take_off, &c));
        code = gy_linalg_of(l)->potrf(c.dtype, block_of(&c, c.j));
        if (code)
            *l->status = code > 0 ? (int32_t)(c.j * GY_BAND) + code : code;
        else
            GY_TRY(gy_linalg_cut(l, bands - c.j - 1, cube, divide, &c));
    }
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_square(l, 0, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("a", GANTRY_READWRITE, GY_WIDE_DTYPES, 0,
              "symmetric positive definite; its lower triangle becomes the factor"),
};

const gantry_kernel gy_kernel_potrf = { .struct_size = sizeof(gantry_kernel),
                                        .name = "potrf",
                                        .summary =
                                            "Cholesky factor, lower; status: order of the minor that is not positive",
                                        GANTRY_KERNEL_ARGS(args),
                                        .flops = "a.size * a.rows // 3",
                                        .bytes = "2 * a.bytes",
                                        .host = run,
                                        .check = check,
                                        .open = gy_linalg_open_kernel,
                                        .close = gy_linalg_close };
