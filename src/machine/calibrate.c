/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/calibrate.h"

#include "base/error.h"
#include "base/memory.h"
#include "machine/calibrate_build.h"
#include <stdlib.h>
#include <string.h>

/* The host's share: one thread gives out the work of all devices, and waits for its end. */
static void set_host(gantry_machine *m, const gy_measured *what)
{
    double submit_us = 0, start_us = 0;
    for (size_t i = 0; i < what->devices.count; i++) {
        const gy_measured_device *d = &what->devices.at[i];
        double beyond = d->graph_launch.us - d->graph_node.us;
        submit_us = d->launch.us > submit_us ? d->launch.us : submit_us;
        start_us = beyond > start_us ? beyond : start_us;
    }
    if (submit_us > 0)
        m->submit = gy_ticks_from_us(submit_us);
    if (start_us > 0)
        m->start = gy_ticks_from_us(start_us);
    if (what->another.samples > 0)
        m->another = gy_ticks_from_us(what->another.us);
    if (what->issue.samples > 0)
        m->issue = gy_ticks_from_us(what->issue.us);
    if (what->when.samples > 0 && what->left_out.samples > 0) {
        m->when = gy_ticks_from_us(what->when.us);
        m->left_out = gy_ticks_from_us(what->left_out.us);
    }
    if (what->edge.samples > 0 && what->gate.samples > 0) {
        m->edge = gy_ticks_from_us(what->edge.us);
        m->gate = gy_ticks_from_us(what->gate.us);
    }
}

/* The time of the shortest kernel among many in a graph: no kernel of the library is as short as one that does nothing.
 */
static double launch_us(const gantry_machine *m, const gy_measured *what, const gy_measured_device *d)
{
    double least = 0;
    for (size_t i = 0; i < what->kernels.count; i++) {
        const gy_measured_kernel *k = &what->kernels.at[i];
        bool mine =
            strcmp(k->kind, m->device[d->device].kind) == 0 && !k->partial && !k->arguments && k->points.count > 0;
        double us = mine ? k->points.at[0].time.us : least;
        least = least == 0 || us < least ? us : least;
    }
    return least > d->graph_node.us ? least : d->graph_node.us;
}

static void set_launches(gantry_machine *m, const gy_measured *what)
{
    set_host(m, what);
    for (size_t i = 0; i < what->devices.count; i++) {
        const gy_measured_device *d = &what->devices.at[i];
        if (d->device < m->devices && d->graph_node.samples > 0)
            m->device[d->device].launch = gy_ticks_from_us(launch_us(m, what, d));
        if (d->device < m->devices && d->signal.samples > 0)
            m->device[d->device].signal = gy_ticks_from_us(d->signal.us);
    }
}

/* ---- workers ---- */

