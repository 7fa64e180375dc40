/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of bytes: names that differ for one address, reductions, collectives in place, overlapping starts. Small
 * schedules in pairs: one that is right though it looks odd, one that looks alike and is wrong. */
#include "schedule/check/check.h"
#include "support/run_suite.h"
#include "unit/schedule/hand.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

/* Two CPUs in one memory. */
static const char machine_text[] =
    "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"m\", \"capacity\": 65536}], \"devices\": ["
    "{\"id\": \"d0\", \"memory\": \"m\"}, {\"id\": \"d1\", \"memory\": \"m\"}]}";

typedef struct scene {
    gantry_graph *g;
    gantry_schedule *s;
} scene;

static void open_scene(scene *c, gantry_graph *g)
{
    gantry_error err = { 0 };
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    gantry_schedule *s = gy_schedule_alloc();
    ck_assert_int_eq(gantry_machine_parse(&s->machine, machine_text, strlen(machine_text), "two", &err), GANTRY_OK);
    s->graph_hash = g->hash;
    bool ok = gy_vec_push(&s->slab, 8192);
    for (uint32_t v = 0; v < g->flow->values; v++)
        ok = ok && gy_vec_push(&s->values, gy_schedule_value_of(g, g->flow, v));
    for (uint32_t n = 0; n < g->nodes.count; n++)
        ok = ok && gy_vec_push(&s->node_ids, g->nodes.at[n].id);
    for (uint32_t lane = 0; lane < 4; lane++) /* lanes 0 and 1 of d0, 2 and 3 of d1 */
        ok = ok && gy_vec_push(&s->lanes, ((gy_lane){ lane / 2, GY_LANE_COMPUTE, false }));
    ck_assert(ok);
    *c = (scene){ g, s };
}

static uint32_t put(scene *c, uint32_t value, gy_space space, gy_role role, int64_t first, int64_t last,
                    uint64_t offset)
{
    gy_instance in = { .value = value,
                       .space = (uint8_t)space,
                       .role = (uint8_t)role,
                       .op = GANTRY_SUM,
                       .first = first,
                       .last = last,
                       .offset = offset };
    in.bytes = gy_instance_offset(c->s, &in, last);
    ck_assert(gy_vec_push(&c->s->instances, in));
    return (uint32_t)c->s->instances.count - 1;
}

static uint32_t data(scene *c, uint32_t value, int64_t first, int64_t last, uint64_t offset)
{
    return put(c, value, GY_SPACE_SLAB, GY_ROLE_DATA, first, last, offset);
}

static gy_op *op(scene *c, gy_op_kind kind, uint32_t node, uint32_t lane)
{
    gy_op o = {
        .kind = (uint8_t)kind, .node = node, .use = (uint32_t)c->s->use.count, .lane = (uint32_t)c->s->op_lane.count
    };
    o.lanes = 1;
    ck_assert(gy_vec_push(&c->s->op_lane, lane) && gy_vec_push(&c->s->ops, o));
    return gy_vec_last(&c->s->ops);
}

static void use(scene *c, uint32_t instance, gantry_access mode, int64_t first, int64_t last, uint16_t rank)
{
    gy_use u = { instance, (uint8_t)mode, rank, first, last };
    gy_op *o = gy_vec_last(&c->s->ops);
    ck_assert(gy_vec_push(&c->s->use, u));
    o->uses++;
    o->ins += o->kind == GY_OP_COLLECTIVE && mode == GANTRY_READ;
}

static void copy(scene *c, uint32_t lane, uint32_t from, uint32_t to, int64_t first, int64_t last)
{
    op(c, GY_OP_COPY, GY_NONE, lane);
    use(c, from, GANTRY_READ, first, last, 0);
    use(c, to, GANTRY_WRITE, first, last, 0);
}

static void wait_for(scene *c, uint32_t from, uint32_t to, uint32_t distance)
{
    gy_sync row = { .from = from, .to = to, .distance = distance, .carrier = GY_CARRIER_EVENT, .slot = from };
    ck_assert(gy_vec_push(&c->s->sync, row));
}

