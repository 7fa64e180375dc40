/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A machine with some of the devices of another, in the other's order: "4" is the first four, "id:0,gpu2" those by
 * index or id. A CPU that works in the host memory beside GPUs is not counted and is always kept; one for host calls
 * that is named takes other nodes, too.
 */
#include "base/error.h"
#include "base/memory.h"
#include "machine/build.h"
#include "machine/gpus.h"
#include <stdlib.h>
#include <string.h>

typedef struct selection {
    const gantry_machine *from;
    const char *text;            /* as the user wrote it */
    bool *keep, *named;          /* per device */
    uint32_t *memory, *resource; /* new number of each, or GY_MACHINE_NONE */
    gantry_error *err;
} selection;

static bool has_gpu(const gantry_machine *m)
{
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].gpu)
            return true;
    return false;
}

static bool is_companion(const gantry_machine *m, uint32_t device)
{
    const gy_device *d = &m->device[device];
    return d->host_only || (!d->gpu && m->memory[d->memory].host && has_gpu(m));
}

uint32_t gy_machine_counted(const gantry_machine *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->devices; i++)
        count += !is_companion(m, i);
    return count;
}

void gy_machine_list_devices(gy_text *to, const gantry_machine *m)
{
    for (uint32_t i = 0; i < m->devices; i++) {
        bool skip = m->devices > 12 && i > 1 && i + 1 < m->devices;
        if (!skip)
            gy_text_printf(to, "%s%s", i ? ", " : "", m->device[i].id);
        else if (i == 2)
            gy_text_add(to, ", ...");
    }
}

static gantry_status no_device(const selection *s, const char *word, bool is_index)
{
    gy_text ids = { 0 };
    gy_near near = { 0 };
    gy_machine_list_devices(&ids, s->from);
    for (uint32_t i = 0; i < s->from->devices && !is_index; i++)
        gy_near_offer(&near, word, s->from->device[i].id);
    if (ids.failed) {
        gy_text_free(&ids);
        return gy_fail_nomem(s->err);
    }
    gantry_status status;
    if (near.best)
        status =
            gy_fail(s->err, GANTRY_E_INVALID, NULL, "no device \"%s\" (did you mean \"%s\"?); machine \"%s\" has %s",
                    word, near.best, s->from->name, ids.at);
    else
        status = gy_fail(s->err, GANTRY_E_INVALID, NULL, "no device \"%s\": machine \"%s\" has %s, or by index 0 to %u",
                         word, s->from->name, ids.at, s->from->devices - 1);
    gy_text_free(&ids);
    return status;
}

static gantry_status keep_word(selection *s, const char *word)
{
    uint32_t found = gy_machine_find_device(s->from, word);
    bool is_index = word[0] && strspn(word, "0123456789") == strlen(word);
    if (!word[0])
        return gy_fail(s->err, GANTRY_E_INVALID, NULL, "an id is missing in \"%s\"; write id:0,2 or id:gpu0,gpu2",
                       s->text);
    if (is_index)
        found = strlen(word) < 9 ? (uint32_t)strtoul(word, NULL, 10) : GY_MACHINE_NONE;
    if (found >= s->from->devices)
        return no_device(s, word, is_index);
    if (s->keep[found])
        return gy_fail(s->err, GANTRY_E_INVALID, NULL, "device \"%s\" is named twice in \"%s\"",
                       s->from->device[found].id, s->text);
    s->keep[found] = s->named[found] = true;
    return GANTRY_OK;
}

/* Devices for host calls are the last, also of those that are left. */
static gantry_status check_named(const selection *s)
{
    uint32_t only = GY_MACHINE_NONE;
    for (uint32_t i = 0; i < s->from->devices; i++) {
        if (only != GY_MACHINE_NONE && s->named[i])
            return gy_fail(s->err, GANTRY_E_INVALID, NULL,
                           "device \"%s\" of use \"host\" is named and \"%s\", which is before it, is not; name both",
                           s->from->device[i].id, s->from->device[only].id);
        if (s->keep[i] && !s->named[i] && s->from->device[i].host_only)
            only = i;
    }
    return GANTRY_OK;
}

static gantry_status keep_listed(selection *s, const char *list)
{
    gantry_status status = GANTRY_OK;
    while (!status) {
        size_t length = strcspn(list, ",");
        char *word = gy_strndup(list, length);
        status = word ? keep_word(s, word) : gy_fail_nomem(s->err);
        gy_free(word);
        if (!list[length])
            break;
        list += length + 1;
    }
    return status;
}

