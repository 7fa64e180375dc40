/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/graph.h
 * @brief The graph: buffers, nodes and the order that follows from what nodes do to buffers. Knows no device.
 *
 * Building never fails half-way: the first mistake sticks to the graph, later calls do nothing, and
 * gantry_graph_check (and everything that uses the graph) reports it with the line of the program it came from.
 * A NULL graph is accepted by every building call and reported as out of memory.
 * Dependencies follow from accesses in the order in which nodes are added: two nodes that touch the same rows, at
 * least one of them writing, run in that order; contributions to one reduction are free among themselves.
 */
#ifndef GANTRY_GRAPH_H
#define GANTRY_GRAPH_H

#include <gantry/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gantry_graph gantry_graph;
/** Names of things inside one graph. Wrapped, so that a node cannot be passed where a buffer belongs. `id` counts from
 * 0 in the order of adding. `graph` is a number of the graph that gave it, so that one of another graph is an error in
 * every call; 0, in one that a program makes from an id, fits all graphs. */
typedef struct gantry_buffer {
    uint32_t id, graph;
} gantry_buffer;
typedef struct gantry_node {
    uint32_t id, graph;
} gantry_node;

#define GANTRY_NONE UINT32_MAX /* the id of no buffer and no node */

/* ---- making and reading ---- */

/** An empty graph; NULL when out of memory. `name` NULL: "graph". */
GANTRY_API gantry_graph *gantry_graph_new(const char *name);
GANTRY_API void gantry_graph_free(gantry_graph *graph);

/** The most nodes, parts of a buffer, tiles of a buffer and tasks (nodes times the iterations that are unrolled) that a
 * graph may expand to, so that a count with too many zeros is an error at once. `most` 0: GANTRY_LIMIT, as in a new
 * graph; negative: no limit but memory. Nodes that a program adds one by one are not counted. Dependencies, accesses
 * that stand for many tiles, and ops of a schedule may be as many, and 16 more for each node or task. */
#define GANTRY_LIMIT INT64_C(10000000)
GANTRY_API void gantry_graph_limit(gantry_graph *graph, int64_t most);

typedef struct gantry_load_options {
    size_t struct_size;
    const char *const *params; /* "name=value", each overrides a param of the file; of two for one the last counts */
    size_t param_count;
    const char *const *inputs; /* "buffer=file.npy" (or .jpg, a pattern too): sizes of bare params in that buffer's
                                  shape come from the file. A constant is an input where there are several .npy arrays,
                                  see gantry_run_feed_files */
    size_t input_count;
    int32_t allow_code;   /* 1: kernels' files of code have to be there, and the graph is planned for what they have; 0:
                             they are not touched. Whether they may run is said to the run (gantry_run_options) */
    int32_t devices;      /* `devices` in expressions, such as that of gantry_machine_worker_count; 0: not known, and a
                             file that wants it is E_UNSUPPORTED. In `on` it stays open until the graph is scheduled */
    int64_t max_nodes;    /* as gantry_graph_limit */
    int32_t fuse;         /* 1: as gantry_graph_fuse */
    int32_t train;        /* 1: as gantry_graph_differentiate (gantry/train.h), with what the file's key `train` says */
    const char *strategy; /* with `train` or `evaluate`: "dp=2,micro=4", as gantry_graph_parallelize with what
                             gantry_strategy_parse reads from it; NULL: the graph as it is */
    int32_t evaluate; /* 1: the model as it is used, to find its loss on other data between steps of a training: what
                         `train` would have, without backward pass and optimiser. The loss is an output, and nodes of
                         the kernel `dropout` drop nothing: their p is 0. Not with `train` (E_INVALID) */
    int32_t land;     /* 1: inputs that `inputs` gives several .npy arrays, and that nothing writes, are constants, so
                         that devices have them when a start begins (gantry_run_feed); 0: a start uploads them */
} gantry_load_options;
#define GANTRY_LOAD_OPTIONS_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(gantry_load_options), NULL, 0, NULL, 0, 0, 0, 0, 0, 0, NULL, 0, 0                                       \
    }

/** Reads and checks a graph. `path` "-" is standard input. Files a graph names are looked up in the graph's folder. */
GANTRY_MUST_USE gantry_status gantry_graph_load(gantry_graph **graph, const char *path,
                                                const gantry_load_options *options, gantry_error *err);
/** The same from memory; `name` (or NULL) stands in messages for the file name; named files are refused unless `folder`
 * is given. */
GANTRY_MUST_USE gantry_status gantry_graph_parse(gantry_graph **graph, const char *text, size_t length,
                                                 const char *name, const char *folder,
                                                 const gantry_load_options *options, gantry_error *err);
/** The graph's normal form as JSON: expressions resolved, `for` and `if` expanded. Reading and writing it again gives
 * the same bytes. `*text` is yours (gantry_free). The graph must have passed gantry_graph_check. E_UNSUPPORTED: it has
 * an init, a fill or a scalar that is NaN or infinite, which JSON cannot write. */
