/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of a calibrated machine: where its figures come from, and how good they are. */
#include "base/memory.h"
#include "machine/calibrate_build.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- quality ---- */

typedef struct spreads {
    GY_VEC(double) mad; /* relative */
    uint32_t samples;   /* the fewest */
    bool failed;
} spreads;

static void add_figure(spreads *s, const gy_figure *f)
{
    if (!f->samples || !(f->us > 0))
        return;
    s->samples = s->mad.count && s->samples < f->samples ? s->samples : f->samples;
    double mad = f->mad_us > 0 ? f->mad_us / f->us : 0;
    s->failed = s->failed || !gy_vec_push(&s->mad, mad);
}

static void add_points(spreads *s, const gy_measured_points *points)
{
    for (size_t i = 0; i < points->count; i++)
        add_figure(s, &points->at[i].time);
}

static void add_family(spreads *s, const gy_measured *what, gy_family family)
{
    s->mad.count = 0;
    for (size_t i = 0; family == GY_FAMILY_COPIES && i < what->copies.count; i++)
        add_points(s, &what->copies.at[i].points);
    for (size_t i = 0; family == GY_FAMILY_TRAFFIC && i < what->traffic.count; i++)
        add_figure(s, &what->traffic.at[i].time);
    for (size_t i = 0; family == GY_FAMILY_KERNELS && i < what->kernels.count; i++)
        add_points(s, &what->kernels.at[i].points);
    for (size_t i = 0; family == GY_FAMILY_COLLECTIVES && i < what->collectives.count; i++)
        add_points(s, &what->collectives.at[i].points);
    for (size_t i = 0; family == GY_FAMILY_WORKERS && i < what->workers.count; i++)
        for (size_t k = 0; k < what->workers.at[i].pairs.count; k++)
            add_figure(s, &what->workers.at[i].pairs.at[k].by_workers);
    for (size_t i = 0; family == GY_FAMILY_KERNELS && i < what->formulas.count; i++)
        add_figure(s, &what->formulas.at[i].launched);
    for (size_t i = 0; family == GY_FAMILY_WORKERS && i < what->formulas.count; i++)
        add_figure(s, &what->formulas.at[i].by_workers);
    for (size_t i = 0; family == GY_FAMILY_LAUNCHES && i < what->devices.count; i++)
        add_figure(s, &what->devices.at[i].launch);
}

/* Four digits: more say nothing. */
static double rounded(double share)
{
    return floor(share * 1e4 + 0.5) / 1e4;
}

static gy_quality quality_of(spreads *s)
{
    double worst = 0;
    uint32_t count = (uint32_t)s->mad.count;
    for (uint32_t i = 0; i < count; i++)
        worst = s->mad.at[i] > worst ? s->mad.at[i] : worst;
    gy_figure middle = gy_figure_of(s->mad.at, count);
    return (gy_quality){ count, s->samples, rounded(middle.us), rounded(worst) };
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The quality of old and new figures together. New ones that are fewer than the old replace only some of them, so the
 * worse of the two holds. */
static gy_quality joined(gy_quality old, gy_quality now)
{
    if (now.figures >= old.figures)
        return now;
    return (gy_quality){ old.figures, old.samples < now.samples ? old.samples : now.samples, larger(old.mad, now.mad),
                         larger(old.worst, now.worst) };
}

/* ---- notes ---- */

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* "measured copies: ..." of an earlier time. */
static bool speaks_of(const char *note, const char *subject)
{
    size_t length = strlen(subject);
    return begins(note, "measured ") && !strncmp(note + 9, subject, length) && note[9 + length] == ':';
}

static bool is_replaced(const gantry_machine *m, const gy_measured *what, const bool *again, const char *note)
{
    if (what->fingerprint.length && begins(note, "not measured: "))
        return true;
    for (int i = 0; i < GY_FAMILY_COUNT; i++)
        if (again[i] && speaks_of(note, gy_family_name((gy_family)i)))
            return true;
    for (size_t i = 0; i < what->devices.count; i++)
        if (what->devices.at[i].device < m->devices && speaks_of(note, m->device[what->devices.at[i].device].id))
            return true;
    return false;
}

static bool knows_copy(const gy_measured *what, const gy_route *r)
{
    for (size_t i = 0; i < what->copies.count; i++) {
        const gy_measured_copy *c = &what->copies.at[i];
        if (c->from == r->from && c->to == r->to && !c->partial && c->points.count > 0)
            return true;
    }
    return false;
}

static bool knows_all_copies(const gantry_machine *m, const gy_measured *what)
{
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++) {
        const gy_route *r = &m->route[i];
        if (r->kind == GY_ROUTE_DIRECT && r->from != r->to && !knows_copy(what, r))
            return false;
    }
    return true;
}

