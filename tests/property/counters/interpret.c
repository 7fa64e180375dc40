/* SPDX-License-Identifier: Apache-2.0 */
#include "property/counters/interpret.h"

#include "base/map.h"
#include <stdlib.h>
#include <string.h>

/* A byte is a number of 32 bits here. */
typedef uint32_t cell;

typedef struct lane {
    uint32_t start, at; /* the next op: place in its list */
    uint32_t *op, ops;
    cell *own;      /* stores that others may not see yet, and what was loaded: one for each cell */
    uint8_t *state; /* of each cell */
} lane;
enum { NOTHING, LOADED, STORED };

typedef struct world {
    const gantry_schedule *s;
    size_t *space, cells; /* of each memory's slab, staging, and the outputs of each value and turn: its first cell */
    cell *memory;
    lane *lane;
    uint64_t *counter;
    uint64_t *seen; /* what each op of each start read */
    faults f;
    rng r;
} world;

static void *zeros(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);
    if (!p)
        exit(2);
    return p;
}

static void lay_out(world *w)
{
    const gantry_schedule *s = w->s;
    size_t n = 0, outputs = s->values.count * s->in_flight;
    w->space = zeros(s->slab.count + 1 + outputs, sizeof *w->space);
    for (size_t i = 0; i < s->slab.count; i++) {
        w->space[n++] = w->cells;
        w->cells += s->slab.at[i];
    }
    w->space[n++] = w->cells;
    w->cells += s->staging;
    for (size_t i = 0; i < outputs; i++) {
        const gy_schedule_value *v = &s->values.at[i / s->in_flight];
        w->space[n++] = w->cells;
        w->cells += (size_t)(v->offset ? v->offset[v->rows] : v->rows * v->row_bytes);
    }
}

static void open_world(world *w)
{
    const gantry_schedule *s = w->s;
    lay_out(w);
    w->memory = zeros(w->cells, sizeof *w->memory);
    w->lane = zeros(s->lanes.count, sizeof *w->lane);
    w->counter = zeros(s->counters.at.count, sizeof *w->counter);
    for (size_t l = 0; l < s->lanes.count; l++) {
        lane *x = &w->lane[l];
        x->op = zeros(s->ops.count, sizeof *x->op);
        x->own = zeros(w->cells, sizeof *x->own);
        x->state = zeros(w->cells, 1);
        for (uint32_t op = 0; op < s->ops.count; op++)
            for (uint32_t i = 0; i < s->ops.at[op].lanes; i++)
                if (s->op_lane.at[s->ops.at[op].lane + i] == l)
                    x->op[x->ops++] = op;
    }
}

static void close_world(world *w)
{
    for (size_t l = 0; l < w->s->lanes.count; l++) {
        free(w->lane[l].op);
        free(w->lane[l].own);
        free(w->lane[l].state);
    }
    free(w->lane);
    free(w->counter);
    free(w->memory);
    free(w->space);
    free(w->seen);
}

/* ---- memory ---- */

static void release(world *w, lane *x)
{
    for (size_t i = 0; i < w->cells; i++) {
        if (x->state[i] == STORED) {
            w->memory[i] = x->own[i];
            x->state[i] = NOTHING;
        }
    }
}

static bool is_of(uint32_t fault, uint32_t op)
{
    return fault == ALL_OPS || fault == op + 1;
}

static void acquire(const world *w, lane *x)
{
    for (size_t i = 0; i < w->cells; i++)
        x->state[i] = x->state[i] == LOADED ? NOTHING : x->state[i];
}

/* Some stores are seen by themselves, in any order; some of what was loaded is forgotten. */
static void leak(world *w, lane *x)
{
    for (size_t i = 0; i < w->cells; i++) {
        if (x->state[i] == NOTHING || !rng_chance(&w->r, 5))
            continue;
        if (x->state[i] == STORED)
            w->memory[i] = x->own[i];
        x->state[i] = NOTHING;
    }
}

static cell load(world *w, lane *x, size_t i)
{
    if (x->state[i] == NOTHING) {
        x->own[i] = w->memory[i];
        x->state[i] = LOADED;
    }
    return x->own[i];
}

/* ---- ops ---- */

static size_t cells_of(const world *w, const gy_use *u, uint32_t start, size_t *first)
{
    const gy_instance *in = &w->s->instances.at[u->instance];
    size_t space = w->s->slab.count;
    if (in->space == GY_SPACE_SLAB)
        space = in->memory;
    else if (in->space == GY_SPACE_OUTPUT)
        space += 1 + in->value * w->s->in_flight + start % w->s->in_flight;
    *first = w->space[space] + gy_instance_address(w->s, in, start) + gy_instance_offset(w->s, in, u->first);
    return in->space == GY_SPACE_INPUT ? 0 : gy_use_bytes(w->s, u);
}

