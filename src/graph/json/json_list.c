/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of references: `reads`, `writes`, and the ranks of collectives. */
#include "graph/json/json_read.h"

#include "base/error.h"

#include <inttypes.h>
#include <string.h>

enum { FOR, IF, REF, READWRITE, SUM, MIN, MAX, PROD, KEYS };
static const char *const keys[KEYS] = { "for", "if", "ref", "readwrite", "sum", "min", "max", "prod" };

typedef struct entry {
    gy_list *list;
    gantry_access mode;
    size_t key; /* of the reference */
    const json_t *reference;
} entry;

/* The lists of the node at hand are not in the graph yet. */
static gantry_status count_uses(gy_reader *r, const gy_json_at *at)
{
    uint64_t uses = r->graph->access.count + r->in.count + r->out.count;
    int64_t most = gy_graph_most_uses(r->graph, r->graph->nodes.count);
    if (uses < (uint64_t)most)
        return GANTRY_OK;
    return gy_read_fail(r, at,
                        "is beyond the limit of %" PRId64
                        " accesses, those of all nodes together: use smaller ranges, or "
                        "raise the limit (--limits)",
                        most);
}

static gantry_status add(gy_reader *r, const gy_json_at *at, gantry_access mode, size_t index, gy_list *list)
{
    gy_listed item = { .mode = mode, .item = index };
    GY_TRY(count_uses(r, at));
    GY_TRY(gy_read_region(r, at, &item.region));
    r->references++;
    return gy_vec_push(list, item) ? GANTRY_OK : gy_read_nomem(r);
}

static gantry_status entry_turn(gy_reader *r, const gy_json_at *up, void *context)
{
    const entry *e = context;
    gy_json_at at = gy_read_at(up, keys[e->key], e->reference);
    return add(r, &at, e->mode, up->index, e->list);
}

/* {"for": ..., "ref": "x[i]"}, or {"sum": "total"} where modes are allowed. */
static gantry_status read_entry(gy_reader *r, const gy_json_at *at, gantry_access mode, bool modes, gy_list *list)
{
    const json_t *value[KEYS];
    entry e = { .list = list, .mode = mode };
    GY_TRY(gy_read_members(r, at, keys, modes ? KEYS : REF + 1, value));
    for (size_t k = REF; k < (modes ? KEYS : REF + 1); k++) {
        if (value[k] && e.reference) {
            gy_json_at second = gy_read_at(at, keys[k], value[k]);
            return gy_read_fail(r, &second, "an entry has one reference: either \"%s\" or \"%s\"", keys[e.key],
                                keys[k]);
        }
        if (value[k]) {
            e.key = k;
            e.reference = value[k];
            e.mode = k == REF ? mode : (gantry_access)(GANTRY_READWRITE + (k - READWRITE));
        }
    }
    if (!e.reference)
        return gy_read_fail(r, at, "missing key \"ref\": give a reference such as \"x[i]\"");
    return gy_read_turns(r, at, value[FOR], value[IF], entry_turn, &e);
}

gantry_status gy_read_list(gy_reader *r, const gy_json_at *at, gantry_access mode, bool modes, gy_list *list)
{
    gantry_status status = GANTRY_OK;
    if (!json_is_array(at->value))
        return gy_read_kind(r, at, "an array of references");
    for (size_t i = 0; i < json_array_size(at->value) && !status; i++) {
        gy_json_at item = gy_read_item(at, i);
        status = json_is_object(item.value) ? read_entry(r, &item, mode, modes, list) : add(r, &item, mode, i, list);
    }
    return status;
}

/* ---- reads and writes ---- */

/* A region in both lists is one access that reads and writes. Lists may be long, so regions are found by their hash. */
static gantry_status join(gy_reader *r)
{
    gy_map writes = { 0 };
    size_t kept = 0;
    for (size_t i = 0; i < r->out.count; i++) {
        const gantry_region *region = &r->out.at[i].region;
        if (!gy_map_put(&writes, gy_hash_bytes(region, sizeof *region, 0), i)) {
            gy_map_free(&writes);
            return gy_read_nomem(r);
        }
    }
    for (size_t i = 0; i < r->in.count; i++) {
        uint64_t w;
        const gantry_region *region = &r->in.at[i].region;
        bool both = gy_map_get(&writes, gy_hash_bytes(region, sizeof *region, 0), &w) &&
                    memcmp(region, &r->out.at[w].region, sizeof *region) == 0 && r->out.at[w].mode <= GANTRY_READWRITE;
        if (both)
            r->out.at[w].mode = GANTRY_READWRITE;
        else
            r->in.at[kept++] = r->in.at[i];
    }
    r->in.count = kept;
    gy_map_free(&writes);
    return GANTRY_OK;
}

static gantry_status give(gy_reader *r, const gy_json_at *at, const gy_list *list, gantry_node node)
{
    for (size_t i = 0; i < list->count; i++) {
        const gy_listed *item = &list->at[i];
        switch (item->mode) {
        case GANTRY_READ:
            gantry_node_read(r->graph, node, item->region);
            break;
        case GANTRY_WRITE:
            gantry_node_write(r->graph, node, item->region);
            break;
        case GANTRY_READWRITE:
            gantry_node_readwrite(r->graph, node, item->region);
            break;
        default:
            gantry_node_reduce(r->graph, node, item->region, item->mode);
        }
        if (r->graph->error.status) {
            gy_json_at place = gy_read_item(at, item->item);
            return gy_read_built(r, &place);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_read_accesses(gy_reader *r, const gy_json_at *up, const json_t *const *value, gantry_node node)
{
    gy_json_at reads = gy_read_at(up, "reads", value[GY_KEY_READS]),
               writes = gy_read_at(up, "writes", value[GY_KEY_WRITES]);
    r->in.count = r->out.count = 0;
    if (reads.value)
        GY_TRY(gy_read_list(r, &reads, GANTRY_READ, false, &r->in));
    if (writes.value)
        GY_TRY(gy_read_list(r, &writes, GANTRY_WRITE, true, &r->out));
    if (r->in.count > 0 && r->out.count > 0)
        GY_TRY(join(r));
    GY_TRY(give(r, &reads, &r->in, node));
    return give(r, &writes, &r->out, node);
}
