# SPDX-License-Identifier: MIT
#
# The viewer's page: built by web/build, then compiled into muninn-inspect as read-only data, so that
# nothing of node is needed at run time. C sees, for index_html, app_js and app_css,
#
#   extern const unsigned char web_app_js[], web_app_js_end[];

web_src := web/build $(wildcard web/*.json web/*.ts web/index.html web/src/*.ts web/src/*/*.ts \
                                web/src/*/*.css)
web_out := $(OUT)/web
web_files := index.html app.js app.css
web_obj := $(OBJ)/web/assets.o
inspect_obj += $(web_obj)

# Changes when npm comes or goes.
$(eval $(call stamp_rule,$(OBJ)/web/npm.stamp,$$(shell command -v npm)))

$(web_out)/app.js: $(web_src) $(OBJ)/web/npm.stamp
	$(call say,WEB)
	$(Q)web/build $(web_out)

$(OBJ)/web/assets.S: $(web_out)/app.js web/web.mk
	@mkdir -p $(@D)
	$(Q){ echo '.section .note.GNU-stack,"",@progbits'; echo '.section .rodata'; \
	for file in $(web_files); do \
	    name=web_$$(echo $$file | tr . _); \
	    printf '.global %s, %s_end\n%s:\n.incbin "%s"\n%s_end:\n.byte 0\n' \
	        $$name $$name $$name $(web_out)/$$file $$name; \
	done; } > $@

$(web_obj): $(OBJ)/web/assets.S
	$(call say,AS)
	$(Q)$(CC) -c -o $@ $<

# What is made from the descriptions of findings (src/wire/findings.def) and of the server's answers.
.PHONY: schema
schema: ; scripts/make_schema
