/* SPDX-License-Identifier: Apache-2.0 */
/* The summary for people: what `gantry schedule` prints. */
#include "export/export.h"

#include <stdio.h>
#include <string.h>

/* ---- a table: columns as wide as their widest cell ---- */

#define MOST_COLUMNS 8

typedef struct cell {
    char *text;
} cell;

typedef struct table {
    size_t columns;
    uint8_t left[MOST_COLUMNS]; /* 1: aligned left */
    GY_VEC(cell) cells;
    bool failed;
} table;

static void add_cell(table *t, const char *text)
{
    gy_text clean = { 0 };
    gy_export_name(&clean, text, 40);
    cell c = { gy_text_take(&clean, NULL) };
    if (!c.text || !gy_vec_push(&t->cells, c)) {
        gy_free(c.text);
        t->failed = true;
    }
}

static void add_cells(table *t, size_t count, const char *const *text)
{
    for (size_t i = 0; i < count; i++)
        add_cell(t, text[i]);
}

static void print_spaces(gy_text *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        gy_text_add(to, " ");
}

static void print_row(gy_text *to, const table *t, size_t row, const size_t *width)
{
    gy_text_add(to, " ");
    for (size_t c = 0; c < t->columns; c++) {
        const char *text = t->cells.at[row * t->columns + c].text;
        size_t pad = width[c] - gy_export_length(text);
        gy_text_add(to, c > 0 ? "  " : " ");
        print_spaces(to, t->left[c] ? 0 : pad);
        gy_text_add(to, text);
        print_spaces(to, t->left[c] && c + 1 < t->columns ? pad : 0);
    }
    gy_text_add(to, "\n");
}

static void print_table(gy_text *to, table *t)
{
    size_t width[MOST_COLUMNS] = { 0 }, rows = t->failed ? 0 : t->cells.count / t->columns;
    for (size_t i = 0; i < rows * t->columns; i++) {
        size_t length = gy_export_length(t->cells.at[i].text);
        width[i % t->columns] = length > width[i % t->columns] ? length : width[i % t->columns];
    }
    for (size_t r = 0; r < rows; r++)
        print_row(to, t, r, width);
    to->failed = to->failed || t->failed;
    for (size_t i = 0; i < t->cells.count; i++)
        gy_free(t->cells.at[i].text);
    gy_vec_free(&t->cells);
}

/* ---- parts ---- */

static const char *say_bound(const char *by)
{
    static const struct {
        const char *by, *text;
    } words[] = { { "path", " by the longest chain" },
                  { "area", " by all work spread evenly" },
                  { "links", " by bytes over the links of host memory" },
                  { "memory", " by bytes that no device has room for" } };
    for (size_t i = 0; by && i < sizeof words / sizeof *words; i++)
        if (!strcmp(by, words[i].by))
            return words[i].text;
    return "";
}

/* How many policies ran and how many did not, and what search looked at. One alone is no news. */
static void add_tried(gy_text *to, const gantry_schedule *s)
{
    char text[GY_EXPORT_SHORT];
    uint64_t ran = 0, skipped = 0, evaluations = 0;
    for (size_t i = 0; i < s->tried.count; i++) {
        const gy_tried *t = &s->tried.at[i];
        skipped += t->skipped != NULL;
        ran += !t->skipped && !t->evaluations && !t->devices;
        evaluations += t->evaluations;
    }
    if (s->tried.count < 2)
        return;
    gy_text_printf(to, "\n  tried        %s policies", gy_export_count(text, ran));
    gy_text_printf(to, ", %s skipped", gy_export_count(text, skipped));
    if (evaluations)
        gy_text_printf(to, "; search looked at %s placements", gy_export_count(text, evaluations));
}

/* "period       2000.0 us, 4 starts in flight; bound 2000.0 us, gap 0.00 %" */
static void add_period(gy_text *to, const gantry_schedule *s)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT];
    gy_text_printf(to, "\n  period       %s, %u start%s in flight", gy_export_time(a, s->period, 5, "us"), s->in_flight,
                   s->in_flight == 1 ? "" : "s");
    if (s->period_bound > 0) {
        gy_text_printf(to, "; bound %s, gap ", gy_export_time(b, s->period_bound, 5, "us"));
        gy_export_fixed(to, ((double)s->period / (double)s->period_bound - 1) * 100, 2);
        gy_text_add(to, " %");
    }
}

