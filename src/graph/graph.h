/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The graph in memory: flat arrays, one entry a buffer, node, access and argument; rare attributes on the side, so that
 * a node costs about 200 bytes. Built by build*.c (the public C API), read from JSON by json_*.c (which calls the
 * same functions and the few of build.h), sealed by check*.c. Everything is in adding order; ids are indices.
 */
#ifndef GY_GRAPH_GRAPH_H
#define GY_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/expr.h"
#include "base/text.h"
#include "base/vec.h"
#include "kernel/constant.h"
#include "kernel/registry.h"
#include <gantry/graph.h>
#include <gantry/train.h>
#include <stdbool.h>

#define GY_NONE UINT32_MAX

/* Where the graph uses another file. */
typedef struct gy_used_at {
    const char *name, *path;        /* of the used file, in messages and to be read again */
    const char *id;                 /* of the use */
    const char *pointer;            /* of the use, in the file around; NULL: a program uses the file, */
    const char *file;               /* in this file of its source, NULL: nobody knows, */
    int line;                       /* at this line */
    const struct gy_used_at *outer; /* where that file is used; NULL: it is the graph's own */
} gy_used_at;

/* The source location of a thing in the graph: a JSON pointer in the file, or a line of the program. */
typedef struct gy_origin {
    const char *pointer;
    const gy_used_at *use; /* the pointer leads into a used file; NULL: into the graph's own */
    const char *file;
    int line;
} gy_origin;

typedef enum gy_init_kind {
    GY_INIT_NONE,
    GY_INIT_VALUE,
    GY_INIT_UNIFORM,
    GY_INIT_NORMAL,
    GY_INIT_IOTA,
    GY_INIT_SPD,
    GY_INIT_NPY,
    GY_INIT_RAW
} gy_init_kind;
/* Also what a fill node writes (VALUE, UNIFORM, NORMAL, IOTA). */
typedef struct gy_init {
    gy_init_kind kind;
    uint64_t seed;
    gy_constant a, b;          /* value | low, high | mean, deviation | iota: start, step */
    const char *path, *folder; /* of a file; the folder that it must not leave, NULL if a program named it */
} gy_init;

/*
 * Rows. An untiled buffer's rows are those of axis 0, `row_bytes` each. A tiled buffer's "rows" are its tiles in
 * row-major order of tiles; they may differ in size, so `tile_offset` has a byte offset for each, and the end, of the
 * packed form (tile after tile), which is the form in every memory; only files and bound arrays are in C order. Tiles
 * have 1 to GANTRY_TILE_AXES axes.
 */
typedef struct gy_halo gy_halo;
typedef struct gy_buffer {
    const char *name;
    gantry_dtype dtype;
    gantry_buffer_class cls;
    bool output, split_auto;
    bool in_pieces; /* its parts are pieces of the batch, into which a strategy cut it */
    uint32_t piece; /* one more than the piece of the batch that all its rows belong to, or the first of several; 0: it
                       has rows of all pieces, or of none */
    uint32_t along; /* of such a buffer: one more than the buffer whose parts pieces are, by which its rows follow
                       these; 0: it has the rows that it has */
    int64_t turns;  /* so many arrays of the batch lie in it behind each other, each in as many parts; 0: not known */
    int64_t grain;  /* automatic splits: so many rows, as of a sequence, stay in one part; 0: any number */
    int32_t rank;
    const int64_t *shape;
    int64_t rows, row_bytes;         /* row_bytes is 0 for a tiled buffer */
    int64_t parts;                   /* 0: not split */
    const int64_t *part_first;       /* parts + 1 row bounds, NULL if not split; for auto: equal until specialised */
    int64_t tiles[GANTRY_TILE_AXES]; /* along each axis, 1 behind the last; all 0: not tiled */
    const int64_t *tile_offset;      /* NULL if not tiled */
    const int64_t *tile_shape;       /* tiled: `rank` extents of each shape that occurs, see gy_tile_shape; else NULL */
    const gy_halo *halo;             /* of tiles that lie in memory with what is around them, see halo.h; else NULL */
    uint64_t bytes;
    gy_init init;
    double rtol, atol;    /* negative: not given, by dtype */
    bool equal_nan;       /* two NaN at one place are equal results */
    const char *external; /* the memory or device that the caller keeps it in; NULL: host memory */
    uint32_t origin;
    bool class_given, used_; /* set_class was called; a region of it was resolved (its cut is final) */
    bool fed;                /* the file was read to be fed with several arrays of it */
} gy_buffer;

