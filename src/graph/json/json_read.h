/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The reader of graph files: one file a subject, over one struct. Every function returns a status and leaves the
 * mistake, with its place, in r->error; callers propagate. `at` is where in the file we are, and for whom a message is.
 *
 * Blocks are walked once for every value of their index. What is written in them (references, ids, expressions) is
 * compiled the first time and found again by the address of its JSON value.
 */
#ifndef GY_GRAPH_JSON_JSON_READ_H
#define GY_GRAPH_JSON_JSON_READ_H

#include "base/json.h"
#include "base/map.h"
#include "graph/build/build_state.h"
#include "graph/graph.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct gy_index {
    const char *name;
    int64_t value;
} gy_index;

/* An entry of a list of references. */
typedef struct gy_listed {
    gantry_region region;
    gantry_access mode;
    size_t item; /* of the array in the file */
} gy_listed;
typedef GY_VEC(gy_listed) gy_list;

/* `after`, `with` or `apart` whose node was not there yet, or which may name a whole family. */
typedef struct gy_pending {
    gantry_node node;
    void (*tie)(gantry_graph *, gantry_node, gantry_node);
    const char *id;      /* indices replaced */
    const char *pointer; /* in the file */
    bool varied;         /* an index was replaced: it is no written id */
} gy_pending;

/* The nodes that one written id, such as "sum[i]", has become: a list through reader->sibling. */
typedef struct gy_id_family {
    uint32_t first, last;
} gy_id_family;

/* A name of a used file that `with` gives a meaning to: a param, or a buffer. */
typedef struct gy_meaning {
    const char *name;
    bool is_number;
    gy_param number;
    gantry_region region; /* the whole buffer, parts or rows */
    int64_t rows;
} gy_meaning;

/* How names of a used file become names of the graph. */
typedef struct gy_scope {
    struct gy_reader *outer;
    const gy_used_file *file;
    const char *prefix, *buffer_prefix; /* "layer[3]." of ids, "layer.3." of buffers */
    const gy_used_at *use;              /* the source location of all it makes leads through it */
    GY_VEC(gy_meaning) meaning;
} gy_scope;

/* Nodes [first, last) that a use has made; other uses of the same written id in a list. */
typedef struct gy_used_span {
    uint32_t first, last, next;
} gy_used_span;

typedef struct gy_reader {
    gantry_graph *graph;
    const char *text, *name, *folder; /* folder NULL: named files are refused */
    size_t length;
    const gantry_load_options *options;
    gantry_error error;
    const gy_scope *scope; /* of a used file; NULL: it is the graph's own */
    gy_names params;
    GY_VEC(gy_param) param;   /* same numbers as `params` */
    const json_t *all_params; /* the section, with those that are still to come */
    const json_t *all_buffers;
    GY_VEC(gy_index) index;    /* the `for`s around us, outermost first */
    const gantry_region *when; /* the flag of the block or use around us; NULL: none has one */
    GY_VEC(const char *) loop; /* the indices of the `repeat`s around us, outermost first */
    int64_t turns;             /* of all `for`s: bounded with what they make */
    int64_t references;        /* in all lists, so far */
    int64_t ties;              /* to all nodes of a written id, so far */
    gy_map compiled;           /* address of a JSON value in a block -> what was made of it */
    gy_text id;                /* the id at hand */
    gy_names families;
    GY_VEC(gy_id_family) family;
    GY_VEC(uint32_t) sibling;    /* by node; GY_NONE ends a family */
    gy_names used;               /* ids of uses, and as they are written */
    GY_VEC(gy_id_family) use_of; /* by id: its spans, a list */
    GY_VEC(gy_used_span) use_span;
    GY_VEC(gy_pending) pending;
    gy_names written; /* all ids of the file; filled when an id is asked for that became no node */
    gy_list in, out;  /* lists of the node at hand */
    char origin[512]; /* pointer of the node at hand */
} gy_reader;

/* ---- json_fail.c: mistakes ---- */

