/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphs/invalid: one mistake a file, and the exact line a person gets. NAME.error has that line, as printed when the
 * graph is loaded from the project's folder; NAME.options, where there is one, has lines "param NAME=VALUE",
 * "input BUFFER=FILE", "allow_code" and "max_nodes N".
 */
#include "base/file.h"
#include "suite.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_OPTIONS = 8, LEAST_CASES = 60 };

typedef struct options {
    gantry_load_options load;
    const char *params[MOST_OPTIONS], *inputs[MOST_OPTIONS];
    char *text;
} options;

/* graphs/invalid/x.json -> graphs/invalid/x.ENDING; false if there is none. */
static bool read_beside(const char *path, const char *ending, char **text)
{
    char name[512];
    size_t length;
    snprintf(name, sizeof name, "%.*s%s", (int)(strlen(path) - strlen("json")), path, ending);
    return gy_file_read(text, &length, name, NULL) == GANTRY_OK;
}

static void read_options(const char *path, options *o)
{
    *o = (options){ .load = GANTRY_LOAD_OPTIONS_INIT };
    if (!read_beside(path, "options", &o->text))
        return;
    for (char *rest = o->text, *line; (line = strtok_r(rest, "\n", &rest));) {
        if (strncmp(line, "param ", 6) == 0) {
            o->params[o->load.param_count++] = line + 6;
        } else if (strncmp(line, "input ", 6) == 0) {
            o->inputs[o->load.input_count++] = line + 6;
        } else if (strncmp(line, "max_nodes ", 10) == 0) {
            o->load.max_nodes = atoll(line + 10);
        } else {
            ck_assert_str_eq(line, "allow_code");
            o->load.allow_code = 1;
        }
    }
    o->load.params = o->params;
    o->load.inputs = o->inputs;
}

static size_t cases, wrong;

static void check_case(const char *absolute)
{
    const char *path = absolute + strlen(GANTRY_SOURCE_DIR) + 1;
    char *expected, line[1024];
    gantry_graph *g = NULL;
    gantry_error err;
    options o;
    cases++;
    if (!read_beside(path, "error", &expected)) {
        printf("%s has no .error\n", path);
        wrong++;
        return;
    }
    read_options(path, &o);
    expected[strcspn(expected, "\n")] = '\0';
    if (gantry_graph_load(&g, path, &o.load, &err) == GANTRY_OK) {
        printf("%s was read; expected %s\n", path, expected);
        gantry_graph_free(g);
        wrong++;
    } else {
        gantry_error_format(&err, line, sizeof line);
        if (strcmp(line, expected) != 0) {
            printf("is       %s\nexpected %s\n", line, expected);
            wrong++;
        }
    }
    gy_free(expected);
    gy_free(o.text);
}

START_TEST(every_case)
{
    ck_assert_int_eq(chdir(GANTRY_SOURCE_DIR), 0);
    cases = wrong = 0;
    each_json("graphs/invalid", check_case);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_ge(cases, LEAST_CASES);
}
END_TEST

int main(void)
{
    const TTest *const all[] = { every_case };
    return RUN_CASES("invalid graph files", all);
}
