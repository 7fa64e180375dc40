/* SPDX-License-Identifier: Apache-2.0 */
/* qr: what is around the factorisation, whoever makes it, and that by qr.cu, which cuSOLVER does faster. */
#include "backends/cuda/kernels/plain_qr.h"

#include "base/align.h"
#include "base/error.h"
#include "kernels/qr/tall.h"

enum { SQUARE = 32, LINES = 8 }; /* as in triangle.cuh */
enum { TURN, UPPER, REFLECT, APPLY, FOLD, UNFOLD };

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

/* ---- blocks of rows ---- */

enum {
    LEAST_ROWS = 4, /* of a tall matrix for each column */
    LEVELS = 32     /* at most: a stack of triangles has a quarter of the rows that the blocks had */
};

/* A matrix of n columns in blocks of rows: their reflections, and the stack of their triangles, which is the matrix of
 * the next level and becomes its part of q; of the last, r. */
typedef struct level {
    int64_t rows;
    unsigned blocks;
    void *matrix, *v, *tau;
} level;

typedef struct levels {
    int count;
    void *sign;
    uint64_t bytes; /* of scratch */
    level of[LEVELS];
} levels;

bool gy_plain_qr_is_tall(const gantry_launch *l)
{
    int64_t m = l->arg[0].rows, n = l->arg[2].rows;
    return n > 0 && n <= GY_TALL_COLUMNS && m >= LEAST_ROWS * n;
}

static void *take(const gantry_launch *l, levels *s, uint64_t elements)
{
    void *at = (void *)((uintptr_t)l->scratch + s->bytes);
    s->bytes += gy_aligned(elements * gantry_dtype_size(l->arg[0].dtype));
    return at;
}

static levels levels_of(const gantry_launch *l)
{
    levels s = { 0 };
    uint64_t n = (uint64_t)l->arg[2].rows;
    int64_t most = GY_TALL_ROWS((int64_t)gantry_dtype_size(l->arg[0].dtype), GY_TALL_COLUMNS_OF((int64_t)n));
    s.sign = take(l, &s, n);
    for (int64_t rows = l->arg[0].rows, blocks = 0; blocks != 1; rows = blocks * (int64_t)n) {
        blocks = gy_tiles(rows, most);
        level *at = &s.of[s.count];
        at->rows = rows;
        at->blocks = (unsigned)blocks;
        at->matrix = s.count ? take(l, &s, (uint64_t)rows * n) : NULL;
        at->v = take(l, &s, (uint64_t)(blocks * most) * n);
        at->tau = take(l, &s, (uint64_t)blocks * n);
        s.count++;
    }
    return s;
}

static gantry_status fold(const gantry_launch *l, const levels *s, int i)
{
    const level *at = &s->of[i];
    bool is_last = i == s->count - 1;
    int32_t n = (int32_t)l->arg[2].rows;
    void *from = i ? at->matrix : l->arg[0].data, *to = is_last ? l->arg[2].data : s->of[i + 1].matrix;
    void *v = at->v, *tau = at->tau, *sign = is_last ? s->sign : NULL;
    int64_t rows = at->rows;
    return gy_cuda_image_launch(l, FOLD, l->arg[0].dtype, (gy_grid){ at->blocks, 1, 1, GY_TALL_THREADS, 1, 1 },
                                (void *[]){ &from, &rows, &n, &v, &tau, &to, &sign });
}

static gantry_status unfold(const gantry_launch *l, const levels *s, int i)
{
    const level *at = &s->of[i];
    int32_t n = (int32_t)l->arg[2].rows;
    void *c = i == s->count - 1 ? NULL : s->of[i + 1].matrix, *to = i ? at->matrix : l->arg[1].data;
    void *v = at->v, *tau = at->tau, *sign = s->sign;
    int64_t rows = at->rows;
    return gy_cuda_image_launch(l, UNFOLD, l->arg[0].dtype, (gy_grid){ at->blocks, 1, 1, GY_TALL_THREADS, 1, 1 },
                                (void *[]){ &c, &v, &tau, &sign, &rows, &n, &to });
}

static gantry_status launch_tall(const gantry_launch *l)
{
    levels s = levels_of(l);
    for (int i = 0; i < s.count; i++)
        GY_TRY(fold(l, &s, i));
    for (int i = s.count - 1; i >= 0; i--)
        GY_TRY(unfold(l, &s, i));
    return GANTRY_OK;
}

/* ---- all ---- */

gantry_status gy_plain_qr_launch(const gantry_launch *l)
{
    int64_t n = l->arg[2].rows;
    if (n == 0)
        return GANTRY_OK;
    if (gy_plain_qr_is_tall(l))
        return launch_tall(l);
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
    uint64_t need = gy_plain_qr_is_tall(l) ? levels_of(l).bytes : gy_qr_scratch_of(l).bytes;
    *scratch = need > *scratch ? need : *scratch;
    return gy_cuda_image_prepare(l, scratch, err);
}

const gy_cuda_image gy_plain_qr_image = { .code = gy_fatbin_qr,
                                          .dtypes = GY_WIDE_DTYPES,
                                          .variant = { "_turn", "_upper", "_reflect", "_apply", "_fold", "_unfold" } };
const gy_cuda_kernel gy_plain_qr = { .name = "qr",
                                     .launch = gy_plain_qr_launch,
                                     .open = gy_cuda_image_open,
                                     .close = gy_cuda_image_close,
                                     .data = &gy_plain_qr_image,
                                     .early = gy_cuda_image_early,
                                     .prepare = gy_plain_qr_prepare,
                                     .why = gy_cuda_image_why };
