/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ops that share a colour, and the colours. People who confuse red and green can tell them apart; as lines
 * they are dark enough on white (3:1 at least), as fills light enough to write on. */
#include "export/export.h"

#include "base/map.h"

#include <string.h>

static const gy_colour palette[] = {
    [GY_GROUP_COPY] = { "#ffe2ad", "#b86e00" },
    [GY_GROUP_SPILL] = { "#ffd0c2", "#b23a1e" },
    [GY_GROUP_COLLECTIVE] = { "#c6ebcf", "#1d7a3e" },
    [GY_GROUP_FILL] = { "#eceff2", "#7a8490" },
    [GY_GROUP_HOST] = { "#fff6b8", "#8a7a00" },
    [GY_GROUP_OTHER] = { "#e3e6ea", "#59636e" },
    [GY_GROUP_FIRST_NAME] = { "#c9e0f7", "#0a63a8" },
    { "#e4d7f5", "#6a3fa0" },
    { "#f8d5e6", "#a8326e" },
    { "#cdeef2", "#0b7a88" },
    { "#e6e7bd", "#6d7000" },
    { "#ecdccb", "#85530f" },
    { "#d5daf0", "#46539c" },
};

static const char *const labels[] = {
    [GY_GROUP_COPY] = "copy", [GY_GROUP_SPILL] = "evict, fetch", [GY_GROUP_COLLECTIVE] = "collective",
    [GY_GROUP_FILL] = "fill", [GY_GROUP_HOST] = "host call",     [GY_GROUP_OTHER] = "other",
};

/* "gemm" of "gemm[1,2]", "gemm#3" and "gemm12"; a name that would vanish stays. */
static void stem_of(gy_text *to, const char *name)
{
    size_t length = strcspn(name, "[#");
    while (length > 0 && strchr("0123456789", name[length - 1]))
        length--;
    while (length > 0 && strchr("_-.: ", name[length - 1]))
        length--;
    gy_text_add_n(to, name, length > 0 ? length : strlen(name));
}

void gy_groups_add(gy_groups *g, const char *name, uint64_t weight)
{
    gy_text stem = { 0 };
    stem_of(&stem, name);
    uint32_t index = stem.failed ? GY_NO_NAME : gy_names_add(&g->names, stem.at, NULL);
    gy_text_free(&stem);
    while (index != GY_NO_NAME && g->weight.count <= index)
        if (!gy_vec_push(&g->weight, UINT64_C(0)))
            index = GY_NO_NAME;
    if (index == GY_NO_NAME)
        g->failed = true;
    else
        g->weight.at[index] += weight;
}

/* The largest name without a colour; ties go to the name seen first. */
static uint32_t next_largest(const gy_groups *g)
{
    uint32_t best = GY_NO_NAME;
    for (uint32_t i = 0; i < g->weight.count; i++) {
        bool taken = false;
        for (uint32_t k = 0; k < GY_GROUP_NAMES; k++)
            taken = taken || g->top[k] == i;
        if (!taken && (best == GY_NO_NAME || g->weight.at[i] > g->weight.at[best]))
            best = i;
    }
    return best;
}

/* A name has its colour by its letters, so that it is the same in every picture; where a name of more weight has that
 * already, the next free one. */
void gy_groups_rank(gy_groups *g)
{
    for (uint32_t k = 0; k < GY_GROUP_NAMES; k++)
        g->top[k] = GY_NO_NAME;
    for (uint32_t n = 0; n < GY_GROUP_NAMES && n < g->weight.count; n++) {
        uint32_t name = next_largest(g);
        const char *text = gy_names_at(&g->names, name);
        uint32_t k = (uint32_t)(gy_hash_bytes(text, strlen(text), 0) % GY_GROUP_NAMES);
        while (g->top[k] != GY_NO_NAME)
            k = (k + 1) % GY_GROUP_NAMES;
        g->top[k] = name;
    }
}

uint32_t gy_groups_of(gy_groups *g, const char *name)
{
    gy_text stem = { 0 };
    stem_of(&stem, name);
    uint32_t index = stem.failed ? GY_NO_NAME : gy_names_find(&g->names, stem.at), group = GY_GROUP_OTHER;
    g->failed = g->failed || stem.failed;
    gy_text_free(&stem);
    for (uint32_t k = 0; k < GY_GROUP_NAMES; k++)
        if (index != GY_NO_NAME && g->top[k] == index)
            group = GY_GROUP_FIRST_NAME + k;
    g->used[group]++;
    return group;
}

const char *gy_group_label(const gy_groups *g, uint32_t group)
{
    return group < GY_GROUP_FIRST_NAME ? labels[group] : gy_names_at(&g->names, g->top[group - GY_GROUP_FIRST_NAME]);
}

gy_colour gy_group_colour(uint32_t group)
{
    return palette[group];
}

void gy_groups_free(gy_groups *g)
{
    gy_names_free(&g->names);
    gy_vec_free(&g->weight);
}
