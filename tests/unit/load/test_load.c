/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads, the pipeline split and the search for the least load: against loads counted from the test's own lists of
 * edges, and against all assignments of small graphs.
 */
#include "../scheduler/suite.h"

#include "base/map.h"
#include "base/text.h"
#include "scheduler/cost/cost.h"
#include "scheduler/objective/max_load_search.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/policy.h"
#include "scheduler/policies/split/split.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 12 };

/* A random graph in the manner of the DNN files: an output for all readers, memory of each node, accelerators round the
 * memory of a CPU. Times are whole microseconds, and bytes take a picosecond each. */
typedef struct net {
    int nodes, fpgas;
    int64_t time[MOST], cpu[MOST], out[MOST], size[MOST], room;
    bool edge[MOST][MOST];
    int with[MOST];
    gantry_graph *graph;
    gantry_machine *machine;
    gy_plan plan;
    gy_load load;
} net;

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return gy_hash64(*state) % below;
}

static void build_graph(net *n)
{
    gantry_graph *g = n->graph = gantry_graph_new("net");
    gantry_buffer out[MOST];
    for (int i = 0; i < n->nodes; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        gantry_node node = gantry_graph_work(g, name);
        gantry_node_time(g, node, "fpga", (double)n->time[i]);
        gantry_node_time(g, node, "cpu", (double)n->cpu[i]);
        snprintf(name, sizeof name, "out%d", i);
        out[i] = gantry_graph_buffer(g, name, GANTRY_U8, 1, &n->out[i]);
        snprintf(name, sizeof name, "keep%d", i);
        gantry_buffer keep = gantry_graph_buffer(g, name, GANTRY_U8, 1, &n->size[i]);
        gantry_buffer_init_value(g, keep, 0);
        gantry_buffer_set_class(g, keep, GANTRY_CONST);
        gantry_node_read(g, node, gantry_all(keep));
        for (int k = 0; k < i; k++)
            if (n->edge[k][i])
                gantry_node_read(g, node, gantry_all(out[k]));
        gantry_node_write(g, node, gantry_all(out[i]));
        if (n->with[i] >= 0)
            gantry_node_with(g, node, (gantry_node){ .id = (uint32_t)n->with[i] });
    }
}

static void build_machine(net *n)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\": 1, \"name\": \"star\", \"memories\": [{\"id\": \"host\", \"capacity\": "
                    "1000000000000}");
    for (int i = 0; i < n->fpgas; i++)
        gy_text_printf(&t, ", {\"id\": \"fpga%d\", \"capacity\": %lld}", i, (long long)n->room);
    gy_text_add(&t, "], \"devices\": [");
    for (int i = 0; i < n->fpgas; i++)
        gy_text_printf(&t, "{\"id\": \"fpga%d\", \"kind\": \"fpga\", \"type\": \"gpu\", \"memory\": \"fpga%d\"}, ", i,
                       i);
    gy_text_add(&t, "{\"id\": \"cpu0\", \"kind\": \"cpu\", \"memory\": \"host\"}], \"routes\": [{\"from\": \"host\", "
                    "\"to\": \"fpga*\", \"both\": true, \"bandwidth_gbs\": 1000}], "
                    "\"model\": {\"contention\": \"off\", \"launch_us\": 0}}");
    n->machine = parse_machine(t.at);
    gy_text_free(&t);
}

