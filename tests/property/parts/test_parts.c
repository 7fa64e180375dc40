/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of ranks: graphs of the gallery on 4 devices that are dealt out to 2, 3 and 4 ranks. The parts that are made
 * pass the checker. Every message that is left out, changed in size or sent to somebody else is found. Of a wait that
 * is left out the checker says what a second, slow reading says: the transitive closure of what comes before what, in
 * the schedule and in the part, as matrices of bits.
 */
#include "schedule/ranks/ranks.h"

#include "base/memory.h"
#include "support/run_suite.h"
#include <gantry/gantry.h>
#include <string.h>

enum { MOST_RANKS = 4 };

static const char *const names[] = { "saxpy",      "jacobi_blocks", "kmeans", "mlp_step", "cholesky", "pipeline3",
                                     "reduce_sum", "black_scholes", "nbody",  "fft2d",    "stages" };
enum { NAMES = sizeof names / sizeof *names };

static gantry_schedule *schedule_of(const char *name, size_t ranks, gantry_graph **graph)
{
    char path[512];
    gantry_error err = { 0 };
    gantry_machine *all = NULL, *m = NULL;
    gantry_schedule *s = NULL;
    gantry_load_options load = GANTRY_LOAD_OPTIONS_INIT;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    snprintf(path, sizeof path, GANTRY_SOURCE_DIR "/graphs/%s.json", name);
    load.devices = 4;
    o.effort = 0;
    ck_assert_msg(gantry_graph_load(graph, path, &load, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_int_eq(gantry_machine_virtual(&all, 4, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_spread(&m, all, ranks, &err), GANTRY_OK);
    ck_assert_msg(gantry_schedule_new(&s, *graph, m, &o, &err) == GANTRY_OK, "%s: %s", name, err.text);
    ck_assert_msg(gantry_schedule_check(s, *graph, &err) == GANTRY_OK, "%s: %s", name, err.text);
    gantry_machine_free(all);
    gantry_machine_free(m);
    return s;
}

static uint32_t make_parts(gy_part *part, const gantry_schedule *s, gy_part_queues by)
{
    uint32_t ranks = gy_machine_ranks(s->machine);
    for (uint32_t r = 0; r < ranks; r++)
        ck_assert_int_eq(gy_part_make(&part[r], s, r, by, NULL), GANTRY_OK);
    return ranks;
}

static bool is_right(const gantry_schedule *s, const gy_part *part, uint32_t ranks)
{
    gantry_error err = { 0 };
    gantry_status status = gy_parts_verify(s, part, ranks, &err);
    ck_assert_msg(!status || (status == GANTRY_E_SCHEDULE && !strncmp(err.text, "rule ranks: ", 12)), "%s", err.text);
    return !status;
}

/* ---- a second reading of waits ---- */

typedef struct matrix {
    size_t count, words;
    uint64_t *bit; /* row b has a: a ends before b begins */
} matrix;

static matrix matrix_of(size_t count)
{
    matrix m = { count, (count + 63) / 64, NULL };
    m.bit = gy_calloc(count * m.words + 1, sizeof *m.bit);
    ck_assert_ptr_nonnull(m.bit);
    return m;
}

static bool has(const matrix *m, size_t a, size_t b)
{
    return m->bit[b * m->words + a / 64] >> (a % 64) & 1;
}

/* a before b, and all that is before a; rows below b are complete. */
static void put(matrix *m, size_t a, size_t b)
{
    m->bit[b * m->words + a / 64] |= UINT64_C(1) << (a % 64);
    for (size_t w = 0; w < m->words; w++)
        m->bit[b * m->words + w] |= m->bit[a * m->words + w];
}

static matrix before_in(const gantry_schedule *s)
{
    matrix m = matrix_of(s->ops.count);
    for (uint32_t b = 0; b < s->ops.count; b++) {
        for (size_t i = 0; i < s->sync.count; i++)
            if (s->sync.at[i].to == b && s->sync.at[i].distance == 0)
                put(&m, s->sync.at[i].from, b);
        for (uint32_t a = 0; a < b; a++)
            for (uint32_t x = 0; x < s->ops.at[a].lanes; x++)
                for (uint32_t y = 0; y < s->ops.at[b].lanes; y++)
                    if (s->op_lane.at[s->ops.at[a].lane + x] == s->op_lane.at[s->ops.at[b].lane + y])
                        put(&m, a, b);
    }
    return m;
}

static bool waits_are_enough(const gy_part *p, const matrix *before)
{
    matrix m = matrix_of(p->step.count);
    bool enough = true;
    for (uint32_t b = 0; b < p->step.count; b++) {
        const gy_part_step *step = &p->step.at[b];
        for (uint32_t i = 0; i < step->waits; i++)
            put(&m, p->wait.at[step->wait + i], b);
        for (uint32_t a = 0; a < b; a++)
            if (p->step.at[a].queue == step->queue)
                put(&m, a, b);
        for (uint32_t a = 0; a < b; a++)
            enough = enough && (!has(before, p->step.at[a].op, step->op) || has(&m, a, b));
    }
    gy_free(m.bit);
    return enough;
}

/* ---- tests ---- */

static void break_messages(const gantry_schedule *s, gy_part *part, uint32_t ranks, gy_part *p)
{
    for (uint32_t i = 0; i < p->message.count; i++) {
        gy_message was = p->message.at[i], *m = &p->message.at[i];
        m->bytes++;
        ck_assert(!is_right(s, part, ranks));
        *m = was;
        m->peer = (m->peer + 1) % ranks;
        ck_assert(!is_right(s, part, ranks));
        *m = was;
        m->sends = !m->sends;
        ck_assert(!is_right(s, part, ranks));
        *m = was;
    }
    for (uint32_t i = 0; i < p->step.count; i++) {
        gy_part_step *step = &p->step.at[i], was = *step;
        if (!step->messages)
            continue;
        step->messages--;
        ck_assert(!is_right(s, part, ranks));
        *step = was;
        step->runs = !step->runs;
        ck_assert(!is_right(s, part, ranks));
        *step = was;
    }
}

static uint32_t break_waits(const gantry_schedule *s, gy_part *part, uint32_t ranks, gy_part *p, const matrix *before)
{
    uint32_t found = 0;
    ck_assert(waits_are_enough(p, before));
    for (uint32_t i = 0; i < p->step.count; i++) {
        gy_part_step *step = &p->step.at[i], was = *step;
        if (!step->waits)
            continue;
        step->waits--;
        bool right = is_right(s, part, ranks);
        ck_assert_msg(right == waits_are_enough(p, before), "step %u of rank %u", i, p->rank);
        found += !right;
        *step = was;
    }
    return found;
}

START_TEST(gallery)
{
    gantry_graph *graph = NULL;
    gy_part part[MOST_RANKS];
    uint32_t messages = 0, found = 0;
    size_t ranks = (size_t)_i / 2 % 3 + 2;
    gantry_schedule *s = schedule_of(names[_i / 6], ranks, &graph);
    uint32_t count = make_parts(part, s, _i % 2 ? GY_PART_BY_LANE : GY_PART_BY_DEVICE);
    ck_assert(is_right(s, part, count));
    ck_assert_int_eq(gantry_schedule_check_ranks(s, NULL), GANTRY_OK);
    matrix before = before_in(s);
    for (uint32_t r = 0; r < count; r++) {
        break_messages(s, part, count, &part[r]);
        found += s->ops.count < 400 ? break_waits(s, part, count, &part[r], &before) : 1;
        messages += (uint32_t)part[r].message.count;
    }
    ck_assert_uint_eq(messages % 2, 0);
    ck_assert(count == 1 || (messages > 0 && found > 0));
    gy_free(before.bit);
    for (uint32_t r = 0; r < count; r++)
        gy_part_free(&part[r]);
    gantry_schedule_free(s);
    gantry_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts");
    TCase *tc = tcase_create("ranks");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, gallery, 0, 6 * NAMES);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