GANTRY_MUST_USE gantry_status gantry_graph_json(const gantry_graph *graph, char **text, size_t *length,
                                                gantry_error *err);
/** The same into a file, written under a temporary name and renamed. */
GANTRY_MUST_USE gantry_status gantry_graph_save(const gantry_graph *graph, const char *path, gantry_error *err);

/** Finds every mistake that does not depend on a machine, infers the dependencies, and seals the graph: later
 * building calls are refused. Checking twice is fine. */
GANTRY_MUST_USE gantry_status gantry_graph_check(gantry_graph *graph, gantry_error *err);

/** Asks gantry_graph_check to make one node of neighbouring maps, and of maps and the reduction behind them, where that
 * changes no bit of any result: what lies between is neither written nor read again. Their ids are joined, "a+b";
 * other nodes keep theirs, and handles of nodes are to be asked for again, by gantry_graph_find_node. */
GANTRY_API void gantry_graph_fuse(gantry_graph *graph);

/** The i-th thing that gantry_graph_check found allowed but perhaps not meant: place and text in `*warning`, like an
 *  error's but with status GANTRY_OK. 1 if there is one, 0 past the last. */
GANTRY_API int gantry_graph_warning(const gantry_graph *graph, size_t i, gantry_error *warning);

/** Looks at the files that buffers of a checked graph begin with (`init` npy and raw), as far as they are there: E_IO
 * where one has another dtype, shape or number of bytes than its buffer, as a run would say. Files that a run will read
 * in their place are named as in gantry_load_options, "buffer=file.npy": those buffers are passed over. E_INVALID: the
 *  graph was not checked. */
GANTRY_MUST_USE gantry_status gantry_graph_check_files(const gantry_graph *graph, const char *const *inputs,
                                                       size_t input_count, gantry_error *err);

/** Says ahead of planning that a start would have nothing to begin with: E_INVALID where one of `inputs`, as above,
 * takes no contents, or a buffer has no init, is none of them, and what it begins with is read; external ones are left
 * out. */
GANTRY_MUST_USE gantry_status gantry_graph_check_inputs(const gantry_graph *graph, const char *const *inputs,
                                                        size_t input_count, gantry_error *err);

/* ---- buffers ---- */

typedef enum gantry_buffer_class {
    GANTRY_INPUT = 1, /* every start begins from its binding, else from its init. Default with an init */
    GANTRY_STATE,     /* initialised once per run object, persists from start to start */
    GANTRY_CONST,     /* initialised once, never written */
    GANTRY_TEMP       /* undefined at every start. Default without an init */
} gantry_buffer_class;

/** A named array in C order. `shape` has `rank` >= 1 entries >= 0. */
GANTRY_API gantry_buffer gantry_graph_buffer(gantry_graph *graph, const char *name, gantry_dtype dtype, int rank,
                                             const int64_t *shape);
/** In place of the default, which its init decides. */
GANTRY_API void gantry_buffer_set_class(gantry_graph *graph, gantry_buffer buffer, gantry_buffer_class cls);
/** Fetched to host memory at the end of every start. */
GANTRY_API void gantry_buffer_output(gantry_graph *graph, gantry_buffer buffer);
/** An input, an output or both that the program keeps in the memory of a device, named by that memory's or the device's
 * id in the machine: gantry_run_bind and gantry_run_bind_output get the device pointer. A device in that memory reads
 * such an input where it is. Not tiled, without an init, and not in graphs with `until` or loops too long to unroll. */
GANTRY_API void gantry_buffer_external(gantry_graph *graph, gantry_buffer buffer, const char *memory);
/** Tolerances with which tools compare this output with a reference. */
GANTRY_API void gantry_buffer_tolerance(gantry_graph *graph, gantry_buffer buffer, double rtol, double atol);
/** A NaN in this output is meant: tools that compare it take two NaN at the same place for equal. Without this call a
 * NaN equals nothing, and a result that has one is wrong. */
GANTRY_API void gantry_buffer_equal_nan(gantry_graph *graph, gantry_buffer buffer);
/** Cuts axis 0 of n rows into `parts`; part i is rows [i*n/parts, (i+1)*n/parts), rounded down. */
GANTRY_API void gantry_buffer_split(gantry_graph *graph, gantry_buffer buffer, int64_t parts);
/** The same count, but the scheduler chooses the bounds. */
GANTRY_API void gantry_buffer_split_auto(gantry_graph *graph, gantry_buffer buffer, int64_t parts);
/** Cuts a 2-D array into rows x columns tiles, each stored on its own; tile (i, j) spans parts i and j of the axes. */
GANTRY_API void gantry_buffer_tiles(gantry_graph *graph, gantry_buffer buffer, int64_t rows, int64_t columns);
/** The same for an array of 1 to GANTRY_TILE_AXES axes: tiles[k] of them along axis k, `axes` entries; axes behind the
 * last entry are not cut. */