static void make_net(net *n, uint64_t seed, int nodes, int fpgas, bool colours)
{
    uint64_t s = seed * 1000003;
    *n = (net){ .nodes = nodes, .fpgas = fpgas, .room = 256 * 4 * nodes };
    for (int i = 0; i < nodes; i++) {
        n->time[i] = (int64_t)draw(&s, 40);
        n->cpu[i] = n->time[i] * (int64_t)(1 + draw(&s, 5));
        n->out[i] = 1000000 * (int64_t)(1 + draw(&s, 12)); /* us to cross */
        n->size[i] = 256 * (int64_t)(1 + draw(&s, 8));
        n->with[i] = colours && i > 2 && draw(&s, 4) == 0 ? (int)draw(&s, (uint64_t)i) : -1;
        for (int k = 0; k < i; k++)
            n->edge[k][i] = draw(&s, 3) == 0;
    }
    n->room += 4 * 12000000; /* what the packer needs for transfers is no matter here */
    build_graph(n);
    build_machine(n);
    gantry_error err;
    ck_assert_int_eq(gantry_graph_check(n->graph, &err), GANTRY_OK);
    ck_assert_int_eq(gy_plan_init(&n->plan, n->graph, n->machine, &gy_policy_split, NULL, &err), GANTRY_OK);
    ck_assert_int_eq(gy_plan_capacity(&n->plan, NULL, &err), GANTRY_OK);
    for (int i = 1; i <= fpgas; i++)
        n->plan.capacity[i] = (uint64_t)(256 * 4 * nodes);
    ck_assert_int_eq(gy_plan_prepare(&n->plan, &err), GANTRY_OK);
    ck_assert_int_eq(gy_load_make(&n->load, &n->plan, &err), GANTRY_OK);
}

static void free_net(net *n)
{
    gy_load_free(&n->load);
    gy_plan_free(&n->plan);
    gantry_graph_free(n->graph);
    gantry_machine_free(n->machine);
}

/* ---- the definition, from the test's own lists ---- */

static gy_ticks counted_load(const net *n, const uint32_t *device, gy_ticks *each)
{
    gy_ticks most = 0, sum[MOST] = { 0 };
    for (int i = 0; i < n->nodes; i++) {
        bool wants[MOST] = { false }, crosses = false;
        sum[device[i]] += (device[i] < (uint32_t)n->fpgas ? n->time[i] : n->cpu[i]) * GY_TICKS_PER_US;
        for (int k = i + 1; k < n->nodes; k++)
            if (n->edge[i][k] && device[k] != device[i])
                wants[device[k]] = crosses = true;
        for (int d = 0; d <= n->fpgas; d++)
            sum[d] += wants[d] ? n->out[i] : 0;
        sum[device[i]] += crosses ? n->out[i] : 0;
    }
    for (int d = 0; d <= n->fpgas; d++) {
        most = sum[d] > most ? sum[d] : most;
        if (each)
            each[d] = sum[d];
    }
    return most;
}

static bool is_held(const net *n, const uint32_t *device)
{
    int64_t used[MOST] = { 0 };
    for (int i = 0; i < n->nodes; i++)
        used[device[i]] += n->size[i];
    for (int d = 0; d < n->fpgas; d++)
        if (used[d] > 256 * 4 * n->nodes)
            return false;
    return true;
}

/* Is there an order of the devices in which every edge goes forward or stays? */
static bool is_contiguous(const net *n, const uint32_t *device)
{
    bool to[MOST][MOST] = { { false } };
    int devices = n->fpgas + 1;
    for (int i = 0; i < n->nodes; i++)
        for (int k = i + 1; k < n->nodes; k++)
            if (n->edge[i][k] && device[i] != device[k])
                to[device[i]][device[k]] = true;
    for (int m = 0; m < devices; m++)
        for (int a = 0; a < devices; a++)
            for (int b = 0; b < devices; b++)
                to[a][b] = to[a][b] || (to[a][m] && to[m][b]);
    for (int a = 0; a < devices; a++)
        if (to[a][a])
            return false;
    return true;
}

static void spread(const net *n, const uint32_t *by_unit, uint32_t *device)
{
    for (int i = 0; i < n->nodes; i++)
        device[i] = by_unit[n->load.unit_of[i]];
}

/* The least load of all assignments, or of the contiguous ones. */
static gy_ticks best_of_all(const net *n, bool contiguous)
{
    uint32_t device[MOST] = { 0 };
    gy_ticks best = GY_TICKS_MAX;
    for (;;) {
        if (is_held(n, device) && (!contiguous || is_contiguous(n, device))) {
            gy_ticks load = counted_load(n, device, NULL);
            best = load < best ? load : best;
        }
        int i = 0;
        while (i < n->nodes && ++device[i] > (uint32_t)n->fpgas)
            device[i++] = 0;
        if (i == n->nodes)
            return best;
    }
}

/* ---- tests ---- */

