/* SPDX-License-Identifier: Apache-2.0 */
#include "gated.h"

#include "control.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool has_gates(gantry_run *run)
{
    static const char as[] = "graph, one for each GPU";
    const char *told = replay_of(run), *behind = told + strlen(as);
    return strncmp(told, as, strlen(as)) == 0 && (*behind == 0 || *behind == ';');
}

gantry_status start(gantry_run *run, gantry_error *err)
{
    uint64_t ticket = 0;
    gantry_status status = gantry_run_start(run, &ticket, err);
    return status ? status : gantry_run_wait(run, ticket, err);
}

void copies_by(int seed)
{
    if (seed % 2)
        setenv("GANTRY_CUDA_COPIES", "kernels:100000", 1);
    else
        unsetenv("GANTRY_CUDA_COPIES");
}

problem pose_graph(gantry_graph *g, int gpus, const char *policy)
{
    problem p = { .graph = g };
    fakeCudaDevices(gpus, "all", 0);
    p.machine = gpu_machine(gpus, false);
    p.schedule = make_schedule(p.graph, p.machine, "graph", policy);
    unsetenv("GANTRY_CUDA_GRAPHS");
    gantry_run *run = open_run(p.schedule, "cuda");
    for (int i = 0; i < STARTS; i++)
        p.want[i] = run_results(run, p.graph);
    ck_assert(!has_gates(run));
    gantry_run_free(run);
    setenv("GANTRY_CUDA_GRAPHS", "gpu", 1);
    return p;
}

problem pose(const graph_case *c, int gpus)
{
    return pose_graph(load_graph(c), gpus, "round-robin");
}

void put_away(problem *p)
{
    char text[160];
    gantry_schedule_free(p->schedule);
    gantry_machine_free(p->machine);
    gantry_graph_free(p->graph);
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

bool as_wanted(const problem *p, gantry_run *run)
{
    bool well = true;
    for (int i = 0; i < STARTS; i++) {
        results got = run_results(run, p->graph);
        well = well && same(&got, &p->want[i]);
    }
    return well;
}

void compare_with_host(gantry_graph *g, gantry_schedule *s, int seeds)
{
    gantry_run *host = open_run(s, "host");
    results want[STARTS];
    for (int i = 0; i < STARTS; i++)
        want[i] = run_results(host, g);
    gantry_run_free(host);
    for (int seed = 1; seed <= seeds; seed++) {
        fakeCudaSeed((uint64_t)seed);
        gantry_run *run = open_run(s, "cuda");
        for (int i = 0; i < STARTS; i++) {
            results got = run_results(run, g);
            ck_assert_msg(same(&got, &want[i]), "seed %d, start %d: other results than the host's", seed, i);
        }
        ck_assert_msg(has_gates(run), "seed %d: %s", seed, replay_of(run));
        gantry_run_free(run);
    }
}

gantry_graph *stencil(int gpus)
{
    char text[1000];
    gantry_graph *g = NULL;
    int length =
        snprintf(text, sizeof text,
                 "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f32\",\"shape\":[%d,1024],\"split\":%d,\"class\":"
                 "\"state\",\"init\":\"iota\",\"output\":true},\"b\":{\"dtype\":\"f32\",\"shape\":[%d,1024],"
                 "\"split\":%d,\"class\":\"state\",\"init\":0}},\"nodes\":[{\"repeat\":%d,\"nodes\":["
                 "{\"id\":\"to[i]\",\"for\":{\"i\":%d},\"kernel\":\"jacobi2d\",\"args\":{\"x\":\"a[i]~1\",\"y\":"
                 "\"b[i]\"},\"on\":\"i\"},{\"id\":\"fro[i]\",\"for\":{\"i\":%d},\"kernel\":\"jacobi2d\",\"args\":{"
                 "\"x\":\"b[i]~1\",\"y\":\"a[i]\"},\"on\":\"i\"}]}]}",
                 gpus, gpus, gpus, gpus, STEPS / 2, gpus, gpus);
    ck_assert_int_lt(length, (int)sizeof text);
    MUST(gantry_graph_parse(&g, text, (size_t)length, "text", NULL, NULL, MUST_ERR));
    return g;
}

gantry_graph *graph_of(const array *arrays, const step *steps)
{
    char text[8000];
    gantry_graph *g = NULL;
    int at = snprintf(text, sizeof text, "{\"gantry\":1,\"buffers\":{");
    for (const array *a = arrays; a->name; a++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s\"%s\":{\"dtype\":\"f32\",\"shape\":[%d]%s}",
                       a == arrays ? "" : ",", a->name, a->elements, a->more);
    at += snprintf(text + at, sizeof text - (size_t)at, "},\"nodes\":[");
    for (const step *n = steps; n->id; n++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"id\":\"%s\",\"kernel\":\"%s\",\"args\":{\"a\":2,\"x\":\"%s\",\"y\":\"%s\"},\"on\":"
                       "\"gpu%d\",\"cost\":{\"time_us\":{\"*\":%g}},\"after\":[%s]}",
                       n == steps ? "" : ",", n->id, n->kernel, n->x, n->y, n->gpu, n->us, n->after);
    at += snprintf(text + at, sizeof text - (size_t)at, "]}");
    ck_assert_int_lt(at, (int)sizeof text);
    MUST(gantry_graph_parse(&g, text, (size_t)at, "text", NULL, NULL, MUST_ERR));
    return g;
}
