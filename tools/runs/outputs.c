/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run: its outputs in the report, in files and drawn. */
#include "runs/run.h"

#include "results/results.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *output_file(const session *s, uint32_t output)
{
    gantry_buffer buffer;
    const char *path;
    for (size_t i = 0; i < s->o->outputs.count; i++)
        if (!find_binding(s, "output", s->o->outputs.at[i], &buffer, &path) && buffer.id == output)
            return path;
    return NULL;
}

/* Without contents, before there are some. */
static array array_of(const gantry_buffer_info *info, const void *data)
{
    return (array){ .name = info->name,
                    .dtype = info->dtype,
                    .rank = info->rank,
                    .shape = info->shape,
                    .count = info->bytes / gantry_dtype_size(info->dtype),
                    .data = data };
}

/* With its contents. False: they cannot be had, such as those of back ends that give times only. */
static bool find_array(const session *s, uint32_t i, array *a, gantry_error *err)
{
    gantry_buffer_info info;
    const void *data;
    is_output(s, i, &info);
    if (gantry_run_output(s->run, (gantry_buffer){ .id = i }, &data, NULL, err))
        return false;
    *a = array_of(&info, data);
    return true;
}

/* ---- files ---- */

int check_output_format(const gantry_buffer_info *info, const char *path)
{
    array a = array_of(info, NULL);
    return check_format(&a, path) ? EXIT_FINE : EXIT_USAGE;
}

static int fail_format(const char *name, const char *path, const char *why)
{
    complain("%s=%s: %s\n", name, path, *why ? why : gantry_status_text(GANTRY_E_NOMEM));
    return EXIT_RUNNING;
}

/* The same of an output or a state, of which *own is a copy to be freed. */
static int find_written(const session *s, gantry_buffer buffer, array *a, void **own)
{
    gantry_error err;
    gantry_buffer_info info;
    if (is_output(s, buffer.id, &info))
        return find_array(s, buffer.id, a, &err) ? EXIT_FINE : fail(&err);
    *own = malloc(info.bytes + 1);
    if (!*own)
        return fail_nomem();
    *a = array_of(&info, *own);
    if (!gantry_run_state(s->run, buffer, *own, info.bytes, &err))
        return EXIT_FINE;
    free(*own);
    return fail(&err);
}

int save_output(const session *s, gantry_buffer buffer, gantry_files *files, const char *path)
{
    gantry_error err;
    array a;
    char note[NOTE_TEXT];
    size_t length;
    void *own = NULL;
    if (is_library_format(path))
        return gantry_run_save_with(s->run, buffer, files, path, &err) ? fail(&err) : EXIT_FINE;
    int failed = find_written(s, buffer, &a, &own);
    if (failed)
        return failed;
    char *text = format_array(&a, path, &length, note);
    free(own);
    if (!text)
        return fail_format(a.name, path, note);
    if (*note)
        fprintf(stderr, "note: %s: %s\n", path, note);
    int code = add_text(files, path, text, length);
    free(text);
    return code;
}

/* ---- the report ---- */

/* The hash as text; false where the back end gives times only. */
static bool hash_text(const session *s, uint32_t i, char *text, size_t size)
{
    uint64_t hash;
    if (gantry_run_hash(s->run, (gantry_buffer){ .id = i }, &hash, NULL))
        return false;
    snprintf(text, size, "%016" PRIx64, hash);
    return true;
}

json_t *outputs_json(const session *s)
{
    json_t *outputs = json_object();
    gantry_buffer_info info;
    for (uint32_t i = 0; i < gantry_graph_buffer_count(s->graph); i++) {
        char text[20];
        if (is_output(s, i, &info))
            json_object_set_new(outputs, info.name,
                                json_pack("{s:s?, s:s?}", "file", output_file(s, i), "xxh64",
                                          hash_text(s, i, text, sizeof text) ? text : NULL));
        else if (output_file(s, i))
            json_object_set_new(outputs, info.name, json_pack("{s:s}", "file", output_file(s, i)));
    }
    return outputs;
}

