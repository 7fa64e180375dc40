/* SPDX-License-Identifier: Apache-2.0 */
/* One damage at a time. */
#include "property/mutants/mutants.h"
#include <string.h>

const char *const mutation_text[] = {
#define X(name, text) text,
    MUTATION_MAP(X)
#undef X
};

#define COPY_VEC(to, from)                                                                                             \
    (gy_vec_add((to), (from)->count) &&                                                                                \
     ((from)->count == 0 || memcpy((to)->at, (from)->at, (from)->count * sizeof *(from)->at)))

gantry_schedule *clone_schedule(const gantry_schedule *s)
{
    gantry_schedule *c = gy_schedule_alloc();
    if (!c)
        return NULL;
    c->machine = gy_machine_ref(s->machine);
    c->graph_name = s->graph_name;
    c->policy = s->policy;
    c->graph_hash = s->graph_hash;
    c->in_flight = s->in_flight;
    c->staging = s->staging;
    c->staging_window = s->staging_window;
    if (COPY_VEC(&c->values, &s->values) && COPY_VEC(&c->instances, &s->instances) && COPY_VEC(&c->lanes, &s->lanes) &&
        COPY_VEC(&c->ops, &s->ops) && COPY_VEC(&c->use, &s->use) && COPY_VEC(&c->op_lane, &s->op_lane) &&
        COPY_VEC(&c->sync, &s->sync) && COPY_VEC(&c->node_ids, &s->node_ids) && COPY_VEC(&c->slab, &s->slab) &&
        COPY_VEC(&c->window, &s->window))
        return c;
    gantry_schedule_free(c);
    return NULL;
}

/* An index that is mostly in range. */
static uint32_t pick(rng *r, size_t count)
{
    return rng_chance(r, 98) ? rng_below(r, (uint32_t)count) : (uint32_t)count + rng_below(r, 3);
}

static gy_op *pick_op(rng *r, gantry_schedule *s, int kind)
{
    for (int tries = 0; tries < 40; tries++) {
        gy_op *op = &s->ops.at[rng_below(r, (uint32_t)s->ops.count)];
        if (kind < 0 || op->kind == kind)
            return op;
    }
    return NULL;
}

static gy_use *pick_use(rng *r, gantry_schedule *s)
{
    gy_op *op = pick_op(r, s, -1);
    return op->uses ? &s->use.at[op->use + rng_below(r, op->uses)] : NULL;
}

static bool mutate_sync(rng *r, gantry_schedule *s, mutation kind)
{
    if (s->sync.count == 0)
        return false;
    uint32_t i = rng_below(r, (uint32_t)s->sync.count);
    gy_sync *row = &s->sync.at[i];
    switch (kind) {
    case MUTATE_DROP_SYNC:
        s->sync.at[i] = *gy_vec_last(&s->sync);
        s->sync.count--;
        return true;
    case MUTATE_MOVE_SYNC:
        *(rng_chance(r, 50) ? &row->from : &row->to) = pick(r, s->ops.count);
        return true;
    case MUTATE_CARRIER:
        row->carrier = (uint8_t)rng_below(r, rng_chance(r, 97) ? 4 : 6);
        return true;
    case MUTATE_SLOT:
        row->slot = pick(r, s->ops.count);
        return true;
    default:
        row->distance = rng_below(r, 3);
        return true;
    }
}

/* A row that joins two starts. */
static bool mutate_joint(rng *r, gantry_schedule *s)
{
    for (uint32_t tries = 0; tries < 40 && s->sync.count > 0; tries++) {
        gy_sync *row = &s->sync.at[rng_below(r, (uint32_t)s->sync.count)];
        if (row->distance == 0)
            continue;
        if (rng_chance(r, 60)) {
            *row = *gy_vec_last(&s->sync);
            s->sync.count--;
        } else if (rng_chance(r, 50)) {
            row->distance = rng_below(r, 3);
        } else {
            *(rng_chance(r, 50) ? &row->from : &row->to) = pick(r, s->ops.count);
        }
        return true;
    }
    return false;
}

