/* SPDX-License-Identifier: Apache-2.0 */
/* Times of routes against hand-computed numbers, and the composition of relays. */
#include "suite.h"
#include <stdio.h>

#define US       GY_TICKS_PER_US
#define MEMORIES "'memories':[{'id':'host','capacity':1000},{'id':'a','capacity':1000},{'id':'b','capacity':1000}"
#define MACHINE(memories, devices, rest)                                                                               \
    "{'gantry_machine':1,'name':'t'," MEMORIES memories "],'devices':[" devices "]," rest "}"
#define DEVICE        "{'id':'d','memory':'a'}"
#define ALL(from, to) "{'from':'" from "','to':'" to "','both':true,'latency_us':1,'bandwidth_gbs':1}"

/* The machine of the worked examples: one byte per microsecond, no latency. */
START_TEST(textbook_machine)
{
    gantry_machine *m = machine_of(MACHINE("", "{'id':'P1','memory':'a'},{'id':'P2','memory':'b'}",
                                           "'routes':[{'from':'*','to':'*','bandwidth_gbs':0.001}],"
                                           "'model':{'contention':'off','launch_us':0}"));
    const gy_route *r = route_of(m, "a", "b");
    ck_assert(!m->contention && m->device[0].launch == 0 && m->launch == 0);
    ck_assert_int_eq(gy_route_latency(r), 0);
    ck_assert_int_eq(gy_route_time(m, r, 0), 0);
    for (int64_t c = 1; c < 40; c++) { /* c bytes take exactly c microseconds */
        ck_assert_int_eq(gy_route_time(m, r, c), c * US);
        ck_assert_int_eq(gy_route_rate(r, c), 1000000);
    }
    ck_assert_int_eq(copy_ticks(m, "a", "a", 1000), 0 + 1); /* no bandwidth given: at GY_RATE_MAX, rounded up */
    ck_assert_double_eq(gantry_machine_copy_us(m, 1, 2, 18), 18.0);
    gantry_machine_free(m);
}
END_TEST

START_TEST(latency_and_bandwidth)
{
    gantry_machine *m =
        machine_of(MACHINE("", DEVICE, "'routes':[{'from':'*','to':'*','latency_us':2.5,'bandwidth_gbs':3}]"));
    const gy_route *r = route_of(m, "a", "b");
    ck_assert_int_eq(gy_route_latency(r), 2500000);
    ck_assert_int_eq(gy_route_time(m, r, 0), 2500000);
    /* 1 byte at 3 GB/s: 333.33 ps, rounded up. 3000 bytes: 1 us. */
    ck_assert_int_eq(gy_route_time(m, r, 1), 2500000 + 334);
    ck_assert_int_eq(gy_route_time(m, r, 3000), 3500000);
    ck_assert_int_eq(gy_route_time(m, r, -5), 2500000);
    ck_assert_int_eq(gy_route_rate(r, 3000), 3000000000);
    ck_assert_int_eq(gy_route_rate(r, 0), GY_RATE_MAX);
    /* 2^62 bytes take 1.5e9 s: more than the clock can say. */
    ck_assert_int_eq(gy_route_time(m, r, INT64_C(1) << 62), GY_TICKS_MAX);
    gantry_machine_free(m);
}
END_TEST

