/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Instances of WfCommons (https://github.com/wfcommons/WfFormat), the format of scientific workflows. Since 1.5 tasks
 * are split into `specification` (order and files) and `execution` (times) and refer to each other by id; before that
 * they are one list, called jobs until 1.2, and refer to each other by name. Unknown keys are allowed by the format.
 * What a task ran on, how many cores it took and the machines are not looked at.
 */
#include "import/wfcommons.h"

#include "base/error.h"
#include <string.h>

/* ---- tasks ---- */

static gantry_status add_task(gy_wf *w, const gy_json_at *at, const char *key)
{
    const char *id = NULL;
    bool is_new;
    GY_TRY(gy_import_object(at, "a task", w->err));
    GY_TRY(gy_json_string(at, key, true, NULL, &id, GANTRY_E_GRAPH, w->err));
    uint32_t index = gy_names_add(&w->tasks, id, &is_new);
    if (index != GY_NO_NAME && !is_new)
        return gy_json_fail(w->err, GANTRY_E_GRAPH, at,
                            "there already is a task with the %s \"%.100s\"; it must be unique", key, id);
    gy_import_task *t = index == GY_NO_NAME ? NULL : gy_import_add_task(w->in, id);
    if (!t || !(t->pointer = gy_import_pointer(w->in, at)))
        return gy_fail_nomem(w->err);
    t->time = -1;
    return GANTRY_OK;
}

static gantry_status find_task(const gy_wf *w, const gy_json_at *at, const char *what, uint32_t *task)
{
    const char *id = json_string_value(at->value);
    gy_near near = { 0 };
    if (!id)
        return gy_json_fail(w->err, GANTRY_E_GRAPH, at, "a %s is named by a string, not %s", what,
                            gy_json_kind(at->value));
    *task = gy_names_find(&w->tasks, id);
    if (*task != GY_NO_NAME)
        return GANTRY_OK;
    for (size_t i = 0; i < w->in->tasks.count; i++)
        gy_near_offer(&near, id, w->in->tasks.at[i].id);
    return gy_json_fail(w->err, GANTRY_E_GRAPH, at, "no task \"%.100s\"%s%.100s%s", id,
                        near.best ? " (did you mean \"" : "; a task refers to others of the file",
                        near.best ? near.best : "", near.best ? "\"?)" : "");
}

/* Dependencies may be said at either end. */
static gantry_status read_order(const gy_wf *w, const gy_json_at *at, uint32_t task, const char *key, bool parents)
{
    gy_json_at list;
    if (!gy_json_key(at, key).value)
        return GANTRY_OK;
    gantry_status status = gy_import_array(at, key, &list, w->err);
    for (size_t i = 0; !status && i < json_array_size(list.value); i++) {
        gy_json_at item = gy_json_item(&list, i);
        uint32_t other = 0;
        status = find_task(w, &item, parents ? "parent" : "child", &other);
        if (!status && !gy_import_add_order(w->in, parents ? other : task, parents ? task : other))
            status = gy_fail_nomem(w->err);
    }
    return status;
}

static gantry_status read_orders(const gy_wf *w, const gy_json_at *tasks)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; !status && i < json_array_size(tasks->value); i++) {
        gy_json_at at = gy_json_item(tasks, i);
        status = read_order(w, &at, (uint32_t)i, "parents", true);
        if (!status)
            status = read_order(w, &at, (uint32_t)i, "children", false);
    }
    return status;
}

/* `unit` is bytes of one unit of memory. */
static gantry_status read_cost(const gy_wf *w, const gy_json_at *at, uint32_t task, const char *runtime,
                               const char *memory, double unit)
{
    gy_import_task *t = &w->in->tasks.at[task];
    double bytes = 0;
    gantry_status status = gy_json_number(at, runtime, true, 0, 0, GY_IMPORT_MOST_US, &t->time, GANTRY_E_GRAPH, w->err);
    if (!status)
        status = gy_json_number(at, memory, false, 0, 0, GY_IMPORT_MOST_BYTES / 1000, &bytes, GANTRY_E_GRAPH, w->err);
    t->scratch = (int64_t)(bytes * unit);
    return status;
}

/* ---- since 1.5 ---- */

static gantry_status read_specified(gy_wf *w, const gy_json_at *at)
{
    GY_TRY(add_task(w, at, "id"));
    GY_TRY(gy_wf_read_use(w, at, "inputFiles", false));
    return gy_wf_read_use(w, at, "outputFiles", true);
}

static gantry_status read_executed(const gy_wf *w, const gy_json_at *at)
{
    uint32_t task = 0;
    gy_json_at id = gy_json_key(at, "id");
    GY_TRY(gy_import_object(at, "a task", w->err));
    GY_TRY(find_task(w, &id, "task", &task));
    return read_cost(w, at, task, "runtimeInSeconds", "memoryInBytes", 1);
}

