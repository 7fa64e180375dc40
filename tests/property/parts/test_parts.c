/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of ranks: graphs of the gallery on 4 devices that are dealt out to 2, 3 and 4 ranks. The parts that are made
 * pass the checker. Every message that is left out, changed in size or sent to somebody else is found. Of a wait that
 * is left out the checker says what a second, slow reading says: the transitive closure of what comes before what, in
 * the schedule and in the part, as matrices of bits. With GPUs, copies of both ways go together where that may be: no
 * byte that one of them writes is another's, and the checker finds it where one is.
 */
#include "schedule/ranks/ranks.h"

#include "base/memory.h"
#include "base/text.h"
#include "support/run_suite.h"
#include <gantry/gantry.h>
#include <string.h>

enum { MOST_RANKS = 8 };

static const char *const names[] = { "saxpy",      "jacobi_blocks", "kmeans", "mlp_step", "cholesky", "pipeline3",
                                     "reduce_sum", "black_scholes", "nbody",  "fft2d",    "stages" };
enum { NAMES = sizeof names / sizeof *names };

/* `machine`: a file of them; NULL: devices of the host. */
static gantry_schedule *schedule_on(const char *machine, const char *name, size_t ranks, gantry_graph **graph)
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
    o.policy = "heft"; /* which spreads what others might leave on one rank */
    ck_assert_msg(gantry_graph_load(graph, path, &load, &err) == GANTRY_OK, "%s", err.text);
    if (machine)
        ck_assert_msg(gantry_machine_load(&all, machine, &err) == GANTRY_OK, "%s", err.text);
    else
        ck_assert_int_eq(gantry_machine_virtual(&all, 4, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_spread(&m, all, ranks, &err), GANTRY_OK);
    ck_assert_msg(gantry_schedule_new(&s, *graph, m, &o, &err) == GANTRY_OK, "%s: %s", name, err.text);
    ck_assert_msg(gantry_schedule_check(s, *graph, &err) == GANTRY_OK, "%s: %s", name, err.text);
    gantry_machine_free(all);
    gantry_machine_free(m);
    return s;
}

static gantry_schedule *schedule_of(const char *name, size_t ranks, gantry_graph **graph)
{
    return schedule_on(NULL, name, ranks, graph);
}

