/* SPDX-License-Identifier: Apache-2.0 */
/* From the times of a run to a machine: of its kernels, and of its copies. */
#include "run/samples.h"

#include "base/error.h"
#include "machine/calibrate.h"
#include "machine/recall.h"
#include "run/learn.h"
#include <stdlib.h>
#include <string.h>

#define ALIKE 1.05 /* work that differs by less is one point: its mean, with the times of all */

/* An op that has samples: a kernel's or a copy. */
typedef struct entry {
    const char *name, *kind; /* NULL: a copy */
    const char *arguments;   /* gy_node_case; NULL: there is none */
    uint32_t dtype, from, to;
    double flops, bytes, roofline_flops, roofline_bytes; /* us */
    double work;                                         /* once it is known what the points go by */
    size_t op;                                           /* counted through all phases */
} entry;

typedef GY_VEC(entry) entries;

typedef struct calibration {
    const gantry_run *run;
    entries list;
    gy_names texts; /* of arguments */
    gy_text text;   /* of those at hand */
    double *pool;   /* room for the samples of one point */
    size_t first;   /* start that counts */
    gy_measured what;
} calibration;

/* ---- what there is ---- */

static void describe_kernel(entry *e, calibration *c, const gantry_schedule *s, const gy_op *op)
{
    const gantry_graph *g = s->graph;
    const gy_node *n = &g->nodes.at[op->node];
    const gy_device *d = &s->machine->device[gy_op_device(s, op, 0)];
    e->name = g->kernels.at[n->kernel].manifest->name;
    e->kind = d->kind;
    e->dtype = (uint32_t)gy_node_dtype(g, n);
    e->flops = n->flops;
    e->bytes = n->bytes;
    double gflops = gy_device_gflops(d, (gantry_dtype)e->dtype);
    e->roofline_flops = gflops > 0 ? n->flops / gflops : 0;
    e->roofline_bytes = d->bandwidth_gbs > 0 ? n->bytes / d->bandwidth_gbs : 0;
    if (gy_node_case(&c->text, g, n)) {
        uint32_t at = gy_names_add(&c->texts, c->text.at, NULL);
        e->arguments = at == GY_NO_NAME ? NULL : gy_names_at(&c->texts, at);
        c->text.failed = c->text.failed || at == GY_NO_NAME;
    }
}

static void describe_copy(entry *e, const gantry_schedule *s, const gy_op *op)
{
    const gy_use *use = gy_vec_from(&s->use, op->use);
    e->from = s->instances.at[use[0].instance].memory;
    e->to = s->instances.at[use[1].instance].memory;
    e->bytes = (double)gy_use_bytes(s, &use[1]);
}

static bool list_ops(calibration *c)
{
    const gantry_schedule *s;
    size_t before = 0;
    for (size_t part = 0; (s = gy_samples_phase(c->run->schedule, part)); part++) {
        for (size_t i = 0; i < s->ops.count; i++) {
            const gy_op *op = &s->ops.at[i];
            entry e = { .op = before + i };
            if (gy_samples_kernel(s, op, c->run->job.apart))
                describe_kernel(&e, c, s, op);
            else if (gy_op_is_copy(op) && !op->batch && !op->joined)
                describe_copy(&e, s, op);
            if ((e.name || e.bytes > 0) && !gy_vec_push(&c->list, e))
                return false;
        }
        before += s->ops.count;
    }
    return !c->text.failed;
}

/* ---- classes of them ---- */

static int by_class(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (!x->name || !y->name) {
        if (x->name || y->name)
            return x->name ? 1 : -1;
        if (x->from != y->from)
            return x->from < y->from ? -1 : 1;
        return (x->to > y->to) - (x->to < y->to);
    }
    int order = strcmp(x->name, y->name);
    order = order ? order : (x->dtype > y->dtype) - (x->dtype < y->dtype);
    return order ? order : strcmp(x->kind, y->kind);
}

/* The same arguments stand together, as ops are numbered; those without a text first. */
static int by_arguments(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = !x->arguments || !y->arguments ? !!x->arguments - !!y->arguments : strcmp(x->arguments, y->arguments);
    return order ? order : (x->op > y->op) - (x->op < y->op);
}

/* Ops of the same work as they are numbered: the order of samples then does not depend on the sort. */
static int by_work(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->work != y->work)
        return x->work < y->work ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

/* As the table goes that is there, else by what bounds most of the class. */
static bool goes_by_flops(const gantry_machine *m, const entry *list, size_t count)
{
    const gy_kernel_table *old = gy_machine_kernel(m, list->name, (gantry_dtype)list->dtype, list->kind);
    double flops = 0, us[2] = { 0, 0 };
    for (size_t i = 0; i < count; i++) {
        flops += list[i].flops;
        us[0] += list[i].roofline_flops;
        us[1] += list[i].roofline_bytes;
    }
    if (!(flops > 0))
        return false;
    return old ? old->by_flops : us[0] >= us[1];
}

