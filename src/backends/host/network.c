/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of the network: its queues side by side, each of which has one message under way at most. */
#include "backends/host/host.h"

#include "base/clock.h"
#include <sched.h>

/* Messages come within microseconds or take long. */
enum { POLLS = 200, YIELDS = 2000, NAP_NS = 50000 };

static bool is_to_stop(gy_host_run *h, uint64_t start)
{
    return atomic_load(&h->failed) <= start || gy_job_canceled(h->job) || gy_network_is_lost(h->job->network);
}

/* All that it waits for has ended, or something failed: then it is passed over. */
static bool is_ready(gy_host_run *h, const gy_step *step, uint64_t start)
{
    bool ready = true;
    for (uint32_t i = 0; i < step->waits && ready; i++)
        ready = gy_slot_is_set(&h->slot[h->plan.await[step->wait + i].slot], (uint32_t)start);
    return ready || atomic_load(&h->failed) <= start;
}

static void begin_step(gy_host_run *h, gy_host_queue *c, uint32_t op, uint64_t start)
{
    gy_worker_report(c->worker, start, c->at, true);
    c->begun = true;
    c->runs = gy_worker_may_run(c->worker, start, c->at);
    gy_host_cross_begin(c, &h->job->schedule->ops.at[op]);
    if (h->time && c->runs)
        h->time[op].start = gy_now_ns() - h->begin_ns[start % h->ring];
}

static void end_step(gy_host_run *h, gy_host_queue *c, const gy_step *step, uint64_t start)
{
    if (h->time && c->runs)
        h->time[step->op].end = gy_now_ns() - h->begin_ns[start % h->ring];
    for (uint32_t k = 0; k < step->sets; k++)
        gy_slot_set(&h->slot[h->plan.signal[step->set + k]], (uint32_t)start);
    c->begun = c->under_way = false;
    if (++c->at < c->worker->steps->count)
        gy_worker_report(c->worker, start, c->at, false);
}

/* The message is given up where it is to stop; after a failure that is of no account, and watch.c tells of a lost rank.
 * False: the step is as it was. */
static bool go_on(gy_host_run *h, gy_host_queue *c, uint64_t start)
{
    const gy_step *step = &c->worker->steps->at[c->at];
    if (!c->begun && !is_ready(h, step, start))
        return false;
    if (!c->begun)
        begin_step(h, c, step->op, start);
    if (c->runs && !gy_host_cross_pass(h, c)) {
        if (!is_to_stop(h, start))
            return false;
        gy_host_note_failure(h, (gy_host_failure){ .start = start, .op = step->op, .canceled = true });
    }
    end_step(h, c, step, start);
    return true;
}

/* Polls count from 0 since something moved last. `seen`: how often the bell had rung before it was looked at. */
static void pause_until_rung(gy_host_run *h, unsigned polls, uint32_t seen, bool under_way)
{
    if (!under_way && !gy_wait_awake(polls))
        gy_slot_sleep(&h->bell, seen, GY_SLEEP_NS);
    else if (under_way && polls >= POLLS + YIELDS)
        gy_slot_sleep(&h->bell, seen, NAP_NS);
    else if (under_way && polls >= POLLS)
        sched_yield();
}

static void run_start(gy_host_run *h, uint64_t start)
{
    uint32_t left = h->queues;
    for (uint32_t i = 0; i < h->queues; i++) {
        h->queue[i].at = 0;
        gy_worker_report(h->queue[i].worker, start, 0, false);
    }
    for (unsigned polls = 0; left > 0; polls++) {
        uint32_t seen = atomic_load(&h->bell.start);
        bool moved = false, under_way = false;
        left = 0;
        for (uint32_t i = 0; i < h->queues; i++) {
            gy_host_queue *c = &h->queue[i];
            while (c->at < c->worker->steps->count && go_on(h, c, start))
                moved = true;
            left += c->at < c->worker->steps->count;
            under_way = under_way || c->under_way;
        }
        atomic_store(&h->in_message, under_way);
        polls = moved ? 0 : polls;
        if (!moved && left)
            pause_until_rung(h, polls, seen, under_way);
    }
}

void *gy_host_network_main(void *run)
{
    gy_host_run *h = run;
    for (uint64_t start = 1; gy_host_await_begin(h, start); start++) {
        run_start(h, start);
        for (uint32_t i = 0; i < h->queues; i++)
            gy_host_end_start(h, start);
    }
    return NULL;
}
