/* SPDX-License-Identifier: Apache-2.0 */
/* qr: what is around the factorisation, whoever makes it, and that by qr.cu, which cuSOLVER does faster. */
#include "backends/cuda/kernels/plain_qr.h"

#include "base/align.h"
#include "base/error.h"

enum { SQUARE = 32, LINES = 8 }; /* as in triangle.cuh */
enum { TURN, UPPER, REFLECT, APPLY };

gy_qr_scratch gy_qr_scratch_of(const gantry_launch *l)
{
    int64_t m = l->arg[0].rows, n = l->arg[2].rows;
    char *first = l->scratch;
    size_t size = gantry_dtype_size(l->arg[0].dtype);
    gy_qr_scratch s = { .columns = first, .tau = first + (size_t)(m * n) * size };
    s.sign = (char *)s.tau + (size_t)n * size;
    s.bytes = gy_aligned((uint64_t)(m * n + 2 * n) * size);
    s.rest = first + s.bytes;
    return s;
}

static gantry_status launch_turn(const gantry_launch *l, const void *from, void *to, int64_t rows, int64_t columns,
                                 const void *sign)
{
    uint32_t across = (uint32_t)gy_tiles(columns, SQUARE);
    gy_grid grid = { (unsigned)(across * gy_tiles(rows, SQUARE)), 1, 1, SQUARE, LINES, 1 };
    return gy_cuda_image_launch(l, TURN, l->arg[0].dtype, grid,
                                (void *[]){ &from, &to, &rows, &columns, &sign, &across });
}

gantry_status gy_plain_qr_begin(const gantry_launch *l)
{
    return launch_turn(l, l->arg[0].data, gy_qr_scratch_of(l).columns, l->arg[0].rows, l->arg[2].rows, NULL);
}

gantry_status gy_plain_qr_upper(const gantry_launch *l)
{
    gy_qr_scratch s = gy_qr_scratch_of(l);
    int64_t m = l->arg[0].rows, n = l->arg[2].rows;
    void *r = l->arg[2].data;
    return gy_cuda_image_launch(l, UPPER, l->arg[0].dtype, gy_grid_for(n * n),
                                (void *[]){ &s.columns, &m, &r, &s.sign, &n });
}

gantry_status gy_plain_qr_end(const gantry_launch *l)
{
    gy_qr_scratch s = gy_qr_scratch_of(l);
    return launch_turn(l, s.columns, l->arg[1].data, l->arg[2].rows, l->arg[0].rows, s.sign);
}

static gantry_status launch_reflect(const gantry_launch *l, int64_t k, int32_t is_back)
{
    gy_qr_scratch s = gy_qr_scratch_of(l);
    int64_t m = l->arg[0].rows;
    return gy_cuda_image_launch(l, REFLECT, l->arg[0].dtype, (gy_grid){ 1, 1, 1, GY_IMAGE_THREADS, 1, 1 },
                                (void *[]){ &s.columns, &m, &k, &s.tau, &is_back });
}

static gantry_status launch_apply(const gantry_launch *l, int64_t k)
{
    gy_qr_scratch s = gy_qr_scratch_of(l);
    int64_t m = l->arg[0].rows, behind = l->arg[2].rows - 1 - k;
    return gy_cuda_image_launch(l, APPLY, l->arg[0].dtype, (gy_grid){ (unsigned)behind, 1, 1, GY_IMAGE_THREADS, 1, 1 },
                                (void *[]){ &s.columns, &m, &k, &s.tau });
}

gantry_status gy_plain_qr_launch(const gantry_launch *l)
{
    int64_t n = l->arg[2].rows;
    if (n == 0)
        return GANTRY_OK;
    GY_TRY(gy_plain_qr_begin(l));
    for (int64_t k = 0; k < n; k++) {
        GY_TRY(launch_reflect(l, k, 0));
        GY_TRY(launch_apply(l, k));
    }
    GY_TRY(gy_plain_qr_upper(l));
    for (int64_t k = n - 1; k >= 0; k--) {
        GY_TRY(launch_apply(l, k));
        GY_TRY(launch_reflect(l, k, 1));
    }
    return gy_plain_qr_end(l);
}

gantry_status gy_plain_qr_prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    uint64_t need = gy_qr_scratch_of(l).bytes;
    *scratch = need > *scratch ? need : *scratch;
    return gy_cuda_image_prepare(l, scratch, err);
}

const gy_cuda_image gy_plain_qr_image = { .code = gy_fatbin_qr,
                                          .dtypes = GY_WIDE_DTYPES,
                                          .variant = { "_turn", "_upper", "_reflect", "_apply" } };
const gy_cuda_kernel gy_plain_qr = { .name = "qr",
                                     .launch = gy_plain_qr_launch,
                                     .open = gy_cuda_image_open,
                                     .close = gy_cuda_image_close,
                                     .data = &gy_plain_qr_image,
                                     .early = gy_cuda_image_early,
                                     .prepare = gy_plain_qr_prepare,
                                     .why = gy_cuda_image_why };
