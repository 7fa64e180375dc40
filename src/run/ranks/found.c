/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The machine of processes that a launcher started: each describes its computer, all get all descriptions, and join
 * them alike, so that they have the same bytes. Ranks of one computer that see the same share its devices; what they
 * see through different variables, as launchers that give each rank a GPU of its own set them, counts as several
 * computers.
 */
#include "run/ranks/found.h"

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "machine/join.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct process {
    uint64_t computer, bytes; /* of its description */
} process;

typedef struct finding {
    gantry_network *n;
    const gantry_join_options *link; /* gbs 0: what the network takes is measured */
    process *process;                /* per rank */
    char *text;                      /* `room` bytes of each rank */
    uint64_t room;
    uint32_t *of, *first; /* see gy_computers */
    gantry_machine **node;
    gy_uplink *port, *between;
    gy_computers computers;
} finding;

/* ---- who is where ---- */

static uint64_t add_text(uint64_t hash, const char *text)
{
    return gy_hash_bytes(text ? text : "", text ? strlen(text) : 0, hash);
}

/* This computer until it is begun anew, what of its devices this process may see, and how it describes them. */
static uint64_t identify(const char *description)
{
    char boot[128] = "", name[128] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    size_t length = file ? fread(boot, 1, sizeof boot - 1, file) : 0;
    if (file)
        fclose(file);
    (void)!gethostname(name, sizeof name - 1);
    uint64_t hash = gy_hash_bytes(boot, length, 0);
    hash = add_text(add_text(hash, name), secure_getenv("CUDA_VISIBLE_DEVICES"));
    return add_text(hash, description);
}

static gantry_status group(finding *f, gantry_error *err)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < f->n->ranks; r++) {
        if (r == 0 || f->process[r].computer != f->process[r - 1].computer)
            f->first[count++] = r;
        f->of[r] = count - 1;
        for (uint32_t i = 0; i + 1 < count; i++)
            if (f->process[f->first[i]].computer == f->process[r].computer && f->of[r] != i)
                return gy_fail(err, GANTRY_E_INVALID, NULL,
                               "ranks %u and %u are on one computer, and rank %u between them is on another; have the "
                               "launcher fill one computer after the other (mpirun --map-by slot of Open MPI, mpirun "
                               "-ppn of MPICH)",
                               f->first[i], r, f->first[i + 1]);
    }
    f->first[count] = f->n->ranks;
    f->computers = (gy_computers){ count, f->first, f->of };
    return GANTRY_OK;
}

/* ---- what each has ---- */

static bool has_gpus(const gantry_machine *m)
{
    bool found = false;
    for (uint32_t i = 0; i < m->devices; i++)
        found = found || m->device[i].gpu;
    return found;
}

/* Without GPUs, a computer has as many virtual devices as ranks; ranks of a single one that find none have nothing to
 * do, where there are several computers each rank has a number that the machine knows. */
static gantry_status make_node(finding *f, uint32_t i, gantry_error *err)
{
    uint32_t ranks = f->first[i + 1] - f->first[i], workers, first = f->first[i];
    gantry_machine *whole = NULL;
    GY_TRY(gantry_machine_parse(&whole, f->text + first * f->room, f->process[first].bytes, NULL, err));
    workers = gy_machine_workers(whole);
    gantry_status status = GANTRY_OK;
    if (workers < ranks && has_gpus(whole) && f->computers.count > 1)
        status = gy_fail(err, GANTRY_E_INVALID, NULL,
                         "the computer of rank %u, \"%s\", has %u devices and %u ranks; start no more ranks there than "
                         "it has devices",
                         first, whole->name, workers, ranks);
    if (!status && workers < ranks && !has_gpus(whole)) {
        gantry_machine_free(whole);
        whole = NULL;
        status = gantry_machine_virtual(&whole, (int)ranks, err);
        workers = ranks;
    }
    ranks = ranks < workers ? ranks : workers;
    status = status ? status : gantry_machine_spread(&f->node[i], whole, ranks, err);
    gantry_machine_free(whole);
    return status;
}

