/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of an op. */
#include "backends/cuda/resident/packets.h"

#include "backends/cuda/collective/share.h"

#include <string.h>

/* The next packet, as far as it goes. */
typedef struct draft {
    uint32_t id; /* of the lane */
    gy_resident_lane *lane;
    gy_resident_packet packet;
    gy_resident_wait wait[GY_RESIDENT_WORDS / GY_RESIDENT_WAIT_WORDS];
    gy_resident_signal signal[GY_RESIDENT_WORDS / GY_RESIDENT_SIGNAL_WORDS];
    gy_resident_send send[GY_RESIDENT_SENDS];
    const gy_resident_call *call;
    bool nomem;
} draft;

/* Its flag and its parameters. */
static uint32_t call_words(const gy_resident_call *call)
{
    return (call->guarded ? (uint32_t)GY_RESIDENT_ASK_WORDS : 0) + call->words;
}

static uint32_t words_of(const draft *d)
{
    uint32_t edges =
        (uint32_t)GY_RESIDENT_WAIT_WORDS * d->packet.waits + (uint32_t)GY_RESIDENT_SIGNAL_WORDS * d->packet.signals;
    return edges + (uint32_t)GY_RESIDENT_SEND_WORDS * d->packet.sends + (d->call ? call_words(d->call) : 0);
}

static bool is_shared(const draft *d)
{
    return d->call && d->lane->workers > 1 && d->call->grid[0] * d->call->grid[1] >= GY_RESIDENT_LEAST_SHARED;
}

static void set_call(gy_resident_packet *p, const draft *d)
{
    const gy_resident_call *c = d->call;
    uint64_t *to = p->word;
    memcpy(to, d->wait, p->waits * sizeof *d->wait);
    to += GY_RESIDENT_WAIT_WORDS * p->waits;
    memcpy(to, d->signal, p->signals * sizeof *d->signal);
    to += GY_RESIDENT_SIGNAL_WORDS * p->signals;
    if (!c)
        return;
    memcpy(to, d->send, p->sends * sizeof *d->send);
    to += GY_RESIDENT_SEND_WORDS * p->sends;
    p->guarded = c->guarded;
    if (c->guarded)
        memcpy(to, &c->flag, sizeof c->flag);
    to += GY_RESIDENT_ASK_WORDS * p->guarded;
    memcpy(to, c->word, c->words * sizeof *c->word);
    p->function = (uint16_t)(c->function | (c->far ? GY_RESIDENT_FAR : 0));
    p->blocks_x = c->grid[0];
    p->blocks_y = c->grid[1];
    p->threads_x = (uint16_t)c->block[0];
    p->threads_y = (uint16_t)c->block[1];
    p->shared = is_shared(d) ? (uint32_t)d->lane->helper.count + 1 : 0;
    p->together = c->together;
}

/* Ends the packet; the next one, of the same op, is empty. */
static void flush(draft *d)
{
    gy_resident_packet p = d->packet, alone = { .op = p.op, .sends = p.sends };
    set_call(&p, d);
    set_call(&alone, d);
    alone.settled = 1;
    p.settled = p.signals || p.shared;
    if (p.shared && d->lane->leader.count)
        gy_vec_last(&d->lane->leader)->settled = 1;
    d->nomem = d->nomem || !gy_vec_push(&d->lane->leader, p) || (p.shared && !gy_vec_push(&d->lane->helper, alone));
    d->packet = (gy_resident_packet){ .op = p.op };
    d->call = NULL;
}

static void end_packet(draft *d)
{
    if (d->call || d->packet.waits || d->packet.signals)
        flush(d);
}

static void make_room(draft *d, uint32_t words)
{
    if (words_of(d) + words > GY_RESIDENT_WORDS)
        flush(d);
}

static void add_wait(draft *d, const gy_cuda *h, const gy_resident_edge *e)
{
    make_room(d, GY_RESIDENT_WAIT_WORDS);
    d->packet.near_waits += gy_resident_is_near(h, e->counter);
    d->wait[d->packet.waits++] = (gy_resident_wait){ gy_resident_counter(h, e->counter), e->value,
                                                     h->resident->signals_of[e->counter], e->distance, 0 };
}

static void add_signal(draft *d, const gy_cuda *h, const gy_resident_edge *e)
{
    make_room(d, GY_RESIDENT_SIGNAL_WORDS);
    d->packet.near_signals += gy_resident_is_near(h, e->counter);
    d->packet.last += gy_resident_is_switch(h, e->counter);
    d->signal[d->packet.signals++] =
        (gy_resident_signal){ gy_resident_counter(h, e->counter), e->value, h->resident->signals_of[e->counter] };
}

/* The last call sends. */
static void add_calls(draft *d, uint32_t id, const gy_resident_plan *p)
{
    uint32_t sends = 0;
    for (uint32_t k = p->sent[id].next; k != GY_NONE; k = p->sent[k].next)
        sends++;
    for (size_t i = p->first[id]; i < p->first[id + 1]; i++) {
        if (d->call)
            flush(d);
        make_room(d, call_words(&p->calls.at[i]) + (uint32_t)GY_RESIDENT_SEND_WORDS * sends);
        d->call = &p->calls.at[i];
    }
    for (uint32_t k = p->sent[id].next; k != GY_NONE; k = p->sent[k].next)
        d->send[d->packet.sends++] = p->sent[k].send;
}