static int by_launched(const void *a, const void *b)
{
    const gy_point *x = a, *y = b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Those of one time are one; what falls, as measured, does not. Fewer than two that rise at the end say nothing. */
static uint32_t smooth(gy_point *point, uint32_t points)
{
    uint32_t kept = 0;
    qsort(point, points, sizeof *point, by_launched);
    for (uint32_t i = 0; i < points; i++) {
        gy_ticks before = kept ? point[kept - 1].time : 0;
        gy_ticks time = point[i].time > before ? point[i].time : before;
        if (kept && point[kept - 1].bytes == point[i].bytes)
            point[kept - 1].time = time;
        else
            point[kept++] = (gy_point){ point[i].bytes, time };
    }
    while (kept > 1 && point[kept - 1].time == point[kept - 2].time)
        kept--;
    return kept > 1 ? kept : 0;
}

/* False: out of memory. */
static bool set_workers(gantry_machine *m, gy_device *d, const gy_measured_workers *w)
{
    gy_point *point = gy_arena_calloc(&m->arena, w->pairs.count + 1, sizeof *point);
    if (!point)
        return false;
    for (size_t i = 0; i < w->pairs.count; i++)
        point[i] =
            (gy_point){ gy_ticks_from_us(w->pairs.at[i].launched.us), gy_ticks_from_us(w->pairs.at[i].by_workers.us) };
    uint32_t points = smooth(point, (uint32_t)w->pairs.count);
    d->workers = (gy_worker_times){ .point = points ? point : NULL,
                                    .points = points,
                                    .change = gy_ticks_from_us(w->change.us),
                                    .start = gy_ticks_from_us(w->start.us),
                                    .beside = (uint32_t)(w->beside * GY_ALONE + 0.5) };
    return true;
}

static bool set_all_workers(gantry_machine *m, const gy_measured *what)
{
    bool ok = true;
    for (size_t i = 0; i < what->workers.count; i++)
        for (uint32_t d = 0; d < m->devices && ok; d++)
            if (m->device[d].gpu && !strcmp(m->device[d].kind, what->workers.at[i].kind))
                ok = set_workers(m, &m->device[d], &what->workers.at[i]);
    return ok;
}

/* The time without the launch; all of it where that is most of it. */
static double rate_of(double work, const gy_figure *f, gy_ticks launch)
{
    double us = f->us - gy_ticks_to_us(launch);
    us = us < f->us / 2 ? f->us : us;
    return f->samples && us > 0 && work > 0 ? work / (us * 1e3) : 0;
}

/* Behind launches and workers, whose least times are taken off. */
static void set_formulas(gantry_machine *m, const gy_measured *what)
{
    for (size_t i = 0; i < what->formulas.count; i++)
        for (uint32_t k = 0; k < m->devices; k++) {
            const gy_measured_formulas *f = &what->formulas.at[i];
            gy_device *d = &m->device[k];
            if (!d->gpu || strcmp(d->kind, f->kind) != 0)
                continue;
            double launched = rate_of(f->work, &f->launched, d->launch);
            d->formulas[f->dtype] = launched > 0 ? launched : d->formulas[f->dtype];
            if (d->workers.points)
                d->workers.formulas[f->dtype] = rate_of(f->work, &f->by_workers, d->workers.point[0].time);
        }
}

/* ---- routes ---- */

static const gy_measured_copy *copy_of(const gy_measured *what, const gy_route *r)
{
    for (size_t i = 0; i < what->copies.count; i++)
        if (what->copies.at[i].from == r->from && what->copies.at[i].to == r->to)
            return &what->copies.at[i];
    return NULL;
}

/* The new times of a route, in `curve`; none: what it has stays. */
static bool find_times(gy_curve *curve, const gy_route *r, const gy_measured *what)
{
    const gy_measured_copy *copy = copy_of(what, r);
    curve->count = 0;
    if (!copy)
        return true;
    if (!gy_curve_of(curve, &copy->points))
        return false;
    if (!curve->count || (!copy->partial && gy_curve_end(curve)))
        return true;
    if (!gy_curve_follow(curve, r))
        return false;
    if (!gy_curve_end(curve))
        curve->count = 0;
    return true;
}

static bool copy_routes(gantry_machine *to, const gantry_machine *m, const gy_measured *what)
{
    gy_curve curve = { 0 };
    bool ok = true;
    for (size_t i = 0; i < (size_t)m->memories * m->memories && ok; i++) {
        const gy_route *r = &m->route[i];
        gy_via via = { r->resource, r->resources };
        if (r->kind != GY_ROUTE_DIRECT)
            continue;
        ok = find_times(&curve, r, what);
        if (ok && curve.count)
            ok = gy_machine_points(to, r->from, r->to, curve.at, (uint32_t)curve.count, via);
        else if (ok && r->given)
            ok = gy_machine_points(to, r->from, r->to, r->point, r->points, via);
        const gy_measured_copy *copy = copy_of(what, r);
        gy_machine_by_kernels(to, r->from, r->to, copy && !copy->partial ? copy->kernel_bytes : r->kernel_bytes);
    }
    gy_vec_free(&curve);
    return ok;
}

/* ---- tables ---- */

typedef GY_VEC(uint16_t) gy_shares;
static bool is_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool is_measured_again(const gy_measured *what, const gy_kernel_table *t)
{
    for (size_t i = 0; i < what->kernels.count; i++) {
        const gy_measured_kernel *k = &what->kernels.at[i];
        if (k->dtype == t->dtype && k->points.count > 0 && is_text(k->arguments, t->arguments) &&
            !strcmp(k->name, t->kernel) && !strcmp(k->kind, t->kind))
            return true;
    }
    return false;
}

/* Work of 0 has no place in a table. */
static void drop_idle(gy_curve *c)
{
    if (c->count && c->at[0].bytes == 0)
        memmove(c->at, c->at + 1, --c->count * sizeof *c->at);
}

/* The share that was measured of the work, else that of the table before; all of the device where neither has one. */
static uint16_t share_of(const gy_measured_kernel *k, const gy_kernel_table *old, int64_t work)
{
    for (size_t i = 0; i < k->points.count; i++)
        if (k->points.at[i].share && (int64_t)(k->points.at[i].work + 0.5) == work)
            return (uint16_t)k->points.at[i].share;
    return (uint16_t)(k->partial && old ? gy_kernel_share(old, (double)work) : GY_WHOLE_DEVICE);
}

/* `to->share`, in `shares`; NULL where every op takes all of the device. false: out of memory. */
static bool find_shares(gy_kernel_table *to, gy_shares *shares, const gy_measured_kernel *k, const gy_kernel_table *old)
{
    bool parts = false;
    shares->count = 0;
    for (uint32_t i = 0; i < to->points; i++) {
        uint16_t share = share_of(k, old, to->point[i].bytes);
        parts = parts || share < GY_WHOLE_DEVICE;
        if (!gy_vec_push(shares, share))
            return false;
    }
    to->share = parts ? shares->at : NULL;
    return true;
}

/* A run that says nothing of batches, or of pieces, leaves what was known of them. */
static bool add_with_rest(gantry_machine *to, gy_kernel_table t, const gy_measured_kernel *k, const gy_curve *curve,
                          const gy_kernel_table *old)
{
    gy_curve batched = { 0 };
    bool ok = gy_curve_of(&batched, &k->batched);
    drop_idle(&batched);
    bool stays = !batched.count && k->partial && old && old->by_flops == k->by_flops;
    t.batched = stays ? old->batched : batched.at;
    t.batched_points = stays ? old->batched_points : (uint32_t)batched.count;
    bool keeps = !k->strided.count && k->partial && old && old->by_flops == k->by_flops;
    ok = ok && (k->arguments || keeps || gy_strided_of(to, &t, curve, k));
    if (keeps) {
        t.strided = old->strided;
        t.strides = old->strides;
    }
    ok = ok && gy_machine_add_kernel(to, &t);
    gy_vec_free(&batched);
    return ok;
}

/* A table that was measured by itself says more of other arguments than those of a graph can; one that was made of
 * such grows. */
static bool merge(gy_curve *curve, const gantry_machine *m, const gy_kernel_table *old)
{
    if (gy_kernel_of_cases(m, old))
        return gy_curve_join(curve, old);
    curve->count = 0;
    return true;
}

static bool add_kernel(gantry_machine *to, const gantry_machine *m, const gy_measured_kernel *k, gy_curve *curve)
{
    const gy_kernel_table *old = k->arguments ? NULL : gy_machine_kernel(m, k->name, k->dtype, k->kind);
    if (!gy_curve_of(curve, &k->points))
        return false;
    drop_idle(curve);
    if (curve->count && k->partial && old && old->by_flops == k->by_flops && !merge(curve, m, old))
        return false;
    gy_kernel_table t = { .kernel = k->name, .kind = k->kind, .dtype = k->dtype, .by_flops = k->by_flops };
    t.arguments = k->arguments;
    t.point = curve->at;
    t.points = (uint32_t)curve->count;
    t.scratch = old && k->partial && old->scratch > k->scratch ? old->scratch : k->scratch;
    if (!curve->count)
        return !old || gy_machine_add_kernel(to, old);
    gy_shares shares = { 0 };
    const gy_kernel_table *same = k->arguments ? gy_machine_case(m, k->name, k->dtype, k->kind, k->arguments) : old;
    bool ok = find_shares(&t, &shares, k, old) && add_with_rest(to, t, k, curve, same);
    gy_vec_free(&shares);
    return ok;
}

static bool copy_kernels(gantry_machine *to, const gantry_machine *m, const gy_measured *what)
{
    gy_curve curve = { 0 };
    bool ok = true;
    for (uint32_t i = 0; i < m->kernels && ok; i++)
        ok = is_measured_again(what, &m->kernel[i]) || gy_machine_add_kernel(to, &m->kernel[i]);
    for (size_t i = 0; i < what->kernels.count && ok; i++)
        if (what->kernels.at[i].points.count > 0)
            ok = add_kernel(to, m, &what->kernels.at[i], &curve);
    gy_vec_free(&curve);
    return ok;
}

static bool add_collective(gantry_machine *to, const gy_measured_collective *c, gy_curve *curve)
{
    if (!gy_curve_of(curve, &c->points))
        return false;
    if (!gy_curve_end(curve))
        return true;
    gy_collective_table t = { c->collective, c->algorithm, c->kind, c->ranks, curve->at, (uint32_t)curve->count };
    return gy_machine_add_table(to, &t);
}

/* The old ones that were not measured again, behind the new ones. */
static bool copy_collectives(gantry_machine *to, const gantry_machine *m, const gy_measured *what)
{
    gy_curve curve = { 0 };
    bool ok = true;
    for (size_t i = 0; i < what->collectives.count && ok; i++)
        ok = add_collective(to, &what->collectives.at[i], &curve);
    for (uint32_t i = 0; i < m->tables && ok; i++) {
        const gy_collective_table *t = &m->table[i];
        ok = gy_machine_table(to, t->collective, t->algorithm, t->kind, t->ranks) || gy_machine_add_table(to, t);
    }
    gy_vec_free(&curve);
    return ok;
}

/* ---- all of it ---- */

static bool fill(gantry_machine *to, const gantry_machine *m, const gy_measured *what)
{
    set_launches(to, what);
    if (!set_all_workers(to, what) || !copy_routes(to, m, what))
        return false;
    set_formulas(to, what);
    if (what->traffic.count && !gy_calibrate_ports(to, what))
        return false;
    if (!what->traffic.count)
        gy_calibrate_shared(to, m);
    return gy_machine_compose(to) && copy_collectives(to, m, what) && copy_kernels(to, m, what) &&
           gy_calibrate_notes(to, m, what);
}

gantry_status gy_machine_calibrated(gantry_machine **out, const gantry_machine *m, const gy_measured *what,
                                    gantry_error *err)
{
    gantry_machine *to = gy_machine_new(m->name, (gy_machine_size){ m->memories, m->devices, m->resources });
    if (!to || !gy_machine_copy_parts(to, m, NULL) || !fill(to, m, what)) {
        gantry_machine_free(to);
        return gy_fail_nomem(err);
    }
    *out = to;
    return GANTRY_OK;
}
