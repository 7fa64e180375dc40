/* SPDX-License-Identifier: Apache-2.0 */
/* The magnitude of the gradient by Sobel's operator, per channel. */
#include "kernels/image.h"
#include <math.h>

static float at(const gantry_arg *in, const gy_image *m, int64_t frame, int64_t y, int64_t x, int64_t c)
{
    y = y < 0 ? 0 : y >= m->height ? m->height - 1 : y;
    x = x < 0 ? 0 : x >= m->width ? m->width - 1 : x;
    int64_t i = gy_image_at(m, frame, y, x * m->channels + c);
    return in->dtype == GANTRY_U8 ? (float)((const uint8_t *)in->data)[i] : ((const float *)in->data)[i];
}

static float magnitude(const gantry_arg *in, const gy_image *m, int64_t f, int64_t y, int64_t x, int64_t c)
{
    float a = at(in, m, f, y - 1, x - 1, c), b = at(in, m, f, y - 1, x, c), d = at(in, m, f, y - 1, x + 1, c);
    float e = at(in, m, f, y, x - 1, c), g = at(in, m, f, y, x + 1, c);
    float h = at(in, m, f, y + 1, x - 1, c), i = at(in, m, f, y + 1, x, c), j = at(in, m, f, y + 1, x + 1, c);
    float gx = (d + 2 * g + j) - (a + 2 * e + h), gy = (h + 2 * i + j) - (a + 2 * b + d);
    return sqrtf(gx * gx + gy * gy);
}

static void store(const gantry_arg *out, int64_t i, float value)
{
    if (out->dtype == GANTRY_U8)
        ((uint8_t *)out->data)[i] = value >= 255 ? 255 : (uint8_t)(value + 0.5f);
    else
        ((float *)out->data)[i] = value;
}

/* Items are rows of all frames. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    gy_image m = gy_image_of(in), to = gy_image_of(out);
    for (int64_t i = first; i < last; i++)
        for (int64_t e = 0; e < to.pitch; e++) {
            int64_t pixel = (to.left + e) / m.channels, channel = (to.left + e) % m.channels;
            store(out, i * to.pitch + e, magnitude(in, &m, i / to.rows, to.first + i % to.rows, pixel, channel));
        }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_image to = gy_image_of(&l->arg[1]);
    return gantry_launch_cut(l, to.frames * to.rows, gy_grain_of_rows(8 * to.pitch), piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_image(l, 0, 1, 1, 1, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("image", GANTRY_READ, GY_IMAGE_DTYPES, 'T', "[h, w], [frames, h, w] or [frames, h, w, channels]"),
    GY_REGION("out", GANTRY_WRITE, GY_IMAGE_DTYPES, 'T', "the same shape; u8 is rounded, halves up, and stops at 255"),
};

const gantry_kernel gy_kernel_sobel = { .struct_size = sizeof(gantry_kernel),
                                        .name = "sobel",
                                        .summary = "out = strength of image's edges, borders repeated",
                                        GANTRY_KERNEL_ARGS(args),
                                        .flops = "14 * out.size",
                                        .bytes = "image.bytes + out.bytes",
                                        .host = run,
                                        .check = check };
