/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Copies between memories. Rows are brought once per memory, in pieces as long as one source has them together. A
 * source is chosen by the time of its route; where copies do not disturb each other (contention off) by when the rows
 * can arrive, that is the time at which the source has them plus the route. Ties: the source that has them first, then
 * the lower memory. Routes that are relayed or staged become two copies with an instance in the middle, which is a
 * source from then on.
 */
#include "scheduler/lower/lowering.h"

#include "base/error.h"

/* ---- who holds what ---- */

bool gy_holders_have(const gy_holders *h, uint32_t instance)
{
    for (uint32_t i = 0; h && i < h->count; i++)
        if (h->at[i].instance == instance)
            return true;
    return false;
}

const gy_holders *gy_lower_holders(const gy_lower *l, uint32_t value, int64_t row, int64_t *last)
{
    uint32_t i = gy_imap_find(&l->holds[value], row);
    if (i == GY_IMAP_NONE)
        return NULL;
    *last = l->holds[value].at[i].last;
    return (const gy_holders *)(uintptr_t)l->holds[value].at[i].payload;
}

static gy_holders *copy_holders(gy_lower *l, const gy_holders *old, uint32_t more)
{
    uint32_t count = old ? old->count : 0;
    gy_holders *new = gy_arena_alloc(&l->arena, sizeof *new + (count + more) * sizeof *new->at);
    if (!new)
        return NULL;
    new->count = count + more;
    for (uint32_t i = 0; i < count; i++)
        new->at[i] = old->at[i];
    return new;
}

gantry_status gy_lower_hold(gy_lower *l, uint32_t value, int64_t first, int64_t last, const gy_holder *holder,
                            uint32_t count, gantry_error *err)
{
    if (first >= last)
        return GANTRY_OK;
    gy_holders *h = copy_holders(l, NULL, count);
    l->version[value]++;
    if (!h || !gy_imap_set(&l->holds[value], first, last, (uintptr_t)h))
        return gy_fail_nomem(err);
    for (uint32_t k = 0; k < count; k++)
        h->at[k] = holder[k];
    return GANTRY_OK;
}

/* One more instance that has the rows; neighbours that shared their holders go on sharing. */
static gantry_status add_holder(gy_lower *l, uint32_t value, int64_t first, int64_t last, gy_holder holder,
                                gantry_error *err)
{
    if (first >= last)
        return GANTRY_OK;
    gy_imap *map = &l->holds[value];
    uint32_t i = gy_imap_cut(map, first, last);
    const gy_holders *old = NULL;
    gy_holders *new = NULL;
    if (i == GY_IMAP_NONE)
        return gy_fail_nomem(err);
    for (; i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i)) {
        const gy_holders *here = (const gy_holders *)(uintptr_t)map->at[i].payload;
        if (!new || here != old) {
            old = here;
            new = copy_holders(l, old, 1);
            if (!new)
                return gy_fail_nomem(err);
            new->at[new->count - 1] = holder;
        }
        map->at[i].payload = (uintptr_t) new;
    }
    gy_imap_join(map, first, last);
    return GANTRY_OK;
}

/* The instance has those of its rows that hold something when a start begins. */
static gantry_status hold_entry(gy_lower *l, uint32_t value, int64_t first, int64_t last, gy_holder h,
                                gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    gy_rows rows;
    for (uint32_t run = 0; !status && gy_graph_entry_rows(l->p->graph, value, run, &rows); run++)
        status =
            add_holder(l, value, rows.first > first ? rows.first : first, rows.last < last ? rows.last : last, h, err);
    return status;
}

