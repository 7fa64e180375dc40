/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Files of a workflow. One file that one task writes is one item, which its readers read. In instances taken from real
 * systems several tasks write files of one name, each in its own folder: then a reader gets what its parent wrote, and
 * without such a parent what the first writer of the document wrote. What no (other) task writes is there at the start.
 */
#include "import/wfcommons.h"

#include "base/error.h"
#include <strings.h>

/* ---- reading ---- */

static gantry_status add_file(gy_wf *w, const char *name, uint32_t *file)
{
    bool is_new;
    gy_wf_file made = { .bytes = -1, .input = GY_IMPORT_NONE };
    *file = gy_names_add(&w->names, name, &is_new);
    return *file == GY_NO_NAME || (is_new && !gy_vec_push(&w->files, made)) ? gy_fail_nomem(w->err) : GANTRY_OK;
}

static gantry_status read_size(const gy_wf *w, const gy_json_at *at, const char *key, double *bytes)
{
    return gy_json_number(at, key, true, 0, 0, GY_IMPORT_MOST_BYTES, bytes, GANTRY_E_GRAPH, w->err);
}

gantry_status gy_wf_read_files(gy_wf *w, const gy_json_at *specification)
{
    gy_json_at files;
    if (!gy_json_key(specification, "files").value)
        return GANTRY_OK;
    gantry_status status = gy_import_array(specification, "files", &files, w->err);
    for (size_t i = 0; !status && i < json_array_size(files.value); i++) {
        gy_json_at at = gy_json_item(&files, i);
        const char *id = NULL;
        uint32_t file = 0;
        double bytes = 0;
        status = gy_import_object(&at, "a file", w->err);
        if (!status)
            status = gy_json_string(&at, "id", true, NULL, &id, GANTRY_E_GRAPH, w->err);
        if (!status)
            status = read_size(w, &at, "sizeInBytes", &bytes);
        if (!status && gy_names_find(&w->names, id) != GY_NO_NAME)
            status =
                gy_json_fail(w->err, GANTRY_E_GRAPH, &at, "there already is a file \"%.100s\"; ids are unique", id);
        if (!status)
            status = add_file(w, id, &file);
        if (!status)
            w->files.at[file].bytes = bytes;
    }
    return status;
}

static gantry_status add_use(gy_wf *w, uint32_t file, bool writes)
{
    gy_wf_use use = { (uint32_t)w->in->tasks.count - 1, file, writes };
    return gy_vec_push(&w->uses, use) ? GANTRY_OK : gy_fail_nomem(w->err);
}

static gantry_status find_file(const gy_wf *w, const gy_json_at *at, uint32_t *file)
{
    const char *id = json_string_value(at->value);
    gy_near near = { 0 };
    if (!id)
        return gy_json_fail(w->err, GANTRY_E_GRAPH, at, "the id of a file must be a string, not %s",
                            gy_json_kind(at->value));
    *file = gy_names_find(&w->names, id);
    if (*file != GY_NO_NAME)
        return GANTRY_OK;
    for (size_t i = 0; i < w->files.count; i++)
        gy_near_offer(&near, id, gy_names_at(&w->names, (uint32_t)i));
    return gy_json_fail(w->err, GANTRY_E_GRAPH, at, "no file \"%.100s\" in the list of files%s%.100s%s", id,
                        near.best ? " (did you mean \"" : "; add it with its size", near.best ? near.best : "",
                        near.best ? "\"?)" : "");
}

gantry_status gy_wf_read_use(gy_wf *w, const gy_json_at *task, const char *key, bool writes)
{
    gy_json_at list;
    if (!gy_json_key(task, key).value)
        return GANTRY_OK;
    gantry_status status = gy_import_array(task, key, &list, w->err);
    for (size_t i = 0; !status && i < json_array_size(list.value); i++) {
        gy_json_at at = gy_json_item(&list, i);
        uint32_t file = 0;
        status = find_file(w, &at, &file);
        if (!status)
            status = add_use(w, file, writes);
    }
    return status;
}

