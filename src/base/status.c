/* SPDX-License-Identifier: Apache-2.0 */
#include <gantry/status.h>

#include "base/memory.h"
#include "base/text.h"
#include <stdio.h>

#define TEXT_OF(x)                        #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *gantry_version(void)
{
    return VERSION_TEXT(GANTRY_VERSION_MAJOR, GANTRY_VERSION_MINOR, GANTRY_VERSION_PATCH);
}

const char *gantry_status_name(gantry_status status)
{
    switch (status) {
#define GANTRY_X(name, value, text)                                                                                    \
    case GANTRY_##name:                                                                                                \
        return "GANTRY_" #name;
        GANTRY_STATUS_MAP(GANTRY_X)
#undef GANTRY_X
    }
    return "unknown status";
}

const char *gantry_status_text(gantry_status status)
{
    switch (status) {
#define GANTRY_X(name, value, text)                                                                                    \
    case GANTRY_##name:                                                                                                \
        return text;
        GANTRY_STATUS_MAP(GANTRY_X)
#undef GANTRY_X
    }
    return "unknown status";
}

/* "a.json:14:9: ", or as much of it as is known. */
static void format_place(const gantry_error *err, char *to, size_t size)
{
    const char *colon = err->file[0] ? ":" : "";
    if (err->line > 0 && err->column > 0)
        snprintf(to, size, "%s%s%d:%d: ", err->file, colon, (int)err->line, (int)err->column);
    else if (err->line > 0)
        snprintf(to, size, "%s%s%d: ", err->file, colon, (int)err->line);
    else
        snprintf(to, size, "%s%s", err->file, err->file[0] ? ": " : "");
}

size_t gantry_error_format(const gantry_error *err, char *to, size_t size)
{
    size = to ? size : 0;
    if (!err) {
        if (size > 0)
            to[0] = '\0';
        return 0;
    }
    char place[sizeof err->file + 32];
    format_place(err, place, sizeof place);
    const char *text = err->text[0] ? err->text : gantry_status_text(err->status);
    int length = snprintf(to, size, "%s%s%s%s", place, err->where, err->where[0] ? ": " : "", text);
    return length > 0 ? (size_t)length : 0;
}

const char *gantry_nearest(const char *word, const char *const *candidates, size_t count)
{
    return gy_nearest(word, candidates, count);
}

void gantry_free(void *memory)
{
    gy_free(memory);
}
