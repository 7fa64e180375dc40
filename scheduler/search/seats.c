/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/seats.h"

#include "base/error.h"
#include <string.h>

#define MOST   32 /* devices */
#define PASSES 8

/* A part is what one device has at first, and is known by the number of that device. */
typedef struct seats {
    const gy_model *m;
    uint32_t n;
    gy_ticks *sent; /* n x n x kinds: what all that a part sends to another takes by routes of a kind */
    gy_ticks *host; /* n x n: what a part takes from host memory and brings there, if it is on a device */
    uint32_t *like; /* per device: the first on which all tasks take as long */
    uint32_t *same; /* per device: the first that is as far from all others; there is no use in an exchange with that */
    uint32_t *at;   /* per part: its device */
    uint32_t *best; /* the same of the best that was seen */
    bool *moved;    /* per part: in this pass */
} seats;

static bool takes_as_long(const gy_model *m, uint32_t a, uint32_t b)
{
    for (uint32_t t = 0; t < m->tasks; t++)
        if (gy_model_time(m, t, a) != gy_model_time(m, t, b))
            return false;
    return true;
}

/* Would it be the same to all others if the two changed places? */
static bool has_equal_routes(const gy_model *m, uint32_t a, uint32_t b)
{
    const uint32_t *kind = m->kind;
    size_t n = m->devices;
    bool equal =
        m->from_host[a] == m->from_host[b] && m->to_host[a] == m->to_host[b] && kind[a * n + b] == kind[b * n + a];
    for (uint32_t d = 0; d < n && equal; d++)
        equal = d == a || d == b || (kind[a * n + d] == kind[b * n + d] && kind[d * n + a] == kind[d * n + b]);
    return equal;
}

bool gy_seats_matter(const gy_model *m)
{
    if (m->devices > MOST || m->bound_units || m->pool || m->team)
        return false;
    for (uint32_t a = 0; a < m->devices; a++)
        for (uint32_t b = a + 1; b < m->devices; b++)
            if (!has_equal_routes(m, a, b) && takes_as_long(m, a, b))
                return true;
    return false;
}

/* ---- what parts send ---- */

static void add_sent(seats *s, uint32_t from, uint32_t to, uint32_t size)
{
    gy_ticks *sent = &s->sent[((size_t)from * s->n + to) * s->m->kinds];
    for (uint32_t k = 0; k < s->m->kinds; k++)
        sent[k] = gy_ticks_both(sent[k], s->m->move[(size_t)size * s->m->kinds + k]);
}

/* Rows that several tasks of a device read are brought there once; `told` of a device: 1 + the last task that was. */
static void add_task(seats *s, const gy_candidate *c, uint32_t task, uint32_t *told)
{
    const gy_model *m = s->m;
    uint32_t from = c->device[task];
    for (size_t i = m->succ_first[task]; i < m->succ_first[task + 1]; i++) {
        uint32_t to = c->device[m->succ[i].task];
        if (to == from || m->succ[i].size <= GY_SIZE_HERE || told[to] == task + 1)
            continue;
        told[to] = task + 1;
        add_sent(s, from, to, m->succ[i].size);
    }
    for (uint32_t d = 0; d < s->n; d++) {
        gy_ticks *host = &s->host[(size_t)from * s->n + d];
        *host = gy_ticks_both(*host, gy_model_upload(m, task, d));
        *host = gy_ticks_both(*host, gy_model_fetch(m, task, d));
    }
}

static bool count(seats *s, const gy_candidate *c)
{
    uint32_t *told = gy_calloc(s->n, sizeof *told);
    for (uint32_t t = 0; told && t < c->tasks; t++)
        add_task(s, c, t, told);
    for (uint32_t d = 0; d < s->n; d++) {
        s->at[d] = s->best[d] = s->like[d] = s->same[d] = d;
        for (uint32_t e = 0; e < d && s->like[d] == d; e++)
            s->like[d] = takes_as_long(s->m, e, d) ? e : d;
        for (uint32_t e = 0; e < d && s->same[d] == d; e++)
            s->same[d] = has_equal_routes(s->m, e, d) ? e : d;
    }
    gy_free(told);
    return told != NULL;
}

/* ---- exchanges ---- */

