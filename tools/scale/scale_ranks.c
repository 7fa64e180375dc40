/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of a row of `gantry scale --ranks`: computers that are alike, joined by their network. */
#include "scale.h"
#include <stdlib.h>

int scale_ranks(gantry_machine **made, const options *o, const gantry_machine *node, size_t ranks)
{
    gantry_error err;
    gantry_join_options with = GANTRY_JOIN_OPTIONS_INIT;
    int code = o->link ? read_link(&with, o->link, "scale") : EXIT_FINE;
    if (code)
        return code;
    if (ranks == 1) /* the plain machine, which the others are compared with */
        return gantry_machine_spread(made, node, 1, &err) ? fail(&err) : EXIT_FINE;
    const gantry_machine **nodes = calloc(ranks, sizeof *nodes);
    if (!nodes)
        return fail_nomem();
    for (size_t i = 0; i < ranks; i++)
        nodes[i] = node;
    gantry_status status = gantry_machine_join(made, nodes, ranks, &with, &err);
    free((void *)nodes);
    if (!status)
        return EXIT_FINE;
    complain("gantry scale: --ranks %zu: ", ranks);
    return fail(&err);
}
