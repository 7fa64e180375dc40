/* SPDX-License-Identifier: Apache-2.0 */
/* From orders and devices to times, against the same written down naively; contention by hand. */
#include "suite.h"

#include <string.h>

static gy_decode d;

static gy_ticks decode(const bench *b, const placement *at, gy_ticks limit)
{
    memcpy(d.device, at->device, b->model.tasks * sizeof *d.device);
    return gy_decode_run(&d, at->order, limit);
}

START_TEST(times_are_those_of_the_definition)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint64_t state = seed;
        int start[MOST_TASKS], finish[MOST_TASKS];
        problem p = draw_problem(seed, 2 + pick(&state, 13), 2 + pick(&state, 3), false);
        bench b;
        bench_open(&b, &p);
        ck_assert(!b.model.pool && !gy_decode_init(&d, &b.model, NULL));
        for (int i = 0; i < 20; i++) {
            placement at = draw_placement(&p, &state);
            int makespan = time_of(&p, &at, start, finish);
            ck_assert_int_eq(decode(&b, &at, GY_TICKS_MAX), us(makespan));
            for (int t = 0; t < p.tasks; t++)
                ck_assert_int_eq(d.finish[t], us(finish[t]));
            ck_assert_int_eq(decode(&b, &at, us(makespan)), us(makespan));
            ck_assert_int_gt(decode(&b, &at, us(makespan) - 1), us(makespan) - 1);
        }
        gy_decode_free(&d);
        bench_close(&b);
    }
}
END_TEST

/* Each task of the chain begins when the one behind it in the list has ended, or has sent its data; the first one ends
 * last, and the last one waits for nobody. */
START_TEST(the_chain_explains_the_makespan)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t state = seed;
        int start[MOST_TASKS], finish[MOST_TASKS];
        uint32_t chain[MOST_TASKS];
        problem p = draw_problem(seed + 5000, 3 + pick(&state, 12), 2, false);
        bench b;
        bench_open(&b, &p);
        ck_assert(!gy_decode_init(&d, &b.model, NULL));
        placement at = draw_placement(&p, &state);
        int makespan = time_of(&p, &at, start, finish);
        (void)decode(&b, &at, GY_TICKS_MAX);
        uint32_t count = gy_decode_critical(&d, chain);
        ck_assert_uint_ge(count, 1);
        ck_assert_int_eq(finish[chain[0]] + fetch_of(&p, &at, chain[0]), makespan);
        for (uint32_t i = 0; i + 1 < count; i++) {
            uint32_t t = chain[i], from = chain[i + 1];
            bool device = at.device[t] == at.device[from] && finish[from] == start[t];
            int move = at.device[t] == at.device[from] ? 0 : p.bytes[from][t];
            ck_assert(device || (p.bytes[from][t] && finish[from] + move == start[t]));
        }
        ck_assert_int_eq(start[chain[count - 1]], p.input[chain[count - 1]]);
        gy_decode_free(&d);
        bench_close(&b);
    }
}
END_TEST

/* The best of all orders, continued after `placed` tasks. */
static void try_orders(const problem *p, placement *at, int placed, gy_ticks *best)
{
    int start[MOST_TASKS], finish[MOST_TASKS];
    if (placed == p->tasks) {
        gy_ticks makespan = gy_decode_run(&d, at->order, GY_TICKS_MAX);
        *best = makespan < *best ? makespan : *best;
        memcpy(at->device, d.device, (size_t)p->tasks * sizeof *at->device);
        ck_assert_int_eq(us(time_of(p, at, start, finish)), makespan);
        return;
    }
    for (int t = 0; t < p->tasks; t++) {
        bool ready = true;
        for (int from = 0; from <= t; from++) {
            bool there = false;
            for (int k = 0; k < placed; k++)
                there = there || at->order[k] == (uint32_t)from;
            ready = ready && (from == t ? !there : there || !p->bytes[from][t]);
        }
        at->order[placed] = (uint32_t)t;
        if (ready)
            try_orders(p, at, placed + 1, best);
    }
}

/* Devices are chosen while decoding: times are those of the definition for them, and some order gives the optimum over
 * all orders and devices. */
START_TEST(pools_choose_devices)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        problem p = draw_problem(seed, 2 + (int)seed % 4, 2 + (int)seed % 2, true);
        gy_ticks best = GY_TICKS_MAX;
        placement at;
        bench b;
        bench_open(&b, &p);
        ck_assert(b.model.pool && !gy_decode_init(&d, &b.model, NULL));
        try_orders(&p, &at, 0, &best);
        ck_assert_int_eq(best, us(brute_force(&p)));
        gy_decode_free(&d);
        bench_close(&b);
    }
}
END_TEST

