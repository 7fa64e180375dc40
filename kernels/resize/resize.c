/* SPDX-License-Identifier: Apache-2.0 */
/* Between the four nearest pixels, per channel. Centres of pixels lie at halves, so that edges of both images meet. */
#include "kernels/image.h"
#include <math.h>

/* The pixel before the place of pixel `to` of `out` pixels among `in`, and how far it is behind that. The borders
 * repeat. */
typedef struct place {
    int64_t first, second;
    float part;
} place;

static place place_of(int64_t to, int64_t out, int64_t in)
{
    double at = ((double)to + 0.5) * ((double)in / (double)out) - 0.5, before = floor(at);
    int64_t first = (int64_t)before;
    place p = { first, first + 1, (float)(at - before) };
    p.first = p.first < 0 ? 0 : p.first;
    p.second = p.second < in ? p.second : in - 1;
    return p;
}

static float pixel(const gantry_arg *in, int64_t i)
{
    return in->dtype == GANTRY_U8 ? (float)((const uint8_t *)in->data)[i] : ((const float *)in->data)[i];
}

static float between(float a, float b, float part)
{
    return a + (b - a) * part;
}

static void store(const gantry_arg *out, int64_t i, float value)
{
    if (out->dtype == GANTRY_U8)
        ((uint8_t *)out->data)[i] = value >= 255 ? 255 : (uint8_t)(value + 0.5f);
    else
        ((float *)out->data)[i] = value;
}

static void resize_row(const gantry_launch *l, const gy_image *m, const gy_image *to, int64_t frame, int64_t y)
{
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    place down = place_of(y, to->rows, m->rows);
    int64_t top = (frame * m->rows + down.first) * m->pitch, at = (frame * to->rows + y) * to->pitch;
    int64_t bottom = (frame * m->rows + down.second) * m->pitch;
    int64_t from = m->pitch / m->channels, width = to->pitch / to->channels;
    for (int64_t x = 0; x < width; x++) {
        place across = place_of(x, width, from);
        int64_t left = across.first * m->channels, right = across.second * m->channels;
        for (int64_t c = 0; c < m->channels; c++, at++) {
            float upper = between(pixel(in, top + left + c), pixel(in, top + right + c), across.part);
            float lower = between(pixel(in, bottom + left + c), pixel(in, bottom + right + c), across.part);
            store(out, at, between(upper, lower, down.part));
        }
    }
}

/* Items are rows of all frames. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    gy_image m = gy_image_of(&l->arg[0]), to = gy_image_of(&l->arg[1]);
    for (int64_t i = first; i < last; i++)
        resize_row(l, &m, &to, i / to.rows, i % to.rows);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_image to = gy_image_of(&l->arg[1]);
    return gantry_launch_cut(l, to.frames * to.rows, gy_grain_of_rows(8 * to.pitch), piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[0], *y = &l->arg[1];
    if (x->rank < 3 || x->rank > 4 || y->rank != x->rank)
        return gy_check_fail(text, size,
                             "\"image\" has %d axes and \"out\" %d; both must be [frames, height, width], or [frames, "
                             "height, width, channels]",
                             (int)x->rank, (int)y->rank);
    if (x->rows != y->rows)
        return gy_check_fail(text, size, "\"image\" has %lld frames and \"out\" %lld; they must agree",
                             (long long)x->rows, (long long)y->rows);
    if (x->rank == 4 && x->shape[3] != y->shape[3])
        return gy_check_fail(text, size, "\"image\" has %lld channels and \"out\" %lld; they must agree",
                             (long long)x->shape[3], (long long)y->shape[3]);
    return GANTRY_OK;
}

static const gantry_kernel_arg args[] = {
    GY_REGION("image", GANTRY_READ, GY_IMAGE_DTYPES, 'T', "[frames, h, w] or [frames, h, w, channels]"),
    GY_REGION("out", GANTRY_WRITE, GY_IMAGE_DTYPES, 'T',
              "as many frames and channels, of any height and width; u8 is rounded, halves up"),
};

const gantry_kernel gy_kernel_resize = {
    .struct_size = sizeof(gantry_kernel),
    .name = "resize",
    .summary = "out = image in another size, bilinear; borders repeated, no filter before",
    GANTRY_KERNEL_ARGS(args),
    .flops = "12 * out.size",
    .bytes = "image.bytes + out.bytes",
    .host = run,
    .check = check
};
