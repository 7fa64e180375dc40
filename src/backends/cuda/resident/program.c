/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: the packets of each lane, and who carries them out. */
#include "backends/cuda/resident/packets.h"

#include "base/error.h"
#include "schedule/stretches/stretches.h"
#include <math.h>
#include <string.h>

/* Where it was not measured: a stretch of fewer ops between others is left to the stream, as to switch twice is taken
 * to be longer than to launch them. */
enum { LEAST_STRETCH = 4 };

/* ---- who carries out what ---- */

static void make_unfit(gy_resident *r, uint32_t id, const char *why)
{
    r->can[id] = 0;
    if (r->unfit_op == GY_NONE || id < r->unfit_op) {
        r->unfit_op = id;
        r->unfit_why = why;
    }
}

/* Finds the calls of all ops that workers have code for. */
static gantry_status find_calls(gy_cuda *h, uint32_t turn, gy_resident_plan *p, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    h->resident->far.count = 0;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const char *why = NULL;
        p->first[i] = p->calls.count;
        if (h->resident->can[i])
            GY_TRY(gy_resident_calls_of(h, i, turn, &p->calls, &why, err));
        if (why)
            make_unfit(h->resident, i, why);
    }
    p->first[s->ops.count] = p->calls.count;
    return GANTRY_OK;
}

/* A stretch of a lane so far: `before` leads from op to op. */
typedef struct stretch {
    uint32_t last, ops;
    bool mixed; /* the lane has ops that workers have no code for */
} stretch;

static void end_stretch(gy_resident *r, stretch *s, const uint32_t *before)
{
    bool left = s->mixed && s->ops < LEAST_STRETCH;
    for (uint32_t op = s->last; left && s->ops > 0; op = before[op], s->ops--)
        r->has[op] = 0;
    s->ops = 0;
}

static void find_stretches(gy_cuda *h, stretch *of, uint32_t *before)
{
    const gantry_schedule *s = h->job->schedule;
    gy_resident *r = h->resident;
    memcpy(r->has, r->can, s->ops.count);
    for (uint32_t i = 0; i < s->ops.count; i++)
        for (uint32_t k = 0; k < s->ops.at[i].lanes; k++)
            of[s->op_lane.at[s->ops.at[i].lane + k]].mixed |= !r->can[i];
    for (uint32_t i = 0; i < s->ops.count; i++) {
        for (uint32_t k = 0; k < s->ops.at[i].lanes; k++) {
            stretch *now = &of[s->op_lane.at[s->ops.at[i].lane + k]];
            if (!r->can[i]) {
                end_stretch(r, now, before);
                continue;
            }
            before[i] = now->last;
            now->last = i;
            now->ops++;
        }
    }
    for (uint32_t i = 0; i < h->lanes; i++)
        end_stretch(r, &of[i], before);
}

/* Copies that one kernel of a stream makes are left to it together: it waits for what each of them waits for. */
static void keep_carried(gy_cuda *h)
{
    gy_resident *r = h->resident;
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++) {
        bool all = true;
        for (uint32_t k = i; h->op[i].by_kernel && k != GY_NONE; k = h->op[k].carries)
            all = all && r->has[k];
        for (uint32_t k = i; !all && k != GY_NONE; k = h->op[k].carries)
            r->has[k] = 0;
    }
}

static bool is_at_host(const gy_cuda *h, const gy_use *use)
{
    return gy_cuda_location(h, use, 0).device == GY_NONE;
}

/* Functions of the host need no multiprocessor, nor do copies with the host that copy engines make; and no worker is
 * there when NCCL needs some. */
static gy_streamed needs_of(const gy_cuda *h, uint32_t id)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    if (op->kind == GY_OP_HOST || h->op[id].nccl)
        return GY_STREAMED_NOTHING;
    if (!gy_op_is_copy(op))
        return GY_STREAMED_KERNELS;
    bool by_engine = !h->op[id].by_kernel && !h->op[id].carried;
    for (uint32_t k = 0; k < op->uses / 2 && by_engine; k++)
        by_engine = is_at_host(h, &s->use.at[op->use + k]) || is_at_host(h, &s->use.at[op->use + op->uses / 2 + k]);
    return by_engine ? GY_STREAMED_NOTHING : GY_STREAMED_COPIES;
}

/* A stream has the op. */
static void note_streamed(gy_cuda *h, uint32_t lane, uint32_t id)
{
    gy_resident_gpu *g = &h->resident->gpu[h->lane[lane].queue.device];
    gy_streamed what = needs_of(h, id);
    g->streamed = what > g->streamed ? what : g->streamed;
}

