/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls of NCCL an op is: from its pieces, which say what its kind means. Where pieces are not laid out as the
 * one call for the kind wants them, an op is several calls in one group. */
#include "backends/cuda/collective/nccl.h"

#include "base/error.h"
#include "kernel/dtype.h"

typedef struct planner {
    gy_cuda *h;
    const gy_op *op;
    const gy_exchange *exchange;
    gy_nccl_plan *plan;
    const char *why; /* the first thing that NCCL cannot do */
    bool failed;     /* out of memory */
} planner;

static const gy_use *use_of(const planner *p, gy_exchange_end end)
{
    return &p->h->job->schedule->use.at[p->op->use + end.use];
}

static uint32_t rank_of(const planner *p, gy_exchange_end end)
{
    return use_of(p, end)->rank;
}

/* The place of the end in its memory, in a start. */
static uint64_t position(const planner *p, gy_exchange_end end, uint64_t start)
{
    const gantry_schedule *s = p->h->job->schedule;
    const gy_use *use = use_of(p, end);
    const gy_instance *in = &s->instances.at[use->instance];
    return gy_instance_address(s, in, start) + gy_instance_offset(s, in, use->first) + end.offset;
}

/* `b` is so many bytes behind `a`, whatever the turn. */
static bool is_behind(const planner *p, gy_exchange_end a, gy_exchange_end b, uint64_t bytes)
{
    const gantry_schedule *s = p->h->job->schedule;
    const gy_instance *x = &s->instances.at[use_of(p, a)->instance], *y = &s->instances.at[use_of(p, b)->instance];
    uint64_t last = p->h->turns - 1;
    return x->memory == y->memory && position(p, a, 0) + bytes == position(p, b, 0) &&
           position(p, a, last) + bytes == position(p, b, last);
}

static bool is_live(const gy_exchange_piece *piece)
{
    return piece->bytes && piece->targets;
}

static uint32_t count_live(const gy_exchange *exchange)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < exchange->pieces; i++)
        live += is_live(&exchange->piece[i]);
    return live;
}

/* ---- what no call of NCCL can do ---- */

static const char *refuse_ranks(const planner *p)
{
    const gantry_schedule *s = p->h->job->schedule;
    for (uint32_t i = 0; i < p->op->lanes; i++) {
        const gy_cuda_device *a = &p->h->device[gy_op_device(s, p->op, i)];
        if (!a->gpu)
            return "a rank is no GPU";
        for (uint32_t k = 0; k < i; k++)
            if (gy_nccl_same_gpu(p->h, gy_op_device(s, p->op, k), gy_op_device(s, p->op, i)))
                return "two ranks are on one GPU";
    }
    return p->op->lanes < 2 ? "there is one rank" : NULL;
}

static const char *refuse_ends(const planner *p)
{
    const gantry_schedule *s = p->h->job->schedule;
    for (uint32_t i = 0; i < p->exchange->ends; i++) {
        gy_location place = gy_cuda_location(p->h, use_of(p, p->exchange->end[i]), 0);
        uint32_t device = gy_op_device(s, p->op, rank_of(p, p->exchange->end[i]));
        if (place.device == GY_NONE)
            return "a rank has its rows in host memory";
        if (!gy_nccl_same_gpu(p->h, place.device, device))
            return "a rank has its rows on another GPU";
    }
    return p->exchange->staged ? "it overwrites what other ranks read" : NULL;
}

/* Between ranks of several processes results have the bits of one process, so NCCL adds only what has those in any
 * order: integers, and no more than two numbers. */
static const char *refuse_order(const planner *p, bool real)
{
    bool free_order =
        !p->h->step || p->h->nccl->any_order || p->op->algorithm == GY_ALGORITHM_NCCL || !real || p->op->lanes <= 2;
    return free_order ? NULL
                      : "it adds floating-point numbers of more than two ranks in the order of its algorithm, and NCCL "
                        "in its own; with GANTRY_CUDA_NETWORK=nccl it may";
}

/* ncclDataType_t and ncclRedOp_t; nothing is reduced in 8 bits. For NCCL the larger of a number and NaN is the number,
 * here it is NaN. */
static const char *refuse_reduction(planner *p)
{
    static const int types[GANTRY_DTYPE_COUNT] = {
        [GANTRY_F16] = 6, [GANTRY_BF16] = 9, [GANTRY_F32] = 7, [GANTRY_F64] = 8, [GANTRY_I8] = 0,
        [GANTRY_U8] = 1,  [GANTRY_I32] = 2,  [GANTRY_U32] = 3, [GANTRY_I64] = 4, [GANTRY_U64] = 5
    };
    static const int ops[] = { [GANTRY_SUM] = 0, [GANTRY_PROD] = 1, [GANTRY_MAX] = 2, [GANTRY_MIN] = 3 };
    gantry_dtype type = p->exchange->dtype;
    bool real = gy_dtype_is_float(type);
    p->plan->type = types[type];
    p->plan->op = ops[p->exchange->reduce];
    p->plan->rounds = real && (!p->h->step || p->op->lanes > 2);
    return real && (p->exchange->reduce == GANTRY_MIN || p->exchange->reduce == GANTRY_MAX)
               ? "its min and max pass over NaN"
               : refuse_order(p, real);
}

