/* SPDX-License-Identifier: Apache-2.0 */
/* Inside gantry doctor: what makes several GPUs of a computer scale badly, as far as it can be read off the system. A
 * check looks at one subject and adds a finding for each thing that it saw. */
#ifndef GANTRY_COMMAND_DOCTOR_H
#define GANTRY_COMMAND_DOCTOR_H

#include "command.h"

typedef enum finding_state {
    STATE_FINE,
    STATE_FOUND,  /* costs time; there is a remedy */
    STATE_UNKNOWN /* could not be looked at; the remedy says how to */
} finding_state;

typedef struct finding {
    finding_state state;
    const char *check;          /* its subject, a word or two */
    char *what, *seen, *remedy; /* what is so; by which file or call that is known; what to do, NULL where it is fine */
} finding;

enum { MOST_ABOVE = 16, ADDRESS = 13 }; /* bridges above a device; "0000:3b:00.0" and its end */

typedef struct pci_gpu {
    char address[ADDRESS];
    char above[MOST_ABOVE][ADDRESS]; /* bridges on the way to it, the root port first */
    int bridges;
    int node; /* NUMA; -1: not told */
} pci_gpu;

typedef struct doctor {
    const char *root; /* where "/sys/..." and "/proc/..." are looked for: "", or the folder of a test */
    const gantry_machine *machine;
    pci_gpu *gpu; /* on the bus */
    size_t gpus;
    finding *at;
    size_t count;
    bool failed; /* out of memory */
} doctor;

/* tree.c: files of the system */
enum { LINE = 256, PATH_ROOM = 512 };
/* The first line of a file without its end; false if there is none. */
bool read_line(const doctor *d, char line[LINE], const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The line that begins with `key`, behind it and the blanks that follow. */
bool read_entry(const doctor *d, char line[LINE], const char *path, const char *key);
/* At most `size` bytes from the beginning of a file. */
size_t read_bytes(const doctor *d, unsigned char *to, size_t size, const char *path);
/* The number in the first line of a file; `missing` if there is none. */
long read_number(const doctor *d, long missing, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Names in a folder that begin with `begin`, in order of the alphabet; free each and the list. */
size_t list_names(const doctor *d, char ***names, const char *path, const char *begin);
void free_names(char **names, size_t count);
/* True if number n is in a list of the system, "0-3,8,10-11". */
bool list_has(const char *list, long n);

/* doctor.c: the texts become the finding's; one that is NULL is memory that lacked, but for the remedy of a fine one.
 */
void add_finding(doctor *d, finding f);
char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* pci.c */
bool find_gpus(doctor *d);
void check_links(doctor *d);
/* acs.c */
void check_acs(doctor *d);
void check_iommu(doctor *d);
/* peers.c */
void check_peers(doctor *d);
/* numa.c */
void check_numa(doctor *d);
/* power.c */
void check_power(doctor *d);
void check_governors(doctor *d);
/* limits.c */
void check_memlock(doctor *d);
void check_shared_memory(doctor *d);
/* mig.c */
void check_mig(doctor *d);

#endif