static void count_ops(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    gy_resident *r = h->resident;
    for (uint32_t i = 0; i < h->devices; i++)
        r->gpu[i].streamed = GY_STREAMED_NOTHING;
    for (uint32_t i = 0; i < h->lanes; i++)
        r->lane[i].resident = r->lane[i].streamed = 0;
    r->lefts = 0;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        if (!r->has[i])
            r->left[r->lefts++] = i;
        for (uint32_t k = 0; k < s->ops.at[i].lanes; k++) {
            gy_resident_lane *l = &r->lane[s->op_lane.at[s->ops.at[i].lane + k]];
            l->resident += r->has[i];
            l->streamed += !r->has[i];
            if (!r->has[i])
                note_streamed(h, s->op_lane.at[s->ops.at[i].lane + k], i);
        }
    }
}

/* As was measured, else by the number of ops. */
static gantry_status choose_stretches(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    if (gy_stretches_known(s))
        return gy_stretches_choose(s, h->resident->can, h->resident->cut, h->resident->has, err);
    stretch *of = gy_calloc(h->lanes + 1, sizeof *of);
    uint32_t *before = gy_calloc(s->ops.count + 1, sizeof *before);
    gantry_status status = of && before ? GANTRY_OK : gy_fail_nomem(err);
    if (status == GANTRY_OK) {
        find_stretches(h, of, before);
        status = gy_resident_leave_short(h, err);
    }
    gy_free(of);
    gy_free(before);
    return status;
}

/* Decides which ops workers carry out. If that is not as before, all programs are stale, and counters begin anew. */
static gantry_status deal_out(gy_cuda *h, gantry_error *err)
{
    gy_resident *r = h->resident;
    size_t ops = h->job->schedule->ops.count;
    uint8_t *had = gy_calloc(ops + 1, sizeof *had);
    gantry_status status = had ? GANTRY_OK : gy_fail_nomem(err);
    if (status == GANTRY_OK) {
        memcpy(had, r->has, ops);
        status = gy_resident_cut_detours(h, r->can, err); /* as many as there may be */
        status = status ? status : choose_stretches(h, err);
    }
    if (status == GANTRY_OK) {
        keep_carried(h);
        count_ops(h);
        status = gy_resident_cut_detours(h, r->has, err);
    }
    if (status == GANTRY_OK && memcmp(had, r->has, ops) != 0) {
        gy_resident_end(h, true);
        for (uint32_t t = 0; t < h->turns; t++)
            gy_resident_stale(h, t);
        status = gy_resident_table(h, err);
    }
    gy_free(had);
    return status;
}

/* A stream's kernel may need all of a multiprocessor, so half of these are left to them. Where streams have no kernels
 * but those that copy, each multiprocessor has a worker and room for one of these. */
static uint32_t room_of(const gy_cuda *h, uint32_t device)
{
    const gy_resident_gpu *g = &h->resident->gpu[device];
    uint32_t all = (uint32_t)g->code->processors, half = all / 2 > 0 ? all / 2 : 1;
    return g->streamed == GY_STREAMED_NOTHING  ? all * (uint32_t)g->code->places
           : g->streamed == GY_STREAMED_COPIES ? all
                                               : half;
}

/* The blocks of all calls of each lane that workers can share, and the most that a call has. */
static void find_widest(gy_cuda *h, const gy_resident_plan *p)
{
    const gantry_schedule *s = h->job->schedule;
    gy_resident *r = h->resident;
    for (uint32_t i = 0; i < h->lanes; i++) {
        r->lane[i].widest = 0;
        r->lane[i].shared = 0;
    }
    for (uint32_t i = 0; i < s->ops.count; i++) {
        for (size_t k = p->first[i]; r->has[i] && k < p->first[i + 1]; k++) {
            gy_resident_lane *l = &r->lane[s->op_lane.at[s->ops.at[i].lane + p->calls.at[k].lane]];
            uint32_t blocks = p->calls.at[k].grid[0] * p->calls.at[k].grid[1];
            l->widest = blocks > l->widest ? blocks : l->widest;
            l->shared += blocks >= GY_RESIDENT_LEAST_SHARED ? blocks : 0;
        }
    }
}

/* One more than it has is of use to the lane. */
static bool wants_more(const gy_resident_lane *l)
{
    return l->resident && l->shared > 0 && l->workers < l->widest;
}

