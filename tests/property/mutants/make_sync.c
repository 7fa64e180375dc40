/* SPDX-License-Identifier: Apache-2.0 */
/* The sync table of a test schedule: every two ops that touch one byte, one of them writing, get an order. */
#include "property/mutants/mutants.h"

enum { WINDOW = 2 };

typedef struct table {
    rng *r;
    gantry_schedule *s;
    const gantry_graph *g;
    uint64_t before[WINDOW][OPS_MAX]; /* ops that are ordered before an op: bit start * OPS_MAX + op */
} table;

static bool touches(const gantry_schedule *s, const gy_use *a, const gy_use *b)
{
    const gy_instance *x = &s->instances.at[a->instance], *y = &s->instances.at[b->instance];
    if (x->space != y->space || x->memory != y->memory || x->space == GY_SPACE_INPUT ||
        (a->mode == GANTRY_READ && b->mode == GANTRY_READ))
        return false;
    if (x->space == GY_SPACE_OUTPUT && x->value != y->value)
        return false;
    uint64_t first = x->offset + gy_instance_offset(s, x, a->first), last = first + gy_use_bytes(s, a);
    uint64_t first2 = y->offset + gy_instance_offset(s, y, b->first), last2 = first2 + gy_use_bytes(s, b);
    return first < last2 && first2 < last;
}

/* Starts that overlap have windows of their own. */
static bool moves(const gantry_schedule *s, const gy_instance *in)
{
    bool staging = in->space == GY_SPACE_STAGING;
    uint64_t window = staging ? s->staging_window : s->window.count ? s->window.at[in->memory] : 0;
    return window && in->offset >= (staging ? s->staging : s->slab.at[in->memory]) - 2 * window;
}

static bool conflict(const gantry_schedule *s, uint32_t i, uint32_t j, bool same_start)
{
    for (uint32_t a = 0; a < s->ops.at[i].uses; a++) {
        for (uint32_t b = 0; b < s->ops.at[j].uses; b++) {
            const gy_use *x = &s->use.at[s->ops.at[i].use + a], *y = &s->use.at[s->ops.at[j].use + b];
            const gy_instance *in = &s->instances.at[x->instance];
            bool own = in->space == GY_SPACE_OUTPUT || moves(s, in);
            if ((same_start || !own) && touches(s, x, y))
                return true;
        }
    }
    return false;
}

static bool comes_after(const table *t, const gy_op *later, const gy_op *earlier)
{
    if (later->node == GY_NONE || earlier->node == GY_NONE)
        return false;
    const gy_node *node = &t->g->nodes.at[later->node];
    for (uint32_t i = 0; i < node->afters; i++)
        if (t->g->after.at[node->after + i] == earlier->node && are_in_one_turn(t->g, later, earlier))
            return true;
    return false;
}

static uint64_t bit(uint32_t start, uint32_t op)
{
    return UINT64_C(1) << (start * OPS_MAX + op);
}

static bool share_lane(const gantry_schedule *s, uint32_t i, uint32_t j)
{
    for (uint32_t a = 0; a < s->ops.at[i].lanes; a++) {
        for (uint32_t b = 0; b < s->ops.at[j].lanes; b++)
            if (s->op_lane.at[s->ops.at[i].lane + a] == s->op_lane.at[s->ops.at[j].lane + b])
                return true;
    }
    return false;
}

static void add_row(table *t, uint32_t from, uint32_t to, uint32_t distance, bool lane)
{
    static const uint8_t carriers[] = { GY_CARRIER_EVENT, GY_CARRIER_EVENT, GY_CARRIER_EDGE, GY_CARRIER_FLAG };
    gy_sync row = {
        .from = from, .to = to, .distance = distance, .carrier = lane ? GY_CARRIER_LANE : carriers[rng_below(t->r, 4)]
    };
    row.slot = row.carrier == GY_CARRIER_EVENT || row.carrier == GY_CARRIER_FLAG ? from : 0;
    row.reason = (uint8_t)rng_below(t->r, 3);
    if (!gy_vec_push(&t->s->sync, row))
        t->s->ops.count = 0;
}

/* The ops that lanes and the rows so far put before an op. */
static uint64_t past_of(const table *t, uint32_t start, uint32_t op)
{
    uint64_t past = 0;
    uint32_t ops = (uint32_t)t->s->ops.count;
    for (uint32_t st = 0; st <= start; st++)
        for (uint32_t i = 0; i < (st == start ? op : ops); i++)
            past |= share_lane(t->s, i, op) ? t->before[st][i] | bit(st, i) : 0;
    for (size_t i = 0; i < t->s->sync.count; i++) {
        const gy_sync *row = &t->s->sync.at[i];
        if (row->to == op && row->distance <= start && row->carrier != GY_CARRIER_LANE)
            past |= t->before[start - row->distance][row->from] | bit(start - row->distance, row->from);
    }
    return past;
}

static void order_op(table *t, uint32_t start, uint32_t op)
{
    t->before[start][op] = past_of(t, start, op);
    for (uint32_t st = start + 1; st-- > 0;) {
        for (uint32_t i = st == start ? op : (uint32_t)t->s->ops.count; i-- > 0;) {
            bool need = conflict(t->s, i, op, st == start) ||
                        (st == start && comes_after(t, &t->s->ops.at[op], &t->s->ops.at[i]));
            if (need && !(t->before[start][op] & bit(st, i))) {
                add_row(t, i, op, start - st, false);
                t->before[start][op] |= t->before[st][i] | bit(st, i);
            }
        }
    }
}

/* Rows that say again what is known: damage to them must be found harmless. */
static void add_spare(table *t)
{
    uint32_t ops = (uint32_t)t->s->ops.count;
    for (uint32_t j = 1; j < ops; j++) {
        uint32_t i = rng_below(t->r, j);
        if (share_lane(t->s, i, j) && rng_chance(t->r, 30))
            add_row(t, i, j, 0, true);
        else if ((t->before[0][j] & bit(0, i)) && rng_chance(t->r, 25))
            add_row(t, i, j, 0, false);
    }
}

void make_sync(rng *r, gantry_schedule *s, const gantry_graph *g)
{
    table t = { .r = r, .s = s, .g = g };
    for (uint32_t start = 0; start < s->in_flight; start++)
        for (uint32_t i = 0; i < s->ops.count; i++)
            order_op(&t, start, i);
    add_spare(&t);
}
