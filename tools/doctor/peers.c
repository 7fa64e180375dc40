/* SPDX-License-Identifier: Apache-2.0 */
/* Peer access: which GPUs address the memory of which, as the driver told the machine that was detected. */
#include "doctor.h"
#include <string.h>

/* Routes between memories that the machine has; others are composed by way of the host. */
static json_t *routes_of(const gantry_machine *machine)
{
    char *text = NULL;
    size_t length = 0;
    if (gantry_machine_json(machine, &text, &length, NULL))
        return NULL;
    json_t *whole = json_loadb(text, length, 0, NULL), *routes = json_incref(json_object_get(whole, "routes"));
    gantry_free(text);
    json_decref(whole);
    return routes;
}

static bool has_route(json_t *routes, const char *from, const char *to)
{
    size_t i;
    json_t *route;
    json_array_foreach(routes, i, route)
    {
        const char *a = json_string_value(json_object_get(route, "from"));
        const char *b = json_string_value(json_object_get(route, "to"));
        if (a && b && strcmp(a, from) == 0 && strcmp(b, to) == 0)
            return true;
    }
    return false;
}

/* The memory of GPU device i; false for others. */
static bool gpu_memory(const gantry_machine *machine, size_t i, const char **id)
{
    gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
    gantry_memory_info m = GANTRY_MEMORY_INFO_INIT;
    if (gantry_machine_device(machine, i, &d, NULL) || !d.gpu ||
        gantry_machine_memory(machine, (size_t)d.memory, &m, NULL))
        return false;
    *id = m.id;
    return true;
}

typedef struct peers {
    size_t gpus, pairs, missing;
    const char *from, *to; /* of the first that is missing */
} peers;

static peers count_peers(const gantry_machine *machine, json_t *routes)
{
    peers p = { 0 };
    for (size_t i = 0; i < gantry_machine_device_count(machine); i++) {
        const char *from, *to;
        if (!gpu_memory(machine, i, &from))
            continue;
        p.gpus++;
        for (size_t k = 0; k < gantry_machine_device_count(machine); k++) {
            if (k == i || !gpu_memory(machine, k, &to))
                continue;
            p.pairs++;
            if (has_route(routes, from, to))
                continue;
            p.from = p.missing ? p.from : from;
            p.to = p.missing ? p.to : to;
            p.missing++;
        }
    }
    return p;
}

void check_peers(doctor *d)
{
    json_t *routes = routes_of(d->machine);
    peers p = count_peers(d->machine, routes);
    d->failed = d->failed || !routes;
    json_decref(routes);
    if (p.gpus == 0 && d->gpus)
        add_finding(d, (finding){ STATE_UNKNOWN, "peer access",
                                  text_of("GPUs are on the bus, and no driver that can be used tells of them"),
                                  text_of("machine \"%s\" has none", gantry_machine_name(d->machine)),
                                  text_of("gantry machine says what is missing") });
    else if (p.missing)
        add_finding(d, (finding){ STATE_FOUND, "peer access",
                                  text_of("%zu of %zu pairs of GPUs copy by way of the host, such as %s to %s",
                                          p.missing, p.pairs, p.from, p.to),
                                  text_of("machine \"%s\" has no route between them", gantry_machine_name(d->machine)),
                                  text_of("nvidia-smi topo -p2p r says why; ACS, the IOMMU, MIG and containers without "
                                          "all GPUs prevent it, and drivers of consumer cards do not allow it") });
    else if (p.pairs)
        add_finding(d, (finding){ STATE_FINE, "peer access", text_of("all %zu pairs of GPUs", p.pairs),
                                  text_of("machine \"%s\" has a route between each", gantry_machine_name(d->machine)),
                                  NULL });
}
