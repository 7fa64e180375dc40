/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flow of thousands of small random graphs against a reference that shares no code and no idea with it: it looks
 * at all pairs of tasks and all rows one by one. Compared are: whether the graph is refused, the values that names
 * mean, the order relation (as a transitive closure: nothing missing, nothing too much), the bytes that flow along each
 * data dependency, and the order in which tasks are listed.
 */
#include "graph/flow/flow.h"
#include "unit/base/suite.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 9, BUFFERS = 5, NODES = 12, TASKS = 64, ACCESSES = 4, VALUES = 64, EDGES = 6 };

/* In place of the library's table: it is visible, so calls within gantry_internal reach it. */
GANTRY_API const gantry_kernel *const *gy_builtin_kernels(size_t *count)
{
    *count = 0;
    return NULL;
}

/* ---- the graph as the reference sees it ---- */

typedef struct ref_access {
    int buffer, first, last;
    gantry_access mode;
} ref_access;

typedef struct ref_node {
    ref_access access[ACCESSES];
    int accesses, loop; /* -1: none */
    int after[2], afters;
} ref_node;

typedef struct ref_loop {
    int first, last, count, prev[2], next[2], carries;
} ref_loop;

typedef struct ref_graph {
    int buffers, nodes, loops, parts;
    bool defined[BUFFERS], output[BUFFERS];
    ref_node node[NODES];
    ref_loop loop[2];
} ref_graph;

static uint64_t seed;

static int below(int n)
{
    return (int)(next_random(&seed) >> 33) % n;
}

/* ---- making one ---- */

static gantry_access random_mode(int mix)
{
    static const gantry_access plain[] = { GANTRY_READ, GANTRY_READ, GANTRY_WRITE, GANTRY_READWRITE };
    if (mix == 0)
        return plain[below(4)];
    int k = below(8);
    return k < 4 ? plain[k] : below(40) ? GANTRY_SUM : GANTRY_MAX;
}

/* A region and, by arithmetic of its own, the rows it means. */
static gantry_region random_region(const ref_graph *r, int buffer, int *first, int *last)
{
    gantry_buffer b = { .id = (uint32_t)buffer };
    int kind = below(4), i = below(r->parts), n = 1 + below(r->parts - i);
    int halo_before = below(3), halo_after = below(3);
    if (kind == 0) {
        *first = 0;
        *last = ROWS;
        return gantry_all(b);
    }
    if (kind == 1) {
        *first = below(ROWS + 1);
        *last = *first + below(ROWS + 1 - *first);
        return gantry_rows(b, *first, *last);
    }
    *first = i * ROWS / r->parts;
    *last = (i + n) * ROWS / r->parts;
    if (kind == 2 || *first == *last)
        return gantry_parts(b, i, i + n);
    *first = *first - halo_before < 0 ? 0 : *first - halo_before;
    *last = *last + halo_after > ROWS ? ROWS : *last + halo_after;
    return gantry_halo(gantry_parts(b, i, i + n), halo_before, halo_after);
}

static void add_access(gantry_graph *g, ref_graph *r, int node, int buffer, int mix)
{
    ref_node *n = &r->node[node];
    ref_access *a = &n->access[n->accesses++];
    gantry_node t = { .id = (uint32_t)node };
    a->buffer = buffer;
    a->mode = random_mode(mix);
    gantry_region region = random_region(r, buffer, &a->first, &a->last);
    switch (a->mode) {
    case GANTRY_READ:
        gantry_node_read(g, t, region);
        break;
    case GANTRY_WRITE:
        gantry_node_write(g, t, region);
        break;
    case GANTRY_READWRITE:
        gantry_node_readwrite(g, t, region);
        break;
    default:
        gantry_node_reduce(g, t, region, a->mode);
    }
}

static void begin_loop(gantry_graph *g, ref_graph *r, int node)
{
    ref_loop *loop = &r->loop[r->loops++];
    *loop = (ref_loop){ .first = node, .last = -1, .count = below(5) };
    gantry_graph_repeat(g, loop->count);
    loop->carries = r->buffers >= 4 ? below(3) : r->buffers >= 2 ? below(2) : 0;
    int at = below(r->buffers);
    for (int i = 0; i < loop->carries; i++) {
        loop->prev[i] = (at + 2 * i) % r->buffers;
        loop->next[i] = (at + 2 * i + 1) % r->buffers;
        gantry_graph_carry(g, (gantry_buffer){ .id = (uint32_t)loop->prev[i] },
                           (gantry_buffer){ .id = (uint32_t)loop->next[i] });
    }
}

