/* SPDX-License-Identifier: Apache-2.0 */
/* A group of calls: whether they match, and what its kernels do. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

static job *jobs;                /* all, until the library is unloaded: work and graphs point into them */
static const job *holder[RANKS]; /* of each device */

/* ---- what a rank reads and writes ---- */

size_t sent(const call *c)
{
    size_t bytes = c->count * size_of(c->type), ranks = (size_t)c->comm->clique->ranks;
    bool nothing = c->what == RECV || (c->what == BROADCAST && c->root != c->comm->rank);
    return nothing ? 0 : c->what == REDUCE_SCATTER ? ranks * bytes : bytes;
}

static size_t received(const call *c)
{
    size_t bytes = c->count * size_of(c->type), ranks = (size_t)c->comm->clique->ranks;
    bool nothing = c->what == SEND || (c->what == REDUCE && c->root != c->comm->rank);
    return nothing ? 0 : c->what == ALL_GATHER ? ranks * bytes : bytes;
}

static bool meet(const char *a, size_t m, const char *b, size_t n)
{
    return m && n && a < b + n && b < a + m;
}

/* Where a call may write what it reads. */
static bool in_place(const call *c)
{
    size_t bytes = c->count * size_of(c->type), own = (size_t)c->comm->rank * bytes;
    return c->what == ALL_GATHER       ? c->from == c->to + own
           : c->what == REDUCE_SCATTER ? c->to == c->from + own
                                       : c->from == c->to;
}

static void check_memory(const job *j)
{
    for (int i = 0; i < j->count; i++) {
        const call *c = &j->calls[i];
        if (sent(c))
            fakeCudaCheck(c->from, sent(c), c->comm->device, "what NCCL sends");
        if (received(c))
            fakeCudaCheck(c->to, received(c), c->comm->device, "where NCCL receives");
        for (int k = 0; k < j->count; k++) {
            const call *d = &j->calls[k];
            if (c->comm != d->comm)
                continue;
            bool reads = meet(c->to, received(c), d->from, sent(d)) && !(i == k && in_place(c));
            bool writes = i != k && meet(c->to, received(c), d->to, received(d));
            if (reads || writes)
                fail_use("a rank receives where call %d of the group %s", k, reads ? "sends" : "receives");
        }
    }
}

/* ---- matching ---- */

/* The n-th call of a rank, of collectives; NULL: it has fewer. */
static const call *nth(const job *j, int rank, int n)
{
    for (int i = 0; i < j->count; i++)
        if (j->calls[i].comm->rank == rank && j->calls[i].what < SEND && n-- == 0)
            return &j->calls[i];
    return NULL;
}

/* Its place among the collectives of its rank. */
static int place_of(const job *j, const call *c)
{
    int n = 0;
    for (const call *d = j->calls; d < c; d++)
        n += d->comm == c->comm && d->what < SEND;
    return n;
}

/* The receive that belongs to a send, or the send to a receive: the n-th of one is the n-th of the other. */
static const call *partner(const job *j, const call *c)
{
    int n = 0;
    for (const call *d = j->calls; d < c; d++)
        n += d->comm == c->comm && d->what == c->what && d->root == c->root;
    for (int i = 0; i < j->count; i++) {
        const call *d = &j->calls[i];
        bool other = d->what == (c->what == SEND ? RECV : SEND);
        if (other && d->comm->rank == c->root && d->root == c->comm->rank && n-- == 0)
            return d;
    }
    return NULL;
}

static bool same_call(const call *a, const call *b)
{
    return b && a->what == b->what && a->count == b->count && a->type == b->type && a->op == b->op &&
           a->root == b->root;
}

