/* SPDX-License-Identifier: Apache-2.0 */
/**
 * JPEG and PNG files as arrays of u8, [image, height, width, channel]. Pixels are as libjpeg-turbo and libpng give
 * them: one channel is the brightness, three are red, green and blue. What files say of an orientation, a colour
 * profile or a gamma is not looked at. Of PNG files 8 bits a channel and fewer are read, and palettes; how opaque
 * pixels are is left out where all are, and an error where one is not.
 */
#ifndef GY_IMAGES_IMAGES_H
#define GY_IMAGES_IMAGES_H

#include "base/module.h"
#include "images/decoder.h"
#include <stddef.h>

typedef struct gy_image_format gy_image_format;

typedef struct gy_images {
    const gy_image_format *format;
    char **path; /* `count` >= 1, by name (strcmp) */
    size_t count;
    gy_module module;
    const gy_decoder *decoder;
} gy_images;

/* Files of one format, and the module that decodes them. */
struct gy_image_format {
    const char *name;      /* "JPEG" */
    const char *ending[2]; /* of names, in small or capital letters; NULL: there is no other */
    const char *module;    /* "gantry-jpeg" */
    const char *package;   /* of Debian, which the module is built with */
};

/* True of a name that ends in .jpg, .jpeg or .png, in small or capital letters: a file, or a pattern of several. */
bool gy_images_named(const char *pattern);
/* The files that a pattern of which gy_images_named is true, with * ? [...], means (glob(7)), or the one that has that
 * very name. E_IO: there is none. E_UNSUPPORTED: there is no module for their format. gy_images_close, but not after an
 * error. */
gantry_status gy_images_open(gy_images *images, const char *pattern, gantry_error *err);
/* The size that the file gives, before its pixels are read. E_IO: it is no file of the format, or a damaged one, or one
 * that this file leaves out. */
gantry_status gy_images_look(const gy_images *images, size_t i, gy_image_size *image, gantry_error *err);
/* All images, one behind the other, by as many threads as there are processors. Each has to be as high and as wide as
 * `wanted`; one of a single channel is repeated where three are wanted. E_IO names the first file, by name, that is
 * another or cannot be read. `buffer`: what messages call the array. */
gantry_status gy_images_read(const gy_images *images, void *to, const gy_image_size *wanted, const char *buffer,
                             gantry_error *err);
void gy_images_close(gy_images *images);

#endif
