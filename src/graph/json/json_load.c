/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_graph_load and gantry_graph_parse: from text to a checked graph. */
#include "graph/json/json_read.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "graph/json/json_write.h"
#include <inttypes.h>
#include <string.h>

enum { FORMAT_VERSION = 1 };

static gantry_status read_version(gy_reader *r, const gy_json_at *root)
{
    gy_json_at at = gy_json_key(root, "gantry");
    if (!json_is_integer(at.value))
        return gy_read_kind(r, &at, "the version of the format, which is 1");
    if (json_integer_value(at.value) != FORMAT_VERSION) {
        return gy_read_fail(r, &at, "is version %" PRId64 " of the format; this library reads version %d",
                            (int64_t)json_integer_value(at.value), FORMAT_VERSION);
    }
    return GANTRY_OK;
}

static gantry_status read_machine(gy_reader *r, const gy_json_at *root)
{
    gy_json_at at = gy_json_key(root, "machine");
    if (!at.value)
        return GANTRY_OK;
    if (json_is_object(at.value)) {
        gy_text text = { 0 };
        gy_json_text(&text, at.value);
        gy_graph_set_machine(r->graph, text.failed ? NULL : text.at, NULL);
        gantry_status status = text.failed ? gy_read_nomem(r) : gy_read_built(r, &at);
        gy_text_free(&text);
        return status;
    }
    if (!json_is_string(at.value))
        return gy_read_kind(r, &at, "a machine or the name of a file with one");
    const char *path = NULL;
    gantry_status status = gy_read_path(r, &at, &path);
    if (status)
        return status;
    gy_graph_set_machine(r->graph, NULL, path);
    return gy_read_built(r, &at);
}

static gantry_status check_root_keys(gy_reader *r, const gy_json_at *root)
{
    static const char *const keys[] = { "gantry", "name",  "params", "buffers", "kernels", "nodes",  "machine",
                                        "repeat", "index", "carry",  "until",   "train",   "$schema" };
    GY_TRY(gy_read_keys(r, root, keys, COUNT(keys)));
    gy_json_at schema = gy_json_key(root, "$schema"); /* for editors: it is not read */
    return !schema.value || json_is_string(schema.value)
               ? GANTRY_OK
               : gy_read_kind(r, &schema, "the address of a JSON Schema, a string");
}

static gantry_status read_root(gy_reader *r, const gy_json_at *root)
{
    static gantry_status (*const sections[])(gy_reader *, const gy_json_at *) = {
        read_version,    gy_read_params, read_machine,  gy_read_buffers,
        gy_read_kernels, gy_read_nodes,  gy_read_train, gy_read_pending,
    };
    if (!json_is_object(root->value))
        return gy_read_kind(r, root, "a graph, an object");
    if (gy_json_refuse_other(root, "gantry", GANTRY_E_GRAPH, &r->error))
        return gy_read_locate(r, root);
    if (!json_object_get(root->value, "gantry")) /* another kind of file: nothing in it is told */
        return read_version(r, root);
    GY_TRY(check_root_keys(r, root));
    for (size_t i = 0; i < COUNT(sections); i++)
        GY_TRY(sections[i](r, root));
    return GANTRY_OK;
}

/* The name has to be known when the graph is made; what is wrong with it is said in its turn. */
static gantry_status read_name(gy_reader *r, const gy_json_at *root, const char **name)
{
    gy_json_at at = gy_json_key(root, "name");
    *name = "graph";
    return at.value ? gy_read_string(r, &at, "a name", name) : GANTRY_OK;
}

static gantry_status read_graph(gy_reader *r, const gy_json_at *root, const char *path)
{
    const char *name = "graph";
    gantry_status status = json_is_object(root->value) ? read_name(r, root, &name) : GANTRY_OK;
    if (status)
        return status;
    r->graph = gantry_graph_new(name);
    if (!r->graph)
        return gy_read_nomem(r);
    gy_graph_set_source(r->graph, r->name, path, r->folder);
    gy_graph_unique_ids(r->graph);
    gantry_graph_limit(r->graph, r->options->max_nodes);
    if (r->options->fuse)
        gantry_graph_fuse(r->graph);
    return read_root(r, root);
}

