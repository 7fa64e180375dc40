/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of an output's file, by how its name ends. */
#include "results.h"

#include "command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_TEXT = 200 };

typedef enum format { LIBRARY, CSV, TXT, JSON, PNG, UNKNOWN } format;

/* "-" and the ends of names, and what is written then. Devices and pipes of the system, /dev/..., have bytes. */
static format format_of(const char *path)
{
    static const struct {
        const char *end;
        format format;
    } ends[] = { { ".npy", LIBRARY }, { ".bin", LIBRARY }, { ".raw", LIBRARY }, { ".csv", CSV },
                 { ".txt", TXT },     { ".json", JSON },   { ".png", PNG } };
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i].end);
        if (length > end && strcmp(path + length - end, ends[i].end) == 0)
            return ends[i].format;
    }
    if (strcmp(path, "-") == 0)
        return TXT;
    return strncmp(path, "/dev/", 5) == 0 ? LIBRARY : UNKNOWN;
}

bool is_library_format(const char *path)
{
    return format_of(path) == LIBRARY;
}

bool check_format(const array *a, const char *path)
{
    picture sides;
    format kind = format_of(path);
    if (kind == UNKNOWN) {
        fprintf(
            stderr,
            "--output: %s=%s says no format by its end; a file ends in .npy, .bin or .raw (bytes in C order), .csv, "
            ".txt, .json or .png, and - is text on standard output\n",
            a->name, path);
        return false;
    }
    if (kind == PNG && !picture_sides(&sides, a)) {
        char shape[SHAPE_TEXT] = "";
        FILE *to = fmemopen(shape, sizeof shape, "w");
        if (to) {
            print_shape(to, a);
            fclose(to);
        }
        complain(
            "--output: %s=%s cannot be a picture: \"%s\" is %s, and a picture has two axes or more, with at most %d "
            "pixels a side; write .csv or .npy, or draw a curve with --show %s=%s\n",
            a->name, path, a->name, shape, MOST_PIXELS_ASIDE, a->name, path);
        return false;
    }
    if (kind == PNG && png_missing()) {
        complain("--output: %s=%s cannot be a picture, since %s; write .npy instead\n", a->name, path, png_missing());
        return false;
    }
    return true;
}

static char *format_png(const array *a, size_t *length, char note[NOTE_TEXT])
{
    picture p = { 0 };
    char *file = make_picture(&p, a, note) ? encode_png(&p, length, note) : NULL;
    free(p.pixel);
    return file;
}

char *format_array(const array *a, const char *path, size_t *length, char note[NOTE_TEXT])
{
    format kind = format_of(path);
    char *text = NULL;
    *note = 0;
    if (kind == PNG)
        return format_png(a, length, note);
    FILE *to = open_memstream(&text, length);
    if (!to)
        return NULL;
    if (kind == JSON)
        write_json(to, a);
    else
        write_lines(to, a, kind == CSV ? "," : " ");
    bool failed = ferror(to) != 0;
    if (fclose(to) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}
