/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that hold or not without running anything, in the plainest words. All that are broken are reported, but
 * where the form is broken nothing else is looked at. */
#include "property/mutants/mutants.h"
#include <string.h>

const char *const rule_text[] = {
#define X(name) #name,
    RULE_MAP(X)
#undef X
};

typedef struct view {
    const gantry_schedule *s;
    const gantry_graph *g;
    uint32_t broken;
} view;

static void need(view *v, bool holds, uint32_t bits)
{
    v->broken |= holds ? 0 : bits;
}

static const gy_use *use_of(const view *v, const gy_op *op, uint32_t i)
{
    return &v->s->use.at[op->use + i];
}

static const gy_instance *place_of(const view *v, const gy_op *op, uint32_t i)
{
    return &v->s->instances.at[use_of(v, op, i)->instance];
}

static bool moves(const gy_op *op)
{
    return op->kind == GY_OP_COPY || op->kind == GY_OP_EVICT || op->kind == GY_OP_FETCH;
}

static bool adds(uint8_t mode)
{
    return mode == GANTRY_SUM || mode == GANTRY_MIN || mode == GANTRY_MAX || mode == GANTRY_PROD;
}

/* The buffers of these tests are not tiled. */
static int64_t width(const view *v, uint32_t value)
{
    return v->s->values.at[value].row_bytes;
}

static void instance_form(view *v, const gy_instance *in)
{
    if (in->value >= v->s->values.count || in->memory >= v->s->machine->memories || in->space > 3 || in->role > 3) {
        v->broken |= BIT(form);
        return;
    }
    const gy_schedule_value *value = &v->s->values.at[in->value];
    const gy_buffer *b = &v->g->buffers.at[value->buffer];
    bool bound = in->space == GY_SPACE_INPUT || in->space == GY_SPACE_OUTPUT, keeps = in->role == GY_ROLE_PERSIST;
    need(v, in->role != GY_ROLE_ACCUMULATOR || adds(in->op), BIT(form));
    need(v, in->space == GY_SPACE_SLAB || in->memory == 0, BIT(form));
    need(v, 0 <= in->first && in->first <= in->last && in->last <= value->rows, BIT(form));
    need(v, in->bytes == (uint64_t)((in->last - in->first) * value->row_bytes), BIT(form));
    need(v, bound == (in->role == GY_ROLE_EXTERNAL), BIT(form));
    need(v, !keeps || in->space == GY_SPACE_SLAB, BIT(form));
    need(v, !(bound || keeps) || value->generation == 0, BIT(form));
    need(v, bound ? in->offset == (uint64_t)(in->first * value->row_bytes) : in->offset % 256 == 0, BIT(form));
    need(v, in->space != GY_SPACE_INPUT || b->cls == GANTRY_INPUT, BIT(form));
    need(v, in->space != GY_SPACE_OUTPUT || b->output, BIT(form));
    need(v, !keeps || b->cls == GANTRY_STATE || b->cls == GANTRY_CONST, BIT(form));
}

static bool ranges_hold(const view *v, const gy_op *op)
{
    bool hold = op->kind <= GY_OP_FETCH && op->lanes >= 1 &&
                (op->node == GY_NONE ? op->iteration == 0 : op->node < v->s->node_ids.count);
    for (uint32_t i = 0; i < op->lanes; i++)
        hold = hold && v->s->op_lane.at[op->lane + i] < v->s->lanes.count;
    for (uint32_t i = 0; i < op->uses; i++) {
        const gy_use *u = use_of(v, op, i);
        hold = hold && u->instance < v->s->instances.count && u->mode >= 1 && u->mode <= 7 && u->rank < op->lanes;
        hold =
            hold && u->first <= u->last && u->first >= place_of(v, op, i)->first && u->last <= place_of(v, op, i)->last;
    }
    return hold;
}

