/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain lowering, independent of scheduler/: tasks in the flow's order on random devices, a copy (or a broadcast)
 * before each read where the memory lacks rows, reductions sometimes through accumulators, addresses that are used
 * again.
 */
#include "kernel/identity.h"
#include "property/mutants/mutants.h"
#include <string.h>

enum { ROWS = 4, MEMORIES = 3, VALUES = 16 };

typedef struct maker {
    rng *r;
    gantry_schedule *s;
    const gantry_graph *g;
    const gy_flow *f;
    bool failed;
    uint32_t lane[MEMORIES][4];          /* of device d: compute, compute, copy, collective; GY_NONE: not yet there */
    uint32_t data[VALUES][MEMORIES];     /* data instances, GY_NONE: not yet there */
    uint64_t current[VALUES][ROWS];      /* instances that hold the row; 0: nothing does */
    uint32_t sums[VALUES][MEMORIES];     /* accumulators that were not combined yet */
    gantry_access pending[VALUES];       /* their reduction; 0: there are none */
    int64_t first[VALUES], last[VALUES]; /* rows they may have contributions to */
} maker;

static int64_t rows_of(const maker *m, uint32_t v)
{
    return m->s->values.at[v].rows;
}

static uint32_t add_instance(maker *m, uint32_t v, uint32_t memory, gy_space space, gy_role role)
{
    gantry_schedule *s = m->s;
    gy_instance in = {
        .value = v, .memory = memory, .space = (uint8_t)space, .role = (uint8_t)role, .last = rows_of(m, v)
    };
    in.bytes = (uint64_t)(in.last * s->values.at[v].row_bytes);
    m->failed = !gy_vec_push(&s->instances, in) || m->failed || s->instances.count > 60;
    return (uint32_t)s->instances.count - 1;
}

static uint32_t data_in(maker *m, uint32_t v, uint32_t memory)
{
    if (m->data[v][memory] == GY_NONE) {
        gy_space space = memory == 0 && rng_chance(m->r, 25) ? GY_SPACE_STAGING : GY_SPACE_SLAB;
        m->data[v][memory] = add_instance(m, v, memory, space, GY_ROLE_DATA);
    }
    return m->data[v][memory];
}

static uint32_t lane_of(maker *m, uint32_t device, gy_lane_kind kind)
{
    uint32_t slot = kind == GY_LANE_COMPUTE ? rng_below(m->r, 2) : (uint32_t)kind + 1;
    if (m->lane[device][slot] == GY_NONE) {
        gy_lane lane = { device, (uint8_t)kind, false };
        m->lane[device][slot] = (uint32_t)m->s->lanes.count;
        m->failed = !gy_vec_push(&m->s->lanes, lane) || m->failed;
    }
    return m->lane[device][slot];
}

static gy_op *add_op(maker *m, gy_op_kind kind, uint32_t lane)
{
    gantry_schedule *s = m->s;
    gy_op op = {
        .kind = (uint8_t)kind, .node = GY_NONE, .use = (uint32_t)s->use.count, .lane = (uint32_t)s->op_lane.count
    };
    op.lanes = 1;
    op.end = 1;
    m->failed = !gy_vec_push(&s->op_lane, lane) || !gy_vec_push(&s->ops, op) || m->failed;
    return gy_vec_last(&s->ops);
}

/* To the op that was added last. */
static void add_use(maker *m, uint32_t instance, gantry_access mode, int64_t first, int64_t last, uint32_t rank)
{
    gy_use u = { instance, (uint8_t)mode, (uint16_t)rank, first, last };
    gy_op *op = gy_vec_last(&m->s->ops);
    op->uses++;
    op->ins += op->kind == GY_OP_COLLECTIVE && mode == GANTRY_READ;
    m->failed = !gy_vec_push(&m->s->use, u) || m->failed;
}

/* A device that works in a memory. */
static uint32_t device_in(maker *m, uint32_t memory)
{
    uint32_t device = rng_below(m->r, m->s->machine->devices);
    while (m->s->machine->device[device].memory != memory)
        device = (device + 1) % m->s->machine->devices;
    return device;
}

/* Rank of a device of the memory in the collective that was added last; joins it if need be. */
static uint32_t rank_of(maker *m, uint32_t memory)
{
    gantry_schedule *s = m->s;
    uint32_t device = device_in(m, memory);
    gy_op *op = gy_vec_last(&s->ops);
    for (uint32_t i = 0; i < op->lanes; i++)
        if (s->lanes.at[s->op_lane.at[op->lane + i]].device == device)
            return i;
    uint32_t lane = lane_of(m, device, GY_LANE_COLLECTIVE);
    m->failed = !gy_vec_push(&s->op_lane, lane) || m->failed;
    return op->lanes++;
}

