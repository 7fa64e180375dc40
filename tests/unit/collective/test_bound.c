/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of collectives, published and hand-made ones; no algorithm beats them, on random machines. */
#include "suite.h"

#include "base/text.h"
#include "support/run_suite.h"

static gy_collective_limit bound(const gantry_machine *m, const gy_group *g)
{
    gy_collective_limit l;
    ck_assert(gy_collective_bound(&l, m, g));
    return l;
}

/* SCCL (PPoPP 2021): 7/6 rounds a chunk, where a round is a chunk over one NVLink (25 GB/s); 2 steps. */
START_TEST(dgx1_all_gather)
{
    gantry_machine *m = load("dgx1-v100", false);
    const int64_t chunk = 25000000; /* 1000 us on one link */
    gy_group g = group(GANTRY_ALL_GATHER, 8, 8 * chunk);
    gy_collective_limit l = bound(m, &g);
    ck_assert_int_eq(l.bytes * 6,
                     7 * chunk * (l.rate / 25000000000)); /* 7 chunks over 6 links, or as many times more */
    ck_assert_double_eq_tol(us(l.bandwidth), 1000 * 7.0 / 6, 0.01);
    ck_assert_uint_eq(l.steps, 2);
    ck_assert_double_eq_tol(us(l.latency), 4, 1e-9); /* 2 us a hop */
    gy_group_free(&g);
    gantry_machine_free(m);
}
END_TEST

/* all_reduce on ports: 2 (p-1)/p of the bytes into each of 8 GPUs. broadcast: all bytes out of the root, and in. */
START_TEST(eight_ports)
{
    gantry_machine *m = load("hgx-h200-8", false);
    gy_group sum = group(GANTRY_ALL_REDUCE, 8, 1 << 30), cast = group(GANTRY_BROADCAST, 8, 1 << 30);
    ck_assert_double_eq_tol(us(bound(m, &sum).time), 1.75 * (1 << 30) / 397.2e3, 0.1);
    ck_assert_double_eq_tol(us(bound(m, &cast).time), (1 << 30) / 397.2e3, 0.1);
    gy_group_free(&sum);
    gy_group_free(&cast);
    gantry_machine_free(m);
}
END_TEST

/* Two pairs joined by one slow link: what must cross it decides, not what enters a rank. */
START_TEST(a_narrow_middle)
{
    gantry_machine *m = parse(
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"a\",\"capacity\":"
        "\"1GiB\"},"
        "{\"id\":\"b\",\"capacity\":\"1GiB\"},{\"id\":\"c\",\"capacity\":\"1GiB\"},{\"id\":\"d\",\"capacity\":\"1GiB\"}"
        "],"
        "\"devices\":[{\"id\":\"a\",\"memory\":\"a\"},{\"id\":\"b\",\"memory\":\"b\"},{\"id\":\"c\",\"memory\":\"c\"},"
        "{\"id\":\"d\",\"memory\":\"d\"}],\"resources\":{\"right\":1,\"left\":1},\"routes\":["
        "{\"from\":\"a\",\"to\":\"b\",\"both\":true,\"bandwidth_gbs\":10},{\"from\":\"c\",\"to\":\"d\",\"both\":true,"
        "\"bandwidth_gbs\":10},{\"from\":[\"a\",\"b\"],\"to\":[\"c\",\"d\"],\"bandwidth_gbs\":1,\"via\":[\"right\"]},"
        "{\"from\":[\"c\",\"d\"],\"to\":[\"a\",\"b\"],\"bandwidth_gbs\":1,\"via\":[\"left\"]},"
        "{\"from\":\"host\",\"to\":[\"a\",\"b\",\"c\",\"d\"],\"both\":true,\"bandwidth_gbs\":1}]}");
    gy_group gather = group(GANTRY_ALL_GATHER, 4, 4000000), swap = group(GANTRY_ALL_TO_ALL, 4, 16000000);
    gy_collective_limit l = bound(m, &gather);
    ck_assert_double_eq_tol(us(l.time), 2000, 1); /* two parts of 1 MB at 1 GB/s */
    ck_assert(l.inside == 3 || l.inside == 12);
    l = bound(m, &swap);
    ck_assert_double_eq_tol(us(l.time), 4000, 1); /* two ranks send two blocks each */
    gy_group_free(&gather);
    gy_group_free(&swap);
    gantry_machine_free(m);
}
END_TEST

/* ---- random machines ---- */

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

