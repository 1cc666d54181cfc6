# SPDX-License-Identifier: MIT
#
# The whole build, in one non-recursive file. There is no configure step and sources are found by
# wildcard: adding a file to a folder is all it takes to build it.
#
#   make                 build/muninn, muninn-engine, muninn-monitor and muninn-inspect
#   make check           set up, build, run every test suite    (SUITES="insn unit" picks some)
#   make examples, demo  build/tools/*.so; set up, build, run a program natively and under muninn
#   make bench, hunt     measure ratios to native; search for bugs, for hours
#   make install         PREFIX=/usr/local DESTDIR=      (PREBUILT=yes: builds nothing first)
#   make install-compat  that, and the name valgrind for it
#   make man, schema     rewrite the manual page, docs/user/options.md, completions/; docs/schema/
#   make update-codegen  rewrite the golden listings; the diff is the review
#
# MODE=release (default) | debug | asan. Each mode other than release has its own tree,
# build/<mode>, so that modes never share objects. V=1 shows the commands.

MODE    ?= release
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION := 0.1.0

ifeq ($(MODE),release)
  OUT := build
else ifneq ($(filter $(MODE),debug asan),)
  OUT := build/$(MODE)
else
  $(error MODE=$(MODE): choose release, debug or asan)
endif
OBJ := $(OUT)/obj

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

Q    := $(if $(V),,@)
say   = $(if $(V),,@printf '  %-5s %s\n' $(1) $@)

# ---- sources --------------------------------------------------------------------------------

base_src   := $(wildcard src/base/*.c)
launch_src := $(wildcard src/launch/*.c)
engine_src := $(wildcard src/engine/*.c src/engine/*/*.c src/engine/*/*/*.c \
                         src/engine/*.S src/engine/*/*.S src/engine/*/*/*.S)