static void op_form(view *v, const gy_op *op)
{
    bool inserted = op->node == GY_NONE, many = op->kind == GY_OP_COLLECTIVE;
    if (!ranges_hold(v, op)) {
        v->broken |= BIT(form);
        return;
    }
    for (uint32_t i = 0; i < op->uses; i++) {
        const gy_instance *in = place_of(v, op, i);
        need(v, in->role != GY_ROLE_ACCUMULATOR || !adds(use_of(v, op, i)->mode) || use_of(v, op, i)->mode == in->op,
             BIT(form));
    }
    need(v, many || op->lanes == 1, BIT(form));
    need(v, !op->repeat || op->kind == GY_OP_LAUNCH || ((many || op->kind == GY_OP_FILL) && !inserted), BIT(form));
    need(v, op->reduce == 0 || (adds(op->reduce) && (many || op->kind == GY_OP_FILL)), BIT(form));
    if (op->kind == GY_OP_LAUNCH || op->kind == GY_OP_HOST) {
        need(v, !inserted, BIT(form));
    } else if (moves(op)) {
        bool two = op->uses == 2 && use_of(v, op, 0)->mode == GANTRY_READ && use_of(v, op, 1)->mode == GANTRY_WRITE;
        need(v, two && (inserted || op->kind == GY_OP_COPY), BIT(form));
        if (two && inserted) {
            const gy_use *a = use_of(v, op, 0), *b = use_of(v, op, 1);
            need(v, a->first == b->first && a->last == b->last, BIT(form));
            need(v, width(v, place_of(v, op, 0)->value) == width(v, place_of(v, op, 1)->value), BIT(form));
        }
    } else if (op->kind == GY_OP_FILL) {
        bool one = op->uses == 1 && use_of(v, op, 0)->mode == GANTRY_WRITE;
        need(v, one, BIT(form));
        if (one && inserted) {
            const gy_instance *in = place_of(v, op, 0);
            need(v, in->role == GY_ROLE_ACCUMULATOR ? !op->reduce || op->reduce == in->op : op->reduce != 0, BIT(form));
        }
    } else {
        need(v, op->collective >= 1 && op->collective <= 8 && op->ins <= op->uses && op->uses > 0, BIT(form));
        for (uint32_t i = 0; i < op->uses; i++) {
            need(v, use_of(v, op, i)->mode == (i < op->ins ? GANTRY_READ : GANTRY_WRITE), BIT(form));
            need(v, !inserted || width(v, place_of(v, op, i)->value) == width(v, place_of(v, op, 0)->value), BIT(form));
        }
    }
}

/* As many windows as starts in flight fit a space of so many bytes. */
static void window_form(view *v, uint64_t window, uint64_t room)
{
    need(v, window % 256 == 0 && window * v->s->in_flight <= room, BIT(form));
}

static void form(view *v)
{
    need(v, v->s->window.count == 0 || v->s->window.count == v->s->slab.count, BIT(form));
    for (size_t i = 0; i < v->s->window.count && !v->broken; i++)
        window_form(v, v->s->window.at[i], v->s->slab.at[i]);
    window_form(v, v->s->staging_window, v->s->staging);
    for (size_t i = 0; i < v->s->instances.count; i++)
        instance_form(v, &v->s->instances.at[i]);
    for (size_t i = 0; i < v->s->lanes.count; i++)
        need(v, v->s->lanes.at[i].device < v->s->machine->devices, BIT(form));
    for (size_t i = 0; i < v->s->ops.count && !v->broken; i++)
        op_form(v, &v->s->ops.at[i]);
    for (size_t i = 0; i < v->s->sync.count; i++) {
        const gy_sync *row = &v->s->sync.at[i];
        bool slots = row->carrier == GY_CARRIER_EVENT || row->carrier == GY_CARRIER_FLAG;
        need(v, row->from < v->s->ops.count && row->to < v->s->ops.count && row->carrier <= 3, BIT(form));
        need(v, !slots || row->slot < v->s->ops.count, BIT(form));
    }
}

static const gy_task *find_task(const view *v, uint32_t node, uint32_t iteration)
{
    for (uint32_t t = 0; t < v->g->flow->tasks; t++)
        if (v->g->flow->task[t].node == node && v->g->flow->task[t].iteration == iteration)
            return &v->g->flow->task[t];
    return NULL;
}

static bool carries_out(const view *v, const gy_op *op, const gy_task *t)
{
    const gy_node *n = &v->g->nodes.at[t->node];
    gy_op_kind kind = n->kind == GY_NODE_FILL         ? GY_OP_FILL
                      : n->kind == GY_NODE_COPY       ? GY_OP_COPY
                      : n->kind == GY_NODE_COLLECTIVE ? GY_OP_COLLECTIVE
                                                      : GY_OP_LAUNCH;
    bool same = op->kind == kind && op->uses == n->accesses;
    for (uint32_t i = 0; same && i < op->uses; i++) {
        const gy_flow_access *fa = &v->g->flow->access[t->access + i];
        const gy_access *a = &v->g->access.at[fa->access];
        const gy_use *u = use_of(v, op, i);
        same =
            u->mode == a->mode && u->first == a->first && u->last == a->last && place_of(v, op, i)->value == fa->value;
    }
    if (same && kind == GY_OP_COLLECTIVE) {
        const gy_node_extra *e = gy_node_extra_of(v->g, t->node);
        same = op->collective == e->collective && op->reduce == e->op && op->ins == e->ins;
    }
    return same;
}

