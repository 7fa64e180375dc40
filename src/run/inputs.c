/* SPDX-License-Identifier: Apache-2.0 */
/* Before a start: what inputs, states and constants begin with. */
#include "run/phases.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/flow/flow.h"
#include "run/array.h"
#include "run/edge.h"
#include "run/fill.h"
#include <errno.h>
#include <string.h>

gantry_status gy_run_mark_used(gantry_run *run, gantry_error *err)
{
    const gantry_schedule *s = run->schedule;
    if (s->phases.count)
        return gy_phases_mark_used(run, err);
    for (uint32_t id = 0; id < run->graph->buffers.count; id++) {
        const gy_buffer *b = &run->graph->buffers.at[id];
        run->binding[id].fetches = b->output && b->bytes == 0; /* nothing to fetch is there at once */
    }
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *instance = &s->instances.at[i];
        if (instance->space == GY_SPACE_INPUT || instance->role == GY_ROLE_PERSIST)
            run->binding[instance->value].used = true; /* in these a value is a buffer */
        else if (instance->space == GY_SPACE_OUTPUT)
            run->binding[instance->value].fetches = true;
    }
    return GANTRY_OK;
}

gantry_status gy_run_fail_unbound(const gantry_graph *graph, const gy_buffer *b, gantry_error *err)
{
    if (b->external) {
        return gy_graph_fail(graph, b->origin, err, GANTRY_E_INVALID,
                             "external buffer \"%s\" is not bound; a program binds it to memory of \"%s\" with "
                             "gantry_run_bind",
                             b->name, b->external);
    }
    const char *cls = b->cls == GANTRY_STATE ? "state" : b->cls == GANTRY_CONST ? "constant" : "input";
    return gy_graph_fail(graph, b->origin, err, GANTRY_E_INVALID,
                         "%s buffer \"%s\" is not bound and has no init, so a start has nothing to begin with; bind it "
                         "(gantry_run_bind, --input %s=FILE, in Python %s=array) or give it an init",
                         cls, b->name, b->name, b->name);
}

gantry_status gy_run_fail_init(const gantry_graph *graph, const gy_buffer *b, gantry_status status, gantry_error *err)
{
    if (!err)
        return status;
    const gy_origin *origin = &graph->origins.at[b->origin];
    const gantry_error why = *err;
    if (why.native == ENOENT && origin->use) {
        gy_fail(err, status, NULL, "%.380s; write it first, or give that buffer one of the graph around by \"with\"",
                why.text);
    } else if (why.native == ENOENT) {
        gy_fail(err, status, NULL, "%.380s; write it first, or bind the buffer (gantry_run_bind, --input %.40s=FILE)",
                why.text, b->name);
    }
    err->native = why.native;
    gy_graph_locate(graph, origin, b->init.kind == GY_INIT_NPY ? "/init/npy" : "/init/raw", err);
    return status;
}

static gantry_status pack_array(void **packed, const void *array, const gy_buffer *b, gantry_error *err)
{
    if (!*packed && !(*packed = gy_alloc_array(b->bytes)))
        return gy_fail_nomem(err);
    gy_tiles_pack(*packed, array, b);
    return GANTRY_OK;
}

/* From a file: C order, which tiled buffers are not kept in. */
static gantry_status read_init(const gantry_graph *graph, void **packed, const gy_buffer *b, gantry_error *err)
{
    void *array;
    gantry_status status = gy_array_read(&array, b, b->init.path, b->init.folder, b->init.kind == GY_INIT_NPY, err);
    if (status)
        return gy_run_fail_init(graph, b, status, err);
    if (!b->tile_offset) {
        *packed = array;
        return GANTRY_OK;
    }
    status = pack_array(packed, array, b, err);
    gy_free(array);
    return status;
}

static gantry_status make_init(const gantry_run *run, void **packed, uint32_t id, gantry_error *err)
{
    const gy_buffer *b = &run->graph->buffers.at[id];
    int64_t first, last;
    if (b->init.kind == GY_INIT_NPY || b->init.kind == GY_INIT_RAW)
        return read_init(run->graph, packed, b, err);
    void *made = gy_alloc_array(b->bytes);
    if (!made)
        return gy_fail_nomem(err);
    gy_run_rows_wanted(run, id, &first, &last);
    gy_fill_buffer(made, b, &b->init, first, last);
    *packed = made;
    return GANTRY_OK;
}

