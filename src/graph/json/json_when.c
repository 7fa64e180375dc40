/* SPDX-License-Identifier: Apache-2.0 */
/* `when`: the flag that a node, or all nodes of a block or a use, run by. */
#include "graph/json/json_read.h"

gantry_status gy_read_when(gy_reader *r, const gy_json_at *up, const json_t *value, const char *node,
                           gantry_region *flag)
{
    static const char *const names[] = { "buffer" };
    const json_t *member[1];
    gy_json_at at = gy_read_at(up, "when", value);
    GY_TRY(gy_read_members(r, &at, names, 1, member));
    gy_json_at buffer = gy_read_at(&at, "buffer", member[0]);
    gy_access found;
    GY_TRY(gy_read_region(r, &buffer, flag));
    gy_read_origin(r, &at);
    if (gy_build_is_flag(r->graph, node, flag, &found) && r->when)
        *flag = gy_build_within(r->graph, *r->when, *flag);
    return gy_read_built(r, &at);
}

gantry_status gy_read_node_when(gy_reader *r, const gy_json_at *at, const json_t *value, gantry_node node)
{
    gy_json_at own = gy_read_at(at, "when", value);
    if (!r->when)
        return GANTRY_OK;
    gantry_node_when(r->graph, node, *r->when);
    return gy_read_built(r, value ? &own : at);
}
