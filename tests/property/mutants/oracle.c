/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle runs the schedule: on bytes, in every order that lanes, sync rows and the in-flight limit allow.
 *
 * A byte holds a token: a number that tells where it comes from. A task writes tokens made of its own name, the place
 * of the byte and everything the task has really read; contributions add theirs, modulo 2^64, so that their order does
 * not matter. The sequential program is run first, on arrays of its own; then each byte that a task reads, each byte
 * written to an output, and what a start leaves behind are compared with it. Two ops that could begin at one moment and
 * touch one byte, one of them writing, race. Starts: in_flight + 1 of them, each of which moves what lies in windows to
 * its own.
 */
#include "property/mutants/mutants.h"
#include <stdlib.h>
#include <string.h>

enum { STARTS = 4, BITS = STARTS * OPS_MAX, STATES = 6000, SLOTS = 16384 };

typedef struct token {
    uint64_t v;
    uint64_t op; /* reduction of the contributions in it, 0 without any */
} token;

typedef struct world {
    const gantry_schedule *s;
    const gantry_graph *g;
    uint32_t ops, starts, broken;
    size_t cells;
    uint32_t *cell[64];    /* of each instance: the numbers of its bytes, start after start */
    uint64_t before[BITS]; /* what must have ended before an op can begin */
    uint64_t after[BITS];  /* of that: what `after` asks for, carried or not */
    bool clash[BITS][BITS];
    token *expect[STARTS]; /* bytes that tasks read, one access after the other */
    size_t *expect_at;     /* per flow access */
    token *final[STARTS];  /* final bytes of the buffers, one after the other */
    size_t final_at[8];
    struct state {
        uint64_t done, hash;
    } * seen;
    uint32_t states;
    bool capped;
} world;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * UINT64_C(0x2545f4914f6cdd1d) + b + UINT64_C(0x632be59bd9b4e019);
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return z ^ (z >> 32);
}

/* Of unsigned bytes: 0 changes nothing in sums and maxima, 255 in minima, 1 in products. */
static token identity(uint64_t op)
{
    return (token){ op == GANTRY_MIN ? 255 : op == GANTRY_PROD ? 1 : 0, 0 };
}

static bool equal(token a, token b)
{
    return a.v == b.v && a.op == b.op;
}

static token plus(token a, token b, uint64_t op)
{
    if (equal(a, identity(op)))
        return b;
    if (equal(b, identity(op)))
        return a;
    uint64_t x = a.op == op ? a.v : mix(a.v, a.op + 100), y = b.op == op ? b.v : mix(b.v, b.op + 100);
    return (token){ x + y, op };
}

static const token unwritten = { UINT64_C(0xdeadbeefdeadbeef), 99 };

static int64_t width(const world *w, uint32_t value)
{
    return w->s->values.at[value].row_bytes;
}

/* The token that an access writes into a byte, by a task that has read `seen`. */
static token own_token(const world *w, uint32_t task, uint32_t access, int64_t byte, uint64_t seen)
{
    const gy_node *n = &w->g->nodes.at[w->g->flow->task[task].node];
    if (n->kind == GY_NODE_FILL) {
        double value = w->g->extra.at[n->extra].fill.a.real;
        for (uint64_t op = GANTRY_SUM; op <= GANTRY_PROD; op++)
            if (value == (double)identity(op).v)
                return identity(op);
    }
    return (token){ mix(mix(mix(seen, task + 1000), access), (uint64_t)byte), 0 };
}

/* The bytes of one access of a task that the access finds, in `at`, become what it makes of them. */
static void apply(const world *w, uint32_t task, uint32_t access, int64_t first_byte, uint64_t seen, token **at,
                  size_t count)
{
    size_t fa = w->g->flow->task[task].access + access;
    uint8_t mode = w->g->access.at[w->g->flow->access[fa].access].mode;
    for (size_t i = 0; i < count && mode != GANTRY_READ; i++) {
        token mine = own_token(w, task, access, first_byte + (int64_t)i, seen);
        if (mode >= GANTRY_SUM) {
            mine.op = mode;
            token old = equal(*at[i], unwritten) ? identity(mode) : *at[i];
            *at[i] = plus(old, mine, mode);
        } else {
            *at[i] = mine;
        }
    }
}

/* ---- the sequential program ---- */

