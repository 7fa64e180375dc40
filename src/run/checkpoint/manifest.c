/* SPDX-License-Identifier: Apache-2.0 */
#include "run/checkpoint/manifest.h"

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_TEXT = 20, HEX = 16 };
static const char *const roles[] = { "state", "value", "next" };
enum { ROLES = sizeof roles / sizeof *roles };

void gy_checkpoint_free(gy_checkpoint *c)
{
    for (size_t i = 0; i < c->kept.count; i++)
        gy_free(c->kept.at[i].at);
    gy_vec_free(&c->kept);
    gy_vec_free(&c->renamed);
    *c = (gy_checkpoint){ 0 };
}

const gy_kept *gy_checkpoint_find(const gy_checkpoint *c, gy_kept_role role, uint32_t buffer)
{
    for (size_t i = 0; i < c->kept.count; i++)
        if (c->kept.at[i].role == role && c->kept.at[i].buffer == buffer)
            return &c->kept.at[i];
    return NULL;
}

char *gy_kept_name(char to[GY_KEPT_NAME], const gy_kept *kept)
{
    snprintf(to, GY_KEPT_NAME, "%s-%" PRIu32 ".npy", roles[kept->role], kept->buffer);
    return to;
}

/* ---- writing ---- */

static json_t *hash_json(uint64_t hash)
{
    char text[HASH_TEXT];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

/* Of everything in it but this hash: the same text whatever the file looks like. False: out of memory. */
static bool hash_of(json_t *root, uint64_t *hash)
{
    json_t *rest = json_copy(root);
    json_object_del(rest, "xxh64");
    char *text = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(rest);
    if (text)
        *hash = gy_hash_bytes(text, strlen(text), 0);
    free(text);
    return text != NULL;
}

static json_t *moment_json(const gy_moment *m)
{
    return json_pack("{s:I, s:i, s:I, s:I, s:I, s:I, s:I}", "iterations", (json_int_t)m->iterations, "phase",
                     (int)m->phase, "loop", m->shape.loop == GY_NONE ? (json_int_t)-1 : (json_int_t)m->shape.loop,
                     "first", (json_int_t)m->shape.first, "iterations_of_start", (json_int_t)m->shape.iterations,
                     "starts", (json_int_t)m->shape.starts, "done", (json_int_t)m->done);
}

static json_t *arrays_json(const gy_checkpoint *c, const gantry_graph *g)
{
    char name[GY_KEPT_NAME];
    json_t *list = json_array();
    for (size_t i = 0; i < c->kept.count; i++) {
        const gy_kept *k = &c->kept.at[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:o}", "buffer", g->buffers.at[k->buffer].name, "role",
                                        roles[k->role], "file", gy_kept_name(name, k), "xxh64", hash_json(k->hash)));
    }
    return list;
}

static json_t *names_json(const gy_checkpoint *c, const gantry_graph *g)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->renamed.count; i++) {
        const gy_renamed *r = &c->renamed.at[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "name", g->buffers.at[r->name].name, "from",
                                              g->buffers.at[r->from].name, "made", (int)r->made));
    }
    return list;
}

char *gy_manifest_write(const gy_checkpoint *c, const gantry_graph *graph)
{
    uint64_t hash;
    json_t *root = json_pack("{s:i, s:s?, s:o, s:I, s:o, s:o}", "gantry_checkpoint", 1, "graph", graph->name, "hash",
                             hash_json(graph->hash), "starts", (json_int_t)c->moment.starts, "arrays",
                             arrays_json(c, graph), "names", names_json(c, graph));
    bool made = root && (!c->moment.inside || json_object_set_new(root, "inside", moment_json(&c->moment)) == 0) &&
                hash_of(root, &hash) && json_object_set_new(root, "xxh64", hash_json(hash)) == 0;
    char *text = made ? json_dumps(root, JSON_INDENT(1)) : NULL, *mine = text ? gy_strdup(text) : NULL;
    free(text);
    json_decref(root);
    return mine;
}

/* ---- reading ---- */

static gantry_status fail_altered(const char *path, const char *what, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_IO, NULL, "%s is no manifest of a checkpoint that was written whole: %s", path, what);
}

static bool read_hash(const json_t *value, uint64_t *hash)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (!text || strlen(text) != HEX)
        return false;
    *hash = strtoull(text, &end, HEX);
    return *end == 0;
}

static bool read_count(const json_t *of, const char *key, int64_t least, int64_t *to)
{
    const json_t *value = json_object_get(of, key);
    *to = (int64_t)json_integer_value(value);
    return json_is_integer(value) && *to >= least;
}

static bool find_buffer(const gantry_graph *g, const json_t *name, uint32_t *id)
{
    const char *text = json_string_value(name);
    for (*id = 0; text && *id < g->buffers.count; ++*id)
        if (strcmp(g->buffers.at[*id].name, text) == 0)
            return true;
    return false;
}

