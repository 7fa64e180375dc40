/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the phases of a schedule file. Each holds a schedule like any other. */
#include "base/error.h"
#include "schedule/json/json_read.h"

static gantry_status read_int(const gy_schedule_reader *r, const gy_json_at *at, const char *key, int64_t absent,
                              int64_t least, int64_t *out)
{
    return gy_json_int(at, key, false, absent, least, INT64_MAX, out, GANTRY_E_SCHEDULE, r->err);
}

static gantry_status read_range(const gy_schedule_reader *r, const gy_json_at *at, gy_phase *p)
{
    gy_json_at list;
    int64_t nodes[2];
    GY_TRY(gy_file_list(r, at, "nodes", &list));
    GY_TRY(gy_file_integers(r, &list, 2, nodes));
    if (nodes[0] < 0 || nodes[1] < nodes[0] || (uint64_t)nodes[1] > r->s->node_ids.count) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &list, "nodes %lld to %lld of %zu", (long long)nodes[0],
                            (long long)nodes[1], r->s->node_ids.count);
    }
    p->first_node = (uint32_t)nodes[0];
    p->last_node = (uint32_t)nodes[1];
    return GANTRY_OK;
}

static gantry_status read_phase(const gy_schedule_reader *r, const gy_json_at *at, gy_schedule_phase *phase)
{
    static const char *const keys[] = { "nodes",  "loop",  "first",        "iterations",
                                        "starts", "every", "hand_over_ps", "schedule" };
    gy_phase *p = &phase->phase;
    GY_TRY(gy_file_object(r, at, "a phase", keys, GY_COUNT_OF(keys)));
    GY_TRY(read_range(r, at, p));
    GY_TRY(gy_file_u32(r, at, "loop", false, GY_NONE, &p->loop));
    GY_TRY(read_int(r, at, "first", 0, 0, &p->first));
    GY_TRY(read_int(r, at, "iterations", 1, 1, &p->iterations));
    GY_TRY(read_int(r, at, "starts", 1, 1, &p->starts));
    GY_TRY(read_int(r, at, "every", 0, 0, &p->every));
    return read_int(r, at, "hand_over_ps", 0, 0, &phase->hand_over);
}

static gantry_status add_phase(gy_schedule_reader *r, const gy_json_at *at)
{
    gy_schedule_phase phase = { 0 };
    gantry_status status = read_phase(r, at, &phase);
    gy_json_at inner = gy_json_key(at, "schedule");
    if (!status && gy_json_key(&inner, "phases").value)
        status = gy_json_fail(r->err, GANTRY_E_SCHEDULE, &inner, "a schedule of a phase has no phases itself");
    if (!status)
        status = gy_file_schedule(&phase.schedule, &inner, r->err);
    if (!status && !gy_vec_push(&r->s->phases, phase)) {
        gantry_schedule_free(phase.schedule);
        status = gy_fail_nomem(r->err);
    }
    return status;
}

gantry_status gy_file_phases(gy_schedule_reader *r, const gy_json_at *root)
{
    return gy_json_key(root, "phases").value ? gy_file_each(r, root, "phases", add_phase) : GANTRY_OK;
}
