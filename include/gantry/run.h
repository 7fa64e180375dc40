/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/run.h
 * @brief Carrying a schedule out, again and again.
 *
 * Between gantry_run_new and gantry_run_free nothing is allocated or loaded in flight. An input is bound once and read
 * at every start; an output may be bound, else the run keeps it and gantry_run_output shows it.
 *
 * A schedule with phases (schedule.h) is run like any other: a thread of the run starts phase after phase, looks at
 * `until` between them, and hands over through host memory, which is allocated when the run is made.
 *
 * Starts of a schedule made with objective "period" overlap, `in_flight` of them. To stream frames: bind input (and
 * output) n, start n, then wait for start n - in_flight + 1 and take its outputs, while the others go on:
 *
 *     for (n = 0; n < frames; n++) {
 *         gantry_run_bind(run, x, frame[n], bytes, &err);
 *         gantry_run_start(run, &ticket[n], &err);
 *         if (n + 1 >= in_flight) {
 *             gantry_run_wait(run, ticket[n + 1 - in_flight], &err);
 *             gantry_run_output(run, y, &result, &bytes, &err);
 *         }
 *     }
 */
#ifndef GANTRY_RUN_H
#define GANTRY_RUN_H

#include <gantry/files.h>
#include <gantry/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gantry_run gantry_run;

/** Processes that a launcher of MPI (mpirun of MPICH or Open MPI) started together, this one among them. */
typedef struct gantry_network gantry_network;
/** Joins the others; once a process. `*network` is NULL, and that is no error, where no launcher started this process,
 *  or it is alone. E_DEVICE: there is no module for the launcher's MPI (gantry-mpi-mpich.so, gantry-mpi-openmpi.so).
 *  E_UNSUPPORTED: the program has begun MPI by itself, for one thread. */
GANTRY_MUST_USE gantry_status gantry_network_open(gantry_network **network, gantry_error *err);
/** The same for a program that has begun MPI by itself and goes on with messages of its own: its processes in a
 *  communicator of it become the network, rank r of it rank r. `comm` is the address of an MPI_Comm, as that is an int
 * in MPICH and a pointer in Open MPI, and an address in both:
 *
 *      MPI_Comm half;
 *      MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
 *      gantry_network_from_mpi(&network, &half, &err);
 *
 *  All processes of the communicator make this call, and no other. It is duplicated: no message of the program meets
 * one of the network, and the program may free its own at once. gantry_network_free leaves MPI as it is; it comes
 * before MPI_Finalize. A process is in one network at a time. `*network` is NULL, and that is no error, where the
 * process is alone in it. E_INVALID: MPI was not begun, or is over; `*comm` is MPI_COMM_NULL; the process is in a
 * network. E_UNSUPPORTED: MPI was begun for less than MPI_THREAD_MULTIPLE, so that messages of both would meet, or is
 * neither MPICH nor Open MPI. E_DEVICE: there is no module for it. */
GANTRY_MUST_USE gantry_status gantry_network_from_mpi(gantry_network **network, const void *comm, gantry_error *err);
/** The machine that all processes have together. Each gives what it has itself, such as gantry_machine_detect says or
 *  gantry_machine_recall knows, of one rank; all call it, before the first run, and get the same bytes. Processes of
 * one computer that see the same devices share them out (gantry_machine_spread): where it has no GPU, and fewer devices
 *  than processes, it is a virtual machine with one for each. Several computers are joined: by `link` (NULL: none),
 *  where that has gbs, else by what `network` of all of their machines says, else by what messages take that are sent
 *  now, by pairs and all together, rounded to one of twelve steps of a power of ten. `network` NULL: there is
 *  one process, and the machine is what it gives. E_INVALID: processes of a computer do not follow each other, or are
 *  more than it has GPUs where there are several computers; runs were made. E_DEVICE: another process has given
 *  up, or is lost. */
GANTRY_MUST_USE gantry_status gantry_network_machine(gantry_network *network, gantry_machine **machine,
                                                     const gantry_machine *here, const gantry_join_options *link,
                                                     gantry_error *err);
/** Of NULL: rank 0 of 1. */
GANTRY_API int32_t gantry_network_rank(const gantry_network *network);
GANTRY_API int32_t gantry_network_ranks(const gantry_network *network);
/** 1: all processes have made a run of the same schedule, or have learnt that they cannot. */
GANTRY_API int gantry_network_has_begun(const gantry_network *network);
/** This process will make no run, since something failed. All processes come to know it, and none makes one. 1: this
 *  is the process that should say what failed; 0: another one does. */
