/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/fft/fft.h"

static gantry_status transform_plain(const gy_fft_shape *shape, const void *x, void *y, double scale)
{
    void *plan = gy_fft_plain.plan(shape, x, y);
    gantry_status status = plan ? gy_fft_plain.run(plan, x, y, scale) : GANTRY_E_NOMEM;
    if (plan)
        gy_fft_plain.free(plan);
    return status;
}

static gantry_status run(const gantry_launch *l)
{
    gy_fft_shape shape = gy_fft_shape_of(l);
    const void *x = l->arg[GY_FFT_X].data;
    void *y = l->arg[GY_FFT_Y].data;
    if (shape.count == 0)
        return GANTRY_OK;
    double scale = gy_fft_scale_of(l);
    return l->handle ? gy_fft_run(l->handle, &shape, x, y, scale) : transform_plain(&shape, x, y, scale);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *inverse = &l->arg[GY_FFT_INVERSE], *x = &l->arg[GY_FFT_X], *y = &l->arg[GY_FFT_Y];
    if (inverse->number != 0 && inverse->number != 1)
        return gy_check_fail(text, size, "\"inverse\" is %g; it must be 0 or 1", inverse->number);
    for (const gantry_arg *a = x; a <= y; a++) {
        if (a->rank < 3 || a->shape[a->rank - 1] != 2)
            return gy_check_fail(text, size,
                                 "\"%s\" has %d axes, the last of %lld; it must have at least 3, the last of 2 for "
                                 "real and imaginary parts: shape [transforms, n, 2]",
                                 a->name, (int)a->rank, (long long)a->shape[a->rank - 1]);
    }
    if (x->shape[x->rank - 2] != y->shape[y->rank - 2])
        return gy_check_fail(text, size, "\"x\" has transforms of %lld numbers and \"y\" of %lld; they must agree",
                             (long long)x->shape[x->rank - 2], (long long)y->shape[y->rank - 2]);
    return gy_check_same_size(l, GY_FFT_X, GY_FFT_Y, text, size);
}

static gantry_status open_fft(void **handle, int32_t device_ordinal)
{
    (void)device_ordinal;
    return gy_fft_open(handle, &gy_fft_plain);
}

static const gantry_kernel_arg args[] = {
    GY_NUMBER_OR("inverse", 0, "1: with the other sign, and divided by n"),
    GY_SCALE_OR("scale", 1, "a further factor of the result"),
    GY_REGION("x", GANTRY_READ, GY_WIDE_DTYPES, 'T',
              "complex numbers: the last axis has 2 elements, real and imaginary"),
    GY_REGION("y", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_fft = { sizeof(gantry_kernel),
                                      "fft",
                                      "discrete Fourier transform of complex numbers along the last axis but one",
                                      GY_ARGS(args),
                                      0,
                                      "2.5 * x.size * log2(max(2, x.size / max(1, 2 * x.rows)))",
                                      "2 * (x.bytes + y.bytes)",
                                      NULL,
                                      run,
                                      check,
                                      open_fft,
                                      gy_fft_close };