static bool has_route(const maker *m, uint32_t from, uint32_t to)
{
    return gy_machine_route(m->s->machine, from, to)->kind == GY_ROUTE_DIRECT;
}

static void transfer(maker *m, uint32_t from, uint32_t to, int64_t first, int64_t last)
{
    uint32_t a = m->s->instances.at[from].memory, b = m->s->instances.at[to].memory;
    if (a != b && rng_chance(m->r, 20)) {
        gy_op *op = add_op(m, GY_OP_COLLECTIVE, lane_of(m, device_in(m, a), GY_LANE_COLLECTIVE));
        op->collective = GANTRY_BROADCAST;
        add_use(m, from, GANTRY_READ, first, last, 0);
        add_use(m, to, GANTRY_WRITE, first, last, rank_of(m, b));
        return;
    }
    gy_op_kind kind = rng_chance(m->r, 80) ? GY_OP_COPY : rng_chance(m->r, 50) ? GY_OP_EVICT : GY_OP_FETCH;
    add_op(m, kind, lane_of(m, device_in(m, rng_chance(m->r, 50) ? a : b), GY_LANE_COPY));
    add_use(m, from, GANTRY_READ, first, last, 0);
    add_use(m, to, GANTRY_WRITE, first, last, 0);
}

static bool holds(const maker *m, uint32_t instance, uint32_t v, int64_t row)
{
    return m->current[v][row] >> instance & 1;
}

/* Brings rows of v that something holds into `to`. */
static void bring(maker *m, uint32_t v, uint32_t to, int64_t first, int64_t last)
{
    uint32_t memory = m->s->instances.at[to].memory;
    for (int64_t row = first; row < last;) {
        if (m->current[v][row] == 0 || holds(m, to, v, row)) {
            row++;
            continue;
        }
        uint32_t from = GY_NONE;
        for (uint32_t i = 0; i < m->s->instances.count; i++) {
            bool better = from == GY_NONE || rng_chance(m->r, 50);
            if (holds(m, i, v, row) && has_route(m, m->s->instances.at[i].memory, memory) && better)
                from = i;
        }
        int64_t end = row + 1;
        if (from == GY_NONE) { /* by way of the host */
            bring(m, v, data_in(m, v, 0), row, end);
            from = data_in(m, v, 0);
        }
        while (end < last && holds(m, from, v, end) && !holds(m, to, v, end))
            end++;
        transfer(m, from, to, row, end);
        for (; row < end; row++)
            m->current[v][row] |= UINT64_C(1) << to;
    }
}

static void now_only(maker *m, uint32_t v, uint32_t instance, int64_t first, int64_t last)
{
    for (int64_t row = first; row < last; row++)
        m->current[v][row] = UINT64_C(1) << instance;
}

/* Combines the accumulators of v with what was there before. */
static void flush(maker *m, uint32_t v)
{
    gantry_access op = m->pending[v];
    if (!op)
        return;
    m->pending[v] = 0;
    int64_t first = m->first[v], last = m->last[v];
    uint32_t home = rng_below(m->r, m->s->machine->memories), to = data_in(m, v, home), second = GY_NONE;
    bring(m, v, to, first, last);
    if (m->s->machine->memories > 1 && rng_chance(m->r, 30))
        second = (home + 1) % m->s->machine->memories;
    uint32_t other = second == GY_NONE ? GY_NONE : data_in(m, v, second);
    gy_op *collective = add_op(m, GY_OP_COLLECTIVE, lane_of(m, device_in(m, home), GY_LANE_COLLECTIVE));
    collective->collective = second == GY_NONE ? GANTRY_REDUCE : GANTRY_ALL_REDUCE;
    collective->reduce = (uint8_t)op;
    for (int64_t row = first, end; row < last; row = end) {
        for (end = row; end < last && holds(m, to, v, end); end++) {
        }
        if (end > row)
            add_use(m, to, GANTRY_READ, row, end, 0);
        end += end == row;
    }
    for (uint32_t i = 0; i < m->s->machine->memories; i++) {
        if (m->sums[v][i] != GY_NONE)
            add_use(m, m->sums[v][i], GANTRY_READ, first, last, rank_of(m, i));
        m->sums[v][i] = GY_NONE;
    }
    add_use(m, to, GANTRY_WRITE, first, last, 0);
    now_only(m, v, to, first, last);
    if (second != GY_NONE) {
        add_use(m, other, GANTRY_WRITE, first, last, rank_of(m, second));
        for (int64_t row = first; row < last; row++)
            m->current[v][row] |= UINT64_C(1) << other;
    }
}

