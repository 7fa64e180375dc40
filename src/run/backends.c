/* SPDX-License-Identifier: Apache-2.0 */
#include "run/backend.h"

#include <gantry/run.h>

#include "base/error.h"
#include "base/text.h"
#include <string.h>

/* In the order in which "auto" tries them. */
static const gy_backend *const table[] = { &gy_backend_host, &gy_backend_sim };

enum { BACKENDS = sizeof table / sizeof *table };

const char *gantry_backend_name(size_t i)
{
    return i < BACKENDS ? table[i]->name : NULL;
}

const char *gantry_backend_summary(size_t i)
{
    if (i >= BACKENDS) {
        return NULL;
    }
    const char *obstacle = table[i]->obstacle ? table[i]->obstacle() : NULL;
    return obstacle ? obstacle : table[i]->summary;
}

static const gy_backend *first_usable(void)
{
    for (size_t i = 0; i < BACKENDS; i++) {
        if (!table[i]->obstacle || !table[i]->obstacle()) {
            return table[i];
        }
    }
    return NULL;
}

static const gy_backend *by_name(const char *name)
{
    for (size_t i = 0; i < BACKENDS; i++) {
        if (strcmp(table[i]->name, name) == 0) {
            return table[i];
        }
    }
    return NULL;
}

static gantry_status fail_unknown(const char *name, gantry_error *err)
{
    gy_near near = { 0 };
    gy_text list = { 0 };
    gy_near_offer(&near, name, "auto");
    for (size_t i = 0; i < BACKENDS; i++) {
        gy_near_offer(&near, name, table[i]->name);
        gy_text_printf(&list, ", %s", table[i]->name);
    }
    gantry_status status =
        near.best ? gy_fail(err, GANTRY_E_INVALID, NULL, "no back end \"%s\" (did you mean \"%s\"?)", name, near.best)
                  : gy_fail(err, GANTRY_E_INVALID, NULL, "no back end \"%s\"; there are auto%s", name,
                            list.at ? list.at : "");
    gy_text_free(&list);
    return status;
}

gantry_status gy_backend_find(const gy_backend **backend, const char *name, bool check, gantry_error *err)
{
    const gy_backend *found = !name || strcmp(name, "auto") == 0 ? first_usable() : by_name(name);
    if (!found) {
        return fail_unknown(name ? name : "auto", err);
    }
    const char *obstacle = found->obstacle ? found->obstacle() : NULL;
    if (obstacle) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "back end \"%s\" cannot be used: %s", found->name, obstacle);
    }
    if (check && found != &gy_backend_host) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "checking mode is not there on back end \"%s\"; use \"host\"",
                       found->name);
    }
    *backend = check ? &gy_backend_checked : found;
    return GANTRY_OK;
}