/* Host to GPUs at 12 GB/s over one link, 5 us more before a copy arrives. */
static const char shared_link[] =
    "{\"gantry_machine\":1,\"name\":\"shared\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"g0\",\"capacity\":\"1GiB\"},{\"id\":\"g1\",\"capacity\":\"1GiB\"}],"
    "\"devices\":[{\"id\":\"g0\",\"type\":\"gpu\",\"memory\":\"g0\",\"copy_engines\":1},{\"id\":\"g1\",\"type\":"
    "\"gpu\",\"memory\":\"g1\"}"
    "],"
    "\"resources\":{\"up\":12,\"down\":12},\"routes\":["
    "{\"from\":\"host\",\"to\":\"g*\",\"latency_us\":5,\"bandwidth_gbs\":12,\"via\":[\"up\"]},"
    "{\"from\":\"g*\",\"to\":\"host\",\"latency_us\":5,\"bandwidth_gbs\":12,\"via\":[\"down\"]}],"
    "\"model\":{\"launch_us\":0}}";

/* Two inputs of 12 MB, 1000 us each on the link: the second is sent when the link is free, at 1000, and is there at
 * 2005, for 10 us of work. Both on the device with one engine: it is busy for 1005 us with the first, so the
 * second is there at 2010.
 */
START_TEST(transfers_wait_for_the_link)
{
    gantry_machine *m = NULL;
    gantry_error err;
    gantry_graph *g = gantry_graph_new("uploads");
    for (int i = 0; i < 2; i++) {
        int64_t shape[1] = { 12000000 };
        gantry_buffer in = gantry_graph_buffer(g, i ? "y" : "x", GANTRY_U8, 1, shape);
        gantry_buffer_init_value(g, in, 0);
        gantry_node n = gantry_graph_work(g, i ? "b" : "a");
        gantry_node_time(g, n, NULL, 10);
        gantry_node_read(g, n, gantry_all(in));
    }
    ck_assert(!gantry_machine_parse(&m, shared_link, strlen(shared_link), "shared", &err));
    bench b;
    bench_of(&b, g, m);
    ck_assert(b.model.roads && !gy_decode_init(&d, &b.model, NULL));
    placement at = { { 0, 1 }, { 0, 1 } };
    ck_assert_int_eq(decode(&b, &at, GY_TICKS_MAX), us(2015));
    at.device[1] = 0;
    ck_assert_int_eq(decode(&b, &at, GY_TICKS_MAX), us(2020));
    gy_decode_free(&d);
    bench_close(&b);
}
END_TEST

/* Five bytes are made in 10 us, read for 100 us, and changed in 10 us. A byte goes from memory to memory in 1 us. */
static gantry_graph *graph_in_place(void)
{
    gantry_graph *g = gantry_graph_new("in_place");
    int64_t shape[1] = { 5 };
    gantry_region x = gantry_all(gantry_graph_buffer(g, "x", GANTRY_U8, 1, shape));
    gantry_node make = gantry_graph_work(g, "make"), read = gantry_graph_work(g, "read");
    gantry_node change = gantry_graph_work(g, "change");
    gantry_node_time(g, make, NULL, 10);
    gantry_node_time(g, read, NULL, 100);
    gantry_node_time(g, change, NULL, 10);
    gantry_node_write(g, make, x);
    gantry_node_read(g, read, x);
    gantry_node_readwrite(g, change, x);
    return g;
}

/* Where the reader has a copy, at 15 us, rows may be changed as soon as that is made; where it reads the rows
 * themselves, once it has ended; where the copy is changed, too. */
START_TEST(a_write_waits_for_reads_of_its_memory)
{
    const struct {
        uint32_t device[3];
        int begin;
    } want[] = {
        { { 0, 0, 0 }, 110 }, { { 0, 1, 0 }, 15 }, { { 0, 1, 1 }, 115 }, { { 0, 0, 1 }, 15 }, { { 0, 1, 2 }, 15 }
    };
    bench b;
    bench_of(&b, graph_in_place(), make_machine(3));
    ck_assert(!gy_decode_init(&d, &b.model, NULL));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        placement at = { .order = { 0, 1, 2 } };
        memcpy(at.device, want[i].device, sizeof want[i].device);
        (void)decode(&b, &at, GY_TICKS_MAX);
        ck_assert_int_eq(d.finish[2], us(want[i].begin + 10));
    }
    gy_decode_free(&d);
    bench_close(&b);
}
END_TEST

/* Moves one task in the order, as far as dependencies allow, and another to some device; returns the first position
 * that a decode has to look at, with all predecessors of what moved, and whether uploads may be others. */