bool share_bytes(const gantry_schedule *s, uint32_t from, uint32_t to, uint32_t distance)
{
    world w = { .s = s };
    bool shared = false;
    lay_out(&w);
    for (uint32_t i = 0; i < s->ops.at[from].uses && !shared; i++) {
        for (uint32_t k = 0; k < s->ops.at[to].uses && !shared; k++) {
            const gy_use *a = &s->use.at[s->ops.at[from].use + i], *b = &s->use.at[s->ops.at[to].use + k];
            size_t x, y, m = cells_of(&w, a, 0, &x), n = cells_of(&w, b, distance, &y);
            shared = (a->mode != GANTRY_READ || b->mode != GANTRY_READ) && x < y + n && y < x + m;
        }
    }
    free(w.space);
    return shared;
}

/* The work of an op: it reads all, then writes numbers that follow from it. Inputs are others in every start. */
static uint64_t work(world *w, lane *x, uint32_t op, uint32_t start)
{
    const gy_op *o = &w->s->ops.at[op];
    uint64_t hash = gy_hash64(((uint64_t)start << 32) + op);
    size_t first;
    for (uint32_t i = 0; i < o->uses; i++) {
        const gy_use *u = &w->s->use.at[o->use + i];
        size_t count = u->mode == GANTRY_WRITE ? 0 : cells_of(w, u, start, &first);
        for (size_t c = 0; c < count; c++)
            hash = gy_hash64(hash ^ load(w, x, first + c));
    }
    for (uint32_t i = 0; i < o->uses; i++) {
        const gy_use *u = &w->s->use.at[o->use + i];
        size_t count = u->mode == GANTRY_READ ? 0 : cells_of(w, u, start, &first);
        for (size_t c = 0; c < count; c++) {
            x->own[first + c] = (cell)gy_hash64(hash + i + c * 1000);
            x->state[first + c] = STORED;
        }
    }
    return hash;
}

/* ---- waits without a counter ---- */

static bool are_far(const world *w, const gy_counter *c)
{
    uint32_t a = w->s->lanes.at[c->from].device, b = w->s->lanes.at[c->to].device;
    return a != b && w->f.far >> (a + b) % 8 & 1;
}

/* Of that start, the lane has an op up to this one before it. */
static bool is_before(const lane *x, uint32_t op, uint32_t start)
{
    return x->ops && (x->start < start || (x->start == start && x->op[x->at] <= op));
}

/* All ops of the device up to the one that is waited for have ended; of an earlier start, all ops of all devices. Then
 * their stores are seen. */
static bool have_ended(world *w, const gy_counter *c, const gy_counter_wait *wait, uint32_t start)
{
    const gantry_schedule *s = w->s;
    uint32_t device = s->lanes.at[c->from].device;
    uint32_t op = wait->distance ? UINT32_MAX : s->counters.signal.at[c->signal + wait->value - 1];
    for (size_t l = 0; l < s->lanes.count; l++)
        if ((wait->distance || s->lanes.at[l].device == device) && is_before(&w->lane[l], op, start - wait->distance))
            return false;
    for (size_t l = 0; l < s->lanes.count; l++)
        if (wait->distance || s->lanes.at[l].device == device)
            release(w, &w->lane[l]);
    return true;
}

/* `waits`: the op has waits, which it acquires by. */
static bool may_begin(world *w, uint32_t op, uint32_t start, bool *waits)
{
    const gy_counters *all = &w->s->counters;
    *waits = false;
    for (size_t c = 0; c < all->at.count; c++) {
        const gy_counter *one = &all->at.at[c];
        for (uint32_t i = 0; i < one->waits; i++) {
            const gy_counter_wait *wait = &all->wait.at[one->wait + i];
            uint64_t base = (uint64_t)(start - wait->distance) * one->signals;
            if (wait->op != op || wait->distance > start)
                continue;
            *waits = true;
            if (are_far(w, one) ? !have_ended(w, one, wait, start) : w->counter[c] < base + wait->value)
                return false;
        }
    }
    return true;
}

/* Releases, then signals; what nobody waits for is not released. */
static void signal_ended(world *w, lane *x, uint32_t op, uint32_t start)
{
    const gy_counters *all = &w->s->counters;
    for (size_t c = 0; c < all->at.count; c++) {
        for (uint32_t k = 0; k < all->at.at[c].signals; k++) {
            if (all->signal.at[all->at.at[c].signal + k] != op || are_far(w, &all->at.at[c]))
                continue;
            if (!is_of(w->f.no_release, op))
                release(w, x);
            w->counter[c] = (uint64_t)start * all->at.at[c].signals + k + 1;
        }
    }
}