static bool mutate_window(rng *r, gantry_schedule *s, mutation kind)
{
    bool room = s->ops.count * 4 <= WINDOW_MAX || (s->in_flight == 1 && s->ops.count * 3 <= WINDOW_MAX);
    if (kind == MUTATE_IN_FLIGHT) {
        s->in_flight += room && (s->in_flight == 1 || rng_chance(r, 50)) ? 1 : s->in_flight > 1 ? UINT32_MAX : 0;
        return true;
    }
    if (s->window.count == 0)
        return false;
    uint64_t *size = rng_chance(r, 85) ? &s->window.at[rng_below(r, (uint32_t)s->window.count)] : &s->staging_window;
    *size = rng_chance(r, 50) ? 256 * (uint64_t)rng_below(r, 5) : rng_chance(r, 50) ? *size + 256 : *size - *size / 2;
    return true;
}

static uint32_t swapped(uint32_t op, uint32_t a, uint32_t b)
{
    return op == a ? b : op == b ? a : op;
}

static bool swap_ops(rng *r, gantry_schedule *s, bool bare)
{
    if (s->ops.count < 2)
        return false;
    uint32_t a = rng_below(r, (uint32_t)s->ops.count - 1),
             b = rng_chance(r, 60) ? a + 1 : rng_below(r, (uint32_t)s->ops.count);
    gy_op op = s->ops.at[a];
    s->ops.at[a] = s->ops.at[b];
    s->ops.at[b] = op;
    for (size_t i = 0; i < s->sync.count && !bare; i++) {
        s->sync.at[i].from = swapped(s->sync.at[i].from, a, b);
        s->sync.at[i].to = swapped(s->sync.at[i].to, a, b);
    }
    return true;
}

static bool drop_op(rng *r, gantry_schedule *s)
{
    uint32_t op = rng_below(r, (uint32_t)s->ops.count);
    size_t kept = 0;
    memmove(&s->ops.at[op], &s->ops.at[op + 1], (s->ops.count - op - 1) * sizeof *s->ops.at);
    s->ops.count--;
    for (size_t i = 0; i < s->sync.count; i++) {
        gy_sync row = s->sync.at[i];
        if (row.from != op && row.to != op) {
            row.from -= row.from > op;
            row.to -= row.to > op;
            s->sync.at[kept++] = row;
        }
    }
    s->sync.count = kept;
    return true;
}

/* The copy comes right behind the op, or last; rows stay with the first. */
static bool double_op(rng *r, gantry_schedule *s, bool repeat)
{
    uint32_t op = rng_below(r, (uint32_t)s->ops.count), at = rng_chance(r, 70) ? op + 1 : (uint32_t)s->ops.count;
    gy_op copy = s->ops.at[op];
    copy.repeat = repeat || copy.repeat;
    if (s->ops.count >= OPS_MAX || !gy_vec_push(&s->ops, copy))
        return false;
    memmove(&s->ops.at[at + 1], &s->ops.at[at], (s->ops.count - 1 - at) * sizeof *s->ops.at);
    s->ops.at[at] = copy;
    for (size_t i = 0; i < s->sync.count; i++) {
        s->sync.at[i].from += s->sync.at[i].from >= at;
        s->sync.at[i].to += s->sync.at[i].to >= at;
        s->sync.at[i].slot += s->sync.at[i].slot >= at;
    }
    return true;
}

static bool mutate_instance(rng *r, gantry_schedule *s, mutation kind)
{
    gy_instance *in = &s->instances.at[rng_below(r, (uint32_t)s->instances.count)];
    int64_t shift = rng_range(r, -1, 1);
    switch (kind) {
    case MUTATE_ADDRESS:
        in->offset = rng_chance(r, 95) ? 256 * (uint64_t)rng_below(r, 6) : in->offset + 1 + rng_below(r, 8);
        return true;
    case MUTATE_MEMORY:
        in->memory = pick(r, s->machine->memories);
        return true;
    case MUTATE_SPACE:
        *(rng_chance(r, 60) ? &in->role : &in->space) = (uint8_t)rng_below(r, 4);
        in->op = in->op ? in->op : GANTRY_SUM;
        return true;
    case MUTATE_VALUE:
        in->value = pick(r, s->values.count);
        return true;
    default:
        if (rng_chance(r, 50))
            in->first += shift;
        in->last += rng_chance(r, 70) ? shift : -shift;
        if (rng_chance(r, 90) && in->first >= 0 && in->last >= in->first)
            in->bytes = (uint64_t)((in->last - in->first) * s->values.at[in->value].row_bytes);
        return true;
    }
}

