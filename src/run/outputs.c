/* SPDX-License-Identifier: Apache-2.0 */
/* Where outputs arrive, and how callers see them. */
#include "run/run.h"

#include "base/error.h"
#include "base/files.h"
#include "base/map.h"
#include "base/memory.h"
#include "run/array.h"
#include "run/edge.h"
#include <inttypes.h>

static gantry_status own_memory(void **memory, uint64_t bytes, gantry_error *err)
{
    if (!*memory && !(*memory = gy_calloc_array(bytes)))
        return gy_fail_nomem(err);
    return GANTRY_OK;
}

static gantry_status refresh_output(gantry_run *run, uint32_t turn, uint32_t id, gantry_error *err)
{
    const gy_buffer *b = &run->graph->buffers.at[id];
    gy_turn *mine = gy_run_turn(run, turn, id);
    void **output = &run->output[gy_job_index(&run->job, turn, id)];
    bool direct = mine->result && !b->tile_offset;
    if (b->external && !direct && b->bytes) {
        return gy_graph_fail(run->graph, b->origin, err, GANTRY_E_INVALID,
                             "external output \"%s\" is not bound; a program binds it to memory of \"%s\" with "
                             "gantry_run_bind_output",
                             b->name, b->external);
    }
    gantry_status status = direct ? GANTRY_OK : own_memory(&mine->fetched, b->bytes, err);
    if (status == GANTRY_OK && b->tile_offset && !mine->result)
        status = own_memory(&mine->unpacked, b->bytes, err);
    void *target = direct ? mine->result : mine->fetched;
    if (status == GANTRY_OK && *output != target) {
        *output = target;
        run->changed |= run->job.turns == 1;
    }
    run->edge |= b->tile_offset != NULL;
    return status;
}

gantry_status gy_run_refresh_outputs(gantry_run *run, uint32_t turn, gantry_error *err)
{
    for (uint32_t id = 0; id < run->graph->buffers.count; id++) {
        gantry_status status = run->binding[id].fetches ? refresh_output(run, turn, id, err) : GANTRY_OK;
        if (status)
            return status;
    }
    return GANTRY_OK;
}

void gy_run_take_bindings(gantry_run *run, uint32_t turn)
{
    for (uint32_t id = 0; id < run->graph->buffers.count; id++) {
        const gy_binding *binding = &run->binding[id];
        gy_turn *mine = gy_run_turn(run, turn, id);
        bool input = binding->used && run->graph->buffers.at[id].cls == GANTRY_INPUT;
        mine->array = input ? binding->array : NULL;
        mine->result = binding->fetches ? binding->result : NULL;
        run->results |= mine->result != NULL;
    }
}

/* Outputs of turn `a` against what `b` reads and writes. */
static bool writes_into(const gantry_run *run, uint32_t a, uint32_t b)
{
    const gy_buffer *buffer = run->graph->buffers.at;
    for (uint32_t id = 0; id < run->graph->buffers.count; id++) {
        const void *result = gy_run_turn(run, a, id)->result;
        for (uint32_t other = 0; result && other < run->graph->buffers.count; other++) {
            const gy_turn *with = gy_run_turn(run, b, other);
            if (gy_overlap(result, buffer[id].bytes, with->array, buffer[other].bytes) ||
                gy_overlap(result, buffer[id].bytes, with->result, buffer[other].bytes))
                return true;
        }
    }
    return false;
}

bool gy_run_turns_meet(const gantry_run *run, uint32_t a, uint32_t b)
{
    return writes_into(run, a, b) || writes_into(run, b, a);
}

const void *gy_run_result(const gantry_run *run, uint32_t buffer)
{
    const gy_turn *mine = gy_run_turn(run, run->waited ? gy_job_turn(&run->job, run->waited) : 0, buffer);
    if (!run->binding[buffer].fetches)
        return NULL;
    if (mine->result)
        return mine->result;
    return run->graph->buffers.at[buffer].tile_offset ? mine->unpacked : mine->fetched;
}