static void put_route(gy_text *t, uint32_t from, uint32_t to, uint32_t resources)
{
    gy_text_printf(t, ",{\"from\":\"m%u\",\"to\":\"m%u\",", from, to);
    if (below(3))
        gy_text_printf(t, "\"latency_us\":%g,\"bandwidth_gbs\":%g", below(40) / 4.0, 1 + below(80) / 2.0);
    else
        gy_text_printf(t, "\"points\":[[%u,%g],[%u,%g],[%u,%g]]", 1 + below(999), below(9) / 2.0, 1000 + below(99999),
                       5.0 + below(9), 200000 + below(999999), 15.0 + below(99));
    gy_text_add(t, ",\"via\":[");
    bool any = false;
    for (uint32_t r = 0; r < resources; r++)
        if (!below(3)) {
            gy_text_printf(t, "%s\"r%u\"", any ? "," : "", r);
            any = true;
        }
    gy_text_add(t, "]}");
}

static gantry_machine *random_machine(uint32_t devices)
{
    gy_text t = { 0 };
    uint32_t resources = 1 + below(6);
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"64GiB\"}");
    for (uint32_t i = 1; i <= devices; i++)
        gy_text_printf(&t, ",{\"id\":\"m%u\",\"capacity\":\"64GiB\"}", i);
    gy_text_add(&t, "],\"devices\":[");
    const char *type = below(2) ? "gpu" : "cpu";
    for (uint32_t i = 1; i <= devices; i++)
        gy_text_printf(&t, "%s{\"id\":\"d%u\",\"type\":\"%s\",\"memory\":\"m%u\",\"copy_engines\":%u,\"launch_us\":%u}",
                       i > 1 ? "," : "", i, type, i, 1 + below(4), below(5));
    gy_text_add(&t, "],\"resources\":{");
    for (uint32_t r = 0; r < resources; r++)
        gy_text_printf(&t, "%s\"r%u\":%g", r ? "," : "", r, 1 + below(100) / 2.0);
    gy_text_add(&t,
                "},\"routes\":[{\"from\":\"host\",\"to\":\"m*\",\"both\":true,\"latency_us\":3,\"bandwidth_gbs\":4}");
    for (uint32_t from = 1; from <= devices; from++)
        for (uint32_t to = 1; to <= devices; to++)
            if (from != to && below(5))
                put_route(&t, from, to, resources);
    gy_text_printf(&t, "],\"model\":{\"contention\":\"%s\"}}", below(5) ? "on" : "off");
    ck_assert(!t.failed);
    gantry_machine *m = parse(t.at);
    gy_text_free(&t);
    return m;
}

static gy_group random_group(gantry_collective kind, uint32_t ranks)
{
    int64_t part[16], bytes = 1 + below(1000) * (INT64_C(1) << below(14));
    if (kind == GANTRY_ALL_TO_ALL || below(2))
        return group(kind, ranks, bytes / (16 * ranks) * 16 * ranks);
    for (uint32_t i = 0; i < ranks; i++)
        part[i] = below(4) ? below(1 << (1 + below(18))) : 0;
    return uneven(kind, ranks, part);
}

static int looked_at, tight;

static void hold(const gantry_machine *m, const gy_group *g)
{
    gy_collective_limit l = bound(m, g);
    for (int a = 1; a < GY_ALGORITHM_COUNT; a++) {
        gy_way way = look(m, g, (gy_algorithm)a);
        if (way.refused)
            continue;
        ck_assert_msg(way.time >= l.time, "%s by %s takes %g us, below the bound of %g us (state %llu)",
                      gantry_collective_name(g->kind), gy_algorithm_name((gy_algorithm)a), us(way.time), us(l.time),
                      (unsigned long long)state);
        looked_at++;
        tight += way.time < 2 * l.time;
    }
    ck_assert(choose(m, g).time >= l.time);
}

START_TEST(no_algorithm_is_faster)
{
    state = 1;
    for (int turn = 0; turn < 400; turn++) {
        uint32_t ranks = 2 + below(9);
        gantry_machine *m = random_machine(ranks);
        for (gantry_collective kind = GANTRY_ALL_REDUCE; kind <= GANTRY_ALL_TO_ALL; kind++) {
            gy_group g = random_group(kind, ranks);
            hold(m, &g);
            gy_group_free(&g);
        }
        gantry_machine_free(m);
    }
    ck_assert_int_gt(looked_at, 8000);
    ck_assert_int_gt(tight, looked_at / 20); /* a bound of 0 would pass too */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("collective bound");
    TCase *c = tcase_create("bound");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, dgx1_all_gather);
    tcase_add_test(c, eight_ports);
    tcase_add_test(c, a_narrow_middle);
    tcase_add_test(c, no_algorithm_is_faster);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
