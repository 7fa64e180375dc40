/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas of a model have equal parts of the batch, and the scheduler may cut these elsewhere for devices that are not
 * alike: parts are automatic splits once all nodes are there. Losses and gradients are sums over the examples of a
 * batch, so they do not depend on where it is cut. A number that says where the rows of a node begin follows them, and
 * so do the rows of a buffer that one piece has for itself. */
#include "base/divisor.h"
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <string.h>

/* ---- numbers that say where rows begin ---- */

/* The number of that name, 0 if the node does not say it. False: it changes. */
static bool read_number(const gantry_graph *g, const gy_node *n, const char *name, double *out)
{
    const gantry_kernel *k = g->kernels.at[n->kernel].manifest;
    *out = 0;
    for (uint32_t i = n->scalar; i < n->scalar + n->scalars; i++) {
        const gy_scalar *x = &g->scalar.at[i];
        if (strcmp(k->arg[x->arg].name, name) != 0)
            continue;
        *out = x->number.real;
        return !x->dynamic && !x->expr;
    }
    return true;
}

static uint32_t arg_of(const gantry_kernel *k, const char *name)
{
    for (int32_t i = 0; i < k->args; i++)
        if (strcmp(k->arg[i].name, name) == 0)
            return (uint32_t)i;
    return GY_NONE;
}

/* Elements of a row of the first argument of the node, and how many of these lie along its last axis. */
static int64_t row_of(const gantry_graph *g, const gy_node *n, int64_t *last)
{
    gy_maths_shape shape = gy_access_shape(g, &g->access.at[n->access]);
    int64_t elements = 1;
    for (uint32_t k = 1; k < shape.rank; k++)
        elements *= shape.extent[k];
    *last = shape.rank > 1 ? shape.extent[shape.rank - 1] : 1;
    return elements;
}

/* Elements whose numbers follow each other only in parts of a row are numbered from where the row begins. */
static bool find_dropout(const gantry_graph *g, const gy_node *n, gy_first_number *out)
{
    double run;
    int64_t last;
    out->per_row = row_of(g, n, &last);
    return read_number(g, n, "run", &run) && run == 0;
}

/* Positions along another axis than that of the rows are the same in each of these. */
static bool find_rope(const gantry_graph *g, const gy_node *n, gy_first_number *out)
{
    double axis, length = 0;
    bool ok = read_number(g, n, "axis", &axis) && read_number(g, n, "length", &length);
    gy_maths_shape shape = gy_access_shape(g, &g->access.at[n->access]);
    out->per_row = axis == 0 || axis == -(double)shape.rank;
    out->period = (int64_t)length;
    return ok;
}

static bool find_softmax(const gantry_graph *g, const gy_node *n, gy_first_number *out)
{
    double causal;
    int64_t elements = row_of(g, n, &out->period);
    bool ok = read_number(g, n, "causal", &causal);
    out->per_row = causal != 0 && out->period ? elements / out->period : 0;
    return ok;
}

bool gy_first_number_of(const gantry_graph *g, uint32_t node, gy_first_number *out)
{
    static const struct {
        const char *kernel;
        bool (*find)(const gantry_graph *g, const gy_node *n, gy_first_number *out);
    } table[] = { { "dropout", find_dropout }, { "rope", find_rope }, { "softmax", find_softmax } };
    const gy_node *n = &g->nodes.at[node];
    *out = (gy_first_number){ .arg = GY_NONE };
    if (n->kind != GY_NODE_KERNEL || n->kernel == GY_NONE || g->kernels.at[n->kernel].code)
        return true;
    const gantry_kernel *k = g->kernels.at[n->kernel].manifest;
    double first;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].kernel, k->name) != 0)
            continue;
        bool ok = table[i].find(g, n, out) && read_number(g, n, "first", &first);
        out->arg = !ok || out->per_row ? arg_of(k, "first") : GY_NONE;
        out->at = ok ? (int64_t)first : 0;
        return ok;
    }
    return true;
}

/* ---- parts ---- */

/* Rows that stay where they are would not follow the parts. */
static bool follows_parts(const gantry_graph *g, const gy_access *x)
{
    bool is_whole = x->first == 0 && x->last == g->buffers.at[x->buffer].rows;
    return !x->before && !x->after && !x->is_list && (x->part >= 0 || is_whole);
}

