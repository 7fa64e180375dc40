/* SPDX-License-Identifier: Apache-2.0 */
/* Linear algebra by images of this module. Matrices are in C order; sides of tiles are those of product.cuh and
 * triangle.cuh. */
#include "backends/cuda/kernels/plain.h"

#include "kernels/gemm/gemm.h"
#include "kernels/gemm_bias/gemm_bias.h"
#include "kernels/linalg.h"

enum { TILE = 64, SQUARE = 32, LINES = 8 };

/* One block for each tile of c, TILE of them along a side; `across` is how many lie beside each other. */
static gy_grid grid_of_tiles(int64_t rows, int64_t columns, uint32_t *across)
{
    *across = (uint32_t)gy_tiles(columns, TILE);
    return (gy_grid){ (unsigned)(*across * gy_tiles(rows, TILE)), 1, 1, GY_IMAGE_THREADS, 1, 1 };
}

enum { TILES, ROW, TURN_F8 };  /* variants of gemm */
enum { SCALE_A = 7, SCALE_B }; /* arguments behind those of every product */

/* The name in gemm.cu of the type of a c of f8 factors. */
static int32_t result_of(gantry_dtype dtype)
{
    return dtype == GANTRY_F32 ? 0 : dtype == GANTRY_F16 ? 1 : 2;
}

gantry_status gy_plain_gemm_launch(const gantry_launch *l)
{
    const gantry_arg *a = &l->arg[4], *b = &l->arg[5], *c = &l->arg[6];
    double alpha = l->arg[0].number, beta = gy_beta_of(&l->arg[1], &l->arg[6]);
    int32_t ta = l->arg[2].number != 0, tb = l->arg[3].number != 0;
    const void *x = a->data, *y = b->data;
    void *z = c->data;
    bool f8 = gy_dtype_is_f8(a->dtype);
    int32_t wide = f8 ? result_of(c->dtype) : c->dtype != a->dtype;
    int64_t lda = gy_arg_width(a), ldb = gy_arg_width(b), rows = c->rows, columns = gy_arg_width(c),
            terms = ta ? a->rows : lda;
    const void *scale_a = f8 ? l->arg[SCALE_A].data : NULL, *scale_b = f8 ? l->arg[SCALE_B].data : NULL;
    uint32_t across;
    gy_grid grid = grid_of_tiles(rows, columns, &across);
    return gy_cuda_image_launch(l, TILES, a->dtype, grid,
                                (void *[]){ &ta, &tb, &alpha, &x, &lda, &y, &ldb, &beta, &z, &wide, &rows, &columns,
                                            &terms, &across, &scale_a, &scale_b });
}

gantry_status gy_plain_turn_f8(const gantry_launch *l, const gantry_arg *matrix, void *to)
{
    const void *from = matrix->data;
    int64_t rows = matrix->rows, columns = gy_arg_width(matrix);
    uint32_t across;
    gy_grid grid = grid_of_tiles(rows, columns, &across);
    return gy_cuda_image_launch(l, TURN_F8, matrix->dtype, grid, (void *[]){ &from, &to, &rows, &columns, &across });
}

bool gy_plain_gemm_is_row(const gantry_launch *l)
{
    const gantry_arg *b = &l->arg[5];
    return !gy_dtype_is_f8(b->dtype) && l->arg[2].number == 0 && l->arg[3].number == 0 && l->arg[6].rows == 1 &&
           l->arg[4].row_bytes > 0 && gy_rows_aligned(b, GY_ROW_PRODUCT_BYTES);
}

/* a b = c; alpha is 1 and beta 0. */
static gy_row_product row_product(const gantry_arg *a, const gantry_arg *b, const gantry_arg *c)
{
    gy_row_product p = { .terms = gy_arg_width(a), .columns = gy_arg_width(c), .alpha = 1 };
    p.across = gy_row_product_across(p.columns, (int64_t)gantry_dtype_size(b->dtype));
    return p;
}

static unsigned row_blocks(const gy_row_product *p, const gantry_arg *b)
{
    return (unsigned)gy_tiles(p->columns * (int64_t)gantry_dtype_size(b->dtype),
                              (int64_t)p->across * GY_ROW_PRODUCT_BYTES);
}

gantry_status gy_plain_gemm_rows(const gantry_launch *l, const gy_cuda_batch *batch)
{
    const gantry_arg *a = &l->arg[4], *b = &l->arg[5], *c = &l->arg[6];
    gy_row_product p = row_product(a, b, c);
    p.alpha = l->arg[0].number;
    p.beta = gy_beta_of(&l->arg[1], &l->arg[6]);
    p.wide = c->dtype != a->dtype;
    const void *x = a->data, *y = b->data, *list = batch ? (const void *)(uintptr_t)batch->data : NULL;
    void *z = c->data;
    int32_t count = batch ? (int32_t)batch->count : 1;
    gy_grid grid = { row_blocks(&p, b), (unsigned)count, 1, GY_ROW_PRODUCT_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, ROW, a->dtype, grid, (void *[]){ &p, &x, &y, &z, &list, &count });
}

