/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of random schedules against paths: an op is before another if rows of the sync table and the order of lanes
 * lead from one to the other. Lanes are as many as trees of one, two and three levels have. */
#include "schedule/check/check.h"
#include "support/run_suite.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { OPS = 24, STARTS = 3, STAMPS = OPS * STARTS, USED = 7 };

static uint32_t drawn;

static uint32_t draw(uint32_t below)
{
    drawn = drawn * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(drawn >> 8) * below >> 24);
}

/* Ops of one or two of a few lanes; rows between them, some across starts. */
static gantry_schedule *random_schedule(uint32_t lanes)
{
    gantry_schedule *s = gy_schedule_alloc();
    uint32_t used[USED] = { 0, 31 % lanes, 32 % lanes, 1023 % lanes, 1024 % lanes, lanes - 1, draw(lanes) };
    bool ok = s != NULL;
    s->in_flight = 1 + draw(STARTS);
    for (uint32_t l = 0; l < lanes; l++)
        ok = ok && gy_vec_push(&s->lanes, ((gy_lane){ 0, GY_LANE_COMPUTE }));
    for (uint32_t i = 0; ok && i < OPS; i++) {
        uint32_t first = used[draw(USED)], second = used[draw(USED)];
        gy_op op = { .lane = (uint32_t)s->op_lane.count, .lanes = first == second || draw(3) ? 1 : 2 };
        ok = gy_vec_push(&s->ops, op) && gy_vec_push(&s->op_lane, first);
        ok = ok && (op.lanes == 1 || gy_vec_push(&s->op_lane, second));
        for (uint32_t k = draw(3); k > 0 && i > 0; k--) {
            gy_sync row = { .from = draw(i), .to = i, .carrier = draw(4) ? GY_CARRIER_EVENT : GY_CARRIER_LANE };
            ok = ok && gy_vec_push(&s->sync, row);
        }
        gy_sync across = { .from = draw(OPS), .to = i, .distance = 1 + draw(2), .carrier = GY_CARRIER_EVENT };
        ok = ok && (draw(3) || gy_vec_push(&s->sync, across));
    }
    ck_assert(ok);
    return s;
}

typedef struct paths {
    bool from[STAMPS][STAMPS]; /* from[a][b]: b leads to a, or is a */
} paths;

static void lead(paths *p, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < STAMPS; i++)
        p->from[to][i] = p->from[to][i] || p->from[from][i];
}

static bool meet(const gantry_schedule *s, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < s->ops.at[a].lanes; i++)
        for (uint32_t k = 0; k < s->ops.at[b].lanes; k++)
            if (s->op_lane.at[s->ops.at[a].lane + i] == s->op_lane.at[s->ops.at[b].lane + k])
                return true;
    return false;
}

static void find_paths(paths *p, const gantry_schedule *s)
{
    memset(p, 0, sizeof *p);
    for (uint32_t now = 0; now < s->in_flight * OPS; now++) {
        p->from[now][now] = true;
        for (uint32_t earlier = 0; earlier < now; earlier++)
            if (meet(s, earlier % OPS, now % OPS))
                lead(p, earlier, now);
        for (size_t i = 0; i < s->sync.count; i++) {
            const gy_sync *row = &s->sync.at[i];
            if (row->to == now % OPS && row->carrier == GY_CARRIER_EVENT && row->distance <= now / OPS)
                lead(p, (now / OPS - row->distance) * OPS + row->from, now);
        }
    }
}

static const uint32_t sizes[] = { 1, 2, 31, 32, 33, 70, 1024, 1025, 2000, 32769 };

START_TEST(clocks_are_paths)
{
    static paths p;
    int before = 0, apart = 0;
    drawn = (uint32_t)_i;
    for (int round = 0; round < 40; round++) {
        gantry_schedule *s = random_schedule(sizes[_i]);
        gy_clocks c;
        find_paths(&p, s);
        ck_assert_int_eq(gy_clocks_init(&c, s, NULL), GANTRY_OK);
        for (uint32_t now = 0; now < s->in_flight * OPS; now++) {
            ck_assert(gy_clocks_step(&c, now / OPS, now % OPS));
            for (uint32_t i = 0; i <= now; i++) {
                bool found = gy_clocks_before(&c, (gy_stamp){ i % OPS, i / OPS });
                ck_assert_msg(found == p.from[now][i], "%u lanes, round %d: %u and %u", sizes[_i], round, i, now);
                *(found ? &before : &apart) += 1;
            }
        }
        gy_clocks_free(&c);
        gantry_schedule_free(s);
    }
    ck_assert(before > 1000 && (apart > 1000 || sizes[_i] == 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clocks");
    TCase *tc = tcase_create("clocks");
    tcase_add_loop_test(tc, clocks_are_paths, 0, sizeof sizes / sizeof *sizes);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