static uint32_t make_parts(gy_part *part, const gantry_schedule *s, gy_part_queues by, const uint8_t *own)
{
    uint32_t ranks = gy_machine_ranks(s->machine);
    for (uint32_t r = 0; r < ranks; r++)
        ck_assert_int_eq(gy_part_make(&part[r], s, r, by, own, NULL), GANTRY_OK);
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

/* Of each step, the one whose messages move its rows: an earlier one where they are packed. */
static uint32_t *movers_of(const gy_part *p)
{
    uint32_t *mover = gy_calloc(p->step.count + 1, sizeof *mover);
    ck_assert_ptr_nonnull(mover);
    for (uint32_t i = 0; i < p->step.count; i++) {
        uint32_t found = i;
        for (uint32_t a = 0; a < i && p->step.at[i].packed; a++)
            for (uint32_t k = 0; k < p->step.at[a].messages; k++)
                found = p->message.at[p->step.at[a].message + k].op == p->step.at[i].op ? a : found;
        mover[i] = found;
    }
    return mover;
}

/* All that ends before an op begins has ended before its rows move, unless they move together. */
static bool waits_are_enough(const gy_part *p, const matrix *before)
{
    matrix m = matrix_of(p->step.count);
    bool enough = true;
    uint32_t *mover = movers_of(p);
    for (uint32_t b = 0; b < p->step.count; b++) {
        const gy_part_step *step = &p->step.at[b];
        for (uint32_t i = 0; i < step->waits; i++)
            put(&m, p->wait.at[step->wait + i], b);
        for (uint32_t a = 0; a < b; a++)
            if (p->step.at[a].queue == step->queue)
                put(&m, a, b);
        for (uint32_t a = 0; a < b; a++)
            enough = enough && (!has(before, p->step.at[a].op, step->op) || has(&m, a, mover[b]) ||
                                (mover[a] == mover[b] && p->step.at[b].packed));
    }
    gy_free(mover);
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
        m->packed = !m->packed;
        ck_assert(!is_right(s, part, ranks));
        *m = was;
        m->op++;
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
        step->packed = !step->packed;
        ck_assert(!is_right(s, part, ranks));
        *step = was;
        step->queue = p->network + (step->queue - p->network + 1) % (p->queues - p->network);
        ck_assert(step->queue == was.queue || !is_right(s, part, ranks));
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
    uint32_t count = make_parts(part, s, _i % 2 ? GY_PART_BY_LANE : GY_PART_BY_DEVICE, NULL);
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

/* ---- copies that go together ---- */

/* Bytes of a use in a slab, from *from to *to. */
static uint32_t range_of(const gantry_schedule *s, uint32_t op, uint32_t k, uint64_t *from, uint64_t *to)
{
    const gy_use *u = &s->use.at[s->ops.at[op].use + k];
    const gy_instance *in = &s->instances.at[u->instance];
    *from = gy_instance_address(s, in, 0) + gy_instance_offset(s, in, u->first);
    *to = gy_instance_address(s, in, 0) + gy_instance_offset(s, in, u->last);
    return in->space == GY_SPACE_SLAB ? in->memory : GY_NONE;
}

static bool touch(const gantry_schedule *s, uint32_t a, uint32_t b)
{
    bool found = false;
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t l = 0; l < 2; l++) {
            uint64_t from, to, begin, end;
            uint32_t memory = range_of(s, a, k, &from, &to), other = range_of(s, b, l, &begin, &end);
            bool written = k == 1 || l == 1;
            found = found || (written && memory != GY_NONE && memory == other && from < end && begin < to);
        }
    return found;
}

/* Writes of the first are put where the second reads or writes; the checker looks at addresses here only. */
static void break_addresses(const gantry_schedule *s, gy_part *part, uint32_t ranks, uint32_t a, uint32_t b)
{
    for (uint32_t l = 0; l < 2; l++) {
        uint64_t from, to, begin, end;
        uint32_t memory = range_of(s, a, 1, &from, &to), other = range_of(s, b, l, &begin, &end);
        gy_instance *in = &s->instances.at[s->use.at[s->ops.at[a].use + 1].instance];
        uint64_t was = in->offset;
        if (memory != other || begin < from - was)
            continue;
        in->offset = begin - (from - was);
        ck_assert(!touch(s, a, b) || !is_right(s, part, ranks));
        in->offset = was;
    }
}

/* How many steps of the rank have messages both ways, one of each at least, and how many have several peers. */
typedef struct joint_steps {
    uint32_t both, peers;
} joint_steps;

/* Rows between two ranks, one way, stand together in a step, and those of all are apart. */
static void look_at_groups(const gantry_schedule *s, gy_part *part, uint32_t ranks, const gy_part *p,
                           joint_steps *found)
{
    for (uint32_t i = 0; i < p->step.count; i++) {
        const gy_part_step *step = &p->step.at[i];
        const gy_message *m = &p->message.at[step->message];
        bool two = false, several = false, seen[MOST_RANKS][2] = { { false } };
        for (uint32_t k = 0; k < step->messages && gy_op_is_copy(&s->ops.at[step->op]); k++) {
            bool same = k > 0 && m[k].peer == m[k - 1].peer && m[k].sends == m[k - 1].sends;
            ck_assert(same || !seen[m[k].peer][m[k].sends]);
            seen[m[k].peer][m[k].sends] = true;
            ck_assert(m[k].op == m->op || !touch(s, m[k].op, m->op));
            two = two || (m[k].sends != m->sends && m[k].op != m->op);
            several = several || m[k].peer != m->peer;
            if (m[k].op != m->op)
                break_addresses(s, part, ranks, m[k].op, m->op);
        }
        found->both += two;
        found->peers += several;
    }
}

/* ---- circles ---- */

/* Beginnings, ends and messages of the steps of all ranks. A beginning waits for the end before it on its rank, an end
 * for its own beginning and messages, a message for both of its ranks to have come to it: to the beginning of the step,
 * and, where messages come one after the other, to the end of the one before. */
typedef struct circles {
    const gantry_schedule *s;
    const gy_part *part;
    uint32_t ranks;
    size_t first[MOST_RANKS + 1]; /* of each rank: where its states begin: of steps, two each, then of messages */
    uint8_t *state;               /* 1: being visited, 2: done */
    bool found;
} circles;

/* False: that has been done, or is a circle. */
static bool enter(circles *c, uint8_t *state)
{
    bool is_new = *state == 0;
    c->found = c->found || *state == 1;
    *state = is_new ? 1 : *state;
    return is_new;
}

static void visit_end(circles *c, uint32_t rank, uint32_t step);

static void visit_begin(circles *c, uint32_t rank, uint32_t step)
{
    uint8_t *state = &c->state[c->first[rank] + 2 * (size_t)step];
    if (!enter(c, state))
        return;
    if (step > 0)
        visit_end(c, rank, step - 1);
    *state = 2;
}

static void visit_message(circles *c, uint32_t rank, uint32_t step, uint32_t k);

static void visit_half(circles *c, uint32_t rank, uint32_t step, uint32_t k)
{
    visit_begin(c, rank, step);
    if (k > 0 && !gy_op_is_copy(&c->s->ops.at[c->part[rank].step.at[step].op]))
        visit_message(c, rank, step, k - 1);
}

static void visit_message(circles *c, uint32_t rank, uint32_t step, uint32_t k)
{
    const gy_part_step *s = &c->part[rank].step.at[step];
    const gy_message *m = &c->part[rank].message.at[s->message + k];
    const gy_part *p = &c->part[m->peer];
    uint8_t *state = &c->state[c->first[rank] + 2 * c->part[rank].step.count + s->message + k];
    if (!enter(c, state))
        return;
    visit_half(c, rank, step, k);
    for (uint32_t i = 0; i < p->step.count; i++)
        for (uint32_t l = 0; l < p->step.at[i].messages; l++) {
            const gy_message *other = &p->message.at[p->step.at[i].message + l];
            if (other->op == m->op && other->use == m->use && other->peer == rank && other->sends != m->sends)
                visit_half(c, m->peer, i, l);
        }
    *state = 2;
}

static void visit_end(circles *c, uint32_t rank, uint32_t step)
{
    uint8_t *state = &c->state[c->first[rank] + 2 * (size_t)step + 1];
    if (!enter(c, state))
        return;
    visit_begin(c, rank, step);
    for (uint32_t k = 0; k < c->part[rank].step.at[step].messages; k++)
        visit_message(c, rank, step, k);
    *state = 2;
}

static bool has_circle(const gantry_schedule *s, const gy_part *part, uint32_t ranks)
{
    circles c = { .s = s, .part = part, .ranks = ranks };
    for (uint32_t r = 0; r < ranks; r++)
        c.first[r + 1] = c.first[r] + 2 * part[r].step.count + part[r].message.count;
    c.state = gy_calloc(c.first[ranks] + 1, 1);
    ck_assert_ptr_nonnull(c.state);
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t i = 0; i < part[r].step.count; i++)
            visit_end(&c, r, i);
    gy_free(c.state);
    return c.found;
}

