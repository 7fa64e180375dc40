/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that fit, or do not, and how that is said. Bases are multiples of 256 bytes: 64 rows of f32 are one unit. */
#include "base/map.h"
#include "base/text.h"
#include "schedule/check/verify.h"
#include "scheduler/cost/cost.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define UNIT 256

/* A chain of `tasks` that each read the buffer before and write the next: two units are in use at a time. */
static gantry_graph *chain(int tasks)
{
    gantry_graph *g = gantry_graph_new("chain");
    char name[16];
    gantry_buffer before = { .id = GANTRY_NONE };
    for (int i = 0; i < tasks; i++) {
        snprintf(name, sizeof name, "b%d", i);
        gantry_buffer next = buffer(g, name, 64);
        snprintf(name, sizeof name, "n%d", i);
        gantry_node n = work(g, name, 10);
        if (i)
            gantry_node_read(g, n, gantry_all(before));
        gantry_node_write(g, n, gantry_all(next));
        before = next;
    }
    return g;
}

START_TEST(a_chain_fits_in_two_buffers)
{
    gantry_machine *m = small_machine(1, 2 * UNIT);
    gantry_graph *g = chain(10);
    gantry_schedule *s = schedule(g, m, NULL);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 1), 2 * UNIT);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(and_not_in_less)
{
    gantry_machine *m = small_machine(1, 2 * UNIT - 1);
    gantry_graph *g = chain(10);
    const char *text = refusal(g, m, NULL, GANTRY_E_CAPACITY);
    ck_assert_str_eq(text, "d0 needs 512 B at node \"n1\" and has 511 B; largest: b0 256 B, b1 256 B; take more parts, "
                           "or more devices");
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Three buffers of 3,000,000 bytes, each rounded up to 256: 9,000,192 in use when n1 writes the third, beside a limit
 * of 9,000,000. In MiB both are 8.6, which would say nothing. */
START_TEST(a_need_is_told_from_a_limit_that_is_near)
{
    gantry_machine *m = small_machine(1, 1 << 30);
    gantry_graph *g = gantry_graph_new("near");
    gantry_buffer b[3] = { buffer(g, "a", 750000), buffer(g, "b", 750000), buffer(g, "c", 750000) };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_node n = work(g, "n0", 1);
    gantry_node_write(g, n, gantry_all(b[0]));
    gantry_node_write(g, n, gantry_all(b[1]));
    n = work(g, "n1", 1);
    gantry_node_read(g, n, gantry_all(b[0]));
    gantry_node_read(g, n, gantry_all(b[1]));
    gantry_node_write(g, n, gantry_all(b[2]));
    o.max_memory = "d0=9000000";
    o.spill = _i ? "auto" : "off";
    const char *text = refusal(g, m, &o, GANTRY_E_CAPACITY);
    ck_assert_msg(strstr(text, "d0 needs 9000192 B at node \"n1\" and has 9000000 B; largest: a 2.9 MiB, ") == text,
                  "%s", text);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(max_memory_is_a_limit)
{
    gantry_machine *m = small_machine(2, 1 << 20);
    gantry_graph *g = chain(10);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err = { 0 };
    o.max_memory = "d0=511,d1=256";
    ck_assert_ptr_nonnull(strstr(refusal(g, m, &o, GANTRY_E_CAPACITY), "has 511 B"));
    o.max_memory = "m0=512";
    gantry_schedule *s = NULL;
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_OK);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(max_memory_is_read_with_care)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "d7=1KiB",
          "max_memory: machine \"small\" has no device or memory \"d7\" (did you mean \"d0\"?); its devices are d0" },
        { "gpu=1KiB", "max_memory: machine \"small\" has no device or memory \"gpu\"; its devices are d0" },
        { "d0", "max_memory: \"d0\" must be name=size, such as gpu0=4GiB" },
        { "d0=lots", "max_memory: \"lots\" of \"d0\" is no size; give one such as 512MiB" },
    };
    gantry_machine *m = small_machine(1, 1 << 20);
    gantry_graph *g = chain(2);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.max_memory = cases[_i].text;
    ck_assert_str_eq(refusal(g, m, &o, GANTRY_E_INVALID), cases[_i].error);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Ten inputs of one unit, each read once: all at once while there is room, one after the other in a tight memory, where
 * an upload waits for the reader of the one before. */