static void add_node(gantry_graph *g, ref_graph *r, int loop, int mix)
{
    int node = r->nodes++;
    ref_node *n = &r->node[node];
    *n = (ref_node){ .loop = loop };
    gantry_graph_work(g, "n");
    int order[BUFFERS], wanted = below(ACCESSES);
    for (int i = 0; i < r->buffers; i++)
        order[i] = i;
    for (int i = 0; i < wanted; i++) {
        /* Mostly buffers that the node does not use yet: two accesses of one buffer are likely to be refused. */
        int k = i + below(r->buffers - (i < r->buffers ? i : 0) > 0 && i < r->buffers ? r->buffers - i : 1);
        int buffer = i < r->buffers ? order[k] : below(r->buffers);
        if (i < r->buffers)
            order[k] = order[i];
        if (below(60) == 0)
            buffer = below(r->buffers);
        add_access(g, r, node, buffer, mix);
    }
}

/* `forward`: some `after` may name a later node, and so make a circle. */
static void add_afters(gantry_graph *g, ref_graph *r, bool forward)
{
    for (int i = 0; i < 3 && r->nodes > 1; i++) {
        int a = below(r->nodes), b = below(r->nodes);
        ref_node *n = &r->node[a];
        if (a == b || (a < b && !forward) || n->afters == 2)
            continue;
        n->after[n->afters++] = b;
        gantry_node_after(g, (gantry_node){ .id = (uint32_t)a }, (gantry_node){ .id = (uint32_t)b });
    }
}

static gantry_graph *make(ref_graph *r)
{
    static const char *const names[BUFFERS] = { "a", "b", "c", "d", "e" };
    const int64_t shape[1] = { ROWS };
    gantry_graph *g = gantry_graph_new("random");
    *r = (ref_graph){ .buffers = 1 + below(BUFFERS), .parts = 1 + below(ROWS + 3) };
    bool all_defined = below(3) > 0;
    for (int i = 0; i < r->buffers; i++) {
        gantry_buffer b = gantry_graph_buffer(g, names[i], GANTRY_F32, 1, shape);
        gantry_buffer_split(g, b, r->parts);
        r->defined[i] = all_defined || below(3) > 0;
        r->output[i] = below(6) == 0;
        if (r->defined[i])
            gantry_buffer_init_value(g, b, 1);
        if (r->output[i])
            gantry_buffer_output(g, b);
    }
    int nodes = below(NODES + 1), mix = below(3), open = -1;
    for (int i = 0; i < nodes; i++) {
        if (open < 0 && r->loops < 2 && below(5) == 0) {
            open = r->loops;
            begin_loop(g, r, i);
        } else if (open >= 0 && below(3) == 0) {
            r->loop[open].last = i;
            gantry_graph_repeat_end(g);
            open = -1;
        }
        add_node(g, r, open, mix);
    }
    if (open >= 0) {
        r->loop[open].last = nodes;
        gantry_graph_repeat_end(g);
    }
    add_afters(g, r, below(4) == 0);
    return g;
}

/* ---- the reference ---- */

typedef struct ref_task {
    int node, iteration, value[ACCESSES];
} ref_task;

typedef struct ref_flow {
    ref_task task[TASKS];
    int tasks, values;
    int now[BUFFERS];          /* what names mean */
    bool before[TASKS][TASKS]; /* direct, then closed */
    long bytes[TASKS][TASKS];  /* rows of data that flow */
    bool refused;
} ref_flow;

static bool is_write(gantry_access m)
{
    return m != GANTRY_READ;
}

static bool is_part(gantry_access m)
{
    return m >= GANTRY_SUM;
}

static void run_node(const ref_graph *r, ref_flow *f, int node, int iteration)
{
    ref_task *t = &f->task[f->tasks++];
    assert_quietly(f->tasks <= TASKS);
    t->node = node;
    t->iteration = iteration;
    for (int i = 0; i < r->node[node].accesses; i++)
        t->value[i] = f->now[r->node[node].access[i].buffer];
}