/* ---- calls ---- */

static gy_nccl_call *add_call(planner *p, gy_nccl_kind kind, uint64_t count, uint32_t ends)
{
    gy_nccl_call call = { .kind = kind, .count = count };
    call.end = gy_arena_calloc(&p->h->arena, ends, sizeof *call.end);
    if (!call.end || !gy_vec_push(&p->plan->call, call)) {
        p->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < ends; i++)
        call.end[i].use = GY_NONE;
    return gy_vec_last(&p->plan->call);
}

/* Puts each end into the slot of its rank. Returns how many slots are taken; GY_NONE: a rank has two ends. */
static uint32_t spread(const planner *p, gy_exchange_end *slot, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t rank = rank_of(p, p->exchange->end[i]);
        if (slot[rank].use != GY_NONE)
            return GY_NONE;
        slot[rank] = p->exchange->end[i];
    }
    return count;
}

static void refuse(planner *p, const char *why)
{
    p->why = p->why ? p->why : why;
}

static void plan_reduction(planner *p, const gy_exchange_piece *piece)
{
    uint32_t ranks = p->op->lanes;
    gy_nccl_call *c = add_call(p, GY_NCCL_ALL_REDUCE, piece->bytes / gantry_dtype_size(p->exchange->dtype), 2 * ranks);
    if (!c)
        return;
    uint32_t gives = spread(p, c->end, piece->source, piece->sources);
    uint32_t takes = spread(p, c->end + ranks, piece->target, piece->targets);
    if (gives != ranks)
        refuse(p, gives == GY_NONE ? "a rank gives two values of one row" : "some rows do not come from all ranks");
    if (takes != ranks && takes != 1)
        refuse(p, takes == GY_NONE ? "a rank takes a row twice" : "some ranks take nothing");
    if (takes == 1) {
        c->kind = GY_NCCL_REDUCE;
        c->root = rank_of(p, p->exchange->end[piece->target]);
    }
}

/* True if calls, one for each rank as the root, are parts of one size, one behind the other in the memory of each rank.
 */
static bool is_row_of(const planner *p, const gy_nccl_call *first, const gy_nccl_call *other, uint64_t bytes)
{
    for (uint32_t r = 0; r < p->op->lanes; r++)
        if (!is_behind(p, first->end[r], other->end[r], bytes * other->root))
            return false;
    return first->count == other->count;
}

static gy_nccl_call *call_of_root(const planner *p, uint32_t root)
{
    for (size_t i = 0; i < p->plan->call.count; i++) {
        gy_nccl_call *c = &p->plan->call.at[i];
        if (c->kind == GY_NCCL_REDUCE && c->root == root)
            return c;
    }
    return NULL;
}

/* Reductions of equal parts to one rank each, in rank order, are one call. */
static void join_reductions(planner *p)
{
    uint32_t ranks = p->op->lanes;
    gy_nccl_call *first = call_of_root(p, 0);
    if (p->plan->call.count != ranks || !first)
        return;
    uint64_t bytes = first->count * gantry_dtype_size(p->exchange->dtype);
    for (uint32_t r = 1; r < ranks; r++) {
        const gy_nccl_call *other = call_of_root(p, r);
        if (!other || !is_row_of(p, first, other, bytes))
            return;
    }
    gy_nccl_call all = { .kind = GY_NCCL_REDUCE_SCATTER, .count = first->count, .end = first->end };
    for (uint32_t r = 1; r < ranks; r++)
        all.end[ranks + r] = call_of_root(p, r)->end[ranks + r];
    p->plan->call.at[0] = all;
    p->plan->call.count = 1;
}

static void plan_reductions(planner *p)
{
    refuse(p, refuse_reduction(p));
    for (uint32_t i = 0; i < p->exchange->pieces && !p->failed && !p->why; i++)
        if (is_live(&p->exchange->piece[i]))
            plan_reduction(p, &p->exchange->piece[i]);
    if (!p->failed && !p->why)
        join_reductions(p);
}

/* ---- what is only moved ---- */

