/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers of resident kernels that make a mistake (FAKE_CUDA_MISTAKE): they do not wait, wait for too little, or leave
 * an acquire or a release out. Each graph here has one sort of counter alone, so that no other one hides or shows what
 * is wrong with it: within a GPU, between GPUs, or between the workers of one lane. Without a mistake results are the
 * host's, by every seed.
 */
#include "control.h"
#include "rings.h"
#include "unit/cuda/counted/mistakes.h"

#include <string.h>

enum { STEPS = 6, STARTS = 2, RIGHT = 3, SHOWN = 20 };

typedef struct shape {
    int gpus, lanes, lists, length;
} shape;

static bool is_well(shape of, uint64_t seed)
{
    fakeCudaDevices(of.gpus, "all", 0);
    fakeCudaSeed(seed);
    gantry_graph *g = ring_of(of.gpus, of.lists, STEPS, of.length, true);
    gantry_machine *m = ring_machine(of.gpus, of.lanes);
    gantry_schedule *s = make_schedule(g, m, "device", "round-robin");
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    bool well = true;
    for (int i = 0; i < STARTS; i++) {
        results wanted = run_results(host, g), got = run_results(run, g);
        well = well && same(&wanted, &got);
        ck_assert_int_eq(wanted.count, 2);
    }
    ck_assert_msg(strncmp(replay_of(run), "device", 6) == 0, "%s", replay_of(run));
    gantry_run_free(host);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return well;
}

/* Lanes of one GPU, of a worker each. */
static bool within(uint64_t seed)
{
    return is_well((shape){ 1, 2, 4, 64 }, seed);
}

/* A lane on each GPU. */
static bool between(uint64_t seed)
{
    return is_well((shape){ 2 + (int)(seed % 2), 1, 6, 64 }, seed);
}

/* One lane, whose calls are wide: no op waits for another lane. */
static bool helped(uint64_t seed)
{
    return is_well((shape){ 1, 1, 2, 3 << 11 }, seed);
}

static bool (*const sorts[])(uint64_t seed) = { within, between, helped };
enum { SORTS = sizeof sorts / sizeof *sorts, OF_LANES = 2 };

START_TEST(mistake)
{
    some_seed_shows(sorts[_i], SHOWN);
}
END_TEST

START_TEST(right)
{
    for (uint64_t seed = 1; seed <= RIGHT; seed++)
        ck_assert_msg(sorts[_i](seed), "seed %d", (int)seed);
}
END_TEST

static void add_mistake(TCase *tests)
{
    tcase_add_loop_test(tests, mistake, 0, SORTS);
}

/* A leader that counts too far sets back what helpers still add to, and waits for ever: that takes the watchdog's time.
 */
static void add_lanes(TCase *tests)
{
    tcase_add_loop_test(tests, mistake, 0, OF_LANES);
}

static void add_right(TCase *tests)
{
    tcase_add_loop_test(tests, right, 0, SORTS);
}

int main(int count, char **word)
{
    static const program_part parts[] = { { "mistake", add_mistake }, { "lanes", add_lanes }, { NULL, add_right } };
    return run_part("mistakes of workers", parts, count, word);
}
