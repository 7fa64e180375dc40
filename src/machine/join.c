/* SPDX-License-Identifier: Apache-2.0 */
/* One machine of several computers, and one computer's devices dealt out to several processes. */
#include "machine/join.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "machine/gpus.h"
#include <string.h>

#define MOST_US 1e9 /* as in files */

/* ---- what joins ---- */

static gantry_status check_options(const gantry_join_options *o, size_t nodes, gantry_error *err)
{
    if (!(o->latency_us >= 0 && o->latency_us <= MOST_US))
        return gy_fail(err, GANTRY_E_INVALID, NULL, "latency_us of the join options is %g; it must be 0 to %g",
                       o->latency_us, MOST_US);
    if (nodes > 1 && o->gbs != 0 && !(o->gbs >= 1e-9 && o->gbs <= (double)GY_RATE_MAX / 1e9))
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "gbs of the join options is %g; give the rate of the network, in GB/s up to %g", o->gbs,
                       (double)GY_RATE_MAX / 1e9);
    if ((unsigned)o->ports > GANTRY_PORTS_EACH)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "ports of the join options is %d; give one of gantry_ports",
                       (int)o->ports);
    return GANTRY_OK;
}

/* Of each node: what the options say, else its file. */
static gantry_status find_networks(const gantry_machine *const *node, uint32_t nodes, const gantry_join_options *o,
                                   gy_join_place *place, gantry_error *err)
{
    gy_uplink given = { gy_ticks_from_us(o->latency_us), (int64_t)(o->gbs * 1e9 + 0.5), o->ports };
    for (uint32_t n = 0; n < nodes && nodes > 1; n++) {
        place[n].network = given.rate ? given : node[n]->network;
        if (!place[n].network.rate)
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "machine \"%s\", node %u, does not say what its network is; give gbs in the join options "
                           "(--link), or \"network\" in its file",
                           node[n]->name, n);
    }
    return GANTRY_OK;
}

/* Its ports are among its resources, and to which of them another network goes nobody says. */
static bool is_joined(const gantry_machine *m)
{
    bool found = false;
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++)
        found = found || m->route[i].network;
    return found;
}

static gantry_status check_nodes(const gantry_machine *const *node, size_t nodes, gantry_error *err)
{
    uint64_t memories = 0;
    for (size_t i = 0; i < nodes; i++) {
        if (!node[i])
            return gy_fail(err, GANTRY_E_INVALID, NULL, "node %zu of the machines to join is NULL", i);
        if (is_joined(node[i]))
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "machine \"%s\", node %zu, is of several computers already, by its %u ranks; join the "
                           "machines that it was made of",
                           node[i]->name, i, gy_machine_ranks(node[i]));
        if (node[i]->contention != node[0]->contention)
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "machine \"%s\", node %zu, has contention %s and the first, \"%s\", has it %s; they must "
                           "agree",
                           node[i]->name, i, node[i]->contention ? "on" : "off", node[0]->name,
                           node[0]->contention ? "on" : "off");
        memories += node[i]->memories;
    }
    if (memories > GY_MOST_MEMORIES)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "the machines to join have %llu memories; there can be %d at most",
                       (unsigned long long)memories, GY_MOST_MEMORIES);
    return GANTRY_OK;
}

/* ---- memories, devices, resources ---- */

static const char *prefixed(gantry_machine *m, uint32_t rank, const char *id)
{
    gy_text text = { 0 };
    gy_text_printf(&text, "r%u.%s", rank, id);
    const char *made = text.failed ? NULL : gy_machine_text(m, text.at);
    gy_text_free(&text);
    return made;
}

static bool add_memories(const gy_joining *j, uint32_t n)
{
    const gantry_machine *node = j->node[n];
    bool ok = true;
    for (uint32_t i = 0; i < node->memories && ok; i++) {
        gy_memory *y = &j->m->memory[j->place[n].memory + i];
        *y = node->memory[i];
        y->rank = j->place[n].rank + node->memory[i].rank;
        y->id = prefixed(j->m, y->rank, node->memory[i].id);
        y->host = y == j->m->memory; /* where inputs and outputs are, which is rank 0's */
        ok = y->id != NULL;
    }
    return ok;
}