static void fill_identity(maker *m, uint32_t instance, gantry_access op, uint32_t memory, int64_t first, int64_t last)
{
    add_op(m, GY_OP_FILL, lane_of(m, device_in(m, memory), GY_LANE_COMPUTE))->reduce = (uint8_t)op;
    add_use(m, instance, GANTRY_WRITE, first, last, 0);
}

/* Where a contribution goes: into the accumulator of the memory, or straight into the rows. */
static uint32_t contribute_to(maker *m, uint32_t v, const gy_access *a, uint32_t memory)
{
    bool added = m->pending[v] != 0;
    m->failed = m->failed || (added && m->pending[v] != (gantry_access)a->mode); /* of another access of the node */
    if (added || rng_chance(m->r, 60)) {
        if (m->sums[v][memory] == GY_NONE) {
            uint32_t sum = add_instance(m, v, memory, GY_SPACE_SLAB, GY_ROLE_ACCUMULATOR);
            m->sums[v][memory] = sum;
            m->s->instances.at[sum].op = a->mode;
            fill_identity(m, sum, a->mode, memory, 0, rows_of(m, v));
        }
        m->pending[v] = a->mode;
        m->first[v] = added && m->first[v] < a->first ? m->first[v] : a->first;
        m->last[v] = added && m->last[v] > a->last ? m->last[v] : a->last;
        return m->sums[v][memory];
    }
    uint32_t to = data_in(m, v, memory);
    bring(m, v, to, a->first, a->last);
    for (int64_t row = a->first; row < a->last; row++)
        if (m->current[v][row] == 0)
            fill_identity(m, to, a->mode, memory, row, row + 1);
    now_only(m, v, to, a->first, a->last);
    return to;
}

/* An instance that holds all rows, in the memory: any that happens to, else the data instance. */
static uint32_t find_rows(maker *m, uint32_t v, const gy_access *a, uint32_t memory)
{
    for (uint32_t i = 0; i < m->s->instances.count && rng_chance(m->r, 90); i++) {
        bool all = m->s->instances.at[i].memory == memory && m->s->instances.at[i].value == v;
        for (int64_t row = a->first; row < a->last; row++)
            all = all && holds(m, i, v, row);
        if (all)
            return i;
    }
    bring(m, v, data_in(m, v, memory), a->first, a->last);
    return data_in(m, v, memory);
}

/* True if some op of the node is on the device (`there`), or on another. */
static bool node_is(const maker *m, uint32_t node, uint32_t device, bool there)
{
    const gantry_schedule *s = m->s;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (op->node == node && (s->lanes.at[s->op_lane.at[op->lane]].device == device) == there)
            return true;
    }
    return false;
}

/* A device at random. Where that does not suit what the node asks for, this schedule is given up. */
static uint32_t choose_device(maker *m, const gy_node_extra *extra)
{
    uint32_t device = rng_below(m->r, m->s->machine->devices);
    if (extra->on)
        device = gy_machine_find_device(m->s->machine, extra->on);
    for (size_t i = 0; i < extra->with.count; i++)
        m->failed = m->failed || node_is(m, extra->with.at[i], device, false);
    for (size_t i = 0; i < extra->apart.count; i++)
        m->failed = m->failed || node_is(m, extra->apart.at[i], device, true);
    return device;
}

static void lower_task(maker *m, const gy_task *t)
{
    static const uint8_t kinds[] = { [GY_NODE_COPY] = GY_OP_COPY,
                                     [GY_NODE_FILL] = GY_OP_FILL,
                                     [GY_NODE_COLLECTIVE] = GY_OP_COLLECTIVE,
                                     [GY_NODE_WORK] = GY_OP_LAUNCH };
    const gy_node *node = &m->g->nodes.at[t->node];
    const gy_node_extra *extra = gy_node_extra_of(m->g, t->node);
    uint32_t device = choose_device(m, extra), instance[8];
    uint32_t memory = m->failed ? 0 : m->s->machine->device[device].memory;
    for (uint32_t i = 0; i < node->accesses; i++) {
        const gy_access *a = gy_flow_access_of(m->g, m->f, (size_t)t->access + i);
        uint32_t v = m->f->access[t->access + i].value;
        if (m->pending[v] != (gantry_access)a->mode || rng_chance(m->r, 10))
            flush(m, v);
    }
    for (uint32_t i = 0; i < node->accesses; i++) {
        const gy_access *a = gy_flow_access_of(m->g, m->f, (size_t)t->access + i);
        uint32_t v = m->f->access[t->access + i].value;
        if (gy_access_reduces(a)) {
            instance[i] = contribute_to(m, v, a, memory);
        } else {
            /* A collective in place reads and writes one instance. */
            bool same = a->mode == GANTRY_READ && node->kind != GY_NODE_COLLECTIVE;
            instance[i] = same ? find_rows(m, v, a, memory) : data_in(m, v, memory);
            if (a->mode != GANTRY_WRITE)
                bring(m, v, instance[i], a->first, a->last);
        }
    }
    gy_op *op = add_op(m, kinds[node->kind], lane_of(m, device, GY_LANE_COMPUTE));
    op->node = t->node;
    op->iteration = t->iteration;
    op->collective = (uint8_t)extra->collective;
    op->reduce = (uint8_t)extra->op;
    for (uint32_t i = 0; i < node->accesses; i++) {
        const gy_access *a = gy_flow_access_of(m->g, m->f, (size_t)t->access + i);
        add_use(m, instance[i], a->mode, a->first, a->last, 0);
        if (a->mode == GANTRY_WRITE || a->mode == GANTRY_READWRITE)
            now_only(m, m->f->access[t->access + i].value, instance[i], a->first, a->last);
    }
}