GANTRY_API void gantry_buffer_tiles_by_axis(gantry_graph *graph, gantry_buffer buffer, int axes, const int64_t *tiles);
/* The first contents of a buffer: one of these or gantry_buffer_init_with, once. Random numbers are Philox4x32-10 by
 * element index, so they do not depend on how the buffer is cut, nor on the back end. */
/** Every element is `value`. */
GANTRY_API void gantry_buffer_init_value(gantry_graph *graph, gantry_buffer buffer, double value);
/** Uniform in [low, high); of integers both are whole numbers, and `high` does not occur. */
GANTRY_API void gantry_buffer_init_uniform(gantry_graph *graph, gantry_buffer buffer, uint64_t seed, double low,
                                           double high);
/** Floating element types only. */
GANTRY_API void gantry_buffer_init_normal(gantry_graph *graph, gantry_buffer buffer, uint64_t seed, double mean,
                                          double deviation);
/** Element e in C order is e. */
GANTRY_API void gantry_buffer_init_iota(gantry_graph *graph, gantry_buffer buffer);
/** A symmetric positive definite matrix (square, floating). */
GANTRY_API void gantry_buffer_init_spd(gantry_graph *graph, gantry_buffer buffer, uint64_t seed);
/** A file of NumPy of the buffer's type and shape, or one with its plain bytes in C order. A relative `path` begins at
 * the current folder of the process. The file is read when a run wants it, not here. */
GANTRY_API void gantry_buffer_init_npy(gantry_graph *graph, gantry_buffer buffer, const char *path);
GANTRY_API void gantry_buffer_init_raw(gantry_graph *graph, gantry_buffer buffer, const char *path);

typedef enum gantry_contents_kind { GANTRY_VALUE = 1, GANTRY_UNIFORM, GANTRY_NORMAL, GANTRY_IOTA } gantry_contents_kind;
/** Contents of a buffer, or of a fill, with all that files say of them: of GANTRY_VALUE `first` is every element, of
 * GANTRY_UNIFORM low and high, of GANTRY_NORMAL mean and deviation; of GANTRY_IOTA element e is first + e * second. */
typedef struct gantry_contents {
    size_t struct_size;
    gantry_contents_kind kind;
    int32_t reserved;
    uint64_t seed; /* of random numbers */
    double first, second;
    const char *exact[2]; /* in place of `first` and `second`, for whole numbers that no double is: "9007199254740993",
                             up to 64 bits; NULL: the double */
} gantry_contents;
#define GANTRY_CONTENTS_INIT                                                                                           \
    {                                                                                                                  \
        sizeof(gantry_contents), GANTRY_VALUE, 0, 0, 0, 1,                                                             \
        {                                                                                                              \
            NULL, NULL                                                                                                 \
        }                                                                                                              \
    }
GANTRY_API void gantry_buffer_init_with(gantry_graph *graph, gantry_buffer buffer, const gantry_contents *contents);

/* ---- regions ---- */

typedef enum gantry_region_kind {
    GANTRY_ALL,
    GANTRY_PARTS,
    GANTRY_ROWS,
    GANTRY_TILES,
    GANTRY_TILES_BY_AXIS /* `first`, `last`, `first2`, `last2` have first and last of axes 0, 1, 2, 3, 32 bits each, the
                            first one above; `before` and `after` 16 bits for each axis, that of axis 0 lowest: see
                            gantry_tiles_by_axis and gantry_halo_axis */
} gantry_region_kind;

/** Rows of one buffer, named but not yet resolved. Made by the functions below. */
typedef struct gantry_region {
    gantry_buffer buffer;
    gantry_region_kind kind;
    int32_t ndim;          /* 1; of GANTRY_TILES_BY_AXIS how many axes are named, 1 to GANTRY_TILE_AXES */
    int64_t first, last;   /* parts or rows, half open; tiles: rows of tiles */
    int64_t first2, last2; /* tiles: columns of tiles */
    int64_t before, after; /* halo rows, cut at the ends of the buffer */
} gantry_region;

