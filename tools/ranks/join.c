/* SPDX-License-Identifier: Apache-2.0 */
/* gantry machine join: one machine file of several, each a rank of its own, with a network between them. */
#include "runs/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse_link(const char *text, const char *word)
{
    complain(
        "gantry %s: --link \"%s\" must be latency_us=US,GBps=RATE, such as latency_us=2,GBps=12.5: how long a message "
        "takes from node to node, and how much each port of a node sends and gets, in 10^9 bytes a second; "
        "ports=host (default), ports=shared or ports=each may follow\n",
        word, text);
    return EXIT_USAGE;
}

int read_link(gantry_join_options *to, const char *text, const char *word)
{
    static const char *const names[] = {
#define GANTRY_X(name, text) #text,
        GANTRY_PORTS_MAP(GANTRY_X)
#undef GANTRY_X
    };
    int used = 0;
    bool read = sscanf(text, "latency_us=%lf,GBps=%lf%n", &to->latency_us, &to->gbs, &used) == 2 ||
                sscanf(text, "GBps=%lf,latency_us=%lf%n", &to->gbs, &to->latency_us, &used) == 2;
    const char *rest = text + used, *ports = rest + strlen(",ports=");
    if (!read || !(to->latency_us >= 0) || !(to->gbs > 0))
        return refuse_link(text, word);
    for (size_t i = 0; *rest && strncmp(rest, ",ports=", strlen(",ports=")) == 0 && i < sizeof names / sizeof *names;
         i++)
        if (strcmp(names[i], ports) == 0) {
            to->ports = (gantry_ports)i;
            return EXIT_FINE;
        }
    return *rest ? refuse_link(text, word) : EXIT_FINE;
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
    int code = o->link ? read_link(&with, o->link, "machine") : EXIT_FINE;
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