/* Of the GPU's workers that are left, the share of each of its lanes by the square root of its blocks. A lane that can
 * use no more than a part of its share gets that part, and true is returned: others have more then. */
static bool deal_workers(gy_cuda *h, uint32_t device, double roots, uint32_t *left)
{
    uint32_t before = *left;
    bool any = false;
    for (int part = 1; part >= 0 && !any; part--) { /* first those that get all they can use */
        for (uint32_t i = 0; i < h->lanes; i++) {
            gy_resident_lane *l = &h->resident->lane[i];
            if (h->lane[i].queue.device != device || !wants_more(l))
                continue;
            uint32_t share = (uint32_t)(before * sqrt((double)l->shared) / roots), most = l->widest - l->workers;
            if (part && share < most)
                continue;
            any = any || part;
            l->workers += share < most ? share : most;
            *left -= share < most ? share : most;
        }
    }
    return any;
}

static double roots_of(const gy_cuda *h, uint32_t device)
{
    double sum = 0;
    for (uint32_t i = 0; i < h->lanes; i++)
        if (h->lane[i].queue.device == device && wants_more(&h->resident->lane[i]))
            sum += sqrt((double)h->resident->lane[i].shared);
    return sum;
}

/* Each lane has a worker, and what is left goes to lanes with wide calls. How long a call takes goes by its blocks for
 * each worker of its lane, and what lanes do one after the other takes the least time in all if workers are dealt out
 * by the square roots of their blocks; lanes that are alike, and overlap, have as many each. */
static void share_room(gy_cuda *h, const gy_resident_plan *p)
{
    gy_resident *r = h->resident;
    find_widest(h, p);
    for (uint32_t i = 0; i < h->devices; i++)
        r->gpu[i].lanes = r->gpu[i].workers = 0;
    for (uint32_t i = 0; i < h->lanes; i++) {
        gy_resident_gpu *g = &r->gpu[h->lane[i].queue.device];
        r->lane[i].workers = r->lane[i].resident > 0;
        if (r->lane[i].resident)
            r->lane[i].meet = g->lanes++;
    }
    for (uint32_t i = 0; i < h->devices; i++) {
        gy_resident_gpu *g = &r->gpu[i];
        uint32_t room = g->lanes ? room_of(h, i) : 0, left = room > g->lanes ? room - g->lanes : 0;
        double roots;
        while (left && (roots = roots_of(h, i)) > 0 && deal_workers(h, i, roots, &left))
            ;
    }
    for (uint32_t i = 0; i < h->lanes; i++)
        r->gpu[h->lane[i].queue.device].workers += r->lane[i].workers;
}

/* The first device that has no room for its workers; as many as there are: none. */
static uint32_t crowded(const gy_cuda *h)
{
    uint32_t i = 0;
    while (i < h->devices && (!h->resident->gpu[i].workers || h->resident->gpu[i].workers <= room_of(h, i)))
        i++;
    return i;
}

/* Replay "auto" took this schedule for what workers would need for all that is computed, and streams have a part. */
static bool is_void(const gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    bool computes = false;
    for (uint32_t i = 0; i < h->resident->lefts && !computes; i++) {
        const gy_op *op = &s->ops.at[h->resident->left[i]];
        computes = s->machine->device[gy_op_device(s, op, 0)].gpu && !gy_op_is_copy(op);
    }
    return computes && s->machine->workers && s->by_host > 0;
}

/* NULL: it has room for workers of all lanes. */
static const char *no_room(gy_cuda *h)
{
    static const char why[] = "a GPU has more lanes than it can run blocks at once";
    uint32_t i = crowded(h);
    if (i == h->devices)
        return NULL;
    const char *text =
        gy_arena_printf(&h->arena,
                        "%s (%u on \"%.40s\", those that copy too, and it can run %u): give its device of "
                        "the machine fewer \"lanes\"",
                        why, h->resident->gpu[i].workers, h->job->schedule->machine->device[i].id, room_of(h, i));
    return text ? text : why;
}

static const char *between_detours(gy_cuda *h)
{
    const char *pair = gy_resident_unreached(h);
    const char *text = gy_arena_printf(&h->arena, "workers have only few ops between two waits of such GPUs: %s", pair);
    return text ? text : pair;
}

