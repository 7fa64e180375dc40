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

/* Arrays that lie behind each other are cut into bands of so many, which follow from the shape alone. */
static int64_t band_of(const gy_fft_shape *shape)
{
    int64_t band = gy_grain_of_rows(gy_fft_points(shape) * shape->inner);
    return band < shape->outer ? band : shape->outer;
}

static gantry_status transform_bands(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gy_fft_shape *whole = data;
    gantry_status status = GANTRY_OK;
    double scale = gy_fft_scale_of(l);
    int64_t band = band_of(whole);
    for (int64_t i = first; i < last && !status; i++) {
        gy_fft_shape shape = *whole;
        shape.outer = (i + 1) * band < whole->outer ? band : whole->outer - i * band;
        int64_t bytes = i * band * gy_fft_points(whole) * whole->inner * 2 * (int64_t)gantry_dtype_size(whole->dtype);
        const void *x = (const char *)l->arg[GY_FFT_X].data + bytes;
        void *y = (char *)l->arg[GY_FFT_Y].data + bytes;
        status = l->handle ? gy_fft_run(l->handle, &shape, x, y, scale) : transform_plain(&shape, x, y, scale);
    }
    return status;
}

static gantry_status run(const gantry_launch *l)
{
    gy_fft_shape shape = gy_fft_shape_of(l);
    if (gy_fft_numbers(&shape) == 0)
        return GANTRY_OK;
    int64_t band = band_of(&shape);
    return gantry_launch_cut(l, (shape.outer + band - 1) / band, 1, transform_bands, &shape);
}

static gantry_status check_axes(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *axis = &l->arg[GY_FFT_AXIS], *count = &l->arg[GY_FFT_COUNT], *x = &l->arg[GY_FFT_X],
                     *y = &l->arg[GY_FFT_Y];
    if (!(count->number >= 1 && count->number <= GY_FFT_AXES) || count->number != (double)count->integer)
        return gy_check_fail(text, size, "\"axes\" is %g; it must be a whole number from 1 to %d", count->number,
                             GY_FFT_AXES);
    for (const gantry_arg *a = x; a <= y; a++) {
        if (a->rank < 2 || a->shape[a->rank - 1] != 2)
            return gy_check_fail(text, size,
                                 "\"%s\" has %d axes, the last of %lld; it must have at least 2, the last of 2 for "
                                 "real and imaginary parts: shape [n, 2], or [transforms, n, 2]",
                                 a->name, (int)a->rank, (long long)a->shape[a->rank - 1]);
        if (axis->number != (double)axis->integer || gy_fft_first_axis(l, a) < 0)
            return gy_check_fail(
                text, size,
                "\"axis\" is %g and \"axes\" %d; \"%s\" has %d axes, the last of which is that of real and "
                "imaginary parts: \"axis\" must be from 0 to %d, or from %d to %d, which count from the end",
                axis->number, (int)count->integer, a->name, (int)a->rank, (int)(a->rank - 1 - count->integer),
                -(int)a->rank, -1 - (int)count->integer);
    }
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *inverse = &l->arg[GY_FFT_INVERSE];
    if (inverse->number != 0 && inverse->number != 1)
        return gy_check_fail(text, size, "\"inverse\" is %g; it must be 0 or 1", inverse->number);
    if (check_axes(l, text, size))
        return GANTRY_E_GRAPH;
    gy_fft_shape x = gy_fft_shape_of(l), y = gy_fft_shape_of_arg(l, &l->arg[GY_FFT_Y]);
    for (int k = 0; k < x.axes; k++)
        if (x.n[k] != y.n[k])
            return gy_check_fail(text, size, "\"x\" has transforms of %lld numbers and \"y\" of %lld; they must agree",
                                 (long long)x.n[k], (long long)y.n[k]);
    if (x.inner != y.inner)
        return gy_check_fail(text, size,
                             "\"x\" has %lld numbers behind the axes of the transform and \"y\" %lld; they must agree",
                             (long long)x.inner, (long long)y.inner);
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
    GY_NUMBER_OR("axis", -2, "the axis that is transformed, or the first; from the end if negative"),
    GY_NUMBER_OR("axes", 1, "how many axes from there on: 1 to 3"),
    GY_REGION("x", GANTRY_READ, GY_WIDE_DTYPES, 'T',
              "complex numbers, real and imaginary along the last axis, which has 2 elements: [n, 2] is one transform, "
              "[transforms, n, 2] several"),
    GY_REGION("y", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_fft = {
    .struct_size = sizeof(gantry_kernel),
    .name = "fft",
    .summary = "discrete Fourier transform of complex numbers along one to three axes, by default the last but one",
    GANTRY_KERNEL_ARGS(args),
    .flops = "2.5 * x.size * log2(max(2, (axis == 0) * x.rows, (axis == -2) * x.last1, (axis != 0 or axes > 1) * "
             "x.size / max(1, 2 * x.rows)))",
    .bytes = "2 * axes * (x.bytes + y.bytes)",
    .host = run,
    .check = check,
    .open = open_fft,
    .close = gy_fft_close
};