/* An op of the same packet behind `id` signals the counter, too: a higher value, which holds for both. */
static bool is_signalled_later(const gy_resident_edges *all, uint32_t id, uint32_t counter, const gy_resident_plan *p)
{
    bool later = false;
    for (uint32_t k = p->sent[id].next; k != GY_NONE; k = p->sent[k].next)
        for (uint32_t i = all->first[k]; i < all->first[k + 1]; i++)
            later = later || all->at[i].counter == counter;
    return later;
}

static void add_signals_of(draft *d, const gy_cuda *h, uint32_t id, bool far, const gy_resident_plan *p)
{
    const gy_resident_edges *all = &h->resident->signals;
    for (uint32_t i = all->first[id]; i < all->first[id + 1]; i++)
        if (gy_resident_is_near(h, all->at[i].counter) == !far && !is_signalled_later(all, id, all->at[i].counter, p) &&
            gy_resident_lanes_of(h, all->at[i].counter).from == d->id)
            add_signal(d, h, &all->at[i]);
}

/* Those of the op and of the copies that it sends: within the GPU first, then others, and behind these those of
 * switches. */
static void add_signals(draft *d, const gy_cuda *h, uint32_t id, const gy_resident_plan *p)
{
    for (int far = 0; far < 2; far++)
        for (uint32_t k = id; k != GY_NONE; k = p->sent[k].next)
            add_signals_of(d, h, k, far, p);
}

/* Within the GPU first, then others. */
static void add_waits(draft *d, const gy_cuda *h, uint32_t id)
{
    const gy_resident_edges *all = &h->resident->waits;
    for (int far = 0; far < 2; far++)
        for (uint32_t i = all->first[id]; i < all->first[id + 1]; i++)
            if (gy_resident_is_near(h, all->at[i].counter) == !far &&
                gy_resident_lanes_of(h, all->at[i].counter).to == d->id)
                add_wait(d, h, &all->at[i]);
}

/* The verdict of a start, to each GPU that has workers and to the host: when the op may begin, whose waits are in the
 * draft, since behind it nobody could be told before the host can see what it has copied there. */
static void add_verdict(draft *d, const gy_cuda *h)
{
    const gy_resident *r = h->resident;
    gy_resident_call asking = { .words = GY_RESIDENT_ASK_WORDS, .grid = { 1, 1 } };
    memcpy(asking.word, &r->ask, sizeof r->ask);
    for (uint32_t i = 0; i <= h->devices; i++) {
        if (i < h->devices && !r->gpu[i].workers)
            continue;
        make_room(d, GY_RESIDENT_SIGNAL_WORDS + (d->call ? 0 : GY_RESIDENT_ASK_WORDS));
        d->call = &asking;
        d->packet.asks = 1;
        d->signal[d->packet.signals++] = (gy_resident_signal){ gy_resident_verdict(h, i), 1, 2 };
    }
    flush(d);
}

/* An op of one lane. */
static bool add_alone(gy_cuda *h, uint32_t id, const gy_resident_plan *p)
{
    const gy_resident *r = h->resident;
    const gantry_schedule *s = h->job->schedule;
    uint32_t lane = s->op_lane.at[s->ops.at[id].lane];
    draft d = { .id = lane, .lane = &r->lane[lane], .packet.op = id };
    add_waits(&d, h, id);
    if (id == r->ask_op)
        add_verdict(&d, h);
    add_calls(&d, id, p);
    add_signals(&d, h, id, p);
    end_packet(&d);
    return !d.nomem;
}

/* ---- ops of several lanes ---- */

/* The counter of a pair of lanes becomes one more, and the other lane waits for that. */
typedef struct meeting {
    uint32_t pair, value;
} meeting;

static meeting next_of(const gy_cuda *h, const gy_resident_plan *p, uint32_t from, uint32_t to)
{
    uint32_t pair = gy_resident_pair(h, from, to);
    return (meeting){ pair, ++p->met[pair] };
}

static gy_resident_edge edge_of(const gy_cuda *h, uint32_t op, meeting m)
{
    return (gy_resident_edge){ op, gy_resident_pair_counter(h, m.pair), m.value, 0 };
}

/* One op of several lanes while its packets are made. A lane tells those that work in a round that it has come to it;
 * those that work in the last round tell all that the op has ended. */
typedef struct joint_op {
    gy_cuda *h;
    const gy_resident_plan *p;
    uint32_t id, lanes, rounds;
    const uint32_t *lane;
    meeting *met; /* (rounds + 1) * lanes * lanes: round, from, to; the last of these are the ends */
    bool *works;  /* rounds * lanes: the lane has a share */
} joint_op;

static meeting *met(const joint_op *j, uint32_t round, uint32_t from, uint32_t to)
{
    return &j->met[(round * j->lanes + from) * j->lanes + to];
}