static inline gantry_region gantry_region_make(gantry_buffer b, gantry_region_kind kind, int64_t first, int64_t last)
{
    gantry_region r = { b, kind, 1, first, last, 0, 0, 0, 0 };
    return r;
}
static inline gantry_region gantry_all(gantry_buffer b)
{
    return gantry_region_make(b, GANTRY_ALL, 0, 0);
}
static inline gantry_region gantry_part(gantry_buffer b, int64_t i)
{
    return gantry_region_make(b, GANTRY_PARTS, i, i + 1);
}
static inline gantry_region gantry_parts(gantry_buffer b, int64_t first, int64_t last)
{
    return gantry_region_make(b, GANTRY_PARTS, first, last);
}
static inline gantry_region gantry_rows(gantry_buffer b, int64_t first, int64_t last)
{
    return gantry_region_make(b, GANTRY_ROWS, first, last);
}
/** Tiles [i0, i1) x [j0, j1), row by row. */
static inline gantry_region gantry_tiles(gantry_buffer b, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    gantry_region r = gantry_region_make(b, GANTRY_TILES, i0, i1);
    r.first2 = j0;
    r.last2 = j1;
    return r;
}
static inline gantry_region gantry_tile(gantry_buffer b, int64_t i, int64_t j)
{
    return gantry_tiles(b, i, i + 1, j, j + 1);
}
/* Two indices of tiles as one number; what does not fit into 32 bits becomes one that is out of range, too. */
static inline int64_t gantry_span_pack(int64_t first, int64_t last)
{
    first = first < INT32_MIN ? INT32_MIN : first > INT32_MAX ? INT32_MAX : first;
    last = last < INT32_MIN ? INT32_MIN : last > INT32_MAX ? INT32_MAX : last;
    return (int64_t)((uint64_t)first << 32 | (uint64_t)(uint32_t)last);
}
/** The same along 1 to GANTRY_TILE_AXES axes, each from first[k] up to last[k]; axes behind that are not cut. */
static inline gantry_region gantry_tiles_by_axis(gantry_buffer b, int axes, const int64_t *first, const int64_t *last)
{
    gantry_region r = gantry_region_make(b, GANTRY_TILES_BY_AXIS, 0, 0);
    r.ndim = axes;
    r.first = axes > 0 ? gantry_span_pack(first[0], last[0]) : 0;
    r.last = axes > 1 ? gantry_span_pack(first[1], last[1]) : 0;
    r.first2 = axes > 2 ? gantry_span_pack(first[2], last[2]) : 0;
    r.last2 = axes > 3 ? gantry_span_pack(first[3], last[3]) : 0;
    return r;
}

/* A halo for one axis among four; what does not fit into 16 bits becomes more than is allowed. */
static inline int64_t gantry_halo_pack(int64_t all, int axis, int64_t width)
{
    uint64_t bits = width < 0 || width > UINT16_MAX ? UINT16_MAX : (uint64_t)width,
             mask = (uint64_t)UINT16_MAX << 16 * axis;
    return (int64_t)(((uint64_t)all & ~mask) | bits << 16 * axis);
}
/** The same region with rows before and after it. Of a tile: with so many elements before and after it along each axis,
 * as one box, cut at the ends of the array; it is read only. */
static inline gantry_region gantry_halo(gantry_region r, int64_t before, int64_t after)
{
    for (int k = 0; k < GANTRY_TILE_AXES && r.kind == GANTRY_TILES_BY_AXIS; k++) {
        r.before = gantry_halo_pack(r.before, k, before);
        r.after = gantry_halo_pack(r.after, k, after);
    }
    r.before = r.kind == GANTRY_TILES_BY_AXIS ? r.before : before;
    r.after = r.kind == GANTRY_TILES_BY_AXIS ? r.after : after;
    return r;
}
/** Of a tile: the same along one axis, those of the others stay as they are. At most 65534. */
static inline gantry_region gantry_halo_axis(gantry_region r, int axis, int64_t before, int64_t after)
{
    int64_t first[2] = { r.first, r.first2 }, last[2] = { r.last, r.last2 };
    if (r.kind == GANTRY_TILES) {
        gantry_region plain = r;
        r = gantry_halo(gantry_tiles_by_axis(r.buffer, 2, first, last), plain.before, plain.after);
    }
    if (r.kind != GANTRY_TILES_BY_AXIS || axis < 0 || axis >= GANTRY_TILE_AXES) {
        r.ndim = 0; /* refused where the region is used */
        return r;
    }
    r.before = gantry_halo_pack(r.before, axis, before);
    r.after = gantry_halo_pack(r.after, axis, after);
    return r;
}

/* ---- nodes ---- */

/** A kernel of the library or one that was added to this graph. An id that is taken becomes "id#1",
 * "id#2", ...; NULL stands for the name of the kernel (of other nodes: "launch", "host", "copy", "fill", "work", ...).
 */
GANTRY_API gantry_node gantry_graph_kernel(gantry_graph *graph, const char *id, const char *kernel);
/** Adds a kernel of your own; the manifest is borrowed until the graph, its schedules and runs are freed. */
GANTRY_API void gantry_graph_add_kernel(gantry_graph *graph, const gantry_kernel *kernel);

/**
 * CUDA code for a kernel of your own. Its function is given the arguments in the order of the manifest: a device
 * pointer for a region (no lists of tiles), a value for a scalar; then a pointer to the scratch memory if the manifest
 * asks for some. Names of C++ functions are mangled: declare yours extern "C".
 */
