/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a machine: heading, memories, devices, model. docs/machine-format.md describes the format. */
#include "machine/read.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include <string.h>

enum { MOST_TEXT = 64 << 20 }; /* bytes of a machine file that a graph names: measured ones have some 100 KB */

static gantry_status bad(gantry_error *err, const gy_json_at *at, const char *text)
{
    return gy_json_fail(err, GANTRY_E_MACHINE, at, "%s", text);
}

gantry_status gy_machine_object(gantry_error *err, const gy_json_at *at, const char *what, const char *const *keys,
                                size_t count)
{
    if (!json_is_object(at->value))
        return gy_json_fail(err, GANTRY_E_MACHINE, at, "%s must be an object, found %s", what, gy_json_kind(at->value));
    return gy_json_keys(at, keys, count, GANTRY_E_MACHINE, err);
}

gantry_status gy_machine_array(gantry_error *err, const gy_json_at *at, const char *key, const char *required,
                               gy_json_at *list)
{
    *list = gy_json_key(at, key);
    if (!list->value)
        return required ? gy_json_fail(err, GANTRY_E_MACHINE, at, "no \"%s\": %s", key, required) : GANTRY_OK;
    if (!json_is_array(list->value))
        return gy_json_fail(err, GANTRY_E_MACHINE, list, "\"%s\" must be an array, found %s", key,
                            gy_json_kind(list->value));
    if (required && !json_array_size(list->value))
        return gy_json_fail(err, GANTRY_E_MACHINE, list, "\"%s\" is empty: %s", key, required);
    return GANTRY_OK;
}

gantry_status gy_machine_id(gantry_error *err, const gy_json_at *at, const char *id)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-0123456789";
    if (id[0] && strspn(id, allowed) == strlen(id) && !strchr("._-0123456789", id[0]))
        return GANTRY_OK;
    return gy_json_fail(err, GANTRY_E_MACHINE, at,
                        "\"%s\" is not an id: use a letter, then letters, digits, \".\", \"_\" or \"-\"", id);
}

typedef uint32_t (*finder)(const gantry_machine *m, const char *id);

/* The id of an element, checked and unlike those of the elements before it, which `find` looks through. */
static gantry_status read_id(gy_machine_reader *r, const gy_json_at *at, finder find, const char **out)
{
    const char *id = NULL;
    gantry_status status = gy_json_string(at, "id", true, NULL, &id, GANTRY_E_MACHINE, r->err);
    gy_json_at place = gy_json_key(at, "id");
    if (status || (status = gy_machine_id(r->err, &place, id)))
        return status;
    uint32_t twin = find(r->m, id);
    char list[sizeof r->err->where];
    if (twin != GY_MACHINE_NONE)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &place, "\"%s\" is defined twice, first at %s/%u", id,
                            gy_json_pointer(at->up, list, sizeof list), twin);
    *out = gy_machine_text(r->m, id);
    return *out ? GANTRY_OK : gy_fail_nomem(r->err);
}

/* ---- memories ---- */

/* Bytes: a whole number or "141GiB". */
static gantry_status read_bytes(gantry_error *err, const gy_json_at *at, const char *key, uint64_t *out)
{
    gy_json_at place = gy_json_key(at, key);
    if (json_is_integer(place.value) && json_integer_value(place.value) >= 0) {
        *out = (uint64_t)json_integer_value(place.value);
        return GANTRY_OK;
    }
    if (json_is_string(place.value) && gy_parse_bytes(json_string_value(place.value), out) && *out <= INT64_MAX)
        return GANTRY_OK;
    if (json_is_string(place.value))
        return gy_json_fail(err, GANTRY_E_MACHINE, &place,
                            "\"%s\" is not a size; write bytes or a size such as \"141GiB\"",
                            json_string_value(place.value));
    return gy_json_fail(err, GANTRY_E_MACHINE, &place, "%s must be bytes or a size such as \"141GiB\", found %s", key,
                        json_is_integer(place.value) ? "a negative number" : gy_json_kind(place.value));
}

static gantry_status read_capacity(gy_machine_reader *r, const gy_json_at *at, gy_memory *y)
{
    if (!gy_json_key(at, "capacity").value)
        return bad(r->err, at, "no \"capacity\": give bytes or a size such as \"141GiB\"");
    gantry_status status = read_bytes(r->err, at, "capacity", &y->capacity);
    if (status)
        return status;
    gy_json_at place = gy_json_key(at, "capacity");
    if (!y->capacity)
        return bad(r->err, &place, "capacity is 0: a memory holds at least 1 byte");
    place = gy_json_key(at, "reserved");
    if (!place.value)
        return GANTRY_OK;
    status = read_bytes(r->err, at, "reserved", &y->reserved);
    if (!status && y->reserved > y->capacity)
        return gy_json_fail(
            r->err, GANTRY_E_MACHINE, &place,
            "reserved is %llu bytes of a capacity of %llu; it is a part of it, and sizes without a unit are bytes",
            (unsigned long long)y->reserved, (unsigned long long)y->capacity);
    return status;
}

