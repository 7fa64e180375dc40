/* SPDX-License-Identifier: Apache-2.0 */
#include "run/samples.h"

#include "base/error.h"
#include "base/sort.h"
#include "run/phases.h"

/* ---- kernels with their arguments ---- */

uint32_t gy_cases_look(gy_cases *c, const gantry_schedule *s, const gy_op *op, bool *isnew)
{
    const gy_node *n = &s->graph->nodes.at[op->node];
    c->kernel = s->graph->kernels.at[n->kernel].manifest->name;
    c->kind = s->machine->device[gy_op_device(s, op, 0)].kind;
    c->dtype = gy_node_dtype(s->graph, n);
    c->told = gy_node_case(&c->arguments, s->graph, n);
    c->key.length = 0;
    gy_text_printf(&c->key, "%s %d %s %s", c->kernel, (int)c->dtype, c->kind, c->told ? c->arguments.at : "");
    *isnew = false;
    return c->key.failed ? GY_NO_NAME : gy_names_add(&c->seen, c->key.at, isnew);
}

const gy_kernel_table *gy_cases_find(const gy_cases *c, const gantry_machine *m)
{
    return c->told ? gy_machine_case(m, c->kernel, c->dtype, c->kind, c->arguments.at) : NULL;
}

void gy_cases_free(gy_cases *c)
{
    gy_text_free(&c->arguments);
    gy_text_free(&c->key);
    gy_names_free(&c->seen);
}

/* ---- which times count ---- */

/* Ops in the order in which they began, and those of them that had not ended when the last one did. */
typedef struct sweep {
    const gantry_schedule *s;
    const gy_op_time *time;
    double *us;
    GY_VEC(uint32_t) active;
    int64_t *free_at; /* per device, where it computes one op after the other; NULL: it may compute several at once */
} sweep;

static const gy_route *route_of(const gantry_schedule *s, const gy_op *op)
{
    const gy_use *use = gy_vec_from(&s->use, op->use);
    return gy_machine_route(s->machine, s->instances.at[use[0].instance].memory,
                            s->instances.at[use[1].instance].memory);
}

static bool passes(const gy_route *r, uint32_t resource)
{
    for (uint32_t i = 0; i < r->resources; i++)
        if (r->resource[i] == resource)
            return true;
    return false;
}

static double rate_of(const gantry_schedule *s, const gy_op *op)
{
    return (double)gy_route_rate(route_of(s, op), (int64_t)gy_use_bytes(s, &s->use.at[op->use + 1]));
}

/* Copies that are asking for more of a resource than it has do not count. */
static void meet_at(sweep *w, uint32_t op, uint32_t resource)
{
    const gantry_schedule *s = w->s;
    double asked = rate_of(s, &s->ops.at[op]);
    bool alone = true;
    for (size_t i = 0; i < w->active.count; i++) {
        const gy_op *other = &s->ops.at[w->active.at[i]];
        if (gy_op_is_copy(other) && passes(route_of(s, other), resource)) {
            asked += rate_of(s, other);
            alone = false;
        }
    }
    if (alone || asked <= (double)s->machine->resource[resource].rate)
        return;
    w->us[op] = -1;
    for (size_t i = 0; i < w->active.count; i++) {
        const gy_op *other = &s->ops.at[w->active.at[i]];
        if (gy_op_is_copy(other) && passes(route_of(s, other), resource))
            w->us[w->active.at[i]] = -1;
    }
}

/* Behind what its device has computed before. */
static void follow(sweep *w, uint32_t op)
{
    int64_t *free_at = &w->free_at[gy_op_device(w->s, &w->s->ops.at[op], 0)];
    int64_t begin = w->time[op].start > *free_at ? w->time[op].start : *free_at, end = w->time[op].end;
    w->us[op] = end > begin ? (double)(end - begin) / 1e3 : -1;
    *free_at = end > *free_at ? end : *free_at;
}

static void meet(sweep *w, uint32_t op)
{
    const gantry_schedule *s = w->s;
    const gy_op *o = &s->ops.at[op];
    if (gy_op_is_copy(o)) {
        const gy_route *r = route_of(s, o);
        for (uint32_t i = 0; s->machine->contention && i < r->resources; i++)
            meet_at(w, op, r->resource[i]);
        return;
    }
    if (w->free_at) {
        follow(w, op);
        return;
    }
    for (size_t i = 0; i < w->active.count; i++) {
        const gy_op *other = &s->ops.at[w->active.at[i]];
        if (!gy_op_is_copy(other) && gy_op_device(s, other, 0) == gy_op_device(s, o, 0))
            w->us[op] = w->us[w->active.at[i]] = -1;
    }
}

static void forget_ended(sweep *w, int64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->active.count; i++)
        if (w->time[w->active.at[i]].end > now)
            w->active.at[kept++] = w->active.at[i];
    w->active.count = kept;
}