/* Of a schedule without phases. */
static void add_batches(gy_text *to, const gantry_schedule *s)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT];
    static const char *const names[] = { "launches", "copies", "collectives" };
    uint64_t batches[3] = { 0 }, ops[3] = { 0 };
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        int kind = gy_op_is_copy(op) ? 1 : op->kind == GY_OP_COLLECTIVE ? 2 : 0;
        batches[kind] += op->batch > 0;
        ops[kind] += op->batch;
    }
    for (int i = 0; i < 3; i++)
        if (batches[i])
            gy_text_printf(to, "\n  batches      %s of %s %s", gy_export_count(a, batches[i]),
                           gy_export_count(b, ops[i]), names[i]);
}

static void add_conditional(gy_text *to, const gy_view *view)
{
    char a[GY_EXPORT_SHORT];
    gy_text_printf(to, "\n  when         %s node%s may be left out", gy_export_count(a, view->conditional),
                   view->conditional == 1 ? "" : "s");
    gy_text_add(to, gy_view_knows_without(view) ? "" : "; predicted and bound with all of them");
}

/* "1.9975 ms by the longest chain, gap 21.48 %" */
static void add_bound(gy_text *to, gy_ticks bound, const char *by, gy_ticks makespan)
{
    char a[GY_EXPORT_SHORT];
    gy_text_printf(to, "%s%s", gy_export_time(a, bound, 5, "us"), bound > 0 ? say_bound(by) : "");
    if (bound > 0) {
        gy_text_add(to, ", gap ");
        gy_export_fixed(to, ((double)makespan / (double)bound - 1) * 100, 2);
        gy_text_add(to, " %");
    }
}

/* Where flags of `when` leave nodes out, what both are with all of them, and with none. */
static void add_makespan(gy_text *to, const gy_view *view)
{
    char a[GY_EXPORT_SHORT];
    const gantry_schedule *s = view->s;
    bool both = gy_view_knows_without(view);
    gy_text_printf(to, "\n\n  makespan     %s predicted", gy_export_time(a, s->makespan, 5, "us"));
    if (both)
        gy_text_printf(to, ", %s where no flag is set", gy_export_time(a, s->without, 5, "us"));
    if (s->bound > 0) {
        gy_text_add(to, "\n  lower bound  ");
        add_bound(to, s->bound, s->bound_by, s->makespan);
    }
    if (s->bound > 0 && both) {
        bool other = s->bound_by && s->bound_without_by && strcmp(s->bound_by, s->bound_without_by) != 0;
        gy_text_add(to, "; where no flag is set ");
        add_bound(to, s->bound_without, other ? s->bound_without_by : NULL, s->without);
    }
}

static void add_head(gy_text *to, const gy_view *view)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT];
    const gantry_schedule *s = view->s;
    gy_export_name(to, s->graph_name ? s->graph_name : "schedule", 60);
    gy_text_add(to, " on ");
    gy_export_name(to, s->machine->name, 60);
    add_makespan(to, view);
    if (s->period > 0)
        add_period(to, s);
    gy_text_printf(to, "\n  policy       %s", s->policy ? s->policy : "unknown");
    add_tried(to, s);
    if (s->balance)
        gy_text_printf(to, "\n  balance      %s", s->balance);
    gy_text_printf(to, "\n  nodes        %s in %s ops", gy_export_count(a, view->sum.nodes),
                   gy_export_count(b, view->sum.ops));
    gy_text_printf(to, ": %s copies", gy_export_count(a, view->sum.copies));
    gy_text_printf(to, ", %s collectives", gy_export_count(a, view->sum.collectives));
    gy_text_printf(to, ", %s events", gy_export_count(a, view->sum.events));
    if (view->sum.recomputed)
        gy_text_printf(to, ", %s nodes carried out again", gy_export_count(a, view->sum.recomputed));
    add_batches(to, s);
    if (view->conditional)
        add_conditional(to, view);
    gy_text_printf(to, "\n  moved        %s between memories", gy_bytes_text(a, sizeof a, view->sum.bytes_moved));
    if (view->sum.bytes_needed)
        gy_text_printf(to, ", at least %s by any schedule", gy_bytes_text(b, sizeof b, view->sum.bytes_needed));
    gy_text_add(to, "\n");
}

typedef struct device_count {
    uint64_t work, copies, collectives;
} device_count;

static device_count count_of(const gantry_schedule *s, uint32_t device)
{
    device_count n = { 0 };
    for (size_t i = 0; i < s->phases.count; i++) {
        device_count phase = count_of(s->phases.at[i].schedule, device);
        uint64_t starts = (uint64_t)s->phases.at[i].phase.starts;
        n.work += phase.work * starts;
        n.copies += phase.copies * starts;
        n.collectives += phase.collectives * starts;
    }
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (op->kind == GY_OP_COLLECTIVE) {
            for (uint32_t k = 0; k < op->lanes; k++)
                n.collectives += gy_op_device(s, op, k) == device;
        } else if (gy_view_device(s, op) == device) {
            n.copies += gy_op_is_copy(op);
            n.work += !gy_op_is_copy(op);
        }
    }
    return n;
}