GANTRY_API int gantry_network_give_up(gantry_network *network);
/** Waits until the launcher has read what this process has written to standard output and standard error, for 5 s at
 *  most: MPICH's throws away what it has not read when a process ends all, and with it the reason. What stdio keeps is
 *  not written by this call (fflush). Where they are no pipes it does nothing. */
GANTRY_API void gantry_network_flush(void);
/** Ends all processes, this one too, unless `network` is NULL; after a gantry_network_flush. */
GANTRY_API void gantry_network_abort(gantry_network *network, int code);
/** This process has done all that others may wait for, with its runs still there or not: returns when all have.
 *  E_DEVICE: a rank is lost before that; end all (gantry_network_abort). Then all call gantry_network_free at once:
 *  where another process has not done so after the time that a silent one is allowed, this one ends all, with code 6.
 *  Without gantry_network_leave, gantry_network_free waits for the others for ever. Where one of them writes for long
 *  once all have done the rest, all call it again behind that: heartbeats go on meanwhile. NULL, or before a run is
 * made: nothing to wait for. */
GANTRY_MUST_USE gantry_status gantry_network_leave(gantry_network *network, gantry_error *err);
/** Leaves. All processes call it, when their runs are freed. */
GANTRY_API void gantry_network_free(gantry_network *network);
/** The progress of a run, for gantry_run_options.progress. */
typedef struct gantry_run_progress {
    size_t struct_size;          /* the library's */
    uint64_t started, completed; /* starts: made, and ended well */
    /* Of loops that are not unrolled (phases), in the start at work: iterations carried out, and how many there are at
     * most; `most` 0: there are no such loops. */
    uint64_t iterations, most;
    double watched; /* the element that `until` names, when it was looked at last; NaN: never, or there is none */
    const char *at; /* of a run with a network: what this process is at, such as an op and its device; until the call
                       returns. NULL: that is not known */
} gantry_run_progress;
/** Called by the thread that waits for a start, or in gantry_run_start for what an input is fed with, ten times a
 * second at most, and never once that has returned. It must not use the run, but for gantry_run_cancel. Not 0: the same
 * as a call of that. */
typedef int (*gantry_run_progress_fn)(void *user, const gantry_run_progress *progress);

/** Hears what a compiler of users' code said, every byte of it: `length` of them with a 0 behind. Called by the thread
 * that makes the run, once for each file for which a compiler said something, whether it compiled or not. */
typedef void (*gantry_compiler_output_fn)(void *user, const char *text, size_t length);

typedef struct gantry_run_options {
    size_t struct_size;
    const char *backend;  /* "cuda", "host", "sim", "auto"; NULL: auto */
    int32_t check;        /* 1: checking mode: one op at a time in a random legal order, guarded memory, poison;
                             functions are called two to four times a node */
    int32_t allow_code;   /* 1: kernels that name code may be compiled and loaded */
    uint64_t seed;        /* of the order in checking mode */
    double deadline_us;   /* 0: none beyond the watchdog's; at least 0 */
    int32_t record_trace; /* 1: times per op, for gantry_run_trace, gantry_run_sample and gantry_run_rebalance */
    int32_t apart;        /* 1: GPUs compute one op after the other, in the order of the schedule, without batches: what
                             is recorded is then what ops take alone. For measuring; other back ends ignore it */
    gantry_run_progress_fn progress; /* NULL: none */
    void *user;                      /* of `progress` and `compiler_output` */
    double timeout_us; /* a start in which nothing ends for so long is given up (E_TIMEOUT), whatever it is at; at least
                          0. 0: 10 s, or 20 times what was predicted, and only ops on GPUs and ops that wait for others
                          are watched, while functions on the host may take as long as they like */
    gantry_network *network; /* NULL: this process carries everything out. Else its part, by the rank that the machine
                                gives memories: all processes make the run, of the same schedule (E_INVALID: it is not),
                                bind and start alike. Inputs are those of rank 0, and outputs are there, but for
                                `inputs_key` and `outputs_apart`. A start
                                that fails, is given up or is cancelled leaves others waiting: whoever it fails for
                                ends all (gantry_network_abort). A rank of which nothing was heard for `timeout_us`
                                (0: 10 s) is lost: E_DEVICE, to one of the others */
    gantry_compiler_output_fn compiler_output; /* NULL: an error has as much as fits into its one line */
    const char *checkpoints; /* NULL: none. Else the folder that gantry_run_checkpoint is called with, before the start
                                behind each `checkpoint_every`-th, and, in loops that are not unrolled (phases), after
                                that many iterations instead, as soon as the run comes between two starts of a phase */
    uint64_t checkpoint_every; /* at least 1, with `checkpoints` */
    int32_t threads; /* that each CPU device computes with, at most 1024; 0: as many as the machine says, and where it
                        says nothing the cores that this process may use, divided among the CPU devices of the run. What
                        is computed has the same bits whatever the number */
    /* With a network. inputs_key: 0: inputs, and what states and constants begin with, are those of rank 0, which sends
     * them to the others. Else a number that stands for all contents that will be bound, such as 1, or a hash of files:
     * where all processes give the same, each reads what it needs from what it has bound itself, so that nothing goes
     * over the network; where they do not, they are those of rank 0. Contents that are an init with a file are, too.
     * outputs_apart: 1: outputs of 64 KiB and more stay where they are computed, until gantry_run_collect */
    int32_t outputs_apart;
    uint64_t inputs_key;
} gantry_run_options;
#define GANTRY_RUN_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(gantry_run_options), NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0                \
    }

