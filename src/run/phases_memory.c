/* SPDX-License-Identifier: Apache-2.0 */
/* Values between phases: the host memory that a phase leaves them in, and that the next one finds them in. */
#include "base/error.h"
#include "base/imap.h"
#include "base/memory.h"
#include "run/phases.h"
#include <string.h>

/* ---- whose contents are needed ---- */

/* Follows where contents come from: `origin[b]`: 1 + the buffer whose contents before the start the name means now. */
static void follow_moves(const gy_phase_context *x, uint32_t *origin, uint32_t *before, size_t buffers)
{
    memcpy(before, origin, buffers * sizeof *origin);
    for (uint32_t i = 0; i < x->moves; i++)
        origin[x->move[i].name] = x->move[i].made ? 0 : before[x->move[i].from];
}

static bool takes(const gantry_graph *phase, uint32_t b)
{
    return phase->buffers.at[b].cls != GANTRY_TEMP && (!phase->phase->defined[b] || phase->phase->defineds[b] > 0);
}

gantry_status gy_phases_mark_used(gantry_run *run, gantry_error *err)
{
    const gantry_graph *g = run->graph;
    size_t buffers = g->buffers.count;
    uint32_t *origin = gy_calloc(2 * buffers + 1, sizeof *origin);
    if (!origin)
        return gy_fail_nomem(err);
    for (uint32_t b = 0; b < buffers; b++) {
        origin[b] = b + 1;
        run->binding[b].fetches = g->buffers.at[b].output;
    }
    for (size_t i = 0; i < run->schedule->phases.count; i++) {
        const gantry_graph *phase = run->schedule->phases.at[i].schedule->graph;
        for (uint32_t b = 0; b < buffers; b++) {
            uint32_t from = origin[phase->phase->source[b]];
            if (takes(phase, b) && from)
                run->binding[from - 1].used = true;
        }
        follow_moves(phase->phase, origin, origin + buffers, buffers);
    }
    for (uint32_t b = 0; b < buffers; b++) {
        if ((g->buffers.at[b].output || g->buffers.at[b].cls == GANTRY_STATE) && origin[b])
            run->binding[origin[b] - 1].used = true;
        run->binding[b].used = run->binding[b].used && g->buffers.at[b].cls != GANTRY_TEMP;
    }
    gy_free(origin);
    return GANTRY_OK;
}

/* ---- memory ---- */

static void *new_block(gy_hand_overs *h, uint64_t bytes)
{
    void *block = gy_calloc(1, bytes ? bytes : 1);
    if (block && !gy_vec_push(&h->block, block)) {
        gy_free(block);
        return NULL;
    }
    return block;
}

/* States and constants live here between starts. */
static bool make_own(gy_hand_overs *h)
{
    const gantry_graph *g = h->job->graph;
    for (size_t b = 0; b < g->buffers.count; b++) {
        gantry_buffer_class cls = g->buffers.at[b].cls;
        if (cls != GANTRY_STATE && cls != GANTRY_CONST)
            continue;
        h->own[b] = new_block(h, g->buffers.at[b].bytes);
        h->spare[b] = cls == GANTRY_STATE ? new_block(h, g->buffers.at[b].bytes) : NULL;
        if (!h->own[b] || (cls == GANTRY_STATE && !h->spare[b]))
            return false;
    }
    return true;
}

bool gy_run_persists_whole(const gantry_schedule *s, uint32_t value, int64_t count, bool *whole)
{
    gy_imap rows;
    bool fits = gy_imap_init(&rows, 0, count, 0);
    if (!fits)
        return false;
    for (size_t i = 0; i < s->instances.count && fits; i++) {
        const gy_instance *in = &s->instances.at[i];
        fits = in->role != GY_ROLE_PERSIST || in->value != value || gy_imap_set(&rows, in->first, in->last, 1);
    }
    *whole = true;
    uint32_t k = fits && rows.count ? gy_imap_find(&rows, 0) : GY_IMAP_NONE;
    for (; k != GY_IMAP_NONE; k = gy_imap_next(&rows, k))
        *whole = *whole && rows.at[k].payload;
    gy_imap_free(&rows);
    return fits;
}

