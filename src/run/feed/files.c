/* SPDX-License-Identifier: Apache-2.0 */
#include "run/feed/files.h"

#include "base/error.h"
#include "base/paths.h"
#include "images/images.h"
#include "run/array.h"
#include <inttypes.h>

#define PAGE_BYTES UINT64_C(4096)
#define PART_BYTES UINT64_C(524288) /* smaller parts cost more to open than to read */

struct gy_feed_files {
    const gy_buffer *buffer;
    char *pattern;
    bool once;
    uint64_t arrays;
    gy_paths paths; /* of .npy and raw files */
    uint64_t *end;  /* per file: how many arrays there are in it and those before it */
    bool stacked;   /* each file is a stack of arrays; else each is one */
    bool piped;     /* the one file there is can be read only from its beginning to its end */
    gy_images images;
};

/* ---- .npy and raw files ---- */

static gantry_status look(gy_feed_files *f, size_t i, gy_array_place *place, gantry_error *err)
{
    const char *path = f->paths.at[i];
    gy_file file;
    GY_TRY(gy_file_open(&file, path, NULL, err));
    gantry_status status = GANTRY_OK;
    f->piped |= !file.regular;
    if (!file.regular && f->paths.count > 1)
        status = gy_fail(err, GANTRY_E_IO, NULL, "%s is no regular file, and can be read only once; %s takes files",
                         path, f->pattern);
    else if (file.regular || gy_is_npy_name(path))
        status = gy_array_look(place, &file, f->buffer, gy_is_npy_name(path), true, err);
    gy_file_close(&file);
    return status;
}

static gantry_status fail_mixed(const gy_feed_files *f, size_t i, gantry_error *err)
{
    const char *const stack = "is a stack of arrays", *const array = "is one array";
    return gy_fail(
        err, GANTRY_E_IO, NULL,
        "%s: %s %s of buffer \"%s\", and %s %s; give files of one kind, so that it is clear what a start reads",
        f->pattern, f->paths.at[0], f->stacked ? stack : array, f->buffer->name, f->paths.at[i],
        f->stacked ? array : stack);
}

static gantry_status count_arrays(gy_feed_files *f, gantry_error *err)
{
    f->end = gy_calloc(f->paths.count, sizeof *f->end);
    if (!f->end)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < f->paths.count; i++) {
        gy_array_place place = { .arrays = 1 };
        if (gy_images_named(f->paths.at[i]))
            return gy_fail(err, GANTRY_E_IO, NULL, "%s: %s is an image; end the pattern as the files are to end",
                           f->pattern, f->paths.at[i]);
        GY_TRY(look(f, i, &place, err));
        f->stacked = i == 0 ? place.stacked : f->stacked;
        if (place.stacked != f->stacked)
            return fail_mixed(f, i, err);
        f->arrays += place.arrays;
        f->end[i] = f->arrays;
    }
    return GANTRY_OK;
}

static gantry_status fail_changed(const gy_feed_files *f, size_t i, uint64_t arrays, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_IO, NULL,
                   "%s has changed while the run reads it: it had %" PRIu64 " arrays of buffer \"%s\", and has %" PRIu64
                   " now; leave files alone until the run has ended",
                   f->paths.at[i], f->end[i] - (i ? f->end[i - 1] : 0), f->buffer->name, arrays);
}

/* Which part of an array is to be read. */
typedef struct share {
    uint32_t part, parts;
} share;

/* The byte at which a part begins, or after the last one, the end. Parts begin with pages, and differ by one at most
 * but for the rest behind the last page. */
static uint64_t begin_of(uint64_t bytes, uint32_t part, share of)
{
    uint64_t pages = bytes / PAGE_BYTES;
    return part == of.parts ? bytes : pages * part / of.parts * PAGE_BYTES;
}

static gantry_status read_from(const gy_feed_files *f, size_t i, uint64_t index, share of, const gy_file *file,
                               void *to, gantry_error *err)
{
    gy_array_place place;
    uint64_t bytes = f->buffer->bytes;
    GY_TRY(gy_array_look(&place, file, f->buffer, gy_is_npy_name(file->path), f->stacked, err));
    if (index >= place.arrays || place.stacked != f->stacked)
        return fail_changed(f, i, place.arrays, err);
    if (!file->regular)
        return gy_array_get(to, file, f->buffer, err);
    return gy_array_get_bytes(to, file, &place, index, begin_of(bytes, of.part, of), begin_of(bytes, of.part + 1, of),
                              f->buffer, err);
}