static void begin(maker *m)
{
    for (uint32_t b = 0; b < m->g->buffers.count; b++) {
        gantry_buffer_class cls = m->g->buffers.at[b].cls;
        uint32_t copies = cls == GANTRY_INPUT ? 1 : cls == GANTRY_TEMP ? 0 : (uint32_t)rng_range(m->r, 1, 2);
        uint32_t memory = cls == GANTRY_INPUT ? 0 : rng_below(m->r, m->s->machine->memories);
        for (uint32_t i = 0; i < copies; i++) {
            bool input = cls == GANTRY_INPUT;
            uint32_t in =
                add_instance(m, b, (memory + i) % m->s->machine->memories, input ? GY_SPACE_INPUT : GY_SPACE_SLAB,
                             input ? GY_ROLE_EXTERNAL : GY_ROLE_PERSIST);
            for (int64_t row = 0; row < rows_of(m, b); row++)
                m->current[b][row] |= UINT64_C(1) << in;
        }
    }
}

/* Copies the final rows of a buffer into an instance of its own. */
static void bring_home(maker *m, uint32_t v, uint32_t to)
{
    uint64_t before[ROWS];
    memcpy(before, m->current[v], sizeof before);
    bring(m, v, to, 0, rows_of(m, v));
    if (m->s->instances.at[to].value != v) /* a carried buffer's: other readers look for the value itself */
        memcpy(m->current[v], before, sizeof before);
}

static void finish(maker *m)
{
    for (uint32_t v = 0; v < m->f->values; v++)
        flush(m, v);
    size_t persistent = m->s->instances.count;
    for (uint32_t i = 0; i < persistent; i++) {
        const gy_instance in = m->s->instances.at[i];
        if (in.role == GY_ROLE_PERSIST)
            bring_home(m, m->f->exit[in.value], i);
    }
    for (uint32_t b = 0; b < m->g->buffers.count; b++)
        if (m->g->buffers.at[b].output)
            bring_home(m, m->f->exit[b], add_instance(m, b, 0, GY_SPACE_OUTPUT, GY_ROLE_EXTERNAL));
}

/* ---- addresses ---- */

static void life_of(const gantry_schedule *s, uint32_t instance, uint32_t *first, uint32_t *last)
{
    *first = GY_NONE;
    *last = 0;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        for (uint32_t u = 0; u < s->ops.at[i].uses; u++) {
            if (s->use.at[s->ops.at[i].use + u].instance == instance) {
                *first = *first == GY_NONE ? i : *first;
                *last = i;
            }
        }
    }
    if (s->instances.at[instance].role == GY_ROLE_PERSIST) {
        *first = 0;
        *last = GY_NONE;
    }
}

static bool collides(const gantry_schedule *s, uint32_t a, uint32_t b, uint64_t offset)
{
    const gy_instance *x = &s->instances.at[a], *y = &s->instances.at[b];
    uint32_t first, last, first2, last2;
    life_of(s, a, &first, &last);
    life_of(s, b, &first2, &last2);
    bool together = first != GY_NONE && first2 != GY_NONE && first <= last2 && first2 <= last;
    return x->memory == y->memory && x->space == y->space && together && offset < y->offset + y->bytes &&
           y->offset < offset + x->bytes;
}

