/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule as JSON: one line an entry, keys in a fixed order, defaults left out (docs/schedule-format.md). */
#include "base/error.h"
#include "base/file.h"
#include "schedule/form.h"
#include "schedule/words.h"

static void put_integer(gy_text *to, const char *key, long long value)
{
    gy_text_printf(to, "  \"%s\": %lld,\n", key, value);
}

static void put_string(gy_text *to, const char *key, const char *value)
{
    gy_text_printf(to, "  \"%s\": ", key);
    gy_text_json(to, value);
    gy_text_add(to, ",\n");
}

static void put_integers(gy_text *to, const int64_t *value, size_t count)
{
    gy_text_add(to, "[");
    for (size_t i = 0; i < count; i++)
        gy_text_printf(to, "%s%lld", i ? ", " : "", (long long)value[i]);
    gy_text_add(to, "]");
}

/* Before entry i of a list of lines, and behind the last of `count`. */
static void put_item(gy_text *to, size_t i)
{
    gy_text_add(to, i ? ",\n    " : "\n    ");
}

static void put_end(gy_text *to, size_t count, const char *end)
{
    gy_text_printf(to, "%s%s", count ? "\n  " : "", end);
}

static void put_params(gy_text *to, const gantry_schedule *s)
{
    gy_text_add(to, "  \"params\": {");
    for (size_t i = 0; i < s->params.count; i++) {
        const gy_param *p = &s->params.at[i];
        gy_text_add(to, i ? ", " : " ");
        gy_text_json(to, p->name);
        gy_text_add(to, ": ");
        if (p->is_real)
            gy_text_double(to, p->real);
        else
            gy_text_printf(to, "%lld", (long long)p->integer);
    }
    gy_text_add(to, s->params.count ? " },\n" : "},\n");
}

static void put_bounds(gy_text *to, const gantry_schedule *s)
{
    gy_text_add(to, "  \"bounds\": {");
    for (size_t i = 0; i < s->bounds.count; i++) {
        const struct gy_part_bounds *b = &s->bounds.at[i];
        put_item(to, i);
        gy_text_json(to, b->buffer);
        gy_text_add(to, ": ");
        put_integers(to, b->first, (size_t)b->parts + 1);
    }
    put_end(to, s->bounds.count, "},\n");
}

static bool has_windows(const gantry_schedule *s)
{
    bool any = false;
    for (size_t i = 0; i < s->window.count; i++)
        any = any || s->window.at[i] > 0;
    return any;
}

static void put_windows(gy_text *to, const gantry_schedule *s)
{
    gy_text_add(to, has_windows(s) ? "  \"windows\": [" : "");
    for (size_t i = 0; i < s->window.count && has_windows(s); i++) {
        gy_text_printf(to, "%s%llu%s", i ? ", " : "", (unsigned long long)s->window.at[i],
                       i + 1 == s->window.count ? "],\n" : "");
    }
    if (s->staging_window > 0)
        put_integer(to, "staging_window", (long long)s->staging_window);
}

static void put_head(gy_text *to, const gantry_schedule *s)
{
    gy_text_add(to, "{\n  \"gantry_schedule\": 1,\n");
    put_string(to, "graph", s->graph_name);
    gy_text_printf(to, "  \"graph_hash\": \"%016llx\",\n", (unsigned long long)s->graph_hash);
    put_string(to, "policy", s->policy);
    put_integer(to, "effort", s->effort);
    gy_text_printf(to, "  \"seed\": \"%llu\",\n", (unsigned long long)s->seed);
    put_string(to, "objective", gy_word(&gy_objective_words, s->objective));
    put_string(to, "replay", gy_word(&gy_replay_words, s->replay));
    if (s->balance)
        put_string(to, "balance", s->balance);
    put_integer(to, "unroll", s->unroll);
    put_integer(to, "in_flight", s->in_flight);
    put_integer(to, "makespan_ps", s->makespan);
    put_integer(to, "bound_ps", s->bound);
    if (s->period > 0) {
        put_integer(to, "period_ps", s->period);
        put_integer(to, "period_bound_ps", s->period_bound);
    }
    put_params(to, s);
    put_bounds(to, s);
    gy_text_add(to, "  \"machine\": ");
    gy_machine_print(to, s->machine, 2);
    gy_text_add(to, ",\n  \"slabs\": [");
    for (size_t i = 0; i < s->slab.count; i++)
        gy_text_printf(to, "%s%llu", i ? ", " : "", (unsigned long long)s->slab.at[i]);
    gy_text_add(to, "],\n");
    put_integer(to, "staging", (long long)s->staging);
    put_windows(to, s);
}

