/* SPDX-License-Identifier: Apache-2.0 */
/* Which device has which part: against all ways to seat the parts of random graphs, and for a butterfly, by hand. */
#include "suite.h"

#include "scheduler/search/seats.h"
#include <string.h>

enum { DEVICES = 6, ISLAND = 3, TASKS = 24, NEAR = 1, FAR = 7 };

/* Islands of so many; a byte takes 1 us within one and 7 us between two, and nothing from or to the host. */
static gantry_machine *machine_of(int devices, int island)
{
    gantry_machine *m = NULL;
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}");
    for (int i = 0; i < devices; i++)
        gy_text_printf(&t, ",{\"id\":\"m%d\",\"capacity\":\"1GiB\"}", i);
    gy_text_add(&t, "],\"devices\":[");
    for (int i = 0; i < devices; i++)
        gy_text_printf(&t, "%s{\"id\":\"d%d\",\"memory\":\"m%d\"}", i ? "," : "", i, i);
    gy_text_add(&t, "],\"routes\":[{\"from\":\"host\",\"to\":\"m*\",\"bandwidth_gbs\":1000,\"both\":true}");
    for (int i = 0; i < devices; i++)
        for (int k = 0; k < devices; k++)
            if (i != k)
                gy_text_printf(&t, ",{\"from\":\"m%d\",\"to\":\"m%d\",\"points\":[[0,0],[1000,%d],[2000,%d]]}", i, k,
                               1000 * (i / island == k / island ? NEAR : FAR),
                               2000 * (i / island == k / island ? NEAR : FAR));
    gy_text_add(&t, "],\"model\":{\"contention\":\"off\",\"launch_us\":0}}");
    ck_assert(!t.failed);
    ck_assert_int_eq(gantry_machine_parse(&m, t.at, t.length, "islands", NULL), GANTRY_OK);
    gy_text_free(&t);
    return m;
}

/* Each task writes so many bytes, which others read. */
typedef struct sketch {
    int tasks, bytes[TASKS];
    bool reads[TASKS][TASKS]; /* the later one what the earlier one wrote */
} sketch;

static gantry_graph *graph_of(const sketch *s)
{
    gantry_graph *g = gantry_graph_new("seats");
    gantry_buffer b[TASKS];
    for (int t = 0; t < s->tasks; t++) {
        char name[16];
        int64_t shape[] = { s->bytes[t] };
        snprintf(name, sizeof name, "t%d", t);
        b[t] = gantry_graph_buffer(g, name, GANTRY_U8, 1, shape);
        gantry_node n = gantry_graph_work(g, name);
        gantry_node_time(g, n, NULL, 1);
        for (int from = 0; from < t; from++)
            if (s->reads[t][from])
                gantry_node_read(g, n, gantry_all(b[from]));
        gantry_node_write(g, n, gantry_all(b[t]));
    }
    return g;
}

/* All that goes from device to device, in us: what a task wrote once to each other device where it is read. */
static int64_t sum_of(const sketch *s, const uint32_t *device, const uint32_t *seat, int island)
{
    int64_t sum = 0;
    for (int from = 0; from < s->tasks; from++)
        for (uint32_t d = 0; d < DEVICES + 2; d++) {
            bool wanted = false;
            for (int t = from + 1; t < s->tasks; t++)
                wanted = wanted || (s->reads[t][from] && device[t] == d);
            if (wanted && d != device[from]) {
                bool near = seat[d] / (uint32_t)island == seat[device[from]] / (uint32_t)island;
                sum += (int64_t)s->bytes[from] * (near ? NEAR : FAR);
            }
        }
    return sum;
}

static int64_t least_of(const sketch *s, const uint32_t *device, uint32_t *seat, uint32_t placed)
{
    int64_t least = INT64_MAX;
    if (placed == DEVICES)
        return sum_of(s, device, seat, ISLAND);
    for (uint32_t i = placed; i < DEVICES; i++) {
        uint32_t mine = seat[i];
        seat[i] = seat[placed];
        seat[placed] = mine;
        int64_t sum = least_of(s, device, seat, placed + 1);
        least = sum < least ? sum : least;
        seat[placed] = seat[i];
        seat[i] = mine;
    }
    return least;
}

