/* SPDX-License-Identifier: Apache-2.0 */
/* BUFFER=FILE, for --input, --output and --show. */
#include "runs/run.h"
#include <stdlib.h>
#include <string.h>

/* A name that ends in ".WORD": where graphs are used, or trials made, buffers have the names of these before theirs. */
static const char *with_prefix(const char *word, const char *const *names, size_t count)
{
    size_t length = strlen(word);
    for (size_t i = 0; i < count; i++) {
        size_t before = strlen(names[i]);
        before = before > length ? before - length : 0;
        if (before && names[i][before - 1] == '.' && strcmp(names[i] + before, word) == 0)
            return names[i];
    }
    return NULL;
}

static void offer_names(const char *word, const char *const *names, size_t count)
{
    enum { SHOWN = 8 };
    const char *near = gantry_nearest(word, names, count);
    near = near ? near : with_prefix(word, names, count);
    if (near)
        complain(" (did you mean \"%s\"?)", near);
    for (size_t i = 0; i < count && i < SHOWN && !near; i++)
        complain("%s\"%s\"", i ? ", " : "; it has ", names[i]);
    if (count > SHOWN && !near)
        complain(" and %zu more", count - SHOWN);
    complain("\n");
}

int no_buffer(const session *s, const char *option, const char *text, const char *sign)
{
    size_t count = gantry_graph_buffer_count(s->graph), known = 0;
    bool outputs = strstr(option, "input") == NULL;
    const char **names = malloc((count ? count : 1) * sizeof *names);
    char name[256];
    gantry_buffer_info info;
    if (!names)
        return fail_nomem();
    snprintf(name, sizeof name, "%.*s", (int)(sign - text < 255 ? sign - text : 255), text);
    for (uint32_t i = 0; i < count; i++) {
        bool is_out = strcmp(option, "output") == 0 ? is_written(s, i, &info) : is_output(s, i, &info);
        if (outputs ? is_out : info.cls != GANTRY_TEMP)
            names[known++] = info.name;
    }
    complain("--%s: graph \"%s\" has no %s \"%s\"", option, gantry_graph_name(s->graph), outputs ? "output" : "buffer",
             name);
    offer_names(name, names, known);
    free((void *)names);
    return EXIT_USAGE;
}

/* Names may have signs in them: the last sign counts that has a buffer's name before it. */
static const char *find_sign(const session *s, const char *text, gantry_buffer *buffer)
{
    const char *found = NULL;
    char *name = strdup(text);
    for (const char *sign = strchr(text, '='); sign && name; sign = strchr(sign + 1, '=')) {
        name[sign - text] = 0;
        gantry_buffer b = gantry_graph_find_buffer(s->graph, name);
        name[sign - text] = '=';
        if (b.id == GANTRY_NONE)
            continue;
        *buffer = b;
        found = sign;
    }
    free(name);
    return found;
}

int find_binding(const session *s, const char *option, const char *text, gantry_buffer *buffer, const char **path)
{
    const char *first = strchr(text, '='), *sign = find_sign(s, text, buffer);
    if (!first || first == text || !(sign ? sign : first)[1]) {
        complain("--%s takes BUFFER=FILE, not \"%s\"\n", option, text);
        return EXIT_USAGE;
    }
    if (!sign)
        return no_buffer(s, option, text, first);
    *path = sign + 1;
    return EXIT_FINE;
}

/* One buffer in two files is a slip; of two outputs in one file the second would be all that is left. */
int check_outputs_differ(const session *s, size_t i)
{
    const char *const *at = s->o->outputs.at, *path, *other_path;
    gantry_buffer buffer, other;
    int code = find_binding(s, "output", at[i], &buffer, &path);
    for (size_t k = 0; k < i && !code; k++) {
        code = find_binding(s, "output", at[k], &other, &other_path);
        if (code)
            return code;
        int length = (int)(path - 1 - at[i]);
        if (buffer.id == other.id) {
            complain("--output: \"%.*s\" is given twice, as %s and as %s; an output goes to one file\n", length, at[i],
                     other_path, path);
            code = EXIT_USAGE;
        } else if (strcmp(path, other_path) == 0 && strncmp(path, "/dev/", 5) != 0) {
            complain("--output: \"%.*s\" and \"%.*s\" both go to %s; give each a file of its own\n",
                     (int)(other_path - 1 - at[k]), at[k], length, at[i], path);
            code = EXIT_USAGE;
        }
    }
    return code;
}