START_TEST(prefetching_gives_way_to_fitting)
{
    gantry_graph *g = gantry_graph_new("stream");
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        gantry_buffer x = buffer(g, name, 64);
        gantry_buffer_init_value(g, x, 1);
        gantry_node_read(g, work(g, "n", 10), gantry_all(x));
    }
    gantry_machine *wide = small_machine(1, 1 << 20), *tight = small_machine(1, UNIT);
    gantry_schedule *a = schedule(g, wide, NULL), *b = schedule(g, tight, NULL);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(a, 1), 10 * UNIT);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(b, 1), UNIT);
    uint32_t reuse = 0;
    for (size_t i = 0; i < b->sync.count; i++)
        reuse += b->sync.at[i].reason == GY_WHY_REUSE;
    ck_assert_uint_eq(reuse, 9);
    ck_assert(a->makespan < b->makespan);
    gantry_schedule_free(a);
    gantry_schedule_free(b);
    gantry_graph_free(g);
    gantry_machine_free(wide);
    gantry_machine_free(tight);
}
END_TEST

/* Branches of different sizes leave holes: what fits by positions is found by best fit. */
START_TEST(holes_are_filled)
{
    gantry_graph *g = gantry_graph_new("holes");
    gantry_buffer small = buffer(g, "small", 64), large = buffer(g, "large", 192), keep = buffer(g, "keep", 64),
                  late = buffer(g, "late", 192);
    gantry_node n = work(g, "a", 1);
    gantry_node_write(g, n, gantry_all(small));
    gantry_node_write(g, n, gantry_all(large));
    n = work(g, "b", 1);
    gantry_node_read(g, n, gantry_all(small));
    gantry_node_read(g, n, gantry_all(large));
    gantry_node_write(g, n, gantry_all(keep));
    n = work(g, "c", 1);
    gantry_node_read(g, n, gantry_all(keep));
    gantry_node_write(g, n, gantry_all(late)); /* 3 units where `large` was */
    gantry_node_read(g, work(g, "d", 1), gantry_all(late));
    gantry_machine *m = small_machine(1, 5 * UNIT);
    gantry_schedule *s = schedule(g, m, NULL);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 1), 5 * UNIT);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(what_persists_is_never_shared)
{
    gantry_graph *g = gantry_graph_new("state");
    gantry_buffer w = buffer(g, "w", 64), x = buffer(g, "x", 64);
    gantry_buffer_set_class(g, w, GANTRY_STATE);
    gantry_buffer_init_value(g, w, 1);
    gantry_node_readwrite(g, work(g, "a", 1), gantry_all(w));
    gantry_node_write(g, work(g, "b", 1), gantry_all(x));
    gantry_machine *m = small_machine(1, 2 * UNIT), *less = small_machine(1, UNIT);
    gantry_schedule *s = schedule(g, m, NULL), *spilled = schedule(g, less, NULL);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 1), 2 * UNIT);
    ck_assert_uint_eq(count_kind(s, GY_OP_FETCH), 0);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(spilled, 0), UNIT); /* w persists in host memory instead */
    ck_assert_uint_eq(count_kind(spilled, GY_OP_FETCH), 1);
    ck_assert_uint_eq(count_kind(spilled, GY_OP_EVICT), 1);
    gantry_schedule_free(s);
    gantry_schedule_free(spilled);
    gantry_graph_free(g);
    gantry_machine_free(m);
    gantry_machine_free(less);
}
END_TEST

