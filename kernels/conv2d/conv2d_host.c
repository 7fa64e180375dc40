/* SPDX-License-Identifier: Apache-2.0 */
/* Image by image: a matrix of patches, with a row for each element of the window and a column for each pixel of y, and
 * a product. Computed in float but for f64. */
#include "base/memory.h"
#include "kernels/conv2d/conv2d.h"
#include <limits.h>
#include <string.h>

gy_conv gy_conv_of(const gantry_launch *l, int x, int w, int y)
{
    const gantry_arg *a = &l->arg[x], *b = &l->arg[w], *c = &l->arg[y];
    return (gy_conv){ .images = (int32_t)a->rows,
                      .channels = (int32_t)a->shape[1],
                      .height = (int32_t)a->shape[2],
                      .width = (int32_t)a->shape[3],
                      .results = (int32_t)c->shape[1],
                      .high = (int32_t)c->shape[2],
                      .wide = (int32_t)c->shape[3],
                      .window_height = (int32_t)b->shape[2],
                      .window_width = (int32_t)b->shape[3],
                      .stride = (int32_t)l->arg[GY_CONV_STRIDE].integer,
                      .pad = (int32_t)l->arg[GY_CONV_PAD].integer };
}

/* ---- elements ---- */

#define LOAD_ALL(dtype, type, wide, LOAD, STORE)                                                                       \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                                            \
            ((wide *)to)[i] = LOAD(((const type *)a->data)[first + i]);                                                \
        break;
#define STORE_ALL(dtype, type, wide, LOAD, STORE)                                                                      \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            wide old = sum ? LOAD(((type *)a->data)[first + i]) : 0;                                                   \
            ((type *)a->data)[first + i] = STORE(((const wide *)from)[i] + old);                                       \
        }                                                                                                              \
        break;

static void load(const gantry_arg *a, int64_t first, int64_t count, void *to)
{
    switch (a->dtype) {
        GY_FLOAT_TYPES(LOAD_ALL)
    default:
        return;
    }
}

static void store(const gantry_arg *a, int64_t first, int64_t count, const void *from, bool sum)
{
    switch (a->dtype) {
        GY_FLOAT_TYPES(STORE_ALL)
    default:
        return;
    }
}

/* ---- patches ---- */

/* Row after row: element (i, j) of the window over a channel, at all pixels of y. */
#define PATCHES(type)                                                                                                  \
    static void patch_##type(const gy_conv *c, type *image, type *patches, bool back)                                  \
    {                                                                                                                  \
        for (int32_t row = 0; row < c->channels * c->window_height * c->window_width; row++) {                         \
            int32_t j = row % c->window_width, i = row / c->window_width % c->window_height;                           \
            type *plane = image + (int64_t)(row / c->window_width / c->window_height) * c->height * c->width;          \
            for (int32_t y = 0; y < c->high; y++)                                                                      \
                for (int32_t x = 0; x < c->wide; x++, patches++) {                                                     \
                    int64_t r = (int64_t)y * c->stride + i - c->pad, q = (int64_t)x * c->stride + j - c->pad;          \
                    bool inside = r >= 0 && r < c->height && q >= 0 && q < c->width;                                   \
                    if (back && inside)                                                                                \
                        plane[r * c->width + q] += *patches;                                                           \
                    else if (!back)                                                                                    \
                        *patches = inside ? plane[r * c->width + q] : 0;                                               \
                }                                                                                                      \
        }                                                                                                              \
    }
PATCHES(float)
PATCHES(double)

/* The image's patches; with `back` they are added to the image. */
static void patch(gantry_dtype dtype, const gy_conv *c, void *image, void *patches, bool back)
{
    if (dtype == GANTRY_F32)
        patch_float(c, image, patches, back);
    else
        patch_double(c, image, patches, back);
}

/* ---- products ---- */

typedef struct work {
    gantry_dtype dtype;
    const gy_linalg *table;
    int64_t in, out, terms, pixels; /* elements of an image of x and of y, of a window, and of a channel of y */
    void *image, *result, *window, *patches;
} work;

