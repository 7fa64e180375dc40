/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The times of messages between computers. The first ranks of two computers send one message there and back, the other
 * computers being silent: small ones give the latency, large ones the rate. Then every rank does so at once with the
 * rank that is half of all further on, which shows what a port sends that several ranks share, or a switch lets
 * through.
 */
#include "run/ranks/found.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

enum {
    SMALL = 8,
    TURNS = 20,  /* there and back, of small messages, in one sample */
    SAMPLES = 7, /* the quickest counts, which others disturb least */
    LARGE = 1 << 25,
    FEW = 16 /* all pairs of so many computers; of more, each with the next and with that half around */
};
/* A message that takes as long is large: its latency is little of that. */
static int64_t enough(int64_t latency_ns)
{
    return 4000000 + 4 * latency_ns;
}

typedef struct times {
    int64_t latency_ns, rate, at_once; /* of a pair; 0: not measured */
} times;

typedef struct measurer {
    gantry_network *n;
    const gy_computers *c;
    char *bytes; /* LARGE */
    times *mine; /* per computer: of this rank, as the first of its own, with the first of that one */
    times *all;  /* the same of each rank */
} measurer;

static bool move(const measurer *m, bool sends, void *bytes, uint64_t count, uint32_t peer)
{
    const gy_network_calls *calls = m->n->calls;
    return sends ? calls->send(bytes, count, peer, gy_network_is_lost, m->n)
                 : calls->receive(bytes, count, peer, gy_network_is_lost, m->n);
}

static bool meet(const measurer *m)
{
    return m->n->calls->gather(m->mine, m->all, 1, gy_network_is_lost, m->n); /* the bytes say nothing */
}

/* Messages there and back; the quickest of some samples, for one way, as the rank that begins sees it. */
static bool time_turns(const measurer *m, uint32_t peer, bool begins, uint64_t bytes, int turns, int64_t *ns)
{
    bool going = true;
    *ns = INT64_MAX;
    for (int sample = 0; sample <= SAMPLES && going; sample++) {
        int64_t begun = gy_now_ns();
        for (int i = 0; i < 2 * turns && going; i++)
            going = move(m, (i % 2 == 0) == begins, m->bytes, bytes, peer);
        int64_t took = (gy_now_ns() - begun) / (2 * turns);
        *ns = sample > 0 && took < *ns ? took : *ns; /* the first does not count */
    }
    return going;
}

/* The first power of two of bytes that takes long enough; the rank that begins says how many. */
static bool find_large(const measurer *m, uint32_t peer, bool begins, int64_t latency, uint64_t *bytes)
{
    int64_t more = 1;
    bool going = true;
    for (*bytes = 1 << 18; more && going;) {
        int64_t begun = gy_now_ns();
        going = move(m, begins, m->bytes, *bytes, peer) && move(m, !begins, m->bytes, *bytes, peer);
        more = gy_now_ns() - begun < 2 * enough(latency) && *bytes < LARGE;
        going = going && move(m, begins, &more, sizeof more, peer);
        *bytes = more ? *bytes * 2 : *bytes;
    }
    return going;
}

static int64_t rate_of(uint64_t bytes, int64_t ns, int64_t latency_ns)
{
    int64_t moving = ns - latency_ns > 1 ? ns - latency_ns : 1;
    return (int64_t)((double)bytes / (double)moving * 1e9);
}

static bool measure_pair(const measurer *m, uint32_t peer, bool begins, times *t)
{
    uint64_t bytes;
    int64_t ns = 0;
    bool going = time_turns(m, peer, begins, SMALL, TURNS, &t->latency_ns) &&
                 find_large(m, peer, begins, t->latency_ns, &bytes) && time_turns(m, peer, begins, bytes, 1, &ns);
    t->rate = going ? rate_of(bytes, ns, t->latency_ns) : 0;
    return going;
}

static bool is_tried(const gy_computers *c, uint32_t a, uint32_t b)
{
    return c->count <= FEW || b == a + 1 || b == a + c->count / 2;
}

static bool measure_pairs(const measurer *m)
{
    const gy_computers *c = m->c;
    bool going = true;
    for (uint32_t a = 0; a < c->count; a++)
        for (uint32_t b = a + 1; b < c->count && going; b++) {
            bool begins = m->n->rank == c->first[a], answers = m->n->rank == c->first[b];
            if (!is_tried(c, a, b))
                continue;
            going = meet(m);
            if (going && (begins || answers))
                going = measure_pair(m, begins ? c->first[b] : c->first[a], begins, &m->mine[begins ? b : a]);
        }
    return going && meet(m);
}

/* The rank that this one goes together with, or itself: all of them at once, of several computers. */
static uint32_t find_partner(const measurer *m, bool *begins)
{
    uint32_t half = m->n->ranks / 2, rank = m->n->rank, other = rank < half ? rank + half : rank - half;
    *begins = rank < half;
    return other < m->n->ranks && rank < 2 * half && m->c->of[rank] != m->c->of[other] ? other : rank;
}