START_TEST(scratch_counts)
{
    gantry_machine *m = small_machine(1, 3 * UNIT);
    gantry_graph *g = chain(3);
    gantry_node_scratch(g, gantry_graph_find_node(g, "n1"), UNIT);
    gantry_schedule *s = schedule(g, m, NULL);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    g = chain(3);
    gantry_node_scratch(g, gantry_graph_find_node(g, "n1"), UNIT + 1);
    ck_assert_ptr_nonnull(strstr(refusal(g, m, NULL, GANTRY_E_CAPACITY), "has 256 B beside 512 B of scratch; largest"));
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* ---- what is given up where nothing fits ---- */

/* Two small devices, and one that holds everything. */
static const char machine_one_large[] =
    "{\"gantry_machine\":1,\"name\":\"large\",\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m0\","
    "\"capacity\":256},{\"id\":\"m1\",\"capacity\":256},{\"id\":\"m2\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":"
    "\"d0\","
    "\"memory\":\"m0\"},{\"id\":\"d1\",\"memory\":\"m1\"},{\"id\":\"d2\",\"memory\":\"m2\"}],\"routes\":[{\"from\":\"*"
    "\",\"to\":\"*\","
    "\"latency_us\":1,\"bandwidth_gbs\":1}]}";

/* Ranks of 512 B that no node wrote, of every kind: they go where they fit, whoever is asked. */
START_TEST(ranks_that_no_node_wrote_go_where_there_is_room)
{
    static const char *const objectives[] = { "makespan", "period" };
    gantry_collective kind = (gantry_collective)(GANTRY_ALL_REDUCE + _i % 8);
    bool one_in = kind == GANTRY_BROADCAST || kind == GANTRY_SCATTER;
    bool one_out = kind == GANTRY_REDUCE || kind == GANTRY_GATHER;
    bool reduces = kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE || kind == GANTRY_REDUCE_SCATTER;
    bool half_in = kind == GANTRY_GATHER || kind == GANTRY_ALL_GATHER;
    bool half_out = kind == GANTRY_SCATTER || kind == GANTRY_REDUCE_SCATTER;
    gantry_machine *m = parse_machine(machine_one_large);
    gantry_graph *g = gantry_graph_new("unwritten");
    gantry_region in[2], out[2];
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        gantry_buffer x = buffer(g, name, half_in ? 128 : 256), y;
        gantry_buffer_set_class(g, x, GANTRY_INPUT);
        in[i] = gantry_all(x);
        snprintf(name, sizeof name, "y%d", i);
        y = buffer(g, name, half_out ? 128 : 256);
        out[i] = gantry_all(y);
        if (!i || !one_out)
            gantry_buffer_output(g, y);
    }
    gantry_graph_collective(g, "c", kind, reduces ? GANTRY_SUM : (gantry_access)0, one_in ? 1 : 2, in, one_out ? 1 : 2,
                            out, 0);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.objective = objectives[_i / 8];
    o.effort = _i % 3;
    if (gantry_schedule_new(&s, g, m, &o, &err) || gy_schedule_verify(s, g, &err))
        ck_abort_msg("%s", err.text);
    ck_assert_str_eq(device_of(s, "c"), "d2");
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Scratch of 300 MiB is there four times where launches overlap in four lanes, which 1 GiB has no room for; in one lane
 * it has. Where four times is not too much, the lanes stay. */
START_TEST(lanes_are_given_up_for_scratch)
{
    static const char *const objectives[] = { "makespan", "period", "max_load" };
    gantry_machine *m = parse_machine(
        "{\"gantry_machine\":1,\"name\":\"lanes\",\"memories\":[{\"id\":\"host\",\"capacity\":\"64GiB\"},{\"id\":"
        "\"m0\",\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":\"80GiB\"}],\"devices\":[{\"id\":\"d0\",\"type\":"
        "\"gpu\",\"memory\":\"m0\",\"lanes\":4,\"launch_us\":5},{\"id\":\"d1\",\"type\":\"gpu\",\"memory\":\"m1\","
        "\"lanes\":4,\"launch_us\":5}],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,\"bandwidth_gbs\":10}]"
        "}");
    for (int large = 0; large < 2; large++) {
        gantry_graph *g = gantry_graph_new("scratch");
        char id[16];
        for (int i = 0; i < 4; i++) {
            snprintf(id, sizeof id, "n%d", i);
            gantry_node n = work(g, id, 1);
            gantry_node_on(g, n, "d0");
            gantry_node_scratch(g, n, (large ? 300 : 200) << 20);
            snprintf(id, sizeof id, "b%d", i);
            gantry_buffer b = buffer(g, id, 512);
            gantry_buffer_output(g, b);
            gantry_node_write(g, n, gantry_all(b));
        }
        gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
        gantry_schedule *s = NULL;
        gantry_error err;
        o.objective = objectives[_i];
        if (gantry_schedule_new(&s, g, m, &o, &err) || gy_schedule_verify(s, g, &err))
            ck_abort_msg("%s", err.text);
        uint32_t lanes = 0;
        for (size_t i = 0; i < s->lanes.count; i++)
            lanes += s->lanes.at[i].kind == GY_LANE_COMPUTE && s->lanes.at[i].device == 0;
        ck_assert_uint_eq(lanes, large ? 1 : 4);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
    gantry_machine_free(m);
}
END_TEST

static gantry_graph *tasks_that_read_each_other(uint64_t seed)
{
    gantry_graph *g = gantry_graph_new("random");
    gantry_buffer made[18];
    for (int t = 0; t < 18; t++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", t);
        made[t] = buffer(g, name, 65536);
        snprintf(name, sizeof name, "n%d", t);
        seed = gy_hash64(seed + 1);
        gantry_node n = work(g, name, 5 + (double)(seed % 40));
        for (int k = 1; k <= 3 && k <= t; k++)
            if (seed >> (8 * k) & 1)
                gantry_node_read(g, n, gantry_all(made[t - (int)(seed >> (8 * k + 1) & 7) % t - 1]));
        gantry_node_write(g, n, gantry_all(made[t]));
    }
    return g;
}

/* A limit is as good as a memory of that size: the same is tried, on fewer devices, too. */
START_TEST(a_limit_is_as_a_memory_of_that_size)
{
    gantry_machine *large = small_machine(3, 1 << 30), *small = small_machine(3, 6 * 262144);
    gantry_graph *g = tasks_that_read_each_other((uint64_t)_i);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL, *like = schedule(g, small, NULL);
    gantry_error err;
    size_t fewer = 0;
    o.max_memory = _i % 2 ? "m0=1536KiB,m1=1536KiB,m2=1536KiB" : "d2=1536KiB,,m1=1536KiB,m0=1536KiB";
    ck_assert_msg(!gantry_schedule_new(&s, g, large, &o, &err), "%s", err.text);
    ck_assert_msg(s->makespan == like->makespan, "%lld, not %lld", (long long)s->makespan, (long long)like->makespan);
    for (uint32_t i = 1; i <= 3; i++)
        ck_assert_uint_le(gantry_schedule_peak_bytes(s, i), 6 * 262144);
    for (size_t i = 0; i < s->tried.count; i++)
        fewer += s->tried.at[i].devices > 0;
    ck_assert_uint_gt(fewer, 0);
    gantry_schedule_free(s);
    gantry_schedule_free(like);
    gantry_graph_free(g);
    gantry_machine_free(large);
    gantry_machine_free(small);
}
END_TEST

/* Without the device "b", its name is that of the memory of the other: a limit of that one must not become its. */
START_TEST(names_that_would_change_their_meaning)
{
    gantry_machine *m =
        parse_machine("{\"gantry_machine\":1,\"name\":\"n\",\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},"
                      "{\"id\":\"b\",\"capacity\":\"1GiB\"},{\"id\":\"c\",\"capacity\":\"1GiB\"}],"
                      "\"devices\":[{\"id\":\"a\",\"memory\":\"b\"},{\"id\":\"b\",\"memory\":\"c\"}],"
                      "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":1}]}");
    gantry_machine *first = NULL;
    gy_text text = { 0 };
    ck_assert_int_eq(gantry_machine_select(&first, m, "1", NULL), GANTRY_OK);
    ck_assert(!gy_capacity_select(&text, "b=1MiB", m, first));
    ck_assert(gy_capacity_select(&text, "a=1MiB,c=2MiB,host=3MiB", m, first));
    ck_assert_str_eq(text.at, "a=1MiB,host=3MiB,");
    gy_text_free(&text);
    gantry_machine_free(first);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("capacity");
    TCase *c = tcase_create("capacity");
    tcase_add_test(c, a_chain_fits_in_two_buffers);
    tcase_add_test(c, and_not_in_less);
    tcase_add_loop_test(c, a_need_is_told_from_a_limit_that_is_near, 0, 2);
    tcase_add_test(c, max_memory_is_a_limit);
    tcase_add_loop_test(c, max_memory_is_read_with_care, 0, 4);
    tcase_add_test(c, prefetching_gives_way_to_fitting);
    tcase_add_test(c, holes_are_filled);
    tcase_add_test(c, what_persists_is_never_shared);
    tcase_add_test(c, scratch_counts);
    tcase_add_loop_test(c, ranks_that_no_node_wrote_go_where_there_is_room, 0, 16);
    tcase_add_loop_test(c, lanes_are_given_up_for_scratch, 0, 3);
    tcase_add_loop_test(c, a_limit_is_as_a_memory_of_that_size, 0, 3);
    tcase_add_test(c, names_that_would_change_their_meaning);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
