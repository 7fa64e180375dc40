/* SPDX-License-Identifier: Apache-2.0 */
#include "base/paths.h"

#include "base/error.h"
#include "base/memory.h"
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gy_is_pattern(const char *path)
{
    return strpbrk(path, "*?[") && access(path, F_OK) != 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool add(gy_paths *paths, const char *path)
{
    paths->at[paths->count] = gy_strdup(path);
    return paths->at[paths->count] && ++paths->count;
}

static gantry_status add_all(gy_paths *paths, char *const *path, size_t count, gantry_error *err)
{
    gy_paths made = { .at = gy_calloc(count, sizeof *made.at) };
    bool fine = made.at != NULL;
    for (size_t i = 0; fine && i < count; i++)
        fine = add(&made, path[i]);
    if (!fine) {
        gy_paths_free(&made);
        return gy_fail_nomem(err);
    }
    *paths = made;
    return GANTRY_OK;
}

/* Sorted here, since glob would sort by the rules of the user's language. */
static gantry_status find_matches(gy_paths *paths, const char *pattern, const char *remedy, gantry_error *err)
{
    glob_t found;
    int failed = glob(pattern, GLOB_NOSORT, NULL, &found);
    gantry_status status = GANTRY_OK;
    if (failed == GLOB_NOMATCH || (!failed && found.gl_pathc == 0))
        status = gy_fail(err, GANTRY_E_IO, NULL, "%s: no file has such a name; %s", pattern, remedy);
    else if (failed == GLOB_ABORTED)
        status = gy_fail(err, GANTRY_E_IO, NULL, "%s: a folder of the pattern cannot be read", pattern);
    else if (failed)
        status = gy_fail_nomem(err);
    else
        status = add_all(paths, found.gl_pathv, found.gl_pathc, err);
    globfree(&found);
    if (!status)
        qsort((void *)paths->at, paths->count, sizeof *paths->at, by_name);
    return status;
}

gantry_status gy_paths_find(gy_paths *paths, const char *pattern, const char *remedy, gantry_error *err)
{
    char *alone = (char *)(uintptr_t)pattern; /* only read */
    return gy_is_pattern(pattern) ? find_matches(paths, pattern, remedy, err) : add_all(paths, &alone, 1, err);
}

void gy_paths_free(gy_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        gy_free(paths->at[i]);
    gy_free((void *)paths->at);
    *paths = (gy_paths){ 0 };
}
