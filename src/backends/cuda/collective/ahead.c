/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/collective/ahead.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/vec.h"
#include "schedule/schedule.h"

#define MOST_BYTES (UINT64_C(256) << 20) /* of clocks */

/*
 * Clocks: for each op and stream, 1 + the last op of that stream that has ended when the op begins, or that it is
 * itself; 0: none. A stream is the lowest lane that has it.
 */
typedef struct finder {
    gy_cuda *h;
    const gantry_schedule *s;
    uint32_t lanes;
    uint32_t *stream;      /* per lane */
    uint32_t *clock;       /* op * lanes + stream */
    uint32_t *last;        /* per stream: 1 + its last op so far */
    uint32_t *collective;  /* per device: 1 + the stream that had the last collective there */
    uint32_t *begin, *row; /* rows of the sync table by the op that waits */
    GY_VEC(gy_ahead_row) found;
    GY_VEC(gy_behind_row) behind;
} finder;

static bool asks(const gy_op *op)
{
    bool may = op->algorithm == GY_ALGORITHM_COUNTERS || op->algorithm == GY_ALGORITHM_NCCL;
    return op->kind == GY_OP_COLLECTIVE && may && op->lanes > 1;
}

static bool any_asks(const gantry_schedule *s)
{
    for (size_t i = 0; i < s->ops.count; i++)
        if (asks(&s->ops.at[i]))
            return true;
    return false;
}

static uint32_t *clock_of(const finder *f, uint32_t op)
{
    return f->clock + (size_t)op * f->lanes;
}

static uint32_t stream_of(const finder *f, const gy_op *op, uint32_t i)
{
    return f->stream[f->s->op_lane.at[op->lane + i]];
}

static void find_streams(finder *f)
{
    for (uint32_t i = 0; i < f->lanes; i++) {
        uint32_t k = 0;
        while (k < i && f->h->lane[k].queue.stream != f->h->lane[i].queue.stream)
            k++;
        f->stream[i] = k;
    }
}

/* Rows within a start. */
static void sort_rows(finder *f)
{
    const gantry_schedule *s = f->s;
    for (size_t i = 0; i < s->sync.count; i++)
        f->begin[s->sync.at[i].to + 1] += s->sync.at[i].distance == 0;
    for (size_t i = 0; i <= s->ops.count; i++)
        f->begin[i + 1] += f->begin[i];
    for (size_t i = s->sync.count; i-- > 0;)
        if (s->sync.at[i].distance == 0)
            f->row[--f->begin[s->sync.at[i].to + 1]] = s->sync.at[i].from;
}

/* Behind sort_rows, begin[op + 1] is where the rows of the op begin. */
static uint32_t rows_begin(const finder *f, uint32_t op)
{
    return f->begin[op + 1];
}

static uint32_t rows_end(const finder *f, uint32_t op)
{
    return f->begin[op + 2];
}

static void come_after(finder *f, uint32_t *clock, uint32_t before)
{
    const uint32_t *other = before ? clock_of(f, before - 1) : NULL;
    for (uint32_t i = 0; other && i < f->lanes; i++)
        clock[i] = other[i] > clock[i] ? other[i] : clock[i];
}

static void find_clock(finder *f, uint32_t id)
{
    const gy_op *op = &f->s->ops.at[id];
    uint32_t *clock = clock_of(f, id);
    for (uint32_t i = 0; i < op->lanes; i++) {
        come_after(f, clock, f->last[stream_of(f, op, i)]);
        uint32_t other = op->kind == GY_OP_COLLECTIVE ? f->collective[gy_op_device(f->s, op, i)] : 0;
        come_after(f, clock, other ? f->last[other - 1] : 0);
    }
    for (uint32_t k = rows_begin(f, id); k < rows_end(f, id); k++)
        come_after(f, clock, f->row[k] + 1);
}

static void pass(finder *f, uint32_t id)
{
    const gy_op *op = &f->s->ops.at[id];
    for (uint32_t i = 0; i < op->lanes; i++) {
        clock_of(f, id)[stream_of(f, op, i)] = id + 1;
        f->last[stream_of(f, op, i)] = id + 1;
        if (op->kind == GY_OP_COLLECTIVE)
            f->collective[gy_op_device(f->s, op, i)] = stream_of(f, op, i) + 1;
    }
}

/* True if lane `lane` of the op waits for that one anyway, as it waits for another: one of `found` from `first` on. */
static bool is_implied(const finder *f, uint32_t op, uint32_t lane, size_t first, uint32_t from)
{
    uint32_t stream = f->stream[f->s->op_lane.at[f->s->ops.at[from].lane]];
    uint32_t before = f->last[stream_of(f, &f->s->ops.at[op], lane)];
    bool implied = before && clock_of(f, before - 1)[stream] > from;
    for (size_t i = first; i < f->found.count; i++)
        implied = implied || clock_of(f, f->found.at[i].from)[stream] > from;
    return implied;
}

