/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by copies. What no GPU combines (combine.c) goes to the host, which does that in stream order, with the
 * arithmetic and the order of the host back end. */
#include "backends/cuda/state.h"

#include "backends/host/ops.h"
#include "base/error.h"

/* Combined at once. A multiple of every element size. */
#define CHUNK GY_CUDA_CHUNK

static uint64_t largest_piece(const gy_exchange *parts)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < parts->pieces; i++) {
        most = parts->piece[i].bytes > most ? parts->piece[i].bytes : most;
    }
    return most;
}

static uint64_t total_bytes(const gy_exchange *parts)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < parts->pieces; i++) {
        sum += parts->piece[i].bytes;
    }
    return sum;
}

static uint64_t chunk_of(uint64_t bytes)
{
    return bytes < CHUNK ? bytes : CHUNK;
}

/* Pieces that clash are all built aside first, as on the host; else only what is combined there is. */
static bool needs_host(const gy_cuda *h, uint32_t op, const gy_exchange *parts)
{
    bool combines = false;
    for (uint32_t i = 0; i < parts->pieces; i++) {
        combines = combines || (parts->piece[i].sources > 1 && !gy_combine_does(h, op, &parts->piece[i]));
    }
    return combines || parts->stage;
}

/* Of the stage: a chunk of each source, then a result; or all results. */
uint64_t gy_collective_stage(const gy_cuda *h, uint32_t op)
{
    const gy_exchange *parts = h->op[op].parts;
    uint64_t chunk = chunk_of(largest_piece(parts));
    uint64_t results = parts->stage ? total_bytes(parts) : chunk;
    /* A copy of one of its pieces may be staged too, between combinations. */
    return needs_host(h, op, parts) ? parts->most_sources * chunk + results + 2 * chunk : 2 * chunk;
}

gy_place gy_collective_end(const gy_cuda *h, uint32_t op, uint32_t turn, uint32_t end, uint64_t offset)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_piece_end *e = &h->op[op].parts->end[end];
    return gy_place_at(gy_cuda_place(h, &s->use.at[s->ops.at[op].use + e->use], turn), e->offset + offset);
}

static gy_place end_at(const gy_submit *x, uint32_t end, uint64_t offset)
{
    return gy_collective_end(x->h, x->op, x->turn, end, offset);
}

static gy_place host_place(char *at)
{
    return (gy_place){ .device = GY_NONE, .pinned = true, .host = at };
}

static bool is_same(gy_place a, gy_place b)
{
    return a.device == b.device && a.at == b.at && a.host == b.host;
}

/* `bytes` of every target, from `offset` on. */
static gantry_status deliver(gy_submit *x, const gy_piece *piece, gy_place from, uint64_t offset, uint64_t bytes)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < piece->targets && status == GANTRY_OK; k++) {
        gy_place to = end_at(x, piece->target + k, offset);
        status = is_same(to, from) ? GANTRY_OK : gy_submit_copy(x, to, from, bytes);
        status = status ? status : gy_submit_join(x); /* copies share the stage */
    }
    return status;
}

/* One chunk of a piece into `result`, in host memory. */
static gantry_status combine(gy_submit *x, const gy_exchange *parts, const gy_piece *piece, char *area, char *result,
                             uint64_t offset, uint64_t bytes)
{
    gantry_status status = GANTRY_OK;
    const void **sources = gy_notes_add(x->notes, piece->sources * sizeof *sources);
    if (!sources) {
        return gy_fail_nomem(x->err);
    }
    for (uint32_t k = 0; k < piece->sources && status == GANTRY_OK; k++) {
        gy_place from = end_at(x, piece->source + k, offset);
        char *copy = area + k * chunk_of(largest_piece(parts));
        sources[k] = from.device == GY_NONE ? from.host : copy;
        status = from.device == GY_NONE ? GANTRY_OK : gy_submit_copy(x, host_place(copy), from, bytes);
    }
    status = status ? status : gy_submit_join(x);
    gy_note note = { .kind = GY_NOTE_REDUCE,
                     .op = x->op,
                     .to = result,
                     .sources = sources,
                     .count = piece->sources,
                     .dtype = parts->dtype,
                     .reduce = parts->reduce,
                     .bytes = bytes };
    if (piece->sources == 1) {
        note.kind = GY_NOTE_MOVE;
        note.from = sources[0];
    }
    return status ? status : gy_submit_note(x, x->lead, note);
}

/* The first 2 chunks of the stage belong to copies. */
static char *area_of(const gy_submit *x, const gy_exchange *parts)
{
    const gantry_schedule *s = x->h->job->schedule;
    char *stage = x->h->lane[s->op_lane.at[s->ops.at[x->op].lane]].stage;
    return stage + 2 * chunk_of(largest_piece(parts));
}

static gantry_status exchange_piece(gy_submit *x, const gy_exchange *parts, const gy_piece *piece)
{
    gantry_status status = GANTRY_OK;
    if (gy_combine_does(x->h, x->op, piece)) {
        gy_place result;
        status = gy_combine_submit(x, piece, &result);
        return status ? status : deliver(x, piece, result, 0, piece->bytes);
    }
    if (piece->sources == 1) {
        return deliver(x, piece, end_at(x, piece->source, 0), 0, piece->bytes);
    }
    char *area = area_of(x, parts), *result = area + parts->most_sources * chunk_of(largest_piece(parts));
    for (uint64_t done = 0; done < piece->bytes && status == GANTRY_OK; done += CHUNK) {
        uint64_t bytes = chunk_of(piece->bytes - done);
        status = combine(x, parts, piece, area, result, done, bytes);
        status = status ? status : deliver(x, piece, host_place(result), done, bytes);
    }
    return status;
}

/* All results first, then all targets. */
static gantry_status exchange_aside(gy_submit *x, const gy_exchange *parts)
{
    gantry_status status = GANTRY_OK;
    char *area = area_of(x, parts), *results = area + parts->most_sources * chunk_of(largest_piece(parts));
    char *result = results;
    for (uint32_t i = 0; i < parts->pieces && status == GANTRY_OK; result += parts->piece[i].bytes, i++) {
        const gy_piece *piece = &parts->piece[i];
        for (uint64_t done = 0; done < piece->bytes && status == GANTRY_OK; done += CHUNK) {
            status = combine(x, parts, piece, area, result + done, done, chunk_of(piece->bytes - done));
        }
    }
    result = results;
    for (uint32_t i = 0; i < parts->pieces && status == GANTRY_OK; result += parts->piece[i].bytes, i++) {
        status = deliver(x, &parts->piece[i], host_place(result), 0, parts->piece[i].bytes);
    }
    return status;
}

gantry_status gy_submit_collective(gy_submit *x)
{
    const gy_exchange *parts = x->h->op[x->op].parts;
    gantry_status status = GANTRY_OK;
    if (gy_nccl_does(x)) {
        return gy_nccl_submit(x);
    }
    if (parts->stage) {
        return exchange_aside(x, parts);
    }
    for (uint32_t i = 0; i < parts->pieces && status == GANTRY_OK; i++) {
        status =
            parts->piece[i].bytes && parts->piece[i].targets ? exchange_piece(x, parts, &parts->piece[i]) : GANTRY_OK;
    }
    return status;
}