/* The words of the design, one after the other. */
static void unroll_loop(const ref_graph *r, ref_flow *f, const ref_loop *loop)
{
    int last_next[2] = { 0, 0 };
    for (int it = 0; it < loop->count; it++) {
        for (int c = 0; c < loop->carries; c++) {
            int prev = loop->prev[c], next = loop->next[c];
            if (it > 0) {
                f->now[prev] = last_next[c];
                f->now[next] = f->values++;
            } else if (f->now[prev] == f->now[next]) {
                f->now[next] = f->values++;
            }
            last_next[c] = f->now[next];
        }
        for (int n = loop->first; n < loop->last; n++)
            run_node(r, f, n, it);
    }
    for (int c = 0; loop->count > 0 && c < loop->carries; c++)
        f->now[loop->prev[c]] = f->now[loop->next[c]] = last_next[c];
}

static void unroll(const ref_graph *r, ref_flow *f)
{
    f->values = r->buffers;
    for (int i = 0; i < r->buffers; i++)
        f->now[i] = i;
    for (int n = 0; n < r->nodes;) {
        if (r->node[n].loop < 0) {
            run_node(r, f, n++, 0);
        } else {
            unroll_loop(r, f, &r->loop[r->node[n].loop]);
            n = r->loop[r->node[n].loop].last;
        }
    }
}

static const ref_access *access_of(const ref_graph *r, const ref_task *t, int i)
{
    return &r->node[t->node].access[i];
}

static bool touches(const ref_access *a, int row)
{
    return a->first <= row && row < a->last;
}

/* The mode in which a task touches a row of a value; 0: not at all. */
static gantry_access mode_at(const ref_graph *r, const ref_task *t, int value, int row)
{
    for (int i = 0; i < r->node[t->node].accesses; i++)
        if (t->value[i] == value && touches(access_of(r, t, i), row))
            return access_of(r, t, i)->mode;
    return (gantry_access)0;
}

static void refuse_overlaps(const ref_graph *r, ref_flow *f)
{
    /* By buffer for every node, also of loops that run zero times; by value for every task. */
    for (int n = 0; n < r->nodes; n++) {
        for (int i = 0; i < r->node[n].accesses; i++) {
            for (int k = 0; k < i; k++) {
                const ref_access *a = &r->node[n].access[i], *b = &r->node[n].access[k];
                for (int row = 0; row < ROWS; row++) {
                    f->refused |= a->buffer == b->buffer && touches(a, row) && touches(b, row) &&
                                  (is_write(a->mode) || is_write(b->mode));
                }
            }
        }
    }
    for (int t = 0; t < f->tasks; t++) {
        const ref_node *n = &r->node[f->task[t].node];
        for (int i = 0; i < n->accesses; i++) {
            for (int k = 0; k < i; k++) {
                for (int row = 0; row < ROWS; row++) {
                    f->refused |= f->task[t].value[i] == f->task[t].value[k] && touches(&n->access[i], row) &&
                                  touches(&n->access[k], row) &&
                                  (is_write(n->access[i].mode) || is_write(n->access[k].mode));
                }
            }
        }
    }
}

static void order_pairs(const ref_graph *r, ref_flow *f)
{
    for (int t = 0; t < f->tasks; t++) {
        for (int u = 0; u < t; u++) {
            for (int value = 0; value < f->values; value++) {
                for (int row = 0; row < ROWS; row++) {
                    gantry_access a = mode_at(r, &f->task[u], value, row), b = mode_at(r, &f->task[t], value, row);
                    bool conflict = a && b && (is_write(a) || is_write(b)) && !(is_part(a) && is_part(b));
                    f->before[u][t] |= conflict;
                }
            }
        }
        const ref_node *n = &r->node[f->task[t].node];
        for (int i = 0; i < n->afters; i++) {
            for (int u = 0; u < f->tasks; u++) {
                bool one_loop = n->loop >= 0 && r->node[n->after[i]].loop == n->loop;
                f->before[u][t] |=
                    f->task[u].node == n->after[i] && (!one_loop || f->task[u].iteration == f->task[t].iteration);
            }
        }
    }
}