/* Between two ranks, the k-th message that one sends is the k-th that the other receives. */
static bool is_in_order(const gy_part *from, const gy_part *to)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < from->message.count; i++) {
        const gy_message *m = &from->message.at[i];
        if (!m->sends || m->peer != to->rank)
            continue;
        while (to->message.at[k].sends || to->message.at[k].peer != from->rank)
            k++;
        if (to->message.at[k].op != m->op || to->message.at[k].use != m->use)
            return false;
        k++;
    }
    return true;
}

static bool are_in_order(const gy_part *part, uint32_t ranks)
{
    bool in_order = true;
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < ranks; b++)
            in_order = in_order && (a == b || is_in_order(&part[a], &part[b]));
    return in_order;
}

/* A message of a group goes on this rank by a step of its own, where its op is. */
static void leave_group(gy_part *p, uint32_t from, uint32_t k, uint32_t to)
{
    GY_VEC(gy_message) all = { 0 };
    gy_message moved = p->message.at[p->step.at[from].message + k];
    moved.packed = false;
    for (uint32_t i = 0; i < p->step.count; i++) {
        gy_part_step *step = &p->step.at[i];
        uint32_t first = (uint32_t)all.count;
        for (uint32_t l = 0; l < step->messages; l++)
            if (i != from || l != k)
                ck_assert(gy_vec_push(&all, p->message.at[step->message + l]));
        if (i == to)
            ck_assert(gy_vec_push(&all, moved));
        step->message = first;
        step->messages = (uint32_t)all.count - first;
    }
    p->step.at[to].packed = false;
    ck_assert_uint_eq(all.count, p->message.count);
    memcpy(p->message.at, all.at, all.count * sizeof *all.at);
    gy_vec_free(&all);
}

