/* SPDX-License-Identifier: Apache-2.0 */
/* The ports by which a computer reaches others: "network" of its file. */
#include "base/error.h"
#include "machine/read.h"

const char *gy_ports_name(int ports)
{
    static const char *const names[] = {
#define GANTRY_X(name, text) #text,
        GANTRY_PORTS_MAP(GANTRY_X)
#undef GANTRY_X
    };
    return names[ports];
}

gantry_status gy_machine_read_network(gy_machine_reader *r, const gy_json_at *root)
{
    static const char *const keys[] = { "latency_us", "bandwidth_gbs", "ports" };
    gy_json_at place = gy_json_key(root, "network");
    double latency = 0, gbs = 0;
    int ports = GANTRY_PORTS_HOST;
    if (!place.value)
        return GANTRY_OK;
    GY_TRY(gy_machine_object(r->err, &place, "network", keys, GY_COUNT(keys)));
    GY_TRY(gy_json_number(&place, "latency_us", false, 0, 0, GY_MOST_US, &latency, GANTRY_E_MACHINE, r->err));
    GY_TRY(gy_json_number(&place, "bandwidth_gbs", true, 0, GY_LEAST_GBS, GY_MOST_GBS, &gbs, GANTRY_E_MACHINE, r->err));
    if (gy_json_key(&place, "ports").value)
        GY_TRY(gy_machine_read_name(r, &place, "ports", GANTRY_PORTS_HOST, GANTRY_PORTS_EACH, gy_ports_name, &ports));
    r->m->network = (gy_uplink){ gy_ticks_from_us(latency), (int64_t)(gbs * 1e9 + 0.5), (gantry_ports)ports };
    return GANTRY_OK;
}