/* ---- figures ---- */

/* The entries [first, last), which are alike, as a point; false: out of memory. */
static bool add_point(calibration *c, gy_measured_points *to, const entry *list, size_t count)
{
    const gy_samples *s = c->run->samples;
    uint32_t samples = 0;
    double work = 0;
    for (size_t i = 0; i < count; i++) {
        work += list[i].work / (double)count;
        for (size_t k = c->first; k < s->start.count; k++) {
            double us = s->start.at[k][list[i].op];
            if (us > 0)
                c->pool[samples++] = us;
        }
    }
    if (!samples)
        return true;
    gy_measured_point p = { count == 1 || list[0].work == list[count - 1].work ? list[0].work : work,
                            gy_figure_of(c->pool, samples), 0 };
    return gy_vec_push(to, p);
}

/* A class, sorted by work; work of 0 says nothing. */
static bool add_points(calibration *c, gy_measured_points *to, entry *list, size_t count)
{
    bool ok = true;
    qsort(list, count, sizeof *list, by_work);
    for (size_t i = 0, next; i < count && ok; i = next) {
        next = i + 1;
        while (next < count && list[next].work <= list[i].work * ALIKE)
            next++;
        ok = !(list[i].work > 0) || add_point(c, to, &list[i], next - i);
    }
    return ok;
}

/* The figure of entries with equal arguments, like that of their whole class in everything else. */
static bool add_case(calibration *c, gy_measured_kernel k, const entry *list, size_t count)
{
    k.points = (gy_measured_points){ 0 };
    k.arguments = list->arguments;
    bool told = k.arguments && list->work > 0;
    bool ok = !told || (add_point(c, &k.points, list, count) && (!k.points.count || gy_vec_push(&c->what.kernels, k)));
    if (!ok)
        gy_vec_free(&k.points);
    return ok;
}

static bool add_cases(calibration *c, gy_measured_kernel k, entry *list, size_t count)
{
    bool ok = true;
    qsort(list, count, sizeof *list, by_arguments);
    for (size_t i = 0, next; i < count && ok; i = next) {
        next = i + 1;
        while (next < count && list[i].arguments == list[next].arguments)
            next++;
        ok = add_case(c, k, &list[i], next - i);
    }
    return ok;
}

/* A table for all arguments, then a time for each that there are. */
static bool add_kernel(calibration *c, entry *list, size_t count)
{
    gy_measured_kernel k = { .name = list->name, .kind = list->kind, .dtype = (gantry_dtype)list->dtype };
    k.partial = true;
    k.by_flops = goes_by_flops(c->run->schedule->machine, list, count);
    for (size_t i = 0; i < count; i++)
        list[i].work = k.by_flops ? list[i].flops : list[i].bytes;
    bool ok = add_points(c, &k.points, list, count) && gy_vec_push(&c->what.kernels, k);
    if (!ok)
        gy_vec_free(&k.points);
    return ok && add_cases(c, k, list, count);
}

static bool add_copy(calibration *c, entry *list, size_t count)
{
    gy_measured_copy copy = { .from = list->from, .to = list->to, .partial = true };
    for (size_t i = 0; i < count; i++)
        list[i].work = list[i].bytes;
    bool ok = add_points(c, &copy.points, list, count) && gy_vec_push(&c->what.copies, copy);
    if (!ok)
        gy_vec_free(&copy.points);
    return ok;
}

static bool add_classes(calibration *c)
{
    entry *list = c->list.at;
    bool ok = true;
    if (c->list.count)
        qsort(list, c->list.count, sizeof *list, by_class);
    for (size_t i = 0, next; i < c->list.count && ok; i = next) {
        next = i + 1;
        while (next < c->list.count && by_class(&list[i], &list[next]) == 0)
            next++;
        ok = list[i].name ? add_kernel(c, &list[i], next - i) : add_copy(c, &list[i], next - i);
    }
    return ok;
}

/* Figures of GPUs hold for the driver and devices of today. */
static gantry_status add_fingerprint(calibration *c, gantry_error *err)
{
    gantry_machine *here = NULL;
    if (!c->run->backend->gpu_kernels)
        return GANTRY_OK;
    gantry_status status = gantry_machine_detect(&here, NULL, err);
    for (uint32_t i = 0; !status && i < here->calibration.facts; i++) {
        const gy_fact *f = &here->calibration.fact[i];
        gy_text_printf(&c->what.fingerprint, "%s: %s\n", f->name, f->value);
    }
    gantry_machine_free(here);
    return !status && c->what.fingerprint.failed ? gy_fail_nomem(err) : status;
}