void gy_run_edge_outputs(gantry_run *run, uint32_t turn)
{
    for (uint32_t id = 0; id < run->graph->buffers.count; id++) {
        const gy_buffer *b = &run->graph->buffers.at[id];
        const gy_turn *mine = gy_run_turn(run, turn, id);
        if (run->binding[id].fetches && b->tile_offset)
            gy_tiles_unpack(mine->result ? mine->result : mine->unpacked, mine->fetched, b);
    }
}

/* Why the outputs of the start that was waited for are not there; NULL: they are. */
static const char *missing(const gantry_run *run)
{
    if (run->started == 0)
        return "has not been made";
    if (run->waited > 0 && run->waited >= run->failure.first && run->waited <= run->failure.last)
        return "failed";
    bool overwritten = run->waited == 0 || run->started - run->waited >= run->job.turns;
    return overwritten ? "has not been waited for" : NULL;
}

/* Why an output of a start that was cancelled is not there; NULL: it was complete by then. */
static const char *left_out(const gantry_run *run, uint32_t buffer)
{
    const gy_backend *b = run->backend;
    bool last = run->waited == run->failure.first; /* later ones have the same failure, and came less far */
    return last && b->wrote && b->wrote(run->state, run->waited, buffer) ? NULL
                                                                         : "was cancelled before it was complete";
}

/* Refuses an output that the start which was waited for does not have. */
static gantry_status check_there(const gantry_run *run, uint32_t buffer, gantry_error *err)
{
    const char *why = missing(run), *name = run->graph->buffers.at[buffer].name;
    bool canceled = run->waited > 0 && run->waited >= run->failure.first && run->waited <= run->failure.last &&
                    run->failure.error.status == GANTRY_E_CANCELED;
    if (!canceled)
        return why ? gy_fail(err, GANTRY_E_INVALID, NULL,
                             "output \"%s\" has no contents yet: the last start %s; call gantry_run_wait first", name,
                             why)
                   : GANTRY_OK;
    why = left_out(run, buffer);
    return why ? gy_fail(err, GANTRY_E_CANCELED, NULL,
                         "output \"%s\" has no contents: the last start %s; start the run again", name, why)
               : GANTRY_OK;
}

/* `bytes` may be NULL. */
static gantry_status find_output(const gantry_run *run, gantry_buffer buffer, const void **host, uint64_t *bytes,
                                 gantry_error *err)
{
    const gy_buffer *b;
    GY_TRY(gy_run_buffer(run, buffer, &b, err));
    if (!b->output) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "buffer \"%s\" is no output; mark it with gantry_buffer_output",
                       b->name);
    }
    if (!run->backend->executes) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "back end \"%s\" gives times only, buffer \"%s\" has no contents", run->backend->name, b->name);
    }
    if (b->external) {
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "output \"%s\" is external: its contents are where it is bound, in \"%s\"; the program that keeps "
            "it reads them there",
            b->name, b->external);
    }
    GY_TRY(check_there(run, buffer.id, err));
    if (gy_run_is_apart(run, buffer.id) && gantry_network_rank(run->job.network) == 0)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "output \"%s\" is where it was computed (outputs_apart of the run options); call "
                       "gantry_run_collect first, in all processes",
                       b->name);
    const void *result = gy_run_result(run, buffer.id);
    if (!result)
        return gy_fail(err, GANTRY_E_SCHEDULE, NULL, "the schedule does not fetch output \"%s\"", b->name);
    *host = result;
    if (bytes)
        *bytes = b->bytes;
    return GANTRY_OK;
}

gantry_status gantry_run_output(gantry_run *run, gantry_buffer buffer, const void **host, uint64_t *bytes,
                                gantry_error *err)
{
    GY_NEED(host, err);
    GY_USE_RUN(run, find_output(run, buffer, host, bytes, err), err);
}

/* ---- states ---- */

