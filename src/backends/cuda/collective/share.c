/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/collective/share.h"

#include "backends/cuda/kernels/kernels.h"
#include "base/error.h"
#include "base/vec.h"
#include <stdlib.h>
#include <string.h>

enum { GRAIN = 256 }; /* bounds of shares are multiples of so many bytes, and thereby of every element */

typedef struct plan {
    const gy_cuda *h;
    uint32_t op;
    const gy_op *what;
    const gy_exchange *exchange;
    GY_VEC(gy_share) share;
    bool from_one, to_one; /* all sources, or targets, are of one GPU */
    bool failed;           /* out of memory */
} plan;

static bool is_live(const gy_exchange_piece *piece)
{
    return piece->bytes && piece->targets;
}

static uint32_t device_of(const plan *p, uint32_t end)
{
    return gy_collective_end(p->h, p->op, 0, end, 0).device;
}

static uint32_t rank_of(const plan *p, uint32_t end)
{
    return p->h->job->schedule->use.at[p->what->use + p->exchange->end[end].use].rank;
}

static bool same_gpu(const plan *p, uint32_t a, uint32_t b)
{
    return a == b || (a != GY_NONE && b != GY_NONE && gy_cuda_same_gpu(p->h, a, b));
}

static bool reaches(const plan *p, uint32_t device, uint32_t first, uint32_t ends)
{
    for (uint32_t k = first; k < first + ends; k++) {
        uint32_t other = device_of(p, k);
        if (other == GY_NONE || !(same_gpu(p, device, other) || p->h->peer[device * p->h->devices + other]))
            return false;
    }
    return true;
}

/* True if a kernel of its device can carry out the share. */
static bool can_do(const plan *p, const gy_share *s)
{
    return s->device != GY_NONE && p->h->combine[s->device] && s->sources <= GY_CUDA_SOURCES &&
           s->targets <= GY_CUDA_TARGETS && reaches(p, s->device, s->source, s->sources) &&
           reaches(p, s->device, s->target, s->targets);
}

static void add(plan *p, gy_share s)
{
    uint32_t ranks = p->what->lanes;
    s.distance = (ranks + rank_of(p, s.target) - rank_of(p, s.source)) % ranks;
    p->failed |= !gy_vec_push(&p->share, s);
}

static gy_share whole(const gy_exchange_piece *piece)
{
    return (gy_share){ piece->source,  piece->sources,        piece->target,
                       piece->targets, .bytes = piece->bytes, .round = piece->round };
}

/* Part i of `count` parts of the share. */
static gy_share part_of(gy_share s, uint64_t i, uint64_t count)
{
    uint64_t grains = s.bytes / GRAIN, first = grains * i / count * GRAIN;
    uint64_t last = i + 1 < count ? grains * (i + 1) / count * GRAIN : s.bytes;
    s.offset += first;
    s.bytes = last - first;
    return s;
}

/* ---- little: one GPU does all of it, in one launch ---- */

static uint32_t count_ends(const plan *p, uint32_t device)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->exchange->ends; k++)
        count += same_gpu(p, device_of(p, k), device);
    return count;
}

/* The device that most ends are of; of equals, that of the lowest rank. */
static uint32_t busiest(const plan *p)
{
    uint32_t best = GY_NONE, most = 0;
    for (uint32_t r = 0; r < p->what->lanes; r++) {
        uint32_t device = gy_op_device(p->h->job->schedule, p->what, r), count = count_ends(p, device);
        if (p->h->device[device].gpu && count > most) {
            best = device;
            most = count;
        }
    }
    return best;
}

/* Bytes of the piece that cross links in one direction if the device does all of it. */
static uint64_t bytes_of(const plan *p, const gy_exchange_piece *piece, uint32_t device, bool in)
{
    uint32_t first = in ? piece->source : piece->target, ends = in ? piece->sources : piece->targets, far = 0;
    for (uint32_t k = first; k < first + ends; k++)
        far += !same_gpu(p, device, device_of(p, k));
    return far * piece->bytes;
}