/* `rule` NULL: nothing to object to. */
static void close_scene(scene *c, const char *rule, const char *says)
{
    gantry_error err = { 0 };
    char *text;
    gantry_status status = gy_schedule_verify(c->s, c->g, &err);
    if (rule) {
        char start[32];
        snprintf(start, sizeof start, "rule %s:", rule);
        ck_assert_msg(status && !strncmp(err.text, start, strlen(start)) && strstr(err.text, says),
                      "%s wanted, not: %s", rule, status ? err.text : "fine");
    } else {
        ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    }
    ck_assert_int_eq(gantry_schedule_json(c->s, &text, NULL, &err), GANTRY_OK);
    gantry_free(text);
    gantry_schedule_free(c->s);
    gantry_graph_free(c->g);
}

static gantry_buffer bytes_of(gantry_graph *g, const char *name, int64_t rows, gantry_buffer_class cls)
{
    gantry_buffer b = gantry_graph_buffer(g, name, GANTRY_U8, 1, &rows);
    gantry_buffer_set_class(g, b, cls);
    return b;
}

/* ---- one address, two names ---- */

/* make writes y{0:4}; look reads it where `shift` rows later are said to be. */
static void look_by_another_name(int64_t shift, bool there_and_back, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("names");
    gantry_buffer y = bytes_of(g, "y", 8, GANTRY_TEMP);
    gantry_node make = gantry_graph_work(g, "make"), look = gantry_graph_work(g, "look");
    gantry_node_write(g, make, gantry_rows(y, 0, 8));
    gantry_node_read(g, look, gantry_rows(y, 2, 4));
    open_scene(&c, g);
    uint32_t a = data(&c, 0, 0, 8, 0), b = data(&c, 0, shift, 8, 0), far = data(&c, 0, shift, 8, 256),
             end = data(&c, 0, 0, 8, 256);
    op(&c, GY_OP_LAUNCH, 0, 0);
    use(&c, a, GANTRY_WRITE, 0, 8, 0);
    if (there_and_back) /* copied by one wrong name, read by the right one */
        copy(&c, 0, b, far, shift, 8);
    op(&c, GY_OP_LAUNCH, 1, 0);
    use(&c, there_and_back ? end : b, GANTRY_READ, 2, 4, 0);
    close_scene(&c, rule, says);
}

START_TEST(test_names)
{
    look_by_another_name(0, false, NULL, NULL);
    look_by_another_name(1, false, "version", "what \"make\" wrote, of other rows");
    look_by_another_name(0, true, NULL, NULL);
    look_by_another_name(1, true, NULL, NULL);
}
END_TEST

/* t = y; add: t += mine. The contribution goes by a name that is `shift` rows off, and so does look. */
static void add_by_another_name(int64_t shift, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("sums");
    gantry_buffer t = bytes_of(g, "t", 8, GANTRY_TEMP);
    gantry_node make = gantry_graph_work(g, "make"), add = gantry_graph_work(g, "add"),
                look = gantry_graph_work(g, "look");
    gantry_node_write(g, make, gantry_all(t));
    gantry_node_reduce(g, add, gantry_rows(t, 2, 4), GANTRY_SUM);
    gantry_node_read(g, look, gantry_rows(t, 2, 4));
    open_scene(&c, g);
    uint32_t a = data(&c, 0, 0, 8, 0), b = data(&c, 0, shift, 8, 0);
    op(&c, GY_OP_LAUNCH, 0, 0);
    use(&c, a, GANTRY_WRITE, 0, 8, 0);
    op(&c, GY_OP_LAUNCH, 1, 0);
    use(&c, b, GANTRY_SUM, 2, 4, 0);
    op(&c, GY_OP_LAUNCH, 2, 0);
    use(&c, b, GANTRY_READ, 2, 4, 0);
    close_scene(&c, rule, says);
}

