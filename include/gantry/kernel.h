/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/kernel.h
 * @brief Data types, accesses, and the contract between Gantry and a kernel (the kernel ABI).
 */
#ifndef GANTRY_KERNEL_H
#define GANTRY_KERNEL_H

#include <gantry/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Element types: name in JSON, bytes per element. f16 is IEEE binary16, bf16 the upper half of f32. f8e4m3 and f8e5m2
 * are OCP's 8-bit floating point (OFP8): numbers to 448, without infinities, and to 57344, with them; what is converted
 * to them is rounded to nearest, ties to even, and what is too large becomes the largest number.
 */
#define GANTRY_DTYPE_MAP(X)                                                                                            \
    X(F16, f16, 2)                                                                                                     \
    X(BF16, bf16, 2)                                                                                                   \
    X(F32, f32, 4)                                                                                                     \
    X(F64, f64, 8)                                                                                                     \
    X(I8, i8, 1)                                                                                                       \
    X(U8, u8, 1)                                                                                                       \
    X(I32, i32, 4)                                                                                                     \
    X(U32, u32, 4)                                                                                                     \
    X(I64, i64, 8)                                                                                                     \
    X(U64, u64, 8)                                                                                                     \
    X(F8E4M3, f8e4m3, 1)                                                                                               \
    X(F8E5M2, f8e5m2, 1)

typedef enum gantry_dtype {
#define GANTRY_X(name, text, bytes) GANTRY_##name,
    GANTRY_DTYPE_MAP(GANTRY_X)
#undef GANTRY_X
        GANTRY_DTYPE_COUNT
} gantry_dtype;

GANTRY_API const char *gantry_dtype_name(gantry_dtype dtype); /* "f32"; NULL if there is none */
GANTRY_API size_t gantry_dtype_size(gantry_dtype dtype);      /* bytes per element; 0 if there is none */

/**
 * The access of a node to a region. `WRITE` promises that every byte of the region is overwritten: old contents are not
 * brought along. A partial or conditional writer uses `READWRITE`. A reduction adds to what it is given.
 */
typedef enum gantry_access {
    GANTRY_READ = 1,
    GANTRY_WRITE = 2,
    GANTRY_READWRITE = 3,
    GANTRY_SUM = 4,
    GANTRY_MIN = 5,
    GANTRY_MAX = 6,
    GANTRY_PROD = 7
} gantry_access;

GANTRY_API const char *gantry_access_name(gantry_access access); /* "read", "sum", ...; NULL if there is none */

enum { GANTRY_TILE_AXES = 4 }; /* the most axes of an array that is cut into tiles */

/** Where a tile lies along one axis of its array. */
typedef struct gantry_axis {
    int64_t first;         /* its first index in the whole array, halo included */
    int32_t before, after; /* how many of its indices are halo, at either end */
} gantry_axis;

/** One argument of a launch, in the order of the manifest (or of the node's accesses where there is no manifest). */
typedef struct gantry_arg {
    const char *name; /* of the manifest, or of the buffer */
    gantry_dtype dtype;
    gantry_access access;    /* 0 for a scalar */
    int32_t rank;            /* dimensions of the buffer; 0 for a scalar */
    const int64_t *shape;    /* of the whole buffer; of this tile where the buffer is tiled */
    int64_t first_row, rows; /* the region handed over, halo included; rows of axis 0 (of the tile: 0 and its rows) */
    int64_t own_first, own_rows;    /* the region without its halo, in rows of the buffer */
    int64_t row_bytes;              /* bytes of one row, that is of everything below axis 0 */
    void *data;                     /* first byte of `first_row`; contiguous. NULL while shapes are checked */
    int64_t tile[2];                /* index of the tile along the first two axes (0 where there is one), or -1, -1 */
    double number;                  /* a scalar's value */
    int64_t integer;                /* the same, with every digit, where it is a whole number of 64 bits; of one from
                                       2^63 on the bits of the uint64_t; else 0 */
    int64_t count;                  /* 1; for a list of tiles their number, which may be 0 */
    const struct gantry_arg *items; /* `count` entries, one a tile, for a list of tiles; else NULL */
    const int64_t *whole;           /* of a tile: the shape of the whole array, `rank` extents; else NULL */
    gantry_axis axis[GANTRY_TILE_AXES]; /* of a tile: where it lies, `rank` entries; else 0 */
} gantry_arg;

