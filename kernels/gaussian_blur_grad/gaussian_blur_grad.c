/* SPDX-License-Identifier: Apache-2.0 */
/* The adjoint of gaussian_blur's image, of that of its result: columns first, then rows, in float, in strips as the
 * blur itself. */
#include "kernels/image.h"
#include "kernels/image_grad.h"

enum { STRIP = 1024, PAD = GY_GAUSSIAN_RADIUS * GY_GAUSSIAN_CHANNELS };

/* strip[i]: element first + i of row `row`, by columns; `image`: element 0 of row 0 of the adjoint of the result. */
static void take_columns(const gy_gaussian *g, const gy_image *m, const float *image, int64_t row, int64_t first,
                         int64_t count, float *strip)
{
    gy_around down = gy_around_of(row, m->height, g->radius);
    for (int64_t i = 0; i < count; i++)
        strip[i] = 0;
    for (int64_t y = down.first; y <= down.last; y++) {
        const float weight = gy_gaussian_taken(g, row, y, m->height), *line = image + y * m->pitch + first;
        for (int64_t i = 0; i < count; i++)
            strip[i] += weight * line[i];
    }
}

/* Pixels [x, end) of a row, from a strip that begins with pixel `left`. */
static void take_rows(const gy_gaussian *g, const gy_image *m, const float *strip, int64_t left, int64_t x, int64_t end,
                      float *line)
{
    for (int64_t pixel = x; pixel < end; pixel++) {
        gy_around across = gy_around_of(pixel, m->width, g->radius);
        float *to = line + pixel * m->channels;
        for (int64_t c = 0; c < m->channels; c++)
            to[c] = 0;
        for (int64_t from = across.first; from <= across.last; from++) {
            const float weight = gy_gaussian_taken(g, pixel, from, m->width);
            for (int64_t c = 0; c < m->channels; c++)
                to[c] += weight * strip[(from - left) * m->channels + c];
        }
    }
}

/* Items are rows of all frames. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gy_gaussian *g = data;
    gy_image from = gy_image_of(&l->arg[1]), to = gy_image_of(&l->arg[2]);
    float strip[STRIP + 2 * PAD];
    int64_t step = STRIP / to.channels; /* pixels of a strip */
    for (int64_t i = first; i < last; i++) {
        int64_t row = to.first + i % to.rows, frame = i / to.rows;
        const float *image = (const float *)l->arg[1].data + gy_image_at(&from, frame, 0, 0);
        float *line = (float *)l->arg[2].data + i * to.pitch - to.left;
        int64_t behind = (to.left + to.pitch) / to.channels;
        for (int64_t x = to.left / to.channels; x < behind; x += step) {
            int64_t end = x + step < behind ? x + step : behind;
            int64_t left = x > g->radius ? x - g->radius : 0;
            int64_t right = end + g->radius < to.width ? end + g->radius : to.width;
            take_columns(g, &from, image, row, left * to.channels, (right - left) * to.channels, strip);
            take_rows(g, &to, strip, left, x, end, line);
        }
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_gaussian g = gy_gaussian_of(l->arg[0].number);
    gy_image to = gy_image_of(&l->arg[2]);
    return gantry_launch_cut(l, to.frames * to.rows, gy_grain_of_rows((2 * g.radius + 1) * to.pitch), piece, &g);
}

static const gantry_kernel_arg args[] = {
    GY_NUMBER("sigma", "standard deviation in pixels; the filter reaches 3 sigma, rounded up"),
    GY_REGION("dout", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_F32), 0,
              "adjoint of the filter's result: [h, w], [frames, h, w] or [frames, h, w, channels]"),
    GY_REGION("dimage", GANTRY_WRITE, GANTRY_DTYPE_BIT(GANTRY_F32), 0, "adjoint of its image; the same shape"),
};

const gantry_kernel gy_kernel_gaussian_blur_grad = { .struct_size = sizeof(gantry_kernel),
                                                     .name = "gaussian_blur_grad",
                                                     .summary =
                                                         "dimage = dout times the matrix of gaussian_blur, transposed",
                                                     GANTRY_KERNEL_ARGS(args),
                                                     .flops = "dimage.size * (24 * sigma + 4)",
                                                     .bytes = "dout.bytes + dimage.bytes",
                                                     .host = run,
                                                     .check = gy_check_blur };
