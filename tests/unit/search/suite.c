/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include "base/map.h"
#include "base/text.h"
#include "scheduler/pipeline/pipeline.h"
#include <stdio.h>
#include <string.h>

int pick(uint64_t *state, int n)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return (int)(gy_hash64(*state) % (uint64_t)n);
}

problem draw_problem(uint64_t seed, int tasks, int devices, bool pool)
{
    uint64_t state = seed * 7919;
    problem p = { .tasks = tasks, .devices = devices, .pool = pool };
    int density = 1 + pick(&state, 5);
    for (int t = 0; t < tasks; t++) {
        int all = 1 + pick(&state, 20);
        for (int d = 0; d < devices; d++)
            p.time[t][d] = pool ? all : 1 + pick(&state, 20);
        for (int from = 0; from < t; from++)
            if (pick(&state, 10) < density)
                p.bytes[from][t] = pool ? 1 : 1 + pick(&state, 15);
        p.input[t] = !pool && !pick(&state, 4) ? 1 + pick(&state, 12) : 0;
    }
    for (int t = 0; t < tasks; t++)
        p.output[t] = !pool && !pick(&state, 3) ? 1 + pick(&state, 25) : 0;
    return p;
}

placement draw_placement(const problem *p, uint64_t *state)
{
    placement at;
    bool done[MOST_TASKS] = { false };
    for (int k = 0; k < p->tasks; k++) {
        int ready[MOST_TASKS], count = 0;
        for (int t = 0; t < p->tasks; t++) {
            bool waits = done[t];
            for (int from = 0; from < t; from++)
                waits = waits || (p->bytes[from][t] && !done[from]);
            if (!waits)
                ready[count++] = t;
        }
        int t = ready[pick(state, count)];
        done[t] = true;
        at.order[k] = (uint32_t)t;
        at.device[t] = (uint32_t)pick(state, p->devices);
    }
    return at;
}

int fetch_of(const problem *p, const placement *at, uint32_t task)
{
    return p->output[task] * (at->device[task] % 2 ? 2 : 1);
}

int time_of(const problem *p, const placement *at, int *start, int *finish)
{
    int free_at[MOST_DEVICES] = { 0 }, makespan = 0;
    for (int k = 0; k < p->tasks; k++) {
        uint32_t t = at->order[k], d = at->device[t];
        start[t] = p->input[t] > free_at[d] ? p->input[t] : free_at[d];
        for (uint32_t from = 0; from < t; from++) {
            int arrival = finish[from] + (at->device[from] == d || p->pool ? 0 : p->bytes[from][t]);
            if (p->bytes[from][t] && arrival > start[t])
                start[t] = arrival;
        }
        finish[t] = free_at[d] = start[t] + p->time[t][d];
        int end = finish[t] + fetch_of(p, at, t);
        makespan = end > makespan ? end : makespan;
    }
    return makespan;
}

static void try_all(const problem *p, placement *at, int placed, int *best)
{
    int start[MOST_TASKS], finish[MOST_TASKS];
    problem part = *p;
    if (placed == p->tasks) {
        int makespan = time_of(&part, at, start, finish);
        *best = makespan < *best ? makespan : *best;
        return;
    }
    for (int t = 0; t < p->tasks; t++) {
        bool ready = true;
        for (int k = 0; k < placed; k++)
            ready = ready && at->order[k] != (uint32_t)t;
        for (int from = 0; from < t && ready; from++) {
            bool there = !p->bytes[from][t];
            for (int k = 0; k < placed; k++)
                there = there || at->order[k] == (uint32_t)from;
            ready = there;
        }
        at->order[placed] = (uint32_t)t;
        for (int d = 0; d < p->devices && ready; d++) {
            at->device[t] = (uint32_t)d;
            try_all(p, at, placed + 1, best);
        }
    }
}

int brute_force(const problem *p)
{
    placement at;
    int best = INT32_MAX;
    try_all(p, &at, 0, &best);
    return best;
}

bool is_topological(const problem *p, const uint32_t *order)
{
    int position[MOST_TASKS];
    memset(position, -1, sizeof position);
    for (int k = 0; k < p->tasks; k++)
        position[order[k]] = k;
    for (int t = 0; t < p->tasks; t++)
        for (int from = 0; from < t; from++)
            if (position[t] < 0 || (p->bytes[from][t] && position[from] > position[t]))
                return false;
    return true;
}

/* ---- the same for the library ---- */

gantry_machine *make_machine(int devices)
{
    gantry_machine *m = NULL;
    gantry_error err;
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"name\":\"us\",\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}");
    for (int i = 0; i < devices; i++)
        gy_text_printf(&t, ",{\"id\":\"m%d\",\"capacity\":\"1GiB\"}", i);
    gy_text_add(&t, "],\"devices\":[");
    for (int i = 0; i < devices; i++)
        gy_text_printf(&t, "%s{\"id\":\"d%d\",\"memory\":\"m%d\"}", i ? "," : "", i, i);
    gy_text_add(&t, "],\"routes\":[{\"from\":\"*\",\"to\":\"m*\",\"bandwidth_gbs\":0.001}");
    for (int i = 0; i < devices; i++)
        gy_text_printf(&t, ",{\"from\":\"m%d\",\"to\":\"host\",\"bandwidth_gbs\":%s}", i, i % 2 ? "0.0005" : "0.001");
    gy_text_add(&t, "],\"model\":{\"contention\":\"off\",\"launch_us\":0}}");
    ck_assert(!t.failed);
    if (gantry_machine_parse(&m, t.at, t.length, "us", &err))
        ck_abort_msg("%s", err.text);
    gy_text_free(&t);
    return m;
}

