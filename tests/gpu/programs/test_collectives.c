/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that GPUs share out on as many GPUs as there are, 8 at most, against the host back end, bit for bit: exit
 * code 77 with fewer than two. The same program runs on the fake driver, and with kernels on the CPU.
 *   GANTRY_GPU_EVERY=4   one in so many of the cases, and none with many bytes
 *   GANTRY_GPU_SMALL=1   the same, for compute-sanitizer */
#include "../../unit/cuda/counted/chain.h"
#include "../../unit/cuda/nccl/nccl_suite.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int gpus, every;

static const gy_algorithm algorithms[] = { GY_ALGORITHM_TWO_SHOT, GY_ALGORITHM_ONE_SHOT,  GY_ALGORITHM_RING,
                                           GY_ALGORITHM_TREE,     GY_ALGORITHM_RECURSIVE, GY_ALGORITHM_COPY };

static gantry_schedule *schedule_of(gantry_graph *g, const gantry_machine *m, const char *replay,
                                    gy_algorithm algorithm)
{
    gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE)
            s->ops.at[i].algorithm = (uint8_t)algorithm;
    return s;
}

/* Without kernels on the CPU the fake driver has none that meet. */
static bool have_kernels(void)
{
    return !getenv("FAKE_CUDA_DEVICES") || getenv("FAKE_CUDA_KERNELS");
}

static void try_case(const nccl_case *c, const char *replay, gy_algorithm algorithm)
{
    gantry_graph *g = nccl_graph(c);
    gantry_machine *m = gpu_machine(c->ranks, false);
    gantry_schedule *s = schedule_of(g, m, replay, algorithm);
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    nccl_bind_any(host, g, c);
    results want = run_results(host, g);
    gantry_run_free(host);
    nccl_bind_any(run, g, c);
    for (int start = 0; start < 3; start++) {
        results got = run_results(run, g);
        ck_assert_msg(same(&got, &want), "%s, replay %s, algorithm %d, start %d: other results", nccl_name(c), replay,
                      (int)algorithm, start);
    }
    bool meet = algorithm == GY_ALGORITHM_COUNTERS && have_kernels();
    const char *told = replay_of(run);
    bool right =
        strncmp(told, replay, strlen(replay)) == 0 && !meet == !strstr(told, "; 1 collectives meet by counters");
    ck_assert_msg(right, "%s: %s", nccl_name(c), told);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}

static bool varies(gantry_collective kind, bool in_place)
{
    bool parts =
        kind == GANTRY_SCATTER || kind == GANTRY_GATHER || kind == GANTRY_ALL_GATHER || kind == GANTRY_REDUCE_SCATTER;
    return in_place ? !parts : parts;
}

/* Little, odd, and so much that every GPU has a share of it: in place or in uneven parts every second time. */
START_TEST(collectives)
{
    static const gantry_dtype types[] = { GANTRY_F32, GANTRY_BF16, GANTRY_I64, GANTRY_U8 };
    static const int64_t rows[] = { 1, 333, 100003 };
    held_gpus held = hold_gpus(gpus);
    for (int kind = 0; kind < 8; kind++) {
        for (int r = 0; r < 3; r++) {
            for (int k = (kind + r) % every; k < 4; k += every) {
                nccl_case c = { nccl_kinds[kind], types[(kind + r + k) % 4], GANTRY_SUM, gpus, rows[r], false, 0 };
                c.in_place = k % 2 && varies(c.kind, true) && c.kind != GANTRY_ALL_TO_ALL;
                c.uneven = k % 2 && varies(c.kind, false);
                c.rows *= c.kind == GANTRY_ALL_TO_ALL ? gpus : 1;
                c.rows /= c.uneven && r == 2 ? 8 : 1;
                try_case(&c, replay_at(k / 2), algorithms[(kind + k + r) % (nccl_reduces(c.kind) ? 5 : 6)]);
            }
        }
    }
    let_go(&held);
}
END_TEST

