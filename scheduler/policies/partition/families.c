/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/partition/families.h"

#include "scheduler/cost/cost.h"
#include <string.h>

#define SLIGHT 4 /* what joins a family takes no more than one part of so many of its time */

/* Key of maps from rows, by where they begin in a value. Rows that begin elsewhere are others here, which costs a
 * family, never a correct schedule. */
static uint64_t key_of(const gy_plan *p, size_t access)
{
    const gy_access *a = gy_flow_access_of(p->graph, p->flow, access);
    return gy_hash64(p->flow->access[access].value) + gy_hash64((uint64_t)a->first + 1) * 3;
}

/* ---- who goes on with whom ---- */

typedef GY_VEC(gy_shared_tie) shared_ties;

typedef struct bond {
    uint32_t from; /* GY_NONE: nobody */
    int strength;  /* 2: changes its rows in place; 1: writes the same rows of a buffer */
    int64_t bytes;
} bond;

typedef struct finder {
    const gy_plan *p;
    bond *bond;         /* per task: to the one that it would go on with */
    uint32_t *follower; /* per task: who goes on with it */
    uint32_t *changes;  /* per task: whose rows it changes in place, or GY_NONE */
    uint32_t *place;    /* per task: whose rows it writes over, or GY_NONE */
} finder;

/* On the first device that can run it. */
static gy_ticks time_of(const gy_plan *p, uint32_t task)
{
    for (uint32_t d = 0; d < p->devices; d++) {
        gy_ticks t = gy_plan_time(p, p->flow->task[task].node, d);
        if (t < GY_TICKS_MAX)
            return t;
    }
    return 0;
}

/* May each of them run wherever the other may? */
static bool runs_alike(const gy_plan *p, uint32_t x, uint32_t y)
{
    for (uint32_t d = 0; d < p->devices; d++)
        if ((gy_plan_time(p, p->flow->task[x].node, d) < GY_TICKS_MAX) !=
            (gy_plan_time(p, p->flow->task[y].node, d) < GY_TICKS_MAX))
            return false;
    return true;
}

static bool is_write(const gy_access *a)
{
    return a->mode == GANTRY_WRITE || a->mode == GANTRY_READWRITE;
}

const gy_access *gy_families_place(const gy_plan *p, uint32_t task)
{
    const gy_task *t = &p->flow->task[task];
    for (uint32_t k = 0; k < p->graph->nodes.at[t->node].accesses; k++) {
        const gy_access *a = gy_flow_access_of(p->graph, p->flow, t->access + k);
        if (is_write(a))
            return a;
    }
    return NULL;
}

/* Do they write the same rows, of one buffer or of two that are cut alike? */
static bool is_in_same_place(const gy_plan *p, uint32_t x, uint32_t y)
{
    const gy_access *a = gy_families_place(p, x), *b = gy_families_place(p, y);
    return a && b && a->first == b->first && a->last == b->last &&
           p->graph->buffers.at[a->buffer].rows == p->graph->buffers.at[b->buffer].rows;
}

static bool note_writes(finder *f)
{
    const gy_plan *p = f->p;
    gy_map written = { 0 };
    bool done = true;
    for (uint32_t t = 0; t < p->flow->tasks && done; t++) {
        const gy_task *task = &p->flow->task[t];
        f->changes[t] = f->place[t] = GY_NONE;
        for (uint32_t k = 0; k < p->graph->nodes.at[task->node].accesses && done; k++) {
            const gy_access *a = gy_flow_access_of(p->graph, p->flow, task->access + k);
            uint64_t last, key = key_of(p, task->access + k);
            if (!is_write(a))
                continue;
            uint32_t *who = a->mode == GANTRY_READWRITE ? &f->changes[t] : &f->place[t];
            if (*who == GY_NONE && gy_map_get(&written, key, &last) && last != t)
                *who = (uint32_t)last;
            done = gy_map_put(&written, key, t);
        }
    }
    gy_map_free(&written);
    return done;
}

static bool is_stronger(const bond *a, const bond *b)
{
    if ((a->strength == 2) != (b->strength == 2))
        return a->strength == 2;
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->strength > b->strength;
}

/* The bond to a predecessor; false: there is none. */
static bool make_bond(const finder *f, uint32_t task, const gy_dep *d, bond *b)
{
    if (!(d->kinds & GY_DEP_DATA) || gy_plan_team(f->p, d->from))
        return false;
    *b = (bond){ .from = d->from, .bytes = d->bytes, .strength = f->changes[task] == d->from ? 2 : 0 };
    return true;
}