static const char *obstacle(gy_cuda *h)
{
    const gy_resident *r = h->resident;
    const gantry_schedule *s = h->job->schedule;
    if (is_void(h))
        return r->unfit_why ? r->unfit_why
                            : "streams would have to compute a part of what was planned for workers: use the replay "
                              "mode \"device\" or \"graph\"";
    if (gy_stretches_work(s, r->has))
        return no_room(h);
    if (r->detours.count && !gy_stretches_known(s) && gy_stretches_work(s, r->can))
        return between_detours(h);
    return gy_stretches_known(s) && gy_stretches_work(s, r->can)
               ? "as was measured, launches take less time than workers for each stretch of its ops"
               : "workers have code for no stretch of its ops: they have formulas, small kernels of the library, and "
                 "code that declares \"resident\"";
}

/* Streams make all copies to and from the host, whose lanes then need no worker. */
static void leave_host_copies(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        bool at_host = false;
        for (uint32_t k = 0; k < op->uses && gy_op_is_copy(op); k++)
            at_host = at_host || is_at_host(h, &s->use.at[op->use + k]);
        if (at_host && h->resident->can[i])
            make_unfit(h->resident, i, "its GPU has no room for workers of lanes that copy to and from the host, too");
    }
}

/* ---- memory of a program ---- */

/* The table of workers comes first; packets begin at multiples of their size, as they are fetched in words of 16 bytes.
 */
uint64_t gy_resident_table_bytes(const gy_resident_gpu *g)
{
    uint64_t packets =
        (g->entries * sizeof(gy_resident_worker) + sizeof(gy_resident_packet) - 1) / sizeof(gy_resident_packet);
    return packets * sizeof(gy_resident_packet);
}

static uint64_t packets_end(const gy_cuda *h, uint32_t device)
{
    const gy_resident *r = h->resident;
    uint64_t bytes = gy_resident_table_bytes(&r->gpu[device]);
    for (uint32_t i = 0; i < h->lanes; i++)
        if (r->lane[i].resident && h->lane[i].queue.device == device)
            bytes += (r->lane[i].leader.count + r->lane[i].helper.count) * sizeof(gy_resident_packet);
    return bytes;
}

/* Behind the packets are parameters that these have no room for: of all GPUs, since few have some. */
static uint64_t far_bytes(const gy_cuda *h)
{
    return h->resident->far.count * sizeof *h->resident->far.at;
}

static uint64_t bytes_of(const gy_cuda *h, uint32_t device)
{
    return packets_end(h, device) + far_bytes(h);
}

static gantry_status make_memory(gy_cuda *h, uint32_t device, uint32_t turn, gantry_error *err)
{
    gy_resident_turn *t = &h->resident->gpu[device].turn[turn];
    uint64_t bytes = bytes_of(h, device);
    if (!h->resident->gpu[device].workers || bytes <= t->room)
        return GANTRY_OK;
    GY_TRY(gy_cuda_use(h, device, err));
    if (t->at)
        h->d.cuMemFree(t->at);
    if (t->host)
        h->d.cuMemFreeHost(t->host);
    gy_vec_free(&t->segment);
    *t = (gy_resident_turn){ .stale = true };
    GY_TRY(gy_cuda_allocate(h, &t->at, device, bytes, "the program of its resident kernel", err));
    GY_TRY(gy_cuda_pinned(h, (void **)&t->host, bytes, err));
    t->room = bytes;
    return GANTRY_OK;
}

/* The index of parameters becomes their address. */
static void point_to_far(gy_resident_packet *p, uint64_t far)
{
    uint32_t word = (uint32_t)GY_RESIDENT_WAIT_WORDS * p->waits + (uint32_t)GY_RESIDENT_SIGNAL_WORDS * p->signals +
                    (uint32_t)GY_RESIDENT_SEND_WORDS * p->sends + (uint32_t)GY_RESIDENT_ASK_WORDS * p->guarded;
    if (p->function & GY_RESIDENT_FAR)
        p->word[word] = far + p->word[word] * sizeof *p->word;
}

/* Appends packets at `at`; returns their address on the GPU, where those parameters lie from address `far` on. */
static const gy_resident_packet *put(const gy_resident_turn *t, uint64_t *at, const gy_resident_packets *from,
                                     uint64_t far)
{
    uint64_t address = t->at + *at;
    gy_resident_packet *to = (gy_resident_packet *)(void *)(t->host + *at);
    for (size_t i = 0; i < from->count; i++) {
        to[i] = from->at[i];
        point_to_far(&to[i], far);
    }
    *at += from->count * sizeof *from->at;
    return (const gy_resident_packet *)(uintptr_t)address;
}

