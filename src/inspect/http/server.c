// SPDX-License-Identifier: MIT
//
// The server on libmicrohttpd. Every request goes through handle(): first who asks
// (access.c), then what for. See server.h.
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspect/http/gate.h"
#include "inspect/http/live.h"
#include "inspect/http/parts.h"
#include "inspect/http/server.h"

enum {
    CONNECTION_BYTES = 96 * 1024, // request line and headers, and what is sent back
    STALL_S = 60,                 // without a byte in either direction
    REQUEST_MS = 10 * 1000,       // headers and body, from the first line on
    ANSWER_MS = 300 * 1000,       // all of an answer, through a slow tunnel, too
    BODY_BYTES_MAX = 4096,
    ANSWER_WAIT_MS = 2000,
    RETRY_MS = 200,
    STACK_BYTES = 512 * 1024,
};

struct Server {
    struct MHD_Daemon *daemon;
    Viewer *viewer;
    Jobs *jobs;
    Live *live;
    Gate *gate;
    ServerPlace place;
    char url[SERVER_URL_BYTES];
};

// One request, from its first line to its end.
typedef struct Exchange {
    Request request;
    bool is_malformed;
    bool was_begun, is_new; // is_new: it brought the token in its address
    size_t body_bytes;
    Admitted *connection; // the gate's; NULL: it does not know it
} Exchange;

// The bytes of an answer that are being sent.
typedef struct Sending {
    Jobs *jobs;
    Answer *answer;
} Sending;

static const char *const common_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), microphone=(), geolocation=()"},
};

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response, const char *type, const char *cache)
{
    if (!response)
        return MHD_NO;
    for (size_t i = 0; i < ARRAY_LEN(common_headers); i++)
        MHD_add_response_header(response, common_headers[i][0], common_headers[i][1]);
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", cache);
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_copy(struct MHD_Connection *connection, unsigned status,
                                 const char *type, const char *text, size_t size)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)text, MHD_RESPMEM_MUST_COPY);

    return queue(connection, status, response, type, "no-store");
}

static enum MHD_Result send_failure(struct MHD_Connection *connection, unsigned status,
                                    const char *code, const char *message)
{
    Json out = {0};

    json_open(&out, '{');
    json_key_open(&out, "error", '{');
    json_key_text(&out, "code", code);
    json_key_text(&out, "message", message);
    json_close(&out, '}');
    json_close(&out, '}');
    enum MHD_Result result =
        send_copy(connection, status, "application/json", out.data, out.size);
    json_free(&out);
    return result;
}

// --------------------------------------------------------------------------- answers

static void release_sending(void *arg)
{
    Sending *sending = arg;

    jobs_release(sending->jobs, sending->answer);
    free(sending);
}

static enum MHD_Result send_pending(struct MHD_Connection *connection, const Answer *answer)
{
    char text[128];
    u32 progress = answer->progress;

    snprintf(text, sizeof(text), "{\"pending\":true,\"progress\":%u.%03u,\"retry_ms\":%d}",
             progress / 1000, progress % 1000, RETRY_MS);
    return send_copy(connection, MHD_HTTP_ACCEPTED, "application/json", text, strlen(text));
}

static enum MHD_Result send_answer(Server *server, struct MHD_Connection *connection,
                                   Answer *answer)
{
    Sending *sending = malloc(sizeof(*sending));
    char tag[24];

    snprintf(tag, sizeof(tag), "\"%016llx\"", (unsigned long long)answer->tag);
    const char *known =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");
    bool is_known = answer->status == 200 && known && strcmp(known, tag) == 0;
    if (!sending || !answer->body) {
        free(sending);
        jobs_release(server->jobs, answer);
        return send_failure(connection, 500, "internal", "no memory");
    }
    *sending = (Sending){server->jobs, answer};
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        is_known ? 0 : answer->size, answer->body, release_sending, sending);
    if (!response) {
        release_sending(sending);
        return MHD_NO;
    }
    MHD_add_response_header(response, "ETag", tag);
    return queue(connection, is_known ? 304 : answer->status, response, answer->type,
                 "private, no-cache");
}