/* ---- joining ---- */

static bool says_all(const finding *f)
{
    bool all = true;
    for (uint32_t i = 0; i < f->computers.count; i++)
        all = all && f->node[i]->network.rate;
    return all;
}

static gantry_status join(finding *f, gantry_machine **machine, gantry_error *err)
{
    const gantry_machine *const *node = (const gantry_machine *const *)f->node;
    for (uint32_t i = 0; i < f->computers.count; i++)
        GY_TRY(make_node(f, i, err));
    if (f->computers.count == 1) {
        *machine = f->node[0];
        f->node[0] = NULL;
        return GANTRY_OK;
    }
    if ((f->link && f->link->gbs != 0) || says_all(f))
        return gantry_machine_join(machine, node, f->computers.count, f->link, err);
    GY_TRY(gy_links_measure(f->n, &f->computers, f->port, f->between, err));
    return gy_machine_join_measured(machine, node, f->computers.count, f->port, f->between, err);
}

static bool begin(finding *f)
{
    size_t ranks = f->n->ranks;
    f->process = gy_calloc(ranks, sizeof *f->process);
    f->of = gy_calloc(ranks, sizeof *f->of);
    f->first = gy_calloc(ranks + 1, sizeof *f->first);
    f->node = gy_calloc(ranks, sizeof *f->node);
    f->port = gy_calloc(ranks, sizeof *f->port);
    f->between = gy_calloc(ranks * ranks, sizeof *f->between);
    return f->process && f->of && f->first && f->node && f->port && f->between;
}

static void end(finding *f)
{
    for (uint32_t i = 0; f->node && i < f->n->ranks; i++)
        gantry_machine_free(f->node[i]);
    gy_free(f->process);
    gy_free(f->text);
    gy_free(f->of);
    gy_free(f->first);
    gy_free((void *)f->node);
    gy_free(f->port);
    gy_free(f->between);
}

static bool gather(const finding *f, const void *mine, void *all, uint64_t bytes)
{
    return f->n->calls->gather(mine, all, bytes, gy_network_is_lost, f->n);
}

/* All describe what they have. A process that cannot go on says so before the others wait for what it would send. */
static gantry_status exchange(finding *f, const char *text, size_t length, gantry_error *err)
{
    const process mine = { identify(text), length };
    GY_TRY(gy_network_meet(f->n, GY_MEETS_MACHINE, err));
    if (!gather(f, &mine, f->process, sizeof mine))
        return gy_network_fail(f->n, err);
    for (uint32_t r = 0; r < f->n->ranks; r++)
        f->room = f->process[r].bytes > f->room ? f->process[r].bytes : f->room;
    char *padded = gy_calloc(f->room + 1, 1);
    f->text = gy_calloc(f->room * f->n->ranks + 1, 1);
    gantry_status status = padded && f->text ? gy_network_meet(f->n, GY_MEETS_TEXTS, err) : gy_fail_nomem(err);
    if (!status) {
        memcpy(padded, text, length);
        status = gather(f, padded, f->text, f->room) ? GANTRY_OK : gy_network_fail(f->n, err);
    }
    gy_free(padded);
    return status;
}

static gantry_status find(finding *f, gantry_machine **machine, const gantry_machine *here, gantry_error *err)
{
    char *text = NULL;
    size_t length = 0;
    GY_TRY(gantry_machine_json(here, &text, &length, err));
    gantry_status status = begin(f) ? exchange(f, text, length, err) : gy_fail_nomem(err);
    status = status ? status : group(f, err);
    status = status ? status : join(f, machine, err);
    end(f);
    gantry_free(text);
    return status;
}

gantry_status gantry_network_machine(gantry_network *network, gantry_machine **machine, const gantry_machine *here,
                                     const gantry_join_options *link, gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(here, err);
    *machine = NULL;
    if (!network) /* one process, which has all of it */
        return gantry_machine_spread(machine, here, 1, err);
    if (network->begun)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the processes have made a run already; call gantry_network_machine before the first run");
    finding f = { .n = network, .link = link };
    return find(&f, machine, here, err);
}