/* A broadcast has one piece, and every rank but perhaps the root has a place for it. */
static bool plan_broadcast(planner *p)
{
    const gy_exchange_piece *piece = p->exchange->piece;
    while (!is_live(piece))
        piece++;
    uint32_t ranks = p->op->lanes, root = rank_of(p, p->exchange->end[piece->source]);
    gy_nccl_call *c = add_call(p, GY_NCCL_BROADCAST, piece->bytes, 2 * ranks);
    if (!c)
        return true;
    c->root = root;
    c->end[root] = p->exchange->end[piece->source];
    bool fits = spread(p, c->end + ranks, piece->target, piece->targets) != GY_NONE;
    if (fits && c->end[ranks + root].use == GY_NONE)
        c->end[ranks + root] = c->end[root];
    for (uint32_t r = 0; r < ranks; r++)
        fits = fits && c->end[ranks + r].use != GY_NONE;
    p->plan->call.count -= !fits;
    return fits;
}

/* The piece that a rank gives, if it gives one. */
static const gy_exchange_piece *piece_of(const planner *p, uint32_t rank)
{
    const gy_exchange_piece *found = NULL;
    for (uint32_t i = 0; i < p->exchange->pieces; i++) {
        const gy_exchange_piece *piece = &p->exchange->piece[i];
        if (is_live(piece) && rank_of(p, p->exchange->end[piece->source]) == rank) {
            if (found)
                return NULL;
            found = piece;
        }
    }
    return found;
}

/* Where the piece lies in the end; what a rank has already it need not receive. */
static bool place_of(const planner *p, const gy_exchange_piece *piece, uint32_t rank, gy_exchange_end *at)
{
    for (uint32_t k = 0; k < piece->targets; k++) {
        *at = p->exchange->end[piece->target + k];
        if (rank_of(p, *at) == rank)
            return true;
    }
    *at = p->exchange->end[piece->source];
    return rank_of(p, *at) == rank;
}

/* An all-gather has one piece of each rank, all of one size, one behind the other in every rank's memory. */
static bool plan_all_gather(planner *p)
{
    uint32_t ranks = p->op->lanes;
    const gy_exchange_piece *first = piece_of(p, 0);
    gy_nccl_call *c = first ? add_call(p, GY_NCCL_ALL_GATHER, first->bytes, 2 * ranks) : NULL;
    if (!c)
        return p->failed;
    bool fits = true;
    for (uint32_t g = 0; g < ranks && fits; g++) {
        const gy_exchange_piece *piece = piece_of(p, g);
        fits = piece && piece->bytes == first->bytes;
        for (uint32_t r = 0; r < ranks && fits; r++) {
            gy_exchange_end at;
            fits = place_of(p, first, r, &c->end[ranks + r]) && place_of(p, piece, r, &at) &&
                   is_behind(p, c->end[ranks + r], at, g * first->bytes);
        }
        if (fits)
            c->end[g] = p->exchange->end[piece->source];
    }
    p->plan->call.count -= !fits;
    return fits;
}

static void plan_pairs(planner *p, const gy_exchange_piece *piece)
{
    gy_exchange_end from = p->exchange->end[piece->source];
    for (uint32_t k = 0; k < piece->targets && !p->failed; k++) {
        gy_exchange_end to = p->exchange->end[piece->target + k];
        if (rank_of(p, from) == rank_of(p, to) && is_behind(p, from, to, 0))
            continue;
        gy_nccl_call *c = add_call(p, GY_NCCL_PAIR, piece->bytes, 2);
        if (c) {
            c->root = rank_of(p, from);
            c->to = rank_of(p, to);
            c->end[0] = from;
            c->end[1] = to;
        }
    }
}

static void plan_moves(planner *p)
{
    uint32_t live = count_live(p->exchange);
    p->plan->type = GY_NCCL_BYTES;
    if ((live == 1 && plan_broadcast(p)) || (live == p->op->lanes && plan_all_gather(p)))
        return;
    for (uint32_t i = 0; i < p->exchange->pieces && !p->failed; i++)
        if (is_live(&p->exchange->piece[i]))
            plan_pairs(p, &p->exchange->piece[i]);
}

bool gy_nccl_same_gpu(const gy_cuda *h, uint32_t a, uint32_t b)
{
    return h->step ? a == b : h->device[a].id == h->device[b].id;
}

gantry_status gy_nccl_plan_make(gy_nccl_plan *plan, gy_cuda *h, uint32_t op, const gy_exchange *exchange,
                                const char **why, gantry_error *err)
{
    planner p = { .h = h, .op = &h->job->schedule->ops.at[op], .exchange = exchange, .plan = plan };
    refuse(&p, refuse_ranks(&p));
    refuse(&p, p.why ? NULL : refuse_ends(&p));
    if (!p.why)
        (p.exchange->reduce ? plan_reductions : plan_moves)(&p);
    if (p.failed || p.why)
        gy_nccl_plan_free(plan);
    *why = p.why;
    return p.failed ? gy_fail_nomem(err) : GANTRY_OK;
}

void gy_nccl_plan_free(gy_nccl_plan *plan)
{
    gy_vec_free(&plan->call);
}
