/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/split/ideals.h"

#include "base/map.h"
#include <string.h>

#define MOST_WORDS (UINT32_C(1) << 24) /* of all sets together: 128 MiB */
#define MOST_LOOKS (UINT64_C(1) << 31) /* at words, to find which units can come next */

/* Sets as bits, found again by an open table of their numbers. */
typedef struct sets {
    const gy_precedence *order;
    uint32_t words, count;
    uint64_t *before; /* per unit: the set of those before it */
    GY_VEC(uint64_t) bits;
    GY_VEC(uint64_t) hash;
    uint32_t *slot; /* number + 1; 0: free */
    uint32_t slots; /* a power of two */
    /* steps up, as they are found: from ideal, unit, to ideal */
    GY_VEC(struct found { uint32_t from, unit, to; })
    found;
} sets;

static uint64_t mark_of(uint32_t unit)
{
    return gy_hash64((uint64_t)unit + 1);
}

static bool is_in(const uint64_t *set, uint32_t unit)
{
    return set[unit / 64] >> unit % 64 & 1;
}

static bool is_subset(const uint64_t *a, const uint64_t *b, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        if (a[w] & ~b[w])
            return false;
    return true;
}

static bool init_sets(sets *s, const gy_precedence *order)
{
    *s = (sets){ .order = order, .words = order->units / 64 + 1, .slots = 1024 };
    s->before = gy_calloc((size_t)order->units + 1, s->words * sizeof *s->before);
    s->slot = gy_calloc(s->slots, sizeof *s->slot);
    if (!s->before || !s->slot)
        return false;
    for (uint32_t u = 0; u < order->units; u++)
        for (uint32_t i = order->first[u]; i < order->first[u + 1]; i++)
            s->before[(size_t)u * s->words + order->before[i] / 64] |= UINT64_C(1) << order->before[i] % 64;
    return true;
}

static void free_sets(sets *s)
{
    gy_free(s->before);
    gy_free(s->slot);
    gy_vec_free(&s->bits);
    gy_vec_free(&s->hash);
    gy_vec_free(&s->found);
}

static bool grow_table(sets *s)
{
    uint32_t slots = s->slots * 2, *slot = gy_calloc(slots, sizeof *slot);
    if (!slot)
        return false;
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t at = (uint32_t)s->hash.at[i] & (slots - 1);
        while (slot[at])
            at = (at + 1) & (slots - 1);
        slot[at] = i + 1;
    }
    gy_free(s->slot);
    s->slot = slot;
    s->slots = slots;
    return true;
}

/* The number of the set `from` with `unit`; a new one if it was not seen. false: out of memory. */
static bool find_or_add(sets *s, uint32_t from, uint32_t unit, uint32_t *number)
{
    uint64_t hash = s->hash.at[from] + mark_of(unit);
    if (s->count >= s->slots / 2 && !grow_table(s))
        return false;
    if (!gy_vec_add(&s->bits, s->words)) /* built in place: dropped again if it is known */
        return false;
    uint64_t *made = &s->bits.at[(size_t)s->count * s->words];
    memcpy(made, &s->bits.at[(size_t)from * s->words], s->words * sizeof *made);
    made[unit / 64] |= UINT64_C(1) << unit % 64;
    uint32_t at = (uint32_t)hash & (s->slots - 1);
    for (; s->slot[at]; at = (at + 1) & (s->slots - 1)) {
        uint32_t i = s->slot[at] - 1;
        if (s->hash.at[i] == hash && !memcmp(&s->bits.at[(size_t)i * s->words], made, s->words * sizeof *made)) {
            s->bits.count -= s->words;
            *number = i;
            return true;
        }
    }
    if (!gy_vec_push(&s->hash, hash))
        return false;
    s->slot[at] = s->count + 1;
    *number = s->count++;
    return true;
}

static gy_ideals_result grow_all(sets *s, uint32_t most)
{
    if (!gy_vec_add(&s->bits, s->words) || !gy_vec_push(&s->hash, 0))
        return GY_IDEALS_NOMEM;
    memset(s->bits.at, 0, s->words * sizeof *s->bits.at);
    s->count = 1;
    s->slot[0] = 1;
    uint64_t looks = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        looks += (uint64_t)s->order->units * s->words;
        if (looks > MOST_LOOKS)
            return GY_IDEALS_TOO_MANY;
        for (uint32_t u = 0; u < s->order->units; u++) {
            const uint64_t *set = &s->bits.at[(size_t)i * s->words];
            struct found f = { .from = i, .unit = u };
            if (is_in(set, u) || !is_subset(&s->before[(size_t)u * s->words], set, s->words))
                continue;
            if (!find_or_add(s, i, u, &f.to) || !gy_vec_push(&s->found, f))
                return GY_IDEALS_NOMEM;
            if (s->count > most || (uint64_t)s->count * s->words > MOST_WORDS)
                return GY_IDEALS_TOO_MANY;
        }
    }
    return GY_IDEALS_ALL;
}

/* Steps up, in the order of `from`, become steps down, grouped by `to`. */
static bool turn_steps(gy_ideals *out, const sets *s)
{
    if (!gy_vec_add(&out->first, (size_t)s->count + 2) || !gy_vec_add(&out->step, s->found.count) ||
        !gy_vec_add(&out->unit, s->order->units))
        return false;
    uint32_t *first = out->first.at;
    memset(first, 0, ((size_t)s->count + 2) * sizeof *first);
    out->count = s->count;
    for (uint32_t u = 0; u < s->order->units; u++)
        out->unit.at[u] = u;
    for (size_t i = 0; i < s->found.count; i++)
        first[s->found.at[i].to + 2]++;
    for (uint32_t i = 2; i < s->count + 2; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < s->found.count; i++) {
        const struct found *f = &s->found.at[i];
        out->step.at[first[f->to + 1]++] = (gy_ideal_step){ f->from, f->unit, 1 };
    }
    return true;
}

gy_ideals_result gy_ideals_all(gy_ideals *out, const gy_precedence *order, uint32_t most)
{
    sets s;
    *out = (gy_ideals){ 0 };
    gy_ideals_result result = init_sets(&s, order) ? grow_all(&s, most) : GY_IDEALS_NOMEM;
    if (result == GY_IDEALS_ALL && !turn_steps(out, &s))
        result = GY_IDEALS_NOMEM;
    free_sets(&s);
    if (result != GY_IDEALS_ALL)
        gy_ideals_free(out);
    return result;
}

bool gy_ideals_line(gy_ideals *out, const gy_precedence *order, uint32_t most)
{
    *out = (gy_ideals){ 0 };
    uint32_t units = order->units, parts = units < most ? units : most - 1;
    if (!gy_vec_add(&out->first, (size_t)parts + 2) || !gy_vec_add(&out->step, parts) ||
        !gy_vec_add(&out->unit, units)) {
        gy_ideals_free(out);
        return false;
    }
    if (units)
        memcpy(out->unit.at, order->order, units * sizeof *order->order);
    out->first.at[0] = 0;
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t from = (uint32_t)((uint64_t)units * i / parts), to = (uint32_t)((uint64_t)units * (i + 1) / parts);
        out->first.at[i + 1] = i;
        out->step.at[i] = (gy_ideal_step){ i, from, to - from };
    }
    out->first.at[parts + 1] = parts;
    out->count = parts + 1;
    return true;
}

void gy_ideals_free(gy_ideals *ideals)
{
    gy_vec_free(&ideals->first);
    gy_vec_free(&ideals->step);
    gy_vec_free(&ideals->unit);
    ideals->count = 0;
}
