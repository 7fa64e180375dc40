/* SPDX-License-Identifier: Apache-2.0 */
/* Times of the ops of a run: from what CUPTI tells, and from host functions, which time themselves. */
#include "backends/cuda/times/cupti.h"

#include "base/clock.h"
#include "base/error.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The patience for missing records once a start has ended. Mostly everything is there at once. */
#define PATIENCE_NS       INT64_C(200000000)
#define LEAST_PATIENCE_NS INT64_C(1000000)
#define NAP_NS            20000

gantry_status gy_cupti_open(gy_cuda *h, gantry_error *err)
{
    size_t ops = h->job->schedule->ops.count;
    int version = 0;
    if (!h->job->record)
        return GANTRY_OK;
    gy_cupti *c = gy_arena_calloc(&h->arena, 1, sizeof *c);
    if (!c || !(c->span = gy_arena_calloc(&h->arena, ops + 1, sizeof *c->span)) ||
        !(c->host = gy_arena_calloc(&h->arena, ops + 1, sizeof *c->host)))
        return gy_fail_nomem(err);
    c->h = h;
    c->op = GY_NONE;
    c->patience_ns = PATIENCE_NS;
    h->cupti = c;
    if (h->turns > 1) {
        c->why = "starts overlap"; /* a record may wait for those of the start behind it */
        return GANTRY_OK;
    }
    h->d.cuDriverGetVersion(&version);
    gy_cupti_subscribe(c, version, &c->why);
    c->on = !c->why;
    return GANTRY_OK;
}

void gy_cupti_close(gy_cuda *h)
{
    gy_cupti *c = h->cupti;
    if (c) {
        gy_cupti_leave(h);
        gy_cupti_unsubscribe(c);
        gy_cupti_table_free(&c->calls);
        gy_cupti_table_free(&c->nodes);
    }
}

bool gy_cupti_on(const gy_cuda *h)
{
    return h->cupti && h->cupti->on;
}

const char *gy_cupti_replay(gy_cuda *h)
{
    gy_cupti *c = h->cupti;
    if (!c)
        return h->replay;
    if (!c->on)
        snprintf(c->text, sizeof c->text, "%s; times by events, %s", h->replay, c->why);
    else if (c->without)
        snprintf(c->text, sizeof c->text, "%s; times by CUPTI, none of %u ops", h->replay, c->without);
    else
        snprintf(c->text, sizeof c->text, "%s; times by CUPTI", h->replay);
    return c->text;
}

/* ---- one start ---- */

void gy_cupti_begin(gy_cuda *h)
{
    gy_cupti *c = h->cupti;
    size_t ops = h->job->schedule->ops.count;
    if (!gy_cupti_on(h))
        return;
    gy_cupti_lock();
    gy_cupti_table_clear(&c->calls);
    gy_cupti_table_again(&c->nodes);
    memset(c->span, 0, ops * sizeof *c->span);
    memset(c->host, 0, ops * sizeof *c->host);
    c->busy = true;
    gy_cupti_unlock();
}

void gy_cupti_host_function_ended(gy_cuda *h, uint32_t op, int64_t began_ns)
{
    if (gy_cupti_on(h)) {
        gy_op_time *t = &h->cupti->host[op]; /* functions of one op follow each other */
        t->start = t->end ? t->start : began_ns;
        t->end = gy_now_ns();
    }
}

bool gy_cupti_take_record(gy_cupti *c, uint32_t correlation, uint64_t node, uint64_t start, uint64_t end)
{
    gy_cupti_piece *piece = node ? gy_cupti_table_find(&c->nodes, node) : NULL;
    gy_cupti_table *table = piece ? &c->nodes : &c->calls;
    piece = piece ? piece : gy_cupti_table_find(&c->calls, correlation);
    if (!piece)
        return false;
    gy_cupti_span *s = &c->span[piece->op];
    table->recorded += !piece->recorded;
    piece->recorded = true;
    if (!end || end < start) {
        s->lost = true;
    } else {
        s->start = s->end && s->start < start ? s->start : start;
        s->end = s->end > end ? s->end : end;
    }
    return true;
}

static bool all_recorded(const gy_cupti *c)
{
    gy_cupti_lock();
    const gy_cupti_table *t = c->h->graphs ? &c->nodes : &c->calls;
    bool all = t->recorded == t->piece.count;
    gy_cupti_unlock();
    return all;
}

