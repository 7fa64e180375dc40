/* SPDX-License-Identifier: Apache-2.0 */
/* Partition first: clusters without circles, cuts that are known, shares, memories. */
#include "../scheduler/suite.h"

#include "base/map.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/partition/parting.h"
#include "scheduler/policies/policy.h"
#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20 };

static gantry_graph *g;
static gantry_machine *m;
static gantry_buffer x;
static gy_plan p;
static gy_levels levels;
static gy_parting parting;

/* Node i writes row i; what it reads is said after it is made. */
static void open_graph(int64_t rows, int64_t row_bytes)
{
    g = gantry_graph_new("partition");
    x = gantry_graph_buffer(g, "x", GANTRY_U8, 2, (int64_t[]){ rows, row_bytes });
    p = (gy_plan){ 0 };
    levels = (gy_levels){ 0 };
    parting = (gy_parting){ 0 };
}

static gantry_node node(int64_t row, double us)
{
    char id[24];
    snprintf(id, sizeof id, "n%d", (int)row);
    gantry_node n = work(g, id, us);
    gantry_node_write(g, n, gantry_rows(x, row, row + 1));
    return n;
}

static void reads(gantry_node n, int64_t row)
{
    gantry_node_read(g, n, gantry_rows(x, row, row + 1));
}

static void prepare(void)
{
    gantry_error err;
    const gy_policy *policy;
    if (gantry_graph_check(g, &err))
        ck_abort_msg("%s", err.text);
    ck_assert(!gy_policy_find(&policy, "partition", &err) && !gy_plan_init(&p, g, m, policy, NULL, &err));
    ck_assert(!gy_plan_capacity(&p, NULL, &err) && !gy_plan_prepare(&p, &err));
}

static void begin(uint32_t bands)
{
    prepare();
    gy_rank *rank = gy_upward_ranks(&p, GY_BY_MEAN);
    ck_assert(rank && gy_levels_begin(&levels, &p, rank, bands));
    gy_free(rank);
}

/* As many devices as the machine has, all alike and equally far from each other. */
static void divide_evenly(void)
{
    ck_assert(gy_parting_init(&parting, &levels, m->memories));
    for (uint32_t a = 0; a < p.devices; a++) {
        parting.memory[a] = m->device[a].memory;
        parting.share[a] = GY_SHARES / p.devices;
        for (uint32_t b = 0; b < p.devices; b++)
            parting.distance[a * p.devices + b] = a == b ? 0 : 256;
    }
    gy_parting_set_limits(&parting);
}

static void close_all(void)
{
    gy_parting_free(&parting);
    gy_levels_free(&levels);
    gy_plan_free(&p);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

static gy_ticks total_work(const gy_level *l)
{
    gy_ticks sum = 0;
    for (uint32_t u = 0; u < l->nodes; u++)
        sum += l->work[u];
    return sum;
}

/* ---- coarsening ---- */

/* Does a circle go through the clusters? Looked for in the dependencies of the tasks themselves. */
static bool has_circle(const uint32_t *cluster, uint32_t clusters)
{
    const gy_flow *f = p.flow;
    uint8_t *gone = gy_calloc(clusters, 1), *held = gy_calloc(clusters, 1);
    uint32_t left = clusters;
    for (bool some = true; some;) {
        some = false;
        memset(held, 0, clusters);
        for (uint32_t t = 0; t < f->tasks; t++)
            for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++) {
                uint32_t from = cluster[d->from];
                if (from != cluster[t] && !gone[from])
                    held[cluster[t]] = 1;
            }
        for (uint32_t c = 0; c < clusters; c++)
            if (!gone[c] && !held[c]) {
                gone[c] = 1;
                left--;
                some = true;
            }
    }
    gy_free(gone);
    gy_free(held);
    return left;
}