/* "size" until 1.3, then "sizeInBytes"; bytes both. Tasks may disagree on a size: the writer knows. */
static gantry_status read_own_file(gy_wf *w, const gy_json_at *at)
{
    const char *name = NULL, *path = NULL, *link = NULL;
    uint32_t file = 0;
    double bytes = 0;
    gantry_status status = gy_import_object(at, "a file", w->err);
    if (!status)
        status = gy_json_string(at, "name", true, NULL, &name, GANTRY_E_GRAPH, w->err);
    if (!status)
        status = gy_json_string(at, "path", false, "", &path, GANTRY_E_GRAPH, w->err);
    if (!status)
        status = gy_json_string(at, "link", true, NULL, &link, GANTRY_E_GRAPH, w->err);
    bool writes = !status && strcasecmp(link, "output") == 0;
    if (!status && !writes && strcasecmp(link, "input") != 0) {
        gy_json_at member = gy_json_key(at, "link");
        status =
            gy_json_fail(w->err, GANTRY_E_GRAPH, &member, "\"link\" is \"%.40s\"; it is \"input\" or \"output\"", link);
    }
    if (!status)
        status = read_size(w, at, gy_json_key(at, "size").value ? "size" : "sizeInBytes", &bytes);
    const char *full = status ? NULL : gy_arena_printf(&w->in->arena, "%s%s", path, name);
    if (!status)
        status = full ? add_file(w, full, &file) : gy_fail_nomem(w->err);
    if (status)
        return status;
    gy_wf_file *f = &w->files.at[file];
    if (f->bytes < 0 || (writes && !f->by_writer))
        f->bytes = bytes;
    f->by_writer = f->by_writer || writes;
    return add_use(w, file, writes);
}

gantry_status gy_wf_read_own_files(gy_wf *w, const gy_json_at *task)
{
    gy_json_at files;
    if (!gy_json_key(task, "files").value)
        return GANTRY_OK;
    gantry_status status = gy_import_array(task, "files", &files, w->err);
    for (size_t i = 0; !status && i < json_array_size(files.value); i++) {
        gy_json_at at = gy_json_item(&files, i);
        status = read_own_file(w, &at);
    }
    return status;
}

/* ---- items ---- */

/* The lists of writers, in the order of the document, and an item for each writer. */
static gantry_status list_writers(gy_wf *w)
{
    uint32_t count = 0;
    w->writer = gy_calloc(w->uses.count + 1, sizeof *w->writer);
    w->item = gy_calloc(w->uses.count + 1, sizeof *w->item);
    if (!w->writer || !w->item)
        return gy_fail_nomem(w->err);
    for (size_t i = 0; i < w->uses.count; i++)
        w->files.at[w->uses.at[i].file].writers += w->uses.at[i].writes;
    for (size_t f = 0; f < w->files.count; f++) {
        w->files.at[f].first_writer = count;
        count += w->files.at[f].writers;
        w->files.at[f].writers = 0;
    }
    for (size_t i = 0; i < w->uses.count; i++) {
        gy_wf_file *f = &w->files.at[w->uses.at[i].file];
        uint32_t at = f->first_writer + f->writers;
        bool again = f->writers > 0 && w->writer[at - 1] == w->uses.at[i].task; /* uses of a task come together */
        if (!w->uses.at[i].writes || again)
            continue;
        w->writer[at] = w->uses.at[i].task;
        w->item[at] = (uint32_t)w->in->items.count;
        f->writers++;
        if (f->bytes > 0 &&
            !gy_import_add_item(w->in, gy_names_at(&w->names, w->uses.at[i].file), w->uses.at[i].task, f->bytes))
            return gy_fail_nomem(w->err);
    }
    return GANTRY_OK;
}

/* The parents of every task, to look up and to list: parent[first[t] .. first[t + 1]) of task t. */
typedef struct family {
    gy_map pairs;   /* parent, task */
    gy_map writers; /* file, task -> index into gy_wf.writer */
    uint32_t *parent;
    size_t *first;
} family;