START_TEST(loads_follow_every_move)
{
    net n;
    uint64_t s = (uint64_t)_i;
    uint32_t by_unit[MOST] = { 0 }, device[MOST];
    gy_assignment a;
    gy_ticks each[MOST];
    make_net(&n, (uint64_t)_i + 500, 12, 3, true);
    ck_assert(gy_assignment_init(&a, &n.load));
    gy_assignment_set(&a, by_unit);
    for (int move = 0; move < 200; move++) {
        uint32_t unit = (uint32_t)draw(&s, n.load.units), to = (uint32_t)draw(&s, 4);
        by_unit[unit] = to;
        if (draw(&s, 5) == 0)
            gy_assignment_move(&a, unit, GY_NONE);
        gy_assignment_move(&a, unit, to);
        spread(&n, by_unit, device);
        ck_assert_int_eq(gy_assignment_load(&a), counted_load(&n, device, each));
        for (uint32_t d = 0; d < 4; d++)
            ck_assert_int_eq(a.load[d], each[d]);
        ck_assert_int_eq(gy_assignment_excess(&a) == 0, is_held(&n, device));
    }
    gy_assignment_free(&a);
    free_net(&n);
}
END_TEST

START_TEST(split_is_the_best_contiguous_one)
{
    net n;
    uint32_t *found = NULL, device[MOST];
    gy_ticks load = 0;
    bool all = false;
    gantry_error err;
    make_net(&n, (uint64_t)_i, 6 + _i % 2, 1 + _i % 3, false);
    gy_ticks best = best_of_all(&n, true);
    ck_assert_int_eq(gy_split_best(&n.load, &GY_SPLIT_LIMITS, &found, &load, &all, &err), GANTRY_OK);
    ck_assert(all);
    ck_assert_int_eq(found != NULL, best < GY_TICKS_MAX);
    if (found) {
        spread(&n, found, device);
        ck_assert_int_eq(load, best);
        ck_assert_int_eq(counted_load(&n, device, NULL), best);
        ck_assert(is_held(&n, device));
        ck_assert(is_contiguous(&n, device));
    }
    gy_free(found);
    free_net(&n);
}
END_TEST

/* Too few ideals allowed, or too few steps: cuts of one line, which are contiguous, fit, and are no better. */
START_TEST(split_falls_back_to_a_line)
{
    net n;
    uint32_t *found = NULL, *full = NULL, device[MOST];
    gy_ticks load = 0, least = 0;
    bool all = true;
    gantry_error err;
    gy_split_limits limits = _i % 2 ? (gy_split_limits){ 3, 1000, 100 } : (gy_split_limits){ 1000000, 2, 100 };
    make_net(&n, (uint64_t)_i + 900, 9, 3, false);
    ck_assert_int_eq(gy_split_best(&n.load, &limits, &found, &load, &all, &err), GANTRY_OK);
    ck_assert(!all);
    ck_assert_int_eq(gy_split_best(&n.load, &GY_SPLIT_LIMITS, &full, &least, &all, &err), GANTRY_OK);
    ck_assert(all);
    if (found) {
        ck_assert(full && least <= load);
        spread(&n, found, device);
        ck_assert_int_eq(counted_load(&n, device, NULL), load);
        ck_assert(is_held(&n, device) && is_contiguous(&n, device));
    }
    gy_free(found);
    gy_free(full);
    free_net(&n);
}
END_TEST

/* Never worse than where it began, and on graphs this small as good as anything there is. */
START_TEST(search_finds_the_best_of_all)
{
    net n;
    uint32_t *found = NULL, again[MOST], device[MOST], few[MOST];
    gy_ticks load = 0;
    bool all;
    gantry_error err;
    make_net(&n, (uint64_t)_i, 7, 2 + _i % 2, false);
    ck_assert_int_eq(gy_split_best(&n.load, &GY_SPLIT_LIMITS, &found, &load, &all, &err), GANTRY_OK);
    gy_ticks best = best_of_all(&n, false);
    if (found) {
        memcpy(again, found, n.load.units * sizeof *again);
        memcpy(few, found, n.load.units * sizeof *few);
        ck_assert(gy_load_improve(&n.load, few, 20, 1));
        spread(&n, few, device);
        ck_assert(is_held(&n, device) && counted_load(&n, device, NULL) <= load);
        ck_assert(gy_load_improve(&n.load, found, 40000, 1));
        ck_assert(gy_load_improve(&n.load, again, 40000, 1));
        ck_assert_mem_eq(found, again, n.load.units * sizeof *again);
        spread(&n, found, device);
        ck_assert(is_held(&n, device));
        ck_assert_int_eq(counted_load(&n, device, NULL), best);
    }
    gy_free(found);
    free_net(&n);
}
END_TEST