static bool add_resources(const gy_joining *j, uint32_t n)
{
    const gantry_machine *node = j->node[n];
    gy_resource *to = &j->m->resource[j->place[n].resource];
    bool ok = true;
    for (uint32_t i = 0; i < node->resources && ok; i++) {
        to[i] = node->resource[i];
        ok = (to[i].id = prefixed(j->m, j->place[n].rank, node->resource[i].id)) != NULL;
    }
    return ok;
}

static uint32_t count_ports(const gantry_machine *node, const gy_uplink *network)
{
    return !network->rate ? 0 : network->ports == GANTRY_PORTS_EACH ? node->memories : 1;
}

/* "r0.network.out" of the only one, "r0.gpu0.network.out" of that of a memory. */
static const char *name_port(const gy_joining *j, uint32_t n, uint32_t port, const char *way)
{
    bool each = j->place[n].network.ports == GANTRY_PORTS_EACH;
    gy_text text = { 0 };
    gy_text_printf(&text, "%s%snetwork.%s", each ? j->node[n]->memory[port].id : "", each ? "." : "", way);
    const char *made = text.failed ? NULL : prefixed(j->m, j->place[n].rank, text.at);
    gy_text_free(&text);
    return made;
}

static bool add_ports(const gy_joining *j, uint32_t n)
{
    const gy_join_place *p = &j->place[n];
    gy_resource *to = &j->m->resource[p->port];
    bool ok = true;
    for (uint32_t i = 0; i < 2 * count_ports(j->node[n], &p->network) && ok; i++) {
        to[i] = (gy_resource){ name_port(j, n, i / 2, i % 2 ? "in" : "out"), p->network.rate };
        ok = to[i].id != NULL;
    }
    return ok;
}

/* Those that take any node first, in the order of ranks, then those for host calls. */
static bool add_devices(const gy_joining *j)
{
    uint32_t at = 0;
    bool ok = true;
    for (int host_only = 0; host_only < 2; host_only++)
        for (uint32_t n = 0; n < j->nodes; n++)
            for (uint32_t i = 0; i < j->node[n]->devices && ok; i++) {
                const gy_device *from = &j->node[n]->device[i];
                if (from->host_only != host_only)
                    continue;
                gy_device *d = &j->m->device[at++];
                *d = *from;
                d->memory = j->place[n].memory + from->memory;
                d->id = prefixed(j->m, j->m->memory[d->memory].rank, from->id);
                d->kind = gy_machine_text(j->m, from->kind);
                d->ordinal = gy_device_ordinal(j->node[n], i);
                ok = d->id && d->kind && gy_machine_copy_workers(j->m, &d->workers);
            }
    return ok;
}

static void add_model(const gy_joining *j)
{
    j->m->contention = j->node[0]->contention;
    j->m->launch = j->node[0]->launch; /* each device has its own by now */
    for (uint32_t n = 0; n < j->nodes; n++) {
        const gantry_machine *node = j->node[n];
        j->m->issue = node->issue > j->m->issue ? node->issue : j->m->issue;
        j->m->submit = node->submit > j->m->submit ? node->submit : j->m->submit;
        j->m->start = node->start > j->m->start ? node->start : j->m->start;
        j->m->another = node->another > j->m->another ? node->another : j->m->another;
        j->m->edge = node->edge > j->m->edge ? node->edge : j->m->edge;
        j->m->gate = node->gate > j->m->gate ? node->gate : j->m->gate;
        j->m->when = node->when > j->m->when ? node->when : j->m->when;
        j->m->left_out = node->left_out > j->m->left_out ? node->left_out : j->m->left_out;
    }
}

/* ---- measured times, texts ---- */

static bool is_same_kernel(const gy_kernel_table *a, const gy_kernel_table *b)
{
    return a->dtype == b->dtype && !strcmp(a->kernel, b->kernel) && !strcmp(a->kind, b->kind) &&
           !a->arguments == !b->arguments && (!a->arguments || !strcmp(a->arguments, b->arguments));
}