static bool read_array(gy_checkpoint *c, const json_t *item, const gantry_graph *g)
{
    char name[GY_KEPT_NAME];
    gy_kept kept = { 0 };
    uint32_t role = 0;
    const char *text = json_string_value(json_object_get(item, "role"));
    const char *file = json_string_value(json_object_get(item, "file"));
    while (text && role < ROLES && strcmp(roles[role], text) != 0)
        role++;
    if (!text || role == ROLES || !file || !find_buffer(g, json_object_get(item, "buffer"), &kept.buffer) ||
        !read_hash(json_object_get(item, "xxh64"), &kept.hash))
        return false;
    kept.role = (gy_kept_role)role;
    return strcmp(gy_kept_name(name, &kept), file) == 0 && !gy_checkpoint_find(c, kept.role, kept.buffer) &&
           gy_vec_push(&c->kept, kept);
}

static bool read_name(gy_checkpoint *c, const json_t *item, const gantry_graph *g)
{
    gy_renamed r = { .made = json_is_true(json_object_get(item, "made")) };
    return find_buffer(g, json_object_get(item, "name"), &r.name) &&
           find_buffer(g, json_object_get(item, "from"), &r.from) &&
           (!r.made || gy_checkpoint_find(c, GY_KEPT_VALUE, r.from)) && gy_vec_push(&c->renamed, r);
}

static bool read_moment(gy_moment *m, const json_t *of)
{
    int64_t iterations, phase, loop;
    m->inside = of != NULL;
    if (!of)
        return true;
    if (!read_count(of, "iterations", 0, &iterations) || !read_count(of, "phase", 0, &phase) ||
        !read_count(of, "loop", -1, &loop) || !read_count(of, "first", 0, &m->shape.first) ||
        !read_count(of, "iterations_of_start", 1, &m->shape.iterations) ||
        !read_count(of, "starts", 1, &m->shape.starts) || !read_count(of, "done", 0, &m->done) || phase >= GY_NONE ||
        loop >= GY_NONE || m->done >= m->shape.starts)
        return false;
    m->iterations = (uint64_t)iterations;
    m->phase = (uint32_t)phase;
    m->shape.loop = loop < 0 ? GY_NONE : (uint32_t)loop;
    return true;
}

static gantry_status read_all(gy_checkpoint *c, json_t *root, const char *path, const gantry_graph *g,
                              gantry_error *err)
{
    uint64_t hash, said, graph;
    int64_t version, starts;
    const json_t *item;
    size_t i;
    if (!read_count(root, "gantry_checkpoint", 1, &version) || !read_hash(json_object_get(root, "xxh64"), &said))
        return fail_altered(path, "it has no hash, or \"gantry_checkpoint\" is missing", err);
    if (version != 1)
        return gy_fail(
            err, GANTRY_E_UNSUPPORTED, NULL,
            "%s has version %lld of the format, and this library reads version 1; use the library that wrote it", path,
            (long long)version);
    if (!hash_of(root, &hash))
        return gy_fail_nomem(err);
    if (hash != said || !read_hash(json_object_get(root, "hash"), &graph) || !read_count(root, "starts", 0, &starts))
        return fail_altered(path, "its hash is not that of its contents", err);
    if (graph != g->hash) {
        const char *name = json_string_value(json_object_get(root, "graph"));
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "%s is of graph \"%s\" with hash %016" PRIx64
                       ", and the graph here is \"%s\" with hash %016" PRIx64
                       "; give the same graph and params, and of a training the same strategy and trials, as the "
                       "run had that wrote it; a param that follows from how many devices there are, such as parts, "
                       "is given as it was there (--param parts=N)",
                       path, name ? name : "", graph, g->name ? g->name : "", g->hash);
    }
    c->moment.starts = (uint64_t)starts;
    bool fine = read_moment(&c->moment, json_object_get(root, "inside"));
    json_array_foreach(json_object_get(root, "arrays"), i, item) fine = fine && read_array(c, item, g);
    json_array_foreach(json_object_get(root, "names"), i, item) fine = fine && read_name(c, item, g);
    return fine ? GANTRY_OK : fail_altered(path, "what it lists is not of this graph", err);
}

gantry_status gy_manifest_read(gy_checkpoint *c, const char *text, size_t length, const char *path,
                               const gantry_graph *graph, gantry_error *err)
{
    json_t *root;
    GY_TRY(gy_json_parse(&root, text, length, path, "gantry_checkpoint", err)
               ? fail_altered(path, "it is cut off, or no JSON", err)
               : GANTRY_OK);
    gantry_status status = read_all(c, root, path, graph, err);
    json_decref(root);
    if (status)
        gy_checkpoint_free(c);
    return status;
}
