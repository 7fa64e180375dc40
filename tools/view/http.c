/* SPDX-License-Identifier: Apache-2.0 */
/* Connections wait side by side, since browsers open some that they may need later; requests are answered one by one.
 */
#include "view/http.h"

#include "command.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD = 8192, CONNECTIONS = 16, PATIENCE_MS = 5000, FIELDS = 64 };

typedef struct connection {
    int fd;
    double since_us;
    size_t length;
    char *text; /* HEAD + HTTP_BODY + 1 bytes */
} connection;

typedef struct loop {
    const http_server *server;
    http_answer_fn *answer;
    void *user;
    connection at[CONNECTIONS];
    size_t count;
} loop;

/* The fields of a head that count. NULL: it is not there. */
typedef struct head {
    char *method, *target;
    const char *host, *origin, *type, *body_length, *coding;
    size_t length; /* of the head, with the empty line behind it */
    size_t body;
} head;

/* ---- listening ---- */

static bool make_token(char *to)
{
    unsigned char random[(HTTP_TOKEN - 1) / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(to + 2 * i, 3, "%02x", random[i]);
    return true;
}

int http_listen(http_server *server, int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool done = server->fd >= 0 && make_token(server->token) &&
                !bind(server->fd, (const struct sockaddr *)&address, size) && !listen(server->fd, CONNECTIONS) &&
                !getsockname(server->fd, (struct sockaddr *)&address, &size);
    if (!done) {
        complain("cannot listen on port %d of 127.0.0.1: %s; --port takes another one, or 0 for any\n", port,
                 strerror(errno));
        if (server->fd >= 0)
            close(server->fd);
        return EXIT_RUNNING;
    }
    server->port = ntohs(address.sin_port);
    return EXIT_FINE;
}

/* ---- answering ---- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = { { 200, "OK" },
                    { 400, "Bad Request" },
                    { 403, "Forbidden" },
                    { 404, "Not Found" },
                    { 405, "Method Not Allowed" },
                    { 408, "Request Timeout" },
                    { 411, "Length Required" },
                    { 413, "Content Too Large" },
                    { 415, "Unsupported Media Type" },
                    { 431, "Request Header Fields Too Large" },
                    { 501, "Not Implemented" },
                    { 505, "HTTP Version Not Supported" } };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Internal Server Error";
}

/* The other end may be slow, or gone. */
static void send_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        struct pollfd one = { fd, POLLOUT, 0 };
        ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return;
        if (sent < 0 && poll(&one, 1, PATIENCE_MS) == 0)
            return;
        text += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
    }
}

static void send_answer(int fd, const http_answer *a)
{
    char begin[512];
    int length = snprintf(begin, sizeof begin,
                          "HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n"
                          "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                          "X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\r\n",
                          a->status, reason_of(a->status), a->type, a->length);
    send_all(fd, begin, (size_t)length);
    send_all(fd, a->text, a->length);
}

static void refuse(int fd, int status)
{
    char text[64];
    int length = snprintf(text, sizeof text, "%s\n", reason_of(status));
    send_answer(fd, &(http_answer){ status, "text/plain", text, (size_t)length, NULL });
}

/* ---- reading ---- */

/* One line "name: value" of the head; a field that counts and is there twice is refused. */
static int read_field(head *h, char *line)
{
    const struct {
        const char *name, **value;
    } fields[] = { { "host", &h->host },
                   { "origin", &h->origin },
                   { "content-type", &h->type },
                   { "content-length", &h->body_length },
                   { "transfer-encoding", &h->coding } };
    char *colon = strchr(line, ':');
    if (!colon || colon == line || strcspn(line, " \t") < (size_t)(colon - line))
        return 400;
    *colon = '\0';
    char *value = colon + 1 + strspn(colon + 1, " \t");
    for (size_t length = strlen(value); length && strchr(" \t", value[length - 1]);)
        value[--length] = '\0';
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcasecmp(line, fields[i].name) != 0)
            continue;
        if (*fields[i].value)
            return 400;
        *fields[i].value = value;
    }
    return 0;
}

static int read_first(head *h, char *line)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version)
        return 400;
    *target = *version = '\0';
    h->method = line;
    h->target = target + 1;
    if (strncmp(version + 1, "HTTP/", 5) != 0)
        return 400;
    return strcmp(version + 1, "HTTP/1.1") == 0 || strcmp(version + 1, "HTTP/1.0") == 0 ? 0 : 505;
}

/* Cuts the lines of a head that is complete; the status to refuse it with, or 0. */
static int read_head(head *h, char *text, size_t length)
{
    int status = 0;
    if (memchr(text, '\0', length))
        return 400;
    for (size_t line = 0; !status && *text != '\r'; line++) {
        char *end = strstr(text, "\r\n");
        if (line > FIELDS)
            return 431;
        *end = '\0';
        status = strchr(text, '\n') || strchr(text, '\r') ? 400 : line ? read_field(h, text) : read_first(h, text);
        text = end + 2;
    }
    return status ? status : h->method ? 0 : 400;
}

static int read_body_length(head *h)
{
    char *end;
    bool posts = strcmp(h->method, "POST") == 0;
    if (h->coding)
        return 501;
    if (!h->body_length)
        return posts ? 411 : 0;
    if (strspn(h->body_length, "0123456789") != strlen(h->body_length) || !*h->body_length)
        return 400;
    errno = 0;
    unsigned long long length = strtoull(h->body_length, &end, 10);
    if (errno || length > HTTP_BODY)
        return 413;
    h->body = (size_t)length;
    return 0;
}

