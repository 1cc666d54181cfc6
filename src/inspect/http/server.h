// SPDX-License-Identifier: MIT
//
// The server: who may ask, and how answers travel. Connections come through the gate (gate.h); the
// library has a thread for each that was admitted, at most 64; what takes time is done by the
// workers of jobs.h.
#ifndef MUNINN_INSPECT_HTTP_SERVER_H
#define MUNINN_INSPECT_HTTP_SERVER_H

#include <netinet/in.h>

#include "inspect/http/jobs.h"

enum { TOKEN_DIGITS = 64, SERVER_URL_BYTES = 512 };

typedef struct ServerConfig {
    const char *host; // as the user wrote it; NULL: the loopback address
    u16 port;         // 0: any that is free
} ServerConfig;

typedef struct Server Server;

// NULL: *ret_error (to be freed) says why.
Server *server_start(Viewer *viewer, const ServerConfig *config, char **ret_error);
void server_stop(Server *server);
// "http://127.0.0.1:41893/?token=…"
const char *server_url(const Server *server);

// --------------------------------------------------- between server.c and its parts

typedef struct ServerPlace {
    char host[256];  // without brackets
    bool is_any;     // all addresses: any address is a good Host
    u16 port;
    char token[TOKEN_DIGITS + 1];
    char cookie[32]; // its name
} ServerPlace;

// A socket that listens there and does not block; the place and the whole address are filled in,
// the token of the place must be there. Negative: *ret_error (to be freed) says why, if it can.
int server_listen(const ServerConfig *config, ServerPlace *place, char url[SERVER_URL_BYTES],
                  char **ret_error);

// What a request says of where it comes from; NULL: the header is not there.
typedef struct Credentials {
    const char *host, *origin, *fetch_site;
    const char *token_header, *cookies, *token_param;
} Credentials;

typedef enum Verdict {
    VERDICT_GOOD,
    VERDICT_NEW, // it brings the token in its address, to be turned into a cookie
    VERDICT_NO_TOKEN,
    VERDICT_FOREIGN,
    VERDICT_TWICE, // a header that says who asks is there twice
} Verdict;
Verdict access_judge(const ServerPlace *place, const Credentials *credentials);
// The token of the URL is right: to be turned into a cookie.
bool access_token_is_right(const ServerPlace *place, const char *token);
// 32 bytes of the kernel's in hexadecimal. False: it has none.
bool access_make_token(char ret_token[TOKEN_DIGITS + 1]);

// The page's files.
typedef struct Asset {
    const char *path, *type;
    const unsigned char *data;
    size_t size;
} Asset;
bool asset_find(const char *path, Asset *ret_asset);

#endif
