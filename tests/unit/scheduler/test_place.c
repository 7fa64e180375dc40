/* SPDX-License-Identifier: Apache-2.0 */
/* Where nodes may go, what they cost there, and where they go. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static gantry_machine *m;
static gantry_graph *g;
static gantry_schedule *s;

static void begin(gantry_machine *machine)
{
    m = machine;
    g = gantry_graph_new("place");
    s = NULL;
}

static void end(void)
{
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

static gantry_status nothing(const gantry_launch *l)
{
    (void)l;
    return GANTRY_OK;
}

/* ---- costs ---- */

START_TEST(a_time_for_the_id_beats_one_for_the_kind)
{
    begin(parse_machine(machine_shared_link));
    gantry_node n = gantry_graph_work(g, "n");
    gantry_node_time(g, n, NULL, 1);
    gantry_node_time(g, n, "gpu0", 30);
    gantry_node_time(g, n, "big", 2); /* gpu0's kind */
    gantry_node_time(g, n, "small", 20);
    gantry_node_on(g, n, "gpu0");
    gantry_node k = gantry_graph_work(g, "k");
    gantry_node_time(g, k, NULL, 1);
    gantry_node_time(g, k, "small", 20);
    gantry_node_on(g, k, "gpu1");
    s = schedule(g, m, NULL);
    ck_assert_int_eq(op_of(s, "n")->duration, gy_ticks_from_us(30 + 2)); /* and the launch */
    ck_assert_int_eq(op_of(s, "k")->duration, gy_ticks_from_us(20 + 2));
    ck_assert_uint_eq(op_of(s, "n")->provenance, GY_COST_GIVEN);
    end();
}
END_TEST

/* gpu0: 10 TFLOP/s, 900 GB/s, launch 2 us. 1e9 flops take 100 us, 1.8e8 bytes 200 us. */
START_TEST(otherwise_the_roofline)
{
    begin(parse_machine(machine_shared_link));
    gantry_node n = gantry_graph_work(g, "compute"), k = gantry_graph_work(g, "memory");
    gantry_node_cost(g, n, 1e9, 0.9e7);
    gantry_node_cost(g, k, 1e9, 1.8e8);
    gantry_node_on(g, n, "gpu0");
    gantry_node_on(g, k, "gpu0");
    s = schedule(g, m, NULL);
    ck_assert_int_eq(op_of(s, "compute")->duration, gy_ticks_from_us(102));
    ck_assert_int_eq(op_of(s, "memory")->duration, gy_ticks_from_us(202));
    ck_assert_uint_eq(op_of(s, "memory")->provenance, GY_COST_ROOFLINE);
    end();
}
END_TEST

/* 1.2 MB take 105 us up to either GPU; then the second computes in 4 us, the first in 5. */
START_TEST(uploads_count)
{
    begin(parse_machine(machine_shared_link));
    gantry_buffer x = buffer(g, "x", 300000), y = buffer(g, "y", 1);
    gantry_buffer_init_value(g, x, 1);
    gantry_node n = gantry_graph_work(g, "n");
    gantry_node_read(g, n, gantry_all(x));
    gantry_node_write(g, n, gantry_all(y));
    gantry_node_time(g, n, "gpu0", 5);
    gantry_node_time(g, n, "gpu1", 4);
    s = schedule(g, m, NULL);
    ck_assert_str_eq(device_of(s, "n"), "gpu1");
    ck_assert_int_eq(op_of(s, "n")->start, gy_ticks_from_us(105));
    end();
}
END_TEST

/* ---- who may run where ---- */

START_TEST(host_calls_run_on_the_cpu)
{
    begin(parse_machine(machine_shared_link));
    gantry_graph_host(g, "call", nothing, NULL);
    work(g, "n", 1);
    s = schedule(g, m, "single");
    ck_assert_str_eq(device_of(s, "call"), "cpu");
    ck_assert_str_eq(device_of(s, "n"), "gpu0");
    ck_assert_uint_eq(op_of(s, "call")->kind, GY_OP_HOST);
    end();
}
END_TEST

START_TEST(without_a_cpu_they_are_refused)
{
    begin(parse_machine(machine_relay));
    gantry_graph_host(g, "call", nothing, NULL);
    const char *text = refusal(g, m, NULL, GANTRY_E_UNSUPPORTED);
    ck_assert_str_eq(text, "node \"call\" is a host call, which needs a CPU device, and machine \"relay\" has none; "
                           "add one of type \"cpu\"");
    end();
}
END_TEST