/* An identity is the same in every row: who sets it may call the rows what he likes. */
static void clear_by_another_name(gantry_access reduce, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("clear");
    gantry_buffer t = bytes_of(g, "t", 8, GANTRY_TEMP);
    gantry_node add = gantry_graph_work(g, "add"), look = gantry_graph_work(g, "look");
    gantry_node_reduce(g, add, gantry_rows(t, 2, 4), GANTRY_SUM);
    gantry_node_read(g, look, gantry_rows(t, 2, 4));
    open_scene(&c, g);
    uint32_t a = data(&c, 0, 2, 8, 0), b = data(&c, 0, 0, 8, 0);
    op(&c, GY_OP_FILL, GY_NONE, 0)->reduce = (uint8_t)reduce;
    use(&c, b, GANTRY_WRITE, 0, 2, 0);
    op(&c, GY_OP_LAUNCH, 0, 0);
    use(&c, a, GANTRY_SUM, 2, 4, 0);
    op(&c, GY_OP_LAUNCH, 1, 0);
    use(&c, a, GANTRY_READ, 2, 4, 0);
    close_scene(&c, rule, says);
}

START_TEST(test_names_of_sums)
{
    add_by_another_name(0, NULL, NULL);
    add_by_another_name(1, "version", "nothing known");
    clear_by_another_name(GANTRY_SUM, NULL, NULL);
    clear_by_another_name(GANTRY_MAX, NULL, NULL); /* of bytes without a sign: 0 as well */
    clear_by_another_name(GANTRY_PROD, "version", "identity of prod and 1 contribution(s) to sum");
}
END_TEST

/* ---- reductions ---- */

/* add, then peek, then peak: the maximum is over the sum, and peek does not see it. */
static void two_reductions(bool in_order, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("two");
    gantry_buffer t = bytes_of(g, "t", 1, GANTRY_INPUT);
    gantry_node_reduce(g, gantry_graph_work(g, "add"), gantry_all(t), GANTRY_SUM);
    gantry_node_read(g, gantry_graph_work(g, "peek"), gantry_all(t));
    gantry_node_reduce(g, gantry_graph_work(g, "peak"), gantry_all(t), GANTRY_MAX);
    gantry_node_read(g, gantry_graph_work(g, "look"), gantry_all(t));
    open_scene(&c, g);
    uint32_t in = put(&c, 0, GY_SPACE_INPUT, GY_ROLE_EXTERNAL, 0, 1, 0), a = data(&c, 0, 0, 1, 0);
    const uint32_t order[2][4] = { { 0, 2, 1, 3 }, { 0, 1, 2, 3 } };
    copy(&c, 0, in, a, 0, 1);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t node = order[in_order][i];
        op(&c, GY_OP_LAUNCH, node, 0);
        use(&c, a, node == 0 ? GANTRY_SUM : node == 2 ? GANTRY_MAX : GANTRY_READ, 0, 1, 0);
    }
    close_scene(&c, rule, says);
}

/* Contributions to one reduction may change places, and may not be left unordered: both change the bytes. */
static void two_sums(bool swapped, bool ordered, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("sums");
    gantry_buffer t = bytes_of(g, "t", 1, GANTRY_TEMP);
    gantry_node one = gantry_graph_work(g, "one"), two = gantry_graph_work(g, "two"),
                look = gantry_graph_work(g, "look");
    gantry_node_reduce(g, one, gantry_all(t), GANTRY_SUM);
    gantry_node_reduce(g, two, gantry_all(t), GANTRY_SUM);
    gantry_node_read(g, look, gantry_all(t));
    open_scene(&c, g);
    uint32_t a = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_ACCUMULATOR, 0, 1, 0);
    op(&c, GY_OP_FILL, GY_NONE, 0);
    use(&c, a, GANTRY_WRITE, 0, 1, 0);
    for (uint32_t i = 0; i < 2; i++) {
        op(&c, GY_OP_LAUNCH, swapped ? 1 - i : i, i);
        use(&c, a, GANTRY_SUM, 0, 1, 0);
    }
    op(&c, GY_OP_LAUNCH, 2, 2);
    use(&c, a, GANTRY_READ, 0, 1, 0);
    wait_for(&c, 0, 2, 0);
    wait_for(&c, 1, 3, 0);
    wait_for(&c, 2, 3, 0);
    if (ordered)
        wait_for(&c, 1, 2, 0);
    close_scene(&c, rule, says);
}