/* The strongest bond of a task, to one that has no follower yet if it has to be `free`. Of equals that in the middle: a
 * part between its neighbours. */
static bond find_bond(const finder *f, uint32_t task, bool free)
{
    const gy_flow *flow = f->p->flow;
    bond best = { .from = GY_NONE, .bytes = f->p->inputs.upload[task] - 1 }, b;
    uint32_t equals = 0, left;
    for (int round = 0; round < 2; round++) {
        left = (equals + 1) / 2;
        for (const gy_dep *d = gy_deps_begin(flow, task); d < gy_deps_end(flow, task); d++) {
            if (!make_bond(f, task, d, &b) || (free && f->follower[b.from] != GY_NONE) ||
                (b.bytes < best.bytes && b.strength < 2))
                continue;
            if (b.strength < 2)
                b.strength = is_in_same_place(f->p, b.from, task);
            bool stronger = is_stronger(&b, &best), equal = !stronger && !is_stronger(&best, &b);
            if (round == 0 && (stronger || equal)) {
                equals = stronger ? 1 : equals + 1;
                best = b;
            } else if (equal && left && --left == 0) {
                best.from = b.from;
            }
        }
    }
    return equals ? best : (bond){ .from = GY_NONE };
}

static int64_t bytes_of(const gy_plan *p, uint32_t task)
{
    const gy_task *t = &p->flow->task[task];
    int64_t bytes = 0;
    for (uint32_t k = 0; k < p->graph->nodes.at[t->node].accesses; k++)
        bytes += gy_access_bytes(p->graph, gy_flow_access_of(p->graph, p->flow, t->access + k));
    return bytes;
}

/* Most of what a task touches may be one input (the weights of a stage): then it goes on with the reader before it. */
static void prefer_input(const finder *f, const gy_shared_tie *tie)
{
    bond *b = &f->bond[tie->to];
    bool more = b->from == GY_NONE || tie->bytes > b->bytes;
    if (b->strength < 2 && more && tie->bytes > bytes_of(f->p, tie->to) / 2)
        *b = (bond){ .from = tie->from, .bytes = tie->bytes };
}

static void find_bonds(const finder *f, const shared_ties *ties)
{
    const gy_plan *p = f->p;
    size_t i = 0;
    for (uint32_t t = 0; t < p->flow->tasks; t++) {
        f->follower[t] = GY_NONE;
        f->bond[t] = gy_plan_team(p, t) ? (bond){ .from = GY_NONE } : find_bond(f, t, false);
        for (; i < ties->count && ties->at[i].to == t; i++)
            if (!gy_plan_team(p, t) && !gy_plan_team(p, ties->at[i].from))
                prefer_input(f, &ties->at[i]);
    }
}

static void choose_followers(const finder *f)
{
    const gy_plan *p = f->p;
    for (uint32_t t = 0; t < p->flow->tasks; t++) {
        const bond *b = &f->bond[t];
        if (b->from == GY_NONE)
            continue;
        uint32_t *now = &f->follower[b->from];
        const bond *other = *now == GY_NONE ? NULL : &f->bond[*now];
        bool longer = other && time_of(p, t) > time_of(p, *now);
        if (!other || is_stronger(b, other) || (!is_stronger(other, b) && longer))
            *now = t;
    }
    /* Those that were passed over may have as much of another. */
    for (uint32_t t = 0; t < p->flow->tasks; t++) {
        bond *b = &f->bond[t];
        if (b->from == GY_NONE || f->follower[b->from] == t)
            continue;
        bond other = find_bond(f, t, true);
        if (other.from == GY_NONE || other.bytes < b->bytes)
            continue;
        *b = other;
        f->follower[b->from] = t;
    }
}

/* ---- inputs that several read ---- */

/* From host memory, on average. */
static gy_ticks upload_time(const gy_plan *p, int64_t bytes)
{
    gy_ticks sum = 0;
    for (uint32_t d = 0; d < p->workers; d++)
        sum += gy_transfer_time(p, p->machine->memory[p->machine->device[d].memory].arrays,
                                p->machine->device[d].memory, bytes) /
               p->workers;
    return sum;
}