static bool is_of(const gy_op *op, const gy_task *t)
{
    return op->node == t->node && op->iteration == t->iteration;
}

/* Nodes of these tests are work, fills, copies and collectives; the first two can be repeated, and the last if they
 * move rows only, if they add to nothing. */
static bool may_repeat(const view *v, const gy_task *t)
{
    const gy_node *n = &v->g->nodes.at[t->node];
    bool may = n->kind == GY_NODE_WORK || n->kind == GY_NODE_FILL;
    gantry_collective kind = n->kind == GY_NODE_COLLECTIVE ? v->g->extra.at[n->extra].collective : GANTRY_ALL_REDUCE;
    may = may || kind == GANTRY_BROADCAST || kind == GANTRY_SCATTER || kind == GANTRY_GATHER ||
          kind == GANTRY_ALL_GATHER || kind == GANTRY_ALL_TO_ALL;
    for (uint32_t i = 0; i < n->accesses; i++) {
        uint8_t mode = v->g->access.at[n->access + i].mode;
        may = may && (mode == GANTRY_READ || mode == GANTRY_WRITE || mode == GANTRY_READWRITE);
    }
    return may;
}

static void node(view *v)
{
    for (uint32_t t = 0; t < v->g->flow->tasks; t++) {
        const gy_task *task = &v->g->flow->task[t];
        uint32_t times = 0;
        for (size_t i = 0; i < v->s->ops.count; i++) {
            const gy_op *op = &v->s->ops.at[i];
            if (is_of(op, task) && op->repeat)
                need(v, times == 1 && may_repeat(v, task), BIT(node));
            times += is_of(op, task) && !op->repeat;
        }
        need(v, times == 1, BIT(node));
    }
    for (size_t i = 0; i < v->s->ops.count; i++) {
        const gy_op *op = &v->s->ops.at[i];
        const gy_task *t = op->node == GY_NONE ? NULL : find_task(v, op->node, op->iteration);
        need(v, op->node == GY_NONE || (t && carries_out(v, op, t)), BIT(node));
    }
}

static uint32_t device_of(const view *v, const gy_op *op, uint32_t rank)
{
    return v->s->lanes.at[v->s->op_lane.at[op->lane + rank]].device;
}

/* True if op's node and the other's are held together (or apart) in these iterations. */
static bool are_partners(const view *v, const gy_op *op, const gy_op *other, bool with)
{
    const gy_node_extra *e = gy_node_extra_of(v->g, op->node);
    size_t count = with ? e->with.count : e->apart.count;
    for (size_t i = 0; i < count; i++)
        if ((with ? e->with.at[i] : e->apart.at[i]) == other->node && are_in_one_turn(v->g, op, other))
            return true;
    return false;
}

static void place_node(view *v, const gy_op *op)
{
    const gy_node_extra *e = gy_node_extra_of(v->g, op->node);
    const gy_device *d = &v->s->machine->device[device_of(v, op, 0)];
    need(v, !e->on || strcmp(e->on, d->id) == 0 || strcmp(e->on, d->kind) == 0, BIT(place));
    for (size_t i = 0; i < v->s->ops.count; i++) {
        const gy_op *other = &v->s->ops.at[i];
        if (other->node == GY_NONE || other == op || other->lanes > 1 || other->repeat)
            continue;
        bool together = device_of(v, op, 0) == device_of(v, other, 0);
        need(v, !are_partners(v, op, other, true) || together, BIT(place));
        need(v, !are_partners(v, op, other, false) || !together, BIT(place));
    }
}

