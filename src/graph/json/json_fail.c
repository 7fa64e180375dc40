/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes in graph files: where they are and what is said; and the checks of form that all sections share. */
#include "graph/json/json_read.h"

#include "base/error.h"
#include "base/file.h"
#include "graph/build/build_state.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_POINTER = 4096 };

/* " (with i = 3, j = 0)": which of the nodes that a block stands for it is. */
static void add_indices(gy_reader *r)
{
    gantry_error *e = &r->error;
    size_t length = strlen(e->text);
    for (size_t i = 0; i < r->index.count && length < sizeof e->text; i++) {
        length += (size_t)snprintf(e->text + length, sizeof e->text - length, "%s%s = %" PRId64, i ? ", " : " (with ",
                                   r->index.at[i].name, r->index.at[i].value);
    }
    if (r->index.count > 0 && length + 1 < sizeof e->text)
        strcpy(e->text + length, ")");
}

gantry_status gy_read_locate(gy_reader *r, const gy_json_at *at)
{
    int line = 0, column = 0;
    char pointer[LONGEST_POINTER]; /* whole, to find the line; the error keeps the end of it */
    gy_json_pointer(at, pointer, sizeof pointer);
    gy_json_locate(r->text, r->length, pointer, &line, &column);
    gy_error_locate(&r->error, r->name, line, column);
    gy_json_pointer(at, r->error.where, sizeof r->error.where);
    add_indices(r);
    return r->error.status;
}

gantry_status gy_read_placed(gy_reader *r)
{
    if (r->error.status != GANTRY_E_NOMEM && r->error.line == 0) {
        int line, column;
        gy_json_locate(r->text, r->length, r->error.where, &line, &column);
        gy_error_locate(&r->error, r->name, line, column);
    }
    return r->error.status;
}

void gy_read_origin(gy_reader *r, const gy_json_at *at)
{
    const char *pointer = gy_json_pointer(at, r->origin, sizeof r->origin);
    gy_graph_set_use(r->graph, r->scope ? r->scope->use : NULL);
    gy_graph_set_origin(r->graph, pointer);
}

gantry_status gy_read_fail(gy_reader *r, const gy_json_at *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gy_vfail(&r->error, GANTRY_E_GRAPH, NULL, format, args);
    va_end(args);
    return gy_read_locate(r, at);
}

gantry_status gy_read_nomem(gy_reader *r)
{
    return gy_fail_nomem(&r->error);
}

void gy_read_mistake(gy_reader *r)
{
    r->error = r->graph->error;
    r->error.text[r->graph->build_->said] = '\0';
}

gantry_status gy_read_built(gy_reader *r, const gy_json_at *at)
{
    if (r->graph->error.status == GANTRY_OK)
        return GANTRY_OK;
    gy_read_mistake(r);
    return r->error.status == GANTRY_E_NOMEM ? GANTRY_E_NOMEM : gy_read_locate(r, at);
}

gantry_status gy_read_kind(gy_reader *r, const gy_json_at *at, const char *wanted)
{
    if (!at->value)
        return gy_read_fail(r, at->up, "missing key \"%s\": give %s", at->key, wanted);
    return gy_read_fail(r, at, "must be %s, not %s", wanted, gy_json_kind(at->value));
}

static size_t find_word(const char *word, const char *const *words, size_t count)
{
    size_t i = 0;
    while (i < count && strcmp(word, words[i]) != 0)
        i++;
    return i;
}

/* Keys of those who have other tools in mind: where `key` is one that may stand there, it is what was meant, or
 * `remedy` says what to write. */
static const struct other_word {
    const char *seen, *key, *remedy;
} other_words[] = {
    { "uniform", "random", NULL },
    { "rand", "random", NULL },
    { "randn", "normal", NULL },
    { "arange", "iota", NULL },
    { "min", "low", NULL },
    { "max", "high", NULL },
    { "std", "deviation", NULL },
    { "sigma", "deviation", NULL },
    { "size", "shape", NULL },
    { "dims", "shape", NULL },
    { "value", "init", NULL },
    { "data", "init", NULL },
    { "chunks", "split", NULL },
    { "parameters", "params", NULL },
    { "constants", "params", NULL },
    { "tensors", "buffers", NULL },
    { "arrays", "buffers", NULL },
    { "tasks", "nodes", NULL },
    { "function", "kernel", NULL },
    { "file", "host", NULL },
    { "source", "host", NULL },
    { "name", "id", NULL },
    { "depends_on", "after", NULL },
    { "dependencies", "after", NULL },
    { "deps", "after", NULL },
    { "device", "on", NULL },
    { "while", "until", NULL },
    { "scalar", "type", "an argument that is a number has \"type\": \"f32\" (or i32, ...) and no access" },
    { "inputs", "buffers", "a buffer that is handed in has \"class\": \"input\"" },
    { "outputs", "buffers", "a buffer that is handed out has \"output\": true" },
    { "inputs", "args", "\"args\" has what is read and what is written, by the kernel's names: {\"x\": \"x[i]\"}" },
    { "outputs", "args", "\"args\" has what is read and what is written, by the kernel's names: {\"y\": \"y[i]\"}" },
};

static const struct other_word *find_other_word(const char *key, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < COUNT(other_words); i++)
        if (strcmp(key, other_words[i].seen) == 0 && find_word(other_words[i].key, keys, count) < count)
            return &other_words[i];
    return NULL;
}