static uint32_t disturb(const gy_model *m, uint32_t *order, uint32_t *device, uint64_t *state, bool *uploads)
{
    uint32_t first = (uint32_t)pick(state, (int)m->tasks), k = first, t;
    bool free = true;
    *uploads = false;
    for (; k + 1 < m->tasks && free && pick(state, 4); k += free) {
        for (size_t i = m->pred_first[order[k + 1]]; i < m->pred_first[order[k + 1] + 1]; i++)
            free = free && m->pred[i].task != order[k];
        if (!free)
            break;
        t = order[k];
        order[k] = order[k + 1];
        order[k + 1] = t;
        *uploads = true;
    }
    if (pick(state, 3)) {
        t = (uint32_t)pick(state, (int)m->tasks);
        device[t] = (uint32_t)pick(state, (int)m->devices);
        *uploads = *uploads || (m->roads && m->roads->upload_first[t + 1] > m->roads->upload_first[t]);
        for (k = 0; k < m->tasks; k++) {
            bool looked_at = order[k] == t;
            for (size_t i = m->pred_first[t]; i < m->pred_first[t + 1]; i++)
                looked_at = looked_at || m->pred[i].task == order[k];
            first = looked_at && k < first ? k : first;
        }
    }
    return first;
}

/* From where a placement differs from the one that was kept, as from the beginning: the same time, the same ends, the
 * same chain; with what was dropped in between, and with limits. */
START_TEST(from_the_first_difference_as_from_the_beginning)
{
    int again = 0, cut = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint64_t state = seed;
        uint32_t order[MOST_TASKS], chain[MOST_TASKS], chain_of_all[MOST_TASKS], kept[MOST_TASKS];
        problem p = draw_problem(seed + 70, 14, 3, false);
        gantry_machine *m = _i ? NULL : make_machine(3);
        ck_assert(m || !gantry_machine_virtual(&m, 3, NULL));
        bench b;
        bench_of(&b, _i ? graph_with_contention(seed) : make_graph(&p), m);
        ck_assert(!_i == !b.model.roads);
        gy_decode all;
        ck_assert(!gy_decode_init(&d, &b.model, NULL) && !gy_decode_init(&all, &b.model, NULL));
        ck_assert(gy_decode_has_trail(&d));
        for (uint32_t t = 0; t < 14; t++) {
            kept[t] = t;
            d.device[t] = (uint32_t)pick(&state, 3);
        }
        gy_ticks now = gy_decode_run(&d, kept, GY_TICKS_MAX);
        gy_decode_keep(&d, kept);
        for (int i = 0; i < 200; i++) {
            uint32_t device[MOST_TASKS];
            bool uploads;
            memcpy(order, kept, sizeof order);
            memcpy(device, d.device, 14 * sizeof *device);
            uint32_t first = disturb(&b.model, order, d.device, &state, &uploads);
            memcpy(all.device, d.device, 14 * sizeof *device);
            gy_ticks limit = pick(&state, 3) ? GY_TICKS_MAX : now;
            gy_ticks expected = gy_decode_run(&all, order, GY_TICKS_MAX);
            gy_ticks found = gy_decode_again(&d, order, first, uploads, limit);
            ck_assert(expected > limit ? found > limit : found == expected);
            again += d.from > 0;
            if (found <= limit) {
                ck_assert(!memcmp(d.finish, all.finish, 14 * sizeof *d.finish));
                uint32_t count = gy_decode_critical(&d, chain);
                ck_assert_uint_eq(count, gy_decode_critical(&all, chain_of_all));
                ck_assert(!memcmp(chain, chain_of_all, count * sizeof *chain));
            }
            if (found <= limit && pick(&state, 2)) {
                gy_decode_keep(&d, order);
                memcpy(kept, order, sizeof kept);
                now = found;
            } else {
                gy_decode_drop(&d, order);
                memcpy(d.device, device, 14 * sizeof *device);
                cut += found > limit;
            }
        }
        gy_decode_free(&d);
        gy_decode_free(&all);
        bench_close(&b);
    }
    ck_assert_int_gt(again, 1000);
    ck_assert_int_gt(cut, 500);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("decode");
    TCase *c = tcase_create("decode");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, times_are_those_of_the_definition);
    tcase_add_test(c, the_chain_explains_the_makespan);
    tcase_add_test(c, pools_choose_devices);
    tcase_add_test(c, transfers_wait_for_the_link);
    tcase_add_test(c, a_write_waits_for_reads_of_its_memory);
    tcase_add_loop_test(c, from_the_first_difference_as_from_the_beginning, 0, 2);
    suite_add_tcase(s, c);
    return run_suite(s);
}
