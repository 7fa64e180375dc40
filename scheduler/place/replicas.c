/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Replicas: a task is carried out in every memory that wants its rows, where that is cheaper than bringing them there
 * (task duplication: I. Ahmad, Y.-K. Kwok, On Exploiting Task Duplication in Parallel Program Scheduling, IEEE TPDS
 * 1998). Placements stay as they are; who takes part is found by walks over the tasks in their order:
 *
 *   back    a memory wants rows that a task there reads. A task that may run twice has a replica wherever rows that it
 *           writes are wanted, so what it reads is wanted there, too. A state is wanted at the end where it is read at
 *           the beginning: the next start begins there.
 *   forth   a replica stays if what it reads is there anyway, or comes sooner than what it writes would. Results of a
 *           reduction that several memories contribute to are there: each gets them from the collective.
 *
 * Forth is walked until nothing changes, as a state is there only if who changes it is; then back once more, for
 * replicas that nobody wants now. Whether all that is worth it is decided by simulation
 * (search/collectives_or_copies.c).
 */
#include "scheduler/place/place.h"

#include "base/error.h"
#include "base/imap.h"
#include "graph/repeat.h"
#include "scheduler/cost/cost.h"
#include "scheduler/place/memory_sets.h"
#include <string.h>

/* Payloads are sets of memories (memory_sets.h); marked: these have contributions of a reduction. */
#define CONTRIBUTED GY_MEMORY_SET_MARK

enum { ROUNDS = 4 };        /* of walks forth, at most */
enum { BUSY = 4 };          /* so many times what it spares another device to wait, a replica may keep its own busy */
enum { TASKS = 400000 };    /* beyond, walking over them takes too long */
enum { FEW_TASKS = 10000 }; /* beyond, planning twice is worth it for states only */

typedef struct replicas {
    gy_plan *p;
    uint8_t *pure;       /* per node: it may be carried out more than once, anywhere */
    uint32_t *device_of; /* per memory: who carries out what is wanted there, GY_NONE */
    gy_memory_sets sets;
    uint64_t *mask; /* per task: memories of its replicas */
    uint64_t *own;  /* per memory: the set of it alone */
    gy_imap *rows;  /* per value: payload of the walk at hand; no domain before the first access */
    gy_imap *kept;  /* per state that ends as itself: memories that want it at the beginning; forth: that have it */
    bool failed, changed;
} replicas;

/* ---- one access ---- */

typedef struct seen {
    uint32_t value, memory;
    int64_t first, last;
    uint8_t mode;
} seen;

static seen access_of(const replicas *r, uint32_t task, uint32_t k)
{
    const gy_plan *p = r->p;
    size_t i = p->flow->task[task].access + k;
    const gy_access *a = gy_flow_access_of(p->graph, p->flow, i);
    const gy_team *team = gy_plan_team(p, task);
    uint32_t device = p->placed.device[task];
    if (team)
        device = team->device[gy_access_rank(gy_plan_extra(p, p->flow->task[task].node), k)];
    return (seen){ p->flow->access[i].value, p->machine->device[device].memory, a->first, a->last, a->mode };
}

static uint32_t accesses_of(const replicas *r, uint32_t task)
{
    return gy_plan_node(r->p, task)->accesses;
}

/* Where the rows of an access are touched: in the task's own memory, and in those of its replicas. */
static uint64_t touched(replicas *r, uint32_t task, const seen *a)
{
    return gy_set_union(&r->sets, r->own[a->memory], r->mask[task]);
}

static bool is_state(const replicas *r, uint32_t value)
{
    const gy_plan *p = r->p;
    return value < p->graph->buffers.count && p->graph->buffers.at[value].cls == GANTRY_STATE &&
           p->flow->exit[value] == value;
}

/* The map of the value, which begins with nothing. */
static gy_imap *map_of(replicas *r, gy_imap *maps, uint32_t value)
{
    gy_imap *map = &maps[value];
    int64_t rows = gy_value_buffer(r->p->graph, r->p->flow, value)->rows;
    if (!map->count && !gy_imap_init(map, 0, rows, 0))
        r->failed = true;
    return map;
}

static void set_rows(replicas *r, gy_imap *maps, const seen *a, uint64_t payload)
{
    if (a->first >= a->last)
        return;
    gy_imap *map = map_of(r, maps, a->value);
    r->failed = r->failed || !gy_imap_set(map, a->first, a->last, payload);
}

