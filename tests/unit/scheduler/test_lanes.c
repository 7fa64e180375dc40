/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes in which a GPU computes: work that takes hardly more than its launch (4 us here, four lanes) is spread, what
 * follows from what stays together, everything else is in one lane. Expected times follow from these figures. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static const char machine[] =
    "{\"gantry_machine\":1,\"name\":\"lanes\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},{\"id\":\"m0\","
    "\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"d0\",\"type\":\"gpu\","
    "\"memory\":"
    "\"m0\",\"lanes\":4,\"launch_us\":4},{\"id\":\"d1\",\"type\":\"gpu\",\"memory\":\"m1\",\"lanes\":1,\"launch_us\":4}"
    "],"
    "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,\"bandwidth_gbs\":10}]}";

static gantry_machine *m;
static gantry_graph *g;
static gantry_schedule *s;

static void begin(void)
{
    m = parse_machine(machine);
    g = gantry_graph_new("lanes");
    s = NULL;
}

static void end(void)
{
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

static gantry_node add(const char *id, double us, const char *on)
{
    gantry_node n = work(g, id, us);
    gantry_node_on(g, n, on);
    return n;
}

static uint32_t lane_of(const char *id)
{
    return s->op_lane.at[op_of(s, id)->lane];
}

/* Each takes 4 + 1 us: the four launches overlap, then 1 us each. */
START_TEST(spread)
{
    char id[16];
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "n%d", i);
        add(id, 1, "d0");
    }
    s = schedule(g, m, "heft");
    ck_assert_uint_eq(s->lanes.count, 4);
    ck_assert_int_eq(s->makespan, 8 * GY_TICKS_PER_US);
    ck_assert_int_eq(s->bound, 5 * GY_TICKS_PER_US); /* 20 us in four lanes */
}
END_TEST

/* Two chains of three: each in a lane of its own, nothing between the lanes. */
START_TEST(chains_stay)
{
    char id[16];
    gantry_buffer b[2] = { buffer(g, "x", 64), buffer(g, "y", 64) };
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof id, "n%d", i);
        gantry_node n = add(id, 1, "d0");
        (i < 2 ? gantry_node_write : gantry_node_readwrite)(g, n, gantry_all(b[i % 2]));
    }
    s = schedule(g, m, "heft");
    ck_assert_uint_eq(s->lanes.count, 2);
    ck_assert_uint_eq(s->sync.count, 0);
    ck_assert_uint_ne(lane_of("n0"), lane_of("n1"));
    ck_assert(lane_of("n0") == lane_of("n2") && lane_of("n2") == lane_of("n4"));
    ck_assert(lane_of("n1") == lane_of("n3") && lane_of("n3") == lane_of("n5"));
}
END_TEST

static void four(double us, const char *on, uint32_t lanes)
{
    char id[16];
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "n%d", i);
        add(id, us, on);
    }
    s = schedule(g, m, "heft");
    ck_assert_uint_eq(s->lanes.count, lanes);
    ck_assert_int_eq(s->makespan, (gy_ticks)(4 * (us + 4)) * GY_TICKS_PER_US);
    ck_assert_int_eq(s->bound, s->makespan);
}

/* More than its launch: one after the other as far as is known, in lanes that let them overlap if they can. */
START_TEST(large_work)
{
    four(5, "d0", 4);
}
END_TEST

START_TEST(one_lane_only)
{
    four(1, "d1", 1);
}
END_TEST

/* Each lane has its own: 16 KiB for four of 4, beside 8 KiB of x. With less there is one lane, which has 4 KiB. */
START_TEST(scratch)
{
    char id[24];
    gantry_buffer x = buffer(g, "x", 2048);
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "n%d", i);
        gantry_node n = add(id, 1, "d0");
        gantry_node_scratch(g, n, 4096);
        if (i == 0)
            gantry_node_write(g, n, gantry_all(x));
    }
    s = schedule(g, m, "heft");
    ck_assert_uint_eq(s->lanes.count, 4);
    gantry_schedule *tight = NULL;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.max_memory = "d0=24KiB";
    ck_assert_int_eq(gantry_schedule_new(&tight, g, m, &o, NULL), GANTRY_OK);
    gantry_schedule_free(tight);
    for (int kib = 23; kib >= 12; kib -= 11) {
        snprintf(id, sizeof id, "d0=%dKiB", kib);
        o.max_memory = id;
        ck_assert_int_eq(gantry_schedule_new(&tight, g, m, &o, NULL), GANTRY_OK);
        ck_assert_uint_eq(tight->lanes.count, 1);
        gantry_schedule_free(tight);
    }
    o.max_memory = "d0=11KiB";
    refusal(g, m, &o, GANTRY_E_CAPACITY);
}
END_TEST