/* A place of its own for all that the phase leaves: the next may read it while it writes to its own. */
static bool make_lefts(gy_hand_overs *h, gy_hand_over *o)
{
    const gy_phase_context *x = o->graph->phase;
    o->left = gy_calloc((size_t)x->moves + 2, sizeof *o->left);
    for (uint32_t i = 0; o->left && i < x->moves; i++) {
        const gy_move *move = &x->move[i];
        uint32_t k = 0;
        while (k < o->lefts && o->left[k].buffer != move->from)
            k++;
        if (!move->made || k < o->lefts)
            continue;
        gy_left left = { .buffer = move->from, .whole = true };
        left.at = new_block(h, o->graph->buffers.at[move->from].bytes);
        bool made = left.at && (o->phase->phase.starts == 1 ||
                                gy_run_persists_whole(o->phase->schedule, move->from,
                                                      o->graph->buffers.at[move->from].rows, &left.whole));
        o->left[o->lefts++] = left;
        if (!made)
            return false;
    }
    return o->left != NULL;
}

static bool make_one(gy_hand_overs *h, gy_hand_over *o, const gy_schedule_phase *phase)
{
    const gantry_schedule *s = phase->schedule;
    o->phase = phase;
    o->graph = s->graph;
    o->persist = gy_calloc(s->instances.count, sizeof *o->persist);
    for (uint32_t i = 0; o->persist && i < s->instances.count; i++)
        if (s->instances.at[i].role == GY_ROLE_PERSIST)
            o->persist[o->persists++] = i;
    return o->persist && make_lefts(h, o);
}

gantry_status gy_hand_overs_make(gy_hand_overs *h, const gy_job *job, gantry_error *err)
{
    size_t buffers = job->graph->buffers.count;
    *h = (gy_hand_overs){ .job = job, .count = job->schedule->phases.count };
    h->at = gy_calloc(h->count, sizeof *h->at);
    h->where = gy_calloc(buffers, sizeof *h->where);
    h->before = gy_calloc(buffers, sizeof *h->before);
    h->own = gy_calloc(buffers, sizeof *h->own);
    h->spare = gy_calloc(buffers, sizeof *h->spare);
    bool made = h->at && h->where && h->before && h->own && h->spare && make_own(h);
    for (size_t i = 0; made && i < h->count; i++)
        made = make_one(h, &h->at[i], &job->schedule->phases.at[i]);
    return made ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_hand_overs_free(gy_hand_overs *h)
{
    for (size_t i = 0; h->at && i < h->count; i++) {
        gy_free(h->at[i].left);
        gy_free(h->at[i].persist);
    }
    for (size_t i = 0; i < h->block.count; i++)
        gy_free(h->block.at[i]);
    gy_vec_free(&h->block);
    gy_free(h->at);
    gy_free((void *)h->where);
    gy_free((void *)h->before);
    gy_free((void *)h->own);
    gy_free((void *)h->spare);
    *h = (gy_hand_overs){ 0 };
}

/* ---- a start ---- */

void gy_hand_overs_begin(gy_hand_overs *h)
{
    for (uint32_t b = 0; b < h->job->graph->buffers.count; b++)
        h->where[b] = h->own[b] ? h->own[b] : h->job->input[gy_job_index(h->job, 0, b)];
}

void gy_hand_overs_move(gy_hand_overs *h, size_t i)
{
    const gy_hand_over *o = &h->at[i];
    const gy_phase_context *x = o->graph->phase;
    memcpy((void *)h->before, (const void *)h->where, h->job->graph->buffers.count * sizeof *h->where);
    for (uint32_t k = 0; k < x->moves; k++) {
        const gy_move *move = &x->move[k];
        if (!move->made) {
            h->where[move->name] = h->before[move->from];
            continue;
        }
        for (uint32_t n = 0; n < o->lefts; n++)
            if (o->left[n].buffer == move->from)
                h->where[move->name] = o->left[n].at;
    }
}

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (to && from && to != from && bytes)
        memcpy(to, from, bytes);
}

/* Outputs first: they may be what a state was. A state that ends as another is set aside before that is overwritten. */
void gy_hand_overs_end(gy_hand_overs *h)
{
    const gantry_graph *g = h->job->graph;
    size_t buffers = g->buffers.count;
    for (uint32_t b = 0; b < buffers; b++)
        copy(h->job->output[gy_job_index(h->job, 0, b)], h->where[b], g->buffers.at[b].bytes);
    for (uint32_t b = 0; b < buffers; b++) {
        for (uint32_t c = 0; c < buffers && h->spare[b]; c++) {
            if (c != b && h->where[b] && h->where[b] == h->own[c]) {
                copy(h->spare[b], h->where[b], g->buffers.at[b].bytes);
                h->where[b] = h->spare[b];
            }
        }
    }
    for (uint32_t b = 0; b < buffers; b++)
        if (h->spare[b])
            copy(h->own[b], h->where[b], g->buffers.at[b].bytes);
}