static gantry_status spread(gy_reader *r)
{
    gantry_strategy strategy = GANTRY_STRATEGY_INIT;
    GY_TRY(gantry_strategy_parse(&strategy, r->options->strategy, &r->error));
    r->graph->is_used = r->options->evaluate;
    return gantry_graph_parallelize(r->graph, &strategy, NULL, &r->error);
}

/* Marks what the loop carries from one iteration to the next. */
static void mark_carried(const gy_loop *loop, bool *changes)
{
    for (size_t i = 0; i < loop->carry.count; i++)
        changes[loop->carry.at[i].prev] = changes[loop->carry.at[i].next] = true;
}

/* An input that is fed, and that nothing of the graph changes, is a constant between two starts. */
static gantry_status let_land(gantry_graph *g, gantry_error *err)
{
    bool *changes = gy_calloc(g->buffers.count + 1, sizeof *changes);
    if (!changes)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < g->access.count; i++)
        changes[g->access.at[i].buffer] |= g->access.at[i].mode != GANTRY_READ;
    for (size_t i = 0; i < g->loops.count; i++)
        mark_carried(&g->loops.at[i], changes);
    for (size_t i = 0; i < g->inner.count; i++)
        mark_carried(&g->inner.at[i], changes);
    for (uint32_t i = 0; i < g->buffers.count; i++) {
        gy_buffer *b = &g->buffers.at[i];
        if (b->fed && b->cls == GANTRY_INPUT && !b->output && !b->external && !changes[i])
            b->cls = GANTRY_CONST;
    }
    gy_free(changes);
    return GANTRY_OK;
}

/* Mistakes that only the whole shows have the pointer of the node or buffer they belong to. */
static gantry_status check(gy_reader *r)
{
    bool is_model = r->options->train || r->options->evaluate;
    gantry_status status = is_model && r->options->strategy ? spread(r) : GANTRY_OK;
    if (!status && r->options->train)
        status = gantry_graph_differentiate(r->graph, NULL, &r->error);
    if (!status && r->options->evaluate)
        status = gy_read_evaluated(r);
    if (!status && r->options->land)
        status = let_land(r->graph, &r->error);
    status = status ? status : gantry_graph_check(r->graph, &r->error);
    return status ? gy_read_placed(r) : GANTRY_OK;
}

gantry_status gy_read_used(gy_reader *r, const gy_json_at *root, bool with_kernels)
{
    GY_TRY(read_version(r, root));
    GY_TRY(check_root_keys(r, root));
    if (with_kernels) /* before params: all uses share them */
        GY_TRY(gy_read_kernels(r, root));
    GY_TRY(gy_read_params(r, root));
    GY_TRY(gy_read_buffers(r, root));
    GY_TRY(gy_read_nodes(r, root));
    return gy_read_pending(r, root);
}

void gy_read_free(gy_reader *r)
{
    gy_names_free(&r->params);
    gy_vec_free(&r->index);
    gy_vec_free(&r->loop);
    gy_map_free(&r->compiled);
    gy_text_free(&r->id);
    gy_names_free(&r->families);
    gy_names_free(&r->written);
    gy_vec_free(&r->family);
    gy_vec_free(&r->sibling);
    gy_vec_free(&r->param);
    gy_names_free(&r->used);
    gy_vec_free(&r->use_of);
    gy_vec_free(&r->use_span);
    gy_vec_free(&r->pending);
    gy_vec_free(&r->in);
    gy_vec_free(&r->out);
}