/** Builds everything that starts need. The schedule must have its graph (made from one, or attached). */
GANTRY_MUST_USE gantry_status gantry_run_new(gantry_run **run, gantry_schedule *schedule,
                                             const gantry_run_options *options, gantry_error *err);
/** Waits for what is running, then frees. Does nothing where the run may not be used: in a child of the process that
 * made it, and while another thread is in a function with it. */
GANTRY_API void gantry_run_free(gantry_run *run);

/** Binds host memory (C order, whole array, `bytes` exactly the buffer's): what an input, state or constant begins with
 *  to gantry_run_bind, which only reads it, and where the result of an output goes to gantry_run_bind_output. A buffer
 *  that is an input and an output has both.
 *  Borrowed until it is bound to something else and the last start made before that has been waited for, or the run is
 *  freed.
 *  Inputs and outputs may be bound while starts are in flight: it is the starts to come that have them, each those that
 *  are bound when it is made. External buffers are bound to memory of their device (CUDA: a device pointer from
 *  cudaMalloc or the like), while idle; that it is such memory is checked. A start waits for those
 * in flight that write to an array that it reads or writes, or read one that it writes; so starts that are to overlap
 * need arrays of their own. States and constants only while idle. */
GANTRY_MUST_USE gantry_status gantry_run_bind(gantry_run *run, gantry_buffer buffer, const void *host, uint64_t bytes,
                                              gantry_error *err);
GANTRY_MUST_USE gantry_status gantry_run_bind_output(gantry_run *run, gantry_buffer buffer, void *host, uint64_t bytes,
                                                     gantry_error *err);
/** Reads a .npy file (dtype and shape must match) or a raw file into memory of the run and binds that. A path that ends
 * in .jpg, .jpeg or .png is one JPEG or PNG file, or a pattern with * ? [...] of several, by name: for a buffer of u8,
 * [image, height, width, channel] with 1 or 3 channels; E_IO for the first that has another size, is damaged, or is a
 * PNG file with 16 bits a channel or pixels that are not opaque, E_UNSUPPORTED without the module gantry-jpeg.so or
 * gantry-png.so. */
GANTRY_MUST_USE gantry_status gantry_run_bind_file(gantry_run *run, gantry_buffer buffer, const char *path,
                                                   gantry_error *err);

/* ---- an input for each start ---- */

/** Fills array `number` (0, 1, ...) of a buffer, `bytes` in C order, at `to`. Called by a thread of the run, one call
 *  after the other, ahead of the start that reads the array. A status that is not GANTRY_OK, which may say more in
 *  *err, is returned by that start, and by those behind it; nothing is filled any more. */
