/* SPDX-License-Identifier: Apache-2.0 */
/* A million ops are checked in seconds, thousands of lanes in little memory: nothing in the checker may go through all
 * pairs of anything, or keep something for each. */
#include "support/run_suite.h"
#include "unit/schedule/hand.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { DEVICES = 8, ROWS = 4 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long most_kib(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss;
}

/* A state of so many parts; in each step every part is read with its neighbours' rows by the next one round. */
static gantry_graph *ring(uint32_t parts, uint32_t steps)
{
    gantry_graph *g = gantry_graph_new("ring");
    gantry_buffer b = gantry_graph_buffer(g, "b", GANTRY_U8, 1, (int64_t[]){ parts * ROWS });
    gantry_buffer_set_class(g, b, GANTRY_STATE);
    gantry_buffer_init_value(g, b, 0);
    gantry_buffer_split(g, b, parts);
    for (uint32_t i = 0; i < steps * parts; i++) {
        gantry_node n = gantry_graph_work(g, "n");
        gantry_node_readwrite(g, n, gantry_part(b, i % parts));
        gantry_node_read(g, n, gantry_part(b, (i + 1) % parts));
    }
    gantry_error err = { 0 };
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    return g;
}

static gantry_machine *eight(void)
{
    static const char text[] =
        "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"m\", \"capacity\": 65536}], \"devices\": ["
        "{\"id\": \"d0\", \"memory\": \"m\"}, {\"id\": \"d1\", \"memory\": \"m\"}, {\"id\": \"d2\", \"memory\": "
        "\"m\"}, "
        "{\"id\": \"d3\", \"memory\": \"m\"}, {\"id\": \"d4\", \"memory\": \"m\"}, {\"id\": \"d5\", \"memory\": "
        "\"m\"}, "
        "{\"id\": \"d6\", \"memory\": \"m\"}, {\"id\": \"d7\", \"memory\": \"m\"}]}";
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    ck_assert_msg(gantry_machine_parse(&m, text, strlen(text), "eight", &err) == GANTRY_OK, "%s", err.text);
    return m;
}

/* Part p runs in lane p % lanes, on device p % lanes % DEVICES, all in one memory: node i waits for what it reads
 * (i - parts + 1, which wrote the next part) and for who has read what it writes (i - 1). */
static gantry_schedule *lower(const gantry_graph *g, const gantry_machine *m, uint32_t lanes)
{
    gantry_schedule *s = gy_schedule_alloc();
    bool ok = s != NULL;
    const gy_buffer *b = &g->buffers.at[0];
    uint32_t parts = (uint32_t)b->rows / ROWS;
    s->machine = gy_machine_ref(m);
    s->graph_hash = g->hash;
    ok = ok &&
         gy_vec_push(&s->values, ((gy_schedule_value){ .name = b->name, .rows = b->rows, .row_bytes = b->row_bytes }));
    ok = ok && gy_vec_push(&s->slab, (uint64_t)b->bytes);
    gy_instance whole = { .role = GY_ROLE_PERSIST, .last = b->rows, .bytes = b->bytes };
    ok = ok && gy_vec_push(&s->instances, whole);
    for (uint32_t l = 0; l < lanes; l++)
        ok = ok && gy_vec_push(&s->lanes, ((gy_lane){ l % DEVICES, GY_LANE_COMPUTE, false }));
    for (uint32_t i = 0; ok && i < g->nodes.count; i++) {
        uint32_t waits[2] = { i - 1, i - parts + 1 };
        gy_op op = { .kind = GY_OP_LAUNCH, .node = i, .use = 2 * i, .uses = 2, .lane = i, .lanes = 1 };
        ok = gy_vec_push(&s->node_ids, g->nodes.at[i].id) && gy_vec_push(&s->ops, op) &&
             gy_vec_push(&s->op_lane, i % parts % lanes);
        for (uint32_t k = 0; k < 2; k++) {
            int64_t part = (i + k) % parts;
            gy_use u = { 0, (uint8_t)(k ? GANTRY_READ : GANTRY_READWRITE), 0, part * ROWS, (part + 1) * ROWS };
            ok = ok && gy_vec_push(&s->use, u);
            if (waits[k] < i) {
                gy_sync row = { .from = waits[k], .to = i, .carrier = GY_CARRIER_EVENT, .slot = waits[k] };
                ok = ok && gy_vec_push(&s->sync, row);
            }
        }
    }
    ck_assert(ok);
    return s;
}

