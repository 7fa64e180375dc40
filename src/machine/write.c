/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's normal form: docs/machine-format.md, one line per memory, device, resource and direct route. */
#include "base/error.h"
#include "base/file.h"
#include "machine/build.h"
#include <string.h>

/* "12" instead of "12.0": these numbers are read as reals either way. */
static void put_number(gy_text *to, double value)
{
    gy_text_double(to, value);
    if (to->length > 2 && !strcmp(to->at + to->length - 2, ".0"))
        to->at[to->length -= 2] = 0;
}

static void put_us(gy_text *to, gy_ticks t)
{
    put_number(to, gy_ticks_to_us(t));
}
static void put_gbs(gy_text *to, int64_t rate)
{
    put_number(to, (double)rate / 1e9);
}

static void put_line(gy_text *to, int indent, const char *text)
{
    gy_text_printf(to, "\n%*s%s", indent, "", text);
}

static void put_key(gy_text *to, int indent, const char *key)
{
    gy_text_printf(to, ",\n%*s\"%s\": ", indent, "", key);
}

static void put_memory(gy_text *to, const gy_memory *y)
{
    gy_text_add(to, "{ \"id\": ");
    gy_text_json(to, y->id);
    gy_text_printf(to, ", \"capacity\": %llu, \"reserved\": %llu", (unsigned long long)y->capacity,
                   (unsigned long long)y->reserved);
    if (y->pinned)
        gy_text_add(to, ", \"pinned\": true");
    if (y->numa >= 0)
        gy_text_printf(to, ", \"numa\": %d", y->numa);
    if (y->rank)
        gy_text_printf(to, ", \"rank\": %u", y->rank);
    gy_text_add(to, " }");
}

static void put_gflops(gy_text *to, const char *key, const double *gflops)
{
    static const char *const name[] = {
#define GANTRY_X(dtype, text, bytes) #text,
        GANTRY_DTYPE_MAP(GANTRY_X)
#undef GANTRY_X
    };
    bool any = false;
    for (int i = 0; i < GANTRY_DTYPE_COUNT; i++)
        if (gflops[i] > 0) {
            if (any)
                gy_text_printf(to, ", \"%s\": ", name[i]);
            else
                gy_text_printf(to, ", \"%s\": { \"%s\": ", key, name[i]);
            put_number(to, gflops[i]);
            any = true;
        }
    if (any)
        gy_text_add(to, " }");
}

static void put_speeds(gy_text *to, const gy_device *d)
{
    put_gflops(to, "gflops", d->gflops);
    put_gflops(to, "formulas", d->formulas);
    if (d->bandwidth_gbs > 0) {
        gy_text_add(to, ", \"bandwidth_gbs\": ");
        put_number(to, d->bandwidth_gbs);
    }
}

static void put_workers(gy_text *to, const gy_worker_times *w)
{
    gy_text_add(to, ", \"workers\": { \"times_us\": [");
    for (uint32_t i = 0; i < w->points; i++) {
        gy_text_add(to, i ? ", [" : "[");
        put_us(to, w->point[i].bytes);
        gy_text_add(to, ", ");
        put_us(to, w->point[i].time);
        gy_text_add(to, "]");
    }
    gy_text_add(to, "], \"switch_us\": ");
    put_us(to, w->change);
    gy_text_add(to, ", \"start_us\": ");
    put_us(to, w->start);
    gy_text_add(to, ", \"beside\": ");
    put_number(to, (double)w->beside / GY_ALONE);
    put_gflops(to, "formulas", w->formulas);
    gy_text_add(to, " }");
}