static const gantry_kernel_arg one_arg[] = { { .name = "x", .access = GANTRY_WRITE } };
static const gantry_kernel cpu_only = { .struct_size = sizeof(gantry_kernel),
                                        .name = "cpu_only",
                                        GANTRY_KERNEL_ARGS(one_arg),
                                        .flags = GANTRY_KERNEL_NO_GPU,
                                        .host = nothing };
static const gantry_kernel gpu_only = {
    .struct_size = sizeof(gantry_kernel), .name = "gpu_only", GANTRY_KERNEL_ARGS(one_arg), .flags = GANTRY_KERNEL_NO_CPU
};

static gantry_node add_kernel(const gantry_kernel *kernel)
{
    gantry_buffer x = buffer(g, "x", 1);
    gantry_graph_add_kernel(g, kernel);
    gantry_node k = gantry_graph_kernel(g, "k", kernel->name);
    gantry_node_arg(g, k, "x", gantry_all(x));
    return k;
}

START_TEST(kernels_say_what_they_run_on)
{
    begin(parse_machine(_i ? machine_shared_link : machine_host_cpu));
    add_kernel(&cpu_only);
    s = schedule(g, m, NULL);
    ck_assert_str_eq(device_of(s, "k"),
                     _i ? "cpu" : "cpu0"); /* even one that only takes host calls, if there is no other */
    end();
    begin(parse_machine(machine_host_cpu));
    add_kernel(&gpu_only);
    s = schedule(g, m, NULL);
    ck_assert_str_eq(device_of(s, "k"), "gpu0");
    end();
}
END_TEST

START_TEST(kernels_without_a_device_are_refused)
{
    begin(virtual_machine(2));
    add_kernel(&gpu_only);
    ck_assert_str_eq(
        refusal(g, m, NULL, GANTRY_E_UNSUPPORTED),
        "kernel \"gpu_only\" of node \"k\" has no version for CPUs, and machine \"host-2\" has nothing else; "
        "give it one (\"host\"), or choose another machine");
    end();
    begin(parse_machine(machine_relay));
    add_kernel(&cpu_only);
    ck_assert_str_eq(
        refusal(g, m, NULL, GANTRY_E_UNSUPPORTED),
        "kernel \"cpu_only\" of node \"k\" has no version for GPUs, and machine \"relay\" has nothing else; "
        "give it one (\"cuda\"), or choose another machine");
    end();
}
END_TEST

/* ---- on ---- */