static gantry_status keep_first(selection *s)
{
    const gantry_machine *m = s->from;
    uint32_t available = gy_machine_counted(m);
    size_t digits = strspn(s->text, "0123456789");
    if (!digits || s->text[digits])
        return gy_fail(s->err, GANTRY_E_INVALID, NULL,
                       "\"%s\" names no devices; write a number from 1 to %u, or ids or indices such as id:0,%s",
                       s->text, available, m->device[m->devices > 1].id);
    uint64_t wanted = digits < 10 ? strtoul(s->text, NULL, 10) : UINT32_MAX;
    if (wanted < 1 || wanted > available)
        return gy_fail(s->err, GANTRY_E_INVALID, NULL, "%s devices: machine \"%s\" has %u; write 1 to %u", s->text,
                       m->name, available, available);
    for (uint32_t i = 0; wanted; i++)
        if (!is_companion(m, i)) {
            s->keep[i] = true;
            wanted--;
        }
    return GANTRY_OK;
}

/* A device was chosen that works in a memory of the rank. */
static bool keeps_rank(const selection *s, uint32_t rank)
{
    for (uint32_t i = 0; i < s->from->devices; i++)
        if (s->keep[i] && !s->from->device[i].host_only && gy_device_rank(s->from, i) == rank)
            return true;
    return false;
}

/* Companions stay beside what was chosen of their rank; those of rank 0, which has the host memory, always. */
static gantry_status choose(selection *s)
{
    gantry_status status = !strncmp(s->text, "id:", 3) ? keep_listed(s, s->text + 3) : keep_first(s);
    bool worker = false;
    for (uint32_t i = 0; i < s->from->devices && !status; i++) {
        uint32_t rank = gy_device_rank(s->from, i);
        s->keep[i] = s->keep[i] || (is_companion(s->from, i) && (!rank || keeps_rank(s, rank)));
        worker = worker || (s->keep[i] && !s->from->device[i].host_only);
    }
    if (!status && !worker)
        return gy_fail(s->err, GANTRY_E_INVALID, NULL,
                       "\"%s\" keeps only devices for host calls; name one that takes other nodes", s->text);
    return status ? status : check_named(s);
}

/* Numbers for what stays (0 marks it at first): memories of kept devices and the host's, resources of the direct routes
 * between them. */
static gy_machine_size number(selection *s)
{
    const gantry_machine *m = s->from;
    gy_machine_size size = { 0, 0, 0 };
    for (uint32_t i = 0; i < m->memories; i++)
        s->memory[i] = i ? GY_MACHINE_NONE : 0;
    for (uint32_t i = 0; i < m->resources; i++)
        s->resource[i] = GY_MACHINE_NONE;
    for (uint32_t i = 0; i < m->devices; i++)
        if (s->keep[i]) {
            s->memory[m->device[i].memory] = s->memory[m->memory[m->device[i].memory].arrays] = 0;
            size.devices++;
        }
    for (uint32_t i = 0; i < m->memories; i++)
        if (s->memory[i] != GY_MACHINE_NONE)
            s->memory[i] = size.memories++;
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++) {
        const gy_route *r = &m->route[i];
        if (r->given && s->memory[r->from] != GY_MACHINE_NONE && s->memory[r->to] != GY_MACHINE_NONE)
            for (uint32_t k = 0; k < r->resources; k++)
                s->resource[r->resource[k]] = 0;
    }
    for (uint32_t i = 0; i < m->resources; i++)
        if (s->resource[i] != GY_MACHINE_NONE)
            s->resource[i] = size.resources++;
    return size;
}

static bool copy_routes(gantry_machine *m, const selection *s)
{
    const gantry_machine *from = s->from;
    uint32_t *resource = gy_calloc(from->resources, sizeof *resource);
    bool ok = resource != NULL;
    for (size_t i = 0; i < (size_t)from->memories * from->memories && ok; i++) {
        const gy_route *r = &from->route[i];
        uint32_t a = s->memory[r->from], b = s->memory[r->to];
        if (!r->given || a == GY_MACHINE_NONE || b == GY_MACHINE_NONE)
            continue;
        for (uint32_t k = 0; k < r->resources; k++)
            resource[k] = s->resource[r->resource[k]];
        ok = gy_machine_points(m, a, b, r->point, r->points, (gy_via){ resource, r->resources });
        gy_machine_by_kernels(m, a, b, r->kernel_bytes);
        gy_machine_by_network(m, a, b, r->network);
    }
    gy_free(resource);
    return ok && gy_machine_compose(m);
}

/* Ranks that are left are counted anew, in their order. */
static void number_ranks(gantry_machine *m)
{
    for (uint32_t rank = 1; rank < gy_machine_ranks(m); rank++) {
        uint32_t next = GY_MACHINE_NONE;
        for (uint32_t i = 0; i < m->memories; i++)
            if (m->memory[i].rank >= rank && m->memory[i].rank < next)
                next = m->memory[i].rank;
        for (uint32_t i = 0; i < m->memories; i++)
            m->memory[i].rank = m->memory[i].rank == next ? rank : m->memory[i].rank;
    }
}

