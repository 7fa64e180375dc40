/* SPDX-License-Identifier: Apache-2.0 */
/* fft by fft.cu: what cuFFT does faster. */
#include "backends/cuda/kernels/plain.h"
#include "kernels/fft/fft.h"

#include "base/error.h"

enum { PASS, PAD, FILTER, UNPAD }; /* variants */

/* The first arguments of the functions; fft.cu has the same. */
typedef struct pass {
    int64_t n, l, count, inner;
    int32_t radix, sign;
    double scale;
} pass;
typedef struct padding {
    int64_t n, m, count, inner;
    int32_t sign;
    double scale;
} padding;

static gantry_status launch_pass(const gantry_launch *l, const pass *p, const void *x, void *y)
{
    return gy_cuda_image_launch(l, PASS, l->arg[GY_FFT_X].dtype, gy_grid_for(p->count * (p->n / p->radix)),
                                (void *[]){ (void *)(uintptr_t)p, &x, &y });
}

/* All passes from x to y by way of `spare`, and of `other` where x is y and passes are odd in number and more than one.
 */
static gantry_status launch_passes(const gantry_launch *l, const gy_fft_passes *passes, pass p, const void *x, void *y,
                                   void *spare, void *other)
{
    double scale = p.scale;
    gantry_status status = GANTRY_OK;
    p.l = 1;
    for (int i = 0; i < passes->count && !status; i++) {
        int left = passes->count - 1 - i;
        void *to = left % 2 ? spare : left && x == y ? other : y;
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
static gantry_status launch_padded(const gantry_launch *l, pass line, const void *x, void *y)
{
    padding p = { line.n, gy_fft_padded(line.n), line.count, line.inner, line.sign, line.scale };
    int64_t rows = (p.count + 1) * p.m;
    void *a = l->scratch, *b = (char *)a + rows * pair_bytes(l), *spare = (char *)b + rows * pair_bytes(l);
    gy_fft_passes passes;
    gy_fft_passes_of(p.m, &passes);
    pass forward = { .n = p.m, .count = p.count + 1, .inner = 1, .sign = -1, .scale = 1 };
    GY_TRY(launch_padding(l, PAD, rows, (void *[]){ &p, &x, &a }));
    GY_TRY(launch_passes(l, &passes, forward, a, b, spare, NULL));
    GY_TRY(launch_padding(l, FILTER, p.count * p.m, (void *[]){ &p, &b }));
    forward.count = p.count;
    GY_TRY(launch_passes(l, &passes, forward, b, a, spare, NULL));
    return launch_padding(l, UNPAD, p.count * p.n, (void *[]){ &p, &a, &y });
}

/* Transforms along an axis: what launch_passes needs to know of them. */
static pass pass_along(const gy_fft_shape *s, int axis)
{
    return (pass){ .n = s->n[axis],
                   .count = gy_fft_numbers(s) / s->n[axis],
                   .inner = gy_fft_stride(s, axis),
                   .sign = s->inverse ? 1 : -1,
                   .scale = 1 };
}

/* Along the first axis from x to y, along others in y. */
gantry_status gy_plain_fft_launch(const gantry_launch *l)
{
    gy_fft_shape s = gy_fft_shape_of(l);
    gy_fft_passes passes;
    const void *x = l->arg[GY_FFT_X].data;
    void *y = l->arg[GY_FFT_Y].data, *spare = l->scratch;
    void *other = (char *)spare + gy_fft_numbers(&s) * pair_bytes(l);
    gantry_status status = GANTRY_OK;
    for (int k = 0; k < s.axes && gy_fft_numbers(&s) && !status; k++) {
        pass p = pass_along(&s, k);
        p.scale = k == s.axes - 1 ? gy_fft_scale_of(l) : 1;
        status = !gy_fft_passes_of(p.n, &passes) ? launch_padded(l, p, x, y)
                                                 : launch_passes(l, &passes, p, x, y, spare, other);
        x = y;
    }
    return status;
}

gantry_status gy_plain_scale_complex(const gantry_launch *l)
{
    gy_fft_shape s = gy_fft_shape_of(l);
    void *y = l->arg[GY_FFT_Y].data;
    pass p = {
        .n = gy_fft_numbers(&s), .l = 1, .count = 1, .inner = 1, .radix = 1, .sign = 1, .scale = gy_fft_scale_of(l)
    };
    return launch_pass(l, &p, y, y);
}

/* Bytes of scratch for transforms along an axis. */
static uint64_t scratch_along(const gantry_launch *l, const gy_fft_shape *s, int axis)
{
    pass p = pass_along(s, axis);
    gy_fft_passes passes;
    int64_t numbers = p.n * p.count;
    if (!gy_fft_passes_of(p.n, &passes))
        numbers = 3 * (p.count + 1) * gy_fft_padded(p.n);
    else if (passes.count == 1)
        numbers = 0;
    else if (axis && passes.count % 2)
        numbers *= 2;
    return (uint64_t)(numbers * pair_bytes(l));
}

static gantry_status prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    gy_fft_shape s = gy_fft_shape_of(l);
    for (int k = 0; k < s.axes && gy_fft_numbers(&s); k++) {
        uint64_t need = scratch_along(l, &s, k);
        *scratch = need > *scratch ? need : *scratch;
    }
    return gy_cuda_image_prepare(l, scratch, err);
}

const gy_cuda_image gy_plain_fft_image = { .code = gy_fatbin_fft,
                                           .dtypes = GY_WIDE_DTYPES,
                                           .variant = { "_pass", "_pad", "_filter", "_unpad" } };
const gy_cuda_kernel gy_plain_fft = { .name = "fft",
                                      .launch = gy_plain_fft_launch,
                                      .open = gy_cuda_image_open,
                                      .close = gy_cuda_image_close,
                                      .data = &gy_plain_fft_image,
                                      .early = gy_cuda_image_early,
                                      .prepare = prepare,
                                      .why = gy_cuda_image_why };
