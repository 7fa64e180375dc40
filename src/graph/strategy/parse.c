/* SPDX-License-Identifier: Apache-2.0 */
/* "dp=2,micro=4": a strategy as text, and which ones there are for so many devices. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/versioned.h"
#include "graph/strategy/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 8, MOST = 65536 }; /* of pieces, and of devices */
static const char *const keys[KEYS] = { "dp", "tp", "pp", "interleave", "micro", "zero", "ordered", "recompute" };
static const int32_t least[KEYS] = { 1, 1, 1, 1, 1, 0, 0, GANTRY_RECOMPUTE_AUTO };
static const int32_t most[KEYS] = { MOST, MOST, MOST, MOST, MOST, 3, 1, GANTRY_RECOMPUTE_ALL };

/* Words that the last of them, `recompute`, may be in place of a number. */
typedef struct word {
    const char *text;
    int32_t value;
} word;
static const word words[] = { { "none", 0 }, { "all", GANTRY_RECOMPUTE_ALL }, { "auto", GANTRY_RECOMPUTE_AUTO } };
enum { WORDS = sizeof words / sizeof *words };

static gantry_status fail_key(const char *key, gantry_error *err)
{
    const char *names[KEYS + 1];
    char meant[GY_MEANT_TEXT];
    memcpy(names, keys, sizeof keys);
    names[KEYS] = "auto";
    if (!*key)
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "strategy: there is no \"\", before a comma or behind the last; leave the comma out, or give a key "
            "and a number, such as \"dp=2,micro=4\"");
    if (strcmp(key, "auto") == 0)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "strategy: \"auto\" is for the command to choose, and stands alone (--strategy auto); else give "
                       "numbers, such as \"dp=2,micro=4\"");
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "strategy: there is no \"%.40s\"%s; allowed are dp, tp, pp, interleave, micro, zero, "
                   "ordered and recompute, such as \"dp=2,micro=4\"; or, of the command, \"auto\" alone",
                   key, gy_meant_text(meant, gy_nearest(key, names, KEYS + 1)));
}

static bool has_words(size_t key)
{
    return key == KEYS - 1;
}

static const word *find_word(size_t key, const char *value)
{
    for (size_t i = 0; i < WORDS && has_words(key) && value; i++)
        if (strcmp(words[i].text, value) == 0)
            return &words[i];
    return NULL;
}

static gantry_status fail_value(size_t key, const char *value, gantry_error *err)
{
    if (has_words(key))
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "strategy: \"%s\" is \"%.40s\"; give a whole number, such as \"%s=2\", or \"all\", \"none\" or "
                       "\"auto\"",
                       keys[key], value ? value : "", keys[key]);
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "strategy: \"%s\" is \"%.40s\"; give a whole number from %d to %d, such as \"%s=%d\"", keys[key],
                   value ? value : "", (int)least[key], (int)most[key], keys[key], most[key] < 2 ? 1 : 2);
}

static size_t write_one(char *to, size_t size, bool is_next, size_t key, int32_t value)
{
    const char *comma = is_next ? "," : "";
    for (size_t i = 0; i < WORDS && has_words(key); i++)
        if (words[i].value == value)
            return (size_t)snprintf(to, size, "%s%s=%s", comma, keys[key], words[i].text);
    return (size_t)snprintf(to, size, "%s%s=%d", comma, keys[key], (int)value);
}

static gantry_status fail_twice(size_t key, int32_t first, const char *value, gantry_error *err)
{
    char had[40];
    write_one(had, sizeof had, false, key, first);
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "strategy: \"%s\" is there twice, as \"%s\" and as \"%s=%.40s\"; give it once", keys[key], had,
                   keys[key], value ? value : "");
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
        return fail_twice(key, *to[key], value, err);
    *seen |= 1U << key;
    const word *named = find_word(key, value);
    if (named) {
        *to[key] = named->value;
        return GANTRY_OK;
    }
    bool has_digit = value && *value >= '0' && *value <= '9';
    long number = has_digit ? strtol(value, &end, 10) : -1;
    if (!has_digit || *end || number > INT32_MAX)
        return fail_value(key, value, err);
    *to[key] = (int32_t)number;
    return GANTRY_OK;
}