/* The entries of the workers of a lane, of which the first is number `worker` of its GPU, for its k-th part. */
static void write_part(const gy_cuda *h, uint32_t id, gy_resident_turn *t, size_t k,
                       const gy_resident_packet *const packet[2], uint32_t worker)
{
    const gy_resident_lane *l = &h->resident->lane[id];
    const gy_resident_gpu *g = &h->resident->gpu[h->lane[id].queue.device];
    gy_resident_part from = l->part.at[k], to = { 0, (uint32_t)l->leader.count, (uint32_t)l->helper.count };
    gy_resident_segment *s = &t->segment.at[from.segment];
    to = k + 1 < l->part.count ? l->part.at[k + 1] : to;
    uint64_t meet = g->block + g->meets_at + l->meet * sizeof(gy_resident_meet);
    for (uint32_t i = 0; i < l->workers; i++) {
        uint32_t packets = i == 0 ? to.leader - from.leader : to.helper - from.helper;
        uint64_t progress = g->block + g->progress_at + (worker + i) * sizeof(uint64_t);
        gy_resident_worker *table = (gy_resident_worker *)(void *)t->host;
        table[s->first + s->workers++] =
            (gy_resident_worker){ .packet = i == 0 ? packet[0] + from.leader : packet[1] + from.helper,
                                  .meet = (gy_resident_meet *)(uintptr_t)meet,
                                  .progress = (uint64_t *)(uintptr_t)progress,
                                  .packets = packets,
                                  .ring = packets,
                                  .index = i,
                                  .workers = l->workers };
    }
}

static void write_lane(gy_cuda *h, uint32_t id, gy_resident_turn *t, uint64_t *at, uint32_t *worker)
{
    gy_resident_lane *l = &h->resident->lane[id];
    uint64_t far = t->at + packets_end(h, h->lane[id].queue.device);
    const gy_resident_packet *leader = put(t, at, &l->leader, far), *helper = put(t, at, &l->helper, far);
    for (size_t k = 0; k < l->part.count; k++)
        write_part(h, id, t, k, (const gy_resident_packet *const[]){ leader, helper }, *worker);
    *worker += l->workers;
}

static bool is_on(const gy_cuda *h, uint32_t lane, uint32_t device)
{
    return h->resident->lane[lane].resident && h->lane[lane].queue.device == device;
}

/* Finds where the entries of each segment begin; they are to be filled in. */
static gantry_status place_segments(const gy_cuda *h, uint32_t device, gy_resident_turn *t, gantry_error *err)
{
    const gy_resident *r = h->resident;
    uint32_t first = 0;
    t->segment.count = 0;
    for (uint32_t i = 0; i < r->segments; i++)
        if (!gy_vec_push(&t->segment, ((gy_resident_segment){ 0, 0 })))
            return gy_fail_nomem(err);
    for (uint32_t i = 0; i < h->lanes; i++)
        for (size_t k = 0; is_on(h, i, device) && k < r->lane[i].part.count; k++)
            t->segment.at[r->lane[i].part.at[k].segment].workers += r->lane[i].workers;
    for (uint32_t i = 0; i < r->segments; i++) {
        uint32_t workers = t->segment.at[i].workers;
        t->segment.at[i] = (gy_resident_segment){ first, 0 };
        first += workers;
    }
    return GANTRY_OK;
}

/* Lies on the GPU ahead of the next kernel in its stream. */
static gantry_status write_program(gy_cuda *h, uint32_t device, uint32_t turn, gantry_error *err)
{
    gy_resident_gpu *g = &h->resident->gpu[device];
    gy_resident_turn *t = &g->turn[turn];
    uint64_t bytes = bytes_of(h, device), at = gy_resident_table_bytes(g);
    uint32_t worker = 0;
    t->stale = g->ring.made = false;
    GY_TRY(place_segments(h, device, t, err));
    if (!g->workers)
        return GANTRY_OK;
    for (uint32_t i = 0; i < h->lanes; i++)
        if (is_on(h, i, device))
            write_lane(h, i, t, &at, &worker);
    if (far_bytes(h))
        memcpy(t->host + at, h->resident->far.at, far_bytes(h));
    GY_TRY(gy_cuda_use(h, device, err));
    CUresult code = h->d.cuMemcpyHtoDAsync(t->at, t->host, bytes, g->queue.stream);
    return code == CUDA_SUCCESS ? GANTRY_OK
                                : gy_cuda_fail(h, code, device, "uploading the program of its resident kernel", err);
}

/* ---- all ---- */

