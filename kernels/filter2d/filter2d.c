/* SPDX-License-Identifier: Apache-2.0 */
/* A weighted sum of the pixels around each, per channel: rows of weights from top to bottom, each from left to right,
 * added up in float in that order. */
#include "kernels/image.h"

enum { STRIP = 1024 }; /* elements of a row that are in work at once */

/* Elements [first, last) of a row; `shift`: how far behind them lie those that are added. */
typedef struct strip {
    int64_t first, last, shift;
} strip;

/* The element for one that lies `shift` behind `element`: that of the border's pixel outside the row. */
static int64_t source(const gy_image *m, int64_t element, int64_t shift)
{
    int64_t at = element + shift, channel = element % m->channels;
    return at < 0 ? channel : at < m->row_elements ? at : m->row_elements - m->channels + channel;
}

#define ADD_TO(TYPE)                                                                                                   \
    static void add_##TYPE(float *sum, const TYPE *row, float w, const gy_image *m, strip s)                           \
    {                                                                                                                  \
        int64_t low = -s.shift, high = m->row_elements - s.shift;                                                      \
        low = low < s.first ? s.first : low > s.last ? s.last : low;                                                   \
        high = high > s.last ? s.last : high < low ? low : high;                                                       \
        for (int64_t e = s.first; e < low; e++)                                                                        \
            sum[e - s.first] += w * (float)row[source(m, e, s.shift)];                                                 \
        for (int64_t e = low; e < high; e++)                                                                           \
            sum[e - s.first] += w * (float)row[e + s.shift];                                                           \
        for (int64_t e = high; e < s.last; e++)                                                                        \
            sum[e - s.first] += w * (float)row[source(m, e, s.shift)];                                                 \
    }
ADD_TO(uint8_t)
ADD_TO(float)

static void store(const gantry_arg *out, int64_t offset, const float *value, int64_t count)
{
    for (int64_t i = 0; i < count && out->dtype == GANTRY_U8; i++)
        ((uint8_t *)out->data)[offset + i] = value[i] >= 255 ? 255 : value[i] > 0 ? (uint8_t)(value[i] + 0.5f) : 0;
    for (int64_t i = 0; i < count && out->dtype == GANTRY_F32; i++)
        ((float *)out->data)[offset + i] = value[i];
}

/* Adds up what row `y` of the result wants of the row `k` rows of weights down. */
static void add_row(const gantry_launch *l, const gy_image *m, int64_t frame, int64_t y, int64_t k, strip s, float *sum)
{
    const gantry_arg *weights = &l->arg[0], *in = &l->arg[1];
    const float *w = (const float *)weights->data + k * weights->shape[1];
    int64_t row = y + k - weights->rows / 2;
    int64_t offset = gy_image_at(m, frame, row < 0 ? 0 : row >= m->height ? m->height - 1 : row, 0);
    for (int64_t i = 0; i < weights->shape[1]; i++) {
        s.shift = (i - weights->shape[1] / 2) * m->channels;
        if (in->dtype == GANTRY_U8)
            add_uint8_t(sum, (const uint8_t *)in->data + offset, w[i], m, s);
        else
            add_float(sum, (const float *)in->data + offset, w[i], m, s);
    }
}

static void filter_row(const gantry_launch *l, const gy_image *m, const gy_image *to, int64_t frame, int64_t y)
{
    int64_t end = to->left + to->pitch;
    for (int64_t first = to->left; first < end; first += STRIP) {
        float sum[STRIP] = { 0 };
        strip s = { first, first + STRIP < end ? first + STRIP : end, 0 };
        for (int64_t k = 0; k < l->arg[0].rows; k++)
            add_row(l, m, frame, y, k, s, sum);
        store(&l->arg[2], gy_image_at(to, frame, y, first), sum, s.last - first);
    }
}

/* Items are rows of all frames. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    gy_image m = gy_image_of(&l->arg[1]), to = gy_image_of(&l->arg[2]);
    for (int64_t i = first; i < last; i++)
        filter_row(l, &m, &to, i / to.rows, to.first + i % to.rows);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_image to = gy_image_of(&l->arg[2]);
    int64_t work = to.pitch * gy_arg_size(&l->arg[0]);
    return gantry_launch_cut(l, to.frames * to.rows, gy_grain_of_rows(work), piece, NULL);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("weights", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_F32), 0, "[kh, kw], both odd; not turned around"),
    GY_REGION("image", GANTRY_READ, GY_IMAGE_DTYPES, 'T', "[h, w], [frames, h, w] or [frames, h, w, channels]"),
    GY_REGION("out", GANTRY_WRITE, GY_IMAGE_DTYPES, 'T',
              "the same shape; u8 is rounded, halves up, and stops at 0 and 255"),
};

const gantry_kernel gy_kernel_filter2d = { .struct_size = sizeof(gantry_kernel),
                                           .name = "filter2d",
                                           .summary =
                                               "out = sums of image around each pixel by weights, borders repeated",
                                           GANTRY_KERNEL_ARGS(args),
                                           .flops = "2 * weights.size * out.size",
                                           .bytes = "weights.bytes + image.bytes + out.bytes",
                                           .host = run,
                                           .check = gy_check_filter };
