/* SPDX-License-Identifier: Apache-2.0 */
/* gantry machine join: one machine file of several, each a rank of its own, with a network between them. */
#include "command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse_link(const char *text)
{
    complain(
        "gantry machine: --link \"%s\" must be latency_us=US,GBps=RATE, such as latency_us=2,GBps=12.5: how long a "
        "message takes from node to node, and how much each node sends and gets, in 10^9 bytes a second\n",
        text ? text : "");
    return EXIT_USAGE;
}

static int read_link(gantry_join_options *to, const options *o)
{
    char rest;
    bool read = o->link && (sscanf(o->link, "latency_us=%lf,GBps=%lf%c", &to->latency_us, &to->gbs, &rest) == 2 ||
                            sscanf(o->link, "GBps=%lf,latency_us=%lf%c", &to->gbs, &to->latency_us, &rest) == 2);
    bool needed = o->link || o->positional.count > 2;
    return !needed || (read && to->latency_us >= 0 && to->gbs > 0) ? EXIT_FINE : refuse_link(o->link);
}

static int load_nodes(gantry_machine **node, const options *o)
{
    gantry_error err;
    int code = EXIT_FINE;
    for (size_t i = 1; i < o->positional.count && !code; i++) {
        const char *word = o->positional.at[i];
        char *owned = NULL;
        code = find_data(&word, &owned, "machine", "machines");
        if (!code && gantry_machine_load(&node[i - 1], word, &err))
            code = fail_reading(&err);
        free(owned);
    }
    return code;
}

int join_machines(gantry_machine **machine, const options *o)
{
    gantry_error err;
    gantry_join_options with = GANTRY_JOIN_OPTIONS_INIT;
    size_t nodes = o->positional.count - 1;
    if (!nodes) {
        complain("gantry machine: no files to join; usage: gantry machine join FILE FILE ... --link LINK\n");
        return EXIT_USAGE;
    }
    int code = read_link(&with, o);
    if (code)
        return code;
    gantry_machine **node = calloc(nodes, sizeof *node);
    if (!node)
        return fail_nomem();
    code = load_nodes(node, o);
    if (!code && gantry_machine_join(machine, (const gantry_machine *const *)node, nodes, &with, &err))
        code = fail(&err);
    for (size_t i = 0; i < nodes; i++)
        gantry_machine_free(node[i]);
    free((void *)node);
    return code;
}