enum { VALUE_BYTES = 512, VALUES = 16 };
typedef token arrays[VALUES][VALUE_BYTES];

static void run_task(world *w, arrays mem, uint32_t task, uint32_t start)
{
    const gy_task *t = &w->g->flow->task[task];
    const gy_node *n = &w->g->nodes.at[t->node];
    uint64_t seen = 1;
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_flow_access *fa = &w->g->flow->access[t->access + i];
        const gy_access *a = &w->g->access.at[fa->access];
        token *to = w->expect[start] + w->expect_at[t->access + i];
        for (int64_t b = a->first * width(w, fa->value); b < a->last * width(w, fa->value); b++, to++) {
            *to = mem[fa->value][b];
            if (a->mode == GANTRY_READ || a->mode == GANTRY_READWRITE)
                seen = mix(mix(seen, to->v), to->op);
        }
    }
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_flow_access *fa = &w->g->flow->access[t->access + i];
        const gy_access *a = &w->g->access.at[fa->access];
        token *at[VALUE_BYTES];
        int64_t first = a->first * width(w, fa->value), last = a->last * width(w, fa->value);
        for (int64_t b = first; b < last; b++)
            at[b - first] = &mem[fa->value][b];
        apply(w, task, i, first, seen, at, (size_t)(last - first));
    }
}

static uint32_t task_of(const world *w, uint32_t node, uint32_t iteration)
{
    for (uint32_t t = 0; t < w->g->flow->tasks; t++)
        if (w->g->flow->task[t].node == node && w->g->flow->task[t].iteration == iteration)
            return t;
    return GY_NONE;
}

/* In adding order; the loops of these tests take two turns, and inner ones have one node. */
static void run_tasks(world *w, arrays mem, uint32_t start)
{
    for (uint32_t n = 0; n < w->g->nodes.count; n++) {
        uint32_t loop = w->g->nodes.at[n].loop;
        if (loop == GY_NONE) {
            run_task(w, mem, task_of(w, n, 0), start);
            continue;
        }
        for (uint32_t it = 0; it < (uint32_t)w->g->loops.at[loop].count; it++)
            for (n = w->g->loops.at[loop].first_node; n < w->g->loops.at[loop].last_node; n++)
                for (uint32_t turn = 0; turn < (w->g->nodes.at[n].inner == GY_NONE ? 1 : 2); turn++)
                    run_task(w, mem, task_of(w, n, w->g->nodes.at[n].inner == GY_NONE ? it : 2 * it + turn), start);
        n--;
    }
}

static token entry_token(uint32_t buffer, int64_t byte)
{
    return (token){ mix(mix(77, buffer), (uint64_t)byte), 0 };
}

/* Outside of starts a buffer holds the last start's end if it is a state, else what it was bound to. */
static token at_start(const world *w, uint32_t buffer, int64_t byte, uint32_t start)
{
    if (w->g->buffers.at[buffer].cls == GANTRY_STATE && start > 0)
        return w->final[start - 1][w->final_at[buffer] + (size_t)byte];
    return entry_token(buffer, byte);
}

static void run_sequentially(world *w)
{
    static arrays mem;
    for (uint32_t start = 0; start < w->starts; start++) {
        for (size_t v = 0; v < VALUES; v++)
            for (size_t b = 0; b < VALUE_BYTES; b++)
                mem[v][b] = unwritten;
        for (uint32_t b = 0; b < w->g->buffers.count; b++)
            for (int64_t i = 0; i < (int64_t)w->g->buffers.at[b].bytes && w->g->buffers.at[b].cls != GANTRY_TEMP; i++)
                mem[w->g->flow->entry[b]][i] = at_start(w, b, i, start);
        run_tasks(w, mem, start);
        for (uint32_t b = 0; b < w->g->buffers.count; b++) {
            memcpy(w->final[start] + w->final_at[b], mem[w->g->flow->exit[b]],
                   w->g->buffers.at[b].bytes * sizeof(token));
        }
    }
}

/* ---- memory of the schedule ---- */

static bool same_byte(const gantry_schedule *s, const gy_instance *a, size_t i, const gy_instance *b, size_t j)
{
    bool owned = a->space == GY_SPACE_INPUT || a->space == GY_SPACE_OUTPUT;
    return a->space == b->space && a->memory == b->memory && a->offset + i == b->offset + j &&
           (!owned || s->values.at[a->value].buffer == s->values.at[b->value].buffer);
}

