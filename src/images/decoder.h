/* SPDX-License-Identifier: Apache-2.0 */
/* The table of gantry-jpeg.so and of gantry-png.so, by which a file in memory becomes pixels. Both functions may be
 * called by several threads. */
#ifndef GY_IMAGES_DECODER_H
#define GY_IMAGES_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gy_image_size {
    int64_t height, width, channels; /* 1 or 3 channels */
} gy_image_size;

enum { GY_DECODER_WHY = 200 };

typedef struct gy_decoder {
    const char *name; /* of the library */
    /* The size that the header gives. False: `why` says what is wrong with it. */
    bool (*look)(const void *data, size_t length, gy_image_size *image, char why[GY_DECODER_WHY]);
    /* The pixels, to height * width * channels bytes. A size as `look` has it; `image->channels` as wanted:
     * 3 of a file with 1 repeat it. False: the file is damaged or ends too early, `why` says how. */
    bool (*decode)(const void *data, size_t length, const gy_image_size *image, void *to, char why[GY_DECODER_WHY]);
} gy_decoder;

#endif