START_TEST(types_and_operators)
{
    static const gantry_access ops[] = { GANTRY_SUM, GANTRY_PROD, GANTRY_MIN, GANTRY_MAX };
    held_gpus held = hold_gpus(gpus);
    for (int d = 0; d <= GANTRY_U64; d++) {
        for (int o = d % 2; o < 4; o += 2) {
            nccl_case c = { GANTRY_ALL_REDUCE, (gantry_dtype)d, ops[o], gpus, 0, o > 1, 0 };
            c.rows = 400009 / (int64_t)gantry_dtype_size(c.dtype); /* so much that every GPU has a share */
            try_case(&c, replay_at(d / 2 % 2), GY_ALGORITHM_TWO_SHOT);
        }
    }
    let_go(&held);
}
END_TEST

/* More than is worth a copy engine, to two GPUs. */
START_TEST(much)
{
    held_gpus held = hold_gpus(gpus);
    for (int k = 0; k < 2; k++) {
        nccl_case c = { k ? GANTRY_GATHER : GANTRY_ALL_REDUCE, GANTRY_F32, GANTRY_SUM, 2, 2900001, false, 0 };
        try_case(&c, replay_at(k), GY_ALGORITHM_ONE_SHOT);
    }
    let_go(&held);
}
END_TEST

/* Kernels that meet by counters: all numbers of GPUs, chains beside each other, many starts; few of all that on the
 * fake driver, which without kernels has none that meet. A run that hangs is ended by its watchdog, which names the op.
 */
START_TEST(counted)
{
    static const int64_t rows[] = { 3, 701, 50021, 700001 };
    bool fake = getenv("FAKE_CUDA_DEVICES"), meets = have_kernels();
    held_gpus held = hold_gpus(gpus);
    for (int ranks = fake ? gpus : 2; ranks <= gpus; ranks++) {
        for (int r = 0; r < (fake || every > 1 ? 2 : 4); r++) {
            for (int k = 0; k < 4; k += fake ? 3 : 1) {
                chain c = { chain_types[(ranks + r + k) % CHAIN_TYPES],
                            ranks,
                            6,
                            1 + k / 2 * 2,
                            rows[r],
                            k % 2,
                            (k + r) % 2,
                            false };
                chain_problem p = chain_pose(&c, replay_at(r % 2));
                chain_try(&c, &p, replay_at(r % 2), fake || every > 1 ? 2 : 200, meets);
                chain_put_away(&p);
            }
        }
    }
    let_go(&held);
}
END_TEST

/* All kinds, each by one launch a GPU. */
START_TEST(counted_kinds)
{
    static const gantry_dtype types[] = { GANTRY_F32, GANTRY_BF16, GANTRY_I64, GANTRY_U8 };
    bool fake = getenv("FAKE_CUDA_DEVICES"); /* each thread that waits has a stack there */
    const int64_t rows[] = { 1, fake ? 33 : 333, fake ? 101 : 30011 };
    held_gpus held = hold_gpus(gpus);
    for (int kind = 0; kind < 8; kind++) {
        for (int k = kind % every; k < 12; k += every) {
            nccl_case c = { nccl_kinds[kind], types[(kind + k) % 4], GANTRY_SUM, gpus, rows[k % 3], false, 0 };
            c.in_place = k % 2 && varies(c.kind, true) && c.kind != GANTRY_ALL_TO_ALL;
            c.uneven = k % 2 && varies(c.kind, false);
            c.rows *= c.kind == GANTRY_ALL_TO_ALL ? gpus : 1;
            try_case(&c, replay_at(k / 2), GY_ALGORITHM_COUNTERS);
        }
    }
    let_go(&held);
}
END_TEST

int main(void)
{
    const char *less = getenv("GANTRY_GPU_EVERY");
    every = less ? atoi(less) : getenv("GANTRY_GPU_SMALL") ? 4 : 1;
    gpus = in_child(most_gpus);
    if (gpus < 2) {
        printf("skipped: two GPUs are needed; here are %d\n", gpus);
        return 77;
    }
    Suite *suite = suite_create("gpu collectives");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, collectives);
    tcase_add_test(tests, types_and_operators);
    tcase_add_test(tests, counted);
    tcase_add_test(tests, counted_kinds);
    if (every == 1)
        tcase_add_test(tests, much);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