START_TEST(on_takes_ids_kinds_and_expressions)
{
    begin(parse_machine(machine_shared_link));
    static const struct {
        const char *on, *device;
    } cases[] = { { "gpu1", "gpu1" }, { "small", "gpu1" },       { "cpu", "cpu" },         { "0", "gpu0" },
                  { "1", "gpu1" },    { "devices - 1", "gpu1" }, { "7 % devices", "gpu1" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%zu", i);
        gantry_node_on(g, work(g, id, 1), cases[i].on);
    }
    s = schedule(g, m, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%zu", i);
        ck_assert_str_eq(device_of(s, id), cases[i].device);
    }
    end();
}
END_TEST

START_TEST(on_has_good_messages)
{
    static const struct {
        const char *on, *text;
    } cases[] = {
        { "2", "on \"2\" of node \"n\" is device 2, but machine \"shared\" has devices 0 to 1; use % devices to wrap "
               "around" },
        { "-1",
          "on \"-1\" of node \"n\" is device -1, but machine \"shared\" has devices 0 to 1; use % devices to wrap "
          "around" },
        { "elsewhere",
          "on \"elsewhere\" of node \"n\" is no device id, kind or expression over devices of machine \"shared\": it "
          "has gpu0, gpu1, cpu; write one of them, an index from 0 to 1, or an expression such as i % devices" },
        { "gpu7", "on \"gpu7\" of node \"n\" is no device id, kind or expression over devices of machine \"shared\" "
                  "(did you mean \"gpu0\"?): it has gpu0, gpu1, cpu; write one of them, an index from 0 to 1, or an "
                  "expression such as i % devices" },
    };
    begin(parse_machine(machine_shared_link));
    gantry_node_on(g, work(g, "n", 1), cases[_i].on);
    ck_assert_str_eq(refusal(g, m, NULL, GANTRY_E_GRAPH), cases[_i].text);
    end();
}
END_TEST

START_TEST(a_misspelt_device_suggests_the_near_one)
{
    begin(parse_machine(machine_shared_link));
    gantry_node_on(g, work(g, "n", 1), "gpu9");
    const char *text = refusal(g, m, NULL, GANTRY_E_GRAPH);
    ck_assert_msg(strstr(text, "\"gpu9\"") && strstr(text, "did you mean \"gpu0\""), "%s", text);
    end();
}
END_TEST

START_TEST(on_must_be_able_to_run_it)
{
    begin(parse_machine(machine_shared_link));
    gantry_node_on(g, gantry_graph_host(g, "call", nothing, NULL), "gpu0");
    ck_assert_str_eq(
        refusal(g, m, NULL, GANTRY_E_UNSUPPORTED),
        "node \"call\" is put on \"gpu0\", a GPU, and is a host call, which needs a CPU device; drop \"on\" or "
        "choose another device");
    end();
}
END_TEST

START_TEST(on_wants_a_kernel_that_has_a_version_there)
{
    begin(parse_machine(machine_shared_link));
    gantry_node_on(g, add_kernel(&cpu_only), "gpu0");
    ck_assert_str_eq(
        refusal(g, m, NULL, GANTRY_E_UNSUPPORTED),
        "node \"k\" is put on \"gpu0\", a GPU, for which its kernel \"cpu_only\" has no version; give it one "
        "(\"cuda\"), or drop \"on\" or choose another device");
    end();
}
END_TEST

/* ---- a CPU beside GPUs ---- */

/* Eight nodes, each with 1.2 MB of an input of its own in host memory and 1 us of work for a GPU: there is one link up,
 * on which each takes 100 us. Returns how many the CPU takes, at `us` each. */
static int nodes_of_the_cpu(const char *devices, double us, gy_ticks *makespan)
{
    gantry_machine *from = parse_machine(machine_shared_link), *chosen = NULL;
    ck_assert_int_eq(gantry_machine_select(&chosen, from, devices, NULL), GANTRY_OK);
    gantry_machine_free(from);
    begin(chosen);
    char id[16];
    for (int i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "x%d", i);
        gantry_buffer x = buffer(g, id, 300000);
        gantry_buffer_init_value(g, x, 1);
        snprintf(id, sizeof id, "n%d", i);
        gantry_node n = gantry_graph_work(g, id);
        gantry_node_read(g, n, gantry_all(x));
        gantry_node_time(g, n, NULL, 1);
        gantry_node_time(g, n, "cpu", us);
    }
    s = schedule(g, m, NULL);
    int there = 0;
    for (int i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "n%d", i);
        there += strcmp(device_of(s, id), "cpu") == 0;
    }
    *makespan = s->makespan;
    end();
    return there;
}

/* Both GPUs alone take 800 us, as that is what the link takes; a CPU that takes 150 us for each could have three of
 * them meanwhile, and the link the other five: some 500. With 2 ms each it had better have none. */
START_TEST(a_cpu_that_is_named_takes_what_pays)
{
    gy_ticks without, with;
    ck_assert_int_eq(nodes_of_the_cpu("2", 150, &without), 0);
    ck_assert_int_ge(without, gy_ticks_from_us(800));
    int there = nodes_of_the_cpu("id:gpu0,gpu1,cpu", 150, &with);
    ck_assert_msg(there >= 2 && there <= 4, "%d of 8", there);
    ck_assert_int_le(with, gy_ticks_from_us(620));
    ck_assert_int_eq(nodes_of_the_cpu("id:gpu0,gpu1,cpu", 2000, &with), 0);
    ck_assert_int_eq(with, without);
}
END_TEST

/* ---- with, apart, priority ---- */

START_TEST(with_keeps_together)
{
    begin(virtual_machine(4));
    gantry_node first = work(g, "n0", 10);
    for (int i = 1; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        gantry_node_with(g, work(g, id, 10), first);
    }
    s = schedule(g, m, _i ? "round-robin" : "heft");
    for (int i = 1; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        ck_assert_str_eq(device_of(s, id), device_of(s, "n0"));
    }
    end();
}
END_TEST

