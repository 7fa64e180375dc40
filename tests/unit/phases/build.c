/* SPDX-License-Identifier: Apache-2.0 */
#include "build.h"

gantry_buffer vector(gantry_graph *g, const char *name, int64_t rows)
{
    return gantry_graph_buffer(g, name, GANTRY_F64, 1, &rows);
}

static gantry_status run_scale(const gantry_launch *l)
{
    const double *from = l->arg[0].data, *factor = l->user;
    double *to = l->arg[1].data;
    for (int64_t i = 0; i < l->arg[1].rows; i++)
        to[i] = *factor * from[i];
    return GANTRY_OK;
}

gantry_node scale(gantry_graph *g, const char *id, gantry_region from, gantry_region to, double *factor)
{
    gantry_node n = gantry_graph_launch(g, id, run_scale, factor);
    gantry_node_read(g, n, from);
    gantry_node_write(g, n, to);
    return n;
}

static gantry_status run_add(const gantry_launch *l)
{
    *(double *)l->arg[1].data += *(const double *)l->arg[0].data;
    return GANTRY_OK;
}

gantry_node add_to(gantry_graph *g, const char *id, gantry_region from, gantry_region to)
{
    gantry_node n = gantry_graph_launch(g, id, run_add, NULL);
    gantry_node_read(g, n, from);
    gantry_node_reduce(g, n, to, GANTRY_SUM);
    return n;
}

static gantry_status run_flag(const gantry_launch *l)
{
    *(double *)l->arg[0].data = l->iteration + 1 >= *(const int64_t *)l->user;
    return GANTRY_OK;
}

gantry_node flag_at(gantry_graph *g, const char *id, gantry_region flag, int64_t *at)
{
    gantry_node n = gantry_graph_launch(g, id, run_flag, at);
    gantry_node_write(g, n, flag);
    return n;
}

gantry_schedule *plan(gantry_graph *g, int devices, int64_t unroll)
{
    gantry_error err = { 0 };
    gantry_machine *m = NULL;
    gantry_schedule *s = NULL;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.unroll = unroll;
    o.effort = 0;
    ck_assert_int_eq(gantry_machine_virtual(&m, devices, &err), GANTRY_OK);
    ck_assert_msg(!gantry_schedule_new(&s, g, m, &o, &err), "%s", err.text);
    gantry_machine_free(m);
    return s;
}

gantry_run *open_run(gantry_schedule *s, const char *backend, bool check)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    o.backend = backend;
    o.check = check;
    ck_assert_msg(!gantry_run_new(&run, s, &o, &err), "%s", err.text);
    return run;
}

void start(gantry_run *run)
{
    gantry_error err = { 0 };
    uint64_t ticket;
    ck_assert_msg(!gantry_run_start(run, &ticket, &err), "%s", err.text);
    ck_assert_msg(!gantry_run_wait(run, ticket, &err), "%s", err.text);
}

const double *result(gantry_run *run, gantry_buffer b)
{
    gantry_error err = { 0 };
    const void *at = NULL;
    uint64_t bytes;
    ck_assert_msg(!gantry_run_output(run, b, &at, &bytes, &err), "%s", err.text);
    return at;
}

uint64_t iterations(gantry_run *run)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    ck_assert_int_eq(gantry_run_get_info(run, &info, NULL), GANTRY_OK);
    return info.iterations;
}