/*
 * A resolved access: rows [first, last) of a buffer, halo included; without it rows [first + before, last - after).
 * It may be empty (first == last): an empty part, or an empty list of tiles. Of a tiled buffer: tiles. Kernel, launch
 * and host nodes get one access a tile (is_list, in order, all with the same `arg`); other nodes one for the whole.
 */
typedef struct gy_access {
    uint32_t buffer;
    uint32_t arg; /* index of the argument in the manifest; without one, or beyond it: order of adding */
    int64_t first, last;
    int32_t before, after;          /* halo rows really there (cut at the ends) */
    int32_t part, part_last;        /* parts (or tiles) it was named by, [part, part_last); -1, -1: by rows or whole */
    uint8_t mode;                   /* gantry_access */
    uint8_t is_list;                /* several accesses of one argument (a list of tiles) */
    uint8_t is_kept;                /* a write of a node with `when`: where that does not run, the rows keep what they
                                       held, so `mode` is readwrite */
    uint16_t cut_before, cut_after; /* automatic splits: halo rows that the ends of the buffer cut off, so that the part
                                       can be cut elsewhere; GY_CUT_MOST: so many or more. Else 0 */
} gy_access;
#define GY_CUT_MOST UINT16_MAX
#define GY_ARG_WHEN UINT32_MAX /* `arg` of the flag of `when`, which is no argument of the node */

typedef struct gy_scalar {
    uint32_t arg;
    bool dynamic;
    gy_constant number;
    const gy_expr *expr; /* over `it` only; NULL: the number is final */
    int64_t per_row;     /* automatic splits: so much more of it for each row that the node's part begins later */
    int64_t period;      /* of such a number: it begins again there; 0: it does not */
} gy_scalar;

/* The function that a launch or host node calls. */
typedef struct gy_function {
    gantry_kernel_fn function;
    void *user;
} gy_function;

typedef enum gy_node_kind {
    GY_NODE_KERNEL,
    GY_NODE_LAUNCH,
    GY_NODE_HOST,
    GY_NODE_COPY,
    GY_NODE_FILL,
    GY_NODE_COLLECTIVE,
    GY_NODE_WORK
} gy_node_kind;

/* The time of a node on devices of that id or kind; NULL: on every device. */
typedef struct gy_node_time {
    const char *device;
    double us;
} gy_node_time;

/* The place of one rank of a collective: a device id, or an expression over `devices` that gives an index. */
typedef struct gy_rank_place {
    const char *on;
    const gy_expr *on_expr;
} gy_rank_place;

/* Attributes that few nodes have. */
typedef struct gy_node_extra {
    gy_init fill;
    gantry_collective collective;
    gantry_access op;
    uint32_t ins, outs;
    int32_t root;
    const char *algorithm;
    const char *on;                /* a device id or kind; */
    const gy_expr *on_expr;        /* or an expression over `devices` that gives an index */
    GY_VEC(gy_rank_place) rank_on; /* collectives: of each rank; empty: placement decides */
    GY_VEC(uint32_t) with, apart;
    GY_VEC(gy_node_time) time;
    gy_access flag; /* of a collective that `meets`: who knows what it gives runs by it */
    bool meets;     /* it has a `when`, and runs in every start all the same: see build_flags.c */
    int32_t priority;
    int32_t back_delay; /* nodes of its adjoint have so much less of priority */
    double share;       /* 1 by default */
} gy_node_extra;