static uint32_t step_of(const gy_part *p, uint32_t op)
{
    uint32_t i = 0;
    while (p->step.at[i].op != op)
        i++;
    return i;
}

/* Each copy that goes with another on one rank, alone there. The checker finds a deadlock where there is a circle, or
 * another order on the other side; else waits for what the copy does not wait for itself may be missing. */
static uint32_t leave_groups(const gantry_schedule *s, gy_part *part, uint32_t ranks, uint32_t rank)
{
    uint32_t circles_found = 0;
    for (uint32_t i = 0; i < part[rank].step.count; i++)
        for (uint32_t k = 0; k < part[rank].step.at[i].messages; k++) {
            gy_part *p = &part[rank], was = *p;
            gy_message m = p->message.at[p->step.at[i].message + k];
            bool last = k + 1 == p->step.at[i].messages;
            if (m.op == p->step.at[i].op || m.packed || (!last && p->message.at[p->step.at[i].message + k + 1].packed))
                continue;
            gy_part_step *steps = gy_calloc(p->step.count, sizeof *steps);
            gy_message *messages = gy_calloc(p->message.count, sizeof *messages);
            ck_assert(steps && messages);
            memcpy(steps, p->step.at, p->step.count * sizeof *steps);
            memcpy(messages, p->message.at, p->message.count * sizeof *messages);
            leave_group(p, i, k, step_of(p, m.op));
            gantry_error err = { 0 };
            bool right = !gy_parts_verify(s, part, ranks, &err), circle = has_circle(s, part, ranks);
            bool wrong = circle || !are_in_order(part, ranks);
            ck_assert_msg(!wrong || strstr(err.text, "deadlock"), "nothing is found: rank %u, op %u: %d, %s", rank,
                          m.op, right, err.text);
            ck_assert_msg(wrong || !strstr(err.text, "deadlock"), "there is no circle: rank %u, op %u: %s", rank, m.op,
                          err.text);
            circles_found += circle;
            memcpy(p->step.at, steps, p->step.count * sizeof *steps);
            memcpy(p->message.at, messages, p->message.count * sizeof *messages);
            gy_free(steps);
            gy_free(messages);
            ck_assert(p->step.at == was.step.at && p->message.at == was.message.at);
        }
    return circles_found;
}

