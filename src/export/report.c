/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `gantry schedule --json`: one object. */
#include "export/export.h"

#include "schedule/words.h"
#include <inttypes.h>

static void add_text(gy_text *to, const char *key, const char *value)
{
    gy_text_printf(to, ",\n  \"%s\": ", key);
    gy_text_json(to, value ? value : "");
}

static void add_count(gy_text *to, const char *key, uint64_t value)
{
    gy_text_printf(to, ",\n  \"%s\": %" PRIu64, key, value);
}

static void add_real(gy_text *to, const char *key, double value)
{
    gy_text_printf(to, ",\n  \"%s\": ", key);
    gy_text_double(to, value);
}

/* ---- objects by name ---- */

static void open_object(gy_text *to, const char *key)
{
    gy_text_printf(to, ",\n  \"%s\": {", key);
}

static void add_member(gy_text *to, bool first, const char *key)
{
    gy_text_add(to, first ? "\n    " : ",\n    ");
    gy_text_json(to, key);
    gy_text_add(to, ": ");
}

static void close_object(gy_text *to, bool empty)
{
    gy_text_add(to, empty ? "}" : "\n  }");
}

static void add_peaks(gy_text *to, const gantry_schedule *s)
{
    open_object(to, "peak_bytes");
    for (uint32_t i = 0; i < s->machine->memories; i++) {
        add_member(to, i == 0, s->machine->memory[i].id);
        gy_text_printf(to, "%" PRIu64, gantry_schedule_peak_bytes(s, i));
    }
    close_object(to, s->machine->memories == 0);
}

/* The part of each memory that is never used. */
static void add_spare(gy_text *to, const gantry_schedule *s)
{
    open_object(to, "spare_bytes");
    for (uint32_t i = 0; i < s->machine->memories; i++) {
        const gy_memory *m = &s->machine->memory[i];
        uint64_t room = m->capacity - m->reserved, peak = gantry_schedule_peak_bytes(s, i);
        add_member(to, i == 0, m->id);
        gy_text_printf(to, "%" PRIu64, room > peak ? room - peak : 0);
    }
    close_object(to, s->machine->memories == 0);
}

static void add_busy(gy_text *to, const gy_view *view)
{
    open_object(to, "busy_us");
    for (uint32_t i = 0; i < view->s->machine->devices; i++) {
        add_member(to, i == 0, view->s->machine->device[i].id);
        gy_text_double(to, gy_ticks_to_us(view->busy[i]));
    }
    close_object(to, view->s->machine->devices == 0);
}

/* Only with the objective that counts them. */
static void add_loads(gy_text *to, const gantry_schedule *s)
{
    gy_ticks most = 0;
    for (size_t i = 0; i < s->load.count; i++)
        most = s->load.at[i] > most ? s->load.at[i] : most;
    add_real(to, "load_us", gy_ticks_to_us(most));
    open_object(to, "loads_us");
    for (uint32_t i = 0; i < s->machine->devices; i++) {
        add_member(to, i == 0, s->machine->device[i].id);
        gy_text_double(to, gy_ticks_to_us(s->load.at[i]));
    }
    close_object(to, s->machine->devices == 0);
}

/* Only with the objective that starts overlap for. */
static void add_period(gy_text *to, const gantry_schedule *s)
{
    add_real(to, "period_us", gy_ticks_to_us(s->period));
    add_real(to, "period_bound_us", gy_ticks_to_us(s->period_bound));
    add_real(to, "period_gap", s->period_bound > 0 ? (double)s->period / (double)s->period_bound - 1 : 0);
    add_count(to, "in_flight", s->in_flight);
}

/* The device of a node is that of its first op, and of that op's first lane. */
static void add_placement(gy_text *to, const gantry_schedule *s)
{
    uint32_t *device = gy_calloc(s->node_ids.count, sizeof *device);
    if (!device) {
        to->failed = true;
        return;
    }
    for (uint32_t i = 0; i < s->node_ids.count && s->phases.count; i++)
        device[i] = (uint32_t)(gantry_schedule_device_of(s, (gantry_node){ .id = i }) + 1);
    for (size_t i = s->ops.count; i-- > 0;)
        if (s->ops.at[i].node < s->node_ids.count && s->ops.at[i].lanes > 0)
            device[s->ops.at[i].node] = gy_view_device(s, &s->ops.at[i]) + 1;
    bool first = true;
    open_object(to, "placement");
    for (size_t i = 0; i < s->node_ids.count; i++) {
        if (device[i] == 0)
            continue;
        add_member(to, first, s->node_ids.at[i]);
        gy_text_json(to, s->machine->device[device[i] - 1].id);
        first = false;
    }
    close_object(to, first);
    gy_free(device);
}