typedef struct gantry_cuda_code {
    size_t struct_size;
    /** A cubin, a fat binary or PTX: `bytes` of it, borrowed like the manifest, loaded on each GPU that needs it;
     * `entry` is the function in it, NULL: the kernel's name. */
    const void *image;
    size_t bytes;
    const char *entry;
    /** Or, with `image` NULL, handles of functions that the program has loaded itself: returns the CUfunction for a
     * GPU. Called for each GPU when a run is made, with its primary context current; NULL is an error of that call. */
    void *(*function)(void *user, int32_t device_ordinal);
    void *user;
    /** How many blocks, and threads of a block: expressions over the arguments, as in gantry_kernel; NULL is 1, but the
     * first of each is wanted. Of a grid with an extent of 0 nothing is launched. */
    const char *grid[3], *block[3]; /* "ceil_div(x.size, 256)" */
    int64_t shared_bytes;           /* dynamic shared memory of a block */
    const gantry_dtype *types;      /* by argument: how a scalar is passed; NULL: all as double. Copied */
    /** By argument: what a scalar is that a node does not give, from its regions ("x.size"); NULL entries, or NULL: as
     * in the manifest, which must call those that have one optional. Copied. */
    const char *const *defaults;
    /** Or CUDA C++ as a text, copied, which NVRTC compiles when a run is made; it may include headers of the toolkit.
     */
    const char *source;
    /** Or a function that queues its work on launch->stream by itself, as gantry_kernel_fn says of CUDA: launches of
     * other libraries. `user` is launch->user then; there is no grid, and lists of tiles are fine. */
    gantry_kernel_fn launch;
} gantry_cuda_code;
#define GANTRY_CUDA_CODE_INIT                                                                                          \
    {                                                                                                                  \
        sizeof(gantry_cuda_code), NULL, 0, NULL, NULL, NULL, { NULL, NULL, NULL }, { NULL, NULL, NULL }, 0, NULL,      \
            NULL, NULL, NULL                                                                                           \
    }
/** gantry_graph_add_kernel for a kernel with CUDA code; nodes name it like others (gantry_graph_kernel). With a host
 * version it runs on CPUs as well, else it wants GANTRY_KERNEL_NO_CPU. Functions that launch things themselves, or
 * call a library, are `launch`, or gantry_graph_launch's. */
GANTRY_API void gantry_graph_add_cuda_kernel(gantry_graph *graph, const gantry_kernel *kernel,
                                             const gantry_cuda_code *code);
/**
 * Maths on each element: "y = sqrt(x) * s + 1", and several with ';' between them ("Map nodes" in docs/graph-format.md
 * has what can be written). Names are the arguments of the node, given like those of a kernel: by gantry_node_arg for a
 * region, by gantry_node_scalar for a number. What formulas are given to has one shape; what is only read is broadcast
 * to it as by NumPy, one element for all along neighbouring axes or everywhere. All formulas see the elements as they
 * were before the node. On GPUs NVRTC compiles them; it is no code that a graph brings, so `allow_code` is not asked
 * for.
 */
GANTRY_API gantry_node gantry_graph_map(gantry_graph *graph, const char *id, const char *formulas);
/** The same for reductions: "s = sum(square(x - y))", with sum, mean, min, max, any, all, argmin or argmax around each
 * formula. Its result has one element, or one along the axes that are reduced: those where its shape has 1, or no axis;
 * or the one axis that the formula names, "s = sum(x, 1)". With the access GANTRY_SUM (of sum; MIN of min and all, MAX
 * of max and any) of gantry_node_arg_as it is added to what other nodes give. */
GANTRY_API gantry_node gantry_graph_reduce(gantry_graph *graph, const char *id, const char *formulas);
/** A function of your own that works on any back end; its arguments are its accesses, in the order they are added. */
GANTRY_API gantry_node gantry_graph_launch(gantry_graph *graph, const char *id, gantry_kernel_fn function, void *user);
/** The same, but always on the CPU. */
GANTRY_API gantry_node gantry_graph_host(gantry_graph *graph, const char *id, gantry_kernel_fn function, void *user);
/** Rows to rows, of one dtype and size. */
GANTRY_API gantry_node gantry_graph_copy(gantry_graph *graph, const char *id, gantry_region from, gantry_region to);
/** Fills rows as gantry_buffer_init_value, _uniform and _iota do whole buffers; elements count from the first one of
 * the buffer, also where `to` is a part of it. */
GANTRY_API gantry_node gantry_graph_fill(gantry_graph *graph, const char *id, gantry_region to, double value);
GANTRY_API gantry_node gantry_graph_fill_uniform(gantry_graph *graph, const char *id, gantry_region to, uint64_t seed,
                                                 double low, double high);
GANTRY_API gantry_node gantry_graph_fill_iota(gantry_graph *graph, const char *id, gantry_region to);
GANTRY_API gantry_node gantry_graph_fill_with(gantry_graph *graph, const char *id, gantry_region to,
                                              const gantry_contents *contents);

typedef enum gantry_collective {
    GANTRY_ALL_REDUCE = 1,
    GANTRY_REDUCE,
    GANTRY_BROADCAST,
    GANTRY_SCATTER,
    GANTRY_GATHER,
    GANTRY_ALL_GATHER,
    GANTRY_REDUCE_SCATTER,
    GANTRY_ALL_TO_ALL
} gantry_collective;

GANTRY_API const char *gantry_collective_name(gantry_collective kind); /* "all_reduce"; NULL if there is none */

