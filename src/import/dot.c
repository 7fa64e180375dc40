/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Digraphs of Graphviz, read by graphviz itself (graphviz.c) and taken from its JSON
 * (https://graphviz.org/docs/outputs/json/): `objects` are the subgraphs, which mean nothing here, then the nodes;
 * `edges` point to them by `_gvid`. DOT has no attribute that means time, so the ones that collections of task graphs
 * use are tried, in the order below; one for all nodes and one for all edges of a file.
 */
#include "import/import.h"

#include "base/error.h"
#include "base/map.h"
#include <errno.h>
#include <string.h>

typedef enum meaning { NONE, TIME, FLOPS, BYTES } meaning;

typedef struct attribute {
    const char *name;
    meaning meaning;
} attribute;

/* "size" is operations of a node and bytes of an edge: DAGGEN and SimGrid. */
static const attribute of_nodes[] = { { "time_us", TIME }, { "time", TIME },   { "cost", TIME },  { "weight", TIME },
                                      { "Weight", TIME },  { "flops", FLOPS }, { "size", FLOPS }, { NULL, NONE } };
static const attribute of_edges[] = { { "time_us", TIME }, { "time", TIME },   { "cost", TIME },  { "weight", TIME },
                                      { "Weight", TIME },  { "bytes", BYTES }, { "size", BYTES }, { NULL, NONE } };

typedef struct dot {
    gy_import *in;
    gy_map tasks; /* _gvid -> task */
    gantry_error *err;
} dot;

/* ---- attributes ---- */

/* The text of an attribute; NULL if it is not given. Graphviz writes "" for what only others of the graph have. */
static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text && *text ? text : NULL;
}

static bool any_has(const json_t *list, const char *name, size_t from)
{
    for (size_t i = from; i < json_array_size(list); i++)
        if (text_of(json_array_get(list, i), name))
            return true;
    return false;
}

/* The one that was asked for, else the first usual one that occurs. */
static attribute choose(const json_t *list, size_t from, const char *asked, const attribute *usual)
{
    attribute chosen = { asked, TIME };
    for (; usual->name; usual++) {
        if (asked && strcmp(usual->name, asked) == 0)
            return *usual;
        if (!asked && any_has(list, usual->name, from))
            return *usual;
    }
    return asked ? chosen : (attribute){ NULL, NONE };
}

static gantry_status read_amount(const dot *d, const char *text, const char *what, const char *name, double *value)
{
    if (!gy_parse_double(text, strlen(text), value) || !(*value >= 0 && *value <= 1e18))
        return gy_fail(d->err, GANTRY_E_GRAPH, NULL,
                       "%s has %s=\"%.60s\"; give a number from 0 to 1e+18, or choose another attribute", what, name,
                       text);
    return GANTRY_OK;
}

/* ---- nodes ---- */

static gantry_status fail_no_time(const dot *d, const char *id, const char *name)
{
    bool asked = d->in->options.node_time != NULL;
    return gy_fail(d->err, GANTRY_E_GRAPH, NULL, "node \"%.100s\" has no attribute \"%s\"%s; give it one", id, name,
                   asked ? "" : ", which other nodes have");
}

static gantry_status read_node(dot *d, const gy_json_at *at, attribute cost)
{
    int64_t gvid = 0;
    const char *id = NULL;
    double value = 1; /* without times all nodes are alike */
    gantry_status status = gy_json_int(at, "_gvid", true, 0, 0, INT32_MAX, &gvid, GANTRY_E_GRAPH, d->err);
    if (!status)
        status = gy_json_string(at, "name", true, NULL, &id, GANTRY_E_GRAPH, d->err);
    if (status)
        return status;
    gy_import_task *t = gy_import_add_task(d->in, id);
    if (!t || !gy_map_put(&d->tasks, (uint64_t)gvid, d->in->tasks.count - 1))
        return gy_fail_nomem(d->err);
    const char *text = cost.name ? text_of(at->value, cost.name) : NULL;
    if (cost.name && !text)
        return fail_no_time(d, id, cost.name);
    const char *what = text ? gy_arena_printf(&d->in->arena, "node \"%.100s\"", id) : "";
    status = !what ? gy_fail_nomem(d->err) : text ? read_amount(d, text, what, cost.name, &value) : GANTRY_OK;
    t->time = cost.meaning == FLOPS ? -1 : value;
    t->flops = cost.meaning == FLOPS ? value : 0;
    return status;
}

static gantry_status read_nodes(dot *d, const gy_json_at *root)
{
    gy_json_at objects = gy_json_key(root, "objects");
    int64_t subgraphs = 0;
    gantry_status status =
        gy_json_int(root, "_subgraph_cnt", false, 0, 0, INT32_MAX, &subgraphs, GANTRY_E_GRAPH, d->err);
    if (status || !objects.value)
        return status;
    status = gy_import_array(root, "objects", &objects, d->err);
    if (status)
        return status;
    attribute cost = choose(objects.value, (size_t)subgraphs, d->in->options.node_time, of_nodes);
    d->in->in_flops = cost.meaning == FLOPS;
    for (size_t i = (size_t)subgraphs; i < json_array_size(objects.value) && !status; i++) {
        gy_json_at at = gy_json_item(&objects, i);
        status = gy_import_object(&at, "a node", d->err);
        if (!status)
            status = read_node(d, &at, cost);
    }
    return status;
}

/* ---- edges ---- */