START_TEST(points_are_joined_by_lines)
{
    gantry_machine *m = machine_of(
        MACHINE("", DEVICE, "'routes':[{'from':'*','to':'*','points':[[100,2],[200,2],[1200,4],[2200,14]]}]"));
    const gy_route *r = route_of(m, "b", "a");
    static const gy_point want[] = {
        { 0, 2000000 },     { 100, 2000000 },   { 150, 2000000 },     { 200, 2000000 },
        { 201, 2002000 },   { 700, 3000000 },   { 1200, 4000000 },    { 1700, 9000000 },
        { 2200, 14000000 }, { 2300, 15000000 }, { 12200, 114000000 },
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_int_eq(gy_route_time(m, r, want[i].bytes), want[i].time);
    ck_assert_int_eq(gy_route_latency(r), 2000000);
    /* the flow of 700 bytes takes 1 us; that of 150 no time at all */
    ck_assert_int_eq(gy_route_rate(r, 700), 700000000);
    ck_assert_int_eq(gy_route_rate(r, 150), GY_RATE_MAX);
    gantry_machine_free(m);
}
END_TEST

/* Both phases add up to the solo time, to the rounding of a rate in whole bytes per second. */
START_TEST(phases_add_up)
{
    gantry_machine *m = load_machine("hgx-h200-8");
    const gy_route *r = route_of(m, "gpu0", "gpu1");
    for (int64_t bytes = 5000; bytes < INT64_C(1) << 40; bytes = bytes * 5 / 3) {
        gy_ticks flow = gy_ticks_of((uint64_t)bytes, gy_route_rate(r, bytes));
        gy_ticks off = gy_route_latency(r) + flow - gy_route_time(m, r, bytes);
        ck_assert_msg(off <= 1 && off >= -1 - flow / 1000000000, "%lld bytes: off by %lld", (long long)bytes,
                      (long long)off);
    }
    gantry_machine_free(m);
}
END_TEST

START_TEST(copies_within_a_memory)
{
    gantry_machine *m = machine_of(MACHINE(
        "", "{'id':'d','memory':'a','bandwidth_gbs':100,'launch_us':3},{'id':'e','memory':'a','bandwidth_gbs':50}",
        "'routes':[{'from':'*','to':'*','bandwidth_gbs':1},"
        "{'from':'b','to':'b','latency_us':7,'bandwidth_gbs':2}]"));
    const gy_route *a = route_of(m, "a", "a"), *b = route_of(m, "b", "b");
    ck_assert(a->kind == GY_ROUTE_DIRECT && !a->given && b->given);
    /* 1,000,000 bytes are read and written: 2,000,000 at 100 GB/s is 20 us, after the launch */
    ck_assert_int_eq(gy_route_time(m, a, 1000000), 23 * US);
    ck_assert_int_eq(gy_route_time(m, b, 2000), 8 * US);
    gantry_machine_free(m);
}
END_TEST

/* Of two devices in a memory the slower counts; the host has none; a memory to itself tells nobody. */
START_TEST(signals)
{
    gantry_machine *m =
        machine_of(MACHINE("",
                           "{'id':'d','type':'gpu','memory':'a','signal_us':3},{'id':'e','memory':'a','signal_us':1},"
                           "{'id':'f','type':'gpu','memory':'b','signal_us':2}",
                           "'routes':[{'from':'*','to':'*','bandwidth_gbs':1}]"));
    uint32_t a = gy_machine_find_memory(m, "a"), b = gy_machine_find_memory(m, "b");
    ck_assert_int_eq(gy_machine_signals(m, a, b), 5 * US);
    ck_assert_int_eq(gy_machine_signals(m, b, 0), 2 * US);
    ck_assert_int_eq(gy_machine_signals(m, a, a), 0);
    ck_assert_int_eq(gy_device_signal(&m->device[0], &m->device[2], false), 3 * US);
    ck_assert_int_eq(gy_device_signal(&m->device[2], &m->device[2], true), 2 * US);
    ck_assert_int_eq(gy_device_signal(&m->device[2], &m->device[2], false), 0);
    gantry_machine_free(m);
}
END_TEST

START_TEST(staged_through_host)
{
    gantry_machine *m = machine_of(
        MACHINE("", DEVICE, "'routes':[{'from':'host','to':['a','b'],'both':true,'latency_us':10,'bandwidth_gbs':1}]"));
    const gy_route *r = route_of(m, "a", "b");
    ck_assert_int_eq(r->kind, GY_ROUTE_STAGED);
    ck_assert_uint_eq(r->via, 0);
    ck_assert(r->hop[0] == route_of(m, "a", "host") && r->hop[1] == route_of(m, "host", "b"));
    ck_assert_int_eq(gy_route_latency(r), 20 * US);
    ck_assert_int_eq(gy_route_time(m, r, 1000), 22 * US); /* twice 10 + 1 */
    ck_assert_int_eq(gy_route_rate(r, 1000), 500000000);  /* 1000 bytes in 2 us */
    ck_assert_double_eq(gantry_machine_copy_us(m, 1, 2, 1000), 22.0);
    gantry_machine_free(m);
}
END_TEST

#define FOUR ",{'id':'c','capacity':9},{'id':'d','capacity':9}"

/* a to d: through b or c at 2 us + 2 MiB / 1 GB/s, or host at half that speed. */
START_TEST(relay_takes_the_fastest)
{
    static const char *const better[] = { "b", "c" };
    for (int i = 0; i < 2; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 MACHINE(FOUR, DEVICE,
                         "'routes':[{'from':'host','to':['a','b','c','d'],'both':true,'bandwidth_gbs':0.5},"
                         "{'from':['a','d'],'to':'b','both':true,'latency_us':%d,'bandwidth_gbs':1},"
                         "{'from':['a','d'],'to':'c','both':true,'latency_us':%d,'bandwidth_gbs':1}]"),
                 i ? 2 : 1, i ? 1 : 2);
        gantry_machine *m = machine_of(text);
        const gy_route *r = route_of(m, "a", "d");
        ck_assert_int_eq(r->kind, GY_ROUTE_RELAY);
        ck_assert_str_eq(m->memory[r->via].id, better[i]);
        ck_assert_int_eq(gy_route_time(m, r, 1 << 20), (2 + 2 * 1048.576) * 1e6);
        gantry_machine_free(m);
    }
}
END_TEST

