/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include "base/map.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_name(const char *name, char *to, size_t size, const char *folder)
{
    int n = snprintf(to, size, "%s/graphs/machines/%s.json", folder, name);
    ck_assert(n > 0 && (size_t)n < size);
}

char *with_quotes(const char *text)
{
    char *copy = strdup(text);
    ck_assert_ptr_nonnull(copy);
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    return copy;
}

gantry_machine *machine_of(const char *text)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    char *json = with_quotes(text);
    gantry_status status = gantry_machine_parse(&m, json, strlen(json), "test", &err);
    ck_assert_msg(status == GANTRY_OK, "%d:%d: %s: %s", err.line, err.column, err.where, err.text);
    free(json);
    return m;
}

const char *machine_path(const char *name)
{
    static char path[1024];
    read_name(name, path, sizeof path, GANTRY_SOURCE_DIR);
    return path;
}

gantry_machine *load_machine(const char *name)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    gantry_status status = gantry_machine_load(&m, machine_path(name), &err);
    ck_assert_msg(status == GANTRY_OK, "%s:%d:%d: %s: %s", err.file, err.line, err.column, err.where, err.text);
    return m;
}

const char *shared_path(const char *name)
{
    static char path[1024];
    const char *folder = getenv("GANTRY_SHARED");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", name);
    FILE *file = folder ? fopen(path, "r") : NULL;
    if (!file) {
        printf("skipped: no %s in GANTRY_SHARED\n", name);
        return NULL;
    }
    fclose(file);
    return path;
}

const gy_route *route_of(const gantry_machine *m, const char *from, const char *to)
{
    uint32_t a = gy_machine_find_memory(m, from), b = gy_machine_find_memory(m, to);
    ck_assert_msg(a != GY_MACHINE_NONE && b != GY_MACHINE_NONE, "no memory %s or %s", from, to);
    return gy_machine_route(m, a, b);
}

gy_ticks copy_ticks(const gantry_machine *m, const char *from, const char *to, int64_t bytes)
{
    return gy_route_time(m, route_of(m, from, to), bytes);
}

uint64_t machine_hash(const gantry_machine *m)
{
    gantry_machine bare = *m;
    gy_text text = { 0 };
    bare.source = NULL;
    bare.notes = 0;
    bare.calibration.measured = false;
    gy_machine_print(&text, &bare, 0);
    ck_assert(!text.failed);
    uint64_t hash = gy_hash_bytes(text.at, text.length, 0);
    gy_text_free(&text);
    return hash;
}
