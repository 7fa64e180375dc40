/* SPDX-License-Identifier: Apache-2.0 */
#include "base/versioned.h"

#include "base/error.h"
#include <string.h>

/* Every versioned struct begins with its size. */
static size_t size_of(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

static gantry_status check_size(size_t given, size_t least, size_t ours, const char *field, const char *type,
                                gantry_error *err)
{
    if (given >= least && given <= GY_STRUCT_MOST)
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "%s is %zu, which is no size of a %s; set it to sizeof(%s), which is %zu in this version of the "
                   "library",
                   field, given, type, type, ours);
}

/* Fields that this library does not know ask for nothing as long as they are 0. */
static gantry_status check_tail(const unsigned char *given, size_t size, size_t ours, const char *type,
                                gantry_error *err)
{
    for (size_t i = ours; i < size; i++) {
        if (given[i]) {
            return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                           "%s has %zu bytes, of which this version of the library, %s, knows %zu, and byte %zu is not "
                           "0; leave fields of a later version 0, or use the library of that version",
                           type, size, gantry_version(), ours, i);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_struct_check(const void *given, size_t size, const char *type, gantry_error *err)
{
    if (!given)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "a %s is wanted to fill in and NULL was given", type);
    return check_size(size_of(given), sizeof(size_t), size, "struct_size", type, err);
}

gantry_status gy_struct_read(void *full, size_t size, const void *given, const char *type, gantry_error *err)
{
    if (given) {
        size_t theirs = size_of(given);
        gantry_status status = check_size(theirs, sizeof theirs, size, "struct_size", type, err);
        status = status ? status : check_tail(given, theirs, size, type, err);
        if (status)
            return status;
        memcpy(full, given, theirs < size ? theirs : size);
    }
    memcpy(full, &size, sizeof size);
    return GANTRY_OK;
}

gantry_status gy_struct_reserved(int32_t reserved, const char *type, gantry_error *err)
{
    return reserved
               ? gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                         "reserved of %s is %d; leave it 0, or use a library of a version in which it means something",
                         type, (int)reserved)
               : GANTRY_OK;
}

gantry_status gy_struct_read_array(void *to, size_t size, const void *given, size_t stride, size_t count,
                                   const char *field, const char *type, gantry_error *err)
{
    gantry_status status = check_size(stride, 1, size, field, type, err);
    size_t known = stride < size ? stride : size;
    for (size_t i = 0; i < count && !status; i++) {
        const unsigned char *from = (const unsigned char *)given + i * stride;
        unsigned char *element = (unsigned char *)to + i * size;
        status = check_tail(from, stride, size, type, err);
        memcpy(element, from, known);
        memset(element + known, 0, size - known);
    }
    return status;
}

void gy_struct_write(void *given, const void *full, size_t size)
{
    if (given) {
        size_t theirs = size_of(given), known = theirs < size ? theirs : size;
        memcpy((char *)given + sizeof theirs, (const char *)full + sizeof theirs, known - sizeof theirs);
        memset((char *)given + known, 0, theirs - known);
    }
}
