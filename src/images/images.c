/* SPDX-License-Identifier: Apache-2.0 */
#include "images/images.h"

#include "base/error.h"
#include "base/paths.h"
#include <string.h>
#include <strings.h>

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

static gantry_status find_paths(gy_images *images, const char *pattern, gantry_error *err)
{
    gy_paths found;
    GY_TRY(gy_paths_find(&found, pattern, "name a .jpg or .png file or a pattern of some (*)", err));
    images->path = found.at;
    images->count = found.count;
    return GANTRY_OK;
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
    gy_paths paths = { images->path, images->count };
    gy_paths_free(&paths);
    gy_module_close(&images->module);
    *images = (gy_images){ 0 };
}