static gantry_buffer make_buffer(gantry_graph *g, const char *kind, int from, int to, int bytes)
{
    char name[40];
    int64_t shape[1] = { bytes };
    snprintf(name, sizeof name, "%s%d_%d", kind, from, to);
    return gantry_graph_buffer(g, name, GANTRY_U8, 1, shape);
}

/* The dependencies of a pool are plain order. */
gantry_graph *make_graph(const problem *p)
{
    gantry_graph *g = gantry_graph_new("problem");
    gantry_node node[MOST_TASKS];
    gantry_buffer edge[MOST_TASKS][MOST_TASKS];
    for (int t = 0; t < p->tasks; t++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", t);
        node[t] = gantry_graph_work(g, id);
        gantry_node_time(g, node[t], NULL, p->time[t][0]); /* on other machines */
        for (int d = 0; d < p->devices; d++) {
            snprintf(id, sizeof id, "d%d", d);
            gantry_node_time(g, node[t], id, p->time[t][d]);
        }
        if (p->input[t]) {
            gantry_buffer in = make_buffer(g, "in", t, t, p->input[t]);
            gantry_buffer_init_value(g, in, 0);
            gantry_node_read(g, node[t], gantry_all(in));
        }
        if (p->output[t]) {
            gantry_buffer out = make_buffer(g, "out", t, t, p->output[t]);
            gantry_buffer_output(g, out);
            gantry_node_write(g, node[t], gantry_all(out));
        }
        for (int from = 0; from < t; from++) {
            if (!p->bytes[from][t])
                continue;
            if (p->pool)
                gantry_node_after(g, node[t], node[from]);
            else
                gantry_node_read(g, node[t], gantry_all(edge[from][t]));
        }
        for (int to = t + 1; to < p->tasks; to++)
            if (p->bytes[t][to] && !p->pool) {
                edge[t][to] = make_buffer(g, "e", t, to, p->bytes[t][to]);
                gantry_node_write(g, node[t], gantry_all(edge[t][to]));
            }
    }
    return g;
}

gantry_graph *graph_with_contention(uint64_t seed)
{
    gantry_graph *g = gantry_graph_new("contention");
    int64_t shape[1] = { 400000 };
    gantry_buffer all = gantry_graph_buffer(g, "all", GANTRY_U8, 1, shape), made[14];
    gantry_buffer_split(g, all, 8);
    gantry_buffer_init_value(g, all, 0);
    for (int t = 0; t < 14; t++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", t);
        gantry_node n = gantry_graph_work(g, NULL);
        gantry_node_time(g, n, NULL, 5 + pick(&seed, 60));
        gantry_node_read(g, n, gantry_part(all, t % 8));
        for (int k = 0; k < t; k++)
            if (!pick(&seed, 6))
                gantry_node_read(g, n, gantry_rows(made[k], 0, 1000 * (1 + t)));
        made[t] = gantry_graph_buffer(g, name, GANTRY_U8, 1, shape);
        gantry_node_write(g, n, gantry_all(made[t]));
    }
    return g;
}

void bench_of(bench *b, gantry_graph *graph, gantry_machine *machine)
{
    gantry_error err;
    *b = (bench){ .graph = graph, .machine = machine };
    gantry_status status = gantry_graph_check(graph, &err);
    if (!status)
        status = gy_plan_init(&b->plan, graph, machine, &gy_policy_replay, NULL, &err);
    if (!status)
        status = gy_plan_prepare(&b->plan, &err);
    if (!status)
        status = gy_model_make(&b->model, &b->plan, true, &err);
    ck_assert_msg(!status, "%s", err.text);
}

void bench_open(bench *b, const problem *p)
{
    bench_of(b, make_graph(p), make_machine(p->devices));
    ck_assert_uint_eq(b->model.tasks, (unsigned)p->tasks);
}

void bench_close(bench *b)
{
    gy_model_free(&b->model);
    gy_plan_free(&b->plan);
    gantry_graph_free(b->graph);
    gantry_machine_free(b->machine);
}

void candidate_of(gy_candidate *c, const bench *b, const placement *at)
{
    ck_assert(gy_candidate_init(c, b->model.tasks));
    memcpy(c->order, at->order, c->tasks * sizeof *c->order);
    memcpy(c->device, at->device, c->tasks * sizeof *c->device);
}

placement placement_of(const gy_candidate *c)
{
    placement at;
    memcpy(at.order, c->order, c->tasks * sizeof *c->order);
    memcpy(at.device, c->device, c->tasks * sizeof *c->device);
    return at;
}