enum { PRODUCT, FINISH, BIASED_ROW }; /* variants of gemm_bias */

bool gy_plain_gemm_bias_is_row(const gantry_launch *l)
{
    const gantry_arg *b = &l->arg[GY_GEMM_BIAS_B];
    return l->arg[GY_GEMM_BIAS_TA].number == 0 && l->arg[GY_GEMM_BIAS_TB].number == 0 &&
           l->arg[GY_GEMM_BIAS_C].rows == 1 && l->arg[GY_GEMM_BIAS_A].row_bytes > 0 &&
           gy_rows_aligned(b, GY_ROW_PRODUCT_BYTES);
}

gantry_status gy_plain_gemm_bias_row(const gantry_launch *l)
{
    const gantry_arg *a = &l->arg[GY_GEMM_BIAS_A], *b = &l->arg[GY_GEMM_BIAS_B], *c = &l->arg[GY_GEMM_BIAS_C];
    gy_row_product p = row_product(a, b, c);
    int32_t activation = (int32_t)l->arg[GY_GEMM_BIAS_ACTIVATION].integer;
    const void *x = a->data, *y = b->data, *bias = l->arg[GY_GEMM_BIAS_BIAS].data;
    void *z = c->data;
    gy_grid grid = { row_blocks(&p, b), 1, 1, GY_ROW_PRODUCT_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, BIASED_ROW, c->dtype, grid, (void *[]){ &p, &activation, &x, &y, &bias, &z });
}

gantry_status gy_plain_gemm_bias_launch(const gantry_launch *l)
{
    if (gy_plain_gemm_bias_is_row(l))
        return gy_plain_gemm_bias_row(l);
    const gantry_arg *a = &l->arg[GY_GEMM_BIAS_A], *b = &l->arg[GY_GEMM_BIAS_B], *c = &l->arg[GY_GEMM_BIAS_C];
    int32_t ta = l->arg[GY_GEMM_BIAS_TA].number != 0, tb = l->arg[GY_GEMM_BIAS_TB].number != 0,
            activation = (int32_t)l->arg[GY_GEMM_BIAS_ACTIVATION].integer;
    const void *x = a->data, *y = b->data, *bias = l->arg[GY_GEMM_BIAS_BIAS].data;
    void *z = c->data;
    int64_t lda = gy_arg_width(a), ldb = gy_arg_width(b), rows = c->rows, columns = gy_arg_width(c),
            terms = ta ? a->rows : lda;
    uint32_t across;
    gy_grid grid = grid_of_tiles(rows, columns, &across);
    return gy_cuda_image_launch(
        l, PRODUCT, c->dtype, grid,
        (void *[]){ &ta, &tb, &activation, &x, &lda, &y, &ldb, &bias, &z, &rows, &columns, &terms, &across });
}

gantry_status gy_plain_finish_gemm_bias(const gantry_launch *l)
{
    const gantry_arg *c = &l->arg[GY_GEMM_BIAS_C];
    int32_t activation = (int32_t)l->arg[GY_GEMM_BIAS_ACTIVATION].integer;
    const void *bias = l->arg[GY_GEMM_BIAS_BIAS].data;
    void *z = c->data;
    int64_t rows = c->rows, columns = gy_arg_width(c);
    gy_grid grid = gy_cuda_image_grid(l, FINISH, c->dtype, gy_tiles(rows * columns, GY_IMAGE_THREADS));
    return gy_cuda_image_launch(l, FINISH, c->dtype, grid, (void *[]){ &activation, &bias, &z, &rows, &columns });
}

/* The first argument of the function; gemm_batched.cu has the same. */
typedef struct stack {
    int64_t rows, columns, terms, step_a, step_b;
    uint32_t across, tiles;
    int32_t ta, tb, wide;
} stack;

gantry_status gy_plain_gemm_batched_launch(const gantry_launch *l)
{
    const gantry_arg *a = &l->arg[4], *b = &l->arg[5], *c = &l->arg[6];
    double alpha = l->arg[0].number, beta = gy_beta_of(&l->arg[1], &l->arg[6]);
    stack s = { .rows = c->shape[1], .columns = c->shape[2] };
    s.ta = l->arg[2].number != 0;
    s.tb = l->arg[3].number != 0;
    s.wide = c->dtype != a->dtype;
    s.terms = a->shape[s.ta ? 1 : 2];
    s.step_a = a->rows == 1 ? 0 : s.rows * s.terms;
    s.step_b = b->rows == 1 ? 0 : s.columns * s.terms;
    s.across = (uint32_t)gy_tiles(s.columns, TILE);
    s.tiles = (uint32_t)(s.across * gy_tiles(s.rows, TILE));
    const void *x = a->data, *y = b->data;
    void *z = c->data;
    gy_grid grid = { (unsigned)(s.tiles * c->rows), 1, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, 0, a->dtype, grid, (void *[]){ &s, &alpha, &x, &y, &beta, &z });
}

