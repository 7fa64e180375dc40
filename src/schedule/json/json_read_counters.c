/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of a schedule file. What the numbers may be is left to rule form. */
#include "base/error.h"
#include "schedule/json/json_read.h"

static gantry_status read_signals(gy_schedule_reader *r, const gy_json_at *at, gy_counter *c)
{
    gy_json_at list;
    gy_counters *all = &r->s->counters;
    c->signal = (uint32_t)all->signal.count;
    GY_TRY(gy_file_list(r, at, "signals", &list));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        int64_t op;
        GY_TRY(gy_file_item(r, &list, i, 0, UINT32_MAX, &op));
        if (!gy_vec_push(&all->signal, (uint32_t)op))
            return gy_fail_nomem(r->err);
    }
    c->signals = (uint32_t)(all->signal.count - c->signal);
    return GANTRY_OK;
}

static gantry_status read_waits(gy_schedule_reader *r, const gy_json_at *at, gy_counter *c)
{
    gy_json_at list;
    gy_counters *all = &r->s->counters;
    c->wait = (uint32_t)all->wait.count;
    GY_TRY(gy_file_list(r, at, "waits", &list));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        int64_t number[3];
        gy_json_at item = gy_json_item(&list, i);
        if (!json_is_array(item.value) || json_array_size(item.value) != 3) {
            return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &item, "a wait is [op, value, distance]; this is %s",
                                gy_json_kind(item.value));
        }
        for (size_t k = 0; k < 3; k++)
            GY_TRY(gy_file_item(r, &item, k, 0, UINT32_MAX, &number[k]));
        gy_counter_wait w = { (uint32_t)number[0], (uint32_t)number[1], (uint32_t)number[2] };
        if (!gy_vec_push(&all->wait, w))
            return gy_fail_nomem(r->err);
    }
    c->waits = (uint32_t)(all->wait.count - c->wait);
    return GANTRY_OK;
}

static gantry_status read_counter(gy_schedule_reader *r, const gy_json_at *at)
{
    static const char *const keys[] = { "from", "to", "signals", "waits" };
    gy_counter c = { 0 };
    GY_TRY(gy_file_object(r, at, "a counter", keys, GY_COUNT_OF(keys)));
    GY_TRY(gy_file_u32(r, at, "from", true, 0, &c.from));
    GY_TRY(gy_file_u32(r, at, "to", true, 0, &c.to));
    GY_TRY(read_signals(r, at, &c));
    GY_TRY(read_waits(r, at, &c));
    return gy_vec_push(&r->s->counters.at, c) ? GANTRY_OK : gy_fail_nomem(r->err);
}

gantry_status gy_file_counters(gy_schedule_reader *r, const gy_json_at *root)
{
    if (r->s->replay != GY_REPLAY_DEVICE)
        return gy_file_absent(r, root, "counters", "schedules of the replay mode \"device\"");
    return gy_file_each(r, root, "counters", read_counter);
}