static gantry_status check_state(gantry_run *run, const gy_buffer *b, uint64_t bytes, gantry_error *err)
{
    GY_TRY(gy_run_need_idle(run, "gantry_run_state", err));
    if (b->cls != GANTRY_STATE || b->external)
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "buffer \"%s\" is %s: only states that the run keeps can be read; use gantry_run_output for outputs",
            b->name, b->external ? "external" : "no state");
    if (bytes != b->bytes)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "state \"%s\" has %" PRIu64 " bytes, and there is room for %" PRIu64, b->name, b->bytes, bytes);
    if (!run->backend->executes)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "back end \"%s\" gives times only, state \"%s\" has no contents; use another",
                       run->backend->name, b->name);
    if (run->keeper.forgot)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "a start has failed, and state \"%s\" is that of the beginning; start the run again", b->name);
    return GANTRY_OK;
}

static gantry_status read_state(gantry_run *run, gantry_buffer buffer, void *to, uint64_t bytes, gantry_error *err)
{
    const gy_buffer *b;
    GY_TRY(gy_run_buffer(run, buffer, &b, err));
    GY_TRY(check_state(run, b, bytes, err));
    if (!b->tile_offset)
        return gy_run_read_state(run, buffer.id, to, err);
    void *packed = gy_alloc_array(bytes);
    gantry_status status = packed ? gy_run_read_state(run, buffer.id, packed, err) : gy_fail_nomem(err);
    if (!status)
        gy_tiles_unpack(to, packed, b);
    gy_free(packed);
    return status;
}

gantry_status gantry_run_state(gantry_run *run, gantry_buffer buffer, void *to, uint64_t bytes, gantry_error *err)
{
    GY_NEED(to, err);
    GY_USE_RUN(run, read_state(run, buffer, to, bytes, err), err);
}

/* ---- files and hashes ---- */

static gantry_status save_state(gantry_run *run, gantry_buffer buffer, gantry_files *files, const char *path,
                                gantry_error *err)
{
    const gy_buffer *b = &run->graph->buffers.at[buffer.id];
    void *array = gy_alloc_array(b->bytes);
    gantry_status status = array ? read_state(run, buffer, array, b->bytes, err) : gy_fail_nomem(err);
    status = status ? status : gy_array_add(files, array, b, path, err);
    gy_free(array);
    return status;
}

static gantry_status save_with(gantry_run *run, gantry_buffer buffer, gantry_files *files, const char *path,
                               gantry_error *err)
{
    const gy_buffer *b;
    const void *host;
    GY_TRY(gy_run_buffer(run, buffer, &b, err));
    if (b->cls == GANTRY_STATE && !b->output)
        return save_state(run, buffer, files, path, err);
    GY_TRY(find_output(run, buffer, &host, NULL, err));
    return gy_array_add(files, host, b, path, err);
}

gantry_status gantry_run_save_with(gantry_run *run, gantry_buffer buffer, gantry_files *files, const char *path,
                                   gantry_error *err)
{
    GY_NEED(files, err);
    GY_NEED(path, err);
    GY_USE_RUN(run, save_with(run, buffer, files, path, err), err);
}

gantry_status gantry_run_save(gantry_run *run, gantry_buffer buffer, const char *path, gantry_error *err)
{
    gantry_files files = { 0 };
    GY_NEED(path, err);
    gantry_status status = gantry_run_save_with(run, buffer, &files, path, err);
    return gy_files_finish(&files, status, err);
}

static gantry_status hash_output(const gantry_run *run, gantry_buffer buffer, uint64_t *hash, gantry_error *err)
{
    const void *host;
    uint64_t bytes;
    GY_TRY(find_output(run, buffer, &host, &bytes, err));
    *hash = gy_hash_bytes(host, bytes, 0);
    return GANTRY_OK;
}

gantry_status gantry_run_hash(gantry_run *run, gantry_buffer buffer, uint64_t *hash, gantry_error *err)
{
    GY_NEED(hash, err);
    GY_USE_RUN(run, hash_output(run, buffer, hash, err), err);
}
