/* SPDX-License-Identifier: Apache-2.0 */
/* gantry fmt: files of graphs, machines and schedules in one layout. */
#include "command.h"
#include "layout.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct formatting {
    const options *o;
    gantry_files *files;
    json_t *changed; /* names of files that were, or are to be, laid out anew */
} formatting;

static size_t line_of_difference(const char *a, const char *b)
{
    size_t line = 1;
    for (; *a && *a == *b; a++, b++)
        line += *a == '\n';
    return line;
}

/* The text is JSON as graph files are: an object, no key twice, nothing behind it. */
static int check_syntax(const char *path, const char *text, size_t length)
{
    json_error_t at;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &at);
    bool object = json_is_object(root);
    json_decref(root);
    if (object && !memchr(text, '\0', length))
        return EXIT_FINE;
    if (root)
        complain("%s: is not an object; graphs, machines and schedules are\n", path);
    else
        complain("%s:%d:%d: %s; mend it, then format it\n", path, at.line, at.column, at.text);
    return EXIT_BAD_INPUT;
}

static int take(formatting *f, const char *path, const char *text, const char *laid_out, size_t length)
{
    const bool piped = strcmp(path, "-") == 0;
    const char *name = piped ? "standard input" : path;
    bool same = strcmp(text, laid_out) == 0;
    if (!same)
        json_array_append_new(f->changed, json_string(name));
    if (f->o->check) {
        if (!same)
            complain("%s:%zu: is not as `gantry fmt` writes it; call `gantry fmt %s`\n", name,
                     line_of_difference(text, laid_out), path);
        return same ? EXIT_FINE : EXIT_RUNNING;
    }
    if (same && !piped)
        return EXIT_FINE;
    return add_text(f->files, path, laid_out, length);
}

static int format(formatting *f, const char *path)
{
    size_t length;
    char *text = read_all(path, &length), *laid_out = NULL;
    if (!text) {
        complain("%s: cannot be read; give files of graphs, machines or schedules\n", path);
        return EXIT_USAGE;
    }
    int code = check_syntax(strcmp(path, "-") == 0 ? "standard input" : path, text, length);
    if (!code) {
        laid_out = layout_json(text, &length);
        code = laid_out ? take(f, path, text, laid_out, length) : fail_nomem();
    }
    free(laid_out);
    free(text);
    return code;
}

static int report(const formatting *f)
{
    if (f->o->json)
        return print_json(json_pack("{s:O}", f->o->check ? "to_format" : "formatted", f->changed));
    for (size_t i = 0; i < json_array_size(f->changed) && !f->o->check; i++)
        fprintf(dashes(f->o->positional.at, f->o->positional.count) ? stderr : stdout, "%s: formatted\n",
                json_string_value(json_array_get(f->changed, i)));
    return EXIT_FINE;
}

/* All files are looked at when one is wrong, so that all mistakes are reported; then none is written. */
static int run(const options *o)
{
    formatting f = { .o = o, .changed = json_array() };
    int code = begin_files(&f.files);
    for (size_t i = 0; i < o->positional.count; i++) {
        int one = format(&f, o->positional.at[i]);
        code = one > code ? one : code;
    }
    code = end_files(f.files, code);
    if (!code)
        code = report(&f);
    json_decref(f.changed);
    return code;
}

const command command_fmt = { "fmt",
                              "FILE...",
                              "lays files of graphs and machines out anew; keys, numbers and texts stay as they are",
                              1,
                              SIZE_MAX,
                              "check json",
                              "  gantry fmt graph.json\n"
                              "  gantry fmt --check *.json     writes nothing; fails and names files that differ\n"
                              "  gantry fmt - < graph.json\n",
                              run };
