/* SPDX-License-Identifier: Apache-2.0 */
/* The state of building, which a sealed graph does not need any more. For build*.c and check*.c only. */
#ifndef GY_GRAPH_BUILD_BUILD_STATE_H
#define GY_GRAPH_BUILD_BUILD_STATE_H

#include "base/json.h"
#include "base/map.h"
#include "graph/build/build.h"

/*
 * A node's accesses, scalars and `after` lie together in the graph's arrays as long as they are given before the next
 * node gets any. What comes later is kept here and merged, stably, by gantry_graph_check.
 */
typedef struct gy_late_access {
    uint32_t node;
    gy_access access;
} gy_late_access;
typedef struct gy_late_scalar {
    uint32_t node;
    gy_scalar scalar;
} gy_late_scalar;
typedef struct gy_late_after {
    uint32_t node, after;
} gy_late_after;

/* A graph file that was read once for all of its uses. */
typedef struct gy_used_file {
    const char *path, *folder;
    const char *name; /* the path as messages have it */
    char *text;
    size_t length;
    json_t *root;
    bool has_kernels; /* they are in the graph: they are the same for all uses */
} gy_used_file;

/* Nodes [first, last) that are one of other graphs used (`use`), `depth` uses around it. */
typedef struct gy_used_nodes {
    uint32_t first, last, depth;
} gy_used_nodes;

/* A flag that a node has besides its first: it runs where all are set. Nodes from GY_BEGINS on are the first copies of
 * carried pairs, numbers of `handed`. */
typedef struct gy_more_flag {
    uint32_t node;
    gy_access flag;
} gy_more_flag;
#define GY_BEGINS (UINT32_C(1) << 31)
/* A pair that the loop `loop` of `inner` carries by copies, since it ends by a flag. */
typedef struct gy_handed {
    uint32_t loop, prev, next;
    uint32_t going;   /* the buffer of the flag by which iterations run */
    bool has_around;  /* all nodes of the loop have the `when` of a block around it, and so have the copies */
    gy_access around; /* this flag */
} gy_handed;

typedef struct gy_build {
    /* The source location that was set last: a line of the program, or a pointer. */
    gy_text pointer;
    bool has_pointer;
    const gy_used_at *use; /* the pointer leads into this file; NULL: into the graph's own */
    uint32_t file;         /* of `files`, GY_NO_NAME: none */
    int line;
    uint32_t origin; /* the entry of graph->origins made for it; GY_NONE: none yet */
    size_t said;     /* bytes of the first mistake's text, without what its place adds to it */
    gy_names files;
    gy_map places; /* file << 32 | line -> origin */
    bool unique_ids;
    gy_map suffix;         /* name of a node -> the next number to try behind '#' */
    gy_names kernel_names; /* index: that of graph->kernels */
    uint32_t open_loop;    /* the outermost repeat; GY_NONE: none is open */
    uint32_t open_inner;   /* the innermost repeat that is open; GY_NONE: the outermost one is */
    uint32_t halos;        /* buffers of tiles with a halo */
    uint32_t next_arg;     /* the next number of a region that is given by order, not by name */
    gy_map late_args;      /* node << 32 | arg: arguments by name that came late */
    GY_VEC(gy_late_access) late_access;
    GY_VEC(gy_late_scalar) late_scalar;
    GY_VEC(gy_late_after) late_after;
    GY_VEC(gy_more_flag) more_flag;
    GY_VEC(gy_handed) handed;
    GY_VEC(uint32_t) going;     /* buffers: flags of loops that end within others */
    GY_VEC(gy_used_nodes) uses; /* those inside of others before these */
    GY_VEC(gy_used_file *) used_files;
    gy_names use_ids; /* of what a program uses */
} gy_build;

/* The start of every building call: true if there is a graph that is open and without a mistake. */
bool gy_building(gantry_graph *graph);
/* Out of memory is a mistake like others. */
void gy_build_nomem(gantry_graph *graph);
/* A new buffer "NAME.SUFFIX", NAME being that of buffer `of`, or with "_" behind it if there is one of that name. */
gantry_buffer gy_build_beside(gantry_graph *graph, uint32_t of, const char *suffix, gantry_dtype dtype, int rank,
                              const int64_t *shape);