static void look_at_parts(gantry_schedule *s, bool breaks, joint_steps *found, uint32_t *circles_found)
{
    gy_part part[MOST_RANKS];
    uint32_t count = make_parts(part, s, GY_PART_BY_LANE, NULL);
    gantry_error err = { 0 };
    gantry_status status = gy_parts_verify(s, part, count, &err);
    ck_assert_msg(!status, "%s", err.text);
    ck_assert(!has_circle(s, part, count) && are_in_order(part, count));
    matrix before = before_in(s);
    for (uint32_t r = 0; r < count; r++) {
        ck_assert(waits_are_enough(&part[r], &before));
        look_at_groups(s, part, count, &part[r], found);
        *circles_found += leave_groups(s, part, count, r);
        if (!breaks)
            continue;
        break_messages(s, part, count, &part[r]);
        (void)break_waits(s, part, count, &part[r], &before);
    }
    gy_free(before.bit);
    for (uint32_t r = 0; r < count; r++)
        gy_part_free(&part[r]);
}

START_TEST(groups)
{
    gantry_graph *graph = NULL;
    joint_steps found = { 0 };
    uint32_t circles_found = 0;
    size_t ranks = (size_t)_i % 3 + 2;
    gantry_schedule *s =
        schedule_on(GANTRY_SOURCE_DIR "/graphs/machines/a100-pcie-4.json", names[_i / 3], ranks, &graph);
    ck_assert_int_eq(gantry_schedule_check_ranks(s, NULL), GANTRY_OK);
    look_at_parts(s, s->ops.count < 400, &found, &circles_found);
    bool blocks = strcmp(names[_i / 3], "jacobi_blocks") == 0;
    ck_assert(!blocks || (found.both > 0 && (ranks == 2 || found.peers > 0)));
    gantry_schedule_free(s);
    gantry_graph_free(graph);
}
END_TEST

/* ---- random exchanges ---- */

enum { LAYERS = 8, SEEDS = 60 };

/* Blocks, one for each of 8 GPUs, that add two of those of the layer before: mostly of their neighbours. */
static void write_graph(gy_text *to, unsigned seed, uint32_t blocks)
{
    gy_text_add(to, "{\"gantry\":1,\"name\":\"random\",\"buffers\":{");
    for (uint32_t l = 0; l <= LAYERS; l++)
        for (uint32_t b = 0; b < blocks; b++)
            gy_text_printf(to, "%s\"v%u_%u\":{\"dtype\":\"f32\",\"shape\":[%u]%s}", l + b ? "," : "", l, b,
                           64U << (seed % 8),
                           l == 0        ? ",\"init\":\"iota\",\"class\":\"input\""
                           : l == LAYERS ? ",\"output\":true"
                                         : "");
    gy_text_add(to, "},\"nodes\":[");
    for (uint32_t l = 1; l <= LAYERS; l++)
        for (uint32_t b = 0; b < blocks; b++) {
            uint32_t x = (b + blocks - 1 + (uint32_t)rand() % 3) % blocks, y = (uint32_t)rand() % blocks;
            gy_text_printf(
                to,
                "%s{\"id\":\"n%u_%u\",\"kernel\":\"add\",\"args\":{\"x\":\"v%u_%u\",\"y\":\"v%u_%u\",\"z\":\"v%u_%u\"},"
                "\"on\":%u}",
                l + b > 1 ? "," : "", l, b, l - 1, x, l - 1, y, l, b, b % 8);
        }
    gy_text_add(to, "]}");
}

static void look_at_random(unsigned seed, uint32_t *circles_found)
{
    gantry_error err = { 0 };
    gantry_machine *all = NULL, *m = NULL;
    gantry_schedule *s = NULL;
    gantry_graph *graph = NULL;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    joint_steps found = { 0 };
    gy_text text = { 0 };
    srand(seed + 1);
    write_graph(&text, seed, seed % 3 ? 8 : 16);
    ck_assert_msg(gantry_graph_parse(&graph, text.at, text.length, NULL, NULL, NULL, &err) == GANTRY_OK, "%s",
                  err.text);
    ck_assert_int_eq(gantry_machine_load(&all, GANTRY_SOURCE_DIR "/graphs/machines/h200-8.json", &err), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_spread(&m, all, seed % 2 ? 8 : 4, &err), GANTRY_OK);
    o.effort = 0;
    ck_assert_msg(gantry_schedule_new(&s, graph, m, &o, &err) == GANTRY_OK, "%s", err.text);
    look_at_parts(s, false, &found, circles_found);
    ck_assert_uint_gt(found.peers, 0);
    gy_text_free(&text);
    gantry_machine_free(all);
    gantry_machine_free(m);
    gantry_schedule_free(s);
    gantry_graph_free(graph);
}