START_TEST(test_a_million)
{
    gantry_graph *g = ring(64, 1000000 / 64);
    gantry_machine *m = eight();
    gantry_schedule *s = lower(g, m, DEVICES);
    gantry_error err = { 0 };
    double begin = now();
    ck_assert_msg(gantry_schedule_check(s, g, &err) == GANTRY_OK, "%s", err.text);
    double right = now() - begin;
    /* The last op no longer waits for the one before, which reads what it writes. */
    s->sync.at[s->sync.count - 2].carrier = GY_CARRIER_LANE;
    s->sync.at[s->sync.count - 2].from = s->sync.at[s->sync.count - 2].to - DEVICES;
    begin = now();
    gantry_status status = gantry_schedule_check(s, g, &err);
    printf("%zu ops: %.2f s; with a race near the end: %.2f s, %s\n", s->ops.count, right, now() - begin, err.text);
    ck_assert_int_eq(status, GANTRY_E_SCHEDULE);
    ck_assert_ptr_nonnull(strstr(err.text, "rule race"));
    ck_assert_msg(right < 30, "%g s", right); /* a few on this side of a sanitizer */
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Every op has ops of all lanes in its past: counts for each pair of lanes would take a gigabyte. */
START_TEST(test_many_lanes)
{
    enum { LANES = 16384 };
    gantry_graph *g = ring(LANES, 3);
    gantry_machine *m = eight();
    gantry_schedule *s = lower(g, m, LANES);
    gantry_error err = { 0 };
    long before = most_kib();
    ck_assert_msg(gantry_schedule_check(s, g, &err) == GANTRY_OK, "%s", err.text);
    long took = most_kib() - before;
    s->sync.at[s->sync.count - 2].from -= LANES; /* an earlier op of that lane, where it waits for the one before */
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), GANTRY_E_SCHEDULE);
    printf("%d lanes, %zu ops: %ld KiB; with a race at the end: %s\n", LANES, s->ops.count, took, err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "rule race"));
    ck_assert_msg(took < 256 * 1024, "%ld KiB", took);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

enum { PAIRS = 8192 };

/* Pairs of loops of two iterations, the second after the first. */
static gantry_graph *pairs_of_loops(void)
{
    gantry_graph *g = gantry_graph_new("pairs");
    gantry_error err = { 0 };
    for (int i = 0; i < PAIRS; i++) {
        gantry_node n[2];
        for (int k = 0; k < 2; k++) {
            gantry_graph_repeat(g, 2);
            n[k] = gantry_graph_work(g, "n");
            gantry_graph_repeat_end(g);
        }
        gantry_node_after(g, n[1], n[0]);
    }
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    return g;
}

/* Each pair in a lane of its own. */
static gantry_schedule *lane_for_each(const gantry_graph *g, const gantry_machine *m)
{
    gantry_schedule *s = gy_schedule_alloc();
    bool ok = s != NULL && gy_vec_push(&s->slab, 256);
    s->machine = gy_machine_ref(m);
    s->graph_hash = g->hash;
    for (uint32_t i = 0; ok && i < g->nodes.count; i++) {
        ok = gy_vec_push(&s->node_ids, g->nodes.at[i].id);
        ok = ok && (i % 2 || gy_vec_push(&s->lanes, ((gy_lane){ i / 2 % DEVICES, GY_LANE_COMPUTE, false })));
        for (uint32_t it = 0; it < 2; it++) {
            gy_op op = { .kind = GY_OP_LAUNCH, .node = i, .iteration = it, .lane = 2 * i + it, .lanes = 1 };
            ok = ok && gy_vec_push(&s->ops, op) && gy_vec_push(&s->op_lane, i / 2);
        }
    }
    ck_assert(ok);
    return s;
}

/* A node that others come after has limits for the lanes where it ran, not for all. */
START_TEST(test_many_afters)
{
    gantry_graph *g = pairs_of_loops();
    gantry_machine *m = eight();
    gantry_schedule *s = lane_for_each(g, m);
    gantry_error err = { 0 };
    long before = most_kib();
    ck_assert_msg(gantry_schedule_check(s, g, &err) == GANTRY_OK, "%s", err.text);
    long took = most_kib() - before;
    s->op_lane.at[4 * PAIRS - 1] = 0; /* the last op leaves the lane of what it comes after */
    ck_assert_int_eq(gantry_schedule_check(s, g, &err), GANTRY_E_SCHEDULE);
    printf("%d lanes and nodes that others come after: %ld KiB; one apart: %s\n", PAIRS, took, err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "rule after"));
    ck_assert_msg(took < 64 * 1024, "%ld KiB", took);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("big schedule");
    TCase *tc = tcase_create("big");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_a_million);
    tcase_add_test(tc, test_many_lanes);
    tcase_add_test(tc, test_many_afters);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
