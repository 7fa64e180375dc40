/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the ops and the sync table of a schedule file. */
#include "base/error.h"
#include "schedule/json/json_read.h"

/* ["read", instance, first, last], of a collective ["read", instance, first, last, rank]. */
static gantry_status read_use(gy_schedule_reader *r, const gy_json_at *at, bool ranked)
{
    gy_use u = { 0 };
    int64_t instance, rank = 0;
    size_t count = ranked ? 5 : 4;
    if (json_array_size(at->value) != count) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "a use is [mode, instance, first row, last row%s]",
                            ranked ? ", rank" : "");
    }
    gy_json_at mode = gy_json_item(at, 0);
    GY_TRY(gy_file_word_of(r, &mode, &gy_access_words, &u.mode));
    GY_TRY(gy_file_item(r, at, 1, 0, UINT32_MAX, &instance));
    GY_TRY(gy_file_item(r, at, 2, 0, INT64_MAX, &u.first));
    GY_TRY(gy_file_item(r, at, 3, 0, INT64_MAX, &u.last));
    if (ranked)
        GY_TRY(gy_file_item(r, at, 4, 0, UINT16_MAX, &rank));
    u.instance = (uint32_t)instance;
    u.rank = (uint16_t)rank;
    return gy_vec_push(&r->s->use, u) ? GANTRY_OK : gy_fail_nomem(r->err);
}

static gantry_status read_uses(gy_schedule_reader *r, const gy_json_at *at, gy_op *op)
{
    gy_json_at list;
    gantry_status status = gy_file_list(r, at, "uses", &list);
    size_t count = status ? 0 : json_array_size(list.value);
    if (!status && r->s->use.count + count >= UINT32_MAX)
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &list, "more than 2^32 uses");
    op->use = (uint32_t)r->s->use.count;
    op->uses = (uint32_t)count;
    bool leading = true;
    for (size_t i = 0; !status && i < count; i++) {
        gy_json_at item = gy_json_item(&list, i);
        status = read_use(r, &item, op->kind == GY_OP_COLLECTIVE);
        leading = leading && !status && gy_vec_last(&r->s->use)->mode == GANTRY_READ;
        op->ins += leading && op->kind == GY_OP_COLLECTIVE;
    }
    return status;
}

static gantry_status add_lane(gy_schedule_reader *r, gy_op *op, int64_t lane)
{
    op->lanes++;
    return gy_vec_push(&r->s->op_lane, (uint32_t)lane) ? GANTRY_OK : gy_fail_nomem(r->err);
}

static gantry_status read_lanes(gy_schedule_reader *r, const gy_json_at *at, gy_op *op)
{
    gy_json_at list;
    int64_t lane;
    op->lane = (uint32_t)r->s->op_lane.count;
    if (op->kind != GY_OP_COLLECTIVE) {
        gantry_status status = gy_json_int(at, "lane", true, 0, 0, UINT32_MAX, &lane, GANTRY_E_SCHEDULE, r->err);
        return status ? status : add_lane(r, op, lane);
    }
    gantry_status status = gy_file_list(r, at, "lanes", &list);
    for (size_t i = 0; !status && i < json_array_size(list.value); i++) {
        status = gy_file_item(r, &list, i, 0, UINT32_MAX, &lane);
        if (!status && r->s->op_lane.count >= UINT32_MAX - 1)
            status = gy_json_fail(r->err, GANTRY_E_SCHEDULE, &list, "more than 2^32 lanes");
        if (!status)
            status = add_lane(r, op, lane);
    }
    return status;
}

static gantry_status read_node(const gy_schedule_reader *r, const gy_json_at *at, gy_op *op)
{
    const char *id;
    gantry_status status = gy_json_string(at, "node", false, NULL, &id, GANTRY_E_SCHEDULE, r->err);
    if (!status)
        status = gy_file_u32(r, at, "iteration", false, 0, &op->iteration);
    if (!status)
        status = gy_json_bool(at, "repeat", false, &op->repeat, GANTRY_E_SCHEDULE, r->err);
    op->node = status || !id ? GY_NONE : gy_names_find(&r->nodes, id);
    if (!status && id && op->node == GY_NO_NAME) {
        gy_json_at place = gy_json_key(at, "node");
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &place, "no node \"%s\" in \"nodes\"", id);
    }
    return status;
}

static gantry_status read_spare(const gy_schedule_reader *r, const gy_json_at *at, gy_op *op)
{
    int64_t spare = 0;
    if (op->kind != GY_OP_LAUNCH && op->kind != GY_OP_FILL && op->kind != GY_OP_HOST)
        return gy_file_absent(r, at, "spare", "ops that compute");
    GY_TRY(gy_json_int(at, "spare", false, 0, 0, GY_WHOLE_DEVICE - 1, &spare, GANTRY_E_SCHEDULE, r->err));
    op->spare = (uint16_t)spare;
    return GANTRY_OK;
}

