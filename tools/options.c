/* SPDX-License-Identifier: Apache-2.0 */
/* One table says what every option is called, takes and means; help and parsing both come from it. */
#include "options.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name)                offsetof(options, name)
#define PLAIN                      0, 0, 0, NULL
#define ONLY(command)              0, 0, 0, command
#define RANGE(fallback, low, high) fallback, low, high, NULL
static const option table[] = {
    { "param", "NAME=VALUE", "sets a param of the graph; may be repeated", LIST, FIELD(params), PLAIN },
    { "machine", "FILE", "the machine to schedule for (default: the graph's, else this computer)", TEXT, FIELD(machine),
      PLAIN },
    { "devices", "N|id:A,B",
      "the first N devices, or those named (a CPU beside GPUs takes nodes where it is); without a machine, N virtual "
      "devices of this CPU",
      TEXT, FIELD(devices), PLAIN },
    { "weak", "PARAM",
      "lets that param grow with the devices, or ranks: as given for one, twice that for two, and so on; n:3 where the "
      "work goes by its third power",
      TEXT, FIELD(weak), PLAIN },
    { "policy", "NAME", "how nodes are placed (default: the best of several, see --effort); the names are below", TEXT,
      FIELD(policy), PLAIN },
    { "effort", "0..9",
      "how hard to search: 0 one policy, or a few where it is poor, 1 all that fit the size, 2-9 search "
      "too (default 3)",
      NUMBER, FIELD(effort), RANGE(-1, 0, 9) },
    { "seed", "N", "for policies that draw lots, and for the order of --check", NUMBER, FIELD(seed),
      RANGE(0, 0, INT64_MAX) },
    { "optimal", "", "branch and bound: a proved optimum for small graphs (exact where the machine has no contention)",
      FLAG, FIELD(optimal), PLAIN },
    { "objective", "NAME",
      "what to minimise: makespan (default), period (starts overlap) or max_load (the busiest device; no collective "
      "nodes)",
      TEXT, FIELD(objective), PLAIN },
    { "in-flight", "N", "with --objective period: starts that may overlap (default: chosen)", NUMBER, FIELD(in_flight),
      RANGE(0, 1, 64) },
    { "unroll", "N", "loops unroll to N nodes at most; beyond, iterations are started again and again (default 200000)",
      NUMBER, FIELD(unroll), RANGE(0, 1, 200000) },
    { "phase", "N", "of a schedule whose loops are not unrolled: the phase that is drawn, counted from 0", NUMBER,
      FIELD(phase), RANGE(-1, 0, 1000000000) },
    { "max-memory", "MEM=SIZE,...", "use less of a memory than it has, e.g. gpu0=4GiB", TEXT, FIELD(max_memory),
      PLAIN },
    { "spill", "HOW", "what does not fit in memory: auto, copy (nothing is computed again) or off (refused)", TEXT,
      FIELD(spill), PLAIN },
    { "balance", "METHOD",
      "automatic splits: static, dynamic, memory or guided (default: what is predicted to be faster)", TEXT,
      FIELD(balance), PLAIN },
    { "replay", "MODE",
      "auto, stream, graph or device (GPUs carry starts out by themselves, where they can; auto tries that)", TEXT,
      FIELD(replay), PLAIN },
    { "max-nodes", "N", "draws a box for each of N nodes at most; of more, nodes of a family share one (default 100)",
      NUMBER, FIELD(max_nodes), RANGE(0, 1, 1000000) },
    { "node", "NODE~K", "draws what is at most K dependencies away from the node (default 1)", TEXT, FIELD(node),
      PLAIN },
    { "cluster", "HOW", "frames around what is on a device, or a family of nodes: device or family", TEXT,
      FIELD(cluster), PLAIN },
    { "explain", "NODE", "why the node is where it is", TEXT, FIELD(explain), PLAIN },
    { "move", "NODE=DEVICE", "what if the node were there; nodes that it is `with` go too; may be repeated", LIST,
      FIELD(moves), PLAIN },
    { "route", "FROM:TO=GBps=RATE,latency_us=US",
      "what if copies between these memories, such as gpu*:gpu*, had that rate, that latency, or both; may be repeated",
      LIST, FIELD(routes), PLAIN },
    { "resource", "NAME=GBps", "what if what copies share had that rate; may be repeated", LIST, FIELD(resources),
      PLAIN },
    { "measured", "TRACE", "twice: times of a run (its --trace) of the first schedule, then of the second", LIST,
      FIELD(measured), PLAIN },
    { "port", "N", "listens there, on the loopback address (default 0: any that is free)", NUMBER, FIELD(port),
      RANGE(0, 0, 65535) },
    { "out", "FILE", "(-o) writes here; - is standard output", TEXT, FIELD(out), PLAIN },
    { "output-schedule", "FILE", "(-o) writes the schedule as JSON; - is standard output", TEXT, FIELD(out), PLAIN },
    { "dot", "FILE", "draws for Graphviz; - is standard output", TEXT, FIELD(dot), PLAIN },
    { "svg", "FILE", "draws the timeline", TEXT, FIELD(svg), PLAIN },
    { "html", "FILE", "draws the timeline as a page", TEXT, FIELD(html), PLAIN },
    { "trace", "FILE", "writes a Chrome/Perfetto trace", TEXT, FIELD(trace), PLAIN },
    { "backend", "NAME", "auto, cuda, host or sim", TEXT, FIELD(backend), PLAIN },
    { "schedule", "FILE", "runs this schedule instead of making one", TEXT, FIELD(schedule), PLAIN },
    { "input", "BUFFER=FILE",
      "binds a .npy or raw file, JPEG or PNG files (a pattern), or arrays that starts read in turn (--feed); may be "
      "repeated",
      LIST, FIELD(inputs), PLAIN },
    { "feed", "cycle|once",
      "each start reads the next array of a pattern of .npy or raw files, or of a .npy file with one more axis in "
      "front, "
      "and goes around (cycle, default) or not; given, also of JPEG and PNG files, which are one array otherwise",
      TEXT, FIELD(feed), PLAIN },
    { "output", "BUFFER=FILE",
      "writes an output, or a state such as a weight that is trained: .npy, .csv, .txt, .json, .png, or .bin or .raw "
      "as "
      "bytes; - is text on standard output; may be repeated",
      LIST, FIELD(outputs), PLAIN },
    { "show", "BUFFER[=FILE.png]", "draws an output, a curve or a picture, here or into a file; may be repeated", LIST,
      FIELD(shows), PLAIN },
    { "watch", "BUFFER", "prints a small output, or state, after each start; may be repeated", LIST, FIELD(watched),
      PLAIN },
    { "iterations", "N",
      "starts; the time is the median after the first (default 1; 4 at least with --compare or --calibrate)", NUMBER,
      FIELD(iterations), RANGE(1, 1, 1000000000) },
    { "checkpoint", "N:FOLDER",
      "every N starts, or N iterations of a loop in phases, writes what the rest of the run needs into FOLDER", TEXT,
      FIELD(checkpoint), PLAIN },
    { "resume", "FOLDER",
      "goes on from the newest intact checkpoint there, on any devices; sums have the same bits on fewer with "
      "--strategy ordered=1",
      TEXT, FIELD(resume), PLAIN },
    { "processes", "N", "starts N ranks of this run by mpirun", NUMBER, FIELD(ranks_wanted), RANGE(0, 1, 4096) },
    { "on-loss", "HOW",
      "with --processes: stop (default), restart with as many ranks, or replan for one less, from the last checkpoint",
      TEXT, FIELD(on_loss), PLAIN },
    { "mpirun", "COMMAND", "with --processes: the program that starts ranks, and its options (default mpirun)", TEXT,
      FIELD(mpirun), PLAIN },
    { "steps", "N",
      "steps of the optimiser: starts, whose loss is printed (default 100); 0: nothing is run, the graph is written "
      "(--write-graph), scheduled and drawn",
      NUMBER, FIELD(steps), RANGE(100, 0, 1000000000) },
    { "evaluate", "N",
      "every N steps, and behind the last, prints the loss of the model on data that are held out, nothing being "
      "dropped; and its other outputs of one element",
      NUMBER, FIELD(evaluate), RANGE(0, 1, 1000000000) },
    { "evaluate-input", "NAME=FILE",
      "data for --evaluate, one array or several (as --input), of which the mean is printed; may be repeated", LIST,
      FIELD(evaluate_inputs), PLAIN },
    { "trials", "PARAM=A,B,...", "trains once for each value of a param of the model, side by side; a table of losses",
      TEXT, FIELD(trials), PLAIN },
    { "every", "K", "prints only every K-th line, and the last (default: of --watch all, of the loss about 20)", NUMBER,
      FIELD(every), RANGE(0, 1, 1000000000) },
    { "strategy", "S",
      "replicas, slices, stages, micro-batches, shards of a model (of \"train\"), and layers that a training computes "
      "again in place of keeping them, such as dp=2,micro=4,recompute=auto; auto: all are compared by prediction, and "
      "the best is taken",
      TEXT, FIELD(strategy), PLAIN },
    { "write-graph", "FILE",
      "writes the graph with its backward pass and optimiser, then trains (but with --steps 0); - is standard output",
      TEXT, FIELD(write_graph), PLAIN },
    { "check", "", "checking mode: guarded memory, poison, random legal order; compares with one device", FLAG,
      FIELD(check), PLAIN },
    { "check", "", "only looks: writes nothing, and names the files that differ", FLAG, FIELD(check), ONLY("fmt") },
    { "compare", "", "shows where the prediction was off, op by op, in the last of 4 starts or more", FLAG,
      FIELD(compare), PLAIN },
    { "profile", "", "shows where the time of the last start went, by device and link, and what limits it", FLAG,
      FIELD(profile), PLAIN },
    { "calibrate", "FILE", "writes the machine with the times that kernels and copies took; - is standard output", TEXT,
      FIELD(calibrate), PLAIN },
    { "nodes", "N", "size of the graph that is made", NUMBER, FIELD(nodes), RANGE(0, 1, 100000000) },
    { "bytes", "SIZE",
      "of the largest copy, of a frame, of each large argument of a kernel, e.g. 1MiB (default: as the bench has it)",
      SIZE, FIELD(bytes), RANGE(0, 4096, INT64_C(1) << 40) },
    { "shape", "NAME", "chain, wide, stencil, tree or random", TEXT, FIELD(shape), PLAIN },
    { "lanes", "N", "chains, or rows of a stencil, on each GPU (default 1)", NUMBER, FIELD(lanes), RANGE(1, 1, 1024) },
    { "series", "N", "starts that are measured as one, each behind the other (default 1)", NUMBER, FIELD(series),
      RANGE(1, 1, 1000000) },
    { "time-unit", "US", "microseconds for 1 of the file's unit of time (default: as usual for the format)", REAL,
      FIELD(time_unit), PLAIN },
    { "bandwidth", "GBS", "of the machine's links where the file counts bytes (default 1 GB/s)", REAL, FIELD(bandwidth),
      PLAIN },
    { "seconds", "N", "how long measuring may take, about (default 45)", REAL, FIELD(seconds), PLAIN },
    { "islands", "IxG", "of a cluster: islands of so many GPUs each, such as 8x8", TEXT, FIELD(islands), PLAIN },
    { "rails", "N", "of a cluster: network ports of an island, which its GPUs share (default: one for each GPU)",
      NUMBER, FIELD(rails), RANGE(0, 1, 4096) },
    { "nic", "GBS", "of a cluster: GB/s of each network port, a direction (default 50)", REAL, FIELD(nic), PLAIN },
    { "link", "LINK",
      "of joined machines: the network between two, each way, such as latency_us=2,GBps=12.5, then ports=host "
      "(default), "
      "shared or each (default: what their files say)",
      TEXT, FIELD(link), PLAIN },
    { "spread", "N", "deals the devices out to N processes, in order, as mpirun -n N does", NUMBER, FIELD(spread),
      RANGE(0, 1, 4096) },
    { "ranks", "", "proves also that the parts of all processes fit together, and shows them", FLAG, FIELD(ranks),
      PLAIN },
    { "ranks", "LIST", "numbers of computers like the machine, which its network joins, such as 1..8 or 1,2,4", TEXT,
      FIELD(rank_list), ONLY("scale") },
    { "root", "FOLDER", "looks for /sys and /proc there, for tests and for files of another computer", TEXT,
      FIELD(root), PLAIN },
    { "node-time", "NAME", "dot: the attribute of nodes that is their time", TEXT, FIELD(node_time), PLAIN },
    { "edge-cost", "NAME", "dot: the attribute of edges that is their cost", TEXT, FIELD(edge_cost), PLAIN },
    { "machine-out", "FILE", "writes the machine that the file means, as a machine file", TEXT, FIELD(machine_out),
      PLAIN },
    { "limits", "N",
      "the most nodes, parts and unrolled tasks that a graph may expand to; limits of accesses, dependencies and ops "
      "follow from it (default 10000000)",
      NUMBER, FIELD(limits), RANGE(0, 1, INT64_MAX) },
    { "allow-code", "", "lets the graph's own kernels be compiled and loaded", FLAG, FIELD(allow_code), PLAIN },
    { "no-fuse", "", "neighbouring maps stay nodes of their own", FLAG, FIELD(no_fuse), PLAIN },
    { "threads", "N",
      "threads that each CPU device computes with (default: as the machine file says, else the cores, shared out)",
      NUMBER, FIELD(threads), RANGE(0, 1, 1024) },
    { "timeout", "SECONDS",
      "gives up when nothing in a start ends for so long (default: 10, of functions on the host as long as they like)",
      REAL, FIELD(timeout), PLAIN },
    { "quiet", "", "(-q) prints errors only", FLAG, FIELD(quiet), PLAIN },
    { "verbose", "", "(-v) says on standard error what is being done, step by step", FLAG, FIELD(verbose), PLAIN },
    { "json", "", "prints one JSON object to standard output and nothing else", FLAG, FIELD(json), PLAIN },
    { "help", "", "shows this", FLAG, FIELD(help), PLAIN },
};
enum { OPTIONS = sizeof table / sizeof *table };