/* With colours: units stay whole, whatever circles they make. */
START_TEST(colours_stay_together)
{
    net n;
    uint32_t *found = NULL, device[MOST];
    gy_ticks load = 0;
    bool all;
    gantry_error err;
    make_net(&n, (uint64_t)_i + 70, 12, 3, true);
    ck_assert_int_eq(gy_split_best(&n.load, &GY_SPLIT_LIMITS, &found, &load, &all, &err), GANTRY_OK);
    if (found) {
        spread(&n, found, device);
        ck_assert_int_eq(counted_load(&n, device, NULL), load);
        ck_assert(gy_load_improve(&n.load, found, 5000, (uint64_t)_i));
        spread(&n, found, device);
        ck_assert(is_held(&n, device) && counted_load(&n, device, NULL) <= load);
        for (int i = 0; i < n.nodes; i++)
            ck_assert(n.with[i] < 0 || device[i] == device[n.with[i]]);
    }
    gy_free(found);
    free_net(&n);
}
END_TEST

/* Direct routes: the sender pays for each memory; both ends pay the same. Two readers on one device count once. */
START_TEST(direct_transfers_are_paid_for_each_memory)
{
    gantry_machine *m = small_machine(3, 1 << 20); /* all pairs joined */
    gantry_graph *g = gantry_graph_new("fan");
    gantry_buffer x = buffer(g, "x", 1000);
    gantry_error err;
    gantry_node a = work(g, "a", 7);
    gantry_node_write(g, a, gantry_all(x));
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        gantry_node_read(g, work(g, name, 1), gantry_all(x));
    }
    gy_plan p;
    gy_load l;
    gy_assignment s;
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    ck_assert_int_eq(gy_plan_init(&p, g, m, &gy_policy_split, NULL, &err), GANTRY_OK);
    ck_assert_int_eq(gy_plan_prepare(&p, &err), GANTRY_OK);
    ck_assert_int_eq(gy_load_make(&l, &p, &err), GANTRY_OK);
    ck_assert(gy_assignment_init(&s, &l));
    gy_ticks hop = gy_route_time(m, gy_machine_route(m, m->device[0].memory, m->device[1].memory),
                                 (int64_t)g->buffers.at[0].bytes);
    gy_ticks one = gy_plan_time(&p, 1, 0), seven = gy_plan_time(&p, 0, 0);
    gy_assignment_set(&s, (uint32_t[]){ 0, 1, 1, 2 });
    ck_assert_int_gt(hop, 0);
    ck_assert_int_eq(s.load[0], seven + 2 * hop);
    ck_assert_int_eq(s.load[1], 2 * one + hop);
    ck_assert_int_eq(s.load[2], one + hop);
    gy_assignment_free(&s);
    gy_load_free(&l);
    gy_plan_free(&p);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* The way that users take, effort by effort. */
START_TEST(schedules_for_the_least_load)
{
    net n;
    gantry_error err;
    gy_ticks last = GY_TICKS_MAX;
    make_net(&n, 4242, 10, 3, true);
    for (int effort = 0; effort <= 3; effort += 3) {
        gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
        gantry_schedule *s = NULL, *t = NULL;
        o.objective = "max_load";
        o.effort = effort;
        ck_assert_msg(gantry_schedule_new(&s, n.graph, n.machine, &o, &err) == GANTRY_OK, "%s", err.text);
        ck_assert_int_eq(gantry_schedule_new(&t, n.graph, n.machine, &o, &err), GANTRY_OK);
        char *one = schedule_text(s), *two = schedule_text(t);
        ck_assert_str_eq(one, two);
        ck_assert_str_eq(s->policy, "split+search");
        uint32_t device[MOST];
        gy_ticks most = 0;
        for (int i = 0; i < n.nodes; i++)
            device[i] = (uint32_t)gantry_schedule_device_of(s, (gantry_node){ .id = (uint32_t)i });
        for (size_t d = 0; d < s->load.count; d++)
            most = s->load.at[d] > most ? s->load.at[d] : most;
        ck_assert_uint_eq(s->load.count, 4);
        ck_assert_int_eq(most, counted_load(&n, device, NULL));
        ck_assert_int_le(most, last);
        last = most;
        gantry_free(one);
        gantry_free(two);
        gantry_schedule_free(s);
        gantry_schedule_free(t);
    }
    free_net(&n);
}
END_TEST

