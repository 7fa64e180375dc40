/* SPDX-License-Identifier: Apache-2.0 */
/* Files are decoded by threads that each take the next one. */
#include "images/images.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include <inttypes.h>
#include <stdio.h>

#define MOST_BYTES (UINT64_C(1) << 30) /* of one file */

enum { MOST_THREADS = 256 };

typedef struct reading {
    const gy_images *images;
    const gy_image_size *wanted;
    const char *buffer;
    char *to;
    size_t next; /* the file that nobody has taken yet */
    pthread_mutex_t guard;
    size_t failed; /* the first file, by name, that could not be read, and why; guarded */
    gantry_error err;
    gantry_status status;
} reading;

static gantry_status fail_damaged(const gy_images *images, size_t i, const char *why, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_IO, NULL, "%s: cannot be read as %s: %s; save it anew, or leave it out",
                   images->path[i], images->format->name, why);
}

static gantry_status look(const gy_images *images, size_t i, const char *data, size_t length, gy_image_size *image,
                          gantry_error *err)
{
    char why[GY_DECODER_WHY];
    bool fine = images->decoder->look(data, length, image, why);
    if (fine && (image->height < 1 || image->width < 1)) {
        snprintf(why, sizeof why,
                 "its header, of a file of %zu bytes, says that it is %" PRId64 " high and %" PRId64
                 " wide, and at least 1 is needed",
                 length, image->height, image->width);
        fine = false;
    }
    return fine ? GANTRY_OK : fail_damaged(images, i, why, err);
}

gantry_status gy_images_look(const gy_images *images, size_t i, gy_image_size *image, gantry_error *err)
{
    char *data;
    size_t length;
    GY_TRY(gy_file_read_in(&data, &length, images->path[i], NULL, MOST_BYTES, err));
    gantry_status status = look(images, i, data, length, image, err);
    gy_free(data);
    return status;
}

static gantry_status check_size(const reading *r, size_t i, const gy_image_size *seen, gantry_error *err)
{
    const char *path = r->images->path[i];
    if (seen->height != r->wanted->height || seen->width != r->wanted->width) {
        return gy_fail(err, GANTRY_E_IO, NULL,
                       "%s is %" PRId64 " high and %" PRId64 " wide, but buffer \"%s\" takes images that are %" PRId64
                       " high and %" PRId64 " wide; resize it, or change the buffer",
                       path, seen->height, seen->width, r->buffer, r->wanted->height, r->wanted->width);
    }
    if (seen->channels > r->wanted->channels) {
        return gy_fail(err, GANTRY_E_IO, NULL,
                       "%s is in colour (3 channels), but buffer \"%s\" takes images of 1 channel; convert it to gray, "
                       "or give the buffer 3 channels",
                       path, r->buffer);
    }
    return GANTRY_OK;
}

static gantry_status decode(const reading *r, size_t i, const char *data, size_t length, gantry_error *err)
{
    const gy_image_size *w = r->wanted;
    gy_image_size seen;
    char why[GY_DECODER_WHY];
    GY_TRY(look(r->images, i, data, length, &seen, err));
    GY_TRY(check_size(r, i, &seen, err));
    void *to = r->to + i * (size_t)(w->height * w->width * w->channels);
    return r->images->decoder->decode(data, length, w, to, why) ? GANTRY_OK : fail_damaged(r->images, i, why, err);
}

static gantry_status read_one(const reading *r, size_t i, gantry_error *err)
{
    char *data;
    size_t length;
    GY_TRY(gy_file_read_in(&data, &length, r->images->path[i], NULL, MOST_BYTES, err));
    gantry_status status = decode(r, i, data, length, err);
    gy_free(data);
    return status;
}

/* Files before it by name were taken earlier and are still read, so the first that fails is the same in each run. */
static void note_failure(reading *r, size_t i, gantry_status status, const gantry_error *err)
{
    __atomic_store_n(&r->next, r->images->count, __ATOMIC_RELAXED);
    pthread_mutex_lock(&r->guard);
    if (i < r->failed) {
        r->failed = i;
        r->status = status;
        r->err = *err;
    }
    pthread_mutex_unlock(&r->guard);
}

static void *read_some(void *data)
{
    reading *r = data;
    gantry_error err;
    gantry_status status = GANTRY_OK;
    size_t i = 0;
    while (!status && (i = __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED)) < r->images->count)
        status = read_one(r, i, &err);
    if (status)
        note_failure(r, i, status, &err);
    return NULL;
}

gantry_status gy_images_read(const gy_images *images, void *to, const gy_image_size *wanted, const char *buffer,
                             gantry_error *err)
{
    reading r = { .images = images, .wanted = wanted, .buffer = buffer, .to = to, .failed = SIZE_MAX };
    pthread_t thread[MOST_THREADS];
    size_t threads = gy_thread_processors(), begun = 0;
    threads = threads < images->count ? threads : images->count;
    pthread_mutex_init(&r.guard, NULL);
    while (begun + 1 < threads && begun < MOST_THREADS && gy_thread_create(&thread[begun], read_some, &r) == 0)
        begun++;
    read_some(&r);
    for (size_t i = 0; i < begun; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&r.guard);
    if (r.status && err)
        *err = r.err;
    return r.status;
}