static void add_bits(replicas *r, gy_imap *maps, const seen *a, uint64_t bits)
{
    gy_imap *map = a->first < a->last ? map_of(r, maps, a->value) : NULL;
    if (!map || r->failed)
        return;
    uint32_t i = gy_imap_cut(map, a->first, a->last);
    r->failed = i == GY_IMAP_NONE;
    for (; i != GY_IMAP_NONE && map->at[i].first < a->last; i = gy_imap_next(map, i))
        map->at[i].payload = gy_set_union(&r->sets, map->at[i].payload, bits);
    gy_imap_join(map, a->first, a->last);
}

static uint64_t any_bits(replicas *r, gy_imap *maps, const seen *a)
{
    gy_imap *map = a->first < a->last ? map_of(r, maps, a->value) : NULL;
    uint64_t bits = 0;
    if (!map || r->failed)
        return 0;
    for (uint32_t i = gy_imap_find(map, a->first); i != GY_IMAP_NONE && map->at[i].first < a->last;
         i = gy_imap_next(map, i))
        bits = gy_set_union(&r->sets, bits, map->at[i].payload);
    return bits;
}

static void forget(gy_imap *maps, size_t count)
{
    for (size_t i = 0; maps && i < count; i++)
        if (maps[i].count)
            gy_imap_free(&maps[i]);
    if (maps)
        memset(maps, 0, count * sizeof *maps);
}

/* Each state gets in one map what it has in the other. */
static void copy_states(replicas *r, gy_imap *from, gy_imap *to)
{
    for (uint32_t b = 0; b < r->p->graph->buffers.count; b++) {
        if (!is_state(r, b) || !from[b].count)
            continue;
        for (uint32_t i = gy_imap_find(&from[b], 0); i != GY_IMAP_NONE; i = gy_imap_next(&from[b], i)) {
            const gy_interval *at = &from[b].at[i];
            set_rows(r, to, &(seen){ .value = b, .first = at->first, .last = at->last }, at->payload);
        }
    }
}

/* ---- who could ---- */

/* The order that `after` adds holds for the task's own op, which is the first in the schedule, whichever that is. */
static bool find_pure(const gy_plan *p, uint8_t *pure)
{
    bool any = false;
    for (uint32_t n = 0; n < p->graph->nodes.count; n++) {
        const gy_node *node = &p->graph->nodes.at[n];
        bool kind = node->kind == GY_NODE_KERNEL || node->kind == GY_NODE_FILL || node->kind == GY_NODE_WORK;
        pure[n] = kind && !node->afters && !gy_plan_is_tied(p, n) && gy_node_repeats(p->graph, n);
    }
    for (size_t i = 0; i < p->graph->after.count; i++)
        pure[p->graph->after.at[i]] = 0;
    for (uint32_t n = 0; n < p->graph->nodes.count; n++)
        any = any || pure[n];
    return any;
}

/* The same kind of device takes the same time and leaves the same bits. */
static bool is_alike(const replicas *r, uint32_t task, uint32_t device)
{
    const gy_plan *p = r->p;
    uint32_t own = p->placed.device[task], node = p->flow->task[task].node;
    return device < p->workers && strcmp(p->machine->device[own].kind, p->machine->device[device].kind) == 0 &&
           gy_plan_time(p, node, own) == gy_plan_time(p, node, device);
}

static int64_t bytes_written(const gy_plan *p, uint32_t node)
{
    const gy_node *n = &p->graph->nodes.at[node];
    int64_t bytes = 0;
    for (uint32_t k = 0; k < n->accesses; k++) {
        const gy_access *a = &p->graph->access.at[n->access + k];
        bytes += a->mode == GANTRY_READ ? 0 : gy_access_bytes(p->graph, a);
    }
    return bytes;
}

/* How long another device would wait for what the node writes: the copy alone. */
static gy_ticks wait_of(const gy_plan *p, uint32_t node, uint32_t device, uint32_t memory)
{
    return gy_transfer_time(p, p->machine->device[device].memory, memory, bytes_written(p, node));
}

/* May it keep another device busy to spare it that copy? */
static bool is_cheap(const gy_plan *p, uint32_t node, uint32_t device, uint32_t other)
{
    const gy_device *d = &p->machine->device[other];
    gy_ticks wait = gy_ticks_both(wait_of(p, node, device, d->memory), 2 * d->signal);
    return gy_plan_time(p, node, other) / BUSY <= wait;
}

static bool may_be(const replicas *r, uint32_t task, uint32_t memory)
{
    const gy_plan *p = r->p;
    uint32_t device = r->device_of[memory];
    return device != GY_NONE && is_alike(r, task, device) &&
           is_cheap(p, p->flow->task[task].node, p->placed.device[task], device);
}

