/* SPDX-License-Identifier: Apache-2.0 */
#include "rings.h"

#include "schedule/schedule.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add_step(gantry_graph *g, const gantry_buffer x[2], int gpus, int lists, int step, int list)
{
    for (int side = 0; side < 2; side++) {
        char id[48], where[16];
        int from = (list + (side ? 1 : lists - 1)) % lists;
        snprintf(id, sizeof id, "s%d_%d_%d", step, list, side);
        snprintf(where, sizeof where, "gpu%d", list * gpus / lists);
        gantry_node node = gantry_graph_kernel(g, id, "axpby");
        gantry_node_scalar(g, node, "a", 0.25);
        gantry_node_arg(g, node, "x", gantry_part(x[step % 2], from));
        gantry_node_scalar(g, node, "b", 0.5);
        gantry_node_arg(g, node, "y", gantry_part(x[(step + 1) % 2], list));
        if (gpus)
            gantry_node_on(g, node, where);
    }
}

gantry_graph *ring_of(int gpus, int lists, int steps, int length, bool fetched)
{
    gantry_graph *g = gantry_graph_new("ring");
    const int64_t rows = (int64_t)lists * length;
    gantry_buffer x[2];
    for (int k = 0; k < 2; k++) {
        x[k] = gantry_graph_buffer(g, k ? "x1" : "x0", GANTRY_F32, 1, &rows);
        gantry_buffer_split(g, x[k], lists);
        gantry_buffer_init_iota(g, x[k]);
        gantry_buffer_set_class(g, x[k], GANTRY_STATE);
        if (fetched)
            gantry_buffer_output(g, x[k]);
    }
    for (int step = 0; step < steps; step++)
        for (int list = 0; list < lists; list++)
            add_step(g, x, gpus, lists, step, list);
    return g;
}

static gantry_node add_axpby(gantry_graph *g, int number, double a, gantry_buffer x, double b, gantry_buffer y)
{
    char id[24];
    snprintf(id, sizeof id, "n%d", number);
    gantry_node node = gantry_graph_kernel(g, id, "axpby");
    gantry_node_scalar(g, node, "a", a);
    gantry_node_arg(g, node, "x", gantry_all(x));
    gantry_node_scalar(g, node, "b", b);
    gantry_node_arg(g, node, "y", gantry_all(y));
    return node;
}

static gantry_buffer add_state(gantry_graph *g, const char *name, int64_t length)
{
    gantry_buffer b = gantry_graph_buffer(g, name, GANTRY_F32, 1, &length);
    gantry_buffer_init_iota(g, b);
    gantry_buffer_set_class(g, b, GANTRY_STATE);
    gantry_buffer_output(g, b);
    return b;
}

gantry_graph *flagged_of(int gpus, int length)
{
    gantry_graph *g = gantry_graph_new("flagged");
    const int64_t single = 1;
    gantry_buffer x[2] = { add_state(g, "x0", length), add_state(g, "x1", length) }, flag = add_state(g, "flag", 1);
    gantry_buffer one = gantry_graph_buffer(g, "one", GANTRY_F32, 1, &single);
    gantry_buffer_init_value(g, one, 1);
    for (int i = 0; i < FLAGGED; i++) {
        char where[2][16];
        snprintf(where[0], sizeof where[0], "gpu%d", i / 2 % gpus);
        snprintf(where[1], sizeof where[1], "gpu%d", i % gpus);
        if (i % 5) /* an odd number of changes */
            gantry_node_on(g, add_axpby(g, 2 * i, 1, one, -1, flag), where[0]);
        gantry_node step = add_axpby(g, 2 * i + 1, 0.5, x[i % 2], 0.75, x[1 - i % 2]);
        gantry_node_on(g, step, where[1]);
        gantry_node_when(g, step, gantry_all(flag));
    }
    return g;
}

enum { TEXT = 16384 };

/* Appends to a text of TEXT bytes. */
static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
    va_list list;
    size_t at = strlen(text);
    va_start(list, format);
    ck_assert_int_lt(vsnprintf(text + at, TEXT - at, format, list), (int)(TEXT - at));
    va_end(list);
}

gantry_machine *ring_machine(int gpus, int lanes)
{
    return small_machine(gpus, lanes, 0);
}

gantry_machine *small_machine(int gpus, int lanes, int processors)
{
    char text[TEXT] = "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}";
    gantry_machine *m = NULL;
    for (int i = 0; i < gpus; i++)
        add(text, ",{\"id\":\"gpu%d\",\"capacity\":\"64MiB\"}", i);
    add(text, "],\"devices\":[{\"id\":\"cpu\",\"type\":\"cpu\",\"memory\":\"host\"}");
    for (int i = 0; i < gpus; i++) {
        add(text, ",{\"id\":\"gpu%d\",\"type\":\"gpu\",\"memory\":\"gpu%d\",\"ordinal\":%d,\"lanes\":%d", i, i, i,
            lanes);
        if (processors)
            add(text, ",\"multiprocessors\":%d", processors);
        add(text, "}");
    }
    add(text, "],\"routes\":[{\"from\":\"gpu*\",\"to\":\"host\",\"both\":true,\"bandwidth_gbs\":10}");
    for (int i = 0; i < gpus; i++)
        for (int k = 0; k < i; k++)
            add(text, ",{\"from\":\"gpu%d\",\"to\":\"gpu%d\",\"both\":true,\"bandwidth_gbs\":100}", i, k);
    add(text, "]}");
    MUST(gantry_machine_parse(&m, text, strlen(text), "machine of the test", MUST_ERR));
    return m;
}

void compare_with_host(gantry_graph *g, gantry_schedule *s, int starts, char *replay, size_t size)
{
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    for (int start = 0; start < starts; start++) {
        results wanted = run_results(host, g), got = run_results(run, g);
        ck_assert_msg(same(&wanted, &got), "start %d", start);
    }
    snprintf(replay, size, "%s", replay_of(run));
    gantry_run_free(host);
    gantry_run_free(run);
}

spoiled_wait spoil_wait(gantry_schedule *s, char *named, size_t size)
{
    gy_counter_wait *wait = s->counters.wait.at;
    while (s->ops.at[wait->op].kind != GY_OP_LAUNCH) /* which workers carry out */
        wait++;
    spoiled_wait before = { wait, wait->value, wait->distance };
    wait->value = 1000;
    wait->distance = 0;
    snprintf(named, size, "; op %u, \"s", wait->op);
    return before;
}

void mend_wait(spoiled_wait spoiled)
{
    gy_counter_wait *wait = spoiled.wait;
    wait->value = spoiled.value;
    wait->distance = spoiled.distance;
}