gantry_status gy_plain_syrk_launch(const gantry_launch *l)
{
    const gantry_arg *a = &l->arg[2], *c = &l->arg[3];
    double alpha = l->arg[0].number, beta = l->arg[1].number;
    const void *x = a->data;
    void *z = c->data;
    int64_t rows = c->rows, terms = gy_arg_width(a);
    uint32_t across = (uint32_t)gy_tiles(rows, TILE);
    gy_grid grid = { across * across, 1, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, 0, c->dtype, grid, (void *[]){ &alpha, &x, &beta, &z, &rows, &terms, &across });
}

gantry_status gy_plain_trsm_launch(const gantry_launch *l)
{
    const gantry_arg *a = &l->arg[0], *b = &l->arg[1];
    const void *x = a->data;
    void *y = b->data;
    int64_t rows = b->rows, n = a->rows;
    gy_grid grid = { (unsigned)gy_tiles(rows, SQUARE), 1, 1, SQUARE, LINES, 1 };
    return gy_cuda_image_launch(l, 0, a->dtype, grid, (void *[]){ &x, &y, &rows, &n });
}

/* Factors the square at `first` and updates the rows below it and the rest of the matrix. */
static gantry_status factor_square(const gantry_launch *l, int64_t first)
{
    enum { DIAGONAL, BELOW, REST };
    const gantry_arg *a = &l->arg[0];
    int64_t n = a->rows, size = (int64_t)gantry_dtype_size(a->dtype), rows = n - first - SQUARE;
    int32_t side = (int32_t)(n - first < SQUARE ? n - first : SQUARE), *status = l->status;
    char *square = (char *)a->data + (first * n + first) * size, *below = square + SQUARE * n * size;
    char *rest = below + SQUARE * size;
    uint32_t across = rows > 0 ? (uint32_t)gy_tiles(rows, SQUARE) : 0;
    gantry_status failed = gy_cuda_image_launch(l, DIAGONAL, a->dtype, (gy_grid){ 1, 1, 1, SQUARE, LINES, 1 },
                                                (void *[]){ &square, &n, &side, &first, &status });
    if (failed || across == 0)
        return failed;
    failed = gy_cuda_image_launch(l, BELOW, a->dtype, (gy_grid){ across, 1, 1, SQUARE, LINES, 1 },
                                  (void *[]){ &square, &below, &n, &rows, &status });
    return failed ? failed
                  : gy_cuda_image_launch(l, REST, a->dtype, (gy_grid){ across * across, 1, 1, SQUARE, LINES, 1 },
                                         (void *[]){ &below, &rest, &n, &rows, &across, &status });
}

gantry_status gy_plain_turn(const gantry_launch *l)
{
    enum { TURN = 3 };
    void *a = l->arg[0].data;
    int64_t n = l->arg[0].rows;
    uint32_t across = (uint32_t)gy_tiles(n, SQUARE);
    gy_grid grid = { across * across, 1, 1, SQUARE, LINES, 1 };
    return gy_cuda_image_launch(l, TURN, l->arg[0].dtype, grid, (void *[]){ &a, &n, &across });
}

gantry_status gy_plain_potrf_launch(const gantry_launch *l)
{
    gantry_status failed = GANTRY_OK;
    for (int64_t first = 0; first < l->arg[0].rows && !failed; first += SQUARE)
        failed = factor_square(l, first);
    return failed;
}

const gy_cuda_image gy_plain_gemm_image = { .code = gy_fatbin_gemm,
                                            .dtypes = GY_FLOAT_DTYPES | GY_F8_DTYPES,
                                            .variant = { [TILES] = "", [ROW] = "_row", [TURN_F8] = "_turn" },
                                            .only = { [ROW] = GY_FLOAT_DTYPES, [TURN_F8] = GY_F8_DTYPES } };
const gy_cuda_kernel gy_plain_gemm = { .name = "gemm",
                                       .launch = gy_plain_gemm_launch,
                                       .open = gy_cuda_image_open,
                                       .close = gy_cuda_image_close,
                                       .data = &gy_plain_gemm_image,
                                       .early = gy_cuda_image_early,
                                       .prepare = gy_cuda_image_prepare,
                                       .why = gy_cuda_image_why };
GY_PLAIN_KERNEL(gemm_bias, NULL, GY_FLOAT_DTYPES, [PRODUCT] = "", [FINISH] = "_finish", [BIASED_ROW] = "_row")
GY_PLAIN_KERNEL(gemm_batched, NULL, GY_FLOAT_DTYPES, "")
GY_PLAIN_KERNEL(potrf, gy_plain_keeps_word, GY_WIDE_DTYPES, "_diagonal", "_below", "_rest", "_turn")
GY_PLAIN_KERNEL(syrk, NULL, GY_WIDE_DTYPES, "")
GY_PLAIN_KERNEL(trsm, NULL, GY_WIDE_DTYPES, "")