/* All have as many bytes and turns, so that they go on beside each other to the end. */
static bool measure_at_once(const measurer *m, uint64_t bytes, int64_t latency)
{
    bool begins, going = true;
    uint32_t peer = find_partner(m, &begins), of = m->c->of[m->n->rank];
    int64_t ns = 0;
    if (peer != m->n->rank)
        going = time_turns(m, peer, begins, bytes, 1, &ns);
    m->mine[of].at_once = going && ns ? rate_of(bytes, ns, latency) : 0;
    return going;
}

/* ---- what all have found ---- */

static const times *of_rank(const measurer *m, uint32_t rank)
{
    return &m->all[(size_t)rank * m->c->count];
}

static gy_uplink round_off(const times *t)
{
    int64_t rate = (int64_t)(gy_links_round((double)t->rate / 1e6) * 1e6);
    return (gy_uplink){ gy_ticks_from_us(gy_links_round((double)t->latency_ns / 1e3)), rate < 1 ? 1 : rate,
                        GANTRY_PORTS_HOST };
}

double gy_links_round(double x)
{
    static const double step[] = { 1, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2, 10 };
    if (!(x > 0))
        return 0;
    double power = pow(10, floor(log10(x))), best = step[0];
    for (size_t i = 1; i < sizeof step / sizeof *step; i++)
        best = fabs(log(x / power / step[i])) < fabs(log(x / power / best)) ? step[i] : best;
    return best * power;
}

/* Pairs that were not tried are as late and as slow as the worst. */
static times find_worst(const measurer *m)
{
    times worst = { 0 };
    for (uint32_t a = 0; a < m->c->count; a++)
        for (uint32_t b = a + 1; b < m->c->count; b++) {
            const times *t = &of_rank(m, m->c->first[a])[b];
            worst.latency_ns = t->latency_ns > worst.latency_ns ? t->latency_ns : worst.latency_ns;
            worst.rate = t->rate && (!worst.rate || t->rate < worst.rate) ? t->rate : worst.rate;
        }
    return worst;
}

/* All that its ranks send at once; where that was not seen, what the quickest of its pairs does alone. */
static void find_port(const measurer *m, uint32_t computer, const gy_uplink *between, gy_uplink *port)
{
    times sum = { 0 };
    const gy_uplink *row = &between[(size_t)computer * m->c->count];
    for (uint32_t rank = m->c->first[computer]; rank < m->c->first[computer + 1]; rank++)
        sum.rate += of_rank(m, rank)[computer].at_once;
    *port = round_off(&sum);
    for (uint32_t i = 0; i < m->c->count && !sum.rate; i++)
        port->rate = i != computer && row[i].rate > port->rate ? row[i].rate : port->rate;
}

static void settle(const measurer *m, gy_uplink *port, gy_uplink *between)
{
    times worst = find_worst(m);
    uint32_t count = m->c->count;
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = a + 1; b < count; b++) {
            const times *t = &of_rank(m, m->c->first[a])[b];
            between[a * count + b] = between[b * count + a] = round_off(t->rate ? t : &worst);
        }
    for (uint32_t a = 0; a < count; a++)
        find_port(m, a, between, &port[a]);
}

static bool measure(const measurer *m)
{
    uint64_t row = m->c->count * sizeof *m->mine, bytes = 1 << 18;
    bool going = meet(m) && measure_pairs(m) && m->n->calls->gather(m->mine, m->all, row, gy_network_is_lost, m->n);
    times worst = going ? find_worst(m) : (times){ 0 };
    while (bytes < LARGE && rate_of(bytes, enough(worst.latency_ns), 0) < worst.rate)
        bytes *= 2;
    return going && measure_at_once(m, bytes, worst.latency_ns) && meet(m) &&
           m->n->calls->gather(m->mine, m->all, row, gy_network_is_lost, m->n);
}

gantry_status gy_links_measure(gantry_network *n, const gy_computers *c, gy_uplink *port, gy_uplink *between,
                               gantry_error *err)
{
    measurer m = { .n = n, .c = c, .bytes = gy_calloc(LARGE, 1) };
    m.mine = gy_calloc(c->count, sizeof *m.mine);
    m.all = gy_calloc((size_t)c->count * n->ranks, sizeof *m.all);
    gantry_status status = m.bytes && m.mine && m.all ? gy_network_meet(n, GY_MEETS_LINKS, err) : gy_fail_nomem(err);
    if (!status) {
        memset(m.bytes, 1, LARGE); /* pages that nobody has written are all one, and quick to read */
        status = measure(&m) ? GANTRY_OK : gy_network_fail(n, err);
    }
    if (!status)
        settle(&m, port, between);
    gy_free(m.bytes);
    gy_free(m.mine);
    gy_free(m.all);
    return status;
}