static gantry_status measure(calibration *c, gantry_error *err)
{
    const gy_samples *s = c->run->samples;
    c->first = s->start.count > 1; /* the first start is a warm-up */
    if (!list_ops(c))
        return gy_fail_nomem(err);
    c->pool = gy_alloc((c->list.count * s->start.count + 1) * sizeof *c->pool);
    if (!c->pool || !add_classes(c))
        return gy_fail_nomem(err);
    return add_fingerprint(c, err);
}

static void end(calibration *c)
{
    gy_measured_free(&c->what);
    gy_vec_free(&c->list);
    gy_names_free(&c->texts);
    gy_text_free(&c->text);
    gy_free(c->pool);
}

static gantry_status begin(calibration *c, const gantry_run *run, gantry_error *err)
{
    *c = (calibration){ .run = run };
    if (!run->samples || !run->samples->start.count)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no start was sampled; call gantry_run_sample after one has ended");
    return measure(c, err);
}

/* Times hold for as many threads as CPUs had, so the machine says how many. */
static void note_threads(gantry_machine *m, const gantry_run *run)
{
    for (uint32_t d = 0; d < m->devices; d++) {
        uint32_t threads = gy_teams_threads(run->teams, d);
        m->device[d].threads = threads ? threads : m->device[d].threads;
    }
}

static gantry_status calibrated(gantry_machine **machine, const gantry_run *run, gantry_error *err)
{
    calibration c;
    gantry_machine *made = NULL;
    gantry_status status = begin(&c, run, err);
    if (!status)
        status = gy_machine_calibrated(&made, run->schedule->machine, &c.what, err);
    end(&c);
    if (status)
        return status;
    note_threads(made, run);
    *machine = made;
    return GANTRY_OK;
}

gantry_status gantry_run_calibrated(gantry_machine **machine, const gantry_run *run, gantry_error *err)
{
    GY_NEED(machine, err);
    GY_USE_RUN(run, calibrated(machine, run, err), err);
}

/* ---- what is kept for other runs ---- */

/* Kernels alone: how fast copies are is for a calibration to say. */
static void forget_copies(calibration *c)
{
    for (size_t i = 0; i < c->what.copies.count; i++)
        gy_vec_free(&c->what.copies.at[i].points);
    c->what.copies.count = 0;
    gy_text_free(&c->what.fingerprint); /* that of what is known stays */
}

/* A time that a kernel took where ops were kept apart is better than that of ops which were alone by chance. */
static void forget_known(calibration *c, const gantry_machine *known)
{
    for (size_t i = 0; i < c->what.kernels.count; i++) {
        gy_measured_kernel *k = &c->what.kernels.at[i];
        if (k->arguments && gy_machine_case(known, k->name, k->dtype, k->kind, k->arguments))
            gy_vec_free(&k->points);
    }
}

/* `known` becomes the machine that has the shares of kernels, too. */
static gantry_status add_shares(gantry_machine **known, const gantry_run *run, gantry_error *err)
{
    gy_measured shares = { 0 };
    gantry_machine *next = NULL;
    gantry_status status = gy_learn_shares(&shares, run, *known, err);
    if (!status && shares.kernels.count)
        status = gy_machine_calibrated(&next, *known, &shares, err);
    gy_measured_free(&shares);
    if (next) {
        gantry_machine_free(*known);
        *known = next;
    }
    return status;
}

static gantry_status add_to(const gantry_machine *known, const calibration *c, const gantry_machine *here,
                            gantry_error *err)
{
    gantry_machine *next = NULL;
    GY_TRY(gy_machine_calibrated(&next, known, &c->what, err));
    gantry_status status = c->run->job.apart ? GANTRY_OK : add_shares(&next, c->run, err);
    if (!status && !c->run->job.apart && !gy_learn_mark(next, c->run))
        status = gy_fail_nomem(err);
    gy_recall_trim(next);
    status = status ? status : gy_recall_keep(next, here, err);
    gantry_machine_free(next);
    return status;
}

static gantry_status keep(const gantry_run *run, const gantry_machine *here, gantry_error *err)
{
    calibration c;
    gantry_machine *known = NULL;
    char *text = NULL;
    GY_TRY(gy_recall_need(here, err));
    gantry_status status = begin(&c, run, err);
    forget_copies(&c);
    status = status ? status : gy_recall_read(&known, here, &text, err);
    if (!status && !run->job.apart)
        forget_known(&c, known);
    status = status ? status : add_to(known, &c, here, err);
    gantry_free(text);
    gantry_machine_free(known);
    end(&c);
    return status;
}

gantry_status gantry_run_keep(const gantry_run *run, const gantry_machine *here, gantry_error *err)
{
    GY_NEED(here, err);
    GY_USE_RUN(run, keep(run, here, err), err);
}