typedef gantry_status (*gantry_feed_fn)(void *user, uint64_t number, void *to, uint64_t bytes, gantry_error *err);
/** Each start to come reads the next array of an input or a constant. `fill` is called from now on, until so many
 * arrays wait for their starts as the run has room for: two, beside those that starts in flight read; that is all the
 * memory there is for them. A start for which its array is not ready waits for it; one that cannot be made takes none.
 * Each buffer that is fed has a thread of its own. Binding the buffer to something else, or gantry_run_free, ends it,
 * when the call at work has returned. gantry_run_take_over hands it over: numbers go on. While idle. Inputs in host
 * memory only. Back end "sim" calls nothing. An input is uploaded by the start that reads it. A constant lies where
 *  devices read it when its start begins: on GPUs its next array comes to memory of its own there beside the start
 *  before (`landing_bytes` of gantry_run_info), where that has room and starts do not overlap; else it is put when the
 * start before has ended. A constant takes one process. */
GANTRY_MUST_USE gantry_status gantry_run_feed(gantry_run *run, gantry_buffer buffer, gantry_feed_fn fill, void *user,
                                              gantry_error *err);
/** Where the next start finds its array when files have no more. */
typedef enum gantry_feed {
    GANTRY_FEED_AUTO,  /**< in the first one, as CYCLE; but JPEG and PNG files are one array, as gantry_run_bind_file
                          reads them */
    GANTRY_FEED_CYCLE, /**< in the first one */
    GANTRY_FEED_ONCE   /**< nowhere: it fails, E_INVALID */
} gantry_feed;
/** The same from files, by several threads at once, a large array in parts. Eight arrays wait for their starts, fewer
 * where these are more than 32 MiB, but two. A pattern with * ? [...] means files by name, each with one array of the
 * buffer. A .npy file with one more axis in front, of any length, has so many arrays; of several files all are such, or
 * none. JPEG and PNG files are taken as many at a time as an array has images ([image, height, width, channel]); E_IO
 * if one is left. Sizes and types of .npy and raw files are looked at here, what images are only when they are read.
 * One file with one array, and as many images as an array has, are bound as gantry_run_bind_file does, whatever class
 * the buffer has.
 *  `*arrays`: how many there are; 0: bound. It may be NULL. */
GANTRY_MUST_USE gantry_status gantry_run_feed_files(gantry_run *run, gantry_buffer buffer, const char *pattern,
                                                    gantry_feed order, uint64_t *arrays, gantry_error *err);

/** Changes a dynamic scalar. Only while idle. E_INVALID for a number that its type cannot hold, such as a fraction
 * where an integer is wanted: the scalar stays as it was. */
GANTRY_MUST_USE gantry_status gantry_run_set_scalar(gantry_run *run, gantry_node node, const char *name, double value,
                                                    gantry_error *err);

/** Asynchronous: returns a ticket (`ticket` may be NULL) at once; blocks only at the schedule's in-flight limit (at one
 * start on back ends that do not let them overlap), and for arrays in use, see gantry_run_bind. Returns an earlier
 * failure. */
GANTRY_MUST_USE gantry_status gantry_run_start(gantry_run *run, uint64_t *ticket, gantry_error *err);
/** The same in the order of a stream of the caller (CUDA: a CUstream or cudaStream_t; NULL: the default stream, with
 * the context of a GPU of the schedule current): the start begins when what is on the stream has ended, and what the
 * caller puts on the stream next begins when the start has ended, so that nobody waits for it. External buffers
 *  (gantry_buffer_external) and outputs bound to memory of the caller are complete then; an output that is tiled, or
 * not bound, only after gantry_run_wait, which must be called for a start's ticket, or a later one, as ever. The time
 * that the stream takes before counts towards the watchdog's. E_UNSUPPORTED: a back end without streams, or phases. */
GANTRY_MUST_USE gantry_status gantry_run_start_on(gantry_run *run, void *stream, uint64_t *ticket, gantry_error *err);
/** When it returns, outputs of that start are readable and bound inputs reusable. The first failure, with the node. */
GANTRY_MUST_USE gantry_status gantry_run_wait(gantry_run *run, uint64_t ticket, gantry_error *err);

/** So many starts, one after the other, and waits for the last: nothing is bound anew in between, and outputs are those
 *  of the last. Devices that carry starts out by themselves (replay "device") go from one to the next without the host;
 *  then last_us of the info is the mean, and a start that fails is told when all have ended. With replay "auto" some of
 *  many starts are led by the host and some by the devices, if these can: all that follow go the faster way (`trial` of
 *  gantry_run_info). */
