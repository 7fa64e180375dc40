/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Checkpoints of a run. What states hold comes to rank 0, as whatever goes between phases does; so rank 0 alone writes
 * and reads files, and all agree on the moment, since they count alike.
 */
#include "run/phases.h"

#include "base/error.h"
#include "base/file.h"
#include "base/files.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "run/array.h"
#include "run/edge.h"
#include <inttypes.h>
#include <string.h>

#define MOST_MANIFEST UINT64_C(1073741824)

static bool writes(const gantry_run *run)
{
    return gantry_network_rank(run->job.network) == 0;
}

void gy_keeper_free(gy_keeper *k)
{
    gy_checkpoint_free(&k->writing);
    gy_store_close(&k->store);
    gy_free(k->folder);
    gy_free(k->from);
}

/* ---- writing ---- */

static gantry_status open_store(gantry_run *run, const char *folder, gantry_error *err)
{
    gy_keeper *k = &run->keeper;
    if (!writes(run) || (k->store.folder && strcmp(k->store.folder, folder) == 0))
        return GANTRY_OK;
    gy_store_close(&k->store);
    return gy_store_open(&k->store, folder, k->from && gy_store_is(k->from, folder) ? k->number : 0, err);
}

/* Says also what is left. */
static gantry_status fail_write(const gy_keeper *k, gantry_status status, gantry_error *err)
{
    gantry_error why = err ? *err : (gantry_error){ 0 };
    char left[64] = "there is none before it";
    if (k->store.newest)
        snprintf(left, sizeof left, "number %" PRIu64 " is still there", k->store.newest);
    gy_fail(err, status, NULL,
            "checkpoint %" PRIu64 " of %.120s was not written, and %s: %.200s; make room, or give another folder",
            k->store.highest + 1, k->store.folder, left, why.text);
    if (err)
        err->native = why.native;
    return status;
}

gantry_status gy_keeper_begin(gantry_run *run, const char *folder, gantry_error *err)
{
    gy_keeper *k = &run->keeper;
    gy_checkpoint_free(&k->writing);
    GY_TRY(open_store(run, folder, err));
    gantry_status status = writes(run) ? gy_store_begin(&k->store, err) : GANTRY_OK;
    return status ? fail_write(k, status, err) : GANTRY_OK;
}

static gantry_status write_file(const gy_store *store, const char *name, const void *array, const gy_buffer *b,
                                gantry_error *err)
{
    char *path = gy_store_path(store, name);
    gantry_files files = { 0 };
    gantry_status status = path ? gy_array_add(&files, array, b, path, err) : gy_fail_nomem(err);
    status = gy_files_finish(&files, status, err);
    gy_free(path);
    return status;
}

gantry_status gy_keeper_add(gantry_run *run, gy_kept_role role, uint32_t buffer, const void *packed, gantry_error *err)
{
    gy_keeper *k = &run->keeper;
    const gy_buffer *b = &run->graph->buffers.at[buffer];
    gy_kept kept = { .role = role, .buffer = buffer };
    char name[GY_KEPT_NAME];
    void *array = NULL;
    if (!writes(run))
        return gy_vec_push(&k->writing.kept, kept) ? GANTRY_OK : gy_fail_nomem(err);
    if (b->tile_offset) {
        array = gy_alloc_array(b->bytes);
        if (!array)
            return gy_fail_nomem(err);
        gy_tiles_unpack(array, packed, b);
    }
    const void *whole = array ? array : packed;
    kept.hash = gy_hash_bytes(whole, b->bytes, 0);
    gantry_status status = write_file(&k->store, gy_kept_name(name, &kept), whole, b, err);
    gy_free(array);
    if (!status && !gy_vec_push(&k->writing.kept, kept))
        status = gy_fail_nomem(err);
    return status;
}