static bool note_family(gantry_machine *m, gy_family family)
{
    const gy_quality *q = &m->calibration.quality[family];
    return gy_machine_note(m, gy_arena_printf(&m->arena,
                                              "measured %s: %u figure%s of at least %u sample%s, median absolute "
                                              "deviation %.2g %% (of the worst %.2g %%)",
                                              gy_family_name(family), q->figures, q->figures == 1 ? "" : "s",
                                              q->samples, q->samples == 1 ? "" : "s", q->mad * 100, q->worst * 100));
}

static bool note_device(gantry_machine *m, const gy_measured_device *d)
{
    const struct {
        const char *name;
        const gy_figure *figure;
    } list[] = { { "launch in a stream", &d->launch },
                 { "event", &d->event },
                 { "node of a graph", &d->graph_node },
                 { "start of a graph", &d->graph_launch },
                 { "signal", &d->signal } };
    gy_text text = { 0 };
    gy_text_printf(&text, "measured %s:", m->device[d->device].id);
    const char *between = " ";
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].figure->samples) {
            gy_text_printf(&text, "%s%s %.3g us", between, list[i].name, list[i].figure->us);
            between = ", ";
        }
    if (d->clock_mhz > 0)
        gy_text_printf(&text, "%sclock %.0f MHz", between, d->clock_mhz);
    bool any = between[0] == ',' || d->clock_mhz > 0;
    bool ok = !text.failed && (!any || gy_machine_note(m, gy_machine_text(m, text.at)));
    gy_text_free(&text);
    return ok;
}

static bool add_failures(gantry_machine *m, const gy_measured *what)
{
    const char *line = what->notes.at;
    bool ok = true;
    while (ok && line && *line) {
        int length = (int)strcspn(line, "\n");
        ok = gy_machine_note(m, gy_arena_printf(&m->arena, "%.*s", length, line));
        line += length + (line[length] == '\n');
    }
    return ok;
}

static bool add_notes(gantry_machine *m, const gantry_machine *old, const gy_measured *what, const bool *again)
{
    bool all = knows_all_copies(m, what), ok = true;
    for (uint32_t i = 0; i < old->notes && ok; i++)
        if (!(all && begins(old->note[i], "assumed")) && !is_replaced(m, what, again, old->note[i]))
            ok = gy_machine_note(m, gy_machine_text(m, old->note[i]));
    for (int i = 0; i < GY_FAMILY_COUNT && ok; i++)
        ok = !again[i] || note_family(m, (gy_family)i);
    for (size_t i = 0; i < what->devices.count && ok; i++)
        ok = what->devices.at[i].device >= m->devices || note_device(m, &what->devices.at[i]);
    return ok && add_failures(m, what);
}

/* ---- source and facts ---- */

/* "measured: copies, kernels; else as before: ..." */
static bool set_source(gantry_machine *m, const gantry_machine *old)
{
    static const char before[] = "; else: ";
    const char *rest = old->source && begins(old->source, "measured: ") ? strstr(old->source, before) : NULL;
    rest = rest ? rest + strlen(before) : old->source && !begins(old->source, "measured: ") ? old->source : NULL;
    gy_text text = { 0 };
    bool any = false;
    for (int i = 0; i < GY_FAMILY_COUNT; i++)
        if (m->calibration.quality[i].figures) {
            gy_text_printf(&text, "%s%s", any ? ", " : "measured: ", gy_family_name((gy_family)i));
            any = true;
        }
    if (rest)
        gy_text_printf(&text, "%s%s", any ? before : "", rest);
    bool ok = !text.failed && (!text.length || (m->source = gy_machine_text(m, text.at)) != NULL);
    gy_text_free(&text);
    return ok;
}

static bool set_facts(gantry_machine *m, const gantry_machine *old, const gy_measured *what)
{
    const gy_calibration *c = &old->calibration;
    bool ok = true;
    if (what->fingerprint.length)
        return gy_machine_facts(m, what->fingerprint.at);
    for (uint32_t i = 0; i < c->facts && ok; i++)
        ok = gy_machine_fact(m, c->fact[i].name, c->fact[i].value);
    return ok;
}

bool gy_calibrate_notes(gantry_machine *m, const gantry_machine *old, const gy_measured *what)
{
    gy_calibration *c = &m->calibration;
    spreads s = { 0 };
    bool again[GY_FAMILY_COUNT];
    c->measured = old->calibration.measured;
    for (int i = 0; i < GY_FAMILY_COUNT; i++) {
        add_family(&s, what, (gy_family)i);
        again[i] = s.mad.count > 0;
        c->quality[i] = again[i] ? joined(old->calibration.quality[i], quality_of(&s)) : old->calibration.quality[i];
        c->measured = c->measured || again[i];
    }
    gy_vec_free(&s.mad);
    return !s.failed && set_facts(m, old, what) && set_source(m, old) && add_notes(m, old, what, again);
}