GANTRY_MUST_USE gantry_status gantry_run_repeat(gantry_run *run, uint64_t starts, gantry_error *err);

/**
 * Asks the run to stop. May be called at any time before gantry_run_free, by any thread, also while another one is in a
 * function with the run, and by a signal handler: it sets a flag and does nothing else. NULL is allowed.
 *
 * What is at work is carried out, and nothing is begun after it: on the back end `host` every device ends the op that
 * it is at; on GPUs ops that were given to them before end, so a start that is one launch of a graph (replay "graph",
 * "device") ends as a whole, while functions of the program and what is copied by the host are left out; a schedule
 * with phases ends before the next start of one. Starts that did not come to their end fail with E_CANCELED, to whoever
 * waits for them; where all did, or none was in flight, the next gantry_run_start does. That it was returned ends the
 * cancellation: the run can be started again, or freed. After a start that was cut states begin anew from what they are
 * bound to. gantry_run_info says how many starts are complete. Outputs that a start had completed before it was
 * cancelled are there (gantry_run_output, gantry_run_save) once it has been waited for; for others these return
 * E_CANCELED, and their memory holds anything. On GPUs, and of schedules with phases, a start that was cancelled has
 * completed none. With a network (gantry_run_options) only this process stops, and the others wait for it in vain: end
 * all by gantry_network_abort then.
 */
GANTRY_API void gantry_run_cancel(gantry_run *run);

/** The host memory of an output of the start that gantry_run_wait was last called for; borrowed until the next start.
 *  Later starts may be in flight, fewer than the schedule's limit: one more has the memory. `bytes` may be NULL. */
GANTRY_MUST_USE gantry_status gantry_run_output(gantry_run *run, gantry_buffer buffer, const void **host,
                                                uint64_t *bytes, gantry_error *err);
/** Writes an output, or a state as gantry_run_state reads it: .npy by that ending, else raw. The file appears when it
 * is complete. */
GANTRY_MUST_USE gantry_status gantry_run_save(gantry_run *run, gantry_buffer buffer, const char *path,
                                              gantry_error *err);
/** The same for outputs that appear together: the file is one more of `files`, and there when these are committed. */
GANTRY_MUST_USE gantry_status gantry_run_save_with(gantry_run *run, gantry_buffer buffer, gantry_files *files,
                                                   const char *path, gantry_error *err);
/** Copies what a state holds, as the starts before have left it, to `to`: `bytes` exactly the buffer's, in C order. It
 *  is fetched for this call only, so that starts take no longer for it, and outputs are not touched. Before the first
 *  start it is what the state begins with. While idle. With a network all processes call it, and rank 0 has it.
 *  E_INVALID: the buffer is no state, or a start has failed, so that states are those of the beginning. E_UNSUPPORTED:
 * a back end that executes nothing. */
GANTRY_MUST_USE gantry_status gantry_run_state(gantry_run *run, gantry_buffer buffer, void *to, uint64_t bytes,
                                               gantry_error *err);
/** Outputs that were left where they are computed (`outputs_apart` of gantry_run_options) go to rank 0: those of the
 *  start that was waited for. All processes call it, while idle, before rank 0 looks at such an output. Does nothing
 *  where nothing was left. E_DEVICE: a rank is lost. */
GANTRY_MUST_USE gantry_status gantry_run_collect(gantry_run *run, gantry_error *err);
/** xxh64 (seed 0) of the C-order bytes of an output. */
GANTRY_MUST_USE gantry_status gantry_run_hash(gantry_run *run, gantry_buffer buffer, uint64_t *hash, gantry_error *err);

/** The op that a thread carries out. The strings are those of the graph, the kernel (NULL: a function without one) and
 * the machine. */
typedef struct gantry_at_work {
    size_t struct_size;
    const char *node, *kernel, *device;
} gantry_at_work;
#define GANTRY_AT_WORK_INIT                                                                                            \
    {                                                                                                                  \
        sizeof(gantry_at_work), NULL, NULL, NULL                                                                       \
    }
/** 1: the calling thread is in the function of a node, which is this one; else 0. For handlers of signals, which may
 *  call it, so that a crash in a kernel of somebody else has a name: `gantry run` does. */
GANTRY_API int gantry_run_at_work(gantry_at_work *at_work);