static enum MHD_Result answer_api(Server *server, struct MHD_Connection *connection,
                                  const Request *request)
{
    Answer *answer = jobs_ask(server->jobs, request, ANSWER_WAIT_MS);

    if (!answer)
        return send_failure(connection, 503, "busy", "too much is being asked at once");
    if (answer->done)
        return send_answer(server, connection, answer);
    enum MHD_Result result = send_pending(connection, answer);
    jobs_release(server->jobs, answer);
    return result;
}

// ------------------------------------------------------------------------ live parts

typedef struct Streaming {
    LiveStream *stream;
    int socket;
} Streaming;

static bool has_hung_up(int socket)
{
    char byte;
    ssize_t n = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static ssize_t read_stream(void *arg, uint64_t position, char *buffer, size_t size)
{
    Streaming *streaming = arg;

    (void)position;
    for (;;) {
        ssize_t n = live_stream_read(streaming->stream, buffer, size);
        if (n < 0)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (n > 0)
            return n;
        if (has_hung_up(streaming->socket))
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
}

static void free_streaming(void *arg)
{
    Streaming *streaming = arg;

    live_stream_free(streaming->stream);
    free(streaming);
}

static enum MHD_Result answer_events(Server *server, struct MHD_Connection *connection,
                                     Request *request)
{
    u64 id = request_u64(request, "f", UINT32_MAX, UINT32_MAX);

    if (request->error[0] || (id != UINT32_MAX && id >= server->viewer->file_count))
        return send_failure(connection, 400, "bad-parameter", "f: there is no such file");
    Streaming *streaming = calloc(1, sizeof(*streaming));
    LiveStream *stream = streaming ? live_stream_new(server->live, (u32)id) : NULL;
    if (!stream) {
        free(streaming);
        return send_failure(connection, 503, "busy", "too many streams are open");
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *streaming = (Streaming){stream, info ? info->connect_fd : -1};
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, 4096, read_stream, streaming, free_streaming);
    if (!response)
        free_streaming(streaming);
    return queue(connection, 200, response, "text/event-stream", "no-store");
}

static enum MHD_Result answer_action(Server *server, struct MHD_Connection *connection,
                                     Request *request)
{
    Call call = {.viewer = server->viewer, .request = request, .status = 200};

    if (!MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "X-Muninn-Action"))
        return send_failure(connection, 403, "forbidden", "the header X-Muninn-Action is missing");
    live_answer_action(&call);
    enum MHD_Result result =
        call.code ? send_failure(connection, call.status, call.code, call.message)
                  : send_copy(connection, 200, "application/json", call.out.data, call.out.size);
    json_free(&call.out);
    return result;
}

// --------------------------------------------------------------------------- the page

// The token of the URL becomes a cookie, so that it does not stay in the history. Lax, not
// Strict: a browser keeps back a strict one on the way from a link to the page behind it.
static enum MHD_Result send_cookie(const Server *server, struct MHD_Connection *connection)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    char cookie[256];

    snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Lax",
             server->place.cookie, server->place.token);
    if (response) {
        MHD_add_response_header(response, "Set-Cookie", cookie);
        MHD_add_response_header(response, "Location", "/");
    }
    return queue(connection, 303, response, "text/plain", "no-store");
}

static enum MHD_Result send_asset(struct MHD_Connection *connection, const char *path)
{
    Asset asset;

    if (!asset_find(path, &asset))
        return send_failure(connection, 404, "not-found", "there is nothing at this path");
    struct MHD_Response *response = MHD_create_response_from_buffer(
        asset.size, (void *)asset.data, MHD_RESPMEM_PERSISTENT);
    return queue(connection, 200, response, asset.type, "no-cache");
}