static bool make_work(work *w, const gantry_launch *l, const gy_conv *c, gantry_dtype dtype)
{
    *w = (work){ .dtype = dtype == GANTRY_F64 ? GANTRY_F64 : GANTRY_F32, .table = gy_linalg_of(l) };
    size_t size = gantry_dtype_size(w->dtype);
    w->in = (int64_t)c->channels * c->height * c->width;
    w->pixels = (int64_t)c->high * c->wide;
    w->out = c->results * w->pixels;
    w->terms = (int64_t)c->channels * c->window_height * c->window_width;
    w->image = gy_calloc((size_t)w->in + 1, size);
    w->result = gy_calloc((size_t)w->out + 1, size);
    w->window = gy_calloc((size_t)(w->terms * c->results) + 1, size);
    w->patches = gy_calloc((size_t)(w->terms * w->pixels) + 1, size);
    return w->image && w->result && w->window && w->patches;
}

static void free_work(work *w)
{
    gy_free(w->image);
    gy_free(w->result);
    gy_free(w->window);
    gy_free(w->patches);
}

static void one_image(const work *w, const gy_conv *c, gy_conv_way way, const gantry_arg *x, const gantry_arg *y,
                      int64_t i)
{
    gy_matrix window = { w->window, c->results, w->terms, w->terms };
    gy_matrix patches = { w->patches, w->terms, w->pixels, w->pixels };
    gy_matrix result = { w->result, c->results, w->pixels, w->pixels };
    if (way == GY_CONV_GRAD_X) {
        load(y, i * w->out, w->out, w->result);
        w->table->gemm(w->dtype, 1, 0, 1, window, result, 0, patches);
        memset(w->image, 0, (size_t)w->in * gantry_dtype_size(w->dtype));
        patch(w->dtype, c, w->image, w->patches, true);
        store(x, i * w->in, w->in, w->image, false);
        return;
    }
    load(x, i * w->in, w->in, w->image);
    patch(w->dtype, c, w->image, w->patches, false);
    w->table->gemm(w->dtype, 0, 0, 1, window, patches, 0, result);
    store(y, i * w->out, w->out, w->result, y->access == GANTRY_SUM);
}

/* Numbers of rows and columns, and of those a tile further, are counted in 32 bits. */
enum { MOST = INT_MAX - 1023 };

typedef struct call {
    gy_conv conv;
    gy_conv_way way;
    int x, w, y; /* arguments */
} call;

static gantry_status do_images(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const call *c = data;
    work room;
    bool made = make_work(&room, l, &c->conv, l->arg[c->x].dtype);
    if (made)
        load(&l->arg[c->w], 0, c->conv.results * room.terms, room.window);
    for (int64_t i = first; i < last && made; i++)
        one_image(&room, &c->conv, c->way, &l->arg[c->x], &l->arg[c->y], i);
    free_work(&room);
    return made ? GANTRY_OK : GANTRY_E_NOMEM;
}

/* ---- the gradient of the window ---- */

/* Channels of x that are taken together: some 64 columns of the product, which follow from the shape alone. */
static int32_t channels_of_band(const gy_conv *c)
{
    int32_t each = c->window_height * c->window_width, band = (64 + each - 1) / each;
    return band < c->channels || c->channels == 0 ? band : c->channels;
}

/* It is a sum over all images, in their order, to which each channel of x gives columns of its own. */
static gantry_status add_band(const gantry_launch *l, const call *whole, int32_t channel)
{
    const gantry_arg *x = &l->arg[whole->x], *y = &l->arg[whole->y], *dw = &l->arg[whole->w];
    gy_conv c = whole->conv;
    int32_t band = channels_of_band(&c);
    int64_t plane = (int64_t)c.height * c.width, each = (int64_t)c.window_height * c.window_width;
    c.channels = channel + band < c.channels ? band : c.channels - channel;
    work w;
    bool made = make_work(&w, l, &c, x->dtype);
    gy_matrix window = { w.window, c.results, w.terms, w.terms }, patches = { w.patches, w.terms, w.pixels, w.pixels };
    gy_matrix result = { w.result, c.results, w.pixels, w.pixels };
    for (int64_t i = 0; i < c.images && made; i++) {
        load(x, (i * whole->conv.channels + channel) * plane, w.in, w.image);
        patch(w.dtype, &c, w.image, w.patches, false);
        load(y, i * w.out, w.out, w.result);
        w.table->gemm(w.dtype, 0, 1, 1, result, patches, 1, window);
    }
    for (int64_t r = 0; r < c.results && made; r++)
        store(dw, (r * whole->conv.channels + channel) * each, w.terms,
              (const char *)w.window + (size_t)(r * w.terms) * gantry_dtype_size(w.dtype), true);
    free_work(&w);
    return made ? GANTRY_OK : GANTRY_E_NOMEM;
}

