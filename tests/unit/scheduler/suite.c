/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include "base/text.h"
#include "schedule/check/verify.h"
#include <stdio.h>
#include <string.h>

const char machine_shared_link[] =
    "{\"gantry_machine\":1,\"name\":\"shared\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"gpu0\",\"capacity\":\"1GiB\"},{\"id\":\"gpu1\",\"capacity\":\"1GiB\"}],"
    "\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\",\"kind\":\"big\",\"memory\":\"gpu0\",\"gflops\":{\"f32\":10000},"
    "\"bandwidth_gbs\":900},"
    "{\"id\":\"gpu1\",\"type\":\"gpu\",\"kind\":\"small\",\"memory\":\"gpu1\",\"gflops\":{\"f32\":5000},\"bandwidth_"
    "gbs\":400},"
    "{\"id\":\"cpu\",\"type\":\"cpu\",\"use\":\"host\",\"memory\":\"host\",\"gflops\":{\"f32\":100},\"bandwidth_gbs\":"
    "40}],"
    "\"resources\":{\"up\":12,\"down\":12},\"routes\":["
    "{\"from\":\"host\",\"to\":\"gpu*\",\"latency_us\":5,\"bandwidth_gbs\":12,\"via\":[\"up\"]},"
    "{\"from\":\"gpu*\",\"to\":\"host\",\"latency_us\":5,\"bandwidth_gbs\":12,\"via\":[\"down\"]}],"
    "\"model\":{\"launch_us\":2}}";

const char machine_relay[] =
    "{\"gantry_machine\":1,\"name\":\"relay\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"gpu0\",\"capacity\":\"1GiB\"},{\"id\":\"gpu1\",\"capacity\":\"1GiB\"},{\"id\":\"gpu2\",\"capacity\":"
    "\"1GiB\"}],"
    "\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\",\"memory\":\"gpu0\"},{\"id\":\"gpu1\",\"type\":\"gpu\",\"memory\":"
    "\"gpu1\"},"
    "{\"id\":\"gpu2\",\"type\":\"gpu\",\"memory\":\"gpu2\"}],\"routes\":["
    "{\"from\":\"host\",\"to\":\"gpu0\",\"both\":true,\"latency_us\":1,\"bandwidth_gbs\":10},"
    "{\"from\":\"host\",\"to\":\"gpu1\",\"both\":true,\"latency_us\":1,\"bandwidth_gbs\":1},"
    "{\"from\":\"gpu0\",\"to\":\"gpu1\",\"both\":true,\"latency_us\":1,\"bandwidth_gbs\":20},"
    "{\"from\":\"gpu1\",\"to\":\"gpu2\",\"both\":true,\"latency_us\":1,\"bandwidth_gbs\":20}]}";

const char machine_host_cpu[] =
    "{\"gantry_machine\":1,\"name\":\"cpu-gpu\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"gpu0\",\"capacity\":\"1GiB\"}],"
    "\"devices\":[{\"id\":\"cpu0\",\"type\":\"cpu\",\"memory\":\"host\",\"gflops\":{\"f32\":100},\"bandwidth_gbs\":40},"
    "{\"id\":\"gpu0\",\"type\":\"gpu\",\"memory\":\"gpu0\",\"gflops\":{\"f32\":1000},\"bandwidth_gbs\":400}],"
    "\"routes\":[{\"from\":\"host\",\"to\":\"gpu0\",\"both\":true,\"latency_us\":1,\"bandwidth_gbs\":10}]}";

const char machine_launches[] =
    "{\"gantry_machine\":1,\"name\":\"launches\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},{\"id\":\"m0\","
    "\"capacity\":\"8GiB\"},{\"id\":\"m1\",\"capacity\":\"8GiB\"}],\"devices\":[{\"id\":\"d0\",\"kind\":\"big\","
    "\"type\":\"gpu\","
    "\"memory\":\"m0\",\"launch_us\":30,\"gflops\":{\"f32\":10},\"bandwidth_gbs\":10},{\"id\":\"d1\",\"kind\":\"big\","
    "\"type\":"
    "\"gpu\",\"memory\":\"m1\",\"lanes\":3,\"launch_us\":8,\"gflops\":{\"f32\":10},\"bandwidth_gbs\":10},"
    "{\"id\":\"cpu\",\"type\":\"cpu\",\"use\":\"host\",\"memory\":\"host\",\"gflops\":{\"f32\":10}}],"
    "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,\"bandwidth_gbs\":10}]}";

