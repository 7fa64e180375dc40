/* SPDX-License-Identifier: Apache-2.0 */
/* Where outputs arrive, and how callers see them. */
#include "run/run.h"

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "run/array.h"
#include "run/edge.h"
#include <inttypes.h>

static gantry_status own_memory(void **memory, uint64_t bytes, gantry_error *err)
{
    if (!*memory && !(*memory = gy_calloc(1, bytes ? bytes : 1))) {
        return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

static gantry_status refresh_output(gantry_run *run, uint32_t id, gantry_error *err)
{
    const gy_buffer *b = &run->graph->buffers.at[id];
    gy_binding *binding = &run->binding[id];
    bool direct = binding->result && !b->tile_offset;
    gantry_status status = direct ? GANTRY_OK : own_memory(&binding->fetched, b->bytes, err);
    if (status == GANTRY_OK && b->tile_offset && !binding->result) {
        status = own_memory(&binding->unpacked, b->bytes, err);
    }
    void *target = direct ? binding->result : binding->fetched;
    if (status == GANTRY_OK && run->output[id] != target) {
        run->output[id] = target;
        run->changed = true;
    }
    run->edge |= b->tile_offset != NULL;
    return status;
}

gantry_status gy_run_refresh_outputs(gantry_run *run, gantry_error *err)
{
    run->edge = false;
    for (uint32_t id = 0; id < run->graph->buffers.count; id++) {
        gantry_status status = run->binding[id].fetches ? refresh_output(run, id, err) : GANTRY_OK;
        if (status) {
            return status;
        }
    }
    return GANTRY_OK;
}

const void *gy_run_result(const gantry_run *run, uint32_t buffer)
{
    const gy_binding *binding = &run->binding[buffer];
    if (!binding->fetches) {
        return NULL;
    }
    if (binding->result) {
        return binding->result;
    }
    return run->graph->buffers.at[buffer].tile_offset ? binding->unpacked : binding->fetched;
}

void gy_run_edge_outputs(gantry_run *run)
{
    for (uint32_t id = 0; id < run->graph->buffers.count; id++) {
        const gy_buffer *b = &run->graph->buffers.at[id];
        const gy_binding *binding = &run->binding[id];
        if (binding->fetches && b->tile_offset) {
            gy_unpack(binding->result ? binding->result : binding->unpacked, binding->fetched, b);
        }
    }
}

gantry_status gantry_run_output(gantry_run *run, gantry_buffer buffer, const void **host, uint64_t *bytes,
                                gantry_error *err)
{
    const gy_buffer *b;
    gantry_status status = gy_run_buffer(run, buffer, &b, err);
    if (status) {
        return status;
    }
    if (!b->output) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "buffer \"%s\" is no output; mark it with gantry_buffer_output",
                       b->name);
    }
    if (!run->backend->executes) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "back end \"%s\" gives times only, buffer \"%s\" has no contents", run->backend->name, b->name);
    }
    if (run->finished == 0 || run->finished != run->started || run->failure.last == run->finished) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "output \"%s\" has no contents yet: the last start %s; call gantry_run_wait first", b->name,
                       run->started == 0               ? "has not been made"
                       : run->finished != run->started ? "has not been waited for"
                                                       : "failed");
    }
    const void *result = gy_run_result(run, buffer.id);
    if (!result) {
        return gy_fail(err, GANTRY_E_SCHEDULE, NULL, "the schedule does not fetch output \"%s\"", b->name);
    }
    *host = result;
    *bytes = b->bytes;
    return GANTRY_OK;
}

gantry_status gantry_run_save(gantry_run *run, gantry_buffer buffer, const char *path, gantry_error *err)
{
    const void *host;
    uint64_t bytes;
    gantry_status status = gantry_run_output(run, buffer, &host, &bytes, err);
    return status ? status : gy_array_write(host, &run->graph->buffers.at[buffer.id], path, err);
}

gantry_status gantry_run_hash(gantry_run *run, gantry_buffer buffer, uint64_t *hash, gantry_error *err)
{
    const void *host;
    uint64_t bytes;
    gantry_status status = gantry_run_output(run, buffer, &host, &bytes, err);
    if (status == GANTRY_OK) {
        *hash = gy_hash_bytes(host, bytes, 0);
    }
    return status;
}