static gantry_status read_batch(const gy_schedule_reader *r, const gy_json_at *at, gy_op *op)
{
    if (!gy_op_may_batch(op))
        return gy_file_absent(r, at, "batch", "launches, copies and collectives");
    return gy_file_u32(r, at, "batch", false, 0, &op->batch);
}

static gantry_status read_cost(const gy_schedule_reader *r, const gy_json_at *at, gy_op *op)
{
    gy_json_at times;
    int64_t ps[3];
    GY_TRY(gy_file_list(r, at, "ps", &times));
    GY_TRY(gy_file_integers(r, &times, 3, ps));
    op->duration = ps[0];
    op->start = ps[1];
    op->end = ps[2];
    GY_TRY(read_spare(r, at, op));
    GY_TRY(read_batch(r, at, op));
    return gy_file_word(r, at, "cost", true, &gy_provenance_words, &op->provenance);
}

static gantry_status read_kind(const gy_schedule_reader *r, const gy_json_at *at, gy_op *op)
{
    static const char *const keys[] = { "position", "kind",      "node",   "iteration", "lane",
                                        "uses",     "ps",        "cost",   "reduce",    "collective",
                                        "lanes",    "algorithm", "repeat", "spare",     "batch" };
    gantry_status status = gy_file_object(r, at, "an op", keys, GY_COUNT_OF(keys));
    if (!status)
        status = gy_file_word(r, at, "kind", true, &gy_op_words, &op->kind);
    bool collective = op->kind == GY_OP_COLLECTIVE;
    if (!status && json_object_get(at->value, collective ? "lane" : "lanes"))
        status = gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "a collective has \"lanes\", other ops have a \"lane\"");
    if (!status)
        status = collective ? gy_file_word(r, at, "collective", true, &gy_collective_words, &op->collective)
                            : gy_file_absent(r, at, "collective", "ops of the kind \"collective\"");
    if (!status)
        status = gy_file_word(r, at, "reduce", false, &gy_reduction_words, &op->reduce);
    if (!status)
        status = gy_file_word(r, at, "algorithm", false, &gy_algorithm_words, &op->algorithm);
    return status;
}

static gantry_status read_op(gy_schedule_reader *r, const gy_json_at *at)
{
    gy_op op = { 0 };
    int64_t position = (int64_t)r->s->ops.count, seen = position;
    gantry_status status = read_kind(r, at, &op);
    if (!status)
        status = gy_json_int(at, "position", false, position, 0, INT64_MAX, &seen, GANTRY_E_SCHEDULE, r->err);
    if (!status && seen != position) {
        status =
            gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "position %lld; ops are listed in their order, so this is %lld",
                         (long long)seen, (long long)position);
    }
    if (!status)
        status = read_node(r, at, &op);
    if (!status)
        status = read_lanes(r, at, &op);
    if (!status)
        status = read_uses(r, at, &op);
    if (!status)
        status = read_cost(r, at, &op);
    if (!status && !gy_vec_push(&r->s->ops, op))
        status = gy_fail_nomem(r->err);
    return status;
}

static gantry_status read_row(gy_schedule_reader *r, const gy_json_at *at)
{
    static const char *const keys[] = { "from", "to", "by", "slot", "why", "distance" };
    gy_sync row = { 0 };
    gantry_status status = gy_file_object(r, at, "a row of the sync table", keys, GY_COUNT_OF(keys));
    if (!status)
        status = gy_file_u32(r, at, "from", true, 0, &row.from);
    if (!status)
        status = gy_file_u32(r, at, "to", true, 0, &row.to);
    if (!status)
        status = gy_file_word(r, at, "by", true, &gy_carrier_words, &row.carrier);
    if (!status) {
        bool slots = row.carrier == GY_CARRIER_EVENT || row.carrier == GY_CARRIER_FLAG;
        status = gy_file_u32(r, at, "slot", slots, 0, &row.slot);
        if (!status && !slots && row.slot != 0)
            status = gy_file_absent(r, at, "slot", "rows that an \"event\" or a \"flag\" carries");
    }
    if (!status)
        status = gy_file_word(r, at, "why", true, &gy_reason_words, &row.reason);
    if (!status)
        status = gy_file_u32(r, at, "distance", false, 0, &row.distance);
    if (!status && !gy_vec_push(&r->s->sync, row))
        status = gy_fail_nomem(r->err);
    return status;
}

/* The reader of an op knows nothing of those before it. Rule form sees batches that overlap, or that go on too far. */
static void join_batches(gantry_schedule *s)
{
    size_t end = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        gy_op *op = &s->ops.at[i];
        op->joined = i < end;
        end = op->batch && i >= end ? i + op->batch : end;
    }
}

gantry_status gy_file_ops(gy_schedule_reader *r, const gy_json_at *root)
{
    GY_TRY(gy_file_each(r, root, "ops", read_op));
    join_batches(r->s);
    return GANTRY_OK;
}

gantry_status gy_file_sync(gy_schedule_reader *r, const gy_json_at *root)
{
    return gy_file_each(r, root, "sync", read_row);
}