static gantry_status do_bands(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const call *c = data;
    gantry_status status = GANTRY_OK;
    for (int64_t i = first; i < last && !status; i++)
        status = add_band(l, c, (int32_t)i * channels_of_band(&c->conv));
    return status;
}

gantry_status gy_conv_run(const gantry_launch *l, gy_conv_way way, int x, int w, int y)
{
    call c = { gy_conv_of(l, x, w, y), way, x, w, y };
    double pixels = (double)c.conv.results * (double)c.conv.high * (double)c.conv.wide;
    double each = (double)c.conv.window_height * (double)c.conv.window_width;
    if (way != GY_CONV_GRAD_W)
        return gy_linalg_cut(l, c.conv.images, 2 * pixels * (double)c.conv.channels * each, do_images, &c);
    int32_t band = channels_of_band(&c.conv);
    return gy_linalg_cut(l, (c.conv.channels + band - 1) / band, 2 * pixels * each * band * c.conv.images, do_bands,
                         &c);
}

/* ---- checks ---- */

static gantry_status check_numbers(const gantry_launch *l, char *text, size_t size)
{
    for (int i = GY_CONV_STRIDE; i <= GY_CONV_PAD; i++) {
        const gantry_arg *a = &l->arg[i];
        int least = i == GY_CONV_STRIDE ? 1 : 0;
        if (a->number < least || a->number > INT_MAX / 4 || a->number != (double)a->integer)
            return gy_check_fail(text, size, "\"%s\" is %.10g; it must be a whole number from %d to %d", a->name,
                                 a->number, least, INT_MAX / 4);
    }
    for (int i = GY_CONV_PAD + 1; i < l->args; i++) {
        const gantry_arg *a = &l->arg[i];
        if (a->rank != 4)
            return gy_check_fail(text, size, "\"%s\" has %d axes; it must have 4, the second of channels", a->name,
                                 (int)a->rank);
        if (gy_arg_size(a) > MOST)
            return gy_check_fail(text, size, "\"%s\" has %lld elements; it may have %d: split it by images", a->name,
                                 (long long)gy_arg_size(a), MOST);
    }
    return GANTRY_OK;
}

/* Pixels of y along axis 2 or 3. */
static gantry_status check_extent(const gantry_launch *l, int axis, int x, int w, int y, char *text, size_t size)
{
    int64_t padded = l->arg[x].shape[axis] + 2 * l->arg[GY_CONV_PAD].integer, window = l->arg[w].shape[axis];
    if (window < 1 || window > padded)
        return gy_check_fail(text, size, "along axis %d the window has %lld pixels and \"%s\" with its padding %lld",
                             axis, (long long)window, l->arg[x].name, (long long)padded);
    int64_t pixels = (padded - window) / l->arg[GY_CONV_STRIDE].integer + 1;
    if (pixels == l->arg[y].shape[axis])
        return GANTRY_OK;
    return gy_check_fail(text, size,
                         "\"%s\" has %lld pixels along axis %d; with this window, stride and padding it must have %lld",
                         l->arg[y].name, (long long)l->arg[y].shape[axis], axis, (long long)pixels);
}

gantry_status gy_conv_check(const gantry_launch *l, int x, int w, int y, char *text, size_t size)
{
    const gantry_arg *a = &l->arg[x], *b = &l->arg[w], *c = &l->arg[y];
    gantry_status status = check_numbers(l, text, size);
    if (status)
        return status;
    if (a->rows != c->rows)
        return gy_check_fail(text, size, "\"%s\" has %lld images and \"%s\" %lld; they must agree", a->name,
                             (long long)a->rows, c->name, (long long)c->rows);
    if (b->rows != c->shape[1] || b->shape[1] != a->shape[1])
        return gy_check_fail(text, size,
                             "\"%s\" is for %lld channels from %lld, \"%s\" has %lld and \"%s\" %lld; they must agree",
                             b->name, (long long)b->rows, (long long)b->shape[1], c->name, (long long)c->shape[1],
                             a->name, (long long)a->shape[1]);
    status = check_extent(l, 2, x, w, y, text, size);
    return status ? status : check_extent(l, 3, x, w, y, text, size);
}
