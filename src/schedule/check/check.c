/* SPDX-License-Identifier: Apache-2.0 */
/* The checker: whether a schedule belongs to a graph, then rule by rule. docs/design/schedule.md has the table. */
#include "schedule/check/check.h"
#include "base/error.h"
#include "graph/flow/unroll.h"
#include <stdio.h>
#include <string.h>

static gy_label label(gy_text *text)
{
    gy_label l = { "?" };
    if (text->at && !text->failed)
        snprintf(l.at, sizeof l.at, "%s", text->at);
    gy_text_free(text);
    return l;
}

gy_label gy_label_op(const gantry_schedule *s, uint32_t op)
{
    gy_text text = { 0 };
    gy_text_printf(&text, "op %u \"", op);
    gy_op_text(&text, s, op);
    gy_text_add(&text, "\"");
    return label(&text);
}

gy_label gy_label_rows(const gantry_schedule *s, uint32_t value, int64_t first, int64_t last)
{
    gy_text text = { 0 };
    gy_value_rows_text(&text, s, value, first, last);
    return label(&text);
}

#define BREACH(...) gy_breach(k->err, "form", __VA_ARGS__)

static gantry_status check_value(const gy_check *k, uint32_t i)
{
    const gy_schedule_value *v = &k->s->values.at[i];
    const gy_value *mine = &k->flow->value[i];
    const gy_buffer *b = &k->graph->buffers.at[mine->buffer];
    if (v->buffer != mine->buffer || v->generation != mine->generation || strcmp(v->name, b->name) != 0) {
        return BREACH("values", i,
                      "value %u is generation %u of buffer %u \"%s\"; that of the graph is generation %u of %u \"%s\"",
                      i, v->generation, v->buffer, v->name, mine->generation, mine->buffer, b->name);
    }
    bool tables = !v->offset == !b->tile_offset;
    if (tables && v->offset && v->rows == b->rows)
        tables = memcmp(v->offset, b->tile_offset, ((size_t)b->rows + 1) * sizeof *v->offset) == 0 &&
                 v->axes == b->rank && memcmp(v->tiles, b->tiles, sizeof v->tiles) == 0;
    if (v->rows != b->rows || v->row_bytes != b->row_bytes || !tables) {
        return BREACH("values", i, "\"%s\" has %lld rows of %lld bytes; that of the graph has %lld of %lld", v->name,
                      (long long)v->rows, (long long)v->row_bytes, (long long)b->rows, (long long)b->row_bytes);
    }
    return GANTRY_OK;
}

gantry_status gy_check_bounds(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err)
{
    for (size_t i = 0; i < s->bounds.count; i++) {
        const struct gy_part_bounds *p = &s->bounds.at[i];
        uint32_t index = gy_names_find(&graph->buffer_names, p->buffer);
        const gy_buffer *b = index == GY_NO_NAME ? NULL : &graph->buffers.at[index];
        if (!b || b->parts != p->parts) {
            return gy_breach(err, "form", "bounds", i, "\"%s\" has bounds for %u parts; the graph has %lld", p->buffer,
                             p->parts, b ? (long long)b->parts : 0);
        }
        /* Automatic splits are those of the schedule by now. */
        if (memcmp(p->first, b->part_first, (p->parts + 1u) * sizeof *p->first) != 0) {
            return gy_breach(err, "form", "bounds", i, "the parts of \"%s\" are cut at other rows than in the graph",
                             p->buffer);
        }
    }
    return GANTRY_OK;
}

/* An instance that belongs to a buffer belongs to one of the right class. */
static gantry_status check_class(const gy_check *k, size_t i)
{
    const gy_instance *in = &k->s->instances.at[i];
    const gy_buffer *b = &k->graph->buffers.at[k->s->values.at[in->value].buffer];
    bool state = b->cls == GANTRY_STATE || b->cls == GANTRY_CONST;
    if ((in->space == GY_SPACE_INPUT && b->cls != GANTRY_INPUT) || (in->space == GY_SPACE_OUTPUT && !b->output) ||
        (in->role == GY_ROLE_PERSIST && !state)) {
        return BREACH("instances", i, "instance %zu has space %s and role %s; \"%s\" is not of a class that has such",
                      i, gy_word(&gy_space_words, in->space), gy_word(&gy_role_words, in->role), b->name);
    }
    uint32_t home = gy_buffer_home(k->s->machine, b);
    if (in->role == GY_ROLE_EXTERNAL && !gy_buffer_is_at(k->s->machine, b, in->memory)) {
        return BREACH("instances", i, "instance %zu has space %s in memory %s; \"%s\" is bound in %s", i,
                      gy_word(&gy_space_words, in->space), k->s->machine->memory[in->memory].id, b->name,
                      home == GY_NONE ? b->external : k->s->machine->memory[home].id);
    }
    return GANTRY_OK;
}

