/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs with rows that no node writes: each start hands them over as they came in, which takes time and may not be
 * meant. */
#include "base/error.h"
#include "base/imap.h"
#include "graph/check/check.h"
#include "graph/nest.h"

/* Carried rows are those of another buffer. */
static bool is_carried(const gantry_graph *g, uint32_t buffer)
{
    for (size_t i = 0; i < gy_loop_count(g); i++)
        for (size_t k = 0; k < gy_loop_at(g, i)->carry.count; k++) {
            const gy_carry *c = &gy_loop_at(g, i)->carry.at[k];
            if (c->prev == buffer || c->next == buffer)
                return true;
        }
    return false;
}

static bool is_watched(const gantry_graph *g, uint32_t buffer)
{
    const gy_buffer *b = &g->buffers.at[buffer];
    return b->output && b->rows > 0 && b->cls != GANTRY_CONST && !is_carried(g, buffer);
}

/* Payload 1: written. */
static bool note_writes(const gantry_graph *g, gy_imap *written)
{
    bool ok = true;
    for (size_t i = 0; i < g->access.count && ok; i++) {
        const gy_access *a = &g->access.at[i];
        if (a->mode != GANTRY_READ && written[a->buffer].at)
            ok = gy_imap_set(&written[a->buffer], a->first, a->last, 1);
    }
    return ok;
}

/* Rows without a node that writes them; *first, *last: those that come first. */
static int64_t count_unwritten(const gy_imap *written, int64_t *first, int64_t *last)
{
    int64_t count = 0;
    for (uint32_t i = gy_imap_find(written, 0); i != GY_IMAP_NONE; i = gy_imap_next(written, i)) {
        const gy_interval *v = &written->at[i];
        if (v->payload)
            continue;
        *first = count ? *first : v->first;
        *last = count ? *last : v->last;
        count += v->last - v->first;
    }
    return count;
}

/* The diagonal and one side of it are written, the other side is not: a symmetric matrix of which one half is stored,
 * or a factor in its place, as in LAPACK, where the other half means nothing. */
static bool is_triangle(const gy_buffer *b, const gy_imap *written)
{
    int64_t across = b->tiles[0];
    bool below = true, above = true;
    if (across < 2 || b->tiles[1] != across || b->rows != across * across)
        return false;
    for (uint32_t i = gy_imap_find(written, 0); i != GY_IMAP_NONE; i = gy_imap_next(written, i)) {
        const gy_interval *v = &written->at[i];
        for (int64_t tile = v->first; tile < v->last; tile++) {
            int64_t row = tile / across, column = tile % across;
            below = below && (v->payload == 1) == (row >= column);
            above = above && (v->payload == 1) == (row <= column);
        }
    }
    return below || above;
}

static bool warn_buffer(gantry_graph *g, uint32_t buffer, const gy_imap *written)
{
    const gy_buffer *b = &g->buffers.at[buffer];
    int64_t first = 0, last = 0, count = count_unwritten(written, &first, &last);
    gy_text rows = { 0 };
    if (!count || is_triangle(b, written))
        return true;
    gy_rows_text(&rows, g, buffer, first, last);
    const char *text =
        rows.failed
            ? NULL
            : gy_arena_printf(&g->arena,
                              "no node writes %lld of the %lld %s of output \"%s\", first %s: each start hands "
                              "them over as they came in; write them, or make what is written a buffer of its "
                              "own",
                              (long long)count, (long long)b->rows, b->tiles[0] ? "tiles" : "rows", b->name, rows.at);
    gy_text_free(&rows);
    gy_warning warning = { b->origin, text };
    return text && gy_vec_push(&g->warnings, warning);
}

gantry_status gy_check_unwritten(gantry_graph *g, gantry_error *err)
{
    size_t count = g->buffers.count;
    gy_imap *written = gy_calloc(count + 1, sizeof *written);
    bool ok = written != NULL;
    for (uint32_t b = 0; b < count && ok; b++)
        ok = !is_watched(g, b) || gy_imap_init(&written[b], 0, g->buffers.at[b].rows, 0);
    ok = ok && note_writes(g, written);
    for (uint32_t b = 0; b < count && ok; b++)
        ok = !written[b].at || warn_buffer(g, b, &written[b]);
    for (size_t b = 0; written && b < count; b++)
        gy_imap_free(&written[b]);
    gy_free(written);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}