static void add_traffic(gy_text *to, const gantry_schedule *s)
{
    const gantry_machine *m = s->machine;
    gy_route_traffic *traffic = gy_route_traffic_make(s);
    bool first = true;
    to->failed = to->failed || !traffic;
    gy_text_add(to, ",\n  \"routes\": [");
    for (uint32_t i = 0; traffic && i < m->memories * m->memories; i++) {
        if (traffic[i].copies == 0)
            continue;
        gy_text_add(to, first ? "\n    {\"from\": " : ",\n    {\"from\": ");
        gy_text_json(to, m->memory[i / m->memories].id);
        gy_text_add(to, ", \"to\": ");
        gy_text_json(to, m->memory[i % m->memories].id);
        gy_text_printf(to, ", \"copies\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"busy_us\": ", traffic[i].copies,
                       traffic[i].bytes);
        gy_text_double(to, gy_ticks_to_us(traffic[i].busy));
        gy_text_add(to, "}");
        first = false;
    }
    gy_text_add(to, first ? "]" : "\n  ]");
    gy_free(traffic);
}

/* Only of several ranks. */
static void add_network(gy_text *to, const gantry_schedule *s)
{
    gy_network_traffic n;
    if (gy_machine_ranks(s->machine) < 2)
        return;
    to->failed = to->failed || !gy_network_traffic_make(&n, s);
    if (to->failed)
        return;
    add_count(to, "network_bytes", n.bytes);
    if (!n.busy)
        return;
    add_text(to, "network_busiest", s->machine->resource[n.busiest].id);
    add_real(to, "network_busy_us", gy_ticks_to_us(n.busy));
}

static void add_collective(gy_text *to, const gantry_schedule *s, uint32_t index)
{
    const gy_op *op = &s->ops.at[index];
    const char *algorithm = gy_algorithm_name((gy_algorithm)op->algorithm);
    gy_text name = { 0 };
    gy_op_text(&name, s, index);
    gy_text_add(to, "{\"op\": ");
    gy_text_json(to, name.at ? name.at : "");
    gy_text_add(to, ", \"collective\": ");
    gy_text_json(to, gantry_collective_name((gantry_collective)op->collective));
    gy_text_add(to, ", \"algorithm\": ");
    gy_text_json(to, algorithm ? algorithm : "");
    gy_text_printf(to, ", \"ranks\": %u, \"bytes\": %" PRIu64 ", \"time_us\": ", op->lanes, gy_view_bytes(s, op));
    gy_text_double(to, gy_ticks_to_us(op->duration));
    gy_text_printf(to, ", \"provenance\": \"%s\"}", gy_provenance_name((gy_provenance)op->provenance));
    to->failed = to->failed || name.failed;
    gy_text_free(&name);
}

static void add_collectives(gy_text *to, const gantry_schedule *s)
{
    bool first = true;
    gy_text_add(to, ",\n  \"collective_ops\": [");
    for (uint32_t i = 0; i < s->ops.count; i++) {
        if (s->ops.at[i].kind != GY_OP_COLLECTIVE)
            continue;
        gy_text_add(to, first ? "\n    " : ",\n    ");
        add_collective(to, s, i);
        first = false;
    }
    gy_text_add(to, first ? "]" : "\n  ]");
}

static void add_critical(gy_text *to, const gy_view *view)
{
    bool first = true;
    gy_text_add(to, ",\n  \"critical_path\": [");
    for (uint32_t i = 0; i < view->s->ops.count; i++) {
        if (!view->critical[i])
            continue;
        gy_text name = { 0 };
        gy_op_text(&name, view->s, i);
        gy_text_add(to, first ? "\n    " : ",\n    ");
        gy_text_json(to, name.at ? name.at : "");
        to->failed = to->failed || name.failed;
        gy_text_free(&name);
        first = false;
    }
    gy_text_add(to, first ? "]" : "\n  ]");
}

/* The attempts of the scheduler, in its order. A makespan is missing where nothing that was found was worth simulating.
 */
static void add_tried(gy_text *to, const gantry_schedule *s)
{
    gy_text_add(to, ",\n  \"tried\": [");
    for (size_t i = 0; i < s->tried.count; i++) {
        const gy_tried *t = &s->tried.at[i];
        gy_text_add(to, i == 0 ? "\n    {\"policy\": " : ",\n    {\"policy\": ");
        gy_text_json(to, t->policy);
        if (t->skipped) {
            gy_text_add(to, ", \"skipped\": ");
            gy_text_json(to, t->skipped);
        } else if (t->makespan < GY_TICKS_MAX) {
            gy_text_add(to, ", \"makespan_us\": ");
            gy_text_double(to, gy_ticks_to_us(t->makespan));
        }
        if (t->devices)
            gy_text_printf(to, ", \"devices\": %" PRIu32, t->devices);
        if (t->evaluations)
            gy_text_printf(to, ", \"evaluations\": %" PRIu64, t->evaluations);
        gy_text_add(to, "}");
    }
    gy_text_add(to, s->tried.count ? "\n  ]" : "]");
}