static sketch draw(uint64_t *state, gy_candidate *c)
{
    sketch s = { .tasks = 8 + pick(state, TASKS - 7) };
    ck_assert(gy_candidate_init(c, (uint32_t)s.tasks));
    for (int t = 0; t < s.tasks; t++) {
        s.bytes[t] = 1000 * (1 + pick(state, 9));
        c->order[t] = (uint32_t)t;
        c->device[t] = (uint32_t)pick(state, DEVICES);
        for (int from = 0; from < t; from++)
            s.reads[t][from] = pick(state, 8) == 0;
    }
    return s;
}

/* No worse than before, each device's tasks still together, and mostly the least of all 720 ways. */
START_TEST(near_the_least_of_all_ways)
{
    int least = 0, better = 0, count = 200;
    for (uint64_t seed = 0; seed < (uint64_t)count; seed++) {
        uint64_t state = seed;
        uint32_t seat[DEVICES] = { 0, 1, 2, 3, 4, 5 }, from[TASKS];
        gy_candidate c;
        bool changed;
        sketch s = draw(&state, &c);
        bench b;
        bench_of(&b, graph_of(&s), machine_of(DEVICES, ISLAND));
        ck_assert(gy_seats_matter(&b.model));
        memcpy(from, c.device, (size_t)s.tasks * sizeof *from);
        int64_t before = sum_of(&s, from, seat, ISLAND), best = least_of(&s, from, seat, 0);
        ck_assert_int_eq(gy_seats_choose(&b.model, &c, &changed, NULL), GANTRY_OK);
        int64_t now = sum_of(&s, c.device, seat, ISLAND);
        ck_assert_int_eq(changed, now < before);
        ck_assert_int_ge(now, best);
        for (int t = 0; t < s.tasks; t++)
            for (int u = 0; u < t; u++)
                ck_assert_int_eq(from[t] == from[u], c.device[t] == c.device[u]);
        least += now == best;
        better += now < before;
        gy_candidate_free(&c);
        bench_close(&b);
    }
    ck_assert_int_gt(better, count / 2);
    ck_assert_int_ge(least, count * 9 / 10);
}
END_TEST

/* Eight parts, four to an island; each exchanges with the parts 2 and 4 away, as in all but the first step of a Fourier
 * transform. By number each pair 4 away is in two islands; even and odd parts need no byte between islands. No single
 * exchange gains anything. */
START_TEST(a_butterfly_by_hand)
{
    static const int apart[] = { 2, 4 };
    sketch s = { .tasks = TASKS };
    gy_candidate c;
    bool changed;
    bench b;
    ck_assert(gy_candidate_init(&c, TASKS));
    for (int t = 0; t < TASKS; t++) {
        s.bytes[t] = 1000;
        c.order[t] = (uint32_t)t;
        c.device[t] = (uint32_t)t % 8;
        if (t >= 8) {
            s.reads[t][t - 8] = true;
            s.reads[t][(t / 8 - 1) * 8 + ((t % 8) ^ apart[t / 8 - 1])] = true;
        }
    }
    bench_of(&b, graph_of(&s), machine_of(8, 4));
    ck_assert_int_eq(gy_seats_choose(&b.model, &c, &changed, NULL), GANTRY_OK);
    ck_assert(changed);
    for (int t = 0; t < TASKS; t++)
        ck_assert_int_eq(c.device[t] / 4, c.device[t % 2] / 4);
    gy_candidate_free(&c);
    bench_close(&b);
}
END_TEST

/* Where all routes are alike there is nothing to choose. */
START_TEST(no_islands)
{
    uint64_t state = 1;
    gy_candidate c;
    sketch s = draw(&state, &c);
    bench b;
    bench_of(&b, graph_of(&s), machine_of(DEVICES, DEVICES));
    ck_assert(!gy_seats_matter(&b.model));
    gy_candidate_free(&c);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("search seats");
    TCase *tc = tcase_create("seats");
    tcase_add_test(tc, near_the_least_of_all_ways);
    tcase_add_test(tc, a_butterfly_by_hand);
    tcase_add_test(tc, no_islands);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
