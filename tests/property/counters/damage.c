/* SPDX-License-Identifier: Apache-2.0 */
#include "property/counters/damage.h"

#include <string.h>

const char *const damage_text[] = {
#define X(name, text) text,
    DAMAGE_MAP(X)
#undef X
};

typedef struct one {
    uint32_t from, to, signals, waits;
    uint32_t signal[64];
    gy_counter_wait wait[64];
} one;

static one take(const gantry_schedule *s, uint32_t i)
{
    const gy_counter *c = &s->counters.at.at[i];
    one o = { c->from, c->to, c->signals, c->waits, { 0 }, { { 0 } } };
    memcpy(o.signal, s->counters.signal.at + c->signal, c->signals * sizeof *o.signal);
    memcpy(o.wait, s->counters.wait.at + c->wait, c->waits * sizeof *o.wait);
    return o;
}

static bool give(gantry_schedule *s, const one *o)
{
    gy_counters *all = &s->counters;
    gy_counter c = { o->from, o->to, (uint32_t)all->signal.count, o->signals, (uint32_t)all->wait.count, o->waits };
    bool done = gy_vec_push(&all->at, c);
    for (uint32_t i = 0; i < o->signals && done; i++)
        done = gy_vec_push(&all->signal, o->signal[i]);
    for (uint32_t i = 0; i < o->waits && done; i++)
        done = gy_vec_push(&all->wait, o->wait[i]);
    return done;
}

static void drop_wait(one *o, uint32_t k)
{
    memmove(&o->wait[k], &o->wait[k + 1], (--o->waits - k) * sizeof *o->wait);
}

static void drop_signal(one *o, uint32_t k)
{
    memmove(&o->signal[k], &o->signal[k + 1], (--o->signals - k) * sizeof *o->signal);
}

static void drop_wholly(one *o, uint32_t k)
{
    uint32_t value = o->wait[k].value;
    drop_wait(o, k);
    for (uint32_t i = 0; i < o->waits; i++)
        if (o->wait[i].value == value)
            return;
    drop_signal(o, value - 1);
    for (uint32_t i = 0; i < o->waits; i++)
        o->wait[i].value -= o->wait[i].value > value;
}

static bool is_in(const gantry_schedule *s, uint32_t op, uint32_t lane)
{
    for (uint32_t k = 0; k < s->ops.at[op].lanes; k++)
        if (s->op_lane.at[s->ops.at[op].lane + k] == lane)
            return true;
    return false;
}

static uint32_t before_in_lane(const gantry_schedule *s, uint32_t lane, uint32_t op)
{
    while (op-- > 0)
        if (is_in(s, op, lane))
            return op;
    return GY_NONE;
}

static uint32_t next_in_lane(const gantry_schedule *s, uint32_t lane, uint32_t op)
{
    for (uint32_t i = op + 1; i < s->ops.count; i++)
        if (is_in(s, i, lane))
            return i;
    return GY_NONE;
}

static bool damage_wait(one *o, const gantry_schedule *s, damage kind, uint32_t k)
{
    gy_counter_wait *w = &o->wait[k], old = *w;
    uint32_t next = next_in_lane(s, o->to, w->op), before = before_in_lane(s, o->to, w->op);
    switch (kind) {
    case DAMAGE_DROP_WAIT:
        drop_wait(o, k);
        return true;
    case DAMAGE_DROP_WHOLLY:
        drop_wholly(o, k);
        return true;
    case DAMAGE_DOUBLE_WAIT:
        memmove(w + 1, w, (o->waits++ - k) * sizeof *w);
        return true;
    case DAMAGE_VALUE_LESS:
        w->value--;
        return true;
    case DAMAGE_VALUE_MORE:
        w->value++;
        return true;
    case DAMAGE_START_BEFORE:
        w->distance++;
        return true;
    case DAMAGE_START_AFTER:
        w->distance--;
        return old.distance > 0;
    case DAMAGE_OP_BEFORE:
        w->op = before;
        return before != GY_NONE && (k == 0 || w[-1].op < before);
    case DAMAGE_NEXT_OP_TOO:
        if (next == GY_NONE || (k + 1 < o->waits && w[1].op <= next))
            return false;
        memmove(w + 1, w, (o->waits++ - k) * sizeof *w);
        w[1].op = next;
        return true;
    case DAMAGE_NEXT_OP:
        w->op = next;
        return next != GY_NONE && (k + 1 == o->waits || w[1].op > next);
    default: /* SWAP_VALUES */
        if (k + 1 == o->waits)
            return false;
        w->value = w[1].value;
        w->distance = w[1].distance;
        w[1].value = old.value;
        w[1].distance = old.distance;
        return memcmp(w, &old, sizeof old) != 0;
    }
}

