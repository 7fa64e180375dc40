/* SPDX-License-Identifier: Apache-2.0 */
#include "run/backend.h"

#include <gantry/run.h>

#include "base/error.h"
#include "base/text.h"
#include "schedule/words.h"
#include <string.h>

/* `here`: part of the library, with a summary of its own; else in a module. */
typedef struct entry {
    const char *name, *summary;
    const gy_backend *here;
    const char *module;
} entry;

/* In the order in which "auto" tries them. */
static const entry table[] = {
    { "cuda", "NVIDIA GPUs, by the module gantry-cuda.so", NULL, "gantry-cuda" },
    { "host", NULL, &gy_backend_host, NULL },
    { "sim", NULL, &gy_backend_sim, NULL },
};

enum { BACKENDS = sizeof table / sizeof *table };

/* Without a module the back end is there at once. */
static gantry_status open_entry(const entry *e, const gy_backend **backend, gy_module *module, gantry_error *err)
{
    gy_module opened = { 0 };
    gantry_status status = e->module ? gy_module_open(&opened, e->module, err) : GANTRY_OK;
    if (status == GANTRY_OK) {
        *backend = e->module ? ((const gy_backend_module *)opened.table)->backend : e->here;
        *module = opened;
    }
    return status;
}

static gantry_status check_usable(const gy_backend *backend, const gantry_schedule *schedule, gantry_error *err)
{
    gantry_status status = backend->usable ? backend->usable(schedule, err) : GANTRY_OK;
    for (size_t i = 0; schedule && !status && i < schedule->phases.count; i++)
        status = backend->usable ? backend->usable(schedule->phases.at[i].schedule, err) : GANTRY_OK;
    if (!status && schedule && schedule->phases.count && backend->executes && (!backend->get || !backend->advance)) {
        status = gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                         "it does not carry out schedules with phases, that is loops that are not unrolled, yet");
    }
    return status;
}

/* `schedule` NULL: can be used for some. */
static gantry_status open_usable(const entry *e, const gantry_schedule *schedule, const gy_backend **backend,
                                 gy_module *module, gantry_error *err)
{
    const gy_backend *found;
    gy_module opened;
    gantry_status status = open_entry(e, &found, &opened, err);
    if (status)
        return status;
    if ((status = check_usable(found, schedule, err))) {
        gy_module_close(&opened);
        return status;
    }
    *backend = found;
    *module = opened;
    return GANTRY_OK;
}

const char *gy_backend_replay(const gy_backend *backend, const gantry_schedule *schedule)
{
    gy_replay replay =
        schedule->replay == GY_REPLAY_DEVICE ? GY_REPLAY_STREAM : schedule->replay; /* by the sync table */
    return backend->replay ? backend->replay : gy_word(&gy_replay_words, replay);
}

const char *gantry_backend_name(size_t i)
{
    return i < BACKENDS ? table[i].name : NULL;
}

int gantry_backend_usable(size_t i)
{
    const gy_backend *backend;
    gy_module module;
    if (i >= BACKENDS || open_usable(&table[i], NULL, &backend, &module, NULL))
        return 0;
    gy_module_close(&module);
    return 1;
}

const char *gantry_backend_summary(size_t i)
{
    if (i >= BACKENDS)
        return NULL;
    if (table[i].here)
        return table[i].here->summary;
    return gantry_backend_usable(i) ? table[i].summary
                                    : "NVIDIA GPUs: cannot be used here, \"gantry machine\" says why";
}

static void describe(gy_text *to, const entry *e)
{
    gantry_error why = { 0 };
    gy_module module;
    if (gy_module_open(&module, e->module, &why)) {
        gy_text_printf(to, "module: %s\n", why.text);
        return;
    }
    gy_text_printf(to, "module: %s.so, build id %s\n", e->module, gy_build_id());
    ((const gy_backend_module *)module.table)->describe(to);
    gy_module_close(&module);
}