static gantry_status read_memory(gy_machine_reader *r, const gy_json_at *at, uint32_t index)
{
    static const char *const keys[] = { "id", "capacity", "reserved", "pinned", "numa", "rank" };
    gy_memory *y = &r->m->memory[index];
    gantry_status status = gy_machine_object(r->err, at, "a memory", keys, GY_COUNT(keys));
    if (status || (status = read_id(r, at, gy_machine_find_memory, &y->id)) || (status = read_capacity(r, at, y)))
        return status;
    int64_t numa = -1, rank = 0;
    y->host = index == 0;
    status = gy_json_bool(at, "pinned", false, &y->pinned, GANTRY_E_MACHINE, r->err);
    if (!status)
        status = gy_json_int(at, "numa", false, -1, 0, INT32_MAX, &numa, GANTRY_E_MACHINE, r->err);
    if (!status)
        status = gy_json_int(at, "rank", false, 0, 0, GY_MOST_MEMORIES - 1, &rank, GANTRY_E_MACHINE, r->err);
    y->numa = (int)numa;
    y->rank = (uint32_t)rank;
    return status;
}

/* ---- devices ---- */

static gantry_status read_choice(gy_machine_reader *r, const gy_json_at *at, const char *key, const char *first,
                                 const char *second, bool *is_second)
{
    const char *text = NULL;
    GY_TRY(gy_json_string(at, key, false, first, &text, GANTRY_E_MACHINE, r->err));
    gy_json_at place = gy_json_key(at, key);
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &place, "%s is \"%s\"; it must be \"%s\" or \"%s\"", key, text,
                            first, second);
    *is_second = !strcmp(text, second);
    return GANTRY_OK;
}

gantry_status gy_machine_no_memory(const gy_machine_reader *r, const gy_json_at *at, const char *id)
{
    gy_near near = { 0 };
    for (uint32_t i = 0; i < r->m->memories; i++)
        gy_near_offer(&near, id, r->m->memory[i].id);
    if (near.best)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, at, "no memory \"%s\" (did you mean \"%s\"?)", id, near.best);
    return gy_json_fail(r->err, GANTRY_E_MACHINE, at, "no memory \"%s\"; memories are listed in \"memories\"", id);
}

static gantry_status read_memory_of(gy_machine_reader *r, const gy_json_at *at, uint32_t *out)
{
    const char *id = NULL;
    GY_TRY(gy_json_string(at, "memory", true, NULL, &id, GANTRY_E_MACHINE, r->err));
    gy_json_at place = gy_json_key(at, "memory");
    *out = gy_machine_find_memory(r->m, id);
    return *out == GY_MACHINE_NONE ? gy_machine_no_memory(r, &place, id) : GANTRY_OK;
}

gantry_status gy_machine_read_gflops(gy_machine_reader *r, const gy_json_at *at, const char *key, double *gflops)
{
    static const char *const names[] = {
#define GANTRY_X(dtype, text, bytes) #text,
        GANTRY_DTYPE_MAP(GANTRY_X)
#undef GANTRY_X
    };
    gy_json_at place = gy_json_key(at, key);
    if (!place.value)
        return GANTRY_OK;
    gantry_status status = gy_machine_object(r->err, &place, key, names, GY_COUNT(names));
    for (int i = 0; i < GANTRY_DTYPE_COUNT && !status; i++)
        status = gy_json_number(&place, names[i], false, 0, 1e-9, 1e12, &gflops[i], GANTRY_E_MACHINE, r->err);
    return status;
}

static gantry_status read_speeds(gy_machine_reader *r, const gy_json_at *at, gy_device *d)
{
    GY_TRY(gy_json_number(at, "bandwidth_gbs", false, 0, GY_LEAST_GBS, GY_MOST_GBS, &d->bandwidth_gbs, GANTRY_E_MACHINE,
                          r->err));
    GY_TRY(gy_machine_read_gflops(r, at, "formulas", d->formulas));
    return gy_machine_read_gflops(r, at, "gflops", d->gflops);
}