/* Only where loops are not unrolled. The sums above take every start as often as it can be. */
static void add_phases(gy_text *to, const gantry_schedule *s)
{
    gy_text_add(to, ",\n  \"phases\": [");
    for (size_t i = 0; i < s->phases.count; i++) {
        const gy_schedule_phase *phase = &s->phases.at[i];
        const gy_phase *p = &phase->phase;
        gy_text_printf(to, "%s{\"nodes\": [%u, %u], ", i ? ",\n    " : "\n    ", p->first_node, p->last_node);
        if (p->loop != GY_NONE)
            gy_text_printf(to, "\"first_iteration\": %" PRId64 ", \"iterations\": %" PRId64 ", ", p->first,
                           p->iterations);
        gy_text_printf(to, "\"starts\": %" PRId64, p->starts);
        if (gy_phase_looks(p))
            gy_text_printf(to, ", \"until_every\": %" PRId64, p->every);
        gy_text_printf(to, ", \"ops\": %zu, \"makespan_us\": ", phase->schedule->ops.count);
        gy_text_double(to, gy_ticks_to_us(phase->schedule->makespan));
        gy_text_add(to, ", \"hand_over_us\": ");
        gy_text_double(to, gy_ticks_to_us(phase->hand_over));
        gy_text_add(to, ", \"policy\": ");
        gy_text_json(to, phase->schedule->policy);
        gy_text_add(to, "}");
    }
    gy_text_add(to, "\n  ]");
}

/* Of a start in which no node with a `when` runs. */
static void add_without(gy_text *to, const gantry_schedule *s)
{
    add_real(to, "makespan_without_us", gy_ticks_to_us(s->without));
    add_real(to, "bound_without_us", gy_ticks_to_us(s->bound_without));
    if (s->bound_without_by)
        add_text(to, "bound_without_by", s->bound_without_by);
}

/* The first buffer whose parts are not as long as each other, but for a row. */
static void add_parts(gy_text *to, const gantry_schedule *s)
{
    for (size_t i = 0; i < s->bounds.count; i++) {
        int64_t least = INT64_MAX, most = 0;
        for (int64_t k = 0; k < s->bounds.at[i].parts; k++) {
            int64_t rows = s->bounds.at[i].first[k + 1] - s->bounds.at[i].first[k];
            least = rows < least ? rows : least;
            most = rows > most ? rows : most;
        }
        if (most <= least + 1 || s->bounds.at[i].parts < 1)
            continue;
        gy_text_add(to, ",\n  \"parts\": { \"buffer\": ");
        gy_text_json(to, s->bounds.at[i].buffer);
        gy_text_printf(to, ", \"least\": %" PRId64 ", \"most\": %" PRId64 " }", least, most);
        return;
    }
}

void gy_export_report(gy_text *to, const gy_view *view)
{
    const gantry_schedule *s = view->s;
    gy_text_add(to, "{\n  \"graph\": ");
    gy_text_json(to, s->graph_name ? s->graph_name : "");
    add_text(to, "machine", s->machine->name);
    add_text(to, "policy", s->policy);
    add_text(to, "objective", gy_word(&gy_objective_words, s->objective));
    add_text(to, "replay", gy_word(&gy_replay_words, s->replay));
    if (s->balance)
        add_text(to, "balance", s->balance);
    if (s->balance)
        add_parts(to, s);
    add_count(to, "devices", s->machine->devices);
    add_real(to, "makespan_us", view->sum.makespan_us);
    add_real(to, "bound_us", view->sum.bound_us);
    if (s->bound_by)
        add_text(to, "bound_by", s->bound_by);
    add_real(to, "gap", view->sum.gap);
    if (s->period > 0)
        add_period(to, s);
    if (s->load.count == s->machine->devices)
        add_loads(to, s);
    add_count(to, "nodes", view->sum.nodes);
    add_count(to, "ops", view->sum.ops);
    add_count(to, "copies", view->sum.copies);
    add_count(to, "collectives", view->sum.collectives);
    add_count(to, "events", view->sum.events);
    add_count(to, "bytes_moved", view->sum.bytes_moved);
    add_count(to, "bytes_needed", view->sum.bytes_needed);
    add_count(to, "recomputed", view->sum.recomputed);
    if (view->conditional)
        add_count(to, "conditional", view->conditional);
    if (gy_view_knows_without(view))
        add_without(to, s);
    add_peaks(to, s);
    add_spare(to, s);
    add_busy(to, view);
    add_traffic(to, s);
    add_network(to, s);
    add_collectives(to, s);
    add_critical(to, view);
    if (s->tried.count)
        add_tried(to, s);
    if (s->phases.count)
        add_phases(to, s);
    add_placement(to, s);
    gy_text_add(to, "\n}\n");
}