/* Each reader of rows of an input and the next, while they are as they came in: halos may have been written since. */
static bool list_shared(const gy_plan *p, shared_ties *ties)
{
    gy_map reader = { 0 };
    const uint64_t written = UINT64_MAX;
    bool done = true;
    for (uint32_t t = 0; t < p->flow->tasks && done; t++) {
        const gy_task *task = &p->flow->task[t];
        for (uint32_t k = 0; k < p->graph->nodes.at[task->node].accesses && done; k++) {
            const gy_access *a = gy_flow_access_of(p->graph, p->flow, task->access + k);
            uint64_t last, key = key_of(p, task->access + k);
            bool is_known = gy_map_get(&reader, key, &last);
            bool fresh = a->mode == GANTRY_READ && p->inputs.upload[t] >= gy_access_bytes(p->graph, a);
            if (a->mode != GANTRY_READ)
                done = gy_map_put(&reader, key, written);
            else if (!is_known && fresh)
                done = gy_map_put(&reader, key, t);
            if (!fresh || !is_known || last == written || last == t)
                continue;
            gy_shared_tie s = { .from = (uint32_t)last, .to = t, .bytes = gy_access_bytes(p->graph, a) };
            s.cost = upload_time(p, s.bytes);
            done = gy_vec_push(ties, s) && gy_map_put(&reader, key, t);
        }
    }
    gy_map_free(&reader);
    return done;
}

bool gy_families_share(gy_levels *l, const gy_plan *p)
{
    shared_ties ties = { 0 };
    bool done = list_shared(p, &ties);
    l->shared.at = ties.at;
    l->shared.count = ties.count;
    l->shared.capacity = ties.capacity;
    return done;
}

/* ---- families ---- */

/* By their first tasks, whose numbers are the least: those before a task are known when it is its turn. */
static void chain(const finder *f, uint32_t *family)
{
    const gy_plan *p = f->p;
    for (uint32_t t = 0; t < p->flow->tasks; t++) {
        uint32_t from = gy_plan_team(p, t) ? GY_NONE : f->bond[t].from;
        if (from == GY_NONE && !gy_plan_team(p, t) && f->place[t] != GY_NONE && !gy_plan_team(p, f->place[t]))
            from = f->place[t];
        else if (from != GY_NONE && f->follower[from] != t)
            from = GY_NONE;
        family[t] = from == GY_NONE || !runs_alike(p, from, t) ? t : family[from];
    }
}

/* Tasks of no family that take little go where they have most from, or where the same inputs are read. */
static bool join_alone(const finder *f, const shared_ties *ties, uint32_t *family)
{
    const gy_plan *p = f->p;
    uint32_t tasks = p->flow->tasks;
    gy_ticks *room = gy_calloc((size_t)tasks + 1, sizeof *room);
    uint32_t *members = gy_calloc((size_t)tasks + 1, sizeof *members), *by = gy_calloc((size_t)tasks + 1, sizeof *by);
    bool done = room && members && by;
    for (uint32_t t = 0; done && t < tasks; t++) {
        room[family[t]] = gy_ticks_both(room[family[t]], time_of(p, t) / SLIGHT);
        members[family[t]]++;
        by[t] = gy_plan_team(p, t) ? GY_NONE : f->bond[t].from;
    }
    for (size_t i = 0; done && i < ties->count; i++) {
        uint32_t one = ties->at[i].from, other = ties->at[i].to;
        by[one] = by[one] == GY_NONE ? other : by[one];
        by[other] = by[other] == GY_NONE ? one : by[other];
    }
    for (uint32_t t = 0; done && t < tasks; t++) {
        bool alone = members[family[t]] == 1 && by[t] != GY_NONE && !gy_plan_team(p, t);
        uint32_t to = alone ? family[by[t]] : t;
        if (!alone || members[to] < 2 || time_of(p, t) > room[to] || !runs_alike(p, to, t))
            continue;
        room[to] -= time_of(p, t);
        family[t] = to;
    }
    gy_free(room);
    gy_free(members);
    gy_free(by);
    return done;
}

bool gy_families_find(const gy_plan *p, uint32_t *family)
{
    size_t n = (size_t)p->flow->tasks + 1;
    shared_ties ties = { 0 };
    finder f = { .p = p, .bond = gy_calloc(n, sizeof *f.bond), .follower = gy_calloc(n, sizeof *f.follower) };
    f.changes = gy_calloc(n, sizeof *f.changes);
    f.place = gy_calloc(n, sizeof *f.place);
    bool done = f.bond && f.follower && f.changes && f.place && note_writes(&f) && list_shared(p, &ties);
    if (done) {
        find_bonds(&f, &ties);
        choose_followers(&f);
        chain(&f, family);
        done = join_alone(&f, &ties, family);
    }
    gy_vec_free(&ties);
    gy_free(f.bond);
    gy_free(f.follower);
    gy_free(f.changes);
    gy_free(f.place);
    return done;
}