static void put_value(gy_text *to, const gy_schedule_value *v)
{
    if (v->generation > 0) {
        gy_text_printf(to, "{\"buffer\": %u, \"generation\": %u}", v->buffer, v->generation);
        return;
    }
    gy_text_add(to, "{\"name\": ");
    gy_text_json(to, v->name);
    gy_text_printf(to, ", \"rows\": %lld, ", (long long)v->rows);
    if (v->offset) {
        gy_text_add(to, "\"tiles\": ");
        put_integers(to, v->tiles, (size_t)v->axes);
        gy_text_add(to, ", \"offsets\": ");
        put_integers(to, v->offset, (size_t)v->rows + 1);
    } else {
        gy_text_printf(to, "\"row_bytes\": %lld", (long long)v->row_bytes);
    }
    gy_text_add(to, "}");
}

static void put_instance(gy_text *to, const gantry_schedule *s, const gy_instance *in)
{
    gy_text_printf(to, "{\"value\": %u, \"memory\": ", in->value);
    gy_text_json(to, s->machine->memory[in->memory].id);
    gy_text_printf(to, ", \"space\": \"%s\", \"role\": \"%s\"", gy_word(&gy_space_words, in->space),
                   gy_word(&gy_role_words, in->role));
    if (in->role == GY_ROLE_ACCUMULATOR)
        gy_text_printf(to, ", \"op\": \"%s\"", gy_word(&gy_reduction_words, in->op));
    gy_text_printf(to, ", \"rows\": [%lld, %lld], \"offset\": %llu, \"bytes\": %llu}", (long long)in->first,
                   (long long)in->last, (unsigned long long)in->offset, (unsigned long long)in->bytes);
}

static void put_lists(gy_text *to, const gantry_schedule *s)
{
    gy_text_add(to, "  \"nodes\": [");
    for (size_t i = 0; i < s->node_ids.count; i++) {
        put_item(to, i);
        gy_text_json(to, s->node_ids.at[i]);
    }
    put_end(to, s->node_ids.count, "],\n  \"values\": [");
    for (size_t i = 0; i < s->values.count; i++) {
        put_item(to, i);
        put_value(to, &s->values.at[i]);
    }
    put_end(to, s->values.count, "],\n  \"lanes\": [");
    for (size_t i = 0; i < s->lanes.count; i++) {
        put_item(to, i);
        gy_text_add(to, "{\"device\": ");
        gy_text_json(to, s->machine->device[s->lanes.at[i].device].id);
        gy_text_printf(to, ", \"kind\": \"%s\"%s}", gy_word(&gy_lane_words, s->lanes.at[i].kind),
                       s->lanes.at[i].urgent ? ", \"urgent\": true" : "");
    }
    put_end(to, s->lanes.count, "],\n  \"instances\": [");
    for (size_t i = 0; i < s->instances.count; i++) {
        put_item(to, i);
        put_instance(to, s, &s->instances.at[i]);
    }
    put_end(to, s->instances.count, "],\n");
}

static void put_uses(gy_text *to, const gantry_schedule *s, const gy_op *op)
{
    gy_text_add(to, ", \"uses\": [");
    for (uint32_t i = 0; i < op->uses; i++) {
        const gy_use *u = &s->use.at[op->use + i];
        gy_text_printf(to, "%s[\"%s\", %u, %lld, %lld", i ? ", " : "", gy_word(&gy_access_words, u->mode), u->instance,
                       (long long)u->first, (long long)u->last);
        if (op->kind == GY_OP_COLLECTIVE)
            gy_text_printf(to, ", %u", u->rank);
        gy_text_add(to, "]");
    }
    gy_text_add(to, "]");
}

static void put_lanes(gy_text *to, const gantry_schedule *s, const gy_op *op)
{
    if (op->kind != GY_OP_COLLECTIVE) {
        gy_text_printf(to, ", \"lane\": %u", s->op_lane.at[op->lane]);
        return;
    }
    gy_text_add(to, ", \"lanes\": [");
    for (uint32_t i = 0; i < op->lanes; i++)
        gy_text_printf(to, "%s%u", i ? ", " : "", s->op_lane.at[op->lane + i]);
    gy_text_add(to, "]");
}

static void put_op(gy_text *to, const gantry_schedule *s, size_t position)
{
    const gy_op *op = &s->ops.at[position];
    gy_text_printf(to, "{\"position\": %zu, \"kind\": \"%s\"", position, gy_word(&gy_op_words, op->kind));
    if (op->node != GY_NONE) {
        gy_text_add(to, ", \"node\": ");
        gy_text_json(to, s->node_ids.at[op->node]);
    }
    if (op->iteration > 0)
        gy_text_printf(to, ", \"iteration\": %u", op->iteration);
    if (op->repeat)
        gy_text_add(to, ", \"repeat\": true");
    if (op->kind == GY_OP_COLLECTIVE)
        gy_text_printf(to, ", \"collective\": \"%s\"", gy_word(&gy_collective_words, op->collective));
    if (op->reduce)
        gy_text_printf(to, ", \"reduce\": \"%s\"", gy_word(&gy_reduction_words, op->reduce));
    if (op->algorithm)
        gy_text_printf(to, ", \"algorithm\": \"%s\"", gy_word(&gy_algorithm_words, op->algorithm));
    put_lanes(to, s, op);
    put_uses(to, s, op);
    if (op->batch)
        gy_text_printf(to, ", \"batch\": %u", op->batch);
    if (op->spare)
        gy_text_printf(to, ", \"spare\": %u", op->spare);
    gy_text_printf(to, ", \"ps\": [%lld, %lld, %lld], \"cost\": \"%s\"}", (long long)op->duration, (long long)op->start,
                   (long long)op->end, gy_word(&gy_provenance_words, op->provenance));
}

