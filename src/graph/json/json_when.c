/* SPDX-License-Identifier: Apache-2.0 */
/* `when`: the flag that a node, or all nodes of a block or a use, run by. */
#include "graph/json/json_read.h"

#include "base/error.h"

gantry_status gy_read_when(gy_reader *r, const gy_json_at *up, const json_t *value, gantry_region *flag)
{
    static const char *const names[] = { "buffer" };
    const json_t *member[1];
    gy_json_at at = gy_read_at(up, "when", value);
    if (r->when)
        return gy_read_fail(r, &at,
                            "is within a block or use that has a \"when\", and one is allowed: compute one flag of "
                            "both, such as {\"map\": {\"both\": \"a * b\"}}");
    GY_TRY(gy_read_members(r, &at, names, 1, member));
    gy_json_at buffer = gy_read_at(&at, "buffer", member[0]);
    return gy_read_region(r, &buffer, flag);
}

gantry_status gy_read_node_when(gy_reader *r, const gy_json_at *at, const json_t *value, gantry_node node)
{
    gantry_region flag;
    gy_json_at own = gy_read_at(at, "when", value);
    if (value)
        GY_TRY(gy_read_when(r, at, value, &flag));
    else if (!r->when)
        return GANTRY_OK;
    gantry_node_when(r->graph, node, value ? flag : *r->when);
    return gy_read_built(r, value ? &own : at);
}