/* A copy in the graph's arena; NULL (and the mistake noted) when out of memory. */
const char *gy_build_string(gantry_graph *graph, const char *text);
/* False, with the mistake noted, if a name has control characters or is not UTF-8. `what` begins the message. */
bool gy_build_is_plain(gantry_graph *graph, const char *what, const char *name);
/* A gy_expr_lookup that knows no name. */
bool gy_build_no_name(void *context, const char *name, int64_t *integer, double *real, bool *is_real);
/* The entry of graph->origins for the source location that was set last; GY_NONE: out of memory. */
uint32_t gy_build_origin(gantry_graph *graph);
/* The thing with that id, or NULL with the mistake noted. */
gy_buffer *gy_build_buffer(gantry_graph *graph, gantry_buffer buffer);
gy_node *gy_build_node(gantry_graph *graph, gantry_node node);
/* The node's own attributes, made at need; NULL: out of memory. */
gy_node_extra *gy_build_extra(gantry_graph *graph, gy_node *node);
/* The kernel of that name in use by the graph; GY_NONE with the mistake noted. */
uint32_t gy_build_kernel(gantry_graph *graph, const char *name);
/* Gives the next index to a kernel that is compiled; GY_NONE with the mistake noted. */
uint32_t gy_build_use_kernel(gantry_graph *graph, const gy_kernel *kernel);
/* build_map.c: map nodes get the kernels of their formulas for the element types of their arguments, which are all
 * given by now. */
gantry_status gy_build_maps(gantry_graph *graph, gantry_error *err);
/* The kernel that nodes of these formulas have before gy_build_maps; GY_NONE with the mistake noted. */
uint32_t gy_build_formulas(gantry_graph *graph, const gy_maths *maths);
/* The same for one node. */
gantry_status gy_build_map(gantry_graph *graph, uint32_t node, gantry_error *err);
/* By argument, how the node's regions and numbers fit its formulas: the axes that are reduced, or spread. An error says
 * what is missing or does not fit. */
gantry_status gy_build_kinds(const gantry_graph *graph, const gy_node *node, const gy_maths *maths, gy_maths_kind *kind,
                             gantry_error *err);
/* A manifest of a program, in the version of the library; NULL with the mistake noted. */
const gantry_kernel *gy_build_manifest(gantry_graph *graph, const gantry_kernel *given);
/* A new node; NULL with the mistake noted. `fallback` names it where `id` is NULL. */
gy_node *gy_build_add_node(gantry_graph *graph, const char *id, const char *fallback, gy_node_kind kind);
static inline gantry_node gy_node_handle(const gantry_graph *g, const gy_node *node)
{
    return node ? (gantry_node){ (uint32_t)(node - g->nodes.at), g->number } : (gantry_node){ GANTRY_NONE, 0 };
}
/* Gives a node that is a copy of another, or one of `count` that it becomes, attributes of its own: `with`, `apart` and
 * places of ranks are left out, times that were given are one of `count` parts. False: out of memory. */
bool gy_build_copy_extra(gantry_graph *graph, gy_node *node, uint32_t count);
/* The region, resolved, added to the node: tile by tile if `as_list` and the buffer is tiled. */
void gy_build_access(gantry_graph *graph, gy_node *node, gantry_region region, gantry_access mode, uint32_t arg,
                     bool as_list);
/* The access is the node's: appended where its others are, or kept until gantry_graph_check merges. */
void gy_build_push_access(gantry_graph *graph, gy_node *node, gy_access access);
/* True if nodes may run by it; else that is a mistake, of this node, or of all that are at hand (NULL). */
bool gy_build_is_flag(gantry_graph *graph, const char *node, const gantry_region *flag, gy_access *found);
/* The node runs by this flag, and by those that it has. */
void gy_build_flag(gantry_graph *graph, uint32_t node, gy_access flag);
/* It is the flag of a loop that ends within another (build_until.c). */
bool gy_build_is_going(const gantry_graph *graph, uint32_t buffer);
/* build_flags.c: after merging, nodes of several flags get one that is set where all are, loops that end by a flag
 * begin with what they carry, and collectives that run by a flag meet in every start and hand on by it what they give.
 */