/* Shares are in the order of their rounds. */
static void find_works(joint_op *j)
{
    const gy_cuda_op *op = &j->h->op[j->id];
    for (uint32_t i = 0; i < op->shares; i++) {
        uint32_t device = gy_resident_share_device(j->h, j->id, &op->share[i]);
        for (uint32_t k = 0; k < j->lanes; k++)
            if (j->h->lane[j->lane[k]].queue.device == device)
                j->works[op->share[i].round * j->lanes + k] = true;
    }
}

static bool works(const joint_op *j, uint32_t round, uint32_t lane)
{
    return j->works[round * j->lanes + lane];
}

static void number_meetings(const joint_op *j)
{
    for (uint32_t r = 0; r <= j->rounds; r++)
        for (uint32_t a = 0; a < j->lanes; a++)
            for (uint32_t b = 0; b < j->lanes; b++)
                if (a != b && (r < j->rounds ? works(j, r, b) : works(j, r - 1, a)))
                    *met(j, r, a, b) = next_of(j->h, j->p, j->lane[a], j->lane[b]);
}

/* Signals of a packet come in any order, so a counter has no two of them. */
static void tell(const joint_op *j, draft *d, uint32_t round, uint32_t lane)
{
    if (d->packet.signals)
        end_packet(d);
    for (uint32_t k = 0; k < j->lanes; k++) {
        gy_resident_edge e = edge_of(j->h, j->id, *met(j, round, lane, k));
        if (e.value)
            add_signal(d, j->h, &e);
    }
}

static void await_others(const joint_op *j, draft *d, uint32_t round, uint32_t lane)
{
    for (uint32_t k = 0; k < j->lanes; k++) {
        gy_resident_edge e = edge_of(j->h, j->id, *met(j, round, k, lane));
        if (e.value)
            add_wait(d, j->h, &e);
    }
}

/* Telling comes behind what the lane has done, in its packet; waiting begins another packet. */
static void add_round(const joint_op *j, draft *d, uint32_t round, uint32_t lane)
{
    tell(j, d, round, lane);
    if (!works(j, round, lane))
        return;
    end_packet(d);
    await_others(j, d, round, lane);
    for (size_t i = j->p->first[j->id]; i < j->p->first[j->id + 1]; i++) {
        const gy_resident_call *call = &j->p->calls.at[i];
        if (call->lane != lane || call->round != round)
            continue;
        if (d->call)
            flush(d);
        make_room(d, call->words);
        d->call = call;
    }
}

/* Each lane waits and signals by the counters that are its own. */
static bool add_lane(const joint_op *j, uint32_t lane)
{
    draft d = { .id = j->lane[lane], .lane = &j->h->resident->lane[j->lane[lane]], .packet.op = j->id };
    add_waits(&d, j->h, j->id);
    for (uint32_t r = 0; r < j->rounds; r++)
        add_round(j, &d, r, lane);
    tell(j, &d, j->rounds, lane);
    end_packet(&d);
    await_others(j, &d, j->rounds, lane);
    add_signals(&d, j->h, j->id, j->p);
    end_packet(&d);
    return !d.nomem;
}

/* False: out of memory. */
static bool begin_joint(joint_op *j, gy_cuda *h, uint32_t id, const gy_resident_plan *p)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    uint32_t rounds = h->op[id].share[h->op[id].shares - 1].round + 1;
    *j = (joint_op){ h, p, id, op->lanes, rounds, &s->op_lane.at[op->lane], NULL, NULL };
    j->met = gy_calloc(((size_t)rounds + 1) * j->lanes * j->lanes, sizeof *j->met);
    j->works = gy_calloc((size_t)rounds * j->lanes, sizeof *j->works);
    if (!j->met || !j->works)
        return false;
    find_works(j);
    number_meetings(j);
    return true;
}

static void end_joint(joint_op *j)
{
    gy_free(j->met);
    gy_free(j->works);
}

static bool add_joint(gy_cuda *h, uint32_t id, const gy_resident_plan *p)
{
    joint_op j;
    bool done = begin_joint(&j, h, id, p);
    for (uint32_t k = 0; k < j.lanes && done; k++)
        done = add_lane(&j, k);
    end_joint(&j);
    return done;
}

bool gy_resident_count_meetings(gy_cuda *h, const gy_resident_plan *p)
{
    const gantry_schedule *s = h->job->schedule;
    gy_resident *r = h->resident;
    bool done = true;
    memset(p->met, 0, r->pairs.count * sizeof *p->met);
    for (uint32_t i = 0; i < s->ops.count && done; i++) {
        joint_op j = { 0 };
        if (s->ops.at[i].lanes > 1 && r->has[i])
            done = begin_joint(&j, h, i, p);
        end_joint(&j);
    }
    for (uint32_t i = 0; i < r->pairs.count; i++)
        r->signals_of[gy_resident_pair_counter(h, i)] = p->met[i];
    memset(p->met, 0, r->pairs.count * sizeof *p->met);
    return done;
}

bool gy_resident_add_op(gy_cuda *h, uint32_t id, const gy_resident_plan *p)
{
    return h->job->schedule->ops.at[id].lanes == 1 ? add_alone(h, id, p) : add_joint(h, id, p);
}