/* The size of the windows of a space, if the instance lies in the last in_flight ones; else 0. */
static uint64_t window_of(const world *w, const gy_instance *in)
{
    const gantry_schedule *s = w->s;
    if (in->space == GY_SPACE_STAGING)
        return in->offset + s->in_flight * s->staging_window >= s->staging ? s->staging_window : 0;
    uint64_t size = in->space == GY_SPACE_SLAB && s->window.count ? s->window.at[in->memory] : 0;
    return size && in->offset + s->in_flight * size >= s->slab.at[in->memory] ? size : 0;
}

/* Numbers of bytes, by looking through all instances before; outputs have one per start, what moves one per window. */
static uint32_t number_of(world *w, size_t in, size_t byte)
{
    const gy_instance *x = &w->s->instances.at[in];
    for (size_t j = 0; j <= in; j++) {
        const gy_instance *y = &w->s->instances.at[j];
        uint64_t k = x->offset + byte - y->offset;
        if (x->offset + byte >= y->offset && k < (j == in ? byte : y->bytes) && same_byte(w->s, x, byte, y, k))
            return w->cell[j][k];
    }
    uint32_t number = (uint32_t)w->cells;
    w->cells += x->space == GY_SPACE_OUTPUT ? w->starts : window_of(w, x) ? w->s->in_flight : 1;
    return number;
}

static void number_bytes(world *w)
{
    for (size_t i = 0; i < w->s->instances.count; i++) {
        const gy_instance *in = &w->s->instances.at[i];
        w->cell[i] = malloc((in->bytes + 1) * sizeof *w->cell[i]);
        for (size_t b = 0; b < in->bytes; b++)
            w->cell[i][b] = number_of(w, i, b);
    }
}

static uint32_t cell_at(const world *w, uint32_t instance, uint64_t byte, uint32_t start)
{
    const gy_instance *in = &w->s->instances.at[instance];
    uint32_t turn = window_of(w, in) ? start % w->s->in_flight : 0;
    return w->cell[instance][byte] + (in->space == GY_SPACE_OUTPUT ? start : turn);
}

static void set_up(const world *w, token *mem)
{
    for (size_t i = 0; i < w->cells; i++)
        mem[i] = (token){ mix(5555, i), 98 };
    for (uint32_t i = 0; i < w->s->instances.count; i++) {
        const gy_instance *in = &w->s->instances.at[i];
        if (in->role == GY_ROLE_PERSIST || in->space == GY_SPACE_INPUT) {
            uint32_t buffer = w->s->values.at[in->value].buffer;
            for (size_t b = 0; b < in->bytes; b++)
                mem[w->cell[i][b]] = entry_token(buffer, in->first * width(w, in->value) + (int64_t)b);
        }
    }
}

/* ---- order ---- */

static uint32_t lane_at(const world *w, uint32_t op, uint32_t i)
{
    return w->s->op_lane.at[w->s->ops.at[op].lane + i];
}

static bool meet_in_lane(const world *w, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < w->s->ops.at[a].lanes; i++) {
        for (uint32_t j = 0; j < w->s->ops.at[b].lanes; j++)
            if (lane_at(w, a, i) == lane_at(w, b, j))
                return true;
    }
    return false;
}

/* An op of a batch begins with its first. */
static uint32_t head_of(const world *w, uint32_t op)
{
    while (w->s->ops.at[op].joined)
        op--;
    return op;
}

/* An op that waits for one of a batch waits for those before it in the batch, too. */
static bool ends_with(const world *w, uint32_t awaited, uint32_t op)
{
    return op == awaited || (op < awaited && op >= head_of(w, awaited));
}

static uint64_t bit(uint32_t event)
{
    return UINT64_C(1) << event;
}

static bool wants_after(const world *w, const gy_op *later, const gy_op *earlier)
{
    if (later->node == GY_NONE || earlier->node == GY_NONE || earlier->repeat)
        return false;
    const gy_node *n = &w->g->nodes.at[later->node];
    for (uint32_t i = 0; i < n->afters; i++)
        if (w->g->after.at[n->after + i] == earlier->node)
            return are_in_one_turn(w->g, later, earlier);
    return false;
}