void job_check(const job *j)
{
    for (int i = 0; i < j->count; i++) {
        const call *c = &j->calls[i];
        if (c->what >= SEND) {
            const call *d = partner(j, c);
            if (j->clique->apart && !j->clique->comm[c->root])
                continue;
            if (!d || d->count != c->count || d->type != c->type)
                fail_use("rank %d and rank %d do not agree on what is sent", c->comm->rank, c->root);
        }
        for (int r = 0; c->what < SEND && r < j->clique->ranks; r++)
            if (j->clique->comm[r] && !same_call(c, nth(j, r, place_of(j, c))))
                fail_use("rank %d does not make the call %d of rank %d", r, place_of(j, c), c->comm->rank);
        if (fakeCudaDeviceOf(c->stream) != c->comm->device)
            fail_use("rank %d is on device %d, its stream is not", c->comm->rank, c->comm->device);
        if (j->stream[c->comm->rank] != c->stream)
            fail_use("rank %d uses two streams in one group", c->comm->rank);
    }
    check_memory(j);
}

/* ---- kernels ---- */

static int may_hold(void *data)
{
    const part *p = data;
    const job *j = p->job;
    int device = j->clique->comm[p->rank]->device;
    if (fakeCudaTaken(device)) /* kernels that were aborted have to begin, too */
        return -2;
    return j->clique->aborted || !holder[device] || holder[device] == j;
}

static void read_rank(job *j, int rank)
{
    for (int i = 0; i < j->local && !j->begun[rank]; i++) {
        const call *c = &j->calls[i];
        if (c->comm->rank == rank && sent(c))
            memcpy(j->source[i], c->from, sent(c));
    }
    j->begun[rank] = true;
}

/* Bytes where a rank receives, from `from` or all 0x5A. What is moved in place is not written: the root of a broadcast
 * and what a rank gives to an all_gather may be read by others meanwhile. */
static void write_call(const call *c, const char *from)
{
    size_t bytes = c->count * size_of(c->type), own = (size_t)c->comm->rank * bytes, all = received(c);
    size_t skip = c->what == BROADCAST && c->root == c->comm->rank ? all : c->what == ALL_GATHER ? bytes : 0;
    size_t begin = skip && in_place(c) ? (c->what == ALL_GATHER ? own : 0) : all,
           end = begin + (begin < all ? skip : 0);
    for (size_t i = 0; i < all; i++)
        if (i < begin || i >= end)
            c->to[i] = from ? from[i] : 0x5A;
}

/* A kernel may send as soon as it has begun, and write where it receives: whoever has not come to the end of what was
 * there before, or has not made what is sent, is seen now and then. */
static void begin_rank(void *data)
{
    const part *p = data;
    job *j = p->job;
    holder[j->clique->comm[p->rank]->device] = j;
    fakeCudaOccupy(j->clique->comm[p->rank]->device, 1);
    if (j->clique->aborted || fakeCudaDraw() % 2)
        return;
    read_rank(j, p->rank);
    for (int i = 0; i < j->count; i++) {
        const call *c = &j->calls[i];
        if (c->comm->rank == p->rank && received(c))
            write_call(c, NULL);
    }
}

static int may_end(void *data)
{
    job *j = data;
    if (j->clique->apart && !j->hangs && !j->clique->aborted)
        return apart_ready(j) ? 1 : -2;
    return j->hangs && !j->clique->aborted ? -1 : 1;
}

/* Ranks are combined in an order that begins after the root, or the rank itself. */
static const char *source_of(const job *j, const call *c)
{
    return j->source[c - j->calls];
}

static void reduce(const job *j, const call *c, char *to, size_t offset)
{
    size_t bytes = c->count * size_of(c->type);
    int first = c->what == ALL_REDUCE ? j->clique->ranks - 1 : c->comm->rank + 1;
    for (int k = 0; k < j->clique->ranks; k++) {
        const call *d = nth(j, (first + k) % j->clique->ranks, place_of(j, c));
        if (k == 0)
            memcpy(to, source_of(j, d) + offset, bytes);
        else
            combine(c->type, c->op, to, source_of(j, d) + offset, c->count);
    }
}

