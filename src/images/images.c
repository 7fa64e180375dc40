/* SPDX-License-Identifier: Apache-2.0 */
#include "images/images.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const gy_image_format formats[] = {
    { "JPEG", { ".jpg", ".jpeg" }, "gantry-jpeg", "libturbojpeg0-dev" },
    { "PNG", { ".png", NULL }, "gantry-png", "libpng-dev" },
};

/* NULL: none has names that end so. */
static const gy_image_format *format_of(const char *pattern)
{
    const char *ending = strrchr(pattern, '.');
    if (!ending || ending == pattern)
        return NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (int k = 0; k < 2 && formats[i].ending[k]; k++)
            if (strcasecmp(ending, formats[i].ending[k]) == 0)
                return &formats[i];
    return NULL;
}

bool gy_images_named(const char *pattern)
{
    return format_of(pattern) != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool add_path(gy_images *images, const char *path)
{
    images->path[images->count] = gy_strdup(path);
    return images->path[images->count] && ++images->count;
}

static bool add_paths(gy_images *images, char *const *path, size_t count)
{
    images->path = gy_calloc(count, sizeof *images->path);
    for (size_t i = 0; images->path && i < count; i++)
        if (!add_path(images, path[i]))
            return false;
    return images->path != NULL;
}

/* Sorted here, since glob would sort by the rules of the user's language. */
static gantry_status find_matches(gy_images *images, const char *pattern, gantry_error *err)
{
    glob_t found;
    int failed = glob(pattern, GLOB_NOSORT, NULL, &found);
    gantry_status status = GANTRY_OK;
    if (failed == GLOB_NOMATCH || (!failed && found.gl_pathc == 0))
        status = gy_fail(err, GANTRY_E_IO, NULL,
                         "%s: no file has such a name; name a .jpg or .png file or a pattern of some (*)", pattern);
    else if (failed == GLOB_ABORTED)
        status = gy_fail(err, GANTRY_E_IO, NULL, "%s: a folder of the pattern cannot be read", pattern);
    else if (failed || !add_paths(images, found.gl_pathv, found.gl_pathc))
        status = gy_fail_nomem(err);
    globfree(&found);
    if (!status)
        qsort((void *)images->path, images->count, sizeof *images->path, by_name);
    return status;
}

static gantry_status find_paths(gy_images *images, const char *pattern, gantry_error *err)
{
    char *alone = (char *)(uintptr_t)pattern; /* only read */
    if (!strpbrk(pattern, "*?[") || access(pattern, F_OK) == 0)
        return add_paths(images, &alone, 1) ? GANTRY_OK : gy_fail_nomem(err);
    return find_matches(images, pattern, err);
}

static gantry_status find_decoder(gy_images *images, const char *pattern, gantry_error *err)
{
    const gy_image_format *f = images->format = format_of(pattern);
    gantry_error why = { 0 };
    if (gy_module_open(&images->module, f->module, &why)) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "%s: %s files are read by %s.so, which cannot be used here (%s); build Gantry where %s is "
                       "installed, or convert the images to one .npy file",
                       pattern, f->name, f->module, why.text, f->package);
    }
    images->decoder = images->module.table;
    return GANTRY_OK;
}

gantry_status gy_images_open(gy_images *images, const char *pattern, gantry_error *err)
{
    gy_images found = { 0 };
    gantry_status status = find_paths(&found, pattern, err);
    status = status ? status : find_decoder(&found, pattern, err);
    if (status) {
        gy_images_close(&found);
        return status;
    }
    *images = found;
    return GANTRY_OK;
}

void gy_images_close(gy_images *images)
{
    for (size_t i = 0; i < images->count; i++)
        gy_free(images->path[i]);
    gy_free((void *)images->path);
    gy_module_close(&images->module);
    *images = (gy_images){ 0 };
}