/** Regions of several ranks at once. `in` has `ins` and `out` has `outs` of them, in rank order, copied; of broadcast
 * and scatter `in` is the one region of rank `root`, of reduce and gather `out` is ("Collectives" in
 * docs/graph-format.md has the sizes of each kind, and what may be in place). `op` is GANTRY_SUM, MIN, MAX or PROD
 * where the kind reduces, else 0; `root` is 0 where there is none. */
GANTRY_API gantry_node gantry_graph_collective(gantry_graph *graph, const char *id, gantry_collective kind,
                                               gantry_access op, size_t ins, const gantry_region *in, size_t outs,
                                               const gantry_region *out, int root);
/** Only a cost and accesses: schedules and simulates, is never run. */
GANTRY_API gantry_node gantry_graph_work(gantry_graph *graph, const char *id);

/** A buffer of a used graph, and what it stands for: a whole buffer, parts or rows, of the same dtype and shape. */
typedef struct gantry_use_buffer {
    const char *name;
    gantry_region region;
} gantry_use_buffer;
typedef struct gantry_use_options {
    size_t struct_size;
    const char *const *params; /* "name=value", each replaces a param of the file, as in gantry_load_options */
    size_t param_count;
    const gantry_use_buffer *buffers; /* all others become buffers of the graph, "id.name" */
    size_t buffer_count;
    const gantry_region *when; /* all of its nodes run by this flag, as gantry_node_when says; NULL: by none */
    int32_t devices;           /* `devices` in expressions; 0: not known, and a file that wants it is E_UNSUPPORTED */
    int32_t reserved;
} gantry_use_options;
#define GANTRY_USE_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(gantry_use_options), NULL, 0, NULL, 0, NULL, 0, 0                                                       \
    }
/** The nodes of another graph file, as the key `use` of files has them ("Other graphs" in docs/graph-format.md): its
 * ids become "id.norm", its buffers "id.gain", where "layer[3]" is "layer.3". Scalar arguments of the file know the
 * index of a repeat around the call. `id` NULL: the name of the file without ".json"; one that is taken becomes "id#1".
 * A relative `path` begins at the current folder of the process, and files that the file names are in its own. It is
 * read once, however often it is used. Nodes that are added are numbered on from gantry_graph_node_count; a mistake has
 * its place in the file, and the line that uses it. */
GANTRY_API void gantry_graph_use(gantry_graph *graph, const char *id, const char *path,
                                 const gantry_use_options *options);

/** Kernels: the region or the number for the argument `name`. */
GANTRY_API void gantry_node_arg(gantry_graph *graph, gantry_node node, const char *name, gantry_region region);
/** Chooses another of the accesses that the manifest allows. */
GANTRY_API void gantry_node_arg_as(gantry_graph *graph, gantry_node node, const char *name, gantry_region region,
                                   gantry_access access);
/** A number that the type of the scalar cannot hold is a mistake that gantry_graph_check finds (docs/graph-format.md,
 * "Numbers and expressions"). A double holds whole numbers exactly up to 2^53. */
GANTRY_API void gantry_node_scalar(gantry_graph *graph, gantry_node node, const char *name, double value);
/** The same as an expression, as graph files have it: over the iterations of the repeats around the node, "it * 2 + 1"
 * (gantry_graph_index), or a whole number of up to 64 bits, "9007199254740993". */
GANTRY_API void gantry_node_scalar_expr(gantry_graph *graph, gantry_node node, const char *name, const char *expr);
/** A scalar that gantry_run_set_scalar may change between starts. */
GANTRY_API void gantry_node_scalar_dynamic(gantry_graph *graph, gantry_node node, const char *name, double value);
/* Accesses of launch, host and work nodes and of variadic kernels. */
GANTRY_API void gantry_node_read(gantry_graph *graph, gantry_node node, gantry_region region);
GANTRY_API void gantry_node_write(gantry_graph *graph, gantry_node node, gantry_region region);
GANTRY_API void gantry_node_readwrite(gantry_graph *graph, gantry_node node, gantry_region region);
GANTRY_API void gantry_node_reduce(gantry_graph *graph, gantry_node node, gantry_region region, gantry_access op);

/** Runs after `other` as well; adds order and never removes any. */
GANTRY_API void gantry_node_after(gantry_graph *graph, gantry_node node, gantry_node other);
/** How a collective goes: "auto", the default, or one of the algorithms that its kind has on the machine, "ring"
 * ("Collectives" in docs/graph-format.md). One that cannot be is found when the graph is scheduled. */
GANTRY_API void gantry_node_algorithm(gantry_graph *graph, gantry_node node, const char *algorithm);
/** Where: a device id, a kind, or an expression over `devices` that gives a device index. */
GANTRY_API void gantry_node_on(gantry_graph *graph, gantry_node node, const char *where);
/** A place for each rank of a collective, in rank order: a device id, or an expression over `devices` that gives a
 * device index. Without it, ranks go where what they give was written. */