/* Holds the rows that a start begins with: bound inputs, and persistent instances. */
static gantry_status know_entry(gy_lower *l, uint32_t value, gantry_error *err)
{
    const gy_buffer *b = gy_lower_buffer(l, value);
    gantry_status status = GANTRY_OK;
    if (b->cls == GANTRY_INPUT) {
        gy_instance in = { .value = value, .space = GY_SPACE_INPUT, .role = GY_ROLE_EXTERNAL, .last = b->rows };
        in.memory = gy_buffer_home(l->p->machine, b);
        gy_holder h = { GY_NONE, GY_NONE };
        status = gy_lower_instance(l, &in, &h.instance, err);
        l->input[value] = h.instance;
        return status ? status : hold_entry(l, value, 0, b->rows, h, err);
    }
    for (size_t i = gy_lower_first_area(l, value); i < l->area.count && l->area.at[i].value == value && !status; i++) {
        const gy_area *area = &l->area.at[i];
        gy_holder h = { GY_NONE, GY_NONE };
        if (area->role != GY_ROLE_PERSIST)
            continue;
        status = gy_lower_area(l, (uint32_t)i, &h.instance, err);
        if (!status)
            status = hold_entry(l, value, area->first, area->last, h, err);
    }
    return status;
}

gantry_status gy_lower_know(gy_lower *l, uint32_t value, gantry_error *err)
{
    if (l->known[value])
        return GANTRY_OK;
    if (!gy_imap_init(&l->holds[value], 0, gy_lower_buffer(l, value)->rows, 0))
        return gy_fail_nomem(err);
    l->known[value] = 1;
    return l->p->flow->value[value].generation == 0 ? know_entry(l, value, err) : GANTRY_OK;
}

enum { DETOUR_BYTES = 1 << 26 };

/* ---- where to copy from ---- */

typedef struct piece {
    uint32_t value, from, to; /* instances */
    int64_t first, last;
} piece;

enum { SAME_ROUTE = 2 }; /* that part of a route's time is no difference */

typedef struct source {
    gy_ticks key, ready;
    uint32_t memory, instance;
} source;

static bool is_better(const source *a, const source *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    if (a->ready != b->ready)
        return a->ready < b->ready;
    return a->memory != b->memory ? a->memory < b->memory : a->instance < b->instance;
}

/* The array of an input that copies to the memory read: that of their own computer, where each process has it. */
static uint32_t array_for(const gy_lower *l, const gy_instance *in, uint32_t to)
{
    const gantry_machine *m = l->p->machine;
    bool bound = in->space == GY_SPACE_INPUT && in->memory == 0 && !gy_lower_buffer(l, in->value)->external;
    return bound ? m->memory[to].arrays : in->memory;
}

static source look_at(const gy_lower *l, const gy_holder *h, uint32_t to, int64_t bytes)
{
    const gy_plan *p = l->p;
    source s = { .memory = array_for(l, &p->draft.instance.at[h->instance], to), .instance = h->instance };
    const gy_route *r = gy_machine_route(p->machine, s.memory, to);
    s.ready = h->draft == GY_NONE ? 0 : p->draft.op.at[h->draft].end;
    s.key = gy_route_time(p->machine, r, bytes);
    if (!p->machine->contention && s.key < GY_TICKS_MAX)
        s.key += s.ready;
    if (s.memory == to && gy_plan_device_of(p, to) == GY_NONE)
        s.key = GY_TICKS_MAX; /* nobody there to copy: needs a detour */
    return s;
}

/* Measured times of links that are alike differ by what a measurement does. Where collectives are preferred, a route
 * that is quicker by no more does not decide: readers that all have rows from where they were made may be a collective.
 */
static uint32_t nearest(const gy_lower *l, const gy_holders *h, uint32_t to, int64_t bytes)
{
    source best = { .key = GY_TICKS_MAX };
    gy_ticks least = GY_TICKS_MAX;
    bool collect = l->p->attempt->prefer_collectives;
    for (uint32_t i = 0; i < h->count && collect; i++) {
        source s = look_at(l, &h->at[i], to, bytes);
        least = s.key < least ? s.key : least;
    }
    for (uint32_t i = 0; i < h->count; i++) {
        source s = look_at(l, &h->at[i], to, bytes);
        if (collect && s.key < GY_TICKS_MAX && s.key <= least + least / SAME_ROUTE)
            s.key = least;
        if (i == 0 || is_better(&s, &best))
            best = s;
    }
    return best.instance;
}

/* Of who made the rows and the host memory, through which what they made may have gone already. */
static uint32_t nearest_to_maker(const gy_lower *l, const gy_holders *h, uint32_t to, int64_t bytes)
{
    source best = look_at(l, &h->at[0], to, bytes);
    for (uint32_t i = 1; i < h->count; i++) {
        source s = look_at(l, &h->at[i], to, bytes);
        if (!s.memory && is_better(&s, &best))
            best = s;
    }
    return best.instance;
}

