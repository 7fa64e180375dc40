/* SPDX-License-Identifier: Apache-2.0 */
/* fft by fft.cu: what cuFFT does faster. */
#include "backends/cuda/kernels/plain.h"
#include "kernels/fft/fft.h"

#include "base/error.h"

enum { PASS, PAD, FILTER, UNPAD }; /* variants */

/* The first arguments of the functions; fft.cu has the same. */
typedef struct pass {
    int64_t n, l, count;
    int32_t radix, sign;
    double scale;
} pass;
typedef struct padding {
    int64_t n, m, count;
    int32_t sign;
    double scale;
} padding;

static gantry_status launch_pass(const gantry_launch *l, const pass *p, const void *x, void *y)
{
    return gy_cuda_image_launch(l, PASS, l->arg[GY_FFT_X].dtype, gy_grid_for(p->count * (p->n / p->radix)),
                                (void *[]){ (void *)(uintptr_t)p, &x, &y });
}

/* All passes from x to y by way of `spare`; x may be `spare` where they are even in number, and y where they are odd.
 */
static gantry_status launch_passes(const gantry_launch *l, const gy_fft_passes *passes, pass p, const void *x, void *y,
                                   void *spare)
{
    double scale = p.scale;
    gantry_status status = GANTRY_OK;
    p.l = 1;
    for (int i = 0; i < passes->count && !status; i++) {
        int left = passes->count - 1 - i;
        void *to = left % 2 ? spare : y;
        p.radix = passes->radix[i];
        p.scale = left ? 1 : scale;
        status = launch_pass(l, &p, x, to);
        x = to;
        p.l *= p.radix;
    }
    return status;
}

static int64_t pair_bytes(const gantry_launch *l)
{
    return 2 * (int64_t)gantry_dtype_size(l->arg[GY_FFT_X].dtype);
}

static gantry_status launch_padding(const gantry_launch *l, int variant, int64_t count, void **params)
{
    return gy_cuda_image_launch(l, variant, l->arg[GY_FFT_X].dtype, gy_grid_for(count), params);
}

/* Scratch: three stacks of padded rows, as a pass does not work in place. */
static gantry_status launch_padded(const gantry_launch *l, const gy_fft_shape *s, double scale)
{
    padding p = { s->n, gy_fft_padded(s->n), s->count, s->inverse ? 1 : -1, scale };
    int64_t rows = (p.count + 1) * p.m;
    const void *x = l->arg[GY_FFT_X].data;
    void *a = l->scratch, *b = (char *)a + rows * pair_bytes(l), *spare = (char *)b + rows * pair_bytes(l);
    void *y = l->arg[GY_FFT_Y].data;
    gy_fft_passes passes;
    gy_fft_passes_of(p.m, &passes);
    pass forward = { .n = p.m, .count = p.count + 1, .sign = -1, .scale = 1 };
    GY_TRY(launch_padding(l, PAD, rows, (void *[]){ &p, &x, &a }));
    GY_TRY(launch_passes(l, &passes, forward, a, b, spare));
    GY_TRY(launch_padding(l, FILTER, p.count * p.m, (void *[]){ &p, &b }));
    forward.count = p.count;
    GY_TRY(launch_passes(l, &passes, forward, b, a, spare));
    return launch_padding(l, UNPAD, p.count * p.n, (void *[]){ &p, &a, &y });
}

gantry_status gy_plain_fft_launch(const gantry_launch *l)
{
    gy_fft_shape s = gy_fft_shape_of(l);
    gy_fft_passes passes;
    if (s.count == 0)
        return GANTRY_OK;
    if (!gy_fft_passes_of(s.n, &passes))
        return launch_padded(l, &s, gy_fft_scale_of(l));
    pass p = { .n = s.n, .count = s.count, .sign = s.inverse ? 1 : -1, .scale = gy_fft_scale_of(l) };
    return launch_passes(l, &passes, p, l->arg[GY_FFT_X].data, l->arg[GY_FFT_Y].data, l->scratch);
}

gantry_status gy_plain_scale_complex(const gantry_launch *l)
{
    gy_fft_shape s = gy_fft_shape_of(l);
    void *y = l->arg[GY_FFT_Y].data;
    pass p = { .n = s.n * s.count, .l = 1, .count = 1, .radix = 1, .sign = 1, .scale = gy_fft_scale_of(l) };
    return launch_pass(l, &p, y, y);
}

static gantry_status prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    gy_fft_shape s = gy_fft_shape_of(l);
    gy_fft_passes passes;
    uint64_t need = 0;
    if (!gy_fft_passes_of(s.n, &passes))
        need = 3 * (uint64_t)((s.count + 1) * gy_fft_padded(s.n) * pair_bytes(l));
    else if (passes.count > 1)
        need = (uint64_t)(s.count * s.n * pair_bytes(l));
    *scratch = need > *scratch ? need : *scratch;
    return gy_cuda_image_prepare(l, scratch, err);
}

const gy_cuda_image gy_plain_fft_image = { gy_fatbin_fft, GY_WIDE_DTYPES, { "_pass", "_pad", "_filter", "_unpad" } };
const gy_cuda_kernel gy_plain_fft = { .name = "fft",
                                      .launch = gy_plain_fft_launch,
                                      .open = gy_cuda_image_open,
                                      .close = gy_cuda_image_close,
                                      .data = &gy_plain_fft_image,
                                      .early = gy_cuda_image_early,
                                      .prepare = prepare,
                                      .why = gy_cuda_image_why };