static gantry_status write_manifest(gantry_run *run, gantry_error *err)
{
    gy_keeper *k = &run->keeper;
    char *text = gy_manifest_write(&k->writing, run->graph), *path = gy_store_path(&k->store, GY_MANIFEST);
    gantry_status status = text && path ? gy_file_write(path, text, strlen(text), err) : gy_fail_nomem(err);
    gy_free(path);
    gy_free(text);
    return status ? status : gy_store_publish(&k->store, err);
}

gantry_status gy_keeper_end(gantry_run *run, const gy_moment *moment, gantry_status status, gantry_error *err)
{
    gy_keeper *k = &run->keeper;
    k->writing.moment = *moment;
    if (!status && writes(run))
        status = write_manifest(run, err);
    gy_checkpoint_free(&k->writing);
    if (status && writes(run)) {
        gy_store_drop(&k->store);
        return fail_write(k, status, err);
    }
    k->kept = moment->starts;
    return status;
}

/* ---- between two starts ---- */

static bool is_kept(const gantry_run *run, uint32_t id)
{
    const gy_buffer *b = &run->graph->buffers.at[id];
    return b->cls == GANTRY_STATE && run->binding[id].used && !b->external;
}

static gantry_status add_state(gantry_run *run, uint32_t id, gantry_error *err)
{
    char *packed = gy_calloc_array(run->graph->buffers.at[id].bytes);
    gantry_status status = packed ? gy_run_read_state(run, id, packed, err) : gy_fail_nomem(err);
    status = status ? status : gy_keeper_add(run, GY_KEPT_STATE, id, packed, err);
    gy_free(packed);
    return status;
}

static gantry_status keep(gantry_run *run, const char *folder, gantry_error *err)
{
    const gy_moment moment = { .starts = run->keeper.starts + run->completed };
    GY_TRY(gy_keeper_begin(run, folder, err));
    gantry_status status = GANTRY_OK;
    for (uint32_t id = 0; id < run->graph->buffers.count && !status; id++)
        status = is_kept(run, id) ? add_state(run, id, err) : GANTRY_OK;
    status = gy_keeper_end(run, &moment, status, err);
    if (!status && run->schedule->phases.count)
        gy_phases_kept(run->state);
    return status;
}

static bool is_due(const gantry_run *run)
{
    const gy_keeper *k = &run->keeper;
    if (run->started == 0 || k->forgot)
        return false;
    return run->schedule->phases.count ? gy_phases_is_due(run->state) : k->starts + run->started - k->kept >= k->every;
}

gantry_status gy_keeper_look(gantry_run *run, gantry_error *err)
{
    if (!run->keeper.folder)
        return GANTRY_OK;
    if (run->started == 0) /* a folder that cannot be used is reported before anything is computed */
        return open_store(run, run->keeper.folder, err);
    if (!is_due(run))
        return GANTRY_OK;
    GY_TRY(gy_run_drain(run, err));
    return is_due(run) ? keep(run, run->keeper.folder, err) : GANTRY_OK;
}

static gantry_status checkpoint(gantry_run *run, const char *folder, gantry_error *err)
{
    GY_TRY(gy_run_need_idle(run, "gantry_run_checkpoint", err));
    if (!run->backend->executes)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "back end \"%s\" gives times only, so there is nothing to keep; use another",
                       run->backend->name);
    if (run->keeper.forgot)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "a start has failed, and states are those of the beginning; resume from the last checkpoint");
    return keep(run, folder, err);
}

gantry_status gantry_run_checkpoint(gantry_run *run, const char *folder, gantry_error *err)
{
    GY_NEED(folder, err);
    GY_USE_RUN(run, checkpoint(run, folder, err), err);
}

/* ---- reading ---- */

static gantry_status fail_hash(const char *path, const gy_buffer *b, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_IO, NULL,
                   "%s was changed since it was written: what it holds of buffer \"%s\" has another hash", path,
                   b->name);
}