/* ---- stencils ---- */

/* `lists` lists of rows on each GPU; at each step a row becomes the mean of its neighbours, some of which the other GPU
 * has. */
static void add_stencil(int lists, int steps)
{
    const int64_t shape[] = { 2 * lists, 1024 };
    gantry_buffer b[2];
    for (int k = 0; k < 2; k++) {
        b[k] = gantry_graph_buffer(g, k ? "b" : "a", GANTRY_F32, 2, shape);
        gantry_buffer_set_class(g, b[k], GANTRY_STATE);
        gantry_buffer_init_value(g, b[k], 0);
        gantry_buffer_split(g, b[k], 2 * lists);
    }
    for (int i = 0; i < steps * 2 * lists; i++) {
        int step = i / (2 * lists), list = i % (2 * lists);
        gantry_node n = gantry_graph_kernel(g, "s", "jacobi2d");
        gantry_node_arg(g, n, "x", gantry_halo(gantry_part(b[step % 2], list), 1, 1));
        gantry_node_arg(g, n, "y", gantry_part(b[1 - step % 2], list));
        gantry_node_on(g, n, list < lists ? "d0" : "d1");
    }
}

/* Rows come from another GPU in each step, and launches of the others overlap meanwhile, in all lanes: what four lanes
 * need for it at least is the bound, and lanes are chosen as if copies came as early as they do. */
START_TEST(beside_copies)
{
    char text[sizeof machine], *lanes;
    memcpy(text, machine, sizeof text);
    while ((lanes = strstr(text, "\"lanes\":1")))
        lanes[strlen("\"lanes\":")] = '4';
    gantry_machine_free(m);
    m = parse_machine(text);
    add_stencil(8, 20);
    s = schedule(g, m, "heft");
    ck_assert_msg(s->makespan <= s->bound + s->bound / 2, "%lld us, at least %lld us",
                  (long long)(s->makespan / GY_TICKS_PER_US), (long long)(s->bound / GY_TICKS_PER_US));
}
END_TEST

/* ---- replay by the device ---- */

static gantry_schedule *by_device(gantry_graph *graph)
{
    gantry_error err = { 0 };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *made = NULL;
    o.replay = "device";
    ck_assert_msg(gantry_schedule_new(&made, graph, m, &o, &err) == GANTRY_OK, "%s", err.text);
    return made;
}

/* Waits of the counters: between the lanes of one device, and of two. */
static void count_waits(uint32_t *within, uint32_t *between)
{
    *within = *between = 0;
    for (size_t i = 0; i < s->counters.at.count; i++) {
        const gy_counter *c = &s->counters.at.at[i];
        *(s->lanes.at[c->from].device == s->lanes.at[c->to].device ? within : between) += c->waits;
    }
}

/* As by hand (one list a block, whoever made a row sends it): no wait within a GPU for one list, and for more of them
 * at most one for each neighbour; one for each row that comes from the other GPU. Lists change lanes, so there may be a
 * few more of these. */
START_TEST(workers)
{
    const int lists = _i ? 16 : 1, steps = 10;
    uint32_t within, between;
    add_stencil(lists, steps);
    s = by_device(g);
    count_waits(&within, &between);
    ck_assert(s->lanes.count >= 2 * (size_t)lists && s->lanes.count <= 2 * (size_t)lists * 5 / 4);
    ck_assert_uint_le(within, 2 * (uint32_t)steps * 2 * (uint32_t)(lists - 1));
    ck_assert_uint_eq(between, 2 * (uint32_t)steps);
    for (size_t i = 0; i < s->lanes.count; i++)
        ck_assert(s->lanes.at[i].kind == GY_LANE_COMPUTE && !s->lanes.at[i].urgent);
}
END_TEST

