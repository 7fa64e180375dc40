/* SPDX-License-Identifier: Apache-2.0 */
/* The table of policies. */
#include "scheduler/policies/policy.h"

#include "base/error.h"
#include "base/text.h"
#include <string.h>

static const gy_policy *const table[] = {
#define GY_POLICY(id) &gy_policy_##id,
#include "scheduler/policies/policies.def"
#undef GY_POLICY
};
#define POLICIES (sizeof table / sizeof *table)

const gy_policy *gy_policy_at(size_t i)
{
    return i < POLICIES ? table[i] : NULL;
}

const char *gantry_policy_name(size_t i)
{
    return i < POLICIES ? table[i]->name : NULL;
}

const char *gantry_policy_summary(size_t i)
{
    return i < POLICIES ? table[i]->summary : NULL;
}

static gantry_status no_policy(const char *name, gantry_error *err)
{
    gy_text names = { 0 };
    for (size_t i = 0; i < POLICIES; i++)
        gy_text_printf(&names, "%s%s", i == 0 ? "" : i + 1 < POLICIES ? ", " : " and ", table[i]->name);
    gantry_status status = names.failed
                               ? gy_fail_nomem(err)
                               : gy_fail(err, GANTRY_E_INVALID, NULL, "no policy \"%s\"; there are %s", name, names.at);
    gy_text_free(&names);
    return status;
}

gantry_status gy_policy_find(const gy_policy **policy, const char *name, gantry_error *err)
{
    gy_near near = { 0 };
    for (size_t i = 0; i < POLICIES; i++) {
        if (!name || !strcmp(name, table[i]->name)) {
            *policy = table[i];
            return GANTRY_OK;
        }
        gy_near_offer(&near, name, table[i]->name);
    }
    if (near.best)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no policy \"%s\" (did you mean \"%s\"?)", name, near.best);
    return no_policy(name, err);
}
