/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of several processes, by files: of a communicator ID.rank, of the n-th collective of a rank ID.rank.n, of the
 * n-th message ID.from-to.n. A file has its name once it is whole. `groups` has a line for each group: its rank, its
 * sends, its receives, its peers. */
#include "fake.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of a rank, and of a call. */
typedef struct presence {
    int pid, device, ranks;
} presence;
typedef struct header {
    what what;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    size_t count, bytes; /* bytes: that follow */
} header;

bool apart_can(void)
{
    return getenv("FAKE_NCCL_FOLDER") != NULL;
}

void apart_tell(const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/wrong", getenv("FAKE_NCCL_FOLDER"));
    FILE *file = fopen(path, "a");
    if (file) {
        fprintf(file, "%s\n", text);
        fclose(file);
    }
}

static void path_of(char path[PATH_MAX], const clique *q, const char *format, ...)
{
    va_list args;
    int length = snprintf(path, PATH_MAX, "%s/%llx.", getenv("FAKE_NCCL_FOLDER"), (unsigned long long)q->id);
    va_start(args, format);
    vsnprintf(path + length, (size_t)(PATH_MAX - length), format, args);
    va_end(args);
}

static void put(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    char aside[PATH_MAX + 8];
    snprintf(aside, sizeof aside, "%s.new", path);
    FILE *file = fopen(aside, "w");
    bool done = file && fwrite(head, 1, head_bytes, file) == head_bytes && fwrite(data, 1, bytes, file) == bytes;
    if (!file || fclose(file) || !done || rename(aside, path))
        fail_use("%s cannot be written: %s", path, strerror(errno));
}

/* False: it is not there. *data: what follows the head, of the caller. */
static bool get(const char *path, void *head, size_t head_bytes, char **data, size_t bytes)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool done = fread(head, 1, head_bytes, file) == head_bytes;
    if (done && data) {
        *data = malloc(bytes + 1);
        done = fread(*data, 1, bytes, file) == bytes && fgetc(file) == EOF;
    }
    fclose(file);
    if (!done)
        fail_use("%s has another size than its call: %zu bytes are wanted", path, bytes);
    return true;
}

/* ---- making ---- */

void apart_begin(clique *q)
{
    char path[PATH_MAX];
    for (int r = 0; r < q->ranks; r++) {
        if (q->comm[r]) {
            presence here = { (int)getpid(), q->comm[r]->device, q->ranks };
            path_of(path, q, "%d", r);
            put(path, &here, sizeof here, "", 0);
            continue;
        }
        q->ghost[r] = calloc(1, sizeof *q->ghost[r]);
        *q->ghost[r] = (struct ncclComm){ .clique = q, .rank = r, .device = -1 };
    }
}

/* Another process has come. NCCL refuses two ranks on one GPU; those of all processes are of one computer here. */
static ncclResult_t welcome(clique *q, int rank)
{
    char path[PATH_MAX];
    presence there;
    path_of(path, q, "%d", rank);
    if (!get(path, &there, sizeof there, NULL, 0))
        return ncclInProgress;
    if (there.ranks != q->ranks)
        fail_use("rank %d makes a communicator of %d ranks, others one of %d", rank, there.ranks, q->ranks);
    for (int r = 0; r < q->ranks; r++) {
        const struct ncclComm *other = q->comm[r] ? q->comm[r] : q->ghost[r];
        if (r != rank && other->device == there.device)
            return ncclInvalidUsage;
    }
    q->ghost[rank]->device = there.device;
    q->pid[rank] = there.pid;
    return ncclSuccess;
}

ncclResult_t apart_state(clique *q)
{
    ncclResult_t state = ncclSuccess;
    for (int r = 0; r < q->ranks; r++) {
        if (!q->ghost[r])
            continue;
        ncclResult_t one = !q->pid[r]                             ? welcome(q, r)
                           : kill(q->pid[r], 0) && errno == ESRCH ? ncclRemoteError
                                                                  : ncclSuccess;
        state = one == ncclSuccess ? state : one;
        if (state == ncclInvalidUsage || state == ncclRemoteError)
            return state;
    }
    return state;
}

/* ---- calls ---- */

static void path_of_call(char path[PATH_MAX], const clique *q, const call *c, int number, int rank)
{
    if (c->what < SEND)
        path_of(path, q, "%d.%d", rank, number);
    else
        path_of(path, q, "%d-%d.%d", c->what == SEND ? c->comm->rank : c->root,
                c->what == SEND ? c->root : c->comm->rank, number);
}

static bool is_apart(const clique *q, int rank)
{
    return q->ghost[rank] != NULL;
}