static void place(view *v)
{
    for (size_t i = 0; i < v->s->ops.count; i++) {
        const gy_op *op = &v->s->ops.at[i];
        uint32_t here = 0;
        for (uint32_t u = 0; u < op->uses; u++) {
            uint32_t device = device_of(v, op, use_of(v, op, u)->rank);
            here += place_of(v, op, u)->memory == v->s->machine->device[device].memory;
        }
        need(v, moves(op) ? here >= 1 : here == op->uses, BIT(place));
        if (op->node != GY_NONE && op->lanes == 1)
            place_node(v, op);
        if (moves(op)) {
            uint32_t from = place_of(v, op, 0)->memory, to = place_of(v, op, 1)->memory;
            need(v, gy_machine_route(v->s->machine, from, to)->kind == GY_ROUTE_DIRECT, BIT(route));
        }
    }
}

/* Wholly before the windows, or wholly in the first, where nothing persists. */
static void one_window(view *v, const gy_instance *in, uint64_t room)
{
    const gantry_schedule *s = v->s;
    uint64_t size = in->space == GY_SPACE_STAGING ? s->staging_window : s->window.count ? s->window.at[in->memory] : 0;
    uint64_t first = room - size * s->in_flight;
    bool before = in->offset + in->bytes <= first;
    bool inside = in->offset >= first && in->offset + in->bytes <= first + size && in->role != GY_ROLE_PERSIST;
    need(v, size == 0 || before || inside, BIT(capacity));
}

static void capacity(view *v)
{
    for (size_t i = 0; i < v->s->instances.count; i++) {
        const gy_instance *in = &v->s->instances.at[i];
        uint64_t room = in->space == GY_SPACE_SLAB ? v->s->slab.at[in->memory] : v->s->staging;
        need(v, in->role == GY_ROLE_EXTERNAL || in->offset + in->bytes <= room, BIT(capacity));
        if (in->role != GY_ROLE_EXTERNAL && in->bytes > 0)
            one_window(v, in, room);
    }
    for (uint32_t i = 0; i < v->s->machine->memories; i++) {
        const gy_memory *m = &v->s->machine->memory[i];
        need(v, v->s->slab.at[i] + (i == 0 ? v->s->staging : 0) + m->reserved <= m->capacity, BIT(capacity));
    }
}

static bool in_lane(const view *v, uint32_t op, uint32_t lane)
{
    for (uint32_t i = 0; i < v->s->ops.at[op].lanes; i++)
        if (v->s->op_lane.at[v->s->ops.at[op].lane + i] == lane)
            return true;
    return false;
}

static void sync(view *v)
{
    for (size_t i = 0; i < v->s->sync.count; i++) {
        const gy_sync *row = &v->s->sync.at[i];
        need(v, row->distance > 0 || row->from < row->to, BIT(order));
        bool shared = false;
        for (uint32_t lane = 0; lane < v->s->lanes.count; lane++)
            shared = shared || (in_lane(v, row->from, lane) && in_lane(v, row->to, lane));
        need(v, row->carrier != GY_CARRIER_LANE || shared, BIT(carrier));
        for (size_t j = 0; j < i; j++) {
            const gy_sync *other = &v->s->sync.at[j];
            bool slots = row->carrier == GY_CARRIER_EVENT || row->carrier == GY_CARRIER_FLAG;
            bool same = slots && other->carrier == row->carrier && other->slot == row->slot;
            need(v, !same || other->from == row->from, BIT(carrier));
        }
    }
}

static void ranks(view *v, const gy_op *op)
{
    for (uint32_t i = 0; i < op->lanes; i++) {
        bool used = false;
        for (uint32_t u = 0; u < op->uses; u++)
            used = used || use_of(v, op, u)->rank == i;
        need(v, used, BIT(collective));
        for (uint32_t j = 0; j < i; j++)
            need(v, v->s->op_lane.at[op->lane + i] != v->s->op_lane.at[op->lane + j], BIT(collective));
    }
}

/* All uses [first, last) of the op are of one rank. */
static bool of_one_rank(const view *v, const gy_op *op, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i < last; i++)
        if (use_of(v, op, i)->rank != use_of(v, op, first)->rank)
            return false;
    return true;
}