/* Layers of random width, each node reading up to three rows of the two layers before. */
static void make_random(uint64_t seed, uint32_t nodes)
{
    open_graph(nodes, 4096);
    uint32_t first[3] = { 0, 0, 0 };
    for (uint32_t i = 0; i < nodes; i++) {
        if (i == 0 || gy_hash64(++seed) % 12 == 0) {
            first[0] = first[1];
            first[1] = first[2];
            first[2] = i;
        }
        gantry_node n = node(i, 1 + (double)(gy_hash64(++seed) % 9));
        uint32_t span = first[2] - first[0], from = UINT32_MAX;
        for (uint32_t k = gy_hash64(++seed) % 4; k-- > 0 && span;) {
            uint32_t row = first[0] + (uint32_t)(gy_hash64(++seed) % span);
            if (row != from)
                reads(n, row);
            from = row;
        }
    }
}

START_TEST(clusters_make_no_circle)
{
    m = virtual_machine(3);
    make_random((uint64_t)_i * 1000, 400);
    begin(8);
    levels.grain = (gy_grain){ total_work(&levels.at.at[0]) / 20, 4 };
    ck_assert(gy_levels_coarsen(&levels, 12, 4));
    ck_assert_uint_ge(levels.acyclic, 2);
    uint32_t cluster[400];
    for (uint32_t t = 0; t < 400; t++)
        cluster[t] = t;
    for (size_t i = 1; i < levels.at.count; i++) {
        const gy_level *l = &levels.at.at[i];
        for (uint32_t t = 0; t < 400; t++)
            cluster[t] = l[-1].up[cluster[t]];
        if (i <= levels.acyclic)
            ck_assert_msg(!has_circle(cluster, l->nodes), "level %zu", i);
        ck_assert_int_eq(total_work(l), total_work(&levels.at.at[0]));
        ck_assert_uint_lt(l->nodes, l[-1].nodes);
        for (uint32_t u = 0; u < l->nodes; u++)
            ck_assert_int_le(l->work[u], levels.grain.most > 9 * 1000000 ? levels.grain.most : 9 * 1000000);
    }
    close_all();
}
END_TEST

/* a -> b, a -> c, b -> d, c -> d: joining a, b and d alone would be a circle through c. */
START_TEST(a_diamond_closes_from_its_middle)
{
    m = virtual_machine(2);
    open_graph(4, 4096);
    node(0, 1);
    reads(node(1, 1), 0);
    reads(node(2, 1), 0);
    gantry_node d = node(3, 1);
    reads(d, 1);
    reads(d, 2);
    begin(1);
    levels.grain = (gy_grain){ 10 * 1000000, 1 };
    uint32_t up[4];
    ck_assert(gy_cluster_in_trees(&levels.at.at[0], &levels.grain, up)); /* b and c have one successor */
    ck_assert_uint_eq(up[0], 0);
    ck_assert(up[1] == 3 && up[2] == 3 && up[3] == 3);
    ck_assert(gy_cluster_out_trees(&levels.at.at[0], &levels.grain, up)); /* b and c have one predecessor */
    ck_assert(up[0] == 0 && up[1] == 0 && up[2] == 0 && up[3] == 3);
    ck_assert(gy_cluster_siblings(&levels.at.at[0], &levels.grain, up));
    ck_assert(up[0] == 0 && up[1] == 1 && up[2] == 1 && up[3] == 3);
    close_all();
}
END_TEST

/* ---- dividing ---- */

/* The least cost of all divisions between two devices, by trying them. */
static gy_ticks least_cost(void)
{
    const gy_level *l = &levels.at.at[0];
    uint32_t device[20];
    gy_ticks least = GY_TICKS_MAX;
    for (uint32_t bits = 0; bits < 1u << (l->nodes - 1); bits++) {
        for (uint32_t u = 0; u < l->nodes; u++)
            device[u] = bits >> u & 1;
        gy_ticks cost = gy_parting_cost(&parting, l, device);
        least = cost < least ? cost : least;
    }
    return least;
}

