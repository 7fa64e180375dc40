/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that are carried out on several devices. Every schedule also passes the checker. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

enum { DEVICES = 4 };

/* Four GPUs, all pairs joined. */
static const char four[] =
    "{\"gantry_machine\":1,\"name\":\"four\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"m0\",\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":\"1GiB\"},"
    "{\"id\":\"m2\",\"capacity\":\"1GiB\"},{\"id\":\"m3\",\"capacity\":\"1GiB\"}],\"devices\":["
    "{\"id\":\"dev0\",\"type\":\"gpu\",\"memory\":\"m0\"},{\"id\":\"dev1\",\"type\":\"gpu\",\"memory\":\"m1\"},"
    "{\"id\":\"dev2\",\"type\":\"gpu\",\"memory\":\"m2\"},{\"id\":\"dev3\",\"type\":\"gpu\",\"memory\":\"m3\"}],"
    "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":2,\"bandwidth_gbs\":20}]}";

static gantry_machine *m;
static gantry_graph *g;
static gantry_schedule *s;

static void begin(void)
{
    m = parse_machine(four);
    g = gantry_graph_new("replicas");
    s = NULL;
}

static void end(void)
{
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

static gantry_node work_on(const char *id, int device, double us)
{
    char on[16], name[32];
    snprintf(on, sizeof on, "dev%d", device);
    snprintf(name, sizeof name, "%s%d", id, device);
    gantry_node n = work(g, name, us);
    gantry_node_on(g, n, on);
    return n;
}

/* Executions of a node. */
static uint32_t times(const char *id)
{
    uint32_t count = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        count += s->ops.at[i].node != GY_NONE && strcmp(s->node_ids.at[s->ops.at[i].node], id) == 0;
    return count;
}

static uint32_t count_repeats(void)
{
    uint32_t count = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        count += s->ops.at[i].repeat;
    return count;
}

/* Every device reads the weights and adds to a gradient; one node changes the weights by it. */
static gantry_node step_on(int devices, double us)
{
    gantry_buffer w = buffer(g, "w", 1 << 20), sum = buffer(g, "sum", 1 << 20);
    gantry_buffer_set_class(g, w, GANTRY_STATE);
    gantry_buffer_init_value(g, w, 0);
    for (int i = 0; i < devices; i++) {
        gantry_node n = work_on("gradient", i, 500);
        gantry_node_read(g, n, gantry_all(w));
        gantry_node_reduce(g, n, gantry_all(sum), GANTRY_SUM);
    }
    gantry_node n = work(g, "update", us);
    gantry_node_read(g, n, gantry_all(sum));
    gantry_node_readwrite(g, n, gantry_all(w));
    return n;
}

static gantry_node step(double us)
{
    return step_on(DEVICES, us);
}

START_TEST(state_lives_on_each_device)
{
    begin();
    step(20);
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(times("update"), DEVICES);
    ck_assert_uint_eq(count_repeats(), DEVICES - 1);
    ck_assert_uint_eq(count_role(s, GY_ROLE_PERSIST), DEVICES);
    ck_assert_uint_eq(count_collectives(s, GANTRY_ALL_REDUCE), 1);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    end();
}
END_TEST

/* Also where a training step on a thousand devices has so many tasks. */
START_TEST(state_lives_on_each_device_amid_many_tasks)
{
    enum { MANY = 60000 };
    begin();
    step(20);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.effort = 1;
    for (int i = 0; i < MANY; i++) {
        char name[32], on[16];
        snprintf(name, sizeof name, "other%d", i);
        snprintf(on, sizeof on, "dev%d", i % DEVICES);
        gantry_node_on(g, work(g, name, 0.01), on);
    }
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, NULL), GANTRY_OK);
    ck_assert_uint_eq(times("update"), DEVICES);
    end();
}
END_TEST

/* On more devices than a word has bits, over several words. */
START_TEST(state_lives_on_many_devices)
{
    enum { MANY = 140 };
    static char text[40000];
    size_t used = (size_t)snprintf(
        text, sizeof text,
        "{\"gantry_machine\":1,\"name\":\"many\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"}");
    for (int i = 0; i < MANY; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ",{\"id\":\"m%d\",\"capacity\":\"1GiB\"}", i);
    used += (size_t)snprintf(text + used, sizeof text - used, "],\"devices\":[");
    for (int i = 0; i < MANY; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s{\"id\":\"dev%d\",\"type\":\"gpu\",\"memory\":\"m%d\"}", i ? "," : "", i, i);
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":2,\"bandwidth_gbs\":20}]}");
    ck_assert_uint_lt(used, sizeof text);
    m = parse_machine(text);
    g = gantry_graph_new("replicas");
    step_on(MANY, 5);
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(times("update"), MANY);
    ck_assert_uint_eq(count_repeats(), MANY - 1);
    end();
}
END_TEST

/* The node takes longer than all copies; it is named by `on`; another comes after it; a policy is named; a proof is
 * asked for. */
START_TEST(once_where_that_is_asked_for)
{
    begin();
    gantry_node n = step(_i == 0 ? 1e6 : 20);
    if (_i == 1)
        gantry_node_on(g, n, "dev1");
    if (_i == 2)
        gantry_node_after(g, work(g, "later", 1), n);
    s = schedule(g, m, _i == 3 ? "heft" : NULL);
    ck_assert_uint_eq(times("update"), 1);
    ck_assert_uint_eq(count_repeats(), 0);
    ck_assert_uint_eq(count_role(s, GY_ROLE_PERSIST), 1);
    end();
}
END_TEST

static gantry_status nothing(const gantry_launch *l)
{
    (void)l;
    return GANTRY_OK;
}

/* A result that all devices read: of work it is made where it is read, of a function of the program once. */
static void fan(bool function, double us)
{
    gantry_buffer x = buffer(g, "x", 1 << 20);
    gantry_node n = function ? gantry_graph_launch(g, "make", nothing, NULL) : gantry_graph_work(g, "make");
    gantry_node_time(g, n, NULL, us);
    gantry_node_write(g, n, gantry_all(x));
    for (int i = 0; i < DEVICES; i++)
        gantry_node_read(g, work_on("read", i, 100), gantry_all(x));
    s = schedule(g, m, NULL);
}

START_TEST(made_where_it_is_read)
{
    begin();
    fan(false, 20);
    ck_assert_uint_eq(times("make"), DEVICES);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY) + count_kind(s, GY_OP_COLLECTIVE), 0);
    end();
}
END_TEST

START_TEST(functions_run_once)
{
    begin();
    fan(true, 20);
    ck_assert_uint_eq(times("make"), 1);
    end();
}
END_TEST

START_TEST(long_work_runs_once)
{
    begin();
    fan(false, 1e6);
    ck_assert_uint_eq(times("make"), 1);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replicas");
    TCase *c = tcase_create("replicas");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, state_lives_on_each_device);
    tcase_add_test(c, state_lives_on_many_devices);
    tcase_add_test(c, state_lives_on_each_device_amid_many_tasks);
    tcase_add_loop_test(c, once_where_that_is_asked_for, 0, 4);
    tcase_add_test(c, made_where_it_is_read);
    tcase_add_test(c, functions_run_once);
    tcase_add_test(c, long_work_runs_once);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
