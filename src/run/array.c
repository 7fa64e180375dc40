/* SPDX-License-Identifier: Apache-2.0 */
#include "run/array.h"

#include "base/error.h"
#include "base/file.h"
#include "base/npy.h"
#include <inttypes.h>
#include <string.h>

bool gy_is_npy_name(const char *path)
{
    size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".npy") == 0;
}

void gy_array_text(gy_text *to, gantry_dtype dtype, int rank, const int64_t *shape)
{
    gy_text_printf(to, "%s [", gantry_dtype_name(dtype));
    for (int i = 0; i < rank; i++)
        gy_text_printf(to, "%s%" PRId64, i ? ", " : "", shape[i]);
    gy_text_add(to, "]");
}

/* A file with a single number (no dimensions) is as good as one with one element. */
static bool same_shape(const gy_npy *npy, const gy_buffer *b)
{
    if (npy->rank == 0)
        return b->rank == 1 && b->shape[0] == 1;
    return npy->rank == b->rank && memcmp(npy->shape, b->shape, (size_t)b->rank * sizeof *b->shape) == 0;
}

static gantry_status fail_differs(const gy_npy *npy, const gy_buffer *b, const char *path, gantry_error *err)
{
    gy_text seen = { 0 }, wanted = { 0 };
    gy_array_text(&seen, npy->dtype, npy->rank, npy->shape);
    gy_array_text(&wanted, b->dtype, b->rank, b->shape);
    bool failed = seen.failed || wanted.failed;
    gantry_status status = failed
                               ? gy_fail_nomem(err)
                               : gy_fail(err, GANTRY_E_IO, NULL,
                                         "%s holds %s, but buffer \"%s\" is %s; convert the file, or change the buffer",
                                         path, seen.at, b->name, wanted.at);
    gy_text_free(&seen);
    gy_text_free(&wanted);
    return status;
}

static gantry_status fail_short(uint64_t has, uint64_t wants, const gy_buffer *b, const char *path, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_IO, NULL, "%s has %" PRIu64 " bytes of data, but buffer \"%s\" has %" PRIu64, path,
                   has, b->name, wants);
}

/* The data of a .npy file, moved to the front of the memory that it was read into. */
static gantry_status strip_header(char *text, size_t length, const gy_buffer *b, const char *path, gantry_error *err)
{
    gy_npy npy;
    gantry_status status = gy_npy_header_parse(&npy, text, length, path, err);
    if (status)
        return status;
    if (npy.dtype != b->dtype || !same_shape(&npy, b))
        status = fail_differs(&npy, b, path, err);
    else if (length - npy.data_offset != b->bytes)
        status = fail_short(length - npy.data_offset, b->bytes, b, path, err);
    else
        memmove(text, text + npy.data_offset, b->bytes);
    gy_npy_free(&npy);
    return status;
}

gantry_status gy_array_read(void **array, const gy_buffer *buffer, const char *path, bool npy, gantry_error *err)
{
    char *text;
    size_t length;
    gantry_status status = gy_file_read(&text, &length, path, err);
    if (status)
        return status;
    if (npy)
        status = strip_header(text, length, buffer, path, err);
    else if (length != buffer->bytes)
        status = fail_short(length, buffer->bytes, buffer, path, err);
    if (status) {
        gy_free(text);
        return status;
    }
    *array = text;
    return GANTRY_OK;
}

gantry_status gy_array_write(const void *array, const gy_buffer *buffer, const char *path, gantry_error *err)
{
    if (!gy_is_npy_name(path))
        return gy_file_write(path, array, buffer->bytes, err);
    gy_text file = { 0 };
    gy_npy_header_write(&file, buffer->dtype, buffer->rank, buffer->shape);
    gy_text_add_n(&file, array, buffer->bytes);
    gantry_status status = file.failed ? gy_fail_nomem(err) : gy_file_write(path, file.at, file.length, err);
    gy_text_free(&file);
    return status;
}