/* false: out of memory. */
static bool begin_apart(sweep *w)
{
    uint32_t devices = w->s->machine->devices;
    w->free_at = gy_alloc((devices + 1) * sizeof *w->free_at);
    for (uint32_t d = 0; w->free_at && d < devices; d++)
        w->free_at[d] = INT64_MIN;
    return w->free_at != NULL;
}

bool gy_samples_count(const gantry_schedule *s, const gy_op_time *time, bool apart, double *us)
{
    size_t ops = s->ops.count;
    sweep w = { .s = s, .time = time, .us = us };
    uint32_t *order = gy_alloc((ops + 1) * sizeof *order);
    int64_t *begin = gy_alloc((ops + 1) * sizeof *begin);
    bool ok = order && begin && (!apart || begin_apart(&w));
    for (uint32_t i = 0; i < ops && ok; i++) {
        order[i] = i;
        begin[i] = time[i].start;
        us[i] = time[i].end > time[i].start ? (double)(time[i].end - time[i].start) / 1e3 : -1;
    }
    ok = ok && gy_sort_by_key(order, begin, ops);
    for (size_t i = 0; i < ops && ok; i++) {
        if (time[order[i]].end <= time[order[i]].start)
            continue; /* it took no time, or did not run: it disturbs no other op */
        forget_ended(&w, time[order[i]].start);
        meet(&w, order[i]);
        ok = gy_vec_push(&w.active, order[i]);
    }
    gy_vec_free(&w.active);
    gy_free(w.free_at);
    gy_free(order);
    gy_free(begin);
    return ok;
}

/* ---- keeping them ---- */

void gy_samples_free(gy_samples *s)
{
    for (size_t i = 0; s && i < s->start.count; i++)
        gy_free(s->start.at[i]);
    if (s) {
        gy_vec_free(&s->start);
        gy_free(s->last);
    }
    gy_free(s);
}

const gantry_schedule *gy_samples_phase(const gantry_schedule *s, size_t i)
{
    if (s->phases.count)
        return i < s->phases.count ? s->phases.at[i].schedule : NULL;
    return i ? NULL : s;
}

static const gy_op_time *times_of(const gantry_run *run, size_t phase)
{
    int64_t offset;
    return run->schedule->phases.count ? gy_phases_times(run->state, phase, &offset) : run->backend->times(run->state);
}

/* All phases; those that were not carried out have no times. */
static bool fill(const gantry_run *run, double *us, gy_op_time *last)
{
    const gantry_schedule *s;
    bool ok = true;
    for (size_t i = 0; ok && (s = gy_samples_phase(run->schedule, i)); i++) {
        const gy_op_time *time = times_of(run, i);
        for (size_t k = 0; k < s->ops.count; k++) {
            us[k] = -1;
            last[k] = time ? time[k] : (gy_op_time){ 0, 0 };
        }
        ok = !time || gy_samples_count(s, time, run->job.apart, us);
        us += s->ops.count;
        last += s->ops.count;
    }
    return ok;
}

static gantry_status keep(gantry_run *run, gantry_error *err)
{
    gy_samples *k = run->samples;
    double *us = gy_alloc((k->ops + 1) * sizeof *us);
    if (!us || !fill(run, us, k->last) || !gy_vec_push(&k->start, us)) {
        gy_free(us);
        return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

static gy_samples *new_samples(const gantry_schedule *schedule)
{
    gy_samples *k = gy_calloc(1, sizeof *k);
    const gantry_schedule *s;
    for (size_t i = 0; k && (s = gy_samples_phase(schedule, i)); i++)
        k->ops += s->ops.count;
    if (k && !(k->last = gy_calloc(k->ops + 1, sizeof *k->last))) {
        gy_free(k);
        return NULL;
    }
    return k;
}

static gantry_status sample(gantry_run *run, gantry_error *err)
{
    GY_TRY(gy_run_need_idle(run, "gantry_run_sample", err));
    if (!run->backend->executes || !run->backend->times(run->state)) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the run has measured no times; set record_trace in its options, with a back end that executes");
    }
    if (run->finished == 0 || run->failure.last == run->finished) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "there are no times of a whole start yet; call gantry_run_wait on one that succeeds");
    }
    run->samples = run->samples ? run->samples : new_samples(run->schedule);
    if (!run->samples)
        return gy_fail_nomem(err);
    size_t starts = run->samples->start.count;
    bool full =
        starts >= GY_SAMPLES_MOST || (starts >= 2 && (int64_t)((starts + 1) * run->samples->ops) > GY_SAMPLES_TIMES);
    return full ? GANTRY_OK : keep(run, err);
}

gantry_status gantry_run_sample(gantry_run *run, gantry_error *err)
{
    GY_USE_RUN(run, sample(run, err), err);
}
