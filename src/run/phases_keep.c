/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints amid a start in phases: what names mean then, and what the next start of a phase finds. */
#include "base/error.h"
#include "base/memory.h"
#include "run/phases.h"
#include <string.h>

/* The meaning of a name when a start begins. */
static const void *first_of(const gy_hand_overs *h, uint32_t b)
{
    return h->own[b] ? h->own[b] : h->job->input[gy_job_index(h->job, 0, b)];
}

/* True: another name meant that when the start began, or means it as well and was kept; `r` says which. */
static bool find_same(const gy_hand_overs *h, const gy_checkpoint *kept, uint32_t b, gy_renamed *r)
{
    *r = (gy_renamed){ .name = b };
    for (r->from = 0; r->from < h->job->graph->buffers.count; r->from++)
        if (first_of(h, r->from) == h->where[b])
            return true;
    r->made = true;
    for (r->from = 0; r->from < b; r->from++)
        if (h->where[r->from] == h->where[b] && gy_checkpoint_find(kept, GY_KEPT_VALUE, r->from))
            return true;
    return false;
}

static gantry_status keep_names(gantry_run *run, const gy_hand_overs *h, gantry_error *err)
{
    const gantry_graph *g = h->job->graph;
    gantry_status status = GANTRY_OK;
    for (uint32_t b = 0; b < g->buffers.count && !status; b++) {
        gy_renamed same;
        if (h->own[b] && g->buffers.at[b].cls == GANTRY_STATE)
            status = gy_keeper_add(run, GY_KEPT_STATE, b, h->own[b], err);
        if (status || !h->where[b] || h->where[b] == first_of(h, b))
            continue;
        if (!find_same(h, &run->keeper.writing, b, &same))
            status = gy_keeper_add(run, GY_KEPT_VALUE, b, h->where[b], err);
        else if (!gy_vec_push(&run->keeper.writing.renamed, same))
            status = gy_fail_nomem(err);
    }
    return status;
}

static gantry_status keep_next(gantry_run *run, const gy_hand_over *o, uint32_t b, void *state, gantry_error *err)
{
    const gy_buffer *buffer = &o->graph->buffers.at[b];
    const gantry_schedule *s = o->phase->schedule;
    char *packed = gy_calloc_array(buffer->bytes);
    gantry_status status = packed ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t k = 0; k < o->persists && !status; k++) {
        const gy_instance *in = &s->instances.at[o->persist[k]];
        if (in->value == b)
            status = run->job.inner->get(state, o->persist[k], packed + gy_buffer_offset(buffer, in->first), err);
    }
    status = status ? status : gy_keeper_add(run, GY_KEPT_NEXT, b, packed, err);
    gy_free(packed);
    return status;
}

gantry_status gy_hand_overs_keep(const gy_hand_overs *h, void *state, const gy_moment *moment, gantry_error *err)
{
    gantry_run *run = h->job->keeper;
    const gy_hand_over *o = &h->at[moment->phase];
    GY_TRY(gy_keeper_begin(run, run->keeper.folder, err));
    gantry_status status = keep_names(run, h, err);
    for (uint32_t b = 0; b < o->graph->buffers.count && !status && moment->done > 0; b++)
        if (o->graph->buffers.at[b].cls == GANTRY_STATE)
            status = keep_next(run, o, b, state, err);
    return gy_keeper_end(run, moment, status, err);
}

void gy_hand_overs_restore(gy_hand_overs *h, const gy_checkpoint *c)
{
    for (size_t i = 0; i < c->kept.count; i++)
        if (c->kept.at[i].role == GY_KEPT_VALUE)
            h->where[c->kept.at[i].buffer] = c->kept.at[i].at;
    for (size_t i = 0; i < c->renamed.count; i++) {
        const gy_renamed *r = &c->renamed.at[i];
        h->where[r->name] = r->made ? gy_checkpoint_find(c, GY_KEPT_VALUE, r->from)->at : first_of(h, r->from);
    }
}

gantry_status gy_hand_overs_put_next(const gy_hand_overs *h, size_t i, void *state, const gy_checkpoint *c,
                                     gantry_error *err)
{
    const gy_hand_over *o = &h->at[i];
    for (uint32_t k = 0; k < o->persists; k++) {
        const gy_instance *in = &o->phase->schedule->instances.at[o->persist[k]];
        const gy_kept *kept = gy_checkpoint_find(c, GY_KEPT_NEXT, in->value);
        if (!kept)
            continue;
        const char *from = (const char *)kept->at + gy_buffer_offset(&o->graph->buffers.at[in->value], in->first);
        GY_TRY(h->job->inner->put(state, o->persist[k], from, err));
    }
    return GANTRY_OK;
}
