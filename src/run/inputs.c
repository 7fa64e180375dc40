/* SPDX-License-Identifier: Apache-2.0 */
/* Before a start: what inputs, states and constants begin with. */
#include "run/run.h"

#include "base/error.h"
#include "base/memory.h"
#include "run/array.h"
#include "run/edge.h"
#include "run/fill.h"

void gy_run_mark_used(gantry_run *run)
{
    const gantry_schedule *s = run->schedule;
    for (uint32_t id = 0; id < run->graph->buffers.count; id++) {
        const gy_buffer *b = &run->graph->buffers.at[id];
        run->binding[id].fetches = b->output && b->bytes == 0; /* nothing to fetch is there at once */
    }
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *instance = &s->instances.at[i];
        if (instance->space == GY_SPACE_INPUT || instance->role == GY_ROLE_PERSIST) {
            run->binding[instance->value].used = true; /* in these a value is a buffer */
        } else if (instance->space == GY_SPACE_OUTPUT) {
            run->binding[instance->value].fetches = true;
        }
    }
}

static gantry_status fail_unbound(const gantry_run *run, const gy_buffer *b, gantry_error *err)
{
    const char *cls = b->cls == GANTRY_STATE ? "state" : b->cls == GANTRY_CONST ? "constant" : "input";
    return gy_graph_fail(run->graph, b->origin, err, GANTRY_E_INVALID,
                         "%s buffer \"%s\" is not bound and has no init, so a start has nothing to begin with; bind it "
                         "(gantry_run_bind, --input %s=FILE) or give it an init",
                         cls, b->name, b->name);
}

static gantry_status pack_array(void **packed, const void *array, const gy_buffer *b, gantry_error *err)
{
    if (!*packed && !(*packed = gy_alloc(b->bytes))) {
        return gy_fail_nomem(err);
    }
    gy_pack(*packed, array, b);
    return GANTRY_OK;
}

/* From a file: C order, which tiled buffers are not kept in. */
static gantry_status read_init(void **packed, const gy_buffer *b, gantry_error *err)
{
    void *array;
    gantry_status status = gy_array_read(&array, b, b->init.path, b->init.kind == GY_INIT_NPY, err);
    if (status || !b->tile_offset) {
        if (status == GANTRY_OK) {
            *packed = array;
        }
        return status;
    }
    status = pack_array(packed, array, b, err);
    gy_free(array);
    return status;
}

static gantry_status make_init(void **packed, const gy_buffer *b, gantry_error *err)
{
    if (b->init.kind == GY_INIT_NPY || b->init.kind == GY_INIT_RAW) {
        return read_init(packed, b, err);
    }
    void *made = gy_alloc(b->bytes);
    if (!made) {
        return gy_fail_nomem(err);
    }
    gy_fill_rows(made, b, &b->init, 0, b->rows);
    *packed = made;
    return GANTRY_OK;
}

/* Packed contents of a buffer: the user's array where that is packed, else made once (init) or every time (tiled). */
static gantry_status contents_of(gantry_run *run, uint32_t id, const void **packed, gantry_error *err)
{
    const gy_buffer *b = &run->graph->buffers.at[id];
    gy_binding *binding = &run->binding[id];
    gantry_status status = GANTRY_OK;
    if (binding->array && !b->tile_offset) {
        *packed = binding->array;
        return GANTRY_OK;
    }
    if (binding->array) {
        status = pack_array(&binding->packed, binding->array, b, err);
    } else if (b->init.kind == GY_INIT_NONE) {
        status = fail_unbound(run, b, err);
    } else if (!binding->packed) {
        status = make_init(&binding->packed, b, err);
    }
    if (status == GANTRY_OK) {
        *packed = binding->packed;
    }
    return status;
}

static gantry_status place(gantry_run *run, uint32_t id, gantry_error *err)
{
    const gantry_schedule *s = run->schedule;
    const gy_buffer *b = &run->graph->buffers.at[id];
    const void *packed;
    gantry_status status = contents_of(run, id, &packed, err);
    for (uint32_t i = 0; status == GANTRY_OK && i < s->instances.count; i++) {
        const gy_instance *instance = &s->instances.at[i];
        if (instance->value == id && instance->role == GY_ROLE_PERSIST) {
            const char *rows = (const char *)packed + gy_buffer_offset(b, instance->first);
            status = run->backend->put(run->state, i, rows, err);
        }
    }
    if (status == GANTRY_OK) {
        gy_free(run->binding[id].packed); /* it lives in the back end's memory now */
        run->binding[id].packed = NULL;
        run->binding[id].placed = true;
    }
    return status;
}

static gantry_status refresh_input(gantry_run *run, uint32_t id, gantry_error *err)
{
    const void *packed;
    gantry_status status = contents_of(run, id, &packed, err);
    if (status == GANTRY_OK && run->input[id] != packed) {
        run->input[id] = packed;
        run->changed = true;
    }
    return status;
}

gantry_status gy_run_refresh_inputs(gantry_run *run, gantry_error *err)
{
    run->repack = false;
    for (uint32_t id = 0; id < run->graph->buffers.count; id++) {
        const gy_binding *binding = &run->binding[id];
        gantry_buffer_class cls = run->graph->buffers.at[id].cls;
        if (!binding->used) {
            continue;
        }
        run->repack |= cls == GANTRY_INPUT && binding->array && run->graph->buffers.at[id].tile_offset;
        gantry_status status = GANTRY_OK;
        if (cls == GANTRY_STATE || cls == GANTRY_CONST) {
            status = binding->placed ? GANTRY_OK : place(run, id, err);
        } else {
            status = refresh_input(run, id, err);
        }
        if (status) {
            return status;
        }
    }
    return GANTRY_OK;
}