START_TEST(apart_keeps_apart)
{
    begin(virtual_machine(3));
    gantry_node a = work(g, "a", 10), b = work(g, "b", 10), c = work(g, "c", 10);
    gantry_node_apart(g, b, a);
    gantry_node_apart(g, c, a);
    gantry_node_apart(g, c, b);
    s = schedule(g, m, "single");
    ck_assert_str_ne(device_of(s, "a"), device_of(s, "b"));
    ck_assert_str_ne(device_of(s, "a"), device_of(s, "c"));
    ck_assert_str_ne(device_of(s, "b"), device_of(s, "c"));
    end();
}
END_TEST

START_TEST(too_many_apart_are_refused)
{
    begin(virtual_machine(1));
    gantry_node a = work(g, "a", 10), b = work(g, "b", 10);
    gantry_node_apart(g, b, a);
    ck_assert_str_eq(refusal(g, m, NULL, GANTRY_E_UNSUPPORTED),
                     "no device of machine \"host-1\" is left for node \"b\" with what it is kept apart from; use more "
                     "devices or drop some \"apart\"");
    end();
}
END_TEST

START_TEST(a_group_meets_its_members_wishes)
{
    begin(virtual_machine(3));
    gantry_node a = work(g, "a", 10), b = work(g, "b", 10);
    gantry_node_with(g, b, a);
    gantry_node_on(g, b, "dev2");
    s = schedule(g, m, "single");
    ck_assert_str_eq(device_of(s, "a"), "dev2");
    end();
    begin(virtual_machine(3));
    a = work(g, "a", 10);
    b = work(g, "b", 10);
    gantry_node_with(g, b, a);
    gantry_node_on(g, b, "dev2");
    gantry_node_on(g, a, "dev1");
    ck_assert_ptr_nonnull(strstr(refusal(g, m, NULL, GANTRY_E_GRAPH), "kept together"));
    end();
}
END_TEST

START_TEST(priority_goes_first_among_equals)
{
    begin(virtual_machine(1));
    work(g, "a", 10);
    work(g, "b", 20);
    gantry_node_priority(g, work(g, "c", 5), 1);
    s = schedule(g, m, NULL);
    ck_assert(op_of(s, "c")->start < op_of(s, "b")->start); /* by rank: b a c */
    ck_assert(op_of(s, "b")->start < op_of(s, "a")->start);
    end();
}
END_TEST

START_TEST(round_robin_deals_out)
{
    begin(virtual_machine(3));
    for (int i = 0; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        work(g, id, 10);
    }
    s = schedule(g, m, "round-robin");
    ck_assert_str_eq(device_of(s, "n0"), "dev0");
    ck_assert_str_eq(device_of(s, "n1"), "dev1");
    ck_assert_str_eq(device_of(s, "n2"), "dev2");
    ck_assert_str_eq(device_of(s, "n3"), "dev0");
    end();
}
END_TEST

/* ---- collectives one behind the other ---- */

static const char machine_four[] =
    "{\"gantry_machine\":1,\"name\":\"four\",\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m0\","
    "\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":\"1GiB\"},{\"id\":\"m2\",\"capacity\":\"1GiB\"},{\"id\":\"m3\","
    "\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\",\"memory\":\"m0\",\"kind\":\"h200\"},"
    "{\"id\":\"gpu1\",\"type\":\"gpu\",\"memory\":\"m1\",\"kind\":\"h200\"},{\"id\":\"gpu2\",\"type\":\"gpu\","
    "\"memory\":\"m2\","
    "\"kind\":\"h200\"},{\"id\":\"gpu3\",\"type\":\"gpu\",\"memory\":\"m3\",\"kind\":\"h200\"}],\"routes\":[{\"from\":"
    "\"*\","
    "\"to\":\"*\",\"bandwidth_gbs\":10,\"latency_us\":2}]}";

static gantry_node collective(const char *id, gantry_collective kind, gantry_access op, gantry_buffer x,
                              gantry_buffer y)
{
    gantry_region in[4], out[4];
    for (int i = 0; i < 4; i++) {
        in[i] = gantry_part(x, i);
        out[i] = gantry_part(y, i);
    }
    return gantry_graph_collective(g, id, kind, op, 4, in, 4, out, 0);
}

static gantry_buffer parts(const char *name, int64_t rows)
{
    gantry_buffer b = buffer(g, name, rows);
    gantry_buffer_split(g, b, 4);
    return b;
}

