/* SPDX-License-Identifier: Apache-2.0 */
/* Back ends tell heartbeats what this rank is at, and ask whether another one is lost; in modules too, which have no
 * heartbeats of their own. */
#include "run/network/network.h"

bool gy_network_is_lost(void *network)
{
    const gantry_network *n = network;
    return n && atomic_load(&n->lost);
}

gantry_status gy_network_fail(const gantry_network *n, gantry_error *err)
{
    if (err)
        *err = n->why;
    return n->why.status;
}

gantry_status gy_network_share(gantry_network *n, void *bytes, uint64_t count, gantry_error *err)
{
    return !n || n->calls->share(bytes, count, gy_network_is_lost, n) ? GANTRY_OK : gy_network_fail(n, err);
}

void gy_network_ask(gantry_network *n, gy_tell tell, void *context)
{
    pthread_mutex_lock(&n->lock);
    n->tell = tell;
    n->tells = context;
    pthread_mutex_unlock(&n->lock);
}

void gy_network_ask_no_more(gantry_network *n, const void *context)
{
    pthread_mutex_lock(&n->lock);
    if (n->tells == context) {
        n->tell = NULL;
        n->tells = NULL;
    }
    pthread_mutex_unlock(&n->lock);
}