static bool damage_signal(one *o, const gantry_schedule *s, damage kind, uint32_t k)
{
    uint32_t *x = &o->signal[k], old = *x, next = next_in_lane(s, o->from, old);
    uint32_t before = before_in_lane(s, o->from, old);
    switch (kind) {
    case DAMAGE_DROP_SIGNAL:
        drop_signal(o, k);
        for (uint32_t i = 0; i < o->waits; i++) /* those behind it count one less */
            o->wait[i].value -= o->wait[i].value > k + 1;
        return true;
    case DAMAGE_DOUBLE_SIGNAL:
        memmove(x + 1, x, (o->signals++ - k) * sizeof *x);
        return true;
    case DAMAGE_SIGNAL_BEFORE:
        *x = before;
        return before != GY_NONE && (k == 0 || x[-1] < before);
    case DAMAGE_NEXT_SIGNAL:
        *x = next;
        return next != GY_NONE && (k + 1 == o->signals || x[1] > next);
    default:
        if (k + 1 == o->signals)
            return false;
        *x = x[1];
        x[1] = old;
        return true;
    }
}

/* Of ops with several lanes, any of them may wait and signal. */
static bool is_other(const one *o, const gantry_schedule *s)
{
    bool other = false;
    for (uint32_t i = 0; i < o->waits; i++)
        other = other || !is_in(s, o->wait[i].op, o->to);
    for (uint32_t i = 0; i < o->signals; i++)
        other = other || !is_in(s, o->signal[i], o->from);
    return other;
}

static bool damage_one(one *o, const gantry_schedule *s, damage kind)
{
    uint32_t lane = o->from;
    switch (kind) {
    case DAMAGE_SWAP_LANES:
        o->from = o->to;
        o->to = lane;
        return true;
    case DAMAGE_OTHER_READER:
        o->to = (o->to + 1) % (uint32_t)s->lanes.count;
        return is_other(o, s);
    case DAMAGE_OTHER_WRITER:
        o->from = (o->from + 1) % (uint32_t)s->lanes.count;
        return is_other(o, s);
    default:
        return true;
    }
}

bool damage_counters(gantry_schedule *to, const gantry_schedule *from, damage kind, uint32_t index, bool *more)
{
    bool fine = true, of_wait = kind <= DAMAGE_NEXT_OP || kind == DAMAGE_SWAP_VALUES,
         of_signal = !of_wait && kind <= DAMAGE_SWAP_SIGNALS;
    uint32_t before = 0;
    *more = false;
    to->counters.at.count = to->counters.signal.count = to->counters.wait.count = 0;
    for (uint32_t i = 0; i < from->counters.at.count; i++) {
        one o = take(from, i);
        uint32_t count = of_wait ? o.waits : of_signal ? o.signals : 1;
        bool mine = index >= before && index < before + count;
        *more = *more || index < before + count - 1 || index < before;
        if (mine)
            fine = of_wait     ? damage_wait(&o, from, kind, index - before)
                   : of_signal ? damage_signal(&o, from, kind, index - before)
                               : damage_one(&o, from, kind);
        before += count;
        bool gone = mine && (kind == DAMAGE_DROP_COUNTER || !o.waits || !o.signals);
        if ((!gone && !give(to, &o)) || (mine && kind == DAMAGE_DOUBLE_COUNTER && !give(to, &o)))
            return false;
    }
    return fine && index < before;
}