static void add_chain(const char *name, int64_t length, int steps)
{
    char id[24];
    gantry_buffer b[2];
    for (int k = 0; k < 2; k++) {
        snprintf(id, sizeof id, "%s%c", name, k ? 'y' : 'x');
        b[k] = gantry_graph_buffer(g, id, GANTRY_F32, 1, &length);
        gantry_buffer_set_class(g, b[k], GANTRY_STATE);
        gantry_buffer_init_value(g, b[k], 1);
    }
    for (int i = 0; i < steps; i++) {
        snprintf(id, sizeof id, "%s[%d]", name, i);
        gantry_node n = gantry_graph_kernel(g, id, "scale");
        gantry_node_scalar(g, n, "a", 0.5);
        gantry_node_arg(g, n, "x", gantry_all(b[i % 2]));
        gantry_node_arg(g, n, "y", gantry_all(b[1 - i % 2]));
        gantry_node_on(g, n, "d0");
    }
}

/* The lane of all steps of the chain. */
static uint32_t lane_of_chain(const char *name, int steps)
{
    char id[24];
    snprintf(id, sizeof id, "%s[0]", name);
    uint32_t lane = lane_of(id);
    for (int i = 1; i < steps; i++) {
        snprintf(id, sizeof id, "%s[%d]", name, i);
        ck_assert_msg(lane_of(id) == lane, "%s has another lane", id);
    }
    return lane;
}

/* 1 TB/s on d0. */
static void know_bandwidth(void)
{
    char text[sizeof machine + 40];
    const char *rest = strstr(machine, "\"lanes\":4");
    snprintf(text, sizeof text, "%.*s\"bandwidth_gbs\":1000,%s", (int)(rest - machine), machine, rest);
    gantry_machine_free(m);
    m = parse_machine(text);
}

/* Chains that have nothing to do with each other: of ops that fill the GPU, and of small ones. Workers are dealt out to
 * lanes for a whole start, so all of the former are in one lane, and each of the latter has its own. */
START_TEST(wide_ops_of_workers)
{
    enum { STEPS = 5 };
    know_bandwidth();
    add_chain("large", 1 << 22, STEPS);
    add_chain("larger", 1 << 23, STEPS);
    add_chain("small", 1000, STEPS);
    add_chain("smaller", 100, STEPS);
    s = by_device(g);
    uint32_t wide = lane_of_chain("large", STEPS), small = lane_of_chain("small", STEPS);
    ck_assert_uint_eq(lane_of_chain("larger", STEPS), wide);
    ck_assert(small != wide);
    uint32_t smaller = lane_of_chain("smaller", STEPS);
    ck_assert(smaller != wide && smaller != small);
}
END_TEST

/* The workers that lanes of the device need together, in thousandths: each as many as the widest of its ops. One that
 * is no longer than two empty calls, of 0.6 us, has enough with one, and more than half are as good as all. */
static uint32_t needed(uint32_t device)
{
    uint32_t sum = 0;
    for (uint32_t lane = 0; lane < s->lanes.count; lane++) {
        uint32_t most = 0;
        for (size_t i = 0; i < s->ops.count; i++) {
            const gy_op *op = &s->ops.at[i];
            bool calls = gy_op_calls(op) && op->duration > GY_TICKS_PER_US * 12 / 10;
            uint32_t used = calls ? 1000 - op->spare : 1;
            if (op->lanes == 1 && s->op_lane.at[op->lane] == lane && used > most)
                most = used;
        }
        sum += s->lanes.at[lane].device != device ? 0 : most > 500 ? 500 : most;
    }
    return sum;
}

/* Each of 40 steps adds up a gradient of its own, in rows that are filled at once, and but one step at a time has work
 * for workers. Was each sum in the lane of its fill, workers were dealt out to 40 lanes, and a sum had three of the 32
 * with which it was predicted. */
START_TEST(workers_for_all_lanes)
{
    static const char two[] =
        "{\"gantry_machine\":1,\"name\":\"two\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
        "{\"id\":\"m0\",\"capacity\":\"1GiB\"},{\"id\":\"m1\",\"capacity\":\"1GiB\"}],\"devices\":["
        "{\"id\":\"d0\",\"type\":\"gpu\",\"memory\":\"m0\",\"multiprocessors\":132,\"bandwidth_gbs\":1000},"
        "{\"id\":\"d1\",\"type\":\"gpu\",\"memory\":\"m1\",\"multiprocessors\":132,\"bandwidth_gbs\":1000}],"
        "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,\"bandwidth_gbs\":100}]}";
    gantry_load_options lo = GANTRY_LOAD_OPTIONS_INIT;
    lo.devices = 2;
    gantry_graph_free(g);
    gantry_machine_free(m);
    m = parse_machine(two);
    ck_assert_int_eq(gantry_graph_load(&g, GANTRY_SOURCE_DIR "/graphs/loss_scale.json", &lo, NULL), GANTRY_OK);
    s = by_device(g);
    for (uint32_t d = 0; d < 2; d++) {
        ck_assert_uint_ge(needed(d), 240);
        ck_assert_msg(needed(d) <= 1000, "lanes need %u thousandths of the workers", needed(d));
    }
}
END_TEST