static gantry_status read_counts(gy_machine_reader *r, const gy_json_at *at, gy_device *d)
{
    int64_t lanes = 1, engines = 1, multiprocessors = 0, threads = 0, ordinal = -1;
    double launch = 0, wait = 0;
    gantry_status status =
        gy_json_int(at, "lanes", false, d->gpu ? 4 : 1, 1, UINT16_MAX, &lanes, GANTRY_E_MACHINE, r->err);
    if (!status)
        status =
            gy_json_int(at, "copy_engines", false, d->gpu ? 2 : 1, 1, UINT16_MAX, &engines, GANTRY_E_MACHINE, r->err);
    if (!status)
        status =
            gy_json_int(at, "multiprocessors", false, 0, 1, UINT16_MAX, &multiprocessors, GANTRY_E_MACHINE, r->err);
    if (!status)
        status = gy_json_int(at, "threads", false, 0, 1, GY_MOST_THREADS, &threads, GANTRY_E_MACHINE, r->err);
    if (!status)
        status = gy_json_int(at, "ordinal", false, -1, 0, INT32_MAX, &ordinal, GANTRY_E_MACHINE, r->err);
    if (!status)
        status = gy_json_number(at, "launch_us", false, gy_ticks_to_us(r->m->launch), 0, GY_MOST_US, &launch,
                                GANTRY_E_MACHINE, r->err);
    if (!status)
        status = gy_json_number(at, "signal_us", false, 0, 0, GY_MOST_US, &wait, GANTRY_E_MACHINE, r->err);
    if (status)
        return status;
    d->lanes = (uint32_t)lanes;
    d->copy_engines = (uint32_t)engines;
    d->multiprocessors = (uint32_t)multiprocessors;
    d->threads = (uint32_t)threads;
    d->ordinal = (int)ordinal;
    d->launch = gy_ticks_from_us(launch);
    d->signal = gy_ticks_from_us(wait);
    return GANTRY_OK;
}

/* `use` is "host" for devices that come last and are CPUs. */
static gantry_status check_use(gy_machine_reader *r, const gy_json_at *at, uint32_t index)
{
    const gy_device *d = &r->m->device[index];
    gy_json_at place = gy_json_key(at, "use");
    if (d->host_only && d->gpu)
        return bad(r->err, &place, "use is \"host\" on a gpu; only devices of type \"cpu\" run host calls");
    place = gy_json_key(at, "threads");
    if (d->gpu && place.value)
        return bad(r->err, &place, "threads is given for a gpu; it is of devices of type \"cpu\": leave it out");
    place = gy_json_key(at, "use");
    if (d->host_only && index == 0)
        return bad(r->err, &place, "use is \"host\" on the first device; at least one device must take other nodes");
    if (index && !d->host_only && r->m->device[index - 1].host_only)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, at,
                            "device \"%s\" comes after \"%s\" whose use is \"host\"; list those devices last", d->id,
                            r->m->device[index - 1].id);
    return GANTRY_OK;
}

static gantry_status read_device(gy_machine_reader *r, const gy_json_at *at, uint32_t index)
{
    static const char *const keys[] = {
        "id",      "kind",          "type",      "use",       "memory",  "lanes",           "copy_engines",
        "gflops",  "bandwidth_gbs", "launch_us", "signal_us", "ordinal", "multiprocessors", "threads",
        "workers", "formulas"
    };
    gy_device *d = &r->m->device[index];
    gantry_status status = gy_machine_object(r->err, at, "a device", keys, GY_COUNT(keys));
    const char *kind = NULL;
    if (status || (status = read_id(r, at, gy_machine_find_device, &d->id)) ||
        (status = read_choice(r, at, "type", "cpu", "gpu", &d->gpu)) ||
        (status = read_choice(r, at, "use", "any", "host", &d->host_only)) || (status = check_use(r, at, index)) ||
        (status = gy_json_string(at, "kind", false, d->gpu ? "gpu" : "cpu", &kind, GANTRY_E_MACHINE, r->err)))
        return status;
    gy_json_at place = gy_json_key(at, "kind");
    if (place.value && (status = gy_machine_id(r->err, &place, kind)))
        return status;
    d->kind = gy_machine_text(r->m, kind);
    if (!d->kind)
        return gy_fail_nomem(r->err);
    if ((status = read_memory_of(r, at, &d->memory)) || (status = read_counts(r, at, d)) ||
        (status = gy_machine_read_workers(r, at, d)))
        return status;
    return read_speeds(r, at, d);
}

/* ---- ranks ---- */

/* The memory that says that there are ranks as high as this. */
static gy_json_at rank_at(const gantry_machine *m, const gy_json_at *memories, gy_json_at *memory, uint32_t ranks)
{
    uint32_t i = 0;
    while (m->memory[i].rank + 1 < ranks)
        i++;
    *memory = gy_json_item(memories, i);
    return gy_json_key(memory, "rank");
}

