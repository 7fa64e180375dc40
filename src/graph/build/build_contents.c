/* SPDX-License-Identifier: Apache-2.0 */
/* Building: contents of buffers and fills, as a struct. */
#include "graph/build/build_state.h"

#include "base/versioned.h"
#include <string.h>

/* One of the two numbers of contents. */
static bool read_number(gantry_graph *g, double number, const char *exact, gy_constant *out)
{
    const gy_expr *expr = NULL;
    gantry_error err;
    *out = (gy_constant){ .real = number };
    if (!exact)
        return true;
    gantry_status status = gy_expr_parse(&expr, &g->arena, exact, strlen(exact), GANTRY_E_GRAPH, NULL, &err);
    status = status ? status : gy_constant_evaluate(out, expr, gy_build_no_name, NULL, GANTRY_E_GRAPH, &err);
    if (status == GANTRY_E_NOMEM)
        gy_build_nomem(g);
    else if (status)
        gy_graph_mistake(g, status, "`exact` of gantry_contents: %s", err.text);
    return !status;
}

static bool read_contents(gantry_graph *graph, const gantry_contents *given, gy_init *out)
{
    static const gy_init_kind kinds[] = { GY_INIT_NONE, GY_INIT_VALUE, GY_INIT_UNIFORM, GY_INIT_NORMAL, GY_INIT_IOTA };
    gantry_contents all = GANTRY_CONTENTS_INIT;
    gantry_error err;
    if (!given) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, "no contents are given: the gantry_contents is NULL");
        return false;
    }
    gantry_status status = gy_struct_read(&all, sizeof all, given, "gantry_contents", &err);
    status = status ? status : gy_struct_reserved(all.reserved, "gantry_contents", &err);
    if (status) {
        gy_graph_mistake(graph, status, "%s", err.text);
        return false;
    }
    if (all.kind < GANTRY_VALUE || all.kind > GANTRY_IOTA) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, "contents of the unknown kind %d; give a gantry_contents_kind",
                         (int)all.kind);
        return false;
    }
    *out = (gy_init){ .kind = kinds[all.kind], .seed = all.seed };
    return read_number(graph, all.first, all.exact[0], &out->a) &&
           (all.kind == GANTRY_VALUE || read_number(graph, all.second, all.exact[1], &out->b));
}

void gantry_buffer_init_with(gantry_graph *graph, gantry_buffer buffer, const gantry_contents *contents)
{
    gy_init init;
    if (gy_building(graph) && read_contents(graph, contents, &init))
        gy_buffer_set_init(graph, buffer, &init);
}

gantry_node gantry_graph_fill_with(gantry_graph *graph, const char *id, gantry_region to,
                                   const gantry_contents *contents)
{
    gy_init what;
    if (gy_building(graph) && read_contents(graph, contents, &what))
        return gy_graph_fill_with(graph, id, to, &what);
    return gy_node_handle(graph, NULL);
}
