/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The bound of the bytes that are moved against the least that any plan of tiny graphs moves: a search of all states of
 * one memory (which nodes are done, what the memory has, what is outside), over all orders and all choices of what
 * stays from start to start. It knows nothing of chains, stretches or who leaves.
 */
#include "suite.h"

#include "base/map.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT  256
#define PAGES 4
#define NODES 6
#define MOST  64 /* units moved in the search, at most */

typedef struct program {
    uint64_t random;
    int pages, nodes, room, units[PAGES];
    gantry_buffer_class cls[PAGES];
    bool output[PAGES], ordered;
    uint32_t reads[NODES], writes[NODES]; /* masks of pages */
    uint32_t before[NODES];               /* mask of nodes */
} program;

static int pick(program *p, int n)
{
    p->random += UINT64_C(0x9e3779b97f4a7c15);
    return (int)(gy_hash64(p->random) % (uint64_t)n);
}

static int units_of(const program *p, uint32_t pages)
{
    int units = 0;
    for (int i = 0; i < p->pages; i++)
        units += pages >> i & 1 ? p->units[i] : 0;
    return units;
}

static program random_program(uint64_t seed)
{
    static const gantry_buffer_class classes[] = { GANTRY_INPUT, GANTRY_CONST, GANTRY_STATE, GANTRY_TEMP };
    program p = { .random = seed, .pages = PAGES, .nodes = 3 + (int)(seed % (NODES - 2)) };
    uint32_t there = 0, changes = 0;
    int most = 0, all;
    p.ordered = pick(&p, 2);
    for (int i = 0; i < PAGES; i++) {
        p.units[i] = 1 + pick(&p, 3);
        p.cls[i] = classes[pick(&p, 4)];
        there |= (uint32_t)(p.cls[i] != GANTRY_TEMP) << i;
        changes |= (uint32_t)(p.cls[i] == GANTRY_TEMP || p.cls[i] == GANTRY_STATE) << i;
    }
    for (int n = 0; n < p.nodes; n++) {
        for (int i = 0; i < PAGES; i++) {
            uint32_t page = 1u << i;
            if (pick(&p, 5) < 3)
                continue;
            if (changes & page && (!(there & page) || !pick(&p, 3)))
                p.writes[n] |= page;
            if (there & page && (!(p.writes[n] & page) || pick(&p, 2)))
                p.reads[n] |= page;
        }
        there |= p.writes[n];
        for (int m = 0; m < n; m++)
            if (p.ordered || p.writes[n] & (p.reads[m] | p.writes[m]) || p.reads[n] & p.writes[m])
                p.before[n] |= 1u << m;
        int units = units_of(&p, p.reads[n] | p.writes[n]);
        most = units > most ? units : most;
    }
    for (int i = 0; i < PAGES; i++)
        p.output[i] = changes & there & 1u << i && !pick(&p, 3);
    all = units_of(&p, (1u << PAGES) - 1);
    p.room = most ? most + pick(&p, all - most + 1) : all;
    return p;
}

static gantry_status nothing_at_all(const gantry_launch *l)
{
    (void)l;
    return GANTRY_OK;
}

static gantry_graph *graph_of(const program *p)
{
    gantry_graph *g = gantry_graph_new("tiny");
    gantry_buffer b[PAGES];
    char name[16];
    for (int i = 0; i < PAGES; i++) {
        snprintf(name, sizeof name, "b%d", i);
        b[i] = buffer(g, name, 64 * p->units[i]);
        gantry_buffer_set_class(g, b[i], p->cls[i]);
        if (p->cls[i] != GANTRY_TEMP)
            gantry_buffer_init_value(g, b[i], 1);
        if (p->output[i])
            gantry_buffer_output(g, b[i]);
    }
    for (int n = 0; n < p->nodes; n++) {
        snprintf(name, sizeof name, "n%d", n);
        gantry_node node = gantry_graph_launch(g, name, nothing_at_all, NULL);
        gantry_node_time(g, node, NULL, 1);
        for (int i = 0; i < PAGES; i++) {
            bool reads = p->reads[n] >> i & 1, writes = p->writes[n] >> i & 1;
            if (reads && writes)
                gantry_node_readwrite(g, node, gantry_all(b[i]));
            else if (reads)
                gantry_node_read(g, node, gantry_all(b[i]));
            else if (writes)
                gantry_node_write(g, node, gantry_all(b[i]));
        }
        if (p->ordered && n)
            gantry_node_after(g, node, (gantry_node){ .id = node.id - 1 });
    }
    return g;
}

/* ---- the search ---- */

#define STATES (1 << (NODES + 2 * PAGES))

typedef struct states {
    const program *p;
    uint8_t *cost; /* per state: least units moved; MOST: none known */
    uint32_t *at[MOST], count[MOST], capacity[MOST];
} states;

static uint32_t state_of(uint32_t done, uint32_t here, uint32_t outside)
{
    return done << (2 * PAGES) | here << PAGES | outside;
}

static void reach(states *s, uint32_t state, int cost)
{
    if (cost >= MOST || s->cost[state] <= cost)
        return;
    s->cost[state] = (uint8_t)cost;
    if (s->count[cost] == s->capacity[cost]) {
        s->capacity[cost] = 2 * s->capacity[cost] + 64;
        s->at[cost] = realloc(s->at[cost], s->capacity[cost] * sizeof *s->at[cost]);
        ck_assert_ptr_nonnull(s->at[cost]);
    }
    s->at[cost][s->count[cost]++] = state;
}

