/* SPDX-License-Identifier: Apache-2.0 */
/* Complaints: a line on standard error; with --json an object on standard output, too. */
#include "command.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All complaints so far. A program has one standard error, and so one of these. */
static struct {
    char text[4096]; /* its lines */
    size_t length;
    gantry_error err; /* the last one of the library */
    bool has_error;
} told;

static void keep(const char *text)
{
    int more = snprintf(told.text + told.length, sizeof told.text - told.length, "%s", text);
    if (more > 0)
        told.length += (size_t)more;
    if (told.length >= sizeof told.text) /* the rest is on standard error */
        told.length = sizeof told.text - 1;
}

void complain(const char *format, ...)
{
    char line[2048];
    va_list rest;
    va_start(rest, format);
    vsnprintf(line, sizeof line, format, rest);
    va_end(rest);
    progress_clear();
    fputs(line, stderr);
    keep(line);
}

void pass_on(const char *text)
{
    progress_clear();
    fputs(text, stderr);
}

void complain_of(const gantry_error *err)
{
    char line[1024];
    gantry_error_format(err, line, sizeof line);
    told.err = *err;
    told.has_error = true;
    complain("%s\n", line);
}

void name_file(gantry_error *err, const char *path)
{
    size_t length = strlen(path), most = sizeof err->file - 1;
    const char *dots = length > most ? "..." : "";
    if (!err->file[0])
        snprintf(err->file, sizeof err->file, "%s%s", dots, length > most ? path + length - (most - 3) : path);
}

int fail_nomem(void)
{
    complain("%s\n", gantry_status_text(GANTRY_E_NOMEM));
    return EXIT_RUNNING;
}

/* ---- as JSON ---- */

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *number_or_null(int32_t number)
{
    return number > 0 ? json_integer(number) : json_null();
}

/* The words behind `mark` and before `until`, which has to be there; NULL: up to "; ", or all. */
typedef struct phrase {
    const char *mark, *until;
} phrase;

static json_t *find_phrase(const char *text, const phrase *phrases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(text, phrases[i].mark), *end = NULL;
        if (!at)
            continue;
        at += strlen(phrases[i].mark);
        end = strstr(at, phrases[i].until ? phrases[i].until : "; ");
        if (end || !phrases[i].until)
            return json_stringn(at, end ? (size_t)(end - at) : strlen(at));
    }
    return json_null();
}

/* The last word in quotes of the first `length` bytes: `kernel "scale" has no argument "xx"` is about the latter. */
static json_t *last_quoted(const char *text, size_t length)
{
    const char *guess = strstr(text, " (did you mean");
    if (guess && (size_t)(guess - text) < length)
        length = (size_t)(guess - text);
    const char *end = length ? memrchr(text, '"', length) : NULL;
    const char *begin = end && end > text ? memrchr(text, '"', (size_t)(end - text)) : NULL;
    return begin ? json_stringn(begin + 1, (size_t)(end - begin - 1)) : json_null();
}

/* Messages are made alike: what is wrong, then "; " and what to do. A few phrases say what was seen and what is
 * allowed. */
static void add_parts(json_t *to, const char *text)
{
    static const phrase seen[] = { { ", not ", NULL }, { ", found ", NULL } };
    static const phrase allowed[] = { { "must be ", ", not " },   { "must be ", ", found " }, { "must be ", NULL },
                                      { "allowed here: ", NULL }, { "allowed are ", NULL },   { "it takes ", NULL },
                                      { "takes ", ", not " },     { "it has ", NULL },        { "there are ", NULL } };
    static const phrase near[] = { { "(did you mean \"", "\"?)" } };
    const char *end = strstr(text, "; ");
    const size_t what = end ? (size_t)(end - text) : strlen(text);
    json_t *value = find_phrase(text, seen, sizeof seen / sizeof *seen);
    json_object_set_new(to, "what", json_stringn(text, what));
    json_object_set_new(to, "seen", json_is_null(value) ? last_quoted(text, what) : value);
    json_object_set_new(to, "allowed", find_phrase(text, allowed, sizeof allowed / sizeof *allowed));
    json_object_set_new(to, "nearest", find_phrase(text, near, 1));
    json_object_set_new(to, "remedy", end ? json_string(end + 2) : json_null());
}

/* The words behind "gantry COMMAND: " or "--option: ", which say where in the command line it is. */
static const char *behind_place(const char *line, char *place, size_t size)
{
    const char *end = strstr(line, ": ");
    place[0] = '\0';
    if (!end || (strncmp(line, "gantry", 6) != 0 && strncmp(line, "--", 2) != 0))
        return line;
    snprintf(place, size, "%.*s", (int)(end - line), line);
    return end + 2;
}

json_t *take_complaint(int code)
{
    char place[128];
    told.text[told.length] = '\0';
    while (told.length && told.text[told.length - 1] == '\n')
        told.text[--told.length] = '\0';
    const char *text = behind_place(told.text, place, sizeof place);
    const gantry_error none = { 0 }, *e = told.has_error ? &told.err : &none;
    json_t *json = json_pack("{s:s, s:i, s:s?, s:o, s:o, s:o, s:o}", "message", told.text, "exit_code", code, "status",
                             told.has_error ? gantry_status_name(e->status) : NULL, "file", text_or_null(e->file),
                             "line", number_or_null(e->line), "column", number_or_null(e->column), "where",
                             text_or_null(told.has_error ? e->where : place));
    if (json)
        add_parts(json, told.has_error ? e->text : text);
    told.length = 0;
    told.has_error = false;
    return json;
}

bool has_complaint(void)
{
    return told.length > 0;
}