/* Two rings of chains that exchange rows at every step, and one row from the one to the other: that is the cut. */
START_TEST(the_cut_goes_where_little_flows)
{
    enum { WIDE = 2, LONG = 4, SIDE = WIDE * LONG };
    m = small_machine(2, 64 * MIB);
    open_graph(2 * SIDE, MIB);
    for (int step = 0; step < LONG; step++)
        for (int side = 0; side < 2; side++)
            for (int k = 0; k < WIDE; k++) {
                gantry_node n = node(side * SIDE + step * WIDE + k, 10);
                for (int j = 0; j < WIDE && step; j++)
                    reads(n, side * SIDE + (step - 1) * WIDE + j);
                if (side == 1 && step == 2 && k == 0)
                    reads(n, WIDE); /* a row of the other side */
            }
    begin(1);
    levels.grain = (gy_grain){ 40 * 1000000, 1 };
    ck_assert(gy_levels_coarsen(&levels, 8, 4));
    divide_evenly();
    ck_assert(gy_parting_run(&parting));
    const gy_level *l = &levels.at.at[0];
    uint32_t cut = 0;
    for (uint32_t u = 0; u < l->nodes; u++)
        for (size_t i = l->first[u]; i < l->after[u]; i++)
            cut += parting.device[u] != parting.device[l->tie.at[i].to];
    ck_assert_uint_eq(cut, 1);
    ck_assert_int_eq(gy_parting_cost(&parting, l, parting.device), least_cost());
    close_all();
}
END_TEST

/* Small random graphs: no division beats the least, and most are the least. */
START_TEST(small_graphs_are_divided_well)
{
    int best = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        m = small_machine(2, 64 * MIB);
        make_random(seed * 777, 14);
        begin(2);
        levels.grain = (gy_grain){ total_work(&levels.at.at[0]) / 6, 4 };
        ck_assert(gy_levels_coarsen(&levels, 10, 6));
        divide_evenly();
        ck_assert(gy_parting_run(&parting));
        gy_ticks cost = gy_parting_cost(&parting, &levels.at.at[0], parting.device), least = least_cost();
        ck_assert_int_ge(cost, least);
        best += cost <= least + least / 10;
        close_all();
    }
    printf("%d of 40 divisions within a tenth of the least\n", best);
    ck_assert_int_ge(best, 20);
}
END_TEST

/* Every device has its share of every band, but for one task. */
START_TEST(everybody_has_something_to_do_at_all_times)
{
    enum { DEVICES = 4, BANDS = 5 };
    gy_ticks load[DEVICES][BANDS] = { { 0 } };
    m = virtual_machine(DEVICES);
    make_random(5, 2000);
    begin(BANDS);
    levels.grain = (gy_grain){ total_work(&levels.at.at[0]) / 64, 16 };
    ck_assert(gy_levels_coarsen(&levels, 200, 32));
    divide_evenly();
    ck_assert(gy_parting_run(&parting));
    const gy_level *l = &levels.at.at[0];
    for (uint32_t u = 0; u < l->nodes; u++)
        load[parting.device[u]][l->slice.at[u].band] += l->work[u];
    for (uint32_t d = 0; d < DEVICES; d++)
        for (uint32_t b = 0; b < BANDS; b++)
            ck_assert_int_le(load[d][b], parting.limit[d * BANDS + b] + 9 * 1000000);
    close_all();
}
END_TEST

/* Eight tasks that all want to be together, 1 MiB each; a memory has room for five. */
START_TEST(memories_have_room)
{
    int64_t held[2] = { 0, 0 };
    m = small_machine(2, 64 * MIB);
    open_graph(8, MIB);
    for (int i = 0; i < 8; i++) {
        gantry_node n = node(i, i ? 0.01 : 10); /* the first alone is all the work of a device */
        for (int k = 0; k < i; k++)
            reads(n, k);
    }
    begin(1);
    divide_evenly();
    for (int roomy = 1; roomy >= 0; roomy--) {
        for (uint32_t i = 1; i < m->memories; i++)
            parting.room[i] = roomy ? 64 * MIB : 5 * MIB;
        parting.share[0] = roomy ? GY_SHARES : GY_SHARES / 2;
        gy_parting_set_limits(&parting);
        ck_assert(gy_parting_run(&parting));
        held[0] = held[1] = 0;
        for (uint32_t u = 0; u < 8; u++)
            held[parting.device[u]] += levels.at.at[0].bytes[u];
        if (roomy)
            ck_assert_int_eq(held[0], 8 * MIB);
        else
            ck_assert(held[0] <= 5 * MIB && held[1] <= 5 * MIB);
    }
    close_all();
}
END_TEST