static void find_split(gantry_graph *g, uint8_t *stays)
{
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++)
            if (!follows_parts(g, &g->access.at[k]))
                stays[g->access.at[k].buffer] = 1;
    }
    for (uint32_t i = 0; i < g->buffers.count; i++) {
        gy_buffer *b = &g->buffers.at[i];
        if (b->in_pieces && !b->piece && b->turns && !stays[i] && b->parts && b->rows >= b->parts && !b->external)
            b->split_auto = true;
    }
}

/* The first buffer that has a part for each piece; GY_NONE: none. */
static uint32_t find_lead(const gantry_graph *g)
{
    for (uint32_t i = 0; i < g->buffers.count; i++) {
        const gy_buffer *b = &g->buffers.at[i];
        if (b->split_auto && b->parts == gy_buffer_turns(b) * g->moves_parts)
            return i;
    }
    return GY_NONE;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    return a / gy_common_divisor(a, b) * b;
}

/* Rows of the lead that are whole rows of the buffer along it stay together, and as many as that has to keep together.
 * False: its rows are none of parts. */
static bool go_along(gy_buffer *lead, gy_buffer *b)
{
    int64_t parts = b->parts ? b->parts : 1, at = (int64_t)b->piece - 1;
    int64_t span = lead->part_first[at + parts] - lead->part_first[at], common = gy_common_divisor(b->rows, span);
    if (!b->rows || !span)
        return false;
    int64_t rows = b->rows / common, grain = b->grain ? b->grain : 1;
    int64_t whole = span / common * (grain / gy_common_divisor(grain, rows));
    lead->grain = common_multiple(lead->grain ? lead->grain : 1, whole);
    return true;
}

/* Buffers that one piece has for itself. */
static void find_along(gantry_graph *g, const uint8_t *stays)
{
    uint32_t lead = find_lead(g);
    for (uint32_t i = 0; i < g->buffers.count && lead != GY_NONE; i++) {
        gy_buffer *b = &g->buffers.at[i];
        bool is_own = b->piece && b->cls == GANTRY_TEMP && !b->output && !stays[i];
        if (is_own && go_along(&g->buffers.at[lead], b))
            b->along = lead + 1;
    }
}

/* True: the number of that node follows its rows. */
static bool has_following(const gantry_graph *g, uint32_t node, gy_first_number *out)
{
    const gy_node *n = &g->nodes.at[node];
    const gy_access *x = &g->access.at[n->access];
    const gy_buffer *b = &g->buffers.at[x->buffer];
    return n->accesses && gy_first_number_of(g, node, out) && out->arg != GY_NONE &&
           (b->along || (x->part >= 0 && b->split_auto));
}

static gy_scalar *scalar_of(gantry_graph *g, const gy_node *n, uint32_t arg)
{
    for (uint32_t i = n->scalar; i < n->scalar + n->scalars; i++)
        if (g->scalar.at[i].arg == arg)
            return &g->scalar.at[i];
    return NULL;
}

static bool let_numbers_follow(gantry_graph *g)
{
    gy_first_number number;
    for (uint32_t i = 0; i < g->nodes.count; i++)
        if (has_following(g, i, &number) && !scalar_of(g, &g->nodes.at[i], number.arg))
            gantry_node_scalar(g, (gantry_node){ i, g->number }, "first", 0);
    if (!gy_build_merge(g))
        return false;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        gy_scalar *x = has_following(g, i, &number) ? scalar_of(g, &g->nodes.at[i], number.arg) : NULL;
        if (!x)
            continue;
        x->per_row = number.per_row;
        x->period = number.period;
    }
    return true;
}

gantry_status gy_move_parts(gantry_graph *g, gantry_error *err)
{
    if (!g->moves_parts)
        return GANTRY_OK;
    uint8_t *stays = gy_calloc(g->buffers.count + 1, 1);
    bool ok = stays && gy_build_merge(g);
    if (ok) {
        find_split(g, stays);
        find_along(g, stays);
    }
    ok = ok && let_numbers_follow(g);
    gy_free(stays);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}