/* The error has said that the key is unknown, and which are allowed. */
static gantry_status fail_key(gy_reader *r, const gy_json_at *member, const char *const *keys, size_t count)
{
    const struct other_word *other = find_other_word(member->key, keys, count);
    if (!other)
        return gy_read_locate(r, member);
    if (other->remedy)
        return gy_read_fail(r, member, "unknown key \"%s\": %s", member->key, other->remedy);
    return gy_read_fail(r, member, "unknown key \"%s\" (did you mean \"%s\"?)", member->key, other->key);
}

gantry_status gy_read_keys(gy_reader *r, const gy_json_at *at, const char *const *keys, size_t count)
{
    gantry_status status = gy_json_keys(at, keys, count, GANTRY_E_GRAPH, &r->error);
    if (!status)
        return GANTRY_OK;
    gy_json_at member = *at;
    json_t *object = gy_read_open(at->value);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        if (find_word(json_object_iter_key(i), keys, count) == count) {
            member = gy_json_key(at, json_object_iter_key(i));
            break;
        }
    }
    return fail_key(r, &member, keys, count);
}

/* 'must be an object with "buffer", "every", not a string', where the keys are few enough to be read. */
static gantry_status fail_object(gy_reader *r, const gy_json_at *at, const char *const *keys, size_t count)
{
    enum { MOST_SHOWN = 12 };
    char wanted[300] = "an object";
    size_t length = strlen(wanted);
    for (size_t i = 0; i < count && count <= MOST_SHOWN && length < sizeof wanted; i++)
        if (keys[i])
            length +=
                (size_t)snprintf(wanted + length, sizeof wanted - length, "%s \"%s\"", i ? "," : " with", keys[i]);
    return gy_read_kind(r, at, wanted);
}

gantry_status gy_read_members(gy_reader *r, const gy_json_at *at, const char *const *keys, size_t count,
                              const json_t **value)
{
    if (!json_is_object(at->value))
        return fail_object(r, at, keys, count);
    memset(value, 0, count * sizeof *value);
    json_t *object = gy_read_open(at->value);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        size_t k = find_word(json_object_iter_key(i), keys, count);
        if (k == count)
            return gy_read_keys(r, at, keys, count);
        value[k] = json_object_iter_value(i);
    }
    return GANTRY_OK;
}

/* Values of those who have other tools in mind. */
static const char *find_other_value(const char *word, const char *const *words, size_t count)
{
    static const char *const others[][2] = {
        { "in", "read" },         { "input", "read" },   { "r", "read" },
        { "out", "write" },       { "output", "write" }, { "w", "write" },
        { "inout", "readwrite" }, { "rw", "readwrite" }, { "read_write", "readwrite" },
        { "add", "sum" },         { "reduce", "sum" },
    };
    for (size_t i = 0; i < COUNT(others); i++)
        if (strcmp(word, others[i][0]) == 0 && find_word(others[i][1], words, count) < count)
            return others[i][1];
    return gy_nearest(word, words, count);
}

gantry_status gy_read_word(gy_reader *r, const gy_json_at *at, const char *what, const char *const *words, size_t count,
                           size_t *out)
{
    char list[240] = "";
    size_t length = 0;
    for (size_t i = 0; i < count && length < sizeof list; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", words[i]);
    if (!json_is_string(at->value)) {
        char wanted[300];
        snprintf(wanted, sizeof wanted, "one of %s", list);
        return gy_read_kind(r, at, wanted);
    }
    const char *word = json_string_value(at->value);
    *out = find_word(word, words, count);
    if (*out < count)
        return GANTRY_OK;
    const char *near = find_other_value(word, words, count);
    if (near)
        return gy_read_fail(r, at, "no %s \"%s\" (did you mean \"%s\"?)", what, word, near);
    return gy_read_fail(r, at, "no %s \"%.100s\": allowed are %s", what, word, list);
}

gantry_status gy_read_string(gy_reader *r, const gy_json_at *at, const char *wanted, const char **out)
{
    if (!json_is_string(at->value))
        return gy_read_kind(r, at, wanted);
    if (json_string_length(at->value) == 0)
        return gy_read_fail(r, at, "is empty: give %s", wanted);
    *out = json_string_value(at->value);
    return GANTRY_OK;
}

gantry_status gy_read_path(gy_reader *r, const gy_json_at *at, const char **path)
{
    const char *name = NULL;
    GY_TRY(gy_read_string(r, at, "the name of a file", &name));
    if (!r->folder) {
        return gy_read_fail(
            r, at, "names the file \"%s\", but this graph was not read from a folder: save it as a file", name);
    }
    if (name[0] == '/') {
        const char *last = strrchr(name, '/');
        return gy_read_fail(r, at, "\"%s\" begins with /: names go from the graph's folder, as in \"%s\"", name,
                            last[1] ? last + 1 : "FILE");
    }
    if (!gy_path_is_inside(name)) {
        return gy_read_fail(
            r, at, "\"%s\" is outside the graph's folder: move the file there, or name it on the command line", name);
    }
    char *joined = gy_path_join(r->folder, name);
    *path = joined ? gy_arena_strdup(&r->graph->arena, joined) : NULL;
    gy_free(joined);
    return *path ? GANTRY_OK : gy_read_nomem(r);
}