/* Ranks count from 0, and each has something to do. */
static gantry_status check_ranks(gy_machine_reader *r, const gy_json_at *memories)
{
    const gantry_machine *m = r->m;
    uint32_t ranks = gy_machine_ranks(m), workers = gy_machine_workers(m);
    gy_json_at memory = gy_json_item(memories, 0), place = gy_json_key(&memory, "rank");
    if (m->memory[0].rank)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &place,
                            "the host memory \"%s\", which comes first, has rank %u; it must be of rank 0",
                            m->memory[0].id, m->memory[0].rank);
    bool *works = gy_calloc(ranks, sizeof *works);
    if (!works)
        return gy_fail_nomem(r->err);
    for (uint32_t d = 0; d < workers; d++)
        works[gy_device_rank(m, d)] = true;
    uint32_t idle = 1; /* rank 0 has the host memory */
    while (idle < ranks && works[idle])
        idle++;
    gy_free(works);
    if (idle == ranks)
        return GANTRY_OK;
    place = rank_at(m, memories, &memory, ranks);
    return gy_json_fail(r->err, GANTRY_E_MACHINE, &place,
                        "there are ranks 0 to %u, and no device works in a memory of rank %u; ranks count from 0, and "
                        "each but rank 0 must have a device whose use is \"any\"",
                        ranks - 1, idle);
}

/* ---- the rest ---- */

static gantry_status read_notes(gy_machine_reader *r, const gy_json_at *root)
{
    const char *source = NULL;
    gy_json_at notes;
    gantry_status status = gy_json_string(root, "source", false, NULL, &source, GANTRY_E_MACHINE, r->err);
    if (status || (status = gy_machine_array(r->err, root, "notes", NULL, &notes)))
        return status;
    r->m->source = source ? gy_machine_text(r->m, source) : NULL;
    if (source && !r->m->source)
        return gy_fail_nomem(r->err);
    for (size_t i = 0; i < json_array_size(notes.value); i++) {
        gy_json_at place = gy_json_item(&notes, i);
        if (!json_is_string(place.value))
            return gy_json_fail(r->err, GANTRY_E_MACHINE, &place, "a note must be a string, found %s",
                                gy_json_kind(place.value));
        if (!gy_machine_note(r->m, gy_machine_text(r->m, json_string_value(place.value))))
            return gy_fail_nomem(r->err);
    }
    return GANTRY_OK;
}

static gantry_status read_model(gy_machine_reader *r, const gy_json_at *root)
{
    static const char *const keys[] = { "contention", "launch_us", "issue_us", "submit_us", "start_us",
                                        "another_us", "edge_us",   "gate_us",  "when_us",   "left_out_us" };
    gy_json_at place = gy_json_key(root, "model");
    if (!place.value)
        return GANTRY_OK;
    bool off = false;
    const struct {
        const char *key;
        gy_ticks *to;
    } times[] = {
        { "launch_us", &r->m->launch }, { "issue_us", &r->m->issue },     { "submit_us", &r->m->submit },
        { "start_us", &r->m->start },   { "another_us", &r->m->another }, { "edge_us", &r->m->edge },
        { "gate_us", &r->m->gate },     { "when_us", &r->m->when },       { "left_out_us", &r->m->left_out }
    };
    gantry_status status = gy_machine_object(r->err, &place, "model", keys, GY_COUNT(keys));
    if (!status)
        status = read_choice(r, &place, "contention", "on", "off", &off);
    for (size_t i = 0; i < GY_COUNT(times) && !status; i++) {
        double us = 0;
        status = gy_json_number(&place, times[i].key, false, 0, 0, GY_MOST_US, &us, GANTRY_E_MACHINE, r->err);
        *times[i].to = gy_ticks_from_us(us);
    }
    r->m->contention = !off;
    return status;
}