/* The value before the contributions is 0, which a combination need not read: `nodes` says who made it 0. */
static void without_previous(double filled, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("zero");
    gantry_buffer t = bytes_of(g, "t", 1, GANTRY_TEMP);
    gantry_graph_fill(g, "zero", gantry_all(t), filled);
    gantry_node add = gantry_graph_work(g, "add"), look = gantry_graph_work(g, "look");
    gantry_node_reduce(g, add, gantry_all(t), GANTRY_SUM);
    gantry_node_read(g, look, gantry_all(t));
    open_scene(&c, g);
    uint32_t a = data(&c, 0, 0, 1, 0), sum = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_ACCUMULATOR, 0, 1, 256);
    op(&c, GY_OP_FILL, 0, 0);
    use(&c, a, GANTRY_WRITE, 0, 1, 0);
    op(&c, GY_OP_FILL, GY_NONE, 0);
    use(&c, sum, GANTRY_WRITE, 0, 1, 0);
    op(&c, GY_OP_LAUNCH, 1, 0);
    use(&c, sum, GANTRY_SUM, 0, 1, 0);
    gy_op *reduce = op(&c, GY_OP_COLLECTIVE, GY_NONE, 0);
    reduce->collective = GANTRY_REDUCE;
    reduce->reduce = GANTRY_SUM;
    use(&c, sum, GANTRY_READ, 0, 1, 0);
    use(&c, a, GANTRY_WRITE, 0, 1, 0);
    op(&c, GY_OP_LAUNCH, 2, 0);
    use(&c, a, GANTRY_READ, 0, 1, 0);
    close_scene(&c, rule, says);
}

START_TEST(test_reductions)
{
    two_reductions(true, NULL, NULL);
    two_reductions(false, "version",
                   "result of another reduction and 1 contribution(s) to max; it should be what \"t\" is at the start "
                   "and 1 contribution(s)");
    two_sums(false, true, NULL, NULL);
    two_sums(true, true, NULL, NULL);
    two_sums(true, false, "race", "op 2 \"one\" writes");
    without_previous(0, NULL, NULL);
    without_previous(3, "version", "what \"zero\" wrote and 1 contribution(s)");
}
END_TEST

/* ---- collectives ---- */

/* Two sums and what was there before, all-reduced into both instances of t; in place by the rank that reads `a`. */
static void all_reduce(uint16_t rank_of_write, uint64_t offset_of_sum, int64_t first_of_sum, const char *rule,
                       const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("all");
    gantry_buffer t = bytes_of(g, "t", 4, GANTRY_STATE);
    gantry_node add = gantry_graph_work(g, "add"), look = gantry_graph_work(g, "look");
    gantry_node_reduce(g, add, gantry_rows(t, 1, 3), GANTRY_SUM);
    gantry_node_read(g, look, gantry_rows(t, 1, 3));
    open_scene(&c, g);
    uint32_t a = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_PERSIST, 0, 4, 0), b = data(&c, 0, 1, 3, 512);
    uint32_t sum = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_ACCUMULATOR, first_of_sum, 4, offset_of_sum);
    uint32_t zero = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_ACCUMULATOR, 0, 4, 256);
    uint32_t mine = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_ACCUMULATOR, 0, 4, offset_of_sum);
    op(&c, GY_OP_FILL, GY_NONE, 0);
    use(&c, mine, GANTRY_WRITE, 0, 4, 0);
    op(&c, GY_OP_FILL, GY_NONE, 2);
    use(&c, zero, GANTRY_WRITE, 1, 3, 0);
    op(&c, GY_OP_LAUNCH, 0, 0);
    use(&c, mine, GANTRY_SUM, 1, 3, 0);
    gy_op *reduce = op(&c, GY_OP_COLLECTIVE, GY_NONE, 0);
    ck_assert(gy_vec_push(&c.s->op_lane, 2));
    reduce->lanes = 2;
    reduce->collective = GANTRY_ALL_REDUCE;
    reduce->reduce = GANTRY_SUM;
    use(&c, a, GANTRY_READ, 1, 3, 0);
    use(&c, zero, GANTRY_READ, 1, 3, 1);
    use(&c, sum, GANTRY_READ, 1, 3, 1);
    use(&c, a, GANTRY_WRITE, 1, 3, rank_of_write);
    use(&c, b, GANTRY_WRITE, 1, 3, 1);
    op(&c, GY_OP_LAUNCH, 1, 2);
    use(&c, b, GANTRY_READ, 1, 3, 0);
    close_scene(&c, rule, says);
}