/* ---- back ---- */

static uint64_t wanted_of(replicas *r, uint32_t task)
{
    uint64_t bits = 0;
    for (uint32_t k = 0; k < accesses_of(r, task); k++) {
        seen a = access_of(r, task, k);
        if (a.mode != GANTRY_READ)
            bits = gy_set_union(&r->sets, bits, any_bits(r, r->rows, &a));
        bits = gy_set_without(&r->sets, bits, a.memory);
    }
    return bits;
}

static uint64_t choose(replicas *r, uint32_t task, bool first)
{
    uint64_t wanted = wanted_of(r, task), mask = 0;
    if (!first || !wanted || !r->pure[r->p->flow->task[task].node])
        return gy_set_common(&r->sets, wanted, r->mask[task]);
    for (uint32_t m = 0; gy_set_goes_on(&r->sets, wanted, m); m++)
        if (gy_set_has(&r->sets, wanted, m) && may_be(r, task, m))
            mask = gy_set_union(&r->sets, mask, r->own[m]);
    return mask;
}

static void want(replicas *r, uint32_t task)
{
    for (uint32_t k = 0; k < accesses_of(r, task); k++) {
        seen a = access_of(r, task, k);
        if (a.mode == GANTRY_WRITE || a.mode == GANTRY_READWRITE)
            set_rows(r, r->rows, &a, 0);
        else if (a.mode != GANTRY_READ) /* accumulators begin as the identity, whatever was there */
            set_rows(r, r->rows, &a, 0);
    }
    for (uint32_t k = 0; k < accesses_of(r, task); k++) {
        seen a = access_of(r, task, k);
        if (a.mode == GANTRY_READ || a.mode == GANTRY_READWRITE)
            add_bits(r, r->rows, &a, touched(r, task, &a));
    }
}

/* `first`: replicas wherever they may be; else those that there are stay where they are wanted. */
static void walk_back(replicas *r, bool first)
{
    const gy_plan *p = r->p;
    forget(r->rows, p->flow->values);
    copy_states(r, r->kept, r->rows);
    for (uint32_t i = p->flow->tasks; i-- > 0 && !r->failed;) {
        uint32_t task = p->placed.order[i];
        r->mask[task] = choose(r, task, first);
        want(r, task);
    }
}

/* ---- forth ---- */

/* The rows that a start begins with, where they are. */
static void begin_with(replicas *r, gy_imap *states)
{
    const gy_plan *p = r->p;
    forget(r->rows, p->flow->values);
    copy_states(r, states, r->rows);
    for (uint32_t b = 0; b < p->graph->buffers.count; b++) {
        const gy_buffer *buffer = &p->graph->buffers.at[b];
        seen all = { .value = b, .last = buffer->rows };
        uint32_t home = gy_buffer_home(p->machine, buffer);
        if (buffer->cls == GANTRY_CONST)
            set_rows(r, r->rows, &all, gy_set_all(&r->sets) | CONTRIBUTED);
        else if (buffer->cls == GANTRY_INPUT && home != GY_NONE)
            set_rows(r, r->rows, &all, r->own[home]);
    }
}

static bool is_combined(const replicas *r, uint64_t bits)
{
    return bits & CONTRIBUTED && gy_set_several(&r->sets, bits);
}

static gy_ticks quickest(const replicas *r, uint64_t from, uint32_t to, int64_t bytes)
{
    gy_ticks least = GY_TICKS_MAX;
    for (uint32_t m = 0; m < r->p->machine->memories; m++) {
        gy_ticks t = gy_set_has(&r->sets, from, m) ? gy_transfer_time(r->p, m, to, bytes) : GY_TICKS_MAX;
        least = t < least ? t : least;
    }
    return least;
}

/* Time of the copies of what the access reads and the memory lacks. */
static gy_ticks lacks(replicas *r, const seen *a, uint32_t memory)
{
    gy_imap *map = a->first < a->last ? map_of(r, r->rows, a->value) : NULL;
    const gy_buffer *b = gy_value_buffer(r->p->graph, r->p->flow, a->value);
    gy_ticks sum = 0;
    if (!map || r->failed)
        return 0;
    for (uint32_t i = gy_imap_find(map, a->first); i != GY_IMAP_NONE && map->at[i].first < a->last;
         i = gy_imap_next(map, i)) {
        uint64_t bits = map->at[i].payload;
        int64_t first = map->at[i].first > a->first ? map->at[i].first : a->first;
        int64_t last = map->at[i].last < a->last ? map->at[i].last : a->last;
        if (bits && !gy_set_has(&r->sets, bits, memory) && !is_combined(r, bits))
            sum = gy_ticks_both(sum, quickest(r, bits, memory, gy_buffer_span(b, first, last)));
    }
    return sum;
}