typedef struct gantry_run_info {
    size_t struct_size;
    const char *backend, *replay;
    double predicted_us; /* makespan of the schedule */
    double last_us;      /* of the last start that was waited for, until its end was seen; sim: the predicted time */
    uint64_t starts;
    uint64_t iterations;       /* of loops that are not unrolled (phases): how many the last start carried out */
    int64_t formulas_compiled; /* kernels of formulas whose steps are compiled code: GANTRY_COMPILE_FORMULAS=1 */
    const char *formulas_why;  /* why others are not, although that asks for it; NULL: nothing went wrong. The run's */
    uint64_t completed;        /* starts that ended well, of this run */
    double fed_wait_us;        /* that starts have waited for arrays of inputs that are fed, all together */
    const char *trial; /* of replay "auto" where devices may carry starts out by themselves: what came of a trial
                          (gantry_run_repeat), or why there was none; NULL: there is nothing to try. The run's */
    double trial_host_us, trial_device_us; /* of a start, as it found them: led by the host, by the devices; 0: not
                                              known */
    uint64_t landing_bytes;  /* in memories of devices, beside the schedule's: there arrays of constants that are fed
                                come while the start before theirs goes on */
    const char *landing_why; /* why a constant that is fed is put between starts instead; NULL: none is. The run's */
} gantry_run_info;
#define GANTRY_RUN_INFO_INIT                                                                                           \
    {                                                                                                                  \
        sizeof(gantry_run_info), NULL, NULL, 0, 0, 0, 0, 0, NULL, 0, 0, NULL, 0, 0, 0, NULL                            \
    }
GANTRY_MUST_USE gantry_status gantry_run_get_info(const gantry_run *run, gantry_run_info *info, gantry_error *err);
/** The last start as a Chrome trace, next to the prediction. `*text` is yours. Needs record_trace. */
GANTRY_MUST_USE gantry_status gantry_run_trace(const gantry_run *run, char **text, size_t *length, gantry_error *err);

/* ---- checkpoints ---- */

/**
 * Writes what the next start needs of those before it into a folder of its own in `folder`, which is made if it is not
 * there: what states hold, and how many starts were complete. It appears when all is on the disk, and then all others
 * of this graph in `folder` but the last go. Nothing of it depends on the devices or processes that the run has.
 * Inputs, constants, scalars and external buffers are the caller's, and not in it. With a network all processes call
 * it, and rank 0 writes. While idle. E_IO: it cannot be written, and the one before it is still there; `folder` has
 * checkpoints that this run has not made and was not resumed from; or another process writes to it. E_INVALID: a start
 * has failed, so states are those of the beginning. docs/reliability.md has the format.
 */
GANTRY_MUST_USE gantry_status gantry_run_checkpoint(gantry_run *run, const char *folder, gantry_error *err);