START_TEST(test_all_reduce)
{
    all_reduce(0, 768, 0, NULL, NULL);
    all_reduce(1, 768, 0, "race", "op 3 \"all_reduce t{1:3}\" names bytes 1 to 3");
    /* Rows of the sum one off: the first that look reads gets nothing. */
    all_reduce(0, 768, 1, "version",
               "what \"t\" is at the start; it should be what \"t\" is at the start and 1 contribution(s)");
    all_reduce(0, 512, 0, "race", "op 3 \"all_reduce t{1:3}\" names");
}
END_TEST

/* make writes t, add adds to all of it; rows 1 and 2 are combined, with a sum whose rows are `shift` off. */
static void reduce_by_another_name(int64_t shift, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("off");
    gantry_buffer t = bytes_of(g, "t", 4, GANTRY_TEMP);
    gantry_node make = gantry_graph_work(g, "make"), add = gantry_graph_work(g, "add"),
                look = gantry_graph_work(g, "look");
    gantry_node_write(g, make, gantry_all(t));
    gantry_node_reduce(g, add, gantry_all(t), GANTRY_SUM);
    gantry_node_read(g, look, gantry_rows(t, 1, 3));
    open_scene(&c, g);
    uint32_t a = data(&c, 0, 0, 4, 0), mine = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_ACCUMULATOR, 0, 4, 256);
    uint32_t sum = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_ACCUMULATOR, shift, 4, 256);
    op(&c, GY_OP_LAUNCH, 0, 0);
    use(&c, a, GANTRY_WRITE, 0, 4, 0);
    op(&c, GY_OP_FILL, GY_NONE, 0);
    use(&c, mine, GANTRY_WRITE, 0, 4, 0);
    op(&c, GY_OP_LAUNCH, 1, 0);
    use(&c, mine, GANTRY_SUM, 0, 4, 0);
    gy_op *reduce = op(&c, GY_OP_COLLECTIVE, GY_NONE, 0);
    reduce->collective = GANTRY_REDUCE;
    reduce->reduce = GANTRY_SUM;
    use(&c, a, GANTRY_READ, 1, 3, 0);
    use(&c, sum, GANTRY_READ, 1, 3, 0);
    use(&c, a, GANTRY_WRITE, 1, 3, 0);
    op(&c, GY_OP_LAUNCH, 2, 0);
    use(&c, a, GANTRY_READ, 1, 3, 0);
    close_scene(&c, rule, says);
}

START_TEST(test_reduce)
{
    reduce_by_another_name(0, NULL, NULL);
    reduce_by_another_name(1, "version", "nothing known");
}
END_TEST

/* ---- starts ---- */

/* An input that is an output goes there by two lanes. Starts have arrays of their own: those of two may run at once. */
static void overlap_outputs(bool ordered, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("through");
    gantry_buffer x = bytes_of(g, "x", 2, GANTRY_INPUT);
    gantry_buffer_output(g, x);
    gantry_node_read(g, gantry_graph_work(g, "look"), gantry_all(x));
    open_scene(&c, g);
    uint32_t in = put(&c, 0, GY_SPACE_INPUT, GY_ROLE_EXTERNAL, 0, 2, 0),
             out = put(&c, 0, GY_SPACE_OUTPUT, GY_ROLE_EXTERNAL, 0, 2, 0);
    c.s->in_flight = 2;
    op(&c, GY_OP_LAUNCH, 0, 0);
    use(&c, in, GANTRY_READ, 0, 2, 0);
    copy(&c, 1, in, out, 0, 2);
    copy(&c, 2, in, out, 0, 1);
    if (ordered)
        wait_for(&c, 1, 2, 0);
    close_scene(&c, rule, says);
}

