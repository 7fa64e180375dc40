/* SPDX-License-Identifier: Apache-2.0 */
/* Binding: which memory of the caller a buffer begins with or ends in, and scalars between starts. */
#include "run/run.h"

#include "base/error.h"
#include "base/memory.h"
#include "images/images.h"
#include "kernel/registry.h"
#include "run/array.h"
#include <inttypes.h>

gantry_status gy_run_buffer(const gantry_run *run, gantry_buffer id, const gy_buffer **buffer, gantry_error *err)
{
    if (!gy_graph_gave(run->graph, id.graph)) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, GY_OTHER_GRAPH, "buffer", id.id, id.graph, run->graph->name,
                       run->graph->number);
    }
    if (id.id >= run->graph->buffers.count) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no buffer has the id %" PRIu32 "; the graph has %zu", id.id,
                       run->graph->buffers.count);
    }
    *buffer = &run->graph->buffers.at[id.id];
    return GANTRY_OK;
}

gantry_status gy_run_need_idle(gantry_run *run, const char *what, gantry_error *err)
{
    if (run->finished == run->started)
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_INVALID, NULL, "%s while start %" PRIu64 " is in flight; wait for it first", what,
                   run->started);
}

static gantry_status check_bytes(const gy_buffer *b, const void *host, uint64_t bytes, gantry_error *err)
{
    if (bytes == b->bytes && (host || bytes == 0))
        return GANTRY_OK;
    gy_text type = { 0 };
    gy_array_text(&type, b->dtype, b->rank, b->shape);
    gantry_status status = GANTRY_E_INVALID;
    if (type.failed) {
        status = gy_fail_nomem(err);
    } else if (bytes != b->bytes) {
        gy_fail(err, status, NULL, "buffer \"%s\" is %s, that is %" PRIu64 " bytes, but %" PRIu64 " bytes were bound",
                b->name, type.at, b->bytes, bytes);
    } else {
        gy_fail(err, status, NULL, "buffer \"%s\" is %s and was bound to no memory (NULL)", b->name, type.at);
    }
    gy_text_free(&type);
    return status;
}

/* A buffer that is bound outside host memory must be in the memory that the schedule says. */
static gantry_status check_outside(gantry_run *run, const gy_buffer *b, const void *at, const char *call,
                                   gantry_error *err)
{
    uint32_t memory = gy_buffer_home(run->schedule->machine, b);
    gantry_status status = gy_run_need_idle(run, call, err);
    if (status || !run->backend->locate || memory == 0 || b->bytes == 0)
        return status;
    gantry_error why = { 0 };
    status = run->backend->locate(run->state, memory, at, b->bytes, &why);
    return status
               ? gy_fail(err, status, NULL, "external buffer \"%s\" cannot be bound to %p: %s", b->name, at, why.text)
               : GANTRY_OK;
}

/* Inputs do not change during a start, and two outputs are two. */
static gantry_status check_apart(const gantry_run *run, uint32_t id, const void *memory, bool output, gantry_error *err)
{
    uint64_t bytes = run->graph->buffers.at[id].bytes;
    for (uint32_t other = 0; other < run->graph->buffers.count; other++) {
        const gy_buffer *b = &run->graph->buffers.at[other];
        const gy_binding *with = &run->binding[other];
        bool clash = (output && gy_overlap(memory, bytes, with->array, b->bytes)) ||
                     ((!output || other != id) && gy_overlap(memory, bytes, with->result, b->bytes));
        if (clash) {
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "buffer \"%s\" was bound to memory that buffer \"%s\" is bound to, and one of them is an "
                           "output; give outputs memory of their own",
                           run->graph->buffers.at[id].name, b->name);
        }
    }
    return GANTRY_OK;
}

/* Starts in flight go on with what they have. */
static void retire(gantry_run *run, void *memory)
{
    if (run->finished == run->started)
        gy_free(memory);
    else if (memory)
        run->retired.at[run->retired.count++] = memory; /* there is room: gy_run_set_array */
}

