/* SPDX-License-Identifier: Apache-2.0 */
/* Making a flow: loops unrolled, names resolved to values. */
#include "base/error.h"
#include "base/map.h"
#include "graph/flow/flow_build.h"
#include "graph/nest.h"
#include "graph/phase.h"

#include <string.h>

enum {
    STEPS_PER_USE = 2, /* over pieces of buffers, for each dependency that is allowed */
    SHARED = 8         /* predecessors of a list that is worth looking for equal ones */
};

typedef struct builder {
    const gantry_graph *graph;
    gy_flow *flow;
    gy_track track;
    uint32_t *current;    /* by buffer: the value that its name means now */
    uint32_t *generation; /* by buffer: fresh values so far */
    uint32_t *first_task; /* by node: its task (of iteration 0) */
    GY_VEC(gy_value) values;
    GY_VEC(uint32_t) names; /* by value: buffers whose name means it now */
    GY_VEC(gy_dep) deps;
    gy_map lists;  /* hash of a long list -> the list */
    bool *touched; /* by buffer: something writes or carries it, or it begins undefined */
    uint32_t next_task;
    size_t next_access;
    bool forward; /* some `after` names a task that comes later */
} builder;

/* ---- sizes ---- */

/* Inner loops that have few tasks, or none, take time all the same. */
static gantry_status count_inner(const gantry_graph *graph, gantry_error *err)
{
    int64_t turns = 0, limit = gy_graph_limit(graph);
    for (size_t i = 0; i < graph->inner.count; i++) {
        const gy_loop *l = &graph->inner.at[i], *top = &graph->loops.at[l->top];
        int64_t around = l->parent == GY_NONE ? 1 : graph->inner.at[l->parent].turns;
        if (graph->phase && (l->top < graph->phase->phase.first_loop || l->top >= graph->phase->phase.last_loop))
            continue;
        int64_t more = gy_turns_times(gy_turns_times(top->unrolled, around), l->count ? gy_loop_shown(l) : 1);
        if (more > limit || (turns += more) > limit) {
            return gy_graph_fail(graph, l->origin, err, GANTRY_E_GRAPH,
                                 "the repeats inside of others have more than %lld iterations, the limit of a graph; "
                                 "repeat less often within one start, or raise the limit (--limits)",
                                 (long long)limit);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_flow_count(const gantry_graph *graph, uint32_t *tasks, uint32_t *accesses, gantry_error *err)
{
    const uint64_t most = GY_TRACK_DEFINED - 1;
    uint64_t t = 0, a = 0;
    for (uint32_t i = gy_graph_first_node(graph); i < gy_graph_last_node(graph); i++) {
        const gy_node *n = &graph->nodes.at[i];
        uint64_t times = (uint64_t)gy_node_tasks(graph, n);
        if (times > 1 && t + times > (uint64_t)gy_graph_limit(graph)) {
            return gy_graph_fail(graph, n->origin, err, GANTRY_E_GRAPH,
                                 "with node \"%s\", the repeats unroll to more than %lld tasks, the limit of a graph; "
                                 "repeat less often within one start, or raise the limit (--limits)",
                                 n->id, (long long)gy_graph_limit(graph));
        }
        if (times > most || t + times > most || a + times * n->accesses > most) {
            return gy_graph_fail(
                graph, n->origin, err, GANTRY_E_GRAPH,
                "with node \"%s\", the repeats unroll to more than %llu tasks or accesses; repeat less often "
                "within one start",
                n->id, (unsigned long long)most);
        }
        if (times > 1 && a + times * n->accesses > (uint64_t)gy_graph_most_uses(graph, t + times)) {
            return gy_graph_fail(graph, n->origin, err, GANTRY_E_GRAPH,
                                 "with node \"%s\", the repeats unroll to more than %lld accesses, the limit of a "
                                 "graph; repeat less often within one start, or raise the limit (--limits)",
                                 n->id, (long long)gy_graph_most_uses(graph, t + times));
        }
        t += times;
        a += times * n->accesses;
    }
    *tasks = (uint32_t)t;
    *accesses = (uint32_t)a;
    return count_inner(graph, err);
}

static void *array(uint64_t count, size_t item, bool *ok)
{
    void *memory = gy_calloc(count, item);
    *ok = *ok && memory;
    return memory;
}

/* Memory for everything whose size is known. Freed by the caller, also on failure. */
static bool allocate(builder *b, uint32_t tasks, uint32_t accesses)
{
    bool ok = true;
    size_t buffers = b->graph->buffers.count;
    gy_flow *f = b->flow;
    f->task = array(tasks, sizeof *f->task, &ok);
    f->access = array(accesses, sizeof *f->access, &ok);
    f->list = array(tasks, sizeof *f->list, &ok);
    f->dep_first = array((uint64_t)tasks + 1, sizeof *f->dep_first, &ok);
    f->entry = array(buffers, sizeof *f->entry, &ok);
    f->exit = array(buffers, sizeof *f->exit, &ok);
    b->current = array(buffers, sizeof *b->current, &ok);
    b->generation = array(buffers, sizeof *b->generation, &ok);
    b->touched = array(buffers, sizeof *b->touched, &ok);
    b->first_task = array(b->graph->nodes.count, sizeof *b->first_task, &ok);
    b->track.deps.seen = array(tasks, sizeof *b->track.deps.seen, &ok);
    f->tasks = tasks;
    f->accesses = accesses;
    return ok;
}

/* ---- values ---- */

/* A value of the buffer that no name means yet; GY_NONE: out of memory. */
static uint32_t add_value(builder *b, uint32_t buffer, bool defined)
{
    gy_value value = { buffer, b->generation[buffer] };
    if (b->values.count >= GY_NONE || !gy_vec_push(&b->values, value) || !gy_vec_push(&b->names, 0) ||
        !gy_track_add_value(&b->track, &b->graph->buffers.at[buffer], defined))
        return GY_NONE;
    b->generation[buffer]++;
    return (uint32_t)b->values.count - 1;
}

/* Weights and the like are read by many and cost nothing: neither written nor carried, and defined from the start. */
static void find_constants(builder *b)
{
    const gantry_graph *g = b->graph;
    for (uint32_t i = 0; i < g->buffers.count; i++)
        b->touched[i] = g->buffers.at[i].cls == GANTRY_TEMP;
    for (size_t i = 0; i < g->access.count; i++)
        b->touched[g->access.at[i].buffer] |= g->access.at[i].mode != GANTRY_READ;
    for (size_t i = 0; i < gy_loop_count(g); i++)
        for (size_t k = 0; k < gy_loop_at(g, i)->carry.count; k++)
            b->touched[gy_loop_at(g, i)->carry.at[k].prev] = b->touched[gy_loop_at(g, i)->carry.at[k].next] = true;
}

/* A phase begins with some rows of a buffer only, and with names that mean others' values. */
static bool add_entry(builder *b, uint32_t i)
{
    const gy_phase_context *x = b->graph->phase;
    bool ok = true;
    gy_rows rows;
    for (uint32_t run = 0; x->defined[i] && ok && gy_graph_entry_rows(b->graph, i, run, &rows); run++)
        ok = gy_track_define(&b->track, i, rows.first, rows.last);
    b->current[i] = x->entry[i];
    if (b->touched[i])
        b->touched[x->entry[i]] = true;
    return ok;
}

static bool add_buffers(builder *b)
{
    uint32_t buffers = (uint32_t)b->graph->buffers.count;
    const gy_phase_context *x = b->graph->phase;
    bool ok = true;
    find_constants(b);
    for (uint32_t i = 0; i < buffers && ok; i++) {
        bool defined = b->graph->buffers.at[i].cls != GANTRY_TEMP && !(x && x->defined[i]);
        ok = add_value(b, i, defined) != GY_NONE;
        b->current[i] = i;
    }
    for (uint32_t i = 0; i < buffers && ok && x; i++)
        ok = add_entry(b, i);
    for (uint32_t i = 0; i < buffers && ok; i++) {
        if (!b->touched[i])
            gy_track_set_constant(&b->track, i);
        b->flow->entry[i] = b->current[i];
        b->names.at[b->current[i]]++;
    }
    return ok;
}

/* From now on the name means another value. A value without a name is never touched again. */
static void rename_to(builder *b, uint32_t buffer, uint32_t value)
{
    uint32_t old = b->current[buffer];
    b->current[buffer] = value;
    b->names.at[value]++;
    if (--b->names.at[old] == 0)
        gy_track_drop_value(&b->track, old);
}

static bool begin_iteration(builder *b, const gy_loop *loop, int64_t it)
{
    for (size_t i = 0; i < loop->carry.count; i++) {
        uint32_t prev = loop->carry.at[i].prev, next = loop->carry.at[i].next;
        if (it > 0)
            rename_to(b, prev, b->current[next]);
        if (b->current[prev] == b->current[next]) {
            uint32_t fresh = add_value(b, next, false);
            if (fresh == GY_NONE)
                return false;
            rename_to(b, next, fresh);
        }
    }
    return true;
}

/* Both names mean the last `next`. */
static void end_loop(builder *b, const gy_loop *loop)
{
    for (size_t i = 0; loop->unrolled > 0 && i < loop->carry.count; i++)
        rename_to(b, loop->carry.at[i].prev, b->current[loop->carry.at[i].next]);
}

/* ---- tasks ---- */

static uint32_t task_of(const builder *b, uint32_t node, uint32_t iteration)
{
    const gantry_graph *g = b->graph;
    const gy_node *n = &g->nodes.at[node];
    uint64_t task = b->first_task[node], turn = iteration;
    for (uint32_t i = n->inner; i != GY_NONE; i = g->inner.at[i].parent) {
        const gy_loop *l = &g->inner.at[i];
        task += turn % (uint64_t)l->count * (uint64_t)l->tasks;
        turn /= (uint64_t)l->count;
    }
    return (uint32_t)(task + (n->loop == GY_NONE ? 0 : turn * (uint64_t)g->loops.at[n->loop].tasks));
}

static void wait_for(builder *b, uint32_t task)
{
    b->forward |= task > b->track.deps.task;
    gy_dep_set_add(&b->track.deps, task, GY_DEP_ORDER, 0);
}

static void add_afters(builder *b, const gy_node *n, uint32_t iteration)
{
    for (uint32_t i = 0; i < n->afters; i++) {
        uint32_t other = b->graph->after.at[n->after + i];
        int64_t first = 0, last = 0;
        if (gy_graph_has_node(b->graph, other)) /* else of an earlier phase */
            gy_node_partners(b->graph, n, &b->graph->nodes.at[other], iteration, &first, &last);
        for (int64_t k = first; k < last; k++)
            wait_for(b, task_of(b, other, (uint32_t)k));
    }
}

/* After a loop both names of a carried pair mean one value: rows of it must not be written twice by one task. */
static gantry_status check_aliases(const builder *b, const gy_node *n, gantry_error *err)
{
    const gy_access *at = gy_vec_from(&b->graph->access, n->access);
    for (uint32_t i = 1; i < n->accesses; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const gy_buffer *x = &b->graph->buffers.at[at[i].buffer], *y = &b->graph->buffers.at[at[k].buffer];
            if (at[i].buffer != at[k].buffer && b->current[at[i].buffer] == b->current[at[k].buffer] &&
                gy_rows_conflict(&at[i], &at[k])) {
                return gy_graph_fail(
                    b->graph, n->origin, err, GANTRY_E_GRAPH,
                    "node \"%s\" uses \"%s\" and \"%s\", which mean the same after the repeat that carries "
                    "them, and does not only read: use another buffer",
                    n->id, y->name, x->name);
            }
        }
    }
    return GANTRY_OK;
}

/* True if the node uses a value that has another name. */
static bool uses_alias(const builder *b, const gy_node *n)
{
    bool any = false;
    for (uint32_t i = 0; i < n->accesses; i++)
        any |= b->names.at[b->current[b->graph->access.at[n->access + i].buffer]] > 1;
    return any;
}

static gantry_status check_dependencies(const builder *b, const gy_node *n, gantry_error *err)
{
    int64_t most = gy_graph_most_uses(b->graph, b->flow->tasks);
    if ((int64_t)(b->flow->deps + b->track.deps.found.count) <= most)
        return GANTRY_OK;
    return gy_graph_fail(
        b->graph, n->origin, err, GANTRY_E_GRAPH,
        "with node \"%s\", the nodes have more than %lld dependencies, the limit of a graph; let fewer "
        "nodes use rows that many others use, or raise the limit (--limits)",
        n->id, (long long)most);
}

/* An earlier list that is equal to what was found, if both are long; else a list that there is not yet. */
static uint32_t find_list(builder *b, uint64_t hash)
{
    const gy_flow *f = b->flow;
    size_t count = b->track.deps.found.count, bytes = count * sizeof(gy_dep);
    uint64_t list;
    if (count < SHARED || !gy_map_get(&b->lists, hash, &list) || f->dep_first[list + 1] - f->dep_first[list] != count ||
        memcmp(b->deps.at + f->dep_first[list], b->track.deps.found.at, bytes) != 0)
        return f->lists;
    return (uint32_t)list;
}

static bool add_list(builder *b, uint64_t hash)
{
    gy_flow *f = b->flow;
    const gy_dep_set *deps = &b->track.deps;
    size_t first = b->deps.count, count = deps->found.count;
    if (!gy_vec_add(&b->deps, count) || (count >= SHARED && !gy_map_put(&b->lists, hash, f->lists)))
        return false;
    if (count)
        memcpy(b->deps.at + first, deps->found.at, count * sizeof *deps->found.at);
    f->dep_first[++f->lists] = b->deps.count;
    return true;
}

static bool finish_task(builder *b, uint32_t task)
{
    gy_dep_set *deps = &b->track.deps;
    gy_dep_set_sort(deps);
    size_t count = deps->found.count;
    uint64_t hash = count < SHARED ? 0 : gy_hash_bytes(deps->found.at, count * sizeof *deps->found.at, 0);
    b->flow->list[task] = find_list(b, hash);
    b->flow->deps += count;
    return !deps->failed && (b->flow->list[task] < b->flow->lists || add_list(b, hash));
}

static gantry_status add_task(builder *b, uint32_t node, uint32_t iteration, gantry_error *err)
{
    const gy_node *n = &b->graph->nodes.at[node];
    uint32_t task = b->next_task++;
    b->flow->task[task] = (gy_task){ node, iteration, (uint32_t)b->next_access };
    gy_dep_set_begin(&b->track.deps, task);
    gantry_status status = uses_alias(b, n) ? check_aliases(b, n, err) : GANTRY_OK;
    for (uint32_t i = 0; i < n->accesses && !status; i++) {
        const gy_access *a = &b->graph->access.at[n->access + i];
        uint32_t value = b->current[a->buffer];
        b->flow->access[b->next_access++] = (gy_flow_access){ value, n->access + i };
        status = gy_track_access(&b->track, node, iteration, value, a, err);
    }
    if (status)
        return status;
    add_afters(b, n, iteration);
    GY_TRY(check_dependencies(b, n, err));
    return finish_task(b, task) ? GANTRY_OK : gy_fail_nomem(err);
}

/* Refuses an `until` on rows that nothing has written when it is looked at. */
static gantry_status check_until(const builder *b, const gy_loop *loop, gantry_error *err)
{
    int64_t first = 0, last = b->graph->buffers.at[loop->until].rows;
    if (!gy_track_unwritten(&b->track, b->current[loop->until], &first, &last))
        return GANTRY_OK;
    return gy_graph_fail_in(b->graph, loop->origin, "/until", err, GANTRY_E_GRAPH,
                            "until watches \"%s\", which nothing has written at the end of an iteration; write it in "
                            "the repeat, or give it an init",
                            b->graph->buffers.at[loop->until].name);
}

static gantry_status add_inner(builder *b, const gy_loop *loop, uint32_t turn, gantry_error *err);

/* Nodes and the inner loops among them, in the `turn`th iteration of the loop around them. */
static gantry_status add_range(builder *b, const gy_range *range, uint32_t turn, gantry_error *err)
{
    const gantry_graph *g = b->graph;
    uint32_t node = range->first;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = range->inner; i < range->inner_last && !status; i = g->inner.at[i].inner_last) {
        for (; node < g->inner.at[i].first_node && !status; node++)
            status = add_task(b, node, turn, err);
        status = status ? status : add_inner(b, &g->inner.at[i], turn, err);
        node = g->inner.at[i].last_node;
    }
    for (; node < range->last && !status; node++)
        status = add_task(b, node, turn, err);
    return status;
}

/* All iterations of a loop, in the `turn`th iteration of the one around it. */
static gantry_status add_inner(builder *b, const gy_loop *loop, uint32_t turn, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    gy_range body = gy_loop_range(loop);
    for (int64_t it = 0; it < gy_loop_shown(loop) && !status; it++) {
        if (!begin_iteration(b, loop, it))
            return gy_fail_nomem(err);
        status = add_range(b, &body, turn * (uint32_t)loop->count + (uint32_t)it, err);
    }
    if (!status)
        end_loop(b, loop);
    return status;
}

static gantry_status add_loop(builder *b, const gy_loop *loop, gantry_error *err)
{
    GY_TRY(add_inner(b, loop, 0, err));
    return loop->unrolled > 0 && loop->until != GY_NONE ? check_until(b, loop, err) : GANTRY_OK;
}

/* Where the tasks of each node begin, the first of the range at `next`. Returns where they end. */
static uint32_t place_range(builder *b, const gy_range *range, uint32_t next)
{
    const gantry_graph *g = b->graph;
    uint32_t node = range->first;
    for (uint32_t i = range->inner; i < range->inner_last; i = g->inner.at[i].inner_last) {
        const gy_loop *l = &g->inner.at[i];
        gy_range body = gy_loop_range(l);
        for (; node < l->first_node; node++)
            b->first_task[node] = next++;
        place_range(b, &body, next);
        next += (uint32_t)(l->count * l->tasks);
        node = l->last_node;
    }
    for (; node < range->last; node++)
        b->first_task[node] = next++;
    return next;
}

/* Where the tasks of each node are going to be. */
static void place_tasks(builder *b)
{
    const gantry_graph *g = b->graph;
    uint32_t next = 0;
    for (uint32_t i = gy_graph_first_node(g); i < gy_graph_last_node(g);) {
        uint32_t loop = g->nodes.at[i].loop;
        if (loop == GY_NONE) {
            b->first_task[i++] = next++;
            continue;
        }
        gy_range body = gy_loop_range(&g->loops.at[loop]);
        place_range(b, &body, next);
        next += (uint32_t)(g->loops.at[loop].unrolled * g->loops.at[loop].tasks);
        i = body.last;
    }
}

static gantry_status add_tasks(builder *b, gantry_error *err)
{
    const gantry_graph *g = b->graph;
    gantry_status status = GANTRY_OK;
    uint32_t node = gy_graph_first_node(g), loops = (uint32_t)g->loops.count;
    for (uint32_t i = g->phase ? g->phase->phase.first_loop : 0;
         i < (g->phase ? g->phase->phase.last_loop : loops) && !status; i++) {
        for (; node < g->loops.at[i].first_node && !status; node++)
            status = add_task(b, node, 0, err);
        status = status ? status : add_loop(b, &g->loops.at[i], err);
        node = g->loops.at[i].last_node;
    }
    for (; node < gy_graph_last_node(g) && !status; node++)
        status = add_task(b, node, 0, err);
    return status;
}

/* ---- the end of a start ---- */

static gantry_status check_exit(const builder *b, uint32_t buffer, gantry_error *err)
{
    const gy_buffer *x = &b->graph->buffers.at[buffer];
    int64_t first = 0, last = x->rows;
    if ((!x->output && x->cls != GANTRY_STATE) || !gy_track_unwritten(&b->track, b->current[buffer], &first, &last))
        return GANTRY_OK;
    gy_text text = { 0 };
    gy_rows_text(&text, b->graph, buffer, first, last);
    gantry_status status =
        text.failed
            ? gy_fail_nomem(err)
            : gy_graph_fail(b->graph, x->origin, err, GANTRY_E_GRAPH,
                            "%s is %s at the end of a start, but nothing has written or initialised it; write it, or "
                            "give \"%s\" an init",
                            text.at, x->output ? "fetched" : "kept as state", x->name);
    gy_text_free(&text);
    return status;
}

static gantry_status finish(builder *b, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < b->graph->buffers.count && !status; i++) {
        b->flow->exit[i] = b->current[i];
        status = b->graph->phase ? GANTRY_OK : check_exit(b, i, err); /* a phase leaves what it has */
    }
    b->flow->value = b->values.at;
    b->flow->values = (uint32_t)b->values.count;
    b->flow->dep = b->deps.at;
    memset(&b->values, 0, sizeof b->values);
    memset(&b->deps, 0, sizeof b->deps);
    if (!status && b->forward)
        status = gy_flow_sort(b->flow, b->graph, err);
    return status;
}