/* Heading and sizes; makes the machine. */
static gantry_status read_frame(gy_machine_reader *r, const gy_json_at *root, gy_json_at list[3])
{
    static const char *const keys[] = { "gantry_machine", "name",      "source",  "notes",       "memories",
                                        "devices",        "resources", "routes",  "collectives", "kernels",
                                        "calibration",    "model",     "network", "$schema" };
    const char *name = NULL, *schema = NULL; /* the schema is for editors: it is not read */
    int64_t version;
    gantry_status status = GANTRY_OK;
    if (json_is_object(root->value)) /* nothing is told of another kind of file, which has other keys */
        status = gy_json_refuse_other(root, "gantry_machine", GANTRY_E_MACHINE, r->err);
    if (json_is_object(root->value) && !status)
        status = gy_json_int(root, "gantry_machine", true, 1, 1, 1, &version, GANTRY_E_MACHINE, r->err);
    if (status || (status = gy_machine_object(r->err, root, "a machine", keys, GY_COUNT(keys))) ||
        (status = gy_json_string(root, "$schema", false, "", &schema, GANTRY_E_MACHINE, r->err)) ||
        (status = gy_json_string(root, "name", false, "machine", &name, GANTRY_E_MACHINE, r->err)) ||
        (status = gy_machine_array(r->err, root, "memories", "list at least the host memory, which comes first",
                                   &list[0])) ||
        (status = gy_machine_array(r->err, root, "devices", "list at least one device", &list[1])))
        return status;
    if (json_array_size(list[0].value) > GY_MOST_MEMORIES)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &list[0], "%zu memories; this version reads up to %d",
                            json_array_size(list[0].value), GY_MOST_MEMORIES);
    list[2] = gy_json_key(root, "resources");
    if (list[2].value && !json_is_object(list[2].value))
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &list[2],
                            "\"resources\" must be an object of GB/s by name, found %s", gy_json_kind(list[2].value));
    r->m = gy_machine_new(name, (gy_machine_size){ (uint32_t)json_array_size(list[0].value),
                                                   (uint32_t)json_array_size(list[1].value),
                                                   (uint32_t)json_object_size(list[2].value) });
    return r->m ? GANTRY_OK : gy_fail_nomem(r->err);
}

static gantry_status read_contents(gy_machine_reader *r, const gy_json_at *root, const gy_json_at list[3])
{
    gantry_status status = read_notes(r, root);
    if (!status)
        status = read_model(r, root);
    for (uint32_t i = 0; i < r->m->memories && !status; i++) {
        gy_json_at place = gy_json_item(&list[0], i);
        status = read_memory(r, &place, i);
    }
    for (uint32_t i = 0; i < r->m->devices && !status; i++) {
        gy_json_at place = gy_json_item(&list[1], i);
        status = read_device(r, &place, i);
    }
    if (status || (status = check_ranks(r, &list[0])) || (status = gy_machine_read_network(r, root)) ||
        (status = gy_machine_read_resources(r, &list[2])) || (status = gy_machine_read_routes(r, root)) ||
        (status = gy_machine_read_tables(r, root, "collectives", gy_machine_read_collective)) ||
        (status = gy_machine_read_tables(r, root, "kernels", gy_machine_read_kernel)))
        return status;
    return gy_machine_read_calibration(r, root);
}

gantry_status gy_machine_read(gantry_machine **out, const gy_json_at *at, gantry_error *err)
{
    gy_machine_reader r = { NULL, err };
    gy_json_at list[3];
    gantry_status status = read_frame(&r, at, list);
    if (!status)
        status = read_contents(&r, at, list);
    if (status) {
        gantry_machine_free(r.m);
        return status;
    }
    *out = r.m;
    return GANTRY_OK;
}

gantry_status gantry_machine_parse(gantry_machine **machine, const char *text, size_t length, const char *name,
                                   gantry_error *err)
{
    gantry_error local;
    if (!err)
        err = &local;
    GY_NEED(machine, err);
    GY_NEED(text, err);
    json_t *root;
    gantry_status status = gy_json_parse_plain(&root, text, length, name, "gantry_machine", GANTRY_E_MACHINE, err);
    if (status)
        return status;
    gy_json_at at = { NULL, NULL, 0, root };
    status = gy_machine_read(machine, &at, err);
    json_decref(root);
    if (status == GANTRY_E_MACHINE) {
        int line, column;
        gy_json_locate(text, length, err->where, &line, &column);
        gy_error_locate(err, name, line, column);
    }
    return status;
}

gantry_status gy_machine_load_in(gantry_machine **machine, const char *path, const char *folder, gantry_error *err)
{
    char *text;
    size_t length;
    GY_TRY(gy_file_read_in(&text, &length, path, folder, MOST_TEXT, err));
    gantry_status status = gantry_machine_parse(machine, text, length, path, err);
    gy_free(text);
    return status;
}

gantry_status gantry_machine_load(gantry_machine **machine, const char *path, gantry_error *err)
{
    GY_NEED(machine, err);
    GY_NEED(path, err);
    char *text;
    size_t length;
    gantry_status status = gy_file_read(&text, &length, path, err);
    if (status)
        return status;
    status = gantry_machine_parse(machine, text, length, strcmp(path, "-") ? path : "standard input", err);
    gy_free(text);
    return status;
}
