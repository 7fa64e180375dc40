/* SPDX-License-Identifier: Apache-2.0 */
/* "dp=2,micro=4": a strategy as text. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/versioned.h"
#include "graph/strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS = 4 };
static const char *const keys[KEYS] = { "dp", "pp", "micro", "zero" };

static gantry_status fail_key(const char *key, gantry_error *err)
{
    const char *near = gy_nearest(key, keys, KEYS);
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "strategy: there is no \"%.40s\"%s%s%s; allowed are dp, pp, micro and zero, such as "
                   "\"dp=2,micro=4\"",
                   key, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static gantry_status read_one(char *item, int32_t *const *to, uint32_t *seen, gantry_error *err)
{
    char *value = strchr(item, '='), *end;
    size_t key = 0;
    if (value)
        *value++ = '\0';
    while (key < KEYS && strcmp(keys[key], item) != 0)
        key++;
    if (key == KEYS)
        return fail_key(item, err);
    if (*seen & 1U << key)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "strategy: \"%s\" is there twice; give it once", keys[key]);
    *seen |= 1U << key;
    bool has_digit = value && *value >= '0' && *value <= '9';
    long number = has_digit ? strtol(value, &end, 10) : -1;
    if (!has_digit || *end || number > INT32_MAX)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "strategy: \"%s\" is \"%.40s\"; give a whole number, such as \"%s=2\"", keys[key],
                       value ? value : "", keys[key]);
    *to[key] = (int32_t)number;
    return GANTRY_OK;
}

gantry_status gantry_strategy_parse(gantry_strategy *strategy, const char *text, gantry_error *err)
{
    gantry_strategy made = GANTRY_STRATEGY_INIT;
    int32_t *const to[KEYS] = { &made.dp, &made.pp, &made.micro, &made.zero };
    uint32_t seen = 0;
    GY_NEED(strategy, err);
    GY_NEED(text, err);
    gantry_status status = gy_struct_check(strategy, sizeof made, "gantry_strategy", err);
    GY_TRY(status);
    char *copy = gy_strdup(text), *rest = copy;
    if (!copy)
        return gy_fail_nomem(err);
    for (char *item = rest; !status && item; item = rest) {
        rest = strchr(item, ',');
        if (rest)
            *rest++ = '\0';
        status = read_one(item, to, &seen, err);
    }
    gy_free(copy);
    GY_TRY(status);
    gy_struct_write(strategy, &made, sizeof made);
    return GANTRY_OK;
}