/* Time of the part on the device, the others where they are, but for one. */
static gy_ticks cost_of(const seats *s, uint32_t part, uint32_t device, uint32_t except)
{
    const gy_model *m = s->m;
    gy_ticks cost = s->host[(size_t)part * s->n + device];
    for (uint32_t other = 0; other < s->n; other++) {
        uint32_t there = s->at[other];
        if (other == part || other == except)
            continue;
        cost = gy_ticks_both(cost, s->sent[((size_t)part * s->n + other) * m->kinds + m->kind[device * s->n + there]]);
        cost = gy_ticks_both(cost, s->sent[((size_t)other * s->n + part) * m->kinds + m->kind[there * s->n + device]]);
    }
    return cost;
}

/* Time of all that the two send each other if the one is on device a and the other on b. */
static gy_ticks between(const seats *s, uint32_t one, uint32_t other, uint32_t a, uint32_t b)
{
    const gy_model *m = s->m;
    return gy_ticks_both(s->sent[((size_t)one * s->n + other) * m->kinds + m->kind[a * s->n + b]],
                         s->sent[((size_t)other * s->n + one) * m->kinds + m->kind[b * s->n + a]]);
}

/* By how much the sum rises if two parts change places. */
static gy_ticks rise_of(const seats *s, uint32_t one, uint32_t other)
{
    uint32_t a = s->at[one], b = s->at[other];
    gy_ticks before = gy_ticks_both(cost_of(s, one, a, other), cost_of(s, other, b, one));
    gy_ticks after = gy_ticks_both(cost_of(s, one, b, other), cost_of(s, other, a, one));
    before = gy_ticks_both(before, between(s, one, other, a, b));
    after = gy_ticks_both(after, between(s, one, other, b, a));
    return after - before; /* both are at least 0 */
}

/* The exchange of two parts that have not moved in this pass by which the sum rises least; false: there is none. */
static bool find_exchange(const seats *s, uint32_t *one, uint32_t *other, gy_ticks *rise)
{
    bool found = false;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = i + 1; k < s->n && !s->moved[i]; k++) {
            uint32_t a = s->at[i], b = s->at[k];
            if (s->moved[k] || s->like[a] != s->like[b] || s->same[a] == s->same[b])
                continue;
            gy_ticks r = rise_of(s, i, k);
            if (found && r >= *rise)
                continue;
            found = true;
            *one = i;
            *other = k;
            *rise = r;
        }
    return found;
}

/* Exchanges until each part has moved once; true: somewhere on the way the sum was less. */
static bool pass(seats *s)
{
    gy_ticks sum = 0, least = 0, rise = 0;
    uint32_t one, other;
    memset(s->moved, 0, s->n * sizeof *s->moved);
    memcpy(s->at, s->best, s->n * sizeof *s->at);
    while (find_exchange(s, &one, &other, &rise)) {
        uint32_t device = s->at[one];
        s->at[one] = s->at[other];
        s->at[other] = device;
        s->moved[one] = s->moved[other] = true;
        sum += rise;
        if (sum < least) {
            least = sum;
            memcpy(s->best, s->at, s->n * sizeof *s->best);
        }
    }
    return least < 0;
}

gantry_status gy_seats_choose(const gy_model *m, gy_candidate *c, bool *changed, gantry_error *err)
{
    size_t n = m->devices;
    seats s = { .m = m, .n = m->devices };
    s.sent = gy_calloc(n * n * m->kinds, sizeof *s.sent);
    s.host = gy_calloc(n * n, sizeof *s.host);
    s.like = gy_calloc(4 * n, sizeof *s.like);
    s.moved = gy_calloc(n, sizeof *s.moved);
    s.at = s.like ? s.like + n : NULL;
    s.best = s.like ? s.like + 2 * n : NULL;
    s.same = s.like ? s.like + 3 * n : NULL;
    bool done = s.sent && s.host && s.like && s.moved && count(&s, c);
    *changed = false;
    for (int i = 0; done && i < PASSES && pass(&s); i++)
        *changed = true;
    for (uint32_t t = 0; *changed && t < c->tasks; t++)
        c->device[t] = s.best[c->device[t]];
    if (*changed)
        c->model = c->simulated = GY_TICKS_MAX;
    gy_free(s.sent);
    gy_free(s.host);
    gy_free(s.like);
    gy_free(s.moved);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