/* Two starts in flight; y is written to its output twice, by two lanes, and scratch is used on both. */
static void overlap(bool guarded, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("overlap");
    gantry_buffer y = bytes_of(g, "y", 2, GANTRY_TEMP);
    gantry_buffer_output(g, y);
    gantry_node make = gantry_graph_work(g, "make");
    gantry_node_write(g, make, gantry_all(y));
    open_scene(&c, g);
    uint32_t a = data(&c, 0, 0, 2, 0), out = put(&c, 0, GY_SPACE_OUTPUT, GY_ROLE_EXTERNAL, 0, 2, 0);
    c.s->in_flight = 2;
    op(&c, GY_OP_LAUNCH, 0, 0);
    use(&c, a, GANTRY_WRITE, 0, 2, 0);
    copy(&c, 1, a, out, 0, 2);
    copy(&c, 2, a, out, 0, 1);
    wait_for(&c, 0, 1, 0);
    wait_for(&c, 1, 2, 0);
    if (guarded) /* the next start may write y when this one has copied it; its copies to its own output are free */
        wait_for(&c, 2, 0, 1);
    close_scene(&c, rule, says);
}

START_TEST(test_overlapping_starts)
{
    overlap_outputs(true, NULL, NULL);
    overlap_outputs(false, "race", "op 2 \"copy x{0:1} m -> m\" writes");
    overlap(true, NULL, NULL);
    overlap(false, "race",
            "op 0 \"make\" writes bytes 0 to 1 of memory m (y) that op 2 \"copy y{0:1} m -> m\" 1 start(s) before "
            "reads");
}
END_TEST

/* A state that is carried: its last value must come home, by a copy from the other value. */
static void carried(bool home, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("carry");
    gantry_buffer p = bytes_of(g, "p", 2, GANTRY_STATE), q = bytes_of(g, "q", 2, GANTRY_STATE);
    gantry_graph_repeat(g, 3);
    gantry_graph_carry(g, p, q);
    gantry_node step = gantry_graph_work(g, "step");
    gantry_node_read(g, step, gantry_all(p));
    gantry_node_write(g, step, gantry_all(q));
    gantry_graph_repeat_end(g);
    open_scene(&c, g);
    uint32_t last = g->flow->exit[0], value[4] = { 0, 1, 0, last };
    ck_assert_uint_eq(last, g->flow->exit[1]);
    value[2] = g->flow->access[g->flow->task[1].access + 1].value;
    uint32_t first = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_PERSIST, 0, 2, 0),
             second = put(&c, 1, GY_SPACE_SLAB, GY_ROLE_PERSIST, 0, 2, 256);
    uint32_t at[4] = { first, second, data(&c, value[2], 0, 2, 512), data(&c, last, 0, 2, 768) };
    for (uint32_t it = 0; it < 3; it++) {
        op(&c, GY_OP_LAUNCH, 0, 0)->iteration = it;
        use(&c, at[it], GANTRY_READ, 0, 2, 0);
        use(&c, at[it + 1], GANTRY_WRITE, 0, 2, 0);
    }
    copy(&c, 0, at[3], second, 0, 2);
    if (home)
        copy(&c, 0, at[3], first, 0, 2);
    close_scene(&c, rule, says);
}

START_TEST(test_carried_states)
{
    carried(true, NULL, NULL);
    carried(false, "exit", "what \"p\" is at the start; it should be what \"step\" wrote in iteration 2");
}
END_TEST

/* An identity may stand in an output only if it is what stays there. */
static void clear_output(bool contributes, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("clear");
    gantry_buffer t = bytes_of(g, "t", 1, GANTRY_TEMP);
    gantry_buffer_output(g, t);
    gantry_graph_fill(g, "zero", gantry_all(t), 0);
    gantry_node more = gantry_graph_work(g, "more");
    gantry_node_reduce(g, more, gantry_rows(t, 0, contributes), GANTRY_SUM);
    open_scene(&c, g);
    uint32_t a = data(&c, 0, 0, 1, 0), out = put(&c, 0, GY_SPACE_OUTPUT, GY_ROLE_EXTERNAL, 0, 1, 0);
    op(&c, GY_OP_FILL, 0, 0);
    use(&c, a, GANTRY_WRITE, 0, 1, 0);
    op(&c, GY_OP_LAUNCH, 1, 0);
    use(&c, a, GANTRY_SUM, 0, contributes, 0);
    op(&c, GY_OP_FILL, GY_NONE, 0)->reduce = GANTRY_SUM;
    use(&c, out, GANTRY_WRITE, 0, 1, 0);
    if (contributes)
        copy(&c, 0, a, out, 0, 1);
    close_scene(&c, rule, says);
}