static bool mutate_use(rng *r, gantry_schedule *s, mutation kind)
{
    gy_use *u = pick_use(r, s);
    if (!u)
        return false;
    switch (kind) {
    case MUTATE_USE_ROWS:
        *(rng_chance(r, 50) ? &u->first : &u->last) += rng_chance(r, 50) ? 1 : -1;
        return true;
    case MUTATE_USE_INSTANCE:
        u->instance = pick(r, s->instances.count);
        return true;
    default:
        u->mode = (uint8_t)rng_range(r, rng_chance(r, 95) ? 1 : 0, 7);
        return true;
    }
}

/* Both ends of an inserted copy (also one that a collective makes): what it moves, not whether it is one. */
static bool mutate_copy(rng *r, gantry_schedule *s, mutation kind)
{
    static const int kinds[] = { GY_OP_COPY, GY_OP_EVICT, GY_OP_FETCH, GY_OP_COLLECTIVE };
    gy_op *op = pick_op(r, s, kinds[rng_below(r, 4)]);
    if (!op || op->uses < 2)
        return false;
    gy_use *from = &s->use.at[op->use], *to = &s->use.at[op->use + 1];
    if (kind == MUTATE_COPY_ROUTE) {
        uint32_t value = s->instances.at[from->instance].value, other = rng_below(r, (uint32_t)s->instances.count);
        bool any = rng_chance(r, 20) || s->instances.at[other].value == value;
        from->instance = any ? other : from->instance;
        return any;
    }
    int64_t *end = rng_chance(r, 50) ? &from->first : &from->last;
    *end += rng_chance(r, 50) ? 1 : -1;
    to->first = from->first;
    to->last = from->last;
    return true;
}

static bool mutate_reduction(rng *r, gantry_schedule *s)
{
    uint8_t to = (uint8_t)rng_range(r, rng_chance(r, 90) ? GANTRY_SUM : 0, GANTRY_PROD);
    if (rng_chance(r, 50)) {
        gy_op *op = pick_op(r, s, rng_chance(r, 50) ? GY_OP_COLLECTIVE : GY_OP_FILL);
        if (!op)
            return false;
        op->reduce = to;
        return true;
    }
    for (uint32_t i = 0; i < s->instances.count; i++) {
        if (s->instances.at[i].role == GY_ROLE_ACCUMULATOR) {
            s->instances.at[i].op = to;
            return true;
        }
    }
    return false;
}

static bool mutate_collective(rng *r, gantry_schedule *s, mutation kind)
{
    gy_op *op = pick_op(r, s, GY_OP_COLLECTIVE);
    if (!op)
        return false;
    if (kind == MUTATE_COLLECTIVE_LANES) {
        uint32_t a = op->lane + rng_below(r, op->lanes), b = op->lane + rng_below(r, op->lanes),
                 lane = s->op_lane.at[a];
        if (a == b) {
            s->op_lane.at[a] = pick(r, s->lanes.count);
        } else {
            s->op_lane.at[a] = rng_chance(r, 50) ? s->op_lane.at[b] : lane;
            s->op_lane.at[b] = lane;
        }
        return true;
    }
    gy_use *u = &s->use.at[op->use + rng_below(r, op->uses)];
    switch (rng_below(r, 5)) {
    case 4:
        op->collective = GANTRY_ALL_GATHER;
        op->reduce = 0;
        return true;
    case 0:
        u->rank = (uint16_t)pick(r, op->lanes);
        return true;
    case 1:
        op->collective = (uint8_t)rng_range(r, rng_chance(r, 95) ? 1 : 0, 8);
        return true;
    case 2:
        op->ins = (uint32_t)rng_range(r, 0, op->uses);
        return true;
    default: /* one read or write fewer */
        if (op->uses < 2)
            return false;
        op->ins -= u < &s->use.at[op->use + op->ins];
        memmove(u, u + 1, (size_t)(&s->use.at[op->use + op->uses - 1] - u) * sizeof *u);
        op->uses--;
        return true;
    }
}

static bool mutate_rest(rng *r, gantry_schedule *s, mutation kind)
{
    gy_op *op = pick_op(r, s, -1);
    switch (kind) {
    case MUTATE_LANE:
        s->op_lane.at[op->lane] = pick(r, s->lanes.count);
        return true;
    case MUTATE_LANE_DEVICE:
        s->lanes.at[rng_below(r, (uint32_t)s->lanes.count)].device = pick(r, s->machine->devices);
        return true;
    case MUTATE_NODE:
        if (rng_chance(r, 50))
            op->node = rng_chance(r, 80) ? pick(r, s->node_ids.count) : GY_NONE;
        else
            op->iteration = rng_below(r, 3);
        return true;
    default: {
        uint64_t *slab = rng_chance(r, 80) ? &s->slab.at[rng_below(r, s->machine->memories)] : &s->staging;
        *slab = (uint64_t)(256 * rng_range(r, 0, rng_chance(r, 70) ? 6 : 40));
        return true;
    }
    }
}