static void order(world *w)
{
    for (uint32_t x = 0; x < w->starts * w->ops; x++) {
        for (uint32_t y = 0; y < w->starts * w->ops; y++) {
            uint32_t op = x % w->ops, start = x / w->ops, from = y % w->ops, from_start = y / w->ops;
            uint32_t head = head_of(w, op);
            bool first = y < start * w->ops + head && meet_in_lane(w, op, from);
            for (size_t i = 0; i < w->s->sync.count; i++) {
                const gy_sync *row = &w->s->sync.at[i];
                first = first || (row->carrier != GY_CARRIER_LANE && row->to == head && ends_with(w, row->from, from) &&
                                  from_start + row->distance == start);
            }
            first = first || from_start + w->s->in_flight <= start;
            w->before[x] |= first ? bit(y) : 0;
            w->after[x] |= start == from_start && wants_after(w, &w->s->ops.at[op], &w->s->ops.at[from]) ? bit(y) : 0;
        }
    }
}

/* ---- clashes ---- */

static bool uses_clash(const world *w, const gy_use *a, uint32_t start, const gy_use *b, uint32_t start2)
{
    const gy_instance *x = &w->s->instances.at[a->instance], *y = &w->s->instances.at[b->instance];
    if (a->mode == GANTRY_READ && b->mode == GANTRY_READ)
        return false;
    for (int64_t i = (a->first - x->first) * width(w, x->value); i < (a->last - x->first) * width(w, x->value); i++) {
        for (int64_t j = (b->first - y->first) * width(w, y->value); j < (b->last - y->first) * width(w, y->value); j++)
            if (cell_at(w, a->instance, (uint64_t)i, start) == cell_at(w, b->instance, (uint64_t)j, start2))
                return true;
    }
    return false;
}

static const gy_use *use_at(const world *w, uint32_t op, uint32_t i)
{
    return &w->s->use.at[w->s->ops.at[op].use + i];
}

static bool ops_clash(const world *w, uint32_t x, uint32_t y)
{
    for (uint32_t i = 0; i < w->s->ops.at[x % w->ops].uses; i++) {
        for (uint32_t j = 0; j < w->s->ops.at[y % w->ops].uses; j++)
            if (uses_clash(w, use_at(w, x % w->ops, i), x / w->ops, use_at(w, y % w->ops, j), y / w->ops))
                return true;
    }
    return false;
}

/* In place: one rank's read and write that put each row at one address. */
static bool in_place(const world *w, const gy_use *a, const gy_use *b)
{
    const gy_instance *x = &w->s->instances.at[a->instance], *y = &w->s->instances.at[b->instance];
    return a->rank == b->rank && width(w, x->value) == width(w, y->value) &&
           (int64_t)x->offset - x->first * width(w, x->value) == (int64_t)y->offset - y->first * width(w, y->value);
}

static bool op_clashes_itself(const world *w, uint32_t op)
{
    const gy_op *o = &w->s->ops.at[op];
    for (uint32_t i = 0; i < o->uses; i++) {
        for (uint32_t j = 0; j < i; j++) {
            const gy_use *a = use_at(w, op, i), *b = use_at(w, op, j);
            bool may = o->kind == GY_OP_COLLECTIVE && a->mode != b->mode && in_place(w, a, b);
            if (!may && uses_clash(w, a, 0, b, 0))
                return true;
        }
    }
    return false;
}

/* ---- running ---- */

typedef struct bytes {
    uint32_t cell[VALUE_BYTES];
    size_t count;
    int64_t first; /* of the value */
} bytes;

static void bytes_of(const world *w, const gy_use *u, uint32_t start, bytes *to)
{
    const gy_instance *in = &w->s->instances.at[u->instance];
    int64_t row = width(w, in->value);
    to->first = u->first * row;
    to->count = (size_t)((u->last - u->first) * row);
    for (size_t i = 0; i < to->count; i++)
        to->cell[i] = cell_at(w, u->instance, (uint64_t)((u->first - in->first) * row) + i, start);
}