static void read_call(const job *j, const call *c, char *to)
{
    size_t bytes = c->count * size_of(c->type);
    switch (c->what) {
    case ALL_REDUCE:
    case REDUCE:
        reduce(j, c, to, 0);
        break;
    case REDUCE_SCATTER:
        reduce(j, c, to, (size_t)c->comm->rank * bytes);
        break;
    case BROADCAST:
        memcpy(to, source_of(j, nth(j, c->root, place_of(j, c))), bytes);
        break;
    case ALL_GATHER:
        for (int r = 0; r < j->clique->ranks; r++)
            memcpy(to + (size_t)r * bytes, source_of(j, nth(j, r, place_of(j, c))), bytes);
        break;
    case RECV:
        memcpy(to, source_of(j, partner(j, c)), bytes);
        break;
    case SEND:
        break;
    }
}

/* All ranks have begun. */
static void read_all(void *data)
{
    job *j = data;
    for (int r = 0; r < j->clique->ranks && !j->clique->aborted; r++)
        read_rank(j, r);
    memset(j->begun, 0, sizeof j->begun);
    if (j->clique->apart && !j->clique->aborted)
        apart_fetch(j);
    for (int i = 0; i < j->local && !j->clique->aborted; i++)
        if (received(&j->calls[i]))
            read_call(j, &j->calls[i], j->result[i]);
}

/* Sends to other processes. */
static void send_all(void *data)
{
    job *j = data;
    for (int r = 0; r < j->clique->ranks && !j->clique->aborted; r++)
        read_rank(j, r);
    if (!j->clique->aborted)
        apart_publish(j);
}

static void write_rank(void *data)
{
    const part *p = data;
    const job *j = p->job;
    for (int i = 0; i < j->local && !j->clique->aborted; i++) {
        const call *c = &j->calls[i];
        if (c->comm->rank == p->rank && received(c))
            write_call(c, j->result[i]);
    }
    int device = j->clique->comm[p->rank]->device;
    fakeCudaOccupy(device, -1);
    holder[device] = holder[device] == j ? NULL : holder[device];
}

static void hold_graph(void *data, int by)
{
    const job *j = data;
    j->clique->graphs += by;
}

static void hold_nothing(void *data, int by)
{
    (void)data;
    (void)by;
}

static int queue(const CUstream *streams, int count, void (*body)(void *), int (*ready)(void *),
                 void (*hold)(void *, int), void *data)
{
    return (int)fakeCudaQueue(streams, count, &(fakeCudaJob){ body, ready, hold, data });
}

void job_launch(job *j)
{
    int ranks = 0, code = 0;
    CUstream streams[RANKS];
    j->next = jobs;
    jobs = j;
    for (int i = 0; i < j->count; i++) {
        j->result[i] = malloc(received(&j->calls[i]) + 1);
        j->source[i] = malloc(sent(&j->calls[i]) + 1);
    }
    for (int r = 0; r < j->clique->ranks; r++) { /* of pairs, some ranks may be left out */
        j->part[r] = (part){ j, r };
        if (j->stream[r]) {
            streams[ranks++] = j->stream[r];
            code |= queue(&j->stream[r], 1, begin_rank, may_hold, hold_nothing, &j->part[r]);
        }
    }
    code |= j->clique->apart ? queue(streams, ranks, send_all, NULL, hold_nothing, j) : 0;
    code |= queue(streams, ranks, read_all, may_end, hold_graph, j);
    for (int r = 0; r < j->clique->ranks; r++)
        if (j->stream[r])
            code |= queue(&j->stream[r], 1, write_rank, NULL, hold_nothing, &j->part[r]);
    for (int r = 0; r < j->clique->ranks && code; r++)
        if (j->clique->comm[r])
            j->clique->comm[r]->then = ncclUnhandledCudaError;
}

void jobs_free(void)
{
    while (jobs) {
        job *j = jobs;
        jobs = j->next;
        for (int i = 0; i < j->count; i++) {
            if (i < j->local)
                free(j->result[i]);
            free(j->source[i]);
        }
        free(j->number);
        free(j->result);
        free(j->source);
        free(j->calls);
        free(j);
    }
}