/* At 1 MiB the host wins over a relay that is faster for small copies; equal relays: the lower index. */
START_TEST(relay_ties_and_size)
{
    gantry_machine *m = machine_of(
        MACHINE(FOUR, DEVICE,
                "'routes':[{'from':'host','to':['a','b','c','d'],'both':true,'latency_us':50,'bandwidth_gbs':2},"
                "{'from':['a','d'],'to':['b','c'],'both':true,'latency_us':1,'bandwidth_gbs':1}]"));
    ck_assert_int_eq(route_of(m, "a", "d")->kind, GY_ROUTE_STAGED);
    ck_assert_int_eq(route_of(m, "b", "c")->kind, GY_ROUTE_STAGED);
    gantry_machine_free(m);
    m = machine_of(
        MACHINE(FOUR, DEVICE,
                "'routes':[{'from':'host','to':['a','b','c','d'],'both':true,'latency_us':1,'bandwidth_gbs':1},"
                "{'from':['a','d'],'to':['b','c'],'both':true,'latency_us':1,'bandwidth_gbs':1}]"));
    ck_assert_uint_eq(route_of(m, "a", "d")->via, 0);
    gantry_machine_free(m);
}
END_TEST

START_TEST(no_route_outside)
{
    gantry_machine *m = machine_of(MACHINE("", DEVICE, "'routes':[" ALL("*", "host") "]"));
    const gy_route *none = gy_machine_route(m, 0, 3);
    ck_assert_int_eq(none->kind, GY_ROUTE_NONE);
    ck_assert_int_eq(gy_route_time(m, none, 1), GY_TICKS_MAX);
    ck_assert_int_eq(gy_route_latency(none), GY_TICKS_MAX);
    ck_assert_int_eq(gy_route_rate(none, 1), 0);
    ck_assert_double_lt(gantry_machine_copy_us(m, 0, 3, 1), 0);
    ck_assert_double_lt(gantry_machine_copy_us(m, 3, 0, 1), 0);
    ck_assert_double_lt(gantry_machine_copy_us(NULL, 0, 0, 1), 0);
    ck_assert_double_gt(gantry_machine_copy_us(m, 0, 1, UINT64_MAX), 0);
    gantry_machine_free(m);
}
END_TEST

START_TEST(speeds_stand_in)
{
    gantry_machine *m =
        machine_of("{'gantry_machine':1,'memories':[{'id':'host','capacity':1}],'devices':["
                   "{'id':'x','memory':'host','gflops':{'f32':10,'bf16':40}},{'id':'y','memory':'host'}]}");
    const gy_device *x = &m->device[0], *y = &m->device[1];
    ck_assert_double_eq(gy_device_gflops(x, GANTRY_F32), 10);
    ck_assert_double_eq(gy_device_gflops(x, GANTRY_BF16), 40);
    ck_assert_double_eq(gy_device_gflops(x, GANTRY_F16), 10);
    ck_assert_double_eq(gy_device_gflops(x, GANTRY_F64), 5);
    ck_assert_double_eq(gy_device_gflops(x, GANTRY_I32), 10);
    ck_assert_double_eq(gy_device_gflops(y, GANTRY_F32), 0);
    ck_assert_double_eq(gy_device_gflops(x, GANTRY_DTYPE_COUNT), 0);
    gantry_machine_free(m);
}
END_TEST

/* Two computers of which only the host memories reach each other, and GPUs their own host memory: what arrays of each
 * process are in is the host memory of its computer, also where the way there from memory 0 is composed. */
START_TEST(arrays_are_at_hand)
{
    static const char *want[] = { "host", "host", "host", "host", "far", "far" };
    gantry_machine *m = machine_of(
        MACHINE(",{'id':'far','capacity':1000,'rank':1},{'id':'c','capacity':1000,'rank':1},{'id':'d','capacity':1000,'"
                "rank':1}",
                "{'id':'A','type':'gpu','memory':'a'},{'id':'B','type':'gpu','memory':'b'},"
                "{'id':'C','type':'gpu','memory':'c'},{'id':'D','type':'gpu','memory':'d'}",
                "'routes':[" ALL("host", "a") "," ALL("host", "b") "," ALL("far", "c") "," ALL(
                    "far", "d") ","
                                "{'from':['host','a','b'],'to':'far','both':true,'bandwidth_gbs':1,'network':true}]"));
    for (uint32_t i = 0; i < m->memories; i++)
        ck_assert_str_eq(m->memory[m->memory[i].arrays].id, want[i]);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine routes");
    TCase *tc = tcase_create("routes");
    tcase_add_test(tc, textbook_machine);
    tcase_add_test(tc, latency_and_bandwidth);
    tcase_add_test(tc, points_are_joined_by_lines);
    tcase_add_test(tc, phases_add_up);
    tcase_add_test(tc, copies_within_a_memory);
    tcase_add_test(tc, signals);
    tcase_add_test(tc, staged_through_host);
    tcase_add_test(tc, relay_takes_the_fastest);
    tcase_add_test(tc, relay_ties_and_size);
    tcase_add_test(tc, no_route_outside);
    tcase_add_test(tc, speeds_stand_in);
    tcase_add_test(tc, arrays_are_at_hand);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
