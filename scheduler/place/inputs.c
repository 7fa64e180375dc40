/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Where the data of tasks come from, before anything is placed: bytes that must come up from bound inputs, and for
 * collectives the task that last wrote what each rank gives. Walks the tasks once with a map of last writers, over the
 * values that matter for either.
 */
#include "scheduler/place/inputs.h"

#include "base/error.h"
#include "base/imap.h"
#include "scheduler/cost/cost.h"

typedef struct walk {
    gy_plan *p;
    uint8_t *follow; /* per value */
    gy_imap *map;    /* per followed value: payload 0: as at the start; t + 1: written by task t */
} walk;

static bool is_input(const gy_plan *p, uint32_t value)
{
    return p->flow->value[value].generation == 0 && gy_value_buffer(p->graph, p->flow, value)->cls == GANTRY_INPUT;
}

static bool makes_ranks(const gy_plan *p, uint32_t task)
{
    return gy_plan_node(p, task)->kind == GY_NODE_COLLECTIVE;
}

static void mark_followed(walk *w)
{
    const gy_plan *p = w->p;
    for (uint32_t v = 0; v < p->flow->values; v++)
        w->follow[v] = is_input(p, v);
    for (uint32_t t = 0; t < p->flow->tasks; t++)
        if (makes_ranks(p, t))
            for (uint32_t k = 0; k < gy_plan_extra(p, p->flow->task[t].node)->ins; k++)
                w->follow[p->flow->access[p->flow->task[t].access + k].value] = 1;
}

/* Bytes of the region that are still as at the start; *writer: who wrote most of the rest, GY_NONE for nobody. */
static int64_t look(walk *w, uint32_t value, const gy_access *a, uint32_t *writer)
{
    const gy_buffer *b = gy_value_buffer(w->p->graph, w->p->flow, value);
    int64_t fresh = 0, most = 0;
    *writer = GY_NONE;
    for (uint32_t i = gy_imap_find(&w->map[value], a->first); i != GY_IMAP_NONE; i = gy_imap_next(&w->map[value], i)) {
        const gy_interval *v = &w->map[value].at[i];
        if (v->first >= a->last)
            break;
        int64_t low = v->first > a->first ? v->first : a->first, high = v->last < a->last ? v->last : a->last;
        int64_t bytes = gy_buffer_span(b, low, high);
        fresh += v->payload ? 0 : bytes;
        if (v->payload && bytes > most) {
            most = bytes;
            *writer = (uint32_t)(v->payload - 1);
        }
    }
    return fresh;
}

static gantry_status fix_ranks(gy_plan *p, uint32_t node, gy_team *team, gantry_error *err)
{
    const gy_node_extra *x = gy_plan_extra(p, node);
    gantry_status status = GANTRY_OK;
    if (!x->rank_on.count)
        return GANTRY_OK;
    team->fixed = gy_arena_alloc(&p->arena, team->ranks * sizeof *team->fixed);
    if (!team->fixed)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < team->ranks && !status; i++)
        status = gy_plan_on_rank(p, node, i, &team->fixed[i], err);
    return status;
}

static gantry_status add_team(gy_plan *p, uint32_t task, gy_team **team, gantry_error *err)
{
    gy_team t = { .ranks = gy_node_ranks(p->graph, p->flow->task[task].node) };
    t.writer = gy_arena_alloc(&p->arena, (t.ranks + 1) * sizeof *t.writer);
    t.writer_rank = gy_arena_calloc(&p->arena, t.ranks + 1, sizeof *t.writer_rank);
    t.device = gy_arena_alloc(&p->arena, (t.ranks + 1) * sizeof *t.device);
    if (!t.writer || !t.writer_rank || !t.device || !gy_map_put(&p->inputs.team_of, task, p->inputs.teams.count) ||
        !gy_vec_push(&p->inputs.teams, t))
        return gy_fail_nomem(err);
    *team = gy_vec_last(&p->inputs.teams);
    for (uint32_t i = 0; i < t.ranks; i++)
        t.writer[i] = t.device[i] = GY_NONE;
    return fix_ranks(p, p->flow->task[task].node, *team, err);
}

/* The rank that gives read k of a collective with `ins` reads. */
static uint32_t rank_of_read(const gy_node_extra *x, uint32_t k)
{
    return x->ins == 1 && x->root >= 0 ? (uint32_t)x->root : k;
}

/* The rank of a collective that writes most of the rows. */
static uint32_t rank_of_write(const gy_plan *p, uint32_t task, uint32_t value, const gy_access *a)
{
    const gy_task *t = &p->flow->task[task];
    const gy_node_extra *x = gy_plan_extra(p, t->node);
    uint32_t best = 0;
    int64_t most = 0;
    for (uint32_t k = x->ins; k < x->ins + x->outs; k++) {
        const gy_access *w = gy_flow_access_of(p->graph, p->flow, t->access + k);
        int64_t first = w->first > a->first ? w->first : a->first, last = w->last < a->last ? w->last : a->last;
        if (p->flow->access[t->access + k].value == value && last - first > most) {
            most = last - first;
            best = gy_access_rank(x, k);
        }
    }
    return best;
}

