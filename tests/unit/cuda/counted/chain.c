/* SPDX-License-Identifier: Apache-2.0 */
#include "chain.h"

#include "schedule/schedule.h"
#include <stdio.h>
#include <string.h>

enum { COLUMNS = 3, SHIFT = 2 };

const gantry_dtype chain_types[CHAIN_TYPES] = { GANTRY_F16, GANTRY_BF16, GANTRY_F32, GANTRY_F64, GANTRY_I32 };

static gantry_buffer array(gantry_graph *g, const chain *c, const char *name, int number)
{
    char id[24];
    snprintf(id, sizeof id, "%s%d", name, number);
    return gantry_graph_buffer(g, id, c->dtype, 2, (int64_t[]){ c->ranks * c->rows, COLUMNS });
}

static gantry_region rows_of(const chain *c, gantry_buffer b, int rank, int64_t first)
{
    return gantry_rows(b, rank * c->rows + first, (rank + 1) * c->rows);
}

static void copy_all(gantry_graph *g, const chain *c, gantry_buffer from, gantry_buffer to)
{
    for (int r = 0; r < c->ranks; r++) {
        char where[24];
        snprintf(where, sizeof where, "gpu%d", r);
        gantry_node n = gantry_graph_kernel(g, NULL, "copy");
        gantry_node_arg(g, n, "x", rows_of(c, from, r, 0));
        gantry_node_arg(g, n, "y", rows_of(c, to, r, 0));
        gantry_node_on(g, n, where);
    }
}

static void add_sum(gantry_graph *g, const chain *c, gantry_buffer from, gantry_buffer to, const char *id, int k)
{
    gantry_region in[8], out[8];
    for (int r = 0; r < c->ranks; r++) {
        in[r] = rows_of(c, from, r, k * SHIFT % c->rows);
        out[r] = rows_of(c, to, r, k * SHIFT % c->rows);
    }
    gantry_graph_collective(g, id, GANTRY_ALL_REDUCE, k % 3 == 2 ? GANTRY_MAX : GANTRY_SUM, (size_t)c->ranks, in,
                            (size_t)c->ranks, out, 0);
}

/* x -> a -> sums from a to b, of fewer rows back, and so on (or all in a) -> y. Apart: each is copied to z, from which
 * the next one comes. */
static void add_chain(gantry_graph *g, const chain *c, int number)
{
    gantry_buffer x = array(g, c, "x", number), a = array(g, c, "a", number), y = array(g, c, "y", number);
    gantry_buffer b = c->in_place ? a : array(g, c, "b", number), z = c->apart ? array(g, c, "z", number) : b;
    if (c->dtype == GANTRY_I32)
        gantry_buffer_init_value(g, x, 3 + number);
    else
        gantry_buffer_init_uniform(g, x, (uint64_t)number + 1, -1, 1);
    gantry_buffer_output(g, y);
    copy_all(g, c, x, a);
    if (!c->in_place)
        copy_all(g, c, x, b);
    if (c->apart)
        copy_all(g, c, x, z);
    for (int k = 0; k < c->ops; k++) {
        char id[32];
        gantry_buffer from = c->apart ? (k % 2 ? z : a)
                             : k % 2  ? b
                                      : a,
                      to = c->in_place          ? from
                           : k % 2 && !c->apart ? a
                                                : b;
        snprintf(id, sizeof id, "it%d_%d", number, k);
        add_sum(g, c, from, to, id, k);
        if (c->apart)
            copy_all(g, c, to, k % 2 ? a : z);
    }
    copy_all(g, c, c->apart ? (c->ops % 2 ? z : a) : c->ops % 2 ? b : a, y);
}

static gantry_graph *graph_of(const chain *c)
{
    gantry_graph *g = gantry_graph_new("collectives that follow each other");
    for (int i = 0; i < c->chains; i++)
        add_chain(g, c, i);
    MUST(gantry_graph_check(g, MUST_ERR));
    return g;
}

static void force(gantry_schedule *s, bool by_nccl)
{
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE)
            s->ops.at[i].algorithm = by_nccl ? GY_ALGORITHM_NCCL : GY_ALGORITHM_COUNTERS;
}

const char *chain_name(const chain *c, const char *replay)
{
    static char text[160];
    snprintf(text, sizeof text, "%s, %d ranks, %d chains of %d, %d rows%s%s, replay %s", gantry_dtype_name(c->dtype),
             c->ranks, c->chains, c->ops, (int)c->rows, c->in_place ? ", in place" : "", c->apart ? ", apart" : "",
             replay);
    return text;
}

chain_problem chain_pose(const chain *c, const char *replay)
{
    chain_problem p = { .graph = graph_of(c), .machine = gpu_machine(c->ranks, false) };
    p.schedule = make_schedule(p.graph, p.machine, replay, "round-robin");
    force(p.schedule, c->by_nccl);
    gantry_run *host = open_run(p.schedule, "host");
    p.want = run_results(host, p.graph);
    gantry_run_free(host);
    return p;
}

void chain_put_away(chain_problem *p)
{
    gantry_schedule_free(p->schedule);
    gantry_machine_free(p->machine);
    gantry_graph_free(p->graph);
}

void chain_try(const chain *c, const chain_problem *p, const char *replay, int starts, bool meets)
{
    const char *what = chain_name(c, replay);
    gantry_run *run = open_run(p->schedule, "cuda");
    for (int start = 0; start < starts; start++) {
        results got = run_results(run, p->graph);
        ck_assert_msg(same(&got, &p->want), "%s, start %d: other results", what, start);
    }
    const char *told = replay_of(run);
    ck_assert_msg(strncmp(told, replay, strlen(replay)) == 0, "%s: %s", what, told);
    ck_assert_msg(!meets == !strstr(told, "meet by counters"), "%s: %s", what, told);
    gantry_run_free(run);
}