typedef struct gy_node {
    const char *id;
    uint8_t kind;                   /* gy_node_kind */
    bool cost_given, scratch_given; /* flops and bytes (scratch) were given, not computed from the manifest */
    bool has_when;                  /* the last of its accesses is the flag of `when` */
    uint32_t kernel;           /* index into kernels, GY_NONE. A host node of a file has its kernel's host version */
    uint32_t function;         /* launch and host nodes of a program: index into functions, else GY_NONE */
    uint32_t loop;             /* index into loops: the outermost one, GY_NONE */
    uint32_t inner;            /* index into inner: the innermost loop, GY_NONE where that is `loop` */
    uint32_t access, accesses; /* range of graph->access. Kernels: by arg. Collectives: ins then outs, rank order.
                                  Copy: from, to. Fill: to. Else in the order of adding. Then the flag of `when` */
    uint32_t scalar, scalars;  /* range of graph->scalar, by arg */
    uint32_t after, afters;    /* range of graph->after: nodes, earlier or later ones */
    uint32_t extra;            /* index into graph->extra, GY_NONE */
    uint32_t origin;
    uint32_t blocks;     /* after sealing: of a launch of a user's CUDA code; 0: not known */
    uint32_t waits;      /* after sealing: gy_kernel_waits, */
    double overhead;     /* gy_kernel_overhead, */
    const char *form;    /* gy_kernel_form_name */
    double flops, bytes; /* after sealing: given, by the manifest, or 0 and those of all regions (work: 0) */
    double contiguous;   /* of what it moves: bytes that lie together in memory, in the mean; 0: not known */
    int64_t scratch;     /* bytes */
} gy_node;
typedef GY_VEC(gy_node) gy_nodes;

/* Buffers: before each later iteration `prev` takes the value of `next`. */
typedef struct gy_carry {
    uint32_t prev, next;
} gy_carry;

typedef struct gy_loop {
    int64_t count;
    int64_t unrolled;     /* iterations in the flow: fewer than `count` where the loop is not unrolled, see phase.h */
    int64_t turns;        /* of an inner loop: its iterations in each iteration of the outermost one; else 1 */
    int64_t tasks;        /* after sealing: of one iteration, with the loops inside; GY_TURNS_MOST: so many or more */
    const char *index;    /* what expressions call its iteration */
    uint32_t top, parent; /* of an inner loop: the outermost loop, and the inner loop around it or GY_NONE */
    uint32_t inner, inner_last;     /* the loops inside, at any depth: [first, last) of graph->inner */
    uint32_t first_node, last_node; /* [first, last) */
    GY_VEC(gy_carry) carry;
    uint32_t until; /* the buffer to watch, GY_NONE */
    int64_t every;
    uint32_t origin;
} gy_loop;

typedef struct gy_param {
    const char *name;
    int64_t integer;
    double real;
    bool is_real;
} gy_param;

/* A remark on something that is allowed but perhaps not meant: one line, like the text of an error. */
typedef struct gy_warning {
    uint32_t origin;
    const char *text;
} gy_warning;

struct gantry_graph {
    int refs;                   /* atomic; schedules and runs hold the graph */
    uint32_t number;            /* of the graph in this process, from 1, in handles; what is derived has its base's */
    struct gantry_graph *base;  /* the graph that this one is, with other bounds of its automatic splits; else NULL */
    struct gantry_graph *whole; /* the graph that this one is a phase of; else NULL */
    const struct gy_phase_context *phase; /* which phase, see phase.h; else NULL */
    bool sealed, fuses;                   /* fuses: neighbouring maps become one when it is sealed */
    gy_arena arena;
    const char *name, *path, *folder; /* path NULL if it was not read from a file */
    const char *source;               /* the name of the file in messages; NULL if a program built the graph */
    gantry_error error;               /* the first mistake of building; status 0 without one */
    gy_names buffer_names, node_names;
    GY_VEC(gy_param) params;
    GY_VEC(gy_buffer) buffers;
    GY_VEC(gy_kernel) kernels;
    GY_VEC(gy_function) functions;
    gy_nodes nodes;
    GY_VEC(gy_access) access;
    GY_VEC(gy_scalar) scalar;
    GY_VEC(uint32_t) after;
    GY_VEC(gy_node_extra) extra;
    GY_VEC(gy_loop) loops;       /* the outermost ones */
    GY_VEC(gy_loop) inner;       /* those within others, in the order in which they begin: see nest.h */
    GY_VEC(gy_origin) origins;   /* entry 0: nowhere */
    GY_VEC(gy_warning) warnings; /* found by gantry_graph_check */
    const char *machine_json, *machine_path;
    const gantry_train_options *train; /* what training it means; NULL: nobody said */
    uint32_t train_origin;
    uint32_t loss;     /* of `train` */
    uint32_t shards;   /* weights are in so many shards, or in none: 0 */
    int32_t recompute; /* layers of each stage whose activations are computed again, see gantry_strategy; 0: none */
    uint32_t stage_devices; /* a stage of a pipeline has so many devices in a row; 0: there are no stages */
    int32_t weight_delay;   /* nodes that give to gradients of weights alone have so much less of priority */
    uint32_t moves_parts;   /* what is computed does not depend on where the batch is cut into so many pieces; 0: it
                               does, or there are none */
    bool orders_sums;       /* contributions to a sum come one after the other, see gantry_strategy */
    bool differentiated;
    bool is_used;            /* a model as it is used: nothing will be differentiated */
    struct gy_flow *flow;    /* after sealing: see flow.h */
    int64_t limit;           /* of nodes, parts, tiles, tasks and what gy_graph_most_uses says; 0: the default */
    uint64_t hash;           /* of everything that a schedule depends on; after sealing */
    struct gy_build *build_; /* state of building */
};

