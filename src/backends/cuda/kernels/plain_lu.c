/* SPDX-License-Identifier: Apache-2.0 */
/* getrf and getrs by images of this module: what cuSOLVER and cuBLAS do faster. */
#include "backends/cuda/kernels/plain.h"

#include "base/error.h"

enum { SQUARE = 32, LINES = 8, PANEL_LINES = 32 }; /* as in triangle.cuh and getrf.cu */

static gantry_status launch_panel(const gantry_launch *l, int64_t first, int32_t side)
{
    enum { PANEL, EXCHANGE };
    const gantry_arg *a = &l->arg[0];
    int64_t n = a->rows, rows = n - first, count = side;
    void *all = a->data, *square = (char *)a->data + (first * n + first) * (int64_t)gantry_dtype_size(a->dtype);
    int32_t *pivots = l->arg[1].data, *status = l->status;
    GY_TRY(gy_cuda_image_launch(l, PANEL, a->dtype, (gy_grid){ 1, 1, 1, SQUARE, PANEL_LINES, 1 },
                                (void *[]){ &square, &n, &rows, &side, &first, &pivots, &status }));
    return gy_cuda_image_launch(l, EXCHANGE, a->dtype, gy_grid_for(n),
                                (void *[]){ &all, &n, &pivots, &first, &count, &status });
}

/* Takes away from the columns right of the panel at `first`. */
static gantry_status launch_rest(const gantry_launch *l, int64_t first)
{
    enum { BESIDE = 2, REST };
    const gantry_arg *a = &l->arg[0];
    int64_t n = a->rows, left = n - first - SQUARE, size = (int64_t)gantry_dtype_size(a->dtype);
    uint32_t across = (uint32_t)gy_tiles(left, SQUARE);
    char *square = (char *)a->data + (first * n + first) * size, *right = square + SQUARE * size;
    char *below = square + SQUARE * n * size, *rest = below + SQUARE * size;
    GY_TRY(gy_cuda_image_launch(l, BESIDE, a->dtype, (gy_grid){ across, 1, 1, SQUARE, LINES, 1 },
                                (void *[]){ &square, &right, &n, &left }));
    return gy_cuda_image_launch(l, REST, a->dtype, (gy_grid){ across * across, 1, 1, SQUARE, LINES, 1 },
                                (void *[]){ &below, &right, &rest, &n, &left, &across });
}

gantry_status gy_plain_getrf_launch(const gantry_launch *l)
{
    int64_t n = l->arg[0].rows;
    for (int64_t first = 0; first < n; first += SQUARE) {
        GY_TRY(launch_panel(l, first, (int32_t)(n - first < SQUARE ? n - first : SQUARE)));
        if (n - first > SQUARE)
            GY_TRY(launch_rest(l, first));
    }
    return GANTRY_OK;
}

gantry_status gy_plain_exchange_rows(const gantry_launch *l)
{
    enum { EXCHANGE };
    const gantry_arg *b = &l->arg[2];
    int64_t n = b->rows, columns = gy_arg_width(b);
    void *data = b->data;
    const int32_t *pivots = l->arg[1].data;
    int32_t *status = l->status;
    return gy_cuda_image_launch(l, EXCHANGE, b->dtype, gy_grid_for(columns),
                                (void *[]){ &data, &n, &columns, &pivots, &status });
}

gantry_status gy_plain_getrs_launch(const gantry_launch *l)
{
    enum { LOWER = 1, UPPER };
    const gantry_arg *a = &l->arg[0], *b = &l->arg[2];
    const void *factors = a->data;
    void *x = b->data;
    int64_t n = a->rows, columns = gy_arg_width(b);
    gy_grid grid = { n ? (unsigned)gy_tiles(columns, SQUARE) : 0, 1, 1, SQUARE, LINES, 1 };
    GY_TRY(gy_plain_exchange_rows(l));
    GY_TRY(gy_cuda_image_launch(l, LOWER, a->dtype, grid, (void *[]){ &factors, &n, &x, &columns }));
    return gy_cuda_image_launch(l, UPPER, a->dtype, grid, (void *[]){ &factors, &n, &x, &columns });
}

GY_PLAIN_KERNEL(getrf, gy_plain_keeps_word, GY_WIDE_DTYPES, "_panel", "_exchange", "_beside", "_rest")
GY_PLAIN_KERNEL(getrs, NULL, GY_WIDE_DTYPES, "_exchange", "_lower", "_upper")
