/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Reverse mode differentiation of a graph that is still open: building calls add the backward pass to it. See
 * gantry/train.h. Words: the *path* is made of the nodes between weights and loss. A buffer is *active* if it depends
 * on a weight and the loss depends on it; each active buffer has an *adjoint*, a buffer with the derivative of the loss
 * by each of its elements. An *inflow* is what the nodes on the path that read the same rows of a buffer give to the
 * adjoint of these rows.
 */
#ifndef GY_GRAPH_ADJOINT_ADJOINT_H
#define GY_GRAPH_ADJOINT_ADJOINT_H

#include "graph/build/build.h"
#include "graph/halo.h"
#include "maths/maths.h"
#include <gantry/train.h>

/* Notes what training means for the graph, and checks it: buffers, numbers, the schedule. Mistakes are at the source
 * location that was set last. */
gantry_status gy_train_note(gantry_graph *graph, const gantry_train_options *options, gantry_error *err);
/* The graph is open, not differentiated yet, and it is known what training means; `call` is told in messages. */
gantry_status gy_train_check(const gantry_graph *graph, const gantry_train_options *options, const char *call,
                             gantry_error *err);

/* ---- between the files of the room ---- */

typedef struct gy_inflow {
    uint32_t buffer;
    int64_t first, last; /* rows */
    uint32_t readers;    /* of these rows that give something to their adjoint */
    uint32_t done;       /* how many of them have given it */
} gy_inflow;

typedef struct gy_adjoint_state {
    gantry_buffer buffer;     /* the adjoint; id GANTRY_NONE: not made yet */
    bool is_filled;           /* with zeros at first, as inflows do not give each row once */
    uint32_t inflow, inflows; /* a range of gy_adjoint.inflow, by rows */
} gy_adjoint_state;

typedef struct gy_adjoint {
    gantry_graph *graph;
    const gantry_train_options *options;
    gy_arena scratch; /* texts of one node */
    uint32_t loss;
    GY_VEC(uint32_t) weight;
    uint32_t nodes;         /* of the model */
    uint32_t buffers;       /* of the model */
    uint32_t given_buffers; /* the first of them; gy_adjoint_keep added the others */
    uint8_t *follows;       /* by buffer: it depends on a weight */
    uint8_t *leads;         /* by buffer: the loss depends on it */
    uint8_t *given;         /* by buffer: a node that reads it gives something to its adjoint */
    gy_adjoint_state *of;   /* by buffer */
    GY_VEC(gy_inflow) inflow;
    GY_VEC(uint32_t) owner; /* nodes, one for each device that reads the part of a weight that is looked at */
    size_t turn;            /* of weights that are in no parts */
    gantry_buffer scale;    /* of the loss, one element of f64, where it follows from what overflows */
    gantry_error *err;
} gy_adjoint;

/* A node of the path that gets its adjoint. */
typedef struct gy_rule gy_rule;
typedef struct gy_primal {
    uint32_t node;
    const char *id;
    const gantry_kernel *manifest;
    const gy_maths *maths; /* its formulas, or those that say what its kernel does; else NULL */
    const gy_rule *rule;   /* of its kernel; NULL: it has formulas, or is a copy */
} gy_primal;

static inline bool gy_adjoint_is_active(const gy_adjoint *a, uint32_t buffer)
{
    return buffer < a->buffers && a->follows[buffer] && a->leads[buffer];
}
/* Is its adjoint more than zeros? Known of what a node writes once all later nodes have been looked at. */
static inline bool gy_adjoint_is_given(const gy_adjoint *a, uint32_t buffer)
{
    return gy_adjoint_is_active(a, buffer) && (buffer == a->loss || a->given[buffer]);
}
/* The buffer whose rows an access reads: that of the tiles, where it is a tile with a halo. */
static inline uint32_t gy_adjoint_source(const gantry_graph *graph, const gy_access *access)
{
    const gy_halo *halo = graph->buffers.at[access->buffer].halo;
    return halo && halo->source != GY_NONE ? halo->source : access->buffer;
}
/* Does the node lie on the path? */
bool gy_adjoint_is_on_path(const gy_adjoint *a, uint32_t node);