static void put_row(gy_text *to, const gy_sync *row)
{
    gy_text_printf(to, "{\"from\": %u, \"to\": %u, \"by\": \"%s\"", row->from, row->to,
                   gy_word(&gy_carrier_words, row->carrier));
    if (row->carrier == GY_CARRIER_EVENT || row->carrier == GY_CARRIER_FLAG)
        gy_text_printf(to, ", \"slot\": %u", row->slot);
    gy_text_printf(to, ", \"why\": \"%s\"", gy_word(&gy_reason_words, row->reason));
    if (row->distance > 0)
        gy_text_printf(to, ", \"distance\": %u", row->distance);
    gy_text_add(to, "}");
}

static void put_counter(gy_text *to, const gy_counters *all, const gy_counter *c)
{
    gy_text_printf(to, "{\"from\": %u, \"to\": %u, \"signals\": [", c->from, c->to);
    for (uint32_t i = 0; i < c->signals; i++)
        gy_text_printf(to, "%s%u", i ? ", " : "", all->signal.at[c->signal + i]);
    gy_text_add(to, "], \"waits\": [");
    for (uint32_t i = 0; i < c->waits; i++) {
        const gy_counter_wait *w = &all->wait.at[c->wait + i];
        gy_text_printf(to, "%s[%u, %u, %u]", i ? ", " : "", w->op, w->value, w->distance);
    }
    gy_text_add(to, "]}");
}

static void put_counters(gy_text *to, const gy_counters *all)
{
    gy_text_add(to, ",\n  \"counters\": [");
    for (size_t i = 0; i < all->at.count; i++) {
        put_item(to, i);
        put_counter(to, all, &all->at.at[i]);
    }
    put_end(to, all->at.count, "]");
}

static void put_schedule(gy_text *to, const gantry_schedule *s);

static void put_phase(gy_text *to, const gy_schedule_phase *phase)
{
    const gy_phase *p = &phase->phase;
    gy_text_printf(to, "{\"nodes\": [%u, %u]", p->first_node, p->last_node);
    if (p->loop != GY_NONE) {
        gy_text_printf(to, ", \"loop\": %u, \"first\": %lld, \"iterations\": %lld, \"starts\": %lld", p->loop,
                       (long long)p->first, (long long)p->iterations, (long long)p->starts);
    }
    if (p->every > 0)
        gy_text_printf(to, ", \"every\": %lld", (long long)p->every);
    gy_text_printf(to, ", \"hand_over_ps\": %lld, \"schedule\": ", (long long)phase->hand_over);
    put_schedule(to, phase->schedule);
    gy_text_add(to, "}");
}

static void put_schedule(gy_text *to, const gantry_schedule *s)
{
    put_head(to, s);
    put_lists(to, s);
    gy_text_add(to, "  \"ops\": [");
    for (size_t i = 0; i < s->ops.count; i++) {
        put_item(to, i);
        put_op(to, s, i);
    }
    put_end(to, s->ops.count, "],\n  \"sync\": [");
    for (size_t i = 0; i < s->sync.count; i++) {
        put_item(to, i);
        put_row(to, &s->sync.at[i]);
    }
    put_end(to, s->sync.count, "]");
    if (s->replay == GY_REPLAY_DEVICE)
        put_counters(to, &s->counters);
    gy_text_add(to, s->phases.count ? ",\n  \"phases\": [" : "\n}\n");
    for (size_t i = 0; i < s->phases.count; i++) {
        put_item(to, i);
        put_phase(to, &s->phases.at[i]);
    }
    if (s->phases.count)
        put_end(to, s->phases.count, "]\n}\n");
}

gantry_status gantry_schedule_json(const gantry_schedule *s, char **text, size_t *length, gantry_error *err)
{
    GY_TRY(gy_need(s, "schedule", __func__, err));
    GY_NEED(text, err);
    GY_TRY(gy_schedule_form(s, err));
    gy_text to = { 0 };
    size_t n;
    put_schedule(&to, s);
    char *taken = gy_text_take(&to, &n);
    if (!taken)
        return gy_fail_nomem(err);
    *text = taken;
    if (length)
        *length = n;
    return GANTRY_OK;
}

gantry_status gantry_schedule_save(const gantry_schedule *s, const char *path, gantry_error *err)
{
    char *text;
    size_t length;
    GY_TRY(gy_need(s, "schedule", __func__, err));
    GY_NEED(path, err);
    gantry_status status = gantry_schedule_json(s, &text, &length, err);
    if (!status) {
        status = gy_file_write(path, text, length, err);
        gy_free(text);
    }
    return status;
}