gantry_status gy_build_flags(gantry_graph *graph, gantry_error *err);
/* build_order.c: where a node belongs that was added behind the others. */
typedef enum gy_place {
    GY_BEGIN,  /* before a loop begins */
    GY_AHEAD,  /* right before a node */
    GY_BEHIND, /* right behind it */
} gy_place;
typedef struct gy_placed {
    uint32_t at, loop; /* a node that was there; GY_BEGIN: the first of this loop of `inner` */
    uint32_t kind, node;
} gy_placed;
typedef GY_VEC(gy_placed) gy_placed_nodes;
/* Puts all nodes in order, `old` of which were there, and gives all that names nodes their new numbers. Loops and uses
 * have what stands ahead of their first nodes, too. False: out of memory. */
bool gy_build_order(gantry_graph *graph, uint32_t old, gy_placed_nodes *placed);
/* How many pieces a buffer is copied in: its parts or tiles, or 1; and one of them. */
int64_t gy_build_pieces(const gy_buffer *buffer);
gantry_region gy_build_piece(const gantry_graph *graph, uint32_t buffer, int64_t piece);
/* A copy "WHAT.NAME[piece]" of a piece of one buffer to that of another. */
gantry_node gy_build_copy_piece(gantry_graph *graph, const char *what, uint32_t from, uint32_t to, int64_t piece);
/* Adds the late entries to where they belong. false: out of memory. */
bool gy_build_merge(gantry_graph *graph);
/* Nodes came or went: what names them by number, `after`, loops and uses, follows. `number` is by old number, and one
 * more.
 */
void gy_build_renumber(gantry_graph *graph, const uint32_t *number);
/* Nodes came or went: accesses and scalars lie node by node again, and indices of names are those of nodes. false: out
 * of memory. */
bool gy_build_regroup(gantry_graph *graph);
/* The graph has these nodes in place of its own, renumbered and regrouped, and `nodes` has none. false: out of
 * memory. */
bool gy_build_replace_nodes(gantry_graph *graph, gy_nodes *nodes, const uint32_t *number);
/* Gives back used files, when all of them are read. */
void gy_build_free_files(gy_build *build);
/* Gives back what a sealed graph has no use for. */
void gy_build_trim(gy_build *build);
void gy_build_free(gy_build *build);

/* Tiles along each axis, half open; [0, 1) behind the last axis. */
typedef struct gy_tile_spans {
    int64_t first[GANTRY_TILE_AXES], last[GANTRY_TILE_AXES];
} gy_tile_spans;
/* The tiles that a region of a tiled buffer names: axes that it does not name are not cut. */
void gy_region_spans(gy_tile_spans *to, const gy_buffer *buffer, const gantry_region *region);
/* How many tiles these are. */
int64_t gy_region_tiles(const gy_buffer *buffer, const gantry_region *region);

/* Shapes, offsets and bytes of a buffer whose tiles or halo were set. False: out of memory, noted. */
bool gy_build_measure_tiles(gantry_graph *graph, gy_buffer *buffer);
/* build_halo.c: the buffer that has the tile with the halo of the region, made at need; that of the region itself where
 * there is nothing around it; GY_NONE with the mistake noted. */
uint32_t gy_build_halo(gantry_graph *graph, const gantry_region *region);
/* build_exchange.c: adds, before nodes that read tiles with a halo, those that bring it together. */
gantry_status gy_build_exchanges(gantry_graph *graph, gantry_error *err);

/* Behind the nodes of the innermost loop, which is within another and has an `until`: lets them run by a flag. */
void gy_build_guard(gantry_graph *graph, const gy_loop *innermost);
/* Resolves a region; false with the mistake noted. The fields `arg`, `mode`, `is_list` are left 0. */
bool gy_region_resolve(gantry_graph *graph, const gantry_region *region, gy_access *out);
/* False, with a mistake noted, if elements of the dtype cannot be what `init` says. `what` begins the message. */
bool gy_init_is_valid(gantry_graph *graph, const gy_init *init, gantry_dtype dtype, const char *what);

#endif