/* options.c: the weights and the loss of a->options. */
gantry_status gy_train_find(gy_adjoint *a);
/* Says the weights of the graph's training one by one, in place of patterns, which buffers that are added may fit. */
gantry_status gy_train_spell_weights(gantry_graph *graph, gantry_error *err);
/* path.c: finds active buffers, and refuses what reverse mode cannot go back through. */
gantry_status gy_adjoint_find_path(gy_adjoint *a);

/* keep.c: what nodes of the path write for their adjoints alone becomes part of the model. So many buffers at most. */
gantry_status gy_adjoint_keep(gy_adjoint *a);
size_t gy_adjoint_count_kept(const gantry_graph *graph);

/* The mistake of a node, E_GRAPH: "node "ID"" and the text. */
gantry_status gy_node_fail(const gantry_graph *graph, gantry_error *err, uint32_t node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The mistake that a building call has left, as this function's status. */
gantry_status gy_adjoint_built(gy_adjoint *a);

/* From now on, things that are added come from where the node was written. */
void gy_adjoint_come_from(gantry_graph *graph, uint32_t node);

/* ---- regions ---- */

/* The access that a node has to its argument of that name; NULL: none. It stays valid until accesses are added. */
const gy_access *gy_primal_access(const gy_adjoint *a, const gy_primal *p, const char *arg);
/* The same of what the node writes, if no other node of the model writes there, so that it is still there when the
 * backward pass comes; NULL: it cannot be relied on. (keep.c) */
const gy_access *gy_adjoint_kept(const gy_adjoint *a, const gy_primal *p, const char *arg);
/* The same of a scalar; NULL: the node was not given it. */
const gy_scalar *gy_primal_scalar(const gy_adjoint *a, const gy_primal *p, const char *name);
/* Rows of an access, or its tile, of the buffer itself or of one that is cut like it. */
gantry_region gy_adjoint_rows(const gy_adjoint *a, const gy_access *access, gantry_buffer buffer);
/* Part or tile i of a buffer that is cut into any; else all of it. */
gantry_region gy_adjoint_part(const gantry_graph *graph, gantry_buffer buffer, int64_t i);
/* How many of them there are; 1 where it is not cut. */
static inline int64_t gy_adjoint_parts(const gy_buffer *b)
{
    return b->tiles[0] ? b->rows : b->parts ? b->parts : 1;
}
static inline bool gy_adjoint_is_cut(const gy_buffer *b)
{
    return b->tiles[0] || b->parts;
}
gantry_region gy_adjoint_primal_rows(const gy_adjoint *a, const gy_access *access);
gy_maths_shape gy_access_shape(const gantry_graph *graph, const gy_access *access);
static inline gy_maths_shape gy_adjoint_shape(const gy_adjoint *a, const gy_access *access)
{
    return gy_access_shape(a->graph, access);
}
/* The shape that both have together, as NumPy broadcasts them; they are known to fit. */
void gy_shape_join(gy_maths_shape *all, const gy_maths_shape *one);
/* A buffer of class temp that is cut like another, of its shape or with axes of extent 1 beside: NAME.suffix, with '_'
 * behind it where that is taken. */
gantry_buffer gy_adjoint_named(gy_adjoint *a, uint32_t like, const char *suffix, int rank, const int64_t *shape,
                               gantry_dtype dtype);
/* A buffer of one element of f64, with '_' behind the name where that is taken. */
gantry_buffer gy_adjoint_number(gy_adjoint *a, const char *name);
static inline bool gy_train_is_adam(gantry_optimizer optimizer)
{
    return optimizer == GANTRY_OPTIMIZER_ADAM || optimizer == GANTRY_OPTIMIZER_ADAMW;
}
static inline bool gy_train_scales_itself(const gantry_train_options *o)
{
    return o->loss_scale == GANTRY_LOSS_SCALE_AUTO;
}
/* The same with its dtype and shape. */
gantry_buffer gy_adjoint_clone(gy_adjoint *a, uint32_t buffer, const char *suffix);
/* "ID.grad.ARG", in the scratch arena. */
const char *gy_adjoint_id(gy_adjoint *a, const gy_primal *p, const char *arg);

/* ---- inflows.c: adjoints, and who adds to them ---- */

/* Finds the inflows of all adjoints: who gives to which rows. */
gantry_status gy_adjoint_find_inflows(gy_adjoint *a);
/* Does the node give something to the adjoint of what it reads by this access? (rules.c) */
bool gy_adjoint_gives(const gy_adjoint *a, const gy_primal *p, const gy_access *access);
/* The adjoint of a buffer: made, and filled with zeros, at need. */
gantry_buffer gy_adjoint_buffer(gy_adjoint *a, uint32_t buffer);
/* The rows of it that an access names. */
gantry_region gy_adjoint_of(gy_adjoint *a, const gy_access *access);

/* Where a node puts what it gives to the adjoint of rows. */
typedef struct gy_destination {
    gantry_region region;
    bool adds;     /* others gave before: what is given is added */
    bool is_alone; /* nobody else gives, before or after */
} gy_destination;
gy_destination gy_adjoint_target(gy_adjoint *a, const gy_access *access);
/* The access with which a sum goes there. */
static inline gantry_access gy_destination_access(const gy_destination *t)
{
    return t->is_alone ? GANTRY_WRITE : GANTRY_SUM;
}
/* The same for nodes that can only write: if others gave before, rows of a buffer for this node, which
 * gy_adjoint_add_rows adds. */
gantry_region gy_adjoint_written(gy_adjoint *a, const gy_access *access, gy_destination *target);
void gy_adjoint_add_rows(gy_adjoint *a, const gy_primal *p, const char *arg, gantry_region from,
                         const gy_destination *target);

/* ---- rules.c, formulas.c, kernels.c: the nodes of the backward pass ---- */

/* Finds how a node of the path goes back; E_GRAPH if it has no adjoint. */
gantry_status gy_adjoint_look(gy_adjoint *a, uint32_t node, gy_primal *out);
/* Adds the nodes that give the adjoints of what it reads. */
gantry_status gy_adjoint_go_back(gy_adjoint *a, const gy_primal *p);
/* The same by its formulas. */
gantry_status gy_adjoint_formulas(gy_adjoint *a, const gy_primal *p);
/* Gives a new node the place, and the priority, of the one whose adjoint it is part of. */
void gy_adjoint_place(gy_adjoint *a, gantry_node node, uint32_t like);

struct gy_rule {
    const char *kernel;
    const char *args; /* that have adjoints, blanks between them */
    gantry_status (*go_back)(gy_adjoint *a, const gy_primal *p);
    bool takes_lists;      /* of tiles */
    const char *to;        /* of stencils, which may read their argument with a halo: what they give; else NULL */
    const char *kept;      /* results that the backward pass reads; NULL: none */
    const char *kept_with; /* the scalar that is 1 where it does; NULL: always */
    const char *changed;   /* the argument that may be changed in place, as its adjoint is then; NULL: none */
};
/* Is it one of the words, which have blanks between them? */
bool gy_adjoint_has_word(const char *words, const char *word);
/* The row of a kernel; NULL: it has none. */
const gy_rule *gy_adjoint_rule(const char *kernel);
/* Names of the library's kernels that fit, with commas. */
void gy_kernels_text(gy_text *to, bool (*fits)(const gantry_kernel *kernel));
/* The formulas of a node, its own or those of its kernel's manifest. NULL: there are none, or its regions, which
 * kernels take row by row, do not mean the same as broadcast arrays: *unfit is such an argument then, else NULL. */
const gy_maths *gy_node_formulas(const gantry_graph *graph, const gy_node *node, const char **unfit);

/* ---- pieces of new nodes (kernels.c) ---- */

/* The access of the node to its argument, which it has. */
gy_access gy_rule_access(const gy_adjoint *a, const gy_primal *p, const char *arg);
/* A scalar, or what it is where the node was not given it. */
double gy_rule_number(const gy_adjoint *a, const gy_primal *p, const char *name, double fallback);
/* Does the loss follow from the argument, and that from weights? */
bool gy_rule_wants(const gy_adjoint *a, const gy_primal *p, const char *arg);
/* A node of a kernel, where the node's adjoint of `arg` is. */
gantry_node gy_rule_begin(gy_adjoint *a, const gy_primal *p, const char *kernel, const char *arg);
/* A node of formulas, there too. */
gantry_node gy_rule_map(gy_adjoint *a, const gy_primal *p, const char *name, const char *formulas);
/* A constant of the numbers first, first + step, ..., beside that buffer. */
gantry_buffer gy_rule_numbers(gy_adjoint *a, uint32_t beside, const char *name, gantry_dtype dtype, int rank,
                              const int64_t *shape, double first, double step);
/* Argument `as` of the new node is what the old one has as `arg`. */
void gy_rule_give(gy_adjoint *a, const gy_primal *p, gantry_node node, const char *as, const char *arg);
/* Argument `as` is the adjoint of `arg`. */
void gy_rule_give_adjoint(gy_adjoint *a, const gy_primal *p, gantry_node node, const char *as, const char *arg);
/* Argument `as`, which is written, goes to the adjoint of `arg`; gy_adjoint_add_rows, with what *from and *target
 * become, adds it there. */
void gy_rule_take_rows(gy_adjoint *a, const gy_primal *p, gantry_node node, const char *as, const char *arg,
                       gantry_region *from, gy_destination *target);
/* The adjoint of an argument that was changed in place becomes so many times what it is. */
void gy_rule_scale(gy_adjoint *a, const gy_primal *p, const char *arg, double factor);

/* ---- dense.c, resize.c, sorting.c, sparse.c ---- */

gantry_status gy_getrf_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_getrs_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_potrf_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_qr_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_resize_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_syrk_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_top_k_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_trsm_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_sort_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_sort_pairs_go_back(gy_adjoint *a, const gy_primal *p);
gantry_status gy_sparse_go_back(gy_adjoint *a, const gy_primal *p);

/* ---- stencils.c ---- */

gantry_status gy_stencil_go_back(gy_adjoint *a, const gy_primal *p);
/* The rows of the adjoint of x that the node's adjoint gives: those of y. */
gy_access gy_stencil_inflow(const gy_adjoint *a, const gy_primal *p);

/* ---- optimise.c, owners.c ---- */

/* Gives a node that steps a part of a weight its place, where one follows from who reads the part. */
void gy_adjoint_own(gy_adjoint *a, gantry_node node, uint32_t weight, int64_t part);

/* The device's index that a node says, where there are as many devices as it thinks of ("3 % devices"). */
bool gy_adjoint_index(const gy_node_extra *x, int64_t *index);
/* Do both nodes say the same device? */
bool gy_adjoint_is_same_place(const gy_node_extra *a, const gy_node_extra *b);

gantry_status gy_adjoint_optimise(gy_adjoint *a);

/* ---- recompute.c ---- */

/* Adds the nodes that the `recompute` of the graph asks for: called behind all else. See recompute.h. */
gantry_status gy_adjoint_recompute(gy_adjoint *a);

/* moving_parts.c: pieces of the batch become parts that the scheduler may cut elsewhere, where a strategy says so. */
gantry_status gy_move_parts(gantry_graph *graph, gantry_error *err);
/* The number of a node that says where its rows begin: "first" of dropout and rope, and of softmax where it is causal.
 */
typedef struct gy_first_number {
    uint32_t arg;    /* GY_NONE: the node has none, or its rows do not depend on it */
    int64_t at;      /* what it is */
    int64_t per_row; /* so much more of it for each row that the first argument begins later */
    int64_t period;  /* it begins again there; 0: it does not */
} gy_first_number;
/* False: it has one that cannot follow rows which begin elsewhere. */
bool gy_first_number_of(const gantry_graph *graph, uint32_t node, gy_first_number *out);
/* order_sums.c: with gantry_strategy.ordered, contributions to a sum come one after the other. */
gantry_status gy_order_sums(gantry_graph *graph, gantry_error *err);
/* partial_sums.c: sums that nodes of several places give to become one for each place, and a map that adds them up. */
gantry_status gy_part_sums(gantry_graph *graph, gantry_error *err);

#endif