static inline int64_t gy_graph_limit(const gantry_graph *graph)
{
    return graph->limit ? graph->limit : GANTRY_LIMIT;
}

/* The most accesses, entries of `after`, dependencies and ops of a graph of so many nodes or tasks: a few bytes of a
 * file may ask for as many as the square of its nodes. What each node has of its own is never too much. */
enum { GY_USES_PER_TASK = 16 };
static inline int64_t gy_graph_most_uses(const gantry_graph *graph, uint64_t tasks)
{
    int64_t limit = gy_graph_limit(graph), own = GY_USES_PER_TASK * (int64_t)tasks;
    return limit < INT64_MAX - own ? limit + own : INT64_MAX;
}

/* The handle of a buffer or node was given by this graph, or by a program that knows the id. */
static inline bool gy_graph_gave(const gantry_graph *graph, uint32_t number)
{
    return number == 0 || number == graph->number;
}
#define GY_OTHER_GRAPH                                                                                                 \
    "%s %u belongs to another graph, number %u of this program, and graph \"%s\" is number %u; give one that this "    \
    "graph gave you"

gantry_graph *gy_graph_ref(const gantry_graph *graph); /* another owner; gantry_graph_free takes it back */

/* Where part i of n rows in p parts begins: floor(i * n / p), without overflow. i <= p < 2^31. */
static inline int64_t gy_part_bound(int64_t n, int64_t p, int64_t i)
{
    return n / p * i + n % p * i / p;
}

/* How many arrays lie in a buffer whose parts the scheduler cuts. */
static inline int64_t gy_buffer_turns(const gy_buffer *b)
{
    return b->turns > 1 ? b->turns : 1;
}

/* Bytes of rows [first, last) and where `row` begins in the packed form. */
int64_t gy_buffer_offset(const gy_buffer *buffer, int64_t row);
static inline int64_t gy_buffer_span(const gy_buffer *b, int64_t first, int64_t last)
{
    return gy_buffer_offset(b, last) - gy_buffer_offset(b, first);
}
static inline int64_t gy_access_bytes(const gantry_graph *g, const gy_access *a)
{
    return gy_buffer_span(&g->buffers.at[a->buffer], a->first, a->last);
}
/* The accesses that the node was given for what it does: without the flag of `when`. */
static inline uint32_t gy_node_regions(const gy_node *n)
{
    return n->accesses - n->has_when;
}
/* The access that the node was given: how it treats the rows where it runs. */
static inline gantry_access gy_access_given(const gy_access *a)
{
    return a->is_kept ? GANTRY_WRITE : (gantry_access)a->mode;
}
static inline bool gy_access_reduces(const gy_access *a)
{
    return a->mode >= GANTRY_SUM;
}
/* True if two accesses to one buffer or value have rows in common and do not both read. */
static inline bool gy_rows_conflict(const gy_access *a, const gy_access *b)
{
    bool share = a->first < b->last && b->first < a->last && a->first != a->last && b->first != b->last;
    return share && (a->mode != GANTRY_READ || b->mode != GANTRY_READ);
}
/* The extents of a tile of a tiled buffer. */
const int64_t *gy_tile_shape(const gy_buffer *buffer, int64_t tile);
/* Both are tiles of one shape. */
bool gy_tiles_alike(const gy_buffer *a, int64_t tile_of_a, const gy_buffer *b, int64_t tile_of_b);
/* Which tile it is along each axis (0 behind the last), and the number of a tile. */
void gy_tile_index(const gy_buffer *buffer, int64_t tile, int64_t index[GANTRY_TILE_AXES]);
int64_t gy_tile_number(const gy_buffer *buffer, const int64_t index[GANTRY_TILE_AXES]);
/* Where tile `index` of that axis begins in the whole array; `index` may be one more. */
int64_t gy_tile_bound(const gy_buffer *buffer, int axis, int64_t index);