bool apart_leaves_out(job *j)
{
    const char *text = getenv("FAKE_NCCL_MUTANT");
    static int groups = 0;
    if (!text || strncmp(text, "skip:", 5) != 0 || !j->clique->comm[1])
        return false;
    groups++;
    return groups == atoi(text + 5);
}

/* Where the number of a collective is exchanged with the next one. */
static int numbered(int number, int rank)
{
    const char *text = getenv("FAKE_NCCL_MUTANT");
    if (!text || strncmp(text, "swap:", 5) != 0 || rank != 1)
        return number;
    int first = atoi(text + 5);
    return number == first ? first + 1 : number == first + 1 ? first : number;
}

/* Calls are numbered as they are carried out: a graph does so more than once. */
static void note_group(const job *j)
{
    char path[PATH_MAX];
    int ways[2] = { 0, 0 }, peers = 0;
    bool seen[RANKS] = { false };
    for (int i = 0; i < j->local; i++) {
        const call *c = &j->calls[i];
        if (c->what < SEND)
            continue;
        ways[c->what == RECV]++;
        peers += !seen[c->root];
        seen[c->root] = true;
    }
    snprintf(path, sizeof path, "%s/groups", getenv("FAKE_NCCL_FOLDER"));
    FILE *file = ways[0] + ways[1] ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%d %d %d %d\n", j->calls[0].comm->rank, ways[0], ways[1], peers);
        fclose(file);
    }
}

void apart_publish(job *j)
{
    char path[PATH_MAX];
    note_group(j);
    j->looks = 0;
    while (j->count > j->local)
        free(j->source[--j->count]);
    for (int i = 0; i < j->local; i++) {
        const call *c = &j->calls[i];
        ncclComm_t comm = c->comm;
        j->number[i] = c->what < SEND    ? numbered(comm->collectives++, comm->rank)
                       : c->what == SEND ? comm->sends[c->root]++
                                         : comm->receives[c->root]++;
        header head = { c->what, c->type, c->op, c->root, c->count, sent(c) };
        path_of_call(path, j->clique, c, j->number[i], comm->rank);
        if (c->what < SEND || (c->what == SEND && is_apart(j->clique, c->root)))
            put(path, &head, sizeof head, j->source[i], head.bytes);
    }
}

static bool is_there(const job *j, const call *c, int rank)
{
    char path[PATH_MAX];
    path_of_call(path, j->clique, c, j->number[c - j->calls], rank);
    return access(path, R_OK) == 0;
}

/* In so many looks, of some 0.1 ms: FAKE_NCCL_PATIENCE. */
static bool is_patient(job *j)
{
    const char *most = getenv("FAKE_NCCL_PATIENCE");
    return !most || j->looks++ < atoi(most);
}

bool apart_ready(job *j)
{
    bool there = true;
    for (int i = 0; i < j->local && there; i++) {
        const call *c = &j->calls[i];
        for (int r = 0; r < j->clique->ranks && there; r++)
            if (is_apart(j->clique, r) && (c->what < SEND || (c->what == RECV && c->root == r)))
                there = is_there(j, c, r);
    }
    if (!there && !is_patient(j))
        fail_use("another process does not come to a call: deadlock");
    if (!there)
        nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    return there;
}

/* The call of the other rank that belongs to this one. */
static void fetch(job *j, int i, int rank)
{
    char path[PATH_MAX], *data = NULL;
    header head;
    const call mine = j->calls[i];
    call other = mine;
    other.what = mine.what == RECV ? SEND : mine.what;
    other.root = mine.what == RECV ? mine.comm->rank : mine.root;
    other.comm = j->clique->ghost[rank];
    path_of_call(path, j->clique, &mine, j->number[i], rank);
    get(path, &head, sizeof head, &data, sent(&other));
    if (head.what != other.what || head.type != other.type || head.op != other.op || head.root != other.root ||
        head.count != other.count)
        fail_use("rank %d makes another call than rank %d as its number %d", rank, mine.comm->rank, j->number[i]);
    if (mine.what == RECV)
        unlink(path);
    j->calls = realloc(j->calls, (size_t)(j->count + 1) * sizeof *j->calls);
    j->source = realloc(j->source, (size_t)(j->count + 1) * sizeof *j->source);
    j->calls[j->count] = other;
    j->source[j->count++] = data;
}

void apart_fetch(job *j)
{
    const struct ncclComm *first = NULL; /* of this process: others make the same collectives */
    for (int i = 0; i < j->local; i++) {
        what kind = j->calls[i].what;
        first = kind < SEND && !first ? j->calls[i].comm : first;
        for (int r = 0; r < j->clique->ranks; r++)
            if (is_apart(j->clique, r) &&
                (kind < SEND ? j->calls[i].comm == first : kind == RECV && j->calls[i].root == r))
                fetch(j, i, r);
    }
}