typedef struct gantry_resumed {
    size_t struct_size;
    uint64_t number;       /* of the checkpoint, from 1 */
    uint64_t starts;       /* that were complete */
    uint64_t iterations;   /* of loops that are not unrolled, in the start that was at work; 0: between two starts */
    char passed_over[512]; /* the newest that is not intact, and why; "": the newest was taken */
} gantry_resumed;
#define GANTRY_RESUMED_INIT                                                                                            \
    {                                                                                                                  \
        sizeof(gantry_resumed), 0, 0, 0,                                                                               \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
/** Goes on from the newest checkpoint in `folder` that is intact, before the first start of a run of the same graph on
 *  whatever devices and processes: states hold what they held, and the first start is the one that was next, or goes on
 *  with the iterations that were left. Bind inputs as before; one that is fed goes on with the array of that start.
 * `info` may be NULL. E_IO: there is none that is intact. E_INVALID: it is of another graph, or of other params; or was
 * made amid iterations that this run does not begin with (other `unroll`). */
GANTRY_MUST_USE gantry_status gantry_run_resume(gantry_run *run, const char *folder, gantry_resumed *info,
                                                gantry_error *err);

/* ---- balance by what was measured ---- */

typedef struct gantry_rebalance {
    size_t struct_size;
    double now_us, then_us; /* predicted for a start at the speeds that were measured: as it is, and cut anew */
    double hand_over_us;    /* predicted: what persists, out of this run and into a new one, by host memory */
    uint64_t moved_bytes;   /* of states: rows that are in another memory then */
    uint64_t handed_bytes;  /* of states: all that goes through host memory */
    int32_t pays;           /* starts_left * (now_us - then_us) > hand_over_us: there is a new schedule */
    int32_t reserved;
} gantry_rebalance;
#define GANTRY_REBALANCE_INIT                                                                                          \
    {                                                                                                                  \
        sizeof(gantry_rebalance), 0, 0, 0, 0, 0, 0, 0                                                                  \
    }
/**
 * Cuts automatic splits anew by the times of the last start, which the run has recorded (record_trace), and schedules
 * the graph again with them. `*next` is yours, or NULL where that would not pay for the starts that are left. While
 * idle. The new schedule knows what was measured, and so does what is made from it in turn. `options` as for
 * gantry_schedule_new; `report` may be NULL.
 */
GANTRY_MUST_USE gantry_status gantry_run_rebalance(gantry_schedule **next, gantry_run *run, int64_t starts_left,
                                                   const gantry_schedule_options *options, gantry_rebalance *report,
                                                   gantry_error *err);
/** Before its first start, a run takes over what another run of the same graph is bound to, its scalars, and what its
 *  states hold. Memory that `from` owns goes to `run`: free `from` next. Both idle. */
GANTRY_MUST_USE gantry_status gantry_run_take_over(gantry_run *run, gantry_run *from, gantry_error *err);

/* ---- a machine that knows what was measured ---- */

/** Keeps the times of the last start for gantry_run_calibrated: of 32 starts at most, later ones change nothing. Needs
 *  record_trace and a back end that executes. While idle. */
GANTRY_MUST_USE gantry_status gantry_run_sample(gantry_run *run, gantry_error *err);
/** The schedule's machine with the times that kernels and copies took in the starts that were sampled, the first left
 *  out where there are more: medians by kernel, element type, kind of device and work; copies by route and size.
 *  Copies of other sizes keep their proportion to those. What others slowed down does not count: an op beside which
 *  its device did something else, a copy that had to share. `*machine` is yours. */
GANTRY_MUST_USE gantry_status gantry_run_calibrated(gantry_machine **machine, const gantry_run *run, gantry_error *err);

/** Things that starting the graph some times more would tell of the computer. */
typedef enum gantry_unmeasured {
    GANTRY_UNMEASURED_NOTHING, /**< nothing; or nothing can be kept; or it was done before, on as many devices; or
                                  starts call code on the host that is not the library's */
    GANTRY_UNMEASURED_SHARES, /**< how much of GPUs its kernels take: times of all of them are known, and the last start
                                 still took more than a twentieth less or more than predicted */
    GANTRY_UNMEASURED_TIMES   /**< kernels have no time for their very arguments on GPUs of the machine */
} gantry_unmeasured;

/** Finds what there is to learn for computers like `here`, the machine as detected, from starts that are sampled and
 * kept (gantry_run_keep): of a run with `apart` what its kernels take alone, then of one without how they share GPUs.
 */
GANTRY_MUST_USE gantry_status gantry_run_unmeasured(const gantry_run *run, const gantry_machine *here,
                                                    gantry_unmeasured *what, gantry_error *err);
/** Adds the times of kernels in the starts that were sampled, as gantry_run_calibrated finds them, to what the cache
 *  knows of computers like `here`, the machine as detected; at most 1024 for exact arguments stay, the newest. Of a run
 *  without `apart` it adds those that are not there, and the portions of GPUs that kernels took when they overlapped in
 *  the last of these starts. */
GANTRY_MUST_USE gantry_status gantry_run_keep(const gantry_run *run, const gantry_machine *here, gantry_error *err);

/** The i-th back end and one line on whether it can be used here and why not; NULL past the last. */
GANTRY_API const char *gantry_backend_name(size_t i);
GANTRY_API const char *gantry_backend_summary(size_t i);
/** 1: the i-th back end can be used on this computer, for some schedules; 0: it cannot. */
GANTRY_API int gantry_backend_usable(size_t i);
/** Describes the search of the i-th back end on this computer, a line for each thing: what it found, or why not.
 *  `*text` is yours; "" where there is nothing to look for. */
GANTRY_MUST_USE gantry_status gantry_backend_describe(size_t i, char **text, gantry_error *err);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_RUN_H */