static bool is_little(const plan *p, uint32_t device)
{
    uint64_t in = 0, out = 0;
    for (uint32_t i = 0; i < p->exchange->pieces; i++) {
        const gy_exchange_piece *piece = &p->exchange->piece[i];
        gy_share s = whole(piece);
        s.device = device;
        if (is_live(piece) && !can_do(p, &s))
            return false;
        in += bytes_of(p, piece, device, true);
        out += bytes_of(p, piece, device, false);
    }
    uint64_t most = p->h->op[p->op].counted ? 0 : GY_SHARE_LITTLE * (p->what->lanes - 1);
    return in <= most && out <= most && p->what->algorithm != GY_ALGORITHM_COPY;
}

static bool add_little(plan *p)
{
    uint32_t device = busiest(p);
    if (!is_little(p, device))
        return false;
    for (uint32_t i = 0; i < p->exchange->pieces; i++) {
        gy_share s = whole(&p->exchange->piece[i]);
        s.device = device;
        if (is_live(&p->exchange->piece[i]))
            add(p, s);
    }
    return true;
}

/* ---- one source ---- */

/* The GPU that has the source sends it. */
static void add_moves(plan *p, gy_share s)
{
    s.device = device_of(p, s.source);
    bool kernel = s.bytes < GY_SHARE_ENGINE || p->h->op[p->op].counted;
    if (kernel && p->what->algorithm != GY_ALGORITHM_COPY && can_do(p, &s)) {
        add(p, s);
        return;
    }
    s.way = GY_SHARE_COPY;
    for (uint32_t k = s.target, end = s.target + s.targets; k < end; k++) {
        s.target = k;
        s.targets = 1;
        add(p, s);
    }
}

/* A large piece that goes from one GPU to many: each gets a share, then sends it to all. */
static bool add_rounds(plan *p, const gy_exchange_piece *piece)
{
    gy_share s = whole(piece);
    uint32_t others = 0;
    s.device = device_of(p, piece->source);
    bool able = can_do(p, &s);
    for (uint32_t k = piece->target; k < piece->target + piece->targets && able; k++) {
        others += !same_gpu(p, s.device, device_of(p, k));
        able = reaches(p, device_of(p, k), piece->target, piece->targets);
    }
    bool asked = p->what->algorithm == GY_ALGORITHM_TWO_SHOT && others > 1;
    bool pays = p->what->algorithm != GY_ALGORITHM_ONE_SHOT && p->what->algorithm != GY_ALGORITHM_COPY && others > 2 &&
                piece->bytes >= GY_SHARE_ROUNDS;
    if (!able || !p->from_one || !(asked || pays) || p->h->op[p->op].counted)
        return false;
    for (uint32_t k = 0; k < piece->targets; k++) {
        gy_share share = part_of(s, k, piece->targets);
        if (share.bytes) {
            gy_share out = share, on = share;
            out.target = on.source = piece->target + k;
            out.targets = 1;
            on.round = 1;
            add_moves(p, out);
            add_moves(p, on);
        }
    }
    return true;
}

/* ---- several sources ---- */

static void add_for_host(plan *p, const gy_exchange_piece *piece)
{
    gy_share s = whole(piece);
    s.way = GY_SHARE_HOST;
    s.device = GY_NONE;
    add(p, s);
}

/* GPUs that can combine the piece: those of its targets, and where all results go to one GPU also those of its sources.
 */
static uint32_t find_workers(const plan *p, const gy_exchange_piece *piece, uint32_t *worker)
{
    uint32_t workers = 0, ends = piece->targets + (p->to_one ? piece->sources : 0);
    gy_share s = whole(piece);
    for (uint32_t i = 0; i < ends; i++) {
        bool known = false;
        s.device = device_of(p, i < piece->targets ? piece->target + i : piece->source + i - piece->targets);
        for (uint32_t k = 0; k < workers; k++)
            known = known || same_gpu(p, worker[k], s.device);
        if (!known && can_do(p, &s))
            worker[workers++] = s.device;
    }
    return workers;
}

