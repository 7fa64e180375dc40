/* SPDX-License-Identifier: Apache-2.0 */
/* Checking buffers and the loops that carry them. */
#include "base/error.h"
#include "graph/check/check.h"
#include "graph/flow/flow_build.h"
#include "graph/halo.h"
#include "graph/nest.h"
#include <string.h>

/* An external buffer is bound as it is: the run makes no contents for it, keeps none and packs none. */
static gantry_status check_external(const gantry_graph *g, const gy_buffer *b, gantry_error *err)
{
    const char *why = b->init.kind != GY_INIT_NONE          ? "has an init; drop one of the two"
                      : b->tile_offset                      ? "is tiled; split it instead"
                      : b->cls == GANTRY_STATE              ? "is a state; make it input and output"
                      : b->cls == GANTRY_CONST              ? "is a constant; make it an input"
                      : b->cls == GANTRY_TEMP && !b->output ? "is temp; make it input, output or both"
                                                            : NULL;
    return why ? gy_graph_fail(g, b->origin, err, GANTRY_E_GRAPH, "buffer \"%s\" is external, kept in \"%s\", and %s",
                               b->name, b->external, why)
               : GANTRY_OK;
}

static gantry_status check_buffer(const gantry_graph *g, const gy_buffer *b, gantry_error *err)
{
    if (b->cls == GANTRY_TEMP && b->init.kind != GY_INIT_NONE) {
        return gy_graph_fail(
            g, b->origin, err, GANTRY_E_GRAPH,
            "buffer \"%s\" is temp, undefined at every start, and has an init; drop the init or make it "
            "input or state",
            b->name);
    }
    if (b->halo && (b->cls != GANTRY_TEMP || b->output)) {
        return gy_graph_fail(
            g, b->origin, err, GANTRY_E_GRAPH,
            "buffer \"%s\" has tiles with a halo and is %s; such a buffer is temp and no output: name A[i][j]~1 of "
            "another",
            b->name, b->output ? "an output" : "not temp");
    }
    return b->external ? check_external(g, b, err) : GANTRY_OK;
}

gantry_status gy_check_buffers(const gantry_graph *graph, gantry_error *err)
{
    for (size_t i = 0; i < graph->buffers.count; i++) {
        gantry_status status = check_buffer(graph, &graph->buffers.at[i], err);
        if (status)
            return status;
    }
    return GANTRY_OK;
}

/* ---- loops ---- */

static void shape_text(gy_text *to, const gy_buffer *b)
{
    gy_text_printf(to, "%s[", gantry_dtype_name(b->dtype));
    for (int i = 0; i < b->rank; i++)
        gy_text_printf(to, "%s%lld", i ? "," : "", (long long)b->shape[i]);
    gy_text_add(to, "]");
    if (b->parts)
        gy_text_printf(to, " in %lld%s parts", (long long)b->parts, b->split_auto ? " automatic" : "");
    for (int i = 0; i < b->rank && b->tiles[0]; i++)
        gy_text_printf(to, "%s%lld", i ? " x " : " in ", (long long)b->tiles[i]);
    gy_text_add(to, b->tiles[0] ? " tiles" : "");
}

static bool have_one_halo(const gy_halo *a, const gy_halo *b)
{
    return !a && !b ? true
                    : a && b && memcmp(a->before, b->before, sizeof a->before) == 0 &&
                          memcmp(a->after, b->after, sizeof a->after) == 0;
}

static bool are_alike(const gy_buffer *a, const gy_buffer *b)
{
    return have_one_halo(a->halo, b->halo) && a->dtype == b->dtype && a->rank == b->rank && a->parts == b->parts &&
           a->split_auto == b->split_auto && memcmp(a->tiles, b->tiles, sizeof a->tiles) == 0 &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

static gantry_status check_carry(const gantry_graph *g, const gy_loop *loop, const struct gy_carry *pair,
                                 gantry_error *err)
{
    const gy_buffer *prev = &g->buffers.at[pair->prev], *next = &g->buffers.at[pair->next];
    if (prev->cls == GANTRY_CONST || next->cls == GANTRY_CONST) {
        return gy_graph_fail_in(g, loop->origin, "/carry", err, GANTRY_E_GRAPH,
                                "const buffer \"%s\" is carried; its contents would change: make it state or input",
                                prev->cls == GANTRY_CONST ? prev->name : next->name);
    }
    if (are_alike(prev, next))
        return GANTRY_OK;
    gy_text a = { 0 }, b = { 0 };
    shape_text(&a, prev);
    shape_text(&b, next);
    gantry_status status =
        gy_graph_fail_in(g, loop->origin, "/carry", err, a.failed || b.failed ? GANTRY_E_NOMEM : GANTRY_E_GRAPH,
                         "\"%s\" is carried from \"%s\", but is %s and not %s; both must agree in dtype, shape and cut",
                         prev->name, next->name, a.failed ? "" : a.at, b.failed ? "" : b.at);
    gy_text_free(&a);
    gy_text_free(&b);
    return status;
}

static gantry_status check_until(const gantry_graph *g, const gy_loop *loop, gantry_error *err)
{
    const gy_buffer *b = &g->buffers.at[loop->until];
    if (b->bytes != gantry_dtype_size(b->dtype)) {
        return gy_graph_fail_in(g, loop->origin, "/until", err, GANTRY_E_GRAPH,
                                "until watches \"%s\", which has %llu elements; it must have one", b->name,
                                (unsigned long long)(b->bytes / gantry_dtype_size(b->dtype)));
    }
    return GANTRY_OK;
}

gantry_status gy_check_loops(const gantry_graph *graph, gantry_error *err)
{
    uint32_t tasks = 0, accesses = 0;
    gantry_status fits = gy_flow_count(graph, &tasks, &accesses, err);
    if (fits)
        return fits;
    for (size_t i = 0; i < gy_loop_count(graph); i++) {
        const gy_loop *loop = gy_loop_at(graph, i);
        gantry_status status = loop->until == GY_NONE ? GANTRY_OK : check_until(graph, loop, err);
        for (size_t k = 0; k < loop->carry.count && !status; k++)
            status = check_carry(graph, loop, &loop->carry.at[k], err);
        if (status)
            return status;
    }
    return GANTRY_OK;
}