gantry_status gantry_backend_describe(size_t i, char **text, gantry_error *err)
{
    GY_NEED(text, err);
    if (i >= BACKENDS)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "there is no back end %zu; the last one is %d", i, BACKENDS - 1);
    gy_text to = { 0 };
    gy_text_add(&to, "");
    if (table[i].module)
        describe(&to, &table[i]);
    char *made = gy_text_take(&to, NULL);
    if (!made)
        return gy_fail_nomem(err);
    *text = made;
    return GANTRY_OK;
}

gantry_status gy_backend_discover(gy_gpus *found, gantry_error *err)
{
    gy_module module;
    *found = (gy_gpus){ 0 };
    for (size_t i = 0; i < BACKENDS && found->count == 0; i++) {
        if (!table[i].module || gy_module_open(&module, table[i].module, NULL))
            continue;
        gantry_status status = ((const gy_backend_module *)module.table)->discover(found, err);
        gy_module_close(&module);
        if (status)
            return status;
    }
    return GANTRY_OK;
}

gantry_status gy_backend_measure(const gantry_machine *machine, const gy_measure_options *options, gy_measured *to,
                                 gy_module *module, gantry_error *err)
{
    gantry_error why = { .text = "this build has no module for GPUs" };
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < machine->devices; i++)
        gpus += machine->device[i].gpu;
    if (gpus == 0) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL,
                       "machine \"%s\" has no GPU to measure; \"gantry machine\" tells what was looked for",
                       machine->name);
    }
    for (size_t i = 0; i < BACKENDS; i++) {
        if (!table[i].module || gy_module_open(module, table[i].module, &why))
            continue;
        const gy_backend_module *found = module->table;
        bool measures = found->measure != NULL;
        gantry_status status = measures ? found->measure(machine, options, to, err) : GANTRY_E_UNSUPPORTED;
        if (status)
            gy_module_close(module);
        if (measures)
            return status;
    }
    return gy_fail(err, GANTRY_E_DEVICE, NULL, "there is nothing here that can measure: %s", why.text);
}

static const entry *by_name(const char *name)
{
    for (size_t i = 0; i < BACKENDS; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

static gantry_status fail_unknown(const char *name, gantry_error *err)
{
    gy_near near = { 0 };
    gy_text list = { 0 };
    gy_near_offer(&near, name, "auto");
    for (size_t i = 0; i < BACKENDS; i++) {
        gy_near_offer(&near, name, table[i].name);
        gy_text_printf(&list, ", %s", table[i].name);
    }
    gantry_status status =
        near.best ? gy_fail(err, GANTRY_E_INVALID, NULL, "no back end \"%s\" (did you mean \"%s\"?)", name, near.best)
                  : gy_fail(err, GANTRY_E_INVALID, NULL, "no back end \"%s\"; there are auto%s", name,
                            list.at ? list.at : "");
    gy_text_free(&list);
    return status;
}

static gantry_status fail_check(const entry *e, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "checking mode is not there on back end \"%s\"; use \"host\"",
                   e->name);
}

static gantry_status find_named(const gy_backend **backend, gy_module *module, const char *name, bool check,
                                const gantry_schedule *schedule, gantry_error *err)
{
    const entry *e = by_name(name);
    gantry_error why = { 0 };
    if (!e)
        return fail_unknown(name, err);
    if (check && e->here != &gy_backend_host)
        return fail_check(e, err);
    gantry_status status = open_usable(e, schedule, backend, module, &why);
    if (status && err) {
        gy_fail(err, status, NULL, "back end \"%s\" cannot be used: %s", name, why.text);
        err->native = why.native;
        err->device = why.device;
    }
    return status;
}

gantry_status gy_backend_find(const gy_backend **backend, gy_module *module, const char *name, bool check,
                              const gantry_schedule *schedule, gantry_error *err)
{
    const gy_backend *found = NULL;
    gy_module opened = { 0 };
    if (name && strcmp(name, "auto") != 0) {
        gantry_status status = find_named(&found, &opened, name, check, schedule, err);
        if (status)
            return status;
    } else if (check) {
        found = &gy_backend_host;
    } else {
        for (size_t i = 0; i < BACKENDS && open_usable(&table[i], schedule, &found, &opened, NULL); i++) {
        }
    }
    *backend = check ? &gy_backend_checked : found; /* "host" can always be used */
    *module = opened;
    return GANTRY_OK;
}