static gantry_status build(builder *b, gantry_error *err)
{
    uint32_t tasks = 0, accesses = 0;
    GY_TRY(gy_flow_count(b->graph, &tasks, &accesses, err));
    if (!allocate(b, tasks, accesses) || !gy_vec_reserve(&b->deps, 1) || !add_buffers(b))
        return gy_fail_nomem(err);
    place_tasks(b);
    int64_t most = gy_graph_most_uses(b->graph, tasks);
    b->track.most_steps = most < INT64_MAX / STEPS_PER_USE ? most * STEPS_PER_USE : INT64_MAX;
    GY_TRY(add_tasks(b, err));
    return finish(b, err);
}

gantry_status gy_flow_make(gy_flow **flow, const gantry_graph *graph, gantry_error *err)
{
    builder b = { .graph = graph, .flow = gy_calloc(1, sizeof *b.flow), .track = { .graph = graph } };
    gantry_status status = b.flow ? build(&b, err) : gy_fail_nomem(err);
    gy_track_free(&b.track);
    gy_free(b.current);
    gy_free(b.generation);
    gy_free(b.first_task);
    gy_free(b.touched);
    gy_vec_free(&b.values);
    gy_vec_free(&b.names);
    gy_vec_free(&b.deps);
    gy_map_free(&b.lists);
    if (status) {
        gy_flow_free(b.flow);
        return status;
    }
    *flow = b.flow;
    return GANTRY_OK;
}

void gy_flow_free(gy_flow *flow)
{
    if (!flow)
        return;
    gy_free(flow->value);
    gy_free(flow->task);
    gy_free(flow->access);
    gy_free(flow->list);
    gy_free(flow->dep_first);
    gy_free(flow->dep);
    gy_free(flow->entry);
    gy_free(flow->exit);
    gy_free(flow);
}