static void run_node(world *w, token *mem, uint32_t op, uint32_t start)
{
    const gy_op *o = &w->s->ops.at[op];
    uint32_t task = task_of(w, o->node, o->iteration);
    uint64_t seen = 1;
    bytes b;
    for (uint32_t i = 0; i < o->uses; i++) {
        const gy_use *u = use_at(w, op, i);
        const token *expect = w->expect[start] + w->expect_at[w->g->flow->task[task].access + i];
        bytes_of(w, u, start, &b);
        for (size_t k = 0; k < b.count && (u->mode == GANTRY_READ || u->mode == GANTRY_READWRITE); k++) {
            token here = mem[b.cell[k]];
            seen = mix(mix(seen, here.v), here.op);
            w->broken |= equal(here, expect[k]) ? 0 : BIT(version);
        }
    }
    for (uint32_t i = 0; i < o->uses; i++) {
        token *at[VALUE_BYTES];
        bytes_of(w, use_at(w, op, i), start, &b);
        for (size_t k = 0; k < b.count; k++)
            at[k] = &mem[b.cell[k]];
        apply(w, task, i, b.first, seen, at, b.count);
    }
}

/* Inserted ops: each byte that is written gets what those that are read hold, combined where there are several. */
static void run_inserted(const world *w, token *mem, uint32_t op, uint32_t start)
{
    const gy_op *o = &w->s->ops.at[op];
    static token old[1 << 14];
    memcpy(old, mem, w->cells * sizeof *mem);
    if (o->kind == GY_OP_FILL) {
        bytes b;
        bytes_of(w, use_at(w, op, 0), start, &b);
        uint64_t reduce = o->reduce ? o->reduce : w->s->instances.at[use_at(w, op, 0)->instance].op;
        for (size_t k = 0; k < b.count; k++)
            mem[b.cell[k]] = identity(reduce);
        return;
    }
    uint32_t ins = o->kind == GY_OP_COLLECTIVE ? o->ins : 1;
    for (uint32_t i = ins; i < o->uses; i++) {
        bytes to;
        bytes_of(w, use_at(w, op, i), start, &to);
        bool has[VALUE_BYTES] = { false };
        for (uint32_t j = 0; j < ins; j++) {
            bytes from;
            bytes_of(w, use_at(w, op, j), start, &from);
            for (size_t k = 0; k < from.count; k++) {
                int64_t at = from.first + (int64_t)k - to.first;
                if (at < 0 || at >= (int64_t)to.count)
                    continue;
                token *t = &mem[to.cell[at]], add = old[from.cell[k]];
                *t = has[at] ? plus(*t, add, o->reduce) : add;
                has[at] = true;
            }
        }
    }
}

static void check_outputs(world *w, const token *mem, uint32_t op, uint32_t start)
{
    for (uint32_t i = 0; i < w->s->ops.at[op].uses; i++) {
        const gy_use *u = use_at(w, op, i);
        const gy_instance *in = &w->s->instances.at[u->instance];
        if (u->mode == GANTRY_READ || in->space != GY_SPACE_OUTPUT)
            continue;
        bytes b;
        bytes_of(w, u, start, &b);
        const token *final = w->final[start] + w->final_at[w->s->values.at[in->value].buffer];
        for (size_t k = 0; k < b.count; k++)
            w->broken |= equal(mem[b.cell[k]], final[b.first + (int64_t)k]) ? 0 : BIT(external);
    }
}

/* When exactly the starts up to this one have ended. */
static void check_end(world *w, const token *mem, uint32_t start)
{
    for (uint32_t b = 0; b < w->g->buffers.count; b++) {
        const gy_buffer *buffer = &w->g->buffers.at[b];
        const token *final = w->final[start] + w->final_at[b];
        bool fetched[VALUE_BYTES] = { false };
        for (uint32_t i = 0; i < w->s->instances.count; i++) {
            const gy_instance *in = &w->s->instances.at[i];
            bool output = in->space == GY_SPACE_OUTPUT;
            if (w->s->values.at[in->value].buffer != b || (!output && in->role != GY_ROLE_PERSIST))
                continue;
            for (size_t k = 0; k < in->bytes; k++) {
                int64_t byte = in->first * width(w, in->value) + (int64_t)k;
                bool right = equal(mem[cell_at(w, i, k, start)], final[byte]);
                fetched[byte] = fetched[byte] || output;
                w->broken |= right ? 0 : BIT(exit);
            }
        }
        for (size_t k = 0; k < buffer->bytes && buffer->output; k++)
            w->broken |= fetched[k] ? 0 : BIT(exit);
    }
}