const option *option_at(size_t i)
{
    return i < OPTIONS ? &table[i] : NULL;
}

bool accepts(const command *c, const char *name)
{
    if (strcmp(name, "help") == 0)
        return true;
    size_t length = strlen(name);
    for (const char *at = c->accepts; (at = strstr(at, name)); at += length)
        if ((at == c->accepts || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0))
            return true;
    return false;
}

bool offers(const command *c, const option *p)
{
    if (!accepts(c, p->name))
        return false;
    for (size_t i = 0; i < OPTIONS; i++)
        if (table[i].command && strcmp(table[i].command, c->name) == 0 && strcmp(table[i].name, p->name) == 0)
            return &table[i] == p;
    return !p->command;
}

const option *find_option(const command *c, const char *name, size_t length)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (strlen(table[i].name) == length && strncmp(table[i].name, name, length) == 0 && offers(c, &table[i]))
            return &table[i];
    return NULL;
}

const char *nearest_option(const command *c, const char *name)
{
    const char *names[OPTIONS];
    size_t count = 0;
    for (size_t i = 0; i < OPTIONS; i++)
        if (offers(c, &table[i]))
            names[count++] = table[i].name;
    return gantry_nearest(name, names, count);
}

const char *near_miss(char *to, size_t size, const char *word, const char *const *names, size_t count)
{
    const char *near = gantry_nearest(word, names, count);
    *to = 0;
    if (near)
        snprintf(to, size, " (did you mean \"%s\"?)", near);
    return to;
}

const char *graphs_of(const command *c)
{
    bool graph = strncmp(c->arguments, "GRAPH", strlen("GRAPH")) == 0, model = strcmp(c->arguments, "MODEL") == 0;
    return graph ? "graphs" : model ? "graphs/models" : NULL;
}

void options_free(options *o)
{
    free((void *)o->positional.at);
    free((void *)o->params.at);
    free((void *)o->inputs.at);
    free((void *)o->outputs.at);
    free(o->data[0]);
    free(o->data[1]);
    free((void *)o->shows.at);
    free((void *)o->watched.at);
    free((void *)o->evaluate_inputs.at);
    free((void *)o->moves.at);
    free((void *)o->routes.at);
    free((void *)o->resources.at);
    free((void *)o->measured.at);
}
