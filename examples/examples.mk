# SPDX-License-Identifier: MIT
#
# `make examples`: the example tools, each one source, built as a stranger builds a tool, with the
# installed header alone, which pkg-config finds. A tool that needs more than that says so below.

examples_dir     := $(OUT)/tools
examples_sdk     := $(OUT)/sdk
examples_pc      := $(examples_sdk)/lib/pkgconfig/muninn-tool.pc
examples_src     := $(wildcard examples/tools/*.c examples/tools/*.cpp)
examples_so      := $(patsubst %,$(examples_dir)/%.so,$(basename $(notdir $(examples_src))))
examples_flags    = -O2 -g -Wall -Wextra -Wno-unused-parameter -fPIC -shared $(werror) \
                    $$(PKG_CONFIG_PATH=$(dir $(examples_pc)) pkg-config --cflags muninn-tool)
$(examples_dir)/coverage.so: private examples_libs = -ldw

.PHONY: examples
examples: $(examples_so)

# What those who write tools need.
define install_sdk
	install -d $(1)$(2)/include/muninn $(1)$(2)/lib/pkgconfig
	install -m 644 include/muninn/client.h include/muninn/tool.h $(1)$(2)/include/muninn
	sed 's|@PREFIX@|$(2)|; s|@VERSION@|$(VERSION)|' scripts/muninn-tool.pc.in \
	    > $(1)$(2)/lib/pkgconfig/muninn-tool.pc
endef
# What `make install` does for tools; with PREBUILT=yes the examples that there are go with it.
examples_there = $(if $(filter yes 1 true,$(PREBUILT)),$(wildcard $(examples_so)),$(examples_so))
define install_for_tools
	$(call install_sdk,$(1),$(2))
	install -d $(1)$(2)/lib/muninn/tools
	for tool in $(examples_there); do install -m 755 $$tool $(1)$(2)/lib/muninn/tools || exit 1; done
endef

$(examples_pc): include/muninn/tool.h include/muninn/client.h scripts/muninn-tool.pc.in
	$(Q)$(call install_sdk,,$(abspath $(examples_sdk)))

$(examples_dir)/%.so: examples/tools/%.c $(examples_pc)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -o $@ $< $(examples_flags) $(examples_libs)

$(examples_dir)/%.so: examples/tools/%.cpp $(examples_pc)
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)g++ -std=c++17 -o $@ $< $(examples_flags) $(examples_libs)