/* The device that an op's rank is on. */
static uint32_t rank_on(const gy_op *op, uint32_t rank)
{
    return gy_op_device(s, op, rank);
}

/* x is made from the last device to the first; the ranks of all that follows are where their rows are. */
START_TEST(ranks_follow_ranks)
{
    begin(virtual_machine(4));
    gantry_buffer x = parts("x", 1600), y = parts("y", 400), z = parts("z", 1600), w = parts("w", 1600);
    for (int i = 0; i < 4; i++) {
        char id[2][20];
        snprintf(id[0], sizeof id[0], "make%d", i);
        snprintf(id[1], sizeof id[1], "%d", 3 - i);
        gantry_node n = work(g, id[0], 1);
        gantry_node_write(g, n, gantry_part(x, i));
        gantry_node_on(g, n, id[1]);
    }
    (void)collective("scatter", GANTRY_REDUCE_SCATTER, GANTRY_SUM, x, y);
    (void)collective("gather", GANTRY_ALL_GATHER, (gantry_access)0, y, z);
    (void)collective("swap", GANTRY_ALL_TO_ALL, (gantry_access)0, z, w);
    s = schedule(g, m, _i ? "heft" : NULL);
    static const char *const ids[] = { "scatter", "gather", "swap" };
    for (int k = 0; k < 3; k++)
        for (uint32_t i = 0; i < 4; i++)
            ck_assert_uint_eq(rank_on(op_of(s, ids[k]), i), 3 - i);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    end();
}
END_TEST

/* The ranks go where the list says, also away from where their rows were written. */
START_TEST(on_of_a_collective_is_a_list)
{
    static const char *const where[] = { "2", "devices - 1", "gpu0", "1" };
    static const uint32_t expected[] = { 2, 3, 0, 1 };
    begin(parse_machine(machine_four));
    gantry_buffer x = parts("x", 1600), y = parts("y", 400);
    for (int i = 0; i < 4; i++) {
        char id[16];
        snprintf(id, sizeof id, "make%d", i);
        gantry_node_write(g, work(g, id, 1), gantry_part(x, i));
    }
    gantry_node n = collective("scatter", GANTRY_REDUCE_SCATTER, GANTRY_SUM, x, y);
    gantry_node_on_ranks(g, n, 4, where);
    s = schedule(g, m, _i ? "heft" : NULL);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(rank_on(op_of(s, "scatter"), i), expected[i]);
    end();
}
END_TEST

START_TEST(lists_have_good_messages)
{
    static const struct {
        const char *on[3];
        size_t ranks;
        const char *text;
    } cases[] = {
        { { "0", "1", "2" }, 3, "reduce_scatter \"c\" has 4 ranks, and `on` places for 3; give one for each rank" },
        { { "gpu" }, 1, "reduce_scatter \"c\" has 4 ranks, and `on` places for 1; give one for each rank" },
    };
    begin(parse_machine(machine_four));
    gantry_buffer x = parts("x", 1600);
    gantry_buffer_init_value(g, x, 1);
    gantry_node n = collective("c", GANTRY_REDUCE_SCATTER, GANTRY_SUM, x, parts("y", 400));
    gantry_node_on_ranks(g, n, cases[_i].ranks, cases[_i].on);
    ck_assert_str_eq(refusal(g, m, NULL, GANTRY_E_GRAPH), cases[_i].text);
    end();
}
END_TEST

START_TEST(a_rank_is_on_a_device)
{
    static const char *const where[] = { "0", "1", "h200", "3" };
    begin(parse_machine(machine_four));
    gantry_buffer x = parts("x", 1600);
    gantry_buffer_init_value(g, x, 1);
    gantry_node n = collective("c", GANTRY_REDUCE_SCATTER, GANTRY_SUM, x, parts("y", 400));
    gantry_node_on_ranks(g, n, 4, where);
    ck_assert_str_eq(refusal(g, m, NULL, GANTRY_E_GRAPH),
                     "rank 2 of collective \"c\" is on \"h200\"; the place of a rank is the id of a device of machine "
                     "\"four\" that takes any work, or an index from 0 to 3");
    end();
}
END_TEST

