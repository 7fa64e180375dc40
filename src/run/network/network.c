/* SPDX-License-Identifier: Apache-2.0 */
#include "run/network/network.h"

#include "base/error.h"
#include "base/memory.h"
#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Both MPIs that there are modules for. Launchers tell processes how many they are, each in its way: MPICH's and others
 * by PMI, Open MPI's by its own; libraries say their names. */
static const struct mpi {
    const char *variable, *name, *module;
} mpis[] = { { "OMPI_COMM_WORLD_SIZE", "Open MPI", "gantry-mpi-openmpi" },
             { "PMI_SIZE", "MPICH", "gantry-mpi-mpich" } };
enum { MPIS = sizeof mpis / sizeof *mpis, NAME_ROOM = 8192 /* MPI_MAX_LIBRARY_VERSION_STRING, of both at most */ };

static gantry_status join(gantry_network *n, const char *module, const void *comm, gantry_error *err)
{
    const char *wrong = NULL;
    GY_TRY(gy_module_open(&n->module, module, err));
    n->calls = n->module.table;
    gantry_status status = n->calls->open(comm, &n->rank, &n->ranks, &wrong);
    return status ? gy_fail(err, status, NULL, "%s: %s", module, wrong) : GANTRY_OK;
}

static gantry_status make(gantry_network **network, const char *module, const void *comm, gantry_error *err)
{
    gantry_network *made = gy_calloc(1, sizeof *made);
    if (!made)
        return gy_fail_nomem(err);
    pthread_mutex_init(&made->lock, NULL);
    gantry_status status = join(made, module, comm, err);
    if (!status && made->ranks > 1) {
        *network = made;
        return GANTRY_OK;
    }
    if (!status)
        made->calls->close();
    gy_module_close(&made->module);
    pthread_mutex_destroy(&made->lock);
    gy_free(made);
    return status;
}

gantry_status gantry_network_open(gantry_network **network, gantry_error *err)
{
    GY_NEED(network, err);
    *network = NULL;
    const struct mpi *by = NULL;
    for (size_t i = 0; i < MPIS && !by; i++) {
        const char *size = secure_getenv(mpis[i].variable);
        by = size && strtol(size, NULL, 10) > 1 ? &mpis[i] : NULL;
    }
    return by ? make(network, by->module, NULL, err) : GANTRY_OK;
}

/* The name that the MPI of the program gives itself. It may be asked before MPI is begun. */
static bool ask_name(char name[NAME_ROOM])
{
    int (*ask)(char *, int *) = NULL;
    int length = 0;
    void *found = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    if (!found)
        return false;
    /* dlsym gives an object pointer; POSIX promises that its bits are those of the function pointer. */
    memcpy(&ask, &found, sizeof ask);
    return ask(name, &length) == 0;
}

gantry_status gantry_network_from_mpi(gantry_network **network, const void *comm, gantry_error *err)
{
    char name[NAME_ROOM] = "none";
    GY_NEED(network, err);
    GY_NEED(comm, err);
    *network = NULL;
    bool there = ask_name(name);
    for (size_t i = 0; i < MPIS && there; i++)
        if (strncmp(name, mpis[i].name, strlen(mpis[i].name)) == 0)
            return make(network, mpis[i].module, comm, err);
    return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                   "the MPI that this program has loaded is %.*s; MPICH and Open MPI are supported",
                   (int)strcspn(name, ",\n"), name);
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

/* A process that has not come gives up in the same call, or begins with a schedule, whose hash is another number. */
gantry_status gy_network_meet(gantry_network *n, uint64_t point, gantry_error *err)
{
    uint32_t other;
    bool gave_up;
    GY_TRY(compare(n, (word){ point, 0 }, &other, &gave_up, err));
    n->quiet = gave_up || (other < n->ranks && n->rank > 0);
    if (other < n->ranks && gave_up)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "rank %u cannot begin", other);
    if (other < n->ranks)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "rank %u looks for no machine, or has another graph than rank 0: give all the same options and "
                       "the same version of gantry",
                       other);
    n->agreed = false;
    return GANTRY_OK;
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

gantry_status gantry_network_leave(gantry_network *n, gantry_error *err)
{
    if (!n || !n->beats)
        return GANTRY_OK;
    char here = 0, *all = gy_calloc(n->ranks, 1);
    if (!all)
        return gy_fail_nomem(err);
    bool there = n->calls->gather(&here, all, sizeof here, gy_network_is_lost, n);
    gy_free(all);
    n->left = there;
    return there ? GANTRY_OK : gy_network_fail(n, err);
}

void gantry_network_free(gantry_network *n)
{
    if (!n)
        return;
    gy_network_unwatch(n);
    n->calls->close();
    gy_network_end_watch(n);
    gy_module_close(&n->module);
    pthread_mutex_destroy(&n->lock);
    gy_free(n);
}