/* The op's packets come next in its lanes, in this segment. */
static bool begin_parts(gy_cuda *h, uint32_t id, uint32_t segment)
{
    const gantry_schedule *s = h->job->schedule;
    bool done = true;
    for (uint32_t k = 0; k < s->ops.at[id].lanes && done; k++) {
        gy_resident_lane *l = &h->resident->lane[s->op_lane.at[s->ops.at[id].lane + k]];
        gy_resident_part part = { segment, (uint32_t)l->leader.count, (uint32_t)l->helper.count };
        if (!l->part.count || gy_vec_last(&l->part)->segment != segment)
            done = gy_vec_push(&l->part, part);
    }
    return done;
}

static gantry_status add_packets(gy_cuda *h, const gy_resident_plan *p, gantry_error *err)
{
    uint32_t segment = 0;
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++) {
        segment += gy_resident_ends_ahead(h->resident, i);
        if (gy_resident_has(h, i) && p->sent[i].launch == GY_NONE &&
            !(begin_parts(h, i, segment) && gy_resident_add_op(h, i, p)))
            return gy_fail_nomem(err);
    }
    for (uint32_t i = 0; i < h->devices; i++)
        h->resident->gpu[i].entries = 0;
    for (uint32_t i = 0; i < h->lanes; i++)
        h->resident->gpu[h->lane[i].queue.device].entries +=
            (uint32_t)h->resident->lane[i].part.count * h->resident->lane[i].workers;
    return GANTRY_OK;
}

static gantry_status add_ops(gy_cuda *h, const gy_resident_plan *p, gantry_error *err)
{
    gy_resident *r = h->resident;
    for (uint32_t i = 0; i < h->lanes; i++)
        r->lane[i].leader.count = r->lane[i].helper.count = r->lane[i].part.count = 0;
    if (!gy_resident_count_meetings(h, p))
        return gy_fail_nomem(err);
    GY_TRY(add_packets(h, p, err));
    for (uint32_t i = 0; i < h->lanes; i++)
        if (r->lane[i].helper.count >= GY_RESIDENT_SHARED)
            gy_resident_give_up(h,
                                "a lane has more ops than resident kernels can count: give devices of the machine more "
                                "\"lanes\", or let a part of the graph repeat");
    return GANTRY_OK;
}

static gantry_status build(gy_cuda *h, uint32_t turn, gy_resident_plan *p, gantry_error *err)
{
    gy_resident *r = h->resident;
    GY_TRY(find_calls(h, turn, p, err));
    GY_TRY(deal_out(h, err));
    share_room(h, p);
    if (crowded(h) < h->devices) {
        leave_host_copies(h);
        GY_TRY(deal_out(h, err));
        share_room(h, p);
    }
    const char *why = obstacle(h);
    if (why) {
        gy_resident_give_up(h, why);
        return GANTRY_OK;
    }
    gy_resident_find_ask(h, turn);
    if (!gy_resident_find_sends(h, turn, &p->calls, p->first, p->sent))
        return gy_fail_nomem(err);
    GY_TRY(add_ops(h, p, err));
    for (uint32_t i = 0; i < h->devices && !r->off; i++) /* all of it, before the first is on its way to a GPU */
        if (r->gpu[i].used)
            GY_TRY(make_memory(h, i, turn, err));
    for (uint32_t i = 0; i < h->devices && !r->off; i++)
        if (r->gpu[i].used)
            GY_TRY(write_program(h, i, turn, err));
    return GANTRY_OK;
}

static bool is_stale(const gy_cuda *h, uint32_t turn)
{
    bool stale = false;
    for (uint32_t i = 0; i < h->devices; i++)
        stale = stale || (h->resident->gpu[i].used && h->resident->gpu[i].turn[turn].stale);
    return stale;
}

gantry_status gy_resident_program(gy_cuda *h, uint32_t turn, gantry_error *err)
{
    gy_resident_plan p = { 0 };
    if (!gy_resident_on(h) || !is_stale(h, turn))
        return GANTRY_OK;
    size_t ops = h->job->schedule->ops.count;
    p.first = gy_calloc(ops + 1, sizeof *p.first);
    p.sent = gy_calloc(ops + 1, sizeof *p.sent);
    p.met = gy_calloc(h->resident->pairs.count + 1, sizeof *p.met);
    gantry_status status = p.first && p.sent && p.met ? build(h, turn, &p, err) : gy_fail_nomem(err);
    if (status)
        gy_resident_stale(h, turn);
    gy_vec_free(&p.calls);
    gy_free(p.first);
    gy_free(p.sent);
    gy_free(p.met);
    return status;
}