/* Of so many copies that leave their groups, some make circles. */
START_TEST(random_groups)
{
    uint32_t circles_found = 0;
    for (unsigned seed = (unsigned)_i; seed < SEEDS; seed += 2)
        look_at_random(seed, &circles_found);
    ck_assert_uint_gt(circles_found, 0);
}
END_TEST

/* ---- arrays that each rank has itself ---- */

/* All inputs, and the outputs that may be. */
static uint8_t *own_of(const gantry_schedule *s, const gantry_graph *graph)
{
    uint8_t *own = gy_calloc(graph->buffers.count + 1, 1);
    ck_assert_ptr_nonnull(own);
    for (size_t b = 0; b < graph->buffers.count; b++)
        own[b] = graph->buffers.at[b].cls == GANTRY_INPUT ? GY_OWN_INPUT : 0;
    ck_assert_int_eq(gy_own_outputs(own, s, NULL), GANTRY_OK);
    return own;
}

/* The writer of a row of an output: 1 + the rank; 0: nobody; GY_NONE: several, or not always, or it is read.
 */
static uint32_t writer_of(const gantry_schedule *s, uint32_t buffer, int64_t row)
{
    uint32_t writer = 0;
    for (uint32_t id = 0; id < s->ops.count; id++) {
        const gy_op *op = &s->ops.at[id];
        for (uint32_t k = 0; k < op->uses; k++) {
            const gy_use *u = &s->use.at[op->use + k];
            const gy_instance *in = &s->instances.at[u->instance];
            if (in->space != GY_SPACE_OUTPUT || in->value != buffer || row < u->first || row >= u->last)
                continue;
            bool surely = u->mode == GANTRY_WRITE && op->kind != GY_OP_COLLECTIVE && !gy_op_has_flag(op) &&
                          !gy_op_is_conditional(s, op);
            uint32_t rank = 1 + gy_op_rank(s, op);
            writer = surely && (writer == 0 || writer == rank) ? rank : GY_NONE;
        }
    }
    return writer;
}

/* The list says who has the row, once, or that nobody has. */
static void compare_row(const gy_own_list *list, uint32_t buffer, int64_t row, uint32_t writer)
{
    uint32_t found = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i].buffer == buffer && row >= list->at[i].first && row < list->at[i].last)
            found = found ? GY_NONE : 1 + list->at[i].rank;
    ck_assert_uint_eq(found, writer);
}

/* Of each output whose rows all have one writer, and of no other, ranks have arrays of their own. Rows are looked at
 * where an op begins to write and where it ends: rows of two begin with one of these. */
static void compare_writers(const gantry_schedule *s, const gantry_graph *graph, const uint8_t *own)
{
    gy_own_list list;
    ck_assert_int_eq(gy_own_list_make(&list, own, s, NULL), GANTRY_OK);
    for (uint32_t b = 0; b < graph->buffers.count; b++) {
        bool can = true, written = false;
        for (size_t u = 0; u < s->use.count; u++) {
            const gy_use *use = &s->use.at[u];
            const gy_instance *in = &s->instances.at[use->instance];
            if (in->space != GY_SPACE_OUTPUT || in->value != b || use->first >= use->last)
                continue;
            written = true;
            for (int end = 0; end < 2; end++) {
                int64_t row = end ? use->last - 1 : use->first;
                uint32_t writer = writer_of(s, b, row);
                can = can && writer != GY_NONE;
                if (own[b] & GY_OWN_OUTPUT)
                    compare_row(&list, b, row, writer);
            }
        }
        ck_assert_int_eq(own[b] & GY_OWN_OUTPUT, can && written ? GY_OWN_OUTPUT : 0);
    }
    gy_vec_free(&list);
}