/* The same schedule, checked for a graph with two places swapped. */
START_TEST(the_checker_holds_lists)
{
    static const char *const where[] = { "0", "1", "2", "3" };
    gantry_error err = { 0 };
    begin(parse_machine(machine_four));
    gantry_buffer x = parts("x", 1600);
    gantry_buffer_init_value(g, x, 1);
    gantry_node n = collective("c", GANTRY_REDUCE_SCATTER, GANTRY_SUM, x, parts("y", 400));
    gantry_node_on_ranks(g, n, 4, where);
    s = schedule(g, m, NULL);
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), GANTRY_OK);
    gy_rank_place *place = g->extra.at[g->nodes.at[n.id].extra].rank_on.at, first = place[0];
    place[0] = place[1];
    place[1] = first;
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), GANTRY_E_SCHEDULE);
    ck_assert_msg(strstr(err.text, "rule place") != NULL, "%s", err.text);
    end();
}
END_TEST

/* Entries of files, also those that stand for several; written and read again they are the same. */
START_TEST(lists_in_files)
{
    static const char text[] =
        "{\"gantry\":1,\"name\":\"l\",\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[1600],\"split\":4,\"init\":1,"
        "\"output\":true}},\"nodes\":[{\"id\":\"c\",\"collective\":\"all_reduce\",\"op\":\"sum\",\"in\":[{\"for\":{"
        "\"i\":4},"
        "\"ref\":\"x[i]\"}],\"out\":[{\"for\":{\"i\":4},\"ref\":\"x[i]\"}],\"on\":[\"gpu3\",{\"for\":{\"i\":2},\"on\":"
        "\"2 - i\"},"
        "\"devices - 4\"]}]}";
    begin(parse_machine(machine_four));
    gantry_graph_free(g);
    gantry_error err = { 0 };
    ck_assert_msg(gantry_graph_parse(&g, text, sizeof text - 1, NULL, NULL, NULL, &err) == GANTRY_OK, "%s", err.text);
    char *json = NULL;
    size_t length = 0;
    for (int turn = 0; turn < 2; turn++) {
        s = schedule(g, m, NULL);
        for (uint32_t i = 0; i < 4; i++)
            ck_assert_uint_eq(rank_on(op_of(s, "c"), i), 3 - i);
        gantry_schedule_free(s);
        s = NULL;
        if (turn)
            break;
        ck_assert_int_eq(gantry_graph_json(g, &json, &length, &err), GANTRY_OK);
        gantry_graph_free(g);
        ck_assert_msg(gantry_graph_parse(&g, json, length, NULL, NULL, NULL, &err) == GANTRY_OK, "%s", err.text);
    }
    gantry_free(json);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("place");
    TCase *c = tcase_create("place");
    tcase_add_test(c, a_time_for_the_id_beats_one_for_the_kind);
    tcase_add_test(c, otherwise_the_roofline);
    tcase_add_test(c, uploads_count);
    tcase_add_test(c, host_calls_run_on_the_cpu);
    tcase_add_test(c, without_a_cpu_they_are_refused);
    tcase_add_test(c, a_cpu_that_is_named_takes_what_pays);
    tcase_add_loop_test(c, kernels_say_what_they_run_on, 0, 2);
    tcase_add_test(c, kernels_without_a_device_are_refused);
    tcase_add_test(c, on_takes_ids_kinds_and_expressions);
    tcase_add_loop_test(c, on_has_good_messages, 0, 4);
    tcase_add_test(c, a_misspelt_device_suggests_the_near_one);
    tcase_add_test(c, on_must_be_able_to_run_it);
    tcase_add_test(c, on_wants_a_kernel_that_has_a_version_there);
    tcase_add_loop_test(c, with_keeps_together, 0, 2);
    tcase_add_test(c, apart_keeps_apart);
    tcase_add_test(c, too_many_apart_are_refused);
    tcase_add_test(c, a_group_meets_its_members_wishes);
    tcase_add_test(c, priority_goes_first_among_equals);
    tcase_add_test(c, round_robin_deals_out);
    tcase_add_loop_test(c, ranks_follow_ranks, 0, 2);
    tcase_add_loop_test(c, on_of_a_collective_is_a_list, 0, 2);
    tcase_add_loop_test(c, lists_have_good_messages, 0, 2);
    tcase_add_test(c, a_rank_is_on_a_device);
    tcase_add_test(c, the_checker_holds_lists);
    tcase_add_test(c, lists_in_files);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