tools_src  := $(wildcard src/tools/*.c src/tools/*/*.c src/tools/*/*/*.c)
wire_src   := $(wildcard src/wire/*.c)
recording_src := $(wildcard src/recording/*.c)
monitor_src := $(wildcard src/monitor/*.c src/monitor/*/*.c)
inspect_src := $(wildcard src/inspect/*.c src/inspect/*/*.c)
unit_src   := $(wildcard tests/unit/*_test.c)
# Tests of what runs in the monitor's process, and in that of the subcommands.
monitor_unit_src := $(wildcard tests/unit/monitor/*_test.c tests/unit/inspect/*_test.c)

# The engine has the launcher's parser and its eye for executables; these are the command's alone.
command_src := $(patsubst %,src/launch/%.c,main help manual completion option_sources \
                                           option_files script)
shared_src := $(filter-out $(command_src),$(launch_src)) $(base_src)

to_obj       = $(patsubst %,$(OBJ)/%.o,$(basename $(1)))
launch_obj  := $(call to_obj,$(launch_src) $(base_src))
library_obj := $(call to_obj,$(filter-out src/engine/main.c,$(engine_src)) \
                             $(tools_src) $(wire_src) $(shared_src))
engine_main := $(call to_obj,$(wildcard src/engine/main.c))
monitor_obj := $(call to_obj,$(filter-out src/monitor/main.c,$(monitor_src)) \
                             $(recording_src) $(wire_src) $(shared_src))
monitor_main := $(call to_obj,$(wildcard src/monitor/main.c))
inspect_obj := $(call to_obj,$(filter-out src/inspect/main.c,$(inspect_src)))
inspect_main := $(call to_obj,src/inspect/main.c)
unit_obj    := $(call to_obj,$(unit_src) $(monitor_unit_src))
unit_bin    := $(patsubst tests/unit/%.c,$(OUT)/tests/unit/%,$(unit_src) $(monitor_unit_src))

launcher := $(OUT)/muninn
engine   := $(if $(engine_main),$(OUT)/muninn-engine)
monitor  := $(if $(monitor_main),$(OUT)/muninn-monitor)
inspect  := $(OUT)/muninn-inspect
library  := $(OUT)/libengine.a
monitor_library := $(OUT)/libmonitor.a
inspect_library := $(OUT)/libinspect.a

# ---- flags ----------------------------------------------------------------------------------

CC ?= gcc
ifeq ($(origin CC),default)
  CC := gcc
endif

warnings := -Wall -Wextra -Wshadow -Wundef -Wvla -Wstrict-prototypes
ifneq ($(filter true 1,$(CI) $(WERROR)),)
  werror := -Werror
endif

mode_flags_release := -O2 -DMUNINN_DEBUG=0
mode_flags_debug   := -O1 -DMUNINN_DEBUG=1
mode_flags_asan    := -O1 -DMUNINN_DEBUG=1 -fsanitize=address,undefined -fno-sanitize-recover=all
mode_link_asan     := -fsanitize=address,undefined

# local-exec: the per-thread context is reached as fs:[constant], by emitted code as by C. That is
# legal here because nothing of ours is ever a shared library.
cflags := -std=gnu17 $(warnings) -g $(mode_flags_$(MODE)) -fPIE -ftls-model=local-exec \
          -fno-stack-protector -fno-omit-frame-pointer -D_GNU_SOURCE \
          -DMUNINN_VERSION='"$(VERSION)"' -Isrc -Iinclude $(CFLAGS)

# Called from the code cache without saving vector state: no vector register may be touched and no
# call to libc may be invented by the compiler.
hot_src   := %_hot.c src/engine/callstack/%.c $(patsubst %,src/base/%.c,pages futex_lock assert text)
hot_flags := -mgeneral-regs-only -fno-builtin -fno-stack-protector \
             $(if $(findstring clang,$(CC)),,-fno-tree-loop-distribute-patterns)

# A static launcher has no ld.so of its own, so the user's LD_PRELOAD cannot reach into it.
# Sanitizers cannot be linked statically.
launch_link := $(if $(filter asan,$(MODE)),-pie,-static-pie)
link_flags  := $(mode_link_$(MODE)) $(LDFLAGS)
# The engine binds all symbols at start: the lazy resolver must not run inside a signal handler.
engine_link := -pie -Wl,-z,now -Wl,--dynamic-list=src/tools/plugin/exports.list
engine_libs := -lZydis -lpthread
monitor_libs := -ldw -lelf -liberty -lzstd -lz -lm -lpthread
inspect_libs := -lsqlite3 -lmicrohttpd $(monitor_libs)

# ---- rules ----------------------------------------------------------------------------------

.PHONY: all unit check demo bench hunt install clean install-compat update-codegen man completions \
        bootstrap FORCE

all: $(launcher) $(engine) $(monitor) $(inspect)
	@:

unit: $(unit_bin)
	@:

# Rewritten only when its text changes, so a change of flags, or a source that was removed,
# rebuilds what depends on it and nothing else does.
define stamp_rule
$(1): FORCE
	@mkdir -p $$(@D)
	@printf '%s\n' '$$(subst ','\'',$(2))' | cmp -s - $$@ || \
	    printf '%s\n' '$$(subst ','\'',$(2))' > $$@
endef
$(eval $(call stamp_rule,$(OBJ)/flags.stamp,$$(CC) $$(cflags) $$(hot_flags) $$(link_flags)))
include web/web.mk examples/examples.mk src/lua/lua.mk
all_obj := $(launch_obj) $(library_obj) $(engine_main) $(monitor_obj) $(monitor_main) \
           $(inspect_obj) $(inspect_main)
$(eval $(call stamp_rule,$(OBJ)/sources.stamp,$$(all_obj)))

extra_flags = $(if $(filter $(hot_src),$<),$(hot_flags))
# Loops over events have more to keep than there are registers.
$(addprefix $(OBJ)/src/monitor/heap/,stream.o series.o): private cflags += -fomit-frame-pointer

$(OBJ)/%.o: %.c $(OBJ)/flags.stamp
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cflags) $(werror) $(extra_flags) -MMD -MP -c -o $@ $<

$(OBJ)/%.o: %.S $(OBJ)/flags.stamp
	@mkdir -p $(@D)
	$(call say,AS)
	$(Q)$(CC) $(cflags) $(werror) -MMD -MP -c -o $@ $<

$(launcher): $(launch_obj) $(OBJ)/sources.stamp
	$(call say,LINK)
	$(Q)$(CC) $(launch_link) $(link_flags) -o $@ $(launch_obj)

define archive_rule
$(1): $(2) $(OBJ)/sources.stamp
	@rm -f $$@
	$$(call say,AR)
	$(Q)ar rcs $$@ $(2)
endef
$(eval $(call archive_rule,$(library),$(library_obj)))
$(eval $(call archive_rule,$(monitor_library),$(monitor_obj)))
$(eval $(call archive_rule,$(inspect_library),$(inspect_obj)))

$(OUT)/muninn-engine: $(engine_main) $(library) src/tools/plugin/exports.list
	$(call say,LINK)
	$(Q)$(CC) $(engine_link) $(link_flags) -o $@ $(engine_main) \
	    -Wl,--whole-archive $(library) -Wl,--no-whole-archive $(engine_libs)

$(OUT)/muninn-monitor: $(monitor_main) $(monitor_library)
	$(call say,LINK)
	$(Q)$(CC) -pie $(link_flags) -o $@ $(monitor_main) $(monitor_library) $(monitor_libs)

$(OUT)/muninn-inspect: $(inspect_main) $(inspect_library) $(monitor_library)
	$(call say,LINK)
	$(Q)$(CC) -pie $(link_flags) -o $@ $(inspect_main) $(inspect_library) $(monitor_library) \
	    $(inspect_libs)

$(OUT)/tests/unit/inspect/%: $(OBJ)/tests/unit/inspect/%.o $(inspect_library) $(monitor_library)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -pie $(link_flags) -o $@ $< $(inspect_library) $(monitor_library) $(inspect_libs)

$(OUT)/tests/unit/monitor/%: $(OBJ)/tests/unit/monitor/%.o $(monitor_library)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -pie $(link_flags) -o $@ $< $(monitor_library) $(monitor_libs)

$(OUT)/tests/unit/%: $(OBJ)/tests/unit/%.o $(library)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(engine_link) $(link_flags) -o $@ $< $(library) $(engine_libs)

-include $(patsubst %.o,%.d,$(all_obj) $(unit_obj)) tests/lib/lib.mk tests/hunt/hunt.mk

# ---- what users run -------------------------------------------------------------------------

bootstrap:
	@scripts/bootstrap

# A second make, so that a compiler or header that bootstrap has just installed is found.
check: bootstrap
	@$(MAKE) --no-print-directory all unit
	@BUILD=$(abspath $(OUT)) tests/run $(SUITES)

demo: bootstrap
	@$(MAKE) --no-print-directory all
	@BUILD=$(abspath $(OUT)) scripts/demo

bench: all
	@BUILD=$(abspath $(OUT)) bench/run $(BENCH)

update-codegen: all unit
	@BUILD=$(abspath $(OUT)) MUNINN=$(abspath $(launcher)) tests/codegen/run --update

# What is made from the option table and kept in the tree: files without the kind of text they are.
made_files := docs/man/muninn.1:man docs/user/options.md:markdown completions/muninn.bash:bash \
              completions/_muninn:zsh completions/muninn.fish:fish
man completions: $(launcher)
	$(foreach f,$(made_files),$(launcher) --command-line-only=yes \
	    --help=$(lastword $(subst :, ,$(f))) > $(firstword $(subst :, ,$(f)));)

share := $(DESTDIR)$(PREFIX)/share
install: $(if $(filter yes 1 true,$(PREBUILT)),,all examples)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/muninn \
	    $(DESTDIR)$(PREFIX)/include/muninn $(share)/man/man1
	install -m 755 $(launcher) $(DESTDIR)$(PREFIX)/bin/muninn
	$(if $(engine),install -m 755 $(engine) $(DESTDIR)$(PREFIX)/libexec/muninn/muninn-engine)
	$(if $(monitor),install -m 755 $(monitor) $(DESTDIR)$(PREFIX)/libexec/muninn/muninn-monitor)
	install -m 755 $(inspect) $(DESTDIR)$(PREFIX)/libexec/muninn/muninn-inspect
	$(call install_for_tools,$(DESTDIR),$(PREFIX))
	install -m 644 docs/man/muninn.1 $(DESTDIR)$(PREFIX)/share/man/man1/muninn.1
	install -D -m 644 completions/muninn.bash $(share)/bash-completion/completions/muninn
	install -D -m 644 completions/_muninn $(share)/zsh/site-functions/_muninn
	install -D -m 644 completions/muninn.fish $(share)/fish/vendor_completions.d/muninn.fish

# The name that scripts, CTest and others look for.
install-compat: install
	ln -sf muninn $(DESTDIR)$(PREFIX)/bin/valgrind
	ln -sf muninn $(share)/bash-completion/completions/valgrind

clean: ; rm -rf build