/* In C order, or packed, as the kind of array is used. */
static gantry_status read_kept(gantry_run *run, gy_kept *kept, const char *path, gantry_error *err)
{
    const gy_buffer *b = &run->graph->buffers.at[kept->buffer];
    GY_TRY(gy_array_read(&kept->at, b, path, NULL, true, err));
    if (gy_hash_bytes(kept->at, b->bytes, 0) != kept->hash)
        return fail_hash(path, b, err);
    if (kept->role == GY_KEPT_STATE || !b->tile_offset)
        return GANTRY_OK;
    void *packed = gy_alloc_array(b->bytes);
    if (!packed)
        return gy_fail_nomem(err);
    gy_tiles_pack(packed, kept->at, b);
    gy_free(kept->at);
    kept->at = packed;
    return GANTRY_OK;
}

static gantry_status read_arrays(gantry_run *run, gy_checkpoint *c, const char *folder, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < c->kept.count && !status; i++) {
        char name[GY_KEPT_NAME];
        char *path = gy_store_path_of(folder, c->number, gy_kept_name(name, &c->kept.at[i]));
        status = path ? read_kept(run, &c->kept.at[i], path, err) : gy_fail_nomem(err);
        gy_free(path);
    }
    return status;
}

/* *text: the manifest, for other ranks. */
static gantry_status read_one(gantry_run *run, gy_checkpoint *c, const char *folder, uint64_t number, char **text,
                              gantry_error *err)
{
    size_t length = 0;
    char *path = gy_store_path_of(folder, number, GY_MANIFEST);
    gantry_status status = path ? gy_file_read_in(text, &length, path, NULL, MOST_MANIFEST, err) : gy_fail_nomem(err);
    if (!status)
        status = gy_manifest_read(c, *text, length, path, run->graph, err);
    c->number = number;
    if (!status)
        status = read_arrays(run, c, folder, err);
    gy_free(path);
    if (status) {
        gy_checkpoint_free(c);
        gy_free(*text);
        *text = NULL;
    }
    return status;
}

/* The newest that is intact. What is of another graph, or cannot be had for want of memory, is not looked behind. */
static gantry_status read_newest(gantry_run *run, gy_checkpoint *c, const char *folder, char **text, char *passed_over,
                                 size_t room, gantry_error *err)
{
    gy_numbers numbers = { 0 };
    gantry_error why = { 0 };
    GY_TRY(gy_store_list(&numbers, folder, err));
    gantry_status status = GANTRY_E_IO;
    for (size_t i = 0; i < numbers.count && status == GANTRY_E_IO; i++) {
        status = read_one(run, c, folder, numbers.at[i], text, &why);
        if (status == GANTRY_E_IO && !*passed_over)
            snprintf(passed_over, room, "checkpoint %" PRIu64 ": %.400s", numbers.at[i], why.text);
    }
    gy_vec_free(&numbers);
    if (status == GANTRY_E_IO)
        return gy_fail(err, status, NULL,
                       "no checkpoint in %.150s is intact, %s; begin without --resume, or give another folder", folder,
                       *passed_over ? passed_over : "there is none");
    if (status && err)
        *err = why;
    return status;
}

/* ---- all ranks know what rank 0 has read ---- */

typedef struct word {
    gantry_resumed info;
    gantry_status status;
    uint64_t length;
    gantry_error error;
} word;