const char machine_twins[] =
    "{\"gantry_machine\":1,\"name\":\"twins\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"m1\",\"capacity\":\"1GiB\"},{\"id\":\"m2\",\"capacity\":\"1GiB\"}],"
    "\"devices\":[{\"id\":\"a\",\"memory\":\"m1\"},{\"id\":\"b\",\"memory\":\"m1\"},{\"id\":\"c\",\"memory\":\"m2\"}],"
    "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,\"bandwidth_gbs\":1}]}";

gantry_machine *parse_machine(const char *json)
{
    gantry_machine *m = NULL;
    gantry_error err;
    if (gantry_machine_parse(&m, json, strlen(json), "test", &err))
        ck_abort_msg("%s", err.text);
    return m;
}

gantry_machine *virtual_machine(int devices)
{
    gantry_machine *m = NULL;
    gantry_error err;
    if (gantry_machine_virtual(&m, devices, &err))
        ck_abort_msg("%s", err.text);
    return m;
}

gantry_machine *small_machine(int devices, long long capacity)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"name\":\"small\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"}");
    for (int i = 0; i < devices; i++)
        gy_text_printf(&t, ",{\"id\":\"m%d\",\"capacity\":%lld}", i, capacity);
    gy_text_add(&t, "],\"devices\":[");
    for (int i = 0; i < devices; i++)
        gy_text_printf(&t, "%s{\"id\":\"d%d\",\"memory\":\"m%d\"}", i ? "," : "", i, i);
    gy_text_add(&t, "],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":0.5,\"bandwidth_gbs\":5}]}");
    ck_assert(!t.failed);
    gantry_machine *m = parse_machine(t.at);
    gy_text_free(&t);
    return m;
}

gantry_schedule *schedule(gantry_graph *g, const gantry_machine *m, const char *policy)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.policy = policy;
    if (gantry_schedule_new(&s, g, m, &o, &err))
        ck_abort_msg("%s", err.text);
    if (gy_schedule_verify(s, g, &err))
        ck_abort_msg("%s", err.text);
    return s;
}

const char *refusal(gantry_graph *g, const gantry_machine *m, const gantry_schedule_options *o, gantry_status status)
{
    static gantry_error err;
    gantry_schedule *s = NULL;
    err = (gantry_error){ 0 };
    gantry_status got = gantry_schedule_new(&s, g, m, o, &err);
    if (got != status)
        ck_abort_msg("status %s, expected %s: %s", gantry_status_name(got), gantry_status_name(status), err.text);
    ck_assert_ptr_null(s);
    ck_assert_int_eq(err.status, status);
    return err.text;
}

gantry_buffer buffer(gantry_graph *g, const char *name, int64_t rows)
{
    int64_t shape[1] = { rows };
    return gantry_graph_buffer(g, name, GANTRY_F32, 1, shape);
}

gantry_node work(gantry_graph *g, const char *id, double us)
{
    gantry_node n = gantry_graph_work(g, id);
    gantry_node_time(g, n, NULL, us);
    return n;
}

const gy_op *op_of(const gantry_schedule *s, const char *id)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (op->node != GY_NONE && op->iteration == 0 && !strcmp(s->node_ids.at[op->node], id))
            return op;
    }
    ck_abort_msg("no op of node %s", id);
    return NULL;
}

const char *device_of(const gantry_schedule *s, const char *id)
{
    return s->machine->device[s->lanes.at[s->op_lane.at[op_of(s, id)->lane]].device].id;
}

uint32_t count_kind(const gantry_schedule *s, gy_op_kind kind)
{
    uint32_t count = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        count += s->ops.at[i].kind == kind;
    return count;
}

uint32_t count_collectives(const gantry_schedule *s, gantry_collective kind)
{
    uint32_t count = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        count +=
            s->ops.at[i].kind == GY_OP_COLLECTIVE && s->ops.at[i].collective == kind && s->ops.at[i].node == GY_NONE;
    return count;
}

uint32_t count_role(const gantry_schedule *s, gy_role role)
{
    uint32_t count = 0;
    for (size_t i = 0; i < s->instances.count; i++)
        count += s->instances.at[i].role == role;
    return count;
}

char *schedule_text(const gantry_schedule *s)
{
    char *text = NULL;
    size_t length;
    gantry_error err;
    if (gantry_schedule_json(s, &text, &length, &err))
        ck_abort_msg("%s", err.text);
    return text;
}