struct gantry_launch;
/** Items [first, last) of the work of a launch on the CPU, see gantry_launch_cut. */
typedef gantry_status (*gantry_piece_fn)(const struct gantry_launch *launch, void *data, int64_t first, int64_t last);

/** The argument of a kernel function. Begins with its size, so that fields can be added. Valid during the call. */
typedef struct gantry_launch {
    size_t struct_size;
    void *user;             /* the pointer given with the function */
    const char *node;       /* id of the node, for messages */
    int64_t iteration;      /* `it` of the repeat around the node, else 0. With repeats in one another it counts on:
                               how often the node has run before in this start */
    int32_t device;         /* index of the device in the machine */
    int32_t device_ordinal; /* the back end's own number of it (the CUDA ordinal); -1 on the CPU */
    void *stream;           /* CUDA: the stream to queue work on. CPU: NULL, the function does the work itself */
    int32_t args;           /* number of entries of `arg` */
    const gantry_arg *arg;  /* gantry_launch_arg steps through it in programs compiled with another version, too */
    size_t arg_size;        /* how far apart they are: sizeof(gantry_arg) in the library that is loaded */
    void *scratch;          /* device memory of scratch_bytes, aligned to 256, contents undefined; NULL if 0 */
    uint64_t scratch_bytes;
    int32_t *status; /* device memory: a kernel stores non-zero here to report failure (potrf: the pivot) */
    void *handle;    /* what the kernel's open() made for this device; NULL without open() */
    /* CPU: what gantry_launch_cut calls, which is how a kernel comes to the other threads of its device; NULL: it has
     * no other */
    gantry_status (*cut)(const struct gantry_launch *launch, int64_t items, int64_t grain, gantry_piece_fn piece,
                         void *data);
    void *team; /* of `cut` */
} gantry_launch;

/** Entry i of `arg`, and item i of an argument that is a list. */
static inline const gantry_arg *gantry_launch_arg(const gantry_launch *launch, int32_t i)
{
    return (const gantry_arg *)(const void *)((const char *)launch->arg + (size_t)i * launch->arg_size);
}
static inline const gantry_arg *gantry_launch_item(const gantry_launch *launch, const gantry_arg *arg, int64_t i)
{
    return (const gantry_arg *)(const void *)((const char *)arg->items + (size_t)i * launch->arg_size);
}

/**
 * Carries out the work of a launch by all threads of its CPU device (`threads` of the machine file or of the run): it
 * is `items` items, numbered from 0, and piece() is called for ranges that together are all of them, by several threads
 * at once. Returns when all have ended: GANTRY_OK, or the status of the lowest range that failed. A kernel that does
 * not call it computes on one thread. Ranges begin at multiples of `grain` (at least 1), which are about as many items
 * as take 30 microseconds; where there are no more than that, where the device has one thread, and within a piece, one
 * call has all. So the bits are the same whatever the number of threads if no item's result depends on the range in
 * which it is computed, and no two items write the same bytes.
 */
static inline gantry_status gantry_launch_cut(const gantry_launch *launch, int64_t items, int64_t grain,
                                              gantry_piece_fn piece, void *data)
{
    if (items <= 0)
        return GANTRY_OK;
    if (launch->struct_size > offsetof(gantry_launch, team) && launch->cut && items > grain)
        return launch->cut(launch, items, grain, piece, data);
    return piece(launch, data, 0, items);
}

/**
 * A kernel. On the CPU it does the work and returns. For CUDA it queues work on `stream`, whose context is current, and
 * never waits: it is called once where a captured graph is replayed (again when bindings or scalars have changed), at
 * every start where streams are. Anything but GANTRY_OK ends the run with GANTRY_E_KERNEL and the node's id.
 */
typedef gantry_status (*gantry_kernel_fn)(const gantry_launch *launch);

#define GANTRY_DTYPE_BIT(dtype)   (1u << (dtype))
#define GANTRY_ACCESS_BIT(access) (1u << (access))

enum { GANTRY_FACTOR = 2 }; /* `scalar` of a gantry_kernel_arg */