static gantry_status read_end(const dot *d, const gy_json_at *at, const char *key, uint32_t *task)
{
    int64_t gvid = 0;
    uint64_t found;
    GY_TRY(gy_json_int(at, key, true, 0, 0, INT32_MAX, &gvid, GANTRY_E_GRAPH, d->err));
    if (!gy_map_get(&d->tasks, (uint64_t)gvid, &found))
        return gy_json_fail(d->err, GANTRY_E_GRAPH, at, "\"%s\" is %lld, which is the \"_gvid\" of no node", key,
                            (long long)gvid);
    *task = (uint32_t)found;
    return GANTRY_OK;
}

static gantry_status read_edge(dot *d, const gy_json_at *at, attribute cost)
{
    uint32_t tail = 0, head = 0;
    double amount = 0; /* an edge that says nothing is plain order */
    gantry_status status = gy_import_object(at, "an edge", d->err);
    if (!status)
        status = read_end(d, at, "tail", &tail);
    if (!status)
        status = read_end(d, at, "head", &head);
    const char *text = !status && cost.name ? text_of(at->value, cost.name) : NULL;
    if (text) {
        const char *what = gy_arena_printf(&d->in->arena, "edge \"%.60s\" -> \"%.60s\"", d->in->tasks.at[tail].id,
                                           d->in->tasks.at[head].id);
        status = what ? read_amount(d, text, what, cost.name, &amount) : gy_fail_nomem(d->err);
    }
    if (!status && !gy_import_add_edge(d->in, tail, head, amount))
        status = gy_fail_nomem(d->err);
    return status;
}

static gantry_status read_edges(dot *d, const gy_json_at *root)
{
    gy_json_at edges = gy_json_key(root, "edges");
    if (!edges.value)
        return GANTRY_OK;
    gantry_status status = gy_import_array(root, "edges", &edges, d->err);
    if (status)
        return status;
    attribute cost = choose(edges.value, 0, d->in->options.edge_cost, of_edges);
    if (d->in->options.edge_cost && !any_has(edges.value, cost.name, 0))
        return gy_fail(d->err, GANTRY_E_GRAPH, NULL, "no edge has the attribute \"%.60s\"; choose one that some have",
                       cost.name);
    d->in->in_bytes = cost.meaning == BYTES;
    for (size_t i = 0; i < json_array_size(edges.value) && !status; i++) {
        gy_json_at at = gy_json_item(&edges, i);
        status = read_edge(d, &at, cost);
    }
    return status;
}

/* ---- all of it ---- */

static gantry_status read_graph(dot *d, const gy_json_at *root)
{
    bool directed = true;
    const char *name = NULL;
    GY_TRY(gy_import_object(root, "the graph", d->err));
    GY_TRY(gy_json_bool(root, "directed", true, &directed, GANTRY_E_GRAPH, d->err));
    if (!directed)
        GY_TRY(gy_fail(d->err, GANTRY_E_GRAPH, NULL,
                       "the graph has no directions, so nothing says what comes first; write digraph and ->"));
    GY_TRY(gy_json_string(root, "name", false, NULL, &name, GANTRY_E_GRAPH, d->err));
    /* Graphs without a name are called "%1" and the like. */
    if (name && *name && *name != '%' && !(d->in->name = gy_arena_strdup(&d->in->arena, name)))
        GY_TRY(gy_fail_nomem(d->err));
    GY_TRY(read_nodes(d, root));
    return read_edges(d, root);
}

/* Graphviz writes one object a graph, one after the other. */
static bool has_more(const char *text, size_t length, size_t from)
{
    while (from < length && strchr(" \t\r\n", text[from]))
        from++;
    return from < length;
}

static gantry_status read_json(dot *d, const char *text, size_t length)
{
    json_error_t error = { 0 };
    json_t *root = gy_json_load(text, length, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
    gantry_status status = GANTRY_OK;
    if (!root && (d->in->has_pointers || gy_json_no_memory(&error)))
        return gy_json_fail_syntax(&error, text, length, d->in->source, "objects", d->err);
    if (!root)
        return gy_fail(d->err, GANTRY_E_GRAPH, NULL,
                       "graphviz makes of it what is not well-formed JSON: %.200s; rename "
                       "attributes that are called like parts of the graph",
                       error.text);
    if (has_more(text, length, (size_t)error.position))
        status =
            gy_fail(d->err, GANTRY_E_GRAPH, NULL, "there is more than one graph in the file; import one at a time");
    gy_json_at at = { NULL, NULL, 0, root };
    if (!status)
        status = read_graph(d, &at);
    json_decref(root);
    gy_map_free(&d->tasks);
    return status;
}

/* DOT cannot begin with a brace. */
static bool is_json(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && strchr(" \t\r\n", text[at]))
        at++;
    return at < length && text[at] == '{';
}

gantry_status gy_import_dot(gy_import *in, gantry_error *err)
{
    dot d = { .in = in, .err = err };
    char *json = NULL;
    size_t length = 0;
    in->unit_us = 1;
    in->has_pointers = is_json(in->text, in->length);
    if (in->has_pointers)
        return read_json(&d, in->text, in->length);
    gantry_status status = gy_import_graphviz(in->text, in->length, GY_GRAPHVIZ_SECONDS, &json, &length, err);
    if (!status && !has_more(json, length, 0))
        status = gy_fail(err, GANTRY_E_GRAPH, NULL, "there is no graph in the file; give a digraph");
    if (!status)
        status = read_json(&d, json, length);
    gy_free(json);
    return status;
}