static void put_device(gy_text *to, const gantry_machine *m, const gy_device *d)
{
    gy_text_add(to, "{ \"id\": ");
    gy_text_json(to, d->id);
    gy_text_add(to, ", \"kind\": ");
    gy_text_json(to, d->kind);
    gy_text_printf(to, ", \"type\": \"%s\", ", d->gpu ? "gpu" : "cpu");
    if (d->host_only)
        gy_text_add(to, "\"use\": \"host\", ");
    gy_text_add(to, "\"memory\": ");
    gy_text_json(to, m->memory[d->memory].id);
    gy_text_printf(to, ", \"lanes\": %u, \"copy_engines\": %u", d->lanes, d->copy_engines);
    if (d->multiprocessors)
        gy_text_printf(to, ", \"multiprocessors\": %u", d->multiprocessors);
    if (d->threads)
        gy_text_printf(to, ", \"threads\": %u", d->threads);
    put_speeds(to, d);
    gy_text_add(to, ", \"launch_us\": ");
    put_us(to, d->launch);
    if (d->signal) {
        gy_text_add(to, ", \"signal_us\": ");
        put_us(to, d->signal);
    }
    if (d->workers.points)
        put_workers(to, &d->workers);
    if (d->ordinal >= 0)
        gy_text_printf(to, ", \"ordinal\": %d", d->ordinal);
    gy_text_add(to, " }");
}

static void put_points(gy_text *to, const char *key, const gy_point *point, uint32_t points)
{
    gy_text_printf(to, ", \"%s\": [", key);
    for (uint32_t i = 0; i < points; i++) {
        gy_text_printf(to, "%s[%lld, ", i ? ", " : "", (long long)point[i].bytes);
        put_us(to, point[i].time);
        gy_text_add(to, "]");
    }
    gy_text_add(to, "]");
}

static void put_times(gy_text *to, const gy_route *r)
{
    gy_ticks latency;
    int64_t rate;
    if (gy_route_is_link(r, &latency, &rate)) {
        gy_text_add(to, ", \"latency_us\": ");
        put_us(to, latency);
        gy_text_add(to, ", \"bandwidth_gbs\": ");
        put_gbs(to, rate);
        return;
    }
    put_points(to, "points", r->point, r->points);
}

static void put_route(gy_text *to, const gantry_machine *m, const gy_route *r)
{
    gy_text_add(to, "{ \"from\": ");
    gy_text_json(to, m->memory[r->from].id);
    gy_text_add(to, ", \"to\": ");
    gy_text_json(to, m->memory[r->to].id);
    put_times(to, r);
    for (uint32_t i = 0; i < r->resources; i++) {
        gy_text_add(to, i ? ", " : ", \"via\": [");
        gy_text_json(to, m->resource[r->resource[i]].id);
    }
    gy_text_add(to, r->resources ? "]" : "");
    if (r->kernel_bytes)
        gy_text_printf(to, ", \"kernel_bytes\": %lld", (long long)r->kernel_bytes);
    gy_text_add(to, r->network ? ", \"network\": true" : "");
    gy_text_add(to, " }");
}

static void put_heading(gy_text *to, const gantry_machine *m, int indent)
{
    gy_text_printf(to, "{\n%*s\"gantry_machine\": 1", indent, "");
    put_key(to, indent, "name");
    gy_text_json(to, m->name);
    if (m->source) {
        put_key(to, indent, "source");
        gy_text_json(to, m->source);
    }
    if (!m->notes)
        return;
    put_key(to, indent, "notes");
    gy_text_add(to, "[");
    for (uint32_t i = 0; i < m->notes; i++) {
        put_line(to, indent + 2, "");
        gy_text_json(to, m->note[i]);
        gy_text_add(to, i + 1 < m->notes ? "," : "");
    }
    put_line(to, indent, "]");
}

static void put_parts(gy_text *to, const gantry_machine *m, int indent)
{
    put_key(to, indent, "memories");
    for (uint32_t i = 0; i < m->memories; i++) {
        gy_text_add(to, i ? "," : "[");
        put_line(to, indent + 2, "");
        put_memory(to, &m->memory[i]);
    }
    put_line(to, indent, "]");
    put_key(to, indent, "devices");
    for (uint32_t i = 0; i < m->devices; i++) {
        gy_text_add(to, i ? "," : "[");
        put_line(to, indent + 2, "");
        put_device(to, m, &m->device[i]);
    }
    put_line(to, indent, "]");
}