static enum MHD_Result refuse(struct MHD_Connection *connection, Verdict verdict,
                              const Request *request)
{
    static const char words[] = "This page needs the whole address that `muninn view` has "
                                "printed, with its token.\n";

    if (verdict == VERDICT_TWICE)
        return send_failure(connection, 400, "bad-parameter",
                            "a header that says who asks is there twice");
    if (verdict == VERDICT_FOREIGN)
        return send_failure(connection, 403, "forbidden",
                            "the request comes from elsewhere: Host or Origin is not this server");
    if (request->path && strcmp(request->path, "/") == 0)
        return send_copy(connection, 401, "text/plain; charset=utf-8", words, sizeof(words) - 1);
    return send_failure(connection, 401, "unauthorized", "the token is missing or wrong");
}

// From now on the exchange has so long; 0: no limit.
static void step(const Server *server, const Exchange *exchange, u32 ms)
{
    if (exchange->connection)
        gate_step(server->gate, exchange->connection, ms);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result route(Server *server, struct MHD_Connection *connection,
                             Exchange *exchange, const char *method)
{
    Request *request = &exchange->request;
    bool is_reading = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    bool is_action = !exchange->is_malformed && strcmp(request->path, "/api/action") == 0;

    if (exchange->is_malformed)
        return send_failure(connection, 400, "bad-parameter", "the address is malformed");
    if (is_action ? strcmp(method, "POST") != 0 : !is_reading)
        return send_failure(connection, 405, "bad-parameter", "this method is not for this path");
    if (is_action)
        return answer_action(server, connection, request);
    if (strcmp(request->path, "/api/events") == 0) {
        step(server, exchange, 0); // G1
        return answer_events(server, connection, request);
    }
    if (strncmp(request->path, "/api/", 5) == 0)
        return answer_api(server, connection, request);
    return send_asset(connection, request->path);
}

// A second one would be read by somebody else than the first: by a proxy, or by the next version of
// a library.
static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    static const char *const once[] = {"Host", "Origin", "Sec-Fetch-Site", "X-Muninn-Token",
                                       "X-Muninn-Action", "Content-Length", "Transfer-Encoding"};
    u32 *counts = arg;

    (void)kind;
    (void)value;
    for (size_t i = 0; i < ARRAY_LEN(once); i++)
        counts[i] += strcasecmp(name, once[i]) == 0;
    return MHD_YES;
}

static bool has_header_twice(struct MHD_Connection *connection)
{
    u32 counts[8] = {0};
    bool is_twice = false;

    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, counts);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        is_twice |= counts[i] > 1;
    return is_twice;
}

// V1: nothing is looked at before this has judged.
static Verdict judge(const Server *server, struct MHD_Connection *connection,
                     const Exchange *exchange)
{
    bool is_page = !exchange->is_malformed && strcmp(exchange->request.path, "/") == 0;
    Credentials credentials = {
        .host = header(connection, "Host"),
        .origin = header(connection, "Origin"),
        .fetch_site = header(connection, "Sec-Fetch-Site"),
        .token_header = header(connection, "X-Muninn-Token"),
        .cookies = header(connection, "Cookie"),
        .token_param = is_page ? "" : NULL,
    };
    const char *token = is_page ? request_text(&exchange->request, "token") : NULL;

    if (has_header_twice(connection))
        return VERDICT_TWICE;
    Verdict verdict = access_judge(&server->place, &credentials);
    if (verdict != VERDICT_FOREIGN && access_token_is_right(&server->place, token))
        return VERDICT_NEW;
    return verdict;
}

// ------------------------------------------------------------------------ libmicrohttpd

static Admitted *admitted_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static void *begin_exchange(void *arg, const char *uri, struct MHD_Connection *connection)
{
    Exchange *exchange = calloc(1, sizeof(*exchange));

    if (!exchange)
        return NULL;
    exchange->is_malformed = !request_parse(&exchange->request, uri);
    exchange->connection = admitted_of(connection);
    step(arg, exchange, REQUEST_MS);
    return exchange;
}