/* ---- who may ask ---- */

static bool is_own(const http_server *s, const char *host)
{
    char own[2][32];
    snprintf(own[0], sizeof own[0], "127.0.0.1:%d", s->port);
    snprintf(own[1], sizeof own[1], "localhost:%d", s->port);
    return strcmp(host, own[0]) == 0 || strcmp(host, own[1]) == 0;
}

/* Takes as long for every token of this length. */
static bool has_token(const http_server *s, const char *target)
{
    unsigned char different = 0;
    if (target[0] != '/' || strlen(target) < HTTP_TOKEN + 1 || target[HTTP_TOKEN] != '/')
        return false;
    for (size_t i = 0; i + 1 < HTTP_TOKEN; i++)
        different |= (unsigned char)(s->token[i] ^ target[i + 1]);
    return different == 0;
}

static int check_asker(const http_server *s, const head *h)
{
    bool gets = strcmp(h->method, "GET") == 0, posts = strcmp(h->method, "POST") == 0;
    if (!h->host || !is_own(s, h->host))
        return 403;
    if (h->origin && (strncmp(h->origin, "http://", 7) != 0 || !is_own(s, h->origin + 7)))
        return 403;
    if (!gets && !posts)
        return 405;
    if (!has_token(s, h->target))
        return 404;
    return posts && (!h->type || strncasecmp(h->type, "application/json", 16) != 0) ? 415 : 0;
}

/* ---- connections ---- */

static void end_connection(loop *l, size_t i)
{
    /* Bytes that are left unread would make the other end lose the answer. */
    char rest[4096];
    shutdown(l->at[i].fd, SHUT_WR);
    for (int k = 0; k < CONNECTIONS && recv(l->at[i].fd, rest, sizeof rest, 0) > 0; k++)
        continue;
    close(l->at[i].fd);
    free(l->at[i].text);
    l->at[i] = l->at[--l->count];
}

static void take_connection(loop *l)
{
    int fd = accept4(l->server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (l->count == CONNECTIONS) { /* the one that has waited longest makes room */
        size_t oldest = 0;
        for (size_t i = 1; i < l->count; i++)
            oldest = l->at[i].since_us < l->at[oldest].since_us ? i : oldest;
        end_connection(l, oldest);
    }
    connection *c = &l->at[l->count];
    *c = (connection){ .fd = fd, .since_us = now_us(), .text = malloc(HEAD + HTTP_BODY + 1) };
    if (c->text)
        l->count++;
    else
        close(fd);
}

/* Of a connection whose head is complete; -1: its body is not there yet. */
static int answer_request(loop *l, connection *c, const char *end)
{
    char copy[HEAD + 4];
    head h = { .length = (size_t)(end - c->text) + 4 };
    memcpy(copy, c->text, h.length);
    copy[h.length - 2] = '\r'; /* the empty line ends it */
    copy[h.length - 1] = '\0';
    int status = read_head(&h, copy, h.length - 1);
    status = status ? status : check_asker(l->server, &h);
    status = status ? status : read_body_length(&h);
    if (status || c->length < h.length + h.body)
        return status ? status : -1;
    http_answer a = { .status = 500, .type = "text/plain" };
    c->text[h.length + h.body] = '\0';
    http_request r = { h.method, h.target + HTTP_TOKEN + 1, c->text + h.length, h.body };
    l->answer(l->user, &r, &a);
    if (a.text)
        send_answer(c->fd, &a);
    if (a.release)
        a.release(a.text);
    return a.text ? 0 : a.status;
}

/* false: the connection is to be ended. */
static bool read_more(loop *l, connection *c)
{
    ssize_t got = recv(c->fd, c->text + c->length, HEAD + HTTP_BODY - c->length, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0)
        return false;
    c->length += (size_t)got;
    const char *end = memmem(c->text, c->length, "\r\n\r\n", 4);
    bool too_long = (end ? (size_t)(end - c->text) + 4 : c->length) > HEAD;
    int status = too_long ? 431 : end ? answer_request(l, c, end) : -1;
    if (status > 0)
        refuse(c->fd, status);
    return status < 0;
}

static void end_late(loop *l)
{
    double now = now_us();
    for (size_t i = l->count; i-- > 0;) {
        if (now - l->at[i].since_us < 1e3 * PATIENCE_MS)
            continue;
        if (l->at[i].length > 0)
            refuse(l->at[i].fd, 408);
        end_connection(l, i);
    }
}

int http_serve(const http_server *server, http_answer_fn *answer, void *user)
{
    loop l = { .server = server, .answer = answer, .user = user };
    for (;;) {
        struct pollfd fds[CONNECTIONS + 1] = { { server->fd, POLLIN, 0 } };
        size_t count = l.count;
        for (size_t i = 0; i < count; i++)
            fds[i + 1] = (struct pollfd){ l.at[i].fd, POLLIN, 0 };
        int ready = poll(fds, count + 1, count ? PATIENCE_MS / 10 : -1);
        if (ready < 0 && errno != EINTR) {
            complain("cannot wait for requests: %s\n", strerror(errno));
            return EXIT_RUNNING;
        }
        for (size_t i = count; ready > 0 && i-- > 0;)
            if (fds[i + 1].revents && !read_more(&l, &l.at[i]))
                end_connection(&l, i);
        if (ready > 0 && fds[0].revents)
            take_connection(&l);
        end_late(&l);
    }
}