/* Looks back from a reader of a row: whose data does it see? Refuses rows that hold nothing. */
static bool look_back(const ref_graph *r, ref_flow *f, int reader, int value, int row, bool count)
{
    bool parts = false, older = false; /* older: contributions that were read before the last ones began */
    for (int u = reader - 1; u >= 0; u--) {
        gantry_access m = mode_at(r, &f->task[u], value, row);
        if (m == GANTRY_WRITE || m == GANTRY_READWRITE) {
            f->bytes[u][reader] += count;
            return true;
        }
        older |= m == GANTRY_READ && parts;
        if (is_part(m) && older)
            return true; /* a sum that was read is a value by itself: whoever read it stands between */
        if (is_part(m)) {
            f->bytes[u][reader] += count;
            parts = true;
        }
    }
    return parts || (value < r->buffers && r->defined[value]);
}

/* Contributions of another kind may only follow after a read or a write. */
static bool is_mixed(const ref_graph *r, const ref_flow *f, int task, int value, int row, gantry_access mode)
{
    for (int u = task - 1; u >= 0; u--) {
        gantry_access m = mode_at(r, &f->task[u], value, row);
        if (m)
            return is_part(m) && m != mode;
    }
    return false;
}

static void follow_rows(const ref_graph *r, ref_flow *f)
{
    for (int t = 0; t < f->tasks; t++) {
        const ref_node *n = &r->node[f->task[t].node];
        for (int i = 0; i < n->accesses; i++) {
            for (int row = n->access[i].first; row < n->access[i].last; row++) {
                gantry_access m = n->access[i].mode;
                if (m == GANTRY_READ || m == GANTRY_READWRITE)
                    f->refused |= !look_back(r, f, t, f->task[t].value[i], row, true);
                else if (is_part(m))
                    f->refused |= is_mixed(r, f, t, f->task[t].value[i], row, m);
            }
        }
    }
    for (int b = 0; b < r->buffers; b++)
        for (int row = 0; row < ROWS && r->output[b]; row++)
            f->refused |= !look_back(r, f, f->tasks, f->now[b], row, false);
}

static void close_order(ref_flow *f)
{
    for (int k = 0; k < f->tasks; k++) {
        for (int i = 0; i < f->tasks; i++)
            for (int j = 0; f->before[i][k] && j < f->tasks; j++)
                f->before[i][j] |= f->before[k][j];
    }
    for (int i = 0; i < f->tasks; i++)
        f->refused |= f->before[i][i];
}

/* Of the tasks that are ready the one added first. */
static void list_tasks(const ref_flow *f, int *order)
{
    bool done[TASKS] = { false };
    for (int i = 0; i < f->tasks; i++) {
        int t = 0;
        for (;; t++) {
            bool ready = !done[t];
            for (int u = 0; u < f->tasks; u++)
                ready &= done[u] || !f->before[u][t];
            if (ready)
                break;
        }
        done[t] = true;
        order[i] = t;
    }
}

/* ---- comparing ---- */

static int stat_refused, stat_circles, stat_forward, stat_deps, stat_tasks, stat_carried;

/* The reference's number of the task that the flow lists at `t`. */
static int ref_of(const ref_flow *f, const gy_task *task)
{
    for (int i = 0; i < f->tasks; i++)
        if (f->task[i].node == (int)task->node && f->task[i].iteration == (int)task->iteration)
            return i;
    ck_abort_msg("a task that should not be");
    return -1;
}

static void compare_order(const ref_flow *f, const gy_flow *flow, const int *ref)
{
    static bool closed[TASKS][TASKS];
    memset(closed, 0, sizeof closed);
    for (uint32_t t = 0; t < flow->tasks; t++) {
        uint32_t last = UINT32_MAX;
        for (const gy_dep *d = gy_deps_begin(flow, t); d < gy_deps_end(flow, t); d++) {
            assert_quietly(d->from < t && (last == UINT32_MAX || d->from > last));
            last = d->from;
            /* Predecessors come first, so theirs are closed. */
            closed[d->from][t] = true;
            for (uint32_t u = 0; u < t; u++)
                closed[u][t] |= closed[u][d->from];
            long bytes = f->bytes[ref[d->from]][ref[t]] * 4;
            assert_quietly(d->bytes == bytes && ((d->kinds & GY_DEP_DATA) != 0) == (bytes > 0));
            stat_deps++;
        }
    }
    for (uint32_t t = 0; t < flow->tasks; t++) {
        for (uint32_t u = 0; u < flow->tasks; u++) {
            if (closed[u][t] != f->before[ref[u]][ref[t]])
                ck_abort_msg("task %d %s task %d", ref[u], closed[u][t] ? "need not precede" : "must precede", ref[t]);
            bool linked = false;
            for (const gy_dep *d = gy_deps_begin(flow, t); d < gy_deps_end(flow, t); d++)
                linked |= d->from == u;
            assert_quietly(linked || f->bytes[ref[u]][ref[t]] == 0);
        }
    }
}