START_TEST(test_identity_in_output)
{
    clear_output(false, NULL, NULL);
    clear_output(true, "external", "op 2 \"sum identity t m\" writes t in");
}
END_TEST

/* `on` as an expression over the number of devices. */
static void on_last(uint32_t lane, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("on");
    gantry_node_on(g, gantry_graph_work(g, "n"), "devices - 1");
    open_scene(&c, g);
    op(&c, GY_OP_LAUNCH, 0, lane);
    close_scene(&c, rule, says);
}

START_TEST(test_on_expression)
{
    on_last(2, NULL, NULL);
    on_last(0, "place", "op 0 \"n\" is on device 0; the node says on device 1");
}
END_TEST

/* A node that reads and writes one place by two names. */
START_TEST(test_one_op_at_one_place)
{
    scene c;
    gantry_graph *g = gantry_graph_new("place");
    gantry_buffer x = bytes_of(g, "x", 1, GANTRY_STATE), y = bytes_of(g, "y", 1, GANTRY_TEMP),
                  z = bytes_of(g, "z", 1, GANTRY_TEMP);
    gantry_node n = gantry_graph_work(g, "n");
    gantry_node_read(g, n, gantry_all(x));
    gantry_node_write(g, n, gantry_all(y));
    gantry_node_write(g, n, gantry_all(z));
    open_scene(&c, g);
    uint32_t a = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_PERSIST, 0, 1, 0), b = data(&c, 1, 0, 1, 256),
             d = data(&c, 2, 0, 1, 256);
    op(&c, GY_OP_LAUNCH, 0, 0);
    use(&c, a, GANTRY_READ, 0, 1, 0);
    use(&c, b, GANTRY_WRITE, 0, 1, 0);
    use(&c, d, GANTRY_WRITE, 0, 1, 0);
    close_scene(&c, "race", "op 0 \"n\" names bytes 256 to 257 of memory m (z) twice");
}
END_TEST

/* A state in two places, changed in each by an execution of the same node: `second` is where the repeat changes it. */
static void change_both(uint32_t second, uint32_t lane, const char *kind, const char *rule, const char *says)
{
    scene c;
    gantry_graph *g = gantry_graph_new("replicas");
    gantry_buffer x = bytes_of(g, "x", 1, GANTRY_STATE);
    gantry_node_readwrite(g, gantry_graph_work(g, "n"), gantry_all(x));
    open_scene(&c, g);
    c.s->machine->device[1].kind = kind;
    uint32_t a = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_PERSIST, 0, 1, 0),
             b = put(&c, 0, GY_SPACE_SLAB, GY_ROLE_PERSIST, 0, 1, 256);
    op(&c, GY_OP_LAUNCH, 0, 0);
    use(&c, a, GANTRY_READWRITE, 0, 1, 0);
    if (second < 2) {
        op(&c, GY_OP_LAUNCH, 0, lane)->repeat = true;
        use(&c, second ? b : a, GANTRY_READWRITE, 0, 1, 0);
    }
    close_scene(&c, rule, says);
}

START_TEST(test_changed_in_two_places)
{
    change_both(1, 2, "cpu", NULL, NULL);
    change_both(0, 0, "cpu", "version", "op 1 \"n again\" reads x in");
    change_both(0, 2, "cpu", "race", "op 1 \"n again\"");
    change_both(2, 2, "cpu", "exit", "x in memory");
    change_both(1, 2, "other", "place", "op 1 \"n again\" is on device d1 of kind other and repeats op 0 \"n\" on d0");
}
END_TEST

/* ---- contents by themselves ---- */