static bool make_family(const gy_wf *w, family *f)
{
    const gy_import *in = w->in;
    f->parent = gy_calloc(in->orders.count + 1, sizeof *f->parent);
    f->first = gy_calloc(in->tasks.count + 2, sizeof *f->first);
    bool ok = f->parent && f->first;
    for (size_t i = 0; ok && i < in->orders.count; i++) {
        gy_import_order o = in->orders.at[i];
        f->first[o.after + 2]++;
        ok = gy_map_put(&f->pairs, gy_import_pair(o.before, o.after), 1);
    }
    for (size_t t = 2; ok && t <= in->tasks.count + 1; t++)
        f->first[t] += f->first[t - 1];
    for (size_t i = 0; ok && i < in->orders.count; i++)
        f->parent[f->first[in->orders.at[i].after + 1]++] = in->orders.at[i].before;
    for (uint32_t file = 0; ok && file < w->files.count; file++)
        for (uint32_t i = w->files.at[file].writers; ok && i-- > 0;) /* the first stays */
            ok = gy_map_put(&f->writers, gy_import_pair(file, w->writer[w->files.at[file].first_writer + i]),
                            w->files.at[file].first_writer + i);
    return ok;
}

static void free_family(family *f)
{
    gy_map_free(&f->pairs);
    gy_map_free(&f->writers);
    gy_free(f->parent);
    gy_free(f->first);
}

/* Index into w->writer of a writer that is a parent of the reader; GY_IMPORT_NONE. Goes through whichever is fewer. */
static uint32_t parent_writer(const gy_wf *w, const family *f, const gy_wf_use *use)
{
    const gy_wf_file *file = &w->files.at[use->file];
    size_t first = f->first[use->task], parents = f->first[use->task + 1] - first;
    uint64_t found;
    for (size_t i = 0; parents < file->writers && i < parents; i++)
        if (f->parent[first + i] != use->task &&
            gy_map_get(&f->writers, gy_import_pair(use->file, f->parent[first + i]), &found))
            return (uint32_t)found;
    for (uint32_t i = 0; parents >= file->writers && i < file->writers; i++) {
        uint32_t writer = w->writer[file->first_writer + i];
        if (writer != use->task && gy_map_get(&f->pairs, gy_import_pair(writer, use->task), &found))
            return file->first_writer + i;
    }
    return GY_IMPORT_NONE;
}

/* Which of the writers a reader means: an index into w->writer, or GY_IMPORT_NONE. */
static uint32_t choose_writer(const gy_wf *w, const family *f, const gy_wf_use *use)
{
    const gy_wf_file *file = &w->files.at[use->file];
    uint32_t chosen = parent_writer(w, f, use), last = file->first_writer + file->writers;
    for (uint32_t i = file->first_writer; i < last && chosen == GY_IMPORT_NONE; i++)
        if (w->writer[i] != use->task)
            chosen = i;
    return chosen;
}

static bool add_input(gy_wf *w, const gy_wf_use *use)
{
    gy_wf_file *f = &w->files.at[use->file];
    if (f->bytes <= 0)
        return true;
    if (f->input == GY_IMPORT_NONE) {
        if (!gy_import_add_item(w->in, gy_names_at(&w->names, use->file), GY_IMPORT_NONE, f->bytes))
            return false;
        f->input = (uint32_t)w->in->items.count - 1;
    }
    return gy_import_add_read(w->in, use->task, f->input);
}

static bool link_use(gy_wf *w, const family *f, const gy_wf_use *use)
{
    uint32_t writer = choose_writer(w, f, use);
    if (writer == GY_IMPORT_NONE)
        return add_input(w, use);
    if (w->files.at[use->file].bytes > 0)
        return gy_import_add_read(w->in, use->task, w->item[writer]);
    return gy_import_add_order(w->in, w->writer[writer], use->task);
}

gantry_status gy_wf_link_files(gy_wf *w)
{
    family f = { 0 };
    gantry_status status = list_writers(w);
    if (!status && !make_family(w, &f))
        status = gy_fail_nomem(w->err);
    for (size_t i = 0; !status && i < w->uses.count; i++)
        if (!w->uses.at[i].writes && !link_use(w, &f, &w->uses.at[i]))
            status = gy_fail_nomem(w->err);
    free_family(&f);
    return status;
}