/* Of a buffer that has no init and is not bound: nobody may find what it begins with. */
static gantry_status make_none(const gantry_run *run, void **packed, uint32_t id, gantry_error *err)
{
    const gy_buffer *b = &run->graph->buffers.at[id];
    bool found = true;
    GY_TRY(b->external ? GANTRY_OK : gy_flow_finds_beginning(run->graph, id, &found, err));
    if (found)
        return gy_run_fail_unbound(run->graph, b, err);
    *packed = gy_alloc_array(b->bytes);
    if (!*packed)
        return gy_fail_nomem(err);
    memset(*packed, 0, b->bytes);
    return GANTRY_OK;
}

/* Packed contents of a buffer: the user's array where that is packed, else made once (init) or every time, in *tiles
 * (tiled). */
static gantry_status contents_of(gantry_run *run, uint32_t id, void **tiles, const void **packed, gantry_error *err)
{
    const gy_buffer *b = &run->graph->buffers.at[id];
    gy_binding *binding = &run->binding[id];
    gantry_status status = GANTRY_OK;
    if (binding->array && !b->tile_offset) {
        *packed = binding->array;
        return GANTRY_OK;
    }
    if (binding->array)
        status = pack_array(tiles, binding->array, b, err);
    else if (!binding->packed)
        status = b->init.kind == GY_INIT_NONE ? make_none(run, &binding->packed, id, err)
                                              : make_init(run, &binding->packed, id, err);
    if (status == GANTRY_OK)
        *packed = binding->array ? *tiles : binding->packed;
    return status;
}

gantry_status gy_run_contents(gantry_run *run, uint32_t id, const void **packed, gantry_error *err)
{
    return contents_of(run, id, &run->binding[id].packed, packed, err);
}

/* *packed: contents of the whole buffer; NULL while nobody needed them. */
static gantry_status place_instance(gantry_run *run, uint32_t i, const void **packed, gantry_error *err)
{
    const gy_instance *instance = &run->schedule->instances.at[i];
    uint32_t id = instance->value;
    bool made = false;
    if (!run->binding[id].array && run->backend->make)
        GY_TRY(run->backend->make(run->state, i, &made, err));
    if (made)
        return GANTRY_OK;
    if (!*packed)
        GY_TRY(gy_run_contents(run, id, packed, err));
    int64_t offset = gy_buffer_offset(&run->graph->buffers.at[id], instance->first);
    return run->backend->put(run->state, i, (const char *)*packed + offset, err);
}

static gantry_status place(gantry_run *run, uint32_t id, gantry_error *err)
{
    const gantry_schedule *s = run->schedule;
    const void *packed = NULL;
    gantry_status status = GANTRY_OK;
    run->job.alike = gy_run_put_alike(run, id);
    if (s->phases.count) {
        GY_TRY(gy_run_contents(run, id, &packed, err));
        status = run->backend->put(run->state, id, packed, err);
    }
    for (uint32_t i = 0; status == GANTRY_OK && i < s->instances.count; i++)
        if (s->instances.at[i].value == id && s->instances.at[i].role == GY_ROLE_PERSIST)
            status = place_instance(run, i, &packed, err);
    run->job.alike = false;
    if (status == GANTRY_OK) {
        gy_free(run->binding[id].packed); /* it lives in the back end's memory now */
        run->binding[id].packed = NULL;
        run->binding[id].placed = true;
    }
    return status;
}

static bool persists(const gantry_run *run, uint32_t id)
{
    gantry_buffer_class cls = run->graph->buffers.at[id].cls;
    return cls == GANTRY_STATE || cls == GANTRY_CONST;
}

gantry_status gy_run_put_states(gantry_run *run, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t id = 0; status == GANTRY_OK && id < run->graph->buffers.count; id++) {
        const gy_binding *binding = &run->binding[id];
        if (binding->used && !binding->placed && persists(run, id))
            status = place(run, id, err);
    }
    return status;
}

static gantry_status refresh_input(gantry_run *run, uint32_t turn, uint32_t id, gantry_error *err)
{
    const void *packed, **input = &run->input[gy_job_index(&run->job, turn, id)];
    gy_turn *mine = gy_run_turn(run, turn, id);
    gantry_status status = contents_of(run, id, &mine->packed, &packed, err);
    if (status == GANTRY_OK && *input != packed) {
        *input = packed;
        run->changed |= run->job.turns == 1;
    }
    return status;
}

gantry_status gy_run_refresh_inputs(gantry_run *run, uint32_t turn, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    run->repack = false;
    for (uint32_t id = 0; status == GANTRY_OK && id < run->graph->buffers.count; id++) {
        const gy_buffer *b = &run->graph->buffers.at[id];
        if (run->binding[id].used && !run->binding[id].fed && !persists(run, id)) {
            run->repack |= run->binding[id].array && b->tile_offset;
            status = refresh_input(run, turn, id, err);
        }
    }
    return status;
}
