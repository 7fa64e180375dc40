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

/* "gemm[1,2]~3": the node and how far from it. A node may be called so as a whole. */
static int take_node(gantry_drawing_options *how, const options *o, const gantry_graph *graph, char **id)
{
    const char *tilde = o->node ? strrchr(o->node, '~') : NULL;
    how->near = o->node;
    if (!tilde || gantry_graph_find_node(graph, o->node).id != GANTRY_NONE)
        return EXIT_FINE;
    char *end = NULL;
    long distance = strtol(tilde + 1, &end, 10);
    if (end == tilde + 1 || *end || distance < 0 || distance > 100) {
        complain("gantry dot: --node is \"%s\"; behind the ~ it takes a whole number from 0 to 100\n", o->node);
        return EXIT_USAGE;
    }
    *id = strndup(o->node, (size_t)(tilde - o->node));
    how->near = *id;
    how->distance = (int32_t)distance;
    return *id ? EXIT_FINE : fail_nomem();
}

static int take_clusters(gantry_drawing_options *how, const options *o)
{
    if (!o->cluster || strcmp(o->cluster, "device") == 0 || strcmp(o->cluster, "family") == 0) {
        how->clusters = !o->cluster            ? GANTRY_CLUSTERS_LOOPS
                        : o->cluster[0] == 'd' ? GANTRY_CLUSTERS_DEVICES
                                               : GANTRY_CLUSTERS_FAMILIES;
        return EXIT_FINE;
    }
    complain("gantry dot: --cluster is \"%s\"; it must be device or family\n", o->cluster);
    return EXIT_USAGE;
}

static int draw_nodes(const options *o, const gantry_graph *graph, const gantry_schedule *schedule, char **dot,
                      size_t *size)
{
    gantry_error err;
    char *id = NULL;
    gantry_drawing_options how = GANTRY_DRAWING_OPTIONS_INIT;
    how.max_nodes = (int32_t)o->max_nodes;
    how.schedule = schedule;
    int code = take_clusters(&how, o);
    if (!code)
        code = take_node(&how, o, graph, &id);
    if (!code && how.near && gantry_graph_find_node(graph, how.near).id == GANTRY_NONE)
        code = fail_no_node("--node: ", graph, how.near);
    if (!code && gantry_graph_draw(graph, &how, dot, size, &err))
        code = fail(&err);
    free(id);
    return code;
}

/* With a machine or a policy, the graph as it is placed: its schedule or, with --cluster device, its nodes by device.
 */
static int draw_graph(const options *o, const char *text, size_t length, char **dot, size_t *size)
{
    gantry_graph *graph = NULL;
    gantry_schedule *schedule = NULL;
    known_computer k = { 0 };
    bool by_device = o->cluster && strcmp(o->cluster, "device") == 0;
    bool placed = o->machine || o->devices || o->policy || by_device;
    int code = read_graph(&graph, o, text, length);
    if (!code && placed)
        code = make_schedule(&schedule, o, graph, &k);
    if (!code && placed && !o->cluster && !o->node)
        code = draw_phase(schedule, o, dot, size);
    else if (!code)
        code = draw_nodes(o, graph, schedule, dot, size);
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
    bool scheduled = text && is_schedule(text, length);
    if (scheduled && (o->node || o->cluster || o->max_nodes)) {
        complain(
            "gantry dot: --node, --cluster and --max-nodes are for graphs, and \"%s\" is a schedule; give the graph, "
            "with --cluster device and --devices\n",
            path);
        code = EXIT_USAGE;
    } else if (scheduled)
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
    "param limits input machine devices policy unroll phase max-nodes node cluster allow-code no-fuse out json",
    "  gantry dot cholesky --param nt=3 | dot -Tsvg > graph.svg\n"
    "  gantry dot cholesky --param nt=16 | dot -Tsvg > folded.svg            families of nodes are one box each\n"
    "  gantry dot cholesky --node 'gemm[2,1,0]~2' | dot -Tsvg > near.svg     what is near a node\n"
    "  gantry dot cholesky --cluster device --devices 2 | dot -Tsvg > by.svg\n"
    "  gantry dot saxpy --devices 2 | dot -Tsvg > placed.svg\n"
    "  gantry schedule saxpy --devices 2 -o s.json && gantry dot s.json | dot -Tsvg > schedule.svg\n",
    run
};