/* Four devices, 1 GB/s between each two of their memories. */
static gantry_machine *four_apart(void)
{
    gantry_machine *m = NULL;
    static const char text[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m0\",\"capacity\":"
        "\"1GiB\"},"
        "{\"id\":\"m1\",\"capacity\":\"1GiB\"},{\"id\":\"m2\",\"capacity\":\"1GiB\"},{\"id\":\"m3\",\"capacity\":"
        "\"1GiB\"}],"
        "\"devices\":[{\"id\":\"d0\",\"memory\":\"m0\"},{\"id\":\"d1\",\"memory\":\"m1\"},{\"id\":\"d2\",\"memory\":"
        "\"m2\"},"
        "{\"id\":\"d3\",\"memory\":\"m3\"}],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":1}],"
        "\"model\":{\"launch_us\":0}}";
    ck_assert_int_eq(gantry_machine_parse(&m, text, sizeof text - 1, "rows", NULL), GANTRY_OK);
    return m;
}

/* Four rows of eight nodes of 10 us; each hands 100,000 bytes on to the next of its row, 100 us between devices, and
 * 200 bytes to those of the rows beside it. A row to each of four devices takes 80 us, and 0.2 us for each of 28 short
 * messages at most. No consecutive part is a row: what follows a node needs the rows beside it. The few moves that any
 * effort makes get within a quarter of it. */
START_TEST(rows_beside_each_other_without_effort)
{
    gantry_machine *m = four_apart();
    gantry_schedule *s = NULL;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_graph *g = gantry_graph_new("rows");
    int64_t much[] = { 10000 }, little[] = { 200 };
    gantry_buffer last[4], edge[32];
    for (int i = 0; i < 32; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        gantry_buffer b = gantry_graph_buffer(g, name, GANTRY_U8, 1, much);
        gantry_node n = gantry_graph_work(g, name);
        gantry_node_time(g, n, NULL, 10);
        snprintf(name, sizeof name, "e%d", i);
        edge[i] = gantry_graph_buffer(g, name, GANTRY_U8, 1, little);
        if (i >= 4)
            gantry_node_read(g, n, gantry_all(last[i % 4]));
        if (i >= 4 && i % 4 > 0)
            gantry_node_read(g, n, gantry_all(edge[i - 5]));
        if (i >= 4 && i % 4 < 3)
            gantry_node_read(g, n, gantry_all(edge[i - 3]));
        gantry_node_write(g, n, gantry_all(b));
        gantry_node_write(g, n, gantry_all(edge[i]));
        last[i % 4] = b;
    }
    o.objective = "max_load";
    o.effort = 0;
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, NULL), GANTRY_OK);
    for (size_t d = 0; d < s->load.count; d++)
        ck_assert_int_le(s->load.at[d], gy_ticks_from_us((80 + 28 * 0.2) * 1.25));
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Four by four parts, six times: each goes on with 100,000 bytes of its own, 100 us between devices, and reads 200
 * bytes of each neighbour. A quarter of the grid to each device has 24 nodes of 10 us, and sends and gets four short
 * messages of 0.2 us each of five times. Consecutive parts cut all sixteen rows of nodes. */