void print_outputs(FILE *to, const session *s)
{
    gantry_buffer_info info;
    array a;
    bool seen = false;
    for (uint32_t i = 0; i < gantry_graph_buffer_count(s->graph); i++) {
        char text[20];
        const char *file = output_file(s, i);
        seen = is_output(s, i, &info) || file || info.cls == GANTRY_STATE || seen;
        if (!is_output(s, i, &info)) {
            if (file)
                fprintf(to, "  state %-13s %s\n", info.name, file);
            continue;
        }
        if (!hash_text(s, i, text, sizeof text)) {
            fprintf(to, "  output %-12s has no contents: the back end gives times only\n", info.name);
            continue;
        }
        fprintf(to, "  output %-12s xxh64 %s  %s\n", info.name, text,
                file ? file : "(not written: --output NAME=FILE)");
        if (find_array(s, i, &a, NULL))
            print_values(to, &a);
    }
    if (!seen)
        fprintf(to, "  no buffer is an output: give one \"output\": true to see what is computed\n");
}

/* ---- --show ---- */

/* The buffer of "BUFFER" or "BUFFER=FILE"; *path is NULL without a file. */
static int find_shown(const session *s, const char *text, gantry_buffer *buffer, const char **path)
{
    *path = NULL;
    *buffer = gantry_graph_find_buffer(s->graph, text);
    if (buffer->id != GANTRY_NONE)
        return EXIT_FINE;
    return strchr(text, '=') ? find_binding(s, "show", text, buffer, path)
                             : no_buffer(s, "show", text, text + strlen(text));
}

int check_shown(const session *s)
{
    for (size_t i = 0; i < s->o->shows.count; i++) {
        const char *text = s->o->shows.at[i], *path;
        gantry_buffer buffer;
        gantry_buffer_info info;
        int code = find_shown(s, text, &buffer, &path);
        if (code)
            return code;
        size_t length = path ? strlen(path) : 0;
        if (!is_output(s, buffer.id, &info)) {
            complain("--show: buffer \"%s\" is no output; add \"output\": true to it in the graph\n", info.name);
        } else if (path && (length < 5 || strcmp(path + length - 4, ".png") != 0)) {
            complain("--show: %s draws into a file whose name ends in .png; other formats are written by --output\n",
                     text);
        } else if (path && png_missing()) {
            complain("--show: %s cannot be a picture, since %s; leave \"=%s\" out to see it here\n", text,
                     png_missing(), path);
        } else if (!path && s->o->json) {
            complain("--show: %s would be drawn where --json prints; draw into a file, --show %s=FILE.png\n", text,
                     text);
        } else {
            continue;
        }
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

static int save_picture(const array *a, gantry_files *files, const char *path)
{
    char note[NOTE_TEXT] = "";
    picture p = { 0 };
    size_t length;
    bool made = is_curve(a) ? make_plot_picture(&p, a, note) : make_picture(&p, a, note);
    void *file = made ? encode_png(&p, &length, note) : NULL;
    free(p.pixel);
    if (!file)
        return fail_format(a->name, path, note);
    fprintf(stderr, "note: %s: %s\n", path, note);
    int code = add_text(files, path, file, length);
    free(file);
    return code;
}

int save_shown(const session *s, gantry_files *files)
{
    gantry_error err;
    int code = EXIT_FINE;
    for (size_t i = 0; i < s->o->shows.count && !code; i++) {
        gantry_buffer buffer;
        const char *path;
        array a;
        code = find_shown(s, s->o->shows.at[i], &buffer, &path);
        if (code || !path)
            continue;
        code = find_array(s, buffer.id, &a, &err) ? save_picture(&a, files, path) : fail(&err);
    }
    return code;
}

int print_shown(FILE *to, const session *s)
{
    gantry_error err;
    for (size_t i = 0; i < s->o->shows.count; i++) {
        gantry_buffer buffer;
        const char *path;
        array a;
        if (find_shown(s, s->o->shows.at[i], &buffer, &path) || path)
            continue;
        if (!find_array(s, buffer.id, &a, &err))
            return fail(&err);
        fprintf(to, "\n");
        if (!draw_array(to, &a, terminal_columns(to), terminal_colours(to)))
            return fail_nomem();
    }
    return EXIT_FINE;
}