/* Above `floor`, which is where windows begin. */
static void place_one(maker *m, uint32_t i, const bool *placed, uint64_t floor)
{
    gantry_schedule *s = m->s;
    gy_instance *in = &s->instances.at[i];
    uint64_t *room = in->space == GY_SPACE_STAGING ? &s->staging : &s->slab.at[in->memory], offset = floor;
    bool reuse = rng_chance(m->r, 70);
    for (uint32_t j = 0; j < s->instances.count; j++) {
        const gy_instance *other = &s->instances.at[j];
        bool apart = !reuse && other->memory == in->memory && other->role != GY_ROLE_EXTERNAL && offset < *room;
        if (placed[j] && (collides(s, i, j, offset) || apart)) {
            offset += 256;
            j = GY_NONE; /* from the beginning */
        }
    }
    in->offset = offset;
    uint64_t end = (offset + in->bytes + 255) / 256 * 256;
    *room = end > *room ? end : *room;
}

/* With windows, what persists and a few others come first, which starts that overlap have to share. */
static void place(maker *m, bool windows)
{
    gantry_schedule *s = m->s;
    bool placed[64] = { false }, moves[64] = { false };
    uint64_t floor[MEMORIES + 1] = { 0 }; /* the last one: staging */
    for (uint32_t i = 0; i < s->instances.count; i++)
        moves[i] = windows && s->instances.at[i].role != GY_ROLE_PERSIST && rng_chance(m->r, 80);
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < s->instances.count; i++) {
            const gy_instance *in = &s->instances.at[i];
            if (in->role != GY_ROLE_EXTERNAL && moves[i] == (turn == 1)) {
                place_one(m, i, placed, floor[in->space == GY_SPACE_STAGING ? MEMORIES : in->memory]);
                placed[i] = true;
            }
        }
        for (uint32_t i = 0; i < s->machine->memories && turn == 0; i++)
            floor[i] = s->slab.at[i];
        floor[MEMORIES] = turn == 0 ? s->staging : floor[MEMORIES];
    }
    for (uint32_t i = 0; i < s->machine->memories && windows; i++) {
        uint64_t window = s->slab.at[i] - floor[i];
        m->failed = !gy_vec_push(&s->window, window) || m->failed;
        s->slab.at[i] += window * (s->in_flight - 1);
    }
    s->staging_window = windows ? s->staging - floor[MEMORIES] : 0;
    s->staging += s->staging_window * (s->in_flight - 1);
}

/* ---- all of it ---- */

static void copy_head(maker *m)
{
    gantry_schedule *s = m->s;
    s->graph_name = m->g->name;
    s->policy = "random";
    s->graph_hash = m->g->hash;
    for (uint32_t i = 0; i < m->f->values; i++)
        m->failed = !gy_vec_push(&s->values, gy_schedule_value_of(m->g, m->f, i)) || m->failed;
    for (size_t i = 0; i < m->g->nodes.count; i++)
        m->failed = !gy_vec_push(&s->node_ids, m->g->nodes.at[i].id) || m->failed;
    for (uint32_t i = 0; i < s->machine->memories; i++)
        m->failed = !gy_vec_push(&s->slab, 0) || m->failed;
}

gantry_schedule *make_schedule(rng *r, gantry_graph *g, const gantry_machine *machine)
{
    maker m = { .r = r, .s = gy_schedule_alloc(), .g = g, .f = g->flow };
    m.s->machine = gy_machine_ref(machine);
    memset(m.lane, 0xff, sizeof m.lane);
    memset(m.data, 0xff, sizeof m.data);
    memset(m.sums, 0xff, sizeof m.sums);
    m.failed = g->flow->values > VALUES || machine->memories > MEMORIES;
    if (!m.failed) {
        copy_head(&m);
        begin(&m);
        for (uint32_t t = 0; t < g->flow->tasks && !m.failed; t++) {
            lower_task(&m, &g->flow->task[t]);
            m.failed = m.failed || m.s->ops.count > OPS_MAX;
        }
    }
    if (!m.failed) {
        finish(&m);
        m.s->in_flight = m.s->ops.count * 3 <= WINDOW_MAX && rng_chance(r, 40) ? 2 : 1;
        place(&m, m.s->in_flight > 1 && rng_chance(r, 70));
    }
    size_t ops = m.s->ops.count;
    bool fits = m.s->slab.at && m.s->slab.at[0] + m.s->staging <= 7168;
    for (uint32_t i = 1; i < machine->memories && !m.failed; i++)
        fits = fits && m.s->slab.at[i] <= 7168;
    if (m.failed || ops == 0 || ops > OPS_MAX || !fits) {
        gantry_schedule_free(m.s);
        return NULL;
    }
    make_sync(r, m.s, g);
    return m.s;
}