/* A legal order, but another one. */
static bool reverse(rng *r, gantry_schedule *s)
{
    if (s->ops.count < 2)
        return false;
    uint32_t a = rng_below(r, (uint32_t)s->ops.count - 1), b = a + 1;
    gy_op op = s->ops.at[a];
    s->ops.at[a] = s->ops.at[b];
    s->ops.at[b] = op;
    for (size_t i = 0; i < s->sync.count; i++) {
        gy_sync *row = &s->sync.at[i];
        bool between = row->from == a && row->to == b && row->distance == 0;
        row->from = between ? a : swapped(row->from, a, b);
        row->to = between ? b : swapped(row->to, a, b);
        row->slot = row->from;
    }
    return true;
}

/* Gives an instance another name: other rows, another value of the same bytes, or another role. */
static int64_t rename_instance(rng *r, const gantry_schedule *s, gy_instance *in, const gy_use *u)
{
    int64_t shift = 0;
    if (rng_chance(r, 75)) {
        shift = rng_chance(r, 50) ? 1 : -1;
        in->first += shift;
        in->last += shift;
        if (rng_chance(r, 50)) { /* as many rows as still fit the value and the use */
            in->first = in->first < 0 ? 0 : in->first;
            in->last = in->last > s->values.at[in->value].rows ? s->values.at[in->value].rows : in->last;
            in->last = in->last < u->last ? u->last : in->last;
            in->first = in->first > u->first ? u->first : in->first;
        }
    } else if (rng_chance(r, 50)) {
        in->value = rng_below(r, (uint32_t)s->values.count);
    } else {
        in->role = in->role == GY_ROLE_DATA ? GY_ROLE_ACCUMULATOR : GY_ROLE_DATA;
        in->op = (uint8_t)rng_range(r, GANTRY_SUM, GANTRY_MAX);
    }
    in->bytes = (uint64_t)((in->last - in->first) * s->values.at[in->value].row_bytes);
    return shift;
}

/* An instance gets a second one at its place, which says something else about the same bytes. One use, all uses from
 * there on, or both ends of a copy go by it; uses of inserted ops may name the rows by which they find the same bytes.
 */
static bool alias(rng *r, gantry_schedule *s)
{
    gy_use *u = pick_use(r, s);
    if (!u || s->instances.count > 60)
        return false;
    uint32_t index = u->instance, first = (uint32_t)(u - s->use.at), dice = rng_below(r, 3);
    gy_instance in = s->instances.at[index];
    if (in.role == GY_ROLE_EXTERNAL || in.role == GY_ROLE_PERSIST)
        return false;
    int64_t shift = rename_instance(r, s, &in, u);
    bool follow = rng_chance(r, 60);
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        for (uint32_t k = op->use; k < op->use + op->uses; k++) {
            if (s->use.at[k].instance == index && (k == first || (dice == 1 && k > first) || dice == 2)) {
                s->use.at[k].instance = (uint32_t)s->instances.count;
                s->use.at[k].first += follow && op->node == GY_NONE ? shift : 0;
                s->use.at[k].last += follow && op->node == GY_NONE ? shift : 0;
            }
        }
    }
    return gy_vec_push(&s->instances, in);
}

/* So many neighbours become a batch. Rows that lead into it, from before it, mostly lead to its first op then. */
static bool join(rng *r, gantry_schedule *s, uint32_t first, uint32_t count)
{
    bool lead = rng_chance(r, 80);
    s->ops.at[first].batch = count;
    for (uint32_t i = first + 1; i < first + count; i++)
        s->ops.at[i].joined = true;
    for (size_t i = 0; i < s->sync.count; i++) {
        gy_sync *row = &s->sync.at[i];
        if (lead && s->ops.at[row->to].joined && row->to > first && row->to < first + count &&
            (row->distance || row->from < first))
            row->to = first;
    }
    return true;
}