/* The rows of an input that a rank reads lie within those that it is told. */
static void compare_inputs(const gantry_schedule *s, const gantry_graph *graph, const uint8_t *own, const gy_part *part)
{
    for (uint32_t b = 0; b < graph->buffers.count; b++) {
        int64_t first, last, low = INT64_MAX, high = 0;
        gy_own_input_rows(s, own, part->rank, b, &first, &last);
        for (size_t i = 0; i < part->step.count; i++) {
            const gy_op *op = &s->ops.at[part->step.at[i].op];
            for (uint32_t k = 0; k < op->uses && part->step.at[i].runs; k++) {
                const gy_use *u = &s->use.at[op->use + k];
                if (s->instances.at[u->instance].space == GY_SPACE_INPUT && s->instances.at[u->instance].value == b) {
                    low = u->first < low ? u->first : low;
                    high = u->last > high ? u->last : high;
                }
            }
        }
        ck_assert(high == 0 ? first == last : first == low && last == high);
    }
}

/* A claim that is not so is found: an output whose rows several ranks write, or that is read; a buffer that is no
 * input.
 */
static uint32_t break_claims(const gantry_schedule *s, gy_part *part, uint32_t ranks, uint8_t *own)
{
    uint32_t found = 0;
    for (size_t b = 0; b < s->graph->buffers.count; b++) {
        if (!s->graph->buffers.at[b].output || own[b] & GY_OWN_OUTPUT || !s->graph->buffers.at[b].bytes)
            continue;
        own[b] |= GY_OWN_OUTPUT;
        ck_assert(!is_right(s, part, ranks));
        own[b] &= (uint8_t)~GY_OWN_OUTPUT;
        found++;
    }
    return found;
}

START_TEST(own_arrays)
{
    gantry_graph *graph = NULL;
    gy_part part[MOST_RANKS], whole[MOST_RANKS];
    uint32_t messages = 0, before_that = 0;
    uint64_t bytes = 0;
    gantry_schedule *s = schedule_of(names[_i / 3], (size_t)_i % 3 + 2, &graph);
    gy_part_queues by = _i % 2 ? GY_PART_BY_LANE : GY_PART_BY_DEVICE;
    uint8_t *own = own_of(s, graph);
    uint32_t count = make_parts(part, s, by, own);
    make_parts(whole, s, by, NULL);
    ck_assert(is_right(s, part, count));
    compare_writers(s, graph, own);
    (void)break_claims(s, part, count, own);
    matrix before = before_in(s);
    for (uint32_t r = 0; r < count; r++) {
        compare_inputs(s, graph, own, &part[r]);
        ck_assert(s->ops.count >= 400 || waits_are_enough(&part[r], &before));
        if (s->ops.count < 400)
            break_messages(s, part, count, &part[r]);
        messages += (uint32_t)part[r].message.count;
        for (size_t i = 0; i < part[r].message.count; i++)
            bytes += part[r].message.at[i].sends ? part[r].message.at[i].bytes : 0;
        before_that += (uint32_t)whole[r].message.count;
    }
    ck_assert_uint_le(messages, before_that);
    ck_assert(strcmp(names[_i / 3], "saxpy") != 0 || bytes <= 8 * sizeof(float)); /* of the sum in the end */
    gy_free(before.bit);
    for (uint32_t r = 0; r < count; r++) {
        gy_part_free(&part[r]);
        gy_part_free(&whole[r]);
    }
    gy_free(own);
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
    tcase_add_loop_test(tc, groups, 0, 3 * NAMES);
    tcase_add_loop_test(tc, random_groups, 0, 2);
    tcase_add_loop_test(tc, own_arrays, 0, 3 * NAMES);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