START_TEST(test_contents)
{
    gy_contents c;
    ck_assert(gy_contents_init(&c));
    gy_content_id p = gy_content_write(&c, 1), q = gy_content_write(&c, 2),
                  zero = gy_content_identity(&c, GANTRY_F32, GANTRY_SUM);
    ck_assert_uint_eq(p, gy_content_write(&c, 1));
    ck_assert_uint_ne(p, q);
    ck_assert_uint_ne(gy_content_entry(&c, 1), p);
    ck_assert_uint_ne(zero, gy_content_identity(&c, GANTRY_F64, GANTRY_SUM));
    ck_assert_uint_ne(zero, gy_content_identity(&c, GANTRY_F32, GANTRY_MAX));
    ck_assert_uint_eq(gy_content_identity(&c, GANTRY_U8, GANTRY_SUM), gy_content_identity(&c, GANTRY_U8, GANTRY_MAX));
    gy_content_id a = gy_content_add(&c, p, GANTRY_SUM, 5), ab = gy_content_add(&c, a, GANTRY_SUM, 6);
    ck_assert_uint_eq(ab, gy_content_add(&c, gy_content_add(&c, p, GANTRY_SUM, 6), GANTRY_SUM, 5));
    ck_assert_uint_ne(ab, gy_content_add(&c, a, GANTRY_SUM, 5)); /* twice is not once */
    ck_assert_uint_ne(gy_content_add(&c, a, GANTRY_SUM, 5), a);
    ck_assert_uint_ne(gy_content_add(&c, gy_content_add(&c, p, GANTRY_SUM, 5), GANTRY_MAX, 6),
                      gy_content_add(&c, gy_content_add(&c, p, GANTRY_MAX, 6), GANTRY_SUM, 5));
    gy_content_id sum = gy_content_add(&c, zero, GANTRY_SUM, 6);
    ck_assert_uint_eq(gy_content_combine(&c, a, sum, GANTRY_F32, GANTRY_SUM), ab);
    ck_assert_uint_eq(gy_content_combine(&c, sum, a, GANTRY_F32, GANTRY_SUM), ab);
    ck_assert_uint_eq(gy_content_combine(&c, p, zero, GANTRY_F32, GANTRY_SUM), p);
    ck_assert_uint_eq(gy_content_combine(&c, zero, zero, GANTRY_F32, GANTRY_SUM), zero);
    ck_assert_uint_eq(gy_content_combine(&c, p, p, GANTRY_F32, GANTRY_SUM), GY_UNKNOWN);
    ck_assert_uint_eq(gy_content_combine(&c, a, q, GANTRY_F32, GANTRY_SUM), GY_UNKNOWN);
    ck_assert_uint_eq(gy_content_combine(&c, p, sum, GANTRY_F32, GANTRY_MAX), GY_UNKNOWN);
    ck_assert_uint_eq(gy_content_combine(&c, GY_UNKNOWN, sum, GANTRY_F32, GANTRY_SUM), GY_UNKNOWN);
    ck_assert_uint_eq(gy_content_add(&c, GY_UNKNOWN, GANTRY_SUM, 1), GY_UNKNOWN);
    ck_assert(gy_content_is_plain(&c, zero) && !gy_content_is_plain(&c, sum) && !gy_content_is_plain(&c, p));
    gy_content_id maximum = gy_content_add(&c, ab, GANTRY_MAX, 9);
    gy_content_id low = gy_content_add(&c, gy_content_identity(&c, GANTRY_F32, GANTRY_MAX), GANTRY_MAX, 9);
    ck_assert_uint_eq(gy_content_combine(&c, ab, low, GANTRY_F32, GANTRY_MAX), maximum);
    gy_contents_free(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bytes");
    TCase *tc = tcase_create("bytes");
    tcase_add_test(tc, test_names);
    tcase_add_test(tc, test_names_of_sums);
    tcase_add_test(tc, test_reductions);
    tcase_add_test(tc, test_all_reduce);
    tcase_add_test(tc, test_reduce);
    tcase_add_test(tc, test_overlapping_starts);
    tcase_add_test(tc, test_carried_states);
    tcase_add_test(tc, test_identity_in_output);
    tcase_add_test(tc, test_on_expression);
    tcase_add_test(tc, test_one_op_at_one_place);
    tcase_add_test(tc, test_changed_in_two_places);
    tcase_add_test(tc, test_contents);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
