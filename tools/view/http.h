/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A small server of HTTP/1.1 for a browser on this computer. It listens on the loopback address only, knows GET and
 * POST of short requests, and closes the connection behind each answer. Who may ask is decided before anything is read
 * of a request but its head: the address must begin with a random token, and Host and Origin must be the server's own,
 * so that a page of somebody else, whatever name it has for this computer, gets nothing.
 */
#ifndef GANTRY_COMMAND_HTTP_H
#define GANTRY_COMMAND_HTTP_H

#include <stddef.h>

enum { HTTP_TOKEN = 33, HTTP_BODY = 65536 };

/* A request that passed. `path`: behind the token, without the slash in front. `body` ends with a 0 behind `length`. */
typedef struct http_request {
    const char *method, *path, *body;
    size_t length;
} http_request;

/* `text` is freed by `release`; NULL: it is a constant. */
typedef struct http_answer {
    int status;
    const char *type;
    char *text;
    size_t length;
    void (*release)(void *);
} http_answer;

typedef void http_answer_fn(void *user, const http_request *request, http_answer *answer);

typedef struct http_server {
    int fd, port;
    char token[HTTP_TOKEN]; /* 32 hexadecimal digits */
} http_server;

/* `port` 0: one that is free. The exit code, after complaining. */
int http_listen(http_server *server, int port);
/* Answers until the process is told to end; the exit code. */
int http_serve(const http_server *server, http_answer_fn *answer, void *user);

#endif
