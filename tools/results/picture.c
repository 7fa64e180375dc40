/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays as pictures, and pictures as PNG files by libpng. */
#include "results.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef GANTRY_PNG
#include <png.h>
#endif

bool picture_sides(picture *p, const array *a)
{
    if (a->rank < 2 || a->count == 0)
        return false;
    int64_t last = a->shape[a->rank - 1];
    bool colours = a->rank > 2 && (last == 1 || last == 3);
    p->channels = colours ? (int)last : 1;
    p->width = colours ? a->shape[a->rank - 2] : last;
    p->height = (int64_t)(a->count / (uint64_t)(p->width * p->channels));
    return p->width <= MOST_PIXELS_ASIDE && p->height <= MOST_PIXELS_ASIDE;
}

static unsigned char shade(double x, double low, double high)
{
    if (isnan(x) || x <= low)
        return 0;
    if (x >= high)
        return 255;
    /* Halves first, since the difference of two finite numbers may be infinite. */
    return (unsigned char)lround((x / 2 - low / 2) / (high / 2 - low / 2) * 255);
}

bool make_picture(picture *p, const array *a, char note[NOTE_TEXT])
{
    char low[ELEMENT_TEXT], high[ELEMENT_TEXT];
    p->pixel = picture_sides(p, a) ? malloc(a->count) : NULL;
    if (!p->pixel)
        return false;
    if (a->dtype == GANTRY_U8) {
        memcpy(p->pixel, a->data, a->count);
        snprintf(note, NOTE_TEXT, "bytes as they are");
        return true;
    }
    summary s = summarize_array(a);
    for (uint64_t i = 0; i < a->count; i++)
        p->pixel[i] = s.finite ? shade(element_real(a->data, a->dtype, i), s.low, s.high) : 0;
    if (s.finite)
        snprintf(note, NOTE_TEXT, "0 is %s, 255 is %s%s", element_text(low, a, s.low_at),
                 element_text(high, a, s.high_at), s.nans ? ", and NaN is 0" : "");
    else
        snprintf(note, NOTE_TEXT, "no finite value: all of it is 0");
    return true;
}

/* ---- a curve ---- */

enum { PLOT_WIDTH = 640, PLOT_HEIGHT = 240, EDGE = 8, INK = 0, FRAME = 192, PAPER = 255 };

static void draw_frame(picture *p)
{
    memset(p->pixel, PAPER, PLOT_WIDTH * PLOT_HEIGHT);
    for (int x = 0; x < PLOT_WIDTH; x++)
        p->pixel[x] = p->pixel[(PLOT_HEIGHT - 1) * PLOT_WIDTH + x] = FRAME;
    for (int y = 0; y < PLOT_HEIGHT; y++)
        p->pixel[y * PLOT_WIDTH] = p->pixel[y * PLOT_WIDTH + PLOT_WIDTH - 1] = FRAME;
}

static int pixel_row(double y, double low, double high)
{
    double part = high > low ? (y / 2 - low / 2) / (high / 2 - low / 2) : 0.5;
    return EDGE + (int)lround((1 - part) * (PLOT_HEIGHT - 1 - 2 * EDGE));
}

bool make_plot_picture(picture *p, const array *a, char note[NOTE_TEXT])
{
    char low[ELEMENT_TEXT], high[ELEMENT_TEXT];
    span column[PLOT_WIDTH - 2 * EDGE];
    *p = (picture){ PLOT_WIDTH, PLOT_HEIGHT, 1, malloc(PLOT_WIDTH * PLOT_HEIGHT) };
    if (!p->pixel)
        return false;
    curve_spans(a, column, PLOT_WIDTH - 2 * EDGE);
    summary s = summarize_array(a);
    draw_frame(p);
    for (int x = 0; x < PLOT_WIDTH - 2 * EDGE; x++)
        for (int y = isnan(column[x].low) ? PLOT_HEIGHT : pixel_row(column[x].high, s.low, s.high);
             y < PLOT_HEIGHT && y <= pixel_row(column[x].low, s.low, s.high); y++)
            p->pixel[y * PLOT_WIDTH + EDGE + x] = INK;
    if (s.finite)
        snprintf(note, NOTE_TEXT, "from %s below to %s above", element_text(low, a, s.low_at),
                 element_text(high, a, s.high_at));
    else
        snprintf(note, NOTE_TEXT, "no finite value");
    return true;
}

/* ---- PNG ---- */

#ifdef GANTRY_PNG
const char *png_missing(void)
{
    return NULL;
}

void *encode_png(const picture *p, size_t *length, char why[NOTE_TEXT])
{
    png_image image = { .version = PNG_IMAGE_VERSION,
                        .width = (png_uint_32)p->width,
                        .height = (png_uint_32)p->height,
                        .format = p->channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY };
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    void *file = malloc(size);
    if (file && png_image_write_to_memory(&image, file, &size, 0, p->pixel, 0, NULL)) {
        *length = size;
        return file;
    }
    snprintf(why, NOTE_TEXT, "%s", file ? image.message : "out of memory");
    free(file);
    return NULL;
}
#else
const char *png_missing(void)
{
    return "this build has no libpng (Debian: libpng-dev)";
}

void *encode_png(const picture *p, size_t *length, char why[NOTE_TEXT])
{
    (void)p;
    (void)length;
    snprintf(why, NOTE_TEXT, "%s", png_missing());
    return NULL;
}
#endif