gantry_status gy_run_set_array(gantry_run *run, uint32_t id, const void *array, void *own, gantry_error *err)
{
    gy_binding *binding = &run->binding[id];
    if (!gy_vec_reserve(&run->retired, run->retired.count + 2))
        return gy_fail_nomem(err);
    if (binding->fed)
        gy_run_feed_end(run, id);
    retire(run, binding->own);
    retire(run, binding->packed);
    *binding = (gy_binding){
        .array = array, .own = own, .result = binding->result, .used = binding->used, .fetches = binding->fetches
    };
    run->version++;
    run->bound[id]++;
    run->unplaced = run->unplaced || run->graph->buffers.at[id].cls != GANTRY_INPUT;
    return GANTRY_OK;
}

/* Contents that are bound are read, never written, and may be const; an output takes none. */
gantry_status gy_run_check_contents(const gy_buffer *b, gantry_error *err)
{
    if (b->cls == GANTRY_INPUT || b->cls == GANTRY_STATE || b->cls == GANTRY_CONST)
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   b->output
                       ? "buffer \"%s\" is an output and takes no contents: gantry_run_bind is for inputs, states "
                         "and constants; bind its result with gantry_run_bind_output"
                       : "buffer \"%s\" is temporary: only inputs, states, constants and outputs can be bound",
                   b->name);
}

/* Contents of persistent instances are set up once, not by each start; and starts read what a buffer is fed with. */
static gantry_status need_idle_for(gantry_run *run, uint32_t id, const char *what, gantry_error *err)
{
    gantry_buffer_class cls = run->graph->buffers.at[id].cls;
    bool idle = cls == GANTRY_STATE || cls == GANTRY_CONST || run->binding[id].fed;
    return idle ? gy_run_need_idle(run, what, err) : GANTRY_OK;
}

static gantry_status bind(gantry_run *run, gantry_buffer buffer, const void *host, uint64_t bytes, gantry_error *err)
{
    const gy_buffer *b;
    gantry_status status = gy_run_buffer(run, buffer, &b, err);
    status = status ? status : need_idle_for(run, buffer.id, "gantry_run_bind", err);
    if (status)
        return status;
    GY_TRY(gy_run_check_contents(b, err));
    status = check_bytes(b, host, bytes, err);
    status = status ? status : check_apart(run, buffer.id, host, false, err);
    status = status || !b->external ? status : check_outside(run, b, host, "gantry_run_bind", err);
    return status ? status : gy_run_set_array(run, buffer.id, host, NULL, err);
}

gantry_status gantry_run_bind(gantry_run *run, gantry_buffer buffer, const void *host, uint64_t bytes,
                              gantry_error *err)
{
    GY_USE_RUN(run, bind(run, buffer, host, bytes, err), err);
}

static gantry_status bind_output(gantry_run *run, gantry_buffer buffer, void *host, uint64_t bytes, gantry_error *err)
{
    const gy_buffer *b;
    gantry_status status = gy_run_buffer(run, buffer, &b, err);
    if (status)
        return status;
    if (!b->output) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "buffer \"%s\" is no output, so its result cannot be bound; mark it with gantry_buffer_output",
                       b->name);
    }
    status = check_bytes(b, host, bytes, err);
    status = status ? status : check_apart(run, buffer.id, host, true, err);
    status = status || !b->external ? status : check_outside(run, b, host, "gantry_run_bind_output", err);
    if (status == GANTRY_OK) {
        run->binding[buffer.id].result = host;
        run->version++;
        run->bound[buffer.id]++;
    }
    return status;
}

gantry_status gantry_run_bind_output(gantry_run *run, gantry_buffer buffer, void *host, uint64_t bytes,
                                     gantry_error *err)
{
    GY_USE_RUN(run, bind_output(run, buffer, host, bytes, err), err);
}