/* Is what it reads there, or can it be there as soon as what it writes? */
static bool pays(replicas *r, uint32_t task, uint32_t memory)
{
    const gy_plan *p = r->p;
    gy_ticks copies = 0;
    for (uint32_t k = 0; k < accesses_of(r, task); k++) {
        seen a = access_of(r, task, k);
        if (a.mode != GANTRY_WRITE)
            copies = gy_ticks_both(copies, lacks(r, &a, memory));
    }
    return copies <= wait_of(p, p->flow->task[task].node, p->placed.device[task], memory);
}

/* Rows that a task reads are in its own memory by then, in those of its replicas if they stay. */
static void bring(replicas *r, uint32_t task, bool all)
{
    for (uint32_t k = 0; k < accesses_of(r, task); k++) {
        seen a = access_of(r, task, k);
        if (a.mode == GANTRY_READ || a.mode == GANTRY_READWRITE)
            add_bits(r, r->rows, &a, all ? touched(r, task, &a) : r->own[a.memory]);
    }
}

static void carry_out(replicas *r, uint32_t task)
{
    bring(r, task, true);
    for (uint32_t k = 0; k < accesses_of(r, task); k++) {
        seen a = access_of(r, task, k);
        bool adds = a.mode >= GANTRY_SUM, more = adds && any_bits(r, r->rows, &a) & CONTRIBUTED;
        if (more)
            add_bits(r, r->rows, &a, r->own[a.memory]);
        else if (a.mode != GANTRY_READ)
            set_rows(r, r->rows, &a, adds ? CONTRIBUTED | r->own[a.memory] : touched(r, task, &a));
    }
}

/* Where the last writers leave states is where the next start has them. */
static void leave(replicas *r, gy_imap *states)
{
    const gy_plan *p = r->p;
    for (uint32_t i = 0; i < p->flow->tasks && !r->failed; i++)
        for (uint32_t k = 0; k < accesses_of(r, p->placed.order[i]); k++) {
            seen a = access_of(r, p->placed.order[i], k);
            if (a.mode != GANTRY_READ && is_state(r, a.value))
                set_rows(r, states, &a, touched(r, p->placed.order[i], &a));
        }
}

static void walk_forth(replicas *r)
{
    const gy_plan *p = r->p;
    gy_imap *states = gy_calloc(p->graph->buffers.count + 1, sizeof *states);
    r->failed = r->failed || !states;
    r->changed = false;
    if (states)
        leave(r, states);
    if (states)
        begin_with(r, states);
    for (uint32_t i = 0; i < p->flow->tasks && !r->failed; i++) {
        uint32_t task = p->placed.order[i];
        bring(r, task, false);
        for (uint32_t m = 0; gy_set_goes_on(&r->sets, r->mask[task], m); m++) {
            if (!gy_set_has(&r->sets, r->mask[task], m) || pays(r, task, m))
                continue;
            r->mask[task] = gy_set_without(&r->sets, r->mask[task], m);
            r->changed = true;
        }
        carry_out(r, task);
    }
    forget(states, p->graph->buffers.count);
    gy_free(states);
}

/* ---- the pass ---- */

static bool begin(replicas *r)
{
    const gy_plan *p = r->p;
    r->pure = gy_calloc(p->graph->nodes.count + 1, 1);
    r->mask = gy_calloc((size_t)p->flow->tasks + 1, sizeof *r->mask);
    r->rows = gy_calloc((size_t)p->flow->values + 1, sizeof *r->rows);
    r->kept = gy_calloc(p->graph->buffers.count + 1, sizeof *r->kept);
    r->device_of = gy_calloc(p->machine->memories, sizeof *r->device_of);
    r->own = gy_calloc(p->machine->memories, sizeof *r->own);
    gy_memory_sets_make(&r->sets, p->machine->memories);
    r->failed = r->failed || !r->pure || !r->mask || !r->rows || !r->kept || !r->device_of || !r->own;
    for (uint32_t m = 0; !r->failed && m < p->machine->memories; m++) {
        r->device_of[m] = gy_plan_device_of(p, m);
        r->own[m] = gy_set_one(&r->sets, m);
    }
    r->failed = r->failed || r->sets.failed;
    return !r->failed;
}