/* Other ranks have the same list, with room in place of contents. */
static gantry_status take_text(gantry_run *run, gy_checkpoint *c, const char *text, const word *said, gantry_error *err)
{
    GY_TRY(gy_manifest_read(c, text, said->length, GY_MANIFEST, run->graph, err));
    c->number = said->info.number;
    for (size_t i = 0; i < c->kept.count; i++) {
        c->kept.at[i].at = gy_calloc_array(run->graph->buffers.at[c->kept.at[i].buffer].bytes);
        if (!c->kept.at[i].at)
            return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

static gantry_status share(gantry_run *run, gy_checkpoint *c, char **text, word *said, gantry_error *err)
{
    gantry_network *n = run->job.network;
    GY_TRY(gy_network_share(n, said, sizeof *said, err));
    if (said->status) {
        gy_network_stay_behind(n);
        if (err)
            *err = said->error;
        return said->status;
    }
    if (!n)
        return GANTRY_OK;
    bool first = n->rank == 0;
    *text = first ? *text : gy_alloc(said->length + 1);
    if (!*text)
        return gy_fail_nomem(err);
    GY_TRY(gy_network_share(n, *text, said->length, err));
    return first ? GANTRY_OK : take_text(run, c, *text, said, err);
}

static gantry_status find(gantry_run *run, gy_checkpoint *c, const char *folder, gantry_resumed *info,
                          gantry_error *err)
{
    char *text = NULL;
    word said = { 0 };
    if (writes(run)) {
        said.status =
            read_newest(run, c, folder, &text, said.info.passed_over, sizeof said.info.passed_over, &said.error);
        said.info.number = c->number;
        said.length = text ? strlen(text) : 0;
    }
    gantry_status status = share(run, c, &text, &said, err);
    gy_free(text);
    *info = said.info;
    return status;
}

/* ---- going on ---- */

static gantry_status check_phase(const gantry_run *run, const gy_moment *m, gantry_error *err)
{
    const gy_phase *is = m->phase < run->schedule->phases.count ? &run->schedule->phases.at[m->phase].phase : NULL;
    const gy_phase *was = &m->shape;
    if (!m->inside || (is && is->loop == was->loop && is->first == was->first && is->iterations == was->iterations &&
                       is->starts == was->starts))
        return GANTRY_OK;
    return gy_fail(
        err, GANTRY_E_INVALID, NULL,
        "the checkpoint was made amid a loop whose starts have %lld iterations from %lld on, and this schedule "
        "has no such; schedule the graph with the same `unroll` as before",
        (long long)was->iterations, (long long)was->first);
}

static gantry_status take_states(gantry_run *run, gy_checkpoint *c, gantry_error *err)
{
    for (size_t i = 0; i < c->kept.count; i++) {
        gy_kept *k = &c->kept.at[i];
        if (k->role != GY_KEPT_STATE)
            continue;
        GY_TRY(gy_run_set_array(run, k->buffer, k->at, k->at, err));
        run->binding[k->buffer].of_first = true;
        k->at = NULL;
    }
    return GANTRY_OK;
}

static gantry_status go_on(gantry_run *run, gy_checkpoint *c, const char *folder, gantry_error *err)
{
    gy_keeper *k = &run->keeper;
    char *from = gy_strdup(folder);
    if (!from)
        return gy_fail_nomem(err);
    gy_free(k->from);
    k->from = from;
    k->number = c->number;
    k->starts = k->kept = c->moment.starts;
    GY_TRY(take_states(run, c, err));
    GY_TRY(gy_run_feeds_go_on(run, c->moment.starts, err));
    if (c->moment.inside)
        gy_phases_resume(run->state, c);
    return GANTRY_OK;
}

static gantry_status resume(gantry_run *run, const char *folder, gantry_resumed *info, gantry_error *err)
{
    gy_checkpoint c = { 0 };
    gantry_resumed full = { 0 };
    GY_TRY(info ? gy_struct_check(info, sizeof *info, "gantry_resumed", err) : GANTRY_OK);
    if (run->started > 0)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the run has been started, and has states of its own; resume before its first start");
    if (!run->backend->executes)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "back end \"%s\" gives times only, so there is nothing to resume; use another",
                       run->backend->name);
    gantry_status status = find(run, &c, folder, &full, err);
    status = status ? status : check_phase(run, &c.moment, err);
    full.starts = c.moment.starts;
    full.iterations = c.moment.iterations;
    status = status ? status : go_on(run, &c, folder, err);
    gy_checkpoint_free(&c);
    if (!status)
        gy_struct_write(info, &full, sizeof full);
    return status;
}

gantry_status gantry_run_resume(gantry_run *run, const char *folder, gantry_resumed *info, gantry_error *err)
{
    GY_NEED(folder, err);
    GY_USE_RUN(run, resume(run, folder, info, err), err);
}