/* ---- the policy ---- */

enum { WIDE = 40 };

/* A row of parts over time, each reading its neighbours: HEFT deals them out like cards. */
static void make_stencil(int steps)
{
    open_graph((steps + 1) * WIDE, 65536);
    for (int t = 0; t <= steps; t++)
        for (int i = 0; i < WIDE; i++) {
            gantry_node n = node(t * WIDE + i, 10);
            for (int k = -1; k <= 1 && t; k++)
                if (i + k >= 0 && i + k < WIDE)
                    reads(n, (t - 1) * WIDE + i + k);
        }
}

START_TEST(a_stencil_is_cut_into_blocks)
{
    enum { STEPS = 50 };
    gantry_error err;
    m = small_machine(4, 1024 * MIB);
    make_stencil(STEPS);
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    gantry_schedule *s = schedule(g, m, "partition"), *heft = schedule(g, m, "heft");
    double ours = gy_ticks_to_us(s->makespan), theirs = gy_ticks_to_us(heft->makespan);
    printf("stencil: %.0f us, HEFT %.0f us\n", ours, theirs);
    ck_assert_double_le(ours, theirs);
    ck_assert_double_le(ours, (STEPS + 1) * WIDE / 4 * 10 * 1.1); /* a tenth above the work of a device */
    gantry_schedule_free(s);
    gantry_schedule_free(heft);
    close_all();
}
END_TEST

static const gy_tried *find_tried(const gantry_schedule *s, const char *policy)
{
    for (size_t i = 0; i < s->tried.count; i++)
        if (!strcmp(s->tried.at[i].policy, policy))
            return &s->tried.at[i];
    ck_abort_msg("%s was not thought of", policy);
    return NULL;
}

/* Beyond 10,000 tasks: what is near n log n runs, then each round of search looks at one more division. */
START_TEST(large_graphs_are_divided_by_default)
{
    static const char *const ran[] = { "heft", "partition", "owner" };
    m = small_machine(3, 1024 * MIB);
    make_stencil(260);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s[2];
    gantry_error err;
    for (int i = 0; i < 2; i++)
        if (gantry_schedule_new(&s[i], g, m, &o, &err))
            ck_abort_msg("%s", err.text);
    for (size_t i = 0; i < sizeof ran / sizeof *ran; i++) {
        ck_assert_ptr_null(find_tried(s[0], ran[i])->skipped);
        ck_assert_int_le(s[0]->makespan, find_tried(s[0], ran[i])->makespan);
    }
    ck_assert_str_eq(find_tried(s[0], "etf")->skipped, "the graph is too large for it");
    ck_assert_int_lt(find_tried(s[0], "partition")->makespan, find_tried(s[0], "heft")->makespan);
    ck_assert_uint_le(find_tried(s[0], "search")->evaluations, 3 + 2); /* each policy's, and two divisions */
    ck_assert_uint_gt(find_tried(s[0], "search")->evaluations, 3);
    ck_assert_int_eq(s[0]->makespan, s[1]->makespan);
    char *text[2] = { schedule_text(s[0]), schedule_text(s[1]) };
    ck_assert(!strcmp(text[0], text[1]));
    for (int i = 0; i < 2; i++) {
        gantry_free(text[i]);
        gantry_schedule_free(s[i]);
    }
    close_all();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("partition");
    TCase *c = tcase_create("partition");
    tcase_set_timeout(c, 20); /* times CK_TIMEOUT_MULTIPLIER */
    tcase_add_loop_test(c, clusters_make_no_circle, 0, 60);
    tcase_add_test(c, a_diamond_closes_from_its_middle);
    tcase_add_test(c, the_cut_goes_where_little_flows);
    tcase_add_test(c, small_graphs_are_divided_well);
    tcase_add_test(c, everybody_has_something_to_do_at_all_times);
    tcase_add_test(c, memories_have_room);
    tcase_add_test(c, a_stencil_is_cut_into_blocks);
    tcase_add_test(c, large_graphs_are_divided_by_default);
    suite_add_tcase(s, c);
    return run_suite(s);
}
