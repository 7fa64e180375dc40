/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Nodes that are kept apart are a colouring of their graph with devices. Every policy finds one where there is one
 * (trying all assignments says whether there is), and the checker holds it against the wishes.
 */
#include "suite.h"

#include "base/map.h"
#include "schedule/check/verify.h"
#include <stdio.h>
#include <string.h>

#define MOST 9

static gantry_graph *g;
static gantry_machine *m;

static void end(void)
{
    gantry_graph_free(g);
    gantry_machine_free(m);
}

/* With `policy`, at effort 0; the text of a refusal, or NULL. */
static const char *refused(const char *policy)
{
    static gantry_error err;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    o.policy = policy;
    o.effort = policy ? 0 : -1;
    gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
    if (!status)
        ck_assert_msg(!gy_schedule_verify(s, g, &err), "%s: %s", policy, err.text);
    ck_assert_msg(!status || status == GANTRY_E_UNSUPPORTED, "%s: %s", policy, err.text);
    gantry_schedule_free(s);
    return status ? err.text : NULL;
}

/* a0, b0, a1, b1, ...: each a is kept apart from every b but its own. Two devices are enough, the a on one and the b on
 * the other; whoever puts a0 and b0 on one device has none left for a2 (beside b0 on the one and b1 on the other). */
START_TEST(a_crown_needs_two_devices)
{
    gantry_node a[4], b[4];
    char id[16];
    g = gantry_graph_new("crown");
    m = virtual_machine(2);
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "a%d", i);
        a[i] = work(g, id, 10);
        snprintf(id, sizeof id, "b%d", i);
        b[i] = work(g, id, 10);
        for (int k = 0; k < i; k++) {
            gantry_node_apart(g, a[i], b[k]);
            gantry_node_apart(g, b[i], a[k]);
        }
    }
    const char *text = refused(gantry_policy_name((size_t)_i));
    ck_assert_msg(!text, "%s: %s", gantry_policy_name((size_t)_i), text);
    end();
}
END_TEST

/* ---- random wishes ---- */

typedef struct wishes {
    int nodes, devices, on[MOST]; /* on: -1 for anywhere */
    bool apart[MOST][MOST];
} wishes;

static int pick(uint64_t *state, int n)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return (int)(gy_hash64(*state) % (uint64_t)n);
}

static wishes draw(uint64_t seed)
{
    uint64_t state = seed * 1009;
    wishes w = { .nodes = 3 + pick(&state, MOST - 2), .devices = 2 + pick(&state, 2) };
    int density = 2 + pick(&state, 4);
    for (int i = 0; i < w.nodes; i++) {
        w.on[i] = pick(&state, 6) ? -1 : pick(&state, w.devices);
        for (int k = 0; k < i; k++)
            w.apart[i][k] = pick(&state, 8) < density;
    }
    return w;
}

/* All assignments, one node after the other. */
static bool can_be(const wishes *w, int *device, int node)
{
    if (node == w->nodes)
        return true;
    for (int d = 0; d < w->devices; d++) {
        bool free = w->on[node] < 0 || w->on[node] == d;
        for (int k = 0; k < node; k++)
            free = free && !(w->apart[node][k] && device[k] == d);
        device[node] = d;
        if (free && can_be(w, device, node + 1))
            return true;
    }
    return false;
}

static void build(const wishes *w)
{
    gantry_node n[MOST];
    char text[16];
    g = gantry_graph_new("wishes");
    m = virtual_machine(w->devices);
    for (int i = 0; i < w->nodes; i++) {
        snprintf(text, sizeof text, "n%d", i);
        n[i] = work(g, text, 5 + i % 3);
        snprintf(text, sizeof text, "%d", w->on[i]);
        if (w->on[i] >= 0)
            gantry_node_on(g, n[i], text);
        for (int k = 0; k < i; k++)
            if (w->apart[i][k])
                gantry_node_apart(g, n[i], n[k]);
        if (i % 4 == 3)
            gantry_node_after(g, n[i], n[i - 2]);
    }
}

START_TEST(what_can_be_is_found)
{
    int there = 0, not_there = 0;
    const char *policy = gantry_policy_name((size_t)_i); /* past the last: the default */
    for (uint64_t seed = 0; seed < (policy ? 300 : 60); seed++) {
        int device[MOST];
        wishes w = draw(seed);
        bool possible = can_be(&w, device, 0);
        build(&w);
        const char *text = refused(policy);
        ck_assert_msg(possible == !text, "wishes %d by %s: %s", (int)seed, policy, text ? text : "not refused");
        if (text)
            ck_assert_ptr_nonnull(strstr(text, "is left for node \"n"));
        possible ? there++ : not_there++;
        end();
    }
    ck_assert_int_gt(there, 20);
    ck_assert_int_gt(not_there, 10);
}
END_TEST

/* A ring of 400 on two devices, numbered so that neighbours are far from each other: one right way and its opposite. */
START_TEST(a_long_ring)
{
    enum { RING = 400 };
    gantry_node n[RING];
    char id[16];
    g = gantry_graph_new("ring");
    m = virtual_machine(2);
    for (int i = 0; i < RING; i++) {
        snprintf(id, sizeof id, "n%d", i);
        n[i] = work(g, id, 1 + i % 7);
    }
    for (int i = 0; i < RING; i++) /* 7 and 400 have no common divisor: one ring */
        gantry_node_apart(g, n[i * 7 % RING], n[(i + 1) * 7 % RING]);
    const char *text = refused(gantry_policy_name((size_t)_i));
    ck_assert_msg(!text, "%s: %s", gantry_policy_name((size_t)_i), text);
    end();
}
END_TEST

int main(void)
{
    int policies = 0;
    while (gantry_policy_name((size_t)policies))
        policies++;
    Suite *suite = suite_create("apart");
    TCase *c = tcase_create("apart");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, a_crown_needs_two_devices, 0, policies + 1);
    tcase_add_loop_test(c, what_can_be_is_found, 0, policies + 1);
    tcase_add_loop_test(c, a_long_ring, 0, policies);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
