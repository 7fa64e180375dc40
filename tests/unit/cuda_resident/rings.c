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

gantry_graph *pipeline_of(int gpus, int stages, int rows)
{
    gantry_graph *g = NULL;
    char text[8192];
    int at = snprintf(text, sizeof text,
                      "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[%d],\"class\":\"input\"},"
                      "\"one\":{\"dtype\":\"f32\",\"shape\":[%d],\"init\":1},"
                      "\"n\":{\"dtype\":\"f32\",\"shape\":[%d],\"init\":0,\"class\":\"state\",\"output\":true},"
                      "\"sum\":{\"dtype\":\"f32\",\"shape\":[%d],\"init\":0,\"class\":\"state\",\"output\":true},"
                      "\"out\":{\"dtype\":\"f32\",\"shape\":[%d],\"output\":true}",
                      rows, rows, rows, rows, rows);
    for (int k = 0; k < stages; k++)
        at += snprintf(text + at, sizeof text - (size_t)at, ",\"t%d\":{\"dtype\":\"f32\",\"shape\":[%d]}", k, rows);
    at +=
        snprintf(text + at, sizeof text - (size_t)at,
                 "},\"nodes\":[{\"id\":\"count\",\"on\":1,\"kernel\":\"saxpy\",\"args\":{\"a\":1,\"x\":\"one\",\"y\":"
                 "\"n\"}},{\"id\":\"s0\",\"on\":1,\"kernel\":\"add\",\"args\":{\"x\":\"x\",\"y\":\"n\",\"z\":\"t0\"}}");
    for (int k = 1; k < stages; k++)
        at += snprintf(
            text + at, sizeof text - (size_t)at,
            ",{\"id\":\"s%d\",\"on\":%d,\"kernel\":\"scale\",\"args\":{\"a\":0.5,\"x\":\"t%d\",\"y\":\"t%d\"}}", k,
            1 + k % gpus, k - 1, k);
    int last = stages - 1, on = 1 + last % gpus;
    at += snprintf(text + at, sizeof text - (size_t)at,
                   ",{\"id\":\"sum\",\"on\":%d,\"kernel\":\"saxpy\",\"args\":{\"a\":1,\"x\":\"t%d\",\"y\":\"sum\"}},"
                   "{\"id\":\"out\",\"on\":%d,\"kernel\":\"scale\",\"args\":{\"a\":2,\"x\":\"t%d\",\"y\":\"out\"}}]}",
                   on, last, on, last);
    ck_assert_int_lt(at, (int)sizeof text);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
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

static bool is_carried_out(const gantry_schedule *s, uint32_t id, const bool *done)
{
    bool all = true;
    for (size_t i = 0; i < s->counters.at.count; i++) {
        const gy_counter *c = &s->counters.at.at[i];
        for (uint32_t k = 0; k < c->waits; k++) {
            const gy_counter_wait *w = &s->counters.wait.at[c->wait + k];
            all = all && (w->op != id || w->distance > 0 || done[s->counters.signal.at[c->signal + w->value - 1]]);
        }
    }
    return all;
}

/* How many of the ops that signal a counter end in the first start, if one op never begins. */
static uint32_t signals_without(const gantry_schedule *s, uint32_t counter, uint32_t never)
{
    enum { MOST = 4096 };
    static bool done[MOST], held[MOST];
    uint32_t count = 0;
    ck_assert(s->ops.count <= MOST && s->lanes.count <= MOST);
    memset(held, 0, sizeof held);
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        done[i] = i != never && is_carried_out(s, i, done);
        for (uint32_t k = 0; k < op->lanes; k++)
            done[i] = done[i] && !held[s->op_lane.at[op->lane + k]];
        for (uint32_t k = 0; k < op->lanes; k++)
            held[s->op_lane.at[op->lane + k]] = !done[i];
    }
    for (uint32_t k = 0; k < s->counters.at.at[counter].signals; k++)
        count += done[s->counters.signal.at[s->counters.at.at[counter].signal + k]];
    return count;
}

static const char *device_of(const gantry_schedule *s, uint32_t lane)
{
    return s->machine->device[s->lanes.at[lane].device].id;
}

static gy_counter_wait *find_wait(const gantry_schedule *s, bool stream)
{
    gy_counter_wait *wait = s->counters.wait.at;
    while (s->ops.at[wait->op].kind != (stream ? GY_OP_COPY : GY_OP_LAUNCH))
        wait++;
    for (gy_counter_wait *w = wait; stream && w < s->counters.wait.at + s->counters.wait.count; w++)
        if (s->ops.at[w->op].kind == GY_OP_COPY && w->op > wait->op)
            wait = w;
    return wait;
}

spoiled_wait spoil_wait(gantry_schedule *s, bool stream)
{
    gy_counter_wait *wait = find_wait(s, stream);
    uint32_t id = 0;
    while (wait >= s->counters.wait.at + s->counters.at.at[id].wait + s->counters.at.at[id].waits)
        id++;
    const gy_counter *c = &s->counters.at.at[id];
    spoiled_wait spoiled = { .wait = wait, .value = wait->value, .distance = wait->distance };
    snprintf(spoiled.words[0], sizeof spoiled.words[0], "; op %u, \"%s", wait->op, stream ? "" : "s");
    snprintf(spoiled.words[1], sizeof spoiled.words[1], "%s lane %u of \"%s\" (%s", stream ? ":" : ";", c->to,
             device_of(s, c->to), stream ? "stream)" : "worker ");
    snprintf(spoiled.words[2], sizeof spoiled.words[2], " waits for counter %u from lane %u of \"%s\" (", id, c->from,
             device_of(s, c->from));
    snprintf(spoiled.words[3], sizeof spoiled.words[3], ": it is %u, and 1000 is awaited",
             signals_without(s, id, wait->op));
    wait->value = 1000;
    wait->distance = 0;
    return spoiled;
}

const char *lacks(const spoiled_wait *spoiled, const char *text)
{
    int i = 0;
    while (i < SPOILED_WORDS && strstr(text, spoiled->words[i]))
        i++;
    return i < SPOILED_WORDS ? spoiled->words[i] : NULL;
}

void mend_wait(spoiled_wait spoiled)
{
    gy_counter_wait *wait = spoiled.wait;
    wait->value = spoiled.value;
    wait->distance = spoiled.distance;
}
