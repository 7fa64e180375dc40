/* SPDX-License-Identifier: Apache-2.0 */
/* gantry-png.so: the table of images/decoder.h over libpng. Its errors are jumps back to where it was called, so each
 * function that calls it sets the place first, and keeps what has to be freed in a `reading`. */
#include "gantry_build_id.h"
#include "images/decoder.h"
#include <gantry/status.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

typedef struct reading {
    const unsigned char *next; /* bytes of the file that are left */
    size_t left;
    char *why;
    png_structp png;
    png_infop info;
    int channels;          /* as decoded: 1 or 3, and one more for how opaque a pixel is */
    unsigned char *pixels; /* height * width * channels */
    png_bytepp rows;
} reading;

static bool fail(char *why, const char *text)
{
    snprintf(why, GY_DECODER_WHY, "%s", text);
    return false;
}

static void note_error(png_structp png, png_const_charp text)
{
    const reading *r = png_get_error_ptr(png);
    fail(r->why, text);
    png_longjmp(png, 1);
}

/* Warnings are of what says nothing about pixels: profiles, times, texts. */
static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void give_bytes(png_structp png, png_bytep to, size_t count)
{
    reading *r = png_get_io_ptr(png);
    if (count > r->left)
        png_error(png, "it ends too early");
    memcpy(to, r->next, count);
    r->next += count;
    r->left -= count;
}

static void end(reading *r)
{
    png_free(r->png, r->pixels);
    png_free(r->png, r->rows);
    png_destroy_read_struct(&r->png, &r->info, NULL);
}

/* The header, and how pixels will come: palettes and numbers of few bits become bytes of a channel each. */
static bool read_header(reading *r, gy_image_size *image)
{
    if (setjmp(png_jmpbuf(r->png)))
        return false;
    png_set_read_fn(r->png, r, give_bytes);
    png_read_info(r->png, r->info);
    if (png_get_bit_depth(r->png, r->info) == 16)
        return fail(r->why, "it has 16 bits a channel; 8 are allowed, so convert it");
    png_set_expand(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    r->channels = png_get_channels(r->png, r->info);
    *image = (gy_image_size){ png_get_image_height(r->png, r->info), png_get_image_width(r->png, r->info),
                              r->channels < 3 ? 1 : 3 };
    return true;
}

static bool begin(reading *r, const void *data, size_t length, gy_image_size *image, char why[GY_DECODER_WHY])
{
    *r = (reading){ .next = data, .left = length, .why = why };
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, note_error, ignore_warning);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    return r->info ? read_header(r, image) : fail(why, "libpng of another version, or no memory for it");
}

static bool look(const void *data, size_t length, gy_image_size *image, char why[GY_DECODER_WHY])
{
    reading r;
    bool fine = begin(&r, data, length, image, why);
    end(&r);
    return fine;
}

static bool make_room(reading *r, const gy_image_size *image)
{
    size_t height = (size_t)image->height, row = (size_t)image->width * (size_t)r->channels;
    r->pixels = png_malloc_warn(r->png, height * row);
    r->rows = png_malloc_warn(r->png, height * sizeof *r->rows);
    if (!r->pixels || !r->rows)
        return fail(r->why, "no memory for its pixels");
    for (size_t i = 0; i < height; i++)
        r->rows[i] = r->pixels + i * row;
    return true;
}

static bool read_pixels(const reading *r)
{
    if (setjmp(png_jmpbuf(r->png)))
        return false;
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL); /* which is where a file that was cut off ends too early */
    return true;
}

/* One channel is repeated where three are wanted. What a transparent pixel would look like depends on what is behind
 * it. */
static bool take_pixels(const reading *r, const gy_image_size *image, unsigned char *to)
{
    int channels = r->channels, wanted = (int)image->channels;
    size_t count = (size_t)image->height * (size_t)image->width;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *from = r->pixels + i * (size_t)channels;
        if (channels % 2 == 0 && from[channels - 1] != 255)
            return fail(r->why, "it has transparent pixels, and there is nothing behind them; put it on a background");
        for (int c = 0; c < wanted; c++)
            to[i * (size_t)wanted + (size_t)c] = from[channels < 3 ? 0 : c];
    }
    return true;
}

static bool decode(const void *data, size_t length, const gy_image_size *image, void *to, char why[GY_DECODER_WHY])
{
    reading r;
    gy_image_size seen;
    bool fine =
        begin(&r, data, length, &seen, why) && make_room(&r, &seen) && read_pixels(&r) && take_pixels(&r, image, to);
    end(&r);
    return fine;
}

GANTRY_API extern const char gantry_png_build_id[];
const char gantry_png_build_id[] = GY_BUILD_ID;

GANTRY_API const void *gantry_png_module(void);

const void *gantry_png_module(void)
{
    static const gy_decoder table = { "libpng", look, decode };
    return &table;
}