static void compare_values(const ref_graph *r, const ref_flow *f, const gantry_graph *g, const gy_flow *flow,
                           const int *ref)
{
    int to_ref[VALUES], to_flow[VALUES];
    memset(to_ref, -1, sizeof to_ref);
    memset(to_flow, -1, sizeof to_flow);
    for (uint32_t t = 0; t < flow->tasks; t++) {
        const ref_task *task = &f->task[ref[t]];
        for (int i = 0; i < r->node[task->node].accesses; i++) {
            const gy_flow_access *a = &flow->access[flow->task[t].access + (uint32_t)i];
            const gy_access *rows = &g->access.at[a->access];
            const ref_access *expected = access_of(r, task, i);
            int value = (int)a->value;
            assert_quietly(rows->first == expected->first && rows->last == expected->last);
            assert_quietly(rows->mode == expected->mode && (int)rows->buffer == expected->buffer);
            assert_quietly(to_ref[value] == -1 || to_ref[value] == task->value[i]);
            assert_quietly(to_flow[task->value[i]] == -1 || to_flow[task->value[i]] == value);
            to_ref[value] = task->value[i];
            to_flow[task->value[i]] = value;
            /* Values of generation 0 are the buffers themselves. */
            assert_quietly((task->value[i] < r->buffers) == (flow->value[value].generation == 0));
            assert_quietly(task->value[i] >= r->buffers || value == task->value[i]);
        }
    }
    for (int b = 0; b < r->buffers; b++) {
        assert_quietly(flow->entry[b] == (uint32_t)b);
        int value = (int)flow->exit[b];
        assert_quietly(to_ref[value] == -1 || to_ref[value] == f->now[b]);
        stat_carried += value != b;
    }
}

static void compare(const ref_graph *r, gantry_graph *g)
{
    static ref_flow f;
    memset(&f, 0, sizeof f);
    unroll(r, &f);
    refuse_overlaps(r, &f);
    if (!f.refused) {
        follow_rows(r, &f);
        order_pairs(r, &f);
        bool refused = f.refused;
        close_order(&f);
        stat_circles += f.refused && !refused;
    }
    gantry_error err;
    gantry_status status = gantry_graph_check(g, &err);
    ck_assert_msg(f.refused == (status != GANTRY_OK), "%s: %s", f.refused ? "should be refused" : "should be fine",
                  status ? err.text : "");
    stat_refused += f.refused;
    if (status)
        return;
    int order[TASKS], ref[TASKS];
    ck_assert_uint_eq(g->flow->tasks, (uint32_t)f.tasks);
    list_tasks(&f, order);
    for (uint32_t t = 0; t < g->flow->tasks; t++) {
        ref[t] = ref_of(&f, &g->flow->task[t]);
        assert_quietly(ref[t] == order[t]);
        stat_forward += ref[t] != (int)t;
    }
    stat_tasks += f.tasks;
    compare_order(&f, g->flow, ref);
    compare_values(r, &f, g, g->flow, ref);
}

START_TEST(random_graphs)
{
    for (uint64_t i = 1; i <= 40000; i++) {
        seed = i * UINT64_C(0x9E3779B97F4A7C15) + 1;
        ref_graph r;
        gantry_graph *g = make(&r);
        compare(&r, g);
        gantry_graph_free(g);
    }
    /* The generator reaches everything that is compared. */
    ck_assert_int_gt(stat_tasks, 80000);
    ck_assert_int_gt(stat_deps, 70000);
    ck_assert_int_gt(stat_refused, 1000);
    ck_assert_int_lt(stat_refused, 30000);
    ck_assert_int_gt(stat_circles, 20);
    ck_assert_int_gt(stat_forward, 100);
    ck_assert_int_gt(stat_carried, 500);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("flow_random");
    TCase *c = tcase_create("random");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, random_graphs);
    suite_add_tcase(s, c);
    return run_suite(s);
}