gantry_status gy_strategy_check(const gantry_strategy *s, gantry_error *err)
{
    const int32_t value[KEYS] = { s->dp, s->tp, s->pp, s->interleave, s->micro, s->zero, s->ordered, s->recompute };
    for (size_t i = 0; i < KEYS; i++)
        if (value[i] < least[i] || value[i] > most[i])
            return gy_fail(err, GANTRY_E_INVALID, NULL, "strategy: %s is %d; %d to %d are allowed, such as \"%s=%d\"",
                           keys[i], (int)value[i], (int)least[i], (int)most[i], keys[i], most[i] < 2 ? 1 : 2);
    if (s->interleave > 1 && s->pp == 1)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "strategy: interleave is %d and there are no stages to interleave; give pp, such as "
                       "\"pp=2,interleave=%d\"",
                       (int)s->interleave, (int)s->interleave);
    int64_t together = (int64_t)s->dp * s->tp;
    if (s->zero && together == 1)
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "strategy: zero is %d and there is one replica, which has nobody to share weights out among; give "
            "dp (or tp), such as \"dp=2,zero=%d\"",
            (int)s->zero, (int)s->zero);
    if (together * s->pp > MOST || together * s->micro > MOST ||
        (int64_t)s->interleave * (s->pp > s->micro ? s->pp : s->micro) > MOST)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "strategy: dp=%d, tp=%d, pp=%d, interleave=%d and micro=%d are more than %d devices, stages or "
                       "pieces of the batch; give smaller numbers",
                       (int)s->dp, (int)s->tp, (int)s->pp, (int)s->interleave, (int)s->micro, (int)MOST);
    return GANTRY_OK;
}

gantry_status gantry_strategy_parse(gantry_strategy *strategy, const char *text, gantry_error *err)
{
    gantry_strategy made = GANTRY_STRATEGY_INIT;
    int32_t *const to[KEYS] = { &made.dp,    &made.tp,   &made.pp,      &made.interleave,
                                &made.micro, &made.zero, &made.ordered, &made.recompute };
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
    GY_TRY(gy_strategy_check(&made, err));
    gy_struct_write(strategy, &made, sizeof made);
    return GANTRY_OK;
}

size_t gantry_strategy_text(const gantry_strategy *strategy, char *to, size_t size)
{
    static const gantry_strategy usual = GANTRY_STRATEGY_INIT;
    gantry_strategy s = usual;
    char text[160] = "";
    size_t length = 0;
    if (!strategy || gy_struct_read(&s, sizeof s, strategy, "gantry_strategy", NULL)) {
        if (to && size)
            to[0] = '\0';
        return 0;
    }
    const int32_t values[KEYS] = { s.dp, s.tp, s.pp, s.interleave, s.micro, s.zero, s.ordered, s.recompute };
    const int32_t defaults[KEYS] = { usual.dp,    usual.tp,   usual.pp,      usual.interleave,
                                     usual.micro, usual.zero, usual.ordered, usual.recompute };
    for (size_t i = 0; i < KEYS; i++)
        if (values[i] != defaults[i])
            length += write_one(text + length, sizeof text - length, length > 0, i, values[i]);
    return (size_t)snprintf(to, to ? size : 0, "%s", length ? text : "dp=1");
}

/* The i-th with the dp, tp and pp of *s: micro-batches, and shards. *i: how many more are to come. */
static bool candidate_within(gantry_strategy *s, size_t *i)
{
    enum { MOST_MICRO = 16 };
    for (s->micro = 1; s->micro <= MOST_MICRO; s->micro *= 2)
        for (s->zero = 0; s->zero <= (s->dp > 1 ? 1 : 0); s->zero++)
            if ((*i)-- == 0)
                return true;
    return false;
}

int gantry_strategy_candidate(size_t i, int32_t devices, gantry_strategy *strategy)
{
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    if (!strategy || gy_struct_check(strategy, sizeof s, "gantry_strategy", NULL))
        return 0;
    for (s.dp = 1; s.dp <= devices; s.dp++) {
        for (s.tp = 1; s.tp <= devices / s.dp; s.tp++) {
            for (s.pp = 1; s.pp <= devices / s.dp / s.tp; s.pp++) {
                if (devices % (s.dp * s.tp * s.pp) || !candidate_within(&s, &i))
                    continue;
                gy_struct_write(strategy, &s, sizeof s);
                return 1;
            }
        }
    }
    return 0;
}