/* The first that held the rows made them, or was there at the start. */
static uint32_t best_source(const gy_lower *l, const gy_holders *h, uint32_t to, int64_t bytes)
{
    const gy_plan *p = l->p;
    uint32_t maker = h->at[0].instance, best = nearest(l, h, to, bytes);
    uint32_t made = p->draft.instance.at[maker].memory, near = p->draft.instance.at[best].memory;
    bool relayed = p->attempt->spill.relayed;
    if (best == maker || !made || !to || near == to || (!near && !relayed))
        return best;
    l->p->passed_makers = true;
    if (!p->attempt->from_makers)
        return best;
    return relayed ? maker : nearest_to_maker(l, h, to, bytes);
}

/* ---- copying ---- */

static gantry_status copy_rows(gy_lower *l, const piece *c, uint32_t *id, gantry_error *err)
{
    gy_plan *p = l->p;
    uint32_t from = p->draft.instance.at[c->from].memory, to = p->draft.instance.at[c->to].memory;
    const gy_route *r = gy_machine_route(p->machine, from, to);
    int64_t bytes = gy_buffer_span(gy_lower_buffer(l, c->value), c->first, c->last);
    gy_draft_op d = { .device = gy_plan_copier(p, from, to), .lane = GY_LANE_COPY };
    d.op = (gy_op){ .kind = GY_OP_COPY, .node = GY_NONE, .duration = gy_route_time(p->machine, r, bytes) };
    d.op.provenance = r->given ? GY_COST_MEASURED : GY_COST_ROOFLINE;
    if (d.device == GY_NONE || d.op.duration >= GY_TICKS_MAX)
        return gy_fail(err, GANTRY_E_MACHINE, NULL,
                       "rows of \"%s\" must get from memory \"%s\" to \"%s\", and machine \"%s\" has no %s; add one",
                       gy_lower_buffer(l, c->value)->name, p->machine->memory[from].id, p->machine->memory[to].id,
                       p->machine->name, d.device == GY_NONE ? "device at either end" : "route between them");
    if (from == 0)
        l->sent[to] = gy_ticks_both(l->sent[to], d.op.duration);
    else if (to == 0)
        l->fetched[from] = gy_ticks_both(l->fetched[from], d.op.duration);
    gantry_status status = gy_lower_op(l, &d, id, err);
    size_t edge = p->draft.edges.count;
    if (!status)
        status = gy_lower_use(l, c->from, GANTRY_READ, 0, c->first, c->last, err);
    if (!status)
        status = gy_lower_use(l, c->to, GANTRY_WRITE, 0, c->first, c->last, err);
    if (status)
        return status;
    gy_ticks begin = 0;
    for (; edge < p->draft.edges.count; edge++)
        if (p->draft.op.at[p->draft.edges.at[edge].from].end > begin)
            begin = p->draft.op.at[p->draft.edges.at[edge].from].end;
    p->draft.op.at[*id].end = begin + d.op.duration;
    return GANTRY_OK;
}

/* Could a device in host memory copy them as well before the last task ends? Then the links of others are left to what
 * these need. */
static bool is_done_in_time(const gy_lower *l, int64_t bytes)
{
    const gy_plan *p = l->p;
    gy_ticks time = gy_route_time(p->machine, gy_machine_route(p->machine, 0, 0), bytes);
    return gy_plan_device_of(p, 0) != GY_NONE && time <= l->end_of_tasks && l->sent[0] <= l->end_of_tasks - time;
}

/* How rows get from host memory to host memory: the memory through which they go, or 0 where a device there copies
 * them. Detours share out what there is to move: each way counts what goes that way already, detour or not. */
