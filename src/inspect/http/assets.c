// SPDX-License-Identifier: MIT
//
// The page's files, compiled in by web/web.mk.
#include <string.h>

#include "inspect/http/server.h"

extern const unsigned char web_index_html[], web_index_html_end[];
extern const unsigned char web_app_js[], web_app_js_end[];
extern const unsigned char web_app_css[], web_app_css_end[];

static const struct {
    const char *path, *type;
    const unsigned char *start, *end;
} assets[] = {
    {"/", "text/html; charset=utf-8", web_index_html, web_index_html_end},
    {"/app.js", "text/javascript; charset=utf-8", web_app_js, web_app_js_end},
    {"/app.css", "text/css; charset=utf-8", web_app_css, web_app_css_end},
};

bool asset_find(const char *path, Asset *ret_asset)
{
    for (size_t i = 0; i < ARRAY_LEN(assets); i++) {
        if (strcmp(assets[i].path, path) == 0) {
            *ret_asset = (Asset){assets[i].path, assets[i].type, assets[i].start,
                                 (size_t)(assets[i].end - assets[i].start)};
            return true;
        }
    }
    return false;
}