/* Each step of a chain adds up what it has come to, in a number of its own, which begins as 0. All of these fills could
 * be carried out at once, each in a lane of its own, which has a worker then; nobody waits for them before their turn.
 */
START_TEST(fills_of_a_loop)
{
    enum { STEPS = 40 };
    char id[24];
    gantry_buffer b[2];
    for (int k = 0; k < 2; k++) {
        b[k] = gantry_graph_buffer(g, k ? "y" : "x", GANTRY_F32, 1, (int64_t[]){ 1000 });
        gantry_buffer_set_class(g, b[k], GANTRY_STATE);
        gantry_buffer_init_value(g, b[k], 1);
    }
    gantry_buffer sums = gantry_graph_buffer(g, "sums", GANTRY_F32, 1, (int64_t[]){ STEPS });
    gantry_buffer_split(g, sums, STEPS);
    gantry_buffer_output(g, sums);
    know_bandwidth();
    for (int i = 0; i < STEPS; i++) {
        gantry_region sum = gantry_part(sums, i);
        gantry_node_on(g, gantry_graph_fill(g, NULL, sum, 0), "d0");
        for (int k = 0; k < 2; k++) {
            snprintf(id, sizeof id, "%s%d", k ? "add" : "step", i);
            gantry_node n = gantry_graph_kernel(g, id, k ? "reduce_sum" : "scale");
            gantry_node_arg(g, n, "x", gantry_all(b[k ? 1 - i % 2 : i % 2]));
            gantry_node_arg(g, n, k ? "out" : "y", k ? sum : gantry_all(b[1 - i % 2]));
            if (!k)
                gantry_node_scalar(g, n, "a", 0.5);
            gantry_node_on(g, n, "d0");
        }
    }
    s = by_device(g);
    uint32_t computing = 0;
    for (size_t i = 0; i < s->lanes.count; i++)
        computing += s->lanes.at[i].kind == GY_LANE_COMPUTE;
    ck_assert_msg(computing <= 12, "%u lanes", computing);
}
END_TEST

/* One kernel that workers have no code for, and it is planned as if it were launched: in the lanes that the machine
 * has. */
START_TEST(no_workers)
{
    add_stencil(16, 2);
    gantry_buffer frame = gantry_graph_buffer(g, "frame", GANTRY_U8, 3, (int64_t[]){ 1, 64, 64 });
    gantry_buffer made = gantry_graph_buffer(g, "made", GANTRY_U8, 3, (int64_t[]){ 1, 64, 64 });
    gantry_buffer_init_value(g, frame, 1);
    gantry_node n = gantry_graph_kernel(g, "blur", "gaussian_blur");
    gantry_node_arg(g, n, "image", gantry_all(frame));
    gantry_node_arg(g, n, "out", gantry_all(made));
    gantry_node_scalar(g, n, "sigma", 1.0);
    gantry_node_on(g, n, "d0");
    s = by_device(g);
    uint32_t computing = 0;
    for (size_t i = 0; i < s->lanes.count; i++)
        computing += s->lanes.at[i].kind == GY_LANE_COMPUTE;
    ck_assert_uint_le(computing, 4 + 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lanes");
    TCase *t = tcase_create("lanes");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, spread);
    tcase_add_test(t, chains_stay);
    tcase_add_test(t, large_work);
    tcase_add_test(t, one_lane_only);
    tcase_add_test(t, scratch);
    tcase_add_test(t, beside_copies);
    tcase_add_loop_test(t, workers, 0, 2);
    tcase_add_test(t, wide_ops_of_workers);
    tcase_add_test(t, workers_for_all_lanes);
    tcase_add_test(t, fills_of_a_loop);
    tcase_add_test(t, no_workers);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