static bool knows_kernel(const gantry_machine *m, const gy_kernel_table *t)
{
    for (uint32_t i = 0; i < m->kernels; i++)
        if (is_same_kernel(&m->kernel[i], t))
            return true;
    return false;
}

/* Devices of a kind are alike, so what was measured of a kernel on one node holds on others. A collective among as many
 * devices takes another time where the network is between them, so its times are left out. */
static bool add_tables(const gy_joining *j)
{
    bool ok = true;
    for (uint32_t n = 0; n < j->nodes; n++)
        for (uint32_t i = 0; i < j->node[n]->kernels && ok; i++)
            ok = knows_kernel(j->m, &j->node[n]->kernel[i]) || gy_machine_add_kernel(j->m, &j->node[n]->kernel[i]);
    for (uint32_t i = 0; i < j->node[0]->tables && j->nodes == 1 && ok; i++)
        ok = gy_machine_add_table(j->m, &j->node[0]->table[i]);
    return ok;
}

static bool add_note(const gy_joining *j, uint32_t n, const char *name, const char *note)
{
    gy_text text = { 0 };
    gy_text_printf(&text, "r%u is \"%s\"%s%s", j->place[n].rank, name, note ? ": " : "", note ? note : "");
    bool ok = !text.failed && gy_machine_note(j->m, gy_machine_text(j->m, text.at));
    gy_text_free(&text);
    return ok;
}

static bool add_texts(const gy_joining *j)
{
    bool ok = true;
    for (uint32_t n = 0; n < j->nodes && ok; n++) {
        const gantry_machine *node = j->node[n];
        ok = add_note(j, n, node->name, node->source);
        for (uint32_t i = 0; i < node->notes && ok; i++)
            ok = add_note(j, n, node->name, node->note[i]);
    }
    return ok && (j->m->source = gy_machine_text(j->m, "gantry machine join")) != NULL;
}

/* ---- joining ---- */

static gy_machine_size find_places(const gantry_machine *const *node, uint32_t nodes, gy_join_place *place)
{
    gy_machine_size size = { 0, 0, 0 };
    uint32_t ranks = 0;
    for (uint32_t n = 0; n < nodes; n++) {
        place[n].rank = ranks;
        ranks += gy_machine_ranks(node[n]);
        place[n].memory = size.memories;
        place[n].resource = size.resources;
        place[n].port = size.resources + node[n]->resources;
        size.memories += node[n]->memories;
        size.devices += node[n]->devices;
        size.resources += node[n]->resources + 2 * count_ports(node[n], &place[n].network);
    }
    return size;
}

static bool add_all(const gy_joining *j)
{
    bool ok = true;
    for (uint32_t n = 0; n < j->nodes && ok; n++)
        ok = add_memories(j, n) && add_resources(j, n) && add_ports(j, n);
    add_model(j);
    return ok && add_devices(j) && add_tables(j) && add_texts(j) && gy_join_routes(j);
}

static bool name_of(gy_text *to, const gantry_machine *const *node, size_t nodes)
{
    bool same = true;
    for (size_t i = 0; i < nodes; i++)
        same = same && !strcmp(node[i]->name, node[0]->name);
    if (same && nodes > 1)
        gy_text_printf(to, "%zu x %s", nodes, node[0]->name);
    for (size_t i = 0; i < nodes && (!same || nodes == 1); i++)
        gy_text_printf(to, "%s%s", i ? " + " : "", node[i]->name);
    return !to->failed;
}

/* `place` has the networks of the nodes. */
static gantry_status join(gantry_machine **machine, gy_joining *j, gy_join_place *place, gantry_error *err)
{
    gy_text name = { 0 };
    j->place = place;
    if (name_of(&name, j->node, j->nodes))
        j->m = gy_machine_new(name.at, find_places(j->node, j->nodes, place));
    gy_text_free(&name);
    if (!j->m || !add_all(j)) {
        gantry_machine_free(j->m);
        return gy_fail_nomem(err);
    }
    *machine = j->m;
    return GANTRY_OK;
}

