/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"
#include "support/run_suite.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

int run_cases(const char *name, const TTest *const *cases, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *all = tcase_create(name);
    tcase_set_timeout(all, 200);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(all, cases[i]);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}

gantry_graph *graph_with(const char *text, const gantry_load_options *options)
{
    gantry_graph *graph = NULL;
    gantry_error err;
    char line[1024];
    if (gantry_graph_parse(&graph, text, strlen(text), "t", ".", options, &err)) {
        gantry_error_format(&err, line, sizeof line);
        ck_abort_msg("%s\nin %s", line, text);
    }
    return graph;
}

gantry_graph *graph_of(const char *text)
{
    return graph_with(text, NULL);
}

const char *error_with(const char *text, const gantry_load_options *options)
{
    static char line[1024];
    gantry_graph *graph = NULL;
    gantry_error err;
    if (!gantry_graph_parse(&graph, text, strlen(text), "t", ".", options, &err))
        ck_abort_msg("this is no graph, but was read: %s", text);
    ck_assert_ptr_null(graph);
    gantry_error_format(&err, line, sizeof line);
    return line;
}

const char *error_of(const char *text)
{
    return error_with(text, NULL);
}

char *json_of(const gantry_graph *graph)
{
    char *text = NULL;
    size_t length = 0;
    gantry_error err;
    ck_assert_msg(gantry_graph_json(graph, &text, &length, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_eq(strlen(text), length);
    return text;
}

void check_stable(const gantry_graph *graph)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gantry_graph *again = NULL;
    gantry_error err;
    char line[1024], *first = json_of(graph);
    if (gantry_graph_parse(&again, first, strlen(first), "again", graph->folder ? graph->folder : ".", &options,
                           &err)) {
        gantry_error_format(&err, line, sizeof line);
        ck_abort_msg("the normal form of %s is no graph: %s\n%s", graph->name, line, first);
    }
    char *second = json_of(again);
    ck_assert_str_eq(first, second);
    gantry_free(first);
    gantry_free(second);
    gantry_graph_free(again);
}

char *line_with(const gantry_graph *graph, const char *part)
{
    char *text = json_of(graph), *found = strstr(text, part);
    ck_assert_msg(found != NULL, "nothing has %s in\n%s", part, text);
    while (found > text && found[-1] != '\n')
        found--;
    found += strspn(found, " ");
    size_t length = strcspn(found, "\n");
    length -= found[length - 1] == ',';
    char *line = strndup(found, length);
    gantry_free(text);
    return line;
}

static int is_json(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

void each_json(const char *folder, void (*each)(const char *path))
{
    char path[1024];
    struct dirent **entry;
    snprintf(path, sizeof path, "%s/%s", GANTRY_SOURCE_DIR, folder);
    int count = scandir(path, &entry, is_json, alphasort);
    ck_assert_msg(count >= 0, "cannot read %s", path);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", GANTRY_SOURCE_DIR, folder, entry[i]->d_name);
        each(path);
        free(entry[i]);
    }
    free(entry);
}
