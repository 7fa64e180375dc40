/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Copies `from`; what does not fit is cut off at the left, where a path or pointer says least. */
static void copy_tail(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    if (length < size) {
        memmove(to, from, length + 1);
        return;
    }
    from += length - (size - 1 - 3);
    while (is_continuation(*from))
        from++;
    snprintf(to, size, "...%s", from);
}

/* Cuts a text that did not fit so that it ends in "...", not in half a character. */
static void mark_cut(char *text, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && is_continuation(text[end]))
        end--;
    memcpy(text + end, "...", 4);
}

gantry_status gy_vfail(gantry_error *err, gantry_status status, const char *where, const char *format, va_list args)
{
    if (!err)
        return status;
    /* Built aside: the arguments may be parts of the record that is being replaced. */
    gantry_error made = { .status = status, .device = -1 };
    int length = vsnprintf(made.text, sizeof made.text, format, args);
    if (length >= (int)sizeof made.text)
        mark_cut(made.text, sizeof made.text);
    gy_make_plain(made.text); /* names come from users' files: no line break or escape sequence of one gets out */
    if (where) {
        copy_tail(made.where, sizeof made.where, where);
        gy_make_plain(made.where);
    }
    *err = made;
    return status;
}

gantry_status(gy_fail)(gantry_error *err, gantry_status status, const char *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = gy_vfail(err, status, where, format, args);
    va_end(args);
    return status;
}

gantry_status gy_need(const void *given, const char *name, const char *function, gantry_error *err)
{
    if (given)
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_INVALID, NULL, "%s was called with NULL for `%s`; pass what its header asks for",
                   function, name);
}

void gy_record_nomem(gantry_error *err)
{
    gy_fail(err, GANTRY_E_NOMEM, NULL, "%s", gantry_status_text(GANTRY_E_NOMEM));
}

void gy_record_errno(gantry_error *err, const char *what, const char *path)
{
    int code = errno;
    char buffer[128];
    gy_fail(err, GANTRY_E_IO, NULL, "cannot %s %s: %s", what, path, strerror_r(code, buffer, sizeof buffer));
    if (err)
        err->native = code;
}

void gy_error_of_buffer(gantry_error *err, const char *buffer)
{
    char said[sizeof err->text];
    if (!err)
        return;
    memcpy(said, err->text, sizeof said);
    snprintf(err->text, sizeof err->text, "buffer \"%.80s\": %.400s", buffer, said);
}

void gy_error_locate(gantry_error *err, const char *file, int line, int column)
{
    if (!err)
        return;
    copy_tail(err->file, sizeof err->file, file ? file : "");
    gy_make_plain(err->file);
    err->line = line;
    err->column = column;
}