/* The element type that a node's speed depends on: the widest floating one that it touches, but for results
 * that may be wider than what is computed in (their argument has no letter and others have); else that of its first
 * access; f32 where it touches nothing. */
gantry_dtype gy_node_dtype(const gantry_graph *graph, const gy_node *node);
/* Is the other one of those that the node is told to come after? */
bool gy_node_is_after(const gantry_graph *graph, const gy_node *node, uint32_t other);
/* Of a node with formulas: its operations as a GPU carries them out, those of its element type beside all else that its
 * code does; 0: another node. `overhead` is a number of operations of f32, two of which take as long as one of f64. */
bool gy_node_is_formula(const gantry_graph *graph, const gy_node *node);
double gy_formula_work(const gantry_graph *graph, const gy_node *node);
/**
 * All that the time of a node's kernel depends on beside its name, the element type and the device, as one line: the
 * shapes of its regions in the order of arguments, "64x128 128x32 64x32" (rows with their halo; tiles by their own
 * shape, "64x64*3" for three alike in a list); behind a shape ":lse" of an argument that may be left out, ":i32" where
 * the element type is not gy_node_dtype, and ":sum" where the access is not the manifest's own; then constant scalars
 * that are not what they are by default, "ta=1". Nodes with equal texts take equal times on a device. Left out: factors
 * and other real numbers that no cost and no launch follows from; what changes from iteration to iteration or from
 * start to start; where regions lie. Replaces `to`. False: there is no such text, or none of at most GY_CASE_MOST
 * bytes; or out of memory.
 */
bool gy_node_case(gy_text *to, const gantry_graph *graph, const gy_node *node);
/* Attributes that the node does not have are those of a constant default: never NULL. */
const gy_node_extra *gy_node_extra_of(const gantry_graph *graph, uint32_t node);
/* The number of ranks of a collective; 1 for other nodes. A node of several ranks has no one device, so `on`, `with`
 * and `apart` say nothing about it, nor about what names it. */
uint32_t gy_node_ranks(const gantry_graph *graph, uint32_t node);
/* Both nodes have one device, so that `with` and `apart` between them say something. */
static inline bool gy_nodes_have_one_device(const gantry_graph *graph, uint32_t a, uint32_t b)
{
    return gy_node_ranks(graph, a) == 1 && gy_node_ranks(graph, b) == 1;
}
/* True for a fill node that writes nothing but the identity of the reduction `op` (see gy_identity in
 * kernel/identity.h): before contributions it means "no previous value". */
bool gy_fill_is_identity(const gantry_graph *graph, uint32_t node, gantry_access op);

/* xxh64 of everything that a schedule depends on: sizes, accesses, order, place, cost; no names of files, no scalars.
 */
uint64_t gy_graph_hash(const gantry_graph *graph, bool *ok);

/* The text of a region as the graph format writes it: "x", "x[3]", "x[1:4]", "x{0:10}", "x[2]~1", "x[0]~0:1",
 * "A[1][2]". Appends. */