static void add_devices(gy_text *to, const gy_view *view)
{
    static const char *const head[] = { "device", "kind", "ops", "copies", "collectives", "computing", "of time" };
    const gantry_schedule *s = view->s;
    table t = { .columns = 7, .left = { 1, 1 } };
    add_cells(&t, 7, head);
    for (uint32_t d = 0; d < s->machine->devices; d++) {
        char text[5][GY_EXPORT_SHORT];
        device_count n = count_of(s, d);
        const char *const cells[] = {
            s->machine->device[d].id,
            s->machine->device[d].kind,
            gy_export_count(text[0], n.work),
            gy_export_count(text[1], n.copies),
            gy_export_count(text[2], n.collectives),
            gy_export_time(text[3], view->busy[d], 4, "us"),
            gy_export_percent(text[4], (uint64_t)view->busy[d], (uint64_t)s->makespan),
        };
        add_cells(&t, 7, cells);
    }
    gy_text_add(to, "\n");
    print_table(to, &t);
}

static void add_memories(gy_text *to, const gantry_schedule *s)
{
    static const char *const head[] = { "memory", "peak", "of", "used" };
    table t = { .columns = 4, .left = { 1 } };
    add_cells(&t, 4, head);
    for (uint32_t i = 0; i < s->machine->memories; i++) {
        char text[3][GY_EXPORT_SHORT];
        const gy_memory *m = &s->machine->memory[i];
        uint64_t peak = gantry_schedule_peak_bytes(s, i), room = m->capacity - m->reserved;
        const char *const cells[] = { m->id, gy_bytes_text(text[0], GY_EXPORT_SHORT, peak),
                                      gy_bytes_text(text[1], GY_EXPORT_SHORT, room),
                                      gy_export_percent(text[2], peak, room) };
        add_cells(&t, 4, cells);
    }
    gy_text_add(to, "\n");
    print_table(to, &t);
}

static void add_route_row(table *t, const gantry_machine *m, uint32_t route, const gy_route_traffic *traffic)
{
    char text[4][GY_EXPORT_SHORT];
    gy_text name = { 0 };
    gy_text_printf(&name, "%s -> %s", m->memory[route / m->memories].id, m->memory[route % m->memories].id);
    const char *const cells[] = { name.at ? name.at : "", gy_export_count(text[0], traffic->copies),
                                  gy_bytes_text(text[1], GY_EXPORT_SHORT, traffic->bytes),
                                  gy_export_time(text[2], traffic->busy, 4, "us"),
                                  gy_export_rate(text[3], traffic->bytes, traffic->busy) };
    add_cells(t, 5, cells);
    t->failed = t->failed || name.failed;
    gy_text_free(&name);
}

static void add_routes(gy_text *to, const gantry_schedule *s)
{
    static const char *const head[] = { "route", "copies", "bytes", "copying", "mean rate" };
    gy_route_traffic *traffic = gy_route_traffic_make(s);
    table t = { .columns = 5, .left = { 1 } };
    uint64_t copies = 0;
    add_cells(&t, 5, head);
    for (uint32_t i = 0; traffic && i < s->machine->memories * s->machine->memories; i++) {
        copies += traffic[i].copies;
        if (traffic[i].copies > 0)
            add_route_row(&t, s->machine, i, &traffic[i]);
    }
    to->failed = to->failed || !traffic;
    gy_free(traffic);
    gy_text unused = { 0 };
    gy_text_add(to, copies > 0 ? "\n" : "");
    print_table(copies > 0 ? to : &unused, &t);
    gy_text_free(&unused);
}

#define MOST_COLLECTIVES 12 /* rows */

static void add_collective_row(table *t, const gantry_schedule *s, uint32_t index)
{
    char text[3][GY_EXPORT_SHORT];
    const gy_op *op = &s->ops.at[index];
    gy_text name = { 0 };
    gy_op_text(&name, s, index);
    const char *const cells[] = { name.at ? name.at : "",
                                  op->algorithm ? gy_algorithm_name((gy_algorithm)op->algorithm) : "-",
                                  gy_export_count(text[0], op->lanes),
                                  gy_bytes_text(text[1], GY_EXPORT_SHORT, gy_view_bytes(s, op)),
                                  gy_export_time(text[2], op->duration, 4, "us") };
    add_cells(t, 5, cells);
    t->failed = t->failed || name.failed;
    gy_text_free(&name);
}