static uint64_t hash_memory(const world *w, const token *mem)
{
    uint64_t h = 3;
    for (size_t i = 0; i < w->cells; i++)
        h = mix(mix(h, mem[i].v), mem[i].op);
    return h | 1;
}

/* true: this state was not met before. */
static bool remember(world *w, uint64_t done, const token *mem)
{
    uint64_t hash = hash_memory(w, mem);
    size_t slot = mix(done, hash) % SLOTS;
    while (w->seen[slot].hash) {
        if (w->seen[slot].done == done && w->seen[slot].hash == hash)
            return false;
        slot = (slot + 1) % SLOTS;
    }
    w->seen[slot] = (struct state){ done, hash };
    w->states++;
    return true;
}

static void explore(world *w, const token *mem, uint64_t done)
{
    uint32_t total = w->starts * w->ops;
    if (w->states >= STATES) {
        w->capped = true;
        return;
    }
    if (!remember(w, done, mem))
        return;
    for (uint32_t start = 0; start < w->starts; start++)
        if (done == bit((start + 1) * w->ops) - 1)
            check_end(w, mem, start);
    for (uint32_t x = 0; x < total; x++) {
        bool ready = !(done & bit(x)) && !(w->before[x] & ~done);
        if (!ready)
            continue;
        w->broken |= w->after[x] & ~done ? BIT(after) : 0;
        for (uint32_t y = 0; y < x; y++) {
            bool both = !(done & bit(y)) && !(w->before[y] & ~done);
            w->broken |= both && w->clash[x][y] ? BIT(race) : 0;
        }
        token *next = malloc((w->cells + 1) * sizeof *next);
        memcpy(next, mem, w->cells * sizeof *next);
        uint32_t op = x % w->ops, start = x / w->ops;
        if (w->s->ops.at[op].node != GY_NONE)
            run_node(w, next, op, start);
        else
            run_inserted(w, next, op, start);
        check_outputs(w, next, op, start);
        explore(w, next, done | bit(x));
        free(next);
    }
}

static void prepare(world *w)
{
    size_t reads = 0, finals = 0;
    w->expect_at = calloc(w->g->flow->accesses + 1, sizeof *w->expect_at);
    for (size_t i = 0; i < w->g->flow->accesses; i++) {
        const gy_access *a = &w->g->access.at[w->g->flow->access[i].access];
        w->expect_at[i] = reads;
        reads += (size_t)((a->last - a->first) * width(w, w->g->flow->access[i].value));
    }
    for (uint32_t b = 0; b < w->g->buffers.count; b++) {
        w->final_at[b] = finals;
        finals += w->g->buffers.at[b].bytes;
    }
    for (uint32_t start = 0; start < w->starts; start++) {
        w->expect[start] = calloc(reads + 1, sizeof(token));
        w->final[start] = calloc(finals + 1, sizeof(token));
    }
    run_sequentially(w);
    number_bytes(w);
    order(w);
    for (uint32_t x = 0; x < w->starts * w->ops; x++)
        for (uint32_t y = 0; y < x; y++)
            w->clash[x][y] = ops_clash(w, x, y);
}

static void tidy(world *w)
{
    for (size_t i = 0; i < w->s->instances.count; i++)
        free(w->cell[i]);
    for (uint32_t start = 0; start < w->starts; start++) {
        free(w->expect[start]);
        free(w->final[start]);
    }
    free(w->expect_at);
    free(w->seen);
}

uint32_t oracle_run(const gantry_schedule *s, const gantry_graph *g, bool *capped)
{
    static world w;
    memset(&w, 0, sizeof w);
    w.s = s;
    w.g = g;
    w.ops = (uint32_t)s->ops.count;
    w.starts = s->in_flight + 1;
    w.seen = calloc(SLOTS, sizeof *w.seen);
    prepare(&w);
    for (uint32_t i = 0; i < w.ops; i++)
        w.broken |= op_clashes_itself(&w, i) ? BIT(race) : 0;
    token *mem = malloc((w.cells + 1) * sizeof *mem);
    set_up(&w, mem);
    explore(&w, mem, 0);
    free(mem);
    *capped = w.capped;
    tidy(&w);
    return w.broken;
}
