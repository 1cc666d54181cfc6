// SPDX-License-Identifier: MIT
//
// `muninn view`: a page that shows recordings and reports, and the server behind it
// (docs/user/http-api.md is what it answers).
//
//   browser ──▶ server.c ──▶ jobs.c ──▶ an endpoint ──▶ recording/query.h
//              who may ask   cache,     one file per
//                            threads    kind of view
//
// Files
//   view.c         the subcommand: options, files, the browser
//   gate.c         connections until a request is there, and deadlines
//   server.c       libmicrohttpd, headers, tokens; listen.c: the address; assets.c: the page
//   jobs.c         answers: computed by workers, remembered
//   files.c        what is open; live.c: what grows, and what can be told to it
//   viewer.h       what the endpoints share
//   selection.c    parameters to a Selection; memo.c, sums.c, names.c: what is computed once
//   *_answer.c     endpoints
//   findings*.c    reports of memcheck and of the incumbent, read and answered
//   export.c       the page with answers in it
//
// What must stay true
//   V1  Nothing is answered before token, Host and Origin were checked (server.c, one place).
//   V2  No request names a path. A source file is read only if a recording names it.
//   V3  A Recording is used under its View's lock. Locks of two views are taken in order of the
//       files' ids.
//   V4  Memory is bounded: answers, memos and connections have limits of their own.
//   V5  Nobody waits for a client that does not go on: G1 in gate.h. Nor for a query: sql.h.
#ifndef MUNINN_INSPECT_HTTP_HTTP_H
#define MUNINN_INSPECT_HTTP_HTTP_H

// `muninn view`.
int http_view_main(int argc, char **argv);

#endif