static bool has_kind(const gantry_machine *m, const char *kind)
{
    for (uint32_t i = 0; i < m->devices; i++)
        if (!strcmp(m->device[i].kind, kind))
            return true;
    return false;
}

/* Tables of kinds that are left: with fewer devices some wait for more ranks than there are. */
static bool copy_tables(gantry_machine *m, const selection *s)
{
    bool ok = true;
    for (uint32_t i = 0; i < s->from->tables && ok; i++)
        ok = !has_kind(m, s->from->table[i].kind) || gy_machine_add_table(m, &s->from->table[i]);
    for (uint32_t i = 0; i < s->from->kernels && ok; i++)
        ok = !has_kind(m, s->from->kernel[i].kind) || gy_machine_add_kernel(m, &s->from->kernel[i]);
    return ok;
}

static bool copy_texts(gantry_machine *m, const selection *s)
{
    bool ok = !s->from->source || (m->source = gy_machine_text(m, s->from->source)) != NULL;
    for (uint32_t i = 0; i < s->from->notes && ok; i++)
        ok = gy_machine_note(m, gy_machine_text(m, s->from->note[i]));
    const gy_calibration *c = &s->from->calibration;
    for (uint32_t i = 0; i < c->facts && ok; i++)
        ok = gy_machine_fact(m, c->fact[i].name, c->fact[i].value);
    m->calibration.measured = c->measured;
    memcpy(m->calibration.quality, c->quality, sizeof c->quality);
    return ok;
}

/* NULL: out of memory. */
static gantry_machine *copy(const selection *s, const char *name, gy_machine_size size)
{
    gantry_machine *m = gy_machine_new(name, size);
    if (m && gy_machine_copy_parts(m, s->from, &(gy_machine_kept){ s->keep, s->memory, s->resource }) &&
        copy_routes(m, s) && copy_tables(m, s) && copy_texts(m, s)) {
        for (uint32_t i = 0, k = 0; i < s->from->devices; i++)
            if (s->keep[i])
                m->device[k++].host_only = s->from->device[i].host_only && !s->named[i];
        number_ranks(m);
        return m;
    }
    gantry_machine_free(m);
    return NULL;
}

static gantry_status build(gantry_machine **out, selection *s)
{
    gy_text name = { 0 };
    uint32_t a, b;
    gy_machine_size size = number(s);
    gy_text_printf(&name, "%s, %u of %u devices", s->from->name, size.devices, s->from->devices);
    gantry_machine *m = name.failed ? NULL : copy(s, name.at, size);
    gy_text_free(&name);
    if (!m)
        return gy_fail_nomem(s->err);
    if (gy_machine_unreached(m, &a, &b)) {
        gantry_status status =
            gy_fail(s->err, GANTRY_E_INVALID, NULL,
                    "with devices %s alone there is no route from memory \"%s\" to \"%s\"; add the device between them",
                    s->text, m->memory[a].id, m->memory[b].id);
        gantry_machine_free(m);
        return status;
    }
    *out = m;
    return GANTRY_OK;
}

/* As it was. */
static bool keeps_all(const selection *s)
{
    for (uint32_t i = 0; i < s->from->devices; i++)
        if (!s->keep[i] || (s->named[i] && s->from->device[i].host_only))
            return false;
    return true;
}

static bool begin(selection *s)
{
    s->keep = gy_calloc(s->from->devices, sizeof *s->keep);
    s->named = gy_calloc(s->from->devices, sizeof *s->named);
    s->memory = gy_calloc(s->from->memories, sizeof *s->memory);
    s->resource = gy_calloc(s->from->resources, sizeof *s->resource);
    return s->keep && s->named && s->memory && s->resource;
}

static void end(selection *s)
{
    gy_free(s->keep);
    gy_free(s->named);
    gy_free(s->memory);
    gy_free(s->resource);
}

gantry_machine *gy_machine_again(const gantry_machine *from)
{
    selection s = { .from = from };
    gantry_machine *m = NULL;
    if (begin(&s)) {
        for (uint32_t i = 0; i < from->devices; i++)
            s.keep[i] = true;
        m = copy(&s, from->name, number(&s));
    }
    end(&s);
    return m;
}

gantry_status gantry_machine_select(gantry_machine **machine, const gantry_machine *from, const char *devices,
                                    gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(from, err);
    GY_NEED(devices, err);
    selection s = { .from = from, .text = devices, .err = err };
    gantry_status status;
    if (!begin(&s)) {
        status = gy_fail_nomem(err);
    } else if (!(status = choose(&s))) {
        if (keeps_all(&s))
            *machine = gy_machine_ref(from);
        else
            status = build(machine, &s);
    }
    end(&s);
    return status;
}