/* Notes who wrote what read k of a collective gives. */
static void note_writer(const gy_plan *p, uint32_t task, gy_team *team, uint32_t k, uint32_t writer)
{
    const gy_task *t = &p->flow->task[task];
    const gy_node_extra *x = gy_plan_extra(p, t->node);
    if (k >= x->ins)
        return;
    uint32_t rank = rank_of_read(x, k), value = p->flow->access[t->access + k].value;
    team->writer[rank] = writer;
    if (writer != GY_NONE && makes_ranks(p, writer))
        team->writer_rank[rank] = rank_of_write(p, writer, value, gy_flow_access_of(p->graph, p->flow, t->access + k));
}

static bool add_fresh(gy_plan *p, uint32_t task, const gy_buffer *b, int64_t bytes)
{
    gy_outside o = { task, gy_buffer_home(p->machine, b), bytes };
    if (o.memory == 0) {
        p->inputs.upload[task] += bytes;
        return true;
    }
    return bytes == 0 || gy_vec_push(&p->inputs.outside, o);
}

static gantry_status walk_task(walk *w, uint32_t task, gantry_error *err)
{
    gy_plan *p = w->p;
    const gy_task *t = &p->flow->task[task];
    const gy_node *n = &p->graph->nodes.at[t->node];
    gy_team *team = NULL;
    gantry_status status = makes_ranks(p, task) ? add_team(p, task, &team, err) : GANTRY_OK;
    for (uint32_t k = 0; k < n->accesses && !status; k++) {
        uint32_t value = p->flow->access[t->access + k].value, writer;
        const gy_access *a = gy_flow_access_of(p->graph, p->flow, t->access + k);
        if (!w->follow[value] || a->mode == GANTRY_WRITE)
            continue;
        int64_t fresh = look(w, value, a, &writer);
        if (is_input(p, value) && !add_fresh(p, task, gy_value_buffer(p->graph, p->flow, value), fresh))
            status = gy_fail_nomem(err);
        if (team)
            note_writer(p, task, team, k, writer);
    }
    for (uint32_t k = 0; k < n->accesses && !status; k++) {
        uint32_t value = p->flow->access[t->access + k].value;
        const gy_access *a = gy_flow_access_of(p->graph, p->flow, t->access + k);
        bool writes = w->follow[value] && a->mode != GANTRY_READ;
        if (writes && !gy_imap_set(&w->map[value], a->first, a->last, (uint64_t)task + 1))
            status = gy_fail_nomem(err);
    }
    return status;
}

gantry_status gy_plan_inputs(gy_plan *p, gantry_error *err)
{
    const gy_flow *f = p->flow;
    walk w = { p, gy_calloc((size_t)f->values + 1, 1), gy_calloc((size_t)f->values + 1, sizeof(gy_imap)) };
    p->inputs.upload = gy_calloc((size_t)f->tasks + 1, sizeof *p->inputs.upload);
    gantry_status status = w.follow && w.map && p->inputs.upload ? GANTRY_OK : gy_fail_nomem(err);
    uint32_t made = 0;
    if (status)
        goto free_walk;
    mark_followed(&w);
    for (; made < f->values && !status; made++)
        if (w.follow[made] && !gy_imap_init(&w.map[made], 0, gy_value_buffer(p->graph, f, made)->rows, 0))
            status = gy_fail_nomem(err);
    for (uint32_t t = 0; t < f->tasks && !status; t++)
        status = walk_task(&w, t, err);
    for (uint32_t v = 0; v < made; v++)
        if (w.follow[v])
            gy_imap_free(&w.map[v]);
free_walk:
    gy_free(w.map);
    gy_free(w.follow);
    return status;
}

size_t gy_outside_first(const gy_plan *p, uint32_t task)
{
    size_t low = 0, high = p->inputs.outside.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->inputs.outside.at[middle].task < task)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

gy_ticks gy_upload_time(const gy_plan *p, uint32_t task, uint32_t memory)
{
    gy_ticks most = gy_transfer_time(p, p->machine->memory[memory].arrays, memory, p->inputs.upload[task]);
    for (size_t i = gy_outside_first(p, task); i < p->inputs.outside.count && p->inputs.outside.at[i].task == task;
         i++) {
        gy_ticks time = gy_transfer_time(p, p->inputs.outside.at[i].memory, memory, p->inputs.outside.at[i].bytes);
        most = time > most ? time : most;
    }
    return most;
}