static void step(states *s, uint32_t state, int cost)
{
    const program *p = s->p;
    uint32_t all = (1u << PAGES) - 1, done = state >> (2 * PAGES), here = state >> PAGES & all, outside = state & all;
    for (int i = 0; i < PAGES; i++) {
        uint32_t page = 1u << i;
        if (here & page) {
            reach(s, state_of(done, here & ~page, outside), cost);
            reach(s, state_of(done, here, outside | page), cost + p->units[i]);
        } else if (outside & page && units_of(p, here | page) <= p->room) {
            reach(s, state_of(done, here | page, outside), cost + p->units[i]);
        }
    }
    for (int n = 0; n < p->nodes; n++)
        if (!(done >> n & 1) && (p->before[n] & ~done) == 0 && (p->reads[n] & ~here) == 0 &&
            units_of(p, here | p->writes[n]) <= p->room)
            reach(s, state_of(done | 1u << n, here | p->writes[n], outside & ~p->writes[n]), cost);
}

/* With these pages in the memory from start to start. */
static int least_with(states *s, uint32_t stays, uint32_t changed)
{
    const program *p = s->p;
    uint32_t outside = 0, kept = 0, output = 0, end = (1u << p->nodes) - 1;
    memset(s->cost, MOST, STATES);
    memset(s->count, 0, sizeof s->count);
    for (int i = 0; i < PAGES; i++) {
        bool has = p->cls[i] != GANTRY_TEMP;
        outside |= (uint32_t)(has && !(stays & changed & 1u << i)) << i;
        kept |= (uint32_t)(has && p->cls[i] != GANTRY_INPUT) << i;
        output |= (uint32_t)p->output[i] << i;
    }
    reach(s, state_of(0, stays, outside), 0);
    for (int cost = 0; cost < MOST; cost++)
        for (uint32_t k = 0; k < s->count[cost]; k++) {
            uint32_t state = s->at[cost][k], has = state >> PAGES & ((1u << PAGES) - 1);
            if (s->cost[state] < cost)
                continue;
            if (state >> (2 * PAGES) == end && (stays & ~has) == 0 && (((kept & ~stays) | output) & ~state) == 0)
                return cost;
            step(s, state, cost);
        }
    return MOST;
}

static int least_moved(const program *p)
{
    states s = { .p = p, .cost = malloc(STATES) };
    uint32_t kept = 0, changed = 0;
    int least = MOST;
    for (int i = 0; i < PAGES; i++)
        kept |= (uint32_t)(p->cls[i] == GANTRY_CONST || p->cls[i] == GANTRY_STATE) << i;
    for (int n = 0; n < p->nodes; n++)
        changed |= p->writes[n];
    for (uint32_t stays = 0; stays < 1u << PAGES; stays++) {
        int cost = (stays & ~kept) || units_of(p, stays) > p->room ? MOST : least_with(&s, stays, changed);
        least = cost < least ? cost : least;
    }
    for (int i = 0; i < MOST; i++)
        free(s.at[i]);
    free(s.cost);
    return least;
}

/* ---- the property ---- */

/* GANTRY_TEST_GRAPHS: how many. */
START_TEST(it_is_never_above_the_least)
{
    int graphs = getenv("GANTRY_TEST_GRAPHS") ? atoi(getenv("GANTRY_TEST_GRAPHS")) : 300;
    uint64_t bounds = 0, leasts = 0, moved = 0, equal = 0, tight = 0;
    for (int seed = 0; seed < graphs; seed++) {
        program p = random_program((uint64_t)seed);
        gantry_graph *g = graph_of(&p);
        gantry_machine *m = small_machine(1, p.room * UNIT);
        gantry_schedule *s = NULL;
        gantry_error err;
        if (!gantry_schedule_new(&s, g, m, NULL, &err)) {
            gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
            ck_assert_int_eq(gantry_schedule_summarize(s, &sum, NULL), GANTRY_OK);
            int least = least_moved(&p);
            ck_assert_int_lt(least, MOST);
            ck_assert_msg(sum.bytes_needed <= (uint64_t)least * UNIT, "seed %d: the bound is %llu, %d are enough", seed,
                          (unsigned long long)sum.bytes_needed / UNIT, least);
            ck_assert_msg(sum.bytes_needed <= sum.bytes_moved, "seed %d: the bound is %llu, %llu are moved", seed,
                          (unsigned long long)sum.bytes_needed, (unsigned long long)sum.bytes_moved);
            bounds += sum.bytes_needed / UNIT;
            leasts += (uint64_t)least;
            moved += sum.bytes_moved / UNIT;
            equal += sum.bytes_needed == (uint64_t)least * UNIT;
            tight++;
        }
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    printf("%llu graphs: bound %llu, least %llu, moved %llu units; the bound is the least of %llu\n",
           (unsigned long long)tight, (unsigned long long)bounds, (unsigned long long)leasts, (unsigned long long)moved,
           (unsigned long long)equal);
    ck_assert_uint_ge(tight * 10, (uint64_t)graphs * 8);
    ck_assert_uint_ge(bounds * 100, leasts * 85); /* a bound of nothing would be none */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moved");
    TCase *c = tcase_create("moved");
    tcase_set_timeout(c, 240);
    tcase_add_test(c, it_is_never_above_the_least);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
