# SPDX-License-Identifier: MIT
#
# muninn-lua.so, the tool that runs scripts: a plugin of include/muninn/tool.h, made where Lua 5.4
# is installed. Nothing else of the build needs Lua.

lua_include := $(patsubst %/lua.h,%,$(firstword $(wildcard /usr/include/lua5.4/lua.h \
                                                           /usr/include/lua-5.4/lua.h)))
ifneq ($(lua_include),)
lua_src     := $(wildcard src/lua/*.c)
lua_obj     := $(call to_obj,$(lua_src))
lua_plugin  := $(OUT)/muninn-lua.so

# A shared object has none of the engine's liberties: it is position independent everywhere.
$(lua_obj): private cflags += -fPIC -ftls-model=global-dynamic -fvisibility=hidden \
                              -I$(lua_include)

$(eval $(call stamp_rule,$(OBJ)/lua_sources.stamp,$$(lua_obj)))
$(lua_plugin): $(lua_obj) $(OBJ)/lua_sources.stamp
	$(call say,LINK)
	$(Q)$(CC) -shared -Wl,-z,now $(link_flags) -o $@ $(lua_obj) -llua5.4 -lm

all: $(lua_plugin)

install: install-lua
.PHONY: install-lua
install-lua: $(if $(filter yes 1 true,$(PREBUILT)),,$(lua_plugin))
	install -D -m 755 $(lua_plugin) $(DESTDIR)$(PREFIX)/lib/muninn/muninn-lua.so

-include $(lua_obj:.o=.d)
endif