/* `path` is NULL if the text is from memory. */
static gantry_status parse(gantry_graph **graph, const gy_reader *how, const char *path, gantry_error *err)
{
    gy_reader r = *how;
    json_t *root;
    gantry_status status = gy_json_parse_plain(&root, r.text, r.length, r.name, "gantry", GANTRY_E_GRAPH, &r.error);
    if (!status) {
        gy_json_at at = { NULL, NULL, 0, root };
        status = read_graph(&r, &at, path);
        json_decref(root);
    }
    gy_read_free(&r);
    if (r.graph)
        gy_build_free_files(r.graph->build_);
    if (!status)
        status = check(&r);
    status = status ? status : gy_read_check_inputs(&r);
    if (status) {
        gantry_graph_free(r.graph);
        if (err)
            *err = r.error;
        return status;
    }
    *graph = r.graph;
    return GANTRY_OK;
}

static gantry_status check_list(const char *const *list, size_t count, const char *what, gantry_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!list || !list[i]) {
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "%s%s of the load options is NULL and %s_count is %zu; give as many as you say", what,
                           list ? "[i]" : "s", what, count);
        }
    }
    return GANTRY_OK;
}

/* A strategy is no part of the file: what is wrong with it has no place there. With it, `devices` in the file are the
 * replicas: a batch that the file cuts into as many parts has one for each, and slices and stages share its whole. */
static gantry_status take_strategy(gantry_load_options *o, gantry_error *err)
{
    gantry_strategy strategy = GANTRY_STRATEGY_INIT;
    if (!o->strategy)
        return GANTRY_OK;
    GY_TRY(gantry_strategy_parse(&strategy, o->strategy, err));
    int64_t wanted = (int64_t)strategy.dp * strategy.tp * strategy.pp;
    if (!o->devices || wanted <= o->devices) {
        o->devices = strategy.dp;
        return GANTRY_OK;
    }
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "strategy \"%.80s\" is for %lld devices, and there are %d; give smaller numbers, or more devices",
                   o->strategy, (long long)wanted, (int)o->devices);
}

static gantry_status take_options(gantry_load_options *all, const gantry_load_options *given, gantry_error *err)
{
    *all = (gantry_load_options)GANTRY_LOAD_OPTIONS_INIT;
    GY_TRY(gy_struct_read(all, sizeof *all, given, "gantry_load_options", err));
    GY_TRY(check_list(all->params, all->param_count, "param", err));
    GY_TRY(check_list(all->inputs, all->input_count, "input", err));
    if (all->train && all->evaluate)
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "`train` and `evaluate` of the load options are both 1: a model is trained, or evaluated with the "
            "weights of a training; load it twice");
    if (all->devices >= 0)
        return take_strategy(all, err);
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "`devices` of the load options is %d; give how many devices there are, or 0 if that is not known",
                   (int)all->devices);
}

gantry_status gantry_graph_parse(gantry_graph **graph, const char *text, size_t length, const char *name,
                                 const char *folder, const gantry_load_options *options, gantry_error *err)
{
    GY_NEED(graph, err);
    GY_NEED(text, err);
    gantry_load_options all;
    gy_reader how = { .text = text, .length = length, .name = name ? name : "", .folder = folder, .options = &all };
    GY_TRY(take_options(&all, options, err));
    return parse(graph, &how, NULL, err);
}

gantry_status gantry_graph_load(gantry_graph **graph, const char *path, const gantry_load_options *options,
                                gantry_error *err)
{
    char *text, *folder = NULL;
    size_t length;
    GY_NEED(graph, err);
    GY_NEED(path, err);
    gantry_load_options all;
    gantry_status status = take_options(&all, options, err);
    status = status ? status : gy_file_read(&text, &length, path, err);
    if (status)
        return status;
    bool standard_input = strcmp(path, "-") == 0;
    if (!standard_input)
        folder = gy_path_folder(path);
    if (!folder && !standard_input) {
        status = gy_fail_nomem(err);
    } else {
        gy_reader how = { .text = text,
                          .length = length,
                          .name = standard_input ? "standard input" : path,
                          .folder = folder,
                          .options = &all };
        status = parse(graph, &how, standard_input ? NULL : path, err);
    }
    gy_free(folder);
    gy_free(text);
    return status;
}