/* `first`: pieces of which few GPUs have a share begin with another one each. */
static void add_combination(plan *p, const gy_exchange_piece *piece, uint32_t first)
{
    uint32_t worker[GY_CUDA_ENDS], workers = 0;
    gy_share s = whole(piece);
    if (piece->sources <= GY_CUDA_SOURCES && piece->targets <= GY_CUDA_TARGETS)
        workers = find_workers(p, piece, worker);
    if (workers == 0) {
        add_for_host(p, piece);
        return;
    }
    uint64_t least = p->h->op[p->op].counted ? GRAIN : GY_SHARE_LEAST; /* all wait for each other anyway */
    uint64_t wanted = (piece->bytes + least - 1) / least, count = wanted < workers ? wanted : workers;
    for (uint64_t i = 0; i < count; i++) {
        gy_share share = part_of(s, i, count);
        share.device = worker[(first + i) % workers];
        add(p, share);
    }
}

/* ---- all ---- */

static void look(plan *p)
{
    uint32_t from = GY_NONE, to = GY_NONE;
    p->from_one = p->to_one = true;
    for (uint32_t i = 0; i < p->exchange->pieces; i++) {
        const gy_exchange_piece *piece = &p->exchange->piece[i];
        for (uint32_t k = piece->source; is_live(piece) && k < piece->target + piece->targets; k++) {
            uint32_t *first = k < piece->target ? &from : &to;
            *first = *first == GY_NONE ? device_of(p, k) : *first;
            bool same = same_gpu(p, *first, device_of(p, k));
            p->from_one = p->from_one && (same || k >= piece->target);
            p->to_one = p->to_one && (same || k < piece->target);
        }
    }
}

static void add_all(plan *p)
{
    look(p);
    if (!p->exchange->staged && p->exchange->rounds < 2 && add_little(p))
        return;
    for (uint32_t i = 0; i < p->exchange->pieces; i++) {
        const gy_exchange_piece *piece = &p->exchange->piece[i];
        if (!is_live(piece))
            continue;
        if (p->exchange->staged)
            add_for_host(p, piece);
        else if (piece->sources > 1)
            add_combination(p, piece, i);
        else if (p->exchange->rounds > 1 || !add_rounds(p, piece))
            add_moves(p, whole(piece));
    }
}

/* Puts side by side what one launch carries out: shares of one GPU, combined or not. */
static int compare(const void *a, const void *b)
{
    const gy_share *x = a, *y = b;
    const uint64_t of_x[] = { x->round, x->way, x->device, x->sources > 1, x->distance, x->source, x->offset };
    const uint64_t of_y[] = { y->round, y->way, y->device, y->sources > 1, y->distance, y->source, y->offset };
    for (size_t i = 0; i < sizeof of_x / sizeof *of_x; i++)
        if (of_x[i] != of_y[i])
            return of_x[i] < of_y[i] ? -1 : 1;
    return (x->target > y->target) - (x->target < y->target);
}

gantry_status gy_shares_make(gy_cuda *h, uint32_t op, gantry_error *err)
{
    plan p = { .h = h, .op = op, .what = &h->job->schedule->ops.at[op], .exchange = gy_collective_exchange(h, op) };
    add_all(&p);
    gy_share *kept = gy_arena_alloc(&h->arena, (p.share.count + 1) * sizeof *kept);
    if (kept && !p.failed && p.share.count) {
        memcpy(kept, p.share.at, p.share.count * sizeof *kept);
        qsort(kept, p.share.count, sizeof *kept, compare);
    }
    h->op[op].share = kept;
    h->op[op].shares = (uint32_t)p.share.count;
    bool failed = p.failed || !kept;
    gy_vec_free(&p.share);
    return failed ? gy_fail_nomem(err) : GANTRY_OK;
}