static void find(replicas *r)
{
    walk_back(r, false); /* without replicas: where states are wanted at the beginning */
    copy_states(r, r->rows, r->kept);
    walk_back(r, true);
    r->changed = true;
    for (int i = 0; i < ROUNDS && r->changed && !r->failed; i++)
        walk_forth(r);
    walk_back(r, false);
}

static void end(replicas *r)
{
    forget(r->rows, r->p->flow->values);
    forget(r->kept, r->p->graph->buffers.count);
    gy_free(r->pure);
    gy_free(r->mask);
    gy_free(r->rows);
    gy_free(r->kept);
    gy_free(r->device_of);
    gy_free(r->own);
    gy_memory_sets_free(&r->sets);
}

static gantry_status write_down(const replicas *r, gantry_error *err)
{
    gy_plan *p = r->p;
    p->placed.replica_first = gy_calloc((size_t)p->flow->tasks + 1, sizeof *p->placed.replica_first);
    if (!p->placed.replica_first)
        return gy_fail_nomem(err);
    for (uint32_t task = 0; task < p->flow->tasks; task++) {
        for (uint32_t m = 0; gy_set_goes_on(&r->sets, r->mask[task], m); m++)
            if (gy_set_has(&r->sets, r->mask[task], m) &&
                !gy_vec_push(&p->placed.replica, ((gy_replica){ task, r->device_of[m] })))
                return gy_fail_nomem(err);
        p->placed.replica_first[task + 1] = (uint32_t)p->placed.replica.count;
    }
    return GANTRY_OK;
}

static bool has_states(const gy_plan *p)
{
    bool has = false;
    for (uint32_t b = 0; b < p->graph->buffers.count; b++)
        has = has || p->graph->buffers.at[b].cls == GANTRY_STATE;
    return has;
}

/* A policy that was named, and a proved optimum, carry out each task once; so does a machine without contention, for
 * which the answers of the literature hold. */
static bool is_asked(const gy_plan *p, const gy_options *o)
{
    uint32_t tasks = p->flow->tasks;
    return p->machine->contention && p->workers > 1 && p->attempt->in_flight == 1 && !o->policy && !o->optimal &&
           o->effort > 0 && (tasks <= FEW_TASKS || (tasks <= TASKS && has_states(p)));
}

gantry_status gy_place_anywhere(gy_plan *p, gantry_error *err)
{
    if (!p->attempt->replicate || p->workers < 2)
        return GANTRY_OK;
    p->placed.anywhere = gy_arena_calloc(&p->arena, p->graph->nodes.count + 1, sizeof *p->placed.anywhere);
    if (!p->placed.anywhere)
        return gy_fail_nomem(err);
    (void)find_pure(p, p->placed.anywhere);
    for (uint32_t n = 0; n < p->graph->nodes.count; n++)
        p->placed.anywhere[n] = p->placed.anywhere[n] && is_cheap(p, n, 0, 1) && is_cheap(p, n, 1, 0);
    return GANTRY_OK;
}

static bool changes_state(const replicas *r, uint32_t task)
{
    bool changes = false;
    for (uint32_t k = 0; k < accesses_of(r, task); k++) {
        seen a = access_of(r, task, k);
        changes = changes || (a.mode != GANTRY_READ && is_state(r, a.value));
    }
    return changes;
}

/* Of many tasks only what a training step has: a state that all devices use, and that each could change by itself. */
static bool is_worth_a_plan(const replicas *r, uint32_t task)
{
    return r->mask[task] && (r->p->flow->tasks <= FEW_TASKS || changes_state(r, task));
}

gantry_status gy_plan_replicas(gy_plan *p, const gy_options *o, gantry_error *err)
{
    replicas r = { .p = p };
    gantry_status status = GANTRY_OK;
    if (!is_asked(p, o) ||
        (p->attempt->settled && !p->attempt->replicate)) /* then nobody asks whether there could be */
        return GANTRY_OK;
    if (begin(&r) && find_pure(p, r.pure))
        find(&r);
    r.failed = r.failed || r.sets.failed;
    for (uint32_t task = 0; r.mask && !r.failed && task < p->flow->tasks && !p->placed.replicable; task++)
        p->placed.replicable = is_worth_a_plan(&r, task);
    if (r.failed)
        status = gy_fail_nomem(err);
    else if (p->placed.replicable && p->attempt->replicate)
        status = write_down(&r, err);
    end(&r);
    return status;
}
