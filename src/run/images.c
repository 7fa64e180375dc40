/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG and PNG files as the array of a buffer. */
#include "run/array.h"

#include "base/error.h"
#include "base/memory.h"
#include <inttypes.h>

bool gy_array_takes_images(const gy_buffer *b, uint64_t count)
{
    int64_t channels = b->rank > 0 ? b->shape[b->rank - 1] : 0;
    return b->dtype == GANTRY_U8 && (b->rank == 4 || (b->rank == 3 && count == 1)) && (channels == 1 || channels == 3);
}

gantry_status gy_array_check_images(const gy_images *images, const gy_buffer *b, const char *pattern, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    gy_text seen = { 0 };
    gy_array_text(&seen, b->dtype, b->rank, b->shape);
    if (seen.failed) {
        status = gy_fail_nomem(err);
    } else if (!gy_array_takes_images(b, images->count)) {
        status = gy_fail(err, GANTRY_E_IO, NULL,
                         "%s: images are read into u8 [images, height, width, channels] with 1 or 3 channels, or a "
                         "single one into u8 [height, width, channels], but buffer \"%s\" is %s; change the buffer",
                         pattern, b->name, seen.at);
    } else if (b->rank == 4 && b->shape[0] != (int64_t)images->count) {
        status = gy_fail(err, GANTRY_E_IO, NULL,
                         "%s: %zu %s of that name, but buffer \"%s\" is %s and takes %" PRId64
                         "; give as many files, change the buffer, or let each start read the next ones (--feed cycle)",
                         pattern, images->count, images->count == 1 ? "file is" : "files are", b->name, seen.at,
                         b->shape[0]);
    }
    gy_text_free(&seen);
    return status;
}

gantry_status gy_array_fill_images(void *to, const gy_images *images, const gy_buffer *b, gantry_error *err)
{
    const int64_t *size = b->shape + b->rank - 3;
    gy_image_size wanted = { size[0], size[1], size[2] };
    return gy_images_read(images, to, &wanted, b->name, err);
}

static gantry_status read_images(void **array, const gy_images *images, const gy_buffer *b, gantry_error *err)
{
    void *made = gy_alloc_array(b->bytes);
    if (!made)
        return gy_fail_nomem(err);
    gantry_status status = gy_array_fill_images(made, images, b, err);
    if (status) {
        gy_free(made);
        return status;
    }
    *array = made;
    return GANTRY_OK;
}

gantry_status gy_array_read_images(void **array, const gy_buffer *buffer, const char *pattern, gantry_error *err)
{
    gy_images images;
    GY_TRY(gy_images_open(&images, pattern, err));
    gantry_status status = gy_array_check_images(&images, buffer, pattern, err);
    status = status ? status : read_images(array, &images, buffer, err);
    gy_images_close(&images);
    return status;
}