/* The file that has the array: the first whose end lies behind it. */
static size_t file_of(const gy_feed_files *f, uint64_t array)
{
    size_t low = 0, high = f->paths.count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (f->end[middle - 1] <= array)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static gantry_status read_array(const gy_feed_files *f, uint64_t array, share of, void *to, gantry_error *err)
{
    gy_file file;
    size_t i = file_of(f, array);
    GY_TRY(gy_file_open(&file, f->paths.at[i], NULL, err));
    gantry_status status = read_from(f, i, array - (i ? f->end[i - 1] : 0), of, &file, to, err);
    gy_file_close(&file);
    return status;
}

/* ---- images ---- */

static int64_t images_of(const gy_buffer *b)
{
    return b->rank == 4 ? b->shape[0] : 1;
}

/* As many images a time as an array has. */
static gantry_status count_images(gy_feed_files *f, gantry_error *err)
{
    const gy_buffer *b = f->buffer;
    GY_TRY(gy_images_open(&f->images, f->pattern, err));
    uint64_t each = (uint64_t)images_of(b), images = f->images.count;
    if (each == 0 || !gy_array_takes_images(b, each)) /* as if it was bound: the message is the same */
        return gy_array_check_images(&f->images, b, f->pattern, err);
    if (images % each) {
        return gy_fail(err, GANTRY_E_IO, NULL,
                       "%s: %" PRIu64 " files are of that name, and buffer \"%s\" takes %" PRIu64
                       " of them at a time, so %" PRIu64 " would be left; take these away, or add some",
                       f->pattern, images, b->name, each, images % each);
    }
    f->arrays = images / each;
    return GANTRY_OK;
}

static gantry_status read_images(const gy_feed_files *f, uint64_t array, void *to, gantry_error *err)
{
    const gy_buffer *b = f->buffer;
    gy_images some = f->images;
    some.count = (size_t)images_of(b);
    some.path += array * some.count;
    return gy_array_fill_images(to, &some, b, err);
}

/* ---- both ---- */

/* One array, of one file that was named, or of images that fill it. */
static bool is_bound(const gy_feed_files *f)
{
    return f->arrays == 1 && (f->images.count || !(f->stacked || gy_is_pattern(f->pattern)));
}

static gantry_status open_files(gy_feed_files *f, gantry_error *err)
{
    if (gy_images_named(f->pattern))
        return count_images(f, err);
    GY_TRY(gy_paths_find(&f->paths, f->pattern, "name a file or a pattern of some (*)", err));
    return count_arrays(f, err);
}

gantry_status gy_feed_files_open(gy_feed_files **files, const gy_buffer *buffer, const char *pattern, gantry_feed order,
                                 gantry_error *err)
{
    *files = NULL;
    bool one = !gy_is_pattern(pattern) && !gy_file_is_regular(pattern); /* what can be read only once is one array */
    if (one || (order == GANTRY_FEED_AUTO && gy_images_named(pattern)))
        return GANTRY_OK;
    gy_feed_files *f = gy_calloc(1, sizeof *f);
    if (!f)
        return gy_fail_nomem(err);
    *f = (gy_feed_files){ .buffer = buffer, .once = order == GANTRY_FEED_ONCE, .pattern = gy_strdup(pattern) };
    gantry_status status = f->pattern ? open_files(f, err) : gy_fail_nomem(err);
    if (status || is_bound(f)) {
        gy_feed_files_free(f);
        return status;
    }
    *files = f;
    return GANTRY_OK;
}

uint64_t gy_feed_files_arrays(const gy_feed_files *f)
{
    return f->arrays;
}

void gy_feed_files_move(gy_feed_files *f, const gy_buffer *buffer)
{
    f->buffer = buffer;
}

/* An array of several images is decoded by as many threads as it likes (images.h). */
void gy_feed_files_share(const gy_feed_files *f, uint32_t most, uint32_t *parts, uint32_t *threads)
{
    uint64_t most_parts = f->buffer->bytes / PART_BYTES;
    *parts = *threads = 1;
    if (f->piped || f->arrays == 0 || (f->images.count && images_of(f->buffer) > 1))
        return;
    if (!f->images.count && most_parts > 1)
        *parts = most_parts < most ? (uint32_t)most_parts : most;
    *threads = *parts < most ? *parts + 1 : most; /* one more goes on with the next array */
}

gantry_status gy_feed_files_make(const gy_feed_files *f, uint64_t number, uint32_t part, uint32_t parts, void *to,
                                 gantry_error *err)
{
    if (f->once && number >= f->arrays) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "%s has %" PRIu64 " array%s for buffer \"%s\", and start %" PRIu64
                       " is to read one more; give more files, or let them go around (GANTRY_FEED_CYCLE, --feed cycle)",
                       f->pattern, f->arrays, f->arrays == 1 ? "" : "s", f->buffer->name, number + 1);
    }
    uint64_t array = number % f->arrays;
    return f->images.count ? read_images(f, array, to, err) : read_array(f, array, (share){ part, parts }, to, err);
}

void gy_feed_files_free(void *files)
{
    gy_feed_files *f = files;
    if (!f)
        return;
    if (f->images.count)
        gy_images_close(&f->images);
    gy_paths_free(&f->paths);
    gy_free(f->end);
    gy_free(f->pattern);
    gy_free(f);
}