gantry_status gy_check_node_ids(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err)
{
    if (s->node_ids.count != graph->nodes.count) {
        return gy_fail(err, GANTRY_E_SCHEDULE, "/nodes", "rule form: the schedule has %zu nodes; the graph has %zu",
                       s->node_ids.count, graph->nodes.count);
    }
    for (size_t i = 0; i < s->node_ids.count; i++) {
        if (strcmp(s->node_ids.at[i], graph->nodes.at[i].id) != 0) {
            return gy_breach(err, "form", "nodes", i, "node %zu is \"%s\"; that of the graph is \"%s\"", i,
                             s->node_ids.at[i], graph->nodes.at[i].id);
        }
    }
    return GANTRY_OK;
}

/* The half of rule form that needs the graph: after it, values and nodes mean the same in graph and schedule. */
static gantry_status check_graph(const gy_check *k)
{
    const gantry_schedule *s = k->s;
    if (s->values.count != k->flow->values) {
        return gy_fail(k->err, GANTRY_E_SCHEDULE, "/values", "rule form: the schedule has %zu values; the graph has %u",
                       s->values.count, k->flow->values);
    }
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; !status && i < s->values.count; i++)
        status = check_value(k, i);
    status = status ? status : gy_check_bounds(s, k->graph, k->err);
    for (size_t i = 0; !status && i < s->instances.count; i++)
        status = check_class(k, i);
    status = status ? status : gy_check_node_ids(s, k->graph, k->err);
    return status;
}

static gantry_status check_rules(gy_check *k)
{
    static gantry_status (*const rules[])(gy_check *) = { gy_check_tasks,   gy_check_places, gy_check_order,
                                                          gy_check_batches, gy_check_ranks,  gy_check_walk,
                                                          gy_check_counters };
    GY_TRY(gy_form_geometry(k->s, &k->geometry, k->err));
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        GY_TRY(rules[i](k));
    return GANTRY_OK;
}

static void free_check(gy_check *k)
{
    gy_free(k->geometry);
    gy_free(k->task_first);
    gy_free(k->task);
    gy_free(k->task_op);
    gy_map_free(&k->after.of_node);
    gy_vec_free(&k->after.limit);
    gy_free(k->after.of_lane);
    gy_contents_free(&k->contents);
    gy_expect_free(&k->expect);
    gy_clocks_free(&k->clocks);
    gy_bytes_free(&k->bytes);
}

static gantry_status check_against(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err)
{
    gy_check k = { .s = s, .graph = graph, .flow = graph->flow, .err = err, .now = { GY_NONE, 0 } };
    gantry_status status = check_graph(&k);
    if (!status)
        status = gy_contents_init(&k.contents) ? check_rules(&k) : gy_fail_nomem(err);
    free_check(&k);
    return status;
}

gantry_status gy_schedule_verify(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err)
{
    if (!graph->sealed || !graph->flow) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "graph \"%s\" has not been checked; call gantry_graph_check first",
                       graph->name);
    }
    gantry_graph *cut;
    gantry_status status = gy_schedule_form(s, err);
    if (!status && s->phases.count)
        return gy_schedule_phases_verify(s, graph, err);
    if (!status && !graph->phase && gy_graph_needs_phases(graph)) {
        return gy_fail(err, GANTRY_E_SCHEDULE, "",
                       "rule phases: graph \"%s\" has a repeat that is not unrolled, and the schedule has no phases",
                       graph->name);
    }
    if (!status)
        status = gy_schedule_graph(&cut, s, graph, err);
    if (!status) {
        status = check_against(s, cut, err);
        gantry_graph_free(cut);
    }
    return status;
}

static gantry_status check_belongs(const gantry_schedule *s, gantry_graph *graph, gantry_error *err)
{
    GY_TRY(gantry_graph_check(graph, err));
    if (graph->hash != s->graph_hash) {
        return gy_fail(
            err, GANTRY_E_SCHEDULE, "/graph_hash",
            "the schedule was made for graph \"%s\" with hash %016llx, this is "
            "\"%s\" with %016llx; use the same graph file and params, fused or not as then, or schedule again",
            s->graph_name, (unsigned long long)s->graph_hash, graph->name, (unsigned long long)graph->hash);
    }
    return GANTRY_OK;
}

gantry_status gantry_schedule_check(gantry_schedule *s, gantry_graph *graph, gantry_error *err)
{
    GY_TRY(gy_need(s, "schedule", __func__, err));
    GY_NEED(graph, err);
    GY_TRY(check_belongs(s, graph, err));
    return gy_schedule_verify(s, graph, err);
}

gantry_status gantry_schedule_attach(gantry_schedule *s, gantry_graph *graph, gantry_error *err)
{
    gantry_graph *mine;
    GY_TRY(gy_need(s, "schedule", __func__, err));
    GY_NEED(graph, err);
    gantry_status status = check_belongs(s, graph, err);
    if (!status)
        status = gy_schedule_graph(&mine, s, graph, err);
    if (status)
        return status;
    status = gy_schedule_verify(s, mine, err);
    if (!status && s->phases.count)
        status = gy_schedule_phases_attach(s, mine, err);
    if (status) {
        gantry_graph_free(mine);
        return status;
    }
    gantry_graph_free(s->graph);
    s->graph = mine;
    return GANTRY_OK;
}