static bool same_lanes(const gantry_schedule *s, const gy_op *a, const gy_op *b)
{
    bool same = a->lanes == b->lanes;
    for (uint32_t k = 0; same && k < a->lanes; k++)
        same = s->op_lane.at[a->lane + k] == s->op_lane.at[b->lane + k];
    return same;
}

/* Ops that could be one, if there are any; at times other neighbours. */
static bool make_batch(rng *r, gantry_schedule *s)
{
    uint32_t n = (uint32_t)s->ops.count, from = rng_below(r, n);
    bool any = rng_chance(r, 10);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = (from + k) % n, count = 1;
        while (i + count < n &&
               (any || (s->ops.at[i].kind == GY_OP_COLLECTIVE && s->ops.at[i + count].kind == GY_OP_COLLECTIVE &&
                        same_lanes(s, &s->ops.at[i], &s->ops.at[i + count]))) &&
               count < 3)
            count++;
        if (count > 1)
            return join(r, s, i, count);
    }
    return false;
}

/* The ops of a batch get other kinds, reductions or algorithms, or it gets another size. */
static bool change_batch(rng *r, gantry_schedule *s)
{
    if (!make_batch(r, s))
        return false;
    uint32_t first = 0;
    while (!s->ops.at[first].batch)
        first++;
    gy_op *op = &s->ops.at[first + rng_below(r, s->ops.at[first].batch)];
    switch (rng_below(r, 4)) {
    case 0:
        op->algorithm = op->kind == GY_OP_COLLECTIVE ? (uint8_t)rng_below(r, GY_ALGORITHM_COUNT) : 0;
        return true;
    case 1:
        op->batch = rng_below(r, 4);
        return true;
    case 2:
        op->joined = !op->joined;
        return true;
    default:
        return mutate(r, s, (mutation)rng_below(r, MUTATE_JOIN));
    }
}

static bool turn_repeat(gy_op *op)
{
    op->repeat = !op->repeat;
    return true;
}

static bool mutate_twice(rng *r, gantry_schedule *s)
{
    bool first = mutate(r, s, (mutation)rng_below(r, MUTATE_TWO));
    return mutate(r, s, (mutation)rng_below(r, MUTATE_TWO)) || first;
}

bool mutate(rng *r, gantry_schedule *s, mutation kind)
{
    switch (kind) {
    case MUTATE_DROP_SYNC:
    case MUTATE_MOVE_SYNC:
    case MUTATE_CARRIER:
    case MUTATE_SLOT:
    case MUTATE_DISTANCE:
        return mutate_sync(r, s, kind);
    case MUTATE_SWAP:
    case MUTATE_SWAP_BARE:
        return swap_ops(r, s, kind == MUTATE_SWAP_BARE);
    case MUTATE_DROP_OP:
        return drop_op(r, s);
    case MUTATE_TWICE:
    case MUTATE_REPEAT:
        return double_op(r, s, kind == MUTATE_REPEAT);
    case MUTATE_REPEATS:
        return turn_repeat(pick_op(r, s, -1));
    case MUTATE_ADDRESS:
    case MUTATE_MEMORY:
    case MUTATE_SPACE:
    case MUTATE_VALUE:
    case MUTATE_INSTANCE_ROWS:
        return mutate_instance(r, s, kind);
    case MUTATE_WINDOW:
    case MUTATE_IN_FLIGHT:
        return mutate_window(r, s, kind);
    case MUTATE_JOINT:
        return mutate_joint(r, s);
    case MUTATE_USE_ROWS:
    case MUTATE_USE_INSTANCE:
    case MUTATE_USE_MODE:
        return mutate_use(r, s, kind);
    case MUTATE_COPY_ROUTE:
    case MUTATE_TRANSFER_ROWS:
        return mutate_copy(r, s, kind);
    case MUTATE_REVERSE:
        return reverse(r, s);
    case MUTATE_JOIN:
        return make_batch(r, s);
    case MUTATE_BATCH:
        return change_batch(r, s);
    case MUTATE_ALIAS:
        return alias(r, s);
    case MUTATE_TWO:
        return mutate_twice(r, s);
    case MUTATE_REDUCTION:
        return mutate_reduction(r, s);
    case MUTATE_COLLECTIVE_LANES:
    case MUTATE_COLLECTIVE_USES:
        return mutate_collective(r, s, kind);
    default:
        return mutate_rest(r, s, kind);
    }
}