static void inserted_collective(view *v, const gy_op *op)
{
    uint32_t reads = op->ins, writes = op->uses - op->ins, kind = op->collective;
    bool reduces = kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE || kind == GANTRY_REDUCE_SCATTER;
    /* Kinds in which a row goes to one place only. */
    bool once = kind != GANTRY_BROADCAST && kind != GANTRY_ALL_GATHER && kind != GANTRY_ALL_REDUCE;
    need(v, kind == GANTRY_BROADCAST ? reads == 1 : reads >= 1, BIT(collective));
    need(v, kind == GANTRY_REDUCE ? writes == 1 : writes >= 1, BIT(collective));
    need(v, kind != GANTRY_SCATTER || of_one_rank(v, op, 0, reads), BIT(collective));
    need(v, kind != GANTRY_GATHER || of_one_rank(v, op, reads, op->uses), BIT(collective));
    need(v, reduces == (op->reduce != 0), BIT(collective));
    for (uint32_t i = 0; i < reads; i++) {
        bool sum = place_of(v, op, i)->role == GY_ROLE_ACCUMULATOR;
        need(v, !reduces || !sum || place_of(v, op, i)->op == op->reduce, BIT(collective));
    }
    for (int64_t row = 0; row < 8; row++) {
        uint32_t read = 0, written = 0;
        for (uint32_t i = 0; i < op->uses; i++) {
            const gy_use *u = use_of(v, op, i);
            *(i < reads ? &read : &written) += u->first <= row && row < u->last;
        }
        need(v, written == 0 || read > 0, BIT(collective));
        need(v, read <= 1 || op->reduce != 0, BIT(collective));
        need(v, written <= 1 || !once, BIT(collective));
    }
}

static void collectives(view *v)
{
    for (size_t i = 0; i < v->s->ops.count; i++) {
        const gy_op *op = &v->s->ops.at[i];
        if (op->kind == GY_OP_COLLECTIVE) {
            ranks(v, op);
            if (op->node == GY_NONE)
                inserted_collective(v, op);
        }
        for (uint32_t u = 0; u < op->uses; u++) {
            bool input = place_of(v, op, u)->space == GY_SPACE_INPUT;
            need(v, !input || use_of(v, op, u)->mode == GANTRY_READ, BIT(external));
        }
    }
}

/* Batches are whole, of one kind, and in the same lanes. */
static void batch_form(view *v)
{
    for (uint32_t i = 0, end = 0, first = 0; i < v->s->ops.count; i++) {
        const gy_op *op = &v->s->ops.at[i], *head = &v->s->ops.at[i < end ? first : i];
        need(v, op->joined == (i < end) && !(op->joined && op->batch) && op->batch != 1, BIT(form));
        need(v, op->batch <= v->s->ops.count - i, BIT(form));
        bool may = op->kind == GY_OP_LAUNCH || op->kind == GY_OP_COPY || op->kind == GY_OP_COLLECTIVE;
        need(v, may || (!op->batch && i >= end), BIT(form));
        need(v, op->kind == head->kind && op->lanes == head->lanes, BIT(form));
        for (uint32_t k = 0; op->lanes == head->lanes && k < op->lanes; k++)
            need(v, v->s->op_lane.at[op->lane + k] == v->s->op_lane.at[head->lane + k], BIT(form));
        first = i < end ? first : i;
        end = i < end ? end : i + op->batch;
    }
}

/* No machine of these tests has a GPU, and no work is alike: collectives alone can be batches. All is of bytes. */
static void batches(view *v)
{
    for (uint32_t i = 0, first = 0; i < v->s->ops.count; i++) {
        const gy_op *op = &v->s->ops.at[i];
        first = op->joined ? first : i;
        const gy_op *head = &v->s->ops.at[first];
        need(v, !op->joined || op->kind == GY_OP_COLLECTIVE, BIT(batch));
        need(v, op->collective == head->collective && op->reduce == head->reduce, BIT(batch));
        need(v, op->algorithm == head->algorithm, BIT(batch));
        need(v, !op->joined || (!op->repeat && !head->repeat), BIT(batch));
    }
    for (size_t i = 0; i < v->s->sync.count; i++)
        need(v, !v->s->ops.at[v->s->sync.at[i].to].joined, BIT(batch));
}

uint32_t oracle_static(const gantry_schedule *s, const gantry_graph *g)
{
    view v = { s, g, 0 };
    form(&v);
    if (!v.broken)
        batch_form(&v);
    if (!v.broken) {
        node(&v);
        if (!v.broken) /* partners are looked up by node */
            place(&v);
        capacity(&v);
        sync(&v);
        batches(&v);
        collectives(&v);
    }
    return v.broken;
}

uint32_t oracle(const gantry_schedule *s, const gantry_graph *g, bool *capped)
{
    uint32_t broken = oracle_static(s, g);
    *capped = false;
    return broken ? broken : oracle_run(s, g, capped);
}