static uint32_t detour(const gy_lower *l, int64_t bytes)
{
    const gy_plan *p = l->p;
    uint32_t best = GY_NONE;
    gy_ticks least = GY_TICKS_MAX;
    for (uint32_t d = 0; d < p->devices; d++) {
        uint32_t m = p->machine->device[d].memory;
        if (m && is_done_in_time(l, bytes))
            continue;
        const gy_route *there = gy_machine_route(p->machine, 0, m), *back = gy_machine_route(p->machine, m, 0);
        if (there->kind != GY_ROUTE_DIRECT || back->kind != GY_ROUTE_DIRECT)
            continue;
        gy_ticks up = gy_ticks_both(l->sent[m], gy_route_time(p->machine, there, bytes));
        gy_ticks down = m ? gy_ticks_both(l->fetched[m], gy_route_time(p->machine, back, bytes)) : 0;
        gy_ticks end = up > down ? up : down;
        if (end < least) {
            least = end;
            best = m;
        }
    }
    return best;
}

static uint32_t middle_of(const gy_lower *l, uint32_t from, uint32_t to, int64_t bytes)
{
    const gy_route *r = gy_machine_route(l->p->machine, from, to);
    if (from == to) {
        uint32_t via = to == 0 ? detour(l, bytes) : 0;
        return via ? via : GY_NONE;
    }
    if (l->p->attempt->spill.relayed && from && to)
        return GY_NONE; /* it is to be in a collective */
    bool detours = r->kind == GY_ROUTE_RELAY || r->kind == GY_ROUTE_STAGED;
    l->p->relays = l->p->relays || (detours && from && to);
    return detours ? r->via : GY_NONE;
}

/* The same array in another memory: one instance of it for each. */
static gantry_status find_twin(gy_lower *l, uint32_t *instance, uint32_t memory, gantry_error *err)
{
    gy_instance in = l->p->draft.instance.at[*instance];
    uint64_t known, key = (uint64_t)*instance * l->p->machine->memories + memory;
    if (memory == in.memory)
        return GANTRY_OK;
    if (gy_map_get(&l->arrays, key, &known)) {
        *instance = (uint32_t)known;
        return GANTRY_OK;
    }
    in.memory = memory;
    GY_TRY(gy_lower_instance(l, &in, instance, err));
    return gy_map_put(&l->arrays, key, *instance) ? GANTRY_OK : gy_fail_nomem(err);
}

/* Copies to another computer read the array that its own process has; outputs that are no less than what goes to rank 0
 * after each start stay there. */
static gantry_status go_to_arrays(gy_lower *l, piece *c, gantry_error *err)
{
    const gy_instance *from = &l->p->draft.instance.at[c->from], *to = &l->p->draft.instance.at[c->to];
    const gy_buffer *b = gy_lower_buffer(l, c->value);
    uint32_t array = l->p->machine->memory[from->memory].arrays;
    bool stays = to->space == GY_SPACE_OUTPUT && to->memory == 0 && !b->external && !l->p->graph->phase &&
                 b->bytes >= GY_OUTPUT_APART;
    uint32_t near = array_for(l, from, to->memory);
    if (stays && array)
        return find_twin(l, &c->to, array, err);
    return find_twin(l, &c->from, near, err);
}

/* One piece from one instance to another, in one or two copies. `keep`: the destination becomes a source too. */
static gantry_status move_piece(gy_lower *l, piece c, bool keep, gantry_error *err)
{
    gy_plan *p = l->p;
    int64_t bytes = gy_buffer_span(gy_lower_buffer(l, c.value), c.first, c.last);
    GY_TRY(go_to_arrays(l, &c, err));
    uint32_t to = p->draft.instance.at[c.to].memory;
    uint32_t via = middle_of(l, p->draft.instance.at[c.from].memory, to, bytes);
    gantry_status status = GANTRY_OK;
    gy_holder h;
    if (via != GY_NONE) {
        gy_instance in = { .value = c.value, .memory = via, .first = c.first, .last = c.last };
        in.space = via == 0 ? GY_SPACE_STAGING : GY_SPACE_SLAB;
        piece first = c;
        status = gy_lower_instance(l, &in, &h.instance, err);
        first.to = h.instance;
        if (!status)
            status = copy_rows(l, &first, &h.draft, err);
        if (!status)
            p->draft.op.at[h.draft].halfway = true;
        if (!status)
            status = add_holder(l, c.value, c.first, c.last, h, err);
        c.from = h.instance;
    }
    h.instance = c.to;
    if (!status)
        status = copy_rows(l, &c, &h.draft, err);
    if (!status && keep)
        p->draft.op.at[h.draft].batch = l->batches;
    return status || !keep ? status : add_holder(l, c.value, c.first, c.last, h, err);
}