/** One argument in a manifest. */
typedef struct gantry_kernel_arg {
    const char *name;
    int32_t scalar;   /* 1: a number; GANTRY_FACTOR: one that elements are multiplied by or the like, on whose value the
                         time does not depend; 0: a region of a buffer */
    int32_t optional; /* need not be given: then a scalar is `fallback`, and of a region access and data are 0 */
    double fallback;
    gantry_access access; /* the default; 0 for scalars */
    uint32_t accesses;    /* GANTRY_ACCESS_BITs of all allowed accesses; 0: only the default */
    uint32_t dtypes;      /* GANTRY_DTYPE_BITs of all allowed element types; 0: all but f8e4m3 and f8e5m2 */
    char same;            /* regions with the same letter have the same dtype, and a scalar with the letter is converted
                             to it: where that is an integer dtype, numbers that it cannot hold are errors. 0: free */
    int32_t list;         /* 1: takes a list of tiles as well as one region */
    const char *summary;
} gantry_kernel_arg;

enum {
    GANTRY_KERNEL_VARIADIC = 1,     /* further regions may be given by `reads` and `writes` */
    GANTRY_KERNEL_ORDER_VARIES = 2, /* results may differ in the last bits from launch to launch */
    GANTRY_KERNEL_NO_GPU = 4,       /* has no CUDA version and never will */
    GANTRY_KERNEL_NO_CPU = 8,       /* has no host version */
    GANTRY_KERNEL_PURE = 16,        /* what it writes follows from its arguments, to the bit, and it does nothing else:
                                       it may be called again for rows that had to leave, and on several devices (the
                                       library's own are) */
    GANTRY_KERNEL_RESIDENT = 32     /* its CUDA C++ source may be compiled into resident kernels (replay `device`), and
                                       keeps to the rules of docs/graph-format.md for that */
};

/**
 * The manifest of a kernel: everything that building, checking, costing and placing need to know, and no code but the
 * host version. `flops`, `bytes` and `scratch` are expressions (docs/graph-format.md) over the arguments:
 * `x.rows` (region, with halo), `x.size` (elements of the region), `x.bytes`, `x.shape0` ... (whole buffer), `x.last0`
 * ... (the same from the last axis on), `x.count`, `x.first_row`, `x.own_first` and `x.own_rows` as in gantry_arg, and
 * a scalar's name.
 *
 *     static const gantry_kernel clip = { .struct_size = sizeof clip, .name = "clip", GANTRY_KERNEL_ARGS(clip_args),
 *                                         .flops = "x.size", .host = clip_on_host };
 */
typedef struct gantry_kernel {
    size_t struct_size;
    const char *name;
    const char
        *summary; /* behind "; status: " is what its status word means; errors tell it, with numbers for "{x.rows}" */
    const gantry_kernel_arg *arg;
    size_t arg_size; /* sizeof(gantry_kernel_arg), where there are arguments: how far apart they are */
    int32_t args;    /* number of entries of `arg` */
    uint32_t flags;
    const char *flops, *bytes; /* NULL: 0 flops; bytes of all regions, twice those of readwrite */
    const char *scratch;       /* bytes; NULL: none */
    gantry_kernel_fn host;     /* NULL with GANTRY_KERNEL_NO_CPU */
    /** Optional. Checks shapes and values with every `data` NULL; on failure writes one line to `text`. */
    gantry_status (*check)(const gantry_launch *launch, char *text, size_t size);
    /** Optional. A handle per device (for libraries that need one); closed when the run is freed. */
    gantry_status (*open)(void **handle, int32_t device_ordinal);
    void (*close)(void *handle);
    /** Optional. What it computes, as formulas of a map or a reduce node over all of its arguments, of which none is
     * optional: "y = a * x + y", "out = sum(x * y)". Where the regions of a node fit these formulas as NumPy broadcasts
     * arrays, adjoints (gantry_graph_differentiate) and the cuts of strategies follow from them. Both say the same up
     * to rounding; of the library's own, those of maps to the bit for real elements. */
    const char *formula;
} gantry_kernel;
/** The fields `arg`, `arg_size` and `args` for a table of arguments, in an initialiser by name. */
#define GANTRY_KERNEL_ARGS(table)                                                                                      \
    .arg = (table), .arg_size = sizeof *(table), .args = (int32_t)(sizeof(table) / sizeof *(table))

/** Number of kernels of the library and the i-th of them by name; NULL past the last. */
GANTRY_API size_t gantry_kernel_count(void);
GANTRY_API const gantry_kernel *gantry_kernel_at(size_t i);
/** NULL if the library has none of that name. */
GANTRY_API const gantry_kernel *gantry_kernel_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_KERNEL_H */
