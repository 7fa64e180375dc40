/* SPDX-License-Identifier: Apache-2.0 */
#include "run/network/network.h"

#include "base/error.h"
#include "base/memory.h"
#include <inttypes.h>
#include <stdlib.h>

/* Launchers tell processes how many they are, each in its way: MPICH's and others by PMI, Open MPI's by its own. */
static const struct launcher {
    const char *variable, *module;
} launchers[] = { { "OMPI_COMM_WORLD_SIZE", "gantry-mpi-openmpi" }, { "PMI_SIZE", "gantry-mpi-mpich" } };
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

gantry_status gantry_network_open(gantry_network **network, gantry_error *err)
{
    GY_NEED(network, err);
    *network = NULL;
    const struct launcher *by = NULL;
    for (size_t i = 0; i < LAUNCHERS && !by; i++) {
        const char *size = secure_getenv(launchers[i].variable);
        by = size && strtol(size, NULL, 10) > 1 ? &launchers[i] : NULL;
    }
    if (!by)
        return GANTRY_OK;
    gantry_network *made = gy_calloc(1, sizeof *made);
    if (!made)
        return gy_fail_nomem(err);
    pthread_mutex_init(&made->lock, NULL);
    gantry_status status = gy_module_open(&made->module, by->module, err);
    if (!status) {
        made->calls = made->module.table;
        const char *wrong = made->calls->open(&made->rank, &made->ranks);
        if (wrong)
            status = gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "%s: %s", by->module, wrong);
    }
    if (status) {
        gy_module_close(&made->module);
        pthread_mutex_destroy(&made->lock);
        gy_free(made);
        return status;
    }
    *network = made;
    return GANTRY_OK;
}

int32_t gantry_network_rank(const gantry_network *network)
{
    return network ? (int32_t)network->rank : 0;
}

int32_t gantry_network_ranks(const gantry_network *network)
{
    return network ? (int32_t)network->ranks : 1;
}

typedef struct word {
    uint64_t hash, gives_up;
} word;

/* *other: the first that has given up, or else the first with another hash than rank 0; `ranks` if there is none. */
static gantry_status compare(gantry_network *n, word mine, uint32_t *other, bool *gave_up, gantry_error *err)
{
    word *all = gy_calloc(n->ranks, sizeof *all);
    if (!all)
        return gy_fail_nomem(err);
    n->calls->gather(&mine, all, sizeof mine, gy_network_is_lost, n);
    n->agreed = true;
    *gave_up = false;
    *other = n->ranks;
    for (uint32_t i = 0; i < n->ranks && !*gave_up; i++) {
        if (all[i].gives_up || (*other == n->ranks && all[i].hash != all[0].hash))
            *other = i;
        *gave_up = all[i].gives_up;
    }
    gy_free(all);
    return GANTRY_OK;
}

gantry_status gy_network_agree(gantry_network *n, uint64_t hash, gantry_error *err)
{
    uint32_t other;
    bool gave_up;
    if (n->begun) /* with the first schedule; what follows from it is the same for all */
        return GANTRY_OK;
    GY_TRY(compare(n, (word){ hash, 0 }, &other, &gave_up, err));
    n->begun = other == n->ranks;
    if (n->begun)
        return GANTRY_OK;
    n->quiet = gave_up || n->rank > 0;
    if (gave_up)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "rank %u cannot begin", other);
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "rank %u has another schedule than rank 0: give all the same graph, machine and options, and the "
                   "same version of gantry",
                   other);
}

void gy_network_stay_behind(gantry_network *n)
{
    if (!n)
        return;
    n->begun = false;
    n->quiet = n->rank > 0;
}

int gantry_network_give_up(gantry_network *n)
{
    uint32_t first;
    bool gave_up;
    if (!n)
        return 1;
    if (!n->agreed && compare(n, (word){ 0, 1 }, &first, &gave_up, NULL) == GANTRY_OK)
        n->quiet = first != n->rank;
    return !n->quiet;
}

int gantry_network_has_begun(const gantry_network *n)
{
    return n && n->begun;
}

void gantry_network_abort(gantry_network *n, int code)
{
    if (!n)
        return;
    gantry_network_flush();
    n->calls->end_all(code);
}

void gantry_network_free(gantry_network *n)
{
    if (!n)
        return;
    gy_network_unwatch(n);
    n->calls->close();
    gy_module_close(&n->module);
    pthread_mutex_destroy(&n->lock);
    gy_free(n);
}