void gy_access_text(gy_text *to, const gantry_graph *graph, const gy_access *access);
/* Rows of a buffer, as reports, traces, drawings and messages call them. */
typedef struct gy_named_rows {
    const char *name;
    uint32_t generation; /* of a value that a loop carries; 0: the buffer itself */
    int64_t rows;
    int32_t axes;              /* of a tiled buffer, whose rows are its tiles; 0: it is not tiled */
    const int64_t *tiles;      /* tiled: along each of GANTRY_TILE_AXES axes, 1 behind the last */
    int64_t parts;             /* 0: not split */
    const int64_t *part_first; /* split: parts + 1 bounds */
} gy_named_rows;
/* Rows [first, last) by the names that a graph may use for them: "x" for all; tiles "A[3][0]", "A[1][0:2]", and
 * "A[0][3]..[2][0]" for those from one to another that are no box; parts "x[3]", "x[1:4]"; else "x{10:20}". Of a later
 * generation "x@2[3]". Appends. */
void gy_named_rows_text(gy_text *to, const gy_named_rows *names, int64_t first, int64_t last);
/* The same for a buffer of a graph. */
void gy_rows_text(gy_text *to, const gantry_graph *graph, uint32_t buffer, int64_t first, int64_t last);
/* The same for the list of tiles that begins at `access`: "A[1][0:3]". Returns how many accesses it is made of (1 where
 * it is no list). `count` accesses are there at most. */
uint32_t gy_access_list_text(gy_text *to, const gantry_graph *graph, const gy_access *access, uint32_t count);

/* Fills an error record and adds the source location: pointer and file, with line and column found by reading the file
 * again where that is possible (line 0 where not: a caller that has the text can locate err->where). Returns `status`.
 */
gantry_status gy_graph_fail(const gantry_graph *graph, uint32_t origin, gantry_error *err, gantry_status status,
                            const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same for something inside the object of that origin: `inside` is "/args/x" or NULL. */
gantry_status gy_graph_fail_in(const gantry_graph *graph, uint32_t origin, const char *inside, gantry_error *err,
                               gantry_status status, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Adds the source location to an error record that is already filled. */
void gy_graph_locate(const gantry_graph *graph, const gy_origin *origin, const char *inside, gantry_error *err);
/* " (used as "layer[0]" at model.json:8)", for the text of an error in a used file; `file` NULL: nobody knows where. */
void gy_used_place(char *to, size_t size, const char *id, const char *file, int line);
/* One place of a file, whatever uses it there, or one line of a program; nowhere is no place. */
bool gy_origin_is_same(const gy_origin *a, const gy_origin *b);

/* One region as a kernel sees it; no data. */
void gy_arg_describe(gantry_arg *arg, const gantry_graph *graph, const gy_access *access);
/**
 * Describes a node's launch: arg[] in manifest order (accesses in adding order where there is no manifest), data NULL.
 * `args` must have room for gy_launch_args() entries (items of lists lie behind the arguments). Scalars are those of
 * iteration `it`. Used by checking, costing and running, so that kernels see one truth.
 */
size_t gy_launch_args(const gantry_graph *graph, uint32_t node);
gantry_status gy_launch_describe(const gantry_graph *graph, uint32_t node, int64_t it, gantry_launch *launch,
                                 gantry_arg *args, gantry_error *err);
/* Scalars that depend on `it`, of a launch described before, become those of launch->iteration. */
gantry_status gy_launch_iterate(const gantry_graph *graph, uint32_t node, const gantry_launch *launch,
                                gantry_error *err);
/* The entry of `args` (as filled above) that stands for access k of the node: set its `data`. NULL: it is the flag of
 * `when`, which the function is not given. */
gantry_arg *gy_launch_arg_of(const gantry_graph *graph, uint32_t node, gantry_arg *args, uint32_t k);
/* Sets the number of a scalar argument. */
void gy_launch_set_scalar(gantry_arg *arg, gy_constant value);
/* The type that a scalar of the node's kernel is passed as, or the element type that it calculates with, must be able
 * to hold the number. E_GRAPH, with a text that names argument, number and what is allowed, and has no source location.
 */
gantry_status gy_scalar_check(const gantry_graph *graph, uint32_t node, uint32_t arg, gy_constant value,
                              gantry_error *err);
/* The host function of a node and its user pointer; NULL where there is none (work nodes, code not yet loaded). */
gantry_kernel_fn gy_node_function(const gantry_graph *graph, uint32_t node, void **user);

#endif