GANTRY_API void gantry_node_on_ranks(gantry_graph *graph, gantry_node node, size_t ranks, const char *const *where);
/** On the same device as `other`, or on another one. Places that cannot be are found when the graph is scheduled. */
GANTRY_API void gantry_node_with(gantry_graph *graph, gantry_node node, gantry_node other);
GANTRY_API void gantry_node_apart(gantry_graph *graph, gantry_node node, gantry_node other);
/** The node runs only where the one element `flag` is not zero; NaN is not. Else what it writes or contributes to keeps
 * what it held, so this has to be something. The flag is read when the node's turn comes, on its device: no host waits
 * for it. A collective runs in every start, and what it gives is taken where the flag is not zero. */
GANTRY_API void gantry_node_when(gantry_graph *graph, gantry_node node, gantry_region flag);
/** Larger runs earlier where there is a choice. */
GANTRY_API void gantry_node_priority(gantry_graph *graph, gantry_node node, int priority);
/** The cost of the node: floating operations and bytes of memory traffic. */
GANTRY_API void gantry_node_cost(gantry_graph *graph, gantry_node node, double flops, double bytes);
/** The time on every device, or on those whose id or kind is `device` (id beats kind, both beat NULL). */
GANTRY_API void gantry_node_time(gantry_graph *graph, gantry_node node, const char *device, double time_us);
/** How much of a device the node can use at most, above 0, to 1. Default: what the machine measured of its kernel, else
 * its blocks over the GPU's multiprocessors, else 1. On a GPU with several lanes, others compute beside it in what it
 * leaves. */
GANTRY_API void gantry_node_share(gantry_graph *graph, gantry_node node, double share);
/** Bytes of gantry_launch.scratch, in place of what the kernel's manifest says. */
GANTRY_API void gantry_node_scratch(gantry_graph *graph, gantry_node node, int64_t bytes);

/* ---- loops ---- */

/** The nodes added until gantry_graph_repeat_end run `count` times. Repeats may be within one another: what follows is
 * said of the one that was begun last and has no end yet. */
GANTRY_API void gantry_graph_repeat(gantry_graph *graph, int64_t count);
/** Names the iteration (0, 1, 2, ...) for expressions of scalars: letters, digits and _; "it" without this call. Before
 * the first node of the repeat; no name of a repeat around it. */
GANTRY_API void gantry_graph_index(gantry_graph *graph, const char *name);
/** Before each later iteration `prev` takes the value of `next` without copying, and `next` becomes unwritten. */
GANTRY_API void gantry_graph_carry(gantry_graph *graph, gantry_buffer prev, gantry_buffer next);
/** Stops after the first iteration that is a multiple of `every` where the one-element `flag` is not zero. In a repeat
 * within another gantry_graph_repeat_end adds a flag of one element, by which its nodes run then (gantry_node_when),
 * and nodes: one that sets it, and copies of what it carries from `next` to `prev`, so `next` is not unwritten in the
 * next iteration there. Its nodes may have a when of their own, given before that; its collectives are carried out in
 * all iterations ("Loops" in docs/graph-format.md). */
GANTRY_API void gantry_graph_until(gantry_graph *graph, gantry_buffer flag, int64_t every);
GANTRY_API void gantry_graph_repeat_end(gantry_graph *graph);

/* ---- looking ---- */

/** The name of the graph, and how many buffers and nodes it has; ids are below these numbers. */
GANTRY_API const char *gantry_graph_name(const gantry_graph *graph);
GANTRY_API size_t gantry_graph_buffer_count(const gantry_graph *graph);
GANTRY_API size_t gantry_graph_node_count(const gantry_graph *graph);
/** The id that the node was given or got; borrowed. */
GANTRY_API const char *gantry_graph_node_id(const gantry_graph *graph, gantry_node node);
/** The file or object of the `machine` key of a graph file: *json is set for an inline object, *path for a file
 * (already joined with the graph's folder); both NULL without one. Borrowed. Either may be NULL. gantry_graph_machine
 * reads what is there, and takes care that the file is in that folder. */
GANTRY_API void gantry_graph_machine_hint(const gantry_graph *graph, const char **json, const char **path);
/** Ids are GANTRY_NONE where there is no such name. */
GANTRY_API gantry_node gantry_graph_find_node(const gantry_graph *graph, const char *id);
GANTRY_API gantry_buffer gantry_graph_find_buffer(const gantry_graph *graph, const char *name);

/** A buffer as the graph has it. Pointers are borrowed from the graph. */
typedef struct gantry_buffer_info {
    size_t struct_size;
    const char *name;
    gantry_dtype dtype;
    gantry_buffer_class cls;
    int32_t rank, output;   /* axes; 1: it is an output */
    const int64_t *shape;   /* `rank` extents */
    int64_t parts;          /* 0: not split */
    int64_t tiles[2];       /* along the first two axes, 1 where there is none; 0, 0: not tiled */
    uint64_t bytes;         /* of the whole array */
    double rtol, atol;      /* gantry_buffer_tolerance */
    int32_t equal_nan;      /* 1: NaN at the same place in both results counts as equal */
    const int64_t *by_axis; /* tiles along each axis, `rank` entries; NULL: not tiled */
} gantry_buffer_info;
#define GANTRY_BUFFER_INFO_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(gantry_buffer_info), NULL, GANTRY_F32, GANTRY_TEMP, 0, 0, NULL, 0, { 0, 0 }, 0, 0, 0, 0, NULL           \
    }