static void put_resources(gy_text *to, const gantry_machine *m, int indent)
{
    if (!m->resources)
        return;
    put_key(to, indent, "resources");
    for (uint32_t i = 0; i < m->resources; i++) {
        gy_text_add(to, i ? "," : "{");
        put_line(to, indent + 2, "");
        gy_text_json(to, m->resource[i].id);
        gy_text_add(to, ": ");
        put_gbs(to, m->resource[i].rate);
    }
    put_line(to, indent, "}");
}

static void put_routes(gy_text *to, const gantry_machine *m, int indent)
{
    bool any = false;
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++) {
        if (!m->route[i].given)
            continue;
        if (!any)
            put_key(to, indent, "routes");
        gy_text_add(to, any ? "," : "[");
        put_line(to, indent + 2, "");
        put_route(to, m, &m->route[i]);
        any = true;
    }
    if (any)
        put_line(to, indent, "]");
}

static void put_collectives(gy_text *to, const gantry_machine *m, int indent)
{
    if (!m->tables)
        return;
    put_key(to, indent, "collectives");
    for (uint32_t i = 0; i < m->tables; i++) {
        const gy_collective_table *t = &m->table[i];
        gy_text_add(to, i ? "," : "[");
        put_line(to, indent + 2, "");
        gy_text_printf(to, "{ \"collective\": \"%s\", \"algorithm\": \"%s\", \"kind\": ",
                       gantry_collective_name(t->collective), gy_algorithm_name(t->algorithm));
        gy_text_json(to, t->kind);
        gy_text_printf(to, ", \"ranks\": %u", t->ranks);
        put_points(to, "points", t->point, t->points);
        gy_text_add(to, " }");
    }
    put_line(to, indent, "]");
}

static void put_share_and_scratch(gy_text *to, const gy_kernel_table *t)
{
    for (uint32_t i = 0; t->share && i < t->points; i++) {
        gy_text_add(to, i ? ", " : ", \"share\": [");
        put_number(to, (double)t->share[i] / GY_WHOLE_DEVICE);
    }
    if (t->share)
        gy_text_add(to, "]");
    if (t->scratch)
        gy_text_printf(to, ", \"scratch\": %llu", (unsigned long long)t->scratch);
}

static void put_kernels(gy_text *to, const gantry_machine *m, int indent)
{
    if (!m->kernels)
        return;
    put_key(to, indent, "kernels");
    for (uint32_t i = 0; i < m->kernels; i++) {
        const gy_kernel_table *t = &m->kernel[i];
        gy_text_add(to, i ? "," : "[");
        put_line(to, indent + 2, "");
        gy_text_add(to, "{ \"kernel\": ");
        gy_text_json(to, t->kernel);
        gy_text_printf(to, ", \"dtype\": \"%s\", \"kind\": ", gantry_dtype_name(t->dtype));
        gy_text_json(to, t->kind);
        if (t->arguments) {
            gy_text_add(to, ", \"case\": ");
            gy_text_json(to, t->arguments);
        }
        gy_text_printf(to, ", \"by\": \"%s\"", t->by_flops ? "flops" : "bytes");
        put_points(to, "points", t->point, t->points);
        put_share_and_scratch(to, t);
        if (t->batched_points)
            put_points(to, "batched", t->batched, t->batched_points);
        for (uint32_t k = 0; k < t->strides; k++) {
            gy_text_printf(to, "%s[%lld, ", k ? ", " : ", \"strided\": [", (long long)t->strided[k].bytes);
            put_number(to, (double)t->strided[k].times / GY_ALONE);
            gy_text_add(to, k + 1 == t->strides ? "]]" : "]");
        }
        gy_text_add(to, " }");
    }
    put_line(to, indent, "]");
}