static void end_exchange(void *arg, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    const Server *server = arg;
    Exchange *exchange = *state;

    (void)connection;
    (void)why;
    if (exchange && exchange->connection)
        gate_idle(server->gate, exchange->connection);
    free(exchange);
    *state = NULL;
}

static void begin_or_end_connection(void *arg, struct MHD_Connection *connection,
                                    void **socket_context,
                                    enum MHD_ConnectionNotificationCode code)
{
    const Server *server = arg;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context = info ? gate_find(server->gate, info->connect_fd) : NULL;
    } else if (*socket_context) {
        gate_closed(server->gate, *socket_context);
        *socket_context = NULL;
    }
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *body,
                              size_t *body_size, void **state)
{
    Server *server = arg;
    Exchange *exchange = *state;

    (void)url;
    (void)version;
    (void)body;
    if (!exchange)
        return MHD_NO;
    if (!exchange->was_begun) {
        // Before its body is read: who may not ask is not listened to.
        Verdict verdict = judge(server, connection, exchange);
        exchange->was_begun = true;
        exchange->is_new = verdict == VERDICT_NEW;
        return verdict == VERDICT_GOOD || verdict == VERDICT_NEW
                   ? MHD_YES : refuse(connection, verdict, &exchange->request);
    }
    // What is sent with a request is not needed: it is thrown away, up to a limit.
    if (*body_size > 0) {
        exchange->body_bytes += *body_size;
        *body_size = 0;
        return exchange->body_bytes > BODY_BYTES_MAX ? MHD_NO : MHD_YES;
    }
    step(server, exchange, ANSWER_MS);
    return exchange->is_new ? send_cookie(server, connection)
                            : route(server, connection, exchange, method);
}

// ---------------------------------------------------------------------------- starting

static bool admit(void *arg, int socket)
{
    const Server *server = arg;
    struct sockaddr_storage peer = {0};
    socklen_t size = sizeof(peer);

    if (getpeername(socket, (struct sockaddr *)&peer, &size) != 0) {
        close(socket);
        return false;
    }
    return MHD_add_connection(server->daemon, socket, (struct sockaddr *)&peer, size) == MHD_YES;
}

static bool start_daemon(Server *server)
{
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET;

    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, server,
        // More than the gate admits: the library gives a place back after the gate has.
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(2 * GATE_ADMITTED_MAX),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)STALL_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, begin_exchange, server,
        MHD_OPTION_NOTIFY_COMPLETED, end_exchange, server,
        MHD_OPTION_NOTIFY_CONNECTION, begin_or_end_connection, server, MHD_OPTION_END);
    return server->daemon != NULL;
}

Server *server_start(Viewer *viewer, const ServerConfig *config, char **ret_error)
{
    Server *server = calloc(1, sizeof(*server));

    *ret_error = NULL;
    if (!server || !access_make_token(server->place.token)) {
        free(server);
        return NULL;
    }
    server->viewer = viewer;
    int fd = server_listen(config, &server->place, server->url, ret_error);
    if (fd >= 0) {
        server->jobs = jobs_start(viewer);
        server->live = live_start(viewer);
        parts_start(viewer);
        server->gate = gate_new(fd, admit, server);
        if (server->jobs && server->live && server->gate && start_daemon(server) &&
            gate_start(server->gate))
            return server;
        close(fd);
    }
    server_stop(server);
    return NULL;
}

void server_stop(Server *server)
{
    if (server->gate)
        gate_stop(server->gate);
    // Streams end when `live` does, and the daemon waits for them.
    if (server->live)
        live_end_streams(server->live);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    if (server->gate)
        gate_free(server->gate);
    if (server->jobs)
        jobs_stop(server->jobs);
    if (server->live)
        live_stop(server->live);
    free(server);
}

const char *server_url(const Server *server)
{
    return server->url;
}
