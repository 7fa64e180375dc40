/* SPDX-License-Identifier: Apache-2.0 */
/* gantry dot: a graph, or a schedule, for Graphviz. */
#include "command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A schedule says so by a key; anything else is read as a graph, so that its mistakes are told as a graph's. */
static bool is_schedule(const char *text, size_t length)
{
    json_t *root = json_loadb(text, length, 0, NULL);
    bool yes = json_object_get(root, "gantry_schedule") != NULL;
    json_decref(root);
    return yes;
}

static int draw_phase(const gantry_schedule *schedule, const options *o, char **dot, size_t *size)
{
    gantry_error err;
    const gantry_schedule *drawn = drawn_phase(schedule, o);
    if (!drawn)
        return EXIT_USAGE;
    return gantry_schedule_export(drawn, GANTRY_DOT, dot, size, &err) ? fail(&err) : EXIT_FINE;
}

static int draw_schedule(const options *o, const char *text, size_t length, const char *path, char **dot, size_t *size)
{
    gantry_error err;
    gantry_schedule *schedule = NULL;
    int code = gantry_schedule_parse(&schedule, text, length, path, &err) ? fail(&err) : EXIT_FINE;
    if (!code)
        code = draw_phase(schedule, o, dot, size);
    gantry_schedule_free(schedule);
    return code;
}

/* Standard input and pipes were read already, to see what it is, and cannot be read again. */
static int read_graph(gantry_graph **graph, const options *o, const char *text, size_t length)
{
    gantry_error err;
    gantry_load_options load = load_options(o);
    const char *path = o->positional.at[0];
    if (!text || is_regular(path))
        return load_graph(graph, o, path);
    if (gantry_graph_parse(graph, text, length, strcmp(path, "-") ? path : "standard input", NULL, &load, &err))
        return fail(&err);
    print_warnings(*graph);
    return EXIT_FINE;
}

/* With a machine or a policy, the graph as it is placed. */
static int draw_graph(const options *o, const char *text, size_t length, char **dot, size_t *size)
{
    gantry_error err;
    gantry_graph *graph = NULL;
    gantry_schedule *schedule = NULL;
    known_computer k = { 0 };
    bool placed = o->machine || o->devices || o->policy;
    int code = read_graph(&graph, o, text, length);
    if (!code && placed)
        code = make_schedule(&schedule, o, graph, &k);
    if (!code && placed)
        code = draw_phase(schedule, o, dot, size);
    else if (!code && gantry_graph_export(graph, GANTRY_DOT, dot, size, &err))
        code = fail(&err);
    known_free(&k);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    return code;
}

static int draw(const options *o, char **dot, size_t *size)
{
    const char *path = o->positional.at[0];
    size_t length;
    char *text = read_all(path, &length);
    int code;
    if (!text && strcmp(path, "-") == 0) {
        complain("cannot read standard input\n");
        return EXIT_USAGE;
    }
    if (text && is_schedule(text, length))
        code = draw_schedule(o, text, length, path, dot, size);
    else
        code = draw_graph(o, text, length, dot, size); /* says what is wrong with a file that cannot be read */
    free(text);
    return code;
}

static int run(const options *o)
{
    char *dot = NULL;
    size_t size = 0;
    int code = draw(o, &dot, &size);
    if (!code && o->json)
        code = print_json(json_pack("{s:s%}", "dot", dot, size));
    else if (!code)
        code = write_text(o->out ? o->out : "-", dot, size);
    gantry_free(dot);
    return code;
}

const command command_dot = {
    "dot",
    "GRAPH|SCHEDULE",
    "draws a graph, or a schedule with its devices, copies and waits, for Graphviz",
    1,
    1,
    "param limits input machine devices policy unroll phase allow-code no-fuse out json",
    "  gantry dot cholesky --param nt=3 | dot -Tsvg > graph.svg\n"
    "  gantry dot saxpy --devices 2 | dot -Tsvg > placed.svg\n"
    "  gantry schedule saxpy --devices 2 -o s.json && gantry dot s.json | dot -Tsvg > schedule.svg\n",
    run
};