GANTRY_MUST_USE gantry_status gantry_graph_buffer_info(const gantry_graph *graph, gantry_buffer buffer,
                                                       gantry_buffer_info *info, gantry_error *err);

/** Says where the next building calls come from, until it is said anew; the macros below do it for you. Returns the
 * graph. */
GANTRY_API gantry_graph *gantry_graph_at(gantry_graph *graph, const char *file, int line);

/* The building calls: the same functions, but an error names the line of your program that called. All of them are
 * here; a test holds the list against the declarations above. Define GANTRY_NO_MACROS to do without, and use
 * gantry_graph_at. */
#ifndef GANTRY_NO_MACROS
#define GANTRY_HERE(graph)                   gantry_graph_at((graph), __FILE__, __LINE__)
#define gantry_graph_limit(g, ...)           (gantry_graph_limit)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_fuse(g)                 (gantry_graph_fuse)(GANTRY_HERE(g))
#define gantry_graph_buffer(g, ...)          (gantry_graph_buffer)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_set_class(g, ...)      (gantry_buffer_set_class)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_output(g, ...)         (gantry_buffer_output)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_external(g, ...)       (gantry_buffer_external)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_tolerance(g, ...)      (gantry_buffer_tolerance)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_equal_nan(g, ...)      (gantry_buffer_equal_nan)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_split(g, ...)          (gantry_buffer_split)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_split_auto(g, ...)     (gantry_buffer_split_auto)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_tiles(g, ...)          (gantry_buffer_tiles)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_tiles_by_axis(g, ...)  (gantry_buffer_tiles_by_axis)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_init_value(g, ...)     (gantry_buffer_init_value)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_init_uniform(g, ...)   (gantry_buffer_init_uniform)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_init_normal(g, ...)    (gantry_buffer_init_normal)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_init_iota(g, ...)      (gantry_buffer_init_iota)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_init_spd(g, ...)       (gantry_buffer_init_spd)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_init_npy(g, ...)       (gantry_buffer_init_npy)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_init_raw(g, ...)       (gantry_buffer_init_raw)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_buffer_init_with(g, ...)      (gantry_buffer_init_with)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_kernel(g, ...)          (gantry_graph_kernel)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_add_kernel(g, ...)      (gantry_graph_add_kernel)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_add_cuda_kernel(g, ...) (gantry_graph_add_cuda_kernel)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_map(g, ...)             (gantry_graph_map)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_reduce(g, ...)          (gantry_graph_reduce)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_launch(g, ...)          (gantry_graph_launch)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_host(g, ...)            (gantry_graph_host)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_copy(g, ...)            (gantry_graph_copy)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_fill(g, ...)            (gantry_graph_fill)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_fill_uniform(g, ...)    (gantry_graph_fill_uniform)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_fill_iota(g, ...)       (gantry_graph_fill_iota)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_fill_with(g, ...)       (gantry_graph_fill_with)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_collective(g, ...)      (gantry_graph_collective)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_work(g, ...)            (gantry_graph_work)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_use(g, ...)             (gantry_graph_use)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_arg(g, ...)              (gantry_node_arg)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_arg_as(g, ...)           (gantry_node_arg_as)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_scalar(g, ...)           (gantry_node_scalar)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_scalar_expr(g, ...)      (gantry_node_scalar_expr)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_scalar_dynamic(g, ...)   (gantry_node_scalar_dynamic)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_read(g, ...)             (gantry_node_read)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_write(g, ...)            (gantry_node_write)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_readwrite(g, ...)        (gantry_node_readwrite)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_reduce(g, ...)           (gantry_node_reduce)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_after(g, ...)            (gantry_node_after)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_algorithm(g, ...)        (gantry_node_algorithm)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_on(g, ...)               (gantry_node_on)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_on_ranks(g, ...)         (gantry_node_on_ranks)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_with(g, ...)             (gantry_node_with)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_apart(g, ...)            (gantry_node_apart)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_when(g, ...)             (gantry_node_when)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_priority(g, ...)         (gantry_node_priority)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_cost(g, ...)             (gantry_node_cost)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_time(g, ...)             (gantry_node_time)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_share(g, ...)            (gantry_node_share)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_node_scratch(g, ...)          (gantry_node_scratch)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_repeat(g, ...)          (gantry_graph_repeat)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_index(g, ...)           (gantry_graph_index)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_carry(g, ...)           (gantry_graph_carry)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_until(g, ...)           (gantry_graph_until)(GANTRY_HERE(g), __VA_ARGS__)
#define gantry_graph_repeat_end(g)           (gantry_graph_repeat_end)(GANTRY_HERE(g))
#endif

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_GRAPH_H */