static bool add_rows(finder *f, uint32_t id, uint32_t lane)
{
    const gy_op *op = &f->s->ops.at[id];
    uint32_t device = gy_op_device(f->s, op, lane);
    size_t first = f->found.count;
    bool ok = true;
    for (uint32_t i = 0; i < f->lanes && ok; i++) {
        uint32_t from = clock_of(f, id)[i];
        bool other = from && i != stream_of(f, op, lane) && gy_cuda_same_gpu(f->h, f->h->lane[i].queue.device, device);
        if (other && !is_implied(f, id, lane, first, from - 1))
            ok = gy_vec_push(&f->found, ((gy_ahead_row){ from - 1, lane }));
    }
    return ok;
}

/* Lane 0 of the op comes behind the lane that the collective `from` has in stream i, on the same GPU: the two are one
 * stream, a row of the op says so, or the op ahead of it in its lane comes behind that, of which this was seen to. */
static bool is_behind(const finder *f, uint32_t id, uint32_t i, uint32_t from)
{
    uint32_t mine = stream_of(f, &f->s->ops.at[id], 0), before = f->last[mine];
    bool known = i == mine || (before && f->s->ops.at[before - 1].lanes == 1 && clock_of(f, before - 1)[i] > from);
    for (uint32_t k = rows_begin(f, id); k < rows_end(f, id); k++)
        known = known || f->row[k] == from;
    return known;
}

/* An op that comes behind a collective by way of other GPUs alone, where its lane on their GPU may not have ended: one
 * that meets once says nothing of that (push.c). `to`: the first of the op's batch, which launches all of it. */
static bool add_behind(finder *f, uint32_t id, uint32_t to)
{
    const gy_op *op = &f->s->ops.at[id];
    uint32_t device = f->h->lane[f->s->op_lane.at[op->lane]].queue.device;
    bool ok = true;
    for (uint32_t i = 0; i < f->lanes && ok; i++) {
        uint32_t from = clock_of(f, id)[i];
        bool meets = from && asks(&f->s->ops.at[from - 1]) && from - 1 < to;
        if (meets && gy_cuda_same_gpu(f->h, f->h->lane[i].queue.device, device) && !is_behind(f, id, i, from - 1))
            ok = gy_vec_push(&f->behind, ((gy_behind_row){ from - 1, to }));
    }
    return ok;
}

static bool find_rows(finder *f)
{
    uint32_t *first = f->h->ahead->first, head = 0;
    bool ok = true;
    for (uint32_t id = 0; id < f->s->ops.count && ok; id++) {
        const gy_op *op = &f->s->ops.at[id];
        head = op->joined ? head : id;
        first[id] = (uint32_t)f->found.count;
        find_clock(f, id);
        for (uint32_t r = 0; r < op->lanes && ok && asks(op); r++)
            ok = add_rows(f, id, r);
        ok = ok && (asks(op) || !op->lanes || add_behind(f, id, head));
        pass(f, id);
    }
    first[f->s->ops.count] = (uint32_t)f->found.count;
    return ok;
}

static bool begin(finder *f, size_t ops)
{
    f->stream = gy_calloc(f->lanes + 1, sizeof *f->stream);
    f->last = gy_calloc(f->lanes + 1, sizeof *f->last);
    f->collective = gy_calloc(f->h->devices + 1, sizeof *f->collective);
    f->clock = gy_calloc(ops * f->lanes + 1, sizeof *f->clock);
    f->begin = gy_calloc(ops + 2, sizeof *f->begin);
    f->row = gy_calloc(f->s->sync.count + 1, sizeof *f->row);
    return f->stream && f->last && f->collective && f->clock && f->begin && f->row;
}

static void end(finder *f)
{
    gy_free(f->stream);
    gy_free(f->last);
    gy_free(f->collective);
    gy_free(f->clock);
    gy_free(f->begin);
    gy_free(f->row);
    gy_vec_free(&f->found);
    gy_vec_free(&f->behind);
}

static bool keep(finder *f, gy_cuda_ahead *to)
{
    to->row = gy_arena_calloc(&f->h->arena, f->found.count + 1, sizeof *to->row);
    for (size_t i = 0; i < f->found.count && to->row; i++)
        to->row[i] = f->found.at[i];
    to->behind = gy_arena_calloc(&f->h->arena, f->behind.count + 1, sizeof *to->behind);
    for (size_t i = 0; i < f->behind.count && to->behind; i++)
        to->behind[to->behinds++] = f->behind.at[i];
    return to->row && to->behind;
}

gantry_status gy_ahead_make(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    finder f = { .h = h, .s = s, .lanes = (uint32_t)s->lanes.count };
    size_t ops = s->ops.count;
    if (h->step || s->replay == GY_REPLAY_DEVICE || !any_asks(s) || ops * f.lanes > MOST_BYTES / sizeof *f.clock)
        return GANTRY_OK;
    h->ahead = gy_arena_calloc(&h->arena, 1, sizeof *h->ahead);
    if (h->ahead)
        h->ahead->first = gy_arena_calloc(&h->arena, ops + 1, sizeof *h->ahead->first);
    bool ok = h->ahead && h->ahead->first && begin(&f, ops);
    if (ok) {
        find_streams(&f);
        sort_rows(&f);
        ok = find_rows(&f) && keep(&f, h->ahead);
    }
    end(&f);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}

uint32_t gy_ahead_events(const gy_cuda *h, uint32_t op)
{
    const gy_op *o = &h->job->schedule->ops.at[op];
    return h->ahead && asks(o) ? o->lanes : 1;
}