static void put_facts(gy_text *to, const gy_calibration *c)
{
    for (uint32_t i = 0; i < c->facts; i++) {
        gy_text_add(to, i ? ", " : "\"fingerprint\": { ");
        gy_text_json(to, c->fact[i].name);
        gy_text_add(to, ": ");
        gy_text_json(to, c->fact[i].value);
    }
    gy_text_add(to, c->facts ? " }" : "");
}

static void put_quality(gy_text *to, const char *name, const gy_quality *q)
{
    gy_text_printf(to, "\"%s\": { \"figures\": %u, \"samples\": %u, \"mad\": ", name, q->figures, q->samples);
    put_number(to, q->mad);
    gy_text_add(to, ", \"worst\": ");
    put_number(to, q->worst);
    gy_text_add(to, " }");
}

static void put_calibration(gy_text *to, const gantry_machine *m, int indent)
{
    const gy_calibration *c = &m->calibration;
    bool any = c->facts > 0;
    if (!c->measured)
        return;
    put_key(to, indent, "calibration");
    gy_text_add(to, "{");
    put_line(to, indent + 2, "");
    put_facts(to, c);
    for (int i = 0; i < GY_FAMILY_COUNT; i++) {
        if (!c->quality[i].figures)
            continue;
        if (any) {
            gy_text_add(to, ",");
            put_line(to, indent + 2, "");
        }
        put_quality(to, gy_family_name((gy_family)i), &c->quality[i]);
        any = true;
    }
    put_line(to, indent, "}");
}

static void put_network(gy_text *to, const gy_uplink *n, int indent)
{
    if (!n->rate)
        return;
    put_key(to, indent, "network");
    gy_text_add(to, "{ \"latency_us\": ");
    put_us(to, n->latency);
    gy_text_add(to, ", \"bandwidth_gbs\": ");
    put_gbs(to, n->rate);
    gy_text_printf(to, ", \"ports\": \"%s\" }", gy_ports_name((int)n->ports));
}

void gy_machine_print(gy_text *to, const gantry_machine *m, int indent)
{
    put_heading(to, m, indent + 2);
    put_parts(to, m, indent + 2);
    put_resources(to, m, indent + 2);
    put_routes(to, m, indent + 2);
    put_collectives(to, m, indent + 2);
    put_kernels(to, m, indent + 2);
    put_calibration(to, m, indent + 2);
    put_network(to, &m->network, indent + 2);
    put_key(to, indent + 2, "model");
    gy_text_printf(to, "{ \"contention\": \"%s\", \"launch_us\": ", m->contention ? "on" : "off");
    put_us(to, m->launch);
    const struct {
        const char *key;
        gy_ticks value;
    } times[] = { { "issue_us", m->issue },     { "submit_us", m->submit },    { "start_us", m->start },
                  { "another_us", m->another }, { "edge_us", m->edge },        { "gate_us", m->gate },
                  { "when_us", m->when },       { "left_out_us", m->left_out } };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i].value) {
            gy_text_printf(to, ", \"%s\": ", times[i].key);
            put_us(to, times[i].value);
        }
    gy_text_printf(to, " }\n%*s}", indent, "");
}

gantry_status gantry_machine_json(const gantry_machine *machine, char **text, size_t *length, gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(text, err);
    gy_text print = { 0 };
    size_t n = 0;
    gy_machine_print(&print, machine, 0);
    gy_text_add(&print, "\n");
    char *taken = gy_text_take(&print, &n);
    if (!taken)
        return gy_fail_nomem(err);
    *text = taken;
    if (length)
        *length = n;
    return GANTRY_OK;
}

gantry_status gantry_machine_save(const gantry_machine *machine, const char *path, gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(path, err);
    char *text;
    size_t length;
    gantry_status status = gantry_machine_json(machine, &text, &length, err);
    if (status)
        return status;
    status = gy_file_write(path, text, length, err);
    gantry_free(text);
    return status;
}
