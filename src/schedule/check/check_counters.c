/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule counters: with lane order and counters alone, and starts that nobody holds back, everything is ordered that has
 * to be. Waits are rows like those of the sync table, so the same clocks and the same map of bytes find what is not;
 * the walk is over one start more than overlap, as the last of them meets the bytes of the first again. Each wait is
 * asked for by something that nothing else brings, so a wait too many is a mistake, too. docs/design/counters.md says
 * why these starts show all meetings.
 */
#include "base/error.h"
#include "schedule/check/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct waits {
    gy_check *k;
    GY_VEC(gy_sync) row; /* as rows of a sync table; `slot` is the counter */
    size_t *first;       /* ops + 1: rows of the sync table by `to` */
    uint32_t *sync;
} waits;

static gantry_status fail_wait(const waits *w, const gy_sync *row, const char *why)
{
    char starts[48] = "";
    const gantry_schedule *s = w->k->s;
    if (row->distance)
        snprintf(starts, sizeof starts, " of %u start(s) before", row->distance);
    return gy_breach(w->k->err, "counters", "counters", row->slot, "by counter %u %s waits for %s%s, %s", row->slot,
                     gy_label_op(s, row->to).at, gy_label_op(s, row->from).at, starts, why);
}

/* ---- the rows ---- */

static gantry_status add_counter(waits *w, uint32_t index)
{
    const gy_counters *all = &w->k->s->counters;
    const gy_counter *c = &all->at.at[index];
    bool *seen = gy_calloc(c->signals, sizeof *seen), done = seen != NULL;
    for (uint32_t i = 0; i < c->waits && done; i++) {
        const gy_counter_wait *one = &all->wait.at[c->wait + i];
        gy_sync row = { all->signal.at[c->signal + one->value - 1], one->op, one->distance, GY_CARRIER_FLAG, 0, index };
        seen[one->value - 1] = true;
        done = gy_vec_push(&w->row, row);
    }
    gantry_status status = done ? GANTRY_OK : gy_fail_nomem(w->k->err);
    for (uint32_t i = 0; !status && i < c->signals; i++)
        if (!seen[i])
            status = gy_breach(w->k->err, "counters", "counters", index,
                               "nothing waits for signal %u of counter %u, that of %s", i + 1, index,
                               gy_label_op(w->k->s, all->signal.at[c->signal + i]).at);
    gy_free(seen);
    return status;
}

static int by_waiter(const void *a, const void *b)
{
    const gy_sync *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->from < y->from) - (x->from > y->from);
}

/* Rows of the sync table by the op that waits: a counting sort. */
static gantry_status sort_sync(waits *w)
{
    const gantry_schedule *s = w->k->s;
    w->first = gy_calloc(s->ops.count + 2, sizeof *w->first);
    w->sync = gy_calloc(s->sync.count + 1, sizeof *w->sync);
    if (!w->first || !w->sync)
        return gy_fail_nomem(w->k->err);
    size_t *next = w->first + 1;
    for (size_t i = 0; i < s->sync.count; i++)
        next[s->sync.at[i].to + 1]++;
    for (size_t i = 0; i < s->ops.count; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < s->sync.count; i++)
        w->sync[next[s->sync.at[i].to]++] = (uint32_t)i;
    return GANTRY_OK;
}

/* ---- what asks for a wait ---- */

static bool is_in_sync(const waits *w, const gy_sync *wait)
{
    for (size_t i = w->first[wait->to]; i < w->first[wait->to + 1]; i++) {
        const gy_sync *row = &w->k->s->sync.at[w->sync[i]];
        if (row->from == wait->from && row->distance == 0)
            return true;
    }
    return false;
}

/* Do the two uses, that many starts apart, touch one byte, and does one write it? */
static bool meet(gy_check *k, const gy_use *a, const gy_use *b, uint32_t distance)
{
    const gy_instance *x = gy_use_instance(k, a), *y = gy_use_instance(k, b);
    gy_imap *space = gy_bytes_space(&k->bytes, k->s, x);
    int64_t first[2], last[2];
    bool wrong_turn = x->space == GY_SPACE_OUTPUT && distance != k->s->in_flight;
    if (!space || space != gy_bytes_space(&k->bytes, k->s, y) || wrong_turn ||
        (a->mode == GANTRY_READ && b->mode == GANTRY_READ))
        return false;
    k->now.start = 0;
    gy_use_span(k, a, &first[0], &last[0]);
    k->now.start = distance;
    gy_use_span(k, b, &first[1], &last[1]);
    return first[0] < last[1] && first[1] < last[0];
}

static bool is_hazard(gy_check *k, uint32_t from, uint32_t to, uint32_t distance)
{
    const gy_op *a = gy_check_op(k, from), *b = gy_check_op(k, to);
    for (uint32_t i = 0; i < a->uses; i++)
        for (uint32_t j = 0; j < b->uses; j++)
            if (meet(k, &k->s->use.at[a->use + i], &k->s->use.at[b->use + j], distance))
                return true;
    return false;
}

