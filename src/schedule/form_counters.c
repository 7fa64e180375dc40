/* SPDX-License-Identifier: Apache-2.0 */
/* Rule form of counters: one for each pair of lanes, with signals and waits in order. */
#include "base/error.h"
#include "schedule/form.h"
#include "schedule/words.h"

#define BREACH(...) gy_breach(err, "form", "counters", i, __VA_ARGS__)

/* True if the op is in the lane. */
static bool occupies(const gantry_schedule *s, uint32_t op, uint32_t lane)
{
    for (uint32_t i = 0; op < s->ops.count && i < s->ops.at[op].lanes; i++)
        if (s->op_lane.at[s->ops.at[op].lane + i] == lane)
            return true;
    return false;
}

static gantry_status check_pair(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_counter *c = &s->counters.at.at[i], *before = i ? c - 1 : NULL;
    if (c->from >= s->lanes.count || c->to >= s->lanes.count || c->from == c->to)
        return BREACH("counter %zu goes from lane %u to lane %u of %zu; it joins two of them", i, c->from, c->to,
                      s->lanes.count);
    if (before && (before->from > c->from || (before->from == c->from && before->to >= c->to)))
        return BREACH("counter %zu goes from lane %u to lane %u and the one before it from %u to %u; they are in the "
                      "order of their lanes, one for each pair",
                      i, c->from, c->to, before->from, before->to);
    if ((uint64_t)c->signal + c->signals > s->counters.signal.count ||
        (uint64_t)c->wait + c->waits > s->counters.wait.count || !c->signals || !c->waits)
        return BREACH("counter %zu has %u signals and %u waits; it has at least one of each", i, c->signals, c->waits);
    return GANTRY_OK;
}

static gantry_status check_signals(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_counter *c = &s->counters.at.at[i];
    for (uint32_t k = 0; k < c->signals; k++) {
        const uint32_t *op = &s->counters.signal.at[c->signal + k];
        if (!occupies(s, *op, c->from) || (k && op[-1] >= *op))
            return BREACH("signal %u of counter %zu is that of op %u; signals are of ops of lane %u, each later than "
                          "the one before",
                          k + 1, i, *op, c->from);
    }
    return GANTRY_OK;
}

static gantry_status check_waits(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_counter *c = &s->counters.at.at[i];
    for (uint32_t k = 0; k < c->waits; k++) {
        const gy_counter_wait *w = &s->counters.wait.at[c->wait + k];
        if (!occupies(s, w->op, c->to) || (k && w[-1].op >= w->op))
            return BREACH("wait %u of counter %zu is that of op %u; waits are of ops of lane %u, each later than the "
                          "one before",
                          k, i, w->op, c->to);
        if (w->value < 1 || w->value > c->signals || w->distance > s->in_flight)
            return BREACH("op %u waits for value %u of counter %zu, %u starts before; allowed is 1 to %u, and at most "
                          "%u starts",
                          w->op, w->value, i, w->distance, c->signals, s->in_flight);
    }
    return GANTRY_OK;
}

gantry_status gy_form_counters(const gantry_schedule *s, gantry_error *err)
{
    bool device = s->replay == GY_REPLAY_DEVICE;
    if (!device && s->counters.at.count)
        return gy_fail(err, GANTRY_E_SCHEDULE, "/counters",
                       "rule form: %zu counters with the replay mode \"%s\"; only \"device\" has counters",
                       s->counters.at.count, gy_word(&gy_replay_words, s->replay));
    /* One start more is looked at than overlap. */
    if (device && s->ops.count > (UINT32_MAX - 1) / (s->in_flight + 1))
        return gy_fail(err, GANTRY_E_SCHEDULE, "/ops",
                       "rule form: %zu ops; with counters at most 2^32 / (in_flight + 1), which is %u", s->ops.count,
                       (UINT32_MAX - 1) / (s->in_flight + 1));
    for (size_t i = 0; i < s->counters.at.count; i++) {
        GY_TRY(check_pair(s, i, err));
        GY_TRY(check_signals(s, i, err));
        GY_TRY(check_waits(s, i, err));
    }
    return GANTRY_OK;
}