START_TEST(a_grid_without_effort)
{
    enum { SIDE = 4, PARTS = SIDE * SIDE, TIMES = 6 };
    static const int by[][2] = { { -1, 0 }, { 1, 0 }, { 0, -1 }, { 0, 1 } };
    gantry_machine *m = four_apart();
    gantry_graph *g = gantry_graph_new("grid");
    gantry_schedule *s = NULL;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_buffer all[TIMES * PARTS], edge[TIMES * PARTS];
    int64_t much[] = { 100000 }, little[] = { 200 };
    for (int i = 0; i < TIMES * PARTS; i++) {
        char name[16];
        int before = i - PARTS, x = i % PARTS % SIDE, y = i % PARTS / SIDE;
        snprintf(name, sizeof name, "n%d", i);
        gantry_node n = gantry_graph_work(g, name);
        gantry_node_time(g, n, NULL, 10);
        all[i] = gantry_graph_buffer(g, name, GANTRY_U8, 1, much);
        snprintf(name, sizeof name, "e%d", i);
        edge[i] = gantry_graph_buffer(g, name, GANTRY_U8, 1, little);
        if (before >= 0)
            gantry_node_read(g, n, gantry_all(all[before]));
        for (int k = 0; before >= 0 && k < 4; k++) {
            int there_x = x + by[k][0], there_y = y + by[k][1];
            if (there_x >= 0 && there_x < SIDE && there_y >= 0 && there_y < SIDE)
                gantry_node_read(g, n, gantry_all(edge[before + by[k][0] + SIDE * by[k][1]]));
        }
        gantry_node_write(g, n, gantry_all(all[i]));
        gantry_node_write(g, n, gantry_all(edge[i]));
    }
    o.objective = "max_load";
    o.effort = 0;
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, NULL), GANTRY_OK);
    for (size_t d = 0; d < s->load.count; d++)
        ck_assert_int_le(s->load.at[d], gy_ticks_from_us((240 + 8 * 5 * 0.2) * 1.02));
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

START_TEST(messages_say_what_is_wrong)
{
    gantry_machine *m = small_machine(2, 1 << 16);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.objective = "max_load";
    gantry_graph *g = gantry_graph_new("full");
    for (int i = 0; i < 3; i++) {
        char name[16];
        int64_t bytes = 40000;
        snprintf(name, sizeof name, "c%d", i);
        gantry_buffer c = gantry_graph_buffer(g, name, GANTRY_U8, 1, &bytes);
        gantry_buffer_init_value(g, c, 0);
        gantry_buffer_set_class(g, c, GANTRY_CONST);
        snprintf(name, sizeof name, "n%d", i);
        gantry_node_read(g, work(g, name, 1), gantry_all(c));
    }
    const char *text = refusal(g, m, &o, GANTRY_E_CAPACITY);
    ck_assert_msg(strstr(text, "would have to hold") && strstr(text, "of constants and states"), "%s", text);
    gantry_graph_free(g);
    g = gantry_graph_new("collective");
    gantry_buffer x = buffer(g, "x", 4), y = buffer(g, "y", 4);
    gantry_node_write(g, work(g, "a", 1), gantry_all(x));
    gantry_graph_collective(g, "b", GANTRY_BROADCAST, (gantry_access)0, 1, (gantry_region[]){ gantry_all(x) }, 1,
                            (gantry_region[]){ gantry_all(y) }, 0);
    text = refusal(g, m, &o, GANTRY_E_UNSUPPORTED);
    ck_assert_msg(strstr(text,
                         "node \"b\" is a collective, which has no one device, and objective \"max_load\" counts the "
                         "load of each device: it takes graphs without collective nodes; choose makespan or period"),
                  "%s", text);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("load");
    TCase *t = tcase_create("load");
    tcase_add_loop_test(t, loads_follow_every_move, 0, 40);
    tcase_add_loop_test(t, split_is_the_best_contiguous_one, 0, 200);
    tcase_add_loop_test(t, split_falls_back_to_a_line, 0, 40);
    tcase_add_loop_test(t, search_finds_the_best_of_all, 0, 40);
    tcase_add_loop_test(t, colours_stay_together, 0, 60);
    tcase_add_test(t, direct_transfers_are_paid_for_each_memory);
    tcase_add_test(t, schedules_for_the_least_load);
    tcase_add_test(t, rows_beside_each_other_without_effort);
    tcase_add_test(t, a_grid_without_effort);
    tcase_add_test(t, messages_say_what_is_wrong);
    suite_add_tcase(s, t);
    return run_suite(s);
}