static void await_records(gy_cupti *c)
{
    int64_t until = gy_now_ns() + c->patience_ns;
    gy_cupti_flush(c, false);
    while (!all_recorded(c) && gy_now_ns() < until) {
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
        gy_cupti_flush(c, false);
    }
    if (!all_recorded(c)) {
        gy_cupti_flush(c, true);
        c->patience_ns = c->patience_ns / 2 > LEAST_PATIENCE_NS ? c->patience_ns / 2 : LEAST_PATIENCE_NS;
    }
}

/* An op without all of its records would seem shorter than it was. */
static void mark_lost(gy_cupti *c, const gy_cupti_table *t)
{
    for (size_t i = 0; i < t->piece.count; i++) {
        const gy_cupti_piece *piece = &t->piece.at[i];
        c->span[piece->op].lost = c->span[piece->op].lost || !piece->recorded;
    }
}

/* A launch on a GPU by a function of the program (`own`), or of a kernel. */
static bool is_launch(const gy_cuda *h, uint32_t id, bool own)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    return op->kind == GY_OP_LAUNCH && h->device[gy_op_device(s, op, 0)].gpu &&
           (h->job->graph->nodes.at[op->node].kernel == GY_NONE) == own;
}

/* True if a kernel is launched, so that there must be a record. */
static bool launches(const gy_cuda *h)
{
    uint32_t i = 0;
    while (i < h->job->schedule->ops.count && !is_launch(h, i, false))
        i++;
    return i < h->job->schedule->ops.count;
}

bool gy_cupti_may_miss(const gy_cuda *h, uint32_t op)
{
    return !h->graphs && (is_launch(h, op, true) || h->op[op].nccl || h->op[op].when);
}

bool gy_cupti_leaves_to_events(const gy_cuda *h, uint32_t op)
{
    const gy_cupti_span *s = &h->cupti->span[op];
    return gy_cupti_may_miss(h, op) && (h->op[op].nccl || (!s->end && !s->lost));
}

/* Converts times from CUPTI's clock to the host's, and counts them from the begin of the start. */
static gy_op_time time_of(const gy_cupti_span *s, const gy_op_time *host, int64_t offset, int64_t begin_ns)
{
    gy_op_time t = { 0 };
    if (s->lost)
        return t;
    if (s->end)
        t = (gy_op_time){ (int64_t)s->start - offset, (int64_t)s->end - offset };
    if (host->end) {
        t.start = s->end && t.start < host->start ? t.start : host->start;
        t.end = s->end && t.end > host->end ? t.end : host->end;
    }
    return t.end ? (gy_op_time){ t.start - begin_ns, t.end - begin_ns } : t;
}

/* Goes on with events. `named`: CUPTI named calls or nodes, and no work that was done. */
static void give_up(gy_cuda *h, bool named)
{
    h->cupti->why = h->cupti->incomplete ? "there was no memory to note work for CUPTI"
                    : h->graphs          ? named ? "CUPTI told nothing of a graph" : "CUPTI named no node of a graph"
                    : named              ? "CUPTI told nothing of a start"
                                         : "CUPTI named no work of a start";
    h->cupti->on = false;
    gy_cupti_unsubscribe(h->cupti);
    h->graphs = h->automatic.on = false;
    h->replay = "stream";
}

/* Collectives of a batch begin and end together, by the work of the first. */
static void share_span(gy_cuda *h, uint32_t op)
{
    gy_cupti *c = h->cupti;
    if (!h->op[op].called || h->job->schedule->ops.at[op].kind != GY_OP_COLLECTIVE)
        return;
    c->span[op] = c->span[op - 1];
    c->host[op] = c->host[op - 1];
}

bool gy_cupti_take(gy_cuda *h, int64_t begin_ns)
{
    gy_cupti *c = h->cupti;
    int64_t offset = 0;
    if (!gy_cupti_on(h))
        return false;
    await_records(c);
    bool clock = gy_cupti_offset(&offset);
    gy_cupti_lock();
    const gy_cupti_table *t = h->graphs ? &c->nodes : &c->calls;
    bool named = t->piece.count > 0, nothing = c->incomplete || (t->recorded == 0 && (named || launches(h)));
    mark_lost(c, t);
    c->busy = false;
    c->without = 0;
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++) {
        share_span(h, i);
        c->without += c->span[i].lost;
        h->time[i] = clock ? time_of(&c->span[i], &c->host[i], offset, begin_ns) : (gy_op_time){ .start = 0, .end = 0 };
    }
    gy_cupti_unlock();
    if (nothing || !clock)
        give_up(h, named);
    return true;
}
