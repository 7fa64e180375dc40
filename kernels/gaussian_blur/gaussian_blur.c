/* SPDX-License-Identifier: Apache-2.0 */
/* A Gaussian filter, separable: columns first, then rows, in float, in strips that fit the nearest cache. */
#include "kernels/gaussian.h"
#include "kernels/image.h"
#include <math.h>

enum {
    MAX_RADIUS = GY_GAUSSIAN_RADIUS,
    MAX_CHANNELS = GY_GAUSSIAN_CHANNELS,
    STRIP = 1024,
    PAD = MAX_RADIUS * MAX_CHANNELS
};

static int64_t radius_of(double sigma)
{
    return (int64_t)ceil(3 * sigma);
}

gy_gaussian gy_gaussian_of(double sigma)
{
    gy_gaussian g = { .radius = (int32_t)radius_of(sigma) };
    double total = 0;
    for (int32_t k = -g.radius; k <= g.radius; k++)
        total += exp(-(double)(k * k) / (2 * sigma * sigma));
    for (int32_t k = -g.radius; k <= g.radius; k++)
        g.weight[k + g.radius] = (float)(exp(-(double)(k * k) / (2 * sigma * sigma)) / total);
    return g;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* strip[i] = the weighted column sum at element first + i of output row y, for `count` elements inside the row. */
static void filter_columns(const gantry_arg *in, const gy_image *m, int64_t frame, int64_t y, int64_t first,
                           int64_t count, int64_t radius, const float *weight, float *strip)
{
    for (int64_t i = 0; i < count; i++)
        strip[i] = 0;
    for (int64_t k = -radius; k <= radius; k++) {
        int64_t offset = gy_image_at(m, frame, clamp(y + k, 0, m->height - 1), first);
        const float w = weight[k + radius];
        if (in->dtype == GANTRY_U8) {
            const uint8_t *x = (const uint8_t *)in->data + offset;
            for (int64_t i = 0; i < count; i++)
                strip[i] += w * (float)x[i];
        } else {
            const float *x = (const float *)in->data + offset;
            for (int64_t i = 0; i < count; i++)
                strip[i] += w * x[i];
        }
    }
}

/* Repeats the border pixel over `pixels` pixels on the left (side 0) or on the right (side 1) of the `count` elements.
 */
static void extend(float *strip, int64_t count, int64_t channels, int64_t pixels, int side)
{
    for (int64_t p = 0; p < pixels; p++)
        for (int64_t c = 0; c < channels; c++)
            if (side == 0)
                strip[-(p + 1) * channels + c] = strip[c];
            else
                strip[count + p * channels + c] = strip[count - channels + c];
}

static void filter_rows(const float *strip, int64_t count, int64_t channels, int64_t radius, const float *weight,
                        float *result)
{
    for (int64_t i = 0; i < count; i++)
        result[i] = 0;
    for (int64_t k = -radius; k <= radius; k++)
        for (int64_t i = 0; i < count; i++)
            result[i] += weight[k + radius] * strip[i + k * channels];
}

static void store(const gantry_arg *out, int64_t offset, const float *value, int64_t count)
{
    if (out->dtype == GANTRY_U8)
        for (int64_t i = 0; i < count; i++)
            ((uint8_t *)out->data)[offset + i] = (uint8_t)(clamp((int64_t)(value[i] + 0.5f), 0, 255));
    else
        for (int64_t i = 0; i < count; i++)
            ((float *)out->data)[offset + i] = value[i];
}

static void blur_row(const gantry_launch *l, const gy_image *m, const gy_image *to, int64_t frame, int64_t y,
                     int64_t radius, const float *weight)
{
    float space[STRIP + 2 * PAD], result[STRIP];
    int64_t step = STRIP / m->channels; /* pixels of a strip */
    int64_t last = (to->left + to->pitch) / m->channels;
    for (int64_t x = to->left / m->channels; x < last; x += step) {
        int64_t end = x + step < last ? x + step : last;
        int64_t left = x - radius > 0 ? x - radius : 0, right = end + radius < m->width ? end + radius : m->width;
        float *strip = space + PAD - (x - left) * m->channels;
        int64_t have = (right - left) * m->channels;
        filter_columns(&l->arg[1], m, frame, y, left * m->channels, have, radius, weight, strip);
        if (left == 0)
            extend(strip, have, m->channels, radius - x > 0 ? radius - x : 0, 0);
        if (right == m->width)
            extend(strip, have, m->channels, end + radius - m->width > 0 ? end + radius - m->width : 0, 1);
        filter_rows(space + PAD, (end - x) * m->channels, m->channels, radius, weight, result);
        store(&l->arg[2], gy_image_at(to, frame, y, x * m->channels), result, (end - x) * m->channels);
    }
}

/* Items are rows of all frames. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gy_gaussian *g = data;
    gy_image m = gy_image_of(&l->arg[1]), to = gy_image_of(&l->arg[2]);
    for (int64_t i = first; i < last; i++)
        blur_row(l, &m, &to, i / to.rows, to.first + i % to.rows, g->radius, g->weight);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_gaussian g = gy_gaussian_of(l->arg[0].number);
    gy_image to = gy_image_of(&l->arg[2]);
    return gantry_launch_cut(l, to.frames * to.rows, gy_grain_of_rows((2 * g.radius + 1) * to.pitch), piece, &g);
}

gantry_status gy_check_blur(const gantry_launch *l, char *text, size_t size)
{
    double sigma = l->arg[0].number;
    if (!(sigma > 0) || radius_of(sigma) > MAX_RADIUS)
        return gy_check_fail(text, size, "\"sigma\" is %g; it must be above 0 and at most %g", sigma, MAX_RADIUS / 3.0);
    gantry_status status = gy_check_image(l, 1, 2, radius_of(sigma), radius_of(sigma), text, size);
    if (!status && gy_image_of(&l->arg[1]).channels > MAX_CHANNELS)
        return gy_check_fail(text, size, "\"image\" has %lld channels; at most %d",
                             (long long)gy_image_of(&l->arg[1]).channels, MAX_CHANNELS);
    return status;
}

static const gantry_kernel_arg args[] = {
    GY_NUMBER("sigma", "standard deviation in pixels; the filter reaches 3 sigma, rounded up"),
    GY_REGION("image", GANTRY_READ, GY_IMAGE_DTYPES, 'T', "[h, w], [frames, h, w] or [frames, h, w, channels]"),
    GY_REGION("out", GANTRY_WRITE, GY_IMAGE_DTYPES, 'T', "the same shape; u8 is rounded, halves up"),
};

const gantry_kernel gy_kernel_gaussian_blur = { .struct_size = sizeof(gantry_kernel),
                                                .name = "gaussian_blur",
                                                .summary = "out = image filtered by a Gaussian, borders repeated",
                                                GANTRY_KERNEL_ARGS(args),
                                                .flops = "out.size * (24 * sigma + 4)",
                                                .bytes = "image.bytes + out.bytes",
                                                .host = run,
                                                .check = gy_check_blur };