/* The mistake of `at`: pointer, line, column, and the values of the indices around it. */
gantry_status gy_read_fail(gy_reader *r, const gy_json_at *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
gantry_status gy_read_nomem(gy_reader *r);
/* Adds the source location of `at` to r->error, which a function below has filled; returns its status. */
gantry_status gy_read_locate(gy_reader *r, const gy_json_at *at);
/* The same where that has the pointer already, and no line. */
gantry_status gy_read_placed(gy_reader *r);
/* Takes the mistake that a building call has left in the graph; readers add its place, and the uses around it. */
void gy_read_mistake(gy_reader *r);
/* OK, or such a mistake, at `at`. */
gantry_status gy_read_built(gy_reader *r, const gy_json_at *at);
/* "an array of sizes" etc.: 'must be X, not a string'. */
gantry_status gy_read_kind(gy_reader *r, const gy_json_at *at, const char *wanted);
/* Sorts the members of an object into value[] (by the order of `keys`, NULL where absent); unknown keys are mistakes.
 */
gantry_status gy_read_members(gy_reader *r, const gy_json_at *at, const char *const *keys, size_t count,
                              const json_t **value);
/* Keys of an object that are not in `keys` are mistakes. */
gantry_status gy_read_keys(gy_reader *r, const gy_json_at *at, const char *const *keys, size_t count);
/* One of the words, by index. `what` = "dtype": 'no dtype "f31" (did you mean "f32"?); allowed are ...'. */
gantry_status gy_read_word(gy_reader *r, const gy_json_at *at, const char *what, const char *const *words, size_t count,
                           size_t *out);
/* A string that is not empty. */
gantry_status gy_read_string(gy_reader *r, const gy_json_at *at, const char *wanted, const char **out);
/* jansson's iterators want a pointer to a changeable object, and do not change it. */
static inline json_t *gy_read_open(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}
static inline gy_json_at gy_read_at(const gy_json_at *up, const char *key, const json_t *value)
{
    return (gy_json_at){ up, key, 0, value };
}
static inline gy_json_at gy_read_item(const gy_json_at *up, size_t index)
{
    return (gy_json_at){ up, NULL, index, json_array_get(up->value, index) };
}
/* The file `at` names, joined with the folder, in graph->arena; refused outside the folder. */
gantry_status gy_read_path(gy_reader *r, const gy_json_at *at, const char **path);

/* ---- json_value.c: numbers and expressions ---- */

/* A whole number or an expression. */
gantry_status gy_read_integer(gy_reader *r, const gy_json_at *at, int64_t *out);
/* The same between two bounds; `what` = "the count of parts". */
gantry_status gy_read_bounded(gy_reader *r, const gy_json_at *at, const char *what, int64_t low, int64_t high,
                              int64_t *out);
/* A number or an expression, evaluated in doubles. */
gantry_status gy_read_real(gy_reader *r, const gy_json_at *at, double *out);
/* The same for a number of which integers want every digit. */
gantry_status gy_read_constant(gy_reader *r, const gy_json_at *at, gy_constant *out);
/* A scalar argument: as above, or an expression over `it` (then *expr is set). */
gantry_status gy_read_scalar(gy_reader *r, const gy_json_at *at, gy_constant *number, const gy_expr **expr);
/* Compiles part of a string; its names must be params or indices, or pass `also` (NULL: none). */
gantry_status gy_read_compile(gy_reader *r, const gy_json_at *at, const char *text, size_t length, const char *also,
                              const gy_expr **out);
gantry_status gy_read_evaluate(gy_reader *r, const gy_json_at *at, const gy_expr *e, int64_t *out);
/* Params and indices; the context is the reader. */
bool gy_read_lookup(void *reader, const char *name, int64_t *integer, double *real, bool *is_real);
/* The same without `devices`, which stays open in `on`. */
bool gy_read_lookup_own(void *reader, const char *name, int64_t *integer, double *real, bool *is_real);
bool gy_read_is_index(const gy_reader *r, const char *name);
/* True if a repeat around us calls its index so. */
bool gy_read_is_loop_index(const gy_reader *r, const char *name);
/* A name that params and indices may have; `what` = "param". */
gantry_status gy_read_name(gy_reader *r, const gy_json_at *at, const char *what, const char *name);
/* The result that gy_read_remember kept for this JSON value; NULL if there is none. Only inside blocks is any kept. */
void *gy_read_known(const gy_reader *r, const json_t *value);
gantry_status gy_read_remember(gy_reader *r, const json_t *value, void *made);

/* Notes that what is built next comes from `at`. */
void gy_read_origin(gy_reader *r, const gy_json_at *at);

/* ---- json_use.c: other graphs ---- */

/* An element with `use`. */
gantry_status gy_read_use(gy_reader *r, const gy_json_at *at, const json_t *const *value);
/* The file, read once for all uses; r->folder NULL: a program names it, and it may be anywhere. */
gantry_status gy_read_used_file(gy_reader *r, const gy_json_at *at, const char *path, gy_used_file **out);
/* Checks what out->region gives for the buffer at->key of the used file, and counts its rows. */
gantry_status gy_read_stands_for(gy_reader *r, const gy_json_at *at, gy_meaning *out);
/* The nodes and buffers of the file. `scope` has where it is used, and what names mean. A mistake in the file has its
 * place there, and not yet where the file is used. */
gantry_status gy_read_use_of(gy_reader *r, gy_used_file *file, gy_scope *scope, const gantry_load_options *options);
/* The meaning that `with` gives to a name; NULL: none, or the file is no used one. */
const gy_meaning *gy_read_meaning(const gy_reader *r, const char *name, size_t length);
/* Is a buffer that is bound as the file declares it? */
gantry_status gy_read_bound(gy_reader *r, const gy_json_at *at, const gy_meaning *b, gantry_dtype dtype, int rank,
                            const int64_t *shape);
gantry_status gy_read_bound_cut(gy_reader *r, const gy_json_at *at, const gy_meaning *b, int64_t parts, bool is_auto);
gantry_status gy_read_bound_tiles(gy_reader *r, const gy_json_at *at, const gy_meaning *b,
                                  const int64_t tiles[GANTRY_TILE_AXES]);

/* ---- json_load.c ---- */

/* All sections of a used file. */
gantry_status gy_read_used(gy_reader *r, const gy_json_at *root, bool with_kernels);
void gy_read_free(gy_reader *r);

/* ---- json_count.c: limits ---- */

/* Refuses an element of "nodes", outside of blocks, that would expand to more than the graph's limit. */
gantry_status gy_read_count(gy_reader *r, const gy_json_at *element);

/* ---- json_param.c ---- */

gantry_status gy_read_params(gy_reader *r, const gy_json_at *root);
/* That each input which the caller names has a buffer, once all are made: of the file, of graphs it uses, of training.
 */
gantry_status gy_read_check_inputs(gy_reader *r);
/* True if the caller gives the buffer several .npy arrays, one for each start (gantry_run_feed_files). */
bool gy_read_is_fed(gy_reader *r, const gy_json_at *buffer);
/* A number or an expression; whole if it can be. */
gantry_status gy_read_param_value(gy_reader *r, const gy_json_at *at, gy_param *out);

/* ---- json_buffer.c ---- */

gantry_status gy_read_buffers(gy_reader *r, const gy_json_at *root);
gantry_status gy_read_dtype(gy_reader *r, const gy_json_at *at, gantry_dtype *out);
/* {"random": ...}, {"normal": ...}, {"iota": ...}; `key` says which, `at` is its value. */
gantry_status gy_read_generator(gy_reader *r, const gy_json_at *at, gy_init *out);

/* ---- json_ref.c, json_list.c: references ---- */

gantry_status gy_read_region(gy_reader *r, const gy_json_at *at, gantry_region *out);
/* A buffer by its name in this file; id GANTRY_NONE: there is none. */
gantry_status gy_read_find_buffer(gy_reader *r, const char *name, size_t length, gantry_buffer *out);
/* A buffer by its name alone; `length` of it count. */
gantry_status gy_read_buffer_named(gy_reader *r, const gy_json_at *at, const char *name, size_t length,
                                   gantry_buffer *out);

/* ---- json_kernel.c ---- */

gantry_status gy_read_kernels(gy_reader *r, const gy_json_at *root);
/* json_kernel.c: "blur.cu" ends in ".cu", and ".cu" does not. */
bool gy_read_ends_in(const char *text, const char *end);
/* json_compile.c: the key `compile` of a kernel, whose files are known. */
gantry_status gy_read_build(gy_reader *r, const gy_json_at *at, gy_kernel_code *code);

/* ---- json_block.c: `for`, `if`, `nodes`, `repeat` ---- */

/* `nodes`, with the graph's own `repeat` around it. */
gantry_status gy_read_nodes(gy_reader *r, const gy_json_at *root);
/* Calls `each` for every turn of the `for` (NULL: once) that the `if` (NULL: always) lets pass. */
typedef gantry_status (*gy_turn_fn)(gy_reader *r, const gy_json_at *at, void *context);
gantry_status gy_read_turns(gy_reader *r, const gy_json_at *at, const json_t *range, const json_t *condition,
                            gy_turn_fn each, void *context);
/* How many turns a `for` has. */
gantry_status gy_read_turn_count(gy_reader *r, const gy_json_at *at, const json_t *span, int64_t *turns);
/* The graph's limit of nodes, and of turns. */
int64_t gy_read_limit(const gy_reader *r);
int64_t gy_read_most_turns(const gy_reader *r);

/* ---- json_node.c: the kinds of node; json_args.c, json_list.c, json_attr.c: what they have ---- */

/* Keys that elements of `nodes` can have, frequent ones first. */
typedef enum gy_node_key {
    GY_KEY_ID,
    GY_KEY_KERNEL,
    GY_KEY_ARGS,
    GY_KEY_MAP,
    GY_KEY_REDUCE,
    GY_KEY_WORK,
    GY_KEY_READS,
    GY_KEY_WRITES,
    GY_KEY_COST,
    GY_KEY_FOR,
    GY_KEY_IF,
    GY_KEY_WHEN,
    GY_KEY_AFTER,
    GY_KEY_ACCESS,
    GY_KEY_ON,
    GY_KEY_COPY,
    GY_KEY_FILL,
    GY_KEY_HOST,
    GY_KEY_COLLECTIVE,
    GY_KEY_OP,
    GY_KEY_IN,
    GY_KEY_OUT,
    GY_KEY_ROOT,
    GY_KEY_ALGORITHM,
    GY_KEY_WITH,
    GY_KEY_APART,
    GY_KEY_PRIORITY,
    GY_KEY_SHARE,
    GY_KEY_SCRATCH,
    GY_KEY_NODES,
    GY_KEY_USE,
    GY_KEY_REPEAT,
    GY_KEY_INDEX,
    GY_KEY_CARRY,
    GY_KEY_UNTIL,
    GY_KEYS
} gy_node_key;
extern const char *const gy_node_keys[GY_KEYS];

/* One node: `value` has its members by key. */
gantry_status gy_read_node(gy_reader *r, const gy_json_at *at, const json_t *const *value);
/* `args` with `access`. */
gantry_status gy_read_args(gy_reader *r, const gy_json_at *at, const json_t *const *value, gantry_node node);
gantry_status gy_read_access(gy_reader *r, const gy_json_at *at, gantry_access *out);
/* A list of references, appended to `list`; with `modes`, entries may say how they are accessed. */
gantry_status gy_read_list(gy_reader *r, const gy_json_at *at, gantry_access mode, bool modes, gy_list *list);
/* `reads` and `writes`. */
gantry_status gy_read_accesses(gy_reader *r, const gy_json_at *at, const json_t *const *value, gantry_node node);
/* The keys that every kind of node can have. */
gantry_status gy_read_attributes(gy_reader *r, const gy_json_at *at, const json_t *const *value, gantry_node node);

/* ---- json_when.c ---- */

/* The flag of a `when`: `value` is that of the element `up`, which is the node of this id, or has several (NULL). */
gantry_status gy_read_when(gy_reader *r, const gy_json_at *up, const json_t *value, const char *node,
                           gantry_region *flag);
/* Gives the node the `when` that it is under; `value`: its own, of the element `at`, or NULL. */
gantry_status gy_read_node_when(gy_reader *r, const gy_json_at *at, const json_t *value, gantry_node node);

/* ---- json_train.c ---- */

gantry_status gy_read_train(gy_reader *r, const gy_json_at *root);
/* The graph, all of it read and spread, becomes the model as it is used without being trained. */
gantry_status gy_read_evaluated(gy_reader *r);

/* ---- json_id.c ---- */

/* The id with its indices replaced, in r->id; *varied if there were any. */
gantry_status gy_read_id(gy_reader *r, const gy_json_at *at, bool *varied);
/* Remembers which written id a node came from. */
gantry_status gy_read_family(gy_reader *r, const char *written, gantry_node node);
/* Ties the node to those that `at` names: an id, or an array of ids. */
gantry_status gy_read_ties(gy_reader *r, const gy_json_at *at, gantry_node node,
                           void (*tie)(gantry_graph *, gantry_node, gantry_node));
/* Ties that had to wait for the last node. */
gantry_status gy_read_pending(gy_reader *r, const gy_json_at *root);

#endif