static gantry_status read_execution(const gy_wf *w, const gy_json_at *workflow)
{
    gy_json_at execution = gy_json_key(workflow, "execution"), tasks;
    if (!execution.value)
        return gy_json_fail(w->err, GANTRY_E_GRAPH, workflow,
                            "missing key \"execution\": without it nothing says how long tasks take");
    gantry_status status = gy_import_object(&execution, "\"execution\"", w->err);
    if (!status)
        status = gy_import_array(&execution, "tasks", &tasks, w->err);
    for (size_t i = 0; !status && i < json_array_size(tasks.value); i++) {
        gy_json_at at = gy_json_item(&tasks, i);
        status = read_executed(w, &at);
    }
    for (uint32_t i = 0; !status && i < w->in->tasks.count; i++)
        if (w->in->tasks.at[i].time < 0)
            status =
                gy_import_fail(w->in, i, w->err,
                               "task \"%.100s\" is not in \"execution\", which says how long tasks take; add it there",
                               w->in->tasks.at[i].id);
    return status;
}

static gantry_status read_split(gy_wf *w, const gy_json_at *workflow)
{
    gy_json_at specification = gy_json_key(workflow, "specification"), tasks;
    gantry_status status = gy_import_object(&specification, "\"specification\"", w->err);
    if (!status)
        status = gy_import_array(&specification, "tasks", &tasks, w->err);
    if (!status)
        status = gy_wf_read_files(w, &specification);
    for (size_t i = 0; !status && i < json_array_size(tasks.value); i++) {
        gy_json_at at = gy_json_item(&tasks, i);
        status = read_specified(w, &at);
    }
    if (!status)
        status = read_orders(w, &tasks);
    return status ? status : read_execution(w, workflow);
}

/* ---- before ---- */

/* Memory was in kilobytes. */
static gantry_status read_joined_task(gy_wf *w, const gy_json_at *at)
{
    gantry_status status = add_task(w, at, "name");
    bool old = !status && gy_json_key(at, "runtime").value;
    if (!status)
        status = read_cost(w, at, (uint32_t)w->in->tasks.count - 1, old ? "runtime" : "runtimeInSeconds",
                           old ? "memory" : "memoryInBytes", old ? 1000 : 1);
    return status ? status : gy_wf_read_own_files(w, at);
}

static gantry_status read_joined(gy_wf *w, const gy_json_at *workflow)
{
    gy_json_at tasks;
    const char *key = gy_json_key(workflow, "jobs").value ? "jobs" : "tasks";
    gantry_status status = gy_import_array(workflow, key, &tasks, w->err);
    for (size_t i = 0; !status && i < json_array_size(tasks.value); i++) {
        gy_json_at at = gy_json_item(&tasks, i);
        status = read_joined_task(w, &at);
    }
    return status ? status : read_orders(w, &tasks);
}

/* ---- all of it ---- */

static gantry_status check_version(const gy_wf *w, const gy_json_at *root)
{
    static const char *const known[] = { "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6" };
    const char *version = NULL;
    gantry_status status = gy_json_string(root, "schemaVersion", true, NULL, &version, GANTRY_E_GRAPH, w->err);
    for (size_t i = 0; !status && i < sizeof known / sizeof *known; i++)
        if (strcmp(version, known[i]) == 0)
            return GANTRY_OK;
    gy_json_at at = gy_json_key(root, "schemaVersion");
    return status ? status
                  : gy_json_fail(
                        w->err, GANTRY_E_GRAPH, &at,
                        "\"schemaVersion\" is \"%.20s\"; 1.0 to 1.6 can be read: convert the file with the tools of "
                        "WfCommons",
                        version);
}

static gantry_status read_all(gy_wf *w, const gy_json_at *root)
{
    const char *name = NULL;
    gy_json_at workflow = gy_json_key(root, "workflow");
    GY_TRY(gy_import_object(root, "the file", w->err));
    GY_TRY(check_version(w, root));
    GY_TRY(gy_json_string(root, "name", false, NULL, &name, GANTRY_E_GRAPH, w->err));
    if (name && *name && !(w->in->name = gy_arena_strdup(&w->in->arena, name)))
        GY_TRY(gy_fail_nomem(w->err));
    if (!workflow.value)
        GY_TRY(gy_json_fail(w->err, GANTRY_E_GRAPH, root, "missing key \"workflow\": give the tasks in it"));
    GY_TRY(gy_import_object(&workflow, "\"workflow\"", w->err));
    GY_TRY(gy_json_key(&workflow, "specification").value ? read_split(w, &workflow) : read_joined(w, &workflow));
    return gy_wf_link_files(w);
}

gantry_status gy_import_wfcommons(gy_import *in, gantry_error *err)
{
    gy_wf w = { .in = in, .err = err };
    json_t *root;
    in->unit_us = 1e6;
    in->unit_is_second = true;
    in->in_bytes = true;
    in->has_pointers = true;
    gantry_status status = gy_json_parse(&root, in->text, in->length, in->source, "workflow", err);
    if (status)
        return status;
    gy_json_at at = { NULL, NULL, 0, root };
    status = read_all(&w, &at);
    json_decref(root);
    gy_names_free(&w.tasks);
    gy_names_free(&w.names);
    gy_vec_free(&w.files);
    gy_vec_free(&w.uses);
    gy_free(w.writer);
    gy_free(w.item);
    return status;
}