/* Where rows come from. What goes to host memory for good, and was not written, is there: where a device of that memory
 * has the time it hands them over, and the links are left to what was made elsewhere. */
static uint32_t source_of(const gy_lower *l, const gy_holders *h, uint32_t to, int64_t bytes, bool keep)
{
    for (uint32_t i = 0; i < h->count && !keep && to == 0; i++) {
        const gy_instance *in = &l->p->draft.instance.at[h->at[i].instance];
        if (in->space == GY_SPACE_INPUT && in->memory == 0 && is_done_in_time(l, bytes))
            return h->at[i].instance;
    }
    return best_source(l, h, to, bytes);
}

/* How far from `row` on the best source stays the same and the destination lacks the rows. */
static int64_t piece_end(const gy_lower *l, const piece *c, uint32_t memory, int64_t bytes, bool keep)
{
    int64_t end = c->first;
    while (end < c->last) {
        int64_t last = c->last;
        const gy_holders *h = gy_lower_holders(l, c->value, end, &last);
        if (!h || (keep && gy_holders_have(h, c->to)) || source_of(l, h, memory, bytes, keep) != c->from)
            break;
        end = last < c->last ? last : c->last;
    }
    return end;
}

/* Within host memory rows go in pieces, so that several ways can share them. */
static int64_t cut_piece(const gy_lower *l, const piece *c, uint32_t memory, int64_t end)
{
    const gy_buffer *b = gy_lower_buffer(l, c->value);
    if (memory != 0 || l->p->draft.instance.at[c->from].memory != 0)
        return end;
    int64_t count = end - c->first, each = (gy_buffer_span(b, c->first, end) + count - 1) / count;
    int64_t rows = DETOUR_BYTES / (each > 0 ? each : 1);
    rows = rows > 1 ? rows : 1;
    return count > rows ? c->first + rows : end;
}

/* Readers in one memory come one after the other, each for the same rows. */
static bool was_brought(const gy_lower *l, uint32_t value, int64_t first, int64_t last, uint32_t to)
{
    const gy_hazards *h = &l->hazards.at[to];
    return first < last && h->version == l->version[value] && h->brought_first <= first && last <= h->brought_last;
}

static void note_brought(gy_lower *l, uint32_t value, int64_t first, int64_t last, uint32_t to)
{
    gy_hazards *h = &l->hazards.at[to];
    h->version = l->version[value];
    h->brought_first = first;
    h->brought_last = last;
}

static gantry_status bring(gy_lower *l, uint32_t value, int64_t first, int64_t last, uint32_t to, bool keep,
                           gantry_error *err)
{
    gantry_status status = gy_lower_know(l, value, err);
    uint32_t memory = l->p->draft.instance.at[to].memory;
    int64_t bytes = gy_buffer_span(gy_lower_buffer(l, value), first, last), end = last;
    l->batches++;
    for (int64_t row = first; row < last && !status; row = end) {
        const gy_holders *h = gy_lower_holders(l, value, row, &end);
        end = end < last ? end : last;
        if (!h || (keep && gy_holders_have(h, to)))
            continue;
        piece c = { value, source_of(l, h, memory, bytes, keep), to, row, last };
        c.last = end = cut_piece(l, &c, memory, piece_end(l, &c, memory, bytes, keep));
        status = move_piece(l, c, keep, err);
    }
    return status;
}

gantry_status gy_lower_bring(gy_lower *l, uint32_t value, int64_t first, int64_t last, uint32_t to, gantry_error *err)
{
    if (was_brought(l, value, first, last, to))
        return GANTRY_OK;
    GY_TRY(bring(l, value, first, last, to, true, err));
    note_brought(l, value, first, last, to);
    return GANTRY_OK;
}

gantry_status gy_lower_deliver(gy_lower *l, uint32_t value, int64_t first, int64_t last, uint32_t to, gantry_error *err)
{
    return bring(l, value, first, last, to, false, err);
}