static void add_collectives(gy_text *to, const gantry_schedule *s)
{
    static const char *const head[] = { "collective", "algorithm", "ranks", "bytes", "alone" };
    char text[GY_EXPORT_SHORT];
    table t = { .columns = 5, .left = { 1, 1 } };
    uint64_t count = 0;
    add_cells(&t, 5, head);
    for (uint32_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE && count++ < MOST_COLLECTIVES)
            add_collective_row(&t, s, i);
    gy_text unused = { 0 };
    gy_text_add(to, count > 0 ? "\n" : "");
    print_table(count > 0 ? to : &unused, &t);
    gy_text_free(&unused);
    if (count > MOST_COLLECTIVES)
        gy_text_printf(to, "  and %s more\n", gy_export_count(text, count - MOST_COLLECTIVES));
}

/* How much of the makespan each kind of thing on the critical path accounts for. */
static void add_critical(gy_text *to, const gy_view *view)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT];
    const gantry_schedule *s = view->s;
    gy_ticks compute = 0, copy = 0, together = 0;
    uint64_t ops = 0;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        gy_ticks time = view->critical[i] ? op->end - op->start : 0;
        ops += view->critical[i];
        *(gy_op_is_copy(op) ? &copy : op->kind == GY_OP_COLLECTIVE ? &together : &compute) += time;
    }
    gy_text_printf(to, "\n  critical path: %s op%s", gy_export_count(a, ops), ops == 1 ? "" : "s");
    gy_text_printf(to, ", computing %s", gy_export_time(a, compute, 4, "us"));
    gy_text_printf(to, ", copying %s", gy_export_time(a, copy, 4, "us"));
    if (together > 0)
        gy_text_printf(to, ", collectives %s", gy_export_time(b, together, 4, "us"));
    gy_text_add(to, "\n");
}

/* "3 .. 7", "step": the nodes of a phase. */
static void add_phase_nodes(gy_text *to, const gantry_schedule *s, const gy_phase *p)
{
    uint32_t count = p->last_node - p->first_node;
    gy_text_printf(to, "%s%s", count ? s->node_ids.at[p->first_node] : "none", count > 1 ? " .. " : "");
    if (count > 1)
        gy_text_add(to, s->node_ids.at[p->last_node - 1]);
}

static void add_phase_row(table *t, const gantry_schedule *s, size_t i)
{
    char text[6][GY_EXPORT_SHORT];
    const gy_schedule_phase *phase = &s->phases.at[i];
    const gy_phase *p = &phase->phase;
    bool loop = p->loop != GY_NONE;
    gy_text nodes = { 0 };
    add_phase_nodes(&nodes, s, p);
    const char *const cells[] = { gy_export_count(text[0], i),
                                  nodes.at ? nodes.at : "",
                                  loop ? gy_export_count(text[1], (uint64_t)p->first) : "-",
                                  loop ? gy_export_count(text[2], (uint64_t)p->iterations) : "-",
                                  gy_export_count(text[3], (uint64_t)p->starts),
                                  gy_phase_looks(p) ? gy_export_count(text[4], (uint64_t)p->every) : "-",
                                  gy_export_time(text[5], phase->schedule->makespan, 5, "us") };
    add_cells(t, 7, cells);
    t->failed = t->failed || nodes.failed;
    gy_text_free(&nodes);
}

static void add_phases(gy_text *to, const gantry_schedule *s)
{
    static const char *const head[] = {
        "phase", "nodes", "iteration", "in a start", "starts", "until every", "a start"
    };
    char text[GY_EXPORT_SHORT];
    gy_ticks hand_over = 0;
    bool looks = false;
    table t = { .columns = 7, .left = { 0, 1 } };
    add_cells(&t, 7, head);
    for (size_t i = 0; i < s->phases.count; i++) {
        add_phase_row(&t, s, i);
        hand_over += s->phases.at[i].hand_over;
        looks = looks || gy_phase_looks(&s->phases.at[i].phase);
    }
    gy_text_add(to, "\n");
    print_table(to, &t);
    gy_text_printf(to, "\n  handed over between phases in %s\n", gy_export_time(text, hand_over, 4, "us"));
    if (looks)
        gy_text_add(to, "  all figures are for the most iterations: `until` may end a loop before\n");
}

void gy_export_summary(gy_text *to, const gy_view *view)
{
    add_head(to, view);
    if (view->s->phases.count)
        add_phases(to, view->s);
    add_devices(to, view);
    add_memories(to, view->s);
    add_routes(to, view->s);
    add_collectives(to, view->s);
    if (!view->s->phases.count)
        add_critical(to, view);
}