static bool is_asked(const waits *w, const gy_sync *row)
{
    const gantry_schedule *s = w->k->s;
    if (row->distance == 0)
        return is_in_sync(w, row);
    for (uint32_t op = row->to; op < s->ops.count && (op == row->to || s->ops.at[op].joined); op++)
        if (is_hazard(w->k, row->from, op, row->distance))
            return true;
    return false;
}

static gantry_status check_wait(const waits *w, const gy_sync *row)
{
    if (row->distance == 0 && row->from >= row->to)
        return fail_wait(w, row, "which is not before it in the total order; two such waits are a deadlock");
    if (w->k->s->ops.at[row->to].joined)
        return fail_wait(w, row, "but it begins with the batch that it is in; the first op of the batch has to wait");
    if (!is_asked(w, row))
        return fail_wait(w, row, "and neither the sync table nor a byte of both asks for that");
    return GANTRY_OK;
}

/* ---- the walk ---- */

/* Counters order all that the sync table orders. */
static gantry_status check_rows(const waits *w, uint32_t start, uint32_t op)
{
    for (size_t i = w->first[op]; i < w->first[op + 1]; i++) {
        const gy_sync *row = &w->k->s->sync.at[w->sync[i]];
        bool far = row->distance > start || row->distance >= w->k->s->in_flight;
        if (far || gy_clocks_before(&w->k->clocks, (gy_stamp){ row->from, start - row->distance }))
            continue;
        return gy_breach(w->k->err, "counters", "sync", w->sync[i],
                         "row %u lets %s wait for %s, and no counter does; add a wait", w->sync[i],
                         gy_label_op(w->k->s, row->to).at, gy_label_op(w->k->s, row->from).at);
    }
    return GANTRY_OK;
}

static gantry_status touch(gy_check *k, const gy_use *u, bool writes)
{
    bool other_turn = gy_use_instance(k, u)->space == GY_SPACE_OUTPUT && k->now.start % k->s->in_flight != 0;
    if ((u->mode != GANTRY_READ) != writes || other_turn)
        return GANTRY_OK;
    return writes ? gy_bytes_take(k, u) : gy_bytes_read(k, u);
}

static gantry_status check_op(waits *w, uint32_t start, uint32_t index)
{
    gy_check *k = w->k;
    gantry_error *err = k->err, inner = { 0 };
    const gy_op *op = gy_check_op(k, index);
    k->now = (gy_stamp){ index, start };
    if (!gy_clocks_step(&k->clocks, start, index))
        return gy_fail_nomem(err);
    if (k->clocks.needless)
        return fail_wait(w, &w->row.at[k->clocks.needless - 1], "which its lanes and its other waits bring");
    GY_TRY(check_rows(w, start, index));
    k->err = &inner;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; !status && i < 2 * op->uses; i++)
        status = touch(k, &k->s->use.at[op->use + i % op->uses], i >= op->uses);
    k->err = err;
    if (status == GANTRY_E_SCHEDULE)
        return gy_fail(err, status, inner.where, "rule counters: with counters alone there is a race: %s",
                       strchr(inner.text, ':') ? strchr(inner.text, ':') + 2 : inner.text);
    return status ? gy_fail_nomem(err) : GANTRY_OK;
}

static gantry_status check(waits *w)
{
    gy_check *k = w->k;
    const gantry_schedule *s = k->s;
    for (uint32_t i = 0; i < s->counters.at.count; i++)
        GY_TRY(add_counter(w, i));
    GY_TRY(sort_sync(w));
    if (w->row.count > 1)
        qsort(w->row.at, w->row.count, sizeof *w->row.at, by_waiter);
    gy_bytes_free(&k->bytes);
    GY_TRY(gy_bytes_init(k));
    for (size_t i = 0; i < w->row.count; i++)
        GY_TRY(check_wait(w, &w->row.at[i]));
    gy_clocks_free(&k->clocks);
    GY_TRY(gy_clocks_of(&k->clocks, s, w->row.at, w->row.count, s->in_flight + 1, k->err));
    k->clocks.watch = true;
    for (uint32_t start = 0; start <= s->in_flight; start++)
        for (uint32_t op = 0; op < s->ops.count; op++)
            GY_TRY(check_op(w, start, op));
    return GANTRY_OK;
}

gantry_status gy_check_counters(gy_check *k)
{
    waits w = { .k = k };
    gantry_status status = k->s->replay == GY_REPLAY_DEVICE ? check(&w) : GANTRY_OK;
    gy_vec_free(&w.row);
    gy_free(w.first);
    gy_free(w.sync);
    return status;
}