gantry_status gy_machine_join_measured(gantry_machine **machine, const gantry_machine *const *node, uint32_t nodes,
                                       const gy_uplink *port, const gy_uplink *between, gantry_error *err)
{
    GY_TRY(check_nodes(node, nodes, err));
    gy_join_place *place = gy_calloc(nodes, sizeof *place);
    gy_joining j = { .node = node, .nodes = nodes, .between = between };
    for (uint32_t n = 0; place && n < nodes && nodes > 1; n++)
        place[n].network = port[n];
    gantry_status status = place ? join(machine, &j, place, err) : gy_fail_nomem(err);
    gy_free(place);
    return status;
}

gantry_status gantry_machine_join(gantry_machine **machine, const gantry_machine *const *nodes, size_t count,
                                  const gantry_join_options *options, gantry_error *err)
{
    gantry_join_options given = GANTRY_JOIN_OPTIONS_INIT;
    GY_NEED(machine, err);
    GY_NEED(nodes, err);
    GY_TRY(gy_struct_read(&given, sizeof given, options, "gantry_join_options", err));
    if (!count)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no machines to join: count is 0");
    GY_TRY(check_options(&given, count, err));
    GY_TRY(check_nodes(nodes, count, err));
    gy_join_place *place = gy_calloc(count, sizeof *place);
    gy_joining j = { .node = nodes, .nodes = (uint32_t)count };
    gantry_status status = place ? find_networks(nodes, j.nodes, &given, place, err) : gy_fail_nomem(err);
    status = status ? status : join(machine, &j, place, err);
    gy_free(place);
    return status;
}

/* ---- dealing out ---- */

/* The n-th device that is counted goes to the rank that has the n-th of equal shares; who is not counted stays where
 * the memory is. NULL `m`: only looks if that can be. */
static gantry_status deal_out(const gantry_machine *from, uint32_t ranks, uint32_t *rank_of, gantry_error *err)
{
    uint32_t workers = gy_machine_workers(from);
    for (uint32_t i = 0; i < from->memories; i++)
        rank_of[i] = i ? GY_MACHINE_NONE : 0;
    for (uint32_t d = 0; d < workers; d++) {
        uint32_t memory = from->device[d].memory, rank = (uint32_t)((uint64_t)d * ranks / workers);
        if (rank_of[memory] != GY_MACHINE_NONE && rank_of[memory] != rank)
            return gy_fail(
                err, GANTRY_E_INVALID, NULL,
                "device \"%s\" would be of rank %u, and works in memory \"%s\", which is of rank %u; devices "
                "that share a memory must be of one rank",
                from->device[d].id, rank, from->memory[memory].id, rank_of[memory]);
        rank_of[memory] = rank;
    }
    for (uint32_t i = 0; i < from->memories; i++)
        rank_of[i] = rank_of[i] == GY_MACHINE_NONE ? 0 : rank_of[i];
    return GANTRY_OK;
}

gantry_status gantry_machine_spread(gantry_machine **machine, const gantry_machine *from, size_t ranks,
                                    gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(from, err);
    if (ranks < 1 || ranks > gy_machine_workers(from))
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "cannot spread machine \"%s\" over %zu ranks: it has %u devices; give 1 to %u", from->name,
                       ranks, gy_machine_workers(from), gy_machine_workers(from));
    uint32_t *rank_of = gy_calloc(from->memories, sizeof *rank_of);
    gantry_machine *m = NULL;
    gantry_status status = rank_of ? deal_out(from, (uint32_t)ranks, rank_of, err) : gy_fail_nomem(err);
    if (!status && !(m = gy_machine_again(from)))
        status = gy_fail_nomem(err);
    for (uint32_t i = 0; !status && i < from->memories; i++)
        m->memory[i].rank = rank_of[i];
    gy_free(rank_of);
    if (!status)
        *machine = m;
    return status;
}