/* The lane has an op of an earlier start or segment before it. */
static bool is_behind(const world *w, const lane *x, uint32_t op, uint32_t start)
{
    bool earlier = w->f.cut && x->start == start && x->op[x->at] / w->f.cut < op / w->f.cut;
    return earlier || (w->f.cut && x->start < start);
}

/* All lanes of the op have come to it, and with one queue, or a cut, all that precedes it on their devices has ended.
 */
static bool is_at_head(const world *w, uint32_t op, uint32_t start)
{
    const gantry_schedule *s = w->s;
    const gy_op *o = &s->ops.at[op];
    for (uint32_t i = 0; i < o->lanes; i++) {
        uint32_t mine = s->op_lane.at[o->lane + i];
        for (uint32_t l = 0; l < s->lanes.count; l++) {
            const lane *x = &w->lane[l];
            bool beside = s->lanes.at[l].device == s->lanes.at[mine].device;
            bool same = l == mine || (w->f.one_queue && beside);
            if (same && x->ops && (x->start < start || (x->start == start && x->op[x->at] < op)))
                return false;
            if (beside && x->ops && is_behind(w, x, op, start))
                return false;
        }
    }
    return true;
}

static void run_op(world *w, uint32_t op, uint32_t start, bool waits)
{
    const gy_op *o = &w->s->ops.at[op];
    const uint32_t *mine = &w->s->op_lane.at[o->lane];
    bool meets = o->lanes > 1; /* lanes meet before and after it, by means of their own */
    for (uint32_t i = 0; i < o->lanes && meets; i++)
        release(w, &w->lane[mine[i]]);
    for (uint32_t i = 0; i < o->lanes; i++)
        if (meets || (waits && !is_of(w->f.no_acquire, op)))
            acquire(w, &w->lane[mine[i]]);
    w->seen[(size_t)start * w->s->ops.count + op] = work(w, &w->lane[mine[0]], op, start);
    if (meets)
        release(w, &w->lane[mine[0]]);
    signal_ended(w, &w->lane[mine[0]], op, start);
    for (uint32_t i = 0; i < o->lanes; i++) {
        lane *x = &w->lane[mine[i]];
        leak(w, x);
        x->at++;
        if (x->at == x->ops) {
            x->at = 0;
            x->start++;
        }
    }
}

/* The lane goes on by an op, if it can. */
static bool step(world *w, uint32_t l, uint32_t starts)
{
    const lane *x = &w->lane[l];
    if (!x->ops || x->start == starts)
        return false;
    uint32_t op = x->op[x->at], start = x->start;
    bool waits;
    if (!is_at_head(w, op, start) || !may_begin(w, op, start, &waits))
        return false;
    run_op(w, op, start, waits);
    return true;
}

/* In a random order; in most runs one lane comes last whenever another can go on. */
static bool run_random(world *w, uint32_t starts)
{
    uint32_t lanes = (uint32_t)w->s->lanes.count, slow = rng_below(&w->r, lanes + lanes / 2 + 1);
    for (bool any = true; any;) {
        uint32_t first = rng_below(&w->r, lanes);
        any = false;
        for (uint32_t i = 0; i < lanes && !any; i++)
            any = (first + i) % lanes != slow && step(w, (first + i) % lanes, starts);
        any = any || (slow < lanes && step(w, slow, starts));
    }
    for (uint32_t l = 0; l < lanes; l++)
        if (w->lane[l].ops && w->lane[l].start < starts)
            return false;
    return true;
}

static void run_in_order(world *w, uint32_t starts)
{
    lane all = { .own = zeros(w->cells, sizeof(cell)), .state = zeros(w->cells, 1) };
    for (uint32_t start = 0; start < starts; start++) {
        for (uint32_t op = 0; op < w->s->ops.count; op++) {
            w->seen[(size_t)start * w->s->ops.count + op] = work(w, &all, op, start);
            release(w, &all);
        }
    }
    free(all.own);
    free(all.state);
}

const char *interpret(const gantry_schedule *s, uint32_t starts, faults f, uint64_t seed)
{
    world random = { .s = s, .f = f, .r = { seed } }, order = { .s = s };
    const char *wrong = NULL;
    size_t ops = s->ops.count * starts;
    open_world(&random);
    open_world(&order);
    random.seen = zeros(ops, sizeof *random.seen);
    order.seen = zeros(ops, sizeof *order.seen);
    run_in_order(&order, starts);
    if (!run_random(&random, starts))
        wrong = "lanes wait for ever";
    for (size_t l = 0; l < s->lanes.count; l++) /* the end of a run */
        release(&random, &random.lane[l]);
    if (!wrong && memcmp(random.seen, order.seen, ops * sizeof *order.seen) != 0)
        wrong = "an op read something else";
    if (!wrong && memcmp(random.memory, order.memory, order.cells * sizeof(cell)) != 0)
        wrong = "other bytes are left";
    close_world(&random);
    close_world(&order);
    return wrong;
}
