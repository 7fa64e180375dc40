/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Opening files that a stranger's file names, beneath a folder: neither "..", nor a symbolic link anywhere on the way,
 * nor an absolute name leads out of it. Links that stay inside are followed.
 */
#ifndef GY_BASE_BENEATH_H
#define GY_BASE_BENEATH_H

/* A descriptor for reading, which never waits for the other end of a FIFO; or -1 with errno, where EXDEV says that the
 * name leads out of the folder. "" is the current folder. */
int gy_beneath_open(const char *folder, const char *name);

/* The two ways of doing it, with the same verdicts; `folder` is a descriptor. The first one asks the kernel (openat2),
 * with ENOSYS or EPERM where the kernel is too old or a sandbox forbids the call. */
int gy_beneath_ask(int folder, const char *name);
int gy_beneath_walk(int folder, const char *name);

#endif