gantry_status gy_run_bind_file(gantry_run *run, gantry_buffer buffer, const char *path, gantry_error *err)
{
    const gy_buffer *b;
    gantry_status status = gy_run_buffer(run, buffer, &b, err);
    status = status ? status : need_idle_for(run, buffer.id, "gantry_run_bind_file", err);
    if (status)
        return status;
    if (gy_run_check_contents(b, NULL)) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "buffer \"%s\" takes no input, so %s cannot be read into it",
                       b->name, path);
    }
    if (b->external) {
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "buffer \"%s\" is external, kept in \"%s\" by the program, so %s cannot be read into it; bind it "
            "with gantry_run_bind",
            b->name, b->external, path);
    }
    void *own;
    status = gy_images_named(path) ? gy_array_read_images(&own, b, path, err)
                                   : gy_array_read(&own, b, path, NULL, gy_is_npy_name(path), err);
    if (status == GANTRY_OK && (status = gy_run_set_array(run, buffer.id, own, own, err)))
        gy_free(own);
    return status;
}

gantry_status gantry_run_bind_file(gantry_run *run, gantry_buffer buffer, const char *path, gantry_error *err)
{
    GY_NEED(path, err);
    GY_USE_RUN(run, gy_run_bind_file(run, buffer, path, err), err);
}

static gantry_status fail_scalar(const gy_node *node, const gantry_kernel *manifest, const char *name,
                                 gantry_error *err)
{
    if (!manifest) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "node \"%s\" has no scalar \"%s\": only kernels have scalars",
                       node->id, name);
    }
    gy_text names = { 0 };
    for (int32_t i = 0; i < manifest->args; i++)
        if (manifest->arg[i].scalar)
            gy_text_printf(&names, "%s %s", names.length ? "," : "", manifest->arg[i].name);
    gantry_status status =
        gy_fail(err, GANTRY_E_INVALID, NULL, "node \"%s\" has no scalar \"%s\"; kernel \"%s\" takes%s", node->id, name,
                manifest->name, names.length ? names.at : " none");
    gy_text_free(&names);
    return status;
}

static gantry_status set_scalar(gantry_run *run, gantry_node id, const char *name, double value, gantry_error *err)
{
    GY_TRY(gy_run_need_idle(run, "gantry_run_set_scalar", err));
    const gantry_graph *g = run->graph;
    if (!gy_graph_gave(g, id.graph))
        return gy_fail(err, GANTRY_E_INVALID, NULL, GY_OTHER_GRAPH, "node", id.id, id.graph, g->name, g->number);
    if (id.id >= g->nodes.count) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no node has the id %" PRIu32 "; the graph has %zu", id.id,
                       g->nodes.count);
    }
    const gy_node *node = &g->nodes.at[id.id];
    const gantry_kernel *manifest = node->kernel == GY_NONE ? NULL : g->kernels.at[node->kernel].manifest;
    int arg = manifest ? gy_kernel_find_arg(manifest, name) : -1;
    for (uint32_t i = node->scalar; arg >= 0 && i < node->scalar + node->scalars; i++) {
        if (g->scalar.at[i].arg != (uint16_t)arg)
            continue;
        if (!g->scalar.at[i].dynamic) {
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "scalar \"%s\" of node \"%s\" is fixed; make it dynamic in the graph to change it", name,
                           node->id);
        }
        gantry_error inner;
        if (gy_scalar_check(g, id.id, (uint32_t)arg, (gy_constant){ .real = value }, &inner))
            return gy_fail(err, GANTRY_E_INVALID, NULL, "node \"%s\": %s", node->id, inner.text);
        run->scalar[i] = (gy_constant){ .real = value };
        run->changed = true;
        return GANTRY_OK;
    }
    return fail_scalar(node, manifest, name, err);
}

gantry_status gantry_run_set_scalar(gantry_run *run, gantry_node id, const char *name, double value, gantry_error *err)
{
    GY_NEED(name, err);
    GY_USE_RUN(run, set_scalar(run, id, name, value, err), err);
}
