/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --watch: the values of small outputs and states, a line for each start. */
#include "runs/run.h"

#include "../results/results.h"
#include <math.h>
#include <string.h>

enum { MOST = 64, MOST_BYTES = MOST * 8 }; /* elements that a line shows */

/* A state that is no output is fetched between starts, by the one process that there is. */
static int check_state(const session *s, const char *name, const gantry_buffer_info *info)
{
    bool overlaps = s->o->in_flight > 1 || (s->o->objective && strcmp(s->o->objective, "period") == 0);
    const char *why = info->cls != GANTRY_STATE ? "no output"
                      : overlaps                ? "a state and no output, and starts overlap"
                      : s->ranks.network        ? "a state and no output, which several processes have parts of"
                                                : NULL;
    if (!why)
        return EXIT_FINE;
    complain("--watch: buffer \"%s\" is %s; add \"output\": true to it in the graph\n", name, why);
    return EXIT_USAGE;
}

/* The buffer of --watch; prints what is wrong. */
static int find_watched(const session *s, const char *name, gantry_buffer_info *info, gantry_buffer *buffer)
{
    *info = (gantry_buffer_info)GANTRY_BUFFER_INFO_INIT;
    *buffer = gantry_graph_find_buffer(s->graph, name);
    if (buffer->id == GANTRY_NONE)
        return no_buffer(s, "watch", name, name + strlen(name));
    int code = is_output(s, buffer->id, info) ? EXIT_FINE : check_state(s, name, info);
    if (code)
        return code;
    uint64_t count = info->bytes / gantry_dtype_size(info->dtype);
    if (count == 0 || count > MOST) {
        complain(
            "--watch: buffer \"%s\" has %llu elements, and a line shows 1 to %d; reduce it in the graph, or write it "
            "by --output\n",
            name, (unsigned long long)count, MOST);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

int check_watched(const session *s)
{
    gantry_buffer_info info;
    gantry_buffer buffer;
    int code = EXIT_FINE;
    if (s->o->every && !s->o->watched.count && !s->o->train) {
        complain("gantry run: --every is for lines of --watch BUFFER; add it, or leave --every out\n");
        code = EXIT_USAGE;
    }
    for (size_t i = 0; i < s->o->watched.count && !code; i++)
        code = find_watched(s, s->o->watched.at[i], &info, &buffer);
    if (!code && s->o->watched.count && s->o->backend && strcmp(s->o->backend, "sim") == 0) {
        complain("--watch needs results, and back end \"sim\" gives times only; use host\n");
        code = EXIT_USAGE;
    }
    return code;
}

/* The values after the start that was waited for last. `room` is for those of a state. */
static int read_watched(const session *s, const char *name, char room[MOST_BYTES], array *a)
{
    static const int64_t none[1];
    gantry_error err;
    gantry_buffer_info info;
    gantry_buffer buffer;
    const void *data = room;
    int code = find_watched(s, name, &info, &buffer);
    if (code)
        return code;
    if (info.output ? gantry_run_output(s->run, buffer, &data, NULL, &err)
                    : gantry_run_state(s->run, buffer, room, info.bytes, &err))
        return fail(&err);
    *a = (array){ .name = name,
                  .dtype = info.dtype,
                  .shape = none,
                  .count = info.bytes / gantry_dtype_size(info.dtype),
                  .data = data };
    return EXIT_FINE;
}

static json_t *element_json(const array *a, uint64_t i)
{
    char text[ELEMENT_TEXT];
    double x = element_real(a->data, a->dtype, i);
    if (a->dtype == GANTRY_U64)
        return json_integer((json_int_t)((const uint64_t *)a->data)[i]);
    if (a->dtype == GANTRY_I64)
        return json_integer((json_int_t)((const int64_t *)a->data)[i]);
    if (!element_is_real(a->dtype))
        return json_integer((json_int_t)x);
    return isfinite(x) ? json_real(x) : json_string(element_text(text, a, i));
}

static json_t *values_json(const array *a)
{
    if (a->count == 1)
        return element_json(a, 0);
    json_t *values = json_array();
    for (uint64_t i = 0; i < a->count; i++)
        json_array_append_new(values, element_json(a, i));
    return values;
}

static void print_watched(FILE *to, const array *a)
{
    char text[ELEMENT_TEXT];
    fprintf(to, "  %s %s", a->name, a->count == 1 ? "" : "[");
    for (uint64_t i = 0; i < a->count; i++)
        fprintf(to, "%s%s", i ? " " : "", element_exact(text, a, i));
    fputs(a->count == 1 ? "" : "]", to);
}

static int watch_as_json(const session *s, size_t number)
{
    json_t *line = json_pack("{s:I}", s->o->train ? "step" : "start", (json_int_t)number);
    int code = line ? EXIT_FINE : fail_nomem();
    for (size_t i = 0; i < s->o->watched.count && !code; i++) {
        array a;
        char room[MOST_BYTES];
        code = read_watched(s, s->o->watched.at[i], room, &a);
        if (!code && json_object_set_new(line, a.name, values_json(&a)))
            code = fail_nomem();
    }
    if (code) {
        json_decref(line);
        return code;
    }
    return print_json_line(line);
}

static int watch_as_text(const session *s, size_t number)
{
    FILE *to = uses_stdout(s->o) ? stderr : stdout;
    fprintf(to, "%s %zu", s->o->train ? "step" : "start", number);
    int code = EXIT_FINE;
    for (size_t i = 0; i < s->o->watched.count && !code; i++) {
        array a;
        char room[MOST_BYTES];
        code = read_watched(s, s->o->watched.at[i], room, &a);
        if (!code)
            print_watched(to, &a);
    }
    fputc('\n', to);
    fflush(to); /* whoever reads a pipe sees it now */
    return code;
}

int watch(const session *s, size_t number)
{
    size_t every = s->o->every ? (size_t)s->o->every : 1;
    if (!s->o->watched.count || (number % every && number != 1 && number != s->starts))
        return EXIT_FINE;
    progress_clear();
    return s->o->json ? watch_as_json(s, number) : watch_as_text(s, number);
}
