/* SPDX-License-Identifier: Apache-2.0 */
/* Is another rank lost? Back ends ask, in modules too, which have no heartbeats of their own. */
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
